"""One model of a table and its numeric answers; see `TableRegressor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from .. import models
from .._checks import check_count, demand
from .._kinds import savable
from ..engines import Data, Rule, Sequential, with_jobs
from ..io.rows import Rows, dense_rows
from ..io.tables import Layout
from ..losses import NLL
from ..models.regression import Regression, begin, units_of_answers
from ..priors import Default, Planes
from ..projections import Interior
from ..schedules import power
from ..targets import UNLABELLED, Numbers, labels
from ..training import Learner, Plan, train
from ._candidates import HIDDEN
from ._components import k_means
from ._options import of
from ._tables import Encoded, Hider, family_of_table, width

_FAR = 2.0  # weight of answers relative to cells when clustering
_COPIES = 8  # exponent of a correlation, to detect coordinates that copy others
_QUIET = 0.02  # the weight of a row without an answer
_BATCH = 64  # rows per step of a stream


class Normals(NamedTuple):
    """The predicted answers of rows: mixtures of normal distributions."""

    shares: np.ndarray  # (n, M) p(component | x)
    means: np.ndarray  # (q, n, M)
    variances: np.ndarray  # (q, n, M)


@savable
@dataclass
class PlanesModel:
    """A mixture of planes over the columns of a table, before or after training."""

    layout_: Layout
    learner_: Learner
    hide: float = HIDDEN  # the largest share of the cells of a row that training hides

    @classmethod
    def start(
        cls, table: Encoded, y: np.ndarray, weights: np.ndarray, size: int, loss: Any, rng: Any,
        hide: float = HIDDEN,
    ) -> PlanesModel:  # fmt: skip
        """Return the model at the start of training: at clusters of rows and answers."""
        family = family_of_table(table.layout)
        rows, d = table.view(), width(table.layout)
        known = ~np.isnan(y).all(axis=1)
        shift, scale = units_of_answers(y, weights)
        far = np.nan_to_num((y - shift) / scale)
        points = np.hstack([_alone(family.points(rows, weights, d), weights), _FAR * far])
        codes, found = k_means(points, weights * known, size, rng)
        count = max(found, 1)
        tally = models.collect(family, rows, labels(codes), weights, d, count)
        alone = np.zeros(len(codes), dtype=np.int64)

        def together() -> Any:
            return models.collect(family, rows, labels(alone), weights, d, 1).features

        prior, _ = family.resolve_prior(Default(), False, d)
        prior = family.complete_prior(prior, rows, [(codes, weights)], float(count))
        prior = family.prior_of_components(prior, together, tally.features)
        mixture = models.start(tally, prior, models.ClassPrior(), "generative")
        state = begin(mixture, _rows(table, y), codes, weights * known, Planes())
        spread = max(float(weights.sum()), 1.0)
        rule = Rule(loss, Interior(), power(0.1, 400.0, 0.9), spread, _BATCH, by_row=True)
        return cls(table.layout, Learner(state, rule), hide)

    def train(
        self, table: Encoded, y: np.ndarray, weights: np.ndarray, rng: Any, plan: Plan,
        n_jobs: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        """Take steps of all rows until too little is left to gain."""
        self.learner_.engine = with_jobs(Sequential(), n_jobs, device)
        # a model fitted to all cells also fits each subset of them: NLL needs none hidden
        hides = self.hide > 0.0 and not isinstance(self.learner_.rule.loss, NLL)
        plan = replace(plan, whole=True, hide=self._hider() if hides else None)
        data, nothing = _data(table, y, weights), np.zeros(0, dtype=np.int64)
        train(self.learner_, data, np.flatnonzero(data.weights > 0), nothing, plan, rng)

    def learn(self, table: Encoded, y: np.ndarray, weights: np.ndarray, device: Any = None) -> None:
        """Take one pass over the next rows of a stream."""
        self.learner_.engine = with_jobs(Sequential(), None, device)
        rng = np.random.RandomState(self.learner_.t % 2**31)
        data = _data(table, y, weights)
        self.learner_.own()
        self.learner_.average()
        rows = self._hider()(data.rows, rng)
        self.learner_.batch(data._replace(rows=rows), np.flatnonzero(data.weights > 0))

    def _hider(self) -> Hider:
        return Hider(self.layout_, self.hide)

    def answers(self, rows: Rows, device: Any = None) -> Normals:
        """Return the predicted answers of rows."""
        model: Regression = self.learner_.model
        nothing = np.full((rows.n_rows, len(model.answer.mass)), np.nan)
        rows = Rows((*rows.parts[: len(self.layout_.parts)], dense_rows(nothing)))
        parts = _asked(model, rows, lambda there, batch: there.normals(batch), device)
        shares, means, variances = zip(*parts, strict=True)
        return Normals(
            np.concatenate(shares), np.concatenate(means, 1), np.concatenate(variances, 1)
        )

    def log_density(self, rows: Rows, device: Any = None) -> np.ndarray:
        """Return ``ln p(x)`` of rows."""
        model: Regression = self.learner_.model
        mixture = model.classes_alone
        parts = _asked(mixture, rows, lambda there, batch: there.joint(batch), device)
        return logsumexp(np.concatenate(parts), axis=1)

    n_iter_ = of("learner_.epochs")
    history_ = of("learner_.history")
    stream_ = of("learner_.stream")
    families_ = of("layout_.families_")

    @property
    def n_features_in_(self) -> int:
        return len(self.layout_.columns)

    @property
    def feature_names_in_(self) -> np.ndarray:
        if not self.layout_.named:
            raise AttributeError("the columns of an array have no names")
        return np.array([str(column.name) for column in self.layout_.columns], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _check_fitted(self) -> None:
        demand(isinstance(self.layout_, Layout), "it does not know its columns")
        self.layout_.check()
        demand(isinstance(self.learner_, Learner), "it has no learner")
        demand(type(self.learner_.state) is Regression, "it holds no mixture of planes")
        sizes = width(self.layout_)
        plane = self.learner_.state.answer.values.get("plane", np.zeros(0))
        demand(plane.ndim == 3, "it has no planes")
        check_count("answers", plane.shape[1], least=1)
        features = 1 + sum(int(np.sum(size)) for size in sizes)
        self.learner_.check(plane.shape[2], (*sizes, (features, plane.shape[1])))


def _asked(model: Any, rows: Rows, ask: Callable[[Any, Any], Any], device: Any) -> list[Any]:
    """Evaluate a model on rows, some at a time, on the device."""
    engine = with_jobs(Sequential(), None, device)
    there = engine.placed(model)
    parts = engine.feed(rows, rows, there)
    return [engine.fetched(ask(there, there.read(some))) for some in parts]


def _alone(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Scale coordinates so that copies of one coordinate count once together."""
    both = (points * weights[:, None]).T @ points
    size = np.maximum(np.sqrt(np.diagonal(both)), 1e-150)
    alike = np.maximum(both / size[:, None] / size, 0.0) ** _COPIES
    return points / np.sqrt(np.maximum(alike.sum(axis=0), 1.0))


def _rows(table: Encoded, y: np.ndarray) -> Rows:
    return Rows((*table.view().parts, dense_rows(y)))


def _data(table: Encoded, y: np.ndarray, weights: np.ndarray) -> Data:
    """Return rows and their answers; rows without an answer get a small weight."""
    known = ~np.isnan(y).all(axis=1)
    targets = Numbers(np.where(known, 0, UNLABELLED))
    return Data(_rows(table, y), targets, np.where(known, 1.0, _QUIET) * weights)
