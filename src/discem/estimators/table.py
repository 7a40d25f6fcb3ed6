"""Classification of tables: a data frame in, labels out, nothing to tune."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._checks import check_number, demand
from .._kinds import savable
from ..exceptions import warn
from ..io.encoders import check_encoder
from ..io.frames import check_table
from ..io.labels import places_of, plain_labels
from ..losses import NLL, resolve_loss
from ..priors import Default
from . import _input
from ._average import REST, Member, answering, check_members, explained, log_proba
from ._batch import Batch
from ._candidates import DEFAULTS, STREAM, loss_of
from ._choice import Options
from ._explain import Importance
from ._options import check_positive, check_words, with_options
from ._pieces import spreads
from ._shift import Scaling
from ._strange import Usual
from ._table_choice import CHOSEN, ChoosesTable, answers_of
from ._table_preset import MOST_STEPS, FittedTable, TablePreset, sizes_of_density
from ._tables import Encoded
from ._texts import Texts
from ._threads import writes
from ._types import (
    Auto,
    Callback,
    ClassWeight,
    DeviceOption,
    EngineOption,
    Families,
    Labels,
    LossOption,
    RandomState,
    Table,
    Weights,
)
from .mixture import MixtureClassifier

_LOOKED_AT = 10_000  # training rows that the fitted model predicts at the end
_EXPLAINED, _LARGEST = 300, 1_000_000  # .. of which so many are explained, or so many cells


@savable
@with_options
class TableClassifier(ChoosesTable):
    """Classify the rows of a table, with missing cells and columns of any kind.

    Columns may be numbers, counts, flags, categories, dates and texts. Cells may be missing
    anywhere, in training and in prediction: they are summed out, not imputed. Inside each class the
    model is a mixture of products of distributions. It is trained to classify, on rows with some
    cells hidden at random, so that it works for any subset of the columns.

    `fit` chooses every option that is left at "auto". It holds out a part of the training rows (if
    there are few rows, each part in turn), and tries candidates on complete rows and on rows with
    hidden cells. Then it averages the best candidates: with few rows, the models that were trained
    without each part, after some more steps on all rows; otherwise, models of all rows, one of
    which may answer for the rows without missing cells. With
    ``average=1`` it trains one model on all rows. `chosen_` says what was chosen; if you fix these
    options, you get the same model.

    A second model of the same rows, trained by NLL, is the density. It is used by `score_samples`,
    `sample`, `impute`, `distribution` and `outliers`.

    Each text column has a model of its own, a `TextClassifier`. Its weight relative to the other
    columns is chosen on held-out rows: `chosen_["texts"]`. The density ignores texts.

    Parameters
    ----------
    families : "auto", name, or dict from column to name, default="auto"
        The distribution of each column: "gaussian", "lognormal", "hurdle" (zero, or positive and
        log-normal), "poisson", "bernoulli", "categorical", "text" or "ignored". "auto" decides by
        the type and content of the column; `families_` holds the choice and the reason.
    n_components : "auto" or int, default="auto"
        Number of mixture components of each class. "auto" compares 1, 3 and 8.
    loss : {"auto", "ncll", "hinge", "nll", "blend"} or loss object, default="auto"
        What training minimises. "auto" compares NCLL, a blend of it with NLL, and NLL.
    hide : "auto" or float, default="auto"
        The largest share of the cells of a row that an epoch hides. Raise it if many cells will be
        missing in prediction; 0 hides none. "auto" is 0.8.
    missing : {"auto", "ignore", "informative"}, default="auto"
        Whether a missing cell is itself a sign of the class. "auto" tries both.
    prior_strength : "auto" or float, default="auto"
        A factor of the priors of all columns. A larger one makes the classes more alike. "auto"
        compares 1, 4, 1/4 and 1/16.
    temperature : "auto" or float, default="auto"
        The factor of the log-probabilities before they are normalised. "auto" learns it from
        held-out rows, and is 1 in streams.
    covariance : {"auto", "diag", "tied", "full"}, default="auto"
        Whether numbers are correlated within a component, see `MixtureClassifier`. "auto" compares.
    whole_numbers : {"auto", "levels", "numbers"}, default="auto"
        Whether columns of whole numbers with few values are categories or numbers. "auto" compares,
        and takes "levels" in streams.
    average : "auto" or int, default="auto"
        The largest number of models to average. 1 is a single model, which is the smallest and the
        fastest. "auto" is 4, and 1 on workers of Dask.
    density : "auto" or bool, default="auto"
        Whether to train the second, generative model. "auto" does.
    forget : int or None, default=None
        In streams, the number of rows after which older rows count less and less.
    max_iter : int, default=40
        The largest number of steps of each model. One for complete rows may take three times as
        many.
    tol : float or None, default=1e-3
        Stop when no more than this is left to gain, see `MixtureClassifier`.
    cv : None, int, splitter, iterable or array, default=None
        Which rows are held out to choose options by. None holds out a part of the rows of each
        class, of at most 6 000 rows. You can also give a number of folds, a splitter of
        scikit-learn, pairs of rows to train on and to hold out, or the group of each row (a
        patient, a day).
    encoder : None, str, callable or object, default=None
        The encoder of text columns: it makes a vector of each text, see `TextClassifier`.
    class_weight : dict, "balanced" or None, default=None
        The weight of each class, by its label. "balanced" gives all classes the same total weight.
    unlabelled_weight : "auto" or float, default="auto"
        The weight of a row without a label beside a labelled one, see `MixtureClassifier`.
    n_jobs : int or None, default=None
        Threads that train and predict. None is one thread, -1 is one for each core. Few rows are
        trained on one thread.
    device : None, "cpu", "auto", str, torch.device or Device, default=None
        Where arrays are, see `MixtureClassifier`. "cuda" trains and predicts on the GPU.
    engine : None, "dask" or Dask, default=None
        Where `fit` trains, see `MixtureClassifier`. With workers of Dask, options are chosen in
        this process, on a sample of the rows.
    callback : callable or None, default=None
        Called as ``callback(model, record)`` after each epoch. Training stops if it returns True.
        ``record["stage"]`` is "text" for text columns, "choice" while options are tried, then
        "fit", then "density". In a choice, ``record["choice"]`` is a line that says how far it has
        come.
    random_state : int, RandomState or None, default=None
        Seed of all random choices. With the same seed and rows, the model is the same.
    verbose : int, default=0
        1 shows progress, and 2 shows a line for each candidate.

    Attributes
    ----------
    chosen_ : dict
        The options that were chosen, and the number of held-out rows.
    choice_ : list of dicts
        The candidates that were tried, and their scores on held-out rows.
    families_ : dict from column to str
        The distribution chosen for each column, and why.
    members_ : list of dicts
        The models that are averaged: weight, covariance, loss, components and temperature of each,
        and the `rows` that it answers for: "all", "complete" or "incomplete" ones.
    model_ : MixtureClassifier
        The model with the largest weight.
    density_ : MixtureClassifier
        The model of the density.
    texts_ : dict from column to TextClassifier
        The models of the text columns that improve predictions.
    importances_ : list of Importance
        The effect of each column on log-odds in training rows: mean absolute value, spread.
    roles_ : dict from "target" and "id" to str
        The columns with the labels and the names of rows, if given on the command line.
    files_ : dict from str to Seen
        The files of a stream that the command line has learnt, by a hash of their names.
    classes_, class_count_, class_prior_, class_frequency_, temperature_ : as in MixtureClassifier
    n_features_in_, feature_names_in_, history_, stream_, n_iter_ : as in MixtureClassifier

    Examples
    --------
    >>> import numpy as np
    >>> from discem import TableClassifier
    >>> rows = [{"size": 1.0 + i % 3, "kind": "ab"[i % 2]} for i in range(60)]
    >>> y = ["small" if row["size"] < 2 or row["kind"] == "a" else "large" for row in rows]
    >>> model = TableClassifier(random_state=0).fit(rows, y)
    >>> model.predict([{"size": 3.0, "kind": "b"}, {"kind": "a"}]).tolist()
    ['large', 'small']
    >>> model.families_["kind"]
    'categorical: text, 2 levels'
    """

    families: Families = "auto"
    n_components: int | Auto = "auto"
    loss: Auto | LossOption = "auto"
    hide: float | Auto = "auto"
    missing: Literal["auto", "ignore", "informative"] = "auto"
    prior_strength: float | Auto = "auto"
    temperature: float | Auto = "auto"
    covariance: Literal["auto", "diag", "tied", "full"] = "auto"
    whole_numbers: Literal["auto", "levels", "numbers"] = "auto"
    average: int | Auto = "auto"
    density: bool | Auto = "auto"
    forget: int | None = None
    max_iter: int = MOST_STEPS
    tol: float | None = 1e-3
    cv: Any = None
    encoder: Any = None
    class_weight: ClassWeight = None
    unlabelled_weight: float | Auto = "auto"
    n_jobs: int | None = None
    device: DeviceOption = None
    engine: EngineOption = None
    callback: Callback = None
    random_state: RandomState = None
    verbose: int = 0

    # --- what is fitted, and goes to a file -------------------------------------------------------

    _handed: ClassVar = (*TablePreset._handed, "unlabelled_weight")
    _most_members: ClassVar = 4

    def _check_fitted(self) -> None:
        """Validate the fitted model, which may come from any file."""
        self._check_options()
        fitted = self._fitted
        demand(isinstance(fitted, FittedTable), "it is not fitted")
        check_members(fitted.members, MixtureClassifier)
        if fitted.complete is not None:
            check_members([Member(fitted.complete, 1.0)], MixtureClassifier)
        for model, _ in fitted.everyone:
            same = np.array_equal(model.classes_, self.classes_)
            demand(same, "its models are of different classes")
        self._check_density(self.classes_)
        texts = fitted.model.layout_.texts
        demand(bool(texts) is (fitted.texts is not None), "its text columns have no models")
        if fitted.texts is not None:
            demand(isinstance(fitted.texts, Texts), "its text columns are none")
            fitted.texts.check(fitted.model.layout_, self.classes_)
        if fitted.scaling is not None:
            demand(isinstance(fitted.scaling, Scaling), "its scaling is none")
            fitted.scaling.check(len(self.classes_))
        told = fitted.importances
        if told is not None:
            demand(isinstance(told, list), "its importances are no list")
            for each in told:
                demand(isinstance(each, Importance), "one of its importances is none")
                check_number("importance", each.mean, least=0.0)
                check_number("importance", each.spread, least=0.0)
        self._check_chosen()
        loss_of(self.chosen_["loss"])

    # --- training ---------------------------------------------------------------------------------

    @writes
    @spreads
    def fit(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        """Choose the options left at "auto" on held-out rows, then fit the model to all rows.

        Parameters
        ----------
        X : data frame (pandas, polars, pyarrow ..), list of dicts, or array
            NaN, None and NA are missing cells. With `engine`, also a collection of dask; then `y`
            and `sample_weight` may be, too.
        y : array-like of shape (n_samples,), of sets of labels, or frame of shares by class
            Labels, with None or NaN for an unlabelled row; sets of possible labels; or a frame with
            one column per class that holds its share.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
            After Ctrl-C the fitted attributes are those of the training done so far, and
            KeyboardInterrupt is raised. If data or options are invalid, the model stays unchanged.
        """
        self._fit(X, y, sample_weight)
        if self._fitted.texts is not None:
            self._fitted.texts.give_encoder(self.encoder)
        return self

    def _read_answers(self, y, n_rows):
        y, named = _input.read_y(y, n_rows)
        self._warn_of_missing_labels(y)
        return y, named

    def _keep(self, model):
        super()._keep(model)
        self._end_early()

    def _look_back(self, readings, y, weights, seed):
        super()._look_back(readings, y, weights, seed)
        y, _ = y
        if y.ndim == 2:
            return
        codes, fitted = _input.encode(y, self.classes_).codes, self._fitted
        known = np.flatnonzero((codes >= 0) & (weights > 0))
        some = np.random.RandomState(seed).permutation(known)[:_LOOKED_AT]
        rows = [readings.with_layout(model.layout_).take(some) for model, _ in fitted.everyone]
        log_p, texts = log_proba(answering(fitted.members, fitted.complete, rows)), fitted.texts
        if texts is not None:
            found = readings.layout.texts_of(readings.table).items()
            cells = {name: [own[i] for i in some] for name, own in found}
            log_p = self._with_texts(log_p, cells)
        self._fitted.scaling = Scaling.learn(log_p, codes[some], self.class_frequency_)
        if len(self.classes_) < 2:
            return
        few = slice(min(_EXPLAINED, _LARGEST // len(readings.layout.columns) ** 2 + 1))
        rows = [own.take(few) for own in rows]
        told = explained(answering(fitted.members, fitted.complete, rows))
        if texts is not None:
            cells = {name: own[few] for name, own in cells.items()}
            told = texts.explained(told, cells, *self._log_frequencies())
        self._fitted.importances = [each for each in told.importances() if each.column != REST]

    @writes
    def partial_fit(
        self, X: Table, y: Labels, classes: Any = None, sample_weight: Weights = None
    ) -> Self:
        """Take one pass over the next rows of a stream, in the order given.

        The first batch fixes the types and units of the columns, so it should have some hundreds of
        rows. A later batch whose columns have other types is an error. New levels and classes may
        appear at any time. Nothing is held out in a stream: "auto" means NCLL with one component, a
        temperature of 1, and up to 80 % of the cells of a row hidden.

        Parameters
        ----------
        X, y, sample_weight : as for `fit`
        classes : array-like, optional
            Classes to know from the start. Not needed.

        Returns
        -------
        self
        """
        self._check_options()
        first = not self.__sklearn_is_fitted__()
        fitted = FittedTable(self._defaults(stream=True)) if first else self._fitted
        if first:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            fitted.model = self._new_model(fitted.chosen, seed)
        models, table = [model for model, _ in fitted.everyone], check_table(X)
        batches: list[Batch] = []

        def check(model: MixtureClassifier) -> None:
            """Read the rows for a model, unless an earlier model has read them in the same way."""
            pairs = zip(models, batches, strict=False)
            known = (own for other, own in pairs if model.reads_as(other))
            read = next((own.X for own in known if own.layout is not None), None)
            if read is None and first:
                informative = model.missing == "informative"
                read = Encoded.learn(table, model.families, informative, stream=True)
            answers = batches[0].answers if batches else y
            read = table if read is None else read
            batches.append(model.check_batch(read, answers, classes, sample_weight))

        for each in models:
            check(each)
        if first and self.density is not False:
            fitted.density = self._new_density(seed, self._size_of_stream(batches[0]))
        if fitted.density is not None:
            check(fitted.density)
            models.append(fitted.density)
            fitted.usual = Usual.in_passing(fitted.usual, fitted.density, batches[-1].X)
        self._learn_texts(fitted, table, batches[0])
        if fitted.scaling is not None:
            order = places_of(batches[0].classes, self.classes_)
            fitted.scaling = fitted.scaling.with_classes(order)
        self._fitted = fitted
        with warnings.catch_warnings():
            for each, batch in zip(models, batches, strict=True):
                if each is fitted.density:  # it may well have more components than it needs
                    warnings.simplefilter("ignore", ConvergenceWarning)
                each.learn_batch(batch)
        if first:
            self.model_.temperature_ = self.chosen_["temperature"]
        self._call_back(self.model_.history_[-1])
        return self

    def _size_of_stream(self, batch: Batch) -> int:
        """Return the number of components per class of the density, judged by the first rows."""
        return int(sizes_of_density(batch.n_given / len(batch.classes)))

    def _check_options(self) -> None:
        super()._check_options()
        check_words(self, covariance=("auto", "diag", "full", "tied"))
        for name in ("prior_strength", "temperature"):
            check_positive(name, getattr(self, name), "auto")
        check_encoder(self.encoder)
        if self.loss != "auto":
            resolve_loss(self.loss)
        self._new_model(self._defaults(), 0)._check_options()

    def _defaults(self, stream: bool = False) -> dict[str, Any]:
        """Return the values that replace "auto" if nothing can be held out."""
        auto = DEFAULTS | {"temperature": 1.0} | (STREAM if stream else {})
        return auto | self._fixed()

    def _fixed(self) -> Options:
        """Return the options that are given."""
        given = {name: getattr(self, name) for name in (*CHOSEN, "temperature")}
        return {name: value for name, value in given.items() if value != "auto"}

    def _new_model(self, chosen: dict[str, Any], seed: int, **options) -> MixtureClassifier:
        loss = loss_of(chosen["loss"])
        settings: dict[str, Any] = {
            "n_components": chosen["n_components"],
            "loss": loss,
            # a model fitted to all cells also fits each subset of them: NLL needs none hidden
            "hide": 0.0 if isinstance(loss, NLL) else chosen["hide"],
            "missing": chosen["missing"],
            "covariance": chosen["covariance"],
            "prior": Default(float(chosen["prior_strength"])),
            "max_iter": self.max_iter,
            "tol": self.tol,
            "class_weight": self.class_weight,
        }
        return self._new_mixture(seed, **(settings | options))

    def _class_counts(self, weights):
        counts = self.model_.class_count_ / max(weights.mean(), 1e-300)
        return plain_labels(self.classes_), counts

    def _labels_of(self, y, some):
        y, named = y
        own = y[some]
        present = None if y.ndim == 2 else plain_labels(_input.find_classes(own))
        return answers_of(own, named), present

    def _warn_of_missing_labels(self, y) -> None:
        if y.ndim == 1:
            missing = _input.missing_labels(y)
            if missing.any() and not missing.all():
                warn(
                    f"{int(missing.sum())} of {len(y)} rows have no label: they are learnt from "
                    "as such",
                    UserWarning,
                )
