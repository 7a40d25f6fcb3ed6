"""The losses of Table 1: what the scores of a row say, and which weights they give its classes.

Every update of the paper is ``mu <- mu + rho sum_k w_k E[s(k, z, x)] + ...`` with weights
``w_k = -dloss / da_k`` of the scores ``a_k = ln p(y=k, x)``.
"""

from __future__ import annotations

import numpy as np

from ..exceptions import OptionError
from . import compiled

NLL, NCLL, HINGE = range(3)
LOSSES = {"nll": NLL, "ncll": NCLL, "hinge": HINGE}

MEASURED = ("loss", "nll", "ncll", "hinge", "accuracy")
FIGURES = (*MEASURED, "shortened")  # sums over rows
SHORTENED = FIGURES.index("shortened")


def loss_code(loss: str) -> int:
    """Return the number that compiled code knows a loss by."""
    if loss not in LOSSES:
        raise OptionError(f"loss={loss!r} is unknown: use one of {sorted(LOSSES)}")
    return LOSSES[loss]


@compiled
def best_wrong(a, y):
    """Return the class other than `y` with the largest score; -1 if there is no other."""
    best = -1
    for k in range(a.shape[0]):
        if k != y and (best < 0 or a[k] > a[best]):
            best = k
    return best


@compiled
def softmax(a, p):
    """Write p(y | x) into `p`, and return ln p(x)."""
    top, total = a.max(), 0.0
    for k in range(a.shape[0]):
        p[k] = np.exp(a[k] - top)
        total += p[k]
    for k in range(a.shape[0]):
        p[k] /= total
    return top + np.log(total)


@compiled
def weigh(loss, a, y, w, figures):
    """Write the weights of the classes into `w`, and add what is measured to `figures`."""
    wrong, evidence = best_wrong(a, y), softmax(a, w)
    margin = a[y] - a[wrong] if wrong >= 0 else np.inf
    nll, ncll, hinge = -a[y], evidence - a[y], max(1.0 - margin, 0.0)
    if loss == NCLL:  # s(y, x) - E_y[s(y, x)]
        for k in range(w.shape[0]):
            w[k] = -w[k]
        w[y] += 1.0
    else:  # s(y, x); the hinge subtracts s(best wrong class, x) while the margin is below 1
        w[:] = 0.0
        if loss == NLL:
            w[y] = 1.0
        elif hinge > 0.0:
            w[y], w[wrong] = 1.0, -1.0
    figures[0] += ncll if loss == NCLL else (nll if loss == NLL else hinge)
    figures[1] += nll
    figures[2] += ncll
    figures[3] += hinge
    if margin > 0.0 or (margin == 0.0 and y < wrong):  # argmax takes the first of equals
        figures[4] += 1.0


@compiled
def measure(loss, scores, codes, figures):
    """Add up the figures of rows whose scores are known."""
    w = np.empty(scores.shape[1])
    for i in range(scores.shape[0]):
        weigh(loss, scores[i], codes[i], w, figures)
