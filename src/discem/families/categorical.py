"""The categorical family: one factor per column and class, with missing cells and open levels.

Statistics of a cell are the indicators of its levels; their expectations are held as a mass of the
column and shares p(level | class). A step with one row changes all shares of a column alike but
for the level that the row has, and the prior pulls them all to its centre. So shares are held as
``scale * base + pulled * centre``, with a scale and a pull of each column and class: a step touches
one level, however many there are. The running average is as lazy.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._checks import check_array, check_number, check_weight, demand
from .._compile import helper
from ..exceptions import InputError, OptionError
from ..io.rows import code_rows
from ..priors import Levels
from ..projections import most_lost, positive, slow_down, stays_positive
from ._logs import forget_calls, set_exponents_aside
from ._protocol import (
    LEVERAGE,
    POWER,
    PRODUCT,
    SHARES,
    SLOWNESS,
    add_scores,
    add_to_average,
    gather,
    move,
    settle,
)
from ._record import Accepts, Family, register
from .arrays import namespace_of

SCALE, PULLED, LAG_OF_BASE, LAG_OF_CENTRE = range(4)
_PER_LEVEL, _MOST = 2.0, 20.0  # pseudo-observations of a level, and of all levels of a column
_POINTS = 16  # levels of a column that clusters may be told apart by
_LEAST = 1e-250  # the smallest share that a step may leave


class Categorical(NamedTuple):
    """Shares of the levels of all columns, one column after the other."""

    first: np.ndarray  # (d + 1,) where the levels of each column begin
    mass: np.ndarray  # (d,) observations behind the factors of a column, all classes together
    base: np.ndarray  # (L, K) shares, but for scale and pull
    lazy: np.ndarray  # (4, d, K): scale, pull, and what the average lacks of base and centre
    lags: np.ndarray  # (L, K), or (0, K) without an average: what else it lacks, times its weight
    weight: np.ndarray  # (1,) total weight of the average so far
    prior: Levels


class CategoricalRoom(NamedTuple):
    numbers: np.ndarray
    bits: np.ndarray
    pending: np.ndarray  # (L, K) weights by level, of a batch


class LevelCounts(NamedTuple):
    """What the data say: the weight of each level in each class."""

    first: np.ndarray
    counts: np.ndarray  # (L, K)


class CategoricalFamily(Family):
    """Levels, given by number, in no order; the number of levels of a column may grow.

    The number of features is that of the columns, or a tuple of the numbers of their levels.
    """

    name = "categorical"
    state: ClassVar[Any] = Categorical
    priors = (Levels,)
    accepts = Accepts(missing=True, negative=False)
    levels: int | None = None  # of every column; None is as many as there are

    # --- the family in numbers: statistics are indicators of the levels ---------------------------

    def statistics(self, x):
        """Rows are one-hot already, see `in_units`."""
        xp = namespace_of(x)
        return xp.where(xp.isnan(x), xp.zeros_like(x), x)

    def exposure(self, x):
        xp = namespace_of(x)
        seen = ~xp.isnan(x[..., 0])
        return xp.where(seen, xp.ones_like(x[..., 0]), xp.zeros_like(x[..., 0]))

    def log_base(self, x):
        return namespace_of(x).zeros_like(x[:, 0, 0])

    def natural(self, mu):
        """Theta = ln p, of which only differences matter."""
        return namespace_of(mu).log(mu)

    def mean(self, theta):
        xp = namespace_of(theta)
        shares = xp.exp(theta - xp.max(theta, axis=-1, keepdims=True))
        return shares / xp.sum(shares, axis=-1, keepdims=True)

    def log_normalizer(self, theta):
        xp = namespace_of(theta)
        return xp.log(xp.sum(xp.exp(theta), axis=-1))

    def pull(self, prior, pull, count, mu):
        xp = namespace_of(mu)
        nu = xp.minimum(pull * prior.nu * xp.ones_like(count), count / 2)  # half-way at most
        centre = xp.reshape(prior.centre, mu.shape[1:])
        return xp.zeros_like(count), nu[..., None] * (centre - mu)

    def inside(self, share, count, mu, d_count, d_sum):
        xp = namespace_of(mu)
        new = xp.maximum(count + d_count, (1.0 - share) * count)
        step = (d_sum - mu * d_count[..., None]) / new[..., None]
        worst = xp.max(-step / mu, axis=-1)
        over = worst > share
        f = xp.where(over, share / xp.where(over, worst, xp.ones_like(worst)), xp.ones_like(worst))
        return new, mu + f[..., None] * step

    # --- the state --------------------------------------------------------------------------------

    def check(self, block, n_classes, n_features, averages):
        d, K = len(self._sizes(n_features)), n_classes
        check_array("first", block.first, (d + 1,), least=0, dtype=np.int64)
        demand(block.first[0] == 0 and (np.diff(block.first) > 0).all(), "columns without levels")
        if isinstance(n_features, tuple):
            demand(tuple(np.diff(block.first).tolist()) == n_features, "levels are not its own")
        L = int(block.first[-1])
        check_array("mass", block.mass, (d,), above=0.0)
        check_array("base", block.base, (L, K))
        check_array("lazy", block.lazy, (4, d, K))
        check_array("scales", block.lazy[SCALE], (d, K), above=0.0)
        check_array("lags", block.lags, (L if averages else 0, K))
        check_array("weight", block.weight, (1,))
        check_weight("weight", block.weight[0])
        demand(isinstance(block.prior, Levels), "the prior is of another family")
        check_array("nu of the prior", block.prior.nu, (d,), above=0.0)
        check_array("centre of the prior", block.prior.centre, (L,), above=0.0)
        check_number("strength of the prior", block.prior.strength, above=0.0, kind=float)
        check_array("shares", shares(block), (L, K), above=0.0, most=1.0 + 1e-6)

    def _sizes(self, n_features: Any) -> tuple:
        return n_features if isinstance(n_features, tuple) else (self.levels,) * n_features

    def view(self, X):
        return code_rows(X)

    def make_room(self, block, rows, batch, classes):
        return CategoricalRoom(classes.numbers, classes.bits, np.zeros(block.base.shape))

    def collect(self, rows, parts, n_features, n_classes):
        codes = rows.values
        sizes = [
            max(int(codes[:, d].max(initial=0)) + 1, 1) if size is None else size
            for d, size in enumerate(self._sizes(n_features))
        ]
        first = np.cumsum([0, *sizes], dtype=np.int64)
        counts = np.zeros((int(first[-1]), n_classes))
        for classes, weights in parts:
            known = np.flatnonzero((classes >= 0) & (weights > 0))
            own, weight = classes[known], weights[known]
            for d, size in enumerate(sizes):
                level = codes[known, d]
                seen = (level >= 0) & (level < size)
                place = level[seen] * n_classes + own[seen]
                found = np.bincount(place, weight[seen], minlength=size * n_classes)
                counts[first[d] : first[d + 1]] += found.reshape(size, n_classes)
        return LevelCounts(first, counts)

    def merged(self, tallies):
        return tallies[0]._replace(counts=sum(tally.counts for tally in tallies))

    def start(self, prior, tally, total, init, stream):
        first, counts = tally
        d, K = len(first) - 1, counts.shape[1]
        column, sizes = _column_of(first), np.diff(first)
        nu = _strength(prior, sizes)
        if prior.centre is None:
            seen = np.add.reduceat(counts.sum(axis=1), first[:-1]) if d else np.zeros(0)
            # a level that nobody has shown may be shown yet
            centre = (counts.sum(axis=1) + 1.0 / sizes[column]) / (seen + 1.0)[column]
        else:
            centre = np.asarray(prior.centre, dtype=np.float64)
            if centre.shape != column.shape:
                raise OptionError(f"prior: centre needs {len(column)} numbers, one for each level")
        total_of = _sums(first, counts)
        if init == "prior":
            mass, p = np.full(d, float(K)), np.repeat(centre[:, None], K, axis=1)
        else:
            mass = (total_of.sum(axis=1) + 1.0) / (max(total, 1.0) + 1.0)
            if init != "generative":  # rare levels: see `start` of Gaussians
                mass = mass * 2.0 ** np.floor(np.log2(np.clip(sizes / 4.0, 1.0, 64.0)))
            p = counts + (nu[column] * centre)[:, None]
            p /= (total_of + nu[:, None])[column]
        lazy = np.zeros((4, d, K))
        lazy[SCALE] = 1.0
        prior = Levels(nu, centre, float(prior.strength))
        return self.state(first, mass, p, lazy, np.zeros((0, K)), np.zeros(1), prior)

    def averaged(self, block):
        if not block.lags.size:
            return block
        p = shares(block)
        if block.weight[0] > 0:
            p = p - _lags(block) / block.weight[0]
        return _settled(block, np.maximum(p, _LEAST))._replace(
            lags=block.lags[:0], weight=np.zeros(1)
        )

    def with_average(self, block, past, weight):
        p = shares(block)
        block = _settled(block, p)
        lags = block.lags[:0] if past is None else (p - shares(past)) * weight
        return block._replace(lags=lags, weight=np.array([float(weight)]))

    def with_classes(self, block, order, mass):
        p, lags = shares(block), _lags(block) if block.lags.size else block.lags
        p = np.concatenate([p, block.prior.centre[:, None]], axis=1)
        lags = np.concatenate([lags, np.zeros((len(lags), 1))], axis=1)
        block = _settled(block, np.ascontiguousarray(p[:, order]))
        return block._replace(lags=np.ascontiguousarray(lags[:, order]))

    def with_features(self, block, n_features):
        """More levels, each as rare as the rarest that there is of its column."""
        old, new = np.diff(block.first), np.array(self._sizes(n_features), dtype=np.int64)
        if len(old) != len(new) or (new < old).any():
            raise InputError(f"the family {self.name!r} does not take new columns")
        if (old == new).all():
            return block
        first = np.cumsum([0, *new], dtype=np.int64)
        column = _column_of(first)
        place = np.arange(first[-1]) - first[:-1][column]  # of a level in its column
        fresh = place >= old[column]
        source = np.where(fresh, 0, place + block.first[:-1][column])
        rarest = np.minimum.reduceat(block.prior.centre, block.first[:-1])
        rarest = np.minimum(rarest, 0.5 / new)
        left = 1.0 - rarest * (new - old)  # for the levels that were there

        def widened(values: np.ndarray, rare: np.ndarray) -> np.ndarray:
            kept = values[source] * left[column][:, None]
            return np.where(fresh[:, None], rare[column][:, None], kept)

        centre = widened(block.prior.centre[:, None], rarest)[:, 0]
        p, lags = widened(shares(block), rarest), block.lags
        if lags.size:  # the average has always had the new levels, as far as it is concerned
            lags = widened(_lags(block), np.zeros(len(new)))
        block = block._replace(first=first, prior=block.prior._replace(centre=centre))
        return _settled(block, p)._replace(lags=lags)

    def mean_of(self, blocks, weights, classes):
        column = _column_of(blocks[0].first)
        mass: Any = 0.0
        count: Any = 0.0
        sums: Any = 0.0
        for block, weight, p in zip(blocks, weights, classes, strict=True):
            own = weight * block.mass[:, None] * p
            mass, count = mass + weight * block.mass, count + own
            sums = sums + own[column] * shares(block)
        return _settled(blocks[0]._replace(mass=mass), sums / count[column])

    def penalty(self, block):
        weight = block.prior.nu[_column_of(block.first)] * block.prior.centre
        return -float((weight[:, None] * np.log(shares(block))).sum())

    def perturbed(self, block, columns, rng):
        p = shares(block)
        p[:, columns] *= rng.uniform(0.5, 1.5, size=(len(p), len(columns)))
        p /= _sums(block.first, p)[_column_of(block.first)]
        return _settled(block, p)

    def sample(self, block, codes, rng):
        p, drawn = shares(block), np.empty((len(codes), len(block.mass)))
        for d, (low, high) in enumerate(zip(block.first[:-1], block.first[1:], strict=True)):
            steps = np.cumsum(p[low:high], axis=0).T[codes]
            drawn[:, d] = (rng.random(len(codes))[:, None] * steps[:, -1:] > steps).sum(axis=1)
        return drawn

    def arrays(self, block, class_counts):
        count = class_counts[:, None] / class_counts.sum() * block.mass
        return count, _padded(block.first, shares(block)).transpose(2, 0, 1)

    def in_units(self, block, x):
        """One-hot, (n, column, level): the state is held by level."""
        sizes = np.diff(block.first)
        hot = (x[..., None] == np.arange(sizes.max(initial=1))).astype(np.float64)
        hot[np.isnan(x)] = np.nan
        return hot, np.zeros(len(x))

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        return {"data": (Levels(), 1.0)}

    def check_prior(self, prior):
        if prior.nu is not None and not np.all(np.asarray(prior.nu) > 0):
            raise OptionError(f"prior={prior!r}: nu must be > 0")
        if not 0 < prior.strength < np.inf:
            raise OptionError(f"prior={prior!r}: strength must be > 0")

    def prior_of_components(self, prior, by_class, by_component):
        if prior.nu is not None:
            return prior
        share = by_class().counts.shape[1] / by_component.counts.shape[1]
        return prior._replace(nu=share * _strength(prior, np.diff(by_component.first)))

    def expectations(self, block):
        return {"level": shares(block).T}

    def slopes(self, block):
        p = shares(block).T
        return np.zeros(len(p)), {"level": np.log(p)}

    def points(self, rows, weights, n_features):
        """One-hot, about the mean: a level is as far from any other as two deviations."""
        columns = []
        for d in range(rows.values.shape[1]):
            codes = rows.values[:, d]
            frequent = np.argsort(-np.bincount(codes[codes >= 0], minlength=1))[:_POINTS]
            hot = (codes[:, None] == frequent).astype(np.float64)
            seen = codes >= 0
            hot[seen] -= hot[seen].mean(axis=0) if seen.any() else 0.0
            columns.append(np.sqrt(2.0) * hot)
        return np.hstack(columns) if columns else np.zeros((rows.n_rows, 0))

    def example(self, codes, n_features, rng):
        size = (int(codes.max()) + 1, n_features)
        shares = rng.dirichlet(np.ones(self.levels or 3), size=size)
        steps = np.cumsum(shares, axis=-1)[codes]
        drawn = (rng.random((len(codes), n_features, 1)) > steps).sum(axis=-1).astype(np.float64)
        drawn[: self.levels or 3] = np.arange(self.levels or 3)[: len(drawn), None]
        return drawn


def shares(block: Any) -> np.ndarray:
    """p(level | class) of all levels, one column after the other, (L, K)."""
    column = _column_of(block.first)
    scaled = block.lazy[SCALE][column] * block.base
    return scaled + block.lazy[PULLED][column] * block.prior.centre[:, None]


def _settled(block: Any, p: np.ndarray) -> Any:
    """The block at other shares, with nothing left to scale; an average is forgotten."""
    lazy = np.zeros((4, len(block.mass), p.shape[1]))
    lazy[SCALE] = 1.0
    return block._replace(base=p, lazy=lazy)


def _lags(block: Any) -> np.ndarray:
    """What the average lacks, times its weight, (L, K)."""
    column = _column_of(block.first)
    lags = block.lags + block.lazy[LAG_OF_BASE][column] * block.base
    return lags + block.lazy[LAG_OF_CENTRE][column] * block.prior.centre[:, None]


def _column_of(first: np.ndarray) -> np.ndarray:
    """The column of each level."""
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


def _sums(first: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The sum over the levels of each column."""
    if len(first) == 1:
        return np.zeros((0, values.shape[1]))
    return np.add.reduceat(values, first[:-1], axis=0)


