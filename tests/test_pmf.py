"""PMF: against closed forms, planted ratings, and what people ask of a recommender."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import unmix
from unmix import PMF, triples
from unmix.recommend import evaluate, split
from unmix.recommend._sides import outer, packed, pairs, side_of, squares

DATA = Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data"))
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def planted(n=200, d=60, k=2, share=0.3, noise=0.4, seed=0):
    """Ratings in a frame, of which some are held out, and the truth of every cell."""
    rng = np.random.default_rng(seed)
    truth = 3.5 + 0.4 * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal(d)
    truth = truth + 0.6 * rng.standard_normal((n, k)) @ rng.standard_normal((k, d))
    i, j = np.nonzero(rng.random((n, d)) < share)
    r = truth[i, j] + noise * rng.standard_normal(len(i))
    names = np.array([f"i{v:03d}" for v in range(d)])
    frame = pd.DataFrame({"user": 1000 + i, "item": names[j], "rating": r, "time": rng.permutation(len(i))})
    return frame, truth


@pytest.fixture(scope="module")
def ratings():
    return planted()


@pytest.fixture(scope="module")
def fitted(ratings):
    return PMF(2, random_state=0).fit(ratings[0])


# ---------------------------------------------------------------- the equations


def test_one_pass_of_least_squares_is_what_its_equations_say(ratings):
    frame, _ = ratings
    source = triples("user", "item", "rating", data=frame)
    model = PMF(2, posterior="map", regularization=3.0, max_iter=1, random_state=0).fit(source)
    U, x = model.parts, source.whole()
    start = PMF(2, posterior="map", regularization=3.0, max_iter=1, random_state=0)
    first = start.at(model.shape).start(None, _block(x), np.random.default_rng(0))
    design = np.column_stack([first.items[:, :2], np.ones(len(first.items))])
    z = np.zeros((x.shape[0], 3))
    for i in range(x.shape[0]):
        own = slice(x.indptr[i], x.indptr[i + 1])
        a = design[x.indices[own]]
        t = x.data[own] / first.unit - first.mean - first.items[x.indices[own], 2]
        z[i] = np.linalg.solve(a.T @ a + 3.0 * np.eye(3), a.T @ t)
    own, _ = _users_of(first, x, 3.0)
    np.testing.assert_allclose(own, z, rtol=1e-8, atol=1e-10)
    again = start.at(model.shape).update(first, start.at(model.shape).local(first, _block(x)).stats)
    columns = sp.csc_array(x)
    for j in (0, 7, 31):
        part = slice(columns.indptr[j], columns.indptr[j + 1])
        a = np.column_stack([z[columns.indices[part], :2], np.ones(len(columns.indices[part]))])
        t = columns.data[part] / first.unit - first.mean - z[columns.indices[part], 2]
        np.testing.assert_allclose(again.items[j], np.linalg.solve(a.T @ a + 3.0 * np.eye(3), a.T @ t), rtol=1e-7)
    assert U.items.shape == (x.shape[1], 3)


def _block(x):
    from unmix.engine.block import Block

    return Block(sp.csr_array(x), absent=True)


def _users_of(U, x, ridge):
    from unmix.recommend import _ridge
    from unmix.recommend._sides import entries

    return _ridge.users(U, entries(_block(x)), _ridge.How(True, ridge, 0.0))


def test_the_posterior_of_a_user_is_the_gaussian_of_its_equations(fitted):
    from unmix.recommend._sides import entries

    U, x = fitted.parts, fitted.ratings_.matrix(fitted.n_features_in_)
    found = fitted.found(U, entries(_block(x[[3]])))
    side = side_of(U.items, U.doubt, True)
    H = np.linalg.inv(U.user_covariance)
    S, s = H.copy(), H @ U.user_mean
    for j, r in zip(x[[3]].indices, x[[3]].data, strict=True):
        S += squares(side.second[j], 3) / U.noise
        s += (side.design[j] * (r / U.unit - U.mean - side.offset[j]) - side.cross[j]) / U.noise
    np.testing.assert_allclose(found.mean[0], np.linalg.solve(S, s), rtol=1e-8)
    np.testing.assert_allclose(squares(found.covariance[0], 3), np.linalg.inv(S), rtol=1e-8)


def test_second_moments_of_items_are_those_of_draws():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3, 3))
    mean, C = rng.standard_normal((1, 3)), A @ A.T
    side = side_of(mean, packed(C)[None], True)
    draws = rng.multivariate_normal(mean[0], C, 400_000)
    a = np.column_stack([draws[:, :2], np.ones(len(draws))])
    np.testing.assert_allclose(squares(side.second[0], 3), a.T @ a / len(a), atol=0.05)
    np.testing.assert_allclose(side.cross[0], np.cov(a.T, draws[:, 2])[:3, 3], atol=0.05)
    np.testing.assert_allclose(side.spread[0], C[2, 2])
    assert (squares(outer(mean), 3)[0] == mean.T @ mean).all()
    assert pairs(3)[2].sum() == 9


def many(dtype=np.float64, n=150, d=160, k=39):
    """Ratings in memory for which the sums of all items would be large."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.2, rng=rng, format="csr", dtype=np.float64)
    X.data = 3 + X.data + np.repeat(rng.normal(size=n), np.diff(X.indptr))
    return X.astype(dtype), {"n_components": k, "posterior": "map", "random_state": 0, "tol": 0}


