"""Steps of normal factors that stay in the domain: their length, and their end."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._arrays import clipped, may_be_true, namespace_of, within
from ._block import Step

_COUNT = 1e-50  # the smallest count of a factor


class Change(NamedTuple):
    """A step of the factors: of N, and of S and V about the current mean."""

    count: Any
    sum: Any
    square: Any


def fractions(share: float, n: Any, s: Any, v: Any) -> Any:
    """Return the largest f <= 1 such that a step f * (n, s, v) keeps what must be positive.

    In units of the factor the step makes the count c = 1 + f n and the variance (c (1 + f v) - f^2
    s^2) / c^2. Both must keep a part 1 - share of their values. For the variance this is a
    quadratic inequality in f, whose first positive root is the bound.
    """
    xp, keep = namespace_of(s), 1.0 - share
    one, none = xp.ones_like(s), xp.zeros_like(s)
    n = n + none
    f = xp.where(n < -share, -share / xp.where(n < -share, n, -one), one)
    b, a = v + n - 2.0 * keep * n, n * v - s * s - keep * n * n
    size = xp.maximum(xp.abs(a), xp.abs(b))
    far = ~(size < within(1e300, size))
    scale = xp.where((size > 0) & ~far, size, one)
    a, b, c = a / scale, b / scale, share / scale
    inside = b * b - 4.0 * a * c
    bottom = xp.sqrt(xp.where(inside > 0, inside, none)) - b
    crosses = (inside >= 0) & (bottom > 0)
    root = 2.0 * c / xp.where(crosses, bottom, one)
    f = xp.where(crosses, xp.minimum(f, root), f)
    return xp.where(far, none, f)


def land_inside(step: Step, count: Any, m: Any, v: Any, change: Change) -> tuple:
    """Return the new counts, the moves of the means, and the new variances, in the domain."""
    xp, keep = namespace_of(m), 1.0 - step.projection.share
    new = count + change.count
    kept = xp.maximum(new, keep * count)
    shift = change.sum / kept
    variance = (count * v + change.square) / kept - shift * shift
    short = ~((new >= keep * count) & (variance >= keep * v))
    if may_be_true(short):
        f = fractions(
            step.projection.share, change.count / count, change.sum / (count * xp.sqrt(v)),
            change.square / (count * v),
        )  # fmt: skip
        f = xp.where(short, f, xp.ones_like(f))
        stays = short & (f == 0.0)  # an infinite step has no direction
        new = count + f * change.count
        shift = xp.where(stays, xp.zeros_like(m), f * change.sum / new)
        variance = (count * v + f * change.square) / new - shift * shift
        variance = xp.where(short, xp.maximum(variance, keep * v), variance)  # rounding at the edge
        new, variance = xp.where(stays, count, new), xp.where(stays, v, variance)
    return new, shift, variance, short


def land_check(step: Step, count: Any, m: Any, v: Any, change: Change) -> tuple:
    """Take the check-step of the paper: counts and variances are lifted to rho / n."""
    xp, floor = namespace_of(m), step.floor
    new = count + change.count
    low = new < floor
    kept = xp.where(low, floor * xp.ones_like(new), new)
    # lifting N alone changes S/N and V/N, which are close to zero
    total = count * m + change.sum + m * change.count
    shift = xp.where(low, total / kept - m, change.sum / kept)
    about_zero = count * (v + m * m) + change.square
    about_zero = about_zero + 2.0 * m * (change.sum + m * change.count) - m * m * change.count
    lifted = about_zero / kept - m * m - 2.0 * m * shift
    square = xp.where(low, lifted, (count * v + change.square) / kept)
    variance = square - shift * shift
    short = low | ~(variance >= floor / kept)
    variance = xp.maximum(variance, floor / kept)
    return clipped(kept, _COUNT, None), shift, variance, short
