"""The sections on data: accuracy, calibration, and rows worth a look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ..._html import brief, sortable_table, to_html
from ..._svg import Line, chart
from ...estimators._plots import calibration, rejection
from ...exceptions import OptionError
from ..evaluation import Evaluation

_SHOWN = 10  # rows of each list
_CLASSES = 30  # in the confusion table
_TEXT = 160  # characters of a document
_BETWEEN = " \N{MIDDLE DOT} "


class Seen(NamedTuple):
    """A row worth a look."""

    name: str
    label: str | None
    predicted: str
    probability: float
    density: float | None
    row: Any  # in the form that `explain` takes
    cells: dict[str, Any] | None


class Extremes:
    """The rows with the smallest values of a figure."""

    def __init__(self) -> None:
        self.found: list[tuple[float, int, Seen]] = []
        self.done = 0

    def add(self, figures: np.ndarray, describe: Callable[[int], Seen]) -> None:
        """Keep the smallest values; NaN excludes a row."""
        own = np.flatnonzero(~np.isnan(figures))
        for i in own[np.argsort(figures[own], kind="stable")[:_SHOWN]].tolist():
            if len(self.found) < _SHOWN or figures[i] < self.found[-1][0]:
                self.found.append((float(figures[i]), self.done + i, describe(i)))
                self.found.sort(key=lambda each: each[:2])
                del self.found[_SHOWN:]
        self.done += len(figures)

    @property
    def rows(self) -> list[Seen]:
        return [seen for *_, seen in self.found]


@dataclass
class Checked:
    """Predictions of rows, with their labels if known."""

    classes: Sequence[str]
    noun: str = "row"
    n: int = 0
    result: Evaluation = field(init=False)
    strange: Extremes = field(default_factory=Extremes)
    uncertain: Extremes = field(default_factory=Extremes)
    mistaken: Extremes = field(default_factory=Extremes)  # the most certain mistakes

    def __post_init__(self) -> None:
        self.result = Evaluation(self.classes, self.noun)
        self._sure: list[np.ndarray] = []
        self._right: list[np.ndarray] = []

    def add(
        self,
        labels: Sequence[str | None],
        log_proba: np.ndarray,
        density: np.ndarray | None,
        describe: Callable[[int], tuple[str, Any, dict[str, Any] | None]],
    ) -> None:
        """Add rows; `describe` returns the name of a row, the row for `explain`, and its cells."""
        best = log_proba.argmax(axis=1)
        sure = np.exp(log_proba.max(axis=1))
        labels = labels or [None] * len(best)

        def seen(i: int) -> Seen:
            name, row, cells = describe(i)
            own = None if density is None else float(density[i])
            predicted = self.classes[int(best[i])]
            return Seen(name, labels[i], predicted, float(sure[i]), own, row, cells)

        known = np.array([label is not None for label in labels], dtype=bool)
        right = np.array([self.classes[k] == y for k, y in zip(best, labels, strict=True)])
        self.result.add(labels, log_proba)
        self._sure.append(sure[known])
        self._right.append(right[known])
        self.uncertain.add(sure, seen)
        self.mistaken.add(np.where(known & ~right, -sure, np.nan), seen)
        if density is not None:
            self.strange.add(density, seen)
        self.n += len(best)

    @property
    def answers(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability of each prediction, and whether it is right, for labelled rows."""
        return np.concatenate(self._sure), np.concatenate(self._right)


# --- as the page shows it -------------------------------------------------------------------------


def data_section(checked: Checked) -> str:
    """Return the section with accuracy, calibration and confusion."""
    result, noun = checked.result, checked.noun
    if not result.documents:
        return f"<p>No {noun} of the data has a label, so nothing can be said of the accuracy.</p>"
    loss = "–" if result.log_loss is None else f"{result.log_loss:.4f}"
    figures = {
        "accuracy": f"{100 * result.accuracy:.1f} %",
        "log-loss": loss,
        "macro-F1": f"{result.macro_f1:.3f}",
        f"labelled {noun}s": brief(result.documents),
    }
    facts = "".join(
        f"<div><dt>{name}</dt><dd>{to_html(value)}</dd></div>" for name, value in figures.items()
    )
    if result.unknown:
        names = ", ".join(f"{name} ({n})" for name, n in list(result.unknown.items())[:10])
        facts += f"<div><dt>labels that the model does not know</dt><dd>{escape(names)}</dd></div>"
    sure, right = checked.answers
    said, share, spread, error = calibration(sure, right)
    low = float(min(said.min(), share.min(), 0.9))
    curves = [Line(said, share, spread=spread), Line([low, 1.0], [low, 1.0], plain=True)]
    honest = chart(curves, "probability of the answer", "share that is right",
                   f"Calibration: mean error {100 * error:.1f} %.")  # fmt: skip
    answered, accuracy = rejection(sure, right)
    some = np.unique(np.linspace(0, len(answered) - 1, 200).astype(int))
    doubt = chart([Line(100 * answered[some], 100 * accuracy[some])], f"{noun}s answered, %",
                  "accuracy, %", "Accuracy on the rows that are answered.")  # fmt: skip
    return (
        f'<dl class="facts">{facts}</dl>\n<div class="pictures">'
        f'<figure><p class="title">Calibration (mean error {100 * error:.1f} %)</p>{honest}'
        "<figcaption>Points below the line are of a model that is too certain.</figcaption>"
        f'</figure><figure><p class="title">Accuracy, if the least certain {noun}s are left '
        f"out</p>{doubt}</figure></div>\n{_confusion(checked)}\n{_by_class(checked)}"
    )


def _confusion(checked: Checked) -> str:
    result = checked.result
    counts = dict.fromkeys(result.classes, 0)
    for score in result.by_class():
        counts[score.label] = score.support
    names = [name for name in result.classes if counts[name] or len(counts) <= _CLASSES]
    names = sorted(names, key=lambda name: -counts[name])[:_CLASSES]
    names = [name for name in result.classes if name in set(names)]
    heads = "".join(f'<th scope="col"><span>{escape(name)}</span></th>' for name in names)
    rows = ""
    for name in names:
        cells = ""
        for found in names:
            n = result.count(name, found)
            share = n / max(counts[name], 1)
            kind = "right" if name == found else "wrong"
            cells += f'<td class="number {kind}" style="--p:{100 * share:.0f}">{n or ""}</td>'
        rows += f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>\n'
    return (
        '<p class="title" id="confusion">Confusion: a line for each class, a column for each '
        "prediction</p>\n"
        '<div class="table scroll"><table class="confusion" aria-labelledby="confusion"><thead>'
        f"<tr><td></td>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>"
    )


def _by_class(checked: Checked) -> str:
    columns = ["class", "precision", "recall", "F1", f"{checked.noun}s"]
    return sortable_table("table-by-class", "Each class", columns, checked.result.by_class())


def rows_section(model: Any, checked: Checked) -> str:
    """Return the section with mistakes, uncertain rows and strange rows."""
    noun = checked.noun
    lists = [
        ("The most certain mistakes", checked.mistaken.rows, _why),
        (f"The least certain {noun}s", checked.uncertain.rows, _why),
        (f"The strangest {noun}s", checked.strange.rows, _strange),
    ]
    lead = (
        "<p>Beside a column or word stands what it adds to the log-odds of the prediction against "
        "the next best class. In the list of strange ones it is by how much ln p of the cell is "
        "below what is usual in its column.</p>"
    )
    shown = ""
    for title, rows, because in lists:
        lines = "\n".join(_line(model, seen, noun, because) for seen in rows)
        shown += f'<h3>{title}</h3>\n<ul class="seen">{lines}</ul>\n' if rows else ""
    return lead + shown


def _line(model: Any, seen: Seen, noun: str, because: Any) -> str:
    name = seen.name if len(seen.name) <= _TEXT else seen.name[: _TEXT - 1] + "…"
    label = "" if seen.label is None else f"is {seen.label}, "
    answer = f"{label}predicted {seen.predicted} ({100 * seen.probability:.1f} %)"
    density = "" if seen.density is None else f"ln p(x) {seen.density:.1f}"
    name = name if noun == "document" else f"{noun} {name}"
    return (
        f"<li><p><b>{escape(name)}</b> {to_html(answer)} <span>{to_html(density)}</span></p>"
        f"<p>{to_html(because(model, seen))}</p></li>"
    )


def _why(model: Any, seen: Seen) -> str:
    """Return what speaks most for or against the prediction."""
    if not hasattr(model, "explain"):
        return ""
    try:
        parts = model.explain(seen.row).against()
    except OptionError:  # rows of this family have no contributions
        return ""
    parts = sorted(parts, key=lambda each: -abs(each[1]))[:4]
    return _BETWEEN.join(f"{_cell(name, seen)} ({part:+.1f})" for name, part in parts)


def _strange(model: Any, seen: Seen) -> str:
    if not hasattr(model, "strangeness"):
        return ""
    try:
        (parts,) = model.strangeness(seen.row)
    except OptionError:  # the model learnt from a stream, or has no density
        return ""
    names = [column.name for column in model._joint().layout_.columns]
    order = [j for j in np.argsort(-parts, kind="stable")[:3].tolist() if parts[j] > 0]
    return _BETWEEN.join(f"{_cell(names[j], seen)} ({parts[j]:+.1f})" for j in order)


def _cell(name: Any, seen: Seen) -> str:
    if seen.cells is None or str(name) not in seen.cells:
        return str(name)
    cell = seen.cells[str(name)]
    return f"{name} = {'missing' if cell is None else brief(cell)}"
