"""Detect labels of a stream that come in long runs, which harm training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._checks import check_array, check_count, demand
from .._kinds import savable
from ..exceptions import SortedStreamWarning, warn

_RARER = 10.0  # times rarer than in random order: from here on models get worse
_ENOUGH = 30.0  # expected changes in random order, so that a tenth of them is no accident


@savable
@dataclass
class LabelRuns:
    """Count how often the labels of a stream change, and how often they should."""

    counts: np.ndarray  # (K,) rows of each class
    changes: int = 0
    last: int = -1  # the class of the last row
    told: bool = False

    @property
    def expected(self) -> float:
        """Return the expected changes of the same labels in random order."""
        n = float(self.counts.sum())
        return n - float(self.counts @ self.counts) / max(n, 1.0)

    def check(self, n_classes: int) -> None:
        check_array("rows of each class", self.counts, (n_classes,), least=0.0)
        check_count("changes of labels", self.changes)
        check_count("the last label", self.last, -1, n_classes - 1)
        demand(isinstance(self.told, bool), "whether a warning was given is unknown")

    def arrange(self, order: np.ndarray) -> None:
        """Follow the classes into a new order; -1 is a new class."""
        self.counts = np.append(self.counts, 0.0)[order]
        if self.last >= 0:
            self.last = int(np.flatnonzero(order == self.last)[0])

    def add(self, codes: np.ndarray) -> None:
        """Count the next labels; negative codes are unlabelled."""
        codes = codes[codes >= 0]
        if not len(codes):
            return
        self.changes += int(np.count_nonzero(np.diff(codes)))
        self.changes += int(self.last >= 0 and self.last != codes[0])
        # in new memory, as the old one may belong to a file
        self.counts = self.counts + np.bincount(codes, minlength=len(self.counts))
        self.last = int(codes[-1])

    def warn(self) -> None:
        """Warn once if labels come in long runs."""
        if self.told or self.expected < max(_ENOUGH, _RARER * (self.changes + 1)):
            return
        self.told = True
        warn(
            f"the labels of this stream come in long runs: in {self.counts.sum():.0f} rows the "
            f"label changes {self.changes} times, in random order about {self.expected:.0f} times. "
            "In each run the model forgets the other classes. Shuffle the rows, or use a naive "
            "Bayes with loss='nll', to which their order does not matter",
            SortedStreamWarning,
        )
