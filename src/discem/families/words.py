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

from .._compile import generic, helper
from ..exceptions import OptionError
from ..priors import Dirichlet
from ..projections import Check, Interior
from ._logs import logs, set_exponents_aside, take_block_logs, take_logs
from ._protocol import LEVERAGE, SHARES, joint_scores, move, tick

# --- the family in numbers: one word; the last axis is the vocabulary ----------------------------


def statistics(x):
    return np.asarray(x, dtype=np.float64)


def natural(mu):
    """theta(mu) = ln(mu / sum mu)."""
    return np.log(mu) - np.log(mu.sum(axis=-1, keepdims=True))


def mean(theta):
    weights = np.exp(theta - theta.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def log_normalizer(theta):
    top = theta.max(axis=-1)
    return top + np.log(np.exp(theta - top[..., None]).sum(axis=-1))


LIFTS_TO_PRIOR = True  # where the paper's check-step lifts a class count to


def keeps_mass(prior) -> bool:
    """Whether the prior leaves the mass of the statistics as it is, or adds to it for ever."""
    return False


# --- state ---------------------------------------------------------------------------------------


class Words(NamedTuple):
    """Expected word counts of all classes, one row a word so that classes are contiguous."""

    counts: np.ndarray  # (W, K)
    total: np.ndarray  # (K,) expected length of a document times the mass of the class
    lag: np.ndarray  # (W, K), or (0, K) without averaging: see `tick`
    alpha: np.ndarray  # (W,)
    alpha_total: float
    unseen: np.ndarray  # (2, K) count and lag of a word that never occurred, per pseudo-count
    lazy: np.ndarray  # the scalars below


SCALE, GAMMA, LAG_SCALE, LAG_GAMMA, WEIGHT, PRODUCTS = range(6)


def _state(count, gamma, alpha, average, products=0.0, start=0.0) -> Words:
    total = count.sum(axis=0) + gamma * alpha.sum()
    lag = np.zeros(count.shape if average else (0, count.shape[1]))
    lazy = np.array([1.0, gamma, 0.0, 0.0, 0.0, products])
    unseen = np.repeat([[start], [0.0]], count.shape[1], axis=1)
    return Words(count, total, lag, alpha, float(alpha.sum()), unseen, lazy)


_SLICE = 1 << 20  # numbers to work on at a time


def collect(rows, parts, n_features: int, n_classes: int) -> np.ndarray:
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


def start(
    spec: Dirichlet, tally: np.ndarray, total: float, init: str, average: bool, stream: bool
) -> Words:
    """Build the initial state from the prior and the word counts of the classes (`tally`).

    init="prior" starts at alpha counts of each word; init="generative" at the smoothed counts of
    the data, at a mass of one document over all classes. The state takes over the memory of the
    tally, for there may be no room for both.
    """
    W, K = tally.shape
    if spec.alpha is None:
        alpha = np.full(W, float(spec.strength) * tally.sum() / max(W * K, 1))
        if not alpha.any():
            alpha[:] = 1.0
    else:
        try:
            alpha = np.array(np.broadcast_to(np.asarray(spec.alpha, dtype=np.float64), (W,)))
        except ValueError as error:
            raise OptionError(
                f"prior: alpha needs one number, or one for each of {W} words"
            ) from error
    if not np.all((alpha > 0) & np.isfinite(alpha)):
        raise OptionError("prior: alpha must be > 0 for every word")
    products = _safe_products(max(tally.max(initial=1.0), alpha.max()), alpha.min(), total)
    if init == "prior":
        tally[:] = alpha[:, None]
        return _state(tally, 0.0, alpha, average, products, 1.0)
    tally /= total
    return _state(tally, 1.0 / total, alpha, average, products)


def _safe_products(most: float, least: float, total: float) -> float:
    """How many counts can be multiplied before their exponents must be set aside.

    No count exceeds `most` by much, and an interior step leaves no less than half of what the prior
    gave in one step, rho alpha / n. Zero where counts are too extreme to be multiplied at all.
    """
    bits = max(np.log2(most) + 10.0, 10.0 - np.log2(least / total**2))
    factors = float(np.floor(1000.0 / bits))
    return factors if factors > 10.0 else 0.0


def brace(block: Words, largest: float) -> None:
    """Stop multiplying counts if the next ones may be too large for it."""
    if largest > 1e6:
        block.lazy[PRODUCTS] = 0.0


def averaged(block: Words) -> Words:
    """The running average of the counts (the block itself where none is kept)."""
    weight = block.lazy[WEIGHT]
    if not block.lag.size or weight == 0:
        return block
    scale, gamma = block.lazy[LAG_SCALE] / weight, block.lazy[LAG_GAMMA] / weight
    most = scale * block.counts.max(initial=0.0) + gamma * block.alpha.max(initial=0.0)
    floor = 1e-12 * most  # rounding may leave less of a collapsed cell
    count = np.empty_like(block.counts)
    size = max(_SLICE // count.shape[1], 1)
    for first in range(0, len(count), size):  # there may be no room for intermediate results
        part = slice(first, first + size)
        granted = gamma * block.alpha[part, None]
        cells = block.counts[part] * scale - block.lag[part] / weight + granted
        count[part] = np.maximum(cells, floor) - granted
    return _state(count, gamma, block.alpha, False, block.lazy[PRODUCTS])


def with_classes(block: Words, order: np.ndarray, mass: float) -> Words:
    """Arrange the classes in `order`; -1 is a new one: `mass` documents of the prior's words."""
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


def with_features(block: Words, n_features: int) -> Words:
    """Add words; they stand where words that never occurred have come to stand.

    Their pseudo-count is that of the first word, so it should be the same for all. The block given
    shares memory with the one returned and must not be used again.
    """
    new = n_features - len(block.alpha)
    prior, (count, lag) = float(block.alpha[0]), block.unseen
    cell = (block.lazy[SCALE] * count + block.lazy[GAMMA]) * prior
    return block._replace(
        counts=_extended(block.counts, new, count * prior),
        total=block.total + new * cell,
        lag=_extended(block.lag, new, lag * prior) if block.lag.size else block.lag,
        alpha=_extended(block.alpha, new, prior),
        alpha_total=block.alpha_total + new * prior,
    )


def _extended(array: np.ndarray, new: int, value: float) -> np.ndarray:
    """The array with `new` more rows, all `value`.

    It is a view of memory larger than needed, so that one which grows again and again is copied
    now and then only.
    """
    old, size = len(array), len(array) + new
    memory = array if array.base is None else array.base
    same = memory.shape[1:] == array.shape[1:] and memory.ctypes.data == array.ctypes.data
    if not same or len(memory) < size:
        memory = np.empty((size + size // 2, *array.shape[1:]))
        memory[:old] = array
    memory[old:size] = value
    return memory[:size]


def stir(block: Words, columns: np.ndarray, rng) -> Words:
    """Make words more or less frequent in some columns, by a half at most."""
    size = len(block.alpha), len(columns)
    return reweighed(block, rng.uniform(0.5, 1.5, size=size), columns)


def reweighed(block: Words, factor: np.ndarray, columns=slice(None)) -> Words:
    """Multiply the expected counts of all words in some columns."""
    counts = block.counts.copy()
    own = block.lazy[SCALE] * counts[:, columns] + block.lazy[GAMMA] * block.alpha[:, None]
    off = own * (factor - 1.0)
    counts[:, columns] += off / block.lazy[SCALE]
    total = block.total.copy()
    total[columns] += off.sum(axis=0)
    return block._replace(counts=counts, total=total)


def penalty(block: Words) -> float:
    """-ln of the prior, up to a constant."""
    return -float((block.alpha * log_probabilities(block)).sum())


def log_probabilities(block: Words, chosen=slice(None)) -> np.ndarray:
    """Ln p(word | class), as (class, word), of all words or of the chosen ones."""
    counts, alpha = block.counts[chosen], block.alpha[chosen]
    cells = block.lazy[SCALE] * counts + block.lazy[GAMMA] * alpha[:, None]
    return np.ascontiguousarray((np.log(cells) - np.log(block.total)).T)


def sample(block: Words, codes: np.ndarray, lengths: np.ndarray, rng) -> np.ndarray:
    """Draw documents of the given lengths, one per class code."""
    p = np.exp(log_probabilities(block))
    p /= p.sum(axis=1, keepdims=True)
    return np.stack([rng.multinomial(n, p[k]) for k, n in zip(codes, lengths, strict=True)])


# --- compiled ------------------------------------------------------------------------------------


@joint_scores.register(Words)
def _joint_scores(block, rows, i, a, room):
    product, exponent, term, term_exponent = 0, 1, 2, 3
    K = a.shape[0]
    scale = block.lazy[SCALE]
    gamma = block.lazy[GAMMA] / scale
    most = min(8.0, block.lazy[PRODUCTS])
    room_for_more = block.lazy[PRODUCTS] - most
    for k in range(K):
        a[k] = 0.0
        room.numbers[product, k] = room.numbers[SHARES, k]
        room.numbers[exponent, k] = 0.0
        room.numbers[LEVERAGE, k] = 0.0
    set_exponents_aside(room, product, exponent)
    length, waiting, calls, raised = 0.0, 0.0, 2.0, 0
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        w, x = rows.indices[j], rows.values[j]
        length += x
        smoothing = gamma * block.alpha[w]
        if x <= most and x == np.floor(x):  # a small count: multiply
            waiting += x
            while x > 1.0:
                for k in range(K):
                    cell = block.counts[w, k] + smoothing
                    room.numbers[product, k] *= cell * cell
                x -= 2.0
            if x > 0.0:
                for k in range(K):
                    room.numbers[product, k] *= block.counts[w, k] + smoothing
            if waiting > room_for_more:
                set_exponents_aside(room, product, exponent)
                waiting = 0.0
                calls += 1.0
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
    take_logs(room, term, term_exponent)
    set_exponents_aside(room, product, exponent)
    logs(room, product, exponent, calls)
    for k in range(K):
        a[k] += room.numbers[product, k] - length * room.numbers[term, k]


@helper
def _add_powers(room, n_words, a):
    """Add the logarithms of the words in the block, each as often as the word occurs."""
    K = a.shape[0]
    take_block_logs(room, n_words * K)
    for j in range(n_words):
        power = room.powers[j]
        for k in range(K):
            a[k] += power * room.cells[j, k]


@generic
def lowest(projection, own, cell):
    """The most negative change of a cell of expected count `cell`, of which `own` is not prior."""


@lowest.register(Interior)
def _lowest_interior(projection, own, cell):
    return -projection.share * cell


@lowest.register(Check)
def _lowest_check(projection, own, cell):
    return -max(own, 0.0)


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
        block.total[shift + k] += room.numbers[total, k]
        shortened += room.numbers[held, k] > 0.0
    return shortened


@tick.register(Words)
def _tick(block, weight):
    """Average lazily: a change at weight W is missing from the share W / total of the average."""
    lazy = block.lazy
    lazy[LAG_SCALE] += weight * lazy[SCALE]
    lazy[LAG_GAMMA] += weight * lazy[GAMMA]
    lazy[WEIGHT] += weight
