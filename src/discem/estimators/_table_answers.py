"""Methods of a fitted classifier of tables: an average of its members."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..io.frames import check_table
from . import _input
from ._ask import Asks
from ._average import Answering, answering, explained, log_proba, read_for
from ._explain import ExplainsRows, Explanation, Explanations, Importance, as_rows
from ._joint import normalized
from ._pieces import by_partition, n_classes
from ._preset import ClassifierPreset
from ._shift import Scaling
from ._table_preset import TablePreset
from ._threads import reads, writes
from ._types import Labels, Table, Weights
from .text import TextClassifier


class TableAnswers(Asks, TablePreset, ClassifierPreset):
    """Methods of an average of mixtures."""

    @by_partition(dtype=lambda model: model.classes_.dtype)
    @reads
    def predict(self, X: Table, reject: float | None = None, usual: Any = None) -> np.ndarray:
        """Return the most probable class of each row, or None; see `MixtureClassifier.predict`."""
        check_is_fitted(self)
        found = self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        return self._or_none(found, X, reject, usual)

    def _rows_of(self, known):
        return known  # its members do not all read them alike

    def _share_seen(self, j):
        return 1.0 if self._fitted.seen is None else float(self._fitted.seen[j])

    @by_partition(n_classes)
    @reads
    def predict_proba(self, X: Table) -> np.ndarray:
        """``p(y | x)`` of every class, as (n_samples, n_classes); missing cells are summed out."""
        check_is_fitted(self)
        return np.exp(self.predict_log_proba(X))

    @by_partition(n_classes)
    @reads
    def predict_log_proba(self, X: Table) -> np.ndarray:
        """Return ``ln p(y | x)`` of every class; see `predict_proba`."""
        check_is_fitted(self)
        if self._fitted.texts is None:
            return log_proba(self._answering(X))
        table = check_table(X)
        return self._with_texts(log_proba(self._answering(table)), self._texts_of(table))

    def _answering(self, X: Any) -> list[Answering]:
        """The models that answer for the rows of a table."""
        fitted = self._fitted
        return answering(fitted.members, fitted.complete, read_for(fitted.everyone, X))

    def _texts_of(self, X: Any) -> dict[Any, list[str]]:
        """Return the cells of the text columns."""
        return self.model_.layout_.texts_of(X)

    def _with_texts(self, log_p: np.ndarray, cells: dict[Any, list[str]]) -> np.ndarray:
        """``ln p(y | x)`` where that of all columns but the texts is known."""
        scores, shift = self._scores_with_texts(log_p, cells), self.model_._prior_shift
        return normalized(self._fitted.texts.temperature * scores + shift)

    def _scores_with_texts(self, log_p: np.ndarray, cells: dict[Any, list[str]]) -> np.ndarray:
        """Return the scores of all columns, before the temperature and the class prior."""
        texts = self._fitted.texts
        return texts.scores(log_p, texts.said(cells, self.classes_), *self._log_frequencies())

    def _log_frequencies(self) -> tuple[np.ndarray, np.ndarray]:
        """How frequent classes were, ln f(y), and what the priors of classes have added since."""
        return np.log(self.model_._frequencies()), self.model_._prior_shift

    @by_partition(n_classes)
    @reads
    def predict_joint_log_proba(self, X: Table) -> np.ndarray:
        """Return ``ln p(y, x)`` of every class, for the classifying model.

        For an average of models, or with text columns, it is the sum of `score_samples` and
        `predict_log_proba`.
        """
        check_is_fitted(self)
        if len(self._fitted.everyone) == 1 and self._fitted.texts is None:
            return self.model_.predict_joint_log_proba(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what is amiss is said once
            density = self.score_samples(X)
        return self.predict_log_proba(X) + density[:, None]

    @reads
    def explain(self, X: Table) -> Explanation | Explanations:
        check_is_fitted(self)
        X, texts = as_rows(X), self._fitted.texts
        found = explained(self._answering(X))
        if texts is not None:
            found = texts.explained(found, self._texts_of(X), *self._log_frequencies())
        return found[0] if len(found) == 1 else found.made_for(X)

    explain.__doc__ = ExplainsRows.explain.__doc__

    @writes
    def calibrate(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        """Choose `temperature_` on rows not used in training; predicted classes stay."""
        check_is_fitted(self)
        texts = self._fitted.texts
        if texts is not None:
            table = check_table(X)
            log_p = log_proba(self._answering(table))
            scores = self._scores_with_texts(log_p, self._texts_of(table))
            texts.temperature = self.model_._best_temperature(scores, y, sample_weight)
            if "texts" in self.chosen_:
                self.chosen_["texts"]["temperature"] = texts.temperature
            return self
        n = check_table(X).n_rows
        y = _input.check_y(y, n)
        weights = _input.check_weights(sample_weight, np.empty((n, 0)))
        for members, rows, places in self._answering(X):
            if y.ndim == 2 or not _input.missing_labels(y[places]).all():
                for (model, _), own in zip(members, rows, strict=True):
                    model.calibrate(own, y[places], weights[places])
        self.chosen_["temperature"] = self.model_.temperature_
        return self

    @writes
    def set_class_prior(self, class_prior: Any) -> Self:
        check_is_fitted(self)
        models = [model for model, _ in self._fitted.everyone]
        for model in models if self._fitted.density is None else [*models, self.density_]:
            model.set_class_prior(class_prior)
        return self

    set_class_prior.__doc__ = ClassifierPreset.set_class_prior.__doc__

    def _scaling(self) -> Scaling | None:
        return self._fitted.scaling

    @property
    def importances_(self) -> list[Importance]:
        """The importance of each column in training rows, largest first; see `Importance`."""
        check_is_fitted(self)
        if self._fitted.importances is None:
            raise AttributeError("nothing is known of rows of the training: use fit, with labels")
        return self._fitted.importances

    @property
    def texts_(self) -> dict[Any, TextClassifier]:
        check_is_fitted(self)
        blocks = [] if self._fitted.texts is None else self._fitted.texts.blocks
        return {block.name: block.model for block in blocks if block.model is not None}

    @property
    def members_(self) -> list[dict[str, Any]]:
        check_is_fitted(self)
        fitted = self._fitted
        rows = ["all" if fitted.complete is None else "incomplete"] * len(fitted.members)
        pairs = zip(fitted.everyone, [*rows, "complete"], strict=False)
        return [
            {"weight": weight, "covariance": model.covariance_, "loss": model.loss}
            | {"n_components": model.n_components, "temperature": model.temperature_}
            | {"rows": of}
            for (model, weight), of in pairs
        ]
