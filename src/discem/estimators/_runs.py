"""Labels of a stream that come in long runs: what a model cannot learn from, and cannot see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._checks import check_array, check_count, demand
from .._kinds import savable
from ..exceptions import SortedStreamWarning, warn

_RARER = 10.0  # times that labels change more rarely than in random order: models suffer from here
_ENOUGH = 30.0  # changes to expect in random order; a tenth of them is then no accident


@savable
@dataclass
class LabelRuns:
    """How often the labels of a stream change from row to row, and how often they should."""

    counts: np.ndarray  # (K,) rows of each class
    changes: int = 0
    last: int = -1  # the class of the last row
    told: bool = False

    @property
    def expected(self) -> float:
        """Changes among the same labels in random order."""
        n = float(self.counts.sum())
        return n - float(self.counts @ self.counts) / max(n, 1.0)

    def check(self, n_classes: int) -> None:
        check_array("rows of each class", self.counts, (n_classes,), least=0.0)
        check_count("changes of labels", self.changes)
        check_count("the last label", self.last, -1, n_classes - 1)
        demand(isinstance(self.told, bool), "whether a warning was given is unknown")

    def arrange(self, order: np.ndarray) -> None:
        """Follow the classes into a new order; -1 is a new one."""
        self.counts = np.append(self.counts, 0.0)[order]
        if self.last >= 0:
            self.last = int(np.flatnonzero(order == self.last)[0])

    def add(self, codes: np.ndarray) -> None:
        """Take note of the next labels, of which negative ones are none."""
        codes = codes[codes >= 0]
        if not len(codes):
            return
        self.changes += int(np.count_nonzero(np.diff(codes)))
        self.changes += int(self.last >= 0 and self.last != codes[0])
        # in new memory, for the old may be that of a file
        self.counts = self.counts + np.bincount(codes, minlength=len(self.counts))
        self.last = int(codes[-1])

    def warn(self) -> None:
        """Say so, once, if labels come in long runs."""
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
