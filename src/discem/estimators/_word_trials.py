"""How a model of words is trained, and how what is left open of it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..calibration import useful_mix
from ..engines import Sequential, with_jobs
from ..families.words import batch_of
from ..io.bag import COUNTING, PIECES, Bag
from ..io.rows import sparse_rows
from ..losses import NLL, Blend, Hinge, resolve_loss
from ..priors import Dirichlet
from ..schedules import by_row, constant, power
from . import _input
from ._choice import Chooser, Mark, Options, Result, more_accurate, most_epochs
from ._documents import DocumentModel
from ._folds import ENOUGH, Split, splits
from ._meaning import Meaning, by_bayes, fit_vectors, vector_scores
from ._words import Size, Teaches, all_teach, known_to, labelled_teach
from .naive_bayes import MultinomialNB

ENOUGH_TO_WEIGH = 1000  # documents held out, where there are vectors beside words
WORDS, PAIRS = (1, 1), (1, 2)  # what `ngram_range="auto"` tries
CHARACTERS = (2, 5)  # .. and what it is of characters
_MOST_COUNTED = 5e7  # of all documents, times classes: what bounds a model of pairs, or pieces
_PIECES_A_WORD = 15

# Words of two characters or more, "don't" being one, and marks that carry a mood. Phrases need
# their small words, too; alone these are noise more often than not.
WORD = r"(?u)\w\w+(?:['’]\w+)?|[!?]"
WORD_IN_PHRASE = r"(?u)\w+(?:['’]\w+)?|[!?]"


class WordTrainer(DocumentModel):
    """Makes models of words, and tries what is left at "auto" on held-out documents."""

    loss: Any
    weighting: Any
    temperature: Any
    prior: Any
    max_iter: Any
    token_pattern: Any
    ngram_range: Any
    analyzer: Any
    min_df: Any
    max_df: Any
    cv: Any
    class_weight: Any
    unlabelled_weight: Any
    n_jobs: Any
    random_state: Any

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

    @property
    def _counting(self) -> Options:
        """What is chosen of the options of counting, and what comes first: words alone."""
        found = {"analyzer": "word"} if self.analyzer == "auto" else {}
        of_words = self.analyzer in ("auto", "word", PIECES)
        return found | ({"ngram_range": WORDS} if self.ngram_range == "auto" and of_words else {})

    def _new_bag(self, counting: Options | None = None) -> Bag:
        options = {name: getattr(self, name) for name in COUNTING}
        options |= self._counting | (counting or {})
        if options["ngram_range"] == "auto":
            options["ngram_range"] = WORDS if callable(self.analyzer) else CHARACTERS
        if self.token_pattern == "auto":
            alone = options["ngram_range"] in ((1, 1), [1, 1])
            options["token_pattern"] = WORD if alone else WORD_IN_PHRASE
        return Bag(options, self.n_features)

    def _defaults(self) -> dict[str, Any]:
        """What stands in for "auto" where nothing can be held out."""
        return {
            "loss": "ncll" if self.loss == "auto" else self.loss,
            "weighting": "tfidf" if self.weighting == "auto" else self.weighting,
            "temperature": 1.0 if self.temperature == "auto" else float(self.temperature),
        } | self._counting  # which is put on record

    def _most_epochs(self, n: int) -> int:
        return most_epochs(n) if self.max_iter == "auto" else int(self.max_iter)

    def _new_model(self, bag: Bag, loss, size: Size, K: int, epochs: int, rng) -> MultinomialNB:
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
            used = int(np.count_nonzero(bag.document_count))
            mean = share * size.total / max(used * K, 1)
            settings = {"prior": Dirichlet(3.0 * max(mean, 1e-300)), "step": constant(30.0 / n)}
        if isinstance(kind, Blend) and kind.kappa > 0:  # its NLL part is a running average
            first = settings["step"](1.0)
            settings["step"] = power(first, 1.0 / (kind.kappa * first), 1.0)
        if "step" in settings and rng is not None:
            settings["step"] = by_row(settings["step"])
        if self.prior != "auto":
            settings["prior"] = self.prior
        engine = with_jobs(Sequential(), None, self.device)
        return MultinomialNB(
            **settings,
            loss=loss,
            batch_size=engine.batch(batch_of(n, K, eager=False), int(n)) if alike else "auto",
            max_iter=epochs,
            tol=None,
            class_weight=self.class_weight,
            unlabelled_weight=self.unlabelled_weight,
            n_jobs=self.n_jobs,
            device=self.device,
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

    def _parts(self, y, weights, classes, rng, enough: int = ENOUGH) -> list[Split]:
        """What is held out to settle what is left at "auto", and how much vectors say."""
        fixed = "auto" not in (self.loss, self.weighting, self.temperature, self.max_iter)
        if (
            fixed and not self._counting and self.encoder is None
        ) or y.ndim == 2:  # label sets and shares have no accuracy to judge by
            return []
        codes = _input.encode(y, classes).codes
        return splits(codes, weights, rng, cv=self.cv, enough=enough)

    def _choose(
        self, documents, counts, y, K: int, parts: list[Split], unlabelled: bool, rng
    ) -> tuple[int, sp.csr_matrix]:
        """Settle what is left at "auto" on held-out documents.

        Return how many epochs to train, and the counts to train on. Without documents there are
        only those of words.
        """
        most = self._most_epochs(counts.shape[0])
        if not parts:
            return most, counts
        words = self.bag_, counts

        plain, first = (self.min_df, self.max_df) == (1, 1.0), self._counting

        @lru_cache(1)
        def count(how: tuple[Any, ...]) -> tuple[Bag, sp.csr_matrix]:
            if how == counting(first):
                return words
            bag = self._new_bag(dict(how))
            # most pairs are in one document, and say nothing of others
            return bag, bag.learn(documents, 2 if plain else None)

        def counting(options: Options) -> tuple[Any, ...]:
            return tuple((name, options[name]) for name in first)

        @lru_cache(1)
        def read(weighting: str, how: tuple[Any, ...], part: int) -> tuple[Bag, sp.csr_matrix]:
            return self._rows_of(*count(how), parts[part], weighting)

        def reading(options: Options, part: Split) -> tuple[Bag, sp.csr_matrix]:
            place = next(place for place, each in enumerate(parts) if each is part)
            return read(options["weighting"], counting(options), place)

        def train(options: Options, part: Split, watch: Callable[[Any], bool]) -> MultinomialNB:
            bag, rows = reading(options, part)
            size = Size.of(rows, part.weights)
            model = self._new_model(bag, options["loss"], size, K, most, rng)
            model.set_params(n_jobs=None, verbose=0)  # the choice does not depend on threads
            self._run(model, rows, y, part.weights, watch, chooser)
            return model

        def score(options: Options, part: Split, model: MultinomialNB) -> np.ndarray:
            return model.learner_.score(sparse_rows(reading(options, part)[1]), part.held)

        def keep(options: Options, model: MultinomialNB, mark: Mark | None) -> None:
            self._fitted.bag, self._fitted.model = count(counting(options))[0], model
            self._fitted.choice = chooser.choice()
            self._fitted.chosen |= options
            if self.temperature == "auto" and mark is not None:
                self.chosen_["temperature"] = mark.temperature
            model.temperature_ = self.chosen_["temperature"]

        repeated = documents is not None and bool((self.bag_.document_count > 1).any())
        more = self._more_to_count(counts.sum() * K) if repeated else []
        candidates, of = self._candidates(unlabelled, more), 4 + 2 * len(more)
        chooser = Chooser(parts, train, score, more_accurate, keep, of=of, verbose=self.verbose)
        best = chooser.best_of(candidates)
        self._fitted.choice = chooser.choice()
        self.chosen_["held_out"] = chooser.held_out
        epochs = len(best.marks) + 1 if self.max_iter == "auto" else most  # there is more to learn
        return epochs, count(counting(best.options))[1]

    def _more_to_count(self, size: float) -> list[Options]:
        """What else to count than words: pairs of words, or pieces of them, if that is bounded."""
        first, found = self._counting, []
        if "ngram_range" in first and size <= _MOST_COUNTED:
            found.append({"ngram_range": PAIRS})
        if "analyzer" in first and size * _PIECES_A_WORD <= _MOST_COUNTED:
            found.append(first | {"analyzer": PIECES})
        return found

    def _rows_of(self, bag: Bag, counts, part: Split, weighting: str) -> tuple[Bag, sp.csr_matrix]:
        """What is known of words without the documents held out, and all rows weighted by that."""
        bag, counts = known_to(bag, counts, part.train)
        return bag, bag.weigh(counts, weighting, self.length)

    def _weigh_blocks(
        self, counts, vectors, y, weights, parts: list[Split], epochs: int, rng, encoded: Any
    ) -> float | None:
        """Train the block of vectors, and let held-out documents say how much it says.

        It is trained on the vectors of all documents where these are `encoded` on workers.
        Words are left alone where it says nothing. Returns the temperature of words alone, if
        anything was held out.
        """
        seed = rng.randint(2**31 - 1)
        options = {"class_weight": self.class_weight, "device": self.device, "random_state": seed}
        meaning = Meaning.new(self.encoder, vectors, **options)
        alone = None
        if parts:
            a, b, shift = self._held_out(meaning.model, counts, vectors, y, parts, epochs, rng)
            codes = np.concatenate([part.codes for part in parts])
            held_weights = np.concatenate([part.held_weights for part in parts])
            mix, alone = useful_mix([a, b], shift, codes, held_weights)
            meaning.weight, meaning.bias = mix.weights[0], mix.bias
            self.chosen_["vectors"] = {
                "weight": meaning.weight,
                "bias": meaning.bias,
                "log_loss": mix.log_loss,
                "words_alone": alone.log_loss,
                "held_out": len(codes),
            }
            if meaning.weight == 0.0:
                return alone.temperature
            if self.temperature == "auto":
                self.chosen_["temperature"] = mix.temperature
        if encoded is None:
            fit_vectors(meaning.model, vectors, y, weights)
        else:
            meaning.model.fit(encoded, None)
        self._fitted.meaning = meaning
        return None if alone is None else alone.temperature

    def _held_out(
        self, block, counts, vectors, y, parts: list[Split], epochs: int, rng
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores of held-out documents by words and by vectors, and ln f(y), each (n, K).

        Without a block of vectors these say nothing.
        """
        found, K = [], len(_input.find_classes(y))
        for part in parts:
            bag, rows = self._rows_of(self.bag_, counts, part, self.chosen_["weighting"])
            size = Size.of(rows, part.weights)
            epochs_of_part = max(epochs - (self.max_iter == "auto"), 1)
            words = self._new_model(bag, self.chosen_["loss"], size, K, epochs_of_part, rng)
            words.set_params(n_jobs=None, verbose=0).fit(rows, y, part.weights)
            scores = words.learner_.score(sparse_rows(rows), part.held)
            said = np.zeros_like(scores)
            if block is not None:
                own = fit_vectors(clone(block), vectors, y, part.weights)
                said = vector_scores(own, vectors[part.held])
            shift = np.broadcast_to(np.log(words._frequencies()), scores.shape)
            found.append((scores, said, shift))
        a, b, shift = (np.concatenate(each) for each in zip(*found, strict=True))
        return a, b, shift

    def _without_parts(self, documents, y, parts: list[Split]) -> list[np.ndarray]:
        """``ln p(document | y)`` of held-out documents, by models like this one, for each part.

        They were trained without the part, with the options that this one has.
        """
        meaning, seed = self._fitted.meaning, check_random_state(self.random_state)
        weight, bias, block, vectors = 0.0, 0.0, None, None
        if meaning is not None:
            weight, bias, block = meaning.weight, meaning.bias, meaning.model
            vectors = self._vectors(documents)
        counts, epochs = self.bag_.count(documents), self.chosen_["epochs"]
        words, said, shift = self._held_out(block, counts, vectors, y, parts, epochs, seed)
        scores = self.chosen_["temperature"] * (words + weight * said + bias * shift)
        ends = np.cumsum([len(part.held) for part in parts])
        return np.split(by_bayes(scores, shift), ends[:-1])

    def _candidates(
        self, unlabelled: bool, more: list[Options]
    ) -> Generator[Options, Result, None]:
        """The losses, then the other weighting with the best loss, then more than words."""
        losses = [self.loss]
        if self.loss == "auto":  # unlabelled documents are for a model that tells apart
            losses = ["hinge", "ncll"] if unlabelled else ["hinge", "ncll", "nll"]
        first = {"weighting": self.chosen_["weighting"]} | self._counting
        for loss in losses:
            best = yield {"loss": loss} | first
        if self.weighting == "auto":
            best = yield best.options | {"weighting": "presence"}
        for counting in more:
            for loss in losses[:2]:  # the best for words is not always that for pairs
                best = yield best.options | {"loss": loss} | counting
