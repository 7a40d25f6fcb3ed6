"""Estimate changed class frequencies from rows without labels."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import chi2

from .._checks import check_array, check_number, demand
from .._kinds import savable
from ..exceptions import InputError
from . import _input
from ._threads import reads
from ._types import Table

_STEPS = 2000  # of EM
_TOL = 1e-8  # change of the frequencies below which EM has converged
_LEAST = 1e-12  # of a frequency
_LOWEST = -500.0  # of a logarithm
_SPREAD = 3.0  # prior standard deviation of the logarithm of a scaling

Model = TypeVar("Model", bound="Adapts")


@savable
class LabelShift(NamedTuple):
    """Class frequencies in rows without labels, compared with those of the training data."""

    classes: np.ndarray
    before: np.ndarray  # (classes,) frequencies in training
    now: np.ndarray  # (classes,)
    error: np.ndarray  # (classes,) the standard errors of `now`
    p_value: float  # of the hypothesis that the frequencies are unchanged

    @property
    def drift(self) -> float:
        """Return the share of rows whose class would have to change, from 0 (no drift) to 1."""
        return 0.5 * float(np.abs(self.now - self.before).sum())

    def check(self, classes: np.ndarray) -> None:
        demand(np.array_equal(self.classes, classes), "a shift is of other classes")
        for name in ("before", "now", "error"):
            check_array(name, getattr(self, name), classes.shape, least=0.0)
        check_number("p_value", self.p_value, least=0.0, most=1.0)


@savable
class Scaling(NamedTuple):
    """A scaling that calibrates probabilities: ``softmax(temperature * ln p(y | x) + bias)``."""

    temperature: float
    bias: np.ndarray  # (classes,)

    @classmethod
    def learn(cls, log_p: np.ndarray, codes: np.ndarray, frequency: np.ndarray) -> Scaling:
        """Fit the scaling to rows with known classes, weighted to the training frequencies.

        The rows may be training rows: probabilities are never made more certain.
        """
        rows, K = np.arange(len(codes)), log_p.shape[1]
        weights = frequency[codes] / np.maximum(np.bincount(codes, minlength=K), 1)[codes]
        weights *= len(codes) / weights.sum()
        log_p = np.maximum(log_p, _LOWEST)

        def objective(free: np.ndarray) -> tuple[float, np.ndarray]:
            temperature, bias = np.exp(free[0]), free[1:]
            scores = log_softmax(temperature * log_p + bias, axis=1)
            error = np.exp(scores)
            error[rows, codes] -= 1.0
            error *= weights[:, None]
            pull = np.r_[free[0], bias] / _SPREAD**2  # a prior worth a few rows
            slope = np.r_[temperature * (error * log_p).sum(), error.sum(axis=0)]
            return -weights @ scores[rows, codes] + 0.5 * free @ pull, slope + pull

        bounds = [(-5.0, 0.0)] + K * [(-20.0, 20.0)]
        free = minimize(objective, np.zeros(K + 1), jac=True, bounds=bounds, method="L-BFGS-B").x
        return cls(float(np.exp(free[0])), free[1:])

    def __call__(self, log_p: np.ndarray) -> np.ndarray:
        scores = self.temperature * np.maximum(log_p, _LOWEST) + self.bias
        return log_softmax(scores, axis=1)

    def with_classes(self, order: np.ndarray) -> Scaling:
        """Arrange the classes in `order`; -1 is a new one, whose probabilities are not biased."""
        return self._replace(bias=np.append(self.bias, 0.0)[order])

    def check(self, n_classes: int) -> None:
        check_number("temperature", self.temperature, above=0.0, most=1.0)
        check_array("bias", self.bias, (n_classes,), least=-20.0, most=20.0)


def find_shift(log_p: np.ndarray, classes: np.ndarray, before: np.ndarray) -> LabelShift:
    """Estimate frequencies by EM from ``ln p(y | x)``, (n, K), under the training frequencies.

    It assumes that only the frequencies have changed, not p(x | y). The likelihood is concave, so
    the solution is unique. One pseudo-row per class, at the training frequencies, keeps it inside.
    """
    p, prior = np.exp(log_p), len(classes) * before
    now = before
    for _ in range(_STEPS):
        last, ratio = now, now / before
        now = ratio * (p.T @ (1.0 / np.maximum(p @ ratio, _LEAST))) + prior
        now = np.maximum(now / now.sum(), _LEAST)
        if np.abs(now - last).max() < _TOL:
            break
    now = now / now.sum()
    density = p / before
    density /= np.maximum(density @ now, _LEAST)[:, None]  # p(x | y) / p(x)
    information = density.T @ density + np.diag(prior / now**2)
    gain = np.log(np.maximum(p @ (now / before), _LEAST)).sum()  # of the log-likelihood
    p_value = float(chi2.sf(2.0 * gain, len(classes) - 1)) if len(classes) > 1 else 1.0
    return LabelShift(classes, before, now, _errors(information), p_value)


def _errors(information: np.ndarray) -> np.ndarray:
    """Return standard errors of numbers with a fixed sum."""
    K = len(information)
    free = np.vstack([np.eye(K - 1), -np.ones((1, K - 1))])  # the last takes what others give
    covariance = free @ np.linalg.pinv(free.T @ information @ free, hermitian=True) @ free.T
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


class Adapts:
    """Classifiers that adapt to changed class frequencies."""

    _shift: LabelShift

    def _owner(self) -> Any:
        """Return the model that holds the shift."""
        return self

    def _scaling(self) -> Scaling | None:
        """Return the scaling that calibrates probabilities, if training estimated it."""
        return None

    @reads
    def adapt(self: Model, X: Table, known: Any = None) -> Model:
        """Return a copy of the model that is adapted to rows with other class frequencies.

        EM estimates the frequencies from rows without labels, by maximum likelihood. The copy has
        these frequencies, as if set by `set_class_prior`; its `shift_` holds the estimates and
        their errors. This model is not changed.

        Only frequencies may have changed: rows of one class must look as they did in training. And
        probabilities must fit. `TableClassifier` remembers how far its own do. Of other models,
        those trained under NCLL mostly do, and those under NLL or hinge loss do not: give some rows
        that are `known`.

        Parameters
        ----------
        X : as for `predict`
            Rows without labels. A few hundred are enough for two classes.
        known : (X, y), optional
            Rows with labels, distributed like the training data, or some of the training rows. They
            calibrate the probabilities that EM uses. Predictions are not scaled.

        Returns
        -------
        model
        """
        model: Any = copy(self)
        model.set_class_prior(None)
        scaling = self._scaling()
        if known is not None:
            codes = _codes(known[1], model.classes_)
            log_p = np.asarray(model.predict_log_proba(known[0]))
            scaling = Scaling.learn(log_p, codes, model.class_frequency_)
        log_p = np.asarray(model.predict_log_proba(X))
        if len(log_p) == 0:
            raise InputError("adapt needs rows, and X has none")
        log_p = log_p if scaling is None else scaling(log_p)
        shift = find_shift(log_p, model.classes_, model.class_frequency_)
        model.set_class_prior(shift.now)
        model._owner()._shift = shift
        return model

    @property
    def shift_(self) -> LabelShift:
        """The result of `adapt`."""
        owner = self._owner()
        if "_shift" not in vars(owner):
            raise AttributeError("only what `adapt` returns has a shift_")
        return owner._shift


def _codes(y: Any, classes: np.ndarray) -> np.ndarray:
    targets = _input.encode(_input.check_y(y, len(y)), classes)
    if not targets.plain or (targets.codes < 0).any():
        raise InputError("known=(X, y) needs rows that all have a label of the training")
    return targets.codes
