"""Targets: what is known about the answer of each row, and the posteriors that follow.

A row has a label, a set of labels, shares of the labels, or nothing. One type holds them all, so
rows with different kinds of targets can share a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ._arrays import beside, namespace_of

UNLABELLED = -1  # the label is missing: every class may be right
UNKNOWN = -2  # a label that the model does not know; such rows teach nothing
IN_SET = -3  # the classes of non-zero share may be right
SHARED = -4  # a distribution over the classes


class Targets(NamedTuple):
    """Hold what is known about the answers of n rows; see `labels`, `label_sets`, `soft_labels`."""

    codes: np.ndarray  # (n,) a class, or one of the marks above
    share: np.ndarray  # (n, K), for rows with a set or shares; (0, 0) if there are none

    @property
    def has_classes(self) -> bool:
        """Whether an answer can be right or wrong."""
        return True

    @property
    def plain(self) -> bool:
        """Whether every row has one label or none."""
        return not self.share.shape[0]

    @property
    def certain(self) -> bool:
        """Whether every row has a label that the model knows."""
        return self.plain and bool((self.codes >= 0).all())

    @property
    def labelled(self) -> np.ndarray:
        """Return which rows have information about their class."""
        return self.codes != UNLABELLED

    def take(self, rows: Any) -> Targets:
        """Return the targets of the given rows."""
        return Targets(self.codes[rows], self.share if self.plain else self.share[rows])

    def infer(self, scores: Any) -> Inferences:
        """Compute posteriors from the scores of rows with these targets."""
        return infer(scores, self)

    def parts(self, weights: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs of codes and weights that add up to these targets, before scores are known.

        Unlabelled rows are left out; a label set is shared evenly.
        """
        if self.plain:
            yield self.codes, np.where(self.codes >= 0, weights, 0.0)
            return
        share = self.even_shares()
        for k in range(share.shape[1]):
            yield np.full(len(share), k), weights * share[:, k]

    def even_shares(self, n_classes: int | None = None) -> np.ndarray:
        """Return the share of each row in each class, (n, K); a label set is shared evenly."""
        share = np.zeros((len(self.codes), n_classes or self.share.shape[1]))
        if not self.plain:
            mixed = self.codes <= IN_SET
            share[mixed] = self.share[mixed] / self.share[mixed].sum(axis=1, keepdims=True)
        known = np.flatnonzero(self.codes >= 0)
        share[known, self.codes[known]] = 1.0
        return share


def labels(codes) -> Targets:
    """Make targets from one class code per row; -1 is an unlabelled row.

    >>> labels([0, 2, -1]).labelled.tolist()
    [True, True, False]
    """
    return Targets(np.array(codes, dtype=np.int64), np.zeros((0, 0)))


def label_sets(member) -> Targets:
    """Make targets from an (n, K) array of booleans: the classes that each row may belong to."""
    share = np.array(member, dtype=np.float64)
    return Targets(np.full(len(share), IN_SET, dtype=np.int64), share)


def soft_labels(share) -> Targets:
    """Make targets from an (n, K) array of shares: a distribution over the classes per row."""
    share = np.array(share, dtype=np.float64)
    return Targets(np.full(len(share), SHARED, dtype=np.int64), share)


class KnownLabels(NamedTuple):
    """Hold one label for each of n rows; the model knows all of them, so no check is needed."""

    codes: Any  # (n,)

    @property
    def plain(self) -> bool:
        """Whether every row has one label or none."""
        return True

    @property
    def certain(self) -> bool:
        """Whether every row has a label that the model knows."""
        return True

    @property
    def share(self) -> Any:
        """The shares of rows without a single label: empty, as there are none."""
        return np.zeros((0, 0))

    @property
    def labelled(self) -> Any:
        """Return which rows have information about their class: all of them."""
        return self.codes >= 0

    def take(self, rows: Any) -> KnownLabels:
        """Return the targets of the given rows."""
        return KnownLabels(self.codes[rows])

    def infer(self, scores: Any) -> Inferences:
        """Compute posteriors from the scores of rows with these targets."""
        return infer(scores, self)


