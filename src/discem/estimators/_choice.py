"""Choose between ways to train, or weigh them, by their scores on held-out rows."""

from __future__ import annotations

import time
from collections import UserList
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from .._checks import check_plain, demand
from .._kinds import savable
from ..calibration import best_temperature
from ..progress import Choosing
from ._folds import Split
from ._views import choice_view

Options = dict[str, Any]
Candidates = Iterable[Options] | Generator[Options, "Result", None]

_ROUNDS = 100  # of EM
_PSEUDO = 5.0  # rows that each candidate is credited with before any is seen
LEAST = -700.0  # of a logarithm of a probability


class Mark(NamedTuple):
    """The score of a model on held-out rows, each maybe shown in several views."""

    correct: np.ndarray  # (views, n)
    losses: np.ndarray  # -ln p(y | x), at the best temperature, by weight
    untempered: np.ndarray  # and at 1
    weights: np.ndarray  # (n,) of the rows, 1 on average
    log_loss: float  # at the best temperature
    temperature: float

    @property
    def figures(self) -> Options:
        """Return the figures for `choice_`."""
        accuracy = float(self.correct.mean())
        found = {"log_loss": self.log_loss, "accuracy": accuracy}
        return found | {"temperature": self.temperature, "held_out": len(self.weights)}

    @property
    def safe_temperature(self) -> float:
        """Return the best temperature if it is significantly better than 1, else 1."""
        return self.temperature if _is_beyond_chance(self.untempered - self.losses) else 1.0


def _is_beyond_chance(gains: np.ndarray) -> bool:
    return bool(gains.sum() > np.sqrt((gains**2).sum()))


def more_accurate(one: Mark, other: Mark) -> bool:
    """Better by accuracy where the difference is beyond chance, else by log-loss where that is.

    What is worse in accuracy by more than half a standard error is not taken for its log-loss.
    """
    gains = one.correct.astype(np.float64) - other.correct
    gain, error = gains.sum(), np.sqrt(np.abs(gains).sum())
    if abs(gain) > error:
        return bool(gain > 0)
    return bool(gain >= -0.5 * error) and _is_beyond_chance(other.losses - one.losses)


def less_surprised(one: Mark, other: Mark) -> bool:
    """Return whether the log-loss is better by more than half its standard error."""
    gains = (other.losses - one.losses).mean(axis=0)
    return bool(gains.sum() > 0.5 * np.sqrt((gains**2).sum()))


def is_behind(one: Mark, other: Mark, errors: float = 1.0) -> bool:
    """Return whether the log-loss is worse by some standard errors, on the rows both have."""
    n = min(one.losses.shape[1], other.losses.shape[1])
    lost = (one.losses[:, :n] - other.losses[:, :n]).mean(axis=0)
    return bool(lost.sum() > errors * np.sqrt((lost**2).sum()))


def mark(parts: list[Split], scores: list[np.ndarray]) -> Mark:
    """Score ``ln p(y, x)`` of the held-out rows of all parts together.

    The scores of a part have the shape (views, n, n_classes).
    """
    codes = np.concatenate([part.codes for part in parts])
    weights = np.concatenate([part.held_weights for part in parts])
    joint = np.concatenate(scores, axis=1)
    views, n, K = joint.shape
    temperature, log_loss = best_temperature(
        joint.reshape(-1, K), np.tile(codes, views), np.tile(weights, views), 0.0, 1e-2, views
    )
    weights = weights / weights.mean()
    tempered, untempered = (
        -weights * log_softmax(t * joint, axis=2)[:, np.arange(n), codes]
        for t in (temperature, 1.0)
    )
    correct = joint.argmax(axis=2) == codes
    return Mark(correct, tempered, untempered, weights, log_loss, temperature)


def weigh(marks: list[Mark], pseudo: float = _PSEUDO, rounds: int = _ROUNDS) -> np.ndarray:
    """Weights of candidates in the arithmetic mean of their ``p(y | x)``, by EM.

    All marks are of the same rows in the same views; the views of a row count as one row together.
    The probabilities are those at the best temperature of each candidate.
    """
    weights = marks[0].weights
    share = weights / len(marks[0].losses)
    log_p = np.stack([np.maximum(-each.losses / weights, LEAST) for each in marks])
    p = np.exp(log_p - log_p.max(axis=0))
    found = np.full(len(marks), 1.0 / len(marks))
    for _ in range(rounds):
        joint = found[:, None, None] * p
        counts = (joint / joint.sum(axis=0) * share).sum(axis=(1, 2)) + pseudo
        found = counts / counts.sum()
    return found


