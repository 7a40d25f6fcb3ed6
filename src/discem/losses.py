"""Losses: K scores ``a_k = ln p(y=k, x)`` and a target give a value and K weights.

The weights are ``w_k = -d loss / d a_k``; they are all that the update of the method needs to know
of a loss. A target is a label, a label set or a distribution over labels; what a loss asks of it is
its *claim* (how much of the joint it explains) and which classes it *admits*.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, inf, log
from typing import Any, NamedTuple

import numpy as np

from ._compile import generic, helper
from .exceptions import OptionError

# --- targets -------------------------------------------------------------------------------------


class Labels(NamedTuple):
    """One class code per row; -1 is an unlabelled row, whose label set is all classes."""

    codes: np.ndarray


class LabelSets(NamedTuple):
    """Per row the set of classes it may belong to, as an (n, K) array of booleans."""

    member: np.ndarray


class SoftLabels(NamedTuple):
    """Per row a distribution over the classes, as an (n, K) array of shares."""

    share: np.ndarray


@generic
def claim(targets, i, a, w):
    """Write the posterior over the target's classes into `w`; return the log joint it explains."""


@generic
def admits(targets, i, k):
    """Tell whether class `k` would be a right answer for row `i`."""


@generic
def unlabelled(targets, i):
    """Tell whether row `i` has no label at all."""


_NOTHING = -50.0  # exp of less is nothing beside 1, and not worth the time to compute


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


@claim.register(Labels)
def _claim_label(targets, i, a, w):
    y = targets.codes[i]
    if y >= 0:
        for k in range(a.shape[0]):
            w[k] = 0.0
        w[y] = 1.0
        return a[y]
    total = log_sum_exp(a)
    for k in range(a.shape[0]):
        w[k] = exp(a[k] - total) if a[k] - total > _NOTHING else 0.0
    return total


@claim.register(LabelSets)
def _claim_set(targets, i, a, w):
    top = -inf
    for k in range(a.shape[0]):
        if targets.member[i, k] and a[k] > top:
            top = a[k]
    total = 0.0
    for k in range(a.shape[0]):
        w[k] = exp(a[k] - top) if targets.member[i, k] else 0.0
        total += w[k]
    for k in range(a.shape[0]):
        w[k] /= total
    return top + log(total)


@claim.register(SoftLabels)
def _claim_share(targets, i, a, w):
    total = 0.0
    for k in range(a.shape[0]):
        w[k] = targets.share[i, k]
        total += w[k] * a[k]
    return total


@admits.register(Labels)
def _admits_label(targets, i, k):
    return targets.codes[i] == k or targets.codes[i] < 0


@admits.register(LabelSets)
def _admits_set(targets, i, k):
    return targets.member[i, k]


@admits.register(SoftLabels)
def _admits_share(targets, i, k):
    for j in range(targets.share.shape[1]):
        if targets.share[i, j] > targets.share[i, k]:
            return False
    return True


@unlabelled.register(Labels)
def _unlabelled_label(targets, i):
    return targets.codes[i] < 0


@unlabelled.register(LabelSets)
@unlabelled.register(SoftLabels)
def _never_unlabelled(targets, i):
    return False


