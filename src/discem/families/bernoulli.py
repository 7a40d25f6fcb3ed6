"""The Bernoulli family: flags, which are levels of which there are never more than two."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..priors import Levels
from .categorical import CategoricalFamily, register_levels


class Bernoulli(NamedTuple):
    """As `Categorical`: the shares of 0 and 1 in each column."""

    first: np.ndarray
    mass: np.ndarray
    base: np.ndarray
    lazy: np.ndarray
    lags: np.ndarray
    weight: np.ndarray
    prior: Levels


class BernoulliFamily(CategoricalFamily):
    """Flags, 0 or 1."""

    name = "bernoulli"
    state: ClassVar[Any] = Bernoulli
    levels = 2


BERNOULLI = register_levels(BernoulliFamily())
