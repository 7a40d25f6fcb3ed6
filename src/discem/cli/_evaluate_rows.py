"""Predictions for rows of tables beside the truth, by a model or without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from warnings import catch_warnings

import numpy as np
from sklearn.model_selection import StratifiedKFold

from .. import TableClassifier
from ..exceptions import InputError
from ..io.cells import Content
from ..io.table_files import Rows, table_of
from ..report.evaluation import Evaluation
from ._models import class_names
from ._screen import Meter, Warnings, counted
from ._sources import Source
from ._tables import (
    Reader,
    Roles,
    check_classes,
    features_of,
    in_words_of_the_shell,
    labels_of,
    scored_rows,
    step_of,
)


def evaluate_rows(model: Any, source: Source, target: str | None, size: int) -> Evaluation:
    """How good a model is on the rows of a table."""
    roles = Roles.of(model, target, None)
    reader = Reader(model, roles, Warnings("row"))
    result = Evaluation(class_names(model), "row")
    labels: list[str | None] = []

    def labelled() -> Iterator[Rows]:
        for rows in source.rows(size):
            labels[:] = labels_of(rows, roles)  # of which want is said before all else
            yield rows

    with Meter() as meter:
        for _, log_proba in scored_rows(model, reader, labelled(), meter):
            result.add(labels, log_proba)
    return result


def cross_validate(
    source: Source, roles: Roles, families: dict[str, str], n: int, seed: int
) -> tuple[Evaluation, list[float]]:
    """How good models are on rows that they were not trained on, and the accuracy of each."""
    with Meter(lines=True) as meter:
        rows = source.whole(meter)
        labels = labels_of(rows, roles)
        check_classes(Counter(labels), roles.target, "auto")
        contents = features_of(rows, roles, families)
        known = np.flatnonzero([label is not None for label in labels])
        y = np.array([labels[row] for row in known], dtype=str)
        classes = np.unique(y).tolist()
        result, accuracies = Evaluation(classes, "row"), []
        result.unlabelled = len(labels) - len(known)
        warnings = Warnings("row")
        for fold, (train, held) in enumerate(_folds(y, n, seed), 1):
            model = TableClassifier(
                families=families or "auto",
                density=False,
                callback=_teller(meter, f"part {fold} of {n}"),
                random_state=seed,
            )
            with warnings.told():
                with in_words_of_the_shell(_placing(rows, known[train])):
                    model.fit(_some(contents, known[train]), y[train])
                with in_words_of_the_shell(_placing(rows, known[held])):
                    found = model.predict_log_proba(_some(contents, known[held]))
            log_proba = np.full((len(held), len(classes)), -np.inf)
            log_proba[:, np.searchsorted(classes, class_names(model))] = found
            result.add(y[held].tolist(), log_proba)
            right = np.array(classes)[log_proba.argmax(axis=1)] == y[held]
            accuracies.append(float(right.mean()))
    return result, accuracies


def _folds(y: np.ndarray, n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows to train on and those held out, n times, with all classes in each if possible."""
    *_, second, most = sorted(np.unique(y, return_counts=True)[1].tolist())
    if most < n:
        raise InputError(
            f"--cv {n}: no class has more than {counted(most, 'row')}; use a smaller N"
        )
    if second < 2:
        raise InputError(f"--cv {n}: all classes but one have a single row, which is too few")
    with catch_warnings(action="ignore", category=UserWarning):  # of classes with fewer rows
        parts = StratifiedKFold(n, shuffle=True, random_state=seed)
        return list(parts.split(np.empty((len(y), 0)), y))


def _placing(rows: Rows, chosen: np.ndarray) -> Callable[[int], str]:
    """What messages call the rows that were chosen."""
    return lambda row: rows.place(int(chosen[row]))


def _some(contents: dict[str, Content], rows: np.ndarray) -> Any:
    return table_of({name: content.only(rows) for name, content in contents.items()})


def _teller(meter: Meter, part: str) -> Callable[[Any, dict[str, Any]], None]:
    """Tells of epochs."""

    def tell(_: Any, record: dict[str, Any]) -> None:
        meter.tell(f"{part}, {step_of(record)}", None, record["loss"])

    return tell
