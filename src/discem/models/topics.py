"""Topics: p(y, d) = p(y) p(d | y), one latent Dirichlet allocation per class.

A document of class y has topic proportions from a flat Dirichlet(alpha); each word is drawn from
the word distribution of a topic. The statistics are the expected counts of every word in every
topic of every class, a multinomial over words for each component (class, topic). Neither the
posterior of the topics nor ``p(d | y)`` has a closed form: an inference estimates both, the same
way in training and in prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._arrays import namespace_of, segment_of
from .._checks import check_array, check_count, check_number, demand
from .._kinds import savable
from .._sparse import add_rows
from ..families import Step, words
from ..families._counts import log_probabilities
from ..families._documents import Documents
from ..targets import Targets
from ._cvb0 import explain
from .classes import ClassPrior, start_classes
from .mixture import Mixture, Moves, perturbed
from .start import Tally, count_classes

_FAMILY = words.WORDS
LEAST_ALPHA = 1e-6  # of the topic proportions
MOST_SWEEPS = 10_000  # over a document; more take very long and gain nothing


@savable
class Cvb0(NamedTuple):
    """Collapsed variational inference of order zero; the bound of ``p(d | y)`` has order two.

    See `discem.models._cvb0.explain`.
    """

    sweeps: int

    def explain(self, p: Any, documents: Documents, alpha: float) -> tuple:
        """Return ``ln p(d | y)``, (n, K), and the expected tokens of stored words, (nnz, K, T)."""
        stored = documents.values, documents.place, documents.indptr
        return explain(p, *stored, alpha, self.sweeps)


@savable
class Gibbs(NamedTuple):
    """The sampler of the paper: one topic for all tokens of a word, drawn given the others.

    It is part of `discem.paper`, which needs Numba.
    """

    sweeps: int
    seed: int

    def explain(self, p: np.ndarray, documents: Documents, alpha: float) -> tuple:
        """Return ``ln p(d | y)``, (n, K), and the expected tokens of stored words, (nnz, K, T)."""
        from ..paper.sampler import gibbs

        table = np.ascontiguousarray(p.transpose(0, 2, 1))
        stored = documents.indptr, documents.place, documents.values
        scores, tokens = gibbs(table, *stored, alpha, self.sweeps, self.seed, documents.words)
        return scores, tokens.transpose(0, 2, 1)


@savable
@dataclass(frozen=True)
class Topics(Mixture):
    """A topic model inside each class; `first` gives the first topic of each class.

    The only block has one column of words per topic; the topics of a class are side by side.
    """

    alpha: float = 1.0  # of the topic proportions of a document
    inference: Any = None

    @property
    def n_topics(self) -> int:
        """Return the number of topics of each class."""
        return int(self.first[1])

    @property
    def class_counts(self) -> np.ndarray:
        return self.classes.counts

    @property
    def work_per_cell(self) -> float:
        return 8.0 * float(self.first[-1])  # each sweep of the inference is a visit

    def scores(self, batch: tuple) -> tuple[Any, Any]:
        """Return ``ln p(y, d)``, (n, K), and the expected tokens of stored words, (nnz, K, T)."""
        (documents,) = batch
        (block,) = self.blocks
        p = _FAMILY.cells(block, documents) / block.values["total"]
        p = p.reshape(documents.n_words, self.n_classes, self.n_topics)
        found, tokens = self.inference.explain(p, documents, self.alpha)
        shares = self.classes.shares
        return found + namespace_of(shares).log(shares), tokens

    def leverage(self, batch: tuple, posterior: Any, weights: Any, moves: Moves) -> Any:
        """By class: sum over its topics of t^2 / count - length^2 / total, as the step leaves them.

        Each document is treated alone, with its length in the topic. See `WordsFamily.leverage`.
        """
        (documents,), (n, K), T = batch, weights.shape, self.n_topics
        xp, pairs = namespace_of(weights), self._pairs(documents, posterior, weights, moves)
        own = _FAMILY.cells(self.blocks[0], documents).reshape(-1, T)[pairs.row]
        size = xp.abs(pairs.weight)[:, None]
        change = xp.sum(pairs.tokens**2 / (own + size * pairs.tokens), axis=1)
        found = xp.zeros((n * K, 1 + T), dtype=weights.dtype, device=weights.device)
        columns = xp.concat([change[:, None], pairs.tokens], axis=1)
        add_rows(found, pairs.document * K + pairs.row % K, columns, 1.0)
        change, lengths = found[:, 0].reshape(n, K), found[:, 1:].reshape(n, K, T)
        total = self.blocks[0].values["total"].reshape(K, T)
        even = lengths**2 / (total + xp.abs(weights)[:, :, None] * lengths)
        return xp.clip(change - xp.sum(even, axis=2), 0.0, None)

    def moved(self, batch: tuple, posterior: Any, weights: Any, moves: Moves) -> tuple[Any, int]:
        (documents,) = batch
        xp, pairs = namespace_of(weights), self._pairs(documents, posterior, weights, moves)
        K, T, u = self.n_classes, self.n_topics, documents.n_words
        sums = xp.zeros((u * K, T), dtype=weights.dtype, device=weights.device)
        add_rows(sums, pairs.row, pairs.weight[:, None] * pairs.tokens, 1.0)
        shares = self.classes.shares
        step = Step(shares, xp.ones_like(shares), *moves)
        block, shortened = _FAMILY.moved(self.blocks[0], (documents, sums.reshape(u, K * T)), step)
        classes, short = self.classes.moved(xp.sum(weights, axis=0), step)
        return self._replace(classes=classes, blocks=(block,)), shortened + short

    def _pairs(self, documents: Documents, tokens: Any, weights: Any, moves: Moves) -> Pairs:
        """Return the tokens to move; after some epochs few documents have weight in a class."""
        xp, K = namespace_of(weights), self.n_classes
        document = segment_of(documents.indptr, len(documents.values))
        teaches = xp.abs(weights.T) > moves.negligible
        k, j = xp.nonzero(xp.take(teaches, document, axis=1))
        document = document[j]
        own = xp.astype(tokens[j, k], weights.dtype)
        row = xp.astype(documents.place[j], k.dtype) * K + k  # there may be very many rows
        return Pairs(row, document, weights[document, k], own)

    def with_classes(self, order: np.ndarray, mass: float) -> Any:
        T = self.n_topics
        columns = np.where(order < 0, -1, order * T)[:, None]
        columns = np.where(columns < 0, -1, columns + np.arange(T)).ravel()
        model = self._map(lambda f, b: f.with_components(b, columns, mass / T))
        first = np.arange(len(order) + 1) * T
        model = model._replace(classes=self.classes.arranged(order, mass), first=first)
        new = np.flatnonzero(columns < 0)
        return perturbed(model, new, np.random.default_rng(0)) if T > 1 else model

    def check(self, n_classes: int, n_features: Any) -> None:
        averages = self.classes.check(n_classes)
        check_number("weight of the average", self.weight, least=0.0, kind=float)
        demand(len(self.blocks) == 1, "its topics have no words")
        T = len(self.blocks[0].values["total"]) // n_classes
        check_array("first", self.first, (n_classes + 1,), dtype=np.int64)
        same = np.array_equal(self.first, np.arange(n_classes + 1) * T) and T > 0
        demand(same, "its topics are not those of its classes")
        _FAMILY.check(self.blocks[0], n_classes * T, n_features, averages)
        check_number("alpha", self.alpha, least=LEAST_ALPHA, kind=float)
        demand(isinstance(self.inference, Cvb0 | Gibbs), "its inference is unknown")
        check_count("sweeps", self.inference.sweeps, 1, MOST_SWEEPS)
        if isinstance(self.inference, Gibbs):
            check_count("seed", self.inference.seed, most=2**31)

    # --- what was learnt --------------------------------------------------------------------------

    @property
    def word_distributions(self) -> np.ndarray:
        """Return p(word | topic, class) as (K, T, W)."""
        p = np.exp(log_probabilities(self.blocks[0]))
        return p.reshape(self.n_classes, self.n_topics, -1)

    def proportions(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of rows, (n, K), and expected topic proportions by class, (n, K, T)."""
        batch = self.read(rows)
        scores, tokens = self.scores(batch)
        mass = np.full((*scores.shape, self.n_topics), self.alpha)
        document = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
        np.add.at(mass, document, tokens)
        return scores, mass / mass.sum(axis=2, keepdims=True)


