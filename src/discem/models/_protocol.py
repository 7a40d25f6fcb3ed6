"""What an engine asks of a model; each model registers its own answer.

The first part is compiled with the engine. A model with latent variables finds their posterior when
it scores a row and needs it again when the row moves the statistics: it keeps it in the room, in
the slot of the row. The second part is plain Python.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from .._compile import generic

# --- compiled ------------------------------------------------------------------------------------


@generic
def n_classes(model):
    """Number of classes K."""


@generic
def scores(model, rows, i, slot, a, room):
    """Write ``a[k] = ln p(y=k, x_i)`` for every class k, what is not observed summed out.

    Row LEVERAGE of ``room.numbers`` gets, by class, the derivative of a_k by the weight r_k that
    `update` would apply, or 0 where there is no need of damping.
    """


@generic
def update(model, rows, i, slot, r, decay, pull, floor, projection, room):
    """Move the statistics: mu <- mu + sum_k r_k E[s(k, z, x_i)] - decay mu + pull (alpha - nu mu).

    Row i was the last to be scored in this slot. The projection keeps mu in its domain. Returns how
    many factors had their step shortened.
    """


@generic
def remember(model, weight):
    """Let the current statistics enter their running average with `weight`."""


# --- plain ---------------------------------------------------------------------------------------


@singledispatch
def make_room(model: Any, rows: Any, batch: int) -> Any:
    """Scratch memory to score and update the given rows, with `batch` slots."""
    raise NotImplementedError


@singledispatch
def class_counts(model: Any) -> np.ndarray:
    """The expected counts of the classes, (K,)."""
    raise NotImplementedError


@singledispatch
def averaged(model: Any) -> Any:
    """The running average of the statistics."""
    raise NotImplementedError


@singledispatch
def with_classes(model: Any, order: np.ndarray, mass: float) -> Any:
    """Arrange the classes in `order`; -1 is a new class, at the prior's centre with `mass`."""
    raise NotImplementedError


@singledispatch
def with_features(model: Any, n_features: int) -> Any:
    """Add features that have not been met so far."""
    raise NotImplementedError


@singledispatch
def penalty(model: Any) -> float:
    """-ln of the prior, up to a constant: what training adds to the sum of the losses."""
    raise NotImplementedError
