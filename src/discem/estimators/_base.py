"""The base of the classifiers: check the data, start the model, train it.

`_batch` reads rows, `_streams` learns further rows, `_kept` validates the fitted state, and
`_joint` has the methods of a fitted model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from .. import models
from ..calibration import best_temperature
from ..engines import Data, Rule, Sequential, Shards, with_jobs
from ..exceptions import InputError, OptionError
from ..families import Family
from ..io.labels import plain_labels
from ..losses import NLL, Blend, Hinge, resolve_loss
from ..models import ClassPrior
from ..projections import Check, Interior, check_projection
from ..schedules import Schedule, by_row, scale
from ..targets import SHARED, Targets
from ..training import Plan, Record, best_start, train
from ._batch import Batch
from ._folds import hold_out
from ._kept import Kept
from ._matrix import read_X
from ._options import (
    NUMBER,
    check_common_options,
    check_share,
    check_unlabelled_weight,
    check_whole,
    check_words,
    with_options,
)
from ._pieces import rows_of, spreads
from ._tables import layout_of
from ._threads import lent, writes
from ._types import (
    Auto,
    BaseEstimator,
    Callback,
    ClassWeight,
    DeviceOption,
    EngineOption,
    InitOption,
    Labels,
    LossOption,
    ProjectionOption,
    RandomState,
    StepOption,
    Table,
    Weights,
)

PROJECTIONS: dict[str, Any] = {"interior": Interior(), "check": Check()}
_HELD_OUT = 0.1  # of the labelled rows, for early stopping
AUTO_DAMPING = 0.05  # of automatic steps, which are large at first and shrink
_STEPS, _LARGEST_BATCH = 256, 256  # of an epoch on workers, and the rows of one
AUTO_CAUTION = 2.0  # of automatic steps, which ignore how rare a class is


@with_options
class GenerativeClassifier(Kept, BaseEstimator):
    """A joint p(y, x) trained by the one update of the method."""

    loss: LossOption = "ncll"
    prior: Any = "data"
    init: InitOption = "generative"
    step: StepOption = "auto"
    projection: ProjectionOption = "interior"
    average: bool | Auto = "auto"
    batch_size: int | Auto = "auto"
    max_iter: int = 300
    tol: float | None = 1e-3
    early_stopping: bool | float = False
    class_weight: ClassWeight = None
    callback: Callback = None
    n_jobs: int | None = None
    device: DeviceOption = None
    engine: EngineOption = None
    random_state: RandomState = None
    verbose: int = 0

    # --- what an estimator says of itself ---------------------------------------------------------

    _mixed = False  # whether factors are those of components within classes
    # attributes that only some inputs set
    _of_input: ClassVar[tuple[str, ...]] = ("feature_names_in_",)

    def _read(self, X, family: Family, fresh: bool, grows: bool = False) -> tuple[Any, dict]:
        """Return X as a matrix that the family accepts, and the fitted attributes it determines.

        `fresh` says that there is no model yet, `grows` that X may have more columns than the
        model.
        """
        if layout_of(X) is not None:  # of a model of arrays, whose columns are asked for by name
            return X.cells.numbers, {}
        return read_X(self, X, family.accepts, fresh or grows)

    def _view(self, X, family: Family) -> Any:
        return family.view(X)

    def _resolve_prior(self, family: Family, n_features: Any) -> tuple[Any, float]:
        """Return the prior of the features, and the pseudo-count of each class."""
        return family.resolve_prior(self.prior, self._is_generative(), n_features, self._mixed)

    def _auto_unlabelled(self, family: Family, ratio: float) -> float:
        """Return the weight of an unlabelled row; there are `ratio` of them per labelled row."""
        return family.auto_unlabelled(self._is_generative(), ratio)

    def _begin(
        self, batch: Batch, average: bool, stream: bool, rng
    ) -> tuple[list[Any], np.ndarray]:
        """Return initial states, of which the best is used, and the weight of each class."""
        d, K = batch.found["n_features_in_"], len(batch.classes)
        tally = batch.collect(d, K)
        prior, alpha = self._resolve_prior(batch.family, d)
        prior = batch.family.complete_prior(
            prior, batch.rows, list(batch.targets.parts(batch.weights))
        )
        classes = self._class_prior(batch.family, prior, alpha)
        inits = self._inits(batch.family)
        states = [models.start(tally, prior, classes, init, average, stream) for init in inits]
        return states, tally.classes

    def _inits(self, family: Family) -> tuple[str, ...]:
        """Return the names of the possible starts of training."""
        loss = self._known_loss()
        as_given = _mostly_generative(loss) or isinstance(self._resolve_projection(loss), Check)
        return (self.init,) if as_given or self.init != "generative" else family.starts

    def _auto_average(self, family: Family) -> bool:
        return family.auto_average(self._is_generative())

    def _auto_step(self, family: Family, n: float, state: Any) -> Schedule:
        """Return steps that need no tuning, for n rows of the usual weight."""
        loss = self._known_loss()
        generative = _mostly_generative(loss)
        step = self._family_step(family, n, state, generative)
        if isinstance(loss, Blend):  # whose weights are as much larger
            return scale(step, 1.0 / (loss.kappa if generative else 1.0 + loss.kappa))
        return step

    def _family_step(self, family: Family, n: float, state: Any, generative: bool) -> Schedule:
        return family.auto_step(generative, n, state.features, self._mixed)

    def _finish(self, batch: Batch, rng) -> None:
        """Compute what cannot be learnt row by row."""

    # --- training ---------------------------------------------------------------------------------

    @writes
    @spreads
    def fit(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            With `engine`, also a collection of dask; then `y` and `sample_weight` may be, too.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, with None, NaN or NaT for an unlabelled row, which is learnt by its NLL. A
            matrix gives label sets (booleans) or soft labels (shares that sum to 1); the classes
            are then 0, 1, ...
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two rows.

        Returns
        -------
        self
            After Ctrl-C the fitted attributes are those of the training done so far, and
            KeyboardInterrupt is raised. If data or options are invalid, the model stays unchanged.
        """
        self._check_options()
        batch = self._read_rows(rows_of(X, y, sample_weight))
        loss = self._known_loss()
        if len(batch.classes) < 2 and not isinstance(loss, NLL):
            raise InputError(
                f"y has one class only, {plain_labels(batch.classes)[0]!r}, from which "
                f"loss={self.loss!r} learns nothing; give more than 1 class, use loss='nll', "
                "or stream with partial_fit"
            )
        rng = check_random_state(self.random_state)
        rows, held = self._split(batch, rng)
        kept = batch.without(held)
        unit, whole = kept.unit(), self._takes_whole(kept)
        self._start(kept, unit, rng, whole=whole)
        data = Data(batch.rows, batch.targets, batch.weights / unit)
        with self._run_by(kept, data, rows, unit) as shards:
            plan = replace(self._plan(batch.targets), whole=whole)
            train(self.learner_, data, rows, held, plan, rng, shards)
        if len(held) and isinstance(loss, Hinge) and batch.targets.plain:
            scores, codes = self.learner_.score(batch.rows, held), batch.targets.codes[held]
            self.temperature_ = best_temperature(scores, codes, data.weights[held]).value
        self._finish(batch, rng)
        return self

    def _read_rows(self, rows: Any) -> Batch:
        """Read the rows of a fit; for rows on workers, the batch is a sample of them."""
        return rows.batch(self)

    @contextmanager
    def _run_by(self, batch: Batch, data: Data, rows, unit: float) -> Iterator[Shards | None]:
        """Train on workers within a `with`, if the rows are on workers."""
        if batch.whole is None:
            yield None
            return
        learner, engine = self.learner_, self.learner_.engine
        shards = batch.whole.shards(learner.state, data, rows, unit)
        try:
            learner.engine = batch.whole.engine
            yield shards
        finally:
            learner.engine = engine

    # --- before training --------------------------------------------------------------------------

    def _check_options(self) -> None:
        check_common_options(self)
        check_whole("batch_size", self.batch_size, "auto")
        check_whole("max_iter", self.max_iter)
        if isinstance(self.projection, Interior | Check):
            check_projection(self.projection)
        elif self.projection not in PROJECTIONS:
            raise OptionError(f"projection={self.projection!r} is unknown: use {list(PROJECTIONS)}")
        check_words(self, init=("generative", "prior"), average=("auto", True, False))
        if self.step != "auto" and not callable(self.step):
            raise OptionError(f"step={self.step!r} is neither 'auto' nor a function of t")
        if not isinstance(self.early_stopping, bool | np.bool_):
            check_share("early_stopping", self.early_stopping)
        check_unlabelled_weight(self.unlabelled_weight)
        if self.tol is not None and not (isinstance(self.tol, NUMBER) and self.tol >= 0):
            raise OptionError(f"tol={self.tol!r} must be None or a number >= 0")

    def _known_loss(self) -> Any:
        return resolve_loss(self.loss)

    def _is_generative(self) -> bool:
        return isinstance(self._known_loss(), NLL)

    def _split(self, batch: Batch, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return rows to train on and held-out rows: a share of each class, of labelled rows."""
        held = np.zeros(0, dtype=np.int64)
        if self.early_stopping:
            targets, weights = batch.targets, batch.weights
            codes = targets.codes if targets.plain else np.zeros(len(weights), int)
            given = self.early_stopping
            share = _HELD_OUT if isinstance(given, bool | np.bool_) else float(given)
            held = hold_out(codes, weights, share, rng)
            if not len(held):
                raise InputError("early_stopping: too few rows of each class to hold any out")
            held = np.sort(held)
        rest = batch.weights > 0
        rest[held] = False
        return np.flatnonzero(rest), held

    # --- the start --------------------------------------------------------------------------------

    def _start(
        self, batch: Batch, unit: float, rng, stream: bool = False, whole: bool = False
    ) -> None:
        """Start training. An earlier model is replaced only after all steps that can fail."""
        loss, family = self._known_loss(), batch.family
        total = batch.total
        average = self._auto_average(family) if self.average == "auto" else self.average
        states, class_count = self._begin(batch, bool(average) and not whole, stream, rng)
        step, of_rows = self.step, self._steps_by_row()
        if step == "auto":
            step = self._auto_step(family, total / unit, states[0])
        elif isinstance(step, by_row):
            step = step.schedule
        projection = self._resolve_projection(loss)
        size, engine = self.batch_size, with_jobs(Sequential(), self.n_jobs, self.device)
        if size == "auto":  # with a given schedule, the algorithm of the paper is meant
            of_rows = of_rows and not isinstance(projection, Check)
            size = self._auto_batch(batch) if of_rows else 1
            if of_rows and not family.whole:  # others begin with few, see `_grows`
                size = engine.batch(size, batch.n_given)
        rule = Rule(loss, projection, step, self._spread(total), int(size), by_row=of_rows)
        data = Data(batch.rows, batch.targets, batch.weights / unit)
        learner = best_start(states, rule, data, engine)
        for name in self._of_input:
            if hasattr(self, name):
                delattr(self, name)
        for name, value in batch.found.items():
            setattr(self, name, value)
        self.classes_ = batch.classes
        self.class_count_ = class_count
        self.learner_ = learner
        self.temperature_ = 1.0
        self._prior_shift = np.zeros(len(batch.classes))
        self.__dict__.pop("_shift", None)
        self._weight_unit = unit
        self._seen = total
        self._runs = None

    def _steps_by_row(self) -> bool:
        """Return whether steps are those of single rows; a batch takes their sum."""
        return self.step == "auto" or isinstance(self.step, by_row)

    def _auto_batch(self, batch: Batch) -> int:
        """Return the rows per step; larger for many rows on workers, where each step has a cost."""
        size = batch.family.auto_batch(batch.rows, len(batch.classes))
        if batch.whole is None or not batch.family.whole:
            return size
        return max(size, min(batch.n_given // _STEPS, _LARGEST_BATCH))

    def _grows(self) -> bool:
        """Return whether the batches of a stream grow after many rows."""
        return self.batch_size == "auto" and self._known_family().whole

    def _takes_whole(self, batch: Batch) -> bool:
        """Return whether training takes steps of all rows with a line search, for small data."""
        ours = self.step == "auto" and self.batch_size == "auto" and self.average == "auto"
        if not ours or isinstance(self._resolve_projection(self._known_loss()), Check):
            return False
        return batch.whole is None and batch.family.whole

    def _class_prior(self, family: Family, prior: Any, alpha: float) -> ClassPrior:
        return ClassPrior(alpha, family.keeps_mass(prior), family.lifts_to_prior)

    def _spread(self, weight: float) -> float:
        """Return the number of rows that share the prior: the total weight, at least one."""
        return max(weight, 1.0)

    def _resolve_projection(self, loss, caution: float = AUTO_CAUTION) -> Any:
        if not isinstance(self.projection, str):
            return self.projection
        projection = PROJECTIONS[self.projection]
        if isinstance(projection, Check):
            return projection
        if _mostly_generative(loss):  # its steps are averages, which cannot overshoot
            return Interior(projection.share, damping=0.0)
        if self.step != "auto":
            return projection
        return Interior(projection.share, AUTO_DAMPING, caution)

    def _plan(self, targets: Targets) -> Plan:
        calm = self.learner_.state.averages and not self.early_stopping
        return Plan(
            self.max_iter,
            self.tol,
            2 if calm else 10,
            self.verbose,
            self._after_epoch,
            self._solved(targets),
            self._steps_by_row() and not isinstance(self.learner_.rule.projection, Check),
        )

    def _after_epoch(self, record: Record) -> bool:
        if self.callback is None:
            return False
        with lent(self):
            return self.callback(self, record) is True

    def _solved(self, targets: Targets) -> bool:
        """Return whether the start is already the optimum; one pass then measures it."""
        if not self._is_generative() or self.init != "generative" or self.step != "auto":
            return False
        certain = (targets.codes >= 0) | (targets.codes == SHARED)
        if not targets.plain:
            certain |= (targets.share > 0).sum(axis=1) == 1  # a set of one
        return bool(certain.all())


def _mostly_generative(loss: Any) -> bool:
    """Return whether the joint likelihood is the main part of the objective."""
    return isinstance(loss, NLL) or (isinstance(loss, Blend) and loss.kappa >= 1.0)
