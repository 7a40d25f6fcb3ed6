"""Rows unlike those of the training, and the columns that make them so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import check_array, demand
from .._kinds import savable
from ..exceptions import OptionError
from ._options import check_share
from ._tables import Encoded, without_each
from ._threads import reads

_FOLDS = 5
_ENOUGH = 5000  # rows of which one fold is enough
_KEPT = 10_000  # scores
_TYPICAL = 300  # rows whose columns are looked at one by one
_CELLS = 20_000_000  # cells that this may take: a row is looked at once without each column
_RECENT = 3000  # rows of a stream that say what is usual
_CELLS_OF_A_BATCH = 10_000  # of a stream, that are looked at one by one
_STEADY = 200  # cells, which those of a column in a batch are weighed against
_AT_ONCE = 4096  # rows to score at a time


@savable
@dataclass
class Usual:
    """What a density says of rows that it was not trained on."""

    scores: np.ndarray  # (rows,) ln p(x), in order
    by_column: np.ndarray  # (columns,) mean -ln p(cell | the other cells); 0 if there are too many

    @classmethod
    def learn(
        cls, without: Callable[[Any], Any], rows: Encoded, weights: np.ndarray, seed: int
    ) -> Usual:
        """Hold out one part of the rows after the other; of many rows, one part only.

        `without` gives a density that has seen the rows that are kept, and has forgotten others.
        """
        rng = np.random.RandomState(seed)
        own = rng.permutation(np.flatnonzero(weights > 0))
        folds = min(_FOLDS, len(own))
        some = min(_TYPICAL, _CELLS // rows.shape[1] ** 2) // max(folds, 1)
        scores, cells = [np.empty(0)], [np.full((1, rows.shape[1]), np.nan)]
        for fold in range(folds if folds > 1 and len(own) < _ENOUGH else min(folds - 1, 1)):
            held = own[fold::folds]
            kept = np.setdiff1d(own, held)
            density = without(kept)
            scores.append(density.score_samples(rows.take(held)))
            cells.append(surprises(density, rows.take(held[:some])))
        found, seen = np.sort(np.concatenate(scores)), np.concatenate(cells)
        places = np.unique(np.linspace(0, len(found) - 1, min(len(found), _KEPT)).astype(int))
        return cls(found[places], typical(seen))

    @classmethod
    def in_passing(cls, known: Usual | None, density: Any, rows: Encoded) -> Usual | None:
        """Look at rows of a stream before the density learns from them.

        Those that were seen first give way, for the density knew little then.
        """
        if not density.__sklearn_is_fitted__():
            return known  # it knows nothing yet
        n, few = rows.shape[0], max(_CELLS_OF_A_BATCH // rows.shape[1] ** 2, 1)
        last, some = (
            rows.take(span).as_before(density.layout_)
            for span in (slice(-_RECENT, None), slice(few))
        )
        scores, cells = density.score_samples(last), surprises(density, some)
        counts = (~np.isnan(cells)).sum(axis=0)
        by_column = typical(cells)
        if known is not None:
            seen = int(density._seen)
            left = max(min(_RECENT, (seen + n) // 2) - n, 0)
            rng = np.random.RandomState(seen % 2**31)
            before = rng.permutation(known.scores)[:left]
            scores = np.concatenate([before, scores])
            fresh = np.where(counts > 0, counts / (counts + _STEADY), 0.0)
            by_column = known.by_column + fresh * (by_column - known.by_column)
        return cls(np.sort(scores), by_column)

    def threshold(self, rate: float) -> float:
        """The ln p(x) below which such a share of usual rows is."""
        place = rate * (len(self.scores) + 1) - 1.0
        if place < 0.0:  # too few rows to tell: what is stranger than all of them
            return float(self.scores[0])
        return float(np.interp(place, np.arange(len(self.scores)), self.scores))

    def check(self, n_columns: int) -> None:
        scores = self.scores
        check_array("usual scores", scores, (len(scores),))
        demand((np.diff(scores) >= 0).all(), "usual scores are in no order")
        check_array("usual cells", self.by_column, (n_columns,))


def surprises(density: Any, rows: Encoded) -> np.ndarray:
    """-ln p(cell | the other cells of the row), (rows, columns); NaN for missing cells."""
    found = [np.empty((0, rows.shape[1]))]
    step = max(_AT_ONCE // (rows.shape[1] + 1), 1)
    for first in range(0, rows.shape[0], step):
        some = rows.take(slice(first, first + step))
        views, there = without_each(some)
        scores = density.score_samples(views).reshape(rows.shape[1] + 1, -1).T
        found.append(np.where(there, scores[:, :-1] - scores[:, -1:], np.nan))
    return np.concatenate(found)


def typical(found: np.ndarray) -> np.ndarray:
    """The mean of each column, of cells that are there; 0 if there are none."""
    counts = (~np.isnan(found)).sum(axis=0)
    return np.nansum(found, axis=0) / np.maximum(counts, 1)


class Doubts:
    """Estimators that know ln p(x), and so rows that are unlike those of the training."""

    def _usual(self) -> Usual:
        """What the model says of rows that it was not trained on."""
        raise OptionError("nothing was held out: give `usual` rows that were not trained on")

    def _or_none(self, found: np.ndarray, X: Any, reject: float | None, usual: Any) -> np.ndarray:
        """What was predicted, and None for `outliers` at a rate of `reject`, if it is given."""
        if reject is None:
            return found
        check_share("reject", reject)
        return np.where(self.outliers(X, reject, usual), np.array(None), found)

    @reads
    def outliers(self, X: Any, rate: float = 0.01, usual: Any = None) -> np.ndarray:
        """Which rows are unlike those of the training.

        The threshold is that of rows which were held out: about a share `rate` of rows like those
        of the training is below it. It takes about ``1 / rate`` such rows to be exact.

        Parameters
        ----------
        X : as for `predict`
        rate : float, default=0.01
            The share of usual rows that may be called outliers. A larger one finds more.
        usual : like X, optional
            Rows that are usual and were not trained on. Only `fit` of estimators of tables that
            have a `density_`, and their streams, hold rows out by themselves.

        Returns
        -------
        array of bool, of shape (n_samples,)
        """
        check_share("rate", rate)
        me: Any = self
        if usual is None:
            return me.score_samples(X) < self._usual().threshold(rate)
        known = Usual(np.sort(me.score_samples(usual)), np.empty(0))
        return me.score_samples(X) < known.threshold(rate)
