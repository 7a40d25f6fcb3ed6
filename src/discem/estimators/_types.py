"""What options and arguments may be, for type checkers and for readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from ..engines import Dask, Device
from ..projections import Check, Interior
from ..schedules import by_row, constant, held, inverse, power, scaled

if TYPE_CHECKING:
    from typing import Self

    # scikit-learn has no types: a base class of no type would let a misspelt option pass
    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin:
        def __sklearn_tags__(self) -> Any: ...

    class TransformerMixin:
        def fit_transform(self, X: Table, y: Any = None, **options: Any) -> Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin", "TransformerMixin"]


class Loss(Protocol):
    """A loss: from what inference saw of a batch to values and weights, see docs/add-a-loss.md."""

    def evaluate(self, seen: Any, /) -> tuple[Any, Any]:
        """The value of each row, and its weights."""


Table = Any  # a data frame of any library, a list of dicts, an array, a collection of dask
Labels = Any  # labels in an array, list or series; sets of labels; a frame of shares
Weights = Any  # an array of one number for each row, or None
Label = Any  # a text, number, date ..

Auto = Literal["auto"]
LossOption = Literal["ncll", "hinge", "nll", "blend"] | Loss
Callback = Callable[[Any, dict[str, Any]], Any] | None
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None
EngineOption = Literal["dask"] | Dask | None
DeviceOption = str | Device | None
Families = str | Mapping[Any, str]
InitOption = Literal["generative", "prior"]
ProjectionOption = Literal["interior", "check"] | Interior | Check
RandomState = int | np.random.RandomState | None
# a named tuple that can be called is no Callable to mypy
StepOption = Auto | Callable[[Any], Any] | inverse | power | constant | by_row | scaled | held