def _padded(first: np.ndarray, values: np.ndarray) -> np.ndarray:
    """By column and level, (d, most levels, K)."""
    sizes, column = np.diff(first), _column_of(first)
    padded = np.zeros((len(sizes), sizes.max(initial=1), values.shape[1]))
    padded[column, np.arange(len(values)) - first[:-1][column]] = values
    return padded


def _strength(prior: Levels, sizes: np.ndarray) -> np.ndarray:
    """Pseudo-observations of each column."""
    if prior.nu is None:
        return prior.strength * np.minimum(_PER_LEVEL * sizes, _MOST)
    return np.array(np.broadcast_to(np.asarray(prior.nu, dtype=np.float64), sizes.shape))


# --- compiled ------------------------------------------------------------------------------------

_SMALL, _LARGE = 1e-4, 1e4  # scales between which no digits are lost


# Rows of `room.numbers` while a row or a batch moves the shares, by class.
LEVERAGES, COUNTS, LOST = range(3)  # leverage so far; N by mass; the decay


def _add_scores(block, rows, i, a, room):
    add_log_shares(
        rows.values[i], block.first, block.mass, block.base, block.lazy, block.prior.centre,
        room.numbers, room.bits,
    )  # fmt: skip


@helper
def add_log_shares(x, first, mass, base, lazy, centre, numbers, bits):
    """Multiply the shares of the levels of a row into PRODUCT, and find their leverage."""
    K, calls = numbers.shape[1], 0
    for k in range(K):
        numbers[LEVERAGES, k] = 0.0
    for d in range(mass.shape[0]):
        j = place_of(x[d], first, d)
        if j < 0:
            continue
        calls += 1
        lightness, mean = 1.0 / mass[d], centre[j]
        for k in range(K):
            p = lazy[SCALE, d, k] * base[j, k] + lazy[PULLED, d, k] * mean
            numbers[PRODUCT, k] *= p
            numbers[LEVERAGES, k] += lightness * (1.0 / p - 1.0)
        set_exponents_aside(bits, PRODUCT, POWER)
    forget_calls(bits, POWER, calls)
    for k in range(K):
        share = numbers[SHARES, k] * numbers[SLOWNESS, k]
        numbers[LEVERAGE, k] += numbers[LEVERAGES, k] / share


