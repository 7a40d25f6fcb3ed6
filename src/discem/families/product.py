"""Products: rows with a part for each of several families.

Priors, tallies, drawn rows and numbers of features are tuples with one entry per family. Everything
before and after training is done for each part; a model has a block for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..io.rows import Rows
from ..priors import Default
from ._family import Family


class ProductFamily(Family):
    """Several families that share a row; see `multiply`."""

    priors = (tuple,)

    def __init__(self, factors: tuple[Family, ...]):
        self._factors = factors

    @property
    def factors(self):
        return self._factors

    @property
    def name(self) -> str:  # type: ignore[override]
        return " * ".join(factor.name for factor in self.factors)

    @property
    def starts(self) -> tuple[str, ...]:  # type: ignore[override]
        return max((factor.starts for factor in self.factors), key=len)

    def _each(self, method: str, *parts: Any, **shared: Any) -> tuple:
        """Call a method of every factor with its entry of each of the `parts`."""
        given = zip(self.factors, *parts, strict=True)
        return tuple(getattr(factor, method)(*own, **shared) for factor, *own in given)

    def view(self, X):
        return Rows(self._each("view", X))

    def collect(self, rows, parts, n_features, n_classes):
        given = zip(self.factors, rows.parts, n_features, strict=True)
        return tuple(family.collect(own, parts, d, n_classes) for family, own, d in given)

    def merged(self, tallies):
        return self._each("merged", [list(each) for each in zip(*tallies, strict=True)])

    def blocks(self, prior, tally, total, init, stream):
        return self._each("start", prior, tally, total=total, init=init, stream=stream)

    def resolve_prior(self, prior, generative, n_features, mixed=False):
        """Return one prior for each factor; a single name applies to all."""
        prior = (prior,) * len(self.factors) if isinstance(prior, str | Default) else prior
        given = {"generative": generative, "mixed": mixed}
        found = [
            factor.resolve_prior(own, n_features=d, **given)
            for factor, own, d in zip(self.factors, prior, n_features, strict=True)
        ]
        return tuple(each for each, _ in found), max(alpha for _, alpha in found)

    def complete_prior(self, prior, rows, parts, components=1.0):
        given = {"parts": parts, "components": components}
        return self._each("complete_prior", prior, rows.parts, **given)

    def prior_of_components(self, prior, by_class, by_component):
        return tuple(
            factor.prior_of_components(own, lambda j=j: by_class()[j], by_component[j])
            for j, (factor, own) in enumerate(zip(self.factors, prior, strict=True))
        )

    @property
    def whole(self) -> bool:
        return all(factor.whole for factor in self.factors)

    def auto_batch(self, rows, n_classes):
        pairs = zip(self.factors, rows.parts, strict=True)
        return min(factor.auto_batch(own, n_classes) for factor, own in pairs)

    @property
    def least_rows(self) -> int:  # type: ignore[override]
        return max(factor.least_rows for factor in self.factors)

    @property
    def least_visits(self) -> float:  # type: ignore[override]
        return max(factor.least_visits for factor in self.factors)

    def step_of_part(self, rho, parts):
        each = [factor.step_of_part(rho, parts) for factor in self.factors]
        return np.minimum.reduce(each)

    def auto_average(self, generative):
        return any(factor.auto_average(generative) for factor in self.factors)

    def points(self, rows, weights, n_features):
        given = zip(self.factors, rows.parts, n_features, strict=True)
        parts = [factor.points(own, weights, d) for factor, own, d in given]
        return (sp.hstack if any(map(sp.issparse, parts)) else np.hstack)(parts)

    def example(self, codes, n_features, rng):
        given = zip(self.factors, n_features, strict=True)
        return tuple(factor.example(codes, d, rng) for factor, d in given)


def multiply(*families: Family) -> Family:
    """Return the family of rows that have a part for each of these families.

    Examples
    --------
    >>> from discem.families import FAMILIES, multiply
    >>> multiply(FAMILIES["gaussian"], FAMILIES["words"]).name
    'gaussian * words'
    """
    factors = tuple(factor for family in families for factor in family.factors)
    return factors[0] if len(factors) == 1 else ProductFamily(factors)
