"""Topics: to the held-out perplexity that scikit-learn's batch fit reaches, by one scorer for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import Case, Quality, Target, contestant, least_passes
from benchmarks.nmf import tokens

SIZES = {"full": (10_000, 5_000, 50), "quick": (500, 500, 10), "warm": (120, 100, 3)}
LENGTH = 120
ALPHA, ETA = 0.1, 0.01
PASSES = 10  # scikit-learn's default
SLACK = 2e-3  # of the perplexity: two seeds differ by more


class Corpus(NamedTuple):
    """Documents to learn from, and two halves of documents that nobody learns from."""

    train: sp.csr_array
    seen: sp.csr_array
    hidden: sp.csr_array
    k: int


@dataclass
class LDACase(Case):
    """A planted corpus."""

    def data(self, size: str) -> Any:
        n, words, k = SIZES[size]
        rng = np.random.default_rng(0)
        topics = rng.dirichlet(np.full(words, 0.05), k)
        held = max(n // 20, 20)
        mix = rng.dirichlet(np.full(k, ALPHA), n + held)
        lengths = rng.poisson(LENGTH, n + held) + 2
        train = tokens(mix[:n], topics, lengths[:n], rng)
        seen = tokens(mix[n:], topics, lengths[n:] // 2, rng)
        hidden = tokens(mix[n:], topics, lengths[n:] // 2, rng)
        return Corpus(train, seen, hidden, k)

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """Perplexity of the hidden half: EM for the mix of each held-out document on its seen half, topics fixed."""
        phi = np.asarray(result["topics"], np.float64) + 1e-12
        phi = np.ascontiguousarray((phi / phi.sum(axis=1, keepdims=True)).T)
        mix = np.full((data.seen.shape[0], data.k), 1 / data.k)
        rows, first = np.repeat(np.arange(len(mix)), np.diff(data.seen.indptr)), data.seen.indptr[:-1]
        words = phi[data.seen.indices]
        for _ in range(50):
            weight = data.seen.data / np.einsum("ij,ij->i", words, mix[rows])
            mix *= np.add.reduceat(words * weight[:, None], first, axis=0)
            mix += ALPHA
            mix /= mix.sum(axis=1, keepdims=True)
        rows = np.repeat(np.arange(len(mix)), np.diff(data.hidden.indptr))
        logs = np.log(np.einsum("ij,ij->i", phi[data.hidden.indices], mix[rows]))
        return float(np.exp(-(data.hidden.data @ logs) / data.hidden.data.sum()))

    def reached(self, data: Any, topics: np.ndarray, goal: Any) -> bool:
        """Whether the topics are as good as the goal."""
        return self.score(data, {"topics": topics}) <= goal.quality

    @contestant("unmix", note="its start, small steps over documents, is timed but counted in no pass")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)

        def model(passes):
            return unmix.LatentDirichletAllocation(
                data.k, doc_topic_prior=ALPHA, topic_word_prior=ETA, max_iter=passes, random_state=0
            )

        passes = 5
        if goal is not None:
            passes = least_passes(lambda p: self.reached(data, model(p).fit(data.train).components_, goal), 4, 128)
        return lambda: model(passes).fit(data.train), lambda m: {"topics": m.components_, "passes": passes}

    @contestant("scikit-learn", needs="sklearn", note=f"learning_method='batch', max_iter={PASSES}, all cores")
    def sklearn(self, data, goal):
        from sklearn.decomposition import LatentDirichletAllocation

        model = LatentDirichletAllocation(
            data.k, doc_topic_prior=ALPHA, topic_word_prior=ETA, max_iter=PASSES, random_state=0, n_jobs=-1
        )
        return lambda: model.fit(data.train), lambda m: {"topics": m.components_, "passes": PASSES}

    @contestant(
        "tomotopy", needs="tomotopy", note="collapsed Gibbs; only train() is timed, not the feeding of documents"
    )
    def tomotopy(self, data, goal):
        import tomotopy

        names = [str(j) for j in range(data.train.shape[1])]
        documents = [[names[j] for j in d] for d in bags(data.train)]

        def fresh():
            model = tomotopy.LDAModel(k=data.k, alpha=ALPHA, eta=ETA, seed=0)
            for d in documents:
                model.add_doc(d)
            model.train(0)
            return model

        def topics(model):
            phi = np.zeros((data.k, len(names)))
            place = [int(w) for w in model.used_vocabs]
            for k in range(data.k):
                phi[k, place] = model.get_topic_word_dist(k)
            return phi

        passes = 20
        if goal is not None:
            model, passes = fresh(), 0
            while passes < 1000:
                model.train(10, workers=0)
                passes += 10
                if self.reached(data, topics(model), goal):
                    break
        ready = [fresh()]

        def fit():
            ready[0].train(passes, workers=0)
            return ready[0]

        def read(model):
            out = {"topics": topics(model), "passes": passes}
            ready[0] = fresh()  # for the next run
            return out

        return fit, read

    @contestant("gensim", needs="gensim", note="LdaMulticore, online variational Bayes, all cores")
    def gensim(self, data, goal):
        from gensim.matutils import Sparse2Corpus
        from gensim.models import LdaModel, LdaMulticore

        corpus = list(Sparse2Corpus(sp.csc_array(data.train.T)))
        words = {j: str(j) for j in range(data.train.shape[1])}

        def fit(passes):
            if goal is None:  # the warm-up is small: no processes
                return LdaModel(
                    corpus, data.k, words, alpha=ALPHA, eta=ETA, passes=passes, random_state=0, eval_every=None
                )
            return LdaMulticore(
                corpus, data.k, words, workers=2, alpha=ALPHA, eta=ETA, passes=passes, random_state=0, eval_every=None
            )

        passes = 1
        if goal is not None:
            passes = 2 if self.reached(data, fit(2).get_topics(), goal) else 6
        return lambda: fit(passes), lambda m: {"topics": m.get_topics(), "passes": passes}


def bags(X: sp.csr_array) -> list[np.ndarray]:
    """The words of each document, each as often as it occurs."""
    ends = np.append(0, np.cumsum(X.data.astype(int)))[X.indptr]
    return np.split(np.repeat(X.indices, X.data.astype(int)), ends[1:-1])


CASES = [
    LDACase(
        "lda",
        "LatentDirichletAllocation, 10k documents × 5k words, K=50, to the same held-out perplexity",
        Quality("perplexity", slack=SLACK),
        (Target(8, ("scikit-learn",)),),
        reference="scikit-learn",
    )
]
