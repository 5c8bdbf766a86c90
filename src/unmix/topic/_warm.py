"""Where latent Dirichlet allocation starts: each topic leans towards one of K documents that are unlike each other.

From there small online steps over a sample are taken, each from a fresh γ, ten sweeps long, with η falling from 1:

    λ ← (1 − ρ) λ + ρ (η_t + (W/|b|) S_b)        ρ = (t + 2)^−0.7        η_t = η₀ (η/η₀)^(t/T),  η₀ = max(1, η)
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import psi

from unmix.engine.block import Block
from unmix.engine.described import Described
from unmix.engine.runners import PIECES, each
from unmix.engine.stage import Sizes, Stage
from unmix.maths.arrays import Array
from unmix.maths.seeding import far_apart
from unmix.topic._documents import counts

SWEEPS = 10  # over a document
TOKENS_PER_NUMBER = 2.0  # of λ, below which the first of many batches says too little to start from
DOCUMENTS = 20_000  # that steps are taken with
SEEDS = 4096  # documents among which those unlike each other are sought
PER_STEP = 256  # documents


class Sample(NamedTuple):
    """Documents in single precision, and how they are used."""

    x: Any  # shares of words
    tokens: np.ndarray
    w: np.ndarray
    mass: np.ndarray  # w × tokens over the largest of them
    unit: float
    order: np.ndarray  # the documents that are used
    seeds: np.ndarray  # of the documents that a topic may begin with
    n_batches: int
    enough: bool
    room: tuple[np.ndarray, np.ndarray]  # for a step to work in: exp(E[log β]) word by word, and what pieces add to it


class Topics(NamedTuple):
    """λ word by word and its sums, the step of how many, and the order in which documents come."""

    weight: Annotated[np.ndarray, Array("d k", low=0.0)]
    totals: Annotated[np.ndarray, Array("k", low=0.0)]
    step: Annotated[int, Array(kind="i", low=0)]
    steps: Annotated[int, Array(kind="i", low=0)]
    order: Annotated[np.ndarray, Array("o", "i", 0, "p-1")]


class Warm(Stage):
    """Rounds of small steps over a sample."""

    name, over, most = "warm start", "sample", 3 * (DOCUMENTS // PER_STEP)

    def __init__(self, model: Any) -> None:
        self.alpha, self.eta = model.priors()
        self.sampled, self.weight = model.sizes(model.shape), model.shape.weight
        self.hasty = model.learning_method == "online" or model.shape.online

    def sizes(self, shape: Any) -> Sizes:
        """The sample of the model."""
        return self.sampled

    def open(self, data: Block, rng: np.random.Generator) -> Sample:
        """The documents as shares of words."""
        x = counts(data).astype(np.float64)
        tokens = np.asarray(x.sum(axis=1)).ravel()
        w = np.ones(x.shape[0]) if data.w is None else data.w
        seeds = np.sort(rng.permutation(np.flatnonzero(w * tokens))[:SEEDS])
        unit = max(float((w * tokens).max()), np.finfo(float).tiny)  # of the statistics in single precision
        x.data /= np.repeat(np.maximum(tokens, np.finfo(float).tiny), np.diff(x.indptr))
        x, mass = x.astype(np.float32), (w * tokens / unit).astype(np.float32)
        order = rng.permutation(x.shape[0])[:DOCUMENTS]
        per_word = x.nnz / x.shape[1]  # a step should cost less for λ than for its documents
        n_batches = int(np.clip(len(order) / PER_STEP, 1, max(8.0, per_word)))
        V, K = x.shape[1], len(self.alpha)
        enough = not self.hasty or w @ tokens >= TOKENS_PER_NUMBER * V * K
        beta = np.zeros((V, -(-K // 8) * 8), np.float32)
        words = np.empty((PIECES, *beta.shape), np.float32)
        return Sample(x, tokens, w, mass, unit, order, seeds, n_batches, enough, (beta, words))

    def start(self, before: Any, data: Sample, rng: np.random.Generator) -> Topics:
        """λ random, with a document for each topic. From a small first batch of many nothing is learnt yet."""
        V, K = data.x.shape[1], len(self.alpha)
        weight = rng.gamma(100.0, 0.01, (V, K))
        if data.enough and len(data.seeds):
            seeds = unlike(data.x[data.seeds], data.w[data.seeds], K, rng).T
            weight += 0.1 * V * seeds / np.maximum(seeds.sum(axis=0), 1.0)
        return Topics(weight, weight.sum(axis=0), 0, max(3 * data.n_batches, 30) if data.enough else 0, data.order)

    def step(self, U: Topics, data: Sample, rng: np.random.Generator) -> tuple[Topics, None]:
        """λ from a batch of documents, in pieces that threads share."""
        from unmix.kernels.lda_start import blend, expect, sketch

        t, turn = U.step, U.step % data.n_batches
        if t >= U.steps:
            return U, None
        order = rng.permutation(data.order) if turn == 0 else U.order
        rows = order[cut(len(order), turn, data.n_batches)]
        if not (size := float(data.w[rows].sum())):
            return U._replace(step=t + 1, order=order), None
        (V, K), weight, x = U.weight.shape, U.weight.copy(), data.x
        (beta, words), totals = data.room, np.empty((PIECES, K))
        shared, high = np.exp(psi(U.totals)), max(1.0, self.eta)
        rho, eta = (t + 2.0) ** -0.7, high * (self.eta / high) ** (t / U.steps)
        scale = self.weight / size * data.unit

        def prepare(i: int) -> None:
            v = cut(V, i, PIECES)
            expect(weight[v], shared, beta[v])

        def solve(i: int) -> None:
            mine = np.sort(rows[cut(len(rows), i, PIECES)])
            sketch(mine, x.indptr, x.indices, x.data, data.tokens, data.mass, beta, self.alpha, SWEEPS, words[i])

        def move(i: int) -> None:
            v = cut(V, i, PIECES)
            blend(weight[v], rho, eta, scale, words[:, v], beta[v], totals[i])

        each(prepare)
        each(solve)
        each(move)
        return Topics(weight, totals.sum(axis=0), t + 1, U.steps, order), None

    def goal(self, U: Topics, first: float) -> bool:
        """Three times over all documents, but at least thirty steps."""
        return U.step >= U.steps

    def described(self, U: Any, data: Sample) -> Described:
        """λ, and an order of the documents that are used."""
        return Described(Topics, Any, Any, {"k": len(self.alpha), "o": len(data.order), "p": data.x.shape[0]})

    def hand(self, U: Topics, data: Sample) -> np.ndarray:
        """λ."""
        return U.weight


def cut(n: int, i: int, pieces: int) -> slice:
    """Piece i of n things."""
    return slice(n * i // pieces, n * (i + 1) // pieces)


def unlike(x: Any, w: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Documents unlike each other, one for each topic, by the cosine of the roots of their shares."""
    roots = sp.csr_array((np.sqrt(x.data), x.indices, x.indptr), shape=x.shape)

    def costs(some: np.ndarray) -> np.ndarray:
        return np.maximum(1.0 - np.asarray((roots @ roots[some].T).toarray()), 0.0)

    return np.asarray(x[far_apart(w, n, rng, costs, trials=4)].toarray())
