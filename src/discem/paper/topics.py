"""Topics within each class: Algorithms 5 (NCLL), 6 (OnlineLDA) and 7 (hinge) of the supplement.

``N[w, z, k]`` counts word w in topic z of class k, and each class is a latent Dirichlet allocation
with topic proportions from a flat Dirichlet(alpha). The statistics of a document are the expected
counts of its words in the topics, which `gibbs` estimates with the paper's collapsed sampler. As in
the paper all occurrences of a word in a document share one topic.

The pseudo-code does not say how p(y | d) is computed. It needs p(d | y), of which `gibbs` returns
an unbiased estimate; the gradient of a discriminative loss is therefore approximate. Weights are
those of Table 1, as in `multinomial`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..exceptions import OptionError
from . import compiled
from .classifier import Callback, Classifier, as_csr, random_numbers
from .inside import land
from .losses import SHORTENED, weigh
from .multinomial import GAMMA, GAMMA_CLASS, SCALE, age, new_clock
from .sampler import gibbs, sample

PART = 1000  # documents to score at a time


class State(NamedTuple):
    """Expected counts, held as those of `multinomial`."""

    N: np.ndarray  # (W, T, K)
    M: np.ndarray  # (T, K)
    C: np.ndarray  # (K,)
    clock: np.ndarray


class Rule(NamedTuple):
    """What a step depends on."""

    loss: int
    eta: float  # pseudo-count of each word in each topic, and of each class
    n: float  # documents that the prior is spread over
    alpha: float  # pseudo-count of each topic in a document
    sweeps: int
    seed: int


# --- compiled -------------------------------------------------------------------------------------


@compiled
def learn(state, rule, indptr, indices, values, codes, order, rho, figures):
    """Algorithms 5 and 7 over the documents in `order`, with the weights of Table 1."""
    N, M, C, clock = state
    W, T, K = N.shape
    no_lag = np.empty((0, T * K))
    a, w = np.empty(K), np.empty(K)
    for t in range(order.shape[0]):
        i = order[t]
        words = indices[indptr[i] : indptr[i + 1]]
        x = values[indptr[i] : indptr[i + 1]]
        p, s = np.empty((words.shape[0], T, K)), np.empty((words.shape[0], T, K))
        scale, gamma = clock[SCALE], clock[GAMMA]
        for j in range(words.shape[0]):
            for z in range(T):
                for k in range(K):
                    p[j, z, k] = (scale * N[words[j], z, k] + gamma) / (M[z, k] + gamma * W)
        sample(p, words, x, rule.alpha, rule.sweeps, rule.seed, a, s)
        total = C.sum() + K * clock[GAMMA_CLASS]
        for k in range(K):
            a[k] += np.log((C[k] + clock[GAMMA_CLASS]) / total)
        weigh(rule.loss, a, codes[i], w, figures)
        w *= rho[t]
        decay, eta = w.sum(), rule.eta * rho[t] / rule.n
        age(N.reshape(W, T * K), M.reshape(T * K), no_lag, clock, decay, eta, 1e-12)
        scale, shortened = clock[SCALE], 0
        # Algorithm 6
        moved: Any = np.flatnonzero(w)
        for k in moved:
            for j in range(words.shape[0]):
                for z in range(T):
                    count = scale * N[words[j], z, k]
                    after, short = land(count, w[k] * s[j, z, k], 1e-15 * count)
                    N[words[j], z, k] = after / scale
                    M[z, k] += after - count
                    shortened += short
        before = clock[GAMMA_CLASS]
        clock[GAMMA_CLASS] += eta
        for k in range(K):
            change = w[k] - decay * (C[k] + before)
            C[k], short = land(C[k], change, 0.0)
            shortened += short
        figures[SHORTENED] += shortened > 0


# --- in Python ------------------------------------------------------------------------------------


class Topics(Classifier):
    """Topics within each class, as `train` leaves them.

    Attributes
    ----------
    class_log_prior_ : array of shape (n_classes,)
    topics_ : array of shape (n_classes, n_topics, n_words)
        ``p(word | topic, class)``.
    state : State
    """

    def __init__(self, X, y, loss, n_topics, eta, alpha, sweeps, seed):
        super().__init__(y, loss)
        (n, W), T, K = X.shape, n_topics, len(self.classes_)
        self._rule = Rule(self._loss, eta, float(n), alpha, sweeps, seed)
        N, M = np.full((W, T, K), eta), np.full((T, K), eta * W)
        self.state = State(N, M, np.ones(K), new_clock())

    def _rows(self, X):
        return X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data

    def _learn(self, rows, order, rho, figures):
        learn(self.state, self._rule, *rows, self._codes, order, rho, figures)

    @property
    def class_log_prior_(self) -> np.ndarray:
        """Return ln p(y)."""
        C = self.state.C + self.state.clock[GAMMA_CLASS]
        return np.log(C / C.sum())

    @property
    def topics_(self) -> np.ndarray:
        """Return p(word | topic, class)."""
        return self._table().transpose(2, 1, 0)

    def _table(self) -> np.ndarray:
        N, _, _, clock = self.state
        N = clock[SCALE] * N + clock[GAMMA]
        return N / N.sum(axis=0)

    def scores(self, X):
        """The estimate of ``ln p(y, d)``, one column a class."""
        X, p, (*_, alpha, sweeps, seed) = as_csr(X), self._table(), self._rule
        parts = [X[first : first + PART] for first in range(0, max(X.shape[0], 1), PART)]
        scores = [gibbs(p, d.indptr, d.indices, d.data, alpha, sweeps, seed)[0] for d in parts]
        return np.concatenate(scores) + self.class_log_prior_


def train(
    X: Any,
    y: Any,
    *,
    loss: str = "ncll",
    n_topics: int = 2,
    eta: float | None = None,
    alpha: float | None = None,
    sweeps: int = 10,
    lam: Any = 1e-5,
    epochs: int = 20,
    seed: Any = None,
    callback: Callback | None = None,
) -> Topics:
    """Train a topic classifier document by document, with the paper's check-steps.

    `discem.paper.classifier` explains the options that are not explained here.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_documents, n_words)
    y : array-like of shape (n_documents,)
    loss : {"nll", "ncll", "hinge"}
    n_topics : int
        Topics of each class.
    eta : float, optional
        Pseudo-count of each word in each topic. None is ``0.1 / n_topics``, as in the paper.
    alpha : float, optional
        Pseudo-count of each topic in a document. None is ``1 / n_topics``.
    sweeps : int
        Of the sampler, see `gibbs`.

    Examples
    --------
    >>> from discem.paper import topics
    >>> X, y = [[2, 0, 1], [0, 2, 1], [1, 0, 0], [0, 1, 1]], ["a", "b", "a", "b"]
    >>> model = topics.train(X, y, epochs=2, seed=0)
    >>> model.predict(X).tolist()
    ['a', 'b', 'a', 'b']
    """
    if n_topics < 1:
        raise OptionError(f"n_topics={n_topics!r} must be >= 1")
    X, rng = as_csr(X), random_numbers(seed)
    draw = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
    eta = 0.1 / n_topics if eta is None else float(eta)
    alpha = 1.0 / n_topics if alpha is None else float(alpha)
    model = Topics(X, y, loss, n_topics, eta, alpha, sweeps, int(draw(2**31 - 1)))
    model._train(X, lam, epochs, rng, callback)
    return model
