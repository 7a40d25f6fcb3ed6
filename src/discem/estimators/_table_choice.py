"""Choose the options of a table classifier left at "auto", and the models it averages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..calibration import best_temperature
from ..exceptions import warn
from . import _input
from ._average import Member, dealt, picked
from ._by_label import class_weights
from ._candidates import DEFAULTS, Readings, Sizes, candidates, how_many, of_complete_rows
from ._choice import (
    Choice,
    Chooser,
    Mark,
    Options,
    Result,
    is_behind,
    less_surprised,
    mark,
    of_all_classes,
)
from ._folds import Split
from ._table_preset import FOLDED, KEPT, TRIED, views_of
from ._tables import Encoded, renamed_labels
from ._text_choice import ReadsTexts
from .mixture import MixtureClassifier

_CELLS = 2_000_000  # .. or so many cells
_VISITS, _WORK = 40_000, 30_000_000  # of rows, and of factors by rows, in a trial
_FEWEST, _LONGEST = 8, 10  # epochs of a trial
_MORE = 20  # .. and with all rows, of the models that are kept
_MOSTLY = 0.5  # of the rows must be complete, for a model of their own
_CHEAPER = 3  # times as many steps of a model that hides no cells, which needs no copies of rows
_TEMPERED = 2_000  # rows of the training that temperatures are learnt of, where rows are many
_SURE = 2.0  # standard errors, by which it must be better
CHOSEN = (*DEFAULTS,)  # options that "auto" chooses


class Wanted(NamedTuple):
    """A model to train on all rows."""

    options: Options
    weight: float
    temperature: float | None  # None: learnt of rows of the training
    complete: bool = False  # whether it is to answer for rows without missing cells


class ChoosesTable(ReadsTexts):
    """Choose options on held-out rows."""

    class_weight: Any
    max_iter: Any
    n_jobs: Any
    temperature: Any
    verbose: Any
    _fixed: Any
    _new_model: Any

    def _choose(
        self, readings: Readings, y, weights, seed: int, rng, on_workers: bool
    ) -> list[Wanted]:
        """Settle what is left at "auto" on held-out rows.

        Returns the models to train on all rows; none where models of the choice are kept.
        """
        alone = [Wanted(self.chosen_, 1.0, self.chosen_["temperature"])]
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
            some = _epochs(len(rows), factors) if options["hide"] else self.max_iter
            epochs = min(some, self.max_iter)
            model = self._new_model(options, seed, max_iter=epochs, n_jobs=None, verbose=0)
            table = readings.of(options).take(rows)
            self._run(model, "choice", table, y[rows], part.weights[rows], chooser)
            return model

        def score(options: Options, part: Split, model: MixtureClassifier) -> np.ndarray:
            views = views_of(readings.of(options).take(part.held), seed)
            whole, *hidden = (model.learner_.score(each) for each in views)
            scores = np.stack([whole, whole, *hidden])  # rows as they are count as much
            return of_all_classes(scores, model.classes_, classes)

        def temperature(mark: Mark) -> float | None:
            # many rows and more steps make another model than that of the trial
            is_like = self.temperature != "auto" or labelled <= FOLDED or on_workers
            return self._temperature_of(mark) if is_like or readings.layout.texts else None

        def score_whole(options: Options, part: Split, model: MixtureClassifier) -> np.ndarray:
            rows = readings.of(options).take(part.held).view()
            return of_all_classes(model.learner_.score(rows), model.classes_, classes)

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
            return [Wanted(self.chosen_, 1.0, temperature(chosen.mark))]
        seen = min(np.count_nonzero(part.weights) for part in parts) / np.count_nonzero(weights)
        models = best[0][0].models  # those of other candidates have seen the same rows
        know_all = all(np.array_equal(model.classes_, classes) for model in models)
        if len(parts) > 1 and seen >= KEPT and know_all:
            counts = by_class * np.bincount(codes[codes >= 0], weights[codes >= 0])
            self._keep_models(dealt(best, most), readings, y, weights, counts)
            return []
        found = [Wanted(own.options, share, temperature(own.mark)) for own, share in best]
        if len(parts) > 1 or on_workers or readings.layout.texts:
            return found
        complete = readings.of(DEFAULTS).take(parts[0].held).complete()
        few = [*of_complete_rows(sizes, fixed, best[0][0].options)]
        if complete.mean() < _MOSTLY or not few:
            return found
        part = parts[0].judged_by(complete)
        special = Chooser(
            [part], train, score_whole, less_surprised, lambda *_: None,
            of=len(few), verbose=self.verbose,
        )  # fmt: skip
        own, leader = special.best_of(few), best[0][0]
        usual = mark([part], [score_whole(leader.options, part, leader.models[0])[None]])
        taken = is_behind(usual, own.mark, _SURE)
        records = [each | {"rows": "all"} for each in self._fitted.choice]
        shares = np.array([float(taken and each is own) for each in special.results])
        records += [each | {"rows": "complete"} for each in special.choice(shares)]
        self._fitted.choice = Choice(records)
        if taken:
            found.append(Wanted(own.options, 1.0, temperature(own.mark), complete=True))
        return found

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

    def _fit_members(self, wanted, rows_of, y, weights, seed):
        """Train one model for each of the given options; each has a weight."""
        members: list[Member] = []
        y = answers_of(*y)
        for options, weight, temperature, complete in wanted:
            steps = _CHEAPER * self.max_iter if complete else self.max_iter
            last, model = self._fitted.model, self._new_model(options, seed, max_iter=steps)
            own = not members
            self._run(model, "fit" if own else "average", rows_of(options), y, weights)
            if own and self._fitted.model is last:
                self._fitted.model = model
            if temperature is None:
                temperature = self._fitting_temperature(
                    model, rows_of(options), y, weights, complete
                )
            model.temperature_ = temperature
            if complete:
                self._fitted.complete = model
            else:
                members.append(Member(model, weight))
        if members:
            self._fitted.members = members
            self.chosen_["temperature"] = self.model_.temperature_

    def _fitting_temperature(self, model, rows: Encoded, y, weights, complete: bool) -> float:
        """What makes rows of the training least surprising: where they are many, others are alike.

        They are looked at as in the choice, or only those that are `complete`.
        """
        codes = _input.encode(y, model.classes_).codes
        known = (codes >= 0) & (weights > 0) & (rows.complete() if complete else True)
        rng = np.random.RandomState(model.random_state)
        some = rng.permutation(np.flatnonzero(known))[:_TEMPERED]
        whole, *hidden = (model.learner_.score(each) for each in views_of(rows.take(some), 0))
        scores = np.stack([whole] if complete else [whole, whole, *hidden])
        views, _, K = scores.shape
        codes, weights = np.tile(codes[some], views), np.tile(weights[some], views)
        return best_temperature(scores.reshape(-1, K), codes, weights, views=views).value

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
    """Return the epochs of a candidate that the time allows: the first ones tell most."""
    return max(min(_VISITS // n_rows, _WORK // (n_rows * factors), _LONGEST), _FEWEST)


def answers_of(y: np.ndarray, named: np.ndarray | None) -> Any:
    """Return the answers in the form that mixtures take."""
    return y if named is None else _input.Shares(y, named)
