"""How many dimensions rows have: the Gamma law of distances, planted surfaces, and intervals that cover."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.spatial.distance import pdist
from sklearn.datasets import make_swiss_roll

import unmix
from unmix.validate import Dimension
from unmix.validate.dimension import PAIRS


def embedded(t, d, seed=0):
    """Points of a flat piece in d columns, by a smooth map without a fold."""
    rng = np.random.default_rng(seed)
    m = t.shape[1]
    bent = np.hstack([t, 0.3 * np.sin(t), 0.2 * np.cos(1.5 * t), 0.1 * t * np.roll(t, 1, axis=1)])
    return bent @ rng.normal(size=(4 * m, d))


# ------------------------------------------------------------------------------------------- concentration


@pytest.mark.parametrize("D", [3, 20, 100])
def test_distances_of_gaussian_noise_are_as_the_law_says(D):
    found = unmix.dimension(np.random.default_rng(D).normal(size=(4000, D)) * np.arange(1, D + 1), random_state=0)
    assert found.n_columns == D
    assert (found.law_mean, found.law_variance) == (2.0, 8 / D)
    assert found.mean == pytest.approx(2.0, rel=0.01)
    assert found.variance == pytest.approx(8 / D, rel=0.05)
    assert found.effective_columns == pytest.approx(D, rel=0.05)
    assert found.gamma_gap < 0.01


def test_every_pair_counts_where_there_are_few():
    X = np.random.default_rng(0).normal(size=(300, 6)) @ np.random.default_rng(1).normal(size=(6, 6))
    assert PAIRS > 300 * 299 // 2
    v = pdist(X, "seuclidean", V=X.var(axis=0, ddof=1)) ** 2 / 6
    found = unmix.dimension(X)
    assert found.mean == pytest.approx(2.0, rel=1e-12)
    assert found.variance == pytest.approx(v.var(), rel=1e-12)
    shape = found.effective_columns / 2
    assert found.gamma_gap == pytest.approx(stats.kstest(v, stats.gamma(shape, scale=2 / shape).cdf).statistic)


def test_effective_columns_of_gaussian_rows_are_those_of_the_covariance():
    """(tr Σ)² / tr Σ²; of standardised columns Σ is the correlation matrix."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 30))
    S = A.T @ A + 0.5 * np.eye(30)
    X = rng.multivariate_normal(np.zeros(30), S, size=5000)
    scale = np.sqrt(np.diag(S))
    R = S / np.outer(scale, scale)
    for standardize, C in ((True, R), (False, S)):
        found = unmix.dimension(X, standardize=standardize, random_state=0)
        assert found.mean == pytest.approx(2.0, rel=0.02)
        assert found.effective_columns == pytest.approx(np.trace(C) ** 2 / np.trace(C @ C), rel=0.06)


def test_groups_are_not_like_gaussian_noise():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(1000, 10))
    apart = unmix.dimension(noise + 8 * (np.arange(1000) % 2)[:, None], random_state=0)
    assert apart.gamma_gap > 0.1 > 5 * unmix.dimension(noise, random_state=0).gamma_gap


# ------------------------------------------------------------------------------------------- intrinsic dimension


@pytest.mark.parametrize(("m", "d"), [(1, 20), (2, 50), (3, 20), (5, 30), (7, 40), (10, 50)])
@pytest.mark.parametrize("bent", [False, True])
def test_planted_dimension_is_found(m, d, bent):
    rng = np.random.default_rng(m)
    t = rng.normal(size=(5000, m))
    X = embedded(t, d) if bent else t @ rng.normal(size=(m, d))
    found = unmix.dimension(X + 5.0, random_state=0)
    assert found.likelihood.value == pytest.approx(m, rel=0.1)
    assert found.two_nn.value == pytest.approx(m, rel=0.1)
    assert found.trusted, found.cautions


