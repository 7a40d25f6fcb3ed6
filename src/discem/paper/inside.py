"""How steps are kept inside the domain, where counts and variances are positive."""

from __future__ import annotations

import numpy as np

from . import compiled


@compiled
def land(count, change, lowest):
    """Move a count, but no lower than `lowest`; return it, and 1 if the step was shortened."""
    if count + change < lowest:
        return lowest, 1
    return count + change, 0


@compiled
def interior_fraction(share, n, s, v):
    """Return the largest f <= 1 such that a step f * (n, s, v) takes at most `share` of N and v.

    In units of the factor, N becomes c = 1 + f n and the variance (c (1 + f v) - f^2 s^2) / c^2.
    That the variance stays above 1 - share is a quadratic inequality in f.
    """
    keep = 1.0 - share
    f = -share / n if n < -share else 1.0
    a, b, c = n * v - s * s - keep * n * n, v + n - 2.0 * keep * n, share  # c + b f + a f^2 >= 0
    size = max(abs(a), abs(b))
    if not size < 1e300:
        return 0.0
    if size > 0.0:
        a, b, c = a / size, b / size, c / size
        inside = b * b - 4.0 * a * c
        if inside >= 0.0 and np.sqrt(inside) > b:
            f = min(f, 2.0 * c / (np.sqrt(inside) - b))
    return f
