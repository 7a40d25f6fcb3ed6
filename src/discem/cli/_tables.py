"""Read tables from files for models of tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from ..estimators._tables import refuse_texts
from ..exceptions import InputError, OptionError, hint_of
from ..io.cells import Content
from ..io.column_kinds import column_names
from ..io.documents import LabelsNeeded
from ..io.file_rows import Rows
from ..io.sources import listed
from ..io.table_files import ReadTable, kind_of
from ..io.tables import Layout
from ..io.vectors import in_place
from ._reader import Batch, Reader, Source, Training
from ._screen import Meter, Pace, Warnings, plain_cell

_FEW = 10  # rows that may all have distinct labels
_TAKEN = ("label", "probability", "probabilities")  # column names of predictions
_PARTITION = re.compile(r"partition ([0-9]+): (.*)", re.DOTALL)
_WORDS = {
    "fit without engine, or leave the column out": "fit without workers, or --ignore it",
    "use TableClassifier, or leave the column out": "leave it out with --ignore",
    "give it the family 'categorical', which may have more": "fit with --family NAME=categorical",
}


class Roles(NamedTuple):
    """Columns that are not features: target and id."""

    target: str | None = None
    id: str | None = None

    @classmethod
    def of(cls, known: dict[str, str], target: str | None, id: str | None) -> Roles:
        """Return the given roles, or those that the model remembers."""
        roles = cls(target or known.get("target"), id or known.get("id"))
        if roles.target is not None and roles.target == roles.id:
            raise OptionError(f"--target and --id are both {roles.id!r}")
        return roles

    def names(self) -> dict[str, str]:
        return {role: name for role, name in self._asdict().items() if name is not None}


def families_of(pairs: list[str], ignored: list[str], roles: Roles) -> dict[str, str]:
    """Return the given families of columns by name; each column may only be given once."""
    said = [(f"--{role}", name, "") for role, name in roles.names().items()]
    said += [("--ignore", name, "ignored") for name in ignored]
    for pair in pairs:
        name, equals, family = pair.rpartition("=")
        if not equals or family not in column_names():
            raise OptionError(
                f"--family {pair}: expected NAME=FAMILY, one of {listed(column_names())}"
            )
        said.append(("--family", name, family))
    found: dict[str, tuple[str, str]] = {}
    for flag, name, what in said:
        before, _ = known = found.setdefault(name, (flag, what))
        if known != (flag, what):
            raise OptionError(f"{before} and {flag} both name {name!r}")
    return {name: what for name, (_, what) in found.items() if what}


class SomeRows(Batch):
    """A batch of rows of a table."""

    part = "column"

    def __init__(self, rows: Rows, X: ReadTable, key: str, names: list[Any], warnings: Warnings):
        self.rows, self.X, self.key, self.names = rows, X, key, names
        self.warnings = warnings

    def one(self, i: int) -> Any:
        return self.X[np.array([i])]

    def identity(self, i: int) -> dict[str, Any]:
        return {self.key: self.names[i]}

    def cells(self, i: int) -> dict[str, Any]:
        return {name: plain_cell(cells[i]) for name, cells in self._cells.items()}

    @cached_property
    def _cells(self) -> dict[str, list[Any]]:
        known = getattr(self.X, "contents", self.rows.columns)  # an array has no names
        return {name: self.rows.cells(name) for name in known if name in self.rows.columns}

    @contextmanager
    def translated(self) -> Iterator[None]:
        with self.warnings.translated(), placed(self.rows.place):
            yield


class Tables(Reader):
    """The rows of a source, read with the column kinds of the fitted model."""

    noun, in_files = "row", "csv"

    def __init__(
        self, source: Source, model: Any, target: str | None = None, id: str | None = None
    ):
        super().__init__(source, model)
        known = getattr(model, "roles_", {}) if model.__sklearn_is_fitted__() else {}
        self._roles = Roles.of(known, target, id)
        self._new_id = None if known.get("id") == id else id
        self._seen = ""

    def roles(self) -> dict[str, str]:
        return self._roles.names()

    # --- some at a time ---------------------------------------------------------------------------

    def batches(self, size: int, labels: LabelsNeeded = "optional") -> Iterator[SomeRows]:
        done = 0
        for rows in self.source.rows(size, self.skip):
            found = self._labels(rows) if labels == "required" else []  # which are missed first
            new, self._seen = rows.path != self._seen, rows.path
            if self._new_id is not None and new:  # later rows may lack it, as those of JSON do
                need_column(rows, self._new_id, "--id")
            with placed(rows.place):
                X = self._known(rows, new) if self.model.__sklearn_is_fitted__() else self._X(rows)
            batch = SomeRows(rows, X, *self._names(rows, done), self.warnings)
            batch.labels = found
            batch.origin = {rows.stretches[0].path: len(rows)}
            done += len(rows)
            yield batch

    def _names(self, rows: Rows, done: int) -> tuple[str, list[Any]]:
        """Return the names of rows: the cells of a column, or row numbers from 1."""
        id = self._roles.id
        if id is None or id not in rows.columns:
            return "row", list(range(done + 1, done + len(rows) + 1))
        return "id" if id in _TAKEN else id, [*map(plain_cell, rows.cells(id))]

    def _known(self, rows: Rows, new: bool) -> ReadTable:
        """Return the columns of the model that are present."""
        if new:
            self._look(rows)
        found = {
            name: rows.content(name, kind, given=True)
            for name, kind in self._kinds.items()
            if name in rows.columns
        }  # of lines of JSON there may be none
        return ReadTable(found or {next(iter(self._kinds)): _nothing(rows)})

    @cached_property
    def _kinds(self) -> dict[str, str | None]:
        """Return the columns of the model, and the required kinds of their cells.

        For an ignored column, only missing cells matter, if anything does.
        """
        layout = getattr(self.model, "model_", self.model).layout_
        return {
            str(column.name): None if column.family == "ignored" else kind_of(column)
            for column in layout.columns
            if column.family != "ignored" or (column.holes and layout.informative)
        }

    def _look(self, rows: Rows) -> None:
        """Warn of absent and unknown columns."""
        columns = getattr(self.model, "model_", self.model).layout_.columns
        needed = [str(column.name) for column in columns if column.family != "ignored"]
        lacking = [name for name in needed if name not in rows.columns]
        known = {str(column.name) for column in columns} | {*self.roles().values()}
        extra = [name for name in rows.names if name not in known]
        if len(lacking) == len(needed) and (rows.names or rows.complete):
            raise InputError(
                f"{rows.path}: none of the columns of the model is there; it knows "
                f"{listed(needed)}, there is {listed(rows.names)}"
            )
        if lacking and rows.complete:
            cells = "all cells of it are" if len(lacking) == 1 else "all cells of them are"
            self.warnings.once(f"{rows.path}: no column {listed(lacking)}; {cells} missing")
        if extra:
            self.warnings.once(
                f"{rows.path}: left out, as the model does not know: {listed(extra)}"
            )

    # --- all at once ------------------------------------------------------------------------------

    def whole(self, meter: Meter) -> Training:
        rows = self.source.whole(meter)
        labels = self._labels(rows)
        self.check_labels(Counter(labels))
        table = self._X(rows)
        rows.columns.clear()  # whose cells are in the table
        with placed(rows.place):
            layout = Layout.learn(table, self.model.families)
            if not self.model._reads_texts:
                refuse_texts(layout, type(self.model).__name__)
        if all(column.family == "ignored" and not column.holes for column in layout.columns):
            raise InputError(f"{rows.path}: no column varies: there is nothing to learn from")

        def translated(chosen: Any = None) -> AbstractContextManager[None]:
            return placed(rows.place if chosen is None else lambda i: rows.place(int(chosen[i])))

        return Training(table, labels, len(labels), translated, layout.families_)

    def on_workers(self, client: Any, meter: Meter) -> Training:
        from ..io import parts as files

        source, pace, target = self.source, Pace(meter, "reading", "row"), self._roles.target or ""
        ignored = [name for name, family in self._given.items() if family == "ignored"]
        apart = [*self.roles().values(), *ignored]
        found = files.parts_of(source.data, source.format, client.cluster is None)
        parts = files.read_tables(client, found, pace.passed, target, apart, source.max_size)
        head = files.head_of(parts)
        need_column(head, target, "--target")
        self.check_labels(parts.labels)
        kinds = files.kinds_of(parts, self._feature_names(head), list(self._given))
        table = parts.partitions(partial(files.columns_of, kinds=kinds, ignored=ignored))
        labels = parts.partitions(methodcaller("labels", target))
        return Training(table, labels, parts.n_rows, partial(_placed_in_parts, parts))

    @property
    def learnt(self) -> int:
        return int(self.model.stream_["rows"])

    def check_labels(self, labels: Counter[Any]) -> None:
        super().check_labels(labels)
        classes, seen = len(set(labels) - {None}), labels.total() - labels[None]
        if seen >= _FEW and 2 * classes > seen:
            raise InputError(
                f"column {self._roles.target!r} has {classes:,} different labels in {seen:,} rows: "
                "these are not classes. Name another --target; or, if they are numbers, write them "
                "without units and commas, as 1200"
            )

    @property
    def _given(self) -> dict[str, str]:
        families = self.model.families
        return families if isinstance(families, dict) else {}

    def _labels(self, rows: Rows) -> list[Any]:
        """Return the labels of rows; the column must exist."""
        target = self._roles.target
        if target is None:
            raise OptionError(
                "the model does not know which column has the labels: add --target NAME"
            )
        need_column(rows, target, "--target")
        return rows.labels(target)

    def _feature_names(self, rows: Rows) -> list[str]:
        """Return the columns to fit a model to; named ones must exist."""
        families, apart = self._given, {*self.roles().values()}
        for name, family in families.items():
            need_column(rows, name, "--ignore" if family == "ignored" else "--family")
        if self._roles.id is not None:
            need_column(rows, self._roles.id, "--id")
        names = [n for n in rows.names if families.get(n) == "ignored" or n not in apart]
        if not names:
            raise InputError(f"{rows.path}: no column besides {listed(apart)}")
        return names

    def _X(self, rows: Rows) -> ReadTable:
        """Return the columns to fit a model to, without ignored ones."""
        families = self._given
        return ReadTable(
            {
                name: _nothing(rows)
                if families.get(name) == "ignored"
                else rows.content(name, given=name in families)
                for name in self._feature_names(rows)
            }
        )


class Arrays(Tables):
    """The rows of a source for a model of arrays: all columns are numbers, in order."""

    def _known(self, rows: Rows, new: bool) -> Any:
        names = self._names_of_columns(rows)
        columns = [rows.content(name, "number", given=True).numbers() for name in names]
        return np.column_stack(columns)

    def _names_of_columns(self, rows: Rows) -> list[str]:
        known = getattr(self.model, "feature_names_in_", None)
        if known is not None:
            for name in known:
                need_column(rows, name, "the model")
            return known.tolist()
        names = [name for name in rows.names if name not in self.roles().values()]
        if len(names) != self.model.n_features_in_:
            raise InputError(
                f"{rows.path}: the model takes {self.model.n_features_in_:,} columns, and there "
                f"are {len(names):,} besides the labels: {listed(names)}"
            )
        return names


def need_column(rows: Rows, name: str, flag: str) -> None:
    """Check that a column exists."""
    if name not in rows.columns:
        hint = hint_of(name, rows.names, f"there is {listed(rows.names)}")
        raise InputError(f"{rows.path}: no column {name!r}, which {flag} names; {hint}")


@contextmanager
def placed(place: Callable[[int], str]) -> Iterator[None]:
    """Translate errors of the library to command-line options, and rows by `place`."""
    try:
        yield
    except InputError as error:
        message = in_place(str(error), place)
        for words, instead in _WORDS.items():
            message = message.replace(words, instead)
        raise InputError(message) from error


@contextmanager
def _placed_in_parts(parts: Any) -> Iterator[None]:
    """Do the same for rows on workers, within a partition or among all rows."""
    try:
        yield
    except InputError as error:
        found = _PARTITION.match(str(error))
        number = int(found[1]) if found else None
        error = InputError(found[2]) if found else error
        with placed(lambda row: parts.place(row, number)):
            raise error from None


def _nothing(rows: Rows) -> Content:
    """Return a column of missing cells."""
    return Content("number", np.full(len(rows), np.nan))
