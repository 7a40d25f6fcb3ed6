"""Calibration: one number that makes probabilities fit rows that were not trained on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_SPREAD = 3.0  # of ln temperature before any row is seen: a factor of 20 is nothing unusual
_SHIFT_SPREAD = 0.3  # of the bias of a mix
_DOUBTS = 6.0  # rows that are wrong by the usual margin, beside those of a mix


class Temperature(NamedTuple):
    """What to multiply log-probabilities by, and the log-loss that is left."""

    value: float
    log_loss: float


def best_temperature(scores, codes, weights, shift=0.0, tolerance=1e-5, views=1) -> Temperature:
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
    views : int
        How often each row is among these: the prior counts against rows.

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
        return float(np.dot(weights, losses) + views * doubt) / len(rows)

    options = {"xatol": tolerance}
    found = minimize_scalar(log_loss, bounds=(-12.0, 6.0), method="bounded", options=options)
    return Temperature(float(np.exp(found.x)), float(found.fun))


class Mix(NamedTuple):
    """How models of the same rows, which see different parts of them, answer together.

    Their joint is ``first + weight * other + .. + bias * shift``, and `temperature` multiplies it.
    """

    temperature: float
    weights: tuple[float, ...]  # of all blocks but the first
    bias: float
    log_loss: float  # that is left, with what is added for doubt


def best_mix(blocks, shift, codes, weights) -> Mix:
    """The temperature, weights and bias with which labelled rows are least surprising.

    Logarithms of what the blocks are multiplied by have normal priors around 0, of standard
    deviation 1; what `shift` is multiplied by has one of 0.3, as rare classes are seldom among few
    rows. Six more rows are taken to be wrong by the usual margin: where rows are few that leaves
    doubt, and hundreds hardly notice.

    Parameters
    ----------
    blocks : sequence of arrays of shape (n, n_classes)
        Scores of rows that were not trained on, by each of the models.
    shift : array of shape (n_classes,)
    codes, weights : arrays of shape (n,)
        Place of each row's class, and its weight.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(0, 2, 200)
    >>> told = 4.0 * np.eye(2)[codes] + rng.normal(size=(200, 2))
    >>> mix = best_mix([told, rng.normal(size=(200, 2))], 0.0, codes, 1.0)
    >>> mix.weights[0] < 0.5
    True
    """
    from scipy.optimize import minimize
    from scipy.special import expit, log_softmax

    rows, n = np.arange(len(codes)), len(blocks)
    spreads = np.array(n * [1.0] + [_SHIFT_SPREAD])
    weights = np.broadcast_to(weights, len(codes)) / np.mean(weights)
    parts = np.stack([np.broadcast_to(each, np.shape(blocks[0])) for each in (*blocks, shift)])
    margins = np.array([np.median(-np.sort(x - x.max(axis=1)[:, None])[:, -2]) for x in parts[:n]])

    def objective(free: np.ndarray) -> tuple[float, np.ndarray]:
        shares = np.append(np.exp(free[:n]), free[n])
        scores = log_softmax(np.tensordot(shares, parts, 1), axis=1)
        error = np.exp(scores)
        error[rows, codes] -= 1.0
        slope = (parts * (weights[:, None] * error)).sum(axis=(1, 2))
        margin, off = shares[:n] @ margins, free / spreads
        slope[:n] = shares[:n] * (slope[:n] + _DOUBTS * expit(margin) * margins)
        seen = -weights @ scores[rows, codes]
        loss = seen + _DOUBTS * np.logaddexp(0, margin) + 0.5 * off @ off
        return float(loss) / len(rows), (slope + off / spreads) / len(rows)

    bounds = n * [(-9.0, 5.0)] + [(-5.0, 5.0)]
    found = minimize(objective, np.zeros(n + 1), jac=True, bounds=bounds, method="L-BFGS-B")
    temperature, *others = np.exp(found.x[:n]).tolist()
    bias = float(found.x[n]) / temperature
    return Mix(temperature, tuple(w / temperature for w in others), bias, float(found.fun))


def useful_mix(blocks, shift, codes, weights) -> tuple[Mix, Mix]:
    """The best mix of the first block with those that make it better, and the first block alone.

    Blocks that make it no better weigh 0. Parameters are those of `best_mix`.
    """
    alone = best_mix(blocks[:1], 0.0, codes, weights)
    kept = [*range(1, len(blocks))]

    def mix_of(some: list[int]) -> Mix:
        return best_mix([blocks[j] for j in (0, *some)], shift, codes, weights) if some else alone

    best = mix_of(kept)
    for block in range(1, len(blocks)):
        others = [j for j in kept if j != block]
        without = mix_of(others)
        if without.log_loss <= best.log_loss:
            kept, best = others, without
    own = dict(zip(kept, best.weights, strict=True))
    return best._replace(weights=tuple(own.get(j, 0.0) for j in range(1, len(blocks)))), alone
