"""How many components the classes of a mixture have, where that is left at "auto"."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..exceptions import OptionError
from ._batch import Batch
from ._choice import Choice, Chooser, Mark, Options, of_all_classes
from ._folds import Split, check_cv, splits
from ._tables import take

_SIZES = (1, 2, 4, 8)


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