@pytest.mark.parametrize(
    "how", [{}, {"biases": False}, {"feedback": "clicks"}, {"regularization": 0.0, "n_components": 39}]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_rounds_on_ratings_in_memory_are_the_passes_over_them(monkeypatch, how, weighted):
    X, parameters = many()
    if how.get("feedback"):
        X.data = np.round(np.abs(X.data))
    w = np.random.default_rng(1).integers(0, 3, X.shape[0]).astype(float) if weighted else None
    model = PMF(**parameters | how | {"max_iter": 4}).fit(X, sample_weight=w)
    monkeypatch.setattr("unmix.recommend.pmf.SUMS", 1 << 30)
    passes = PMF(**parameters | how | {"max_iter": 4}).fit(X, sample_weight=w)
    assert [type(s).__name__ for s in model.stages(model.shape)] == ["PMF"]
    np.testing.assert_allclose([t.objective for t in model.trace_], [t.objective for t in passes.trace_], rtol=1e-6)
    if how.get("regularization") != 0.0:  # else any solution is one
        np.testing.assert_allclose(model.components_, passes.components_, atol=1e-8)
        np.testing.assert_allclose(model.noise_variance_, passes.noise_variance_, rtol=1e-8)


def test_rounds_fall_and_give_the_same_bits_on_any_number_of_threads():
    X, parameters = many()
    one, other = PMF(**parameters, max_iter=12), PMF(**parameters, max_iter=12)
    assert [s.name for s in one.stages(unmix.KMeans(2).fit(X.toarray()).shape)] == ["least squares"]
    with unmix.config(runner="serial"):
        one.fit(X)
    with unmix.config(n_jobs=3):
        other.fit(X)
    np.testing.assert_array_equal(one.components_, other.components_)
    assert (np.diff([t.objective for t in one.trace_]) < 0).all()
    single = PMF(**parameters, max_iter=12).fit(X.astype(np.float32))
    assert single.components_.dtype == np.float32
    apart = one.predict(X) - single.predict(X.astype(np.float32))
    assert np.abs(apart).max() < 1e-3


def test_rounds_that_were_stopped_go_on_to_the_same_bits(tmp_path):
    X, parameters = many()
    whole = PMF(**parameters, max_iter=6).fit(X)

    class Stop:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            return fitted_estimator is not None and len(fitted_estimator.trace_) == 3

    with unmix.config(checkpoint=tmp_path / "fit", checkpoint_seconds=0):
        stopped = PMF(**parameters, max_iter=6).set_callbacks(Stop()).fit(X)
        assert len(stopped.trace_) == 3
        again = PMF(**parameters, max_iter=6).fit(X)
    np.testing.assert_array_equal(whole.components_, again.components_)


def test_biases_alone_are_a_ridge_regression(ratings):
    frame, _ = ratings
    model = PMF(0, posterior="map", regularization=5.0, tol=0, max_iter=200).fit(frame)
    source = triples("user", "item", "rating", data=frame)
    x = source.whole().tocoo()
    (i, j), (n, d) = x.coords, x.shape
    rows = np.arange(len(i))
    D = sp.csr_array((np.ones(2 * len(i)), (np.r_[rows, rows], np.r_[i, n + j])), shape=(len(i), n + d)).toarray()
    t = x.data - x.data.mean()
    found = np.linalg.solve(D.T @ D + 5.0 * np.eye(n + d), D.T @ t)
    np.testing.assert_allclose(model.item_biases_, found[n:], atol=1e-6)
    expected = x.data.mean() + found[3] + found[n:]
    np.testing.assert_allclose(model.predict(model.user_ids_[3], model.item_ids_), expected, atol=1e-6)


def test_without_regularization_there_is_an_answer(ratings):
    model = PMF(5, posterior="map", regularization=0.0, max_iter=5, random_state=0).fit(ratings[0])
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.predict(model.user_ids_, model.item_ids_[0])).all()


