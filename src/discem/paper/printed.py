"""Algorithms 2 (NCLL) and 4 (hinge) of the supplement, as printed.

Read to the letter, the pseudo-code computes p(y | d) anew for every word of a document: a document
that is classified right half-way through teaches nothing more. It can also be read with one
p(y | d) for the whole document. In both readings gamma grows before p(y | d) is computed. Under the
hinge the weights are 1 - p(y) and -p(wrong class), which are no gradient of the hinge loss, and the
wrong class and the margin are those at the start of the document.

Slips are put right: M starts at alpha |W| and the prior adds gamma |W| to it (not |d|), p(y | d)
reads N[k] (not N[y]), M of the wrong class moves (not M[k]), and gamma grows for documents that are
skipped, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import OptionError
from . import compiled
from .classifier import Callback, as_csr
from .inside import land
from .losses import HINGE, NLL, SHORTENED, best_wrong, softmax, weigh
from .multinomial import GAMMA, GAMMA_CLASS, Multinomial, log_joint


@compiled
def learn(state, rule, anew, indptr, indices, values, codes, order, rho, figures):
    """Take one pass over the documents in `order`; `anew` computes p(y | d) after every word."""
    N, M, C, clock = state.N, state.M, state.C, state.clock
    W, K = N.shape
    a, p, product = np.empty(K), np.empty(K), np.empty(K)
    for t in range(order.shape[0]):
        i, y = order[t], codes[order[t]]
        gamma = clock[GAMMA] + rule.alpha * rho[t] / rule.n
        clock[GAMMA], clock[GAMMA_CLASS] = gamma, gamma
        length = log_joint(state, i, indptr, indices, values, a, product)
        weigh(rule.loss, a, y, p, figures)
        wrong = best_wrong(a, y)
        if rule.loss == HINGE and (wrong < 0 or a[y] - a[wrong] > 1.0):
            continue
        softmax(a, p)
        shortened = 0
        for j in range(indptr[i], indptr[i + 1]):
            w, x = indices[j], values[j]
            for k in range(K):
                if rule.loss == HINGE and k not in (y, wrong):
                    continue
                old, all_old = N[w, k], M[k]
                N[w, k], short = land(old, rho[t] * x * ((k == y) - p[k]), 0.0)
                M[k] += N[w, k] - old
                shortened += short
                if anew:
                    a[k] += x * (np.log(N[w, k] + gamma) - np.log(old + gamma))
                    a[k] -= length * (np.log(M[k] + gamma * W) - np.log(all_old + gamma * W))
            if anew:
                softmax(a, p)
        for k in range(K):
            if rule.loss != HINGE or k in (y, wrong):
                C[k], short = land(C[k], rho[t] * ((k == y) - p[k]), 0.0)
                shortened += short
        figures[SHORTENED] += shortened > 0


class Printed(Multinomial):
    """A multinomial naive Bayes that learns as the pseudo-code says."""

    anew: bool

    def _learn(self, rows, order, rho, figures):
        learn(self.state, self._rule, self.anew, *rows, self._codes, order, rho, figures)


def train(
    X: Any,
    y: Any,
    *,
    loss: str = "ncll",
    prior: str | float = "P1",
    reading: str = "word",
    lam: Any = 1e-5,
    epochs: int = 10,
    seed: Any = None,
    callback: Callback | None = None,
) -> Printed:
    """Train a multinomial naive Bayes by the letter of Algorithm 2 or 4.

    Parameters
    ----------
    X, y, prior, lam, epochs, seed, callback : as in `discem.paper.multinomial.train`
    loss : {"ncll", "hinge"}
        NCLL is Algorithm 2, the hinge is Algorithm 4.
    reading : {"word", "document"}
        Whether p(y | d) is computed anew for every word, or once for a document.

    Examples
    --------
    >>> from discem.paper import printed
    >>> X, y = [[2, 0, 1], [0, 2, 1], [1, 0, 0], [0, 1, 1]], ["a", "b", "a", "b"]
    >>> printed.train(X, y, loss="hinge", reading="word", epochs=2, seed=0).predict(X).tolist()
    ['a', 'b', 'a', 'b']
    """
    if reading not in ("word", "document"):
        raise OptionError(f"reading={reading!r} is unknown: use 'word' or 'document'")
    X = as_csr(X)
    model = Printed(X, y, loss, prior, True, 0.5, 0.0, False)
    if model._loss == NLL:
        raise OptionError("the pseudo-code is of loss='ncll' and loss='hinge'")
    model.anew = reading == "word"
    model._train(X, lam, epochs, seed, callback)
    return model