class Pairs(NamedTuple):
    """The expected tokens of the stored words of a batch, in the classes that are moved."""

    row: Any  # (N,) row of a table of (word, class) pairs: word * K + class
    document: Any  # (N,)
    weight: Any  # (N,) of the document in the class
    tokens: Any  # (N, T)


def collect_topics(
    rows: Any, targets: Targets, weights: Any, n_features: int, n_classes: int, n_topics: int, rng
) -> Tally:
    """Add up the statistics of all labelled rows, each in a random topic.

    Without `rng` all rows are in the first topic.
    """
    topic = np.zeros(len(weights), dtype=np.int64)
    if rng is not None and n_topics > 1:
        topic = rng.randint(n_topics, size=len(weights))
    parts = list(targets.parts(weights))
    split = [(np.where(codes >= 0, codes * n_topics + topic, -1), w) for codes, w in parts]
    counts = _FAMILY.collect(rows, split, n_features, n_classes * n_topics)
    return Tally(_FAMILY, count_classes(parts, n_classes), counts)


def start_topics(
    tally: Tally, prior: Any, classes: ClassPrior, alpha: float, inference, init, average, rng
) -> Topics:
    """Return the initial state: at the prior (with perturbed topics) or at the split counts."""
    total, K = float(tally.classes.sum()), len(tally.classes)
    M = tally.features.shape[1]
    block = _FAMILY.start(prior, tally.features, total, init, False)
    first = np.arange(K + 1) * (M // K)
    own = start_classes(tally.classes, classes, init)
    model: Any = Topics(own, (block,), first, 0.0, float(alpha), inference)
    if init == "prior" and model.is_mixed and not isinstance(inference, Gibbs):
        model = perturbed(model, np.arange(M), rng)
    return model.with_average() if average else model
