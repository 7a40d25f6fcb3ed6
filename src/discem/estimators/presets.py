"""Mixtures with fixed options: naive Bayes of tables, and correlated columns."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, Literal

from .._kinds import savable
from ..families import FAMILIES
from ._batch import Batch
from ._docs import documented
from ._options import with_options
from ._tables import NUMBERS
from ._types import Auto, Families, InitOption, ProjectionOption, StepOption
from .mixture import MixtureClassifier

_ROWS = 0.5  # rows per component and column; with fewer, components share a covariance
_LARGEST = 200_000  # numbers in all covariances; with more, training takes too long


@documented
@with_options
class NaiveBayes(MixtureClassifier):
    """Naive Bayes of tables, trained under NLL, NCLL or hinge: a distribution for each column.

    p(x | y) is a product over the columns (normal, log-normal, Poisson, categorical ...). This is a
    `MixtureClassifier` with one component per class. Missing cells are summed out, in training and
    prediction.

    Parameters
    ----------
    families : "auto", name, or dict from column to name, default="auto"
        The distributions of the columns, see `MixtureClassifier`.
    {of_tables}
    {loss}
    prior : "data" or object, default="data"
        The regulariser, see `MixtureClassifier`.
    {common}
    {unlabelled}

    Attributes
    ----------
    families_ : dict from column to str
        For tables: the distribution chosen for each column, and why.
    {attributes}

    Examples
    --------
    >>> from discem import NaiveBayes
    >>> rows = [{{"size": float(i % 7), "sort": "ab"[i % 2]}} for i in range(60)]
    >>> y = ["odd" if i % 2 else "even" for i in range(60)]
    >>> model = NaiveBayes(random_state=0).fit(rows, y)
    >>> model.predict([{{"sort": "a"}}, {{"size": 2.0, "sort": "b"}}]).tolist()
    ['even', 'odd']
    >>> model.families_
    {{'size': 'gaussian: numbers', 'sort': 'categorical: text, 2 levels'}}
    """

    n_components: Any = field(default=1, init=False)
    covariance: Literal["diag", "full", "tied"] = field(default="diag", init=False)
    cv: Any = field(default=None, init=False)


savable(NaiveBayes, "NaiveBayesClassifier")  # "NaiveBayes" in files is the state of all models


@savable
@documented
@with_options
class GaussianClassifier(MixtureClassifier):
    """Normal distributions of correlated columns in each class, trained under NLL, NCLL or hinge.

    With ``loss="nll"`` and apart from the prior, ``covariance="full"`` fits the same model as
    `sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis`, and "tied" fits the same as
    `LinearDiscriminantAnalysis`. NaN is a missing cell: it is summed out exactly, given the
    observed cells. The units of columns do not matter.

    Parameters
    ----------
    n_components : int, dict from class to int, or "auto", default=1
        Components per class, see `MixtureClassifier`.
    covariance : {{"auto", "full", "tied", "diag"}}, default="auto"
        "full": each component has its own covariance. "tied": all components share one. "diag":
        columns are independent. "auto" is "full"; it is "tied" if a component has less than half as
        many rows as columns, or if there are so many columns that "full" takes long.
    hide : float, default=0.0
        The largest share of the cells of a row that training hides. Raise it if many cells will be
        missing in prediction; 0 hides none.
    {loss}
    prior : "data", NormalWishart, NormalBetaPrime or NormalGamma, default="data"
        The regulariser. "data" is `NormalWishart()`, or with ``covariance="diag"`` the default of
        `MixtureClassifier`.
    {training}

    Attributes
    ----------
    means_ : array of shape (n_components, n_features)
    covariances_ : array of shape (n_components, n_features, n_features)
    weights_ : array of shape (n_components,)
        p(component | class), for the components of all classes side by side.
    covariance_ : str
        The covariance that was used: the choice of "auto".
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discem import GaussianClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X[::5, 3] = float("nan")  # missing cells are fine
    >>> model = GaussianClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    >>> model.covariance_, model.covariances_.shape
    ('full', (3, 13, 13))
    """

    _covariances: ClassVar = ("auto", *NUMBERS)

    n_components: Any = field(default=1, kw_only=False)
    covariance: Literal["auto", "diag", "tied", "full"] = "auto"  # type: ignore[assignment]
    families: Families = field(default="gaussian", init=False)
    missing: Any = field(default="ignore", init=False)
    forget: int | None = field(default=None, init=False)
    unlabelled: Any = field(default=None, init=False)
    unlabelled_weight: float | Auto = field(default="auto", init=False)
    cv: Any = field(default=None, init=False)
    init: InitOption = field(default="generative", init=False)
    step: StepOption = field(default="auto", init=False)
    projection: ProjectionOption = field(default="interior", init=False)
    average: Any = field(default="auto", init=False)
    batch_size: int | Auto = field(default="auto", init=False)

    def _choose_family(self, X):
        covariance = "full" if self.covariance == "auto" else self.covariance
        return FAMILIES[NUMBERS[covariance]]

    def _begin(self, batch: Batch, average, stream, rng) -> Any:
        if self.covariance == "auto" and self._is_wide(batch):
            batch = batch._replace(family=FAMILIES["tied"])
        return super()._begin(batch, average, stream, rng)

    def _is_wide(self, batch: Batch) -> bool:
        """Return whether there are too many columns for one covariance per component."""
        d = batch.rows.values.shape[1]
        sizes = self._wanted(2 if self.n_components == "auto" else self.n_components, batch.classes)
        few = batch.n_given < _ROWS * d * sum(sizes)
        return few or d * d * sum(sizes) > _LARGEST
