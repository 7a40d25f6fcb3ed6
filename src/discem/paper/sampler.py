"""Collapsed Gibbs sampling of the topics of documents: the paper's inference for topic models.

It is the ``OnlineCollapsedGibbsSampling`` of Algorithm 6, and an estimate of p(d | y) beside it. As
in the paper, all occurrences of a word in a document share one topic, and topics are first drawn
word by word, each given the words before it.
"""

from __future__ import annotations

import numpy as np

from . import compiled


def gibbs(
    p: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    alpha: float,
    sweeps: int = 10,
    seed: int = 0,
    words: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the topics of a batch of documents, in every class, by collapsed Gibbs sampling.

    Topics are first drawn word by word, each given the words before it. Then all words are swept
    over; after a third of the sweeps the probabilities that topics are drawn from are averaged.
    The estimate of ``p(d | y) = sum_z p(z) prod_w p(w | z_w, y)^x_w`` is one draw by importance
    sampling, guided by these averages: unbiased for p, not for ln p. The random numbers of a
    document depend on its words and on `seed` alone, not on its place or its batch.

    Parameters
    ----------
    p : array of shape (n_words, n_topics, n_classes)
        ``p(word | topic, class)``: a table of the whole vocabulary, or the rows of the words that
        occur in the batch. An array of shape (n_words, M) whose column ``t * n_classes + k`` is
        topic t of class k can be reshaped to it.
    indptr, indices, values : arrays
        The documents in CSR form; `indices` are rows of `p`.
    alpha : float
        Pseudo-count of each topic in a document.
    sweeps : int
    seed : int
    words : array of shape (n_words,), optional
        The number of each row of `p` in the whole vocabulary, from which random numbers are made.
        None is 0, 1, 2, ...

    Returns
    -------
    scores : array of shape (n_documents, n_classes)
        The estimate of ``ln p(d | y)``.
    expected : array of shape (n_stored, n_topics, n_classes)
        How many of the occurrences of a stored word belong to each topic, in each class.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[[0.9, 0.5], [0.1, 0.5]], [[0.1, 0.5], [0.9, 0.5]]])
    >>> scores, expected = gibbs(p, np.array([0, 2]), np.array([0, 1]), np.array([3.0, 1.0]), 0.5)
    >>> scores.shape, expected.sum(axis=1).round(6).tolist()
    ((1, 2), [[3.0, 3.0], [1.0, 1.0]])
    """
    W, T, K = p.shape
    scores = np.empty((len(indptr) - 1, K))
    expected = np.empty((len(values), T, K))
    sample_batch(
        np.ascontiguousarray(p, dtype=np.float64),
        np.arange(W) if words is None else np.asarray(words, dtype=np.int64),
        *(np.asarray(each, dtype=np.int64) for each in (indptr, indices)),
        np.asarray(values, dtype=np.float64),
        alpha, sweeps, seed, scores, expected,
    )  # fmt: skip
    return scores, expected


@compiled
def sample_batch(p, words, indptr, indices, values, alpha, sweeps, seed, scores, expected):
    """Write what `gibbs` returns."""
    for i in range(scores.shape[0]):
        own = slice(indptr[i], indptr[i + 1])
        ids, x = indices[own], values[own]
        sample(p[ids], words[ids], x, alpha, sweeps, seed, scores[i], expected[own])


@compiled
def sample(p, words, x, alpha, sweeps, seed, a, expected):
    """Find the topics of one document; `p`, of its words, is scratch memory from then on."""
    n_words, T, K = p.shape
    random, topic = np.empty(2, np.int64), np.empty(n_words, np.int64)
    mass, drawn_mass, chance = np.empty(T), np.empty(T), np.empty(T)
    a[:] = 0.0
    expected[:] = 0.0
    for j in range(n_words):  # p(w | z)^x, relative to that of the best topic
        for k in range(K):
            best = p[j, :, k].max()
            a[k] += x[j] * np.log(best)
            for z in range(T):
                ratio = p[j, z, k] / best
                p[j, z, k] = ratio if x[j] == 1.0 else np.exp(x[j] * np.log(ratio))
    burn = sweeps // 3
    for k in range(K):
        start_random(random, seed, words, x)  # the same random numbers for all classes
        mass[:] = alpha
        for sweep in range(-1, sweeps):
            for j in range(n_words):
                if sweep >= 0:
                    mass[topic[j]] -= 1.0
                total = chances(p, j, k, mass, chance)
                topic[j] = draw(uniform(random) * total, chance)
                mass[topic[j]] += 1.0
                if sweep >= burn:
                    before = 0.0
                    for z in range(T):
                        expected[j, z, k] += (chance[z] - before) / total
                        before = chance[z]
        for j in range(n_words):
            for z in range(T):
                expected[j, z, k] *= 1.0 / (sweeps - burn)
        # importance sampling: draw topics word by word, given those drawn before and what is
        # expected of the words to come; p(z, d) over the chance of such a draw is the estimate
        mass[:] = alpha
        drawn_mass[:] = alpha
        for z in range(T):
            for j in range(n_words):
                mass[z] += expected[j, z, k]
        ratio = 1.0
        for j in range(n_words):
            for z in range(T):
                mass[z] -= expected[j, z, k]
            total = chances(p, j, k, mass, chance)
            z = draw(uniform(random) * total, chance)
            ratio *= drawn_mass[z] / (T * alpha + j) * (total / mass[z])
            if not 1e-200 < ratio < 1e200:
                a[k] += np.log(ratio)
                ratio = 1.0
            mass[z] += 1.0
            drawn_mass[z] += 1.0
        a[k] += np.log(ratio)
    for j in range(n_words):
        expected[j] *= x[j]


@compiled
def chances(p, j, k, mass, chance):
    """Write running sums of the chances of the topics of word j in class k; return the last."""
    total = 0.0
    for z in range(mass.shape[0]):
        total += p[j, z, k] * mass[z]
        chance[z] = total
    return total


@compiled
def draw(u, chance):
    """Return the first topic whose running sum reaches u."""
    topic = 0
    for z in range(chance.shape[0] - 1):
        topic += u > chance[z]
    return topic


@compiled
def uniform(state):
    """Return a random number in (0, 1): two multiplicative generators, combined (L'Ecuyer 1988)."""
    state[0] = state[0] * 40014 % 2147483563
    state[1] = state[1] * 40692 % 2147483399
    return ((state[0] - state[1]) % 2147483562 + 1) * 4.656613057391769e-10


@compiled
def start_random(state, seed, words, x):
    """Let the random numbers depend on the seed and on the document alone."""
    one, two = 1 + seed % 2147483562, 1 + seed % 2147483398
    for j in range(words.shape[0]):
        one = (one * 40014 + words[j]) % 2147483562 + 1
        two = (two * 40692 + np.int64(x[j] % 65536.0 * 1024.0)) % 2147483398 + 1
    state[0], state[1] = one, two
    for _ in range(3):
        uniform(state)
