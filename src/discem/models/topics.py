"""Topics: p(y, d) = p(y) p(d | y), one latent Dirichlet allocation per class.

A document of class y has topic proportions from a flat Dirichlet(alpha); each word is drawn from
the word distribution of a topic. The statistics are the expected counts of every word in every
topic of every class, a multinomial over words for each column (topic, class). Neither the posterior
of the topics nor ``p(d | y)`` has a closed form: an inference estimates both, the same way in
training and in prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log
from typing import Any, NamedTuple

import numpy as np

from .._checks import check_count, check_number, demand
from .._compile import generic, helper, kernel
from .._kinds import savable
from ..families import (
    FAMILIES,
    LEVERAGE,
    add_to_average,
    make_class_room,
    settle,
    words,
)
from ..families._logs import take_block_logs
from ..families.words import (
    GAMMA,
    SCALE,
    add_leverage_of_columns,
    age,
    gather_columns,
    matters,
    move_columns,
    tokens,
)
from ..targets import Targets
from ._protocol import (
    averaged,
    averages,
    check,
    class_counts,
    find_leverage,
    gather_row,
    make_room,
    mean_state,
    n_classes,
    penalty,
    update,
    with_average,
    with_classes,
    with_features,
    work_per_cell,
    write_scores,
)
from .classes import (
    Classes,
    ClassPrior,
    arranged,
    averaged_classes,
    check_classes,
    class_penalty,
    gather_counts,
    join_classes,
    move_counts,
    settle_counts,
    start_classes,
    with_class_average,
)
from .naive_bayes import Tally, count_classes

_FAMILY = FAMILIES["words"]
LEAST_ALPHA = 1e-6  # of the topic proportions
MOST_SWEEPS = 10_000  # over a document; more would be no better, and take for ever

# --- state ----------------------------------------------------------------------------------------


@savable
class Cvb0(NamedTuple):
    """Collapsed variational inference of order zero, and the bound of order two for ``p(d | y)``.

    The tokens of a word share the posterior ``g`` of their topic, which leaves one of them out of
    its own evidence (Asuncion et al. 2009): ``g_t ~ p(w | t) (alpha + N_t - g_t)`` with ``N_t`` the
    expected number of tokens in topic t. The estimate of ``ln p(d | y)`` is the collapsed bound

        sum_w x_w sum_t g_wt ln(p(w | t) / g_wt)  +  ln G(A) - ln G(A + N)
            + sum_t [ln G(alpha + N_t) - ln G(alpha) + V_t psi'(alpha + N_t) / 2]

    with V_t the variance of the tokens in topic t (Teh et al. 2007). It is exact for one topic.
    """

    sweeps: int


@savable
class Gibbs(NamedTuple):
    """The paper's sampler: one topic for all tokens of a word, drawn given those of the others.

    Topics are first drawn word by word, given the words before. Then all words are swept over;
    after a third of the sweeps the probabilities that topics are drawn from are averaged. The
    estimate of ``p(d | y) = sum_z p(z) prod_w p(w | z_w)^x_w`` is one draw by importance sampling,
    which those averages guide: unbiased (of p, not of ln p). The random numbers of a document
    depend on the document and on `seed` alone.
    """

    sweeps: int
    seed: int


@savable
class Topics(NamedTuple):
    classes: Classes
    features: words.Words  # a column for each (topic, class), the classes of a topic contiguous
    alpha: float  # of the topic proportions of a document
    inference: Any


class TopicsRoom(NamedTuple):
    numbers: np.ndarray  # by class, of which the engine reads LEVERAGE
    columns: Any  # the words' own room, over all M columns
    word: np.ndarray  # (longest, M) p(w | topic, class) of the words of the document scored last
    expected: np.ndarray  # (batch, longest, M) expected tokens of each word in each topic, by slot
    mass: np.ndarray  # (2, M) expected tokens (or drawn words) in each topic, and their variance
    norm: np.ndarray  # (K,)
    topic: np.ndarray  # (longest,) topics drawn
    chance: np.ndarray  # (M,) of the topics of one word
    random: np.ndarray  # (2,) state of the generator


def n_topics(model: Topics) -> int:
    """Topics of each class."""
    return model.features.counts.shape[1] // len(model.classes.counts)


def collect_topics(rows, targets: Targets, weights, n_features, n_classes: int, n_topics: int, rng):
    """Add up the statistics of all labelled rows, each of which joins a random topic.

    Without `rng` all join the first.
    """
    topic = np.zeros(len(weights), dtype=np.int64)
    if rng is not None and n_topics > 1:
        topic = rng.randint(n_topics, size=len(weights))
    parts = list(targets.parts(weights))
    split = [(np.where(codes >= 0, codes + n_classes * topic, -1), w) for codes, w in parts]
    counts = _FAMILY.collect(rows, split, n_features, n_classes * n_topics)
    return Tally(_FAMILY, count_classes(parts, n_classes), counts)


def start_topics(
    tally: Tally, prior, classes: ClassPrior, alpha, inference, init, average, rng
) -> Topics:
    """The initial state: at the prior (alike topics are told apart) or at the split counts."""
    total = float(tally.classes.sum())
    model = Topics(
        start_classes(tally.classes, classes, init),
        _FAMILY.start(prior, tally.features, total, init, False),
        float(alpha),
        inference,
    )
    if init == "prior" and n_topics(model) > 1 and not isinstance(inference, Gibbs):
        model = _perturbed(model, np.arange(model.features.counts.shape[1]), rng)
    return with_average(model, model, 0.0) if average else model


def _perturbed(model: Topics, columns: np.ndarray, rng: Any) -> Topics:
    """Make topics differ that would stay alike for ever."""
    return model._replace(features=_FAMILY.perturbed(model.features, columns, rng))


@check.register
def _check(model: Topics, n_classes: int, n_features: Any) -> None:
    averages = check_classes(model.classes, n_classes)
    demand(isinstance(model.features, words.Words), "its topics have no words")
    M = len(model.features.total)
    demand(M > 0 and M % n_classes == 0, "its topics are not those of its classes")
    _FAMILY.check(model.features, M, n_features, averages)
    check_number("alpha", model.alpha, least=LEAST_ALPHA, kind=float)
    demand(isinstance(model.inference, Cvb0 | Gibbs), "its inference is unknown")
    check_count("sweeps", model.inference.sweeps, 1, MOST_SWEEPS)
    if isinstance(model.inference, Gibbs):
        check_count("seed", model.inference.seed, most=2**31)


@make_room.register
def _make_room(model: Topics, rows, batch: int) -> TopicsRoom:
    K, M = len(model.classes.counts), model.features.counts.shape[1]
    longest = int(np.diff(rows.indptr).max(initial=1))
    return TopicsRoom(
        make_class_room(K).numbers,
        _FAMILY.make_room(model.features, rows, batch, make_class_room(M)),
        np.zeros((longest, M)),
        np.zeros((batch, longest, M)),
        np.zeros((2, M)),
        np.zeros(K),
        np.zeros(longest, dtype=np.int64),
        np.zeros(M),
        np.zeros(2, dtype=np.int64),
    )


@class_counts.register
def _class_counts(model: Topics) -> np.ndarray:
    return model.classes.counts


@averages.register
def _averages(model: Topics) -> bool:
    return bool(model.classes.lag.size)


@averaged.register
def _averaged(model: Topics) -> Topics:
    classes, features = averaged_classes(model.classes), _FAMILY.averaged(model.features)
    return model._replace(classes=classes, features=features)


@with_average.register
def _with_average(model: Topics, past: Topics | None, weight: float) -> Topics:
    old, features = (None, None) if past is None else (past.classes, past.features)
    return model._replace(
        classes=with_class_average(model.classes, old, weight),
        features=_FAMILY.with_average(model.features, features, weight),
    )


@with_classes.register
def _with_classes(model: Topics, order: np.ndarray, mass: float) -> Topics:
    K, T = len(model.classes.counts), n_topics(model)
    columns = np.concatenate([np.where(order < 0, -1, t * K + order) for t in range(T)])
    model = model._replace(
        classes=arranged(model.classes, order, mass),
        features=_FAMILY.with_classes(model.features, columns, mass / T),
    )
    new = np.flatnonzero(columns < 0)
    return _perturbed(model, new, np.random.default_rng(0)) if T > 1 else model


@with_features.register
def _with_features(model: Topics, n_features: Any) -> Topics:
    return model._replace(features=_FAMILY.with_features(model.features, n_features))


@penalty.register
def _penalty(model: Topics) -> float:
    return class_penalty(model.classes) + _FAMILY.penalty(model.features)


@mean_state.register
def _mean_state(first: Topics, states: list, shares: np.ndarray, run: Callable) -> Topics:
    mean, by_class, past = join_classes([state.classes for state in states], shares)
    blocks, weight = [state.features for state in states], float(mean.weight[0])
    features = _FAMILY.joined(blocks, shares, by_class, past, weight, run)
    return first._replace(classes=mean, features=features)


@work_per_cell.register
def _work_per_cell(model: Topics) -> float:
    return 8.0 * model.features.counts.shape[1]  # each sweep of the inference is a visit


def word_distributions(model: Topics) -> np.ndarray:
    """p(word | topic, class) as (K, T, W)."""
    K = len(model.classes.counts)
    p = np.exp(words.log_probabilities(model.features))
    return p.reshape(n_topics(model), K, -1).transpose(1, 0, 2)


def proportions(model: Topics, rows) -> tuple[np.ndarray, np.ndarray]:
    """The scores of all rows, (n, K), and expected topic proportions by class, (n, K, T)."""
    K, T, n_rows = len(model.classes.counts), n_topics(model), rows.n_rows
    joint, share = np.empty((n_rows, K)), np.empty((n_rows, T * K))
    _proportions(model, rows, make_room(model, rows, 1), joint, share)
    return joint, share.reshape(n_rows, T, K).transpose(0, 2, 1)


# --- compiled -------------------------------------------------------------------------------------


@kernel
def _proportions(model, rows, room, joint, share):
    K, M = joint.shape[1], share.shape[1]
    for i in range(joint.shape[0]):
        write_scores(model, rows, i, 0, joint[i], room)
        length = 0.0
        for m in range(M):
            share[i, m] = model.alpha
        first = rows.indptr[i]
        for j in range(rows.indptr[i + 1] - first):
            length += rows.values[first + j]
            for m in range(M):
                share[i, m] += room.expected[0, j, m]
        for m in range(M):
            share[i, m] /= model.alpha * (M // K) + length


@n_classes.register(Topics)
def _n_classes(model):
    return model.classes.counts.shape[0]


@generic
def explain(inference, alpha, rows, i, a, expected, room):
    """Write ``ln p(d_i | y=k)`` into ``a[k]`` and the expected tokens of each word into `expected`.

    The room holds ``p(w | topic, class)``.
    """


@write_scores.register(Topics)
def _write_scores(model, rows, i, slot, a, room):
    block, counts = model.features, model.classes.counts
    K, M = a.shape[0], block.counts.shape[1]
    scale, gamma = block.lazy[SCALE], block.lazy[GAMMA]
    first = rows.indptr[i]
    for j in range(rows.indptr[i + 1] - first):
        w = rows.indices[first + j]
        smoothing = gamma * block.alpha[w]
        for m in range(M):
            room.word[j, m] = (scale * block.counts[w, m] + smoothing) / block.total[m]
    explain(model.inference, model.alpha, rows, i, a, room.expected[slot], room)
    total = 0.0
    for k in range(K):
        total += counts[k]
    for k in range(K):
        a[k] += log(counts[k] / total)


@helper
def trigamma(x):
    """psi'(x), x > 0, to about 1e-9."""
    value = 0.0
    while x < 8.0:
        value += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return value + 1.0 / x + y / 2.0 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))


@explain.register(Cvb0)
def _explain_cvb0(inference, alpha, rows, i, a, expected, room):
    K, M = a.shape[0], room.word.shape[1]
    T = M // K
    first = rows.indptr[i]
    n_words = rows.indptr[i + 1] - first
    for m in range(M):
        room.mass[0, m] = 0.0
        room.mass[1, m] = 0.0
        for j in range(n_words):
            expected[j, m] = 0.0
    for sweep in range(inference.sweeps + 1 if T > 1 else 1):
        for j in range(n_words):
            x = rows.values[first + j]
            own = x if x < 1.0 else 1.0
            for k in range(K):
                room.norm[k] = 0.0
            for t in range(T):
                for k in range(K):
                    m = t * K + k
                    evidence = alpha + room.mass[0, m] - own * expected[j, m]
                    q = room.word[j, m] * (evidence if sweep > 0 else 1.0)
                    room.chance[m] = q
                    room.norm[k] += q
            for t in range(T):
                for k in range(K):
                    m = t * K + k
                    g = room.chance[m] / room.norm[k] + 1e-200
                    room.mass[0, m] += x * (g - expected[j, m])
                    expected[j, m] = g
    for k in range(K):
        a[k] = 0.0
    length, waiting = 0.0, 0
    cells = room.columns.cells
    for j in range(n_words):
        x = rows.values[first + j]
        length += x
        for m in range(M):
            g = expected[j, m]
            cells[waiting, m] = room.word[j, m] / g
            expected[j, m] = x * g
            room.mass[1, m] += x * g * (1.0 - g)
        waiting += 1
        if waiting == cells.shape[0] or j == n_words - 1:
            take_block_logs(room.columns.block, room.columns.block_bits, waiting * M)
            for b in range(waiting):
                for t in range(T):
                    for k in range(K):
                        m = t * K + k
                        a[k] += expected[j + 1 - waiting + b, m] * cells[b, m]
            waiting = 0
    constant = lgamma(T * alpha) - lgamma(T * alpha + length) - T * lgamma(alpha)
    for k in range(K):
        a[k] += constant
        for t in range(T):
            m = t * K + k
            evidence = alpha + room.mass[0, m]
            a[k] += lgamma(evidence) + 0.5 * room.mass[1, m] * trigamma(evidence)


