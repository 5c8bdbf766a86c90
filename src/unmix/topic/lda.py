"""Latent Dirichlet allocation:  θ_i ~ Dir(α),  β_k ~ Dir(η),  x_iv ~ words drawn from Σ_k θ_ik β_kv.

Variational Bayes: q(θ_i) = Dir(γ_i), q(β_k) = Dir(λ_k), and φ_ivk is the share of topic k in word v of document i.

local    φ_ivk ∝ exp(E[log θ_ik] + E[log β_kv])      γ_ik = α_k + Σ_v x_iv φ_ivk      until γ settles
stats    S_vk = Σ_i x_iv φ_ivk        E_k = Σ_i E[log θ_ik]        W = Σ_i 1
update   λ_kv = η + S_vk;   learned priors:  α maximises W log Γ(Σα) − W Σ log Γ(α_k) + Σ α_k E_k,   η likewise from λ

Loss and penalty are minus the evidence bound: loss = −Σ_i E[log p(x_i, θ_i | φ_i)] + E[log q(θ_i, φ_i)] and penalty =
Σ_k KL(q(β_k) ‖ Dir(η)). Each document continues from the γ of the last pass, so every step is coordinate ascent on one
bound, which therefore never falls.

The start decides how good the optimum is. A document that has once settled on a few topics keeps them, so it must not
settle against random ones: on 10 000 planted documents that left a perplexity of 3900, where the truth has 2300. So
each topic leans towards one of K documents that are unlike each other, and from there small steps over a sample are
taken, each from a fresh γ, few sweeps long, with η falling from 1.

Blei, Ng & Jordan (2003); online: Hoffman, Blei & Bach (2010); priors: Minka (2000); held out: Wallach et al. (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln, psi
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, check_random_state

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Online, Sizes, Stage
from unmix.engine.trace import Fit
from unmix.maths.arrays import POSITIVE, Array
from unmix.maths.dirichlet import expected_log, learn_alpha, learn_eta
from unmix.model import Model
from unmix.model.capabilities import Completes, Components
from unmix.model.peer import Peer
from unmix.topic._documents import PSEUDO_COUNT_FLOOR, counts, halves
from unmix.topic._warm import Warm

LANES = 8  # topics are padded to a multiple of this, so that a row of β fills vector registers
WARM_SWEEPS = 3  # over a document that continues from its last γ: the next pass takes it further


class Parts(NamedTuple):
    """λ word by word, the priors, and what follows: β = exp(E[log β]) / e^top, padded; Σ_k KL(q(β_k) ‖ Dir(η))."""

    weight: Annotated[np.ndarray, Array("d k", low=POSITIVE)]
    alpha: Annotated[np.ndarray, Array("k", low=POSITIVE)]
    eta: Annotated[float, Array(low=POSITIVE)]
    beta: Annotated[np.ndarray, Array("d lanes", low=0.0)]
    top: Annotated[np.ndarray, Array("d")]
    divergence: float


class Stats(NamedTuple):
    """S, E and W."""

    words: Annotated[np.ndarray, Array("d k")]
    elog: Annotated[np.ndarray, Array("learnt")]
    documents: Annotated[float, Array(low=0.0, high=2.0**63)]


def numbers(given: Any) -> np.ndarray:
    """What a user gave as an array, or an empty one if it cannot be read as numbers."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


