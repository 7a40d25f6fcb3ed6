"""Naive Bayes as people know it, trained discriminatively."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .. import models
from ..engines.sequential import NCLL_SUM, NLL_SUM
from ..exceptions import InputError, OptionError
from ..families import gaussian, words
from ..io.rows import dense_rows, sparse_rows
from ..losses import NLL, Labels, resolve_loss
from ..priors import Dirichlet, NormalBetaPrime, NormalGamma, PaperNormalGamma
from ..schedules import constant, power
from . import _input
from ._base import GenerativeClassifier
from ._docs import documented

_WHISPER = 0.005  # weight of all unlabelled documents together, beside that of the labelled ones


def running_mean(n: float) -> Any:
    """1 / (n + 1 + t): NLL goes on averaging as if the start had been n rows."""
    return power(1.0 / (n + 1.0), n + 1.0, 1.0)


def statistics_of(weight, mean, variance) -> dict[str, np.ndarray]:
    """Expected statistics of normal distributions, (n, d), of the given weights."""
    weight = weight[:, None]
    return {"x": weight * mean, "x^2": weight * (variance + mean**2)}


def natural_of(mean, variance) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The log-normalisers of products of normal distributions, and their natural parameters."""
    varies = variance > 0  # a constant column takes no part
    safe = np.where(varies, variance, 1.0)
    theta = np.stack([mean / safe, -0.5 / safe], axis=-1)
    normalizer = np.where(varies, gaussian.log_normalizer(theta), 0.0).sum(axis=1)
    slope, curve = np.where(varies[..., None], theta, 0.0).transpose(2, 0, 1)
    return normalizer, {"x": slope, "x^2": curve}


def perplexity(figures, rows, order, weights) -> float:
    """What a sweep over documents says of their words: exp of -ln p(x) per word."""
    lengths, filled = np.zeros(len(weights)), np.diff(rows.indptr) > 0
    lengths[filled] = np.add.reduceat(rows.values, rows.indptr[:-1][filled])
    n_words = float(lengths[order] @ weights[order])
    log_likelihood = figures[NCLL_SUM] - figures[NLL_SUM]  # ln p(x)
    exponent = -log_likelihood / max(n_words, 1e-300)
    return float(np.exp(min(exponent, 700.0)))


@documented
class GaussianNB(GenerativeClassifier):
    """Gaussian naive Bayes, trained under NLL, NCLL or hinge.

    p(x | y) is a product of normal distributions, one per feature and class. NaN is a missing
    cell: it is summed out in training and prediction, never imputed. With the default prior the
    units of the features do not matter: there is no need to scale them.

    Parameters
    ----------
    {loss}
    prior : {{"data", "paper"}} or NormalGamma, default="data"
        The regulariser. "data" is `NormalGamma()`: it pulls class means to the overall mean (with
        the strength of 2 observations), class variances to the pooled within-class variance (30),
        so training does not depend on the units of a column. "paper" is the prior of the paper's
        toy example, in raw units.
    {common}

    Attributes
    ----------
    mean_, var_ : arrays of shape (n_classes, n_features)
        Mean and variance of each feature in each class.
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from discem import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> X[::7, 2] = np.nan  # missing cells are fine
    >>> model = GaussianNB(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.predict_proba([[5.0, np.nan, 1.4, 0.2]]).round(2).tolist()
    [[1.0, 0.0, 0.0]]
    """

    _family = gaussian

    def _check_X(self, X, *, reset):
        return _input.check_X(self, X, reset=reset, sparse=False, missing=True, negative=True)

    def _rows(self, X):
        return dense_rows(X)

    def _resolve_prior(self, n_features):
        names: dict[str, Any] = {"data": NormalGamma(), "paper": PaperNormalGamma()}
        prior = names.get(self.prior) if isinstance(self.prior, str) else self.prior
        own = NormalGamma | NormalBetaPrime  # in the data's own units
        if not isinstance(prior, own | PaperNormalGamma):
            raise OptionError(
                f"prior={self.prior!r} is unknown: use one of {list(names)} or NormalGamma(...)"
            )
        if isinstance(prior, own) and not (prior.nu_mean >= 0 and prior.nu_variance > 0):
            raise OptionError(f"prior={prior!r}: nu_mean must be >= 0 and nu_variance > 0")
        return prior, 1.0

    def _auto_step(self, loss, n):
        return running_mean(n) if isinstance(loss, NLL) else power(0.1, 200.0, 0.8)

    def _auto_average(self, loss):
        return not isinstance(loss, NLL)

    def _draw(self, codes, rng):
        return gaussian.sample(self._learner.model.features, codes, rng)

    @staticmethod
    def _statistics(X):
        X = np.asarray(X, dtype=np.float64)
        return np.hstack([X, X**2])

    @property
    def mean_(self) -> np.ndarray:
        check_is_fitted(self)
        return gaussian.moments(self._learner.model.features)[0]

    @property
    def var_(self) -> np.ndarray:
        check_is_fitted(self)
        return gaussian.moments(self._learner.model.features)[1]

    @property
    def mu_(self) -> dict[str, np.ndarray]:
        return {"class": self.class_prior_} | statistics_of(
            self.class_prior_, self.mean_, self.var_
        )

    @property
    def theta_(self) -> dict[str, np.ndarray]:
        normalizer, slopes = natural_of(self.mean_, self.var_)
        return {"class": np.log(self.class_prior_) - normalizer} | slopes

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class CountClassifier(GenerativeClassifier):
    """What all models of counts share: sparse rows of numbers >= 0, and perplexity."""

    mean_length_: float

    _family = words

    def _check_X(self, X, *, reset):
        return _input.check_X(self, X, reset=reset, sparse=True, missing=False, negative=False)

    def _rows(self, X):
        return sparse_rows(X)

    def _auto_unlabelled(self, loss, ratio):
        # an NLL step replaces a share of all counts, also of those that tell classes apart
        return 1.0 if isinstance(loss, NLL) else _WHISPER / ratio

    def _summary(self, figures, rows, order, weights):
        summary = super()._summary(figures, rows, order, weights)
        return summary | {"perplexity": perplexity(figures, rows, order, weights)}

    def _note(self, counted):
        rows = max(float(counted.classes.sum()), 1e-300)
        self.mean_length_ = float(counted.features.sum()) / rows

    def _lengths(self, n: int, rng) -> np.ndarray:
        """Lengths of n documents to draw."""
        if not self.mean_length_ < 1e9:
            raise InputError(f"documents of {self.mean_length_:g} words are too long to draw")
        return rng.poisson(self.mean_length_, size=n)

    def _extend(self, n_features: int) -> None:
        """Make room for words that have not been met so far."""
        state = self._learner.state
        if n_features > len(state.features.alpha):
            self._learner.replace(models.with_features(state, n_features))
            self.n_features_in_ = n_features

    def _brace(self, rows):
        words.brace(self._learner.state.features, rows.values.max(initial=0.0))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on the dense toys of the checks: no counts
        return tags


