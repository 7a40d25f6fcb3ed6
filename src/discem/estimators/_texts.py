"""Text columns of a table: a model of the texts of each, beside the model of the other columns.

Columns are independent given the class: the joint is ``ln p(y) + ln p(cells | y) + sum of weight *
ln p(text | y) + bias * ln f(y)``, f being how frequent classes were. The models are trained apart,
so what several of them say would count several times: held-out rows decide the weights, as those of
the vectors of a `TextClassifier`. A text that is missing or empty says nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp

from .._checks import check_number, demand
from .._kinds import savable
from ..calibration import Mix, useful_mix
from ..exceptions import ConflictingLabelsWarning, InputError, warn
from ..io.bag import EmptyVocabulary
from ..io.columns import place
from ..io.encoders import Remembered
from ..io.labels import plain_labels
from ..io.tables import Layout
from . import _input
from ._batch import Batch
from ._explain import Explanation, Explanations
from ._folds import Split
from ._joint import LEAST
from ._meaning import by_bayes, never_seen
from .text import TextClassifier

Cells = Mapping[Any, Sequence[str]]  # the texts of each column, by its name


@savable
@dataclass
class TextBlock:
    """What is known of a text column."""

    name: str | int
    model: TextClassifier | None = None  # None where there was nothing to learn
    weight: float = 1.0

    def said(self, texts: Sequence[str], classes: np.ndarray) -> np.ndarray:
        """``weight ln p(text | y)``, (n, n_classes), up to what classes share."""
        found, places = np.zeros((len(texts), len(classes))), _places(texts)
        if self.model is None or self.weight == 0.0 or not places:
            return found
        scores = self.model._tempered([*places])
        own = _input.encode(self.model.classes_, classes).codes
        told = by_bayes(scores, np.log(self.model.class_frequency_))
        rows = _there(texts)
        found[np.ix_(rows, own)] = self.weight * told[[places[texts[i]] for i in rows]]
        return found

    def explain(self, text: str, classes: np.ndarray) -> Explanation:
        """What each word adds to `said`; the rest, as of vectors, is not of one word."""
        K = len(classes)
        if self.model is None or not text.strip():
            return Explanation(classes, [], np.zeros((0, K)), np.zeros(K))
        found, log_f = self.model.explain(text), np.log(self.model.class_frequency_)
        own, seen = _input.encode(self.model.classes_, classes).codes, ~never_seen(log_f)
        parts, rest = np.zeros((len(found.names), K)), np.zeros(K)
        parts[:, own[seen]] = self.weight * found.contributions[:, seen]
        start = found.intercept - logsumexp(found.scores) - log_f
        rest[own[seen]] = self.weight * start[seen]
        return Explanation(classes, found.names, parts, rest)

    def fit(
        self, texts: Sequence[str], y: Any, weights: np.ndarray, model: TextClassifier, pairs: Any
    ) -> None:
        """Train the model on the rows that have a text; there may be too few of them."""
        y, named = y
        rows = _there(texts)
        if pairs is not None:
            own = [tuple(np.flatnonzero(np.isin(rows, side)) for side in pair) for pair in pairs]
            model.set_params(cv=own)
        if y.ndim == 1 and len(_input.find_classes(y[rows])) < 2:
            warn(f"{place(self.name)} has no texts of two classes: it says nothing", UserWarning)
            return
        some = y[rows] if named is None else _input.Shares(y[rows], named)
        try:
            with warnings.catch_warnings():  # other columns may tell equal texts apart
                warnings.simplefilter("ignore", ConflictingLabelsWarning)
                self.model = model.fit([texts[i] for i in rows], some, weights[rows])
        except InputError as error:
            raise InputError(f"{place(self.name)}: {error}") from error

    def learn(self, texts: Sequence[str], batch: Batch, new: Any) -> None:
        """Take one pass over the next rows of a stream that have a text."""
        rows, targets = _there(texts), batch.targets
        known = targets.labelled[rows].any()
        if not len(rows) or not self.weight or (self.model is None and not known):
            return
        some: Any
        if targets.plain:
            labels = np.array([*plain_labels(batch.classes), None], dtype=object)
            some = labels[targets.codes[rows]]
        else:
            some = _input.Shares(batch.y[rows], batch.classes)
        model = new() if self.model is None else self.model
        documents = [texts[i] for i in rows]
        with suppress(EmptyVocabulary):  # there may be words in later rows
            self.model = model.partial_fit(documents, some, sample_weight=batch.given[rows])

    def without_parts(
        self, texts: Sequence[str], y: np.ndarray, parts: list[Split], classes: np.ndarray
    ) -> np.ndarray:
        """``ln p(text | y)`` of the held-out rows of all parts, by models that know no others."""
        found = [np.zeros((len(part.held), len(classes))) for part in parts]
        codes = _input.encode(y, classes).codes
        rows = np.array([i for i in _there(texts) if codes[i] >= 0], dtype=np.int64)
        own, places = [], []
        for j, part in enumerate(parts):
            inside = np.isin(part.held, rows)
            trained = np.unique(codes[rows][part.weights[rows] > 0])
            if inside.any() and len(trained) > 1 and self.model is not None:
                kept = part.held[inside], part.codes[inside], part.held_weights[inside]
                own.append(Split(part.weights, *kept).among(rows))
                places.append((j, inside))
        if own:
            model: Any = self.model
            told = model._without_parts([texts[i] for i in rows], y[rows], own)
            order = _input.encode(_input.find_classes(y[rows]), classes).codes
            for (j, inside), each in zip(places, told, strict=True):
                found[j][np.ix_(inside, order)] = each
        return np.concatenate(found)


@savable
@dataclass
class Texts:
    """The text columns of a table, and how they and the other columns answer together."""

    blocks: list[TextBlock] = field(default_factory=list)
    temperature: float = 1.0
    bias: float = 0.0

    @classmethod
    def fit(cls, cells: Cells, y: Any, weights: np.ndarray, new: Any, pairs: Any) -> Texts:
        """Train a model of each column on all rows, chosen by `pairs` of rows; `new` makes it."""
        blocks = []
        for name, texts in cells.items():
            block, model = TextBlock(name), new()
            encoder = model.encoder
            if encoder is not None:
                model.set_params(encoder=Remembered(encoder))
            block.fit(texts, y, weights, model, pairs)
            blocks.append(block)
            model.set_params(cv=None, callback=None)
        return cls(blocks)

    def weigh(
        self,
        cells: Cells,
        y: np.ndarray,
        parts: list[Split],
        log_p: np.ndarray,
        classes: np.ndarray,
        by_class: np.ndarray,
    ) -> tuple[Mix, Mix]:
        """Let held-out rows say how much each column says beside `log_p` of the others.

        What a row counts is multiplied by the weight of its class.
        """
        told = [each.without_parts(cells[each.name], y, parts, classes) for each in self.blocks]
        codes = np.concatenate([part.codes for part in parts])
        weights = np.concatenate([part.held_weights for part in parts]) * by_class[codes]
        known, shift = _input.encode(y, classes).codes, []
        for part in parts:
            rows = part.train
            counts = by_class * np.bincount(known[rows], part.weights[rows], len(classes)) + 0.5
            shift.append(np.tile(np.log(counts / counts.sum()), (len(part.held), 1)))
        blocks = [np.maximum(log_p, LEAST), *told]
        mix, alone = useful_mix(blocks, np.concatenate(shift), codes, weights)
        for block, weight in zip(self.blocks, mix.weights, strict=True):
            block.weight = weight
            if weight == 0.0:
                block.model = None
        self.bias = mix.bias
        return mix, alone

    def give_encoder(self, encoder: Any) -> None:
        """Let the models have an encoder, in place of what remembers the vectors of a training."""
        for block in self.blocks:
            if block.model is not None:
                block.model.set_params(encoder=encoder)

    # --- answers ----------------------------------------------------------------------------------

    def said(self, cells: Cells, classes: np.ndarray) -> np.ndarray:
        """What each column adds to the scores, (n, columns, n_classes)."""
        return np.stack([each.said(cells[each.name], classes) for each in self.blocks], axis=1)

    def scores(
        self, log_p: np.ndarray, said: np.ndarray, log_f: np.ndarray, shift: np.ndarray
    ) -> np.ndarray:
        """``ln p(y, row)`` as it was trained, up to what classes share, before the temperature.

        `log_p` is ``ln p(y | cells)`` of the other columns, with the `shift` of class priors.
        """
        return log_p - shift + said.sum(axis=1) + self.bias * log_f

    def explained(
        self, found: Explanations, cells: Cells, log_f: np.ndarray, shift: np.ndarray
    ) -> Explanations:
        """The parts of the other columns, and those of texts, with their words."""
        classes, said = found.classes, self.said(cells, found.classes)
        log_p = log_softmax(found.scores, axis=1)
        scores = self.temperature * self.scores(log_p, said, log_f, shift) + shift
        parts = self.temperature * found.contributions
        for j, block in enumerate(self.blocks):
            parts[:, found.columns.index(block.name)] += self.temperature * _centred(said[:, j])
        made = Explanations(classes, found.columns, parts, scores - parts.sum(axis=1))
        made.words_of = [partial(self._words, cells, i, classes) for i in range(len(made))]
        return made

    def _words(self, cells: Cells, row: int, classes: np.ndarray, column: Any) -> Explanation:
        """What each word of a text of a row adds."""
        for block in self.blocks:
            if block.name == column:
                found = block.explain(cells[column][row], classes)
                parts, rest = found.contributions, _centred(found.intercept)
                return found._replace(
                    contributions=self.temperature * parts, intercept=self.temperature * rest
                )
        names = [block.name for block in self.blocks]
        raise InputError(f"{place(column)} is no text column; there are: {names}")

    # --- files ------------------------------------------------------------------------------------

    def check(self, layout: Layout, classes: np.ndarray) -> None:
        """Refuse what training cannot have left; it may come from anywhere."""
        demand(isinstance(self.blocks, list), "its text columns are no list")
        demand(all(isinstance(each, TextBlock) for each in self.blocks), "a text column is none")
        names = [each.name for each in self.blocks]
        known = names == [column.name for column in layout.texts]
        demand(known and names, "its text columns are not those of its table")
        check_number("temperature", self.temperature, above=0.0)
        check_number("bias", self.bias)
        for block in self.blocks:
            check_number("weight of a text column", block.weight, least=0.0)
            if block.model is not None:
                demand(type(block.model) is TextClassifier, "a text column has no model of texts")
                block.model._check_fitted()
                codes = _input.encode(block.model.classes_, classes).codes
                demand((codes >= 0).all(), "a text column is of other classes")


def _there(texts: Sequence[str]) -> np.ndarray:
    """The rows that have a text."""
    return np.array([i for i, text in enumerate(texts) if text.strip()], dtype=np.int64)


def _places(texts: Sequence[str]) -> dict[str, int]:
    """The different texts, each with its number: it is read once."""
    return {text: j for j, text in enumerate(dict.fromkeys(filter(str.strip, texts)))}


def _centred(parts: np.ndarray) -> np.ndarray:
    return parts - parts.mean(axis=-1, keepdims=True)
