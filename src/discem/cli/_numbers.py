"""Answers that are numbers, on the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from rich.table import Table

from ..exceptions import InputError, OptionError
from ..io.documents import STDIN, LabelsNeeded
from ._models import is_regressor
from ._output import csv_writer
from ._reader import Batch, Reader
from ._screen import Meter, Pace, counted, one_line, screen, to_json
from ._sources import Source
from ._tables import Tables, need_column

if TYPE_CHECKING:
    from ..estimators._explain_numbers import NumberExplanation
    from ..estimators._predicted import PredictedNumbers
    from ..io.file_rows import Rows
    from ..report.evaluation import NumberEvaluation

    Predicted = Iterator[tuple[Batch, PredictedNumbers]]

QUANTILES = (0.05, 0.5, 0.95)
_LOOKED_AT = 2000  # rows, by which a task is told
_CLASSES = 30  # whole numbers that may still be classes


def reason_for_numbers(source: Source, target: str, task: str) -> str:
    """Why the target holds numbers; nothing if it holds classes."""
    if task != "auto":
        return f"--task {task}" if task == "regression" else ""
    if STDIN in source.data:  # which is read once
        return ""
    rows = next(iter(source.rows(_LOOKED_AT)))
    need_column(rows, target, "--target")
    found = [number_of(label) for label in rows.labels(target) if label is not None]
    numbers = {number for number in found if number is not None}
    if not found or None in found:
        return ""
    if any(number % 1.0 for number in numbers):
        return f"regression, for {target!r} has numbers with fractions"
    if len(numbers) > _CLASSES:
        return f"regression, for {target!r} has {len(numbers)} different numbers"
    return ""


def number_of(text: str) -> float | None:
    """The finite number that a text is; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


class NumberTables(Tables):
    """The rows of a source, whose target holds numbers."""

    def _labels(self, rows: Rows) -> list[Any]:
        target, found = self._roles.target, []
        for row, label in enumerate(super()._labels(rows)):
            number = None if label is None else number_of(label)
            if label is not None and number is None:
                raise InputError(
                    f"{rows.place(row)}, {target!r}: {label!r} is no number; for classes, fit with "
                    "--task classification"
                )
            found.append(number)
        return found

    def check_labels(self, labels: Counter[Any]) -> None:
        if not set(labels) - {None}:
            raise InputError(f"none of the {counted(labels.total(), self.noun)} has a number")

    def check_first_labels(self, labels: list[Any]) -> None:
        if all(label is None for label in labels):
            super().check_first_labels([])

    def predicted(self, size: int, meter: Meter, labels: LabelsNeeded = "optional") -> Predicted:
        """Batches, and the distributions of their answers."""
        pace = Pace(meter, f"{self.noun}s", self.noun)
        for batch in self.batches(size, labels):
            with batch.translated():
                found = self.model.predict_dist(batch.X)
            yield batch, found
            pace.passed(len(batch))


# --- predict --------------------------------------------------------------------------------------


def write_predictions(
    file: IO[str], form: str, reader: Reader, size: int, quantiles: Sequence[float], meter: Meter
) -> None:
    """Write mean, standard deviation and quantiles of each row."""
    assert isinstance(reader, NumberTables)
    names = [f"{q:g}" for q in quantiles]
    writer = csv_writer(file, "\t" if form == "tsv" else ",") if form in ("csv", "tsv") else None
    table, header = Table(), False
    for batch, found in reader.predicted(size, meter):
        columns = [found.mean, found.std, *(found.quantile(q) for q in quantiles)]
        rows = zip(batch.names, *(column.tolist() for column in columns), strict=True)
        if not header:
            titles = [batch.key, "mean", "std", *names]
            if writer:
                writer.writerow(titles)
            for title in titles:
                table.add_column(one_line(title), justify="left" if title == batch.key else "right")
            header = True
        for i, (name, mean, std, *ends) in enumerate(rows):
            shown = [f"{value:.6g}" for value in (mean, std, *ends)]
            if writer:
                writer.writerow([name, *shown])
            elif form == "jsonl":
                record = {
                    "mean": mean,
                    "std": std,
                    "quantiles": dict(zip(names, ends, strict=True)),
                }
                file.write(to_json(batch.identity(i) | record) + "\n")
            elif form == "lines":
                file.write("\t".join(shown) + "\n")
            else:
                table.add_row(one_line(str(name)), *(f"{v:.4g}" for v in (mean, std, *ends)))
        file.flush()
    if form == "table":
        screen(file).print(table)


def quantiles_of(text: str | None) -> tuple[float, ...]:
    """The quantiles of an option, as 0.05,0.5,0.95."""
    if text is None:
        return QUANTILES
    found = tuple(number_of(each) or 0.0 for each in text.split(","))
    if not all(0.0 < q < 1.0 for q in found):
        raise OptionError(f"--quantiles {text}: expected numbers between 0 and 1, as 0.05,0.5,0.95")
    return found


# --- evaluate -------------------------------------------------------------------------------------


def evaluated(reader: Reader, size: int) -> NumberEvaluation:
    """How good the model of a reader is on what it reads."""
    from ..report.evaluation import NumberEvaluation

    assert isinstance(reader, NumberTables)
    result = NumberEvaluation(reader.noun)
    with Meter() as meter:
        for batch, found in reader.predicted(size, meter, "required"):
            result.add(batch.labels, found)
    return result


def cross_validated(
    reader: Reader, new: Callable[..., Any], n: int
) -> tuple[NumberEvaluation, list[float]]:
    """How good models are on rows that they were not trained on, and the RMSE of each."""
    import numpy as np
    from sklearn.model_selection import KFold

    from ..report.evaluation import NumberEvaluation

    with Meter(lines=True) as meter:
        data = reader.whole(meter)
        known = np.flatnonzero([label is not None for label in data.y])
        if len(known) < n:
            raise InputError(f"--cv {n}: {counted(len(known), 'row')} with a number; use less")
        y = np.array([data.y[row] for row in known])
        result, parts = NumberEvaluation(reader.noun), []
        result.unlabelled = data.n - len(known)
        cuts = KFold(n, shuffle=True, random_state=new().random_state)
        for fold, (train, held) in enumerate(cuts.split(y), 1):
            meter.tell(f"part {fold} of {n}")
            model = new()
            with reader.warnings.translated(), data.translated(known[train]):
                model.fit(data.X[known[train]], y[train])
            with reader.warnings.translated(), data.translated(known[held]):
                found = model.predict_dist(data.X[known[held]])
            part = NumberEvaluation(reader.noun)
            for each in (result, part):
                each.add(y[held].tolist(), found)
            parts.append(part.rmse)
    return result, parts


def show_evaluation(result: NumberEvaluation, parts: list[float]) -> None:
    console = screen()
    r2 = "-" if result.r2 is None else f"{result.r2:.4f}"
    console.print(
        f"RMSE {result.rmse:.6g}  R2 {r2}  mean absolute error {result.mae:.6g}  "
        f"log density {result.log_density:.4f}  within the 90 % interval {result.coverage:.1%}  "
        f"{result.noun}s {result.documents:,}",
        soft_wrap=True,
    )
    if parts:
        message = " ".join(f"{rmse:.6g}" for rmse in parts)
        console.print(f"RMSE of each part {message}", soft_wrap=True)
    if result.unlabelled:
        noun = counted(result.unlabelled, result.noun)
        console.print(f"skipped: {noun} without a number", soft_wrap=True)


# --- explain --------------------------------------------------------------------------------------


def record_of_numbers(
    explanation: NumberExplanation, batch: Batch, i: int, top: int
) -> dict[str, Any]:
    """An explanation as plain data."""
    cells = batch.cells(i) or {}
    parts = [(name, float(part)) for name, part in explanation.largest() if part]
    shown = [[name, cells.get(str(name)), part] for name, part in parts[:top]]
    return batch.identity(i) | {
        "prediction": float(explanation.prediction),
        "std": float(explanation.std),
        "start": float(explanation.base),
        "columns": shown,
        "other_columns": float(sum(part for _, part in parts[top:])),
        "std_if_known": {str(n): float(std) for n, std in explanation.if_known.items()},
    }


def show_numbers(record: dict[str, Any], batch: Batch, i: int) -> None:
    """An explanation as a table."""
    title = "prediction {prediction:.5g}, standard deviation {std:.4g}".format(**record)
    for key, name in batch.identity(i).items():
        title = f"{key} {name}: {title}"
    table = Table("column")
    table.add_column("moves the mean by", justify="right")
    for name, cell, part in record["columns"]:
        shown = f"{name} = {'missing' if cell is None else cell}"
        table.add_row(one_line(shown), f"{part:+.4g}")
    if record["other_columns"]:
        table.add_row("(other columns)", f"{record['other_columns']:+.4g}")
    table.add_row("(before any column)", f"{record['start']:+.4g}")
    table.add_section()
    table.add_row("sum", f"{record['prediction']:.5g}")
    console = screen()
    console.print(one_line(title), soft_wrap=True)
    console.print(table)
    for name, std in sorted(record["std_if_known"].items(), key=lambda pair: pair[1]):
        message = f"standard deviation if {name} was known: {std:.4g}"
        console.print(one_line(message), soft_wrap=True)


def refuse_classes(model: Any, options: dict[str, Any]) -> None:
    """Refuse options that are about classes, where the answers are numbers."""
    for flag, value in options.items():
        if value is not None and is_regressor(model):
            raise OptionError(f"{flag} is for classes, and this model tells numbers: leave it out")
