"""Naive Bayes as people know it, trained discriminatively."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._kinds import savable
from ..families import FAMILIES, Family, gaussian, words
from ..targets import Targets
from ._base import GenerativeClassifier
from ._docs import documented


class FamilyClassifier(GenerativeClassifier):
    """A classifier whose rows are of one family, which it names."""

    family: str

    def _choose_family(self, X) -> Family:
        return FAMILIES[self.family]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        accepts = FAMILIES[self.family].accepts
        tags.input_tags.allow_nan = accepts.missing
        tags.input_tags.sparse = accepts.sparse
        tags.input_tags.positive_only = not accepts.negative
        tags.classifier_tags.poor_score = not accepts.negative  # on toys that are no counts
        return tags


@savable
@documented
class GaussianNB(FamilyClassifier):
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

    family = "gaussian"

    @property
    def mean_(self) -> np.ndarray:
        check_is_fitted(self)
        return gaussian.moments(self.learner_.model.features)[0]

    @property
    def var_(self) -> np.ndarray:
        check_is_fitted(self)
        return gaussian.moments(self.learner_.model.features)[1]


class CountClassifier(FamilyClassifier):
    """What all models of counts share: sparse rows of numbers >= 0."""

    family = "words"

    @property
    def mean_length_(self) -> float:
        return float(self.learner_.state.features.length[0])


@savable
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

    def _row_weights(self, targets, classes, family):
        weights = super()._row_weights(targets, classes, family)
        return weights * (targets.codes >= 0) if self._postpones(targets) else weights

    def _postpones(self, targets: Targets) -> bool:
        """Whether unlabelled rows wait until the others are learnt.

        A step by their NLL replaces a share of all counts, those that tell classes apart included.
        """
        return targets.plain and not self._is_generative() and not targets.labelled.all()

    def _finish(self, batch, rng):
        if self._postpones(batch.targets) and self.unlabelled_weight != 0:
            from ._unlabelled import learn_from_unlabelled

            codes = batch.targets.codes
            own = (codes >= 0) | (batch.given > 0)
            weights = batch.weights[own]
            self.unlabelled_ = learn_from_unlabelled(self, batch.X[own], codes[own], weights, rng)

    @property
    def feature_log_prob_(self) -> np.ndarray:
        return self.log_prob_of(slice(None))

    def log_prob_of(self, columns) -> np.ndarray:
        """``ln p(word | class)`` of some words, as (n_classes, n_columns)."""
        check_is_fitted(self)
        return words.log_probabilities(self.learner_.model.features, columns)

    @property
    def class_log_prior_(self) -> np.ndarray:
        return np.log(self.class_prior_)
