"""A single HTML page that shows what a trained model has learnt.

The same model and data give the same page, byte for byte.
"""

from __future__ import annotations

from html import escape
from string import Template
from typing import Any

import numpy as np

from ... import __version__
from ..._html import brief, sortable_table, to_html
from ...estimators._views import facts_of, last_training, picture_of
from ...io.labels import plain_labels
from ..assets import asset
from .classes import classes_section
from .data import Checked, data_section, rows_section
from .parts import parts_section, plain

__all__ = ["Checked", "model_page"]

_CLASSES = 30  # the most frequent classes are compared
_COLOURS = 6


def model_page(model: Any, title: str, checked: Checked | None = None) -> str:
    """Return a page about a fitted classifier.

    Parameters
    ----------
    model : fitted classifier
    title : str
        The title of the page, such as the name of the file.
    checked : Checked, optional
        Predictions of the model for data.

    Returns
    -------
    str
        HTML without external resources.
    """
    names = _names(model)
    classes = sorted(np.argsort(-model.class_frequency_, kind="stable")[:_CLASSES].tolist())
    about = (type(model).__doc__ or "").strip().splitlines()[0].replace("``", "`")
    sections = [
        ("Summary", "summary", _summary(model)),
        ("Training", "training", _training(model)),
        ("What each class believes", "classes", classes_section(model, names, classes)),
        (
            "Topics" if hasattr(model, "topics_") else "Components",
            "parts",
            parts_section(model, names, classes),
        ),
    ]
    if checked is not None:
        sections.append(
            (f"On {brief(checked.n)} {checked.noun}s of data", "data", data_section(checked))
        )
        sections.append(("Rows worth a look", "rows", rows_section(model, checked)))
    sections.append(("How its settings were chosen", "settings", _settings(model)))
    sections = [each for each in sections if each[2]]
    return Template(asset("model.html")).substitute(
        css=asset("page.css") + asset("model.css"),
        colours="".join(
            f".k{k} {{ --own: var(--k{place % _COLOURS}); }}" for place, k in enumerate(classes)
        ),
        script=asset("page.js") + asset("model.js"),
        version=escape(__version__),
        title=escape(title),
        kind=type(model).__name__,
        about=to_html(about),
        contents="".join(f'<li><a href="#{key}">{head}</a></li>' for head, key, _ in sections),
        sections="\n".join(
            f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{head}</h2>\n'
            f"{content}</section>"
            for head, key, content in sections
        ),
    )


def _names(model: Any) -> list[str]:
    return [*map(str, plain_labels(model.classes_))]


# --- what it is, and how training went ------------------------------------------------------------


def _summary(model: Any) -> str:
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{to_html(value)}</dd></div>"
        for name, value in facts_of(model)
    )
    names, share, prior = _names(model), model.class_frequency_, model.class_prior_
    columns = ["class", "labelled rows", "frequency, %", "p(y) of the joint, %"]
    rows = [
        [name, round(float(count), 1), round(100.0 * float(f), 1), round(100.0 * float(p), 1)]
        for name, count, f, p in zip(names, model.class_count_, share, prior, strict=True)
    ]
    table = sortable_table("table-classes", "Classes", columns, rows)
    return f'<dl class="facts">{facts}</dl>\n{table}'


def _training(model: Any) -> str:
    records, stream = last_training(model.history_), model.stream_
    lines = []
    if stream:
        figures = f"a mean loss of {brief(stream['loss'])} and an accuracy of "
        lines.append(
            f"The model learnt {brief(stream['rows'])} rows of a stream in "
            f"{brief(stream['batches'])} batches. Each row was predicted before it was learnt: "
            f"{figures}{100 * stream['accuracy']:.1f} %."
        )
    if not records:
        return "".join(f"<p>{to_html(each)}</p>" for each in lines)
    end = records[-1]
    unit = "batches" if stream else "epochs"
    lines.append(
        f"The last {brief(len(records))} {unit} are drawn. In the last one the loss is "
        f"{brief(end['loss'], 4)} nats a row, and {100 * end['accuracy']:.1f} % of the training "
        "rows are predicted right."
    )
    if any("went_back" in record for record in records):
        lines.append("Training went back and shortened its steps where the loss rose.")
    text = "".join(f"<p>{to_html(each)}</p>" for each in lines)
    return f'{text}\n<div class="picture">{picture_of(records)}</div>'


# --- choice ---------------------------------------------------------------------------------------


def _settings(model: Any) -> str:
    records = getattr(model, "choice_", [])
    params, defaults = (each.get_params(deep=False) for each in (model, type(model)()))
    given = {name: value for name, value in params.items() if value != defaults[name]}
    listed = ", ".join(f"`{name}={plain(value)!r}`" for name, value in given.items())
    text = (
        f"<p>Set by hand: {to_html(listed)}.</p>" if given else "<p>All options are defaults.</p>"
    )
    if not records:
        return text
    chosen = getattr(model, "chosen_", {})
    if chosen.get("held_out"):
        text += f"<p>Candidates were judged on {brief(chosen['held_out'])} rows held out.</p>"
    names = [name for name in records[0] if name != "seconds"]
    ranked = sorted(records, key=lambda each: each["log_loss"])
    columns = [name.replace("_", " ") for name in names]
    rows = [[plain(each.get(name)) for name in names] for each in ranked]
    title = "What was tried, the best first"
    return text + sortable_table("table-choice", title, columns, rows)
