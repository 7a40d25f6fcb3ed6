"""Distributions of one column in many rows: mixtures over the components of models."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr, pdtr

from ..io.columns import Column

_CLIMBS = 20  # steps towards a mode
_HALVINGS = 60  # of the range, for a quantile
_FAR = 40.0  # standard deviations; no probability lies beyond
_WIDEST = 700.0  # the largest logarithm whose exp does not overflow


class OfLevels(NamedTuple):
    """Levels by their codes; for numbers with few values, the values."""

    p: np.ndarray  # (n, levels)
    levels: list[Any] | None  # None: levels are not numbers

    def mean(self) -> np.ndarray:
        """Return E[x] of numbers; other levels have no mean, so return the most probable code."""
        return self.mode() if self.levels is None else self.p @ np.array(self.levels, float)

    def mode(self) -> np.ndarray:
        """Return the most probable code."""
        return self.p.argmax(axis=1)


class OfNumbers(NamedTuple):
    """Numbers: normal or log-normal in each component, with an optional spike at 0.

    Values outside the observed range are moved to its ends.
    """

    shares: np.ndarray  # (n, M)
    centre: np.ndarray  # (n, M)
    variance: np.ndarray  # (n, M)
    positive: np.ndarray | None  # (n, M) p(not 0); None: the column has no spike at 0
    log: bool
    low: float
    high: float

    def mean(self) -> np.ndarray:
        """Return E[x]."""
        return np.clip((self._weights() * self._moment(1)).sum(axis=1), self.low, self.high)

    def variance_of(self) -> np.ndarray:
        """Return E[x^2] - E[x]^2."""
        weights = self._weights()
        first = (weights * self._moment(1)).sum(axis=1)
        return np.maximum((weights * self._moment(2)).sum(axis=1) - first**2, 0.0)

    def mode(self) -> np.ndarray:
        """Return the highest peak of the density, or 0 if p(0) > 1/2."""
        weights, centre = self._weights(), self.centre
        variance = np.maximum(self.variance, 1e-300)
        shift = variance if self.log else 0.0  # the density of x, not of ln x
        start = self._log_density(np.moveaxis(centre - shift, 1, 0)).argmax(axis=0)
        u = np.take_along_axis(centre - shift, start[:, None], axis=1)
        for _ in range(_CLIMBS):  # mean shift
            near = self._terms(u) / variance
            u = (near * (centre - shift)).sum(axis=1, keepdims=True)
            u /= np.maximum(near.sum(axis=1, keepdims=True), 1e-300)
        found = self._raw(u[:, 0])
        if self.positive is not None:
            found = np.where(weights.sum(axis=1) < 0.5, 0.0, found)
        return np.clip(found, self.low, self.high)

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Return p(cell <= x) of each row."""
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.log(np.maximum(x, 0.0)) if self.log else x
            far = (u[:, None] - self.centre) / np.sqrt(self.variance)
        below = ndtr(np.where(np.isnan(far), 0.0, far))
        below = (self._weights() * below).sum(axis=1)
        zero = self.zero()
        return below if zero is None else below + zero * (x >= 0.0)

    def zero(self) -> np.ndarray | None:
        """Return the probability of an exact 0; None: the column has no spike there."""
        return None if self.positive is None else 1.0 - self._weights().sum(axis=1)

    def quantile(self, q: Any) -> np.ndarray:
        """Return the least x with p(cell <= x) >= q, (n,); for one row, q may be several."""
        return _bisected(self.cdf, q, *self._ends(), len(self.shares))

    def _ends(self) -> tuple[Any, Any]:
        """Return the limits of all cells: the observed range, if it is known."""
        if self.low > -np.inf:
            return self.low, self.high
        far = _FAR * np.sqrt(self.variance)
        low, high = (self.centre - far).min(axis=1), (self.centre + far).max(axis=1)
        return (np.zeros_like(low) if self.log else low), self._raw(high)

    def _weights(self) -> np.ndarray:
        return self.shares if self.positive is None else self.shares * self.positive

    def _moment(self, power: int) -> np.ndarray:
        """Return E[x^power] in each component, within the range."""
        if not self.log:
            return self.centre if power == 1 else self.centre**2 + self.variance
        exponent = power * self.centre + 0.5 * power**2 * self.variance
        return np.minimum(np.exp(np.minimum(exponent, _WIDEST)), max(self.high, 1.0) ** power)

    def _raw(self, u: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(u, _WIDEST)) if self.log else u

    def _terms(self, u: np.ndarray) -> np.ndarray:
        """Return the density at u, (n, 1), times the share, by component, up to a row's factor."""
        variance = np.maximum(self.variance, 1e-300)
        with np.errstate(divide="ignore"):
            a = np.log(self._weights()) - 0.5 * np.log(variance)
        a = a - 0.5 * (u - self.centre) ** 2 / variance
        return np.exp(a - a.max(axis=1, keepdims=True))

    def _log_density(self, u: np.ndarray) -> np.ndarray:
        """Return ln of the density of x at places u, (places, n), up to a constant."""
        variance = np.maximum(self.variance, 1e-300)
        with np.errstate(divide="ignore"):
            a = np.log(self._weights()) - 0.5 * np.log(variance)
        found = np.empty(u.shape)
        for place, each in enumerate(u):
            terms = a - 0.5 * (each[:, None] - self.centre) ** 2 / variance
            found[place] = np.logaddexp.reduce(terms, axis=1) - (each if self.log else 0.0)
        return found


