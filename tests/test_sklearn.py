"""scikit-learn's own checks, for every model."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import unmix

pytestmark = pytest.mark.filterwarnings("ignore")  # the checks fit tiny data
SHORT = {
    "RobustPCA": {"tol": 1e-3},  # two thousand passes over blobs, which are no low-rank matrix, show nothing more
    "RoleCover": {"threshold": 0.0},  # the checks have other numbers than 0 and 1
    "MultiAssignmentClustering": {"threshold": 0.0},
    "DiscreteBasis": {"threshold": 0.0},
    "RoleMiner": {"threshold": 0.0},
    "RoundedSVD": {"threshold": 0.0},
}


def estimators():
    return [cls(**SHORT.get(name, {})) for name, cls in unmix.models().items()]


def expected(estimator):
    """Checks that a model is expected to fail, with the reason that its documentation gives."""
    return estimator.exempt_checks


@parametrize_with_checks(estimators(), expected_failed_checks=expected)
def test_scikit_learn_check(estimator, check):
    with unmix.config(progress=False):
        check(estimator)
