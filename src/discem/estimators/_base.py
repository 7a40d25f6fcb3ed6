"""What every estimator of the library does: check, start, train, predict."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from .. import models
from ..engines.sequential import (
    FIGURES,
    ROWS,
    SHORTENED,
    WEIGHT,
    Learner,
    measure_rows,
    score,
)
from ..exceptions import InputError, OptionError
from ..losses import NLL, Hinge, Labels, LabelSets, SoftLabels, resolve_loss
from ..projections import Check, Interior
from ..schedules import Schedule
from . import _input
from ._input import NUMBER
from ._progress import Progress

PROJECTIONS: dict[str, Any] = {"interior": Interior(), "check": Check()}
MEASURED = ("loss", "nll", "ncll", "hinge", "accuracy")
AUTO_DAMPING = 0.05  # of automatic steps, which are large at first and become small


class LinearForm(NamedTuple):
    """``ln p(y=k, x) = intercept_[k] + coef_[k] @ statistics(x)``, up to what all classes share."""

    coef_: np.ndarray
    intercept_: np.ndarray
    statistics: Callable

    def decision_function(self, X):
        """One score per class; their differences are the log-odds of the model."""
        return self.statistics(X) @ self.coef_.T + self.intercept_


def best_temperature(joint, codes, weights, shift=0.0, tolerance=1e-5) -> tuple[float, float]:
    """What to multiply log-probabilities by so that labelled rows are least surprising.

    Parameters
    ----------
    joint : array of shape (n, n_classes)
        ``ln p(y, x)`` of rows that were not trained on.
    codes, weights : arrays of shape (n,)
        Place of each row's class (negative: none), and its weight.
    shift : array of shape (n_classes,), optional
        What is added after the multiplication.
    tolerance : float
        Relative.

    Returns
    -------
    temperature, log_loss : float
    """
    from scipy.optimize import minimize_scalar

    rows = np.flatnonzero((codes >= 0) & (weights > 0))
    codes, weights = codes[rows], weights[rows] / weights[rows].mean()
    joint = joint[rows] - joint[rows].max(axis=1, keepdims=True)
    margin = float(np.median(-np.sort(joint, axis=1)[:, -2])) if joint.shape[1] > 1 else 0.0
    own = joint[np.arange(len(rows)), codes]
    own_shift = np.broadcast_to(shift, joint.shape[1])[codes]

    def log_loss(log_temperature: float) -> float:
        temperature = np.exp(log_temperature)
        scores = temperature * joint + shift
        losses = np.log(np.exp(scores).sum(axis=1)) - (temperature * own + own_shift)
        # and one more row, wrong by the usual margin: rows may all be right, certainty is not
        return float(np.dot(weights, losses) + np.logaddexp(0, temperature * margin)) / len(rows)

    options = {"xatol": tolerance}
    found = minimize_scalar(log_loss, bounds=(-12.0, 6.0), method="bounded", options=options)
    return float(np.exp(found.x)), float(found.fun)


class GenerativeClassifier(ClassifierMixin, BaseEstimator):
    """A joint p(y, x) trained by the one update of the method."""

    _family: Any  # the module of the family
    _work: float = 2e7  # cell visits between two looks at the clock and at Ctrl-C

    def __init__(
        self,
        *,
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
        self.loss = loss
        self.prior = prior
        self.init = init
        self.step = step
        self.projection = projection
        self.average = average
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.unlabelled_weight = unlabelled_weight
        self.shuffle = shuffle
        self.warm_start = warm_start
        self.total_samples = total_samples
        self.rescore = rescore
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    # --- what a family's estimator says of itself -------------------------------------------------

    def _check_X(self, X, *, reset: bool):
        raise NotImplementedError

    def _rows(self, X):
        raise NotImplementedError

    def _resolve_prior(self, n_features: int) -> tuple[Any, float]:
        """The prior of the features, and the pseudo-count of each class."""
        raise NotImplementedError

    def _auto_step(self, loss, n: float) -> Schedule:
        raise NotImplementedError

    def _auto_average(self, loss) -> bool:
        raise NotImplementedError

    def _auto_unlabelled(self, loss, ratio: float) -> float:
        """The weight of an unlabelled row, of which there are `ratio` for each labelled one."""
        return 1.0

    def _note(self, counted) -> None:
        """Keep what the family wants to know of the data beyond its model."""

    def _brace(self, rows) -> None:
        """Prepare the model for rows that are unlike those it started from."""

    def _finish(self, X, targets, weights, present, rng) -> None:
        """Add what cannot be learnt row by row; `present` are rows that were given a weight."""

    def _draw(self, codes: np.ndarray, rng) -> np.ndarray:
        """Rows of the given classes."""
        raise NotImplementedError

    @staticmethod
    def _statistics(X):
        """What `to_linear` is linear in."""
        raise NotImplementedError

    classes_: np.ndarray
    _learner: Learner

    @property
    def theta_(self) -> dict[str, np.ndarray]:
        """Natural parameters: of the classes, then of the statistics in their order."""
        raise NotImplementedError

    # --- training ---------------------------------------------------------------------------------

    def fit(self, X, y, sample_weight=None):
        """Fit the model, from the start or (with `warm_start`) from where it stands.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, with None or NaN for an unlabelled row (which is learnt through its NLL). A
            matrix gives label sets (booleans) or soft labels (shares that sum to 1); the classes
            are then 0, 1, ...
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two rows.

        Returns
        -------
        self
            Also when interrupted: after Ctrl-C the fitted attributes are those of the training done
            so far, and KeyboardInterrupt goes on.
        """
        self._check_options()
        known = self.classes_ if self.warm_start and hasattr(self, "_learner") else None
        X, y, weights = self._check_data(X, y, sample_weight, reset=known is None)
        classes = _input.find_classes(y)
        loss = resolve_loss(self.loss)
        if len(classes) < 2 and not isinstance(loss, NLL):
            raise InputError(
                f"y has one class only, {classes.tolist()[0]!r}, from which loss={self.loss!r} "
                "learns nothing; give more than 1 class, use loss='nll', or stream with partial_fit"
            )
        if known is not None:
            if not np.array_equal(known, classes):
                raise InputError(f"warm_start: the model knows classes {known}, y has {classes}")
            self._learner.loss = loss
        else:
            self.classes_ = classes
        targets = _input.encode(y, self.classes_)
        given, weights = weights, weights * self._row_weights(targets)
        rng = check_random_state(self.random_state)
        train, held = self._split(targets, weights, rng)
        unit = self._unit(targets, weights, train)
        rows = self._rows(X)
        if known is None:
            self._start(rows, targets, np.where(held, 0.0, weights), unit, rng)
        self._train(rows, targets, weights / unit, train, np.flatnonzero(held), rng)
        self._finish(X, targets, weights, given > 0, rng)
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Take one pass, in the order given, over the next rows of a stream.

        What a stream lacks is filled in as follows. Moments that the prior takes from the data are
        those of the first batch. The number n that the prior is spread over is `total_samples`, or
        the rows seen so far. A class never seen before starts at the prior's centre with the mass
        of one row among those seen; while there is a single class its rows are counted (NLL). A
        row of the mean weight of the first batch takes a whole step.

        Parameters
        ----------
        X, y, sample_weight : as for `fit`
        classes : array-like, optional
            Classes to know from the start. Not needed: new classes may appear in any batch.

        Returns
        -------
        self
        """
        self._check_options()
        first = not hasattr(self, "_learner")
        X, y, weights = self._check_data(X, y, sample_weight, reset=first, labels=first)
        found = _input.find_classes(y) if first or y.ndim == 1 else self.classes_
        if classes is not None:
            found = _input.join_classes(found, _input.find_classes(np.asarray(classes)))
        rows = self._rows(X)
        if first:
            self.classes_ = found
        else:
            self._know(found)
        targets = _input.encode(y, self.classes_)
        weights = weights * self._row_weights(targets)
        order = np.flatnonzero(weights > 0)
        if first:
            rng, unit = check_random_state(self.random_state), self._unit(targets, weights, order)
            self._start(rows, targets, weights, unit, rng, stream=True)
        learner = self._learner
        self._seen += float(weights.sum())
        learner.n = self._spread(self._seen)
        learner.loss = resolve_loss(self.loss) if len(self.classes_) > 1 else NLL()
        self._count_classes(targets, weights)
        self._brace(rows)
        self._epoch(rows, targets, weights / self._weight_unit, order, None)
        return self

    def _unit(self, targets, weights, order) -> float:
        """The weight of a row that takes a whole step: the mean of the labelled ones."""
        labelled = order[targets.codes[order] >= 0] if isinstance(targets, Labels) else order
        return float(weights[labelled if len(labelled) else order].mean())

    def _spread(self, weight: float) -> float:
        """What the prior is spread over: the weight of all observations, one at least."""
        return float(self.total_samples or max(weight, 1.0))

    def _check_options(self) -> None:
        for name in ("batch_size", "max_iter", "n_iter_no_change"):
            value = getattr(self, name)
            if not _input.is_count(value):
                raise OptionError(f"{name}={value!r} must be a whole number >= 1")
        if self.projection not in PROJECTIONS and not isinstance(self.projection, Interior | Check):
            raise OptionError(f"projection={self.projection!r} is unknown: use {list(PROJECTIONS)}")
        if isinstance(self.projection, Interior) and not 0 < self.projection.share < 1:
            raise OptionError(f"projection={self.projection!r}: share must be between 0 and 1")
        if self.init not in ("generative", "prior"):
            raise OptionError(f"init={self.init!r} is unknown: use 'generative' or 'prior'")
        if self.step != "auto" and not callable(self.step):
            raise OptionError(f"step={self.step!r} is neither 'auto' nor a function of t")
        if self.average not in (True, False, "auto"):
            raise OptionError(f"average={self.average!r} must be True, False or 'auto'")
        _input.check_share("validation_fraction", self.validation_fraction)
        _input.check_unlabelled_weight(self.unlabelled_weight)
        n = self.total_samples
        if n is not None and not (isinstance(n, NUMBER) and 0 < n < np.inf):
            raise OptionError(f"total_samples={n!r} must be None or a number > 0")
        if self.tol is not None and not (isinstance(self.tol, NUMBER) and self.tol >= 0):
            raise OptionError(f"tol={self.tol!r} must be None or a number >= 0")

    def _check_data(self, X, y, sample_weight, reset: bool, labels: bool = True):
        X = self._check_X(X, reset=reset)
        return X, _input.check_y(y, X.shape[0], labels), _input.check_weights(sample_weight, X)

    def _row_weights(self, targets) -> np.ndarray | float:
        """What the weights of rows are multiplied by, for their class or for having none."""
        weights = self._class_weights(targets)
        if not isinstance(targets, Labels) or (targets.codes >= 0).all():
            return weights
        none, weight = targets.codes < 0, self.unlabelled_weight
        if weight == "auto":
            ratio = none.sum() / max((~none).sum(), 1)
            weight = self._auto_unlabelled(resolve_loss(self.loss), float(ratio))
        return weights * np.where(none, weight, 1.0)

    def _class_weights(self, targets) -> np.ndarray | float:
        if self.class_weight is None:
            return 1.0
        if not isinstance(targets, Labels):
            raise OptionError("class_weight goes with plain labels, not with label sets or shares")
        codes = targets.codes[targets.codes >= 0]
        if not len(codes):
            return 1.0
        present = np.unique(codes)
        by_class = np.ones(len(self.classes_) + 1)  # the last is for unlabelled rows
        by_class[present] = compute_class_weight(
            self.class_weight, classes=self.classes_[present], y=self.classes_[codes]
        )
        if not (np.isfinite(by_class).all() and (by_class >= 0).all() and by_class[codes].any()):
            raise OptionError(f"class_weight={self.class_weight!r} must be numbers >= 0, not all 0")
        return by_class[targets.codes]

    def _split(self, targets, weights, rng) -> tuple[np.ndarray, np.ndarray]:
        """Rows to train on, and a mask of those held out: a share of each class, labelled rows."""
        held = np.zeros(len(weights), dtype=bool)
        if self.early_stopping:
            codes = targets.codes if isinstance(targets, Labels) else np.zeros(len(weights), int)
            held[_input.hold_out(codes, weights, self.validation_fraction, rng)] = True
            if not held.any():
                raise InputError("early_stopping: too few rows of each class to hold any out")
        return np.flatnonzero(~held & (weights > 0)), held

    def _start(self, rows, targets, weights, unit: float, rng, stream: bool = False) -> None:
        """Begin training: a state, and how it is to move."""
        loss = resolve_loss(self.loss)
        average = self._auto_average(loss) if self.average == "auto" else bool(self.average)
        total = float(weights.sum())
        state, self.class_count_ = self._begin(rows, targets, weights, average, stream, rng)
        self._learner = Learner(
            state,
            loss,
            self._resolve_projection(loss),
            self._auto_step(loss, total / unit) if self.step == "auto" else self.step,
            average,
            self._spread(total),
            int(self.batch_size),
        )
        self._weight_unit = unit
        self._seen = 0.0 if stream else total
        self.temperature_ = 1.0
        self._prior_shift = np.zeros(len(self.classes_))
        self.history_: list[dict[str, float]] = []
        self.n_iter_ = 0

    def _begin(self, rows, targets, weights, average, stream, rng) -> tuple[Any, np.ndarray]:
        """The state at the prior or at the generative estimate, and the weight of each class."""
        K, d = len(self.classes_), self.n_features_in_
        counted = models.collect(self._family, rows, targets, weights, d, K)
        prior, alpha = self._resolve_prior(d)
        self._note(counted)
        return models.start(counted, prior, alpha, self.init, average, stream), counted.classes

    def _resolve_projection(self, loss) -> Any:
        if not isinstance(self.projection, str):
            return self.projection
        projection = PROJECTIONS[self.projection]
        if isinstance(projection, Check):
            return projection
        if isinstance(loss, NLL):  # its steps are averages, which cannot overshoot
            return Interior(projection.share, damping=0.0)
        return Interior(projection.share, AUTO_DAMPING) if self.step == "auto" else projection

    def _know(self, found: np.ndarray) -> None:
        """Make room for classes that the model has not met."""
        classes = _input.join_classes(self.classes_, found)
        if len(classes) == len(self.classes_):
            return
        place = np.searchsorted(self.classes_, classes)
        place = np.minimum(place, len(self.classes_) - 1)
        order = np.where(self.classes_[place] == classes, place, -1)
        state = self._learner.state
        mass = float(models.class_counts(state).sum()) / max(self._seen, 1.0)
        self._learner.replace(models.with_classes(state, order, mass))
        self.class_count_ = np.append(self.class_count_, 0.0)[order]
        self._prior_shift = np.append(self._prior_shift, 0.0)[order]
        self.classes_ = classes

    def _count_classes(self, targets, weights) -> None:
        if self.n_iter_ and isinstance(targets, Labels):  # the first batch was counted at the start
            labelled = targets.codes >= 0
            self.class_count_ = self.class_count_ + np.bincount(
                targets.codes[labelled], weights[labelled], minlength=len(self.classes_)
            )

    def _train(self, rows, targets, weights, train, held, rng) -> None:
        best, best_model, waited = np.inf, None, 0
        recent: deque[float] = deque(maxlen=self.n_iter_no_change)
        epochs = 1 if self._solved(targets) else self.max_iter
        progress = Progress(self.verbose, epochs, len(train))
        for _ in range(epochs):
            order = rng.permutation(train) if self.shuffle else train
            record = self._epoch(rows, targets, weights, order, progress)
            recent.append(record["loss"])
            watched = sum(recent) / len(recent)  # that of a single epoch is noisy
            if len(held):
                record |= self._measure(rows, targets, weights, held, "validation_")
                watched = record["validation_loss"]
            if self.rescore:
                record |= self._measure(rows, targets, weights, train, "rescored_")
            progress.epoch(record)
            stop = self.callback is not None and self.callback(self, record) is True
            if self.tol is not None:
                enough = best - self.tol * max(abs(best), 1e-2) if best < np.inf else best
                waited = 0 if watched < enough else waited + 1
            if watched < best and len(held):
                best_model = deepcopy(self._learner.model)
            best = min(best, watched)
            if stop or (self.tol is not None and waited >= self.n_iter_no_change):
                break
        if best_model is not None:
            self._learner.adopt(best_model)
            if isinstance(self._learner.loss, Hinge) and isinstance(targets, Labels):
                scored = score(self._learner.model, rows, len(weights), held)
                self.temperature_, _ = best_temperature(scored, targets.codes[held], weights[held])
        progress.close()

    def _solved(self, targets) -> bool:
        """Whether the start is the optimum already, so that one pass to measure it is enough."""
        if not isinstance(self._learner.loss, NLL) or self.init != "generative":
            return False
        certain = {
            Labels: lambda: (targets.codes >= 0).all(),
            LabelSets: lambda: (targets.member.sum(axis=1) == 1).all(),
            SoftLabels: lambda: True,
        }
        return self.step == "auto" and bool(certain[type(targets)]())

    def _epoch(self, rows, targets, weights, order, progress) -> dict[str, float]:
        begun = time.perf_counter()
        figures = np.zeros(len(FIGURES))
        chunk = self._chunk(rows, len(order))
        for done in self._learner.learn(rows, targets, weights, order, figures, chunk):
            if progress is not None:
                progress.rows(done, figures)
        seconds = time.perf_counter() - begun
        record = {"epoch": self.n_iter_ + 1} | self._summary(figures, rows, order, weights)
        record["step"] = self._learner.step_size()
        record["shortened"] = float(figures[SHORTENED] / max(figures[ROWS], 1.0))
        record["seconds"] = seconds
        self.n_iter_ += 1
        self.history_.append(record)
        return record

    def _chunk(self, rows, n_rows: int) -> int:
        cells = rows.values.size / max(n_rows, 1) * len(self.classes_)
        return max(int(self._work / max(cells, 1.0)), 1)

    def _summary(self, figures, rows, order, weights) -> dict[str, float]:
        total = max(figures[WEIGHT], 1e-300)
        return {name: float(figures[FIGURES.index(name)] / total) for name in MEASURED}

    def _measure(self, rows, targets, weights, order, prefix: str) -> dict[str, float]:
        """The same figures for given rows at the current model."""
        figures = np.zeros(len(FIGURES))
        scored = score(self._learner.model, rows, len(weights), order)
        part = type(targets)(targets[0][order])
        measure_rows(
            scored, part, self._learner.loss, weights[order], np.empty(scored.shape[1]), figures
        )
        summary = self._summary(figures, rows, order, weights)
        return {prefix + name: value for name, value in summary.items()}

    # --- prediction -------------------------------------------------------------------------------

    def _scores(self, X) -> np.ndarray:
        """``ln p(y, x)`` as it was trained."""
        check_is_fitted(self)
        X = self._check_X(X, reset=False)
        return score(self._learner.model, self._rows(X), X.shape[0])

    def predict_joint_log_proba(self, X):
        """``ln p(y, x)`` of every class, as (n_samples, n_classes); what X lacks is summed out."""
        return self._scores(X) + self._normalized_shift()

    def predict(self, X):
        """The most probable class of each row."""
        best = (self._scores(X) * self.temperature_ + self._prior_shift).argmax(axis=1)
        return self.classes_[best]

    def predict_log_proba(self, X):
        """``ln p(y | x)`` of every class; see `predict_proba`."""
        scores = self._scores(X) * self.temperature_ + self._prior_shift
        scores -= scores.max(axis=1, keepdims=True)  # beside large scores ln K would be lost
        return scores - logsumexp(scores, axis=1, keepdims=True)

    def predict_proba(self, X):
        """``p(y | x)`` of every class, ``softmax(temperature_ * ln p(y, x))``.

        Under NCLL these are the probabilities that training made as good as it could. Under NLL
        they are Bayes' rule on the joint, over-confident where features are dependent. Hinge
        training fixes only margins: call `calibrate` with held-out rows (early stopping does it
        with its own) before reading its probabilities.
        """
        return np.exp(self.predict_log_proba(X))

    def score_samples(self, X):
        """``ln p(x)`` of each row under the joint: low for rows unlike the training data."""
        return logsumexp(self.predict_joint_log_proba(X), axis=1)

    # --- after training ---------------------------------------------------------------------------

    def calibrate(self, X, y, sample_weight=None):
        """Choose `temperature_` so that probabilities fit held-out rows best; predictions stay.

        Parameters
        ----------
        X, y, sample_weight : rows that were not trained on

        Returns
        -------
        self
        """
        joint = self._scores(X)
        y = _input.check_y(y, len(joint))
        codes = _input.encode(y, self.classes_)
        if not isinstance(codes, Labels) or (codes.codes < -1).any():
            raise InputError("calibrate needs plain labels of classes that the model knows")
        weights = _input.check_weights(sample_weight, joint)
        if not weights[codes.codes >= 0].any():
            raise InputError("calibrate needs labelled rows of a weight > 0")
        self.temperature_, _ = best_temperature(joint, codes.codes, weights, self._prior_shift)
        return self

    def set_class_prior(self, class_prior):
        """Tell the model that classes are now as frequent as `class_prior` says.

        The joint is multiplied by new over old frequency, the old one being that of the training
        rows; giving the training frequencies changes nothing.

        Parameters
        ----------
        class_prior : array-like of shape (n_classes,), dict from class to probability, or None
            None goes back to the frequencies of training.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if class_prior is None:
            self._prior_shift = np.zeros(len(self.classes_))
            return self
        if isinstance(class_prior, dict):
            missing = [label for label in self.classes_.tolist() if label not in class_prior]
            if missing:
                raise InputError(f"class_prior lacks the class {missing[0]!r}")
            class_prior = [class_prior[label] for label in self.classes_.tolist()]
        new = np.asarray(class_prior, dtype=np.float64)
        if new.shape != self.classes_.shape:
            raise InputError(f"class_prior needs {len(self.classes_)} numbers, got {new.shape}")
        if not (np.isfinite(new).all() and (new > 0).all() and abs(new.sum() - 1) < 1e-6):
            raise InputError("class_prior must be positive and sum to 1")
        old = np.maximum(self.class_count_, 1e-12 * self.class_count_.sum())
        self._prior_shift = np.log(new) - np.log(old / old.sum())
        return self

    def sample(self, n_samples=1, random_state=None):
        """Draw rows and labels from the joint.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None

        Returns
        -------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        codes = rng.choice(len(self.classes_), size=n_samples, p=self.class_prior_)
        return self._draw(codes, rng), self.classes_[codes]

    def to_linear(self):
        """The same classifier as a linear function of its statistics, see `LinearForm`.

        Returns
        -------
        LinearForm
        """
        theta = self.theta_
        coef = np.hstack([theta[name] for name in theta if name != "class"])
        return LinearForm(coef, theta["class"], type(self)._statistics)

    @property
    def class_prior_(self) -> np.ndarray:
        """p(y) of the model."""
        check_is_fitted(self)
        return self._shares() * np.exp(self._normalized_shift())

    def _shares(self) -> np.ndarray:
        """p(y) as it was trained."""
        count = models.class_counts(self._learner.model)
        return count / count.sum()

    def _normalized_shift(self) -> np.ndarray:
        """What `set_class_prior` adds to ``ln p(y, x)``."""
        return self._prior_shift - np.log(self._shares() @ np.exp(self._prior_shift))

    def save(self, path) -> None:
        """Write the model to a file that is safe to share; read it with `discem.load`."""
        from ._files import save

        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "history_" in state:  # thousands of small dicts are slow to write one by one
            state = state | {"history_": json.dumps(state["history_"])}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "history_" in state:
            state = state | {"history_": json.loads(state["history_"])}
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")
