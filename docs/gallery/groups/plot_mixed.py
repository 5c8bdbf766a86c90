"""
Groups in columns of every kind
===============================

Tables of people hold numbers, counts, categories, yes and no. ``Mixture`` gives each column a law of its own kind,
and takes empty cells in all of them.
"""

# %%
# Three sorts of customers, whom no single column tells apart.
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import unmix

rng = np.random.default_rng(0)
sort = rng.choice(3, 600, p=[0.5, 0.3, 0.2])
customers = pd.DataFrame(
    {
        "spent": rng.gamma(4, np.array([10, 25, 12])[sort]).round(2),
        "visits": rng.poisson(np.array([2, 3, 9])[sort]),
        "paid by": np.array(["card", "cash", "invoice"])[
            [rng.choice(3, p=[[0.6, 0.3, 0.1], [0.2, 0.1, 0.7], [0.5, 0.4, 0.1]][s]) for s in sort]
        ],
        "newsletter": rng.random(600) < np.array([0.2, 0.5, 0.8])[sort],
    }
)
customers = customers.mask(rng.random(customers.shape) < 0.1)
customers.head()

# %%
# Families are chosen by what the columns hold.
table = unmix.Table(customers)
model = unmix.Mixture(3, n_init=10, random_state=0).fit(table)
print(unmix.explain(model, table))

# %%
# How near is it to the truth, with a tenth of the cells empty?
print(f"agreement with the planted sorts: {adjusted_rand_score(sort, model.labels_):.2f} of 1")
_ = unmix.plot.profiles(unmix.explain(model, table))