@documented
class MultinomialNB(CountClassifier):
    """Multinomial naive Bayes over counts, trained under NLL, NCLL or hinge.

    p(x | y) is a multinomial over the features (words): each occurrence is drawn from the word
    distribution of the class. Counts may be real numbers, such as tf-idf weights. Sparse input
    stays sparse: a step costs only the words of its document.

    Parameters
    ----------
    {loss}
    prior : {{"data", "laplace", "log"}} or Dirichlet, default="data"
        Pseudo-counts of each word in each class. "data" is `Dirichlet()`, three times as many in
        all as there are words in the data, which discriminative training wants; under NLL it is
        "laplace". "laplace" and "log" are the paper's P1 (one of each word) and P2 (the logarithm
        of the size of the vocabulary).
    {common}

    Attributes
    ----------
    feature_log_prob_ : array of shape (n_classes, n_features)
        ``ln p(word | class)``.
    class_log_prior_ : array of shape (n_classes,)
        ``ln p(class)``.
    mean_length_ : float
        Words per training document: what `sample` draws lengths around.
    unlabelled_ : dict
        How unlabelled rows were heard, if there were any: how many, with what weight, whether by
        topic, and the log-loss of labelled rows held out. `temperature_` is then set by these, too.
    {attributes}

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from discem import MultinomialNB
    >>> texts = ["good film", "bad film", "good plot and good cast", "bad plot and bad cast"]
    >>> X = CountVectorizer().fit_transform(texts)
    >>> MultinomialNB(random_state=0).fit(X, ["+", "-", "+", "-"]).predict(X).tolist()
    ['+', '-', '+', '-']
    """

    def _resolve_prior(self, n_features):
        log = float(np.log(max(n_features, 3)))
        generative = isinstance(resolve_loss(self.loss), NLL)
        names = {
            "data": (Dirichlet(1.0) if generative else Dirichlet(), 1.0),
            "laplace": (Dirichlet(1.0), 1.0),
            "log": (Dirichlet(log), log),  # the supplement adds the same gamma to class counts
        }
        if isinstance(self.prior, str) and self.prior in names:
            return names[self.prior]
        if isinstance(self.prior, Dirichlet):
            return self.prior, 1.0
        raise OptionError(
            f"prior={self.prior!r} is unknown: use one of {list(names)} or Dirichlet(...)"
        )

    def _auto_step(self, loss, n):
        return running_mean(n) if isinstance(loss, NLL) else constant(10.0 / n)

    def _auto_average(self, loss):
        return False  # the growing mass of the prior quiets the last iterate at no cost

    def _row_weights(self, targets):
        weights = super()._row_weights(targets)
        return weights * (targets.codes >= 0) if self._hears(targets) else weights

    def _hears(self, targets) -> bool:
        """Whether unlabelled rows wait until the others are learnt.

        A step by their NLL replaces a share of all counts, those that tell classes apart included.
        """
        generative = isinstance(resolve_loss(self.loss), NLL)
        return isinstance(targets, Labels) and not generative and bool((targets.codes < 0).any())

    def _finish(self, X, targets, weights, present, rng):
        if self._hears(targets) and self.unlabelled_weight != 0:
            from ._unlabelled import hear

            own = (targets.codes >= 0) | present
            self.unlabelled_ = hear(self, X[own], targets.codes[own], weights[own], rng)

    def _draw(self, codes, rng):
        lengths = self._lengths(len(codes), rng)
        return words.sample(self._learner.model.features, codes, lengths, rng)

    @staticmethod
    def _statistics(X):
        return X if sp.issparse(X) else np.asarray(X, dtype=np.float64)

    @property
    def feature_log_prob_(self) -> np.ndarray:
        return self._log_probabilities()

    def _log_probabilities(self, chosen=slice(None)) -> np.ndarray:
        """``ln p(word | class)`` of the chosen words."""
        check_is_fitted(self)
        return words.log_probabilities(self._learner.model.features, chosen)

    @property
    def class_log_prior_(self) -> np.ndarray:
        return np.log(self.class_prior_)

    @property
    def mu_(self) -> dict[str, np.ndarray]:
        prior = self.class_prior_
        words_each = prior[:, None] * self.mean_length_ * np.exp(self.feature_log_prob_)
        return {"class": prior, "word": words_each}

    @property
    def theta_(self) -> dict[str, np.ndarray]:
        return {"class": self.class_log_prior_, "word": self.feature_log_prob_}