# ---------------------------------------------------------------- planted ratings


@pytest.mark.parametrize("posterior", ["variational", "map"])
def test_planted_ratings_are_predicted(ratings, posterior):
    frame, _ = ratings
    train, test = split(frame, "random", test=0.1, random_state=0)
    model = PMF(2, posterior=posterior, regularization=2.0, random_state=0).fit(train)
    own, plain = evaluate(model, test), evaluate(PMF(0).fit(train), test)
    assert own.rmse < 0.52 < 0.8 < plain.rmse
    if posterior == "variational":
        assert 0.86 < own.coverage < 0.94
        assert own.log_score > own.log_score_constant - 0.01


def test_noise_and_superfluous_factors(ratings):
    frame, _ = ratings
    model = PMF(6, random_state=0).fit(frame)
    assert 0.33 < np.sqrt(model.noise_variance_) < 0.45
    two = PMF(2, random_state=0).fit(frame)
    train, test = split(frame, "random", test=0.1, random_state=1)
    many, few = (evaluate(PMF(k, random_state=0).fit(train), test).rmse for k in (8, 2))
    assert many < 1.04 * few
    assert two.n_components_ == 2


def test_users_who_rate_at_random_get_wider_intervals():
    frame, _ = planted(300, 80, seed=3)
    rng = np.random.default_rng(0)
    wild = frame["user"] % 3 == 0
    frame.loc[wild, "rating"] += rng.normal(0, 1.2, int(wild.sum()))
    train, test = split(frame, "random", test=0.2, random_state=0)
    model = PMF(2, random_state=0).fit(train)
    _, deviation = model.predict(test["user"], test["item"], return_std=True)
    apart = (test["user"] % 3 == 0).to_numpy()
    assert deviation[apart].mean() > 1.3 * deviation[~apart].mean()
    own = evaluate(model, test)
    assert own.log_score > own.log_score_constant


def test_clicks():
    rng = np.random.default_rng(0)
    taste = rng.integers(3, size=150)
    likes = np.where(taste[:, None] == np.arange(45) % 3, 0.4, 0.03)
    clicks = (rng.random((150, 45)) < likes) * rng.poisson(2, (150, 45))
    model = PMF(4, feedback="clicks", confidence=2.0, regularization=2.0, random_state=0).fit(sp.csr_array(clicks))
    right = [j.item % 3 == taste[i] for i in range(150) for j in model.recommend(i, 3)]
    assert np.mean(right) > 0.9
    with pytest.raises(ValueError, match="return_std=True needs ratings"):
        model.predict([0], [0], return_std=True)
    assert model.predict([0], [0]).shape == (1,)
    with pytest.raises(ValueError, match="posterior='variational' is for ratings"):
        PMF(2, feedback="clicks", posterior="variational").fit(sp.csr_array(clicks))
    with pytest.raises(ValueError, match="give counts of at least 0"):
        PMF(2, feedback="clicks").fit(sp.csr_array(-clicks))


