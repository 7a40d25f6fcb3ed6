"""Models: how families make p(y, z, x)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .classes import Classes, ClassPrior
from .conditional import Given, given
from .mixture import Mixture, Moves, perturbed
from .start import Tally, collect, count_classes, start

__all__ = [
    "ClassPrior",
    "Classes",
    "Given",
    "Mixture",
    "Moves",
    "Tally",
    "collect",
    "count_classes",
    "given",
    "mean_of",
    "perturbed",
    "start",
]


def mean_of(models: Sequence[Any], shares: Any, run: Callable = map) -> Any:
    """Return the mean of models that were trained apart, and of their averages.

    The mean is taken over expected statistics. Their set is convex, so a mean of states is a state.

    Parameters
    ----------
    models : sequence of models of one kind, with the same classes, features and units
    shares : array-like of the same length
        The weight of each model, such as the number of rows it was trained on.
    """
    share = np.asarray(shares, dtype=np.float64)
    share = share / share.sum()
    mean = models[0].mean_of(models, share)
    if not models[0].averages:
        return mean
    past = models[0].mean_of(list(run(lambda model: model.averaged(), models)), share)
    weight = float(share @ [model.weight for model in models])
    return mean.with_past(past, weight)
