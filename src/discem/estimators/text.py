"""Text classification: documents in, labels out, nothing to tune."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._checks import check_array, demand
from .._kinds import savable
from ..exceptions import EngineError, InputError, OptionError
from ..families.words import batch_of
from ..io.bag import COUNTING, WEIGHTINGS, Bag, Counted, as_documents
from ..io.labels import with_missing
from ..io.partitions import n_rows, some_rows
from ..io.rows import sparse_rows
from ..losses import NLL, Blend, Hinge, resolve_loss
from ..priors import Dirichlet
from ..schedules import by_row, constant, power
from . import _input
from ._by_label import place_of
from ._choice import Choice, Chooser, Mark, Options, Result, more_accurate, most_epochs
from ._explain import Explanation, telling_words
from ._folds import Split, check_cv, splits
from ._lazy import by_partition, n_classes
from ._options import NUMBER, check_common_options, check_unlabelled_weight, is_count, with_options
from ._pieces import Pieces, spreads
from ._preset import ClassifierPreset
from ._threads import reads, writes
from ._words import Size, Teaches, all_teach, count_pieces, labelled_teach, size_of
from .naive_bayes import MultinomialNB

# Words of two characters or more, "don't" being one, and marks that carry a mood. Phrases need
# their small words, too; alone these are noise more often than not.
WORD = r"(?u)\w\w+(?:['’]\w+)?|[!?]"
WORD_IN_PHRASE = r"(?u)\w+(?:['’]\w+)?|[!?]"


_LONGEST = 1e6  # documents that are drawn, in words


def _weigh(bag: Bag, weighting: str, length: float | None, counted: Counted) -> sp.csr_matrix:
    return bag.weigh(bag.arrange(counted), weighting, length)


def _silent(rows) -> np.ndarray:
    """Which documents have no word that counts."""
    return np.flatnonzero(rows.indptr[1:] == rows.indptr[:-1])


def _are_texts(document, vocabulary: dict[str, int]) -> bool:
    """Whether a list is one of documents, not that of the words of a document."""
    words = any(word in vocabulary or len(word.split()) < 2 for word in document)
    return len(document) > 0 and not words


@savable
@dataclass
class Fitted:
    """All that fitting makes of a `TextClassifier`: the old one is replaced, or it stays."""

    bag: Bag
    chosen: dict[str, Any]
    choice: Choice = field(default_factory=Choice)
    progress: np.ndarray = field(default_factory=lambda: np.zeros(3))  # of a stream
    model: MultinomialNB | None = None
    roles: dict[str, str] = field(default_factory=dict)

    @property
    def is_trained(self) -> bool:
        return self.model is not None and self.model.__sklearn_is_fitted__()


@savable
@with_options
class TextClassifier(ClassifierPreset):
    """Documents in, labels out: multinomial naive Bayes over weighted words, trained to classify.

    The documents are tokenised and counted by scikit-learn, weighted, and brought to one length;
    `MultinomialNB` does the rest. What is left at "auto" is chosen on a part of the training
    documents that is held out for it (one part after the other, where they are few), then all are
    trained on; `chosen_` says what was chosen. The choice costs about as much as two fits.

    Naive Bayes is over-confident, the more so the longer a document: words are not independent.
    Two parameters of the model repair it. Every document counts as one of the same `length`, and
    ``p(y | document)`` is ``softmax(temperature_ * ln p(y, document))`` with a temperature that is
    learnt from the held-out documents.

    Parameters
    ----------
    loss : {"auto", "ncll", "hinge", "nll", "blend"} or loss object, default="auto"
        What training minimises; "auto" tries hinge, NCLL and NLL.
    weighting : {"auto", "tfidf", "presence", "counts"}, default="auto"
        What stands for a word in a document: its tf-idf (with 1 + ln of the count), one, or its
        count. "auto" tries the first two; in a stream it is tf-idf, with the document frequencies
        so far.
    length : float or None, default=5.0
        Euclidean norm that each document's weights are scaled to; None leaves them as they are.
    temperature : "auto" or float, default="auto"
        What log-probabilities are multiplied by before they are normalised; "auto" is 1 in streams.
    prior : "auto" or Dirichlet, default="auto"
        Pseudo-counts of each word in each class.
    max_iter : "auto" or int, default="auto"
        Epochs. "auto" goes on as long as the held-out documents gain, 6 epochs at most where
        there are thousands of documents, 20 where there are few, and takes one more at the end.
    ngram_range : pair of int, default=(1, 1)
        Which n-grams to count: (1, 2) is words and pairs of words.
    analyzer : {"word", "char", "char_wb"} or callable, default="word"
    token_pattern : str, default="auto"
        What is a word. "auto" is two characters or more, also with an apostrophe within, and the
        marks ! and ?; in n-grams also a single character. A pattern that might take for ever on
        some document is refused.
    lowercase : bool, default=True
    strip_accents : {"ascii", "unicode"}, callable or None, default=None
    stop_words : {"english"}, list or None, default=None
        These are options of scikit-learn's CountVectorizer. A document may also be a list of words,
        which is taken as it is.
    min_df : int or float, default=1
    max_df : int or float, default=1.0
    max_features : int or None, default=None
        Which words to keep, see CountVectorizer. Not in streams, where words come as they come.
    n_features : int or None, default=None
        Hash words into so many columns instead of keeping a vocabulary: memory is then bounded.
    cv : None, int, splitter, iterable or array, default=None
        What is held out to choose by. None is a fifth of the documents of each class, of at most
        50 000; else it is a number of folds, a splitter of scikit-learn, pairs of documents to
        train on and to hold out, or the group of each document (a thread, an author).
    class_weight : dict, "balanced" or None, default=None
    unlabelled_weight : "auto" or float, default="auto"
        How much documents without a label have to say in `fit`, see `MultinomialNB`.
    callback : callable or None, default=None
        Called as ``callback(model, record)`` after each epoch; training stops if it returns True.
        ``record["stage"]`` is "choice" while options are tried, then "fit".
    n_jobs : int or None, default=None
        Threads that train and predict, see `MultinomialNB`; one counts words and tries options.
    engine : None, "dask" or Dask, default=None
        Where `fit` counts words and trains, see `MultinomialNB`. With workers of dask, what is left
        at "auto" is chosen here, on a sample of the documents.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    chosen_ : dict
        What was chosen (loss, weighting, epochs, temperature), from how many held-out documents.
    choice_ : list of dicts
        What was tried, and how it did on the held-out documents.
    model_ : MultinomialNB
        The model of the weighted words.
    vocabulary_ : dict
        From word to column.
    classes_, class_count_, class_prior_, class_frequency_, temperature_ : as in MultinomialNB
    history_, stream_, n_iter_ : as in MultinomialNB
    n_documents_ : int
        Documents seen.
    roles_ : dict from "text" and "label" to str
        The columns that had the texts and the labels, where the command line read a table.
    progressive_accuracy_, progressive_loss_ : float
        Accuracy and log-loss in a stream so far, each document predicted before it was learnt.

    Examples
    --------
    >>> from discem import TextClassifier
    >>> texts = ["good film", "bad film", "a good plot and good cast", "a bad plot and bad cast"]
    >>> model = TextClassifier(random_state=0).fit(texts, ["+", "-", "+", "-"])
    >>> model.predict(["good", "really bad"]).tolist()
    ['+', '-']
    >>> model.explain("a good film").against("+", "-")[0][0]
    'good'
    """

    loss: Any = "auto"
    weighting: Any = "auto"
    length: Any = 5.0
    temperature: Any = "auto"
    prior: Any = "auto"
    max_iter: Any = "auto"
    ngram_range: Any = (1, 1)
    analyzer: Any = "word"
    token_pattern: Any = "auto"
    lowercase: Any = True
    strip_accents: Any = None
    stop_words: Any = None
    min_df: Any = 1
    max_df: Any = 1.0
    max_features: Any = None
    n_features: Any = None
    cv: Any = None
    class_weight: Any = None
    unlabelled_weight: Any = "auto"
    callback: Any = None
    n_jobs: Any = None
    engine: Any = None
    random_state: Any = None
    verbose: Any = 0

    # --- what is fitted, and goes to a file -------------------------------------------------------

    _roles: ClassVar = ("text", "label")

    def _check_fitted(self) -> None:
        """Refuse what training cannot have left: the model may come from anywhere."""
        self._check_options()
        self._new_bag().check_options()
        fitted = self._fitted
        demand(isinstance(fitted, Fitted), "it is not fitted")
        demand(isinstance(fitted.bag, Bag), "it has no words")
        demand(type(fitted.model) is MultinomialNB, "it has no model of its words")
        fitted.bag.check()
        self.model_._check_fitted()
        same = len(fitted.bag) == self.model_.n_features_in_
        demand(same, "its words are not those of its model")
        check_array("progress", fitted.progress, (3,))
        self._check_chosen()
        resolve_loss(self.chosen_["loss"])
        demand(self.chosen_["weighting"] in WEIGHTINGS, "chosen_ has an unknown weighting")

    # --- training ---------------------------------------------------------------------------------

    @writes
    @spreads
    def fit(self, X, y, sample_weight=None):
        """Choose what is left at "auto" on held-out documents, then fit the model to all.

        Parameters
        ----------
        X : iterable of documents, each a text or a list of words
            With `engine`, also a bag, a series or an array of dask; then `y` and `sample_weight`
            may be, too.
        y : array-like of shape (n_documents,), of sets of labels, or frame of shares by class
            Labels, with None or NaN for an unlabelled document; sets of labels that are possible;
            or a frame whose columns are the classes, with the share of each.
        sample_weight : array-like of shape (n_documents,), optional

        Returns
        -------
        self
            Also when interrupted: after Ctrl-C the fitted attributes are those of the training done
            so far, and KeyboardInterrupt goes on.
        """
        self._check_options()
        bag, pieces, labels = self._new_bag(), None, None
        if isinstance(X, Pieces):  # a sample is what is seen of them
            check_cv(self.cv, sampled=True)
            labels = X.labels()
            pieces = count_pieces(X, bag, self._teaches())
            X, y, sample_weight = pieces.sample._replace(X=bag.arrange(pieces.sample.X))
        documents = as_documents(X) if pieces is None else X
        y, named = _input.read_y(y, n_rows(documents))
        weights = _input.check_weights(sample_weight, np.empty((len(y), 0)))
        # words are those of documents to train on; the others are for the model that these make
        unlabelled = ~self._teaches()(y)
        if not weights[~unlabelled].any():
            raise InputError("sample_weight is zero for every labelled document")
        others = some_rows(documents, np.flatnonzero(unlabelled & (weights > 0)))
        taught, given = np.flatnonzero(~unlabelled), (y, weights)
        documents = some_rows(documents, taught)
        y, weights = y[taught], weights[taught]
        counts = bag.learn(documents) if pieces is None else documents
        before = getattr(self, "_fitted", None)
        try:
            self._fitted = Fitted(bag, self._defaults())
            rng = check_random_state(self.random_state)
            classes = _input.find_classes(y) if labels is None else labels.classes
            silent = n_rows(others) > 0
            heard = silent and self.unlabelled_weight != 0
            parts = [each.among(taught) for each in self._parts(*given, classes, rng)]
            epochs = self._choose(counts, y, len(classes), parts, heard, rng)
            rows: Any = self._weigh(counts)
            size = Size.of(rows, weights)
            if pieces is not None:
                weigh = partial(_weigh, bag, self.chosen_["weighting"], self.length)
                rows = pieces.map(weigh)
                size = size_of(rows, self._teaches())
            model = self._new_model(self.chosen_["loss"], size, len(classes), epochs, rng)
            if silent and pieces is None:
                rows = sp.vstack([rows, self._weigh(bag.count(others))], format="csr")
                y = with_missing(y, len(others))
                weights = np.concatenate([weights, np.ones(len(others))])
            self._run(model, rows, y if named is None else _input.Shares(y, named), weights)
        except (KeyboardInterrupt, EngineError):
            if self._fitted.is_trained:
                self.model_.temperature_ = self.chosen_["temperature"]
            else:
                self._go_back(before)
            raise
        except Exception:
            self._go_back(before)
            raise
        self.chosen_["epochs"] = model.n_iter_
        if hasattr(model, "unlabelled_"):
            self.chosen_["unlabelled"] = model.unlabelled_
            if self.temperature == "auto":
                self.chosen_["temperature"] = model.temperature_
        model.temperature_ = self.chosen_["temperature"]
        return self

    @writes
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Take one pass over the next documents of a stream, in the order given.

        The vocabulary grows with the documents (unless words are hashed), and classes may appear at
        any time. Nothing is held out in a stream: what is left at "auto" is NCLL on tf-idf, with a
        temperature of 1.

        Parameters
        ----------
        X, y, sample_weight : as for `fit`
        classes : array-like, optional
            Classes to know from the start. Not needed.

        Returns
        -------
        self
        """
        self._check_options()
        documents = as_documents(X)
        first = not self.__sklearn_is_fitted__()
        y, named = _input.read_y(y, len(documents), needed=first)
        weights = self._teaching(sample_weight, y)
        fitted = Fitted(self._new_bag(), self._defaults()) if first else self._fitted
        with fitted.bag.undone_on_error():  # labels may not fit
            counts = fitted.bag.grow(documents)
            rows = fitted.bag.weigh(counts, fitted.chosen["weighting"], self.length)
            if fitted.model is None:
                K, size = len(_input.find_classes(y)), Size.of(rows, weights)
                fitted.model = self._new_model(fitted.chosen["loss"], size, K, 1, None)
            batch = None
            if first or weights.any():
                given = y if named is None else _input.Shares(y, named)
                batch = fitted.model.check_batch(rows, given, classes, weights, grows=True)
        self._fitted = fitted
        if batch is None:  # no label: there are only words to learn
            self.model_.grow(len(fitted.bag))
            return self
        self.model_.learn_batch(batch)
        if first:
            self.model_.temperature_ = self.chosen_["temperature"]
        record = self.model_.history_[-1]
        labelled = float(weights.sum() if y.ndim == 2 else weights[~_input.missing_labels(y)].sum())
        figures = np.array([1.0, record["accuracy"], record["ncll"]])
        fitted.progress = fitted.progress + labelled * figures
        self._call_back(record)
        return self

    def _teaching(self, sample_weight, y) -> np.ndarray:
        """The weights of the documents; none for unlabelled ones, unless they teach by NLL.

        An NLL step replaces a share of all statistics, that is of what was learnt to classify by.
        """
        weights = _input.check_weights(sample_weight, np.empty((len(y), 0)))
        return np.where(self._teaches()(y), weights, 0.0)

    def _teaches(self) -> Teaches:
        """Which documents a step is taken for: not unlabelled ones, unless by their NLL."""
        nll = isinstance(resolve_loss(self._defaults()["loss"]), NLL)
        return all_teach if nll else labelled_teach

    def _check_options(self) -> None:
        check_common_options(self)
        if self.weighting not in ("auto", *WEIGHTINGS):
            raise OptionError(f"weighting={self.weighting!r} is unknown: use one of {WEIGHTINGS}")
        for name, none in (("length", True), ("temperature", False)):
            value = getattr(self, name)
            allowed = (none and value is None) or (not none and value == "auto")
            number = isinstance(value, NUMBER) and not isinstance(value, bool)
            if not allowed and not (number and 0 < value < np.inf):
                raise OptionError(f"{name}={value!r} must be a number > 0")
        for name, other in (("max_iter", "auto"), ("n_features", None)):
            value = getattr(self, name)
            if value != other and not is_count(value):
                raise OptionError(f"{name}={value!r} must be {other!r} or a whole number >= 1")
        if self.prior != "auto" and not isinstance(self.prior, Dirichlet):
            raise OptionError(f"prior={self.prior!r} must be 'auto' or a Dirichlet(...)")
        check_cv(self.cv)
        check_unlabelled_weight(self.unlabelled_weight)
        if self.loss != "auto":
            resolve_loss(self.loss)

    def _new_bag(self) -> Bag:
        options = {name: getattr(self, name) for name in COUNTING}
        if self.token_pattern == "auto":
            alone = self.ngram_range in ((1, 1), [1, 1])
            options["token_pattern"] = WORD if alone else WORD_IN_PHRASE
        return Bag(options, self.n_features)

    def _weigh(self, counts):
        return self.bag_.weigh(counts, self.chosen_["weighting"], self.length)

    def _defaults(self) -> dict[str, Any]:
        """What stands in for "auto" where nothing can be held out."""
        return {
            "loss": "ncll" if self.loss == "auto" else self.loss,
            "weighting": "tfidf" if self.weighting == "auto" else self.weighting,
            "temperature": 1.0 if self.temperature == "auto" else float(self.temperature),
        }

    def _most_epochs(self, n: int) -> int:
        return most_epochs(n) if self.max_iter == "auto" else int(self.max_iter)

    def _new_model(self, loss, size: Size, K: int, epochs: int, rng) -> MultinomialNB:
        """The model to train: its prior, where it starts, and how large its steps are."""
        kind = resolve_loss(loss)
        n, share = size.n_taught, size.n_taught / size.n_rows
        square = max(size.square, 1e-300) / size.n_rows  # mean |x|^2
        settings: dict[str, Any] = {"init": "prior", "step": constant(1.0), "average": False}
        alike = self.length is not None  # no document outweighs the others
        if isinstance(kind, NLL):
            settings = {"prior": Dirichlet(0.1 * size.total / size.stored if size.stored else 1.0)}
        elif isinstance(kind, Hinge):
            # From equal words. Where counts are small beside alpha the model is linear in them, and
            # alpha regularises it as an SVM on rows of length 1 is by C = |x|^2 / alpha.
            settings |= {"prior": Dirichlet(0.8 * square), "average": True}
        elif rng is None:  # a stream, of which there is no generative estimate yet
            settings |= {"prior": Dirichlet((0.05 + 0.4 / K) * square)}
        else:
            # From the generative estimate, which soon weighs little: a step is 30 documents of it.
            used = int(np.count_nonzero(self.bag_.document_count))
            mean = share * size.total / max(used * K, 1)
            settings = {"prior": Dirichlet(3.0 * max(mean, 1e-300)), "step": constant(30.0 / n)}
        if isinstance(kind, Blend) and kind.kappa > 0:  # its NLL part is a running average
            first = settings["step"](1.0)
            settings["step"] = power(first, 1.0 / (kind.kappa * first), 1.0)
        if "step" in settings and rng is not None:
            settings["step"] = by_row(settings["step"])
        if self.prior != "auto":
            settings["prior"] = self.prior
        return MultinomialNB(
            **settings,
            loss=loss,
            batch_size=batch_of(n, K, eager=False) if alike else "auto",
            max_iter=epochs,
            tol=None,
            class_weight=self.class_weight,
            unlabelled_weight=self.unlabelled_weight,
            n_jobs=self.n_jobs,
            random_state=None if rng is None else rng.randint(2**31 - 1),
            verbose=self.verbose,
        )

    def _run(
        self,
        model: MultinomialNB,
        rows,
        y,
        weights,
        watch: Callable[[Any], bool] | None = None,
        chooser: Chooser | None = None,
    ) -> None:
        """Train the model, or a candidate that is watched and perhaps stopped."""
        stage = "fit" if watch is None else "choice"

        def after_epoch(_, record) -> bool:
            if watch is None:
                self._fitted.model = model
            enough = watch is not None and watch(model)
            if model is self.model_:
                model.temperature_ = self.chosen_["temperature"]
            return self._call_back(record, stage, chooser) or enough

        model.callback = after_epoch
        try:
            model.fit(rows, y, weights)
        finally:
            model.callback = None

    # --- choosing ---------------------------------------------------------------------------------

    def _parts(self, y, weights, classes, rng) -> list[Split]:
        """What is held out to settle what is left at "auto"."""
        fixed = "auto" not in (self.loss, self.weighting, self.temperature, self.max_iter)
        if fixed or y.ndim == 2:  # label sets and shares have no accuracy to judge by
            return []
        codes = _input.encode(y, classes).codes
        return splits(codes, weights, rng, cv=self.cv)

    def _choose(self, counts, y, K: int, parts: list[Split], unlabelled: bool, rng) -> int:
        """Settle what is left at "auto" on held-out documents; return how many epochs to train."""
        most = self._most_epochs(counts.shape[0])
        if not parts:
            return most

        @lru_cache(1)
        def weigh(weighting: str) -> sp.csr_matrix:
            return self.bag_.weigh(counts, weighting, self.length)

        def train(options: Options, part: Split, watch: Callable[[Any], bool]) -> MultinomialNB:
            rows = weigh(options["weighting"])
            model = self._new_model(options["loss"], Size.of(rows, part.weights), K, most, rng)
            model.set_params(n_jobs=None, verbose=0)  # the choice does not depend on threads
            self._run(model, rows, y, part.weights, watch, chooser)
            return model

        def score(options: Options, part: Split, model: MultinomialNB) -> np.ndarray:
            return model.learner_.score(sparse_rows(weigh(options["weighting"])), part.held)

        def keep(options: Options, model: MultinomialNB, mark: Mark | None) -> None:
            self._fitted.model, self._fitted.choice = model, chooser.choice()
            self._fitted.chosen |= options
            if self.temperature == "auto" and mark is not None:
                self.chosen_["temperature"] = mark.temperature
            model.temperature_ = self.chosen_["temperature"]

        candidates = self._candidates(unlabelled)
        chooser = Chooser(parts, train, score, more_accurate, keep, of=4, verbose=self.verbose)
        best = chooser.best_of(candidates)
        self._fitted.choice = chooser.choice()
        self.chosen_["held_out"] = chooser.held_out
        return len(best.marks) + 1 if self.max_iter == "auto" else most  # there is more to learn

    def _candidates(self, unlabelled: bool) -> Generator[Options, Result, None]:
        """The losses with the first weighting, then the other weighting with the best loss."""
        losses = [self.loss]
        if self.loss == "auto":  # unlabelled documents are for a model that tells apart
            losses = ["hinge", "ncll"] if unlabelled else ["hinge", "ncll", "nll"]
        first = self.chosen_["weighting"]
        for loss in losses:
            best = yield {"loss": loss, "weighting": first}
        if self.weighting == "auto":
            yield best.options | {"weighting": "presence"}

    # --- prediction -------------------------------------------------------------------------------

    @reads
    def _rows(self, X):
        if not self.__sklearn_is_fitted__():  # which is quick
            check_is_fitted(self)
        return self._weigh(self.bag_.count(as_documents(X)))

    @by_partition(dtype=lambda model: model.classes_.dtype)
    @reads
    def predict(self, X):
        """The most probable class of each document."""
        rows = self._rows(X)
        found, silent = self.model_.predict(rows), _silent(rows)
        if len(silent):
            found[silent] = self.classes_[self.model_.class_frequency_.argmax()]
        return found

    @by_partition(n_classes)
    @reads
    def predict_proba(self, X):
        """``p(y | document)`` of every class, as (n_documents, n_classes).

        A document without a single word that the model knows says nothing: its classes are as
        probable as they were frequent in training (or as `set_class_prior` says that they are).
        """
        return np.exp(self.predict_log_proba(X))

    @by_partition(n_classes)
    @reads
    def predict_log_proba(self, X):
        """``ln p(y | document)`` of every class; see `predict_proba`."""
        rows = self._rows(X)
        found, silent = self.model_.predict_log_proba(rows), _silent(rows)
        if len(silent):
            found[silent] = np.log(self.model_.class_frequency_)
        return found

    @by_partition(n_classes)
    @reads
    def predict_joint_log_proba(self, X):
        """``ln p(y, document)`` of every class, of the weighted words."""
        rows = self._rows(X)
        return self.model_.predict_joint_log_proba(rows)

    @by_partition()
    @reads
    def score_samples(self, X):
        """``ln p(document)``: low for documents unlike those of the training."""
        rows = self._rows(X)
        return self.model_.score_samples(rows)

    # --- after training ---------------------------------------------------------------------------

    @writes
    def calibrate(self, X, y, sample_weight=None):
        """Choose `temperature_` by documents that were not trained on; predictions stay."""
        rows = self._rows(X)
        self.model_.calibrate(rows, y, sample_weight)
        return self

    @reads
    def to_linear(self):
        """The same classifier as a linear function of the weighted words.

        Returns
        -------
        LinearForm
        """
        check_is_fitted(self)
        return self.model_.to_linear()._replace(statistics=self._rows)

    @reads
    def explain(self, document) -> Explanation:
        """The exact contribution of each word of a document to the score of each class.

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
        start = model.class_scores_ if row.nnz else np.log(model.class_frequency_)
        return Explanation(self.classes_, shown, parts, start)

    @reads
    def top_words(self, label, n=20) -> list[tuple[str, float]]:
        """The words that speak most for a class, with what each adds to its score.

        The score of a word is what the average occurrence of it adds to the score of the class,
        beyond what it adds to the average class, times how often the class uses the word.

        Parameters
        ----------
        label : a class
        n : int
            How many.

        Returns
        -------
        list of (word, score), largest first
        """
        check_is_fitted(self)
        return telling_words(self, n, [place_of(self.classes_, label)])[0]

    def _words(self) -> tuple[np.ndarray, list[str]]:
        """``ln p(word | class)``, (K, words), and the words."""
        if self.n_features is not None:
            raise OptionError("n_features: words that are hashed keep no names; explain() has them")
        return self.model_.feature_log_prob_, list(self.vocabulary_)

    @reads
    def sample(self, n_samples=1, random_state=None):
        """Draw documents, as lists of words, and labels.

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
        counts, y = self.model_.sample(n_samples, random_state)
        words = np.array(list(self.vocabulary_), dtype=object)
        return [np.repeat(words, row.astype(int)).tolist() for row in counts], y

    @property
    def bag_(self) -> Bag:
        return self._fitted.bag

    @property
    def vocabulary_(self) -> dict[str, int]:
        return self.bag_.vocabulary

    @property
    def n_documents_(self) -> int:
        return self.bag_.n_documents

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