def test_a_stored_zero_is_no_click():
    rng = np.random.default_rng(0)
    clicks = sp.csr_array((rng.random((40, 12)) < 0.3) * 1.0)
    more = clicks.copy()
    some = rng.random(more.nnz) < 0.3
    more.data[some] = 0.0
    without = more.copy()
    without.eliminate_zeros()
    how = {"n_components": 2, "feedback": "clicks", "regularization": 1.0, "random_state": 0, "max_iter": 5}
    one, other = PMF(**how).fit(more), PMF(**how).fit(without)
    np.testing.assert_allclose(one.transform(more), other.transform(without), atol=1e-9)


def test_clicks_minimise_what_they_say():
    rng = np.random.default_rng(0)
    clicks = sp.csr_array((rng.random((30, 12)) < 0.3) * 1.0)
    model = PMF(2, feedback="clicks", confidence=3.0, regularization=1.0, random_state=0, max_iter=3).fit(clicks)
    Z, V = model.transform(clicks), model.components_
    C, P = 1 + 3 * clicks.toarray(), (clicks.toarray() > 0) * 1.0
    for i in (0, 5, 20):
        A = V @ (C[i][:, None] * V.T) + np.eye(2)
        np.testing.assert_allclose(Z[i], np.linalg.solve(A, V @ (C[i] * P[i])), rtol=1e-6, atol=1e-9)
    total = (C * (P - Z @ V) ** 2).sum() + (Z**2).sum() + (V**2).sum()
    again = PMF(2, feedback="clicks", confidence=3.0, regularization=1.0, random_state=0, max_iter=4, tol=0).fit(clicks)
    np.testing.assert_allclose(again.trace_[3].objective * 30, total, rtol=1e-9)


# ---------------------------------------------------------------- what ratings come as


def test_a_frame_a_matrix_and_a_table_with_holes_are_the_same(ratings):
    frame, _ = ratings
    source = triples("user", "item", "rating", data=frame)
    x = source.whole()
    dense = np.full(x.shape, np.nan)
    dense[x.tocoo().coords] = x.tocoo().data
    how = {"max_iter": 5, "random_state": 0}
    with unmix.config(block_rows=64):
        models = [PMF(2, **how).fit(X) for X in (frame, source, x, dense)]
    for model in models[1:]:
        np.testing.assert_allclose(model.components_, models[0].components_, rtol=1e-6, atol=1e-8)
    for kind in ("polars", "pyarrow"):
        package = pytest.importorskip(kind)
        other = package.from_pandas(frame) if kind == "polars" else package.Table.from_pandas(frame)
        np.testing.assert_array_equal(PMF(2, **how).fit(other).components_, PMF(2, **how).fit(frame).components_)
    assert models[0].user_ids_[0] == 1000
    assert list(models[0].item_ids_[:2]) == ["i000", "i001"]
    assert models[2].user_ids_ is None
    assert models[2].predict([0], [1]).shape == (1,)


def test_single_precision(ratings):
    frame = ratings[0].astype({"rating": np.float32})
    model, double = (PMF(2, random_state=0).fit(f) for f in (frame, ratings[0]))
    assert model.components_.dtype == np.float32
    one, other = (m.predict(frame["user"], frame["item"]) for m in (model, double))
    assert np.abs(one - other).max() < 0.05


def test_from_a_stream_the_parts_are_the_same_and_ratings_are_not_kept(ratings):
    x = triples("user", "item", "rating", data=ratings[0]).whole()
    pieces = lambda: iter([x[:70], x[70:]])  # noqa: E731
    with unmix.config(block_rows=50):
        one, other = PMF(2, random_state=0, max_iter=4).fit(x), PMF(2, random_state=0, max_iter=4).fit(pieces)
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-9)
    with pytest.raises(ValueError, match="ratings of the fit were not kept"):
        other.recommend(0)
    assert len(other.recommend({0: 5.0, 3: 1.0}, 4)) == 4


