"""The candidates of `TableRegressor`, judged by the log density of held-out rows."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from ._average import Member
from ._candidates import HIDDEN, Readings
from ._choice import Options, Result
from ._folds import Split

_SIZES = (1, 4, 16, 40)  # numbers of components to try
_WIDE_SIZES, _WIDE = (1, 4, 8), 60  # the same, with many features
MOST_TRIED = 6  # the most candidates
_MANY = 16  # components: more are tried if this many are the best so far
ROWS_EACH = 4  # rows per component that a candidate needs
_STRATA = 10  # parts of the range of answers; each fold has its share of them

DEFAULTS: Options = {
    "n_components": 4,
    "hide": HIDDEN,
    "missing": "ignore",
    "whole_numbers": "levels",
}


class NumberMark(NamedTuple):
    """The score of a model on held-out rows, each of them shown in several views."""

    losses: np.ndarray  # (views, n) -ln p(y | x), by weight
    weights: np.ndarray  # (n,) of the rows, 1 on average
    log_loss: float
    r2: float  # of complete rows and rows with hidden cells

    @property
    def figures(self) -> Options:
        """Return the figures for `choice_`."""
        found = {"log_loss": self.log_loss, "r2": self.r2}
        return found | {"held_out": len(self.weights)}


def candidates(
    readings: Readings, fixed: Options, n_rows: float
) -> Generator[Options, Result, None]:
    """Yield options to try: sizes first, then other ways to read the table with the best size."""
    first = DEFAULTS | fixed
    d = len(readings.layout.columns)
    sizes = [fixed["n_components"]] if "n_components" in fixed else _sizes(n_rows, d)
    best: Any = None
    for size in sizes:
        if size > _MANY and best.options["n_components"] < _MANY:
            break  # the best has few already
        best = yield first | {"n_components": size}
    ways: list[Options] = []
    if readings.numbers:
        ways.append({"whole_numbers": "numbers"})
    if readings.tells_missing:
        ways.append({"missing": "informative"})
    for way in ways:
        if not fixed.keys() & way.keys():
            best = yield best.options | way


def judged(parts: list[Split], scores: list[np.ndarray]) -> NumberMark:
    """Score ``ln p(y | x)`` of held-out rows, over all parts."""
    weights = np.concatenate([part.held_weights for part in parts])
    log_p, square = np.moveaxis(np.concatenate(scores, axis=1), -1, 0)
    weights = weights / weights.mean()
    losses = -weights * np.maximum(log_p, -1e6)
    r2 = 1.0 - float((weights * square).mean())
    return NumberMark(losses, weights, float(losses.mean()), r2)


def members_of(best: list[tuple[Result, float]]) -> list[Member]:
    """Return all models of the best candidates, with their weights."""
    found = [Member(m, share / len(own.models)) for own, share in best for m in own.models]
    return sorted(found, key=lambda member: -member.weight)


def strata_of(y: np.ndarray) -> np.ndarray:
    """Return the stratum of the answer of each row; -1 for rows without an answer."""
    first = y[:, 0]
    known = ~np.isnan(first)
    codes = np.where(np.isnan(y).all(axis=1), -1, 0)
    values, place = np.unique(first[known], return_inverse=True)
    counts = np.cumsum(np.bincount(place)) if len(values) else np.zeros(0)
    parts = min(_STRATA, len(values), max(len(place) // _STRATA, 2))
    if parts > 1:
        middle = (counts - 0.5 * np.bincount(place)) / counts[-1]
        codes[known] = np.minimum((parts * middle).astype(int), parts - 1)[place]
    return codes


def _sizes(n_rows: float, n_features: int) -> list[int]:
    sizes = _WIDE_SIZES if n_features >= _WIDE else _SIZES
    return [size for size in sizes if size == 1 or n_rows >= ROWS_EACH * size]
