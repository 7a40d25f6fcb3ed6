"""Topics inside each class: latent Dirichlet allocation, trained discriminatively."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from .._checks import check_plain, demand
from .._kinds import savable
from ..engines import Data, Rule, Sequential, resolve_device, with_jobs
from ..engines.sequential import feed
from ..exceptions import InputError, OptionError
from ..families._counts import draw_lengths, typical_length
from ..io.bag import Bag, as_documents
from ..losses import NLL, Hinge, resolve_loss
from ..models.topics import (
    LEAST_ALPHA,
    MOST_SWEEPS,
    Cvb0,
    Gibbs,
    Topics,
    collect_topics,
    start_topics,
)
from ..priors import Dirichlet
from ..schedules import power
from ..training import Learner
from ._batch import Batch
from ._by_label import place_of
from ._docs import documented
from ._options import NUMBER, check_whole, check_words, with_options
from ._pieces import by_partition
from ._threads import reads, writes
from ._types import Auto, Label, Labels, Table, TransformerMixin, Weights
from ._words import all_teach, count_pieces
from .naive_bayes import CountClassifier

_COUNTING = {  # the defaults of CountVectorizer
    "ngram_range": (1, 1),
    "analyzer": "word",
    "token_pattern": r"(?u)\b\w\w+\b",
    "lowercase": True,
    "strip_accents": None,
    "stop_words": None,
    "min_df": 1,
    "max_df": 1.0,
    "max_features": None,
}
_HEAVY, _HEAVY_HINGE = 3.0, 10.0  # pseudo-counts of all topics, relative to the words of the data
_HEAVIEST = 4.0  # the limit, relative to those of `Dirichlet()`
_CACHE = 1 << 20  # numbers to work on at a time
_WARM = 5  # passes of online EM that separate the topics of a class before training


@savable
@documented
@with_options
class TopicClassifier(TransformerMixin, CountClassifier):
    """One latent Dirichlet allocation per class, trained under NLL, NCLL or hinge.

    Each class has `n_topics` topics, and each topic is a distribution over words. A document mixes
    the topics of its class, in proportions drawn from a flat Dirichlet(alpha).
    ``p(document | class)`` has no closed form. It is estimated in the same way in training and in
    prediction, so the gradient of a discriminative loss is approximate.

    Parameters
    ----------
    n_topics : int, default=2
        Number of topics of each class. With one topic the model is `MultinomialNB`.
    alpha : float or None, default=None
        Pseudo-count of each topic in a document. None is ``1 / n_topics``, as in the paper.
    inference : {{"cvb0", "gibbs"}}, default="cvb0"
        How to infer the topics of a document and ``p(document | class)``. "cvb0" is collapsed
        variational inference and its bound; it is deterministic. "gibbs" is the collapsed Gibbs
        sampler of the paper, in which all occurrences of a word share a topic, with an unbiased
        estimate by importance sampling. Its random numbers depend on the document and on
        `random_state`, not on the position of the row.
    n_sweeps : int or None, default=None
        Passes over the words of a document. None is 5 for "cvb0" and 10 for "gibbs".
    text : bool or dict, default=False
        Take documents (text or lists of words) instead of counts. A dict holds options of
        scikit-learn's CountVectorizer. New words of a stream join the vocabulary.
    {loss}
    prior : {{"data", "paper"}} or Dirichlet, default="data"
        Pseudo-counts of each word in each topic. "data" weighs three times as much as the data (ten
        times under hinge), but at most four times as much as `Dirichlet()`. Under NLL it is one
        pseudo-count, shared by the topics. "paper" is ``0.1 / n_topics``; the start of the paper is
        ``init="prior"``.
    {common}
    {unlabelled}

    Attributes
    ----------
    topics_ : array of shape (n_classes, n_topics, n_features)
        ``p(word | topic, class)``.
    mean_length_ : float
        Mean number of words per training document; `sample` draws lengths around it.
    {attributes}

    Examples
    --------
    >>> from discem import TopicClassifier
    >>> texts = ["good film", "bad film", "good plot and good cast", "bad plot and bad cast"] * 5
    >>> model = TopicClassifier(text=True, random_state=0).fit(texts, ["+", "-"] * 10)
    >>> model.predict(["good, so good"]).tolist()
    ['+']
    >>> model.top_words("-", topic=0, n=1)
    ['bad']
    >>> model.transform(texts).shape  # proportions of the topics of both classes
    (20, 4)
    """

    n_topics: int = field(default=2, kw_only=False)
    alpha: float | None = None
    inference: Literal["cvb0", "gibbs"] = "cvb0"
    n_sweeps: int | None = None
    text: bool | Mapping[str, Any] = False
    max_iter: int = 10
    tol: float | None = None
    unlabelled_weight: float | Auto = "auto"

    def _check_options(self) -> None:
        super()._check_options()
        check_whole("n_topics", self.n_topics)
        check_whole("n_sweeps", self.n_sweeps, None)
        if self.n_sweeps is not None and self.n_sweeps > MOST_SWEEPS:
            raise OptionError(f"n_sweeps={self.n_sweeps!r} must be at most {MOST_SWEEPS}")
        alpha = self.alpha
        if alpha is not None and not (isinstance(alpha, NUMBER) and LEAST_ALPHA <= alpha < np.inf):
            raise OptionError(f"alpha={alpha!r} must be None or a number >= {LEAST_ALPHA:g}")
        check_words(self, inference=("cvb0", "gibbs"))
        if self.inference == "gibbs" and resolve_device(self.device) is not None:
            raise OptionError(
                f"device={self.device!r}: inference='gibbs' runs on the processor alone; "
                "use 'cvb0', or leave device out"
            )
        if not isinstance(self.text, bool | dict):
            raise OptionError(f"text={self.text!r} must be True, False or a dict of options")
        unknown = set(self.text if isinstance(self.text, dict) else ()) - set(_COUNTING)
        if unknown:
            raise OptionError(f"text: {min(unknown)!r} is unknown, use some of {list(_COUNTING)}")

    # --- documents --------------------------------------------------------------------------------

    _model = Topics
    _of_input: ClassVar = (*CountClassifier._of_input, "_bag")
    _attributes: ClassVar = (*CountClassifier._attributes, "_bag", "_sklearn_output_config")

    def _check_fitted(self):
        super()._check_fitted()
        same = self.learner_.state.n_topics == self.n_topics
        demand(same, "it has not as many topics as it says")
        check_plain("_sklearn_output_config", getattr(self, "_sklearn_output_config", {}))
        if self.text is not False:
            demand(isinstance(self._bag, Bag), "it has no words")
            self._bag.check()
            demand(len(self._bag) == self.n_features_in_, "its words are not those of its columns")

    def _read(self, X, family, fresh, grows=False):
        if self.text is False or sp.issparse(X):
            return super()._read(X, family, fresh, grows)
        documents = as_documents(X)
        if not fresh:
            return super()._read(self._bag.count(documents), family, fresh)
        bag = self._new_bag()
        X, found = super()._read(bag.learn(documents), family, fresh)
        return X, found | {"_bag": bag}

    def _read_rows(self, rows):
        if not rows.on_workers or self.text is False or sp.issparse(rows.sample.X):
            return super()._read_rows(rows)
        bag = self._new_bag()
        batch = super()._read_rows(count_pieces(rows, bag, all_teach).map(bag.arrange))
        return batch._replace(found=batch.found | {"_bag": bag})

    def _new_bag(self) -> Bag:
        return Bag(_COUNTING | (self.text if isinstance(self.text, dict) else {}), None)

    @writes
    def partial_fit(
        self, X: Table, y: Labels, classes: Any = None, sample_weight: Weights = None
    ) -> Self:
        if self.text is False or sp.issparse(X):
            return super().partial_fit(X, y, classes, sample_weight)
        self._check_options()
        documents = as_documents(X)
        bag = self._bag if self.__sklearn_is_fitted__() else self._new_bag()
        with bag.undone_on_error():
            counts = bag.grow(documents)
            batch = self.check_batch(counts, y, classes, sample_weight, grows=True)
        return self.learn_batch(batch._replace(found=batch.found | {"_bag": bag}))

    partial_fit.__doc__ = CountClassifier.partial_fit.__doc__

    def _view(self, X, family):
        if sp.issparse(X) and not (X.has_canonical_format and X.data.all()):
            X = X.copy()
            X.sum_duplicates()
            X.eliminate_zeros()
        return family.view(X)

    # --- training ---------------------------------------------------------------------------------

    def _resolve_prior(self, family, n_features):
        plain = Dirichlet(1.0 / self.n_topics)
        names = {
            "data": (plain if self._is_generative() else Dirichlet(), 1.0),
            "paper": (Dirichlet(0.1 / self.n_topics), 0.1 / self.n_topics),
        }
        if isinstance(self.prior, str) and self.prior in names:
            return names[self.prior]
        if isinstance(self.prior, Dirichlet):
            family.check_prior(self.prior)
            return self.prior, 1.0
        raise OptionError(
            f"prior={self.prior!r} is unknown: use one of {list(names)} or Dirichlet(...)"
        )

    def _auto_average(self, family):
        return False  # topics may swap at first, and an average would blur them

    def _plan(self, targets):
        late = self.average == "auto" and not self._is_generative()
        return replace(super()._plan(targets), late=late)

    def _resolve_inference(self, rng) -> Any:
        if self.inference == "gibbs":
            return Gibbs(int(self.n_sweeps or 10), int(rng.randint(2**31 - 1)))
        return Cvb0(int(self.n_sweeps or 3))

    def _begin(self, batch, average, stream, rng):
        T, K, d = int(self.n_topics), len(batch.classes), batch.X.shape[1]
        alpha = 1.0 / T if self.alpha is None else float(self.alpha)
        split = rng if self.init == "generative" else None
        collect = partial(collect_topics, n_features=d, n_classes=K, n_topics=T)
        if batch.whole is None or batch.whole.complete:
            tally = collect(batch.rows, batch.targets, batch.weights, rng=split)
        elif split is None:
            tally = batch.whole.collect(partial(collect, rng=None))
        else:
            tally = batch.whole.collect(collect, seed=int(rng.randint(2**31 - 1)))
        prior, eta = self._resolve_prior(batch.family, d)
        parts = list(batch.targets.parts(batch.weights))
        of_data = self.prior == "data" and prior.alpha is None
        prior = batch.family.complete_prior(prior, batch.rows, parts, float(T))
        if of_data:  # as heavy as the data, but never so heavy that a single document has no effect
            times = _HEAVY_HINGE if isinstance(resolve_loss(self.loss), Hinge) else _HEAVY
            words = float(tally.classes.sum()) * typical_length(batch.rows, batch.weights)
            heavy = times * words / max(tally.features.size, 1)
            prior = Dirichlet(min(heavy, _HEAVIEST * prior.alpha) or prior.alpha)
        classes = self._class_prior(batch.family, prior, eta)
        inference = self._resolve_inference(rng)
        state = start_topics(tally, prior, classes, alpha, inference, self.init, average, rng)
        if T > 1 and self.init == "generative":
            state = self._tell_apart(state, batch, rng)
        return [state], tally.classes

    def _tell_apart(self, state: Topics, batch: Batch, rng) -> Topics:
        """Separate the topics of each class by online EM, from documents with random topics."""
        chosen = np.flatnonzero(batch.weights > 0)
        n = float(len(chosen))
        step = power(5.0 / n, n, 1.0)
        total = float(batch.weights.sum())
        size = self._auto_batch(batch) if self.batch_size == "auto" else int(self.batch_size)
        rule = Rule(NLL(), self._resolve_projection(NLL()), step, total, size, by_row=True)
        em = Learner(state, rule, with_jobs(Sequential(), self.n_jobs, self.device))
        rows = batch.family.lightened(batch.rows)
        data = Data(rows, batch.targets, batch.weights * n / total)
        for _ in range(_WARM):
            em.learn(data, rng.permutation(chosen))
        return em.state

    def _auto_batch(self, batch):
        """Return a batch so small that its words, in all topics, stay in the cache."""
        cells = batch.rows.n_cells / max(batch.rows.n_rows, 1)
        numbers = max(cells, 1.0) * len(batch.classes) * int(self.n_topics)
        few = max(batch.rows.n_rows / 16, 8)
        return int(np.clip(min(_CACHE / numbers, few), 1, 128))

    def _solved(self, targets):
        return self.n_topics == 1 and super()._solved(targets)

    # --- what was learnt --------------------------------------------------------------------------

    @property
    @reads
    def topics_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.learner_.model.word_distributions

    @by_partition(lambda model: len(model.classes_) * model.n_topics)
    @reads
    def transform(self, X: Table) -> Any:
        """Return topic proportions: ``p(class | x) E[proportion of the topic | x, class]``.

        Returns
        -------
        array of shape (n_samples, n_classes * n_topics)
            The topics of the first class, then those of the second, and so on. A row sums to 1.
        """
        rows = self._rows(X)
        model = self.learner_.model
        parts = [model.proportions(some) for some in feed(rows, rows, model)]
        scores, share = map(np.concatenate, zip(*parts, strict=True))
        p = softmax(scores * self.temperature_ + self._prior_shift, axis=1)
        return (p[:, :, None] * share).reshape(len(p), -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of `transform`: class and number of the topic."""
        check_is_fitted(self)
        return np.array(
            [f"{label}_{t}" for label in self.classes_ for t in range(self.n_topics)], dtype=object
        )

    @reads
    def top_words(self, label: Label, topic: int, n: int = 10) -> list[Any]:
        """Return the most frequent words of a topic of a class.

        Parameters
        ----------
        label : a class
        topic : int
            From 0 to ``n_topics - 1``.
        n : int

        Returns
        -------
        list
            Words of `text`, names of the features, or else their numbers.
        """
        check_is_fitted(self)
        place = place_of(self.classes_, label)
        if not 0 <= topic < self.n_topics:
            raise InputError(f"topic={topic!r} must be from 0 to {self.n_topics - 1}")
        best = np.argsort(-self.topics_[place, topic], kind="stable")[:n]
        names = self._word_names()
        return best.tolist() if names is None else [names[j] for j in best]

    def _words(self) -> tuple[np.ndarray, Any]:
        """Return ``ln p(word | class)``, over all topics, and the words."""
        p, names = self.topics_.mean(axis=1), self._word_names()
        return np.log(p), range(p.shape[1]) if names is None else names

    def _word_names(self) -> Any:
        if hasattr(self, "_bag"):
            return list(self._bag.vocabulary)
        return getattr(self, "feature_names_in_", None)

    def _draw(self, codes, rng):
        p, model = self.topics_, self.learner_.model
        lengths, drawn = draw_lengths(model.features, len(codes), rng), []
        for k, length in zip(codes, lengths, strict=True):
            mixed = rng.dirichlet(np.full(p.shape[1], model.alpha)) @ p[k]
            drawn.append(rng.multinomial(length, mixed / mixed.sum()))
        return np.stack(drawn)

    @property
    @reads
    def mu_(self) -> dict[str, np.ndarray]:
        prior, topics = self.class_prior_, self.topics_
        mass = self.learner_.model.features.values["total"].reshape(topics.shape[:2])
        share = mass / mass.sum(axis=1, keepdims=True) * self.mean_length_ * prior[:, None]
        return {"class": prior, "word": share[:, :, None] * topics}

    @property
    @reads
    def theta_(self) -> dict[str, np.ndarray]:
        return {"class": np.log(self.class_prior_), "word": np.log(self.topics_)}

    def to_linear(self) -> NoReturn:
        """Raise an error: with topics the log-odds are not a linear function of the counts."""
        raise OptionError("a model with topics is not linear: see MultinomialNB.to_linear")
