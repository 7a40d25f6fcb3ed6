"""Naive Bayes: p(y, x) = p(y) prod_d p(x_d | y), over the factors of any family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._kinds import savable
from ..families import (
    Family,
    add_leverage,
    add_scores,
    add_to_average,
    family_of,
    gather,
    make_class_room,
    move,
    settle,
)
from ..targets import Targets
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
    write_scores,
)
from .classes import (
    Classes,
    ClassPrior,
    arranged,
    averaged_classes,
    begin_scores,
    begin_step,
    check_classes,
    class_penalty,
    end_scores,
    gather_counts,
    join_classes,
    move_counts,
    settle_counts,
    start_classes,
    with_class_average,
)


@savable
class NaiveBayes(NamedTuple):
    classes: Classes
    features: Any  # the state of a family


class Tally(NamedTuple):
    """What the data say before training: the statistics of the generative estimate."""

    family: Family
    classes: np.ndarray  # (K,) weight of each class
    features: Any  # as the family collects them


def collect(
    family: Family, rows, targets: Targets, weights, n_features: Any, n_classes: int
) -> Tally:
    """Add up the statistics of all labelled rows."""
    parts = list(targets.parts(weights))
    classes = count_classes(parts, n_classes)
    return Tally(family, classes, family.collect(rows, parts, n_features, n_classes))


def count_classes(parts: list[tuple[np.ndarray, np.ndarray]], n_classes: int) -> np.ndarray:
    """The weight of each class."""
    classes = np.zeros(n_classes)
    for codes, weight in parts:
        known = codes >= 0
        classes += np.bincount(codes[known], weight[known], minlength=n_classes)
    return classes


def start(
    tally: Tally,
    prior: Any,
    classes: ClassPrior,
    init: str,
    average: bool = False,
    stream: bool = False,
) -> NaiveBayes:
    """The initial state: at the priors, or at the closed-form estimate under NLL.

    `prior` is that of the features; `stream` says that more data may come, see `Family.start`.
    """
    total = float(tally.classes.sum())
    model = NaiveBayes(
        start_classes(tally.classes, classes, init),
        tally.family.start(prior, tally.features, total, init, stream),
    )
    return with_average(model, model, 0.0) if average else model


@check.register
def _check(model: NaiveBayes, n_classes: int, n_features: Any) -> None:
    averages = check_classes(model.classes, n_classes)
    family = family_of(model.features)
    family.check(model.features, n_classes, n_features, averages)


@make_room.register
def _make_room(model: NaiveBayes, rows, batch: int) -> Any:
    room = make_class_room(len(model.classes.counts))
    return family_of(model.features).make_room(model.features, rows, batch, room)


@class_counts.register
def _class_counts(model: NaiveBayes) -> np.ndarray:
    return model.classes.counts


@averages.register
def _averages(model: NaiveBayes) -> bool:
    return bool(model.classes.lag.size)


@averaged.register
def _averaged(model: NaiveBayes) -> NaiveBayes:
    features = family_of(model.features).averaged(model.features)
    return NaiveBayes(averaged_classes(model.classes), features)


@with_average.register
def _with_average(model: NaiveBayes, past: NaiveBayes | None, weight: float) -> NaiveBayes:
    old, features = (None, None) if past is None else past
    return NaiveBayes(
        with_class_average(model.classes, old, weight),
        family_of(model.features).with_average(model.features, features, weight),
    )


@with_classes.register
def _with_classes(model: NaiveBayes, order: np.ndarray, mass: float) -> NaiveBayes:
    features = family_of(model.features).with_classes(model.features, order, mass)
    return NaiveBayes(arranged(model.classes, order, mass), features)


@with_features.register
def _with_features(model: NaiveBayes, n_features: Any) -> NaiveBayes:
    features = family_of(model.features).with_features(model.features, n_features)
    return model._replace(features=features)


@penalty.register
def _penalty(model: NaiveBayes) -> float:
    return class_penalty(model.classes) + family_of(model.features).penalty(model.features)


@mean_state.register
def _mean_state(first: NaiveBayes, states: list, shares: np.ndarray, run: Callable) -> NaiveBayes:
    classes, blocks = [state.classes for state in states], [state.features for state in states]
    mean, by_class, past = join_classes(classes, shares)
    joined = family_of(first.features).joined
    return NaiveBayes(mean, joined(blocks, shares, by_class, past, float(mean.weight[0]), run))


# --- compiled ------------------------------------------------------------------------------------


@n_classes.register(NaiveBayes)
def _n_classes(model):
    return model.classes.counts.shape[0]


@write_scores.register(NaiveBayes)
def _write_scores(model, rows, i, slot, a, room):
    begin_scores(model.classes, a, room.numbers, room.bits)
    add_scores(model.features, rows, i, a, room)
    end_scores(a, room.numbers, room.bits)


@find_leverage.register(NaiveBayes)
def _find_leverage(model, rows, i, slot, r, floor, room):
    add_leverage(model.features, rows, i, r, floor, room)


@gather_row.register(NaiveBayes)
def _gather_row(model, rows, i, slot, r, room):
    gather_counts(r, room.numbers)
    gather(model.features, rows, i, r, room)


@settle.register(NaiveBayes)
def _settle(model, decay, pull, floor, projection, room):
    begin_step(model.classes, room.numbers)
    shortened = settle(model.features, decay, pull, floor, projection, room)
    return shortened + settle_counts(model.classes, decay, pull, floor, projection, room.numbers)


@update.register(NaiveBayes)
def _update(model, rows, i, slot, r, decay, pull, floor, projection, room):
    begin_step(model.classes, room.numbers)
    shortened = move(model.features, rows, i, r, decay, pull, floor, projection, room)
    return shortened + move_counts(model.classes, r, decay, pull, floor, projection, room.numbers)


@add_to_average.register(NaiveBayes)
def _add_to_average(model, weight):
    model.classes.weight[0] += weight
    add_to_average(model.features, weight)
