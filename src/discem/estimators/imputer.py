"""Fill in missing cells, as a step of a scikit-learn pipeline."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._checks import check_plain, demand
from .._kinds import savable
from ._impute import check_how, impute
from ._options import Named, check_whole, with_options
from ._tables import Encoded, refuse_texts
from ._threads import Shared, reads, writes
from ._types import (
    BaseEstimator,
    DeviceOption,
    Families,
    Labels,
    RandomState,
    Table,
    TransformerMixin,
)
from .mixture import MixtureClassifier

# Mixtures alternate: few components with a covariance each, and more components that share one.
_TURNS, _WIDE = (("full", 1.0), ("tied", 2.5)), ("tied", 5.0)
_LARGEST = 10_000  # numbers in all covariances; with more, training takes too long


@savable
@with_options
class TableImputer(Named, Shared, TransformerMixin, BaseEstimator):
    """Fill in the missing cells of a table from a mixture of all its columns.

    Each missing cell is filled from its distribution given the observed cells of its row. Data
    frames, arrays and lists of dicts keep their type, dtypes and index. You need not scale or
    encode anything.

    Parameters
    ----------
    how : {"mean", "mode", "draw"}, default="mean"
        What `transform` fills in: the mean (of categories, which have none, the most probable one),
        the most probable value, or a random draw. "mode" and "draw" keep whole numbers whole.
    n_mixtures : int, default=4
        Number of mixtures that are averaged. More mixtures are more accurate and slower.
    n_components : int, default=8
        Components of the first mixture. Every second mixture has 2.5 times as many, which share one
        covariance. With many columns of numbers, all mixtures have five times as many components,
        which share one covariance.
    families : "auto", name, or dict from column to name, default="auto"
        The distributions of the columns, see `TableClassifier`. Use "categorical" for numbers that
        encode categories: missing cells are then filled with the most probable one.
    max_iter : int, default=30
        The largest number of steps of each mixture.
    tol : float or None, default=1e-3
        See `MixtureClassifier`.
    n_jobs : int or None, default=None
        Threads to train with.
    device : None, "cpu", "auto", str, torch.device or Device, default=None
        Where to train, see `MixtureClassifier`.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    mixtures_ : list of MixtureClassifier
    families_ : dict from column to str
        The distribution chosen for each column, and why.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from discem import TableImputer
    >>> rows = [{"size": float(i % 2), "sort": "ab"[i % 2]} for i in range(60)]
    >>> imputer = TableImputer(random_state=0).fit(rows)
    >>> imputer.transform([{"size": 1.0}, {"sort": "a", "size": 0.0}])
    [{'size': 1.0, 'sort': 'b'}, {'sort': 'a', 'size': 0.0}]
    """

    how: Literal["mean", "mode", "draw"] = "mean"
    n_mixtures: int = 4
    n_components: int = 8
    families: Families = "auto"
    max_iter: int = 30
    tol: float | None = 1e-3
    n_jobs: int | None = None
    device: DeviceOption = None
    random_state: RandomState = None

    _attributes = ("mixtures_",)

    @writes
    def fit(self, X: Table, y: Labels = None) -> Self:
        """Learn the joint distribution of all columns.

        Parameters
        ----------
        X : data frame (pandas, polars, pyarrow ..), list of dicts, or array
            NaN, None and NA are missing cells.
        y : ignored

        Returns
        -------
        self
        """
        check_how(self.how, 1)
        check_whole("n_mixtures", self.n_mixtures)
        check_whole("n_components", self.n_components)
        rows = Encoded.learn(X, self.families, informative=False)
        layout = rows.layout
        refuse_texts(layout, type(self).__name__)
        one_class = np.zeros(rows.shape[0], dtype=np.int64)
        rng, mixtures = check_random_state(self.random_state), list[MixtureClassifier]()
        for turn in range(self.n_mixtures):
            mixture = self._new_mixture(turn, len(layout.numbers), int(rng.randint(2**31 - 1)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                mixtures.append(mixture.fit(rows, one_class))
        self.mixtures_ = mixtures
        return self

    def _new_mixture(self, turn: int, n_numbers: int, seed: int) -> MixtureClassifier:
        wide = self.n_components * n_numbers**2 > _LARGEST
        covariance: Any
        covariance, times = _WIDE if wide else _TURNS[turn % len(_TURNS)]
        return MixtureClassifier(
            int(times * self.n_components),
            families={},
            covariance=covariance,
            loss="nll",
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=self.n_jobs,
            device=self.device,
            random_state=seed,
        )

    @reads
    def transform(self, X: Table) -> Any:
        """Return the table with its missing cells filled in.

        Columns unknown to the imputer are returned unchanged. Missing cells stay missing if the
        column had no observed cell during `fit`, or a different text in every row.

        Parameters
        ----------
        X : table as for `fit`

        Returns
        -------
        table like X
        """
        check_is_fitted(self)
        return self.impute(X, how=self.how, random_state=self.random_state)

    @reads
    def impute(
        self, X: Table, how: str = "mean", n_draws: int = 1, random_state: RandomState = None
    ) -> Any:
        """Fill in the table once, or `n_draws` times with random draws.

        Returns
        -------
        table like X, or a list of `n_draws` of them if there is more than one
        """
        check_is_fitted(self)
        check_how(how, n_draws)
        return impute(self.mixtures_, X, None, how, n_draws, check_random_state(random_state))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, which are the same as in the input."""
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)

    def _check_fitted(self) -> None:
        check_plain("options", self.get_params(deep=False))
        check_how(self.how, 1)
        mixtures = self.mixtures_
        demand(isinstance(mixtures, list) and len(mixtures) > 0, "it has no mixtures")
        for mixture in mixtures:
            demand(type(mixture) is MixtureClassifier, "one of its mixtures is none")
            demand(hasattr(mixture, "layout_"), "it does not know its columns")
            mixture._check_fitted()
            same = mixture.layout_ == mixtures[0].layout_
            demand(same, "its mixtures are not of the same columns")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "mixtures_")

    @property
    def families_(self) -> dict:
        return self.mixtures_[0].families_

    @property
    def n_iter_(self) -> int:
        return max(mixture.n_iter_ for mixture in self.mixtures_)

    @property
    def n_features_in_(self) -> int:
        return self.mixtures_[0].n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        return self.mixtures_[0].feature_names_in_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags
