"""Collapsed variational inference of topics, for a batch of documents at a time.

A batch is three arrays, as in a CSR matrix: the counts of its stored words (`values`), the row of
each in the table of the distinct words of the batch (`word`), and where each document begins
(`indptr`). Inside, arrays have the shape (class, topic, stored word): the words of a document lie
side by side, so sums over topics and over documents run at the speed of memory.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

_CACHE = 1 << 17  # numbers of one array to work on at a time; four such arrays stay in cache
_AHEAD = 1.5  # moves that the masses of topics are expected to make yet, at first
_COUNTS = 4096.0  # of one word, above which float32 would cost the scores a tenth of a nat
_SHIFT = 5  # terms of the trigamma function before its asymptotic series is used


def explain(
    p: np.ndarray,
    values: np.ndarray,
    word: np.ndarray,
    indptr: np.ndarray,
    alpha: float,
    sweeps: int,
    dtype: type | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``ln p(document | class)`` and the expected tokens of each word in each topic.

    This is collapsed variational inference of order zero. All tokens of a word share the posterior
    ``g`` of their topic, and one of them is left out of its own evidence (Asuncion et al. 2009):
    ``g_t ~ p(w | t) (alpha + N_t - g_t)``, with ``N_t`` the expected tokens of topic t in the
    document. The score is the collapsed bound of second order (Teh et al. 2007):

        sum_w x_w sum_t g_wt ln(p(w | t) / g_wt)  +  ln G(A) - ln G(A + N)
            + sum_t [ln G(alpha + N_t) - ln G(alpha) + V_t psi'(alpha + N_t) / 2]

    with V_t the variance of the tokens of topic t. With one topic it is naive Bayes, exactly.

    Parameters
    ----------
    p : array of shape (u, K, T)
        ``p(word | topic, class)`` of the u distinct words of the batch; all numbers are positive.
    values : array of shape (nnz,)
        How often each stored word occurs, more than 0. Fractions are allowed.
    word : integer array of shape (nnz,)
        The row of `p` that belongs to each stored word.
    indptr : integer array of shape (B + 1,)
        Document i holds the stored words from ``indptr[i]`` up to ``indptr[i + 1]``.
    alpha : float
        Pseudo-count of each topic in a document.
    sweeps : int
        Passes over the stored words, at least 1. Three come closer to the fixed point than five
        passes that update one word after another.
    dtype : float32 or float64, optional
        Of the expected tokens. By default float32, or float64 where a word occurs more than 4096
        times in a document. Naive Bayes' part of the scores is always computed in float64.

    Returns
    -------
    scores : array of shape (B, K), float64
    tokens : array of shape (nnz, K, T)
        A view of an array whose last axis is contiguous along the stored words. For every class the
        topics of a word add up to its value.
    """
    n_words, K, T = p.shape
    values = np.asarray(values, dtype=np.float64)
    if dtype is None:
        dtype = np.float64 if values.max(initial=0.0) > _COUNTS else np.float32
    shape = len(indptr) - 1, n_words
    rows = sp.csr_array((values, word, indptr), shape=shape)
    scores: np.ndarray = np.empty((shape[0], K))
    tokens: np.ndarray = np.empty((K, T, len(values)), dtype=dtype)
    size = max(_CACHE // max(len(values) * T, 1), 1)
    for first in range(0, K, size):  # classes do not depend on each other
        part = slice(first, first + size)
        topics = p[:, part].transpose(1, 2, 0).astype(np.float64)
        either = topics.sum(axis=1)  # the rest of the inference sees shares of topics alone, so
        scores[:, part] = rows @ np.log(either).T  # float32 is enough for it
        if T == 1:
            tokens[part] = values
        elif len(values):
            topics /= either[:, None]
            share: np.ndarray = topics.astype(dtype).take(word, axis=2)
            scores[:, part] += _share_out(share, values, indptr, alpha, sweeps, tokens[part])
    return scores, tokens.transpose(2, 0, 1)


def _share_out(share, values, indptr, alpha, sweeps, tokens) -> np.ndarray:
    """Write the expected tokens (K, T, nnz); return what topics add to the scores, (B, K).

    All words of a document move at once, which alone would take twice as many sweeps as moving one
    after another. So the evidence is extrapolated: each sweep expects the masses of topics to go on
    as they went, and less so from sweep to sweep, because a constant share can end in a cycle.
    """
    sizes = np.diff(indptr)
    filled = np.flatnonzero(sizes)  # `reduceat` cannot sum nothing
    begin, sizes = indptr[:-1][filled], sizes[filled]
    length = np.add.reduceat(values, begin)
    T, dtype = share.shape[1], share.dtype
    alpha, least = float(alpha), dtype.type(alpha)
    x = values.astype(dtype)
    single = 1.0 / np.maximum(x, 1.0)  # the part of a word's tokens that one token is
    np.multiply(share, x, out=tokens)
    mass = np.add.reduceat(tokens, begin, axis=-1)
    before = mass.mean(axis=1, keepdims=True)
    for sweep in range(sweeps):
        ahead = np.maximum(mass + _AHEAD * 0.75**sweep * (mass - before), 0.0) + least
        evidence = np.repeat(ahead, sizes, axis=-1)
        tokens *= single
        evidence -= tokens
        np.maximum(evidence, least, out=evidence)  # what is extrapolated may fall below it
        np.multiply(share, evidence, out=tokens)
        norm = tokens.sum(axis=1)
        tokens *= (x / norm)[:, None]
        before, mass = mass, np.add.reduceat(tokens, begin, axis=-1)
    total = alpha + mass.astype(np.float64)
    variance = mass - np.add.reduceat(tokens * tokens / x, begin, axis=-1)
    # g = share * evidence / norm, so ln(share / g) = ln(norm) - ln(evidence)
    gain = x * np.log(norm)
    gain -= (tokens * np.log(evidence, out=evidence)).sum(axis=1)
    bound = gammaln(T * alpha) - gammaln(T * alpha + length) - T * gammaln(alpha)
    bound = bound + (gammaln(total) + 0.5 * variance * _trigamma(total)).sum(axis=1)
    bound += np.add.reduceat(gain, begin, axis=-1, dtype=np.float64)
    added = np.zeros((len(indptr) - 1, len(bound)))
    added[filled] = bound.T
    return added


def _trigamma(x: np.ndarray) -> np.ndarray:
    """psi'(x), x > 0, to about 1e-8; `scipy.special.zeta` is ten times slower."""
    value = np.zeros_like(x)
    for _ in range(_SHIFT):
        value += 1.0 / (x * x)
        x = x + 1.0
    y = 1.0 / (x * x)
    return value + 1.0 / x + y / 2.0 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))
