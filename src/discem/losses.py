"""Losses: what scores say of a row becomes a value and K weights.

The scores are ``a_k = ln p(y=k, x)``; the weights are ``w_k = -d loss / d a_k``, and they are all
that the update of the method needs to know of a loss. A loss sees neither a model nor what kind of
target a row has: it contrasts the `Inferences` that targets make of the scores.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from . import targets as _targets
from ._compile import generic
from ._kinds import savable
from .exceptions import OptionError


class Contrast(NamedTuple):
    """The built-in losses in numbers: one compiled form for all, so that to change one is free.

    ``free * ln p(x) - clamped * ln p(target, x)``; or, with a margin, what the best right class
    lacks of being so far ahead of the best wrong one.
    """

    clamped: float
    free: float
    margin: float = 0.0


@savable
class NLL(NamedTuple):
    """Negative log-likelihood of the joint: -ln p(y, x). Its update is Sato's online EM."""

    def contrast(self) -> Contrast:
        return Contrast(1.0, 0.0)


@savable
class NCLL(NamedTuple):
    """Negative conditional log-likelihood: -ln p(y | x)."""

    def contrast(self) -> Contrast:
        return Contrast(1.0, 1.0)


@savable
class Blend(NamedTuple):
    """NCLL + kappa * NLL: discriminative, with the joint kept a good density."""

    kappa: float = 0.1

    def contrast(self) -> Contrast:
        return Contrast(1.0 + self.kappa, 1.0)


@savable
class Hinge(NamedTuple):
    """max(0, margin - (a_y - a of the best wrong class)), the paper's hinge for margin 1."""

    margin: float = 1.0

    def contrast(self) -> Contrast:
        return Contrast(1.0, 1.0, self.margin)


@generic
def evaluate(loss, a, seen, p, w):
    """Return the loss of a row, and turn `w` into its weights.

    `seen` are the `Inferences` from the scores `a`; `p` is ``p(y | x)``, and `w` holds
    ``p(y | x, target)`` when it comes: for a label y, the unit vector e_y.
    """


@evaluate.register(Contrast)
def _contrast(loss, a, seen, p, w):
    if loss.margin > 0.0:
        for k in range(a.shape[0]):
            w[k] = 0.0
        if seen.wrong < 0:
            return 0.0
        value = loss.margin - (a[seen.right] - a[seen.wrong])
        if value <= 0.0:
            return 0.0
        w[seen.right] = 1.0
        w[seen.wrong] = -1.0
        return value
    for k in range(a.shape[0]):
        w[k] = loss.clamped * w[k] - loss.free * p[k]
    return loss.free * seen.free - loss.clamped * seen.clamped


def compiled_form(loss: Any) -> Any:
    """What compiled code sees of a loss: its numbers, or a loss of one's own as it is."""
    return loss.contrast() if hasattr(loss, "contrast") else loss


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
    if type(loss) not in evaluate.kinds and not hasattr(type(loss), "contrast"):
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
    target = np.asarray(target)
    if target.ndim == 0:
        targets = _targets.labels(target.reshape(1))
    elif target.dtype == bool:
        targets = _targets.label_sets(target.reshape(1, -1))
    else:
        targets = _targets.soft_labels(target.reshape(1, -1))
    w, p = np.empty_like(a), np.empty_like(a)
    seen = _targets.infer(a, targets, 0, w, p)
    return float(evaluate(compiled_form(resolve_loss(loss)), a, seen, p, w)), w
