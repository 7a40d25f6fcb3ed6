"""What an engine asks of a model; each model registers its own answer.

The first part is compiled with the engine. A model with latent variables finds their posterior when
it scores a row and needs it again when the row moves the statistics: it keeps it in the room, in
the slot of the row. `settle` and `add_to_average` are asked of models as they are of families. The
second part is plain Python. Every model has `features`, the state of its family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from .._compile import generic
from ..exceptions import ModelFileError

# --- compiled ------------------------------------------------------------------------------------


@generic
def n_classes(model):
    """Number of classes K."""


@generic
def write_scores(model, rows, i, slot, a, room):
    """Write ``a[k] = ln p(y=k, x_i)`` for every class k, what is not observed summed out."""


@generic
def find_leverage(model, rows, i, slot, r, floor, room):
    """Leave in row LEVERAGE of ``room.numbers``, by class, the change of a_k per weight r_k.

    That is its derivative by r_k as `update` would apply it, or less where the step is large; 0
    where there is no need of damping. Row i was the last to be scored, in this slot; `floor` is as
    for `update`.
    """


@generic
def gather_row(model, rows, i, slot, r, room):
    """Let the statistics ``sum_k r_k E[s(k, z, x_i)]`` of a row wait in the room for `settle`.

    Row i was the last to be scored in this slot.
    """


@generic
def update(model, rows, i, slot, r, decay, pull, floor, projection, room):
    """Gather one row and settle, at one go.

    mu <- mu + sum_k r_k E[s(k, z, x_i)] - decay mu + pull (alpha - nu mu), kept in its domain by
    the projection. Returns how many factors had their step shortened.
    """


# --- plain ---------------------------------------------------------------------------------------


@singledispatch
def check(model: Any, n_classes: int, n_features: Any) -> None:
    """Refuse a model that is not as training leaves one; it may come from anywhere."""
    raise ModelFileError(f"it holds a {type(model).__name__} where a model belongs")


@singledispatch
def make_room(model: Any, rows: Any, batch: int) -> Any:
    """Scratch memory to score and update the given rows, with `batch` slots."""
    raise NotImplementedError


@singledispatch
def work_per_cell(model: Any) -> float:
    """How many numbers a stored cell of a row is held against: a measure of time."""
    return float(len(class_counts(model)))


@singledispatch
def class_counts(model: Any) -> np.ndarray:
    """The expected counts of the classes, (K,)."""
    raise NotImplementedError


@singledispatch
def averages(model: Any) -> bool:
    """Whether a running average is kept: the state is the only record of it."""
    raise NotImplementedError


@singledispatch
def averaged(model: Any) -> Any:
    """The model at its running average, of which it keeps none; itself where there is none."""
    raise NotImplementedError


@singledispatch
def with_average(model: Any, past: Any, weight: float) -> Any:
    """The same state, whose running average is so far `past` (None: none is kept)."""
    raise NotImplementedError


@singledispatch
def with_classes(model: Any, order: np.ndarray, mass: float) -> Any:
    """Arrange the classes in `order`; -1 is a new class, at the prior's centre with `mass`."""
    raise NotImplementedError


@singledispatch
def with_features(model: Any, n_features: Any) -> Any:
    """Add features that have not been met so far."""
    raise NotImplementedError


@singledispatch
def penalty(model: Any) -> float:
    """-ln of the prior, up to a constant: what training adds to the sum of the losses."""
    raise NotImplementedError


@singledispatch
def mean_state(first: Any, states: list[Any], shares: np.ndarray, run: Callable) -> Any:
    """The state of the mean expected statistics, of models like `first`, and of their averages."""
    raise NotImplementedError


def mean_of(states: Sequence[Any], shares: Any, run: Callable = map) -> Any:
    """The mean of states that were trained apart, and of their averages.

    It is taken over expected statistics, whose set is convex: a mean of states is a state.

    Parameters
    ----------
    states : sequence of models of one kind, with the same classes, features and units
    shares : array-like of the same length
        How much each has to say, such as the rows it was trained on.
    run : callable
        ``run(function, pieces)`` does the work, as `map` does, or as a pool of threads does.
    """
    share = np.asarray(shares, dtype=np.float64)
    return mean_state(states[0], list(states), share / share.sum(), run)