def test_what_is_kept_is_what_was_asked_for(ratings, tmp_path):
    model = PMF(2, random_state=0, keep_ratings=False, max_iter=3).fit(ratings[0])
    assert model.ratings_ is None
    with pytest.raises(ValueError, match="keep_ratings=False"):
        model.predict([1000], ["i000"])
    kept = PMF(2, random_state=0, max_iter=3).fit(ratings[0])
    kept.save(tmp_path / "taste.unmix")
    again = unmix.load(tmp_path / "taste.unmix")
    assert again.recommend(1003, 5) == kept.recommend(1003, 5)
    assert again.user_ids_.tolist() == kept.user_ids_.tolist()
    assert again.item_ids_.tolist() == kept.item_ids_.tolist()


# ---------------------------------------------------------------- questions


def test_predictions_one_by_one_and_for_rows_agree(fitted, ratings):
    frame, _ = ratings
    users, items = frame["user"][:50], frame["item"][:50]
    mean, deviation = fitted.predict(users, items, return_std=True)
    x = fitted.ratings_.matrix(60)
    rows, apart = fitted.predict(x, return_std=True)
    i, j = users.to_numpy() - 1000, [int(v[1:]) for v in items]
    np.testing.assert_allclose(mean, rows[i, j], rtol=1e-8)
    np.testing.assert_allclose(deviation, apart[i, j], rtol=1e-8)
    np.testing.assert_allclose(fitted.predict(x), rows, rtol=1e-8)
    assert fitted.predict(1000, fitted.item_ids_).shape == (60,)
    assert fitted.predict(fitted.user_ids_, "i004").shape == (200,)
    with pytest.raises(ValueError, match="3 users and 2 items"):
        fitted.predict([1000, 1001, 1002], ["i000", "i001"])


def test_somebody_and_something_new_get_what_is_usual(fitted):
    mean, deviation = fitted.predict([1000, -1, 1000, -1], ["i000", "i000", "nothing", "nothing"], return_std=True)
    assert (deviation[1:] > deviation[0]).all()
    assert deviation[3] > deviation[1]
    assert abs(mean[3] - fitted.mean_) < 0.3


def test_recommendations(fitted, ratings):
    frame, _ = ratings
    seen = set(frame["item"][frame["user"] == 1005])
    best = fitted.recommend(1005, 8)
    assert len(best) == 8
    assert not seen & {r.item for r in best}
    assert [r.rating for r in best] == sorted((r.rating for r in best), reverse=True)
    mean, deviation = fitted.predict(1005, [r.item for r in best], return_std=True)
    np.testing.assert_allclose(mean, [r.rating for r in best])
    np.testing.assert_allclose(deviation, [r.std for r in best])
    every = fitted.recommend(1005, 100, exclude_seen=False)
    assert len(every) == 60
    careful = fitted.recommend(1005, 60, exclude_seen=False, caution=2.0)
    score = [r.rating - 2 * r.std for r in careful]
    assert score == sorted(score, reverse=True)
    many = dict(fitted.recommend_many([1005, 1007], 8))
    assert [r.item for r in many[1005]] == [r.item for r in best]
    np.testing.assert_allclose(
        [r[1:] for r in many[1005]], [r[1:] for r in best], rtol=1e-9
    )  # products of other shapes
    assert len(dict(fitted.recommend_many(n=2))) == 200
    own = dict(zip(frame["item"][frame["user"] == 1005], frame["rating"][frame["user"] == 1005], strict=True))
    new = fitted.recommend(own, 8)  # the same ratings, of somebody else
    assert [r.item for r in new] == [r.item for r in best]


