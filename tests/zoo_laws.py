"""What a fit on any data must keep, measured: the laws of the zoo."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from zoo import Sample

from discem import TextClassifier, constant

ROUNDING = 1e-9  # of an objective
LEAST = 1e-15  # no probability counts as less
POINTS = 0.02  # of accuracy that may be lost to NLL, beside the noise
TIMES, NATS = 1.05, 0.02  # of log-loss
DEAREST = 0.2  # nats that too few rows may cost


class Trained:
    """A model fitted to a sample, and what the laws ask of it."""

    def __init__(self, model: Any, sample: Sample):
        self.sample = sample
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            self.model = model.fit(sample.X, sample.y, sample.weight)
        told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
        self.warnings = [text for text in told if "has died" not in text]  # of a component

    @cached_property
    def core(self) -> Any:
        """The model of the joint, which a classifier of texts has inside."""
        return self.model.model_ if isinstance(self.model, TextClassifier) else self.model

    def rows(self, X: Any) -> Any:
        """X as the core takes it."""
        if not isinstance(self.model, TextClassifier):
            return X
        bag, chosen = self.model.bag_, self.model.chosen_
        return bag.weigh(bag.count(X), chosen["weighting"], self.model.length)

    @cached_property
    def loss(self) -> str:
        return type(self.core.learner_.rule.loss).__name__

    @cached_property
    def weight(self) -> np.ndarray:
        given = self.sample.weight
        return np.ones(len(self.sample.y)) if given is None else given

    # --- the objective ----------------------------------------------------------------------------

    def objective(self, core: Any) -> float:
        """Sum of the weighted losses and the prior's penalty: what training makes small."""
        a = core.predict_joint_log_proba(self.rows(self.sample.X))
        place = np.searchsorted(core.classes_, self.sample.y)
        own = a[np.arange(len(a)), place]
        losses = _losses(core.learner_.rule.loss, a, own, place)
        return float(self.weight @ losses) + core.learner_.model.penalty()

    @cached_property
    def end(self) -> float:
        return self.objective(self.core)

    @cached_property
    def start(self) -> float:
        return self.objective(self.untrained)

    @cached_property
    def untrained(self) -> Any:
        """The core where training began."""
        options = self.core.get_params()
        chosen = {name: value for name, value in self.chosen.items() if name in options}
        still = clone(self.core).set_params(**chosen)
        still.set_params(max_iter=1, step=constant(0.0), callback=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return still.fit(self.rows(self.sample.X), self.sample.y, self.sample.weight)

    @cached_property
    def chosen(self) -> dict[str, Any]:
        """What the core chose by itself."""
        return getattr(self.core, "chosen_", {})

    @property
    def slack(self) -> float:
        """What rounding may do to the objective."""
        return ROUNDING * abs(self.start) + 1e-6 * self.weight.sum()

    # --- fresh rows -------------------------------------------------------------------------------

    @cached_property
    def log_proba(self) -> np.ndarray:
        return self.model.predict_log_proba(self.sample.X_fresh)

    @cached_property
    def correct(self) -> np.ndarray:
        return self.model.classes_[self.log_proba.argmax(axis=1)] == self.sample.y_fresh

    @cached_property
    def log_losses(self) -> np.ndarray:
        return self._log_losses(self.log_proba)

    @cached_property
    def log_losses_at_start(self) -> np.ndarray:
        return self._log_losses(self.untrained.predict_log_proba(self.rows(self.sample.X_fresh)))

    def _log_losses(self, log_proba: np.ndarray) -> np.ndarray:
        place = np.searchsorted(self.model.classes_, self.sample.y_fresh)
        return -np.maximum(log_proba[np.arange(len(place)), place], np.log(LEAST))

    # --- laws: each returns what is wrong, or nothing ---------------------------------------------

    def not_finite(self) -> str:
        core = self.core
        numbers = {
            "scores": core.predict_joint_log_proba(self.rows(self.sample.X)),
            "fresh scores": core.predict_joint_log_proba(self.rows(self.sample.X_fresh)),
            "probabilities": np.exp(self.log_proba),
            "mu_": np.concatenate([part.ravel() for part in core.mu_.values()]),
            "history_": [v for r in core.history_ for v in r.values() if not isinstance(v, str)],
            "objective": [self.start, self.end],
        }
        bad = [name for name, values in numbers.items() if not np.isfinite(values).all()]
        return f"not finite: {', '.join(bad)}" if bad else ""

    def worse_than_its_start(self) -> str:
        if self.end <= self.start + self.slack:
            return ""
        per_row = np.array([self.start, self.end]) / self.weight.sum()
        return "worse than its start: {:.5g} -> {:.5g} a row".format(*per_row)

    def warned_wrongly(self) -> str:
        """A warning is due at max_iter, and only there or where it stalled or gained nothing."""
        core = self.core
        exhausted = core.tol is not None and core.n_iter_ >= core.max_iter
        if exhausted and not self.warnings:
            return f"no warning after all {core.n_iter_} epochs"
        gained = self.end < self.start - self.slack or self.loss == "NLL"
        stalled = any("stalled" in each for each in self.warnings)
        if self.warnings and gained and not exhausted and not stalled:
            return f"a warning, but it has converged: {self.warnings[0]}"
        return ""

    def less_accurate_than(self, nll: Trained, allowed: float = POINTS) -> str:
        lost = nll.correct.astype(float) - self.correct
        if _mean(lost) <= allowed + _noise(lost):
            return ""
        return f"accuracy {self.correct.mean():.3f}, under nll {nll.correct.mean():.3f}"

    def larger_log_loss_than(self, nll: Trained) -> str:
        if self.loss == "Hinge":
            return ""  # it trains margins, not probabilities
        lost = self.log_losses - TIMES * nll.log_losses
        if _mean(lost) <= NATS + self.price_of_few_rows() + _noise(lost):
            return ""
        return f"log-loss {self.log_losses.mean():.3f}, under nll {nll.log_losses.mean():.3f}"

    def price_of_few_rows(self) -> float:
        """What p free parameters cost that n rows have to tell: p / 2n nats, as in Akaike's rule.

        Training to classify pays it in full, counting hardly, and no optimiser can help it: at the
        exact optimum of the default objective, by L-BFGS, every fifth random table has lost more
        accuracy than noise and `POINTS` allow, up to 0.2; none more log-loss than is allowed here.
        """
        effective = self.weight.sum() ** 2 / (self.weight**2).sum()
        p = sum(part.size for part in self.core.mu_.values())
        return min(p / (2 * effective), DEAREST)

    def broken_laws(self, nll: Trained | None, allowed: float = POINTS) -> list[str]:
        """All that is wrong, beside the model trained under NLL if this is another."""
        found = [self.not_finite(), self.worse_than_its_start(), self.warned_wrongly()]
        if nll is not None:
            found += [self.less_accurate_than(nll, allowed), self.larger_log_loss_than(nll)]
        return [text for text in found if text]


def _losses(loss: Any, a: np.ndarray, own: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The losses of rows from their scores, by the formulas of the method."""
    name = type(loss).__name__
    if name == "Hinge":
        others = a.copy()
        others[np.arange(len(a)), place] = -np.inf
        return np.maximum(0.0, loss.margin - (own - others.max(axis=1)))
    if name == "NLL":
        return -own
    free = logsumexp(a - a.max(axis=1, keepdims=True), axis=1) + a.max(axis=1)
    kappa = loss.kappa if name == "Blend" else 0.0
    return (free - own) - kappa * own


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _noise(differences: np.ndarray) -> float:
    """Two standard errors of a mean of paired differences."""
    return 2 * float(np.std(differences) / np.sqrt(max(len(differences), 1)))
