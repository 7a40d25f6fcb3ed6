"""Mixtures inside each class, trained discriminatively."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import field, replace
from functools import cache, partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import models
from .._checks import demand
from .._kinds import savable
from ..engines import Data
from ..exceptions import OptionError, warn
from ..families import FAMILIES, Family
from ..io.column_kinds import column_names
from ..io.labels import is_kind_of_label, plain_labels
from ..io.tables import Layout
from ..models import Mixture, perturbed
from ..schedules import held
from ..training import train
from . import _input
from ._base import GenerativeClassifier
from ._batch import Batch
from ._by_label import by_label, lacking, some_of
from ._choice import Choice, check_choice
from ._components import choose_size, collect_nearest, find_components
from ._docs import documented
from ._folds import check_cv
from ._mixture_answers import MixtureAnswers
from ._options import NUMBER, check_whole, check_words, is_count, with_options
from ._pieces import spreads
from ._tables import (
    NUMBERS,
    Encoded,
    Hider,
    family_of_table,
    is_table,
    layout_of,
    learn_layout,
    refuse_texts,
    width,
)
from ._threads import writes
from ._types import Auto, Families, Labels, Table, Weights

_QUIET = 1e-3  # weight of an unlabelled row, whose NLL step forgets, under discriminative losses
_DEAD = 0.01  # of an even share: a component with less is ignored


@savable
@documented
@with_options
class MixtureClassifier(MixtureAnswers, GenerativeClassifier):
    """A mixture of naive Bayes models inside each class, trained under NLL, NCLL or hinge.

    p(x | y) is a sum over components. Each component is a product of distributions of the columns
    (normal, log-normal, Poisson, categorical ...), or a multinomial over words. The component of a
    row is not observed: it is summed out exactly, as are missing cells.

    Parameters
    ----------
    n_components : int, dict from class to int, or "auto", default=2
        Number of components of each class. A class with fewer distinct rows has fewer. "auto"
        compares 1, 2, 4 and 8 by the log-loss of held-out rows, then trains on all rows. In
        `partial_fit` it is 2.
    families : "auto", name, or dict from column to name, default="auto"
        The distributions of the columns: "gaussian", "lognormal", "hurdle", "poisson", "bernoulli"
        or "categorical", or "words" for all columns together. "auto" is "words" for sparse input,
        "gaussian" for an array of numbers, and for other tables it decides by the content of each
        column, see `TableClassifier`. A dict may name some columns; the others are "auto".
    covariance : {{"diag", "full", "tied"}}, default="diag"
        The correlation of numeric columns within a component. "diag": none. "full": each component
        has its own covariance matrix. "tied": all components share one covariance matrix.
    {of_tables}
    {cv}
    {loss}
    prior : "data", NormalBetaPrime, NormalGamma or Dirichlet, default="data"
        The regulariser, the same for all components. Gaussian: `NormalBetaPrime()`, which pulls
        means to the overall mean and variances to the pooled variance within components, but barely
        affects a spike; `NormalWishart()` for correlated columns. Words: as in `MultinomialNB`. You
        can give every name or object that the naive Bayes model of the family accepts.
    {common}
    {unlabelled}

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        p(component | class), for the components of all classes side by side.
    component_class_ : array of shape (n_components,)
        The class of each component.
    means_, variances_ : arrays of shape (n_components, n_features)
        Of Gaussian components.
    covariances_ : array of shape (n_components, n_features, n_features)
        Of Gaussian components.
    component_log_prob_ : array of shape (n_components, n_features)
        ``ln p(word | component)``, of components over words.
    n_components_ : array of shape (n_classes,)
    family_ : str
    families_ : dict from column to str
        For tables: the distribution chosen for each column, and why.
    choice_ : list of dicts
        The numbers of components that were tried, and their scores on held-out rows.
    {attributes}

    Examples
    --------
    >>> from discem import GaussianNB, MixtureClassifier
    >>> from discem.datasets import toy, toy_accuracy
    >>> X, y = toy(20_000, random_state=0)  # one class is two spikes, inside the other
    >>> round(toy_accuracy(GaussianNB(random_state=0).fit(X, y)), 2)
    0.92
    >>> round(toy_accuracy(MixtureClassifier(random_state=0).fit(X, y)), 2)
    0.98
    """

    n_components: int | Auto | Mapping[Any, int] = field(default=2, kw_only=False)
    families: Families = "auto"
    covariance: Literal["diag", "full", "tied"] = "diag"
    hide: float = 0.0
    missing: Literal["ignore", "informative"] = "ignore"
    forget: int | None = None
    unlabelled: Any = None
    unlabelled_weight: float | Auto = "auto"
    cv: Any = None

    # --- the family -------------------------------------------------------------------------------

    _model = Mixture
    _mixed = True
    _covariances: ClassVar = tuple(NUMBERS)

    _renamed: ClassVar = (("family", "families"),)  # earlier names of options, in files and here
    _of_input: ClassVar = ("feature_names_in_", "layout_")
    _attributes: ClassVar = (*GenerativeClassifier._attributes, "layout_", "choice_")

    def _choose_family(self, X) -> Family:
        layout = layout_of(X)
        if layout is not None:
            return family_of_table(layout, self.covariance)
        named: Any = self.families
        if named == "auto":
            named = "words" if sp.issparse(X) else "gaussian"
        if self.covariance == "diag":
            return FAMILIES[named]
        if named != "gaussian":
            raise OptionError(f"covariance={self.covariance!r} is for numbers, not for {named!r}")
        return FAMILIES[NUMBERS[self.covariance]]

    def _check_family(self, family):
        if hasattr(self, "layout_"):
            demand(isinstance(self.layout_, Layout), "it does not know its columns")
            self.layout_.check()
            known = [family_of_table(self.layout_, each).name for each in NUMBERS]
            demand(family.name in known, "its rows are not those of a table")
            same = len(self.layout_.columns) == self.n_features_in_
            demand(same, "its columns are not those of its table")
        else:
            demand(family.name in FAMILIES, f"its rows are of an unknown family {family.name!r}")
        mark = self.unlabelled
        demand(mark is None or is_kind_of_label(type(mark)), "unlabelled is no label")
        check_choice(getattr(self, "choice_", Choice()))

    def _width(self) -> Any:
        return width(self.layout_) if hasattr(self, "layout_") else self.n_features_in_

    def _encoded(self, X, fresh: bool, stream: bool) -> Any:
        """Read tables by their columns, unless an array of numbers is enough."""
        if layout_of(X) is not None:  # another model has already read the rows
            return X
        if not fresh:
            if not hasattr(self, "layout_"):
                return X
            return Encoded.read(self.layout_.extended(X) if stream else self.layout_, X)
        named = self.families
        if not is_table(X, named):
            return X
        found = Encoded.learn(X, named, self.missing == "informative", stream)
        refuse_texts(found.layout, type(self).__name__)
        return found

    def reads_as(self, other: MixtureClassifier) -> bool:
        """Return whether another model reads the rows of a table in the same way."""
        if self.__sklearn_is_fitted__():
            return getattr(self, "layout_", None) == getattr(other, "layout_", None)
        return (self.families, self.missing) == (other.families, other.missing)

    def _read(self, X, family, fresh, grows=False):
        X = self._encoded(X, fresh, False)
        layout = layout_of(X)
        if layout is None or not (fresh or hasattr(self, "layout_")):
            return super()._read(X, family, fresh, grows)
        found = {"layout_": layout, "n_features_in_": X.shape[1]}
        if layout.named:
            names = [str(column.name) for column in layout.columns]
            found["feature_names_in_"] = np.array(names, dtype=object)
        return X, found

    def _view(self, X, family):
        return X.view() if layout_of(X) else super()._view(X, family)

    def _auto_unlabelled(self, family, ratio):
        return 1.0 if self._is_generative() else _QUIET

    def _solved(self, targets):
        return False  # labels do not give the component

    # --- training ---------------------------------------------------------------------------------

    @writes
    @spreads
    def fit(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        super().fit(X, y, sample_weight)
        self._warn_of_the_dead()
        return self

    fit.__doc__ = GenerativeClassifier.fit.__doc__

    def _gone_on(self, X, y, sample_weight, steps: int) -> MixtureClassifier:
        """Return a copy, trained for some steps on other rows of the same classes and columns."""
        other = copy(self)
        batch = other._check_data(X, y, sample_weight, fresh=False, classes=self.classes_)
        data = Data(batch.rows, batch.targets, batch.weights / self._weight_unit)
        learner = other.learner_
        learner.rule = learner.rule._replace(n=self._spread(batch.total))
        plan = replace(self._plan(batch.targets), epochs=steps, tol=None, callback=None, whole=True)
        rng = check_random_state(self.random_state)
        train(learner, data, np.flatnonzero(batch.weights > 0), np.arange(0), plan, rng)
        return other

    @writes
    def learn_batch(self, batch: Any) -> Self:
        layout, fitted = batch.layout, self.__sklearn_is_fitted__()
        if layout is not None and fitted and layout is not self.layout_:
            self.learner_.restart(self.learner_.state.with_features(batch.width))
            self.layout_ = layout
        hider = self._hider(layout, batch.family)
        if hider is not None:
            rng = np.random.RandomState(int(getattr(self, "_seen", 0)) % 2**31)
            batch = batch._replace(rows=hider(batch.rows, rng))
        if self.forget is not None and fitted:
            self.learner_.forget(min(self.forget, self.learner_.t))
        super().learn_batch(batch)
        self._warn_of_the_dead()
        return self

    learn_batch.__doc__ = GenerativeClassifier.learn_batch.__doc__

    @writes
    def calibrate(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        return super().calibrate(X, _input.unmarked(y, self.unlabelled), sample_weight)

    calibrate.__doc__ = GenerativeClassifier.calibrate.__doc__

    def _check_options(self) -> None:
        super()._check_options()
        named = self.families
        if isinstance(named, str) and named not in ("auto", *FAMILIES, *column_names()):
            known = sorted({"auto", *FAMILIES, *column_names()})
            raise OptionError(f"families={named!r} is unknown: use one of {known}")
        if not isinstance(named, str | dict):
            raise OptionError(f"families={named!r} must be a name, or names by column")
        if not (isinstance(self.hide, NUMBER) and 0 <= self.hide < 1):
            raise OptionError(f"hide={self.hide!r} must be a number from 0 to below 1")
        check_whole("forget", self.forget, None)
        check_words(self, covariance=self._covariances, missing=("ignore", "informative"))
        check_cv(self.cv)
        sizes = self.n_components.values() if isinstance(self.n_components, dict) else None
        for size in [self.n_components] if sizes is None else sizes:
            if not is_count(size) and not (sizes is None and size == "auto"):
                raise OptionError(
                    f"n_components={self.n_components!r} must be a whole number >= 1, "
                    "'auto', or such numbers by class"
                )

    def _read_rows(self, rows):
        X, named = rows.sample.X, self.families
        if rows.on_workers and is_table(X, named):
            layout = learn_layout(X, rows, named, self.missing == "informative")
            refuse_texts(layout, type(self).__name__)
            rows = rows.map(partial(Encoded.read, layout))
        return super()._read_rows(rows)

    def _check_data(
        self, X, y, sample_weight, fresh, classes=None, stream=False, grows=False, part=False
    ) -> Batch:
        y, X = _input.unmarked(y, self.unlabelled), self._encoded(X, fresh, stream)
        batch = super()._check_data(X, y, sample_weight, fresh, classes, stream, grows, part)
        if batch.layout is not None:
            batch.X.check_varied()
        if fresh:
            self._wanted(self.n_components, batch.classes)
        if fresh and not stream and isinstance(self.n_components, dict):
            for label in by_label(self.n_components, batch.classes, "n_components")[1]:
                raise OptionError(
                    f"n_components has {label!r}, which is no class of y: {some_of(batch.classes)}"
                )
        return batch

    def _begin(self, batch, average, stream, rng):
        size: Any = self.n_components
        batch.found["choice_"] = Choice()
        if size == "auto" and stream:
            size = 2
        elif size == "auto":
            size, batch.found["choice_"] = choose_size(self, batch)
        family, rows, weights = batch.family, batch.rows, batch.weights
        d = batch.width
        wanted = self._wanted(size, batch.classes)
        points = family.points(rows, weights, d) if max(wanted) > 1 else None
        components, sizes = find_components(points, batch.targets, weights, wanted, stream, rng)
        first = np.cumsum([0, *sizes], dtype=np.int64)
        tally = models.collect(family, rows, components, weights, d, int(first[-1]))
        prior, classes = self._priors_of(batch, tally, d, sizes)
        if batch.whole is not None and not batch.whole.complete:
            if max(sizes) == 1:
                tally = batch.collect(d, len(sizes))
            else:
                parts = models.start(tally, prior, classes, "generative")
                near = partial(collect_nearest, parts=parts, first=first, n_features=d)
                tally = batch.whole.collect(near)
            prior, classes = self._priors_of(batch, tally, d, sizes)
        alike = tally.classes == 0 if self.init == "generative" else tally.classes >= 0
        class_count = np.add.reduceat(tally.classes, first[:-1])
        states = []
        for init in self._inits(family):
            model = models.start(tally, prior, classes, init, stream=stream, first=first)
            model = perturbed(model, np.flatnonzero(alike), rng)
            states.append(model.with_average() if average else model)
        return states, class_count

    def _priors_of(self, batch: Batch, tally: Any, d: Any, sizes: list[int]) -> tuple:
        """Return the prior of the features of components, and the prior of the components."""
        family = batch.family

        @cache  # every family of a table calls this
        def by_class() -> Any:
            same = len(tally.classes) == len(sizes)
            return tally.features if same else batch.collect(d, len(sizes)).features

        prior, alpha = self._resolve_prior(family, d)
        shared = list(batch.targets.parts(batch.weights))
        prior = family.complete_prior(prior, batch.rows, shared, float(np.mean(sizes)))
        prior = family.prior_of_components(prior, by_class, tally.features)
        return prior, self._class_prior(family, prior, alpha)

    def _auto_step(self, family, n, state):
        step = super()._auto_step(family, n, state)
        return step if self.forget is None else held(step, float(self.forget))

    def _plan(self, targets):
        hider = self._hider(getattr(self, "layout_", None), self._known_family())
        return replace(super()._plan(targets), hide=hider)

    def _hider(self, layout: Layout | None, family: Family) -> Hider | None:
        """Return the object that hides cells of rows, or None if no cells are to be hidden."""
        if self.hide == 0 or (layout is None and not family.accepts.missing):
            return None
        shares = any(factor.name in ("normal", "tied") for factor in family.factors)
        return Hider(layout, self.hide, shares)

    def _wanted(self, size: Any, classes: np.ndarray) -> list[int]:
        """Return the number of components of each class."""
        if not isinstance(size, dict):
            return [size] * len(classes)
        found, _ = by_label(size, classes, "n_components")
        for label in lacking(found, classes):
            raise OptionError(f"n_components lacks the class {label!r}")
        return [int(found[place]) for place in range(len(classes))]

    def _warn_of_the_dead(self) -> None:
        state = self.learner_.state  # its average, of all that it holds, is not to be had for less
        counts, sizes = state.classes.counts, state.sizes
        even = np.repeat(state.class_counts / sizes, sizes)
        for m in np.flatnonzero(counts < _DEAD * even):
            k = int(np.searchsorted(state.first, m, side="right")) - 1
            label = plain_labels(self.classes_)[k]
            warn(
                f"component {m - state.first[k]} of class {label!r} has died: it has less "
                f"than {_DEAD:.0%} of an even share; use fewer components or a stronger prior",
                ConvergenceWarning,
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        named = self.families
        known = FAMILIES.get(named) if isinstance(named, str) else None
        accepts = [each.accepts for each in ([known] if known else FAMILIES.values())]
        tags.input_tags.allow_nan = any(each.missing for each in accepts)
        tags.input_tags.sparse = any(each.sparse for each in accepts)
        tags.input_tags.positive_only = not any(each.negative for each in accepts)
        tags.classifier_tags.poor_score = tags.input_tags.positive_only  # as in MultinomialNB
        return tags
