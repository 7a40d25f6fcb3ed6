"""Methods of a fitted model of documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._kinds import savable
from ..exceptions import InputError, OptionError
from ..io.bag import Bag, as_documents
from ..io.seen import Seen
from . import _input
from ._by_label import place_of
from ._choice import Choice
from ._explain import Explanation, telling_words
from ._joint import LinearForm, normalized
from ._meaning import MEANING, Meaning, vectors_of
from ._options import of
from ._pieces import by_partition, n_classes
from ._preset import ClassifierPreset
from ._threads import reads, writes
from ._types import Label, Labels, RandomState, Table, Weights
from .naive_bayes import MultinomialNB

_LONGEST = 1e6  # the largest number of words in a drawn document


def _silent(rows) -> np.ndarray:
    """Return which documents have no word with a weight."""
    return np.flatnonzero(rows.indptr[1:] == rows.indptr[:-1])


def _are_texts(document, vocabulary: dict[str, int]) -> bool:
    """Return whether a list holds documents, rather than the words of one document."""
    words = any(word in vocabulary or len(word.split()) < 2 for word in document)
    return len(document) > 0 and not words


@savable
@dataclass
class Fitted:
    """The fitted state of a `TextClassifier`; a fit replaces it as a whole or not at all."""

    bag: Bag
    chosen: dict[str, Any]
    choice: Choice = field(default_factory=Choice)
    progress: np.ndarray = field(default_factory=lambda: np.zeros(3))  # sums of a stream
    model: MultinomialNB | None = None
    roles: dict[str, str] = field(default_factory=dict)
    files: dict[str, Seen] = field(default_factory=dict)  # that a command read as a stream
    meaning: Meaning | None = None  # the block of vectors, if it is used

    def warm(self, temperature: float, before: float | None) -> None:
        """Set another temperature of words, and adapt the weight of vectors to it."""
        if self.meaning is not None and before is not None:  # words now weigh more or less
            ratio = temperature / before
            temperature = self.chosen["temperature"] * ratio
            self.meaning.weight /= ratio
            self.meaning.bias /= ratio
        self.chosen["temperature"] = temperature

    @property
    def is_trained(self) -> bool:
        return self.model is not None and self.model.__sklearn_is_fitted__()


class DocumentModel(ClassifierPreset):
    """A model of the weighted words of documents: predictions and explanations."""

    _fitted: Fitted
    length: Any
    n_features: Any
    encoder: Any
    verbose: Any
    device: Any

    # --- prediction -------------------------------------------------------------------------------

    def _weigh(self, counts) -> sp.csr_matrix:
        return self.bag_.weigh(counts, self.chosen_["weighting"], self.length)

    def _documents(self, X) -> list[Any]:
        """Check the documents that a fitted model predicts."""
        if not self.__sklearn_is_fitted__():  # which is quick
            check_is_fitted(self)
        return as_documents(X)

    @reads
    def _rows(self, X):
        documents = self._documents(X)
        return self._weigh(self.bag_.count(documents))

    def _said(self, X, vectors: np.ndarray | None = None) -> Any:
        """Return what the vectors of documents add to ``ln p(y, words)``, without p(y)."""
        meaning = self._fitted.meaning
        if meaning is None:
            return 0.0
        return meaning.said(self._vectors(X) if vectors is None else vectors)

    def _vectors(self, X) -> np.ndarray:
        """Return the vectors of documents, by the encoder that was used in training."""
        meaning: Any = self._fitted.meaning
        meaning.check_encoder(self.encoder)
        return vectors_of(self.encoder, as_documents(X), self.verbose)

    def _vectors_to_learn(self, fitted: Fitted, documents: list[Any]) -> np.ndarray | None:
        """Return the vectors of the next documents of a stream that started with vectors."""
        if fitted.model is not None:
            return None if fitted.meaning is None else self._vectors(documents)
        if self.encoder is None:
            return None
        vectors = vectors_of(self.encoder, documents, self.verbose)
        fitted.meaning = Meaning.new(self.encoder, vectors, device=self.device)
        return vectors

    def _meanings(self) -> list[Meaning]:
        return [] if self._fitted.meaning is None else [self._fitted.meaning]

    def _start(self) -> Any:
        """Return what the block of vectors adds to each class, regardless of the document."""
        return 0.0 if self._fitted.meaning is None else self._fitted.meaning.start

    def _tempered(self, X, vectors: np.ndarray | None = None) -> np.ndarray:
        """``ln p(y | document)``, (n, n_classes), up to what is the same for all classes.

        A document without words gets the frequencies of the classes, plus the score of its vector.
        """
        X = self._documents(X)
        rows = self._rows(X)
        model, silent = self.model_, _silent(rows)
        scores = model.temperature_ * (model._scores(rows) + self._start()) + model._prior_shift
        scores[silent] = np.log(model.class_frequency_)
        return scores + model.temperature_ * self._said(X, vectors)

    def _foreseen(self, documents, vectors, y, weights) -> tuple[float, float] | None:
        """Return accuracy and log-loss of documents before they are learnt.

        For a class unknown to the model, the probability is that of one more class at random.
        """
        codes = _input.encode(y, self.classes_).codes
        weights = np.where(_input.missing_labels(y), 0.0, weights)
        if not weights.any():
            return None
        log_p = normalized(self._tempered(documents, vectors))
        known = codes >= 0
        right = known & (log_p.argmax(axis=1) == codes)
        losses = -log_p[np.arange(len(codes)), np.maximum(codes, 0)]
        losses = np.where(known, losses, np.log(len(self.classes_) + 1.0))
        return float(np.average(right, weights=weights)), float(np.average(losses, weights=weights))

    @by_partition(dtype=lambda model: model.classes_.dtype)
    @reads
    def predict(self, X: Table, reject: float | None = None, usual: Any = None) -> np.ndarray:
        """Return the most probable class of each document, or None; see `MultinomialNB.predict`."""
        X = self._documents(X)
        best = self._tempered(X).argmax(axis=1)
        return self._or_none(self.classes_[best], X, reject, usual)

    @by_partition(n_classes)
    @reads
    def predict_proba(self, X: Table) -> np.ndarray:
        """Return ``p(y | document)`` of every class, as (n_documents, n_classes).

        A document without any known word (and without a vector) gets the class frequencies of the
        training data, or those of `set_class_prior`.
        """
        return np.exp(self.predict_log_proba(X))

    @by_partition(n_classes)
    @reads
    def predict_log_proba(self, X: Table) -> np.ndarray:
        """Return ``ln p(y | document)`` of every class; see `predict_proba`."""
        return normalized(self._tempered(X))

    @by_partition(n_classes)
    @reads
    def predict_joint_log_proba(self, X: Table) -> np.ndarray:
        """Return ``ln p(y, document)`` of every class, for the weighted words.

        Vectors only add what separates the classes, not their own density.
        """
        X = self._documents(X)
        found = self.model_.predict_joint_log_proba(self._rows(X))
        return found + self._start() + self._said(X)

    @by_partition()
    @reads
    def score_samples(self, X: Table) -> np.ndarray:
        """Return ``ln p(words)`` of each document: low for documents unlike the training data."""
        rows = self._rows(X)
        return self.model_.score_samples(rows)

    # --- after training ---------------------------------------------------------------------------

    @writes
    def calibrate(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        """Choose `temperature_` on documents not used in training; predicted classes stay."""
        X = self._documents(X)
        scores = self.model_._scores(self._rows(X)) + self._start() + self._said(X)
        self.model_._calibrate(scores, y, sample_weight)
        return self

    @reads
    def to_linear(self) -> LinearForm:
        """Return the same classifier as a linear function of the weighted words, and of vectors.

        Returns
        -------
        LinearForm
        """
        check_is_fitted(self)
        words, meaning = self.model_.to_linear(), self._fitted.meaning
        if meaning is None:
            return words._replace(statistics=self._rows)
        coef, offset = meaning.linear()
        return LinearForm(
            np.hstack([words.coef_, coef]),
            words.intercept_ + meaning.start + offset,
            lambda X: sp.hstack([self._rows(X), self._vectors(X)], format="csr"),
        )

    @reads
    def explain(self, document: str | list[str]) -> Explanation:
        """Return the exact contribution of each word of a document to the score of each class.

        With an encoder the last part, "(meaning)", is the contribution of the vector.

        Parameters
        ----------
        document : str or list of str

        Returns
        -------
        Explanation
        """
        row = self._rows([document])
        model, names = self.model_, self.bag_.columns(document)
        if not isinstance(document, str) and _are_texts(document, self.bag_.vocabulary):
            raise InputError("explain takes one document at a time, and this is a list of texts")
        row.sort_indices()
        parts = model.temperature_ * row.data[:, None] * model.log_prob_of(row.indices).T
        parts -= parts.mean(axis=1, keepdims=True)
        shown = [names[j] for j in row.indices]
        start = np.log(model.class_frequency_)
        if row.nnz:
            start = model.class_scores_ + model.temperature_ * self._start()
        if self._fitted.meaning is not None:
            shown.append(MEANING)
            parts = np.vstack([parts, model.temperature_ * self._said([document])])
        return Explanation(self.classes_, shown, parts, start)

    @reads
    def top_words(self, label: Label, n: int = 20) -> list[tuple[str, float]]:
        """Return the words that speak most for a class, with the score of each.

        The score of a word is what one occurrence adds to the score of the class, beyond what it
        adds to the average class, times the frequency of the word in the class.

        Parameters
        ----------
        label : a class
        n : int
            Number of words.

        Returns
        -------
        list of (word, score), largest first
        """
        check_is_fitted(self)
        return telling_words(self, n, [place_of(self.classes_, label)])[0]

    def _words(self) -> tuple[np.ndarray, list[str]]:
        """Return ``ln p(word | class)``, (K, words), and the words."""
        if self.n_features is not None:
            raise OptionError("n_features: words that are hashed keep no names; explain() has them")
        return self.model_.feature_log_prob_, list(self.vocabulary_)

    @reads
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, *, y: Label = None
    ) -> tuple[Any, np.ndarray]:
        """Draw documents, as lists of words, and labels; with `y`, documents of this class.

        Words are drawn from ``p(word | class)`` of the weighted words: rare words are as frequent
        as their weights make them.

        Returns
        -------
        X : list of lists of str
        y : array of shape (n_samples,)
        """
        check_is_fitted(self)
        if self.n_features is not None:
            raise OptionError("n_features: words that are hashed cannot be drawn")
        if not self.model_.mean_length_ < _LONGEST:
            raise InputError("documents so long cannot be drawn word by word")
        counts, y = self.model_.sample(n_samples, random_state, y=y)
        words = np.array(list(self.vocabulary_), dtype=object)
        return [np.repeat(words, row.astype(int)).tolist() for row in counts], y

    bag_ = of("_fitted.bag")
    vocabulary_ = of("bag_.vocabulary")
    n_documents_ = of("bag_.n_documents")

    @property
    def progressive_accuracy_(self) -> float:
        return self._mean_progress(1)

    @property
    def progressive_loss_(self) -> float:
        return self._mean_progress(2)

    def _mean_progress(self, figure: int) -> float:
        progress = self._fitted.progress
        if not progress[0] > 0:
            raise AttributeError("progressive figures are those of a stream: call partial_fit")
        return float(progress[figure] / progress[0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
