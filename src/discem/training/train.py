"""Training: epochs, their order, when to stop, the best model, history, interruption.

This module decides what happens from epoch to epoch. The mathematics is elsewhere: a `Learner` owns
a model in training and lets an engine run the one update over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engines import Data, Shards
from ..engines.sequential import span
from ..exceptions import warn
from ..progress import Progress
from .guard import Guard, Patience
from .learner import Learner, Record
from .whole import descend

_FEW = 4000  # rows, after which training may be judged; or epochs, where rows are few
_SOME = 20


@dataclass(frozen=True)
class Plan:
    """How long to train, and which callback to call."""

    epochs: int
    tol: float | None = None  # stop when less than this is left to gain; None: take all epochs
    patience: int = 10  # epochs in a row with less than `tol` to gain before training stops
    verbose: int = 0
    callback: Callable[[Record], bool] | None = None  # returns whether to stop
    solved: bool = False  # the start is the optimum: measure it, without learning
    guarded: bool = True  # return to an earlier state and shorten the steps if they diverge
    hide: Any = None  # rows, rng -> these rows, some cells missing
    whole: bool = False  # take steps of all rows at once, with a line search
    late: bool = False  # average the states of the second half only; the mean is what is left


def train(
    learner: Learner,
    data: Data,
    rows: np.ndarray,
    held: np.ndarray,
    plan: Plan,
    rng: Any,
    shards: Shards | None = None,
) -> None:
    """Train on `rows` for some epochs; with `held` rows, keep the model that is best on them.

    With `shards`, training uses the rows on workers, and `rows` represent them in all judgements.

    With `plan.hide`, each epoch hides other cells of the rows; the objective is judged with cells
    hidden once and for all. After an interruption the learner keeps what it has learnt so far.
    """
    if plan.whole and shards is None and not plan.solved:
        _train_whole(learner, data, rows, held, plan, rng)
        return
    passes = data  # over these rows
    if shards is None and not plan.solved and learner.rule.is_large:
        passes = data._replace(rows=learner.state.family.lightened(data.rows))
    light = passes.rows is not data.rows
    with learner.in_single_precision() if light else nullcontext():
        _train_in_passes(learner, data, passes, rows, held, plan, rng, shards)


def _train_in_passes(
    learner: Learner, data: Data, passes: Data, rows: np.ndarray, held: np.ndarray,
    plan: Plan, rng: Any, shards: Shards | None,
) -> None:  # fmt: skip
    """Train with `passes` over the rows, which may be less precise than the data."""
    epochs = 1 if plan.solved else plan.epochs
    hide, complete = plan.hide, data
    if hide is not None:
        data = passes = complete._replace(rows=hide(complete.rows, rng))
    if shards is not None:
        shards.hide = hide
    n_rows = len(rows) if shards is None or plan.solved else shards.n_rows
    progress, guard = Progress(plan.verbose, epochs, n_rows), Guard(learner, data, rows, plan)
    patience = Patience(plan.tol, plan.patience, min(_FEW / max(len(rows), 1), _SOME))
    kept, best, done, stopped = None, np.inf, False, False
    with learner.engine.holding(passes):
        while not (done or stopped) and patience.epochs < epochs:
            if plan.late and 2 * patience.epochs >= epochs:
                learner.average()
            seen: Any = passes if shards is None or plan.solved else shards
            order = seen.shuffled(rows, rng)
            if seen is passes and hide is not None:
                seen = complete._replace(rows=hide(complete.rows, rng))
            pass_over = learner.look if plan.solved else learner.epoch
            record = pass_over(seen, order, progress.rows)
            if shards is not None and seen is shards:
                record |= shards.record
            if guard.watch(record):
                kept, best = None, np.inf
                patience.forget()
            if len(held):
                record |= learner.measure(complete, held, "validation_")
                if record["validation_loss"] < best:
                    kept, best = learner.snapshot(), record["validation_loss"]
                done = patience.ends(record["validation_loss"])
            elif "objective" in record:  # the objective of the averaged state, which is smooth
                done = patience.ends_calmly(record["objective"])
            else:
                done = patience.ends(patience.calm(record["loss"]))
            progress.epoch(record)
            stopped = plan.callback is not None and plan.callback(record)
    if kept is not None:
        learner.restore(kept)
    progress.close(done or plan.solved)
    guard.end(-np.inf if len(held) else record.get("objective", -np.inf))
    if plan.late:  # a stream continues from here
        learner.accept(learner.model, 0)
    if plan.tol is not None and not (done or stopped or plan.solved or guard.failed):
        _warn_of_the_end(plan.epochs)


def _train_whole(
    learner: Learner, complete: Data, rows: np.ndarray, held: np.ndarray, plan: Plan, rng: Any
) -> None:
    """Train with steps of all rows. They need no guard, as no step ends above its start."""
    data = complete.take(span(rows))
    progress = Progress(plan.verbose, plan.epochs, len(rows))
    kept, best, begun = None, np.inf, learner.epochs
    stopped, done, hope = False, False, np.inf  # what is left to gain
    for last, steps in descend(learner, data, plan.hide, rng, plan.tol, plan.epochs):
        patience = Patience(plan.tol, plan.patience)
        for record, left in () if stopped else steps:
            hope = left if last else np.inf
            if len(held):
                record |= learner.measure(complete, held, "validation_")
                if record["validation_loss"] < best:
                    kept, best = learner.snapshot(), record["validation_loss"]
                done = patience.ends(record["validation_loss"])
            progress.epoch(record)
            stopped = plan.callback is not None and plan.callback(record)
            if done or stopped:
                break
    if kept is not None:
        learner.restore(kept)
    converged = done or (plan.tol is not None and hope <= plan.tol)
    progress.close(converged)
    if plan.tol is None or converged or stopped:
        return
    taken = learner.epochs - begun
    if taken < plan.epochs:
        warn(
            f"training stalled after {taken} steps, at the limit of precision: some rows are so "
            "much alike that a component of them has next to no variance",
            ConvergenceWarning,
        )
    else:
        _warn_of_the_end(plan.epochs)


def _warn_of_the_end(epochs: int) -> None:
    warn(
        f"training ended at max_iter={epochs}, not where it stopped getting better; "
        "allow more epochs, or set tol=None if these are enough",
        ConvergenceWarning,
    )