@helper
def place_of(code, first, d):
    """The place of a level, or -1 where the cell is missing or nobody has heard of its level."""
    if code < 0 or code >= first[d + 1] - first[d]:
        return -1
    return first[d] + code


@helper
def begin_levels(nu, decay, pull, projection, numbers):
    """Leave in the room, by class, what all columns need to know of a step."""
    strongest = 0.0
    for d in range(nu.shape[0]):
        strongest = max(strongest, nu[d])
    for k in range(numbers.shape[1]):
        slowness = slow_down(projection, pull * strongest, numbers[SHARES, k])
        numbers[COUNTS, k] = numbers[SHARES, k] * slowness
        numbers[LOST, k] = decay / slowness
        numbers[SLOWNESS, k] = max(numbers[SLOWNESS, k], slowness)


def _move(block, rows, i, r, decay, pull, floor, projection, room):
    begin_levels(block.prior.nu, decay, pull, projection, room.numbers)
    return move_levels(
        rows.values[i], r, block.first, block.mass, block.base, block.lazy, block.lags,
        block.weight[0], block.prior.nu, block.prior.centre, decay, pull, floor, projection,
        room.numbers, room.pending,
    )  # fmt: skip


@helper
def move_levels(
    x, r, first, mass, base, lazy, lags, weight, nu, centre, decay, pull, floor, projection,
    numbers, pending,
):  # fmt: skip
    """Move all columns by one row, decay and prior; return how many steps were shortened."""
    K, shortened, all_r = r.shape[0], 0, 0.0
    most, averages = most_lost(projection), lags.shape[0] > 0
    for k in range(K):
        all_r += r[k]
    for d in range(mass.shape[0]):
        j, own = place_of(x[d], first, d), mass[d]
        seen = 1.0 if j >= 0 else 0.0
        gained, mean, pulls = all_r * seen, centre[max(j, 0)], pull * nu[d]
        for k in range(K):
            count = own * numbers[COUNTS, k]
            more, to_prior = r[k] * seen, min(pulls, 0.5 * count)  # half-way at most
            inverse = 1.0 / (count - numbers[LOST, k] * count + more)
            step, toward = more * inverse, to_prior * inverse
            scale, pulled = lazy[SCALE, d, k], lazy[PULLED, d, k]
            # no level that the row has not loses more than this, nor the one that it has
            worst = step + toward
            if step < 0.0:
                p = scale * base[j, k] + pulled * mean
                worst = max(worst, step + toward - (step + toward * mean) / p)
            if not (worst <= most and stays_positive(projection, count, inverse, floor)):
                if j >= 0:
                    pending[j, k] = r[k]
                gained += land_levels(
                    d, k, max(j, 0), max(j, -1) + 1, count, to_prior, first, base, lazy, lags,
                    weight, centre, floor, projection, numbers, pending,
                )  # fmt: skip
                shortened += 1
                continue
            keep = 1.0 - step - toward
            lazy[SCALE, d, k] = keep * scale
            lazy[PULLED, d, k] = keep * pulled + toward
            if averages:
                lazy[LAG_OF_BASE, d, k] += weight * (keep * scale - scale)
                lazy[LAG_OF_CENTRE, d, k] += weight * (keep * pulled + toward - pulled)
            if j >= 0:
                wider = step / (keep * scale)
                base[j, k] += wider
                if averages:
                    lags[j, k] += step * weight - wider * lazy[LAG_OF_BASE, d, k]
            if not _SMALL < keep * scale < _LARGE:
                fold(d, k, first, base, lazy, lags, centre)
        mass[d], _ = positive(projection, own, gained - decay * own, floor)
    return shortened


