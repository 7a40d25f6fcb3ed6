"""The normal family of correlated columns: one factor per component, with missing cells.

The statistics of x are (1, x, x x'). A factor is stored as a mean m and a covariance S, in units of
the columns. For a row with observed cells o, let ``u = S_oo^-1 (x_o - m_o)``, with zeros for
missing cells. The score is ``-(x - m)' u / 2`` plus normalizers, the expected row is ``m + S u``,
and with J = S_oo^-1 (and zeros) the expected scatter about the mean is ``S + S (u u' - J) S``. So
the gradients in m and S are u and (u u' - J) / 2. Rows with the same observed cells share J, see
`_patterns`: scores are products of J with the squares x x' of rows, and sums of u u' are sums of x
x' between two J.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._arrays import clipped, namespace_of
from .._checks import Array, Number
from ..exceptions import OptionError
from ..io.rows import DenseRows, dense_rows
from ..priors import NormalWishart
from ..projections import Check
from . import _moments, _units, _white, _wishart
from ._block import Accepts, Block, Schema
from ._family import Family, register
from ._given import FARTHEST, LOG_ROOT, covariances, inverses, log_units
from ._missing import correlated
from ._patterns import group
from ._squares import distances, squared


class NormalFamily(Family):
    """Correlated numbers with a joint normal distribution in each component."""

    name = "normal"
    priors = (NormalWishart,)
    accepts = Accepts(missing=True)
    starts: ClassVar[tuple[str, ...]] = ("generative", "pooled")

    # --- the three things a model asks for --------------------------------------------------------

    view = staticmethod(dense_rows)

    def read(self, block, rows: DenseRows):
        shift, scale = block.fixed["shift"], block.fixed["scale"]
        grouped = group(rows.values, shift, scale, FARTHEST, rows.base)
        return squared(grouped, block.values["mean"].shape[1])

    def table(self, block):
        """Return theta = (S^-1 m, -S^-1 / 2), for rows without missing cells."""
        xp, mean = namespace_of(block.mass), block.values["mean"].T
        precision = xp.linalg.inv(xp.moveaxis(covariances(block), -1, 0))
        slope = (precision @ mean[:, :, None])[:, :, 0]
        curve = -0.5 * xp.reshape(precision, (precision.shape[0], precision.shape[1] ** 2))
        theta = [slope.T, curve.T] if "covariance" in block.values else [slope.T]
        return xp.concat(theta, axis=0), None

    def scores(self, block, batch):
        xp, unit, rows = namespace_of(block.mass), log_units(block), batch.rows
        parts = []
        for solved in batch.solved(block):
            normalizer = (
                0.5 * solved.log_det + (rows.there[solved.slab.patterns, :] @ unit)[:, None]
            )
            far = distances(block, batch, solved)
            parts.append(-0.5 * far - solved.of_groups(normalizer)[:, :, None])
        a = rows.by_row(xp.moveaxis(xp.concat(parts, axis=0), 1, 0))
        return a if rows.base is None else a + rows.base[:, None]

    def expected(self, block, batch, weights, least=0.0):
        """Return weighted sums of u, of u u' - J, and of weights."""
        xp, by_place = namespace_of(weights), batch.rows.by_place(weights)
        mean = block.values["mean"].T
        sums: Any = 0.0
        products: Any = 0.0
        for solved in batch.solved(block):
            W = xp.moveaxis(by_place[:, solved.slab.groups, :], 0, 1)
            mass, first, second = batch.sums(W, solved.slab)
            off = first - mass[:, :, None] * mean
            sums = sums + xp.sum((solved.inverse @ off[..., None])[..., 0], axis=0)
            cross = off[..., None] * mean[:, None, :]
            scatter = second - cross - mean[:, :, None] * first[:, :, None, :]
            inverse = solved.inverse
            inside = inverse @ scatter @ inverse - mass[:, :, None, None] * inverse
            products = products + xp.sum(inside, axis=0)
        batch.memo.clear()
        return sums.T, xp.moveaxis(products, 0, -1), xp.sum(weights, axis=0)[None, :]

    def leverage(self, block, batch, weights, step, least=0.0):
        """Return squared distances (from a mean) and half their squares (from a covariance)."""
        xp, rows = namespace_of(block.mass), batch.rows
        far = [distances(block, batch, solved) for solved in batch.solved(block)]
        far = xp.moveaxis(xp.concat(far, axis=0), 1, 0)
        seen = xp.sum(rows.there, axis=1)
        seen = xp.take(seen, rows.pattern, axis=0)[None, :, None]
        return rows.by_row(0.5 * (clipped(far, None, 1e100) ** 2 + seen)) / step.counts(block.mass)

    def moved(self, block, found, step):
        landed = _wishart.land_check if isinstance(step.projection, Check) else _wishart.land_inside
        return _wishart.moved(block, found, step, landed)

    slope = staticmethod(_white.slope)
    free = staticmethod(_white.free)
    reach = staticmethod(_white.reach)
    penalty = staticmethod(_white.penalty)

    def placed(self, block, free):
        return block._replace(values=_white.values_of(block, free))

    def strength(self, block):
        return max(block.prior.nu_mean, block.prior.nu_covariance)

    # --- the start --------------------------------------------------------------------------------

    def collect(self, rows, parts, n_features, n_classes):
        return _moments.collect(rows.values, parts, n_features, n_classes)

    merged = staticmethod(_moments.merged)

    def start(self, prior, tally, total, init, stream):
        begin = _moments.start(prior, tally, total, init, stream)
        values = {"mean": begin.mean, "covariance": begin.covariance}
        return Block(self.name, begin.mass, values, {}, begin.fixed, begin.prior)

    def perturbed(self, block, components, rng):
        """Move means by about one deviation of their own."""
        mean = block.values["mean"].copy()
        spread = np.broadcast_to(covariances(block), (len(mean), *mean.shape))
        off = rng.normal(size=(len(mean), len(components)))
        mean[:, components] += off * np.sqrt(np.diagonal(spread).T[:, components])
        return block._replace(values=block.values | {"mean": mean})

    # --- the state --------------------------------------------------------------------------------

    def schema(self, block, n_components, n_features):
        d, row = n_features, Array((n_features,))
        values = {"mean": Array((d, n_components)), "covariance": Array((d, d, n_components))}
        prior = {
            "nu_mean": Number(least=0.0),
            "nu_covariance": Number(above=0.0),
            "mean": row,
            "covariance": Array((d, d)),
        }
        units = {"shift": row, "scale": row._replace(above=0.0, holes=True)}
        return Schema(Array((1,), above=0.0), values, units, prior)

    def check_sense(self, block, n_components, n_features, averages):
        _moments.check_definite("the prior", block.prior.covariance[:, :, None])
        for values in (block.values, block.past):
            if "covariance" in values:
                _moments.check_definite(self.name, values["covariance"])

    def centre(self, block):
        return {"mean": block.prior.mean, "covariance": block.prior.covariance}

    def moments(self, block):
        m, covariance = block.values["mean"], block.values["covariance"]
        square = covariance + m[:, None, :] * m[None, :, :]
        return {"mean": m, "square": square.reshape(len(m) ** 2, m.shape[1])}

    def of_moments(self, moments):
        m = moments["mean"]
        square = moments["square"].reshape(len(m), len(m), m.shape[1])
        return {"mean": m, "covariance": square - m[:, None, :] * m[None, :, :]}

    def sample(self, block, codes, rng):
        mean, covariance = moments(block)
        root = _wishart.rooted(covariance)
        noise = rng.normal(size=(len(codes), mean.shape[1]))
        rows = mean[codes]
        for k in np.unique(codes):
            rows[codes == k] += noise[codes == k] @ root[k % len(root)].T
        return rows

    given = staticmethod(correlated)

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        return {"data": (NormalWishart(), 1.0)}

    def prior_of_strength(self, strength):
        prior = NormalWishart()
        return prior._replace(nu_mean=strength * prior.nu_mean, strength=strength)

    def check_prior(self, prior):
        nu = prior.nu_covariance
        positive = prior.strength > 0 if nu is None else nu > 0
        if not (prior.nu_mean >= 0 and positive):
            raise OptionError(
                f"prior={prior!r}: nu_mean must be >= 0, nu_covariance and strength > 0"
            )

    def complete_prior(self, prior, rows, parts, components=1.0):
        if prior.nu_covariance is not None:
            return prior
        strength = prior.strength * _moments.strength_of(rows.values.shape[1], components)
        return prior._replace(nu_covariance=strength)

    def prior_of_components(self, prior, by_class, by_component):
        if prior.covariance is not None:
            return prior
        return prior._replace(covariance=_moments.within_components(by_class(), by_component))

    def auto_batch(self, rows, n_classes):
        return max(16, min(rows.values.shape[1], 256))

    def expectations(self, block):
        m, covariance = moments(block)
        square = covariance + m[:, :, None] * m[:, None, :]
        return {"x": m, "xx": square.reshape(len(m), -1)}

    def slopes(self, block):
        m, covariance = moments(block)
        precision, log_det, varies = precisions(covariance)
        slope = np.squeeze(precision @ m[:, :, None], 2)
        offset = 0.5 * ((m * slope).sum(axis=1) + log_det) + varies * LOG_ROOT
        return -offset, {"x": slope, "xx": -0.5 * precision.reshape(len(m), -1)}

    def features_of(self, X):
        X = np.asarray(X, dtype=np.float64)
        return np.hstack([X, (X[:, :, None] * X[:, None, :]).reshape(len(X), -1)])

    def points(self, rows, weights, n_features):
        return _units.points(rows.values, weights)

    def example(self, codes, n_features, rng):
        size = codes.max() + 1, n_features
        means, mix = rng.normal(size=size), rng.normal(size=(n_features, *size)).T
        noise = rng.normal(size=(len(codes), n_features))
        mixed = np.einsum("ni,nij->nj", noise, mix.swapaxes(0, 1)[codes])
        return 1.0 + 3.0 * means[codes] + 0.3 * mixed + 0.5 * noise


def moments(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return means and covariances in raw units, component first; 0 for constant columns."""
    shift, scale = block.fixed["shift"], np.nan_to_num(block.fixed["scale"])
    mean = shift + scale * block.values["mean"].T
    covariance = np.moveaxis(covariances(block), -1, 0)
    return mean, covariance * scale[:, None] * scale


def precisions(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return inverses of covariances in raw units, without constant columns."""
    deviation = np.sqrt(np.diagonal(covariance[0]))
    varies = deviation > 0
    deviation = np.where(varies, deviation, 1.0)
    unit = deviation[:, None] * deviation
    inverse, log_det = inverses(covariance / unit, varies[None, :] * 1.0)
    return inverse[0] / unit, log_det[0] + 2.0 * np.log(deviation).sum(), int(varies.sum())


register(NormalFamily())
