"""An explanation for people: bars in notebooks, legible on light pages and dark ones, or lines."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from .._style import COLOURS

_SHOWN = 12  # parts; others are added up
_NOTHING = 1e-9  # what a missing cell adds, but for rounding
_TABLE = "border-collapse:collapse;background:none;color:inherit;font-size:.92em"
_CELL = "border:0;padding:.12em .6em;text-align:{};color:inherit;background:none"
_BAR = "height:.85em;width:{:.1f}%;background:{};border-radius:2px;margin-{}:50%"
_MIDDLE = "linear-gradient(currentColor,currentColor) center/1px 100% no-repeat"
_GREY = "#8C8C8C"
_START = "(before any)"


def html_of(title: str, parts: Sequence[tuple[Any, float]], start: float) -> str:
    """Bars to the right for what speaks for a class, to the left for what speaks against it.

    Colours are not those of the page: text takes its own, and both pages set off the bars.
    """
    shown = _strongest(parts)
    largest = max((abs(value) for _, value in [*shown, ("", start)]), default=0.0) or 1.0
    total = start + sum(value for _, value in parts)
    lines = [_line(name, value, largest) for name, value in shown]
    lines.append(_line(_START, start, largest, grey=True))
    sum_cell = f'<td style="{_CELL.format("right")}"><b>{total:+.3f}</b></td>'
    name_cell = f'<td style="{_CELL.format("left")}"><b>sum</b></td>'
    lines.append(f"<tr>{name_cell}<td></td>{sum_cell}</tr>")
    return (
        f'<div style="max-width:46em"><div style="margin:.2em .6em"><b>{escape(title)}</b></div>'
        f'<table style="{_TABLE}"><tbody>{"".join(lines)}</tbody></table></div>'
    )


def text_of(title: str, parts: Sequence[tuple[Any, float]], start: float) -> str:
    """The title, a line for each part, and their sum."""
    total = start + sum(value for _, value in parts)
    lines = [*_strongest(parts), (_START, start), ("sum", total)]
    return "\n".join([title, *(f"{value:+10.3f}  {name}" for name, value in lines)])


def _strongest(parts: Sequence[tuple[Any, float]]) -> list[tuple[str, float]]:
    """The largest parts, whatever their sign, and the sum of the others."""
    strong = sorted((part for part in parts if abs(part[1]) > _NOTHING), key=lambda p: -abs(p[1]))
    shown = [(str(name), value) for name, value in strong[:_SHOWN]]
    if strong[_SHOWN:]:
        rest = sum(value for _, value in strong[_SHOWN:])
        shown.append((f"({len(strong) - _SHOWN} others)", rest))
    return shown


def _line(name: str, value: float, largest: float, grey: bool = False) -> str:
    width, side = 50.0 * abs(value) / largest, "left" if value >= 0 else "right"
    colour = _GREY if grey else COLOURS[0 if value >= 0 else 1]
    bar = _BAR.format(width, colour, side)
    if value < 0:
        bar += ";margin-left:auto"
    return (
        f'<tr><td style="{_CELL.format("left")};white-space:nowrap">{escape(name)}</td>'
        f'<td style="{_CELL.format("left")};width:18em;min-width:10em;background:{_MIDDLE}">'
        f'<div style="{bar}"></div></td>'
        f'<td style="{_CELL.format("right")};white-space:nowrap">{value:+.3f}</td></tr>'
    )