def test_swiss_roll_and_spheres():
    rolled = make_swiss_roll(3000, random_state=0)[0]
    assert unmix.dimension(rolled, random_state=0).likelihood.value == pytest.approx(2, rel=0.1)
    assert unmix.dimension(rolled, random_state=0).two_nn.value == pytest.approx(2, rel=0.1)
    for m in (1, 2, 4, 6):
        x = np.random.default_rng(m).normal(size=(3000, m + 1))
        sphere = x / np.linalg.norm(x, axis=1, keepdims=True)
        found = unmix.dimension(sphere @ np.random.default_rng(0).normal(size=(m + 1, 25)), random_state=0)
        assert found.likelihood.value == pytest.approx(m, rel=0.1)
        assert found.two_nn.value == pytest.approx(m, rel=0.1)


def torus(n, m, rng):
    """A surface without edges, the same everywhere: what the estimates assume, but for its curvature."""
    t = rng.uniform(0, 2 * np.pi, size=(n, m))
    return np.hstack([np.cos(t), np.sin(t)])


@pytest.mark.parametrize(
    ("m", "level"), [(2, 0.95), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 0.95), (2, 0.8)))]
)
def test_intervals_cover_at_their_rate(m, level):
    rng = np.random.default_rng(m)
    draws = 100
    held = np.zeros(2)
    for _ in range(draws):
        found = unmix.dimension(torus(300, m, rng), n_neighbors=5, level=level, standardize=False)
        held += [e.low <= m <= e.high for e in (found.two_nn, found.likelihood)]
    slack = 3 * np.sqrt(level * (1 - level) / draws) + 0.02
    assert (np.abs(held / draws - level) < slack).all(), held / draws


def test_intervals_are_of_chance_alone():
    """They hold what the estimate is on average, which near edges is less than the dimension; and it is said."""
    rng = np.random.default_rng(0)
    found = [unmix.dimension(rng.uniform(size=(500, 3)), standardize=False) for _ in range(60)]
    for which in ("two_nn", "likelihood"):
        own = [getattr(f, which) for f in found]
        average = np.exp(np.mean([np.log(e.value) for e in own]))
        assert np.mean([e.low <= average <= e.high for e in own]) > 0.85
    assert np.mean([f.likelihood.low <= 3 <= f.likelihood.high for f in found]) < 0.5
    assert all(round(f.likelihood.value) == 3 for f in found)
    assert "chance alone" in str(found[0])


def test_naive_intervals_would_be_too_short():
    """Rows share neighbours: m √(1/n(k−1)) is less than what the estimate varies by."""
    rng = np.random.default_rng(0)
    found = [unmix.dimension(torus(300, 2, rng), standardize=False).likelihood for _ in range(60)]
    spread = np.std([np.log(e.value) for e in found])
    told = np.mean([np.log(e.high / e.value) / 1.96 for e in found])
    naive = 1 / np.sqrt(300 * 9)
    assert naive < 0.9 * spread
    assert told == pytest.approx(spread, rel=0.3)


def test_noise_about_a_surface_shows_at_short_distances():
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 10, size=(3000, 1))
    X = t @ np.ones((1, 8)) + 0.02 * rng.normal(size=(3000, 8))
    found = unmix.dimension(X, standardize=False, random_state=0)
    assert found.scales[3] > found.scales[40]
    assert found.scales[40] > 1.0
    assert found.scales[found.n_neighbors] == found.likelihood.value


def test_some_rows_with_neighbours_among_all_tell_the_same():
    X = np.random.default_rng(0).normal(size=(20_000, 3)) @ np.random.default_rng(1).normal(size=(3, 10))
    some, every = unmix.dimension(X, sample=500, random_state=0), unmix.dimension(X, sample=None, random_state=0)
    assert some.likelihood.low < every.likelihood.value < some.likelihood.high
    assert some.likelihood.value == pytest.approx(3, rel=0.1)
    assert some.likelihood.high - some.likelihood.low > 3 * (every.likelihood.high - every.likelihood.low)
    assert "500 rows" in str(some)
    assert "sought" not in str(every)


# ------------------------------------------------------------------------------------------- when not to trust it


