"""Naive Bayes as people know it, trained discriminatively."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import OptionError
from ..families import gaussian, words
from ..io.rows import dense_rows, sparse_rows
from ..losses import NLL
from ..priors import Dirichlet, NormalGamma, PaperNormalGamma
from ..schedules import Schedule, constant, power
from . import _input
from ._base import GenerativeClassifier


class GaussianNB(GenerativeClassifier):
    _family = gaussian

    def _check_X(self, X, *, reset):
        return _input.check_X(self, X, reset=reset, sparse=False, missing=True, negative=True)

    def _rows(self, X):
        return dense_rows(X)

    def _resolve_prior(self, n_features):
        names: dict[str, Any] = {"data": NormalGamma(), "paper": PaperNormalGamma()}
        prior = names.get(self.prior) if isinstance(self.prior, str) else self.prior
        if not isinstance(prior, NormalGamma | PaperNormalGamma):
            raise OptionError(f"prior={self.prior!r} is unknown: use {list(names)} or NormalGamma()")
        return prior, 1.0

    def _auto_step(self, loss, n):
        if isinstance(loss, NLL):
            return power(1 / (n + 1), n + 1, 1.0)
        return power(0.1, 300.0, 0.75)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class MultinomialNB(GenerativeClassifier):
    _family = words

    def _check_X(self, X, *, reset):
        return _input.check_X(self, X, reset=reset, sparse=True, missing=False, negative=False)

    def _rows(self, X):
        return sparse_rows(X)

    def _resolve_prior(self, n_features):
        log = float(np.log(max(n_features, 3)))
        named = {"data": (Dirichlet(), 1.0), "laplace": (Dirichlet(1.0), 1.0), "log": (Dirichlet(log), log)}
        if isinstance(self.prior, str) and self.prior in named:
            return named[self.prior]
        if isinstance(self.prior, Dirichlet):
            return self.prior, 1.0
        raise OptionError(f"prior={self.prior!r} is unknown: use {list(named)} or Dirichlet()")

    def _auto_step(self, loss, n):
        if isinstance(loss, NLL):
            return power(1 / (n + 1), n + 1, 1.0)
        return constant(1 / n)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags
