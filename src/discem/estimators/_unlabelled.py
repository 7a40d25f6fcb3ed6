"""What documents without a label say of words: a step up their likelihood.

The gradient of ``sum_i ln p(x_i)`` in the natural parameters of class k is ``sum_i (q_ik - mean)
x_i``, q being the posterior; divided by how often each word occurs it is the natural gradient.
Words that go with the words of a class come to speak for it. But documents differ most in what
they are about, regardless of the classes, and likelihood alone soon finds topics instead. So the
posterior may be taken among documents of the same topic: what differs there is the class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from ..calibration import best_temperature
from ..families._counts import reweighed
from ..io.rows import sparse_rows
from ..models import Mixture
from ._folds import by_class

_TOPICS = 50
_AXES = 50  # that documents are placed on to find topics
_RARE = 15.0  # occurrences that a word needs for its evidence to count by half
_FOLDS = 5
_WEIGHTS = (0.5, 1.0, 2.0)  # that are tried


class Trial(NamedTuple):
    """How much unlabelled documents say beside the labels, and among whom they differ."""

    weight: float
    by_topic: bool


def learn_from_unlabelled(
    estimator: Any, X: Any, codes: np.ndarray, weights: np.ndarray, rng
) -> dict[str, Any]:
    """Let unlabelled rows move a MultinomialNB fitted to the labelled ones, if labels bear it out.

    Each way to do so is tried with labelled rows, a fifth of which is held out in turn.

    Parameters
    ----------
    estimator : MultinomialNB
    X : array or CSR matrix of shape (n, n_features)
    codes, weights : arrays of shape (n,)
        Place of each row's class (negative: none), and its weight.
    rng : RandomState

    Returns
    -------
    dict
        What was chosen.
    """
    X = sp.csr_matrix(X)
    unlabelled = Unlabelled(X[codes < 0], rng)
    trials: list[Trial | None] = [None]
    trials += [Trial(w, by) for w in _WEIGHTS for by in (True, False)]
    if estimator.unlabelled_weight != "auto":
        trials = [Trial(float(estimator.unlabelled_weight), by) for by in (True, False)]
    own = np.flatnonzero((codes >= 0) & (weights > 0))
    X, codes, weights = X[own], codes[own], weights[own]
    rows = sparse_rows(X)
    fold = np.empty(len(own), dtype=np.int64)
    fold[by_class(np.arange(len(own)), codes, rng)] = np.arange(len(own)) % _FOLDS
    options = {"unlabelled_weight": 0.0, "class_weight": None}
    options |= {"early_stopping": False, "max_iter": estimator.n_iter_, "tol": None}
    options |= {"callback": None, "verbose": 0, "random_state": rng.randint(2**31 - 1)}
    scores = {trial: np.zeros((len(own), len(estimator.classes_))) for trial in trials}
    for held in (np.flatnonzero(fold == each) for each in range(_FOLDS)):
        rest = weights.copy()
        rest[held] = 0.0
        if not (len(held) and rest.any()):
            continue
        part = type(estimator)(**estimator.get_params(deep=False) | options)
        part.fit(X, estimator.classes_[codes], rest)
        for trial, model in _moved(unlabelled, part, trials):
            scores[trial][held] = part.learner_.engine.score(model, rows, held)
    found = {trial: best_temperature(scores[trial], codes, weights) for trial in trials}
    best = min(trials, key=lambda trial: found[trial].log_loss)
    if best is not None:
        ((_, model),) = _moved(unlabelled, estimator, [best])
        estimator.learner_.restart(model)
    estimator.temperature_ = found[best].value
    chosen = {"weight": 0.0, "by_topic": False} if best is None else best._asdict()
    return {"rows": unlabelled.rows.shape[0], **chosen, "log_loss": found[best].log_loss}


def _moved(
    unlabelled: Unlabelled, estimator: Any, trials: list[Trial | None]
) -> Iterator[tuple[Trial | None, Mixture]]:
    """The model of an estimator after each trial; None leaves it as it is."""
    model, steps = estimator.learner_.model, unlabelled.steps(estimator)
    for trial in trials:
        if trial is None:
            yield trial, model
        else:
            yield trial, unlabelled.move(model, trial.weight * steps[trial.by_topic])


class Unlabelled:
    """Documents without a label, and their topics."""

    def __init__(self, rows: sp.csr_matrix, rng):
        self.rows = rows
        lengths = np.asarray(rows.sum(axis=1)).ravel()
        self.mean = np.asarray(rows.sum(axis=0)).ravel() / max(rows.shape[0], 1)
        # each counts as one word: a long document is no surer of its class
        self.share = 1.0 / np.where(lengths > 0, lengths, np.inf)[:, None]
        self.words = sp.csr_matrix(rows.multiply(self.share))
        self.topics = _find_topics(rows, rng)

    def steps(self, estimator: Any) -> dict[bool, np.ndarray]:
        """By topic and not: a step in ``ln p(word | class)``, as loud as what labels taught."""
        learner, shares = estimator.learner_, estimator.class_prior_
        joint = learner.score(sparse_rows(self.rows)) * self.share
        loudness = _across(joint).std()
        often = np.asarray(self.words.sum(axis=0)).reshape(-1, 1) * shares
        often += _RARE * (self.words.data.mean() if self.words.nnz else 1.0)
        found = {}
        for by_topic in (True, False):
            topics = self.topics if by_topic else np.zeros_like(self.topics)
            off = _across(joint - _means(joint, topics))
            posterior = softmax(off / max(2.0 * off.std(), 1e-300) + np.log(shares), axis=1)
            step = (self.words.T @ (posterior - _means(posterior, topics))) / often
            found[by_topic] = step * loudness / max(_across(self.words @ step).std(), 1e-300)
        return found

    def move(self, model: Mixture, step: np.ndarray) -> Mixture:
        """A model of words after a step; the mean document stays where it was."""
        step = np.clip(step, -5.0, 5.0)
        features = reweighed(model.features, np.exp(step))
        longer = np.log(features.values["total"] / model.features.values["total"])
        shift = self.mean @ step - self.mean.sum() * longer
        counts = model.classes.counts * np.exp(np.clip(shift.mean() - shift, -20.0, 20.0))
        counts *= model.classes.counts.sum() / counts.sum()
        classes = model.classes._replace(counts=counts)
        return model._replace(classes=classes, blocks=(features,))


def _find_topics(rows: sp.csr_matrix, rng) -> np.ndarray:
    """What each document is about, by number."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.preprocessing import normalize

    n, axes = min(_TOPICS, rows.shape[0] // 20), min(_AXES, rows.shape[1] - 1)
    if n < 2 or axes < 2:
        return np.zeros(rows.shape[0], dtype=np.int64)
    seed = rng.randint(2**31 - 1)
    weighed = TfidfTransformer().fit_transform(rows)
    places = TruncatedSVD(axes, n_iter=3, random_state=seed).fit_transform(weighed)
    return MiniBatchKMeans(n, n_init=3, random_state=seed).fit_predict(normalize(places))


def _across(scores: np.ndarray) -> np.ndarray:
    """What scores say of classes: not what is the same for all of them, nor for all documents."""
    scores = scores - scores.mean(axis=1, keepdims=True)
    return scores - scores.mean(axis=0)


def _means(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    sizes = np.maximum(np.bincount(groups), 1)
    found = [np.bincount(groups, column) / sizes for column in values.T]
    return np.stack(found, axis=1)[groups]