def parts(targets: Any, weights: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split targets into plain labels with weights, before anything is known of the scores.

    Unlabelled rows have no part; a label set is shared evenly.
    """
    if isinstance(targets, Labels):
        yield targets.codes, np.where(targets.codes >= 0, weights, 0.0)
        return
    share = np.asarray(targets[0], dtype=np.float64)
    share = share / share.sum(axis=1, keepdims=True)
    for k in range(share.shape[1]):
        yield np.full(len(share), k), weights * share[:, k]


# --- losses --------------------------------------------------------------------------------------


class NLL(NamedTuple):
    """Negative log-likelihood of the joint: -ln p(y, x). Its update is Sato's online EM."""


class NCLL(NamedTuple):
    """Negative conditional log-likelihood: -ln p(y | x)."""


class Hinge(NamedTuple):
    """max(0, margin - (a_y - a of the best wrong class)), the paper's hinge for margin 1."""

    margin: float = 1.0


class Blend(NamedTuple):
    """NCLL + kappa * NLL: discriminative, with the joint kept a good density."""

    kappa: float = 0.1


@generic
def evaluate(loss, a, targets, i, w):
    """Return the loss of row `i` at scores `a` and write its weights into `w`."""


@evaluate.register(NLL)
def _nll(loss, a, targets, i, w):
    return -claim(targets, i, a, w)


@evaluate.register(NCLL)
def _ncll(loss, a, targets, i, w):
    claimed = claim(targets, i, a, w)
    total = log_sum_exp(a)
    for k in range(a.shape[0]):
        if a[k] - total > _NOTHING:
            w[k] -= exp(a[k] - total)
    return total - claimed


@helper
def best_answers(a, targets, i):
    """The best right and the best wrong class (-1 if there is none)."""
    right, wrong = -1, -1
    for k in range(a.shape[0]):
        if admits(targets, i, k):
            if right < 0 or a[k] > a[right]:
                right = k
        elif wrong < 0 or a[k] > a[wrong]:
            wrong = k
    return right, wrong


@evaluate.register(Hinge)
def _hinge(loss, a, targets, i, w):
    right, wrong = best_answers(a, targets, i)
    for k in range(a.shape[0]):
        w[k] = 0.0
    if wrong < 0:
        return 0.0
    value = loss.margin - (a[right] - a[wrong])
    if value <= 0.0:
        return 0.0
    w[right] = 1.0
    w[wrong] = -1.0
    return value


@evaluate.register(Blend)
def _blend(loss, a, targets, i, w):
    claimed = claim(targets, i, a, w)
    total = log_sum_exp(a)
    for k in range(a.shape[0]):
        w[k] *= 1.0 + loss.kappa
        if a[k] - total > _NOTHING:
            w[k] -= exp(a[k] - total)
    return total - (1.0 + loss.kappa) * claimed


LOSSES: dict[str, Any] = {"nll": NLL(), "ncll": NCLL(), "hinge": Hinge(), "blend": Blend()}


def resolve_loss(loss: Any) -> Any:
    """Return the loss of that name, or the loss object given.

    >>> resolve_loss("hinge")
    Hinge(margin=1.0)
    """
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise OptionError(f"loss={loss!r} is unknown: use one of {sorted(LOSSES)} or an object")
        return LOSSES[loss]
    if type(loss) not in evaluate.kinds:
        raise OptionError(f"loss={loss!r} is neither a name nor a loss such as Blend(kappa=0.1)")
    if isinstance(loss, Blend) and not 0 <= loss.kappa < inf:
        raise OptionError(f"loss={loss!r}: kappa must be a number >= 0")
    if isinstance(loss, Hinge) and not 0 < loss.margin < inf:
        raise OptionError(f"loss={loss!r}: margin must be a number > 0")
    return type(loss)(*(float(value) for value in loss))


def value_and_weights(loss: Any, scores: Any, target: Any) -> tuple[float, np.ndarray]:
    """Evaluate a loss once, in plain Python.

    Parameters
    ----------
    loss : str or loss object
    scores : array of shape (K,)
        ``ln p(y=k, x)`` for each class.
    target : int, or array of shape (K,)
        A class code (-1: unlabelled); booleans for a label set; shares for a soft label.

    Examples
    --------
    >>> value, weights = value_and_weights("ncll", [0.0, 0.0], 1)
    >>> round(value, 3), weights.tolist()
    (0.693, [-0.5, 0.5])
    """
    a = np.asarray(scores, dtype=np.float64)
    w = np.empty_like(a)
    target = np.asarray(target)
    targets: Any
    if target.ndim == 0:
        targets = Labels(target.reshape(1).astype(np.int64))
    elif target.dtype == bool:
        targets = LabelSets(target.reshape(1, -1))
    else:
        targets = SoftLabels(target.reshape(1, -1).astype(np.float64))
    return float(evaluate(resolve_loss(loss), a, targets, 0, w)), w
