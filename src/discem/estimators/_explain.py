"""Why a row gets its probabilities: the exact parts of its score."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..exceptions import InputError, OptionError
from ..io.frames import Table
from ..io.rows import dense_rows
from ._by_label import place_of
from ._components import joint_scores
from ._threads import reads

_AT_ONCE = 256  # columns: of 10 000, a row for each would be much memory


class Explanation(NamedTuple):
    """Why a document or a row gets its probabilities: the exact parts of its score.

    ``scores = intercept + contributions.sum(axis=0)``, and ``softmax(scores)`` are the
    probabilities that the classifier predicts. What a word or column adds to all classes alike is
    left out, so it says how much more it speaks for a class than for the average one.
    """

    classes: np.ndarray
    words: list  # or names of columns
    contributions: np.ndarray  # (words or columns, classes)
    intercept: np.ndarray  # (classes,)

    @property
    def columns(self) -> list:
        """The names of the columns, where a row of a table is explained."""
        return self.words

    @property
    def scores(self) -> np.ndarray:
        return self.intercept + self.contributions.sum(axis=0)

    def against(self, label=None, other=None) -> list[tuple[Any, float]]:
        """What each word or column adds to the log-odds of `label` against `other`, largest first.

        By default the most probable class stands against the most probable one besides it.
        """
        one = int(self.scores.argmax()) if label is None else place_of(self.classes, label)
        if other is None:
            rest = self.scores.copy()
            rest[one] = -np.inf
            two = int(rest.argmax())
        else:
            two = place_of(self.classes, other)
        parts = self.contributions[:, one] - self.contributions[:, two]
        order = np.argsort(-parts, kind="stable")
        return [(self.words[j], float(parts[j])) for j in order]


def telling_words(model: Any, n: int, places: Iterable[int]) -> list[list[tuple[Any, float]]]:
    """For each of some classes, by place, the words that speak most for it, and how much.

    It is what the average occurrence of a word adds to the score of the class, beyond what it adds
    to the average class, times how often the class uses the word.
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
    model: Any, row: Any, alone: Callable[[np.ndarray], Any], n_columns: int
) -> np.ndarray:
    """What each column adds to ``ln p(y, x)`` of a row, (columns, classes), exactly.

    `row` is the row by itself; `alone` gives it once for each of some columns, all other cells
    missing, and once without any cell. Of a mixture it is what the column adds to each component,
    weighed by the responsibilities of the components within the class for the whole row.
    """
    added = []
    for columns in np.split(np.arange(n_columns), range(_AT_ONCE, n_columns, _AT_ONCE)):
        scores = joint_scores(model, alone(columns))
        added.append(scores[:-1] - scores[-1])
    if not model.is_mixed:
        return np.concatenate(added)
    first, code = model.first, model.code
    joint = joint_scores(model, row)[0]
    top = np.maximum.reduceat(joint, first[:-1])
    share = np.exp(joint - top[code])
    share /= np.add.reduceat(share, first[:-1])[code]
    return np.add.reduceat(np.concatenate(added) * share, first[:-1], axis=1)


class ExplainsRows:
    """Estimators of rows whose cells may be missing: each column has its own part in the score."""

    @reads
    def explain(self, row) -> Explanation:
        """What each column adds to the score of each class, exactly; see `Explanation`.

        A missing cell adds nothing, unless it is informative that it is missing. Of a mixture, a
        column adds what it adds to each component, weighed by the responsibilities of the
        components for the whole row.

        Parameters
        ----------
        row : array-like of shape (n_features,) or (1, n_features), a dict, or a table of one row

        Returns
        -------
        Explanation
        """
        check_is_fitted(self)
        me: Any = self
        if isinstance(row, dict):
            row = [row]
        elif not _is_table(row):
            row = np.atleast_2d(np.asarray(row, dtype=getattr(row, "dtype", None)))
        whole = me._rows(row)
        if whole.n_rows != 1:
            raise InputError(f"explain takes one row at a time, and this has {whole.n_rows}")
        names, alone = me._single_columns(whole)
        model = me.learner_.model
        parts = me.temperature_ * contributions(model, whole, alone, len(names))
        parts -= parts.mean(axis=1, keepdims=True)
        scores = me.temperature_ * me.learner_.score(whole)[0] + me._prior_shift
        return Explanation(me.classes_, names, parts, scores - parts.sum(axis=0))

    def _single_columns(self, row: Any) -> tuple[list, Callable[[np.ndarray], Any]]:
        """The names of the columns, and `alone` of `contributions`."""
        me: Any = self
        family = me.learner_.state.family
        if not family.accepts.missing:
            raise OptionError(f"rows of the family {family.name!r} are not explained by column")
        d = row.values.shape[1]

        def alone(columns: np.ndarray) -> Any:
            cells = np.full((len(columns) + 1, d), np.nan)
            cells[np.arange(len(columns)), columns] = row.values[0, columns]
            return dense_rows(cells)

        return getattr(me, "feature_names_in_", np.arange(d)).tolist(), alone


def _is_table(row: Any) -> bool:
    """Whether its columns have names."""
    if isinstance(row, Table) or hasattr(row, "columns") or hasattr(row, "column_names"):
        return True
    return isinstance(row, list) and len(row) > 0 and isinstance(row[0], dict)
