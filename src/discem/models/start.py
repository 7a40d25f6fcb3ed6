"""The start of a model: at the prior, or at the closed-form estimate under NLL."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..families import Family
from ..targets import Targets
from .classes import ClassPrior, start_classes
from .mixture import Mixture


class Tally(NamedTuple):
    """Weighted statistics of the data before training, for the generative estimate."""

    family: Family
    classes: np.ndarray  # (M,) weight of each class or component
    features: Any  # as the family collects them


def collect(
    family: Family, rows: Any, targets: Targets, weights: Any, n_features: Any, n_classes: int
) -> Tally:
    """Add up the statistics of all labelled rows."""
    parts = list(targets.parts(weights))
    classes = count_classes(parts, n_classes)
    return Tally(family, classes, family.collect(rows, parts, n_features, n_classes))


def count_classes(parts: list[tuple[np.ndarray, np.ndarray]], n_classes: int) -> np.ndarray:
    """Return the total weight of each class."""
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
    first: np.ndarray | None = None,
) -> Mixture:
    """Return the initial state: at the priors, or at the closed-form estimate under NLL.

    `prior` is that of the features. With `stream`, more data may follow, see `Family.start`.
    `first` gives the first component of each class; None is one component per class.
    """
    if first is None:
        first = np.arange(len(tally.classes) + 1)
    total = float(tally.classes.sum())
    blocks = tally.family.blocks(prior, tally.features, total, init, stream)
    model = Mixture(start_classes(tally.classes, classes, init), blocks, first)
    return model.with_average() if average else model
