"""Commands for models of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..exceptions import InputError, OptionError
from ..io.documents import STDIN
from ._models import refuse
from ._reader import Batch, Source
from ._screen import counted, one_line, screen, show_parts
from ._tables import Tables, need_column

if TYPE_CHECKING:
    import numpy as np

    from ..estimators._number_answers import NumberExplanation
    from ..estimators._predicted import PredictedNumbers
    from ..io.file_rows import Rows
    from ..report.evaluation import NumberEvaluation

_QUANTILES = "0.05,0.5,0.95"
_LOOKED_AT = 2000  # rows that determine the task
_CLASSES = 30  # whole numbers that may still be classes
_KINDS = {
    "real": "numbers as answers",
    "positive": "numbers above 0 as answers, seen as logarithms",
    "count": "counts as answers, seen as logarithms",
}


def reason_for_numbers(source: Source, target: str, task: str) -> str:
    """Return why the target holds numbers; an empty text if it holds classes."""
    if task != "auto":
        return f"--task {task}" if task == "regression" else ""
    if STDIN in source.data:  # it can only be read once
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
    """Return the finite number that a text holds; None if it is not one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


class NumberTables(Tables):
    """The rows of a source whose target holds numbers."""

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


class Numbers:
    """The methods that commands need for a model of numbers; `Classes` documents them."""

    figure = "rmse"

    def __init__(self, model: Any):
        self.model = model

    def refuse(self, path: Any, of_classes: dict[str, Any], of_numbers: dict[str, Any]) -> None:
        refuse(of_classes, "is for classes, and this model tells numbers: leave it out")

    def ask(self, X: Any) -> PredictedNumbers:
        return self.model.predict_dist(X)

    # --- predict ----------------------------------------------------------------------------------

    def prepare(self, proba: bool, quantiles: str | None) -> None:
        text = quantiles or _QUANTILES
        self.quantiles = [number_of(each) or 0.0 for each in text.split(",")]
        if not all(0.0 < q < 1.0 for q in self.quantiles):
            raise OptionError(
                f"--quantiles {text}: expected numbers between 0 and 1, as {_QUANTILES}"
            )
        self.titles = self.heads = ["mean", "std", *(f"{q:g}" for q in self.quantiles)]
        self.words: list[str] = []

    def rows(self, found: PredictedNumbers) -> Iterable[tuple[float, ...]]:
        columns = [found.mean, found.std, *(found.quantile(q) for q in self.quantiles)]
        return zip(*(column.tolist() for column in columns), strict=True)

    def cells(self, row: Sequence[float]) -> list[str]:
        return [f"{value:.6g}" for value in row]

    def line(self, row: Sequence[float]) -> str:
        return "\t".join(self.cells(row))

    def record(self, row: Sequence[float]) -> dict[str, Any]:
        mean, std, *ends = row
        named = dict(zip(self.titles[2:], ends, strict=True))
        return {"mean": mean, "std": std, "quantiles": named}

    def shown(self, row: Sequence[float]) -> list[str]:
        return [f"{value:.4g}" for value in row]

    # --- evaluate ---------------------------------------------------------------------------------

    def evaluation(self, noun: str, y: Any = None) -> NumberEvaluation:
        from ..report.evaluation import NumberEvaluation

        return NumberEvaluation(noun)

    def judge(self, result: NumberEvaluation, labels: Sequence[Any], found: Any) -> None:
        result.add(labels, found)

    def folds(self, y: np.ndarray, n: int, seed: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        from sklearn.model_selection import KFold

        if len(y) < n:
            raise InputError(f"--cv {n}: {counted(len(y), 'row')} with a number; use less")
        return KFold(n, shuffle=True, random_state=seed).split(y)

    def show_evaluation(self, result: NumberEvaluation, parts: list[float]) -> None:
        r2 = "-" if result.r2 is None else f"{result.r2:.4f}"
        lines = [
            f"RMSE {result.rmse:.6g}  R2 {r2}  mean absolute error {result.mae:.6g}  "
            f"log density {result.log_density:.4f}  within the 90 % interval "
            f"{result.coverage:.1%}  {result.noun}s {result.documents:,}"
        ]
        if parts:
            lines.append("RMSE of each part " + " ".join(f"{rmse:.6g}" for rmse in parts))
        if result.unlabelled:
            lines.append(f"skipped: {counted(result.unlabelled, result.noun)} without a number")
        screen().print("\n".join(lines), soft_wrap=True)

    # --- explain ----------------------------------------------------------------------------------

    def explained(
        self, found: NumberExplanation, batch: Batch, i: int, label: Any, against: Any, top: int
    ) -> dict[str, Any]:
        cells = batch.cells(i) or {}
        parts = [(name, float(part)) for name, part in found.largest() if part]
        return batch.identity(i) | {
            "prediction": float(found.prediction),
            "std": float(found.std),
            "start": float(found.base),
            "columns": [[name, cells.get(str(name)), part] for name, part in parts[:top]],
            "other_columns": float(sum(part for _, part in parts[top:])),
            "std_if_known": {str(name): float(std) for name, std in found.if_known.items()},
        }

    def show_explanation(self, record: dict[str, Any], batch: Batch, i: int) -> None:
        rows = [
            (f"{name} = {'missing' if cell is None else cell}", f"{part:+.4g}")
            for name, cell, part in record["columns"]
        ]
        if record["other_columns"]:
            rows.append(("(other columns)", f"{record['other_columns']:+.4g}"))
        rows.append(("(before any column)", f"{record['start']:+.4g}"))
        title = "prediction {prediction:.5g}, standard deviation {std:.4g}".format(**record)
        total = f"{record['prediction']:.5g}"
        show_parts(batch.titled(i, title), "column", "moves the mean by", rows, total)
        for name, std in sorted(record["std_if_known"].items(), key=lambda pair: pair[1]):
            message = f"standard deviation if {name} was known: {std:.4g}"
            screen().print(one_line(message), soft_wrap=True)

    # --- fit and sample ---------------------------------------------------------------------------

    def hits(self, batch: Batch) -> list[bool]:
        return []

    def summary(self) -> str:
        return _KINDS[self.model.target_]

    def draw(self, n: int, seed: int, label: str | None, given: dict[str, Any]) -> tuple[Any, list]:
        X, answers = self.model.sample(n, seed, given=given)
        return X, answers.tolist()
