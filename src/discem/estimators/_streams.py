"""Learn from a stream: one pass over each batch of rows."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from .. import models
from ..engines import Data
from ..families import Family
from ..io.labels import places_of
from ..losses import NLL
from ._batch import Batch, ReadsRows
from ._runs import LabelRuns
from ._threads import reads, writes
from ._types import Labels, Table, Weights


class Streams(ReadsRows):
    """Learn rows as they come; new classes and features are added."""

    average: Any
    random_state: Any
    _mixed: bool
    _seen: float  # the weight of all rows so far
    _weight_unit: float
    # how an estimator of this kind starts, and its rule of steps
    _auto_average: Any
    _check_options: Any
    _grows: Any
    _is_generative: Any
    _known_loss: Any
    _resolve_projection: Any
    _spread: Any
    _start: Any

    @writes
    def partial_fit(
        self, X: Table, y: Labels, classes: Any = None, sample_weight: Weights = None
    ) -> Self:
        """Take one pass over the next rows of a stream, in the order given.

        Streams differ from `fit` as follows. A prior that depends on the data uses the first batch.
        The prior is spread over the rows seen so far. A new class starts at the centre of the prior
        with the mass of one row, and the running average forgets old states. While there is one
        class only, its rows are learnt by NLL. A row with the mean weight of the first batch takes
        a whole step. After `fit`, the running average continues as if `fit` had taken one pass.

        Rows should come in random order: long runs of the same label teach one class at a time, and
        cause a `SortedStreamWarning`.

        Parameters
        ----------
        X, sample_weight : as for `fit`
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            As for `fit`. After the first batch all rows may be unlabelled, and the columns of a
            matrix are those of `classes_`.
        classes : array-like, optional
            Classes to know from the start. Not needed: new classes may appear in any batch.

        Returns
        -------
        self
        """
        return self.learn_batch(self.check_batch(X, y, classes, sample_weight))

    @reads
    def check_batch(
        self,
        X: Table,
        y: Labels,
        classes: Any = None,
        sample_weight: Weights = None,
        grows: bool = False,
    ) -> Batch:
        """Check the rows of `partial_fit` without learning or changing anything: its first half.

        With `grows`, X may have more columns than the model, which adds them when it learns.
        """
        self._check_options()
        fresh = not self.__sklearn_is_fitted__()
        return self._check_data(X, y, sample_weight, fresh, classes, stream=True, grows=grows)

    @writes
    def learn_batch(self, batch: Batch) -> Self:
        """Take one pass over checked rows: the second half of `partial_fit`."""
        order = np.flatnonzero(batch.weights > 0)
        if not self.__sklearn_is_fitted__():
            rng = check_random_state(self.random_state)
            self._start(batch, batch.unit(), rng, stream=True)
            self._seen = 0.0
        else:
            if not self.learner_.stream:  # after `fit`: its many passes would outweigh all to come
                self._average(batch.family)
                self.learner_.forget(self._steps_of_a_pass())
            self.grow(batch.found.get("n_features_in_", 0))
            self._add_classes(batch.classes)
            parts = list(batch.targets.parts(batch.weights))
            self.class_count_ = self.class_count_ + models.count_classes(parts, len(self.classes_))
        learner = self.learner_
        learner.engine = self._engine()
        learner.own()
        self._seen += float(batch.weights.sum())
        loss = self._known_loss() if len(self.classes_) > 1 else NLL()
        learner.rule = learner.rule._replace(
            loss=loss,
            n=self._spread(self._seen),
            projection=self._resolve_projection(loss, caution=0.0),  # a new class must move fast
            most=learner.engine.largest(batch.rows, learner.state) if self._grows() else 0,
        )
        self._watch_order(batch.targets.codes[order])
        learner.batch(Data(batch.rows, batch.targets, batch.weights / self._weight_unit), order)
        return self

    def _average(self, family: Family) -> None:
        """Start a running average, if the steps need one."""
        if self.average == "auto" and self._auto_average(family):
            self.learner_.average()

    @writes
    def grow(self, n_features: int) -> None:
        """Add features until the model has `n_features`."""
        if n_features > self.n_features_in_:
            self.learner_.restart(self.learner_.state.with_features(n_features))
            self.n_features_in_ = n_features

    def _watch_order(self, codes: np.ndarray) -> None:
        """Warn if labels come in long runs and their order matters."""
        if self._runs is None:
            self._runs = LabelRuns(np.zeros(len(self.classes_)))
        self._runs.add(codes)
        if self._mixed or not self._is_generative():
            self._runs.warn()

    def _steps_of_a_pass(self) -> int:
        """Return how much the rows seen so far count if each was seen once."""
        rows = math.ceil(self._seen / self._weight_unit)
        return min(self.learner_.rule.counted(rows), self.learner_.t)

    def _add_classes(self, classes: np.ndarray) -> None:
        """Add the classes that are new to the model; `classes` are all classes."""
        if len(classes) == len(self.classes_):
            return
        order = places_of(classes, self.classes_)
        state = self.learner_.state
        mass = float(state.class_counts.sum()) / max(self._seen, 1.0)
        self.learner_.restart(state.with_classes(order, mass))
        self.learner_.forget(len(self.classes_))  # the average is of models without these classes
        self.class_count_ = np.append(self.class_count_, 0.0)[order]
        if self._runs is not None:
            self._runs.arrange(order)
        self._prior_shift = np.append(self._prior_shift, 0.0)[order]
        self.__dict__.pop("_shift", None)
        self.classes_ = classes
