"""The units that Gaussian features are held in, and moments of the data."""

from __future__ import annotations

import numpy as np


def moments(X: np.ndarray, codes: np.ndarray, K: int) -> tuple[np.ndarray, ...]:
    """Means, variances and counts of the cells seen, by class and feature."""
    means, variances, counts = np.zeros((3, K, X.shape[1]))
    for k in range(K):
        own = X[codes == k]
        seen = ~np.isnan(own)
        counts[k] = seen.sum(axis=0)
        size = np.maximum(counts[k], 1.0)
        means[k] = np.where(seen, own, 0.0).sum(axis=0) / size
        variances[k] = np.where(seen, (own - means[k]) ** 2, 0.0).sum(axis=0) / size
    return means, variances, counts


def units(means, variances, counts) -> tuple[np.ndarray, ...]:
    """Shift and scale of the features, and their variance within classes in units of the scale.

    The scale of a constant feature is NaN, so that its cells count as missing.
    """
    n = counts.sum(axis=0)
    share = counts / np.maximum(n, 1.0)
    shift = (share * means).sum(axis=0)
    within = (share * variances).sum(axis=0)
    scale = np.sqrt(within + (share * (means - shift) ** 2).sum(axis=0))
    constant = scale <= 1e-14 * np.abs(means).max(axis=0)
    scale = np.where(constant, np.nan, scale)
    least = np.maximum(1.0 / (n + 2.0), 1e-6)  # the next row might be the first to be different
    return shift, scale, np.where(constant, 1.0, np.maximum(within / scale**2, least))


def closed_form(means, variances, counts, nu, centre) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances that minimise the NLL, under priors of `nu` pseudo-observations.

    Moments are in units; classes that have not seen a feature are at the centre of its prior.
    """
    (nu_mean, nu_variance), (m0, v0) = nu, centre
    known = (counts > 0) & np.isfinite(means)
    means, variances = np.where(known, means, m0), np.where(known, variances, v0)
    m = (counts * means + nu_mean * m0) / np.maximum(counts + nu_mean, 1e-300)
    v = counts * (variances + (means - m) ** 2) + nu_mean * (m - m0) ** 2 + nu_variance * v0
    return m, np.maximum(v / (counts + nu_variance), 1e-9 * v0)
