"""Commands for models of classes; `_numbers.py` has the same for numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import exp, fsum
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings

from rich.table import Table

from ..exceptions import InputError, OptionError
from ._models import class_names, find_class, refuse
from ._screen import counted, one_line, screen, show_parts

if TYPE_CHECKING:
    import numpy as np

    from .. import Explanation
    from ..report.evaluation import Evaluation
    from ._reader import Batch

_SHOWN_CONFUSIONS = 10
_LONGEST = 60  # characters of a cell that is shown beside its part


class Classes:
    """The methods that commands need for a model of classes."""

    figure = "accuracy"  # the figure of an evaluation, shown for each part of a cross-validation

    def __init__(self, model: Any):
        self.model = model

    @cached_property
    def names(self) -> list[str]:
        return class_names(self.model)

    def refuse(self, path: Any, of_classes: dict[str, Any], of_numbers: dict[str, Any]) -> None:
        """Refuse options for the other kind of answers."""
        refuse(of_numbers, f"is for numbers, and {path} tells classes")

    def ask(self, X: Any) -> Any:
        """Return the predictions of the model for rows."""
        return self.model.predict_log_proba(X)

    # --- predict: how the answer to a row is written ----------------------------------------------

    def prepare(self, proba: bool, quantiles: str | None) -> None:
        """Choose the output columns; `titles` are for CSV, `heads` for people."""
        self.proba = proba
        self.titles = ["label", *(f"p({name})" for name in self.names if proba)]
        self.heads, self.words = ["class", "probability"], self.names

    def rows(self, found: np.ndarray) -> Iterable[np.ndarray]:
        """Yield the output of each row."""
        return found

    def cells(self, row: np.ndarray) -> list[str]:
        return [self._best(row), *(f"{exp(value):.6g}" for value in row if self.proba)]

    def line(self, row: np.ndarray) -> str:
        return one_line(self._best(row)) + (f"\t{exp(row.max()):.4f}" if self.proba else "")

    def record(self, row: np.ndarray) -> dict[str, Any]:
        record: dict[str, Any] = {"label": self._best(row), "probability": exp(row.max())}
        if self.proba:
            record["probabilities"] = dict(zip(self.names, map(exp, row), strict=True))
        return record

    def shown(self, row: np.ndarray) -> list[str]:
        return [one_line(self._best(row)), f"{exp(row.max()):.4f}"]

    def _best(self, row: np.ndarray) -> str:
        return self.names[row.argmax()]

    # --- evaluate ---------------------------------------------------------------------------------

    def evaluation(self, noun: str, y: Sequence[str] | None = None) -> Evaluation:
        """Return the evaluation, for the classes of the model or those in `y`."""
        from ..report.evaluation import Evaluation

        return Evaluation(self.names if y is None else sorted(set(y)), noun)

    def judge(self, result: Evaluation, labels: Sequence[Any], found: np.ndarray) -> None:
        """Add predictions of a model that may know only some of the classes."""
        import numpy as np

        log_proba = np.full((len(found), len(result.classes)), -np.inf)
        log_proba[:, [result.classes.index(name) for name in self.names]] = found
        result.add(labels, log_proba)

    def folds(self, y: np.ndarray, n: int, seed: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """Yield training and held-out rows, n times, with all classes in each if possible."""
        import numpy as np
        from sklearn.model_selection import StratifiedKFold

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

    def show_evaluation(self, result: Evaluation, parts: list[float]) -> None:
        console, noun = screen(), result.noun
        classes = Table("class", title="Classes")
        for name in ("precision", "recall", "F1", f"{noun}s"):
            classes.add_column(name, justify="right")
        for score in result.by_class():
            figures = (score.precision, score.recall, score.f1)
            shown = ["-" if figure is None else f"{figure:.3f}" for figure in figures]
            classes.add_row(one_line(score.label), *shown, f"{score.support:,}")
        console.print(classes)
        if confusions := result.confusions(_SHOWN_CONFUSIONS):
            wrong = Table("class", "taken for", title="Most frequent confusions")
            wrong.add_column(f"{noun}s", justify="right")
            for label, found, times in confusions:
                wrong.add_row(one_line(label), one_line(found), f"{times:,}")
            console.print(wrong)
        log_loss = "-" if result.log_loss is None else f"{result.log_loss:.4f}"
        lines = [
            f"accuracy {result.accuracy:.4f}  log-loss {log_loss}  macro-F1 {result.macro_f1:.4f}  "
            f"{noun}s {result.documents:,}"
        ]
        if parts:
            lines.append("accuracy of each part " + " ".join(f"{each:.4f}" for each in parts))
        if result.unlabelled:
            lines.append(f"skipped: {counted(result.unlabelled, noun)} without a label")
        if result.unknown:
            counts = ", ".join(f"{one_line(name)} ({n:,})" for name, n in result.unknown.items())
            lines.append(
                "errors because the model does not know the label (not in the log-loss): " + counts
            )
        console.print("\n".join(lines), soft_wrap=True)

    # --- explain ----------------------------------------------------------------------------------

    def explained(
        self, found: Explanation, batch: Batch, i: int, label: Any, against: Any, top: int
    ) -> dict[str, Any]:
        """Return an explanation as plain data."""
        names, scores = self.names, found.scores
        if len(names) < 2:
            raise InputError(
                f"the model knows a single class, {names[0]!r}: nothing to set it against"
            )
        ranked = [names[place] for place in (-scores).argsort()]
        label = label or next(name for name in ranked if name != against)
        against = against or next(name for name in ranked if name != label)
        if label == against:
            raise OptionError(f"--label and --against are both {label!r}")
        one, other = find_class(self.model, label), find_class(self.model, against)
        parts, cells = _ranked(found, one, other), batch.cells(i)
        if cells is None:
            shown = parts
        else:  # columns that the model does not look at add nothing
            shown = [[name, cells.get(name), part] for name, part in parts if part]
        names_of_texts = getattr(self.model, "texts_", {})
        texts = {str(n): _ranked(found.text(n), one, other)[:top] for n in names_of_texts}
        places = [names.index(label), names.index(against)]
        start, odds = found.intercept[places], scores[places]
        return batch.identity(i) | {
            "label": label,
            "probability": exp(odds[0] - scores.max()) / fsum(map(exp, scores - scores.max())),
            "against": against,
            "log_odds": float(odds[0] - odds[1]),
            "start": float(start[0] - start[1]),
            f"{batch.part}s": shown[:top],
            f"other_{batch.part}s": float(sum(part for *_, part in shown[top:])),
            **({"texts": texts} if texts else {}),
        }

    def show_explanation(self, record: dict[str, Any], batch: Batch, i: int) -> None:
        from ..estimators._average import REST

        part, rows = batch.part, []
        for name, *cell, added in record[f"{part}s"]:
            shown = [name, *("missing" if each is None else _cut(str(each)) for each in cell)]
            rows.append((REST if name == REST else " = ".join(shown), f"{added:+.3f}"))
            for word, some in record.get("texts", {}).get(name, []):  # parts of this column
                rows.append((f"  {word}", f"({some:+.3f})"))
        if record[f"other_{part}s"]:
            rows.append((f"(other {part}s)", f"{record[f'other_{part}s']:+.3f}"))
        rows.append((f"(before any {part})", f"{record['start']:+.3f}"))
        title = "{label} against {against}, probability {probability:.4f}".format(**record)
        title = batch.titled(i, title)
        show_parts(title, part, "log-odds", rows, total=f"{record['log_odds']:+.3f}")

    # --- fit and sample ---------------------------------------------------------------------------

    def hits(self, batch: Batch) -> list[bool]:
        """Return whether each labelled row is predicted correctly."""
        found = map(str, self.model.predict(batch.X).tolist())
        pairs = zip(found, batch.labels, strict=True)
        return [one == label for one, label in pairs if label is not None]

    def summary(self) -> str:
        """Return a summary in a few words."""
        return counted(len(self.model.classes_), "class")

    def draw(self, n: int, seed: int, label: str | None, given: dict[str, Any]) -> tuple[Any, list]:
        """Return generated rows and their answers."""
        y = None if label is None else find_class(self.model, label)
        X, labels = self.model.sample(n, seed, y=y, given=given)
        classes = self.model.classes_.tolist()
        return X, [self.names[classes.index(each)] for each in labels.tolist()]


def _cut(cell: str) -> str:
    """Return the start of a long text."""
    return cell if len(cell) <= _LONGEST else f"{cell[: _LONGEST - 3]}..."


def _ranked(found: Explanation, one: Any, other: Any) -> list[list[Any]]:
    """Return the contributions to the log-odds of two classes, largest first."""
    parts = sorted(found.against(one, other), key=lambda part: -abs(part[1]))
    return [[name, float(part)] for name, part in parts]
