"""How an estimator learns from a stream: one pass over some rows after the other."""

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
    """Learns rows as they come; classes and features that are new find their place."""

    average: Any
    random_state: Any
    _mixed: bool
    _seen: float  # the weight of all rows so far
    _weight_unit: float
    # what an estimator of its own does to begin, and by which rule it learns
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
        """Take one pass, in the order given, over the next rows of a stream.

        What a stream lacks is filled in as follows. Moments that the prior takes from the data are
        those of the first batch. The prior is spread over the rows seen so far. A class never seen
        before starts at the prior's centre with the mass of one row among those seen, and a running
        average then forgets what came before; while there is a single class its rows are counted
        (NLL). A row of the mean weight of the first batch takes a whole step. After `fit`, a
        running average goes on as if that had been one pass.

        Rows should come in no particular order: labels in long runs teach one class at a time, and
        raise a `SortedStreamWarning`.

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
        """The first half of `partial_fit`: look at the rows, learn nothing, change nothing.

        With `grows`, X may have more columns than the model, which has them when it has learnt.
        """
        self._check_options()
        fresh = not self.__sklearn_is_fitted__()
        return self._check_data(X, y, sample_weight, fresh, classes, stream=True, grows=grows)

    @writes
    def learn_batch(self, batch: Batch) -> Self:
        """The second half of `partial_fit`: take one pass over rows that were checked."""
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
            projection=self._resolve_projection(loss, caution=0.0),  # a new class is in a hurry
            most=learner.engine.largest(batch.rows, learner.state) if self._grows() else 0,
        )
        self._watch_order(batch.targets.codes[order])
        learner.batch(Data(batch.rows, batch.targets, batch.weights / self._weight_unit), order)
        return self

    def _average(self, family: Family) -> None:
        """Keep a running average from now on, if steps of some rows want one."""
        if self.average == "auto" and self._auto_average(family):
            self.learner_.average()

    @writes
    def grow(self, n_features: int) -> None:
        """Make room for features that the model has not met, if there are so many in all."""
        if n_features > self.n_features_in_:
            self.learner_.restart(self.learner_.state.with_features(n_features))
            self.n_features_in_ = n_features

    def _watch_order(self, codes: np.ndarray) -> None:
        """Warn of labels that come in long runs, where their order matters."""
        if self._runs is None:
            self._runs = LabelRuns(np.zeros(len(self.classes_)))
        self._runs.add(codes)
        if self._mixed or not self._is_generative():
            self._runs.warn()

    def _steps_of_a_pass(self) -> int:
        """How much the rows seen so far would count, if each had been seen once."""
        rows = math.ceil(self._seen / self._weight_unit)
        return min(self.learner_.rule.counted(rows), self.learner_.t)

    def _add_classes(self, classes: np.ndarray) -> None:
        """Make room for classes that the model has not met; `classes` are all."""
        if len(classes) == len(self.classes_):
            return
        order = places_of(classes, self.classes_)
        state = self.learner_.state
        mass = float(state.class_counts.sum()) / max(self._seen, 1.0)
        self.learner_.restart(state.with_classes(order, mass))
        self.learner_.forget(len(self.classes_))  # it is of models that did not know these classes
        self.class_count_ = np.append(self.class_count_, 0.0)[order]
        if self._runs is not None:
            self._runs.arrange(order)
        self._prior_shift = np.append(self._prior_shift, 0.0)[order]
        self.__dict__.pop("_shift", None)
        self.classes_ = classes