class LatentDirichletAllocation(Completes, Components, Model):
    """Topics of documents: latent Dirichlet allocation by variational Bayes, in batch or online.

    X holds counts, and the priors are counts as well: so the scale of X matters, and that of `sample_weight`.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    doc_topic_prior : float, array of shape (K,) or "auto", optional
        α; what is below 1e-8 counts as 1e-8. By default 1/K; "auto" starts there and learns one α for each topic, at
        least 1e-5.
    topic_word_prior : float or "auto", optional
        η; what is below 1e-8 counts as 1e-8. By default 1/K; "auto" starts there and learns it.
    learning_method : {"batch", "online"}, default="batch"
        Whether λ is updated after each pass or after each `batch_size` documents.
    learning_decay : float in [0, 1], default=0.7
        κ of the online rate ρ_t = (learning_offset + t)^−κ, t = 1, 2, … Steps converge where it is above 0.5.
    learning_offset : float ≥ 1, default=10
        Makes early online steps smaller.
    max_iter : int, default=10
        Passes. A warning says where the last one still lowered the perplexity by more than `perp_tol`. With 0 the start
        is the answer.
    batch_size : int, default=128
        Documents in an online step. Where X has no more than that, a pass is one step, which replaces λ: ρ is then 1.
    evaluate_every : int, default=-1
        Above 0, the fit ends when a pass lowers the perplexity of the training documents by no more than `perp_tol`.
        The bound is part of every pass, so it is looked at in each.
    total_samples : float, default=1e6
        Documents in the whole corpus, for `partial_fit`.
    perp_tol : float, default=0.1
        See `evaluate_every`.
    mean_change_tol : float, default=1e-3
        A document is done when a sweep changes its γ by less, on average over topics.
    max_doc_update_iter : int, default=100
        Maximum number of sweeps over a document that starts anew; at least one is made.
    n_jobs : int, optional
        No effect here: `unmix.config(n_jobs=…)` says how many threads there are, and the answer does not depend on it.
    verbose : int, default=0
        Above 0, print a line for each pass.
    components_init : array of shape (K, V), optional
        λ to start from; what is below 1e-8 counts as 1e-8.
    random_state : int, RandomState or None, default=None
        Seed of the start.

    Attributes
    ----------
    components_ : ndarray of shape (K, V)
        λ: how often, in pseudo-counts, a topic uses a word. Rows divided by their sums are the topics' words.
    exp_dirichlet_component_ : ndarray of shape (K, V)
        exp(E[log β]).
    doc_topic_prior_ : float, or ndarray of shape (K,) where topics differ
        α.
    topic_word_prior_ : float
        η.
    bound_ : float
        Perplexity of the training documents by the bound.
    n_batch_iter_ : int
        The number of the next step: 1 and one for each time that λ was updated, after a pass or after a batch.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import LatentDirichletAllocation
    >>> rng = np.random.default_rng(0)
    >>> topics = np.kron(np.eye(2), np.ones(5)) / 5  # of five words each
    >>> X = np.array([rng.multinomial(50, topics[i % 2]) for i in range(200)])
    >>> model = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> sorted(sorted(t.argsort()[-5:].tolist()) for t in model.components_)
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    """

    sparse: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = True
    shares: ClassVar[bool] = True
    columns_as: ClassVar[str] = "given"
    stateful: ClassVar[bool] = True
    power: ClassVar[int] = 0  # every block sees to the size of its counts
    weighed_against: ClassVar[str] = "the priors"
    exempt: ClassVar[dict[str, str]] = {
        "scale": "X holds counts, and the priors are counts as well: twice the words are twice the evidence",
        "scale of weights": "twice the weight is twice the evidence beside the priors",
    }

    peer = Peer(
        "sklearn.decomposition",
        "components_ exp_dirichlet_component_ doc_topic_prior_ topic_word_prior_ bound_ n_batch_iter_",
        more=lambda model: {"random_state_": model.random_state_, **in_double(model.parts)},  # which it iterates in
        refusal=lambda model: (
            "scikit-learn's LatentDirichletAllocation has one doc_topic_prior for all topics, and here each has its own"
            if np.ndim(model.doc_topic_prior_)
            else ""
        ),
    )

    components_: Annotated[np.ndarray, Array("k d", low=0.0)]
    exp_dirichlet_component_: Annotated[np.ndarray, Array("k d", low=0.0)]
    doc_topic_prior_: Annotated[np.ndarray, Array("k")] | float
    topic_word_prior_: Annotated[float, Array(low=POSITIVE)]
    bound_: float
    n_batch_iter_: Annotated[int, Array(kind="i", low=1, maybe=True)]  # older files do without

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "doc_topic_prior": [
            None,
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="left"),
            "array-like",
        ],
        "topic_word_prior": [None, StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "learning_method": [StrOptions({"batch", "online"})],
        "learning_decay": [Interval(Real, 0, 1, closed="both")],
        "learning_offset": [Interval(Real, 1.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "evaluate_every": [Interval(Integral, None, None, closed="neither")],
        "total_samples": [Interval(Real, 0, None, closed="neither")],
        "perp_tol": [Interval(Real, 0, None, closed="left")],
        "mean_change_tol": [Interval(Real, 0, None, closed="left")],
        "max_doc_update_iter": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "components_init": [None, "array-like"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: Any = None,
        topic_word_prior: Any = None,
        learning_method: str = "batch",
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        max_iter: int = 10,
        batch_size: int = 128,
        evaluate_every: int = -1,
        total_samples: float = 1e6,
        perp_tol: float = 1e-1,
        mean_change_tol: float = 1e-3,
        max_doc_update_iter: int = 100,
        n_jobs: int | None = None,
        verbose: int = 0,
        components_init: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.evaluate_every = evaluate_every
        self.total_samples = total_samples
        self.perp_tol = perp_tol
        self.mean_change_tol = mean_change_tol
        self.max_doc_update_iter = max_doc_update_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.components_init = components_init
        self.random_state = random_state

    # ---------------------------------------------------------------- the model

    def check(self, shape: Shape) -> None:
        """Refuse priors and starts of another shape."""
        K = self.n_components
        alpha = self.doc_topic_prior
        if not (alpha is None or isinstance(alpha, (str, Real))):
            given = numbers(alpha)
            if given.shape != (K,) or not (given >= 0).all():
                raise ValueError(
                    f"doc_topic_prior={alpha!r}: give a number of at least 0, or {K} of them, one per topic"
                )
        if self.components_init is not None:
            start = numbers(self.components_init)
            if start.shape != (K, shape.d) or not (start > 0).all():
                raise ValueError(
                    f"components_init of shape {start.shape}: give positive numbers of shape {(K, shape.d)}, "
                    "a row for each topic and a column for each word"
                )

    def stages(self, shape: Shape) -> list[Stage]:
        """Small annealed steps over a sample, unless λ is given."""
        return [self] if self.components_init is not None else [Warm(self), self]

    def start(self, before: np.ndarray | None, data: Block, rng: np.random.Generator) -> Parts:
        """λ as given, or where the warm start led."""
        return self.parts_of(
            np.array(self.components_init, dtype=np.float64).T if before is None else before, *self.priors()
        )

    def priors(self) -> tuple[np.ndarray, float]:
        """α and η as given, or 1/K."""
        K, priors = self.n_components, (self.doc_topic_prior, self.topic_word_prior)
        alpha, eta = (1.0 / K if p is None or isinstance(p, str) else p for p in priors)
        alpha = np.maximum(np.asarray(alpha, dtype=np.float64), PSEUDO_COUNT_FLOOR)
        return np.broadcast_to(alpha, (K,)).copy(), max(float(eta), PSEUDO_COUNT_FLOOR)

    @property
    def _sweeps(self) -> int:
        return max(1, self.max_doc_update_iter)

    def neighbour(self, fit: Fit, more: bool, rng: np.random.Generator) -> Parts | None:
        """The topics of a fit, the one of most words cut in two at random."""
        if not more:
            return None
        weight = fit.U.weight
        most, share = int(np.argmax(weight.sum(axis=0))), rng.random(len(weight))
        weight = np.column_stack([weight, share * weight[:, most]])
        weight[:, most] -= weight[:, -1]
        return self.parts_of(weight, *self.priors())

    def local(self, U: Parts, b: Block) -> Local:
        """γ of the documents, from that of the last pass where there is one and λ is updated once a pass."""
        if self.learning_method == "online":
            b = b._replace(z=None)
        sweeps = self._sweeps
        gamma, stats, bounds = self._solve(U, b, sweeps if b.z is None else min(sweeps, WARM_SWEEPS), True)
        return Local(gamma.astype(b.x.dtype, copy=False), stats, -b.sum(bounds))

    def _solve(self, U: Parts, b: Block, sweeps: int, collect: bool) -> tuple[np.ndarray, Stats, np.ndarray]:
        """γ, statistics (empty unless wanted) and bound of each document."""
        from unmix.kernels.lda_documents import documents

        x = counts(b)
        n, K = x.shape[0], len(U.alpha)
        w = np.ones(n) if b.w is None else b.w
        data, beta, top, alpha = (v.astype(np.float64, copy=False) for v in (x.data, U.beta, U.top, U.alpha))
        gamma = np.empty((n, K)) if b.z is None else b.z.astype(np.float64)
        words = np.zeros(beta.shape if collect else (0, 0))
        elog = np.zeros(K if collect and isinstance(self.doc_topic_prior, str) else 0)
        bounds = np.empty(n)
        documents(
            x.indptr, x.indices, data, w, beta, top, alpha, gamma, b.z is None, sweeps, self.mean_change_tol,
            words, elog, bounds,
        )  # fmt: skip
        return gamma, Stats(words[:, :K], elog, b.total), bounds

    def update(self, U: Parts, stats: Stats) -> Parts:
        """λ from the words; the priors too, where they are learned."""
        alpha = U.alpha
        if stats.elog.size and stats.documents > 0:
            alpha = learn_alpha(alpha, stats.elog / stats.documents)
        return self.parts_of(U.eta + stats.words, alpha, U.eta, learn=self.topic_word_prior == "auto")

    def described(self, U: Any, data: Any) -> Described:
        """λ and what follows from it; γ of the documents."""
        self.check(self.shape)
        K = self.n_components
        sizes = {"k": K, "lanes": -(-K // LANES) * LANES, "learnt": K if isinstance(self.doc_topic_prior, str) else 0}

        def every_word_has_a_topic(U: Parts) -> bool:
            return bool(U.beta[:, :K].any(axis=1).all() and not U.beta[:, K:].any())

        return Described(Parts, Stats, Annotated[np.ndarray, Array("m k", low=POSITIVE)], sizes, every_word_has_a_topic)

    def parts_of(self, weight: np.ndarray, alpha: np.ndarray, eta: float, learn: bool = False) -> Parts:
        """The parts that λ makes."""
        from unmix.kernels.lda_topics import sum_log_gamma, topics

        weight = np.maximum(np.ascontiguousarray(weight), PSEUDO_COUNT_FLOOR)
        V, K = weight.shape
        totals = weight.sum(axis=0)
        beta, top = np.zeros((V, -(-K // LANES) * LANES)), np.empty(V)
        product, elog = topics(weight, psi(totals), beta, top)
        if learn:
            eta = learn_eta(elog / (K * V), V)
        divergence = product - eta * elog - sum_log_gamma(weight) + gammaln(totals).sum()
        divergence += K * (V * gammaln(eta) - gammaln(V * eta))
        return Parts(weight, alpha, eta, beta, top, float(divergence))

    def made_of(self, U: Parts, weight: float) -> Stats:
        """λ − η, and what that many documents drawn from α would add: λ ← (1 − ρ) λ + ρ (η + S) from the start."""
        elog = expected_log(U.alpha) if isinstance(self.doc_topic_prior, str) else np.zeros(0)
        return Stats(U.weight - U.eta, elog * weight, weight)

    def penalty(self, U: Parts) -> float:
        """Σ_k KL(q(β_k) ‖ Dir(η))."""
        return U.divergence

    # ---------------------------------------------------------------- what the engine asks

    def goal(self, U: Parts, first: float) -> float:
        """`perp_tol`, where perplexity decides: a bound higher by so much lowers the perplexity P by 1.

        That is tokens per document over P.
        """
        return self._worth(U, first) if self.evaluate_every > 0 else 0.0

    def unfinished(self, U: Parts, first: float, gain: float) -> bool:
        """Where the last pass still lowered the perplexity by more than `perp_tol`."""
        return gain > self._worth(U, first)

    def _worth(self, U: Parts, first: float) -> float:
        """The gain of the bound that lowers the perplexity by `perp_tol`."""
        tokens = max((U.weight.sum() - U.eta * U.weight.size) / self.shape.weight, PSEUDO_COUNT_FLOOR)
        return self.perp_tol * float(tokens * np.exp(-first / tokens))

    def online(self) -> Online:
        """ρ = (learning_offset + t)^−learning_decay, t = 1, 2, …; within `fit` if learning is online."""
        batch = self.batch_size if self.learning_method == "online" else None
        return Online(self._rate, batch, self.made_of, self.total_samples)

    def _rate(self, U: Parts, step: int, weight: float, seen: float) -> float:
        return float((self.learning_offset + step + 1.0) ** -self.learning_decay)

    def sizes(self, shape: Shape) -> Sizes:
        """Enough documents for their words to outweigh the V × K statistics of a block, in eight blocks at least."""
        if shape.sparse:
            per_row = shape.nbytes / (12.0 * shape.n) if shape.nbytes else 100.0
            rows = 40.0 * shape.d / max(per_row, 1.0)
        else:
            rows = min(1024.0, (64 << 20) / (shape.d * shape.dtype.itemsize))
        return Sizes(int(np.clip(min(rows, -(-shape.n // 8)), 64, 16384)))

    def publish(self, fit: Fit) -> None:
        """λ and exp(E[log β]) topic by topic, the priors, the perplexity."""
        U = fit.U
        self.components_, self.exp_dirichlet_component_ = in_double(U).values()
        self.doc_topic_prior_ = float(U.alpha[0]) if (U.alpha == U.alpha[0]).all() else U.alpha.copy()
        self.topic_word_prior_ = U.eta
        passes = len(fit.trace) * (-(-fit.shape.n // self.batch_size) if self.learning_method == "online" else 1)
        self.n_batch_iter_ = 1 + (vars(self).get("n_batch_iter_", 1) if fit.shape.online else passes)
        tokens = max(float(fit.stats.words.sum()), PSEUDO_COUNT_FLOOR) / fit.stats.documents
        objective = fit.loss / fit.weight + U.divergence / fit.stats.documents
        self.bound_ = float(np.exp(objective / tokens))

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Proportions of the topics, E[θ]."""
        gamma = self.pseudo_counts(U, b)
        return gamma / gamma.sum(axis=1, keepdims=True)

    def pseudo_counts(self, U: Parts, b: Block) -> np.ndarray:
        """γ of new documents."""
        return self._solve(U, b._replace(z=None), self._sweeps, False)[0].astype(b.x.dtype, copy=False)

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Probabilities of the words in documents of these proportions, E[θ] E[β]."""
        return z @ (U.weight / U.weight.sum(axis=0)).T

    def bound(self, U: Parts, b: Block) -> np.ndarray:
        """Of each document the bound on log p(x | λ) and the number of tokens."""
        bounds = self._solve(U, b._replace(z=None), self._sweeps, False)[2]
        return np.column_stack([bounds, np.asarray(b.x.sum(axis=1), dtype=np.float64).ravel()])

    def completion(self, U: Parts, b: Block) -> np.ndarray:
        """Of each document the log-probability of every other token, given the rest, and how many those are."""
        x = counts(b).astype(np.float64)
        seen, hidden = halves(x)
        theta = self.encode(U, b._replace(x=seen.astype(b.x.dtype), z=None)).astype(np.float64)
        words = U.weight.astype(np.float64)
        words /= words.sum(axis=0)
        document = np.repeat(np.arange(x.shape[0]), np.diff(hidden.indptr))
        p = np.einsum("jk,jk->j", theta[document], words[hidden.indices])
        log_p = np.bincount(document, hidden.data * np.log(p), minlength=x.shape[0])
        return np.column_stack([log_p, np.asarray(hidden.sum(axis=1)).ravel()])

    # ---------------------------------------------------------------- what users call

    @property
    def random_state_(self) -> np.random.RandomState:
        """The generator that `random_state` stands for."""
        check_is_fitted(self)
        return check_random_state(self.random_state)  # type: ignore[no-any-return]

    def transform(self, X: Any, *, normalize: bool = True) -> Any:
        """Return the proportions of the topics in each document.

        Parameters
        ----------
        X : anything with rows
            Word counts, as for `fit`.
        normalize : bool, default=True
            False gives γ, the pseudo-counts of which the proportions are the shares.

        Returns
        -------
        Z : ndarray of shape (n, K)
        """
        return self.rows("encode" if normalize else "pseudo_counts", X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, *, normalize: bool = True) -> Any:
        """Fit the model and return the proportions of the topics in each document.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        normalize : bool, default=True
            As for `transform`.

        Returns
        -------
        Z : ndarray of shape (n, K)
        """
        return self.fit(X, y, sample_weight=sample_weight).transform(X, normalize=normalize)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the evidence bound of the documents and the topics together.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        bounds = self.rows("bound", X)[:, 0]
        return (
            float(bounds.sum() if sample_weight is None else np.asarray(sample_weight) @ bounds) - self.parts.divergence
        )

    def perplexity(self, X: Any, sub_sampling: bool = False, *, method: str = "bound") -> float:
        """Return exp(−log-likelihood per token) of documents.

        The bound includes how far the topics are from their prior, a cost that is shared by few tokens when X is small,
        and it bounds models of other K or prior by other margins: use it to follow one fit. To compare models, hold
        documents out and take "document-completion".

        Parameters
        ----------
        X : anything with rows
            Word counts.
        sub_sampling : bool, default=False
            For the bound: whether X stands for `total_samples` documents.
        method : {"bound", "document-completion"}, default="bound"
            By the evidence bound; or the probability of every second token of each document (in the order of the
            columns), given its other tokens, over the number of tokens that were predicted.

        Returns
        -------
        perplexity : float
        """
        if method not in ("bound", "document-completion"):
            raise ValueError(f"method={method!r}: choose 'bound' or 'document-completion'")
        check_is_fitted(self)
        if method == "document-completion":
            log_p, tokens = self.rows("completion", X).sum(axis=0)
        else:
            rows = self.rows("bound", X)
            log_p, tokens = rows.sum(axis=0) * (self.total_samples / len(rows) if sub_sampling else 1.0)
            log_p -= self.parts.divergence
        if tokens == 0:
            raise ValueError("X holds no token to predict: give documents of at least two words")
        return float(np.exp(-log_p / tokens))

    @classmethod
    def example(
        cls, rng: np.random.Generator
    ) -> tuple[LatentDirichletAllocation, np.ndarray, Callable[[LatentDirichletAllocation], None]]:
        """Four topics over 40 words, 300 documents of about 60 tokens."""
        K, V, n = 4, 40, 300
        words = rng.dirichlet(np.full(V, 0.1), K)
        theta = rng.dirichlet(np.full(K, 0.3), n)
        X = rng.multinomial(rng.poisson(60, n), theta @ words).astype(np.float64)

        def check(fitted: LatentDirichletAllocation) -> None:
            found = fitted.components_ / fitted.components_.sum(axis=1, keepdims=True)
            distance = 0.5 * np.abs(words[:, None] - found[None]).sum(axis=2)  # total variation
            assert sorted(distance.argmin(axis=1)) == list(range(K)), distance
            assert distance.min(axis=1).max() < 0.1, distance

        model = cls(K, doc_topic_prior=0.3, topic_word_prior=0.1, max_iter=15, total_samples=n, random_state=0)
        return model, X, check


def in_double(U: Parts) -> dict[str, np.ndarray]:
    """λ and exp(E[log β]) topic by topic, not yet in the precision of the data."""
    words = U.beta[:, : len(U.alpha)] * np.exp(U.top)[:, None]
    return {"components_": np.ascontiguousarray(U.weight.T), "exp_dirichlet_component_": np.ascontiguousarray(words.T)}
