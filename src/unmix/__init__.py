"""unmix finds the hidden parts of data: X ≈ Z U.

One loop, one contract for a model, all the models. See `unmix.models()` for the list.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The one list of models: name → module. A model is imported when it is first used.
_MODELS = {
    "PCA": "unmix.linear.pca",
    "ProbabilisticPCA": "unmix.linear.probabilistic_pca",
    "FactorAnalysis": "unmix.linear.factor_analysis",
    "TruncatedSVD": "unmix.linear.truncated_svd",
    "KernelPCA": "unmix.linear.kernel_pca",
    "FastICA": "unmix.linear.fast_ica",
    "RobustPCA": "unmix.linear.robust_pca",
    "GaussianImputer": "unmix.linear.gaussian_imputer",
    "KMeans": "unmix.cluster.kmeans",
    "SoftKMeans": "unmix.cluster.soft_kmeans",
    "KernelKMeans": "unmix.cluster.kernel_kmeans",
    "KMedoids": "unmix.cluster.kmedoids",
    "GaussianMixture": "unmix.mixture.gaussian",
    "BayesianGaussianMixture": "unmix.mixture.bayesian",
    "Mixture": "unmix.mixture.mixture",
    "MixtureOfFactorAnalyzers": "unmix.mixture.factor_analyzers",
    "NMF": "unmix.nonneg.nmf",
    "LatentDirichletAllocation": "unmix.topic.lda",
    "MultiAssignmentClustering": "unmix.boolean.multi_assignment",
    "DiscreteBasis": "unmix.boolean.discrete_basis",
    "RoleMiner": "unmix.boolean.role_miner",
    "RoundedSVD": "unmix.boolean.rounded_svd",
    "RoleCover": "unmix.boolean.role_cover",
    "PMF": "unmix.recommend.pmf",
}
_OTHERS = {
    "Model": "unmix.model",
    "load": "unmix.model",
    "config": "unmix.engine.config",
    "get_config": "unmix.engine.config",
    "set_config": "unmix.engine.config",
    "as_source": "unmix.engine.sources",
    "Table": "unmix.table",
    "TableEncoder": "unmix.table",
    "TableError": "unmix.table",
    "triples": "unmix.engine.sources.triples",
    "Imputer": "unmix.imputation.imputer",
    "OutlierDetector": "unmix.outlier.conformal",
    "Select": "unmix.selection.estimator",
    "Selection": "unmix.selection.result",
    "select": "unmix.selection.choose",
    "explain": "unmix.explanation.explain",
    "pool": "unmix.imputation.pool",
    "dimension": "unmix.validate.dimension",
    "report": "unmix.reporting.report",
    "roles": "unmix.reporting.roles",
}

__all__ = [
    "NMF",
    "PCA",
    "PMF",
    "BayesianGaussianMixture",
    "DiscreteBasis",
    "FactorAnalysis",
    "FastICA",
    "GaussianImputer",
    "GaussianMixture",
    "Imputer",
    "KMeans",
    "KMedoids",
    "KernelKMeans",
    "KernelPCA",
    "LatentDirichletAllocation",
    "Mixture",
    "MixtureOfFactorAnalyzers",
    "Model",
    "MultiAssignmentClustering",
    "OutlierDetector",
    "ProbabilisticPCA",
    "RobustPCA",
    "RoleCover",
    "RoleMiner",
    "RoundedSVD",
    "Select",
    "Selection",
    "SoftKMeans",
    "Table",
    "TableEncoder",
    "TableError",
    "TruncatedSVD",
    "as_source",
    "config",
    "dimension",
    "explain",
    "get_config",
    "load",
    "models",
    "plot",
    "pool",
    "report",
    "roles",
    "select",
    "set_config",
    "triples",
]

if TYPE_CHECKING:
    from unmix import plot
    from unmix.boolean.discrete_basis import DiscreteBasis
    from unmix.boolean.multi_assignment import MultiAssignmentClustering
    from unmix.boolean.role_cover import RoleCover
    from unmix.boolean.role_miner import RoleMiner
    from unmix.boolean.rounded_svd import RoundedSVD
    from unmix.cluster.kernel_kmeans import KernelKMeans
    from unmix.cluster.kmeans import KMeans
    from unmix.cluster.kmedoids import KMedoids
    from unmix.cluster.soft_kmeans import SoftKMeans
    from unmix.engine.config import config, get_config, set_config
    from unmix.engine.sources import as_source
    from unmix.engine.sources.triples import triples
    from unmix.explanation.explain import explain
    from unmix.imputation.imputer import Imputer
    from unmix.imputation.pool import pool
    from unmix.linear.factor_analysis import FactorAnalysis
    from unmix.linear.fast_ica import FastICA
    from unmix.linear.gaussian_imputer import GaussianImputer
    from unmix.linear.kernel_pca import KernelPCA
    from unmix.linear.pca import PCA
    from unmix.linear.probabilistic_pca import ProbabilisticPCA
    from unmix.linear.robust_pca import RobustPCA
    from unmix.linear.truncated_svd import TruncatedSVD
    from unmix.mixture.bayesian import BayesianGaussianMixture
    from unmix.mixture.factor_analyzers import MixtureOfFactorAnalyzers
    from unmix.mixture.gaussian import GaussianMixture
    from unmix.mixture.mixture import Mixture
    from unmix.model import Model, load
    from unmix.nonneg.nmf import NMF
    from unmix.outlier.conformal import OutlierDetector
    from unmix.recommend.pmf import PMF
    from unmix.reporting.report import report
    from unmix.reporting.roles import roles
    from unmix.selection.choose import select
    from unmix.selection.estimator import Select
    from unmix.selection.result import Selection
    from unmix.table import Table, TableEncoder, TableError
    from unmix.topic.lda import LatentDirichletAllocation
    from unmix.validate.dimension import dimension


def models() -> dict[str, type[Model]]:
    """Return every model by name.

    Returns
    -------
    models : dict
        Class by name, in the order of the documentation.

    Examples
    --------
    >>> import unmix
    >>> [name for name, model in unmix.models().items() if model.sparse and not model.missing]
    ['TruncatedSVD', 'KernelPCA', 'FastICA', 'LatentDirichletAllocation']
    """
    return {name: getattr(importlib.import_module(module), name) for name, module in _MODELS.items()}


def __getattr__(name: str) -> Any:
    if name == "plot":  # a room of its own, with functions that are called by its name
        return importlib.import_module("unmix.plot")
    module = _MODELS.get(name) or _OTHERS.get(name)
    if module is None:
        raise AttributeError(f"module 'unmix' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
