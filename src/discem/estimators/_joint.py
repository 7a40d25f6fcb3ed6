"""The methods of a trained joint p(y, x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..calibration import best_temperature
from ..engines import Sequential, with_jobs
from ..exceptions import InputError
from ..families import Family, family_of
from ..io.labels import plain_labels
from ..io.tables import Layout
from ..targets import UNKNOWN
from ..training import Learner
from . import _input
from ._by_label import by_label, lacking, place_of, some_of
from ._options import Named, check_whole
from ._pieces import by_partition, n_classes
from ._plots import Plots
from ._runs import LabelRuns
from ._shift import Adapts
from ._strange import Doubts
from ._threads import Shared, reads, writes
from ._types import Label, Labels, RandomState, Table, Weights

LEAST = -29.5  # ln p(y | x): no rows can tell that a class is less probable


def normalized(scores: np.ndarray) -> np.ndarray:
    """Return ``ln p(y | x)`` of scores, in place."""
    scores -= scores.max(axis=1, keepdims=True)  # beside large scores ln K would be lost
    scores -= logsumexp(scores, axis=1, keepdims=True)
    return np.maximum(scores, LEAST, out=scores)


class LinearForm(NamedTuple):
    """A linear form: ``ln p(y=k, x) = intercept_[k] + coef_[k] @ statistics(x)`` + constant."""

    coef_: np.ndarray
    intercept_: np.ndarray
    statistics: Callable

    def decision_function(self, X: Table) -> np.ndarray:
        """Return one score per class; their differences are the log-odds of the model."""
        return self.statistics(X) @ self.coef_.T + self.intercept_


class Joint(Adapts, Doubts, Plots, Named, Shared, _input.Classifier):
    """Predictions, densities, samples, and adjustments that need no training."""

    classes_: np.ndarray
    class_count_: np.ndarray
    temperature_: float
    n_features_in_: int
    feature_names_in_: np.ndarray
    layout_: Layout  # of tables
    _bag: Any  # of models of documents
    unlabelled_weight: Any = "auto"  # an option of estimators that choose it
    learner_: Learner
    n_jobs: Any
    device: Any
    _prior_shift: np.ndarray
    _runs: LabelRuns | None = None  # of a stream

    def _read(self, X, family: Family, fresh: bool, grows: bool = False) -> tuple[Any, dict]:
        raise NotImplementedError

    def _view(self, X, family: Family) -> Any:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    # --- prediction -------------------------------------------------------------------------------

    def _rows(self, X) -> Any:
        """Read rows in the form that the fitted model takes."""
        if not self.__sklearn_is_fitted__():  # which is quick
            check_is_fitted(self)
        family = self.learner_.state.family
        X, _ = self._read(X, family, fresh=False)
        return self._view(X, family)

    def _scores(self, X) -> np.ndarray:
        """Return ``ln p(y, x)`` as it was trained."""
        rows = self._rows(X)
        return self._engine().score(self.learner_.model, rows)

    def _engine(self) -> Sequential:
        """Return the engine for the current options; a loaded model has none."""
        return with_jobs(self.learner_.engine, self.n_jobs, self.device)

    @by_partition(n_classes)
    @reads
    def predict_joint_log_proba(self, X: Table) -> np.ndarray:
        """Return ``ln p(y, x)`` of every class, (n_samples, n_classes); missing cells sum out."""
        return self._scores(X) + self._normalized_shift()

    @by_partition(dtype=lambda model: model.classes_.dtype)
    @reads
    def predict(self, X: Table, reject: float | None = None, usual: Any = None) -> np.ndarray:
        """Return the most probable class of each row; for a Dask collection, a Dask collection.

        Parameters
        ----------
        X : rows
        reject : float, optional
            Return None for rows that are `outliers` at this rate.
        usual : like X, optional
            See `outliers`.

        Returns
        -------
        array of shape (n_samples,)
        """
        best = (self._scores(X) * self.temperature_ + self._prior_shift).argmax(axis=1)
        return self._or_none(self.classes_[best], X, reject, usual)

    @by_partition(n_classes)
    @reads
    def predict_log_proba(self, X: Table) -> np.ndarray:
        """Return ``ln p(y | x)`` of every class; see `predict_proba`."""
        return normalized(self._scores(X) * self.temperature_ + self._prior_shift)

    @by_partition(n_classes)
    def predict_proba(self, X: Table) -> np.ndarray:
        """Return ``p(y | x)`` of every class, ``softmax(temperature_ * ln p(y, x))``.

        No probability is below 1.5e-13, as no data can show that a class is less probable.

        Training with NCLL optimises these probabilities. With NLL they follow from Bayes' rule on
        the joint, and are overconfident if features are dependent. Hinge training only fixes
        margins: call `calibrate` with held-out rows before you use the probabilities (early
        stopping does this with its own held-out rows).
        """
        return np.exp(self.predict_log_proba(X))

    @by_partition()
    @reads
    def score_samples(self, X: Table) -> np.ndarray:
        """Return ``ln p(x)`` of each row under the joint: low for rows unlike the training data."""
        return logsumexp(self.predict_joint_log_proba(X), axis=1)

    # --- after training ---------------------------------------------------------------------------

    @writes
    def calibrate(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        """Choose `temperature_` so that probabilities fit held-out rows; predicted classes stay.

        A prior regularises the fit to a few rows: ``ln temperature_`` is normal around 0 with
        standard deviation 3, and counts as much as one row.

        Parameters
        ----------
        X, y, sample_weight : rows that were not trained on

        Returns
        -------
        self
        """
        return self._calibrate(self._scores(X), y, sample_weight)

    def _calibrate(self, scores: np.ndarray, y: Labels, sample_weight: Weights) -> Self:
        self.temperature_ = self._best_temperature(scores, y, sample_weight)
        return self

    def _best_temperature(self, scores: np.ndarray, y: Labels, sample_weight: Weights) -> float:
        """Return the best temperature for the scores of rows not used in training."""
        y = _input.check_y(y, len(scores))
        targets = _input.encode(y, self.classes_)
        if not targets.plain:
            raise InputError("calibrate needs plain labels, not label sets or shares")
        unknown = np.flatnonzero(targets.codes == UNKNOWN)
        if len(unknown):
            row = int(unknown[0])
            raise InputError(
                f"calibrate needs classes that the model knows, and y has {plain_labels(y)[row]!r} "
                f"in row {row}; there are: {some_of(self.classes_)}"
            )
        weights = _input.check_weights(sample_weight, scores)
        if not weights[targets.codes >= 0].any():
            raise InputError("calibrate needs labelled rows of a weight > 0")
        return best_temperature(scores, targets.codes, weights, self._prior_shift).value

    @writes
    def set_class_prior(self, class_prior: Any) -> Self:
        """Set the current frequencies of the classes.

        The joint is multiplied by the new frequency over the frequency in the training rows, so
        setting the training frequencies changes nothing. `class_frequency_` then holds the new
        frequencies. `class_prior_`, p(y) of the joint, only holds them if it was the frequency
        before: a discriminative loss trains it to separate the classes.

        Parameters
        ----------
        class_prior : array-like of shape (n_classes,), dict from class to probability, or None
            None restores the frequencies of the training data.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.__dict__.pop("_shift", None)  # it belonged to other frequencies
        if class_prior is None:
            self._prior_shift = np.zeros(len(self.classes_))
            return self
        self._prior_shift = np.log(self._check_prior(class_prior)) - np.log(self._frequencies())
        return self

    def _check_prior(self, class_prior) -> np.ndarray:
        """Return one number > 0 for each class, in the order of the classes."""
        labels = plain_labels(self.classes_)
        if hasattr(class_prior, "to_dict"):  # a series of pandas
            class_prior = class_prior.to_dict()
        if isinstance(class_prior, dict):
            found, others = by_label(class_prior, self.classes_, "class_prior")
            for label in others:
                raise InputError(
                    f"class_prior has {label!r}, which is no class; the classes are: {labels[:20]}"
                )
            for label in lacking(found, self.classes_):
                raise InputError(
                    f"class_prior lacks the class {label!r}; the classes are: {labels[:20]}"
                )
            class_prior = [found[place] for place in range(len(labels))]
        try:
            new = np.asarray(class_prior, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"class_prior={class_prior!r} holds what is no number") from error
        if new.shape != self.classes_.shape:
            raise InputError(
                f"class_prior needs {len(labels)} numbers, for the classes {labels[:20]}, "
                f"and has {new.size}"
            )
        for label, share in zip(labels, new.tolist(), strict=True):
            if not 0 < share < np.inf:
                raise InputError(f"class_prior of {label!r} is {share!r}: it must be positive")
        if abs(new.sum() - 1) >= 1e-6:
            raise InputError(f"class_prior must sum to 1, and sums to {new.sum():.6g}")
        return new

    def _frequencies(self) -> np.ndarray:
        """Return the class frequencies of the training data, all above 0."""
        counts = np.maximum(self.class_count_, 1e-12 * self.class_count_.sum())
        return counts / counts.sum()

    @reads
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, *, y: Label = None
    ) -> tuple[Any, np.ndarray]:
        """Draw rows and labels from the joint.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None
        y : label, optional
            Draw rows of this class.

        Returns
        -------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        """
        check_is_fitted(self)
        check_whole("n_samples", n_samples)
        rng, own = check_random_state(random_state), self.class_prior_
        if y is not None:
            own = np.eye(len(own))[place_of(self.classes_, y)]
        codes = rng.choice(len(own), size=n_samples, p=own)
        return self._draw(codes, rng), self.classes_[codes]

    def _draw(self, codes: np.ndarray, rng) -> Any:
        blocks = self.learner_.model.blocks
        drawn = tuple(family_of(block).sample(block, codes, rng) for block in blocks)
        return drawn if len(drawn) > 1 else drawn[0]

    # --- parameters -------------------------------------------------------------------------------

    @property
    @reads
    def mu_(self) -> dict[str, np.ndarray]:
        check_is_fitted(self)
        features, (name, share) = self.learner_.model.features, self._outer()
        expected = family_of(features).expectations(features)
        return {name: share} | {each: share[:, None] * e for each, e in expected.items()}

    @property
    @reads
    def theta_(self) -> dict[str, np.ndarray]:
        check_is_fitted(self)
        features, (name, share) = self.learner_.model.features, self._outer()
        offset, slopes = family_of(features).slopes(features)
        return {name: np.log(share) + offset} | slopes

    def _outer(self) -> tuple[str, np.ndarray]:
        """Return the name of what cells depend on, and its probabilities."""
        return "class", self.class_prior_

    @reads
    def to_linear(self) -> LinearForm:
        """Return the same classifier as a linear function of its statistics, see `LinearForm`.

        Returns
        -------
        LinearForm
        """
        theta = self.theta_
        coef = np.hstack([theta[name] for name in theta if name != "class"])
        features_of = family_of(self.learner_.model.features).features_of
        return LinearForm(coef, theta["class"], features_of)

    @property
    @reads
    def class_prior_(self) -> np.ndarray:
        """p(y) of the model."""
        check_is_fitted(self)
        return self._shares() * np.exp(self._normalized_shift())

    @property
    @reads
    def class_frequency_(self) -> np.ndarray:
        """The frequencies of classes: those of training, or those given to `set_class_prior`."""
        check_is_fitted(self)
        shares = self._frequencies() * np.exp(self._prior_shift)
        return shares / shares.sum()

    @property
    @reads
    def class_scores_(self) -> np.ndarray:
        """The scores of a row without any cell: ``temperature_ * ln p(y)``, with the shift."""
        check_is_fitted(self)
        return self.temperature_ * np.log(self._shares()) + self._prior_shift

    def _shares(self) -> np.ndarray:
        """Return p(y) as it was trained."""
        count = self.learner_.model.class_counts
        return count / count.sum()

    def _normalized_shift(self) -> np.ndarray:
        """Return what `set_class_prior` adds to ``ln p(y, x)``."""
        return self._prior_shift - np.log(self._shares() @ np.exp(self._prior_shift))
