"""Small HTML charts of each column in each class; a script compares classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ..._html import brief, to_html
from ..._svg import path
from ...estimators._beliefs import Belief

_POINTS = 64  # of a curve
_LEVELS = 7  # of a column that are shown
_BARS = 160  # of a panel
_SIDE, _HEIGHT = 300, 90
_SPIKE = 4.0  # times the median height of the classes
_LOWEST = 0.004  # of the height: lower curves are drawn at 0


def panel(belief: Belief, classes: Sequence[int], about: str = "") -> str:
    """Return the chart of one column: its density, or the shares of levels, in some classes.

    The attribute ``data-pairs`` says how well the column separates each pair of classes, in
    thousandths of a bit: the first against the second, third ..., then the second against ...
    """
    is_curve = belief.is_density or (_are_numbers(belief.places) and len(belief.places) > _LEVELS)
    drawn = (_curves if is_curve else _bars)(belief, classes)
    bits = belief.information / np.log(2.0)
    about = f'<span class="about">{to_html(about)}</span>' if about else ""
    title = f"column {belief.column}" if isinstance(belief.column, int) else str(belief.column)
    return (
        f'<figure class="panel" data-tells="{bits:.4f}" data-pairs="{_pairs(belief, classes)}">'
        f"<figcaption><b>{escape(title)}</b>{about}"
        f'<span class="tells">{brief(round(bits, 3))} bits</span></figcaption>\n{drawn}</figure>'
    )


def _pairs(belief: Belief, classes: Sequence[int]) -> str:
    p = masses(belief)[list(classes)]
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(p > 0.0, p * np.log2(p), 0.0).sum(axis=1)
        found = []
        for i in range(len(p) - 1):
            mean = 0.5 * (p[i] + p[i + 1 :])
            both = np.where(mean > 0.0, mean * np.log2(mean), 0.0).sum(axis=1)
            found.extend((0.5 * (own[i] + own[i + 1 :]) - both).tolist())
    return " ".join(f"{1000 * max(each, 0.0):.0f}" for each in found)


def masses(belief: Belief) -> np.ndarray:
    """Return the probabilities of the places, and of an exact 0 if any, (classes, places)."""
    p = np.maximum(belief.p, 0.0)
    if belief.zero is not None:
        own = p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)
        p = np.column_stack([own * (1.0 - belief.zero)[:, None], belief.zero])
    return p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)


def summaries(belief: Belief) -> list[str]:
    """Summarise each class in a few characters: mean and standard deviation, or the top level.

    >>> p = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> summaries(Belief("plan", np.arange(2), ["monthly", "yearly"], p, False, None, 0.1))
    ['monthly 90 %', 'yearly 80 %']
    """
    p = masses(belief)
    if not belief.is_density and not _are_numbers(belief.places):
        best = p.argmax(axis=1)
        return [f"{belief.places[j]} {100 * p[k, j]:.0f} %" for k, j in enumerate(best.tolist())]
    given = np.asarray(belief.places)
    is_time = given.dtype.kind in "mM"
    places = given.astype("int64" if is_time else float).astype(float)
    own = p[:, : len(places)] / np.maximum(p[:, : len(places)].sum(axis=1, keepdims=True), 1e-300)
    mean = own @ places
    spread = np.sqrt(np.maximum(own @ places**2 - mean**2, 0.0))
    texts = []
    for k in range(len(p)):
        if is_time:
            text = str(mean[k : k + 1].astype("int64").astype(given.dtype)[0])[:10]
        else:
            text = f"{brief(float(mean[k]))} ± {brief(float(spread[k]))}"
        if belief.zero is not None:
            text = f"0 in {100 * belief.zero[k]:.0f} %, else {text}"
        texts.append(text)
    return texts


def _curves(belief: Belief, classes: Sequence[int]) -> str:
    every = max(len(belief.places) // _POINTS, 1)
    p = belief.p[:, ::every]
    x = np.linspace(0.0, _SIDE, p.shape[1])
    heights = p[list(classes)].max(axis=1)
    top = min(heights.max(), _SPIKE * float(np.median(heights)))  # a spike would flatten the others
    curves = ""
    for k in classes:
        y = _HEIGHT - (_HEIGHT - 4) * np.minimum(p[k] / max(top, 1e-300), 1.0)
        low = np.flatnonzero(p[k] > _LOWEST * p[k].max())
        some = slice(max(int(low[0]) - 1, 0), int(low[-1]) + 2) if len(low) else slice(0, 1)
        across, up = x[some].tolist(), y[some].tolist()
        left, right = across[0] - 2 * (across[0] < 1), across[-1] + 2 * (across[-1] > _SIDE - 1)
        d = path([left, *across, right], [_HEIGHT + 2, *up, _HEIGHT + 2], 0)
        curves += f'<path class="k k{k}" d="{d}"/>'
    texts = summaries(belief)
    means = "".join(f'<li class="k k{k}">{to_html(texts[k])}</li>' for k in classes)
    ends = [belief.places[0], belief.places[len(belief.places) // 2], belief.places[-1]]
    axis = "".join(f"<span>{_place(end)}</span>" for end in ends)
    return (
        f'<svg viewBox="0 0 {_SIDE} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'{curves}</svg><div class="axis">{axis}</div><ul class="means">{means}</ul>'
    )


def _place(place: Any) -> str:
    is_time = isinstance(place, np.datetime64 | np.timedelta64)
    return to_html(str(place)[:10] if is_time else brief(float(place)))


def _bars(belief: Belief, classes: Sequence[int]) -> str:
    p = 100.0 * masses(belief)
    shown = max(min(_LEVELS, _BARS // max(len(classes), 1)), 2)
    order = np.arange(len(belief.places))
    if len(order) > shown:
        order = np.argsort(-p[list(classes)].max(axis=0), kind="stable")[:shown]
        order = np.sort(order) if _are_numbers(belief.places) else order
    rows = ""
    for j in order.tolist():
        bars = "".join(
            f'<i class="k k{k}" style="--p:{p[k, j]:.1f}" data-p="{p[k, j]:.0f}"></i>'
            for k in classes
        )
        name = str(belief.places[j])
        name = name if len(name) <= 24 else name[:23] + "\N{HORIZONTAL ELLIPSIS}"
        rows += f"<tr><th>{escape(name)}</th><td>{bars}</td></tr>"
    rest = len(belief.places) - len(order)
    more = f'<p class="rest">and {brief(rest)} more levels</p>' if rest else ""
    return f'<table class="levels"><tbody>{rows}</tbody></table>{more}'


def _are_numbers(places: Any) -> bool:
    if isinstance(places, np.ndarray):
        return True
    return all(isinstance(p, int | float) and not isinstance(p, bool) for p in places)


def told_of_components(
    parts: Sequence[Belief], whole: Mapping[Any, Belief], codes: Sequence[int], most: int
) -> list[list[str]]:
    """Return, for each component, the columns that differ most from its class, with values."""
    found: list[list[tuple[float, str]]] = [[] for _ in codes]
    for own in parts:
        of_class = summaries(whole[own.column])
        mine, distance = summaries(own), _distances(own, codes)
        for m, k in enumerate(codes):
            text = f"{own.column}: {mine[m]} (class: {of_class[k]})"
            found[m].append((float(distance[m]), text))
    return [
        [text for far, text in sorted(each, reverse=True)[:most] if far > 0.02] for each in found
    ]


def _distances(own: Belief, codes: Sequence[int]) -> np.ndarray:
    """Return how far each component is from the mean of its class, in bits."""
    p, of_class = masses(own), np.asarray(codes)
    found = np.zeros(len(p))
    for k in np.unique(of_class):
        mine = np.flatnonzero(of_class == k)
        mean = p[mine].mean(axis=0)
        for m in mine:
            middle = 0.5 * (p[m] + mean)
            for each in (p[m], mean):
                some = each > 0.0
                found[m] += 0.5 * float((each[some] * np.log2(each[some] / middle[some])).sum())
    return found