class Numbers(NamedTuple):
    """Mark which rows have a numeric answer; the numbers themselves are in the rows.

    The scores of a row are two inferences side by side: ``ln p(c, x)`` of all components, where the
    answer is free, then ``ln p(c, x, y)`` of all components, where it is clamped.
    """

    codes: np.ndarray  # (n,) 0 where there is a number, UNLABELLED where there is none

    @property
    def has_classes(self) -> bool:
        """Whether an answer can be right or wrong."""
        return False

    @property
    def certain(self) -> bool:
        """Whether every row has an answer."""
        return bool((self.codes >= 0).all())

    @property
    def labelled(self) -> np.ndarray:
        """Which rows have an answer."""
        return self.codes != UNLABELLED

    def take(self, rows: Any) -> Numbers:
        """Return the targets of the given rows."""
        return Numbers(self.codes[rows])

    def infer(self, scores: Any) -> Inferences:
        """Compute posteriors from the scores of rows, with their answers and without."""
        xp, M = namespace_of(scores), scores.shape[1] // 2
        free, posterior = _normalized(scores[:, :M])
        clamped, given = _normalized(scores[:, M:])
        none, margin = xp.zeros_like(posterior), clamped - free
        nowhere = xp.zeros_like(clamped, dtype=xp.int64)
        given = xp.concat([none, given], axis=1)
        posterior = xp.concat([posterior, none], axis=1)
        return Inferences(
            scores, given > 0, clamped, free, given, posterior, nowhere, nowhere, margin
        )


def _normalized(a: Any) -> tuple[Any, Any]:
    """Return the log of the sum of exp(a) over each row, and the share of each entry in it."""
    xp = namespace_of(a)
    top = xp.max(a, axis=1, keepdims=True)
    share = xp.exp(xp.clip(a - top, -700.0, None))  # where exp is 0 it takes ten times as long
    total = xp.sum(share, axis=1, keepdims=True)
    return (top + xp.log(total))[:, 0], share / total


Answers = Targets | KnownLabels | Numbers


# --- what scores say, of a target and without it --------------------------------------------------


class Inferences(NamedTuple):
    """Hold the posteriors that follow from ``a_k = ln p(y=k, x)``; losses contrast them."""

    scores: Any  # (n, K)
    member: Any  # (n, K) which classes are right
    clamped: Any  # (n,) ln p(target, x): the answer is known
    free: Any  # (n,) ln p(x): the answer is unknown
    given: Any  # (n, K) p(y | x, target)
    posterior: Any  # (n, K) p(y | x)
    right: Any  # (n,) the best right class
    wrong: Any  # (n,) the best wrong class; any class where no class is wrong
    margin: Any  # (n,) lead of the best right class over the best wrong one; inf if none is wrong


def infer(a: Any, targets: Targets | KnownLabels) -> Inferences:
    """Compute the clamped and the free posterior of rows with scores `a`, (n, K)."""
    xp = namespace_of(a)
    K = a.shape[1]
    free, posterior = _normalized(a)
    codes = beside(targets.codes, a)[:, None]
    # a classes-by-rows view: scores store the rows of one class side by side
    member = (beside(np.arange(K), a)[:, None] == codes.T).T
    none, low = xp.zeros_like(a), xp.full_like(a, -inf)
    if targets.certain:
        given = xp.where(member, xp.ones_like(a), none)
        clamped = best = xp.sum(xp.where(member, a, none), axis=1)
        right = codes[:, 0]
    else:
        # every class is right for a row without a label, or with one that the model does not know
        member = member | (codes == UNLABELLED) | (codes == UNKNOWN)
        share = none if targets.plain else beside(targets.share, a)
        if not targets.plain:
            # the right classes are those of the largest share: in a set, its members
            most = xp.max(share, axis=1, keepdims=True)
            member = member | ((codes <= IN_SET) & (share == most))
        right_of = xp.where(member, a, low)
        best, right = xp.max(right_of, axis=1), xp.argmax(right_of, axis=1)
        given = xp.exp(right_of - best[:, None])
        total = xp.sum(given, axis=1, keepdims=True)
        shared = codes == SHARED
        given = xp.where(shared, share, given / total)
        explained = xp.sum(share * a, axis=1)
        clamped = xp.where(shared[:, 0], explained, best + xp.log(total[:, 0]))
    wrong_of = xp.where(member, low, a)
    margin = best - xp.max(wrong_of, axis=1)
    wrong = xp.argmax(wrong_of, axis=1)
    return Inferences(a, member, clamped, free, given, posterior, right, wrong, margin)
