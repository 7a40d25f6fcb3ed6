"""Mixtures inside each class, trained discriminatively."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import models
from ..engines.sequential import score
from ..exceptions import OptionError
from ..families import gaussian, words
from ..losses import NLL, Labels, SoftLabels, parts
from ..models import Mixture
from ..priors import NormalBetaPrime, NormalGamma
from ..schedules import power
from . import _input
from ._base import GenerativeClassifier
from ._docs import documented
from .naive_bayes import (
    CountClassifier,
    GaussianNB,
    MultinomialNB,
    natural_of,
    perplexity,
    statistics_of,
)

_LIKE: dict[str, Any] = {"gaussian": GaussianNB, "words": MultinomialNB}
_SIZES = (1, 2, 4, 8)  # the numbers of components that "auto" compares
_CLUSTERED = 20_000  # rows of a class that its components are found on
_FAR = 3.0  # deviations; what is further out should not be a cluster of its own
_NARROW = 0.1  # of the variance within classes: the least that the prior expects in components
_QUIET = 1e-3  # weight of an unlabelled row, whose NLL step forgets, under discriminative losses
_DEAD = 0.01  # of an even share: a component with less takes no part


@documented
class MixtureClassifier(GenerativeClassifier):
    """A mixture of naive Bayes models inside each class, trained under NLL, NCLL or hinge.

    p(x | y) is a sum over components, each a product of normal distributions or a multinomial over
    words. Which component a row belongs to is never observed: it is summed out exactly, as are
    missing cells (NaN).

    Parameters
    ----------
    n_components : int, dict from class to int, or "auto", default=2
        Components per class; a class with fewer distinct rows has fewer. "auto" compares 1, 2, 4
        and 8 by the log-loss of a fifth of the rows, then trains on all (`partial_fit`: 2).
    family : {{"auto", "gaussian", "words"}}, default="auto"
        What p(x | y, component) is made of. "auto" is words for sparse input, else Gaussian.
    unlabelled : label or None, default=None
        A label that stands for none, such as -1, beside None and NaN, which always do.
    {loss}
    prior : "data", NormalBetaPrime, NormalGamma or Dirichlet, default="data"
        The regulariser, the same for all components. Gaussian: `NormalBetaPrime()`, which pulls
        means to the overall mean and variances to the pooled variance within components, but leaves
        a spike alone. Words: that of `MultinomialNB`. All names and objects that the naive Bayes of
        the family takes may be given.
    {common}

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        p(component | class), for the components of all classes side by side.
    component_class_ : array of shape (n_components,)
        The class of each component.
    means_, variances_ : arrays of shape (n_components, n_features)
        Of Gaussian components.
    component_log_prob_ : array of shape (n_components, n_features)
        ``ln p(word | component)``, of components over words.
    n_components_ : array of shape (n_classes,)
    family_ : str
    {attributes}

    Examples
    --------
    >>> from discem import GaussianNB, MixtureClassifier
    >>> from discem.datasets import toy, toy_accuracy
    >>> X, y = toy(20_000, random_state=0)  # one class is two spikes, inside the other
    >>> round(toy_accuracy(GaussianNB(random_state=0).fit(X, y)), 2)
    0.92
    >>> round(toy_accuracy(MixtureClassifier(random_state=0).fit(X, y)), 2)
    0.98
    """

    def __init__(
        self,
        n_components=2,
        *,
        family="auto",
        unlabelled=None,
        loss="ncll",
        prior="data",
        init="generative",
        step="auto",
        projection="interior",
        average="auto",
        batch_size=1,
        max_iter=100,
        tol=1e-3,
        n_iter_no_change=10,
        early_stopping=False,
        validation_fraction=0.1,
        class_weight=None,
        unlabelled_weight="auto",
        shuffle=True,
        warm_start=False,
        total_samples=None,
        rescore=False,
        callback=None,
        random_state=None,
        verbose=0,
    ):
        super().__init__(
            loss=loss,
            prior=prior,
            init=init,
            step=step,
            projection=projection,
            average=average,
            batch_size=batch_size,
            max_iter=max_iter,
            tol=tol,
            n_iter_no_change=n_iter_no_change,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            class_weight=class_weight,
            unlabelled_weight=unlabelled_weight,
            shuffle=shuffle,
            warm_start=warm_start,
            total_samples=total_samples,
            rescore=rescore,
            callback=callback,
            random_state=random_state,
            verbose=verbose,
        )
        self.n_components = n_components
        self.family = family
        self.unlabelled = unlabelled

    # --- a component is what a class is to naive Bayes, whose estimator answers for the family ----

    family_: str
    mean_length_: float

    @property
    def _like(self) -> Any:
        return _LIKE[self.family_]

    def _check_X(self, X, *, reset):
        if reset:
            kind = "words" if sp.issparse(X) else "gaussian"
            self.family_ = kind if self.family == "auto" else self.family
        return self._like._check_X(self, X, reset=reset)

    def _rows(self, X):
        return self._like._rows(self, X)

    def _resolve_prior(self, n_features):
        if self.family_ == "gaussian" and isinstance(self.prior, str) and self.prior == "data":
            return NormalBetaPrime(), 1.0
        return self._like._resolve_prior(self, n_features)

    def _auto_step(self, loss, n):
        if isinstance(loss, NLL):  # about a step of EM per epoch, then slowly less
            return power(1.0 / (n + 1.0), 10.0 * (n + 1.0), 1.0)
        if self.family_ == "gaussian":
            return power(0.03, 200.0, 0.6)  # a component is lighter than a class
        return self._like._auto_step(self, loss, n)

    def _auto_average(self, loss):
        return self._like._auto_average(self, loss)

    def _auto_unlabelled(self, loss, ratio):
        return 1.0 if isinstance(loss, NLL) else _QUIET

    def _note(self, counted):
        self._like._note(self, counted)

    def _brace(self, rows):
        self._like._brace(self, rows)

    def _summary(self, figures, rows, order, weights):
        summary = super()._summary(figures, rows, order, weights)
        if self.family_ == "words":
            summary["perplexity"] = perplexity(figures, rows, order, weights)
        return summary

    def _solved(self, targets):
        return False  # labels do not say which component

    # --- training ---------------------------------------------------------------------------------

    def fit(self, X, y, sample_weight=None):
        self._check_options()
        self._size: Any = self.n_components
        if self._size == "auto":
            self._size = self._choose_size(X, y, sample_weight)
        super().fit(X, y, sample_weight)
        self._warn_of_the_dead()
        return self

    fit.__doc__ = GenerativeClassifier.fit.__doc__

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if not hasattr(self, "_learner"):
            self._size = 2 if self.n_components == "auto" else self.n_components
        super().partial_fit(X, y, classes, sample_weight)
        self._warn_of_the_dead()
        return self

    partial_fit.__doc__ = GenerativeClassifier.partial_fit.__doc__

    def calibrate(self, X, y, sample_weight=None):
        return super().calibrate(X, self._unmark(y), sample_weight)

    calibrate.__doc__ = GenerativeClassifier.calibrate.__doc__

    def _check_options(self) -> None:
        super()._check_options()
        if self.family not in ("auto", *_LIKE):
            raise OptionError(f"family={self.family!r} is unknown: use 'auto' or {list(_LIKE)}")
        sizes = self.n_components.values() if isinstance(self.n_components, dict) else None
        for size in [self.n_components] if sizes is None else sizes:
            if not _input.is_count(size) and not (sizes is None and size == "auto"):
                raise OptionError(
                    f"n_components={self.n_components!r} must be a whole number >= 1, "
                    "'auto', or such numbers by class"
                )

    def _check_data(self, X, y, sample_weight, reset, labels=True):
        return super()._check_data(X, self._unmark(y), sample_weight, reset, labels)

    def _unmark(self, y) -> Any:
        """Labels with None where they say that there is none."""
        if self.unlabelled is None or y is None or np.ndim(y) != 1:
            return y
        return np.array(
            [None if label == self.unlabelled else label for label in np.asarray(y).tolist()],
            dtype=object,
        )

    def _choose_size(self, X, y, sample_weight) -> int:
        """The number of components with the least log-loss on rows held out."""
        X, y, weights = self._check_data(X, y, sample_weight, reset=True)
        targets = _input.encode(y, _input.find_classes(y))
        if not isinstance(targets, Labels):
            raise OptionError("n_components='auto' goes with plain labels: give a number")
        rng = check_random_state(self.random_state)
        held = np.zeros(len(y), dtype=bool)
        held[_input.hold_out(targets.codes, weights, 0.2, rng)] = True
        if not held.any():
            return 1
        losses = []
        for size in _SIZES:
            options = {"callback": None, "verbose": 0, "unlabelled": None, "family": self.family_}
            trial = clone(self).set_params(n_components=size, warm_start=False, **options)
            trial.random_state = rng.randint(2**31)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                trial.fit(X[~held], y[~held], weights[~held])
            figures = trial.predict_log_proba(X[held])[np.arange(held.sum()), targets.codes[held]]
            losses.append(-float(figures @ weights[held]))
        return _SIZES[int(np.argmin(losses))]

    def _begin(self, rows, targets, weights, average, stream, rng):
        d = self.n_features_in_
        sizes = self._wanted()
        codes, sizes = _components(_points(rows, weights, d), targets, weights, sizes, stream, rng)
        first = np.cumsum([0, *sizes], dtype=np.int64)
        family = self._like._family
        counted = models.collect(family, rows, codes, weights, d, int(first[-1]))
        self._note(counted)
        prior, alpha = self._resolve_prior(d)
        if isinstance(prior, NormalBetaPrime | NormalGamma) and prior.variance is None:
            by_class = models.collect(family, rows, targets, weights, d, len(sizes)).features
            within = _NARROW * gaussian.within_variance(by_class)
            prior = prior._replace(
                variance=np.maximum(within, gaussian.within_variance(counted.features))
            )
        alike = counted.classes == 0 if self.init == "generative" else counted.classes >= 0
        state = models.start(counted, prior, alpha, self.init, average, stream)
        model = models.stir(Mixture(state, first), np.flatnonzero(alike), rng)
        return model, np.add.reduceat(counted.classes, first[:-1])

    def _wanted(self) -> list[int]:
        """The number of components of each class."""
        if not isinstance(self._size, dict):
            return [int(self._size)] * len(self.classes_)
        lacking = [label for label in self.classes_.tolist() if label not in self._size]
        if lacking:
            raise OptionError(f"n_components lacks the class {lacking[0]!r}")
        return [int(self._size[label]) for label in self.classes_.tolist()]

    def _warn_of_the_dead(self) -> None:
        sizes, weights = self.n_components_, self.weights_
        first = np.repeat(self._learner.model.first[:-1], sizes)
        labels = self.component_class_.tolist()
        for m in np.flatnonzero(weights * np.repeat(sizes, sizes) < _DEAD):
            warnings.warn(
                f"component {m - first[m]} of class {labels[m]!r} has died: it has less than "
                f"{_DEAD:.0%} of an even share; use fewer components or a stronger prior",
                ConvergenceWarning,
                stacklevel=3,
            )

    # --- the model --------------------------------------------------------------------------------

    def responsibilities(self, X):
        """``p(class, component | x)``, as (n_samples, n_components); columns as in `weights_`."""
        check_is_fitted(self)
        posterior = self.predict_proba(X)
        X = self._check_X(X, reset=False)
        model, code = self._learner.model, self._code()
        joint = score(model.parts, self._rows(X), X.shape[0])
        top = np.maximum.reduceat(joint, model.first[:-1], axis=1)
        share = np.exp(joint - top[:, code])
        share /= np.add.reduceat(share, model.first[:-1], axis=1)[:, code]
        return share * posterior[:, code]

    def predict_component(self, X):
        """The most probable component of each row, by its place in `weights_`."""
        return self.responsibilities(X).argmax(axis=1)

    def _code(self) -> np.ndarray:
        """The class of each component, by its place."""
        return np.repeat(np.arange(len(self.classes_)), self.n_components_)

    _lengths = CountClassifier._lengths

    def _draw(self, codes, rng):
        model, weights = self._learner.model, self.weights_
        drawn = np.empty(len(codes), dtype=np.int64)
        for k in np.unique(codes):
            first, last = model.first[k : k + 2]
            own = codes == k
            drawn[own] = first + rng.choice(last - first, size=own.sum(), p=weights[first:last])
        return self._like._draw(self, drawn, rng)

    def to_linear(self):
        """Not to be had: the scores of a mixture are no linear function of any statistics."""
        raise OptionError(
            "to_linear: a mixture has no linear form; GaussianNB and MultinomialNB have one"
        )

    @property
    def n_components_(self) -> np.ndarray:
        check_is_fitted(self)
        return np.diff(self._learner.model.first)

    @property
    def component_class_(self) -> np.ndarray:
        return self.classes_[self._code()]

    @property
    def weights_(self) -> np.ndarray:
        check_is_fitted(self)
        model = self._learner.model
        return models.class_counts(model.parts) / models.class_counts(model)[self._code()]

    @property
    def means_(self) -> np.ndarray:
        return gaussian.moments(self._factors("gaussian"))[0]

    @property
    def variances_(self) -> np.ndarray:
        return gaussian.moments(self._factors("gaussian"))[1]

    @property
    def component_log_prob_(self) -> np.ndarray:
        return words.log_probabilities(self._factors("words"))

    def _factors(self, family: str) -> Any:
        check_is_fitted(self)
        if self.family_ != family:
            raise AttributeError(f"only components of family {family!r} have this attribute")
        return self._learner.model.features

    @property
    def mu_(self) -> dict[str, np.ndarray]:
        share = self.class_prior_[self._code()] * self.weights_
        if self.family_ == "gaussian":
            return {"component": share} | statistics_of(share, self.means_, self.variances_)
        expected = share[:, None] * self.mean_length_ * np.exp(self.component_log_prob_)
        return {"component": share, "word": expected}

    @property
    def theta_(self) -> dict[str, np.ndarray]:
        log_share = np.log(self.mu_["component"])
        if self.family_ == "gaussian":
            normalizer, slopes = natural_of(self.means_, self.variances_)
            return {"component": log_share - normalizer} | slopes
        return {"component": log_share, "word": self.component_log_prob_}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.family != "words"
        tags.input_tags.sparse = self.family != "gaussian"
        tags.input_tags.positive_only = self.family == "words"
        tags.classifier_tags.poor_score = self.family == "words"  # as in MultinomialNB
        return tags


# --- the start ------------------------------------------------------------------------------------


def _points(rows: Any, weights: np.ndarray, n_features: int) -> Any:
    """Where rows are as far as clusters are concerned: documents on a sphere, tables scaled."""
    if hasattr(rows, "indptr"):
        from sklearn.preprocessing import normalize

        stored = rows.values, rows.indices.view(np.int32), rows.indptr
        return normalize(sp.csr_matrix(stored, shape=(len(weights), n_features)))
    seen = ~np.isnan(rows.values)
    weight = np.where(seen, weights[:, None], 0.0)
    weight /= np.maximum(weight.sum(axis=0), 1e-300)
    off = rows.values - (weight * np.where(seen, rows.values, 0.0)).sum(axis=0)
    off[~seen] = 0.0
    deviation = np.sqrt((weight * off**2).sum(axis=0))
    return np.clip(off / np.where(deviation > 0, deviation, 1.0), -_FAR, _FAR)


def _components(points, targets, weights, wanted, stream, rng) -> tuple[Any, list[int]]:
    """Targets that name components, found by k-means in each class, and how many each class has.

    In a stream a class keeps all that it is to have, for more rows will come.
    """
    n, sizes, places = len(weights), [], []
    for k, weight in enumerate(_class_parts(targets, weights, len(wanted))):
        place, size = _k_means(points, weight, wanted[k], rng)
        places.append(place)
        sizes.append(wanted[k] if stream else max(size, 1))
    first = np.cumsum([0, *sizes])
    if isinstance(targets, Labels):
        known = targets.codes >= 0
        codes = np.full(n, -1, dtype=np.int64)
        codes[known] = first[targets.codes[known]]
        for k, place in enumerate(places):
            codes[targets.codes == k] += place[targets.codes == k]
        return Labels(codes), sizes
    share = np.asarray(targets[0], dtype=np.float64)
    shares = np.zeros((n, first[-1]))
    for k, place in enumerate(places):
        shares[np.arange(n), first[k] + place] = share[:, k]
    return SoftLabels(shares / shares.sum(axis=1, keepdims=True)), sizes


def _class_parts(targets, weights, n_classes: int) -> Iterator[np.ndarray]:
    """The weight of each row in each class."""
    if isinstance(targets, Labels):
        for k in range(n_classes):
            yield np.where(targets.codes == k, weights, 0.0)
    else:
        for _, weight in parts(targets, weights):
            yield weight


def _k_means(points, weight, n_clusters: int, rng) -> tuple[np.ndarray, int]:
    """The cluster of each row of a weight > 0, and the number of clusters found."""
    from sklearn.cluster import KMeans

    place = np.zeros(len(weight), dtype=np.int64)
    own = np.flatnonzero(weight > 0)
    n_clusters = min(n_clusters, len(own))
    if n_clusters < 2:
        return place, n_clusters
    some = own if len(own) <= _CLUSTERED else rng.choice(own, _CLUSTERED, replace=False)
    means = KMeans(n_clusters, n_init=5, random_state=rng.randint(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct rows than clusters
        found = means.fit(points[some], sample_weight=weight[some]).predict(points[own])
    names, place[own] = np.unique(found, return_inverse=True)
    return place, len(names)
