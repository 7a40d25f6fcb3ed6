"""Multinomial naive Bayes: Table 1 with the steps of Algorithms 2 and 4, and Algorithm 3.

``N[w, k]`` counts word w in class k, ``M[k]`` all words of the class, ``C[k]`` the class. The prior
adds the same count gamma to every word of every class, so that a step costs the words of its
document only: ``p(w | k) = (N[w, k] + gamma) / (M[k] + gamma |W|)``. The paper's priors are P1
(alpha = 1) and P2 (alpha = ln |W|).

Table 1 defines the method, so `learn` follows it: the weights of the hinge are 1 and -1, and gamma
grows after p(y | d) was computed. The pseudo-code to the letter is in `printed`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..exceptions import OptionError
from . import compiled
from .classifier import Callback, Classifier, as_csr, check_projection
from .inside import land
from .losses import NLL, SHORTENED, weigh

PRIORS = {"P1": lambda n_words: 1.0, "P2": lambda n_words: float(np.log(max(n_words, 3)))}


class State(NamedTuple):
    """Expected counts. Those of the words are held in a scale, which NLL makes smaller."""

    N: np.ndarray  # (W, K): scale * N is the count, to which the prior adds gamma
    M: np.ndarray  # (K,)
    C: np.ndarray  # (K,) to which the prior adds gamma_class
    clock: np.ndarray  # the scalars below
    lag: np.ndarray  # (W, K) what the average of N lacks, times its weight; (0, K) without average
    mean_C: np.ndarray  # (K,) the average of C + gamma_class


SCALE, GAMMA, GAMMA_CLASS, WEIGHT, SUM_SCALE, SUM_GAMMA = range(6)  # of the clock


def new_clock() -> np.ndarray:
    """Return the scalars at the start."""
    clock = np.zeros(6)
    clock[SCALE] = 1.0
    return clock


class Rule(NamedTuple):
    """What a step depends on."""

    loss: int
    alpha: float
    n: float  # documents that the prior is spread over
    check: bool  # the paper's check-step; False: the interior step
    share: float  # the most that an interior step takes of a count
    damping: float  # a step is divided by 1 + damping * (its effect on the scores of its document)


# --- compiled -------------------------------------------------------------------------------------


@compiled
def log_joint(state, i, indptr, indices, values, a, product):
    """Algorithm 3: the scores ln p(y=k, d). Returns the length of the document.

    Words that occur once or twice are multiplied: one logarithm is taken for eight of them.
    """
    N, M, C, clock = state.N, state.M, state.C, state.clock
    scale, gamma, gamma_class = clock[SCALE], clock[GAMMA], clock[GAMMA_CLASS]
    W, K = N.shape
    length, waiting = 0.0, 0.0
    total = C.sum() + K * gamma_class
    for k in range(K):
        a[k], product[k] = 0.0, (C[k] + gamma_class) / total
    for j in range(indptr[i], indptr[i + 1]):
        w, x = indices[j], values[j]
        length += x
        if x == 1.0 or x == 2.0:
            for k in range(K):
                cell = scale * N[w, k] + gamma
                product[k] *= cell if x == 1.0 else cell * cell
            waiting += x
        else:
            for k in range(K):
                a[k] += x * np.log(scale * N[w, k] + gamma)
        if waiting >= 8.0:
            for k in range(K):
                a[k] += np.log(product[k])
                product[k] = 1.0
            waiting = 0.0
    for k in range(K):
        a[k] += np.log(product[k]) - length * np.log(M[k] + gamma * W)
    return length


@compiled
def learn(state, rule, indptr, indices, values, codes, order, rho, weight, figures):
    """Table 1 over the documents in `order`; step t has weight[t] in the average."""
    N, M, C, clock, lag, mean_C = state
    K = N.shape[1]
    a, w, product, held = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    for t in range(order.shape[0]):
        i = order[t]
        length = log_joint(state, i, indptr, indices, values, a, product)
        weigh(rule.loss, a, codes[i], w, figures)
        w *= rho[t]
        words = indices[indptr[i] : indptr[i + 1]]
        counts = values[indptr[i] : indptr[i + 1]]
        floor = rho[t] / rule.n
        moved: Any = np.flatnonzero(w)
        if rule.damping > 0.0:
            w /= 1.0 + rule.damping * effect(state, words, counts, length, w, moved)
        # mu <- mu + sum_k w_k s(k, d) - (sum_k w_k) mu + rho alpha / n
        decay, alpha = w.sum(), rule.alpha * floor
        age(N, M, lag, clock, decay, alpha, 1e-12 if rule.check else 1.0 - rule.share)
        scale, gamma, past = clock[SCALE], clock[GAMMA], clock[SUM_SCALE] / clock[SCALE]
        held[:] = 0.0
        for j in range(words.shape[0]):
            for k in moved:
                count = scale * N[words[j], k]
                least = (
                    1e-15 * count if rule.check else (1.0 - rule.share) * (count + gamma) - gamma
                )
                change = w[k] * counts[j]
                if count + change < least:
                    held[k], change = 1.0, least - count
                M[k] += change
                N[words[j], k] += change / scale
                if lag.shape[0] > 0:
                    lag[words[j], k] += change * past
        shortened = held.sum()
        before = clock[GAMMA_CLASS]
        clock[GAMMA_CLASS] += alpha
        for k in range(K):
            full = C[k] + before
            least = clock[GAMMA_CLASS] if rule.check else (1.0 - rule.share) * full
            full, short = land(full, w[k] - decay * full + alpha, least)
            C[k] = full - clock[GAMMA_CLASS]
            shortened += short
        figures[SHORTENED] += shortened > 0
        if lag.shape[0] > 0:
            clock[WEIGHT] += weight[t]
            clock[SUM_SCALE] += weight[t] * scale
            clock[SUM_GAMMA] += weight[t] * gamma
            for k in range(K):
                full = C[k] + clock[GAMMA_CLASS]
                mean_C[k] += weight[t] / clock[WEIGHT] * (full - mean_C[k])


@compiled
def age(N, M, lag, clock, decay, alpha, least):
    """Let decay and prior act on all words at once: (N + gamma) (1 - decay) + alpha rho / n."""
    if decay != 0.0:
        keep = max(1.0 - decay, least)
        clock[SCALE] *= keep
        clock[GAMMA] *= keep
        M *= keep
        if clock[SCALE] < 1e-3:  # before digits are lost, fold the scale into the counts
            if lag.shape[0] > 0:
                lag -= clock[SUM_SCALE] * N
            N *= clock[SCALE]
            clock[SUM_SCALE], clock[SCALE] = 0.0, 1.0
    clock[GAMMA] += alpha


@compiled
def effect(state, words, counts, length, w, moved):
    """Return by how much a step would change the scores of its document, over all classes."""
    N, M, clock = state.N, state.M, state.clock
    total = 0.0
    for k in moved:
        square, step = 0.0, abs(w[k])
        for j in range(words.shape[0]):
            cell = clock[SCALE] * N[words[j], k] + clock[GAMMA] + step * counts[j]
            square += counts[j] * counts[j] / cell
        even = length * length / (M[k] + clock[GAMMA] * N.shape[0] + step * length)
        total += step * max(square - even, 0.0)
    return total


# --- in Python ------------------------------------------------------------------------------------


class Multinomial(Classifier):
    """A multinomial naive Bayes as `train` leaves it.

    Attributes
    ----------
    class_log_prior_ : array of shape (n_classes,)
    feature_log_prob_ : array of shape (n_classes, n_words)
    state : State
    """

    def __init__(self, X, y, loss, prior, check, share, damping, average):
        super().__init__(y, loss)
        (n, W), K = X.shape, len(self.classes_)
        if isinstance(prior, str) and prior not in PRIORS:
            raise OptionError(f"prior={prior!r} is unknown: use one of {list(PRIORS)} or a number")
        alpha = float(PRIORS[prior](W) if isinstance(prior, str) else prior)
        if check or self._loss == NLL:  # NLL cannot overshoot
            damping = 0.0
        self._rule = Rule(self._loss, alpha, float(n), check, share, damping)
        N, M, lag = np.full((W, K), alpha), np.full(K, alpha * W), np.zeros((W * average, K))
        self.state = State(N, M, np.ones(K), new_clock(), lag, np.ones(K))

    def _rows(self, X):
        return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data

    def _learn(self, rows, order, rho, figures):
        weight = (self.t + 1.0 + np.arange(len(order))) ** 2
        learn(self.state, self._rule, *rows, self._codes, order, rho, weight, figures)

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the counts of words (W, K) and of classes (K,), or their averages if kept."""
        N, _, C, clock, lag, mean_C = self.state
        if clock[WEIGHT] == 0.0:
            return clock[SCALE] * N + clock[GAMMA], C + clock[GAMMA_CLASS]
        words = (clock[SUM_SCALE] * N - lag + clock[SUM_GAMMA]) / clock[WEIGHT]
        return np.maximum(words, 1e-12 * words.max()), mean_C  # rounding may leave less than 0

    @property
    def class_log_prior_(self) -> np.ndarray:
        """The logarithm of p(y)."""
        C = self.counts()[1]
        return np.log(C / C.sum())

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """The logarithm of p(w | y), one row a class."""
        N = self.counts()[0]
        return np.log(N / N.sum(axis=0)).T

    def scores(self, X):
        """The scores ``ln p(y, d)``, one column a class."""
        return as_csr(X) @ self.feature_log_prob_.T + self.class_log_prior_


