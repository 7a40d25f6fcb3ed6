"""What all models of the paper share: labels, epochs, records, prediction.

Every model has a function `train` with these options:

- lam : float, or function of t. Step t has the size ``1 / (1 + lam t)``, t = 1, 2, ..., over all
  epochs, or the size ``lam(t)``.
- epochs : int. Passes over the rows, each in a new random order. With 0 the model stays at its
  start.
- projection : "check" or "interior". The paper's check-steps, which lift what left its domain, or
  steps that are shortened to stay inside.
- share, damping : float. No interior step takes more than a `share` of a count or of a variance,
  and a step is divided by ``1 + damping * effect``, its effect on the scores of its own row. Under
  NLL there is no damping.
- average : bool. Predict with the average of the states, in which step t weighs t^2.
- seed : int, RandomState, Generator or None.
- callback : function. ``callback(model, record)`` is called after each epoch; True ends training.
  It may ask ``model.measure(X, y)`` for the same figures of the model at the end of the epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from ..exceptions import InputError, OptionError
from .losses import FIGURES, MEASURED, SHORTENED, loss_code, measure

Record = dict[str, float]
Callback = Callable[[Any, Record], Any]


class Classifier:
    """A model of the paper, in training or trained.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    history_ : list of dict
        One record an epoch: means over the rows, each measured before it was learnt from (``loss``,
        ``nll``, ``ncll``, ``hinge``, ``accuracy`` and, for words, ``perplexity``), the size of the
        last ``step``, the share of rows whose step was ``shortened``, and ``seconds``.
    """

    def __init__(self, y: Any, loss: str):
        self.classes_, self._codes = np.unique(np.asarray(y), return_inverse=True)
        self.loss, self._loss = loss, loss_code(loss)
        self.history_: list[Record] = []
        self.t = 0  # rows learnt from so far

    def scores(self, X: Any) -> np.ndarray:
        """The scores ``ln p(y, x)``, one column a class."""
        raise NotImplementedError

    def _learn(self, rows: Any, order: np.ndarray, rho: np.ndarray, figures: np.ndarray) -> None:
        """Take one step of size `rho` for each row in `order`, and add up `FIGURES`."""
        raise NotImplementedError

    def _train(self, X: Any, lam: Any, epochs: int, seed: Any, callback: Callback | None) -> None:
        """Take some passes over the rows of `X`, each in an order of its own."""
        n, rng = len(self._codes), random_numbers(seed)
        if X.shape[0] != n:
            raise InputError(f"X has {X.shape[0]} rows but y has {n}")
        rows = self._rows(X)
        for epoch in range(epochs):
            begun, figures = time.perf_counter(), np.zeros(len(FIGURES))
            order = rng.permutation(n)
            rho = step_sizes(lam, self.t, n)
            self._learn(rows, order, rho, figures)
            self.t += n
            record = {"epoch": epoch + 1} | self._record(figures, X)
            record |= {"step": float(rho[-1]), "shortened": float(figures[SHORTENED] / n)}
            record["seconds"] = time.perf_counter() - begun
            self.history_.append(record)
            if callback is not None and callback(self, record) is True:
                break

    def _rows(self, X: Any) -> Any:
        """X as the compiled loop reads it."""
        return X

    def _record(self, figures: np.ndarray, X: Any) -> Record:
        """Means over the rows of X, from sums."""
        found = dict(zip(MEASURED, (figures[: len(MEASURED)] / X.shape[0]).tolist(), strict=True))
        if sp.issparse(X):  # exp of -ln p(x) per word; ln p(x) is NCLL less NLL
            exponent = (found["nll"] - found["ncll"]) * X.shape[0] / max(float(X.sum()), 1e-300)
            found["perplexity"] = float(np.exp(min(exponent, 700.0)))
        return found

    def measure(self, X: Any, y: Any) -> Record:
        """Means over labelled rows, of the model as it stands."""
        X = as_csr(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        figures = np.zeros(len(FIGURES))
        measure(self._loss, self.scores(X), np.searchsorted(self.classes_, y), figures)
        return self._record(figures, X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of ``p(y | x)``, one column a class."""
        scores = self.scores(X)
        return scores - logsumexp(scores, axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest score."""
        return self.classes_[self.scores(X).argmax(axis=1)]

    def score(self, X: Any, y: Any) -> float:
        """The share of rows that are classified right."""
        return float(np.mean(self.predict(X) == y))


def random_numbers(seed: Any) -> Any:
    """Return a source of random numbers: a Generator as it is, else what scikit-learn makes."""
    return seed if isinstance(seed, np.random.Generator) else check_random_state(seed)


def step_sizes(lam: Any, taken: int, count: int) -> np.ndarray:
    """Sizes of the next steps, ``1 / (1 + lam t)`` from t = 1, or as a function `lam` of t says."""
    t, rho = np.arange(taken + 1.0, taken + count + 1.0), np.empty(count)
    rho[:] = lam(t) if callable(lam) else 1.0 / (1.0 + lam * t)
    return rho


def check_projection(projection: str) -> bool:
    """Return whether steps are the paper's check-steps."""
    if projection not in ("check", "interior"):
        raise OptionError(f"projection={projection!r} is unknown: use 'check' or 'interior'")
    return projection == "check"


def as_csr(X: Any) -> sp.csr_array:
    """Counts as sparse rows, each word of a document once."""
    X = sp.csr_array(X, dtype=np.float64)
    if not (X.has_canonical_format and X.data.all()):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X
