"""Fitting tables, in memory or as a stream."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ..exceptions import InputError
from ..io.table_files import Rows, table_of
from ..io.tables import Layout
from ._screen import Meter, Warnings, counted, one_line, screen
from ._sources import Source
from ._tables import (
    Reader,
    Roles,
    check_classes,
    feature_names,
    features_of,
    in_words_of_the_shell,
    labels_of,
    need_column,
    step_of,
)
from ._training import Job, Learnt, Sizes, check_first_labels

if TYPE_CHECKING:
    from .. import TableClassifier
    from ..io.parts import Parts

_SHOWN = 60  # columns
_PARTITION = re.compile(r"partition ([0-9]+): (.*)", re.DOTALL)
_CHOSEN = ("n_components", "loss", "hide", "missing", "prior_strength", "temperature")
_CALLED = {"n_components": "components", "prior_strength": "prior strength"}


def fit_table(job: Job, source: Source, roles: Roles, sizes: Sizes | None) -> str:
    """Train on the rows of a table, and tell what was learnt."""
    if sizes is not None:
        return _stream(job, source, roles, sizes)
    model = job.model
    with Meter(lines=True) as meter:
        rows = source.whole(meter)
    labels = labels_of(rows, roles)
    check_classes(Counter(labels), roles.target, model.loss)
    table = table_of(features_of(rows, roles, model.families))
    rows.columns.clear()  # whose cells are in the table
    with in_words_of_the_shell(rows.place):
        layout = Layout.learn(table, model.families)
    if all(column.family == "ignored" and not column.holes for column in layout.columns):
        raise InputError(f"{rows.path}: no column varies: there is nothing to learn from")
    _show_columns(layout.families_)
    with in_words_of_the_shell(rows.place):
        _train(job, table, labels, len(labels))
    return _summary(model, len(labels))


def fit_table_on(job: Job, client: Any, source: Source, roles: Roles) -> str:
    """Train on the rows of a table that workers read, and tell what was learnt."""
    from .. import Dask
    from ..io import parts as files

    model, target = job.model, roles.target or ""
    families = model.families if isinstance(model.families, dict) else {}
    ignored = [name for name, family in families.items() if family == "ignored"]
    with Meter(lines=True) as meter:
        parts = source.rows_on(client, target, [*roles.names().values(), *ignored], meter)
    head = files.head_of(parts)
    need_column(head, target, "--target")
    check_classes(parts.labels, target, model.loss)
    names = feature_names(head, roles, families)
    kinds = files.kinds_of(parts, names, list(families))
    model.engine = Dask(client)
    table = parts.partitions(partial(files.columns_of, kinds=kinds, ignored=ignored))
    labels = parts.partitions(partial(files.column_of, name=target))
    with _in_words_of_the_shell_of(parts):
        _train(job, table, labels, parts.n_rows)
    _show_columns(model.families_)
    return _summary(model, parts.n_rows)


@contextmanager
def _in_words_of_the_shell_of(parts: Parts) -> Iterator[None]:
    """The same for rows on workers: of a partition, or of all of them if they were looked at."""
    try:
        yield
    except InputError as error:
        found = _PARTITION.match(str(error))
        number = int(found[1]) if found else None
        error = InputError(found[2]) if found else error
        with in_words_of_the_shell(lambda row: parts.place(row, number)):
            raise error from None


def _train(job: Job, table: Any, labels: Any, n_rows: int) -> None:
    """Train on rows, wherever they are."""
    model = job.model

    def show(model: TableClassifier, record: dict[str, Any]) -> None:
        final = record["stage"] == "fit"
        share = record["epoch"] / model.max_iter if final else None
        rate = n_rows / max(record["seconds"], 1e-9) if final else None
        meter.tell(step_of(record), share, record["loss"], rate=rate, noun="row")

    model.callback = show
    with Meter(lines=True) as meter:
        meter.tell(f"beginning with {counted(n_rows, 'row')}")
        job.whole(lambda: model.fit(table, labels))


def _stream(job: Job, source: Source, roles: Roles, sizes: Sizes) -> str:
    model = job.model
    resumed = model.__sklearn_is_fitted__()
    lesson = _Lesson(model, roles, job.warnings)
    with Meter(lines=True) as meter:
        job.stream(source.rows(sizes.batch), lesson.teach, sizes.save_every, meter)
    if not resumed:
        _show_columns(model.families_)
    told = _summary(model, int(model.stream_["rows"]))
    accuracy = lesson.accuracy
    return told if accuracy is None else f"{told}; progressive accuracy {accuracy:.4f}"


class _Lesson:
    """Batches of a stream; each is predicted before it is learnt."""

    def __init__(self, model: TableClassifier, roles: Roles, warnings: Warnings):
        self.model, self.roles, self.warnings = model, roles, warnings
        self.reader: Reader | None = None
        known = model.roles_ if model.__sklearn_is_fitted__() else {"id": roles.id}
        self.new_id = None if known.get("id") == roles.id else roles.id
        self.right = self.labelled = 0

    def teach(self, rows: Rows) -> Learnt:
        model, labels = self.model, labels_of(rows, self.roles)
        if self.new_id is not None:  # later rows may lack it, as those of JSON lack any field
            need_column(rows, self.new_id, "--id")
            self.new_id = None
        with in_words_of_the_shell(rows.place):
            if model.__sklearn_is_fitted__():
                self.reader = self.reader or Reader(model, self.roles, self.warnings)
                table = self.reader.table(rows)
                found = map(str, model.predict(table).tolist())
                pairs = [pair for pair in zip(found, labels, strict=True) if pair[1] is not None]
                self.right += sum(one == other for one, other in pairs)
                self.labelled += len(pairs)
            else:
                check_first_labels(labels, "row")
                table = table_of(features_of(rows, self.roles, model.families))
            model.partial_fit(table, labels)
        return Learnt(len(rows), model.history_[-1]["loss"], self.accuracy)

    @property
    def accuracy(self) -> float | None:
        return self.right / self.labelled if self.labelled else None


# --- what is told ---------------------------------------------------------------------------------


def _show_columns(families: dict[Any, str]) -> None:
    """What each column was taken for."""
    console, table = screen(), Table("column", "taken for", "because")
    for name, told in list(families.items())[:_SHOWN]:
        family, _, why = told.partition(": ")
        table.add_row(one_line(str(name)), family, why)
    console.print(table)
    if len(families) > _SHOWN:
        console.print(f"and {len(families) - _SHOWN:,} columns more", soft_wrap=True)


def _summary(model: TableClassifier, rows: int) -> str:
    """What was learnt, and how."""
    chosen = model.chosen_
    told = f"{counted(rows, 'row')}, {counted(len(model.classes_), 'class')}"
    for name in _CHOSEN:
        value = chosen[name]
        shown = f"{value:.3g}" if isinstance(value, float) else value
        told += f", {_CALLED.get(name, name)} {shown}"
    if "epochs" in chosen:
        told += f", epochs {chosen['epochs']}"
    if model.choice_:
        told += f"; the best of {len(model.choice_)} on {chosen['held_out']:,} held out"
    return told
