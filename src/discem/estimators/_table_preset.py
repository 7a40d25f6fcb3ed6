"""What estimators of tables share: an average of models that were chosen, and a density beside."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._checks import check_array, demand
from .._kinds import savable
from ..io.doubts import warn_of_doubts
from ..io.seen import Seen
from ..io.tables import check_table
from ..progress import Lines
from . import _input
from ._answers import DensityAnswers
from ._average import Member
from ._candidates import DEFAULTS, HIDDEN, Readings
from ._choice import Candidates, Choice, Chooser, Options, Result
from ._explain import Importance
from ._folds import Split, check_cv, splits
from ._options import check_common_options, check_whole, check_words, of
from ._pieces import rows_of
from ._preset import Preset
from ._shift import Scaling
from ._strange import Usual
from ._tables import Encoded, Hider, learn_layout, refuse_texts
from ._texts import Texts
from .mixture import MixtureClassifier

TRIED = 6000  # rows that options are chosen on
FOLDED, _FOLDS = 4000, 4  # rows, up to which all of them are judged by, in folds
KEPT = 0.7  # of the rows, at least, that a model of a part has seen, to be one of the members
_DENSE = 8  # components of a class in the density
_ROWS_EACH = 25  # rows that a component of the density should have
_LARGEST = 20_000  # numbers of covariances, from which the density takes too long
_FORGETTING = 6  # steps, in which the density forgets rows
_PASSES, _ENOUGH = 15, 60_000  # over the rows, for the density; or so many rows in all
_WIDE = 20  # columns, of which rows held out have few patterns of cells
_VIEWS = 3  # of each row held out: as it is, and with cells hidden
MOST_STEPS = 40  # with which the defaults were measured


@savable
@dataclass
class FittedTable:
    """The fitted state of an estimator of tables."""

    chosen: dict[str, Any]
    choice: Choice = field(default_factory=Choice)
    members: list[Member] = field(default_factory=list)  # the first weighs most
    complete: MixtureClassifier | None = None  # which answers for rows without missing cells
    density: MixtureClassifier | None = None
    usual: Usual | None = None  # what the density says of rows that it was not trained on
    seen: np.ndarray | None = None  # (columns,) the share of rows that have a cell of each
    importances: list[Importance] | None = None  # of columns, in rows of the training
    scaling: Scaling | None = None  # what makes probabilities fit the rows of the training
    texts: Texts | None = None  # of columns of texts
    roles: dict[str, str] = field(default_factory=dict)
    files: dict[str, Seen] = field(default_factory=dict)  # that a command read as a stream

    @property
    def model(self) -> Any:
        return self.members[0].model if self.members else None

    @model.setter
    def model(self, model: Any) -> None:
        self.members = [Member(model, 1.0)]

    @property
    def everyone(self) -> list[Member]:
        """The members, and the model of complete rows, if there is one."""
        return [*self.members, *([] if self.complete is None else [Member(self.complete, 1.0)])]

    @property
    def is_trained(self) -> bool:
        return self.model is not None and self.model.__sklearn_is_fitted__()


class TablePreset(DensityAnswers, Preset):
    """A table in, answers out: nothing to tune."""

    _roles: ClassVar = ("target", "id")
    _most_members: ClassVar[int]  # models that are averaged by default
    _reads_texts: ClassVar = False  # or are there columns of texts, each with a model of its own
    _handed: ClassVar[tuple[str, ...]] = (
        "forget",
        "n_jobs",
        "device",
        "verbose",
    )  # options, to mixtures

    families: Any
    n_components: Any
    average: Any
    density: Any
    cv: Any
    max_iter: Any
    missing: Any
    random_state: Any
    verbose: Any
    whole_numbers: Any

    # --- what is fitted, and goes to a file -------------------------------------------------------

    def _check_density(self, classes: np.ndarray) -> None:
        """Validate the density, which may come from any file."""
        fitted = self._fitted
        if fitted.density is not None:
            demand(type(fitted.density) is MixtureClassifier, "its density is no model of its rows")
            demand(hasattr(fitted.density, "layout_"), "it does not know its columns")
            fitted.density._check_fitted()
            same = np.array_equal(fitted.density.classes_, classes)
            demand(same, "its density is of other classes")
        if fitted.seen is not None:
            shape = (len(fitted.model.layout_.columns),)
            check_array("shares of cells", fitted.seen, shape, least=0.0, most=1.0)
        if fitted.usual is not None:
            demand(fitted.density is not None, "it knows what is usual, but has no density")
            fitted.usual.check(len(fitted.density.layout_.columns))

    # --- training ---------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Choose options, train the members, and train the density."""
        self._check_options()
        given = rows_of(X, y, sample_weight)
        check_cv(self.cv, sampled=given.on_workers)
        X, y, sample_weight = given.sample  # which is what is seen of rows on workers
        table, families = check_table(X), self.families
        layout = learn_layout(table, given, families)
        if not self._reads_texts:
            refuse_texts(layout, type(self).__name__)
        elif given.on_workers:
            refuse_texts(layout, "an engine", "fit without engine")
        warn_of_doubts(table, layout)
        readings = Readings(table, families, layout)
        readings.of(DEFAULTS).check_varied()
        given = self._to_train_on(given)
        y = self._read_answers(y, table.n_rows)
        weights = _input.check_weights(sample_weight, np.empty((table.n_rows, 0)))
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        with self._beginning(self._new_fitted(y)):
            wanted = self._choose(readings, y, weights, seed, rng, given.on_workers)

            def rows_to_train(options: Options) -> Any:
                own = readings.of(options)
                return given.map(partial(Encoded.read, own.layout)) if given.on_workers else own

            self._fit_members(wanted, rows_to_train, y, weights, seed)
            if self.density is not False:
                rows = rows_to_train(DEFAULTS)
                n_rows = given.n_rows if given.on_workers else table.n_rows
                self._fit_density(rows, n_rows, readings.of(DEFAULTS), y, weights, seed)
            self._look_back(readings, y, weights, seed)
        self.chosen_["epochs"] = self._fitted.model.n_iter_

    def _defaults(self, stream: bool = False) -> Options:
        """Return the values that replace "auto" if nothing can be held out."""
        raise NotImplementedError

    def _read_answers(self, y: Any, n_rows: int) -> Any:
        """What is known of the answers of all rows."""
        raise NotImplementedError

    def _to_train_on(self, given: Any) -> Any:
        """The rows to train on: those on workers are learnt there, or the sample is learnt here."""
        return given

    def _choose(self, readings: Readings, y, weights, seed: int, rng, on_workers: bool) -> list:
        """Settle what is left at "auto"; say which models to train on all rows."""
        raise NotImplementedError

    def _held_out(
        self, codes: np.ndarray, weights, rng, on_workers: bool, most: int = TRIED
    ) -> tuple[list[Split], int]:
        """What is held out to choose by, and how many models may be averaged."""
        average = 1 if on_workers and self.average == "auto" else self.average
        average = self._most_members if average == "auto" else average
        few = np.count_nonzero((codes >= 0) & (weights > 0)) <= FOLDED
        folds = _FOLDS if average > 1 and few else None
        return splits(codes, weights, rng, cv=self.cv, folds=folds, most=most), average

    def _best_of(
        self, chooser: Chooser, ways: Candidates, weigh: Callable, most: int, n_rows: int
    ) -> list[tuple[Result, float]]:
        """Try candidates; the best of them, and what they `weigh` where `most` are averaged."""
        chooser.best_of(ways)
        self.chosen_["held_out"] = chooser.held_out
        self._fitted.choice = chooser.choice()
        if most == 0:
            return []
        complete = [result for result in chooser.results if result.complete]
        enough = self.average == "auto" and n_rows > FOLDED  # rows: an average gains little
        best = weigh(complete, 1 if enough else most)
        self._fitted.choice = chooser.choice(weights_of(chooser, best))
        return best

    def _fit_members(self, wanted: list, rows_of: Callable, y, weights, seed: int) -> None:
        """Train the chosen models on all rows."""
        raise NotImplementedError

    def _look_back(self, readings: Readings, y, weights, seed: int) -> None:
        """Remember what must be known of the rows of the training."""
        self._fitted.seen = readings.of(DEFAULTS).there().mean(axis=0)

    def _new_fitted(self, y: Any) -> FittedTable:
        """What is there before anything is trained."""
        return FittedTable(self._defaults())

    def _keep(self, model: Any) -> None:
        """Keep a model in training, in case of an interruption."""
        self._fitted.model = model

    def _check_options(self) -> None:
        check_common_options(self)
        check_cv(self.cv)
        for name in ("n_components", "average"):
            check_whole(name, getattr(self, name), "auto")
        check_words(
            self,
            density=("auto", True, False),
            missing=("auto", "ignore", "informative"),
            whole_numbers=("auto", "levels", "numbers"),
        )

    def _run(
        self,
        model: MixtureClassifier,
        stage: str,
        rows: Any,
        y: Any,
        weights: np.ndarray,
        chooser: Chooser | None = None,
    ) -> None:
        """Train a model; it is there, if training is interrupted, from its first epoch on."""

        def after_epoch(_, record) -> bool:
            if stage == "fit":
                self._keep(model)
            return self._call_back(record, stage, chooser)

        model.callback = after_epoch
        with warnings.catch_warnings():
            if stage != "fit" or self.max_iter == MOST_STEPS:  # as many as the default gives
                warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                model.fit(rows, y, weights)
            finally:
                model.callback = None

    # --- the density ------------------------------------------------------------------------------

    def _new_mixture(self, seed: int, **options: Any) -> MixtureClassifier:
        settings: dict[str, Any] = {name: getattr(self, name) for name in self._handed}
        settings["random_state"] = seed
        settings["families"] = self.families if isinstance(self.families, dict) else {}
        if isinstance(self.families, str) and self.families != "auto":
            settings["families"] = self.families
        return MixtureClassifier(**(settings | options))

    def _new_density(
        self, seed: int, size: Any = 1, tries: int = 1, covariance: str = "diag"
    ) -> MixtureClassifier:
        return self._new_mixture(
            seed, loss="nll", n_components=size, prior="data",
            covariance=covariance, max_iter=tries, tol=None,
            verbose=max(self.verbose - 1, 0),
        )  # fmt: skip

    def _fit_density(
        self, rows: Any, n_rows: int, sample: Encoded, y: Any, weights, seed: int
    ) -> None:
        """Let a generative model stand beside the others: more components than to answer."""
        Lines(self.verbose).say("density: a generative model of the same rows")
        classes, counts = self._class_counts(weights)
        most = sizes_of_density(counts)
        full = most.sum() * len(sample.layout.numbers) ** 2 <= _LARGEST
        sizes = dict(zip(classes, most.tolist(), strict=True))
        passes = min(_PASSES, -(-_ENOUGH // n_rows))

        labels, present = self._labels_of(y, slice(None))
        own = {label: sizes[label] for label in present} if present is not None else sizes
        density = self._new_density(seed, own, passes, "full" if full else "diag")
        self._run(density, "density", rows, labels, weights)
        self._fitted.density = density

        def without(kept: np.ndarray) -> MixtureClassifier:
            labels, _ = self._labels_of(y, kept)
            return density._gone_on(sample.take(kept), labels, weights[kept], _FORGETTING)

        self._fitted.usual = Usual.learn(without, sample, weights, seed)

    def _class_counts(self, weights: np.ndarray) -> tuple[list, np.ndarray]:
        """The classes of the density, and how many rows each has."""
        raise NotImplementedError

    def _labels_of(self, y: Any, some: Any) -> tuple[Any, Any]:
        """What is known of the classes of some rows, and which classes are there; None: all."""
        raise NotImplementedError

    @property
    def density_(self) -> MixtureClassifier:
        if self._fitted.density is None:
            raise AttributeError("there is no density: fit with density=True")
        return self._fitted.density

    families_ = of("model_.families_")
    n_features_in_ = of("model_.n_features_in_")
    feature_names_in_ = of("model_.feature_names_in_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def sizes_of_density(counts: Any) -> Any:
    """Return the number of components of the density of a class, by its rows."""
    return np.clip(np.asarray(counts) // _ROWS_EACH, 1, _DENSE).astype(int)


def weights_of(chooser: Chooser, best: list[tuple[Result, float]]) -> np.ndarray:
    """The weights of all results of a choice, of which only the best have any."""
    by_result = {id(result): weight for result, weight in best}
    return np.array([by_result.get(id(result), 0.0) for result in chooser.results])


def views_of(rows: Encoded, seed: int) -> Iterator[Any]:
    """Rows held out as they are, and with cells hidden, which are the same for all candidates."""
    held, draws = rows.view(), np.random.RandomState(seed)
    hide = Hider(rows.layout, HIDDEN, shares=rows.shape[1] > _WIDE)
    yield held
    for _ in range(_VIEWS - 1):
        yield hide(held, draws, complete=0.0)
