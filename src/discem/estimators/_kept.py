"""The fitted state of an estimator: what goes to files, and its validation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import models
from .._checks import check_array, check_count, check_number, demand
from ..families import Family
from . import _input
from ._options import of
from ._runs import LabelRuns
from ._shift import LabelShift
from ._streams import Streams
from ._views import History


class Kept(Streams):
    """Know the fitted attributes of an estimator, and validate them."""

    _model: ClassVar[type] = models.Mixture
    _resolve_prior: Any

    _attributes: ClassVar[tuple[str, ...]] = (
        *("classes_", "class_count_", "n_features_in_", "feature_names_in_", "learner_"),
        *("temperature_", "_prior_shift", "_shift", "_weight_unit", "_seen", "_runs"),
    )

    @property
    def history_(self) -> History:
        return History(self.learner_.history)

    stream_ = of("learner_.stream")
    n_iter_ = of("learner_.epochs")

    def _adopt(self, model: Kept) -> None:
        """Take over the fitted state of another estimator of this class."""
        for name in self._attributes:
            if name in vars(model):
                setattr(self, name, vars(model)[name])
            elif name in vars(self):
                delattr(self, name)

    def _check_fitted(self) -> None:
        """Validate the fitted model, which may come from any file."""
        self._check_options()
        loss, family = self._known_loss(), self._known_family()
        K, d = _input.check_classes(self.classes_), self.n_features_in_
        check_count("n_features_in_", d, least=1)
        kind = type(self.learner_.state)
        demand(kind is self._model, f"it holds a {kind.__name__}, not a {self._model.__name__}")
        self._check_family(family)
        self.learner_.check(K, self._width())
        self._resolve_prior(family, self._width())
        self._resolve_projection(loss)
        given = self.class_weight
        if not isinstance(given, dict):
            demand(given is None or given == "balanced", "class_weight is unknown")
        for weight in given.values() if isinstance(given, dict) else ():
            check_number("class_weight", weight, least=0.0)
        check_array("class_count_", self.class_count_, (K,), least=0.0)
        check_array("_prior_shift", self._prior_shift, (K,), least=-1e3, most=100.0)
        demand(self._prior_shift.max() > -100.0, "no class has a prior")
        if "_shift" in vars(self):
            demand(isinstance(self._shift, LabelShift), "its shift is none")
            self._shift.check(self.classes_)
        for name in ("temperature_", "_weight_unit"):
            check_number(name, getattr(self, name), above=0.0)
        check_number("_seen", self._seen, least=0.0)
        if self._runs is not None:
            demand(isinstance(self._runs, LabelRuns), "_runs is not of labels")
            self._runs.check(K)
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            named = isinstance(names, np.ndarray) and names.shape == (d,)
            demand(named and all(isinstance(name, str) for name in names), "columns lack names")

    def _width(self) -> Any:
        """Return the number of features, as the family counts them."""
        return self.n_features_in_

    def _check_family(self, family: Family) -> None:
        """Raise an error if this estimator cannot have chosen the family."""
