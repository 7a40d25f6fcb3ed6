"""Products: ``ln p(x, x' | k) = ln p(x | k) + ln p(x' | k)``, two families that share a row.

A factor may itself be a product, so any number of families can share a row. Rows, priors, tallies
and numbers of features come in pairs, and all that is done is done to both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._checks import demand
from .._kinds import savable
from ..io.rows import RowPair
from ._protocol import add_leverage, add_scores, add_to_average, gather, move, settle
from ._record import Family, family_of, recognise


class Product(NamedTuple):
    """The states of both factors."""

    first: Any
    second: Any


@savable
class Pair(NamedTuple):
    """The priors of both factors, or what was collected of them, or drawn."""

    first: Any
    second: Any


class ProductRoom(NamedTuple):
    numbers: np.ndarray
    bits: np.ndarray
    first: Any
    second: Any


class ProductFamily(Family):
    """Two families that share a row; see `multiply`."""

    state = Product
    priors = (Pair,)

    def __init__(self, first: Family, second: Family):
        self.factors = first, second

    @property
    def name(self) -> str:  # type: ignore[override]
        return " * ".join(factor.name for factor in self.factors)

    @property
    def starts(self) -> tuple[str, ...]:  # type: ignore[override]
        return max((factor.starts for factor in self.factors), key=len)

    def _each(self, method: str, *pairs: Any) -> tuple[Any, Any]:
        """What a method of both factors says, given the first and second of each pair."""
        first, second = (getattr(factor, method) for factor in self.factors)
        return first(*(pair[0] for pair in pairs)), second(*(pair[1] for pair in pairs))

    def provides(self, name):
        return all(self._each("provides", _both(name)))

    def check(self, block, n_classes, n_features, averages):
        demand(isinstance(n_features, tuple), "rows of two parts need two numbers of features")
        self._each("check", block, _both(n_classes), n_features, _both(averages))

    def view(self, X):
        return RowPair(*self._each("view", X))

    def make_room(self, block, rows, batch, classes):
        rooms = self._each("make_room", block, rows, _both(batch), _both(classes))
        return ProductRoom(classes.numbers, classes.bits, *rooms)

    def collect(self, rows, parts, n_features, n_classes):
        return Pair(*self._each("collect", rows, _both(parts), n_features, _both(n_classes)))

    def merged(self, tallies):
        return Pair(*self._each("merged", list(zip(*tallies, strict=True))))

    def start(self, prior, tally, total, init, stream):
        given = (_both(each) for each in (total, init, stream))
        return Product(*self._each("start", prior, tally, *given))

    def averaged(self, block):
        return Product(*self._each("averaged", block))

    def with_average(self, block, past, weight):
        past = _both(None) if past is None else past
        return Product(*self._each("with_average", block, past, _both(weight)))

    def with_classes(self, block, order, mass):
        return Product(*self._each("with_classes", block, _both(order), _both(mass)))

    def with_features(self, block, n_features):
        """More features of the factors that take new ones; others keep what they have."""
        grown = [
            factor.with_features(part, size)
            if isinstance(factor, ProductFamily) or factor.provides("with_features")
            else part
            for factor, part, size in zip(self.factors, block, n_features, strict=True)
        ]
        return Product(*grown)

    def mean_of(self, blocks, shares, classes):
        blocks = list(zip(*blocks, strict=True))
        return Product(*self._each("mean_of", blocks, _both(shares), _both(classes)))

    def joined(self, blocks, shares, classes, past, weight, run=map):
        given = (_both(each) for each in (shares, classes, past, weight, run))
        return Product(*self._each("joined", list(zip(*blocks, strict=True)), *given))

    def penalty(self, block):
        return sum(self._each("penalty", block))

    def perturbed(self, block, columns, rng):
        return Product(*self._each("perturbed", block, _both(columns), _both(rng)))

    def prepare(self, block, rows):
        self._each("prepare", block, rows)

    def sample(self, block, codes, rng):
        return Pair(*self._each("sample", block, _both(codes), _both(rng)))

    def resolve_prior(self, prior, generative, n_features, mixed=False):
        """A pair of priors, or of their names; one name is for both."""
        prior = _both(prior) if isinstance(prior, str) else prior
        found = self._each("resolve_prior", prior, _both(generative), n_features, _both(mixed))
        return Pair(*(each for each, _ in found)), max(alpha for _, alpha in found)

    def complete_prior(self, prior, rows, parts, components=1.0):
        given = _both(parts), _both(components)
        return Pair(*self._each("complete_prior", prior, rows, *given))

    def prior_of_components(self, prior, by_class, by_component):
        own = (lambda: by_class()[0]), (lambda: by_class()[1])
        return Pair(*self._each("prior_of_components", prior, own, by_component))

    @property
    def least_rows(self) -> int:  # type: ignore[override]
        return max(factor.least_rows for factor in self.factors)

    @property
    def least_visits(self) -> float:  # type: ignore[override]
        return max(factor.least_visits for factor in self.factors)

    def step_of_part(self, rho, parts):
        return np.minimum(*self._each("step_of_part", _both(rho), _both(parts)))

    def auto_average(self, generative):
        return any(self._each("auto_average", _both(generative)))

    def points(self, rows, weights, n_features):
        parts = self._each("points", rows, _both(weights), n_features)
        return (sp.hstack if any(map(sp.issparse, parts)) else np.hstack)(parts)

    def example(self, codes, n_features, rng):
        return Pair(*self._each("example", _both(codes), n_features, _both(rng)))


def _both(value: Any) -> tuple[Any, Any]:
    return value, value


def multiply(first: Family, second: Family, *more: Family) -> Family:
    """The family of rows that have a part of each.

    Examples
    --------
    >>> from discem.families import FAMILIES, multiply
    >>> multiply(FAMILIES["gaussian"], FAMILIES["words"]).name
    'gaussian * words'
    """
    if more:
        return ProductFamily(first, multiply(second, *more))
    return ProductFamily(first, second)


recognise(Product, lambda block: multiply(*(family_of(factor) for factor in block)))


# --- compiled ------------------------------------------------------------------------------------


@add_scores.register(Product)
def _add_scores(block, rows, i, a, room):
    add_scores(block.first, rows.first, i, a, room.first)
    add_scores(block.second, rows.second, i, a, room.second)


@add_leverage.register(Product)
def _add_leverage(block, rows, i, r, floor, room):
    add_leverage(block.first, rows.first, i, r, floor, room.first)
    add_leverage(block.second, rows.second, i, r, floor, room.second)


@gather.register(Product)
def _gather(block, rows, i, r, room):
    gather(block.first, rows.first, i, r, room.first)
    gather(block.second, rows.second, i, r, room.second)


@settle.register(Product)
def _settle(block, decay, pull, floor, projection, room):
    return settle(block.first, decay, pull, floor, projection, room.first) + settle(
        block.second, decay, pull, floor, projection, room.second
    )


@move.register(Product)
def _move(block, rows, i, r, decay, pull, floor, projection, room):
    return move(block.first, rows.first, i, r, decay, pull, floor, projection, room.first) + move(
        block.second, rows.second, i, r, decay, pull, floor, projection, room.second
    )


@add_to_average.register(Product)
def _add_to_average(block, weight):
    add_to_average(block.first, weight)
    add_to_average(block.second, weight)
