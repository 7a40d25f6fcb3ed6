"""How a classifier of tables chooses what is left at "auto", and which models it averages."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import warn
from . import _input
from ._average import Member, dealt, picked
from ._by_label import class_weights
from ._candidates import DEFAULTS, Readings, Sizes, candidates, how_many
from ._choice import Chooser, Mark, Options, Result, is_behind, less_surprised, of_all_classes
from ._folds import Split
from ._table_preset import KEPT, TRIED, views_of
from ._tables import renamed_labels
from ._text_choice import ReadsTexts
from .mixture import MixtureClassifier

_CELLS = 2_000_000  # .. or so many cells
_VISITS, _WORK = 40_000, 30_000_000  # of rows, and of factors by rows, in a trial
_FEWEST, _LONGEST = 8, 10  # epochs of a trial
_MORE = 20  # .. and with all rows, of the models that are kept
CHOSEN = (*DEFAULTS,)  # options that "auto" chooses


class ChoosesTable(ReadsTexts):
    """Settles what is left open on rows held out."""

    class_weight: Any
    max_iter: Any
    n_jobs: Any
    temperature: Any
    verbose: Any
    _fixed: Any
    _new_model: Any

    def _choose(
        self, readings: Readings, y, weights, seed: int, rng, on_workers: bool
    ) -> list[tuple[Options, float, float]]:
        """Settle what is left at "auto" on held-out rows.

        Returns options of the models to train on all rows, their weights and temperatures; none
        where models of the choice are kept.
        """
        alone = [(self.chosen_, 1.0, self.chosen_["temperature"])]
        self._fit_texts(readings, y, weights, seed)
        y, _ = y
        self._warn_of_labels_among_columns(readings, y)
        is_open = any(getattr(self, name) == "auto" for name in (*CHOSEN, "temperature"))
        if y.ndim == 2 or not (is_open or readings.layout.texts):
            return alone  # label sets and shares have no log-loss to judge by
        classes = _input.find_classes(y)
        codes, columns = _input.encode(y, classes).codes, len(readings.layout.columns)
        tried = min(TRIED, max(_CELLS // max(columns, 1), 1000))
        labelled = int(np.count_nonzero((codes >= 0) & (weights > 0)))
        parts, average = self._held_out(codes, weights, rng, on_workers, tried)
        if not parts:
            return alone

        def train(options: Options, part: Split, _) -> MixtureClassifier:
            rows = part.train
            factors = columns * len(np.unique(codes[rows])) * options["n_components"]
            epochs = min(_epochs(len(rows), factors), self.max_iter)
            model = self._new_model(options, seed, max_iter=epochs, n_jobs=None, verbose=0)
            table = readings.of(options).take(rows)
            self._run(model, "choice", table, y[rows], part.weights[rows], chooser)
            return model

        def score(options: Options, part: Split, model: MixtureClassifier) -> np.ndarray:
            views = views_of(readings.of(options).take(part.held), seed)
            whole, *hidden = (model.learner_.score(each) for each in views)
            scores = np.stack([whole, whole, *hidden])  # rows as they are count as much
            return of_all_classes(scores, model.classes_, classes)

        def keep(options: Options, model: MixtureClassifier, mark: Mark | None) -> None:
            self._fitted.model, self._fitted.choice = model, chooser.choice()
            self._fitted.chosen |= options
            if mark is not None:
                self.chosen_["temperature"] = self._temperature_of(mark)

        sizes = Sizes.of(readings, codes[(codes >= 0) & (weights > 0)], tried)
        fixed = {name: value for name, value in self._fixed().items() if name in DEFAULTS}
        if readings.of(DEFAULTS).is_empty:  # there are texts only: candidates are all the same
            fixed = DEFAULTS | {"n_components": 1} | fixed
        chooser = Chooser(
            parts, train, score, less_surprised, keep, hopeless=is_behind,
            of=how_many(sizes, readings, fixed), verbose=self.verbose, all_models=average > 1,
        )  # fmt: skip
        ways = candidates(sizes, readings, fixed, chooser.results)
        most = min(average, len(parts)) if len(parts) > 1 else average
        best = self._best_of(chooser, ways, picked, most if average > 1 else 0, labelled)
        chosen: Any = chooser.best
        by_class = np.ones(len(classes))
        if self.class_weight is not None:
            by_class = class_weights(self.class_weight, classes, np.bincount(codes[codes >= 0]))
        self._weigh_texts(readings, y, parts, best or [(chosen, 1.0)], classes, by_class)
        if not best:
            return [(self.chosen_, 1.0, self.chosen_["temperature"])]
        seen = min(np.count_nonzero(part.weights) for part in parts) / np.count_nonzero(weights)
        models = best[0][0].models  # those of other candidates have seen the same rows
        know_all = all(np.array_equal(model.classes_, classes) for model in models)
        if len(parts) > 1 and seen >= KEPT and know_all:
            counts = by_class * np.bincount(codes[codes >= 0], weights[codes >= 0])
            self._keep_models(dealt(best, most), readings, y, weights, counts)
            return []
        return [(own.options, share, self._temperature_of(own.mark)) for own, share in best]

    def _temperature_of(self, mark: Mark) -> float:
        return mark.safe_temperature if self.temperature == "auto" else float(self.temperature)

    def _keep_models(
        self,
        models: list[tuple[Result, MixtureClassifier]],
        readings: Readings,
        y: np.ndarray,
        weights: np.ndarray,
        class_count: np.ndarray,
    ) -> None:
        """Let models of the choice go on with all rows and be the members.

        Each began with other rows, and so they stay different.
        """
        members, steps = [], min(_MORE, self.max_iter)
        for result, begun in models:
            model = begun._gone_on(readings.of(result.options), y, weights, steps)
            model.set_params(n_jobs=self.n_jobs, max_iter=self.max_iter, verbose=self.verbose)
            if self.temperature == "auto":  # that by which it was weighed
                model.temperature_ = result.mark.temperature
            model.class_count_ = class_count
            members.append(Member(model, 1.0 / len(models)))
        self._fitted.members = members
        self._fitted.chosen |= models[0][0].options
        self.chosen_["temperature"] = members[0].model.temperature_

    def _warn_of_labels_among_columns(self, readings: Readings, y) -> None:
        """A column that is the label in other words is seldom known when the model is asked."""
        if y.ndim == 1:
            codes = _input.encode(y, _input.find_classes(y)).codes
            for name in renamed_labels(readings.of(DEFAULTS), codes):
                warn(
                    f"column {name!r} tells the class of every row: each class has its own level. "
                    "If it is the label, or is not known before the label, leave it out: "
                    f"families={{{name!r}: 'ignored'}}",
                    UserWarning,
                )


def _epochs(n_rows: int, factors: int) -> int:
    """Of a candidate, as many as there is time for: the first ones tell most."""
    return max(min(_VISITS // n_rows, _WORK // (n_rows * factors), _LONGEST), _FEWEST)