def test_explanations_add_up(fitted):
    for user in (1003, {"i001": 5.0, "i010": 1.0}, {}):
        told = fitted.explain(user, "i004")
        assert abs(told.baseline + sum(r.adds for r in told.reasons) - told.rating) < 1e-9
        np.testing.assert_allclose(told.rating, fitted.predict(user, "i004")[0], rtol=1e-8)
    assert [abs(r.adds) for r in told.reasons] == []
    sizes = [abs(r.adds) for r in fitted.explain(1003, "i004").reasons]
    assert sizes == sorted(sizes, reverse=True)


def test_an_explanation_is_what_another_rating_would_change(fitted):
    own = {"i001": 5.0, "i010": 1.0, "i020": 4.0}
    told = fitted.explain(own, "i004")
    other = fitted.explain(own | {"i010": 2.0}, "i004")
    one, two = ({r.item: r.adds for r in e.reasons} for e in (told, other))
    np.testing.assert_allclose(other.rating - told.rating, two["i010"] - one["i010"], rtol=1e-8)


def test_similar_items_are_those_with_the_same_taste():
    rng = np.random.default_rng(0)
    V = np.repeat(rng.standard_normal((2, 20)), 2, axis=1)  # every item twice
    X = rng.standard_normal((300, 2)) @ V + 0.3 * rng.standard_normal((300, 40))
    X[rng.random(X.shape) < 0.3] = np.nan
    model = PMF(2, random_state=0).fit(X)
    assert np.mean([model.similar(j, 3)[0].likeness > 0.95 for j in range(40)]) > 0.9
    assert np.mean([(j ^ 1) in [s.item for s in model.similar(j, 4)] for j in range(40)]) > 0.8
    assert all(-1 <= s.likeness <= 1 for s in model.similar(0, 39))


def test_new_users_are_folded_in_as_a_fit_would_have_them(ratings):
    frame, _ = ratings
    late = frame["user"] >= 1160
    ten = frame[late].groupby("user").head(10)
    rest = frame[late].drop(ten.index)
    folded = PMF(2, random_state=0).fit(frame[~late]).fold_in(ten)
    whole = PMF(2, random_state=0).fit(pd.concat([frame[~late], ten]))
    a, b = evaluate(folded, rest), evaluate(whole, rest)
    assert a.rmse < 1.02 * b.rmse
    assert 0.84 < a.coverage < 0.95
    assert folded.known_users == 200
    assert folded.recommend(1199, 3)


@pytest.mark.parametrize("posterior", ["variational", "map"])
def test_new_items_are_folded_in(ratings, posterior):
    frame, _ = ratings
    new = frame["item"] >= "i055"
    shown, rest = split(frame[new], "user", test=0.5, random_state=0)
    how = {"posterior": posterior, "regularization": 2.0, "random_state": 0}
    first = PMF(2, **how).fit(frame[~new])
    folded = first.fold_in(shown)
    whole = PMF(2, **how).fit(pd.concat([frame[~new], shown]))
    assert evaluate(folded, rest).rmse < 1.05 * evaluate(whole, rest).rmse
    assert folded.n_features_in_ == 60
    assert folded.components_.shape == (3, 60)
    assert first.n_features_in_ == 55  # the model that was asked stays as it was
    assert first.components_.shape == (3, 55)


def test_a_rating_that_is_given_again_replaces_the_first(fitted, ratings):
    user, item = ratings[0]["user"][0], ratings[0]["item"][0]
    again = fitted.fold_in(pd.DataFrame({"user": [user], "item": [item], "rating": [9.0]}))
    reasons = {r.item: r.rating for r in again.explain(user, "i004").reasons}
    assert reasons[item] == 9.0
    assert len(again.ratings_.values) == len(fitted.ratings_.values)


# ---------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(rating=["good"] * len(f)), "a rating is 'good', which is no number"),
        (lambda f: f.assign(rating=np.where(np.arange(len(f)) == 3, np.nan, f["rating"])), "in line 3 .* is missing"),
        (lambda f: f.assign(user=[None, *f["user"][1:]]), "the (user|row) of (line|triple) 0 .*is missing"),
        (lambda f: pd.concat([f, f[:1]]), "occurs more than once"),
        (lambda f: f[:0], "at least one entry"),
    ],
)
def test_ratings_that_are_none(ratings, change, message):
    with pytest.raises(ValueError, match=message):
        PMF(2).fit(change(ratings[0]))


