"""
How many kinds of wine?
=======================

Thirteen chemical measurements of 178 bottles. Nobody tells how many kinds there are, and the columns have units of
their own.
"""

# %%
# A ``Table`` reads the columns and makes them count alike; ``select`` says how many groups there are, how sure
# that is, and why.
from sklearn.datasets import load_wine

import unmix

# sphinx_gallery_thumbnail_number = 3
wine = load_wine(as_frame=True)
table = unmix.Table(wine.data)
answer = unmix.select("KMeans", table, random_state=0)
print(answer)
_ = answer.plot()

# %%
# ``explain`` tells what sets each group apart, by column name and in the units of the table.
model = answer.model
found = unmix.explain(model, table)
print(found)

# %%
# The same as a picture: purple is more than in the other groups, orange is less.
_ = unmix.plot.profiles(found)

# %%
# On two principal components, which hold half of the variance, the three kinds can be seen. The growers of the
# wines were not told to the model; its groups are theirs but for a few bottles.
import numpy as np
from sklearn.metrics import adjusted_rand_score

_ = unmix.plot.scores(unmix.PCA(2).fit(table), table, labels=model.labels_ + 1)
print(f"agreement with the growers: {adjusted_rand_score(wine.target, model.labels_):.2f} of 1")
print("bottles in each group:", np.bincount(model.labels_))
