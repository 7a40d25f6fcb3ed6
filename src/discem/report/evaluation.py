"""Evaluate predictions batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class ClassScore(NamedTuple):
    """The figures of one class; None for divisions by zero."""

    label: str
    precision: float | None
    recall: float | None
    f1: float
    support: int


class Evaluation:
    """Accuracy, errors and log-loss over labelled documents or rows; unlabelled ones are counted.

    A label unknown to the model counts as an error. It is left out of the log-loss, which would be
    infinite. `noun` names what is counted.

    Examples
    --------
    >>> result = Evaluation(["ham", "spam"])
    >>> result.add(["ham", "spam", None], np.log([[0.9, 0.1], [0.8, 0.2], [0.5, 0.5]]))
    >>> result.accuracy, result.unlabelled, result.confusions()
    (0.5, 1, [('spam', 'ham', 1)])
    """

    def __init__(self, classes: Sequence[str], noun: str = "document"):
        self.classes, self.noun = list(classes), noun
        self.unlabelled = 0
        self._places = {label: place for place, label in enumerate(self.classes)}
        self._pairs: Counter[tuple[str, str]] = Counter()  # (label, prediction)
        self._loss, self._weighed = 0.0, 0

    def add(self, labels: Sequence[str | None], log_proba: np.ndarray) -> None:
        """Add a batch, given ``ln p(y | x)`` of its documents."""
        best = log_proba.argmax(axis=1)
        for label, row, place in zip(labels, log_proba, best, strict=True):
            if label is None:
                self.unlabelled += 1
                continue
            self._pairs[label, self.classes[place]] += 1
            if label in self._places and row[self._places[label]] > -np.inf:
                self._loss -= float(row[self._places[label]])
                self._weighed += 1

    @property
    def documents(self) -> int:
        """The number of labelled documents or rows."""
        return self._pairs.total()

    @property
    def accuracy(self) -> float:
        return sum(n for (label, found), n in self._pairs.items() if label == found) / max(
            self.documents, 1
        )

    @property
    def unknown(self) -> dict[str, int]:
        """The labels unknown to the model, and their counts."""
        counts: Counter[str] = Counter()
        for (label, _), n in self._pairs.items():
            if label not in self._places:
                counts[label] += n
        return dict(counts.most_common())

    @property
    def log_loss(self) -> float | None:
        return self._loss / self._weighed if self._weighed else None

    @property
    def macro_f1(self) -> float:
        scores = self.by_class()
        return sum(score.f1 for score in scores) / max(len(scores), 1)

    def by_class(self) -> list[ClassScore]:
        """Return the figures of every class that occurs or was predicted, by name."""
        support: Counter[str] = Counter()
        predicted: Counter[str] = Counter()
        for (label, found), n in self._pairs.items():
            support[label] += n
            predicted[found] += n
        return [
            ClassScore(
                label,
                self._pairs[label, label] / predicted[label] if predicted[label] else None,
                self._pairs[label, label] / support[label] if support[label] else None,
                2 * self._pairs[label, label] / (support[label] + predicted[label]),
                support[label],
            )
            for label in sorted(support.keys() | predicted.keys())
        ]

    def count(self, label: str, found: str) -> int:
        """Return how often a label was predicted as `found`."""
        return self._pairs[label, found]

    def confusions(self, n: int | None = None) -> list[tuple[str, str, int]]:
        """Return the most frequent errors: label, prediction, count."""
        wrong = Counter({pair: n for pair, n in self._pairs.items() if pair[0] != pair[1]})
        return [(label, found, times) for (label, found), times in wrong.most_common(n)]

    def summary(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return {
            f"{self.noun}s": self.documents,
            "unlabelled": self.unlabelled,
            "accuracy": self.accuracy,
            "log_loss": self.log_loss,
            "macro_f1": self.macro_f1,
            "classes": [score._asdict() for score in self.by_class()],
            "confusions": [
                {"label": label, "predicted": found, "count": times}
                for label, found, times in self.confusions()
            ],
            "unknown_labels": self.unknown,
        }


class NumberEvaluation:
    """Errors and log density over rows with a known number; other rows are only counted.

    Examples
    --------
    >>> from discem import TableRegressor
    >>> X, y = np.arange(40.0)[:, None], np.arange(40.0)
    >>> model = TableRegressor(random_state=0, n_components=1).fit(X, y)
    >>> result = NumberEvaluation()
    >>> result.add([*y[:3], None], model.predict_dist(X[:4]))
    >>> result.documents, result.unlabelled, result.rmse < 1.0
    (3, 1, True)
    """

    def __init__(self, noun: str = "row"):
        self.noun, self.documents, self.unlabelled = noun, 0, 0
        self._sums = np.zeros(3)  # of squares, absolute errors, log densities
        self._inside, self._y = 0, np.zeros(3)  # the count, mean and squares about it, of y

    def add(self, answers: Sequence[float | None], found: Any) -> None:
        """Add a batch, given the predicted distributions of its rows."""
        known = np.array([answer is not None for answer in answers], dtype=bool)
        self.unlabelled += int((~known).sum())
        if not known.any():
            return
        y = np.array([answer for answer in answers if answer is not None], dtype=np.float64)
        found = found[known]
        off = found.mean - y
        log_p = np.maximum(found.log_prob(y), -1e6)
        self._sums += [(off**2).sum(), np.abs(off).sum(), log_p.sum()]
        low, high = found.quantile(0.05), found.quantile(0.95)
        self._inside += int(((low <= y) & (y <= high)).sum())
        self.documents += len(y)
        n, mean, squares = self._y
        gap, total = y.mean() - mean, n + len(y)
        squares += ((y - y.mean()) ** 2).sum() + gap**2 * n * len(y) / total
        self._y = np.array([total, mean + gap * len(y) / total, squares])

    @property
    def rmse(self) -> float:
        return float(np.sqrt(self._sums[0] / max(self.documents, 1)))

    @property
    def mae(self) -> float:
        return float(self._sums[1] / max(self.documents, 1))

    @property
    def log_density(self) -> float:
        return float(self._sums[2] / max(self.documents, 1))

    @property
    def coverage(self) -> float:
        """The share of rows whose number is within the 90 % interval."""
        return self._inside / max(self.documents, 1)

    @property
    def r2(self) -> float | None:
        """The share of the variance that is explained; None without variance."""
        return 1.0 - float(self._sums[0] / self._y[2]) if self._y[2] > 0.0 else None

    def summary(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        figures = {"rmse": self.rmse, "r2": self.r2, "mae": self.mae}
        figures |= {"log_density": self.log_density, "coverage": self.coverage}
        return {f"{self.noun}s": self.documents, "unlabelled": self.unlabelled} | figures
