"""The section on the parts of classes: components, topics, and averaged models."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..._html import sortable_table, to_html
from ...estimators._beliefs import Belief, beliefs, by_component
from .panels import told_of_components

_COLUMNS = 60  # columns that are used to compare components
_PARTS = 3  # columns that describe how a component differs
_OF_TOPIC = 10  # words


def parts_section(model: Any, names: list[str], classes: list[int]) -> str:
    """Return the section on the parts of each class; empty if there are none."""
    if hasattr(model, "topics_"):
        return _topics(model, names, classes)
    averaged = _members(model)
    joint = model._joint() if hasattr(model, "_joint") else getattr(model, "model_", model)
    counts = getattr(joint, "n_components_", None)
    if counts is None or counts.max() == 1:
        return averaged
    codes = np.repeat(np.arange(len(counts)), counts)
    if hasattr(joint, "_words"):
        log_p = joint.component_log_prob_
        by_class, words = joint._words()
        texts = []
        for m, k in enumerate(codes):
            score = np.exp(log_p[m]) * (log_p[m] - by_class[k])
            texts.append([str(words[j]) for j in np.argsort(-score)[:_OF_TOPIC]])
    else:
        whole: dict[Any, Belief] = {each.column: each for each in beliefs(joint)[:_COLUMNS]}
        own = beliefs(by_component(joint), list(whole))
        texts = told_of_components(own, whole, codes.tolist(), _PARTS)
    shares = joint.weights_
    blocks = [
        (names[k], k, [(float(shares[m]), texts[m]) for m in np.flatnonzero(codes == k)])
        for k in classes
    ]
    lead = (
        "<p>A class is a mixture of components. The bar is the share of a component in its class, "
        "and beside it stands where it differs most from the class.</p>"
    )
    if getattr(model, "_fitted", None) is not None and getattr(model._fitted, "density", None):
        lead += "<p>They are those of the density, the model that knows what rows look like.</p>"
    return averaged + lead + _blocks(blocks)


def _members(model: Any) -> str:
    members = getattr(model, "members_", [])
    if len(members) < 2:
        return ""
    names = list(members[0])
    columns = [name.replace("_", " ") for name in names]
    rows = [[plain(member[name]) for name in names] for member in members]
    title = "Models whose probabilities are averaged"
    return sortable_table("table-members", title, columns, rows)


def _topics(model: Any, names: list[str], classes: list[int]) -> str:
    topics = model.topics_
    lead = (
        "<p>A document of a class mixes the topics of that class. Listed are the words of each "
        "topic that it uses more than the other topics of all classes do.</p>"
    )
    shown = model._word_names()
    words = range(topics.shape[2]) if shown is None else shown
    log_p = np.log(topics)
    mean = log_p.mean(axis=(0, 1))
    blocks = []
    for k in classes:
        found = []
        for t in range(topics.shape[1]):
            best = np.argsort(-topics[k, t] * (log_p[k, t] - mean), kind="stable")[:_OF_TOPIC]
            found.append((1.0 / topics.shape[1], [str(words[j]) for j in best]))
        blocks.append((names[k], k, found))
    return lead + _blocks(blocks, bars=False)


def _blocks(
    blocks: Sequence[tuple[str, int, Sequence[tuple[float, Sequence[str]]]]], bars: bool = True
) -> str:
    shown = []
    for name, k, parts in blocks:
        rows = ""
        for share, texts in parts:
            items = "".join(f"<span>{to_html(text)}</span>" for text in texts)
            size = f'<b class="size" style="--p:{100 * share:.1f}">{100 * share:.0f} %</b>'
            rows += f"<li>{size if bars else ''}<div>{items or 'as its class'}</div></li>"
        shown.append(f'<div class="part k{k}"><h3>{escape(name)}</h3><ol>{rows}</ol></div>')
    return f'<div class="parts{"" if bars else " topics"}">{"".join(shown)}</div>'


def plain(value: Any) -> Any:
    """Format a value for a table."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, int | float | str) or value is None else str(value)
