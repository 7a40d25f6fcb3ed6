"""Find rows unlike the training data, and the columns that make them so."""

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
_ENOUGH = 5000  # rows from which one fold is enough
_KEPT = 10_000  # scores that are kept
_TYPICAL = 300  # rows whose columns are examined one by one
_CELLS = 20_000_000  # cells to process at most: each row is scored once without each column
_RECENT = 3000  # recent rows of a stream that define what is usual
_CELLS_OF_A_BATCH = 10_000  # cells of a batch of a stream to examine one by one
_STEADY = 200  # weight, in cells, of the known mean of a column against a batch
_AT_ONCE = 4096  # rows to score at a time


@savable
@dataclass
class Usual:
    """The scores of a density on rows that were not used in training."""

    scores: np.ndarray  # (rows,) ln p(x), in order
    by_column: np.ndarray  # (columns,) mean -ln p(cell | the other cells); 0 if there are too many

    @classmethod
    def learn(
        cls, without: Callable[[Any], Any], rows: Encoded, weights: np.ndarray, seed: int
    ) -> Usual:
        """Hold out each part of the rows in turn; with many rows, only one part.

        `without` returns a density that was trained on the other rows.
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
        """Score rows of a stream before the density learns from them.

        The oldest scores are replaced, as the density knew little then.
        """
        if not density.__sklearn_is_fitted__():
            return known  # the density has learnt nothing yet
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
        """Return the ln p(x) below which a share `rate` of usual rows lies."""
        place = rate * (len(self.scores) + 1) - 1.0
        if place < 0.0:  # too few rows: take a threshold below all of them
            return float(self.scores[0])
        return float(np.interp(place, np.arange(len(self.scores)), self.scores))

    def check(self, n_columns: int) -> None:
        scores = self.scores
        check_array("usual scores", scores, (len(scores),))
        demand((np.diff(scores) >= 0).all(), "usual scores are in no order")
        check_array("usual cells", self.by_column, (n_columns,))


def surprises(density: Any, rows: Encoded) -> np.ndarray:
    """Return -ln p(cell | the other cells of the row), (rows, columns); NaN for missing cells."""
    found = [np.empty((0, rows.shape[1]))]
    step = max(_AT_ONCE // (rows.shape[1] + 1), 1)
    for first in range(0, rows.shape[0], step):
        some = rows.take(slice(first, first + step))
        views, there = without_each(some)
        scores = density.score_samples(views).reshape(rows.shape[1] + 1, -1).T
        found.append(np.where(there, scores[:, :-1] - scores[:, -1:], np.nan))
    return np.concatenate(found)


def typical(found: np.ndarray) -> np.ndarray:
    """Return the mean of each column over observed cells; 0 if there are none."""
    counts = (~np.isnan(found)).sum(axis=0)
    return np.nansum(found, axis=0) / np.maximum(counts, 1)


class Doubts:
    """Estimators with ln p(x) that find rows unlike the training data."""

    def _usual(self) -> Usual:
        """Return the scores on rows that were not used in training."""
        raise OptionError("nothing was held out: give `usual` rows that were not trained on")

    def _or_none(self, found: np.ndarray, X: Any, reject: float | None, usual: Any) -> np.ndarray:
        """Return predictions, with None for `outliers` at the rate `reject`, if it is given."""
        if reject is None:
            return found
        check_share("reject", reject)
        return np.where(self.outliers(X, reject, usual), np.array(None), found)

    @reads
    def outliers(self, X: Any, rate: float = 0.01, usual: Any = None) -> np.ndarray:
        """Return which rows are unlike the training data.

        The threshold comes from held-out rows: about a share `rate` of rows like the training data
        is below it. It needs about ``1 / rate`` held-out rows to be accurate.

        Parameters
        ----------
        X : as for `predict`
        rate : float, default=0.01
            The share of usual rows that may be called outliers. A larger rate finds more outliers.
        usual : like X, optional
            Usual rows that were not used in training. Estimators of tables with a `density_` hold
            out rows themselves, in `fit` and in streams; others need this.

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