@helper
def uniform(state):
    """A random number in (0, 1): two multiplicative generators, combined (L'Ecuyer 1988)."""
    state[0] = state[0] * 40014 % 2147483563
    state[1] = state[1] * 40692 % 2147483399
    z = (state[0] - state[1]) % 2147483562
    return (z + 1) * 4.656613057391769e-10


@helper
def seed_generator(state, seed, rows, i):
    """Let the random numbers depend on the document alone."""
    one, two = 1 + seed % 2147483562, 1 + seed % 2147483398
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        w, x = np.int64(rows.indices[j]), np.int64(rows.values[j] % 65536.0 * 1024.0)
        one = (one * 40014 + w) % 2147483562 + 1
        two = (two * 40692 + x) % 2147483398 + 1
    state[0], state[1] = one, two
    for _ in range(3):
        uniform(state)


@explain.register(Gibbs)
def _explain_gibbs(inference, alpha, rows, i, a, expected, room):
    K, M = a.shape[0], room.word.shape[1]
    T = M // K
    first = rows.indptr[i]
    n_words = rows.indptr[i + 1] - first
    for k in range(K):
        a[k] = 0.0
    for j in range(n_words):  # p(w | t)^x, beside that of the best topic
        x = rows.values[first + j]
        for k in range(K):
            best = room.word[j, k]
            for t in range(1, T):
                if room.word[j, t * K + k] > best:
                    best = room.word[j, t * K + k]
            a[k] += x * log(best)
            for t in range(T):
                ratio = room.word[j, t * K + k] / best
                room.word[j, t * K + k] = ratio if x == 1.0 else exp(x * log(ratio))
    burn = inference.sweeps // 3
    for k in range(K):
        seed_generator(room.random, inference.seed, rows, i)  # for all classes the same numbers
        for t in range(T):
            room.mass[0, t] = alpha
        for j in range(n_words):
            for t in range(T):
                expected[j, t * K + k] = 0.0
        for sweep in range(-1, inference.sweeps):
            for j in range(n_words):
                if sweep >= 0:
                    room.mass[0, room.topic[j]] -= 1.0
                total = chances(j, k, K, room)
                room.topic[j] = drawn(uniform(room.random) * total, room.chance, T)
                room.mass[0, room.topic[j]] += 1.0
                if sweep >= burn:
                    before = 0.0
                    for t in range(T):
                        expected[j, t * K + k] += (room.chance[t] - before) / total
                        before = room.chance[t]
        share = 1.0 / (inference.sweeps - burn)
        for j in range(n_words):
            for t in range(T):
                expected[j, t * K + k] *= share
        a[k] += log_importance(alpha, n_words, k, K, expected, room)
        for j in range(n_words):
            for t in range(T):
                expected[j, t * K + k] *= rows.values[first + j]