def train(
    X: Any,
    y: Any,
    *,
    loss: str = "ncll",
    prior: str | float = "P1",
    lam: Any = 1e-5,
    epochs: int = 10,
    projection: str = "check",
    share: float = 0.5,
    damping: float = 0.03,
    average: bool = False,
    seed: Any = None,
    callback: Callback | None = None,
) -> Multinomial:
    """Train a multinomial naive Bayes document by document.

    `discem.paper.classifier` explains the options that are not explained here.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_documents, n_words)
    y : array-like of shape (n_documents,)
    loss : {"nll", "ncll", "hinge"}
    prior : {"P1", "P2"} or float
        The pseudo-count alpha of each word, and of each class.

    Examples
    --------
    >>> from discem.paper import multinomial
    >>> X, y = [[2, 0, 1], [0, 2, 1], [1, 0, 0], [0, 1, 1]], ["a", "b", "a", "b"]
    >>> model = multinomial.train(X, y, loss="hinge", prior="P2", epochs=2, seed=0)
    >>> model.predict(X).tolist()
    ['a', 'b', 'a', 'b']
    """
    X, check = as_csr(X), check_projection(projection)
    model = Multinomial(X, y, loss, prior, check, share, damping, average)
    model._train(X, lam, epochs, seed, callback)
    return model
