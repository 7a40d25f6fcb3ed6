"""The components of a mixture: where they begin, clusters of rows, and how many are best."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import models
from ..engines import Sequential, one_thread_each
from ..exceptions import OptionError
from ..targets import Targets, labels, soft_labels
from ._choice import Choice, Chooser, Mark, Options, of_all_classes
from ._folds import Split, check_cv, splits
from ._tables import take

if TYPE_CHECKING:
    from ._batch import Batch

_SIZES = (1, 2, 4, 8)  # numbers of components to try
_CLUSTERED = 3_000  # rows of a class that its components are found on: more move them little


def find_components(
    points: Any, targets: Targets, weights: np.ndarray, wanted: list[int], stream: bool, rng
) -> tuple[Targets, list[int]]:
    """Targets that name components, found by k-means in each class, and how many each class has.

    In a stream a class keeps all that it is `wanted` to have, for more rows will come.
    """
    sizes, places = [], []
    share = targets.even_shares(len(wanted))
    for k, size in enumerate(wanted):
        place, found = k_means(points, weights * share[:, k], size, rng)
        places.append(place)
        sizes.append(size if stream else max(found, 1))
    return _name_components(targets, np.cumsum([0, *sizes]), places), sizes


def _name_components(targets: Targets, first: np.ndarray, places: list[np.ndarray]) -> Targets:
    """Targets that name components; `places` are those of the rows, were they of each class."""
    n = len(targets.codes)
    if targets.plain:
        codes = np.full(n, -1, dtype=np.int64)
        for k, place in enumerate(places):
            own = targets.codes == k
            codes[own] = first[k] + place[own]
        return labels(codes)
    shares, share = np.zeros((n, first[-1])), targets.even_shares(len(places))
    for k, place in enumerate(places):
        shares[np.arange(n), first[k] + place] = share[:, k]
    return soft_labels(shares)


def collect_nearest(
    rows: Any, targets: Targets, weights: np.ndarray, *, parts: Any, first, n_features: Any
) -> models.Tally:
    """Add up statistics by component: in its class, that which makes a row most probable."""
    scores = joint_scores(parts, rows)
    places = [scores[:, a:b].argmax(axis=1) for a, b in pairwise(first)]
    components = _name_components(targets, first, places)
    return models.collect(parts.family, rows, components, weights, n_features, int(first[-1]))


def joint_scores(model: Any, rows: Any) -> np.ndarray:
    """``ln p(y, component, x)`` of all rows, (n, M): those of the model whose classes these are."""
    alone = np.arange(model.first[-1] + 1)
    return Sequential().score(model._replace(first=alone), rows)


def k_means(points, weight, n_clusters: int, rng) -> tuple[np.ndarray, int]:
    """The cluster of each row of a weight > 0, and the number of clusters found."""
    from sklearn.cluster import KMeans

    place = np.zeros(len(weight), dtype=np.int64)
    own = np.flatnonzero(weight > 0)
    n_clusters = min(n_clusters, len(own))
    if n_clusters < 2 or not points.shape[1]:  # rows without columns are all alike
        return place, min(n_clusters, 1)
    some = own if len(own) <= _CLUSTERED else rng.choice(own, _CLUSTERED, replace=False)
    means = KMeans(n_clusters, n_init=2, random_state=rng.randint(2**31))
    # clusters of a few thousand rows are found sooner than threads have met
    with one_thread_each(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct rows than clusters
        found = means.fit(points[some], sample_weight=weight[some]).predict(points[own])
    names, place[own] = np.unique(found, return_inverse=True)
    return place, len(names)


def choose_size(mixture: Any, batch: Batch) -> tuple[int, Choice]:
    """The number of components with the least log-loss on rows held out, and what was tried."""
    X, y, codes = batch.X, batch.y, batch.targets.codes
    if not batch.targets.plain:
        raise OptionError("n_components='auto' goes with plain labels: give a number")
    check_cv(mixture.cv, sampled=batch.whole is not None)
    rng = check_random_state(mixture.random_state)
    parts = splits(codes, batch.given, rng, cv=mixture.cv, most=len(codes))
    if not parts:
        return 1, Choice()
    apart = {"callback": None, "verbose": 0, "unlabelled": None}

    def train(options: Options, part: Split, _) -> Any:
        params = mixture.get_params(deep=False) | options | apart
        params |= {"engine": None, "random_state": rng.randint(2**31)}
        model, rows = type(mixture)(**params), part.train
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(take(X, rows), y[rows], part.weights[rows])

    def score(_: Options, part: Split, model: Any) -> np.ndarray:
        scores = model.predict_joint_log_proba(take(X, part.held))
        return of_all_classes(scores, model.classes_, batch.classes)

    def keep(_: Options, model: Any, mark: Mark | None) -> None:
        mixture._adopt(model)
        mixture.choice_ = chooser.choice()

    def fits(one: Mark, other: Mark) -> bool:
        return bool(one.untempered.sum() < other.untempered.sum())

    verbose = mixture.verbose
    chooser = Chooser(parts, train, score, fits, keep, of=len(_SIZES), verbose=verbose)
    best = chooser.best_of({"n_components": size} for size in _SIZES)
    return best.options["n_components"], chooser.choice()
