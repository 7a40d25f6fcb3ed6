"""Explain predictions: the exact parts of the score of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from .._kinds import savable
from ..exceptions import InputError, OptionError
from ..io.frames import Table, check_table
from ..io.labels import plain_labels
from ..io.making import make_table
from ..io.rows import dense_rows
from ..io.vectors import has_names
from ._by_label import place_of
from ._components import joint_scores
from ._threads import reads
from ._types import Label
from ._views import html_of, text_of

_AT_ONCE = 256  # columns, to bound memory: 10 000 columns would need as many rows
_ROWS = 8192  # rows to score at a time


class Explanation(NamedTuple):
    """Explain the probabilities of a document or a row by the exact parts of its score.

    ``scores = intercept + contributions.sum(axis=0)``, and ``softmax(scores)`` are the predicted
    probabilities. Contributions are relative to the average class: what a word or column adds to
    all classes alike is left out. When printed, an explanation lists what speaks most for and
    against the most probable class. Notebooks show it as bars.
    """

    classes: np.ndarray
    names: list  # of columns, or words
    contributions: np.ndarray  # (words or columns, classes)
    intercept: np.ndarray  # (classes,)
    words_of: Any = None  # function from a text column to the explanation of its part

    def text(self, column: Any) -> Explanation:
        """Return what each word of a text column adds; with the intercept, the column's part."""
        if self.words_of is None:
            raise InputError("there are no text columns")
        return self.words_of(column)

    @property
    def columns(self) -> list:
        """The names of the columns, for a row of a table."""
        return self.names

    @property
    def words(self) -> list:
        """The words, for a document."""
        return self.names

    @property
    def scores(self) -> np.ndarray:
        return self.intercept + self.contributions.sum(axis=0)

    def against(self, label: Label = None, other: Label = None) -> list[tuple[Any, float]]:
        """Return contributions to the log-odds of `label` against `other`, largest first.

        By default, compare the most probable class with the second most probable one.
        """
        one, two = self._places(label, other)
        parts = self.contributions[:, one] - self.contributions[:, two]
        order = np.argsort(-parts, kind="stable")
        return [(self.names[j], float(parts[j])) for j in order]

    def _places(self, label: Any, other: Any) -> tuple[int, int]:
        one, two = _pair(self.classes, self.scores[None], label, other)
        return int(one[0]), int(two[0])

    def __repr__(self) -> str:
        return self._shown_by(text_of) or f"{self.classes[0]}, the only class"

    def _repr_html_(self) -> str | None:
        return self._shown_by(html_of)

    def _shown_by(self, show: Callable[[str, list, float], str]) -> str | None:
        """Return a line for the most probable class against the next; None if there is only one."""
        if len(self.classes) < 2:
            return None
        one, two = self._places(None, None)
        start = float(self.intercept[one] - self.intercept[two])
        p = softmax(self.scores)[one]
        labels = plain_labels(self.classes)
        title = f"{labels[one]}, probability {p:.3f}; log-odds against {labels[two]}"
        return show(title, self.against(), start)


@savable
class Importance(NamedTuple):
    """The importance of a column: the size of its contributions to log-odds, for or against."""

    column: Any
    mean: float  # of absolute values, over rows
    spread: float  # their standard deviation