@dataclass(eq=False)
class Result:
    """A way to train, with its options and its scores."""

    options: Options
    marks: list[Mark] = field(default_factory=list)  # after each epoch, or at the end
    models: list[Any] = field(default_factory=list)  # of each part, as they ended
    best_epoch: int = 1  # by these marks
    epochs: int = 0
    seconds: float = 0.0
    complete: bool = True  # whether it was trained without each of the parts, and not left before

    @property
    def mark(self) -> Mark:
        """The best score."""
        return self.marks[self.best_epoch - 1]

    def settle(self, better: Callable[[Mark, Mark], bool]) -> None:
        """Choose the last epoch, unless an earlier one was better: the final fit has more rows."""
        self.best_epoch = len(self.marks)
        for epoch in range(len(self.marks) - 1, 0, -1):
            if better(self.marks[epoch - 1], self.mark):
                self.best_epoch = epoch

    def is_done(self, leader: Result | None) -> bool:
        """Whether one more epoch is of no use: little was gained, or the leader is out of reach.

        Losses start from different places, so they are compared one epoch later than weightings.
        """
        epochs, now = len(self.marks), self.marks[-1]
        if leader is not None and len(leader.marks) >= epochs >= (
            2 if leader.options.get("loss") == self.options.get("loss") else 3
        ):
            then = leader.marks[epochs - 1]
            if then.correct.sum() > now.correct.sum() and then.log_loss < now.log_loss:
                return True
        if epochs < 3:
            return False
        before = self.marks[-3]
        gained = now.correct.sum() > before.correct.sum()
        return not gained and now.log_loss > 0.99 * before.log_loss

    def record(self, weight: float) -> dict[str, Any]:
        """What there is to say of it."""
        done = {"epochs": self.epochs, "seconds": self.seconds}
        return self.options | self.mark.figures | done | {"weight": weight, "taken": weight > 0}


@savable
class Choice(UserList):
    """The candidates that were tried, in order: a dict for each candidate.

    It has the options of the candidate; `log_loss`, `accuracy` and `temperature` on held-out rows,
    and their number (`held_out`); `epochs` and `seconds`; `weight`, 1 for a chosen candidate; and
    whether it was `taken`. A candidate far behind on the first parts is not trained without the
    others. Files do not keep the seconds.
    """

    def __repr__(self) -> str:
        if not self:
            return "nothing was tried"
        lines = [[*self[0]]] + [[_shown(each.get(name)) for name in self[0]] for each in self]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return choice_view(self)

    def to_fields(self) -> dict[str, Any]:
        """What goes to a file: the same training makes the same one."""
        return {"records": [{k: v for k, v in each.items() if k != "seconds"} for each in self]}

    @classmethod
    def from_fields(cls, records: list[dict[str, Any]]) -> Choice:
        return cls(records)


