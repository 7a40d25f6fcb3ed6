"""Text classification: documents in, labels out, nothing to tune."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .._checks import check_array, demand
from .._kinds import savable
from ..exceptions import InputError, OptionError
from ..io.bag import WEIGHTINGS, Bag, Counted, as_documents
from ..io.encoders import check_encoder
from ..io.labels import with_missing
from ..io.partitions import n_rows, some_rows
from ..losses import resolve_loss
from ..priors import Dirichlet
from . import _input
from ._documents import Fitted
from ._folds import check_cv
from ._meaning import Meaning, vectors_of, vectors_of_pieces
from ._options import (
    check_common_options,
    check_positive,
    check_unlabelled_weight,
    check_whole,
    check_words,
    with_options,
)
from ._pieces import rows_of, spreads
from ._threads import writes
from ._types import (
    Auto,
    Callback,
    ClassWeight,
    DeviceOption,
    EngineOption,
    Labels,
    LossOption,
    RandomState,
    Table,
    Weights,
)
from ._word_trials import ENOUGH_TO_WEIGH, WordTrainer
from ._words import Size, count_pieces, size_of, warn_of_conflicts
from .naive_bayes import MultinomialNB


def _weigh(bag: Bag, weighting: str, length: float | None, counted: Counted) -> sp.csr_matrix:
    return bag.weigh(bag.arrange(counted), weighting, length)


@savable
@with_options
class TextClassifier(WordTrainer):
    """Classify documents by their words.

    The model is a multinomial naive Bayes over weighted words, trained to classify. scikit-learn
    splits the documents into words and counts them. The counts are weighted, each document is
    scaled to the same length, and `MultinomialNB` does the rest.

    `fit` chooses every option that is left at "auto". It holds out a part of the training documents
    (if there are few, each part in turn), tries some candidates, and then trains on all documents.
    `chosen_` holds the choice. The choice takes about as long as two fits.

    Naive Bayes is overconfident on long documents, because words are not independent. Two
    parameters correct this. Each document is scaled to the same `length`, and ``p(y | document)``
    is ``softmax(temperature_ * ln p(y, document))``, with a temperature learnt from the held-out
    documents.

    With an `encoder` the vectors of documents are a second block of the joint, beside the words;
    see "Vectors" in the guide of text.

    Parameters
    ----------
    encoder : None, str, callable or object, default=None
        The encoder makes a vector of each text. It is a function from a list of texts to an array,
        a fitted object with the method `encode` or `transform`, or the name of an installed encoder
        ("wordllama", "model2vec", "minilm", "mpnet"). The weights of vectors and words are chosen
        on held-out documents. Saved models keep only the name and version of the encoder: see
        `discem.load`.
    loss : {"auto", "ncll", "hinge", "nll", "blend"} or loss object, default="auto"
        What training minimises. "auto" tries hinge, NCLL and NLL.
    weighting : {"auto", "tfidf", "presence", "counts"}, default="auto"
        The weight of a word in a document: its tf-idf (with 1 + ln of the count), one, or its
        count. "auto" tries the first two. In a stream it is tf-idf, with the document frequencies
        so far.
    length : float or None, default=5.0
        The Euclidean norm to which the weights of each document are scaled. None does not scale.
    temperature : "auto" or float, default="auto"
        The factor of the log-probabilities before they are normalised. "auto" learns it from
        held-out documents, and is 1 in streams.
    prior : "auto" or Dirichlet, default="auto"
        Pseudo-counts of each word in each class.
    max_iter : "auto" or int, default="auto"
        Number of epochs. "auto" trains as long as the held-out documents gain (at most 6 epochs
        with thousands of documents, 20 with few), and one more epoch at the end.
    ngram_range : pair of int or "auto", default="auto"
        Which n-grams to count: (1, 2) is words and pairs of words. "auto" tries words, and then
        words and pairs that are in two documents or more; pairs only where the words of all
        documents, times the classes, are at most 50 million. In streams and with `engine` it is
        words alone. Of characters, "auto" is (2, 5).
    analyzer : {"auto", "word", "pieces", "char", "char_wb"} or callable, default="word"
        What to count. "pieces" is words and, beside them, pieces of words of 3 to 5 characters;
        "auto" tries words, and then these where documents are few. For the others see
        CountVectorizer.
    token_pattern : str, default="auto"
        The pattern of a word. "auto" is two or more characters, also with an apostrophe inside, and
        the marks ! and ?. In n-grams, single characters are words, too. Patterns that can take
        exponential time are refused.
    lowercase : bool, default=True
    strip_accents : {"ascii", "unicode"}, callable or None, default=None
    stop_words : {"english"}, list or None, default=None
        These are options of scikit-learn's CountVectorizer. A document may also be a list of words,
        which is taken as it is.
    min_df : int or float, default=1
    max_df : int or float, default=1.0
    max_features : int or None, default=None
        Which words to keep, see CountVectorizer. Not available in streams.
    n_features : int or None, default=None
        Hash words into this many columns instead of keeping a vocabulary, to bound memory.
    cv : None, int, splitter, iterable or array, default=None
        Which documents are held out to choose options by. None holds out a fifth of the documents
        of each class, of at most 50 000. You can also give a number of folds, a splitter of
        scikit-learn, pairs of documents to train on and to hold out, or the group of each document
        (a thread, an author).
    class_weight : dict, "balanced" or None, default=None
        The weight of each class, by its label. "balanced" gives all classes the same total weight.
    unlabelled_weight : "auto" or float, default="auto"
        The weight of documents without a label, see `MultinomialNB`.
    callback : callable or None, default=None
        Called as ``callback(model, record)`` after each epoch. Training stops if it returns True.
        ``record["stage"]`` is "choice" while options are tried, then "fit".
    n_jobs : int or None, default=None
        Threads that train and predict, see `MultinomialNB`. One thread counts words and tries
        options.
    device : None, "cpu", "auto", str, torch.device or Device, default=None
        Where arrays are, see `MixtureClassifier`. "cuda" trains and predicts on the GPU.
    engine : None, "dask" or Dask, default=None
        Where `fit` counts words and trains, see `MultinomialNB`. With workers of Dask, options are
        chosen in this process, on a sample of the documents.
    random_state : int, RandomState or None, default=None
        Seed of all random choices. With the same seed and documents, the model is the same.
    verbose : int, default=0
        1 shows progress, and 2 shows a line for each candidate and each epoch.

    Attributes
    ----------
    chosen_ : dict
        The choice (loss, weighting, epochs, temperature), and the number of held-out documents.
    choice_ : list of dicts
        The candidates that were tried, and their scores on held-out documents.
    model_ : MultinomialNB
        The model of the weighted words.
    vocabulary_ : dict
        From word to column.
    classes_, class_count_, class_prior_, class_frequency_, temperature_ : as in MultinomialNB
    history_, stream_, n_iter_ : as in MultinomialNB
    n_documents_ : int
        Documents seen.
    roles_ : dict from "text" and "label" to str
        The columns with the texts and the labels, if the command line read a table.
    files_ : dict from str to Seen
        The files of a stream that the command line has learnt, by a hash of their names.
    progressive_accuracy_, progressive_loss_ : float
        Accuracy and log-loss in a stream so far; each document is predicted before it is learnt.

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

    encoder: Any = field(default=None, kw_only=False)
    loss: Auto | LossOption = "auto"
    weighting: Literal["auto", "tfidf", "presence", "counts"] = "auto"
    length: float | None = 5.0
    temperature: float | Auto = "auto"
    prior: Any = "auto"
    max_iter: int | Auto = "auto"
    ngram_range: tuple[int, int] | Auto = "auto"
    analyzer: Auto | Literal["word", "pieces", "char", "char_wb"] | Callable[[Any], Any] = "word"
    token_pattern: str = "auto"
    lowercase: bool = True
    strip_accents: Literal["ascii", "unicode"] | Callable[[str], str] | None = None
    stop_words: Literal["english"] | list[str] | None = None
    min_df: int | float = 1
    max_df: int | float = 1.0
    max_features: int | None = None
    n_features: int | None = None
    cv: Any = None
    class_weight: ClassWeight = None
    unlabelled_weight: float | Auto = "auto"
    callback: Callback = None
    n_jobs: int | None = None
    device: DeviceOption = None
    engine: EngineOption = None
    random_state: RandomState = None
    verbose: int = 0

    # --- what is fitted, and goes to a file -------------------------------------------------------

    _roles: ClassVar = ("text", "label")

    def _check_fitted(self) -> None:
        """Validate the fitted model, which may come from any file."""
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
        meaning = fitted.meaning
        demand(meaning is None or isinstance(meaning, Meaning), "its vectors have no model")
        if meaning is not None:
            meaning.check(self.classes_)
        self._check_chosen()
        resolve_loss(self.chosen_["loss"])
        demand(self.chosen_["weighting"] in WEIGHTINGS, "chosen_ has an unknown weighting")

    # --- training ---------------------------------------------------------------------------------

    @writes
    @spreads
    def fit(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        """Choose the options left at "auto" on held-out documents, then fit the model to all.

        Parameters
        ----------
        X : iterable of documents, each a text or a list of words
            With `engine`, also a bag, a series or an array of dask; then `y` and `sample_weight`
            may be, too.
        y : array-like of shape (n_documents,), of sets of labels, or frame of shares by class
            Labels, with None or NaN for an unlabelled document; sets of possible labels; or a frame
            with one column per class that holds its share.
        sample_weight : array-like of shape (n_documents,), optional

        Returns
        -------
        self
            After Ctrl-C the fitted attributes are those of the training done so far, and
            KeyboardInterrupt is raised.
        """
        self._check_options()
        bag, pieces, labels, encoded = self._new_bag(), None, None, None
        given_rows = rows_of(X, y, sample_weight)
        if given_rows.on_workers:  # a sample is what is seen of them
            check_cv(self.cv, sampled=True)
            labels = given_rows.labels()
            pieces = count_pieces(given_rows, bag, self._teaches())
            if self.encoder is not None:
                encoded = vectors_of_pieces(self.encoder, given_rows)
            X, y, sample_weight = pieces.sample._replace(X=bag.arrange(pieces.sample.X))
        documents = as_documents(X) if pieces is None else X
        y, named = _input.read_y(y, n_rows(documents))
        weights = _input.check_weights(sample_weight, np.empty((len(y), 0)))
        # words come from labelled documents; unlabelled ones are used by the model they make
        unlabelled = ~self._teaches()(y)
        if not weights[~unlabelled].any():
            raise InputError("sample_weight is zero for every labelled document")
        others = some_rows(documents, np.flatnonzero(unlabelled & (weights > 0)))
        taught, given = np.flatnonzero(~unlabelled), (y, weights)
        documents = some_rows(documents, taught)
        y, weights = y[taught], weights[taught]
        counts = bag.learn(documents) if pieces is None else documents
        if pieces is None and y.ndim == 1:
            warn_of_conflicts(counts, y, taught)
        with self._beginning(Fitted(bag, self._defaults())):
            vectors = None if encoded is None else encoded.sample.X[taught]
            if self.encoder is not None and encoded is None:
                vectors = vectors_of(self.encoder, documents, self.verbose)
            rng = check_random_state(self.random_state)
            classes = _input.find_classes(y) if labels is None else labels.classes
            silent = n_rows(others) > 0
            heard = silent and self.unlabelled_weight != 0
            parts = [each.among(taught) for each in self._parts(*given, classes, rng)]
            texts = documents if pieces is None else None
            epochs, counts = self._choose(texts, counts, y, len(classes), parts, heard, rng)
            bag = self.bag_
            alone = None
            if vectors is not None:
                if self.cv is None:  # what weights are found by is more than what is chosen by
                    parts = self._parts(*given, classes, rng, ENOUGH_TO_WEIGH)
                    parts = [each.among(taught) for each in parts]
                answers = y if named is None else _input.Shares(y, named)
                alone = self._weigh_blocks(
                    counts, vectors, answers, weights, parts, epochs, rng, encoded
                )
            rows: Any = self._weigh(counts)
            size = Size.of(rows, weights)
            if pieces is not None:
                weigh = partial(_weigh, bag, self.chosen_["weighting"], self.length)
                rows = pieces.map(weigh)
                size = size_of(rows, self._teaches())
            model = self._new_model(bag, self.chosen_["loss"], size, len(classes), epochs, rng)
            if silent and pieces is None:
                rows = sp.vstack([rows, self._weigh(bag.count(others))], format="csr")
                y = with_missing(y, len(others))
                weights = np.concatenate([weights, np.ones(len(others))])
            self._run(model, rows, y if named is None else _input.Shares(y, named), weights)
        self.chosen_["epochs"] = model.n_iter_
        if hasattr(model, "unlabelled_"):
            self.chosen_["unlabelled"] = model.unlabelled_
            if self.temperature == "auto":
                self._fitted.warm(model.temperature_, alone)
        model.temperature_ = self.chosen_["temperature"]
        return self

    @writes
    def partial_fit(
        self, X: Table, y: Labels, classes: Any = None, sample_weight: Weights = None
    ) -> Self:
        """Take one pass over the next documents of a stream, in the order given.

        The vocabulary grows with the documents (unless words are hashed), and classes may appear at
        any time. Nothing is held out in a stream: "auto" means NCLL on tf-idf, with a temperature
        of 1.

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
        vectors, foreseen = self._vectors_to_learn(fitted, documents), None
        meaning: Any = fitted.meaning
        if vectors is not None and not first and y.ndim == 1:
            foreseen = self._foreseen(documents, vectors, y, weights)
        with fitted.bag.undone_on_error():  # the labels may be invalid
            counts = fitted.bag.grow(documents)
            rows = fitted.bag.weigh(counts, fitted.chosen["weighting"], self.length)
            if fitted.model is None:
                K, size = len(_input.find_classes(y)), Size.of(rows, weights)
                loss, bag = fitted.chosen["loss"], fitted.bag
                fitted.model = self._new_model(bag, loss, size, K, 1, None)
            batch = block = None
            if first or weights.any():
                given = y if named is None else _input.Shares(y, named)
                batch = fitted.model.check_batch(rows, given, classes, weights, grows=True)
                if vectors is not None:
                    block = meaning.check_batch(vectors, given, classes, weights)
        self._fitted = fitted
        if batch is None:  # no labels: there are only words to learn
            self.model_.grow(len(fitted.bag))
            return self
        self.model_.learn_batch(batch)
        if block is not None:
            meaning.model.learn_batch(block)
        if first:
            self.model_.temperature_ = self.chosen_["temperature"]
        record = self.model_.history_[-1]
        labelled = float(weights.sum() if y.ndim == 2 else weights[~_input.missing_labels(y)].sum())
        figures = np.array([1.0, *(foreseen or (record["accuracy"], record["ncll"]))])
        fitted.progress = fitted.progress + labelled * figures
        self._call_back(record)
        return self

    def _check_options(self) -> None:
        check_common_options(self)
        check_words(self, weighting=("auto", *WEIGHTINGS))
        check_positive("length", self.length, None)
        check_positive("temperature", self.temperature, "auto")
        check_whole("max_iter", self.max_iter, "auto")
        check_whole("n_features", self.n_features, None)
        if self.prior != "auto" and not isinstance(self.prior, Dirichlet):
            raise OptionError(f"prior={self.prior!r} must be 'auto' or a Dirichlet(...)")
        check_cv(self.cv)
        check_encoder(self.encoder)
        check_unlabelled_weight(self.unlabelled_weight)
        if self.loss != "auto":
            resolve_loss(self.loss)