class Explanations(Sequence):
    """Explanations of many rows. Indexing returns the `Explanation` of one row.

    Parameters
    ----------
    classes : array of shape (n_classes,)
    columns : list
    contributions : array of shape (n_samples, n_columns, n_classes)
    intercepts : array of shape (n_samples, n_classes)
    """

    def __init__(self, classes, columns, contributions, intercepts):
        self.classes, self.columns = classes, columns
        self.contributions, self.intercepts = contributions, intercepts
        self._like: tuple[str, Any] = "pandas", None  # library of the rows, and their index
        self.words_of: list[Any] = [None] * len(contributions)  # by row, see `Explanation`

    def __len__(self) -> int:
        return len(self.contributions)

    def __getitem__(self, i):
        if isinstance(i, slice):
            part = self.contributions[i], self.intercepts[i]
            found = Explanations(self.classes, self.columns, *part)
            found.words_of = self.words_of[i]
            return found
        part = self.contributions[i], self.intercepts[i]
        return Explanation(self.classes, self.columns, *part, self.words_of[i])

    def __repr__(self) -> str:
        return f"Explanations of {len(self)} rows by {len(self.columns)} columns"

    @property
    def scores(self) -> np.ndarray:
        return self.intercepts + self.contributions.sum(axis=1)

    def to_frame(self, label=None, other=None):
        """Return the contributions to the log-odds of `label` against `other`, one line per row.

        By default each row compares its two most probable classes. "start" is the value without any
        column; "start" and all columns add up to "log_odds".

        Returns
        -------
        table of the library of X
            For an array X, an array with "log_odds", "start", and the columns.
        """
        one, two = _pair(self.classes, self.scores, label, other)
        rows, odds = np.arange(len(self)), self._log_odds(one, two)
        start = self.intercepts[rows, one] - self.intercepts[rows, two]
        found = {"log_odds": start + odds.sum(axis=1), "start": start}
        (backend, index), labels = self._like, {"label": one, "against": two}
        if backend != "array":
            shown = self.classes.astype(object)
            found = {name: shown[place] for name, place in labels.items()} | found
        for name, part in zip(self.columns, odds.T, strict=True):
            found[f"column {name}" if name in found else name] = part
        frame = make_table(backend, list(found), list(found.values()))
        return frame if index is None else frame.set_axis(index, axis=0)

    def importances(self) -> list[Importance]:
        """Return the importance of each column in these rows, largest first.

        It is the mean of the absolute values of `to_frame`, and their standard deviation.
        """
        odds = np.abs(self._log_odds(*_pair(self.classes, self.scores, None, None)))
        mean, spread = odds.mean(axis=0), odds.std(axis=0)
        order = np.argsort(-mean, kind="stable")
        return [Importance(self.columns[j], float(mean[j]), float(spread[j])) for j in order]

    def _log_odds(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        rows = np.arange(len(self))
        return self.contributions[rows, :, one] - self.contributions[rows, :, two]

    def made_for(self, X: Any) -> Explanations:
        """Remember the library of the rows."""
        backend = check_table(X).backend
        self._like = backend, X.index if backend == "pandas" else None
        return self


def _pair(
    classes: np.ndarray, scores: np.ndarray, label: Any, other: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of two classes per row: the given ones, or the most probable ones."""
    if len(classes) < 2:
        raise InputError("there is a single class: nothing to set it against")
    rest, rows = scores.copy(), np.arange(len(scores))
    if other is not None:
        two = np.full(len(rows), place_of(classes, other))
        rest[rows, two] = -np.inf
    one = rest.argmax(axis=1) if label is None else np.full(len(rows), place_of(classes, label))
    if other is None:
        rest[rows, one] = -np.inf
        two = rest.argmax(axis=1)
    return one, two


def telling_words(model: Any, n: int, places: Iterable[int]) -> list[list[tuple[Any, float]]]:
    """Return, for each given class, the words that speak most for it, and their scores.

    The score of a word is what one occurrence adds to the score of the class, beyond what it adds
    to the average class, times the frequency of the word in the class.
    """
    check_is_fitted(model)
    log_p, names = model._words()
    mean, found = log_p.mean(axis=0), []
    for k in places:
        scores = np.exp(log_p[k]) * (log_p[k] - mean)
        best = np.argsort(-scores, kind="stable")[:n]
        found.append([(names[j], float(scores[j])) for j in best.tolist()])
    return found


def contributions(
    model: Any, rows: Any, alone: Callable[[Any, np.ndarray], Any], n_columns: int
) -> np.ndarray:
    """Return what each column adds to ``ln p(y, x)`` of rows, (n, columns, classes), exactly.

    `alone` gives the rows once for each of some columns, with all other cells missing, and once
    without any cell. For a mixture, the contributions to components are averaged, weighted by the
    responsibilities of the components within the class for the whole row.
    """
    found = [np.empty((0, n_columns, len(model.first) - 1))]
    at_once = max(_ROWS // min(n_columns, _AT_ONCE), 1)
    for begin in range(0, rows.n_rows, at_once):
        some = rows.take(np.arange(begin, min(begin + at_once, rows.n_rows)))
        added = []
        for columns in np.split(np.arange(n_columns), range(_AT_ONCE, n_columns, _AT_ONCE)):
            scores = joint_scores(model, alone(some, columns))
            scores = scores.reshape(len(columns) + 1, some.n_rows, -1)
            added.append(scores[:-1] - scores[-1])
        by_component = np.concatenate(added).transpose(1, 0, 2)
        if model.is_mixed:
            first, code = model.first, model.code
            joint = joint_scores(model, some)
            share = np.exp(joint - np.maximum.reduceat(joint, first[:-1], axis=1)[:, code])
            share /= np.add.reduceat(share, first[:-1], axis=1)[:, code]
            by_component = np.add.reduceat(by_component * share[:, None], first[:-1], axis=2)
        found.append(by_component)
    return np.concatenate(found)


class ExplainsRows:
    """Estimators for rows with missing cells: each column has its own part in the score."""

    @reads
    def explain(self, X: Table) -> Explanation | Explanations:
        """Return what each column adds to the score of each class, exactly; see `Explanation`.

        A missing cell adds nothing, unless missing cells are informative. For a mixture, the
        contributions to components are averaged, weighted by their responsibilities for the whole
        row.

        Parameters
        ----------
        X : table, array, array-like of shape (n_features,), or dict
            One row, or several.

        Returns
        -------
        Explanation for one row, Explanations for several
        """
        check_is_fitted(self)
        X = as_rows(X)
        found = self._explained(X)
        return found[0] if len(found) == 1 else found.made_for(X)

    def _explained(self, X: Any) -> Explanations:
        me: Any = self
        rows = me._rows(X)
        names, alone = me._single_columns(rows)
        model = me.learner_.model
        parts = me.temperature_ * contributions(model, rows, alone, len(names))
        parts -= parts.mean(axis=2, keepdims=True)
        scores = me.temperature_ * me.learner_.score(rows) + me._prior_shift
        return Explanations(me.classes_, names, parts, scores - parts.sum(axis=1))

    def _single_columns(self, rows: Any) -> tuple[list, Callable[[Any, np.ndarray], Any]]:
        """Return the names of the columns, and the function `alone` for `contributions`."""
        me: Any = self
        family = me.learner_.state.family
        if not family.accepts.missing:
            raise OptionError(f"rows of the family {family.name!r} are not explained by column")
        d = rows.values.shape[1]

        def alone(some: Any, columns: np.ndarray) -> Any:
            cells = np.full((len(columns) + 1, some.n_rows, d), np.nan)
            cells[np.arange(len(columns)), :, columns] = some.values[:, columns].T
            return dense_rows(cells.reshape(-1, d))

        return getattr(me, "feature_names_in_", np.arange(d)).tolist(), alone


def as_rows(X: Any) -> Any:
    """Return a table; a single row becomes a table of one row."""
    if isinstance(X, dict):
        return [X]
    if isinstance(X, Table) or has_names(X):
        return X
    return np.atleast_2d(np.asarray(X, dtype=getattr(X, "dtype", None)))
