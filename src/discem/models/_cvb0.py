"""Collapsed variational inference of topics, for a batch of documents at a time.

A batch is three arrays, as in a CSR matrix: the counts of its stored words (`values`), the row of
each in the table of the distinct words of the batch (`word`), and where each document begins
(`indptr`). Inside, arrays have the shape (class, topic, stored word): the words of a document lie
side by side, so sums over topics and over documents run at the speed of memory.
"""

from __future__ import annotations

from math import lgamma
from typing import Any

import numpy as np

from .._arrays import namespace_of, segment_sum
from .._sparse import add_product

_CACHE = 1 << 17  # numbers in one array processed at a time; four such arrays fit into the cache
_AHEAD = 1.5  # further moves of the topic masses that the first extrapolation expects
_COUNTS = 4096.0  # of one word; above, float32 would cost the scores a tenth of a nat
_SHIFT = 6  # terms of the gamma functions before their asymptotic series
_LOG_ROOT = float(0.5 * np.log(2 * np.pi))


def explain(
    p: Any, values: Any, word: Any, indptr: Any, alpha: float, sweeps: int, dtype: Any = None
) -> tuple[Any, Any]:
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
        Passes over the stored words, at least 1. Three passes come closer to the fixed point than
        five passes that update words one by one.
    dtype : float32 or float64, optional
        The type of the expected tokens. By default the type of the counts, or of `p` if a word
        occurs more than 4096 times in a document. The naive Bayes part of the scores is as precise
        as `p`.

    Returns
    -------
    scores : array of shape (B, K)
    tokens : array of shape (nnz, K, T)
        A view of an array whose last axis is contiguous along the stored words. For every class the
        topics of a word add up to its value.
    """
    xp, (_, K, T), nnz = namespace_of(p), p.shape, len(values)
    if dtype is None:
        dtype = p.dtype if nnz and float(values.max()) > _COUNTS else values.dtype
    values = xp.astype(values, p.dtype, copy=False)
    either = xp.sum(p, axis=2)  # the rest of the inference only uses shares of topics,
    scores = xp.zeros((len(indptr) - 1, K), dtype=p.dtype, device=p.device)
    add_product(scores, values, word, indptr, xp.log(either))  # float32 is enough for it
    tokens = xp.empty((K, T, nnz), dtype=dtype, device=p.device)
    here = isinstance(p, np.ndarray)  # other devices have no cache to stay in
    size = max(_CACHE // max(nnz * T, 1), 1) if here else K
    for first in range(0, K, size):  # classes do not depend on each other
        part = slice(first, first + size)
        if T == 1:
            tokens[part] = values
        elif nnz:
            topics = xp.permute_dims(p[:, part] / either[:, part, None], (1, 2, 0))
            share = xp.take(xp.astype(topics, dtype), word, axis=2)
            scores[:, part] += _share_out(share, values, indptr, alpha, sweeps, tokens[part])
    return scores, xp.permute_dims(tokens, (2, 0, 1))


def _share_out(share: Any, values: Any, indptr: Any, alpha: float, sweeps: int, tokens: Any) -> Any:
    """Write the expected tokens (K, T, nnz); return the contribution of topics to scores, (B, K).

    All words of a document move at once, which alone would take twice as many sweeps as moving one
    after another. So the evidence is extrapolated: each sweep expects the topic masses to continue
    their last move, by a share that falls from sweep to sweep (a constant share can end in a
    cycle).
    """
    xp, sizes = namespace_of(share), indptr[1:] - indptr[:-1]
    (filled,) = xp.nonzero(sizes)  # documents without words are skipped
    first, sizes = xp.concat([indptr[:-1][filled], indptr[-1:]]), sizes[filled]
    length = segment_sum(values, first)
    T, x = share.shape[1], xp.astype(values, share.dtype)
    single = 1.0 / xp.clip(x, 1.0, None)  # the part of a word's tokens that one token is
    xp.multiply(share, x, out=tokens)
    mass = segment_sum(tokens, first, axis=-1)
    before = xp.mean(mass, axis=1, keepdims=True)
    for sweep in range(sweeps):
        ahead = xp.clip(mass + _AHEAD * 0.75**sweep * (mass - before), 0.0, None) + alpha
        evidence = xp.repeat(ahead, sizes, axis=-1)
        tokens *= single
        evidence -= tokens
        xp.clip(evidence, alpha, None, out=evidence)  # extrapolation may go below alpha
        xp.multiply(share, evidence, out=tokens)
        norm = xp.sum(tokens, axis=1)
        tokens *= (x / norm)[:, None]
        before, mass = mass, segment_sum(tokens, first, axis=-1)
    variance = mass - segment_sum(tokens * tokens / x, first, axis=-1)
    # g = share * evidence / norm, so ln(share / g) = ln(norm) - ln(evidence)
    gain = x * xp.log(norm)
    gain -= xp.sum(tokens * xp.log(evidence, out=evidence), axis=1)
    log_gamma, bend = _gamma(xp.astype(mass, values.dtype) + alpha)
    bound = lgamma(T * alpha) - T * lgamma(alpha) - _gamma(length + T * alpha)[0]
    bound = bound + xp.sum(log_gamma + 0.5 * variance * bend, axis=1)
    bound = bound + segment_sum(xp.astype(gain, values.dtype), first, axis=-1)
    added = xp.zeros((len(indptr) - 1, len(share)), dtype=values.dtype, device=values.device)
    added[filled] = bound.T
    return added


def _gamma(x: Any) -> tuple[Any, Any]:
    """Return ln G(x) and psi'(x), x > 0, to about 1e-10; SciPy's functions need NumPy arrays."""
    xp, product, bend = namespace_of(x), x, 1.0 / (x * x)
    for _ in range(_SHIFT - 1):
        x = x + 1.0
        product = product * x
        bend = bend + 1.0 / (x * x)
    x = x + 1.0
    y = 1.0 / (x * x)
    series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
    log_gamma = (x - 0.5) * xp.log(x) - x + _LOG_ROOT + series - xp.log(product)
    bend = bend + 1.0 / x + y / 2.0 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))
    return log_gamma, bend
