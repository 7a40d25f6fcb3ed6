"""How a classifier of tables trains the models of its text columns, and weighs what they say."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax, logsumexp

from ..io.frames import Table
from . import _input
from ._batch import Batch
from ._candidates import Readings
from ._choice import Result, of_all_classes
from ._folds import Split, splits
from ._meaning import Meaning
from ._options import is_count
from ._table_answers import TableAnswers
from ._table_preset import FittedTable
from ._texts import TextBlock, Texts
from .text import TextClassifier


class ReadsTexts(TableAnswers):
    """Reads columns of texts beside all others."""

    _reads_texts = True

    class_weight: Any
    encoder: Any
    n_jobs: Any
    device: Any
    temperature: Any
    unlabelled_weight: Any
    _temperature_of: Any

    def _new_text_model(self, seed: int) -> TextClassifier:
        def tell(_: Any, record: dict[str, Any]) -> bool:
            return self._call_back(dict(record), "text")

        return TextClassifier(
            self.encoder,
            class_weight=self.class_weight,
            unlabelled_weight=self.unlabelled_weight,
            callback=None if self.callback is None else tell,
            n_jobs=self.n_jobs,
            device=self.device,
            random_state=seed,
            verbose=self.verbose,
        )

    def set_params(self, **params: Any) -> Self:
        super().set_params(**params)
        if "encoder" in params and self.__sklearn_is_fitted__() and self._fitted.texts is not None:
            self._fitted.texts.give_encoder(self.encoder)
        return self

    def _meanings(self) -> list[Meaning]:
        return [each for model in self.texts_.values() for each in model._meanings()]

    def _fit_texts(self, readings: Readings, y: Any, weights: np.ndarray, seed: int) -> None:
        """Train a model of each text column on all rows."""
        cells = readings.layout.texts_of(readings.table)
        if not cells:
            return
        pairs, (labels, _) = None, y
        if not (self.cv is None or is_count(self.cv) or labels.ndim == 2):  # rows go together
            codes = _input.encode(labels, _input.find_classes(labels)).codes
            parts = splits(codes, weights, np.random.RandomState(seed), cv=self.cv)
            pairs = [(part.train, part.held) for part in parts]
        new = partial(self._new_text_model, seed)
        self._fitted.texts = Texts.fit(cells, y, weights, new, pairs)

    def _learn_texts(self, fitted: FittedTable, table: Table, batch: Batch) -> None:
        """Take one pass over the texts of the next rows of a stream."""
        cells = batch.layout.texts_of(table)
        if not cells:
            return
        if fitted.texts is None:
            fitted.texts = Texts([TextBlock(name) for name in cells])
        new = partial(self._new_text_model, 0)
        for block in fitted.texts.blocks:
            block.learn(cells[block.name], batch, new)

    def _weigh_texts(
        self,
        readings: Readings,
        y: np.ndarray,
        parts: list[Split],
        best: list[tuple[Result, float]],
        classes: np.ndarray,
        by_class: np.ndarray,
    ) -> None:
        """Let held-out rows say how much each text column says beside the average of the best."""
        texts, cells = self._fitted.texts, readings.layout.texts_of(readings.table)
        if texts is None:
            return
        log_p = []
        for j, part in enumerate(parts):
            answers = []
            for result, share in best:
                rows, model = readings.of(result.options).take(part.held), result.models[j]
                scores = self._temperature_of(result.mark) * model.learner_.score(rows.view())
                known = of_all_classes(scores, model.classes_, classes)
                answers.append(np.log(share) + log_softmax(known, axis=1))
            log_p.append(logsumexp(answers, axis=0))
        mix, alone = texts.weigh(cells, y, parts, np.concatenate(log_p), classes, by_class)
        if self.temperature == "auto" and any(mix.weights):
            texts.temperature = mix.temperature
        self.chosen_["texts"] = {
            "weights": {block.name: block.weight for block in texts.blocks},
            "temperature": texts.temperature,
            "bias": texts.bias,
            "log_loss": mix.log_loss,
            "table_alone": alone.log_loss,
            "held_out": sum(len(part.held) for part in parts),
        }