@helper
def land_levels(
    d, k, low, high, count, to_prior, first, base, lazy, lags, weight, centre, floor, projection,
    numbers, pending,
):  # fmt: skip
    """Land a step of one column and class, by what waits for its levels from `low` to `high`.

    Nothing waits afterwards. Returns by how much the count changed beyond what it should have.
    """
    total, most = 0.0, most_lost(projection)
    for j in range(low, high):
        total += pending[j, k]
    change = total - numbers[LOST, k] * count
    new_count, _ = positive(projection, count, change, floor)
    scale, pulled, worst = lazy[SCALE, d, k], lazy[PULLED, d, k], 0.0
    for j in range(first[d], first[d + 1]):  # the largest share of itself that a level loses
        p = scale * base[j, k] + pulled * centre[j]
        gain = (pending[j, k] + to_prior * centre[j]) / p
        worst = max(worst, (total + to_prior - gain) / new_count)
    f = most / worst if worst > most else 1.0
    step, toward = f * total / new_count, f * to_prior / new_count
    keep = 1.0 - step - toward
    if not _SMALL < keep * scale < _LARGE:  # the prior may leave nothing of the shares to scale
        fold(d, k, first, base, lazy, lags, centre)
        for j in range(first[d], first[d + 1]):
            p = base[j, k]
            base[j, k] = max(keep * p + toward * centre[j] + f * pending[j, k] / new_count, _LEAST)
            if lags.shape[0] > 0:
                lags[j, k] += weight * (base[j, k] - p)
            pending[j, k] = 0.0
        return new_count - count - change
    lazy[SCALE, d, k] = keep * scale
    lazy[PULLED, d, k] = keep * pulled + toward
    if lags.shape[0] > 0:
        lazy[LAG_OF_BASE, d, k] += weight * (keep * scale - scale)
        lazy[LAG_OF_CENTRE, d, k] += weight * (keep * pulled + toward - pulled)
    for j in range(low, high):
        more = f * pending[j, k] / new_count
        base[j, k] += more / (keep * scale)
        if lags.shape[0] > 0:
            lags[j, k] += more * (weight - lazy[LAG_OF_BASE, d, k] / (keep * scale))
        pending[j, k] = 0.0
    return new_count - count - change