@helper
def log_importance(alpha, n_words, k, K, expected, room):
    """Draw the topics of all words in class k; return ln of p(z, d) over the chance to draw z.

    A topic is drawn given those drawn before, and what is expected of the words to come.
    """
    T = room.word.shape[1] // K
    for t in range(T):
        room.mass[0, t] = alpha
        room.mass[1, t] = alpha
        for j in range(n_words):
            room.mass[0, t] += expected[j, t * K + k]
    found, ratio = 0.0, 1.0
    for j in range(n_words):
        for t in range(T):
            room.mass[0, t] -= expected[j, t * K + k]
        total = chances(j, k, K, room)
        z = drawn(uniform(room.random) * total, room.chance, T)
        ratio *= room.mass[1, z] / (T * alpha + j) * (total / room.mass[0, z])
        if not 1e-200 < ratio < 1e200:
            found += log(ratio)
            ratio = 1.0
        room.mass[0, z] += 1.0
        room.mass[1, z] += 1.0
    return found + log(ratio)


@helper
def chances(j, k, K, room):
    """Leave running sums of the chances of the topics of word j in class k; return the last."""
    total = 0.0
    for t in range(room.word.shape[1] // K):
        total += room.word[j, t * K + k] * room.mass[0, t]
        room.chance[t] = total
    return total


@helper
def drawn(u, chance, T):
    """The first topic whose running sum reaches u."""
    topic = 0
    for t in range(T - 1):
        topic += u > chance[t]
    return topic


class Expected(NamedTuple):
    """A document whose tokens are shared out to topics."""

    tokens: np.ndarray  # (words, M)


@tokens.register(Expected)
def _tokens_expected(document, x, j, m):
    return document.tokens[j, m]


@find_leverage.register(Topics)
def _find_leverage(model, rows, i, slot, r, floor, room):
    block, document = model.features, Expected(room.expected[slot])
    K = r.shape[0]
    for k in range(K):
        room.numbers[LEVERAGE, k] = 0.0
    for shift in range(0, block.total.shape[0], K):
        add_leverage_of_columns(block, rows, i, document, r, floor, shift, room)


@gather_row.register(Topics)
def _gather_row(model, rows, i, slot, r, room):
    gather_counts(r, room.numbers)
    gather_columns(rows, i, Expected(room.expected[slot]), r, room.columns)


@settle.register(Topics)
def _settle(model, decay, pull, floor, projection, room):
    shortened = settle(model.features, decay, pull, floor, projection, room.columns)
    return shortened + settle_counts(model.classes, decay, pull, floor, projection, room.numbers)


@update.register(Topics)
def _update(model, rows, i, slot, r, decay, pull, floor, projection, room):
    block = model.features
    K, T = r.shape[0], block.total.shape[0] // r.shape[0]
    document = Expected(room.expected[slot])
    age(block, decay, pull, projection)
    active = 0
    for k in range(K):
        active += matters(r[k], floor)
    shortened = 0
    if 4 * active > K:
        for t in range(T):
            shortened += move_columns(block, rows, i, document, r, 0, K, t * K, projection, room)
    else:
        for k in range(K):
            if matters(r[k], floor):
                for t in range(T):
                    shortened += move_columns(
                        block, rows, i, document, r, k, k + 1, t * K, projection, room
                    )
    return shortened + move_counts(model.classes, r, decay, pull, floor, projection, room.numbers)


@add_to_average.register(Topics)
def _add_to_average(model, weight):
    model.classes.weight[0] += weight
    add_to_average(model.features, weight)
