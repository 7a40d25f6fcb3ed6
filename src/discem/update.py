"""Update a model with a batch of rows: the one update of the method.

    scores = ln p(y) + sum over blocks of ln p(x | y)
    W      = clamped posterior - free posterior, times the step size
    mu     <- inside(mu + sum_i W_ik E[s | x_i, k] - decay mu + pull (alpha - nu mu))

A loss computes W, a model computes E[s | x, k], and a projection keeps mu inside its domain. With
one row per batch this is Algorithm 1 of the paper.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ._arrays import beside, namespace_of, quiet
from .losses import NLL
from .models import Moves
from .targets import UNLABELLED, Answers, Inferences


class Judged(NamedTuple):
    """Hold the losses, weights and posteriors of a batch of rows."""

    losses: Any  # (n,)
    weights: Any  # (n, K) -d loss / d scores
    posterior: Any  # the model's posterior of its latent variables
    seen: Inferences


def judge(loss: Any, model: Any, batch: Any, targets: Answers) -> Judged:
    """Compute the loss and the weights of each row; rows without a label use the NLL."""
    scores, posterior = model.scores(batch)
    seen = targets.infer(scores)
    losses, weights = loss.evaluate(seen)
    if not targets.certain:
        xp = namespace_of(scores)
        nothing = beside(targets.codes == UNLABELLED, scores)
        by_nll, given = NLL().evaluate(seen)
        losses = xp.where(nothing, by_nll, losses)
        weights = xp.where(nothing[:, None], given, weights)
    return Judged(losses, weights, posterior, seen)


def move(
    model: Any, batch: Any, judged: Judged, weights: Any, rule: Any, rho: float
) -> tuple[Any, int]:
    """Take one step of size `rho` along the weighted mean of judged rows.

    Returns the model, and the number of factors whose step was shortened.
    """
    xp, n = namespace_of(judged.weights), max(judged.weights.shape[0], 1)
    weights = beside(weights, judged.weights)
    W = judged.weights * (rho / n * weights)[:, None]
    mean = xp.sum(weights) / n
    moves = Moves(0.0, rho * mean / rule.n, rho / rule.n, rule.projection)
    if rule.projection.damping > 0.0:
        leverage = model.leverage(batch, judged.posterior, W, moves)
        if leverage is not None:
            effect = xp.sum(xp.abs(W) * leverage, axis=1)
            W = W * rule.projection.damp(effect)[:, None]
    moves = moves._replace(decay=xp.sum(W))
    return model.moved(batch, judged.posterior, W, moves)


@quiet
def update(
    model: Any, batch: Any, targets: Answers, weights: Any, rule: Any, rho: float
) -> tuple[Any, Judged, int]:
    """Judge a batch of rows and take one step; see `judge` and `move`."""
    judged = judge(rule.loss, model, batch, targets)
    model, shortened = move(model, batch, judged, weights, rule, rho)
    return model, judged, shortened