def test_copies_few_rows_and_few_values_are_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    assert unmix.dimension(X, random_state=0).cautions == ()
    twice = unmix.dimension(np.vstack([X, X[:100]]), standardize=False, random_state=0)
    once = unmix.dimension(X, standardize=False, random_state=0)
    np.testing.assert_allclose(twice.likelihood, once.likelihood)  # equal rows have no distance
    assert any("copies" in why for why in twice.cautions)
    assert not twice.trusted
    assert any("few" in why for why in unmix.dimension(X[:50], random_state=0).cautions)
    assert any("few values" in why for why in unmix.dimension(X.round(0), random_state=0).cautions)
    mostly = np.where(rng.random((400, 3)) < 0.7, 0.0, X)
    assert any("few values" in why for why in unmix.dimension(mostly, random_state=0).cautions)
    assert any("3 of 3 columns are rounded" in why for why in unmix.dimension(X.round(1), random_state=0).cautions)
    assert unmix.dimension(X.round(3), random_state=0).trusted  # steps far below the distances of rows
    wide = unmix.dimension(rng.normal(size=(400, 60)), random_state=0)
    assert any("so many dimensions" in why for why in wide.cautions)
    assert wide.likelihood.value < 60


def test_a_lattice_is_no_surface():
    X = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    found = unmix.dimension(X, random_state=0)
    assert not found.trusted
    assert "Do not trust" in str(found)


def test_rows_with_missing_cells_are_left_out_and_it_is_said():
    X = np.random.default_rng(0).normal(size=(300, 4))
    holes = X.copy()
    holes[::3, 1] = np.nan
    found = unmix.dimension(holes, random_state=0)
    assert found.likelihood == unmix.dimension(X[np.arange(300) % 3 > 0], random_state=0).likelihood
    assert "100 of 300 rows with missing cells" in str(found)
    holes[3:, 1] = np.nan
    with pytest.raises(ValueError, match="298 of 300 rows of X have missing cells"):
        unmix.dimension(holes)


def test_answer_is_a_tuple_and_a_paragraph():
    X = np.random.default_rng(0).normal(size=(200, 5))
    found = unmix.dimension(np.column_stack([X, np.full(200, 7.0)]), random_state=0)
    assert isinstance(found, Dimension)
    assert found.n_columns == 5
    assert "1 constant column" in str(found)
    assert f"{found.likelihood.value:.3g} ({found.likelihood.low:.3g} to {found.likelihood.high:.3g})" in str(found)
    assert found.likelihood.low < found.likelihood.value < found.likelihood.high
    assert found == unmix.dimension(np.column_stack([X, np.full(200, 7.0)]), random_state=1)  # nothing was drawn


# ------------------------------------------------------------------------------------------- what X may be


def test_units_order_precision_and_sparsity_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 8))
    truth = unmix.dimension(X).likelihood
    for same in (X * 10.0 ** np.arange(-4, 4) + 3.0, X[::-1], X.astype(np.float32), 1e100 * X, 1e-100 * X):
        np.testing.assert_allclose(unmix.dimension(same).likelihood, truth, rtol=1e-3)
    thin = sp.csr_array(X)
    np.testing.assert_allclose(unmix.dimension(thin).likelihood, truth, rtol=1e-6)
    assert unmix.dimension(thin).variance == pytest.approx(unmix.dimension(X).variance)


def test_frames_and_files(tmp_path):
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(150, 3))
    np.save(tmp_path / "x.npy", X)
    truth = unmix.dimension(X)
    assert unmix.dimension(pd.DataFrame(X)) == truth
    assert unmix.dimension(tmp_path / "x.npy") == truth


@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        (np.ones((10, 2)), {}, "no column of X varies"),
        (np.arange(6.0).reshape(3, 2), {}, "3 different complete rows"),
        (np.eye(9), {"n_neighbors": 2}, "n_neighbors=2: .* at least 3"),
        (np.eye(9), {"n_neighbors": 4.5}, "n_neighbors=4.5"),
        (np.eye(9), {"sample": 0}, "sample=0"),
        (np.eye(9), {"level": 1.0}, "level=1.0"),
        (np.array([[1.0, np.inf], [2.0, 1.0]]), {}, "infinity"),
    ],
)
def test_what_cannot_be_answered_is_refused(X, options, words):
    with pytest.raises(ValueError, match=words):
        unmix.dimension(X, **options)


def test_tiny_tables_are_answered():
    found = unmix.dimension(np.random.default_rng(0).normal(size=(6, 2)))
    assert found.n_neighbors == 5
    assert not found.trusted
