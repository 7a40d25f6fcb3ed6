"""Regression on tables: a data frame in, distributions out."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._checks import demand
from .._kinds import savable
from ..exceptions import InputError, OptionError, warn
from ..io.tables import Layout, check_table
from ..losses import Blend, Hinge, resolve_loss
from ..training import Plan
from . import _input
from ._average import Member, best_of, check_members
from ._candidates import HIDDEN, Readings
from ._choice import Chooser, Options, less_surprised
from ._folds import Split
from ._number_answers import FittedNumbers, NumberAnswers
from ._number_choice import (
    DEFAULTS,
    MOST_TRIED,
    ROWS_EACH,
    NumberMark,
    candidates,
    judged,
    members_of,
    strata_of,
)
from ._options import with_options
from ._pieces import spreads
from ._planes import PlanesModel
from ._responses import TARGETS, Given, Response, read_numbers
from ._strange import Usual
from ._table_preset import KEPT, sizes_of_density, views_of
from ._tables import Encoded, refuse_texts
from ._threads import writes
from ._types import (
    Auto,
    Callback,
    DeviceOption,
    EngineOption,
    Families,
    Labels,
    RandomState,
    Table,
    Weights,
)

_STEPS = 30  # the default number of steps, with which the other defaults were measured


@savable
@with_options
class TableRegressor(NumberAnswers):
    """Predict numbers from the rows of a table, with a whole distribution for each.

    Columns may be numbers, counts, flags, categories and dates. Cells may be missing anywhere, in
    training and in prediction: they are summed out, not imputed. The model p(y, x) is a mixture;
    within a component, y is linear in the other columns. It is trained to predict y, on rows with
    some cells hidden at random, so that it works for any subset of the columns.

    `fit` chooses every option that is left at "auto". It holds out each part of the rows in turn,
    tries some candidates, and averages the models that were trained without each part.

    A second model of the same rows, trained by NLL, is the density of X. It is used by
    `score_samples`, `sample`, `impute`, `distribution` and `outliers`.

    Parameters
    ----------
    families : "auto", name, or dict from column to name, default="auto"
        The distributions of the columns, see `TableClassifier`.
    target : {"auto", "real", "positive", "count"}, or list of these, default="auto"
        The type of y. "real": any numbers. "positive": numbers above 0, modelled by their
        logarithms. "count": whole numbers from 0, modelled by ln(1 + y) and a rounded distribution.
        "auto" takes logarithms of skewed numbers; see `target_`. A list has one type for each
        column of y.
    n_components : "auto" or int, default="auto"
        Number of mixture components. "auto" compares 1, 4, 16 and 40.
    loss : {"ncll", "nll", "blend"} or loss object, default="ncll"
        What training minimises: -ln p(y | x), -ln p(y, x), or the first plus a share of the second.
    hide : float, default=0.8
        The largest share of the cells of a row that training hides. Raise it if many cells will be
        missing in prediction; 0 hides none.
    missing : {"auto", "ignore", "informative"}, default="auto"
        Whether a missing cell is itself a sign of y. "auto" tries both.
    whole_numbers : {"auto", "levels", "numbers"}, default="auto"
        Whether columns of whole numbers with few values are categories or numbers. "auto" compares,
        and takes "levels" in streams.
    average : "auto" or int, default="auto"
        The largest number of models to average. 1 is a single model, which is the smallest and the
        fastest. "auto" is 8: the two best candidates, each trained without one of four parts.
    density : "auto" or bool, default="auto"
        Whether to train the second model, the density of X. "auto" does.
    max_iter : int, default=30
        The largest number of steps of each model. Each step uses all rows.
    tol : float or None, default=1e-3
        Stop when no more than this is left to gain, in nats per row. None takes all steps.
    cv : None, int, splitter, iterable or array, default=None
        Which rows are held out to choose options by, see `TableClassifier`.
    n_jobs : int or None, default=None
        Threads that train. None is one thread, -1 is one for each core. Few rows are trained on one
        thread.
    device : None, "cpu", "auto", str, torch.device or Device, default=None
        Where arrays are, see `MixtureClassifier`. "cuda" trains and predicts on the GPU.
    engine : None, "dask" or Dask, default=None
        With Dask, its workers read the rows. Training runs in this process, on at most 50 000 rows.
    callback : callable or None, default=None
        Called as ``callback(model, record)`` after each step. Training stops if it returns True.
        ``record["stage"]`` is "choice" while options are tried, then "fit", then "density".
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    chosen_ : dict
        The options that were chosen, and the number of held-out rows.
    choice_ : list of dicts
        The candidates that were tried, and their scores on held-out rows: `log_loss` (the mean of
        -ln p(y | x)) and `r2`, both over complete rows and rows with hidden cells, and the number
        of rows.
    target_ : str, or list of these
        The type of y that was used.
    families_ : dict from column to str
        The distribution chosen for each column, and why.
    members_ : list of dicts
        The models that are averaged: weight, loss and components of each.
    density_ : MixtureClassifier
        The model of the density of X.
    roles_ : dict from "target" and "id" to str
        The columns with the answers and the names of rows, if given on the command line.
    files_ : dict from str to Seen
        The files of a stream that the command line has learnt, by a hash of their names.
    n_features_in_, feature_names_in_, history_, stream_, n_iter_ : as in MixtureClassifier

    Examples
    --------
    >>> from discem import TableRegressor
    >>> rows = [{"size": float(i % 10), "kind": "ab"[i % 2]} for i in range(80)]
    >>> y = [3.0 * row["size"] + 5.0 * (row["kind"] == "b") for row in rows]
    >>> model = TableRegressor(random_state=0).fit(rows, y)
    >>> model.predict([{"size": 4.0, "kind": "a"}]).round().tolist()
    [12.0]
    >>> mean, std = model.predict([{"size": 4.0}, {"kind": "b"}], return_std=True)
    >>> bool(std[0] < std[1])  # it knows less without the size
    True
    """

    families: Families = "auto"
    target: Any = "auto"
    n_components: int | Auto = "auto"
    loss: Any = "ncll"
    hide: float | Auto = HIDDEN
    missing: Literal["auto", "ignore", "informative"] = "auto"
    whole_numbers: Literal["auto", "levels", "numbers"] = "auto"
    average: int | Auto = "auto"
    density: bool | Auto = "auto"
    max_iter: int = _STEPS
    tol: float | None = 1e-3
    cv: Any = None
    n_jobs: int | None = None
    device: DeviceOption = None
    engine: EngineOption = None
    callback: Callback = None
    random_state: RandomState = None
    verbose: int = 0

    # --- what is fitted, and goes to a file -------------------------------------------------------

    _handed: ClassVar = ("n_jobs", "device", "verbose")
    _most_members: ClassVar = 8

    def _check_fitted(self) -> None:
        """Validate the fitted model, which may come from any file."""
        self._check_options()
        fitted = self._fitted
        demand(isinstance(fitted, FittedNumbers), "it is not fitted")
        check_members(fitted.members, PlanesModel)
        fitted.check()
        self._check_density(np.zeros(1))
        self._check_chosen()

    # --- training ---------------------------------------------------------------------------------

    @writes
    @spreads
    def fit(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        """Choose what is left at "auto" on held-out rows, then keep or fit the models.

        Parameters
        ----------
        X : data frame (pandas, polars, pyarrow ..), list of dicts, or array
            NaN, None and NA are missing cells. With `engine`, also a collection of dask; then `y`
            and `sample_weight` may be, too.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or frame
            Numbers. None and NaN are unknown answers: rows without an answer only teach the
            distribution of the columns.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two rows.

        Returns
        -------
        self
            After Ctrl-C the fitted attributes are those of the training done so far, and
            KeyboardInterrupt is raised. If data or options are invalid, the model stays unchanged.
        """
        self._fit(X, y, sample_weight)
        return self

    def _read_answers(self, y, n_rows):
        given = read_numbers(y, n_rows)
        missing = int(np.isnan(given.values).all(axis=1).sum())
        if missing:
            answers = f"{missing} of {n_rows} rows have no answer"
            warn(f"{answers}: they only teach what columns are like", UserWarning)
        return given

    def _to_train_on(self, given):
        sample = given.sample
        if not given.complete:
            sizes = f"{sample.n_rows} of {given.n_rows} rows"
            warn(f"trained on a sample of {sizes}, which is here", UserWarning)
        return sample

    def _new_fitted(self, y: Given) -> FittedNumbers:
        q = y.values.shape[1]
        kinds = [self.target] * q if isinstance(self.target, str) else list(self.target)
        if len(kinds) != q:
            raise OptionError(f"target={self.target!r} has {len(kinds)} words for {q} answers")
        names = y.names or [f"answer {k}" for k in range(q)]
        what = ["y"] if y.flat else [f"column {name!r} of y" for name in names]
        responses = [
            Response.learn(own, kind, name)
            for own, kind, name in zip(y.values.T, kinds, what, strict=True)
        ]
        return FittedNumbers(self._defaults(), responses=responses, names=y.names, flat=y.flat)

    def _seen(self, y: Given) -> np.ndarray:
        """Return answers on the scale of the models, (n, q)."""
        q = len(self._fitted.responses)
        if y.values.shape[1] != q:
            raise InputError(f"y has {y.values.shape[1]} columns, and the model has {q} answers")
        pairs = zip(self._fitted.responses, y.values.T, strict=True)
        return np.stack([response.taught(own) for response, own in pairs], axis=1)

    def _choose(
        self, readings: Readings, y: Given, weights, seed: int, rng, on_workers: bool
    ) -> list[tuple[Options, float]]:
        """Choose the options left at "auto" on held-out rows.

        Returns the options of the models to train on all rows, and their weights. The list is empty
        if models of the choice are kept.
        """
        fixed, z = self._fixed(), self._seen(y)
        alone = [(self.chosen_, 1.0)]
        known = np.where(np.isnan(z), np.nan, y.values)
        codes = strata_of(known)
        answered = int(np.count_nonzero((codes >= 0) & (weights > 0)))
        parts, average = self._held_out(codes, weights, rng, on_workers)
        if not parts or (fixed.keys() >= DEFAULTS.keys() and average == 1):
            return alone
        silent = np.where(codes < 0, weights, 0.0)  # rows without an answer, for all parts

        def train(options: Options, part: Split, _) -> PlanesModel:
            own = part.weights + silent
            rows = np.flatnonzero(own > 0)
            table = readings.of(options).take(rows)
            return self._trained(options, "choice", table, z[rows], own[rows], seed, chooser)

        def score(options: Options, part: Split, model: PlanesModel) -> np.ndarray:
            held, found = part.held, []
            for view in views_of(readings.of(options).take(held), seed):
                predicted = self._predicted(model.answers(view, self.device))
                off = (np.reshape(predicted.mean, (len(held), -1)) - known[held]) / spread
                square = np.nanmean(off**2, axis=1)
                found.append(np.stack([predicted.log_prob(known[held]), square], axis=1))
            return np.stack(found)

        def keep(options: Options, model: PlanesModel, mark: NumberMark | None) -> None:
            self._fitted.model, self._fitted.choice = model, chooser.choice()
            self._fitted.chosen |= options

        spread = np.maximum(np.nanstd(known, axis=0), 1e-150)
        ways = candidates(readings, fixed, answered * 0.75)
        chooser = Chooser(
            parts, train, score, less_surprised, keep, of=MOST_TRIED,
            verbose=self.verbose, all_models=average > 1, judge=judged,
        )  # fmt: skip
        most = max(average // len(parts), int(average > 1))
        best = self._best_of(chooser, ways, best_of, most, answered)
        if not best:
            return alone
        seen = min(np.count_nonzero(part.weights) for part in parts) / max(answered, 1)
        if len(parts) > 1 and seen >= KEPT:
            self._fitted.members = members_of(best)
            self._fitted.chosen |= best[0][0].options
            return []
        return [(own.options, share) for own, share in best]

    def _trained(
        self, options: Options, stage: str, table: Encoded, z: np.ndarray, weights: np.ndarray,
        seed: int, chooser: Chooser | None = None,
    ) -> PlanesModel:  # fmt: skip
        """Return a model of some rows; an interruption keeps it from its first step on."""
        rng = np.random.RandomState(seed)
        size = min(options["n_components"], max(int(np.count_nonzero(weights)), 1))
        model = PlanesModel.start(
            table, z, weights, size, _loss_of(self.loss), rng, options["hide"]
        )

        def after_step(record) -> bool:
            if stage == "fit" or self._fitted.model is None:
                self._keep(model)
            return self._call_back(record, stage, chooser)

        verbose = self.verbose if stage == "fit" else 0
        plan = Plan(self.max_iter, self.tol, verbose=verbose, callback=after_step)
        with warnings.catch_warnings():
            if stage != "fit" or self.max_iter == _STEPS:  # as many as the default gives
                warnings.simplefilter("ignore", ConvergenceWarning)
            n_jobs = self.n_jobs if stage == "fit" else None
            model.train(table, z, weights, rng, plan, n_jobs, self.device)
        return model

    def _fit_members(self, wanted, rows_of, y, weights, seed):
        members: list[Member] = []
        z = self._seen(y)
        for options, weight in wanted:
            stage = "average" if members else "fit"
            model = self._trained(options, stage, rows_of(options), z, weights, seed)
            members.append(Member(model, weight))
        if members:
            self._fitted.members = members

    def _class_counts(self, weights):
        return [0], np.array([np.count_nonzero(weights)])

    def _labels_of(self, y, some):
        return np.zeros(len(y.values[some])), None

    @writes
    def partial_fit(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        """Take one pass over the next rows of a stream, in the order given.

        The first batch fixes the types of the columns, their levels, the units, the type of y, and
        the start of the components, so it should have some hundreds of rows. Nothing is held out in
        a stream: "auto" means four components, and columns of whole numbers with few values are
        levels.

        Parameters
        ----------
        X, y, sample_weight : as for `fit`

        Returns
        -------
        self
        """
        self._check_options()
        first = not self.__sklearn_is_fitted__()
        table = check_table(X)
        given = read_numbers(y, table.n_rows, needed=first)
        weights = _input.check_weights(sample_weight, np.empty((table.n_rows, 0)))
        if not first:
            z = self._seen(given)
            for model, _ in self._fitted.members:
                model.learn(Encoded.read(model.layout_, table), z, weights, self.device)
            self._learn_density(table, weights)
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            with self._beginning(self._new_fitted(given)):
                self._start_stream(X, given, weights, seed)
        self._call_back(self.model_.history_[-1])
        return self

    def _start_stream(self, X: Any, y: Given, weights: np.ndarray, seed: int) -> None:
        options, z = self.chosen_, self._seen(y)
        layout = Layout.learn(X, self.families, options["missing"] == "informative", 1)
        refuse_texts(layout, type(self).__name__)
        rng, rows = np.random.RandomState(seed), Encoded.read(layout, X)
        rows.check_varied()
        size = min(options["n_components"], max(len(z) // ROWS_EACH, 1))
        model = PlanesModel.start(rows, z, weights, size, _loss_of(self.loss), rng, options["hide"])
        model.learn(rows, z, weights, self.device)
        if self.density is not False:
            self._fitted.density = self._new_density(seed, int(sizes_of_density(len(z))))
            self._learn_density(X, weights)
        self._fitted.model = model

    def _learn_density(self, X: Any, weights: np.ndarray) -> None:
        """Train the density, if there is one, on the next rows of a stream."""
        fitted = self._fitted
        if fitted.density is None:
            return
        batch = fitted.density.check_batch(X, np.zeros(len(weights)), None, weights)
        fitted.usual = Usual.in_passing(fitted.usual, fitted.density, batch.X)
        with warnings.catch_warnings():  # it may well have more components than it needs
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.density.learn_batch(batch)

    def _check_options(self) -> None:
        super()._check_options()
        kinds = [self.target] if isinstance(self.target, str) else self.target
        known = ("auto", *TARGETS)
        if not isinstance(kinds, list | tuple) or any(kind not in known for kind in kinds):
            raise OptionError(f"target={self.target!r} must be one of {list(known)}")
        if isinstance(_loss_of(self.loss), Hinge):
            raise OptionError(f"loss={self.loss!r} is for classes: use 'ncll', 'nll' or 'blend'")
        self._new_density(0)._check_options()
        self._new_density(0).set_params(
            max_iter=self.max_iter, tol=self.tol, hide=self.hide
        )._check_options()

    def _defaults(self, stream: bool = False) -> Options:
        return DEFAULTS | self._fixed()

    def _fixed(self) -> Options:
        """Return the options that are given."""
        given = {name: getattr(self, name) for name in DEFAULTS}
        return {name: value for name, value in given.items() if value != "auto"}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _loss_of(loss: Any) -> Any:
    """Return the loss that the option names."""
    return resolve_loss(Blend(0.1) if loss == "blend" else loss)
