"""The log-normal family: positive numbers with normally distributed logarithms.

It is the Gaussian family of ln x, with ln h(x) = -ln x for the change of variable.
"""

from __future__ import annotations

from math import log
from typing import ClassVar

import numpy as np

from ..io.cells import LARGEST
from ..io.column_kinds import NUMBER, ColumnKind, Found, Slot, register_column, skewness
from ..io.rows import dense_rows
from ._block import Accepts
from ._distributions import number_of
from ._family import register
from .gaussian import GaussianFamily, moments

SKEWED = 1.0  # skewness from which logarithms are considered
_LARGEST = 300.0  # the largest logarithm of a result
_TINY = np.finfo(np.float64).tiny  # smaller draws would be 0


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
    """Return logarithms; impossible cells are missing."""
    return np.log(np.where(x > 0, x, np.nan))


class LogNormalColumn(ColumnKind):
    """Positive numbers with skewness above `SKEWED`, whose logarithms are less skewed.

    A cell becomes its logarithm in the Gaussian family, so that all numbers may be correlated.
    """

    name = "lognormal"
    slots: ClassVar[tuple[Slot, ...]] = (NUMBER,)
    turn = 50
    takes = "numbers above 0"
    rounds = True

    def recognise(self, sample):
        values = sample.values
        if sample.kind != "number" or values.min() <= 0.0:
            return None
        skewed = skewness(values)
        nearer = skewed > SKEWED and abs(skewness(np.log(values))) < skewed
        return Found("positive and skewed") if nearer else None

    def outside(self, values):
        return values <= 0.0

    def split(self, values):
        return (np.log(values),)

    def join(self, parts):
        return np.exp(np.clip(parts[0], log(_TINY), log(LARGEST)))

    def log_base(self, parts):
        return -np.nansum(parts, axis=1)

    def within(self, column, part):
        values = column.clipped(LogNormalColumn.join(self, (part,)))
        return np.log(np.maximum(values, 1.0 if column.whole else _TINY))

    def distribution(self, column, said):
        return number_of(column, said.shares, said.of(), log=True)


register(LogNormalFamily())
register_column(LogNormalColumn())
