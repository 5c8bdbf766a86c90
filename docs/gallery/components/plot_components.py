"""
Thirty columns, few components
==============================

Which components of the breast cancer measurements are more than chance, what are they made of, and which rows and
columns do they describe well?
"""

# %%
# Parallel analysis compares each component with the same one of columns that have nothing to do with each other. More
# than chance is not yet much: the first seven hold nearly all.
from sklearn.datasets import load_breast_cancer

import unmix

# sphinx_gallery_thumbnail_number = 3
cancer = load_breast_cancer(as_frame=True)
table = unmix.Table(cancer.data)
k = unmix.PCA("parallel", random_state=0).fit(table).n_components_
pca = unmix.PCA().fit(table)
_ = unmix.plot.scree(pca, more_than_chance=k)
print(f"{k} are more than chance; the first seven hold {pca.explained_variance_ratio_[:7].sum():.0%} of the variance")

# %%
# Rows and columns in one picture: an arrow points to where rows have more of a column. The first component is
# size, the second how rough the outline is.
kind = cancer.target_names[cancer.target]
_ = unmix.plot.biplot(pca, table, labels=kind)

# %%
# Two numbers per row are enough to see most of what tells the tumours apart. Contours hold half and nine tenths of
# each kind.
_ = unmix.plot.scores(pca, table, labels=kind, density=True)
