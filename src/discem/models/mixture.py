"""Mixtures: p(y, x) = sum_c p(y, c) prod_d p(x_d | y, c), a naive Bayes over (class, component).

The component is never observed. Its posterior within a class is exact, and shares the weight of the
class among its components; then they move as the classes of naive Bayes do.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any, NamedTuple

import numpy as np

from .._checks import check_array, demand
from .._compile import helper
from .._kinds import savable
from ..families import LEVERAGE, add_to_average, family_of, make_class_room, settle
from ..targets import log_sum_exp
from ._protocol import (
    averaged,
    averages,
    check,
    class_counts,
    find_leverage,
    gather_row,
    make_room,
    mean_state,
    n_classes,
    penalty,
    update,
    with_average,
    with_classes,
    with_features,
    work_per_cell,
    write_scores,
)
from .naive_bayes import NaiveBayes


@savable
class Mixture(NamedTuple):
    parts: NaiveBayes  # over all components, those of a class side by side
    first: np.ndarray  # (K + 1,) where the components of each class begin

    @property
    def features(self) -> Any:
        """The factors of all components."""
        return self.parts.features


class MixtureRoom(NamedTuple):
    numbers: np.ndarray  # by class, of which the engine reads LEVERAGE
    parts: Any  # the room of the components
    joint: np.ndarray  # (M,) ln p(y, c, x) of the row scored last
    posterior: np.ndarray  # (batch, M) p(c | y, x) by slot
    weights: np.ndarray  # (M,)


def perturbed(model: Mixture, components: np.ndarray, rng: Any) -> Mixture:
    """Make components differ that would stay alike for ever."""
    features = family_of(model.features).perturbed(model.features, components, rng)
    return model._replace(parts=model.parts._replace(features=features))


@check.register
def _check(model: Mixture, n_classes: int, n_features: Any) -> None:
    check_array("first", model.first, (n_classes + 1,), least=0, dtype=np.int64)
    begins = model.first[0] == 0 and (np.diff(model.first) > 0).all()
    demand(begins, "some classes have no components")
    demand(isinstance(model.parts, NaiveBayes), "its components are not those of a mixture")
    check(model.parts, int(model.first[-1]), n_features)


@make_room.register
def _make_room(model: Mixture, rows, batch: int) -> MixtureRoom:
    K, M = len(model.first) - 1, int(model.first[-1])
    numbers, parts = make_class_room(K).numbers, make_room(model.parts, rows, batch)
    return MixtureRoom(numbers, parts, np.zeros(M), np.zeros((batch, M)), np.zeros(M))


@work_per_cell.register
def _work_per_cell(model: Mixture) -> float:
    return work_per_cell(model.parts)


@class_counts.register
def _class_counts(model: Mixture) -> np.ndarray:
    return np.add.reduceat(class_counts(model.parts), model.first[:-1])


@averages.register
def _averages(model: Mixture) -> bool:
    return averages(model.parts)


@averaged.register
def _averaged(model: Mixture) -> Mixture:
    return model._replace(parts=averaged(model.parts))


@with_average.register
def _with_average(model: Mixture, past: Mixture | None, weight: float) -> Mixture:
    old = None if past is None else past.parts
    return model._replace(parts=with_average(model.parts, old, weight))


@with_classes.register
def _with_classes(model: Mixture, order: np.ndarray, mass: float) -> Mixture:
    """A new class has as many components as the largest has, which share its mass."""
    sizes = np.diff(model.first)
    own = [np.arange(model.first[k], model.first[k + 1]) for k in range(len(sizes))]
    own.append(np.full(sizes.max(), -1))
    columns = np.concatenate([own[k] for k in order])
    first = np.cumsum([0, *(len(own[k]) for k in order)], dtype=np.int64)
    parts = with_classes(model.parts, columns, mass / sizes.max())
    return perturbed(Mixture(parts, first), np.flatnonzero(columns < 0), np.random.default_rng(0))


@with_features.register
def _with_features(model: Mixture, n_features: Any) -> Mixture:
    return model._replace(parts=with_features(model.parts, n_features))


@penalty.register
def _penalty(model: Mixture) -> float:
    return penalty(model.parts)


@mean_state.register
def _mean_state(first: Mixture, states: list, shares: np.ndarray, run: Callable) -> Mixture:
    parts = [state.parts for state in states]
    return first._replace(parts=mean_state(parts[0], parts, shares, run))


# --- compiled ------------------------------------------------------------------------------------


@n_classes.register(Mixture)
def _n_classes(model):
    return model.first.shape[0] - 1


@write_scores.register(Mixture)
def _write_scores(model, rows, i, slot, a, room):
    write_scores(model.parts, rows, i, slot, room.joint, room.parts)
    for k in range(a.shape[0]):
        first, last = model.first[k], model.first[k + 1]
        if last == first + 1:  # naive Bayes, which should not wait for exponentials of 0
            a[k] = room.joint[first]
            room.posterior[slot, first] = 1.0
            continue
        a[k] = log_sum_exp(room.joint[first:last])
        for m in range(first, last):
            room.posterior[slot, m] = exp(room.joint[m] - a[k])


@find_leverage.register(Mixture)
def _find_leverage(model, rows, i, slot, r, floor, room):
    share_weights(model.first, room.posterior[slot], r, room.weights)
    find_leverage(model.parts, rows, i, slot, room.weights, floor, room.parts)
    for k in range(r.shape[0]):
        leverage = 0.0
        for m in range(model.first[k], model.first[k + 1]):
            # r_k moves component m by q r_k, which moves a_k by q times what it moves ln p(m, x)
            leverage += room.posterior[slot, m] ** 2 * room.parts.numbers[LEVERAGE, m]
        room.numbers[LEVERAGE, k] = leverage


@gather_row.register(Mixture)
def _gather_row(model, rows, i, slot, r, room):
    share_weights(model.first, room.posterior[slot], r, room.weights)
    gather_row(model.parts, rows, i, slot, room.weights, room.parts)


@update.register(Mixture)
def _update(model, rows, i, slot, r, decay, pull, floor, projection, room):
    share_weights(model.first, room.posterior[slot], r, room.weights)
    return update(
        model.parts, rows, i, slot, room.weights, decay, pull, floor, projection, room.parts
    )


@helper
def share_weights(first, posterior, r, weights):
    """Share the weight of each class among its components."""
    for k in range(r.shape[0]):
        for m in range(first[k], first[k + 1]):
            weights[m] = r[k] * posterior[m]


@settle.register(Mixture)
def _settle(model, decay, pull, floor, projection, room):
    return settle(model.parts, decay, pull, floor, projection, room.parts)


@add_to_average.register(Mixture)
def _add_to_average(model, weight):
    add_to_average(model.parts, weight)
