"""The start of normal factors of correlated columns: moments of the data, and the prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._checks import demand
from ..exceptions import OptionError
from ..priors import NormalWishart
from . import _units

_SHRUNK = 0.2  # the pooled covariance is shrunk this far to its diagonal
_RIDGE = 0.02  # of the variance of each column, added to the centre of the prior
_FLATTEST = 1e-3  # of the variance of columns: the smallest eigenvalue allowed with incomplete rows
_NARROWEST = 0.1  # share of the covariance within classes in the one expected within components
_WEAKEST = 30.0  # pseudo-observations of the prior, at least


class Moments(NamedTuple):
    """Moments of observed cells, and of pairs of them, in each component."""

    mean: np.ndarray  # (d, K)
    pairs: np.ndarray  # (d, d, K) the weight of rows with both cells
    covariance: np.ndarray  # (d, d, K)

    @property
    def by_column(self) -> np.ndarray:
        """Return mean, variance, weight and no kurtosis, (4, d, K), in the form of `_units`."""
        j = np.arange(len(self.mean))
        variance, count = self.covariance[j, j], self.pairs[j, j]
        return np.stack([self.mean, variance, count, np.zeros_like(count)])


def collect(values: np.ndarray, parts: list, n_features: int, n_classes: int) -> Moments:
    """Return the moments of observed cells in each class."""
    d = n_features
    mean, pairs = np.zeros((d, n_classes)), np.zeros((d, d, n_classes))
    covariance = np.zeros((d, d, n_classes))
    for codes, weights in parts:
        for k in np.unique(codes[codes >= 0]):
            cells, weight = values[codes == k], weights[codes == k]
            seen = ~np.isnan(cells)
            both = seen.T @ (weight[:, None] * seen)
            count = np.maximum(np.diagonal(both), 1e-300)
            own = (weight / count[:, None]).T * np.where(seen, cells, 0.0)
            mean[:, k] = own.sum(axis=0)
            off = np.where(seen, cells - mean[:, k], 0.0)
            scale = np.maximum(np.abs(off).max(axis=0, initial=0.0), 1e-300)
            off /= scale
            product = off.T @ (weight[:, None] * off) / np.maximum(both, 1e-300)
            covariance[:, :, k] = product * scale * scale[:, None]
            pairs[:, :, k] = both
    return Moments(mean, pairs, covariance)


def merged(tallies: list[Moments]) -> Moments:
    """Merge the moments of parts of the rows."""
    means, pairs, covariances = (np.stack(each) for each in zip(*tallies, strict=True))
    count = np.diagonal(pairs, axis1=1, axis2=2).swapaxes(1, 2)
    share = count / np.maximum(count.sum(axis=0), 1e-300)
    mean = (share * means).sum(axis=0)
    off = np.where(count > 0, means - mean, 0.0)
    share = pairs / np.maximum(pairs.sum(axis=0), 1e-300)
    between = off[:, :, None, :] * off[:, None, :, :]
    return Moments(mean, pairs.sum(axis=0), (share * (covariances + between)).sum(axis=0))


def pooled(tally: Moments) -> np.ndarray:
    """Return the pooled covariance within components, in raw units."""
    share = tally.pairs / np.maximum(tally.pairs.sum(axis=2, keepdims=True), 1e-300)
    return (share * tally.covariance).sum(axis=2)


class Begin(NamedTuple):
    """The parameters at the start."""

    mass: np.ndarray  # (1,)
    mean: np.ndarray  # (d, K)
    covariance: np.ndarray  # (d, d, K)
    fixed: dict[str, np.ndarray]
    prior: NormalWishart


def start(prior: NormalWishart, tally: Moments, total: float, init: str, stream: bool) -> Begin:
    """Return the initial parameters, see `Family.start`; "pooled": the prior's covariance."""
    K = tally.mean.shape[1]
    shift, scale, within, constant = _units.units_of(tally.by_column)
    prior = _completed(prior, tally, shift, scale, within)
    if not stream:
        scale = np.where(constant, np.nan, scale)
    fixed = {"shift": shift, "scale": scale}
    mean, covariance = (np.repeat(c[..., None], K, axis=-1) for c in (prior.mean, prior.covariance))
    if init == "prior":
        return Begin(np.full(1, float(K)), mean, covariance, fixed, prior)
    mass = np.full(1, (total + 1.0) / (max(total, 1.0) + 1.0))
    n = np.diagonal(tally.pairs).T
    unit = np.nan_to_num(1.0 / scale)[:, None]
    found = np.where((n > 0) & (unit > 0), (tally.mean - shift[:, None]) * unit, mean)
    m = (n * found + prior.nu_mean * mean) / np.maximum(n + prior.nu_mean, 1e-300)
    if init == "pooled":
        return Begin(mass, m, covariance, fixed, prior)
    known = tally.pairs * (unit > 0) * (unit > 0)[:, None]
    off, back = found - m, m - mean
    spread = tally.covariance * unit * unit[:, None] + off[:, None] * off
    sums = known * spread + prior.nu_mean * back[:, None] * back
    sums = (sums + prior.nu_covariance * covariance) / (known + prior.nu_covariance)
    sums = 0.5 * (sums + sums.swapaxes(0, 1))
    incomplete = (known != known[:1, :1]).any(axis=(0, 1))
    for k in np.flatnonzero(incomplete):
        sums[:, :, k] = mended(sums[:, :, k])
    return Begin(mass, m, np.ascontiguousarray(sums), fixed, prior)


