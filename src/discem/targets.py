"""Targets: what is known of the answer of each row, and what scores say in its light.

A row has a label, a set of labels, shares of the labels, or nothing. All are held in one type, so
that one compiled sweep serves them all, also side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from typing import NamedTuple

import numpy as np

from ._compile import helper

UNLABELLED = -1  # nothing is known: every class would be right
UNKNOWN = -2  # a label that the model does not know; nothing can be learnt from it
IN_SET = -3  # the classes of non-zero share may be right
SHARED = -4  # a distribution over the classes


class Targets(NamedTuple):
    """What is known of the answers of n rows; see `labels`, `label_sets` and `soft_labels`."""

    codes: np.ndarray  # (n,) a class, or one of the marks above
    share: np.ndarray  # (n, K) of rows that are in a set or shared; (0, 0) if there are none

    @property
    def plain(self) -> bool:
        """Whether every row has one label or none."""
        return not self.share.size

    @property
    def labelled(self) -> np.ndarray:
        """Which rows say anything of their class."""
        return self.codes != UNLABELLED

    def take(self, rows: np.ndarray) -> Targets:
        """The targets of some rows."""
        return Targets(self.codes[rows], self.share if self.plain else self.share[rows])

    def parts(self, weights: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of codes and weights that add up to these targets, before any score is known.

        Unlabelled rows have no part; a label set is shared evenly.
        """
        if self.plain:
            yield self.codes, np.where(self.codes >= 0, weights, 0.0)
            return
        share = self.even_shares()
        for k in range(share.shape[1]):
            yield np.full(len(share), k), weights * share[:, k]

    def even_shares(self, n_classes: int | None = None) -> np.ndarray:
        """The share of each row in each class, (n, K): a label set is shared evenly."""
        share = np.zeros((len(self.codes), n_classes or self.share.shape[1]))
        if not self.plain:
            mixed = self.codes <= IN_SET
            share[mixed] = self.share[mixed] / self.share[mixed].sum(axis=1, keepdims=True)
        known = np.flatnonzero(self.codes >= 0)
        share[known, self.codes[known]] = 1.0
        return share


def labels(codes) -> Targets:
    """One class code per row; -1 is an unlabelled row.

    >>> labels([0, 2, -1]).labelled.tolist()
    [True, True, False]
    """
    return Targets(np.array(codes, dtype=np.int64), np.zeros((0, 0)))


def label_sets(member) -> Targets:
    """Per row the classes it may belong to, as an (n, K) array of booleans."""
    share = np.array(member, dtype=np.float64)
    return Targets(np.full(len(share), IN_SET, dtype=np.int64), share)


def soft_labels(share) -> Targets:
    """Per row a distribution over the classes, as an (n, K) array of shares."""
    share = np.array(share, dtype=np.float64)
    return Targets(np.full(len(share), SHARED, dtype=np.int64), share)


# --- compiled: what scores say, of a target and without it ----------------------------------------

_NOTHING = -50.0  # exp of less is nothing beside 1, and not worth the time to compute


class Inferences(NamedTuple):
    """The four answers that scores ``a_k = ln p(y=k, x)`` give; losses are contrasts of these."""

    clamped: float  # the log joint that the target explains, ln p(target, x)
    free: float  # that of all classes, ln p(x)
    right: int  # the best right class
    wrong: int  # the best wrong class, -1 if there is none


@helper
def log_sum_exp(a):
    """Ln sum_k exp(a_k), safe for scores of any size."""
    top = a[0]
    for k in range(1, a.shape[0]):
        if a[k] > top:
            top = a[k]
    total = 0.0
    for k in range(a.shape[0]):
        if a[k] - top > _NOTHING:
            total += exp(a[k] - top)
    return top + log(total)


@helper
def posterior(a, p):
    """Write exp(a) / sum exp(a) into `p`; return ln of the sum."""
    top = a[0]
    for k in range(1, a.shape[0]):
        if a[k] > top:
            top = a[k]
    total = 0.0
    for k in range(a.shape[0]):
        p[k] = exp(a[k] - top) if a[k] - top > _NOTHING else 0.0
        total += p[k]
    for k in range(a.shape[0]):
        p[k] /= total
    return top + log(total)


@helper
def infer(a, targets, i, w, p):
    """Write p(y | x, target) into `w` and p(y | x) into `p`; return the `Inferences` of row i."""
    code = targets.codes[i]
    free = posterior(a, p)
    if code >= 0:
        return infer_label(a, code, free, w)
    if code > IN_SET:
        return infer_nothing(a, free, w, p)
    return infer_shares(a, targets.share[i], code, free, w)


@helper
def infer_label(a, code, free, w):
    wrong = -1
    for k in range(a.shape[0]):
        w[k] = 0.0
        if k != code and (wrong < 0 or a[k] > a[wrong]):
            wrong = k
    w[code] = 1.0
    return Inferences(a[code], free, code, wrong)


@helper
def infer_nothing(a, free, w, p):
    right = 0
    for k in range(a.shape[0]):
        w[k] = p[k]
        if a[k] > a[right]:
            right = k
    return Inferences(free, free, right, -1)


@helper
def infer_shares(a, share, code, free, w):
    most = 0.0  # the right classes are those of the largest share: in a set, its members
    for k in range(a.shape[0]):
        most = max(most, share[k])
    right, wrong = -1, -1
    for k in range(a.shape[0]):
        if share[k] == most:
            if right < 0 or a[k] > a[right]:
                right = k
        elif wrong < 0 or a[k] > a[wrong]:
            wrong = k
    clamped = 0.0
    if code == SHARED:
        for k in range(a.shape[0]):
            w[k] = share[k]
            clamped += share[k] * a[k]
        return Inferences(clamped, free, right, wrong)
    for k in range(a.shape[0]):
        w[k] = exp(a[k] - a[right]) if share[k] > 0.0 else 0.0
        clamped += w[k]
    for k in range(a.shape[0]):
        w[k] /= clamped
    return Inferences(a[right] + log(clamped), free, right, wrong)
