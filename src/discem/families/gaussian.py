"""The Gaussian family: one factor per column and component, with missing cells.

The statistics of x are (1, x, x^2). Their expectations (N, S, V) are stored as a mean S/N and a
variance V/N - (S/N)^2, in units of the column (a shift and a scale), because sums of squares would
lose digits to cancellation. The count N of a factor is the share of its component in the mass of
its column, the expected number of observed cells: one if every row has a cell.
"""

from __future__ import annotations

import numpy as np

from .._arrays import beside, clipped, count_true, namespace_of
from .._checks import Array
from ..io.column_kinds import NUMBER, ColumnKind, Found, register_column
from ..io.rows import DenseRows, dense_rows
from ..priors import NormalBetaPrime, NormalGamma, PaperNormalGamma
from ..projections import Check
from . import _units
from ._block import Accepts, Block, Schema, Statistics, seen_of
from ._distributions import number_of
from ._family import Family, register
from ._gaussian_priors import rule_of
from ._inside import Change, land_check, land_inside
from ._missing import independent

_FARTHEST = 1e60  # units: fourth powers of numbers beyond would overflow
_WIDE, _NARROW = 1e75, 1e-290  # the largest mean and the smallest variance of a factor
_REMOTE = 1e50  # deviations whose fourth powers do not overflow
_LOG_ROOT = float(0.5 * np.log(2 * np.pi))


