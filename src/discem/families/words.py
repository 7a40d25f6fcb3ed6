"""The family of words: a multinomial per class over sparse counts, which may be real numbers.

The statistics of a document are its counts. The expected count of word w in class k is
``scale * count[w, k] + gamma * alpha[w]``: decay and prior act on all words at once through the
scalars `scale` and `gamma`, so a step costs only the words of its document. The likelihood is that
of the words in order, without the multinomial coefficient (which no class can change).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .._checks import check_array, check_number, check_weight, demand
from .._compile import generic, helper, kernel
from ..exceptions import InputError, OptionError
from ..figures import NCLL_SUM, NLL_SUM
from ..io.rows import extended, sparse_rows
from ..priors import Dirichlet
from ..projections import Check, Interior
from ..schedules import constant
from ._logs import forget_calls, set_exponents_aside, take_block_logs, take_logs
from ._protocol import (
    LEVERAGE,
    POWER,
    PRODUCT,
    add_leverage,
    add_scores,
    add_to_average,
    gather,
    move,
    settle,
)
from ._record import Accepts, Family, register
from .arrays import namespace_of

SCALE, GAMMA, LAG_SCALE, LAG_GAMMA, WEIGHT, FACTORS = range(6)  # of `Words.lazy`
_MOST_FACTORS = 100.0
_SLICE = 1 << 20  # numbers to work on at a time
_BLOCK = 1024  # numbers to take logarithms of at a time: they and their exponents stay in cache
_EAGER = 10.0  # a step is so many documents of the start, which is to be outweighed soon
_LEAST = 0.02  # pseudo-counts are never next to nothing beside counts, however small these are
_SEEN = 5000  # rows that tell what is typical
_QUIET = 0.005  # weight of all unlabelled documents together, beside that of the labelled ones


class Words(NamedTuple):
    """Expected word counts of all classes, one row a word so that classes are contiguous."""

    counts: np.ndarray  # (W, K)
    total: np.ndarray  # (K,) expected length of a document times the mass of the class
    lag: np.ndarray  # (W, K), or (0, K) without an average: what it lacks, times its weight
    alpha: np.ndarray  # (W,)
    alpha_total: float
    unseen: np.ndarray  # (2, K) count and lag of a word that never occurred, per pseudo-count
    lazy: np.ndarray  # the scalars above
    length: np.ndarray  # (1,) mean length of the documents that training started from


class WordsRoom(NamedTuple):
    numbers: np.ndarray
    bits: np.ndarray
    block: np.ndarray  # (2, n) one number per word and class, and their exponents
    block_bits: np.ndarray
    cells: np.ndarray  # (words, K) the same numbers, by word and class
    powers: np.ndarray  # (words,) how often each word occurs
    place: np.ndarray  # (W,) where the words of a batch wait, plus one; 0: not there
    waiting: np.ndarray  # (words,) the words that wait
    pending: np.ndarray  # (words, K) what a batch adds to their counts
    n_waiting: np.ndarray  # (1,)


class WordsFamily(Family):
    """Counts of words, drawn one by one from the distribution of the class."""

    name = "words"
    state = Words
    priors = (Dirichlet,)
    accepts = Accepts(sparse=True, negative=False)

    # --- the family in numbers: one factor, whose statistics are the counts -----------------------

    def statistics(self, x):
        return x[..., None, :]

    def exposure(self, x):
        """Each token is one draw."""
        return namespace_of(x).sum(x, axis=-1)[..., None]

    def natural(self, mu):
        """theta(mu) = ln(mu / sum mu)."""
        xp = namespace_of(mu)
        return xp.log(mu) - xp.log(xp.sum(mu, axis=-1, keepdims=True))

    def mean(self, theta):
        xp = namespace_of(theta)
        weights = xp.exp(theta - xp.max(theta, axis=-1, keepdims=True))
        return weights / xp.sum(weights, axis=-1, keepdims=True)

    def log_normalizer(self, theta):
        xp = namespace_of(theta)
        top = xp.max(theta, axis=-1)
        return top + xp.log(xp.sum(xp.exp(theta - top[..., None]), axis=-1))

    def pull(self, prior, pull, count, mu):
        xp = namespace_of(mu)
        alpha = prior.alpha * xp.ones_like(mu)
        return pull * xp.sum(alpha, axis=-1), pull * alpha

    def inside(self, share, count, mu, d_count, d_sum):
        """Every cell is a factor of its own."""
        xp = namespace_of(mu)
        cells = count[..., None] * mu
        cells = cells + xp.maximum(d_sum, -share * cells)
        total = xp.sum(cells, axis=-1)
        return total, cells / total[..., None]

    # --- the state --------------------------------------------------------------------------------

    def check(self, block, n_classes, n_features, averages):
        W, K = n_features, n_classes
        check_array("alpha", block.alpha, (W,), above=0.0)
        check_number("alpha_total", block.alpha_total, above=0.0, kind=float)
        same = np.isclose(block.alpha_total, block.alpha.sum(), rtol=1e-6)
        demand(same, "alpha_total is not the sum of alpha")
        check_array("lazy", block.lazy, (FACTORS + 1,), least=0.0)
        check_number("scale", block.lazy[SCALE], above=0.0)
        check_weight("weight", block.lazy[WEIGHT])
        check_number("factors", block.lazy[FACTORS], most=_MOST_FACTORS)
        check_array("counts", block.counts, (W, K))
        check_array("total", block.total, (K,), above=0.0)
        check_array("lag", block.lag, (W if averages else 0, K))
        check_array("unseen", block.unseen, (2, K))
        check_array("length", block.length, (1,), least=0.0)
        inside = block.counts.min() >= 0.0 or _least(block) >= 0.0
        demand(inside, "counts and what the prior adds to them are negative")

    def view(self, X):
        return sparse_rows(X)

    def make_room(self, block, rows, batch, classes):
        W, K = block.counts.shape
        words = max(_BLOCK // K, 1)
        logs = np.zeros((2, words * K))
        # a batch has at most so many different words
        longest = int(np.diff(rows.indptr).max(initial=0)) if batch > 1 else 0
        waiting = min(batch * longest, W)
        return WordsRoom(
            classes.numbers,
            classes.bits,
            logs,
            logs.view(np.uint64),
            logs[0].reshape(words, K),
            np.zeros(words),
            np.zeros(W if batch > 1 else 0, dtype=np.int64),
            np.zeros(waiting, dtype=np.int64),
            np.zeros((waiting, K)),
            np.zeros(1, dtype=np.int64),
        )

    def collect(self, rows, parts, n_features, n_classes):
        """Weighted counts of each word in each class, as (W, K)."""
        counts = np.zeros((n_features, n_classes))
        lengths = np.diff(rows.indptr)
        cuts = np.searchsorted(rows.indptr, np.arange(0, rows.indptr[-1], _SLICE))
        for codes, weights in parts:
            codes = np.maximum(codes, 0)  # an unlabelled row adds nothing, anywhere
            for first, last in pairwise(np.unique([0, *cuts, len(lengths)])):
                stored = slice(rows.indptr[first], rows.indptr[last])
                size = lengths[first:last]
                cells = rows.indices[stored].astype(np.int64) * n_classes
                cells += np.repeat(codes[first:last], size)
                weight = np.repeat(weights[first:last], size)
                np.add.at(counts.reshape(-1), cells, rows.values[stored] * weight)
        return counts

    def start(self, prior, tally, total, init, stream):
        """The state takes over the memory of the tally, for there may be no room for both."""
        alpha = _pseudo_counts(prior, tally)
        length = np.array([float(tally.sum()) / max(total, 1e-300)])
        total = max(total, 1.0)
        products = _safe_products(max(tally.max(initial=1.0), alpha.max()), alpha.min(), total)
        if init == "prior":
            tally[:] = alpha[:, None]
            return _state(tally, 0.0, alpha, length, products, 1.0)
        tally /= total
        return _state(tally, 1.0 / total, alpha, length, products)

    def averaged(self, block):
        if not block.lag.size:
            return block
        weight = block.lazy[WEIGHT]
        if weight == 0:
            return self.with_average(block, None, 0.0)
        scale, gamma = block.lazy[LAG_SCALE] / weight, block.lazy[LAG_GAMMA] / weight
        most = scale * block.counts.max(initial=0.0) + gamma * block.alpha.max(initial=0.0)
        floor = 1e-12 * most  # rounding may leave less of a collapsed cell
        count = np.empty_like(block.counts)
        size = max(_SLICE // count.shape[1], 1)
        for first in range(0, len(count), size):  # there may be no room for intermediate results
            part = slice(first, first + size)
            cells = block.counts[part] * scale - block.lag[part] / weight
            count[part] = np.maximum(cells + gamma * block.alpha[part, None], floor)
        unseen = scale * block.unseen[0] - block.unseen[1] / weight + gamma
        return _state(count, 0.0, block.alpha, block.length, block.lazy[FACTORS], unseen)

    def with_average(self, block, past, weight):
        lazy = block.lazy.copy()
        lazy[[LAG_SCALE, LAG_GAMMA, WEIGHT]] = weight * lazy[SCALE], 0.0, weight
        lag, unseen = block.lag[:0], block.unseen.copy()
        unseen[1] = 0.0
        if past is None:
            lazy[[LAG_SCALE, LAG_GAMMA, WEIGHT]] = 0.0
        elif weight == 0:
            lag = np.zeros_like(block.counts)
        else:
            lag = weight * (lazy[SCALE] * block.counts - past.lazy[SCALE] * past.counts)
            unseen[1] = weight * (lazy[SCALE] * unseen[0] - past.lazy[SCALE] * past.unseen[0])
            lazy[LAG_GAMMA] = weight * past.lazy[GAMMA]
        return block._replace(lag=lag, lazy=lazy, unseen=unseen)

    def with_classes(self, block, order, mass):
        """A new class has `mass` documents of the prior's words."""
        words = mass * block.total.mean()
        share = words / block.alpha_total / block.lazy[SCALE]
        cells = block.alpha * share
        total = np.append(block.total, words + block.lazy[GAMMA] * block.alpha_total)
        none = np.zeros((len(block.lag), 1))
        return block._replace(
            counts=np.ascontiguousarray(np.hstack([block.counts, cells[:, None]])[:, order]),
            lag=np.ascontiguousarray(np.hstack([block.lag, none])[:, order]),
            total=total[order],
            unseen=np.hstack([block.unseen, [[share], [0.0]]])[:, order].copy(),
        )

    def with_features(self, block, n_features):
        """Add words; they stand where words that never occurred have come to stand.

        Their pseudo-count is that of the first word, so it should be the same for all. The block
        given shares memory with the one returned and must not be used again.
        """
        new = n_features - len(block.alpha)
        prior, (count, lag) = float(block.alpha[0]), block.unseen
        cell = (block.lazy[SCALE] * count + block.lazy[GAMMA]) * prior
        return block._replace(
            counts=extended(block.counts, new, count * prior),
            total=block.total + new * cell,
            lag=extended(block.lag, new, lag * prior) if block.lag.size else block.lag,
            alpha=extended(block.alpha, new, prior),
            alpha_total=block.alpha_total + new * prior,
        )

    def mean_of(self, blocks, shares, classes):
        return self.joined(blocks, shares, classes, None, 0.0)

    def joined(self, blocks, shares, classes, past, weight, run=map):
        """All is linear in the counts and lags of the blocks: one visit to each is enough.

        The mean has a scale of 1, and an average of ``weight * count - lag + gamma * alpha``, over
        `weight`, that is the mean of those of the blocks.
        """
        first, averaging = blocks[0], past is not None
        lazy = np.stack([block.lazy for block in blocks])
        to_count = shares * lazy[:, SCALE]
        from_count, from_lag = np.zeros((2, len(blocks)))
        mean = np.array([1.0, shares @ lazy[:, GAMMA], 0.0, 0.0, 0.0, lazy[:, FACTORS].min()])
        if averaging:
            new = lazy[:, WEIGHT] == 0.0  # an average of nothing is the state itself
            lazy[new, LAG_SCALE], lazy[new, LAG_GAMMA] = lazy[new, SCALE], lazy[new, GAMMA]
            from_lag = shares * (weight / np.where(new, 1.0, lazy[:, WEIGHT]))
            from_count = shares * weight * lazy[:, SCALE] - from_lag * lazy[:, LAG_SCALE]
            mean[[LAG_SCALE, LAG_GAMMA, WEIGHT]] = weight, from_lag @ lazy[:, LAG_GAMMA], weight
        counts = np.empty_like(first.counts)
        lag = np.empty_like(first.counts if averaging else first.lag[:0])
        size = max(_SLICE // counts.shape[1] // 16, 1)

        def add_up(begin: int) -> None:
            part, at = slice(begin, begin + size), np.s_[begin : begin + (size if averaging else 0)]
            counts[part], lag[at] = 0.0, 0.0
            for b, block in enumerate(blocks):
                add_block(
                    counts[part], lag[at], block.counts[part], block.lag[at],
                    to_count[b], from_count[b], from_lag[b],
                )  # fmt: skip

        for _ in run(add_up, range(0, len(counts), size)):
            pass
        unseen, unseen_lag = (np.stack([block.unseen[j] for block in blocks]) for j in (0, 1))
        never = np.stack([to_count @ unseen, from_count @ unseen + from_lag @ unseen_lag])
        total = shares @ np.stack([block.total for block in blocks])
        length = shares @ np.stack([block.length for block in blocks])
        return first._replace(
            counts=counts, total=total, lag=lag, unseen=never, lazy=mean, length=length
        )

    def penalty(self, block):
        return -float((block.alpha * log_probabilities(block)).sum())

    def perturbed(self, block, columns, rng):
        """Words become more or less frequent, by a half at most."""
        size = len(block.alpha), len(columns)
        return reweighed(block, rng.uniform(0.5, 1.5, size=size), columns)

    def prepare(self, block, rows):
        """Stop multiplying counts if the next ones may be too large for it."""
        if rows.values.max(initial=0.0) > 1e6:
            block.lazy[FACTORS] = 0.0

    def sample(self, block, codes, rng):
        p = np.exp(log_probabilities(block))
        p /= p.sum(axis=1, keepdims=True)
        lengths = draw_lengths(block, len(codes), rng)
        return np.stack([rng.multinomial(n, p[k]) for k, n in zip(codes, lengths, strict=True)])

    def arrays(self, block, class_counts):
        return block.total[:, None], np.exp(log_probabilities(block))[:, None, :]

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        log = float(np.log(max(n_features, 3)))
        return {
            "data": (Dirichlet(1.0) if generative else Dirichlet(), 1.0),
            "laplace": (Dirichlet(1.0), 1.0),
            "log": (Dirichlet(log), log),  # the supplement adds the same gamma to class counts
        }

    def check_prior(self, prior):
        if prior.alpha is None and not 0 < prior.strength < np.inf:
            raise OptionError(f"prior={prior!r}: strength must be > 0")
        if prior.alpha is not None and prior.strength != Dirichlet().strength:
            raise OptionError(
                f"prior={prior!r}: strength stands in for alpha, give one of them only"
            )

    def complete_prior(self, prior, rows, parts, components=1.0):
        if prior.alpha is not None:
            return prior
        square = _typical_square(rows, parts)
        return prior._replace(alpha=float(prior.strength) * square / components)

    def keeps_mass(self, prior):
        return False

    lifts_to_prior = True
    least_rows = 200
    least_visits = 2e6

    def step_of_part(self, rho, parts):
        """A part sees its share of the occurrences of a word, and has to move by all of them."""
        return parts * rho

    def auto_step(self, generative, n, block, shares, mixed=False):
        if generative:
            return super().auto_step(generative, n, block, shares, mixed)
        if block.unseen[0].any():  # at the prior: a step is a document beside its pseudo-counts
            return constant(1.0)
        return constant(_EAGER / n)

    def auto_unlabelled(self, generative, ratio):
        # an NLL step replaces a share of all counts, also of those that tell classes apart
        return 1.0 if generative else _QUIET / ratio

    def expectations(self, block):
        return {"word": block.length[0] * np.exp(log_probabilities(block))}

    def slopes(self, block):
        return np.zeros(len(block.total)), {"word": log_probabilities(block)}

    def features_of(self, X):
        return X if sp.issparse(X) else np.asarray(X, dtype=np.float64)

    def points(self, rows, weights, n_features):
        """Documents on a sphere."""
        from sklearn.preprocessing import normalize

        stored = rows.values, rows.indices.view(np.int32), rows.indptr
        return normalize(sp.csr_matrix(stored, shape=(len(weights), n_features)))

    def extra_figures(self, figures, rows, order, weights):
        """Perplexity: exp of -ln p(x) per word."""
        lengths, filled = np.zeros(len(weights)), np.diff(rows.indptr) > 0
        lengths[filled] = np.add.reduceat(rows.values, rows.indptr[:-1][filled])
        n_words = float(lengths[order] @ weights[order])
        log_likelihood = figures[NCLL_SUM] - figures[NLL_SUM]  # ln p(x)
        exponent = -log_likelihood / max(n_words, 1e-300)
        return {"perplexity": float(np.exp(min(exponent, 700.0)))}

    def example(self, codes, n_features, rng):
        rates = 0.3 + 3.0 * rng.random((codes.max() + 1, n_features))
        return rng.poisson(rates[codes]).astype(float)


def _state(count, gamma, alpha, length, products=0.0, unseen=0.0) -> Words:
    total = count.sum(axis=0) + gamma * alpha.sum()
    K = count.shape[1]
    lazy = np.array([1.0, gamma, 0.0, 0.0, 0.0, products])
    never = np.stack([np.broadcast_to(unseen, K), np.zeros(K)])
    return Words(count, total, np.zeros((0, K)), alpha, float(alpha.sum()), never, lazy, length)


def _least(block: Words) -> float:
    """The least of all expected counts, but for what rounding leaves of a collapsed one."""
    prior = (1.0 + 1e-9) * block.lazy[GAMMA] * block.alpha
    return float((block.lazy[SCALE] * block.counts.min(axis=1) + prior).min())


def _pseudo_counts(prior: Dirichlet, tally: np.ndarray) -> np.ndarray:
    """Of each word."""
    W = len(tally)
    try:
        alpha = np.array(np.broadcast_to(np.asarray(prior.alpha, dtype=np.float64), (W,)))
    except ValueError as error:
        raise OptionError(f"prior: alpha needs one number, or one for each of {W} words") from error
    if not np.all((alpha > 0) & np.isfinite(alpha)):
        raise OptionError("prior: alpha must be > 0 for every word")
    return alpha


def _typical_square(rows, parts: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """|x|^2 of a document whose words all occur as often as is typical, times its weight.

    A mean of squares would be that of the longest document, or of one word that fills them all. The
    weight is that of the class whose rows have the least, which is to be heard, too.
    """
    pairs = [(codes[w > 0], w[w > 0]) for codes, w in parts]  # what has no label has no weight
    codes, weights = (np.concatenate(each) for each in zip(*pairs, strict=True))
    if not len(codes):
        return 1.0
    sizes = np.bincount(codes)
    lightest = float((np.bincount(codes, weights)[sizes > 0] / sizes[sizes > 0]).min())
    values, n_rows = _cells(rows, np.sum([w for _, w in parts], axis=0))
    often, n_words = _geometric_mean(values), max(int(np.count_nonzero(values)), 1)
    return lightest * often * max(often * n_words / n_rows, _LEAST)


def typical_count(rows, weights: np.ndarray) -> float:
    """How often a word typically occurs where it occurs."""
    return _geometric_mean(_cells(rows, weights)[0])


def typical_length(rows, weights: np.ndarray) -> float:
    """The length of a document whose words all occur as often as is typical."""
    values, n_rows = _cells(rows, weights)
    return _geometric_mean(values) * np.count_nonzero(values) / max(n_rows, 1)


def _cells(rows, weights: np.ndarray) -> tuple[np.ndarray, int]:
    """What some rows hold that have a weight, and how many they are."""
    chosen = np.flatnonzero(weights)
    chosen = chosen[:: -(-len(chosen) // _SEEN)]
    cells = [rows.values[rows.indptr[i] : rows.indptr[i + 1]] for i in chosen]
    return np.concatenate(cells), len(chosen)


def _geometric_mean(values: np.ndarray) -> float:
    values = values[values > 0]
    return float(np.exp(np.log(values).mean())) if len(values) else 1.0


def draw_lengths(block: Words, n: int, rng) -> np.ndarray:
    """Lengths of n documents."""
    if not block.length[0] < 1e9:
        raise InputError(f"documents of {block.length[0]:g} words are too long to draw")
    return rng.poisson(block.length[0], size=n)


def _safe_products(most: float, least: float, total: float) -> float:
    """How many counts can be multiplied before their exponents must be set aside.

    No count exceeds `most` by much, and an interior step leaves no less than half of what the prior
    gave in one step, rho alpha / n. Zero where counts are too extreme to be multiplied at all.
    """
    bits = max(np.log2(most) + 10.0, 10.0 - np.log2(least / total**2))
    factors = float(np.floor(10.0 * _MOST_FACTORS / bits))
    return factors if factors > 10.0 else 0.0


def reweighed(block: Words, factor: np.ndarray, columns=slice(None)) -> Words:
    """Multiply the expected counts of all words in some columns."""
    counts = block.counts.copy()
    own = block.lazy[SCALE] * counts[:, columns] + block.lazy[GAMMA] * block.alpha[:, None]
    off = own * (factor - 1.0)
    counts[:, columns] += off / block.lazy[SCALE]
    total = block.total.copy()
    total[columns] += off.sum(axis=0)
    return block._replace(counts=counts, total=total)


def log_probabilities(block: Words, chosen=slice(None)) -> np.ndarray:
    """Ln p(word | class), as (class, word), of all words or of the chosen ones."""
    counts, alpha = block.counts[chosen], block.alpha[chosen]
    cells = block.lazy[SCALE] * counts + block.lazy[GAMMA] * alpha[:, None]
    return np.ascontiguousarray((np.log(cells) - np.log(block.total)).T)


# --- compiled ------------------------------------------------------------------------------------


@add_scores.register(Words)
def _add_scores(block, rows, i, a, room):
    term, term_exponent = 0, 1
    K = a.shape[0]
    scale = block.lazy[SCALE]
    gamma = block.lazy[GAMMA] / scale
    most = min(8.0, block.lazy[FACTORS])
    room_for_more = block.lazy[FACTORS] - most
    length, waiting, calls, raised = 0.0, 0.0, 1, 0
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        w, x = rows.indices[j], rows.values[j]
        length += x
        smoothing = gamma * block.alpha[w]
        if x <= most and x == np.floor(x):  # a small count: multiply
            waiting += x
            while x > 1.0:
                for k in range(K):
                    cell = block.counts[w, k] + smoothing
                    room.numbers[PRODUCT, k] *= cell * cell
                x -= 2.0
            if x > 0.0:
                for k in range(K):
                    room.numbers[PRODUCT, k] *= block.counts[w, k] + smoothing
            if waiting > room_for_more:
                set_exponents_aside(room.bits, PRODUCT, POWER)
                waiting = 0.0
                calls += 1
        else:
            for k in range(K):
                room.cells[raised, k] = block.counts[w, k] + smoothing
            room.powers[raised] = x
            raised += 1
            if raised == room.powers.shape[0]:
                _add_powers(room, raised, a)
                raised = 0
    _add_powers(room, raised, a)
    for k in range(K):  # the total of a class, in the scale its words are held in
        room.numbers[term, k] = block.total[k] / scale
    take_logs(room.numbers, room.bits, term, term_exponent)
    set_exponents_aside(room.bits, PRODUCT, POWER)
    forget_calls(room.bits, POWER, calls)
    for k in range(K):
        a[k] -= length * room.numbers[term, k]


@helper
def _add_powers(room, n_words, a):
    """Add the logarithms of the words in the block, each as often as the word occurs."""
    K = a.shape[0]
    take_block_logs(room.block, room.block_bits, n_words * K)
    for j in range(n_words):
        power = room.powers[j]
        for k in range(K):
            a[k] += power * room.cells[j, k]


@kernel
def add_block(counts, lag, own_counts, own_lag, to_count, from_count, from_lag):
    """Add multiples of the counts and lags of a block to those of a mean."""
    for w in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            counts[w, k] += to_count * own_counts[w, k]
    for w in range(lag.shape[0]):
        for k in range(lag.shape[1]):
            lag[w, k] += from_count * own_counts[w, k] + from_lag * own_lag[w, k]


@generic
def lowest(projection, own, cell):
    """The most negative change of a cell of expected count `cell`, of which `own` is not prior."""


@lowest.register(Interior)
def _lowest_interior(projection, own, cell):
    return -projection.share * cell


@lowest.register(Check)
def _lowest_check(projection, own, cell):
    return -(1.0 - 1e-15) * max(own, 0.0)  # rounding must not leave less than nothing


@generic
def most_decay(projection):
    """The largest share of itself that a factor may lose to decay in one step."""


@most_decay.register(Interior)
def _most_decay_interior(projection):
    return projection.share


@most_decay.register(Check)
def _most_decay_check(projection):
    return 1.0 - 1e-12


_NEGLIGIBLE = 1e-2  # a change this small beside the prior's own is not worth a visit to the words


@helper
def matters(r, floor):
    """Whether a class with weight r is to be moved."""
    return abs(r) > _NEGLIGIBLE * floor


@add_leverage.register(Words)
def _add_leverage(block, rows, i, r, floor, room):
    add_leverage_of_columns(block, rows, i, Observed(), r, floor, 0, room)


@helper
def add_leverage_of_columns(block, rows, i, document, r, floor, shift, room):
    """By class: sum x^2 / count - length^2 / total, counts and totals as they are after the step.

    So a class of next to no mass may be given its first document. The column of a class is its
    number plus `shift`.
    """
    K, square, length = r.shape[0], 0, 1  # rows of the room
    active = 0
    for k in range(K):
        active += matters(r[k], floor)
        room.numbers[square, k] = 0.0
        room.numbers[length, k] = 0.0
    if active == 0:
        return
    scale, gamma, begin = block.lazy[SCALE], block.lazy[GAMMA], rows.indptr[i]
    for j in range(begin, rows.indptr[i + 1]):
        w, x = rows.indices[j], rows.values[j]
        smoothing = gamma * block.alpha[w]
        for k in range(K):
            if 4 * active > K or matters(r[k], floor):
                m = shift + k
                t = tokens(document, x, j - begin, m)
                cell = scale * block.counts[w, m] + smoothing + abs(r[k]) * t
                room.numbers[length, k] += t
                room.numbers[square, k] += t * t / cell
    for k in range(K):
        total = block.total[shift + k] + abs(r[k]) * room.numbers[length, k]
        even = room.numbers[length, k] ** 2 / total
        room.numbers[LEVERAGE, k] += max(room.numbers[square, k] - even, 0.0)


@helper
def age(block, decay, pull, projection):
    """Let decay and prior act on all words at once."""
    K = block.total.shape[0]
    lazy = block.lazy
    if decay != 0.0:
        keep = 1.0 - min(decay, most_decay(projection))
        lazy[SCALE] *= keep
        lazy[GAMMA] *= keep
        for k in range(K):
            block.total[k] *= keep
        if lazy[SCALE] < 1e-3:  # before digits are lost, fold the scale into the counts
            for w in range(block.counts.shape[0]):
                for k in range(K):
                    if block.lag.shape[0] > 0:  # and the average so far into the lag
                        block.lag[w, k] -= lazy[LAG_SCALE] * block.counts[w, k]
                    block.counts[w, k] *= lazy[SCALE]
            for k in range(K):
                block.unseen[1, k] -= lazy[LAG_SCALE] * block.unseen[0, k]
                block.unseen[0, k] *= lazy[SCALE]
            lazy[LAG_SCALE] = 0.0
            lazy[SCALE] = 1.0
    if pull != 0.0:
        lazy[GAMMA] += pull
        for k in range(K):
            block.total[k] += pull * block.alpha_total


@move.register(Words)
def _move(block, rows, i, r, decay, pull, floor, projection, room):
    K = r.shape[0]
    age(block, decay, pull, projection)
    active = 0
    for k in range(K):
        active += matters(r[k], floor)
    if 4 * active > K:
        return move_columns(block, rows, i, Observed(), r, 0, K, 0, projection, room)
    shortened = 0
    for k in range(K):
        if matters(r[k], floor):
            shortened += move_columns(block, rows, i, Observed(), r, k, k + 1, 0, projection, room)
    return shortened


class Observed(NamedTuple):
    """A document as it is: every class gets all of its tokens."""


@generic
def tokens(document, x, j, m):
    """How many of the x tokens of the j-th word of a document column m gets."""


@tokens.register(Observed)
def _tokens_observed(document, x, j, m):
    return x


@helper
def move_columns(block, rows, i, document, r, first, last, shift, projection, room):
    """Move the words of a document in the classes from `first` up to `last`.

    The column of a class is its number plus `shift`.
    """
    total, held = 0, 1  # rows of the room: the change of each class, and what bounds held back
    scale, gamma = block.lazy[SCALE], block.lazy[GAMMA]
    unit, lag = 1.0 / scale, block.lazy[LAG_SCALE] / scale
    averaging = block.lag.shape[0] > 0
    begin = rows.indptr[i]
    first, last = np.uint64(first), np.uint64(last)  # an index that cannot count from the end
    shift = np.uint64(shift)
    for k in range(first, last):
        room.numbers[total, k] = 0.0
        room.numbers[held, k] = 0.0
    for j in range(begin, rows.indptr[i + 1]):
        w, x = rows.indices[j], rows.values[j]
        smoothing = gamma * block.alpha[w]
        for k in range(first, last):
            m = shift + k
            count = block.counts[w, m]
            bound = lowest(projection, scale * count, scale * count + smoothing)
            wanted = r[k] * tokens(document, x, j - begin, m)
            change = wanted if wanted > bound else bound
            room.numbers[total, k] += change
            room.numbers[held, k] += change - wanted
            block.counts[w, m] = count + change * unit
            if averaging:
                block.lag[w, m] += change * lag
    shortened = 0
    for k in range(first, last):
        before = block.total[shift + k]  # of which a check-step may leave less than rounding does
        block.total[shift + k] = max(before + room.numbers[total, k], 1e-16 * before)
        shortened += room.numbers[held, k] > 0.0
    return shortened


@gather.register(Words)
def _gather(block, rows, i, r, room):
    gather_columns(rows, i, Observed(), r, room)


@helper
def gather_columns(rows, i, document, r, room):
    """Let what a document adds wait in the room; columns are classes, over and over."""
    K, copies = r.shape[0], room.pending.shape[1] // r.shape[0]
    begin = rows.indptr[i]
    for j in range(begin, rows.indptr[i + 1]):
        w, x = rows.indices[j], rows.values[j]
        if room.place[w] == 0:
            room.waiting[room.n_waiting[0]] = w
            room.n_waiting[0] += 1
            room.place[w] = room.n_waiting[0]
        place = room.place[w] - 1
        for copy in range(copies):
            for k in range(K):
                m = copy * K + k
                room.pending[place, m] += r[k] * tokens(document, x, j - begin, m)


@settle.register(Words)
def _settle(block, decay, pull, floor, projection, room):
    K = block.total.shape[0]
    age(block, decay, pull, projection)
    scale, gamma = block.lazy[SCALE], block.lazy[GAMMA]
    shortened = 0
    for place in range(room.n_waiting[0]):
        w = room.waiting[place]
        smoothing = gamma * block.alpha[w]
        for k in range(K):
            count, wanted = block.counts[w, k], room.pending[place, k]
            bound = lowest(projection, scale * count, scale * count + smoothing)
            change = max(wanted, bound)
            shortened += wanted < bound
            block.total[k] += change
            block.counts[w, k] = count + change / scale
            if block.lag.shape[0] > 0:
                block.lag[w, k] += change * block.lazy[LAG_SCALE] / scale
            room.pending[place, k] = 0.0
        room.place[w] = 0
    room.n_waiting[0] = 0
    return shortened


@add_to_average.register(Words)
def _add_to_average(block, weight):
    """Lazily: a change at weight W is missing from the share W / total of the average."""
    lazy = block.lazy
    lazy[LAG_SCALE] += weight * lazy[SCALE]
    lazy[LAG_GAMMA] += weight * lazy[GAMMA]
    lazy[WEIGHT] += weight


WORDS = register(WordsFamily())
