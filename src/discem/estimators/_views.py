"""HTML views of estimators, trainings and explanations, for notebooks and pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from sklearn.utils import estimator_html_repr

from .._html import brief
from .._style import COLOURS
from .._svg import Line, chart
from ..io.labels import plain_labels

_CLASSES = 12  # that are listed in a notebook
_EPOCHS = 8  # that a table of the training shows
_PANEL = (
    "display: flex; flex-wrap: wrap; gap: 0.5rem 2rem; align-items: flex-start; "
    "margin: 0.5rem 0; font-size: 0.9em"
)


class Views:
    """An estimator that shows in a notebook, beside its options, what it was fitted to."""

    def _repr_html_inner(self) -> str:
        shown = estimator_html_repr(self)
        fitted: Any = self
        return shown + fitted_view(self) if fitted.__sklearn_is_fitted__() else shown

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        parent: Any = super()
        bundle = parent._repr_mimebundle_(**options)
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle


class History(list):
    """The records of a training, one a epoch; a notebook draws them."""

    def _repr_html_(self) -> str:
        records = last_training(self)
        if not records:
            return "<p>No epoch has been trained.</p>"
        return f'<div style="{_PANEL}">{picture_of(records)}{_table_of(records)}</div>'


def last_training(history: Sequence[Any]) -> list[Any]:
    """The records of one training: the last that fitted a classifier."""
    records = [record for record in history if record.get("stage") != "density"]
    first = max((j for j, each in enumerate(records) if each["epoch"] == 1), default=0)
    return records[first:]


def picture_of(records: Sequence[Any]) -> str:
    """How the loss fell."""
    epochs = [record["epoch"] for record in records]
    what = objective_of(records)
    lines = [Line(epochs, [record[what] for record in records], "training rows")]
    if "validation_loss" in records[-1]:
        held = [record.get("validation_loss", np.nan) for record in records]
        lines.append(Line(epochs, held, "rows held out"))
    else:
        lines = [lines[0]._replace(name="")]
    end = f"It ends at {lines[0].y[-1]:.4g} after {len(records)} epochs."
    return chart(lines, "epoch", f"{what}, nats a row", f"The {what} by epoch. {end}")


def objective_of(records: Sequence[Any]) -> str:
    """What training made small: where there is one, the objective, which never rises."""
    return "objective" if all("objective" in record for record in records) else "loss"


def _table_of(records: Sequence[Any]) -> str:
    names = [n for n in ("epoch", "loss", "objective", "accuracy", "seconds") if n in records[-1]]
    shown = np.unique(np.linspace(0, len(records) - 1, min(_EPOCHS, len(records))).astype(int))
    rows = [[brief(records[j].get(name, "")) for name in names] for j in shown]
    return _plain_table(names, rows)


def fitted_view(model: Any) -> str:
    """Return a view of a fitted classifier: a few facts, and its classes."""
    facts = [[name, value] for name, value in facts_of(model)]
    labels, shares = plain_labels(model.classes_), model.class_frequency_
    order = np.argsort(-shares, kind="stable")[:_CLASSES]
    rows = [[str(labels[k]), f"{100.0 * shares[k]:.1f} %"] for k in order]
    if len(labels) > _CLASSES:
        rows.append([f"{len(labels) - _CLASSES} more", ""])
    return (
        f'<div style="{_PANEL}">{_plain_table([], facts)}{_plain_table(["class", ""], rows)}</div>'
    )


def facts_of(model: Any) -> list[tuple[str, str]]:
    """What there is to say of a fitted classifier in a line each."""
    weight, stream = float(model.class_count_.sum()), model.stream_
    is_text = hasattr(model, "n_documents_")
    rows = f"{brief(round(weight))} labelled {'documents' if is_text else 'rows'}"
    if stream:
        rows += f", the last {brief(stream['rows'])} in a stream"
    facts = [
        ("classes", brief(len(model.classes_))),
        ("trained on", rows),
        ("words" if is_text else "features", _width(model)),
        ("loss", _loss_of(model)),
    ]
    members = getattr(model, "members_", [])
    if len(members) > 1:
        facts.append(("models averaged", brief(len(members))))
    counts = getattr(model, "n_components_", getattr(_inner(model), "n_components_", None))
    if counts is not None and counts.max() > 1:
        low, high = int(counts.min()), int(counts.max())
        facts.append(("components of a class", brief(low) if low == high else f"{low} to {high}"))
    if hasattr(model, "n_topics"):
        facts.append(("topics of a class", brief(model.n_topics)))
    facts.append(("temperature", brief(float(model.temperature_))))
    records = last_training(model.history_)
    if records:
        facts.append(("last accuracy in training", f"{100.0 * records[-1]['accuracy']:.1f} %"))
    return [(name, value) for name, value in facts if value]


def _inner(model: Any) -> Any:
    return getattr(model, "model_", model)


def _width(model: Any) -> str:
    return brief(int(_inner(model).n_features_in_))


def _loss_of(model: Any) -> str:
    loss = getattr(model, "chosen_", {}).get("loss", _inner(model).loss)
    return loss if isinstance(loss, str) else repr(loss)


def _plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A small table without any script, as notebooks show them."""
    head = f"<thead>{_row(heads, 'th')}</thead>" if heads else ""
    body = "".join(_row(row, "td") for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _row(cells: Sequence[str], tag: str) -> str:
    left = ' style="text-align: left"'
    return f"<tr>{''.join(f'<{tag}{left}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def choice_view(records: Sequence[dict[str, Any]]) -> str:
    """Return a table of the candidates that were tried, best first."""
    if not records:
        return "<p>Nothing was tried.</p>"
    names = list(records[0])
    ranked = sorted(records, key=lambda each: each["log_loss"])
    return _plain_table(names, [[brief(each.get(name), 4) for name in names] for each in ranked])


# --- explanations ---------------------------------------------------------------------------------


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
    """Return the title, a line for each part, and their sum."""
    total = start + sum(value for _, value in parts)
    lines = [*_strongest(parts), (_START, start), ("sum", total)]
    return "\n".join([title, *(f"{value:+10.3f}  {name}" for name, value in lines)])


def _strongest(parts: Sequence[tuple[Any, float]]) -> list[tuple[str, float]]:
    """Return the largest parts by absolute value, and the sum of the others."""
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