class GaussianFamily(Family):
    """Numbers with a normal distribution in each component."""

    name = "gaussian"
    priors = (NormalGamma, NormalBetaPrime, PaperNormalGamma)
    accepts = Accepts(missing=True)
    starts = ("tempered", "pooled")
    positive = frozenset({"variance"})

    # --- the three things a model asks for --------------------------------------------------------

    def view(self, X):
        return dense_rows(X)

    def read(self, block, rows: DenseRows):
        shift, scale = block.fixed["shift"], block.fixed["scale"]
        xp = namespace_of(shift)
        varies = xp.isfinite(scale)  # a constant column has no effect
        factor = xp.where(varies, 1.0 / scale, xp.zeros_like(scale))
        units = (beside(rows.values, shift) - shift) * factor
        units, seen = seen_of(units)
        units = clipped(units, -_FARTHEST, _FARTHEST)
        base = None if rows.base is None else beside(rows.base, shift)
        return Statistics(xp.concat([units, units * units], axis=1), seen, base)

    def table(self, block):
        """Return theta = (m / v, -1 / 2v), and A = m^2 / 2v + ln(2 pi v) / 2 in data units."""
        m, v, scale = block.values["mean"], block.values["variance"], block.fixed["scale"]
        xp = namespace_of(v)
        varies = xp.isfinite(scale)
        unit = xp.where(varies, xp.log(scale) + _LOG_ROOT, xp.zeros_like(scale))
        slope = m / v
        normalizer = 0.5 * (m * slope + xp.log(v)) + unit[:, None]
        normalizer = xp.where(varies[:, None], normalizer, xp.zeros_like(m))
        return xp.concat([slope, -0.5 / v], axis=0), normalizer

    def leverage(self, block, batch, weights, step, least=0.0):
        """Return s(x)' I(mu)^-1 s(x), for a mean and a variance: (1 + z^4) / 2N."""
        m, v = block.values["mean"], block.values["variance"]
        xp, d = namespace_of(m), m.shape[0]
        each = 0.5 / step.counts(block.mass)
        # (K, n, d): columns are contiguous, so that their sum is a product
        off = batch.values[None, :, :d] - m.T[:, None, :]
        z = clipped(off * (1.0 / xp.sqrt(v)).T[:, None, :], -_REMOTE, _REMOTE)
        z = z * z
        z = z * z
        base = xp.sum(each, axis=0)
        if batch.seen is not None:
            z, base = z * batch.seen[None, :, :], batch.seen @ each
        return xp.matmul(z, each.T[:, :, None])[:, :, 0].T + base

    def moved(self, block, found, step):
        (sums, seen), m, v = found, block.values["mean"], block.values["variance"]
        xp, d = namespace_of(m), m.shape[0]
        count, lost = step.counts(block.mass), step.decay / step.slowness
        linear, square = sums[:d, :], sums[d:, :]
        to_count, to_sum, to_square = rule_of(block.prior).pull(block.prior, step.pull, count, m, v)
        change = Change(
            seen - lost * count + to_count,
            linear - m * seen + to_sum,
            square - 2.0 * m * linear + m * m * seen - lost * count * v + to_square,
        )
        landed = land_check if isinstance(step.projection, Check) else land_inside
        new_count, shift, variance, short = landed(step, count, m, v, change)
        values = {
            "mean": clipped(m + shift, -_WIDE, _WIDE),
            "variance": clipped(variance, _NARROW, _WIDE * _WIDE),
        }
        # steps that were shortened add less mass
        missed = xp.where(short, new_count - count - change.count, xp.zeros_like(count))
        mass = step.mass(block.mass, seen + to_count, missed)
        return block._replace(mass=mass, values=values), count_true(short)

    def slope(self, block, found, counts, n):
        (sums, seen), m, v = found, block.values["mean"], block.values["variance"]
        xp, d = namespace_of(m), m.shape[0]
        varies = xp.isfinite(block.fixed["scale"])[:, None]  # else the scores do not depend on it
        seen = xp.where(varies, seen, xp.zeros_like(m))
        linear, square = sums[:d, :], sums[d:, :]
        off = linear - m * seen
        wide = square - 2.0 * m * linear + m * m * seen - v * seen
        to_mean, to_log, of_mean, of_log = rule_of(block.prior).bends(block.prior, m, v)
        gradient = {"mean": to_mean / n - off / v, "variance": to_log / n - 0.5 * wide / v}
        metric = {"mean": (counts + of_mean / n) / v, "variance": 0.5 * (counts + of_log / n)}
        return gradient, metric

    def reach(self, block, step):
        xp, v = namespace_of(block.mass), block.values["variance"]
        return {"mean": xp.abs(step["mean"]) / xp.sqrt(v), "variance": xp.abs(step["variance"])}

    def strength(self, block):
        return rule_of(block.prior).strength(block.prior)

    def features(self, block, batch):
        d = block.mass.shape[0]
        return batch.values[:, :d], None if batch.seen is None else 1.0 - batch.seen

    def hidden(self, block):
        one = np.ones(block.mass.shape[0], dtype=np.int64)
        return one, False, block.values["mean"], block.values["variance"]

    def with_answers(self, block, found, to_mean, to_spread):
        (sums, seen), m, v = found, block.values["mean"], block.values["variance"]
        off = to_mean * v  # E[x | y] - m, and E[x^2 | y] - m^2 - v
        wide = 2.0 * v * v * to_spread + 2.0 * m * off
        return sums + namespace_of(m).concat([off, wide]), seen

    # --- the start --------------------------------------------------------------------------------

    def collect(self, rows, parts, n_features, n_classes):
        return _units.collect(rows.values, parts, n_features, n_classes)

    merged = staticmethod(_units.merged)

    def start(self, prior, tally, total, init, stream):
        return _units.start(self.name, prior, tally, total, init, stream)

    def perturbed(self, block, components, rng):
        """Move means by about one deviation of their own."""
        values = {name: array.copy() for name, array in block.values.items()}
        off = rng.normal(size=(len(values["mean"]), len(components)))
        values["mean"][:, components] += off * np.sqrt(values["variance"][:, components])
        return block._replace(values=values)

    # --- the state --------------------------------------------------------------------------------

    def schema(self, block, n_components, n_features):
        row, table = Array((n_features,)), Array((n_features, n_components))
        above = row._replace(above=0.0)
        prior = rule_of(block.prior).schema(row, above)
        units = {"shift": row, "scale": above._replace(holes=True)}
        return Schema(above, {"mean": table, "variance": table}, units, prior)

    def centre(self, block):
        mean, variance = rule_of(block.prior).centre(block.prior, len(block.mass))
        return {"mean": mean, "variance": variance}

    def moments(self, block):
        m, v = block.values["mean"], block.values["variance"]
        return {"mean": m, "square": v + m * m}

    def of_moments(self, moments):
        m = moments["mean"]
        return {"mean": m, "variance": np.maximum(moments["square"] - m * m, _NARROW)}

    def penalty(self, block):
        m, v = block.values["mean"], block.values["variance"]
        terms = rule_of(block.prior).penalty(block.prior, m, v)
        return float(0.5 * namespace_of(m).sum(terms))

    def sample(self, block, codes, rng):
        m, v = moments(block)
        return rng.normal(m[codes], np.sqrt(v)[codes])

    def given(self, block, rows):
        return independent(block, rows, *moments(block))

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        data = NormalBetaPrime() if mixed else NormalGamma()
        return {"data": (data, 1.0), "paper": (PaperNormalGamma(), 1.0)}

    def prior_of_strength(self, strength):
        prior = NormalBetaPrime()
        return prior._replace(
            nu_mean=strength * prior.nu_mean, nu_variance=strength * prior.nu_variance
        )

    def check_prior(self, prior):
        rule_of(prior).check(prior)

    def prior_of_components(self, prior, by_class, by_component):
        if not rule_of(prior).in_units or prior.variance is not None:
            return prior
        return prior._replace(variance=_units.within_components(by_class(), by_component))

    def keeps_mass(self, prior):
        return rule_of(prior).in_units

    def expectations(self, block):
        m, v = moments(block)
        return {"x": m, "x^2": v + m**2}

    def slopes(self, block):
        m, v = moments(block)
        varies = v > 0  # constant columns are left out
        v = np.where(varies, v, 1.0)
        offset = np.where(varies, 0.5 * (m * m / v + np.log(v)) + _LOG_ROOT, 0.0)
        slope, curve = np.where(varies, m / v, 0.0), np.where(varies, -0.5 / v, 0.0)
        return -offset.sum(axis=1), {"x": slope, "x^2": curve}

    def features_of(self, X):
        X = np.asarray(X, dtype=np.float64)
        return np.hstack([X, X**2])

    def points(self, rows, weights, n_features):
        return _units.points(rows.values, weights)

    def example(self, codes, n_features, rng):
        size = codes.max() + 1, n_features
        means, deviations = rng.normal(size=size), 0.5 + rng.random(size)
        return 1.0 + 3.0 * rng.normal(means[codes], deviations[codes])


def moments(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances in raw units, (component, column); 0 for constant columns."""
    shift, scale = block.fixed["shift"], np.nan_to_num(block.fixed["scale"])
    mean, variance = block.values["mean"].T, block.values["variance"].T
    return shift + scale * mean, variance * scale**2


class GaussianColumn(ColumnKind):
    """Numbers that no other kind recognises, and dates and durations, as days."""

    name = "gaussian"
    slots = (NUMBER,)
    turn = 60

    def recognise(self, sample):
        match sample.kind:
            case "date":
                return Found("dates, as days since 1970-01-01")
            case "duration":
                return Found("durations, as days")
            case "number":
                return Found("numbers")
        return None

    def distribution(self, column, said):
        return number_of(column, said.shares, said.of())


register(GaussianFamily())
register_column(GaussianColumn())
