"""Mixtures: p(y, x) = sum_c p(y, c) prod_d p(x_d | y, c), a naive Bayes over (class, component).

The component is never observed. Its posterior within a class is exact, and shares the weight of the
class among its components; then they move as the classes of naive Bayes do.
"""

from __future__ import annotations

from math import exp
from typing import Any, NamedTuple

import numpy as np

from .. import families
from ..families import LEVERAGE
from ..losses import log_sum_exp
from ._protocol import (
    averaged,
    class_counts,
    make_room,
    n_classes,
    penalty,
    remember,
    scores,
    update,
    with_classes,
    with_features,
)
from .naive_bayes import NaiveBayes, stir


class Mixture(NamedTuple):
    parts: NaiveBayes  # over all components, those of a class side by side
    first: np.ndarray  # (K + 1,) where the components of each class begin

    @property
    def features(self) -> Any:
        """The factors of all components."""
        return self.parts.features


class MixtureRoom(NamedTuple):
    numbers: np.ndarray  # (6, K), of which the engine reads LEVERAGE
    parts: families.Room
    joint: np.ndarray  # (M,) ln p(y, c, x) of the row scored last
    posterior: np.ndarray  # (batch, M) p(c | y, x) by slot
    weights: np.ndarray  # (M,)


@make_room.register
def _make_room(model: Mixture, rows, batch: int) -> MixtureRoom:
    K, M = len(model.first) - 1, int(model.first[-1])
    parts = make_room(model.parts, rows, batch)
    return MixtureRoom(np.zeros((6, K)), parts, np.zeros(M), np.zeros((batch, M)), np.zeros(M))


@class_counts.register
def _class_counts(model: Mixture) -> np.ndarray:
    return np.add.reduceat(class_counts(model.parts), model.first[:-1])


@averaged.register
def _averaged(model: Mixture) -> Mixture:
    return model._replace(parts=averaged(model.parts))


@with_classes.register
def _with_classes(model: Mixture, order: np.ndarray, mass: float) -> Mixture:
    """A new class has as many components as the largest has, which share its mass."""
    sizes = np.diff(model.first)
    own = [np.arange(model.first[k], model.first[k + 1]) for k in range(len(sizes))]
    own.append(np.full(sizes.max(), -1))
    columns = np.concatenate([own[k] for k in order])
    first = np.cumsum([0, *(len(own[k]) for k in order)], dtype=np.int64)
    parts = with_classes(model.parts, columns, mass / sizes.max())
    return stir(Mixture(parts, first), np.flatnonzero(columns < 0), np.random.default_rng(0))


@with_features.register
def _with_features(model: Mixture, n_features: int) -> Mixture:
    return model._replace(parts=with_features(model.parts, n_features))


@penalty.register
def _penalty(model: Mixture) -> float:
    return penalty(model.parts)


@n_classes.register(Mixture)
def _n_classes(model):
    return model.first.shape[0] - 1


@scores.register(Mixture)
def _scores(model, rows, i, slot, a, room):
    scores(model.parts, rows, i, slot, room.joint, room.parts)
    for k in range(a.shape[0]):
        first, last = model.first[k], model.first[k + 1]
        a[k] = log_sum_exp(room.joint[first:last])
        leverage = 0.0
        for m in range(first, last):
            q = exp(room.joint[m] - a[k])
            room.posterior[slot, m] = q
            # r_k moves component m by q r_k, which moves a_k by q times what it moves ln p(m, x)
            leverage += q * q * room.parts.numbers[LEVERAGE, m]
        room.numbers[LEVERAGE, k] = leverage


@update.register(Mixture)
def _update(model, rows, i, slot, r, decay, pull, floor, projection, room):
    for k in range(r.shape[0]):
        for m in range(model.first[k], model.first[k + 1]):
            room.weights[m] = r[k] * room.posterior[slot, m]
    return update(
        model.parts, rows, i, slot, room.weights, decay, pull, floor, projection, room.parts
    )


@remember.register(Mixture)
def _remember(model, weight):
    remember(model.parts, weight)
