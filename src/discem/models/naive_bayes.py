"""Naive Bayes: p(y, x) = p(y) prod_d p(x_d | y), over the factors of any family."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._compile import helper
from ..families import SHARES, absorb, add_scores, family_of, move, take_logs, tick
from ..projections import positive
from ._protocol import add_row, n_classes, remember, scores, update


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


def empty(family, n_features: int, n_classes: int) -> NaiveBayes:
    """A model that has seen nothing, to add rows to."""
    none = Classes(
        np.zeros(n_classes), np.zeros(n_classes), np.zeros(1), 0.0, 0.0, np.zeros(1), 0.0
    )
    return NaiveBayes(none, family.empty(n_features, n_classes))


def start(
    tally: NaiveBayes, prior, alpha: float, init: str, average: bool, stream: bool = False
) -> NaiveBayes:
    """The initial state: at the prior, or at the closed-form estimate under NLL.

    `tally` holds the statistics of the data, `prior` is that of the features and `alpha` the
    pseudo-count of each class; `stream` says that more data may come. See the family's `start`.
    """
    count, K = tally.classes.counts, len(tally.classes.counts)
    family = family_of(tally.features)
    total = float(count.sum())
    shares = np.ones(K) if init == "prior" else (count + alpha) / (total + K * alpha)
    nu = alpha * K / shares.sum() if family.keeps_mass(prior) else 0.0
    lift = float(family.LIFTS_TO_PRIOR)
    classes = Classes(shares, np.zeros(K), np.zeros(1), float(alpha), nu, np.zeros(1), lift)
    features = family.start(prior, tally.features, max(total, 1.0), init, average, stream)
    return NaiveBayes(classes, features)


def averaged(model: NaiveBayes) -> NaiveBayes:
    """The running average of the statistics."""
    classes = model.classes
    if classes.weight[0] > 0:
        count = classes.counts - classes.lag / classes.weight[0]
        classes = classes._replace(counts=np.maximum(count, 1e-300))
    return NaiveBayes(classes, family_of(model.features).averaged(model.features))


def with_classes(model: NaiveBayes, order: np.ndarray, mass: float) -> NaiveBayes:
    """Arrange the classes in `order`; -1 is a new class, at the prior's centre with `mass`."""
    classes = model.classes._replace(
        counts=np.append(model.classes.counts, mass)[order],
        lag=np.append(model.classes.lag, 0.0)[order],
    )
    features = family_of(model.features).with_classes(model.features, order, mass)
    return NaiveBayes(classes, features)


def penalty(model: NaiveBayes) -> float:
    """-ln of the prior, up to a constant: what training adds to the sum of the losses."""
    count = model.classes.counts
    classes = -model.classes.alpha * float(np.log(count / count.sum()).sum())
    return classes + family_of(model.features).penalty(model.features)


@n_classes.register(NaiveBayes)
def _n_classes(model):
    return model.classes.counts.shape[0]


@helper
def fill_shares(classes, room):
    """Leave p(y) in the room."""
    total = 0.0
    for k in range(classes.counts.shape[0]):
        total += classes.counts[k]
    unit = 1.0 / total
    for k in range(classes.counts.shape[0]):
        room.numbers[SHARES, k] = classes.counts[k] * unit


@scores.register(NaiveBayes)
def _scores(model, rows, i, a, room):
    fill_shares(model.classes, room)
    for k in range(a.shape[0]):
        room.numbers[0, k] = room.numbers[SHARES, k]
    take_logs(room, 0, 1)
    for k in range(a.shape[0]):
        a[k] = room.numbers[0, k]
    add_scores(model.features, rows, i, a, room)


@add_row.register(NaiveBayes)
def _add_row(model, rows, i, r):
    for k in range(r.shape[0]):
        model.classes.counts[k] += r[k]
    absorb(model.features, rows, i, r)


@update.register(NaiveBayes)
def _update(model, rows, i, r, decay, pull, floor, projection, room):
    classes = model.classes
    fill_shares(classes, room)
    shortened = move(model.features, rows, i, r, decay, pull, floor, projection, room)

    lag = classes.weight[0]
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


@remember.register(NaiveBayes)
def _remember(model, weight):
    model.classes.weight[0] += weight
    tick(model.features, weight)
