"""Calibration: one number that makes probabilities fit rows that were not trained on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_SPREAD = 3.0  # of ln temperature before any row is seen: a factor of 20 is nothing unusual


class Temperature(NamedTuple):
    """What to multiply log-probabilities by, and the log-loss that is left."""

    value: float
    log_loss: float


def best_temperature(scores, codes, weights, shift=0.0, tolerance=1e-5) -> Temperature:
    """What to multiply scores by so that labelled rows are least surprising.

    Its logarithm has a weak prior, normal around 0, that a handful of rows outweigh: a single row
    would have it 0 or infinite.

    Parameters
    ----------
    scores : array of shape (n, n_classes)
        ``ln p(y, x)`` of rows that were not trained on.
    codes, weights : arrays of shape (n,)
        Place of each row's class (negative: none), and its weight.
    shift : array of shape (n_classes,), optional
        What is added after the multiplication.
    tolerance : float
        Relative.

    Examples
    --------
    >>> scores = np.log([[0.99, 0.01], [0.01, 0.99], [0.99, 0.01], [0.99, 0.01]])
    >>> codes = np.array([0, 1, 0, 1])  # three of four are right, which 99 % is not
    >>> bool(best_temperature(scores, codes, np.ones(4)).value < 0.5)
    True
    """
    from scipy.optimize import minimize_scalar

    rows = np.flatnonzero((codes >= 0) & (weights > 0))
    codes, weights = codes[rows], weights[rows] / weights[rows].mean()
    scores = scores[rows] - scores[rows].max(axis=1, keepdims=True)
    margin = float(np.median(-np.sort(scores, axis=1)[:, -2])) if scores.shape[1] > 1 else 0.0
    own = scores[np.arange(len(rows)), codes]
    own_shift = np.broadcast_to(shift, scores.shape[1])[codes]

    def log_loss(log_temperature: float) -> float:
        temperature = np.exp(log_temperature)
        warmer = temperature * scores + shift
        losses = np.log(np.exp(warmer).sum(axis=1)) - (temperature * own + own_shift)
        # and one more row, wrong by the usual margin: rows may all be right, certainty is not
        doubt = np.logaddexp(0, temperature * margin) + 0.5 * (log_temperature / _SPREAD) ** 2
        return float(np.dot(weights, losses) + doubt) / len(rows)

    options = {"xatol": tolerance}
    found = minimize_scalar(log_loss, bounds=(-12.0, 6.0), method="bounded", options=options)
    return Temperature(float(np.exp(found.x)), float(found.fun))
