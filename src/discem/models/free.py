"""A model in unbounded coordinates, in which steps of all rows search for the optimum.

The coordinates are means, and logarithms of variances, rates and shares. The metric is the diagonal
of the Fisher information: a gradient divided by it is the natural-gradient step of the method.
"""

from __future__ import annotations

import math
from typing import Any

from .._arrays import namespace_of
from ..families import family_of


def vector_of(model: Any) -> Any:
    """Return the free coordinates of a model in one vector."""
    xp = namespace_of(model.classes.counts)
    parts = [xp.log(model.classes.shares)]
    for block in model.blocks:
        if block.has_columns:
            parts += [xp.reshape(part, (-1,)) for part in family_of(block).free(block).values()]
    return xp.concat(parts)


def placed(model: Any, vector: Any) -> Any:
    """Return the model at other free coordinates."""
    counts = model.classes.counts
    xp, M = namespace_of(counts), counts.shape[0]
    logs = vector[:M]
    shares = xp.exp(logs - xp.max(logs))
    shares = xp.clip(shares / xp.sum(shares), 1e-260, None)
    classes = model.classes._replace(counts=shares * xp.sum(counts))
    blocks = tuple(
        family_of(block).placed(block, free) if free else block
        for block, free in _by_block(model, vector)
    )
    return model._replace(classes=classes, blocks=blocks)


def sums_of(model: Any, batch: Any, posterior: Any, weights: Any) -> list[tuple[Any, ...]]:
    """Return the weighted sums of a batch for the classes and for each block; they can be added."""
    weights, expected = model.expected(batch, posterior, weights)
    found: list[tuple[Any, ...]] = [(namespace_of(weights).sum(weights, axis=0),)]
    for block, own in zip(model.blocks, expected, strict=True):
        found.append(family_of(block).gathered(block, own) if block.has_columns else ())
    return found


def slope_of(model: Any, found: list[tuple[Any, ...]], n: float) -> tuple[Any, Any]:
    """Return the gradient and metric of the objective, from `sums_of` all rows."""
    classes, shares = model.classes, model.classes.shares
    (sums,), *parts = found
    xp, M = namespace_of(shares), shares.shape[0]
    alpha = classes.alpha / n
    gradients = [shares * xp.sum(sums) - sums - alpha * (1.0 - M * shares)]
    metrics = [shares * (1.0 + alpha * M)]
    for b, (block, own) in enumerate(zip(model.blocks, parts, strict=True)):
        if not own:
            continue
        counts = block.mass[:, None] * model.by_column(b, shares[None, :])
        gradient, metric = family_of(block).slope(block, own, counts, n)
        gradients += [xp.reshape(gradient[name], (-1,)) for name in gradient]
        metrics += [xp.reshape(metric[name], (-1,)) for name in gradient]
    return xp.concat(gradients), xp.concat(metrics)


def reach_of(model: Any, step: Any) -> Any:
    """Return the length of a step for each coordinate: means in deviations, others unchanged."""
    M = model.classes.counts.shape[0]
    xp = namespace_of(step)
    parts = [xp.abs(step[:M])]
    for block, moves in _by_block(model, step):
        if not moves:
            continue
        reach = family_of(block).reach(block, moves)
        parts += [xp.reshape(reach[name], (-1,)) for name in moves]
    return xp.concat(parts)


def _by_block(model: Any, vector: Any) -> Any:
    """Yield each block with its parts of a vector, by name; blocks without columns have none."""
    xp, at = namespace_of(vector), model.classes.counts.shape[0]
    for block in model.blocks:
        named = {}
        for name, part in block.values.items() if block.has_columns else ():
            size = math.prod(part.shape)
            named[name] = xp.reshape(vector[at : at + size], part.shape)
            at += size
        yield block, named