class OfCounts(NamedTuple):
    """Whole numbers from 0: Poisson in each component."""

    shares: np.ndarray  # (n, M)
    rate: np.ndarray  # (n, M)
    low: float
    high: float

    def mean(self) -> np.ndarray:
        """Return E[x]."""
        return np.clip((self.shares * self.rate).sum(axis=1), self.low, self.high)

    def variance_of(self) -> np.ndarray:
        """Return E[x^2] - E[x]^2."""
        first = (self.shares * self.rate).sum(axis=1)
        return (self.shares * (self.rate + self.rate**2)).sum(axis=1) - first**2

    def mode(self) -> np.ndarray:
        """Return the most probable count among those next to a peak of a component."""
        peaks = np.clip(np.floor(self.rate), self.low, self.high)
        best, top = peaks[:, 0], np.full(len(peaks), -np.inf)
        for peak in peaks.T:
            for x in (peak - 1.0, peak, peak + 1.0):
                x = np.clip(x, self.low, self.high)
                p = self._log_p(x)
                best, top = np.where(p > top, x, best), np.maximum(p, top)
        return best

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Return p(cell <= x) of each row."""
        return (self.shares * pdtr(np.floor(x)[:, None], self.rate)).sum(axis=1)

    def quantile(self, q: Any) -> np.ndarray:
        """Return the least x with p(cell <= x) >= q, (n,); for one row, q may be several."""
        return np.ceil(_bisected(self.cdf, q, self.low - 0.5, self.high, len(self.shares)) - 1e-6)

    def _log_p(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            shares, rate = np.log(self.shares), np.log(np.maximum(self.rate, 1e-300))
        terms = shares + x[:, None] * rate - self.rate
        return np.logaddexp.reduce(terms, axis=1) - gammaln(x + 1.0)


OfColumn = OfLevels | OfNumbers | OfCounts


def number_of(
    column: Column, shares: Any, normal: Any, positive: Any = None, log: bool = False
) -> OfNumbers:
    """Return the distribution of a column of numbers, from each component's parameters."""
    low, high = column.span or (-np.inf, np.inf)
    centre, variance = (np.broadcast_to(each, shares.shape) for each in normal)
    return OfNumbers(shares, centre, variance, positive, log, low, high)


def _bisected(cdf: Any, q: Any, low: Any, high: Any, n: int) -> np.ndarray:
    shape = np.broadcast_shapes((n,), np.shape(q))
    below, above = np.full(shape, low), np.full(shape, high)
    for _ in range(_HALVINGS):
        middle = below / 2.0 + above / 2.0
        enough = cdf(middle) >= q
        below, above = np.where(enough, below, middle), np.where(enough, middle, above)
    return above
