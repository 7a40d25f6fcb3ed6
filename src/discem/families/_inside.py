"""How far a step of a normal factor may go until something positive has lost its share."""

from __future__ import annotations

from typing import Any

from .._arrays import namespace_of, within


def fractions(share: float, n: Any, s: Any, v: Any) -> Any:
    """The largest f <= 1 such that a step f * (n, s, v) costs no positive quantity above `share`.

    In units of the factor the step makes the count c = 1 + f n and the variance
    (c (1 + f v) - f^2 s^2) / c^2. Both are to keep 1 - share of what they were; for the variance
    this is a quadratic inequality in f, whose first positive root is the bound.
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
