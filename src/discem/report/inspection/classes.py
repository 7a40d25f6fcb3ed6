"""The section on classes: distributions of columns, or the words of each class."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..._html import brief, sentence
from ...estimators._beliefs import beliefs
from ...estimators._explain import telling_words
from ...exceptions import OptionError
from .panels import panel

_PANELS = 60  # columns
_CURVES = 1200  # of all columns and classes
_WORDS = 15  # words that separate a class from another
_CARD = 20  # words of a class
_MANY = 6  # classes, from which only two are shown at first


def classes_section(model: Any, names: list[str], classes: list[int]) -> str:
    """Return the section that compares the classes."""
    few = ""
    if len(names) > len(classes):
        few = f"<p>The {len(classes)} most frequent of {len(names)} classes are shown.</p>"
    if hasattr(model, "_words"):
        try:
            return few + _words(model, names, classes)
        except OptionError as error:  # hashed words
            return f"<p>{sentence(str(error))}.</p>"
    found = beliefs(model)
    about = _families(model)
    most = max(min(_PANELS, _CURVES // len(classes)), 6)
    shown = "\n".join(panel(each, classes, about.get(each.column, "")) for each in found[:most])
    intro = (
        "<p>Each panel is a column: the density of a number, or the shares of the levels. The "
        "columns that say most of the class, alone, come first; how much that is stands beside "
        "their names. Two classes can be compared: then the columns that tell the two apart best "
        "come first.</p>"
    )
    if len(found) > most:
        intro += f"<p>{most} of {brief(len(found))} columns are shown.</p>"
    everything = len(classes) <= _MANY
    return f'{few}{intro}{_picker(names, classes, everything)}<div class="panels">{shown}</div>'


def _families(model: Any) -> dict[Any, str]:
    return (
        getattr(model, "families_", {})
        if hasattr(getattr(model, "model_", model), "layout_")
        else {}
    )


def _picker(names: Sequence[str], classes: Sequence[int], everything: bool) -> str:
    """Return the classes and their colours; a script lets the reader choose two."""
    keys = "".join(f'<li class="k k{k}">{escape(names[k])}</li>' for k in classes)
    legend = f'<ul class="legend" aria-label="Colours of the classes">{keys}</ul>'
    if len(classes) < 3:
        return f'<div class="picker">{legend}</div>'

    def options(place: int) -> str:
        return "".join(
            f'<option value="{k}"{" selected" if i == place else ""}>{escape(names[k])}</option>'
            for i, k in enumerate(classes)
        )

    return (
        f'<div class="picker"><form id="compare" data-classes="{" ".join(map(str, classes))}" '
        f'data-all="{str(everything).lower()}" hidden>'
        f'<label>Compare <select id="one">{options(0)}</select></label> '
        f'<label>with <select id="other">{options(1)}</select></label> '
        '<button type="button" id="every" aria-pressed="false">All classes</button></form>'
        f"{legend}</div>"
    )


def _words(model: Any, names: list[str], classes: list[int]) -> str:
    """Return the words of each class, and the data for a script that compares two classes."""
    intro = (
        "<p>The words that speak most for a class: what an occurrence of the word adds to the "
        "score of the class, beyond what it adds to the average class, times how often the class "
        "uses the word. Against another class, it is what the word adds to the log-odds.</p>"
    )
    cards = "".join(
        _card(names[k], k, found)
        for k, found in zip(classes, telling_words(model, _CARD, classes), strict=True)
    )
    log_p, words = model._words()
    log_p = log_p[classes]
    shown = _telling_of_pairs(log_p)
    data = {
        "classes": classes,
        "names": [names[k] for k in classes],
        "most": _WORDS,
        "words": [str(words[j]) for j in shown],
        "scores": np.round(-1000.0 * log_p[:, shown]).astype(int).tolist(),  # -1000 ln p
    }
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    picker = _picker(names, classes, everything=True) if len(classes) > 2 else ""
    return (
        f'{intro}{picker}<div class="cards" id="words">{cards}</div>\n'
        f'<script type="application/json" id="telling">{packed}</script>'
    )


def _card(title: str, k: int, found: Sequence[tuple[Any, float]]) -> str:
    top = max((score for _, score in found), default=0.0) or 1.0
    rows = "".join(
        f'<li><span>{escape(str(word))}</span><i class="k{k}" '
        f'style="--p:{100 * max(score, 0.0) / top:.0f}"></i></li>'
        for word, score in found
    )
    return f'<div class="card k{k}"><h3>{escape(title)}</h3><ol>{rows}</ol></div>'


def _telling_of_pairs(log_p: np.ndarray) -> list[int]:
    """Return all words that separate some class well from some other."""
    chosen = set[int]()
    most = min(_WORDS, log_p.shape[1])
    for own in log_p:
        scores = np.exp(own) * (own - log_p)
        best = np.argpartition(-scores, most - 1, axis=1)[:, :most]
        chosen.update(np.unique(best).tolist())
    return sorted(chosen)
