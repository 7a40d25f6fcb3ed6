"""Small pictures of lines, for pages and notebooks: SVG, drawn without any library.

They take the colour of the text around them and of ``--k0``, ``--k1`` .., and grow with their box.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ._html import brief
from ._style import COLOURS

_WIDTH, _HEIGHT = 420, 190
_RIGHT, _TOP, _BOTTOM = 12, 10, 36
_TITLE, _LETTER = 22, 6  # what a title and a letter of a tick take


class Line(NamedTuple):
    """A curve, with error bars and a name if it has them."""

    x: Any
    y: Any
    name: str = ""
    spread: Any = None
    plain: bool = False  # thin and grey, to compare with


def chart(lines: Sequence[Line], xlabel: str, ylabel: str, alt: str) -> str:
    """Curves over numbers.

    >>> chart([Line([1, 2], [0.5, 0.25])], "epoch", "loss", "It falls.").count("<path")
    1
    """
    xs = np.concatenate([np.asarray(line.x, dtype=float) for line in lines])
    ys = np.concatenate([np.asarray(line.y, dtype=float) for line in lines])
    x_ticks, y_ticks = _ticks(xs), _ticks(ys)
    low, high = min(x_ticks[0], xs.min()), max(x_ticks[-1], xs.max())
    bottom, top = min(y_ticks[0], ys.min()), max(y_ticks[-1], ys.max())
    y_names = _names(y_ticks)
    left = _TITLE + _LETTER * max(map(len, y_names))
    across = _scale(low, high, left, _WIDTH - _RIGHT)
    up = _scale(bottom, top, _HEIGHT - _BOTTOM, _TOP)
    grid = "".join(
        f'<line x1="{left}" x2="{_WIDTH - _RIGHT}" y1="{up(y):.1f}" y2="{up(y):.1f}" '
        'stroke="currentColor" stroke-opacity=".15"/>'
        f'<text x="{left - 6}" y="{up(y) + 3.5:.1f}" text-anchor="end">{tick}</text>'
        for y, tick in zip(y_ticks, y_names, strict=True)
    )
    grid += "".join(
        f'<text x="{across(x):.1f}" y="{_HEIGHT - 20}" text-anchor="middle">{tick}</text>'
        for x, tick in zip(x_ticks, _names(x_ticks), strict=True)
    )
    titles = (
        f'<text x="{(left + _WIDTH) / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">'
        f"{escape(xlabel)}</text>"
        f'<text transform="translate(10 {(_HEIGHT - _BOTTOM) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(ylabel)}</text>'
    )
    curves = "".join(_curve(line, k, across, up) for k, line in enumerate(lines))
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(alt)}" style="max-width: 40rem; width: 100%; font-size: 10px">'
        f'<g fill="currentColor">{grid}{titles}</g>{curves}</svg>'
    )


def path(x: Sequence[float], y: Sequence[float], places: int = 1) -> str:
    """The way along some points, for the attribute d.

    >>> path([0, 1.25], [2, 3.0])
    'M0 2L1.2 3'
    """
    points = [f"{round(a, places):g} {round(b, places):g}" for a, b in zip(x, y, strict=True)]
    return "M" + "L".join(points)


def _curve(line: Line, k: int, across: Any, up: Any) -> str:
    x, y = [across(each) for each in line.x], [up(each) for each in line.y]
    if line.plain:
        return f'<path d="{path(x, y)}" fill="none" stroke="currentColor" stroke-opacity=".45"/>'
    colour = f"var(--k{k}, {COLOURS[k % len(COLOURS)]})"
    drawn = f'<path d="{path(x, y)}" fill="none" style="stroke: {colour}; stroke-width: 2"/>'
    if line.spread is not None:
        for a, value, spread in zip(x, line.y, line.spread, strict=True):
            ends = f'y1="{up(value - spread):.1f}" y2="{up(value + spread):.1f}"'
            drawn += f'<line x1="{a:.1f}" x2="{a:.1f}" {ends} style="stroke: {colour}"/>'
            drawn += f'<circle cx="{a:.1f}" cy="{up(value):.1f}" r="3" style="fill: {colour}"/>'
    if line.name:
        drawn += (
            f'<text x="{_WIDTH - _RIGHT}" y="{_TOP + 12 * (k + 1)}" text-anchor="end" '
            f'style="fill: {colour}">{escape(line.name)}</text>'
        )
    return drawn


def _scale(low: float, high: float, start: float, end: float) -> Any:
    width = (high - low) or 1.0
    return lambda value: start + (float(value) - low) / width * (end - start)


def _names(ticks: Sequence[float]) -> list[str]:
    """Ticks with as many digits as tell them apart.

    >>> _names([1236.9, 1237.0])
    ['1236.9', '1237']
    """
    names = [brief(tick) for tick in ticks]
    if len(set(names)) == len(names):
        return names
    return [f"{tick:.7g}".replace("-", "\N{MINUS SIGN}") for tick in ticks]


def _ticks(values: np.ndarray) -> list[float]:
    """Three to six round numbers around some values.

    >>> _ticks(np.array([0.0, 0.93])), _ticks(np.array([1, 20]))
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 5.0, 10.0, 15.0, 20.0])
    """
    low, high = float(values.min()), float(values.max())
    width = (high - low) or abs(high) or 1.0
    unit = 10.0 ** np.floor(np.log10(width))
    step = next(unit * each for each in (0.1, 0.2, 0.5, 1.0, 2.0) if width / (unit * each) <= 5)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return [float(f"{step * each:.12g}") for each in np.arange(first, max(last, first + 1) + 1)]
