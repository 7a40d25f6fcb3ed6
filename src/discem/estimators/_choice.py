"""Choosing between ways to train by how they do on held-out rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..calibration import best_temperature
from ._input import hold_out

MOST = 50_000  # rows that take part in choosing: more would hardly change the choice


class Split(NamedTuple):
    """Rows to train on, by weight, and rows to judge by."""

    weights: np.ndarray  # (n,) zero for rows not to train on
    held: np.ndarray  # rows held out
    codes: np.ndarray  # place of the class of each of them
    held_weights: np.ndarray

    def mark(self, scores: np.ndarray) -> Mark:
        """Judge by ``ln p(y, x)`` of the rows held out."""
        temperature, log_loss = best_temperature(scores, self.codes, self.held_weights, 0.0, 1e-2)
        return Mark(scores.argmax(axis=1) == self.codes, log_loss, temperature)


def split(codes: np.ndarray, weights: np.ndarray, fraction: float, rng) -> Split | None:
    """Hold out a share of each class; None if the classes are too small for that."""
    some = np.zeros(len(codes))
    some[rng.permutation(len(codes))[:MOST]] = 1.0
    train = some * weights
    held = hold_out(codes, train, fraction, rng)
    if not len(held):
        return None
    train[held] = 0.0
    return Split(train, held, codes[held], weights[held])


class Mark(NamedTuple):
    """How a model did on held-out documents."""

    correct: np.ndarray
    log_loss: float  # at the best temperature
    temperature: float

    def beats(self, other: Mark) -> bool:
        """By accuracy where the difference is beyond chance, else by log-loss."""
        gain = self.correct.astype(np.float64) - other.correct
        if abs(gain.sum()) > np.sqrt(np.abs(gain).sum()):  # one standard error
            return bool(gain.sum() > 0)
        return self.log_loss < other.log_loss


class Trial(NamedTuple):
    """A way to train, and its marks after each epoch."""

    loss: Any
    weighting: str
    model: Any
    marks: list[Mark]

    @property
    def best(self) -> Mark:
        return min(self.marks, key=lambda mark: mark.log_loss)

    def is_done(self, leader: Trial | None) -> bool:
        """Whether one more epoch is of no use: little was gained, or the leader is out of reach.

        Losses start from different places, so they are compared one epoch later than weightings.
        """
        epochs, now = len(self.marks), self.marks[-1]
        if leader is not None and len(leader.marks) >= epochs >= (
            2 if leader.loss == self.loss else 3
        ):
            then = leader.marks[epochs - 1]
            if then.correct.sum() > now.correct.sum() and then.log_loss < now.log_loss:
                return True
        return epochs > 2 and now.log_loss > 0.99 * self.marks[-3].log_loss

    def summary(self) -> dict[str, Any]:
        return {
            "loss": self.loss,
            "weighting": self.weighting,
            "epochs": len(self.marks),
            "temperature": self.best.temperature,
            "accuracy": float(self.best.correct.mean()),
            "log_loss": self.best.log_loss,
        }
