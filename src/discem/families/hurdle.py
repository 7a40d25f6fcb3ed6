"""Hurdle columns: whether a number is 0, as a level, and if not, its logarithm.

They have no family of their own: the first part is categorical, the second log-normal.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..io.column_kinds import NUMBER, ZERO, Found, Slot, distinct, register_column, skewness
from ._distributions import number_of
from .lognormal import SKEWED, LogNormalColumn

ZEROS, POSITIVES = 0.2, 20  # the least share of zeros, and the least number of other cells


class HurdleColumn(LogNormalColumn):
    """Numbers from 0 with many zeros, whose other values are about log-normal.

    At least `ZEROS` of the cells are 0. There are at least `POSITIVES` other cells with more than 3
    values. Their skewness is above `SKEWED`, or more than half of the cells are 0.
    """

    name = "hurdle"
    slots: ClassVar[tuple[Slot, ...]] = (NUMBER, ZERO)
    turn = 40
    takes = "0 and numbers above"

    def recognise(self, sample):
        if sample.kind != "number" or sample.values.min() != 0.0:
            return None
        positive = sample.values[sample.values > 0.0]
        zeros = 1.0 - len(positive) / len(sample.values)
        if zeros < ZEROS or len(positive) < POSITIVES or len(distinct(positive)) <= 3:
            return None
        spike = zeros > 0.5 or skewness(positive) > SKEWED
        return Found("zero or positive") if spike else None

    def outside(self, values):
        return values < 0.0

    def split(self, values):
        codes = np.where(np.isnan(values), -1, values > 0.0)
        return np.log(np.where(codes == 1, values, np.nan)), codes

    def join(self, parts):
        values, codes = super().join(parts), parts[1]
        values[codes < 0] = np.nan
        values[codes == 0] = 0.0
        return values

    def distribution(self, column, said):
        (levels,) = said.of(1)
        return number_of(column, said.shares, said.of(), levels[..., 1], log=True)


register_column(HurdleColumn())