def test_ids_with_blanks_are_ids(ratings):
    frame = ratings[0].assign(item=ratings[0]["item"].str.replace("i", "item no. "))
    assert PMF(1, max_iter=2, random_state=0).fit(frame).recommend(1000, 1)[0].item.startswith("item no. ")


def test_questions_that_cannot_be_answered(fitted):
    with pytest.raises(ValueError, match=r"user 7 is not among the 200 users of the fit \(the first is \d+\).*fold_in"):
        fitted.recommend(7)
    with pytest.raises(ValueError, match="item 'tea' is not among the 60 items"):
        fitted.similar("tea")
    with pytest.raises(ValueError, match="n=0: give a whole number"):
        fitted.recommend(1000, 0)
    with pytest.raises(ValueError, match="every rating must be a finite number"):
        fitted.recommend({"i000": np.nan})
    with pytest.raises(ValueError, match="columns user, item and rating"):
        fitted.fold_in([[1, 2, 3]])
    with pytest.raises(ValueError, match="leave nothing to estimate"):
        PMF(0, biases=False).fit(np.ones((3, 3)))


def test_sums_beyond_the_budget_are_refused_before_the_fit():
    with (
        unmix.config(memory_budget=1_000_000),
        pytest.raises(ValueError, match=r"needs sums of .* take fewer components"),
    ):
        PMF(50).fit(sp.random_array((50, 400), density=0.1, rng=0, format="csr"))


def test_a_user_without_a_rating_and_an_item_that_nobody_rated(ratings):
    x = triples("user", "item", "rating", data=ratings[0], columns=[f"i{v:03d}" for v in range(61)])
    rows = sp.csr_array(sp.vstack([x.whole(), sp.csr_array((1, 61))]))
    model = PMF(2, random_state=0).fit(rows)
    mean, deviation = model.predict([200, 0], [60, 60], return_std=True)
    assert np.isfinite(mean).all()
    assert (deviation > np.sqrt(model.noise_variance_)).all()
    assert len(model.recommend(200, 5)) == 5


def test_select_chooses_the_rank_by_held_out_ratings():
    frame, _ = planted(150, 40, 2, 0.5, 0.3)
    source = triples("user", "item", "rating", data=frame)
    answer = unmix.select(PMF(max_iter=30), source, k=[1, 2, 4], criterion="entries", folds=3, random_state=0)
    assert answer.k == 2


def test_select_tells_the_regularization_by_held_out_ratings():
    frame, _ = planted(150, 40, 2, 0.5, 0.3)
    errors = {}
    for ridge in (0.5, 30.0):
        model = PMF(posterior="map", regularization=ridge, max_iter=30)
        found = [unmix.select(model, X, k=[1, 2, 4], folds=2, random_state=0) for X in (frame, frame_matrix(frame))]
        np.testing.assert_allclose(found[0].table["entries"], found[1].table["entries"], rtol=1e-6)
        errors[ridge, found[0].k] = min(found[0].table["entries"])
    assert min(errors, key=errors.get) == (0.5, 2)


def frame_matrix(frame):
    return triples("user", "item", "rating", data=frame).whole()


# ---------------------------------------------------------------- real ratings


@pytest.mark.skipif(not (DATA / "ml-100k").exists(), reason="needs the ratings in UNMIX_DATA")
@pytest.mark.slow
def test_movielens():
    names = ["user", "item", "rating", "time"]
    train, test = (pd.read_csv(DATA / f"ml-100k/u1.{s}.gz", sep="\t", names=names) for s in ("base", "test"))
    model = PMF(20, random_state=0).fit(train)
    own = evaluate(model, test)
    assert own.rmse <= 0.920
    assert 0.87 <= own.coverage <= 0.93
    assert own.log_score > own.log_score_constant
    assert own.rmse < evaluate(PMF(0, random_state=0).fit(train), test).rmse
