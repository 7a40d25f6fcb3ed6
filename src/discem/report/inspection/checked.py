"""What a model makes of data that it was not trained on, counted batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..evaluation import Evaluation

_SHOWN = 10  # rows of each list


class Seen(NamedTuple):
    """A row that is worth a look."""

    name: str
    label: str | None
    predicted: str
    probability: float
    density: float | None
    row: Any  # as `explain` takes it
    cells: dict[str, Any] | None


class Extremes:
    """The rows with the smallest of some figures."""

    def __init__(self) -> None:
        self.found: list[tuple[float, int, Seen]] = []
        self.done = 0

    def add(self, figures: np.ndarray, describe: Callable[[int], Seen]) -> None:
        """Take what is smaller than what is there; NaN stands for rows that are not meant."""
        own = np.flatnonzero(~np.isnan(figures))
        for i in own[np.argsort(figures[own], kind="stable")[:_SHOWN]].tolist():
            if len(self.found) < _SHOWN or figures[i] < self.found[-1][0]:
                self.found.append((float(figures[i]), self.done + i, describe(i)))
                self.found.sort(key=lambda each: each[:2])
                del self.found[_SHOWN:]
        self.done += len(figures)

    @property
    def rows(self) -> list[Seen]:
        return [seen for *_, seen in self.found]


@dataclass
class Checked:
    """Predictions of rows, beside the truth where it is known."""

    classes: Sequence[str]
    noun: str = "row"
    n: int = 0
    result: Evaluation = field(init=False)
    strange: Extremes = field(default_factory=Extremes)
    uncertain: Extremes = field(default_factory=Extremes)
    mistaken: Extremes = field(default_factory=Extremes)  # the most certain mistakes

    def __post_init__(self) -> None:
        self.result = Evaluation(self.classes, self.noun)
        self._sure: list[np.ndarray] = []
        self._right: list[np.ndarray] = []

    def add(
        self,
        labels: Sequence[str | None],
        log_proba: np.ndarray,
        density: np.ndarray | None,
        describe: Callable[[int], tuple[str, Any, dict[str, Any] | None]],
    ) -> None:
        """Count some rows; `describe` says of one its name, the row for `explain`, its cells."""
        best = log_proba.argmax(axis=1)
        sure = np.exp(log_proba.max(axis=1))
        labels = labels or [None] * len(best)

        def seen(i: int) -> Seen:
            name, row, cells = describe(i)
            own = None if density is None else float(density[i])
            predicted = self.classes[int(best[i])]
            return Seen(name, labels[i], predicted, float(sure[i]), own, row, cells)

        known = np.array([label is not None for label in labels], dtype=bool)
        right = np.array([self.classes[k] == y for k, y in zip(best, labels, strict=True)])
        self.result.add(labels, log_proba)
        self._sure.append(sure[known])
        self._right.append(right[known])
        self.uncertain.add(sure, seen)
        self.mistaken.add(np.where(known & ~right, -sure, np.nan), seen)
        if density is not None:
            self.strange.add(density, seen)
        self.n += len(best)

    @property
    def answers(self) -> tuple[np.ndarray, np.ndarray]:
        """How probable each answer is, and whether it is right, of rows whose label is known."""
        return np.concatenate(self._sure), np.concatenate(self._right)
