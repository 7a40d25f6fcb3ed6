"""Rows as an estimator reads them, before anything is learnt from them."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import models
from ..exceptions import OptionError
from ..families import Family
from ..io.labels import join_labels, known_labels, read_labels
from ..targets import Targets
from . import _input
from ._by_label import class_weights
from ._joint import Joint
from ._pieces import CheckedPieces
from ._tables import layout_of, width


class Batch(NamedTuple):
    """Rows that were checked, before anything is learnt from them."""

    X: Any
    y: Any  # checked labels, or a matrix of what is known of them
    given: np.ndarray  # the weights as they were given
    weights: np.ndarray  # and with those of classes, and of having no label
    targets: Targets
    classes: np.ndarray
    family: Family
    rows: Any  # X as the family views it
    found: dict[str, Any]  # fitted attributes that the input determines
    whole: CheckedPieces | None = None  # all rows, of which these are a sample: on workers

    @property
    def layout(self) -> Any:
        """What the columns are, of a table that was read by its columns; None of other rows."""
        return layout_of(self.X)

    @property
    def width(self) -> Any:
        """The number of features, as the family counts them."""
        return self.X.shape[1] if self.layout is None else width(self.layout)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum()) if self.whole is None else self.whole.total

    @property
    def n_given(self) -> int:
        """How many rows were given a weight."""
        return int(np.count_nonzero(self.given)) if self.whole is None else self.whole.n_given

    @property
    def answers(self) -> Any:
        """What is known of the answers, as another model of these rows takes it."""
        if self.targets.plain:
            return _input.Coded(self.classes, self.targets.codes)
        return _input.Shares(self.y, self.classes)

    def unit(self) -> float:
        """The weight of a row that takes a whole step: the mean of the labelled ones."""
        if self.whole is not None:
            return self.whole.unit
        rows = self.weights > 0
        labelled = rows & self.targets.labelled
        return float(self.weights[labelled if labelled.any() else rows].mean())

    def without(self, held: np.ndarray) -> Batch:
        """The same rows, of which some are not to be trained on."""
        weights = self.weights.copy()
        weights[held] = 0.0
        whole = None if self.whole is None else self.whole.without(held)
        return self._replace(weights=weights, whole=whole)

    def collect(self, n_features: Any, n_classes: int) -> models.Tally:
        """The statistics of all labelled rows."""
        collect = partial(models.collect, self.family, n_features=n_features, n_classes=n_classes)
        if self.whole is None or self.whole.complete:
            return collect(self.rows, self.targets, self.weights)
        return self.whole.collect(collect)


class ReadsRows(Joint):
    """Looks at rows, labels and weights, and changes nothing: what is wrong with them is said."""

    class_weight: Any

    def _choose_family(self, X) -> Family:
        raise NotImplementedError

    def _auto_unlabelled(self, family: Family, ratio: float) -> float:
        """The weight of an unlabelled row, of which there are `ratio` for each labelled one."""
        raise NotImplementedError

    def _known_family(self) -> Family:
        return self.learner_.state.family

    def _check_data(
        self, X, y, sample_weight, fresh: bool, classes=None, stream=False, grows=False, part=False
    ) -> Batch:
        """Look at the input, and change nothing: what is wrong with it is said here.

        A `part` of the rows may have no labels, and no weight; all `classes` are known then.
        """
        family = self._choose_family(X) if fresh else self._known_family()
        X, found = self._read(X, family, fresh, grows)
        y = _input.coded(y) if stream else y
        y, named = _input.read_y(y, X.shape[0], needed=not part and (fresh or not stream))
        given = _input.check_weights(sample_weight, X, part)
        known = _input.find_classes(y) if fresh or y.ndim == 1 or not stream else self.classes_
        known = known if named is None else named
        if part:
            known = classes
        elif classes is not None:
            known = join_labels(known, known_labels(read_labels(classes, "classes")))
        if stream and not fresh:
            known = join_labels(self.classes_, known)
        if named is not None:
            y = _input.spread_over(y, named, known)
        targets = _input.encode(y, known)
        weights = given * self._row_weights(targets, known, family)
        rows = self._view(X, family)
        return Batch(X, y, given, weights, targets, known, family, rows, found)

    def _row_weights(self, targets: Targets, classes, family: Family) -> np.ndarray | float:
        """What the weights of rows are multiplied by, for their class or for having none."""
        weights = self._class_weights(targets, classes)
        none, weight = ~targets.labelled, self.unlabelled_weight
        if not none.any():
            return weights
        if weight == "auto":
            ratio = none.sum() / max((~none).sum(), 1)
            weight = self._auto_unlabelled(family, float(ratio))
        return weights * np.where(none, weight, 1.0)

    def _class_weights(self, targets: Targets, classes) -> np.ndarray | float:
        if self.class_weight is None:
            return 1.0
        if not targets.plain:
            raise OptionError("class_weight goes with plain labels, not with label sets or shares")
        codes = targets.codes[targets.codes >= 0]
        if not len(codes):
            return 1.0
        counts = np.bincount(codes, minlength=len(classes))
        by_class = class_weights(self.class_weight, classes, counts)
        by_class = np.append(by_class, 1.0)  # the last is for unlabelled rows
        if not (np.isfinite(by_class).all() and (by_class >= 0).all() and by_class[codes].any()):
            raise OptionError(f"class_weight={self.class_weight!r} must be numbers >= 0, not all 0")
        return by_class[targets.codes]
