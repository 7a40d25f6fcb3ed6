"""Naive Bayes: p(y, x) = p(y) prod_d p(x_d | y), over the factors of any family."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import families
from .._compile import helper
from ..families import SHARES, family_of, joint_scores, move, tick
from ..losses import parts
from ..projections import positive
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


class Classes(NamedTuple):
    """Expected counts of the classes: a categorical with a flat Dirichlet prior."""

    counts: np.ndarray  # (K,)
    lag: np.ndarray  # (K,) missing from the average so far
    weight: np.ndarray  # (1,) total weight of the average so far
    alpha: float  # the prior pulls by alpha - nu * count
    nu: float
    granted: np.ndarray  # (1,) what the prior has given each class so far
    lift: float  # where the check-step lifts a count to: rho / n (0) or what the prior gave (1)


class NaiveBayes(NamedTuple):
    classes: Classes
    features: Any  # the state of a family


class Tally(NamedTuple):
    """What the data say before training: the statistics of the generative estimate."""

    family: Any
    classes: np.ndarray  # (K,) weight of each class
    features: np.ndarray  # as the family collects them


def collect(family, rows, targets, weights, n_features: int, n_classes: int) -> Tally:
    """Add up the statistics of all labelled rows."""
    classes = np.zeros(n_classes)
    for codes, weight in parts(targets, weights):
        known = codes >= 0
        classes += np.bincount(codes[known], weight[known], minlength=n_classes)
    features = family.collect(rows, parts(targets, weights), n_features, n_classes)
    return Tally(family, classes, features)


def start(
    tally: Tally, prior, alpha: float, init: str, average: bool, stream: bool = False
) -> NaiveBayes:
    """The initial state: at the prior, or at the closed-form estimate under NLL.

    `prior` is that of the features and `alpha` the pseudo-count of each class; `stream` says that
    more data may come. See the family's own `start`.
    """
    family, counts, features = tally
    K, total = len(counts), float(counts.sum())
    shares = np.ones(K) if init == "prior" else (counts + alpha) / (total + K * alpha)
    nu = alpha * K / shares.sum() if family.keeps_mass(prior) else 0.0
    lift = float(family.LIFTS_TO_PRIOR)
    classes = Classes(shares, np.zeros(K), np.zeros(1), float(alpha), nu, np.zeros(1), lift)
    block = family.start(prior, features, max(total, 1.0), init, average, stream)
    return NaiveBayes(classes, block)


def stir(model: Any, columns: np.ndarray, rng: Any) -> Any:
    """Make columns of a latent model's `parts` differ that would stay alike for ever."""
    features = family_of(model.features).stir(model.features, columns, rng)
    return model._replace(parts=model.parts._replace(features=features))


@make_room.register
def _make_room(model: NaiveBayes, rows, batch: int) -> families.Room:
    return families.make_room(len(model.classes.counts))


@class_counts.register
def _class_counts(model: NaiveBayes) -> np.ndarray:
    return model.classes.counts


@averaged.register
def _averaged(model: NaiveBayes) -> NaiveBayes:
    classes = model.classes
    if classes.weight[0] > 0:
        count = classes.counts - classes.lag / classes.weight[0]
        classes = classes._replace(counts=np.maximum(count, 1e-300))
    return NaiveBayes(classes, family_of(model.features).averaged(model.features))


def arrange(classes: Classes, order: np.ndarray, mass: float) -> Classes:
    """The counts of the classes in `order`; -1 is a new one."""
    return classes._replace(
        counts=np.append(classes.counts, mass)[order],
        lag=np.append(classes.lag, 0.0)[order],
    )


@with_classes.register
def _with_classes(model: NaiveBayes, order: np.ndarray, mass: float) -> NaiveBayes:
    classes = arrange(model.classes, order, mass)
    features = family_of(model.features).with_classes(model.features, order, mass)
    return NaiveBayes(classes, features)


@with_features.register
def _with_features(model: NaiveBayes, n_features: int) -> NaiveBayes:
    features = family_of(model.features).with_features(model.features, n_features)
    return model._replace(features=features)


@penalty.register
def _penalty(model: NaiveBayes) -> float:
    count = model.classes.counts
    classes = -model.classes.alpha * float(np.log(count / count.sum()).sum())
    return classes + family_of(model.features).penalty(model.features)


@n_classes.register(NaiveBayes)
def _n_classes(model):
    return model.classes.counts.shape[0]


@helper
def fill_shares(counts, numbers):
    """Leave p(y) in the room."""
    total = 0.0
    for k in range(counts.shape[0]):
        total += counts[k]
    for k in range(counts.shape[0]):
        numbers[SHARES, k] = counts[k] / total


@scores.register(NaiveBayes)
def _scores(model, rows, i, slot, a, room):
    fill_shares(model.classes.counts, room.numbers)
    joint_scores(model.features, rows, i, a, room)


@helper
def move_counts(classes, r, decay, pull, floor, projection):
    """Move the counts of the classes; return how many had their step shortened."""
    lag, shortened = classes.weight[0], 0
    classes.granted[0] += pull * classes.alpha
    lifted = classes.granted[0] if classes.lift > 0.0 else floor
    for k in range(r.shape[0]):
        prior = classes.alpha - classes.nu * classes.counts[k]
        change = r[k] - decay * classes.counts[k] + pull * prior
        new, short = positive(projection, classes.counts[k], change, lifted)
        classes.lag[k] += lag * (new - classes.counts[k])
        classes.counts[k] = new
        shortened += short
    return shortened


@update.register(NaiveBayes)
def _update(model, rows, i, slot, r, decay, pull, floor, projection, room):
    fill_shares(model.classes.counts, room.numbers)
    shortened = move(model.features, rows, i, r, decay, pull, floor, projection, room)
    return shortened + move_counts(model.classes, r, decay, pull, floor, projection)


@remember.register(NaiveBayes)
def _remember(model, weight):
    model.classes.weight[0] += weight
    tick(model.features, weight)
