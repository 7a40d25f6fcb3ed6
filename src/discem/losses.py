"""Losses: turn the scores of a batch of rows into a value and K weights for each row.

The scores are ``a_k = ln p(y=k, x)``. The weights are ``w_k = -d loss / d a_k``; the update of the
method needs nothing else from a loss. Every likelihood loss contrasts two posteriors: the clamped
one (the answer is known) minus the free one (it is unknown). A loss does not depend on the model or
on the kind of target.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from . import targets as _targets
from ._arrays import beside, namespace_of
from ._kinds import savable
from .exceptions import OptionError
from .targets import Inferences


@savable
class NLL(NamedTuple):
    """Negative log-likelihood of the joint: -ln p(y, x). Its update is Sato's online EM."""

    def evaluate(self, seen: Inferences) -> tuple[Any, Any]:
        """Return -ln p(y, x) of each row, and its weights: the clamped posterior."""
        return -seen.clamped, seen.given


@savable
class NCLL(NamedTuple):
    """Negative conditional log-likelihood: -ln p(y | x)."""

    def evaluate(self, seen: Inferences) -> tuple[Any, Any]:
        """Return -ln p(y | x) of each row, and its weights: clamped minus free posterior."""
        return seen.free - seen.clamped, seen.given - seen.posterior


@savable
class Blend(NamedTuple):
    """NCLL + kappa * NLL: discriminative training that keeps the joint density accurate."""

    kappa: float = 0.1

    def evaluate(self, seen: Inferences) -> tuple[Any, Any]:
        """Return the weighted sum of both losses, and of their weights."""
        value, weights = NCLL().evaluate(seen)
        return value - self.kappa * seen.clamped, weights + self.kappa * seen.given


@savable
class Hinge(NamedTuple):
    """max(0, margin - (a_y - a of the best wrong class)); margin 1 is the hinge of the paper."""

    margin: float = 1.0

    def evaluate(self, seen: Inferences) -> tuple[Any, Any]:
        """Return the loss of each row; the weights compare the best right and best wrong class."""
        xp = namespace_of(seen.margin)
        lacks = self.margin - seen.margin
        value = xp.where(lacks > 0, lacks, xp.zeros_like(lacks))
        step = xp.where(lacks > 0, xp.ones_like(lacks), xp.zeros_like(lacks))[:, None]
        none = xp.zeros_like(seen.given)
        right = xp.where(_is_class(seen.right, none), step, none)
        return value, right - xp.where(_is_class(seen.wrong, none), step, none)

    def smoothed(self, width: float) -> Any:
        """Return a smooth version of this loss, for steps of several rows: see `SoftHinge`."""
        return SoftHinge(self.margin, width)


class SoftHinge(NamedTuple):
    """A smooth hinge: soft at the margin, and between wrong answers with similar scores."""

    margin: float
    width: float

    def evaluate(self, seen: Inferences) -> tuple[Any, Any]:
        """Return what `Hinge` returns, with both corners smoothed over `width` nats."""
        xp = namespace_of(seen.scores)
        wrong = xp.where(seen.member, xp.full_like(seen.scores, -inf), seen.scores)
        top = xp.max(wrong, axis=1)
        some = xp.isfinite(top)  # else no class is wrong
        top = xp.where(some, top, xp.zeros_like(top))
        q = xp.exp(xp.clip((wrong - top[:, None]) / self.width, -700.0, None))  # see `targets`
        total = xp.sum(q, axis=1)
        total = xp.where(some, total, xp.ones_like(total))
        lacks = (self.margin - seen.margin) / self.width + xp.log(total)
        lacks = xp.clip(lacks, -700.0, None)
        act = 1.0 / (1.0 + xp.exp(-lacks))
        right = xp.where(_is_class(seen.right, q), act[:, None], xp.zeros_like(q))
        value = self.width * xp.logaddexp(xp.zeros_like(lacks), lacks)
        return value, right - q * (act / total)[:, None]


def _is_class(codes: Any, like: Any) -> Any:
    """Which class each row has, (n, K); classes are in rows, as scores have them in memory."""
    return (beside(np.arange(like.shape[1]), like)[:, None] == codes[None, :]).T


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
    if not hasattr(type(loss), "evaluate"):
        raise OptionError(f"loss={loss!r} is neither a name nor a loss such as Blend(kappa=0.1)")
    if isinstance(loss, Blend) and not 0 <= loss.kappa < inf:
        raise OptionError(f"loss={loss!r}: kappa must be a number >= 0")
    if isinstance(loss, Hinge) and not 0 < loss.margin < inf:
        raise OptionError(f"loss={loss!r}: margin must be a number > 0")
    if not isinstance(loss, NLL | NCLL | Blend | Hinge | SoftHinge):
        _check_outcome(loss)
    numbers: Any = loss if isinstance(loss, tuple) else None
    return loss if numbers is None else type(loss)(*map(float, numbers))


def _check_outcome(loss: Any) -> None:
    """Validate a user's own loss by evaluating it for two rows."""
    scores = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.5]])
    found = loss.evaluate(_targets.infer(scores, _targets.labels(np.array([0, 2]))))
    if not (isinstance(found, tuple | list) and len(found) == 2):
        raise OptionError(f"loss={loss!r}: evaluate must return a pair, (values, weights)")
    for name, given, shape in zip(("values", "weights"), found, ((2,), (2, 3)), strict=True):
        if np.shape(given) != shape:
            raise OptionError(
                f"loss={loss!r}: for 2 rows and 3 classes evaluate returned {name} of shape "
                f"{np.shape(given)}; expected {shape}"
            )
        if not np.isfinite(given).all():
            raise OptionError(f"loss={loss!r}: evaluate returned {name} that are not finite")


def value_and_weights(loss: Any, scores: Any, target: Any) -> tuple[float, np.ndarray]:
    """Evaluate a loss for one row.

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
    a = np.asarray(scores, dtype=np.float64)[None]
    target = np.asarray(target)
    if target.ndim == 0:
        targets = _targets.labels(target.reshape(1))
    elif target.dtype == bool:
        targets = _targets.label_sets(target.reshape(1, -1))
    else:
        targets = _targets.soft_labels(target.reshape(1, -1))
    value, weights = resolve_loss(loss).evaluate(_targets.infer(a, targets))
    return float(value[0]), weights[0]