@helper
def fold(d, k, first, base, lazy, lags, centre):
    """Let the shares of a column be its base, before scales cost digits."""
    for j in range(first[d], first[d + 1]):
        if lags.shape[0] > 0:
            lags[j, k] += lazy[LAG_OF_BASE, d, k] * base[j, k]
            lags[j, k] += lazy[LAG_OF_CENTRE, d, k] * centre[j]
        p = lazy[SCALE, d, k] * base[j, k] + lazy[PULLED, d, k] * centre[j]
        base[j, k] = max(p, _LEAST)
    lazy[SCALE, d, k] = 1.0
    lazy[PULLED, d, k] = 0.0
    lazy[LAG_OF_BASE, d, k] = 0.0
    lazy[LAG_OF_CENTRE, d, k] = 0.0


def _gather(block, rows, i, r, room):
    for d in range(block.mass.shape[0]):
        j = place_of(rows.values[i, d], block.first, d)
        if j >= 0:
            for k in range(r.shape[0]):
                room.pending[j, k] += r[k]


def _settle(block, decay, pull, floor, projection, room):
    begin_levels(block.prior.nu, decay, pull, projection, room.numbers)
    shortened, pending = 0, room.pending
    for d in range(block.mass.shape[0]):
        low, high, gained = block.first[d], block.first[d + 1], 0.0
        for k in range(pending.shape[1]):
            count = block.mass[d] * room.numbers[COUNTS, k]
            for j in range(low, high):
                gained += pending[j, k]
            beyond = land_levels(
                d, k, low, high, count, min(pull * block.prior.nu[d], 0.5 * count), block.first,
                block.base, block.lazy, block.lags, block.weight[0], block.prior.centre, floor,
                projection, room.numbers, pending,
            )  # fmt: skip
            gained += beyond
            shortened += 1 if beyond > 0.0 else 0
        change = gained - decay * block.mass[d]
        block.mass[d], _ = positive(projection, block.mass[d], change, floor)
    return shortened


def _add_to_average(block, weight):
    block.weight[0] += weight


def register_levels(family: CategoricalFamily) -> Family:
    """Make a family of levels known, with the compiled functions of all such families."""
    add_scores.register(family.state)(_add_scores)
    move.register(family.state)(_move)
    gather.register(family.state)(_gather)
    settle.register(family.state)(_settle)
    add_to_average.register(family.state)(_add_to_average)
    return register(family)


CATEGORICAL = register_levels(CategoricalFamily())
