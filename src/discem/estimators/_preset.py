"""The base of estimators that wrap a model and choose its options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from .._checks import check_number, check_plain, demand
from ..exceptions import EngineError
from ..io.seen import Seen
from . import _input
from ._choice import Chooser, check_choice
from ._options import Named, of
from ._plots import Plots
from ._shift import Adapts
from ._strange import Doubts
from ._threads import Shared, lent, writes
from ._types import BaseEstimator, Callback


class Preset(Named, Shared, BaseEstimator):
    """An estimator whose `_fitted` has the `model` that does the work, and the `chosen` options.

    All fitted state is in `_fitted`. A fit replaces it as a whole, or leaves it unchanged.
    """

    callback: Callback
    _attributes: ClassVar[tuple[str, ...]] = ("_fitted",)
    _roles: ClassVar[tuple[str, ...]]  # roles of columns that are not part of the model
    _fitted: Any

    def _check_chosen(self) -> None:
        """Validate the chosen options and the roles, which may come from any file."""
        fitted = self._fitted
        demand(isinstance(fitted.chosen, dict), "chosen_ is not a dict")
        check_plain("chosen_", fitted.chosen)
        check_choice(fitted.choice)
        roles = fitted.roles
        known = isinstance(roles, dict) and roles.keys() <= {*self._roles}
        named = known and all(isinstance(name, str) for name in roles.values())
        demand(named, "roles_ are not names of columns")
        demand(isinstance(fitted.files, dict), "files_ is not a dict")
        for name, seen in fitted.files.items():
            demand(isinstance(name, str) and isinstance(seen, Seen), "files_ are none")
            seen.check_numbers()

    def _meanings(self) -> list[Any]:
        """Return the blocks of text vectors, each of which needs an encoder."""
        return []

    @contextmanager
    def _beginning(self, fitted: Any) -> Iterator[None]:
        """Start a fit; on an error restore the old state, on Ctrl-C keep what was trained."""
        before = getattr(self, "_fitted", None)
        try:
            self._fitted = fitted
            yield
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | EngineError) and self._fitted.is_trained:
                self._end_early()
            elif before is None:
                del self._fitted
            else:
                self._fitted = before
            raise

    def _end_early(self) -> None:
        """Finish the fitted state after an interruption."""

    def _call_back(self, record, stage: str = "", chooser: Chooser | None = None) -> bool:
        """Call the callback with a record and its stage; return whether training should stop."""
        if stage:
            record["stage"] = stage
        if self.callback is None:
            return False
        with lent(self):
            known = record if chooser is None else record | {"choice": chooser.line}
            return self.callback(self, known) is True

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted") and self._fitted.is_trained

    chosen_ = of("_fitted.chosen")
    choice_ = of("_fitted.choice")
    roles_ = of("_fitted.roles")
    files_ = of("_fitted.files")

    @property
    def model_(self) -> Any:
        if self._fitted.model is None:
            raise AttributeError("there is no model yet: call fit")
        return self._fitted.model

    history_ = of("model_.history_")
    stream_ = of("model_.stream_")
    n_iter_ = of("model_.n_iter_")


class ClassifierPreset(Adapts, Doubts, Plots, _input.Classifier, Preset):
    """An estimator that wraps a classifier."""

    def _check_chosen(self) -> None:
        super()._check_chosen()
        check_number("temperature", self._fitted.chosen["temperature"], above=0.0)

    def _end_early(self) -> None:
        self.model_.temperature_ = self.chosen_["temperature"]

    def _owner(self) -> Any:
        return self.model_

    @writes
    def set_class_prior(self, class_prior: Any) -> Self:
        """Set the current frequencies of the classes, see `MultinomialNB.set_class_prior`."""
        check_is_fitted(self)
        self.model_.set_class_prior(class_prior)
        return self

    classes_ = of("model_.classes_")
    class_count_ = of("model_.class_count_")
    class_prior_ = of("model_.class_prior_")
    class_frequency_ = of("model_.class_frequency_")
    temperature_ = of("model_.temperature_")
