"""Tables in files, as models read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..exceptions import InputError, OptionError
from ..io.cells import Content
from ..io.columns import FAMILIES
from ..io.sources import listed
from ..io.table_files import Rows, in_place, kind_of, table_of
from ._screen import Meter, Pace, Warnings
from ._training import check_labels

if TYPE_CHECKING:
    from .. import TableClassifier

_FEW = 10  # rows that may all have labels of their own
_TAKEN = ("label", "probability", "probabilities")  # names in predictions
_WORDS = {
    "TextClassifier reads text, or leave the column out": "leave it out with --ignore",
    "give it the family 'categorical', which may have more": "fit with --family NAME=categorical",
}


class Roles(NamedTuple):
    """Columns that are no part of the model."""

    target: str | None = None
    id: str | None = None

    @classmethod
    def of(cls, model: TableClassifier | None, target: str | None, id: str | None) -> Roles:
        """Those that are given, or those that the model remembers, if there is one."""
        known = {} if model is None else model.roles_
        roles = cls(target or known.get("target"), id or known.get("id"))
        if roles.target is not None and roles.target == roles.id:
            raise OptionError(f"--target and --id are both {roles.id!r}")
        return roles

    def names(self) -> dict[str, str]:
        return {role: name for role, name in self._asdict().items() if name is not None}


def families_of(pairs: list[str], ignored: list[str], roles: Roles) -> dict[str, str]:
    """What was said of columns besides their roles, by name; of each of them, one thing."""
    said = [(f"--{role}", name, "") for role, name in roles.names().items()]
    said += [("--ignore", name, "ignored") for name in ignored]
    for pair in pairs:
        name, equals, family = pair.rpartition("=")
        if not equals or family not in FAMILIES:
            raise OptionError(f"--family {pair}: expected NAME=FAMILY, one of {listed(FAMILIES)}")
        said.append(("--family", name, family))
    found: dict[str, tuple[str, str]] = {}
    for flag, name, what in said:
        before, _ = known = found.setdefault(name, (flag, what))
        if known != (flag, what):
            raise OptionError(f"{before} and {flag} both name {name!r}")
    return {name: what for name, (_, what) in found.items() if what}


def labels_of(rows: Rows, roles: Roles) -> list[str | None]:
    """The labels of rows, which must have a column of them."""
    if roles.target is None:
        raise OptionError("the model does not know which column has the labels: add --target NAME")
    need_column(rows, roles.target, "--target")
    return rows.labels(roles.target)


def check_classes(labels: Counter[str | None], target: str | None, loss: Any) -> None:
    """See that the labels are classes, to be told apart."""
    check_labels(labels, "row", loss)
    classes, seen = len(set(labels) - {None}), labels.total() - labels[None]
    if seen >= _FEW and 2 * classes > seen:
        raise InputError(
            f"column {target!r} has {classes:,} different labels in {seen:,} rows: "
            "these are no classes"
        )


def feature_names(rows: Rows, roles: Roles, families: Any) -> list[str]:
    """Which columns a model is to be fitted to; those that were named must be there."""
    families = families if isinstance(families, dict) else {}
    for name, family in families.items():
        need_column(rows, name, "--ignore" if family == "ignored" else "--family")
    if roles.id is not None:
        need_column(rows, roles.id, "--id")
    apart = set(roles.names().values())
    names = [name for name in rows.names if families.get(name) == "ignored" or name not in apart]
    if not names:
        raise InputError(f"{rows.path}: no column besides {listed(apart)}")
    return names


def features_of(rows: Rows, roles: Roles, families: Any) -> dict[str, Content]:
    """The columns that a model is to be fitted to."""
    names = feature_names(rows, roles, families)
    families = families if isinstance(families, dict) else {}
    return {
        name: Content("number", np.full(len(rows), np.nan))  # not looked at
        if families.get(name) == "ignored"
        else rows.content(name, given=name in families)
        for name in names
    }


def need_column(rows: Rows, name: str, flag: str) -> None:
    """See that a column is there."""
    if name not in rows.columns:
        meant = get_close_matches(name, rows.names, 1)
        hint = f"did you mean {meant[0]!r}?" if meant else f"there is {listed(rows.names)}"
        raise InputError(f"{rows.path}: no column {name!r}, which {flag} names; {hint}")


class Reader:
    """Rows of files as a model knows them: what it was fitted to says what cells are."""

    def __init__(self, model: TableClassifier, roles: Roles, warnings: Warnings):
        layout = model.model_.layout_
        self.roles, self.warnings = roles, warnings
        self.known = {str(column.name) for column in layout.columns}
        self.kinds = {
            str(column.name): kind_of(column)
            for column in layout.columns
            if column.family != "ignored"
        }
        self.told = {
            str(column.name): None
            for column in layout.columns
            if column.family == "ignored" and column.holes and layout.informative
        }  # of which only counts which cells are missing
        self._seen = ""

    def contents(self, rows: Rows) -> dict[str, Content]:
        """The columns that the model takes, as far as they are there."""
        if rows.path != self._seen:
            self._seen = rows.path
            self._look(rows)
        found = {}
        for name, kind in (self.kinds | self.told).items():
            if name in rows.columns:
                found[name] = rows.content(name, kind, given=True)
        if not found:  # a line of JSON may have no field
            found[next(iter(self.kinds))] = Content("number", np.full(len(rows), np.nan))
        return found

    def table(self, rows: Rows) -> Any:
        return table_of(self.contents(rows))

    def _look(self, rows: Rows) -> None:
        """Say which columns are not there, and which are not known."""
        lacking = [name for name in self.kinds if name not in rows.columns]
        roles = set(self.roles.names().values())
        extra = [name for name in rows.names if name not in self.known | roles]
        if len(lacking) == len(self.kinds) and (rows.names or rows.complete):
            raise InputError(
                f"{rows.path}: none of the columns of the model is there; it knows "
                f"{listed(self.kinds)}, there is {listed(rows.names)}"
            )
        if lacking and rows.complete:
            cells = "all cells of it are" if len(lacking) == 1 else "all cells of them are"
            self.warnings.once(f"{rows.path}: no column {listed(lacking)}; {cells} missing")
        if extra:
            self.warnings.once(
                f"{rows.path}: left out, as the model does not know: {listed(extra)}"
            )


def scored_rows(
    model: TableClassifier, reader: Reader, batches: Iterator[Rows], meter: Meter
) -> Iterator[tuple[Rows, np.ndarray]]:
    """Rows and ``ln p(y | x)`` of each, batch by batch."""
    pace = Pace(meter, "rows", "row")
    for rows in batches:
        with reader.warnings.told(), in_words_of_the_shell(rows.place):
            log_proba = model.predict_log_proba(reader.table(rows))
        yield rows, log_proba
        pace.passed(len(rows))


@contextmanager
def in_words_of_the_shell(place: Callable[[int], str]) -> Iterator[None]:
    """Errors of the library speak of options as they are called here, and of rows by `place`."""
    try:
        yield
    except InputError as error:
        told = in_place(str(error), place)
        for words, instead in _WORDS.items():
            told = told.replace(words, instead)
        raise InputError(told) from error


def step_of(record: dict[str, Any]) -> str:
    """What an epoch is for."""
    density = " of the density" if record["stage"] == "density" else ""
    return record.get("choice") or f"epoch {record['epoch']}{density}"


def names_of(rows: Rows, id: str | None, done: int) -> tuple[str, list[Any]]:
    """Names of rows: those of a column, or their numbers from 1 on."""
    if id is None or id not in rows.columns:
        return "row", list(range(done + 1, done + len(rows) + 1))
    return "id" if id in _TAKEN else id, [*map(plain_cell, rows.cells(id))]


def plain_cell(cell: Any) -> Any:
    """A cell as JSON has it; a date, say, is a text."""
    return cell if isinstance(cell, str | int | float | None) else str(cell)
