"""Naive Bayes for numbers and for counts, trained discriminatively."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._checks import check_plain, demand
from .._kinds import savable
from ..families import FAMILIES, Family, gaussian, words
from ..families._counts import log_probabilities, typical_count
from ..losses import NLL, Blend, Hinge, resolve_loss
from ..priors import Dirichlet
from ..schedules import Schedule, by_row, constant, power
from ..targets import Targets
from ._ask import Asks
from ._base import GenerativeClassifier
from ._batch import Batch
from ._choice import (
    Choice,
    Chooser,
    Mark,
    Options,
    Result,
    check_choice,
    more_accurate,
    most_epochs,
)
from ._docs import documented
from ._explain import ExplainsRows
from ._folds import Split, check_cv, splits
from ._options import with_options
from ._pieces import rows_of, spreads
from ._threads import reads, writes
from ._types import Auto, Labels, LossOption, Table, Weights

_PLAIN = (1.0, 0.1, 0.01)  # pseudo-counts of plain naive Bayes to try
_EAGER = 100.0  # a step weighs as many documents as this of the start, to forget the start soon
_CALM = 30.5  # the same, for steps of many documents at a time
_HINGE = 0.2  # strength of the prior under the hinge loss
_FEW = 3  # epochs that change a start only slightly


class FamilyClassifier(GenerativeClassifier):
    """A classifier whose rows all belong to one family, which its subclass names."""

    family: ClassVar[str]

    def _choose_family(self, X) -> Family:
        return FAMILIES[self.family]

    def _check_family(self, family):
        demand(family.name == self.family, f"its rows are of the family {family.name!r}")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        accepts = FAMILIES[self.family].accepts
        tags.input_tags.allow_nan = accepts.missing
        tags.input_tags.sparse = accepts.sparse
        tags.input_tags.positive_only = not accepts.negative
        tags.classifier_tags.poor_score = not accepts.negative  # on test data without counts
        return tags


@savable
@documented
@with_options
class GaussianNB(Asks, ExplainsRows, FamilyClassifier):
    """Gaussian naive Bayes, trained under NLL, NCLL or hinge.

    p(x | y) is a product of normal distributions, one per feature and class. NaN is a missing
    cell: it is summed out in training and prediction, never imputed. With the default prior you
    need not scale the features: their units do not matter.

    Parameters
    ----------
    {loss}
    prior : {{"data", "paper"}} or NormalGamma, default="data"
        The regulariser. "data" is `NormalGamma()`: it pulls class means to the overall mean (with
        the strength of 2 observations), class variances to the pooled within-class variance (30),
        so training does not depend on the units of a column. "paper" is the prior of the paper's
        toy example, in raw units.
    {common}

    Attributes
    ----------
    mean_, var_ : arrays of shape (n_classes, n_features)
        Mean and variance of each feature in each class.
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from discem import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> X[::7, 2] = np.nan  # missing cells are fine
    >>> model = GaussianNB(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.predict_proba([[5.0, np.nan, 1.4, 0.2]]).round(2).tolist()
    [[1.0, 0.0, 0.0]]
    """

    family: ClassVar = "gaussian"

    @property
    @reads
    def mean_(self) -> np.ndarray:
        check_is_fitted(self)
        return gaussian.moments(self.learner_.model.features)[0]

    @property
    @reads
    def var_(self) -> np.ndarray:
        check_is_fitted(self)
        return gaussian.moments(self.learner_.model.features)[1]


def blended(rho: float, kappa: float, n: float) -> Schedule:
    """Return steps for NCLL + kappa NLL; NLL is a running average that starts as n rows."""
    if kappa == 0.0:
        return constant(rho)
    first = rho / (1.0 + kappa * rho * n)
    return power(first, 1.0 / (kappa * first), 1.0)


def _step(loss: Any, documents: float, n: float) -> Schedule:
    """Return steps that weigh `documents` documents of the start, which weighs n."""
    loss, rho = resolve_loss(loss), documents / n
    return by_row(blended(rho, loss.kappa, n) if isinstance(loss, Blend) else constant(rho))


class CountClassifier(FamilyClassifier):
    """The base of all models of counts: sparse rows of numbers >= 0."""

    family: ClassVar = "words"

    def _auto_step(self, family, n, state):
        loss = self._known_loss()
        if not isinstance(loss, Blend):
            return super()._auto_step(family, n, state)
        return blended(self._family_step(family, n, state, False)(1.0), loss.kappa, n)

    def _auto_batch(self, batch):
        eager = self.step == "auto" or self.step(1.0) * batch.n_given > _CALM
        return words.batch_of(batch.n_given, len(batch.classes), eager)

    @property
    def mean_length_(self) -> float:
        return float(self.learner_.state.features.fixed["length"][0])


@savable
@documented
@with_options
class MultinomialNB(CountClassifier):
    """Multinomial naive Bayes over counts, trained under NLL, NCLL or hinge.

    p(x | y) is a multinomial over the features (words): each occurrence is drawn from the word
    distribution of the class. Counts may be real numbers, such as tf-idf weights. Sparse input
    stays sparse: a step costs only the words of its document.

    Plain naive Bayes is best for some data, an SVM for others. `fit` chooses the options left at
    "auto" on held-out rows (if there are few rows, on each part in turn), then trains on all rows.
    `chosen_` holds the choice; if you fix these options, you get the same model. The choice takes
    about as long as two fits and uses one thread, regardless of `n_jobs`. Nothing is tried with
    ``tol=None``, with `early_stopping`, in streams, for label sets, or if you give a prior, a start
    or a step: "auto" is then NCLL.

    Parameters
    ----------
    loss : {{"auto", "ncll", "hinge", "nll", "blend"}} or loss object, default="auto"
        What training minimises: the negative conditional log-likelihood (as logistic regression
        does), the hinge loss (as an SVM does), the negative log-likelihood (plain naive Bayes), or
        `Blend(kappa)`, NCLL plus kappa times NLL. "auto" tries NLL with decreasing pseudo-counts,
        NCLL and hinge. If you give a loss other than NLL, two ways to train are tried: a few small
        steps from the best plain naive Bayes, or until convergence.
    prior : {{"data", "laplace", "log"}} or Dirichlet, default="data"
        Pseudo-counts of each word in each class. "data" compares `Dirichlet()`, the prior for
        discriminative training (four times as strong for hinge), with 1, 0.1 and 0.01 times the
        usual count of a word. If nothing is tried, it is `Dirichlet()`. Under NLL it is "laplace".
        "laplace" and "log" are P1 (one of each word) and P2 (the logarithm of the size of the
        vocabulary) of the paper.
    {cv}
    {common}
    {unlabelled}

    Attributes
    ----------
    feature_log_prob_ : array of shape (n_classes, n_features)
        ``ln p(word | class)``.
    class_log_prior_ : array of shape (n_classes,)
        ``ln p(class)``.
    mean_length_ : float
        Mean number of words per training document; `sample` draws lengths around it.
    chosen_ : dict
        The options used (loss, prior, step, max_iter). If several were tried, also the number of
        held-out rows, and the best temperature for them.
    choice_ : list of dicts
        The candidates that were tried, and their scores on held-out rows.
    unlabelled_ : dict
        How unlabelled rows were used, if there were any: their number and weight, whether topics
        were used, and the log-loss of held-out labelled rows. These rows then also set
        `temperature_`.
    {attributes}

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from discem import MultinomialNB
    >>> texts = ["good film", "bad film", "good plot and good cast", "bad plot and bad cast"]
    >>> X = CountVectorizer().fit_transform(texts)
    >>> MultinomialNB(random_state=0).fit(X, ["+", "-", "+", "-"]).predict(X).tolist()
    ['+', '-', '+', '-']
    """

    loss: Auto | LossOption = "auto"  # type: ignore[assignment]
    max_iter: int = 100
    cv: Any = None
    unlabelled_weight: float | Auto = "auto"

    _attributes: ClassVar = (*CountClassifier._attributes, "chosen_", "choice_", "unlabelled_")

    def _check_fitted(self):
        for name in ("chosen_", "unlabelled_"):
            found = getattr(self, name, {})
            demand(isinstance(found, dict), f"{name} is not a dict")
            check_plain(name, found)
        check_choice(getattr(self, "choice_", Choice()))
        super()._check_fitted()

    def _check_options(self):
        super()._check_options()
        check_cv(self.cv)

    # --- choosing ---------------------------------------------------------------------------------

    @writes
    @spreads
    def fit(self, X: Table, y: Labels, sample_weight: Weights = None) -> Self:
        self._check_options()
        batch = self._new(self._defaults())._read_rows(rows_of(X, y, sample_weight))
        chosen, choice = self._choose(batch)
        model = self._new(chosen)

        def follow(model: MultinomialNB, record) -> bool:
            self._be(model, chosen, choice)
            return self._after_epoch(record)

        model.callback = follow
        try:
            CountClassifier.fit(model, X, y, sample_weight)
        finally:
            if model.__sklearn_is_fitted__():
                self._be(model, chosen, choice)
        if "temperature" in chosen and batch.targets.labelled.all():
            self.temperature_ = chosen["temperature"]
        return self

    fit.__doc__ = CountClassifier.fit.__doc__

    @writes
    def learn_batch(self, batch: Any) -> Self:
        if not self.__sklearn_is_fitted__():
            self.chosen_, self.choice_ = self._defaults(), Choice()
        return super().learn_batch(batch)

    learn_batch.__doc__ = CountClassifier.learn_batch.__doc__

    def _new(self, options: Options) -> MultinomialNB:
        """Return a model like this one, with the chosen options."""
        params = self.get_params(deep=False) | {"callback": None}  # a callback may not be copyable
        return type(self)(**params | {name: options[name] for name in options if name in params})

    def _be(self, model: MultinomialNB, chosen: dict[str, Any], choice: Choice) -> None:
        """Take over the fitted state of `model`, whose options were chosen."""
        self._adopt(model)
        self.chosen_, self.choice_ = chosen, choice

    def _defaults(self) -> dict[str, Any]:
        """Return the options for fits without a choice."""
        return {"loss": "ncll"} if self.loss == "auto" else {}

    def _known_loss(self):
        if self.loss != "auto":
            return resolve_loss(self.loss)
        return resolve_loss(getattr(self, "chosen_", {}).get("loss", "ncll"))

    def _choose(self, batch: Batch) -> tuple[dict[str, Any], Choice]:
        """Choose the best way to train on held-out rows; return it, and what was tried."""
        left_open = self.prior == "data" and self.step == "auto" and self.init == "generative"
        plain = self.loss != "auto" and isinstance(resolve_loss(self.loss), NLL)
        if not left_open or plain or self.tol is None or self.early_stopping:
            return self._defaults(), Choice()
        check_cv(self.cv, sampled=batch.whole is not None)
        rng = check_random_state(self.random_state)
        codes = batch.targets.codes
        parts = splits(codes, batch.given, rng, cv=self.cv) if batch.targets.plain else []
        if not parts:
            return self._defaults(), Choice()
        y, seed = batch.classes[np.maximum(codes, 0)], rng.randint(2**31 - 1)
        apart = {"random_state": seed, "tol": None, "verbose": 0, "unlabelled_weight": 0.0}
        apart |= {"n_jobs": None, "engine": None}

        def train(options: Options, part: Split, watch: Callable[[Any], bool]) -> MultinomialNB:
            model = self._new(options | apart)
            model.callback = lambda model, _: watch(model)
            return CountClassifier.fit(model, batch.X, y, part.weights)

        def score(_: Options, part: Split, model: MultinomialNB) -> np.ndarray:
            return model.learner_.score(batch.rows, part.held)

        def keep(options: Options, model: MultinomialNB, mark: Mark | None) -> None:
            self._be(model, options, chooser.choice())
            if mark is not None:
                self.temperature_ = mark.safe_temperature

        chooser = Chooser(parts, train, score, more_accurate, keep, of=6, verbose=self.verbose)
        best = self._best_of(chooser, batch)
        chosen = best.options | {"max_iter": best.best_epoch, "tol": None}
        chosen |= {"temperature": best.mark.safe_temperature, "held_out": chooser.held_out}
        return chosen, chooser.choice()

    def _best_of(self, chooser: Chooser, batch: Batch) -> Result:
        """Compare plain naive Bayes, a few small steps from its best prior, and full training."""
        n = batch.n_given
        most = min(most_epochs(n), self.max_iter)
        typical = typical_count(batch.rows, batch.given)
        start = chooser.best_of(
            {"loss": "nll", "prior": Dirichlet(alpha * typical), "max_iter": 1} for alpha in _PLAIN
        )
        losses = ["ncll", "hinge"] if self.loss == "auto" else [self.loss]

        def discriminative() -> Iterator[Options]:
            few = {"loss": losses[0], "prior": start.options["prior"]}
            yield few | {"step": _step(losses[0], 1.0, n), "max_iter": min(_FEW, most)}
            for loss in losses:
                hinge = isinstance(resolve_loss(loss), Hinge)
                prior = Dirichlet(strength=_HINGE) if hinge else Dirichlet()
                step = _step(loss, _EAGER, n)
                yield {"loss": loss, "prior": prior, "step": step, "max_iter": most}

        contends = self.loss == "auto" and batch.targets.labelled.all()
        return chooser.best_of(discriminative(), start if contends else None)

    # --- unlabelled rows --------------------------------------------------------------------------

    def _row_weights(self, targets, classes, family):
        weights = super()._row_weights(targets, classes, family)
        return weights * (targets.codes >= 0) if self._postpones(targets) else weights

    def _postpones(self, targets: Targets) -> bool:
        """Return whether unlabelled rows wait until labelled rows are learnt.

        An NLL step of an unlabelled row replaces a share of all counts, including those that
        separate the classes.
        """
        return targets.plain and not self._is_generative() and not targets.labelled.all()

    def _finish(self, batch, rng):
        if self._postpones(batch.targets) and self.unlabelled_weight != 0:
            from ._unlabelled import learn_from_unlabelled

            codes = batch.targets.codes
            own = (codes >= 0) | (batch.given > 0)
            weights = batch.weights[own]
            self.unlabelled_ = learn_from_unlabelled(self, batch.X[own], codes[own], weights, rng)

    @property
    def feature_log_prob_(self) -> np.ndarray:
        return self.log_prob_of(slice(None))

    @reads
    def log_prob_of(self, columns: Any) -> np.ndarray:
        """Return ``ln p(word | class)`` of the given words, as (n_classes, n_columns)."""
        check_is_fitted(self)
        return log_probabilities(self.learner_.model.features, columns)

    def _words(self) -> tuple[np.ndarray, Any]:
        """Return ``ln p(word | class)``, and the names of the words or else their numbers."""
        log_p = self.feature_log_prob_
        return log_p, getattr(self, "feature_names_in_", range(log_p.shape[1]))

    @property
    def class_log_prior_(self) -> np.ndarray:
        return np.log(self.class_prior_)