def check_choice(choice: Any) -> None:
    """Validate a choice, which may come from any file."""
    demand(isinstance(choice, Choice), "choice_ is no record of a choice")
    demand(all(isinstance(each, dict) for each in choice), "choice_ holds what is no record")
    check_plain("choice_", choice.data)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Chooser:
    """Tries candidates on rows held out, and keeps the best one and a record of all.

    Parameters
    ----------
    parts : list of Split
    train : function of (options, part, watch)
        Trains a model on the rows of the part and returns it. It may call ``watch(model)`` after
        each epoch, which says whether to stop; else the model is judged at the end.
    score : function of (options, part, model)
        ``ln p(y, x)`` of the rows of the part held out, as (n, n_classes), or (views, n, n_classes)
        if the model is shown several views of them.
    better : function of two marks
        Whether the first is so much better that it takes the place of the second.
    keep : function of (options, model, mark or None)
        Is told of each model that is the best so far, of the first one as long as it is trained,
        and so lets it be what an interruption leaves.
    hopeless : function of two marks, optional
        Whether the first, of some parts, is so far behind the second that a candidate need not be
        trained without the other parts.
    of : int
        How many candidates there are, at most.
    verbose : int
        1 shows progress.
    all_models : bool
        Whether all results keep the models of their parts, for somebody to average, or the best.
    judge : function of (parts, scores)
        The mark of a candidate, from the scores of each part; by default `mark`.
    """

    def __init__(
        self,
        parts: list[Split],
        train: Callable[[Options, Split, Callable[[Any], bool]], Any],
        score: Callable[[Options, Split, Any], np.ndarray],
        better: Callable[[Mark, Mark], bool],
        keep: Callable[[Options, Any, Any], None],
        *,
        of: int,
        hopeless: Callable[[Mark, Mark], bool] | None = None,
        verbose: int = 0,
        all_models: bool = False,
        judge: Callable[[list[Split], list[np.ndarray]], Any] | None = None,
    ):
        self.parts, self.train, self.score = parts, train, score
        self.better, self.keep, self.all_models = better, keep, all_models
        self.judge = judge or mark
        self.hopeless = hopeless
        self.progress = Choosing(verbose, of)
        self.results: list[Result] = []
        self.best: Result | None = None  # that is kept

    @property
    def line(self) -> str:
        """How far the choice has come, in a line."""
        return self.progress.line

    @property
    def held_out(self) -> int:
        """How many rows are judged by."""
        return sum(len(part.held) for part in self.parts)

    def best_of(self, candidates: Candidates, leader: Result | None = None) -> Result:
        """The candidate, or the leader, that beats those before it and none after it beats.

        A generator of candidates is sent the best result so far for each that it yields.
        """
        best, each = leader, iter(candidates)
        following: Any = getattr(each, "send", lambda _: next(each))
        options = next(each)
        while True:
            result = self._try(options, best)
            if best is None or (result.complete and self.better(result.mark, best.mark)):
                best = self.best = result
                self.keep(best.options, best.models[-1], best.mark)
            for other in [] if self.all_models else self.results:
                other.models = other.models if other in (best, leader) else []
            self.progress.end(best.mark.log_loss)
            try:
                options = following(best)
            except StopIteration:
                self.progress.close()
                return best

    def choice(self, weights: np.ndarray | None = None) -> Choice:
        """The record of all results; without weights, the best is taken."""
        if weights is None:
            weights = np.array([float(result is self.best) for result in self.results])
        pairs = zip(self.results, weights.tolist(), strict=True)
        return Choice([result.record(weight) for result, weight in pairs])

    def _try(self, options: Options, leader: Result | None) -> Result:
        """Train without each part, and mark the models after each epoch.

        It stops when there is nothing more to gain; with several parts that is known only when all
        are trained.
        """
        self.progress.begin()
        began, result, scores = time.perf_counter(), Result(options), []
        for part in self.parts:
            seen: list[np.ndarray] = []
            scores.append(seen)
            watch = self._watch(result, part, seen, leader)
            model = self.train(options, part, watch)
            if not seen:
                watch(model)
            result.models.append(model)
            if leader and self.hopeless and len(scores) < len(self.parts):
                so_far = self.judge(self.parts[: len(scores)], [own[-1] for own in scores])
                if self.hopeless(so_far, leader.mark):
                    result.complete = False
                    break
        for each in zip(*scores, strict=False) if len(self.parts) > 1 else ():
            result.marks.append(self.judge(self.parts[: len(scores)], list(each)))
            if result.is_done(leader):
                break
        result.settle(self.better)
        watched = max(map(len, scores)) > 1
        result.epochs = len(result.marks) if watched else max(m.n_iter_ for m in result.models)
        result.seconds = time.perf_counter() - began
        self.results.append(result)
        return result

    def _watch(
        self, result: Result, part: Split, seen: list[np.ndarray], leader: Result | None
    ) -> Callable[[Any], bool]:
        """What looks at a model after an epoch, and says whether to stop."""
        first, alone = not self.results, len(self.parts) == 1

        def watch(model: Any) -> bool:
            if first:
                self.keep(result.options, model, None)
            scores = self.score(result.options, part, model)
            seen.append(scores.reshape(-1, *scores.shape[-2:]))
            if not (first or alone):
                return False
            found = self.judge([part], seen[-1:])
            if first:
                self.keep(result.options, model, found)
            if not alone:
                return False
            result.marks.append(found)
            return result.is_done(leader)

        return watch


def most_epochs(n_rows: int) -> int:
    """Return the most epochs of a candidate: few if each sees many rows."""
    return int(np.clip(20_000 // max(n_rows, 1), 6, 20))


def of_all_classes(scores: np.ndarray, classes: np.ndarray, all_classes: np.ndarray) -> np.ndarray:
    """Return the scores of a model that knows some of the classes, for all classes."""
    found = np.full((*scores.shape[:-1], len(all_classes)), -np.inf)
    found[..., np.searchsorted(all_classes, classes)] = scores
    return found
