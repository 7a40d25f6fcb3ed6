"""The log-normal family: positive numbers whose logarithms are normally distributed.

It is the Gaussian family of ln x, and ln h(x) = -ln x is the price of the change of variable.
"""

from __future__ import annotations

import numpy as np

from ..io.rows import dense_rows
from ._family import Accepts, register
from .gaussian import GaussianFamily, moments

_LARGEST = 300.0  # logarithms of numbers that may leave the library


class LogNormalFamily(GaussianFamily):
    """Positive numbers, skewed to the right."""

    name = "lognormal"
    accepts = Accepts(missing=True, negative=False)

    def view(self, X):
        logs = _logs(X)
        return dense_rows(logs, -np.nansum(logs, axis=1))

    def sample(self, block, codes, rng):
        return np.exp(np.minimum(super().sample(block, codes, rng), _LARGEST))

    def expectations(self, block):
        m, v = moments(block)
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


LOG_NORMAL = register(LogNormalFamily())
