"""Methods of a fitted mixture that concern its components."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..exceptions import OptionError
from ..families import gaussian, normal
from ..families._counts import log_probabilities
from ._ask import Asks
from ._components import joint_scores
from ._explain import ExplainsRows
from ._joint import Joint
from ._pieces import by_partition
from ._tables import NUMBERS, singles
from ._threads import reads
from ._types import Table


class MixtureAnswers(Asks, ExplainsRows, Joint):
    """Methods for the components of a mixture."""

    @by_partition(lambda model: int(model.n_components_.sum()))
    @reads
    def responsibilities(self, X: Table) -> np.ndarray:
        """Return ``p(class, component | x)``, (n_samples, n_components), as in `weights_`."""
        check_is_fitted(self)
        posterior = self.predict_proba(X)
        model, code = self.learner_.model, self._code()
        joint = joint_scores(model, self._rows(X))
        top = np.maximum.reduceat(joint, model.first[:-1], axis=1)
        share = np.exp(joint - top[:, code])
        share /= np.add.reduceat(share, model.first[:-1], axis=1)[:, code]
        return share * posterior[:, code]

    @by_partition(dtype=lambda model: np.int64)
    def predict_component(self, X: Table) -> np.ndarray:
        """Return the most probable component of each row, as an index into `weights_`."""
        return self.responsibilities(X).argmax(axis=1)

    def _code(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.classes_)), self.n_components_)

    def _draw(self, codes, rng):
        model, weights = self.learner_.model, self.weights_
        drawn = np.empty(len(codes), dtype=np.int64)
        for k in np.unique(codes):
            first, last = model.first[k : k + 2]
            own = codes == k
            drawn[own] = first + rng.choice(last - first, size=own.sum(), p=weights[first:last])
        return super()._draw(drawn, rng)

    def _single_columns(self, rows):
        if not hasattr(self, "layout_"):
            return super()._single_columns(rows)
        names, layout = [column.name for column in self.layout_.columns], self.layout_
        return names, lambda some, columns: singles(some, layout, columns)

    def to_linear(self) -> NoReturn:
        """Raise an error: the scores of a mixture are not a linear function of any statistics."""
        raise OptionError(
            f"to_linear: a {type(self).__name__} has no linear form; GaussianNB and MultinomialNB "
            "have one"
        )

    @property
    def families_(self) -> dict:
        check_is_fitted(self)
        if not hasattr(self, "layout_"):
            raise AttributeError("only models of tables have families_")
        return self.layout_.families_

    @property
    def family_(self) -> str:
        return self.learner_.state.family.name

    @property
    def covariance_(self) -> str:
        """The covariance that was used, by its name."""
        check_is_fitted(self)
        first = self.learner_.state.family.factors[0].name
        return next((each for each, name in NUMBERS.items() if name == first), "diag")

    @property
    def n_components_(self) -> np.ndarray:
        check_is_fitted(self)
        return np.diff(self.learner_.model.first)

    @property
    @reads
    def component_class_(self) -> np.ndarray:
        return self.classes_[self._code()]

    @property
    @reads
    def weights_(self) -> np.ndarray:
        check_is_fitted(self)
        model = self.learner_.model
        return model.classes.counts / model.class_counts[self._code()]

    @property
    @reads
    def means_(self) -> np.ndarray:
        return self._moments()[0]

    @property
    @reads
    def variances_(self) -> np.ndarray:
        spread = self._moments()[1]
        return spread if spread.ndim == 2 else np.diagonal(spread, axis1=1, axis2=2).copy()

    @property
    @reads
    def covariances_(self) -> np.ndarray:
        spread = self._moments()[1]
        return spread[:, :, None] * np.eye(spread.shape[1]) if spread.ndim == 2 else spread

    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return means, and variances or covariances, of components of numbers."""
        family = gaussian if self.covariance_ == "diag" else normal
        return family.moments(self._features_of(NUMBERS[self.covariance_]))

    @property
    @reads
    def component_log_prob_(self) -> np.ndarray:
        return log_probabilities(self._features_of("words"))

    @property
    def _words(self) -> Any:
        """Return ``ln p(word | class)``, averaged over components, and the words."""
        log_p = self.component_log_prob_ + np.log(self.weights_)[:, None]
        by_class = np.logaddexp.reduceat(log_p, self.learner_.model.first[:-1])
        names = getattr(self, "feature_names_in_", range(by_class.shape[1]))
        return lambda: (by_class, names)

    @property
    @reads
    def mean_length_(self) -> float:
        return float(self._features_of("words").fixed["length"][0])

    def _features_of(self, family: str) -> Any:
        check_is_fitted(self)
        if self.family_ != family:
            raise AttributeError(f"only components of family {family!r} have this attribute")
        return self.learner_.model.features

    def _outer(self) -> tuple[str, np.ndarray]:
        """p(class, component)."""
        return "component", self.class_prior_[self._code()] * self.weights_
