"""Free coordinates of a mean and a covariance, and the penalty of the prior there.

They are in white units, in which the covariance of the prior is the identity: the mean, and a lower
triangle C with ``S = L C C' L'`` and the logarithm of its diagonal. The Fisher information is
nearly diagonal there.
"""

from __future__ import annotations

from typing import Any

from .._arrays import namespace_of
from ._block import Block
from ._wishart import first, last, rooted, symmetric


def free(block: Block) -> dict[str, Any]:
    """Return the values in white units."""
    xp, white = namespace_of(block.mass), rooted(block.prior.covariance)
    one = _one(block)
    C = _triangles(block, white)
    diagonal = xp.sum(C * one, axis=-1)
    logs = xp.log(diagonal)[:, :, None] * one + C * (1.0 - one)
    return {"mean": xp.linalg.inv(white) @ block.values["mean"], "covariance": last(logs)}


def values_of(block: Block, free: dict[str, Any]) -> dict[str, Any]:
    """Return the values at the given free coordinates."""
    xp, one, white = namespace_of(block.mass), _one(block), rooted(block.prior.covariance)
    logs = first(free["covariance"])
    C = xp.tril(logs * (1.0 - one)) + xp.exp(xp.sum(logs * one, axis=-1))[:, :, None] * one
    root = white @ C
    return {
        "mean": white @ free["mean"],
        "covariance": last(symmetric(root @ xp.matrix_transpose(root))),
    }


def slope(block: Block, found: Any, counts: Any, n: float) -> tuple[dict, dict]:
    """Return the gradient of the objective and its metric, see `Family.slope`."""
    xp, one, white = namespace_of(block.mass), _one(block), rooted(block.prior.covariance)
    (sums, products, _), prior = found, block.prior
    C = _triangles(block, white)
    back = xp.linalg.inv(C)
    precision = xp.matrix_transpose(back) @ back
    off = (xp.linalg.inv(white) @ (block.values["mean"] - prior.mean[:, None])).T[:, :, None]
    pulled = precision @ off
    to_mean = prior.nu_mean / n * pulled[:, :, 0] - (white.T @ sums).T
    bent = prior.nu_covariance * (precision - precision @ precision)
    bent = bent - prior.nu_mean * pulled * xp.matrix_transpose(pulled)
    to_root = (bent / n - white.T @ first(products) @ white) @ C
    diagonal = xp.sum(C * one, axis=-1)
    scale = diagonal[:, :, None] * one + (1.0 - one)
    gradient = {"mean": to_mean.T, "covariance": last(xp.tril(to_root) * scale)}
    return gradient, _metric(block, back, diagonal, counts, n)


def _metric(block: Block, back: Any, diagonal: Any, counts: Any, n: float) -> dict[str, Any]:
    """Return the diagonal of the Fisher information plus the curvature of the prior."""
    xp, one, prior = namespace_of(back), _one(block), block.prior
    size = xp.sum(back * back, axis=-2)  # (K, d) diagonal of the precision
    of_mean = (counts[0, :] + prior.nu_mean / n)[:, None] * size
    of_covariance = (counts[0, :] + prior.nu_covariance / n)[:, None, None]
    logs = size * diagonal**2 + 1.0
    below = size[:, :, None] * (1.0 - one) + logs[:, :, None] * one
    return {"mean": of_mean.T, "covariance": last(of_covariance * below)}


def reach(block: Block, step: dict[str, Any]) -> dict[str, Any]:
    """Return the length of a step: in deviations of the factor, and logarithms."""
    xp, one, white = namespace_of(block.mass), _one(block), rooted(block.prior.covariance)
    back = xp.linalg.inv(_triangles(block, white))
    size = xp.sqrt(xp.sum(back * back, axis=-2))
    below = size[:, :, None] * (1.0 - one) + one
    moves = {name: xp.abs(step[name]) for name in step}
    return {"mean": moves["mean"] * size.T, "covariance": moves["covariance"] * last(below)}


def penalty(block: Block) -> float:
    """Return -ln of the prior, up to a constant."""
    xp, one, prior = namespace_of(block.mass), _one(block), block.prior
    root = rooted(first(block.values["covariance"]))
    back = xp.linalg.inv(root)
    off = (back @ (block.values["mean"] - prior.mean[:, None]).T[:, :, None])[:, :, 0]
    trace = xp.sum((back @ prior.covariance) * back)
    log_det = 2.0 * xp.sum(xp.log(xp.sum(root * one, axis=-1)))
    return float(
        0.5 * (prior.nu_mean * xp.sum(off * off) + prior.nu_covariance * (log_det + trace))
    )


def _one(block: Block) -> Any:
    mass = block.mass
    return namespace_of(mass).eye(
        block.values["mean"].shape[0], dtype=mass.dtype, device=mass.device
    )


def _triangles(block: Block, white: Any) -> Any:
    """Return C of every component."""
    return namespace_of(white).linalg.inv(white) @ rooted(first(block.values["covariance"]))
