"""
Ratings, with an error bar
==========================

What would somebody give to a film that they have not seen, and how sure is that? Four hundred people rate some of
ninety films; some rate a lot, most a little.
"""

# %%
# What a person gives is planted: an average, what they and the film are like in general, two tastes, and noise.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import unmix
from unmix.recommend import evaluate, split

# sphinx_gallery_thumbnail_number = 2
rng = np.random.default_rng(0)
n, d = 400, 90
tastes = 0.6 * rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
truth = 3.5 + 0.5 * rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=d) + tastes
user, item = np.nonzero(rng.random((n, d)) < 0.04 + rng.beta(1, 5, size=(n, 1)))
given = truth[user, item] + 0.5 * rng.normal(size=len(user))
ratings = pd.DataFrame({"user": user, "item": item, "rating": given})
train, test = split(ratings, "random", test=0.2, random_state=0)
print(f"{len(train):,} ratings to learn from: {len(train) / (n * d):.0%} of the cells")

# %%
# Factors that do not beat what users and films get on average have shown nothing. These do; and nine in ten of the
# ratings that they did not see are within the 90 % intervals.
model = unmix.PMF(2, random_state=0).fit(train)
for name, fit in (("averages alone", unmix.PMF(0, random_state=0).fit(train)), ("two factors", model)):
    scores = evaluate(fit, test)
    print(f"{name:15s} off by {scores.rmse:.2f}; 90 % intervals held {scores.coverage:.0%}")

# %%
# Who has rated much is known better, and their intervals are narrower.
many = train["user"].value_counts()
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
_, deviation = model.predict(test["user"], test["item"], return_std=True)
ax.plot(test["user"].map(many).fillna(0), deviation, ".", ms=4, alpha=0.5)
ax.axhline(0.5, color="0.5", lw=1)
_ = ax.set(xlabel="ratings of the user", ylabel="standard deviation", title="grey: the noise that was planted")

# %%
# What to show to somebody who has rated ten films, with what is planted beside it.
someone = int(many.index[many == 10][0])
best = model.recommend(someone, n=8)
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.errorbar([r.rating for r in best], range(8), xerr=[1.645 * r.std for r in best], fmt="o", label="expected, 90 %")
ax.plot([truth[someone, r.item] for r in best], range(8), "x", label="planted")
ax.set(yticks=range(8), yticklabels=[f"film {r.item}" for r in best], xlabel="rating")
ax.invert_yaxis()
_ = ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)

# %%
# Somebody who is in no table: a few ratings are enough, and nothing is fitted again.
new = model.recommend({3: 5.0, 10: 1.0, 40: 4.5}, n=3)
print("; ".join(f"film {r.item}: {r.rating:.1f} ± {r.std:.1f}" for r in new))
