"""The priors of Gaussian factors: their pull, their curvature, and their penalty.

A rule gets the prior, with its centre in units of the columns, and the means and variances of the
factors, (d, K).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import namespace_of
from .._checks import Array, Number
from ..exceptions import OptionError
from ..priors import NormalBetaPrime, NormalGamma, PaperNormalGamma
from ._inside import Change


class Rule:
    """The rule of `NormalGamma`; the rules of other priors override parts of it."""

    in_units = True  # in units of the columns, instead of raw units

    def schema(self, row: Array, above: Array) -> dict[str, Any]:
        """Describe the fields of the prior."""
        numbers = {"nu_mean": Number(least=0.0), "nu_variance": Number(above=0.0)}
        return numbers | {"mean": row, "variance": above}

    def check(self, prior: Any) -> None:
        """Raise an error if the prior has invalid numbers."""
        if not (prior.nu_mean >= 0 and prior.nu_variance > 0):
            raise OptionError(f"prior={prior!r}: nu_mean must be >= 0 and nu_variance > 0")

    def strength(self, prior: Any) -> float:
        """Return the largest pseudo-count of the prior."""
        return max(prior.nu_mean, prior.nu_variance)

    def centre(self, prior: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and variance at the centre of the prior."""
        return prior.mean, prior.variance

    def pull(self, prior: Any, pull: float, count: Any, m: Any, v: Any) -> Change:
        """Return pull * (alpha - nu mu) of all factors."""
        to_mean, to_variance, off, wider = self._pulls(prior, pull, count, m, v, 1.0)
        step = to_mean * off
        return Change(0.0, step, to_variance * wider + step * off)

    def _pulls(self, prior: Any, pull: float, count: Any, m: Any, v: Any, share: Any) -> tuple:
        """Return the pulls on means and variances, and the distances to the centre.

        Natural gradients: that of a mean is v / N times, of a variance 2 v^2 / N times the plain
        one. A prior that outweighs the data moves a factor at most half-way to its centre.
        """
        xp, half = namespace_of(m), 0.5 * count
        off, v0 = prior.mean[:, None] - m, prior.variance[:, None]
        to_mean = xp.minimum(pull * prior.nu_mean * share * xp.ones_like(count), half)
        to_variance = xp.minimum(pull * prior.nu_variance * xp.ones_like(count), half)
        return to_mean, to_variance, off, v0 - v

    def bends(self, prior: Any, m: Any, v: Any) -> tuple[Any, Any, Any, Any]:
        """Return slopes of the penalty in means and log-variances, and its pseudo-counts."""
        xp = namespace_of(m)
        off, one = m - prior.mean[:, None], xp.ones_like(m)
        to_mean, ratio = prior.nu_mean * off / v, prior.variance[:, None] / v
        to_log = 0.5 * (prior.nu_variance * (1.0 - ratio) - to_mean * off)
        return to_mean, to_log, prior.nu_mean * one, prior.nu_variance * xp.maximum(ratio, one)

    def penalty(self, prior: Any, m: Any, v: Any) -> Any:
        """Return -2 ln of the prior, up to a constant, of each factor."""
        off, v0 = m - prior.mean[:, None], prior.variance[:, None]
        return prior.nu_mean * off**2 / v + prior.nu_variance * (namespace_of(m).log(v) + v0 / v)


class BetaPrime(Rule):
    """The rule of `NormalBetaPrime`."""

    def pull(self, prior, pull, count, m, v):
        share = 2.0 * v / (v + prior.variance[:, None])
        to_mean, to_variance, off, wider = self._pulls(prior, pull, count, m, v, share)
        step = to_mean * off
        square = to_variance * share * wider + 0.5 * step * off * share + step * step / count
        return Change(0.0, step, square)

    def bends(self, prior, m, v):
        off, v0 = m - prior.mean[:, None], prior.variance[:, None]
        nu, share = 2.0 * prior.nu_mean, v / (v + v0)
        to_mean = nu * off / (v + v0)
        to_log = prior.nu_variance * (2.0 * share - 1.0) - 0.5 * to_mean * off * share
        return to_mean, to_log, nu * share, 4.0 * prior.nu_variance * share * (1.0 - share)

    def penalty(self, prior, m, v):
        off, v0 = m - prior.mean[:, None], prior.variance[:, None]
        far = 2.0 * prior.nu_mean * off**2 / (v + v0)
        return far + 2.0 * prior.nu_variance * namespace_of(m).log((v + v0) ** 2 / (4.0 * v * v0))


class Paper(Rule):
    """The rule of `PaperNormalGamma`: the equations of the paper are in raw units."""

    in_units = False

    def schema(self, row, above):
        return dict.fromkeys(PaperNormalGamma._fields, Number(least=0.0, kind=int | float))

    def check(self, prior):
        pass

    def strength(self, prior):
        return prior.nu

    def centre(self, prior, d):
        return np.zeros(d), np.full(d, prior.alpha_square)

    def pull(self, prior, pull, count, m, v):
        to_count = pull * prior.alpha_count * namespace_of(m).ones_like(m)
        to_sum = -pull * prior.nu * count * m - m * to_count
        square = prior.alpha_square + prior.nu * count * (m * m - v)
        return Change(to_count, to_sum, pull * square + m * m * to_count)

    def bends(self, prior, m, v):
        xp = namespace_of(m)
        inverse, one = prior.alpha_square / v, xp.ones_like(m)
        to_log = 0.5 * (prior.nu * (one - m * m / v) - inverse)
        return prior.nu * m / v, to_log, prior.nu * one, xp.maximum(inverse, prior.nu * one)

    def penalty(self, prior, m, v):
        return prior.alpha_square / v + prior.nu * (m**2 / v + namespace_of(m).log(v))


_RULES = {NormalGamma: Rule(), NormalBetaPrime: BetaPrime(), PaperNormalGamma: Paper()}


def rule_of(prior: Any) -> Rule:
    """Return the rule of a prior."""
    return _RULES[type(prior)]