def mended(covariance: np.ndarray) -> np.ndarray:
    """Return the covariance made positive definite, as moments of pairs may contradict."""
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    unit = deviation * deviation[:, None]
    values, vectors = np.linalg.eigh(covariance / unit)
    lifted = (vectors * np.maximum(values, _FLATTEST)) @ vectors.T
    return 0.5 * (lifted + lifted.T) * unit


def _completed(prior: NormalWishart, tally: Moments, shift, scale, within) -> NormalWishart:
    """Return the prior in units, with its centre taken from the data if it has none."""
    d = len(shift)
    mean = _units.column("mean", prior.mean, d, shift, shift, scale)
    given = centre(tally) if prior.covariance is None else prior.covariance
    try:
        covariance = np.asarray(given, dtype=np.float64)
        covariance = covariance * np.eye(d) if covariance.ndim == 0 else covariance
        covariance = np.broadcast_to(covariance, (d, d))
        covariance = covariance / scale / scale[:, None]
        covariance = 0.5 * (covariance + covariance.T)
        np.linalg.cholesky(covariance)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise OptionError(
            f"prior: covariance must be a positive definite matrix of {d} columns"
        ) from error
    strength = prior.nu_covariance
    strength = prior.strength * strength_of(d) if strength is None else float(strength)
    return NormalWishart(float(prior.nu_mean), strength, mean, covariance)


def centre(tally: Moments) -> np.ndarray:
    """Return the shrunk covariance within components, in raw units: the centre of the prior."""
    _, scale, within, constant = _units.units_of(tally.by_column)
    found = np.where(constant, 0.0, pooled(tally) / scale) / scale[:, None]
    variance = np.where(constant, 1.0, np.maximum(np.diagonal(found), within))
    found = (1.0 - _SHRUNK) * found
    np.fill_diagonal(found, variance)
    pairs = tally.pairs.sum(axis=2)
    if (pairs != pairs[:1, :1]).any():
        found = mended(found)
    return (found + _RIDGE * np.eye(len(found))) * scale * scale[:, None]


def strength_of(d: int, components: float = 1.0) -> float:
    """Return the pseudo-observations of a covariance that `components` components share."""
    return max(d + 2.0, _WEAKEST) / components


def within_components(by_class: Moments, by_component: Moments) -> np.ndarray:
    """Return the expected covariance within components, mixed with a little of the classes'."""
    return _NARROWEST * centre(by_class) + (1.0 - _NARROWEST) * centre(by_component)


def check_definite(name: str, covariance: np.ndarray) -> None:
    """Raise an error unless covariances, component last, are positive definite."""
    first = np.moveaxis(covariance, -1, 0)
    demand((first == first.swapaxes(1, 2)).all(), f"a covariance of {name} is not symmetric")
    try:
        np.linalg.cholesky(first)
    except np.linalg.LinAlgError:
        demand(False, f"a covariance of {name} is not positive definite")
