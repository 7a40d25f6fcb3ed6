"""The log-normal family: positive numbers whose logarithms are normally distributed.

It is the Gaussian family of ln x, and ln h(x) = -ln x is the price of the change of variable.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..io.rows import dense_rows
from . import gaussian
from ._protocol import add_scores, add_to_average, gather, move, settle
from ._record import Accepts, register
from .gaussian import GaussianFamily


class LogNormal(NamedTuple):
    """As `Gaussian`, of logarithms."""

    units: np.ndarray
    mass: np.ndarray
    factors: np.ndarray
    lags: np.ndarray
    weight: np.ndarray
    prior: Any


class LogNormalFamily(GaussianFamily):
    """Positive numbers, skewed to the right."""

    name = "lognormal"
    state: ClassVar[Any] = LogNormal
    accepts = Accepts(missing=True, negative=False)

    def statistics(self, x):
        """Of rows in units, see `in_units`."""
        return super().statistics(x)

    def view(self, X):
        logs = _logs(X)
        return dense_rows(logs, -np.nansum(logs, axis=1))

    def in_units(self, block, x):
        units, jacobian = super().in_units(block, _logs(x))
        return units, jacobian - np.nansum(_logs(x), axis=1)

    def sample(self, block, codes, rng):
        return np.exp(np.minimum(super().sample(block, codes, rng), _LARGEST))

    def expectations(self, block):
        m, v = gaussian.moments(block)
        return {"ln x": m, "(ln x)^2": v + m**2}

    def slopes(self, block):
        offset, slopes = super().slopes(block)
        return offset, dict(zip(("ln x", "(ln x)^2"), slopes.values(), strict=True))

    def features_of(self, X):
        return super().features_of(_logs(np.asarray(X, dtype=np.float64)))

    def example(self, codes, n_features, rng):
        return np.exp(0.3 * super().example(codes, n_features, rng))


def _logs(x: np.ndarray) -> np.ndarray:
    """Logarithms; what cannot be is missing."""
    return np.log(np.where(x > 0, x, np.nan))


_LARGEST = 300.0  # logarithms of numbers that may leave the library

# compiled: what Gaussians do
add_scores.register(LogNormal)(gaussian._add_scores)
gather.register(LogNormal)(gaussian._gather)
settle.register(LogNormal)(gaussian._settle)
move.register(LogNormal)(gaussian._move)
add_to_average.register(LogNormal)(gaussian._add_to_average)

LOG_NORMAL = register(LogNormalFamily())
