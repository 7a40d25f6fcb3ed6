"""Choosing between ways to train by how they do on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from ..calibration import best_temperature
from ._input import by_class

MOST = 50_000  # rows that take part in choosing: more would hardly change the choice
ENOUGH = 200  # rows held out; where there are fewer, others are held out in turn


class Split(NamedTuple):
    """Rows to train on, by weight, and rows to judge by."""

    weights: np.ndarray  # (n,) zero for rows not to train on
    held: np.ndarray  # rows held out
    codes: np.ndarray  # place of the class of each of them
    held_weights: np.ndarray


def splits(codes: np.ndarray, weights: np.ndarray, fraction: float, rng) -> list[Split]:
    """Hold out a share of the rows, spread over the classes; again and again where rows are few.

    The only row of a class is never held out. None where there is nothing to hold out.
    """
    some = rng.permutation(np.flatnonzero((weights > 0) & (codes >= 0)))[:MOST]
    order = by_class(some, codes, rng)
    folds = max(round(1.0 / fraction), 2)
    fold = np.arange(len(order)) % folds
    fold[np.bincount(codes[order])[codes[order]] == 1] = -1
    wanted = min(-(-ENOUGH * folds // max(len(order), 1)), folds)
    found = []
    for each in range(wanted):
        held = order[fold == each]
        if not len(held):
            continue
        train = np.zeros(len(codes))
        train[order] = weights[order]
        train[held] = 0.0
        found.append(Split(train, held, codes[held], weights[held]))
    return found


class Mark(NamedTuple):
    """How a model did on held-out documents."""

    correct: np.ndarray
    losses: np.ndarray  # -ln p(y | x) of each, at the best temperature
    untempered: np.ndarray  # and at 1
    log_loss: float  # at the best temperature
    temperature: float

    def beats(self, other: Mark) -> bool:
        """By accuracy where the difference is beyond chance, else by log-loss where that is."""
        gain = self.correct.astype(np.float64) - other.correct
        if abs(gain.sum()) > np.sqrt(np.abs(gain).sum()):  # one standard error
            return bool(gain.sum() > 0)
        return _is_beyond_chance(other.losses - self.losses)

    @property
    def safe_temperature(self) -> float:
        """The best temperature where it does better than 1 beyond chance, else 1."""
        return self.temperature if _is_beyond_chance(self.untempered - self.losses) else 1.0


def _is_beyond_chance(gains: np.ndarray) -> bool:
    return bool(gains.sum() > np.sqrt((gains**2).sum()))


def mark(parts: list[Split], scores: list[np.ndarray]) -> Mark:
    """Judge by ``ln p(y, x)`` of the rows held out, of all parts together."""
    codes = np.concatenate([part.codes for part in parts])
    weights = np.concatenate([part.held_weights for part in parts])
    joint = np.concatenate(scores)
    temperature, log_loss = best_temperature(joint, codes, weights, 0.0, 1e-2)
    share = weights / weights.mean()
    tempered, untempered = (
        -share * log_softmax(t * joint, axis=1)[np.arange(len(codes)), codes]
        for t in (temperature, 1.0)
    )
    correct = joint.argmax(axis=1) == codes
    return Mark(correct, tempered, untempered, log_loss, temperature)


class Trial(NamedTuple):
    """A way to train, by the names of options, and its marks after each epoch."""

    way: dict[str, Any]
    marks: list[Mark]
    model: Any = None  # the last that was trained so

    @property
    def best_epoch(self) -> int:
        """The last, unless an earlier one was better beyond chance: there are more rows to come."""
        best = len(self.marks) - 1
        for epoch in range(best - 1, -1, -1):
            if self.marks[epoch].beats(self.marks[best]):
                best = epoch
        return best + 1

    @property
    def best(self) -> Mark:
        return self.marks[self.best_epoch - 1]

    def is_done(self, leader: Trial | None) -> bool:
        """Whether one more epoch is of no use: little was gained, or the leader is out of reach.

        Losses start from different places, so they are compared one epoch later than weightings.
        """
        epochs, now = len(self.marks), self.marks[-1]
        if leader is not None and len(leader.marks) >= epochs >= (
            2 if leader.way["loss"] == self.way["loss"] else 3
        ):
            then = leader.marks[epochs - 1]
            if then.correct.sum() > now.correct.sum() and then.log_loss < now.log_loss:
                return True
        if epochs < 3:
            return False
        before = self.marks[-3]
        gained = now.correct.sum() > before.correct.sum()
        return not gained and now.log_loss > 0.99 * before.log_loss

    def summary(self) -> dict[str, Any]:
        return self.way | {
            "epochs": len(self.marks),
            "temperature": self.best.temperature,
            "accuracy": float(self.best.correct.mean()),
            "log_loss": self.best.log_loss,
        }


def best_of(trials: list[Trial]) -> Trial:
    """The one that beats those before it and is not beaten by those after it."""
    best = trials[0]
    for trial in trials[1:]:
        if trial.best.beats(best.best):
            best = trial
    return best


def most_epochs(n_rows: int) -> int:
    """How many a trial may take: few where each sees many rows."""
    return int(np.clip(20_000 // max(n_rows, 1), 6, 20))


def try_out(
    way: dict[str, Any],
    parts: list[Split],
    leader: Trial | None,
    train: Callable[[Split, Callable[[Any], bool]], Any],
) -> Trial:
    """Train that way without each part, and mark the models after each epoch.

    ``train(part, after_epoch)`` trains a model, of which ``after_epoch(scores)`` is told the scores
    of the rows held out and says whether to stop. It stops when there is nothing more to gain; with
    several parts that is known only when all are trained.
    """
    trial, epochs, model = Trial(way, []), [], None
    for part in parts:
        scores: list[np.ndarray] = []
        epochs.append(scores)

        def after_epoch(found, scores=scores) -> bool:
            scores.append(found)
            if len(parts) > 1:
                return False
            trial.marks.append(mark(parts, [found]))
            return trial.is_done(leader)

        model = train(part, after_epoch)
    for each in zip(*epochs, strict=False) if len(parts) > 1 else ():
        trial.marks.append(mark(parts, list(each)))
        if trial.is_done(leader):
            break
    return trial._replace(model=model)
