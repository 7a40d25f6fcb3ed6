"""What people reach for when the answer is a number, with its defaults, and how sure it is.

A peer that gives a number alone is given a normal distribution around it. Its variance is that of
rows held out of the training rows, by the share of their cells that is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from table_peers import COPIES, MOST_HOLES, Arrays

SHARES = (0.0, 0.2, 0.4, 0.6)  # of cells that are missing, for which a variance is found
FOLDS = 3
LEVEL = 0.9  # of intervals
_LEVELS = 254  # that boosting takes; rarer ones are one level
_ALPHAS = np.logspace(-2, 4, 13)


class OnArrays:
    """A regressor of arrays, made from the places of the numbers and those of the categories."""

    def __init__(self, make: Callable[[list[int], list[int]], Any], limited: bool = False):
        self.make, self.limited = make, limited

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> OnArrays:
        self._arrays = Arrays().fit(X)
        self._numbers, categories = len(self._arrays.numbers), len(self._arrays.levels)
        places = [*range(self._numbers)], [*range(self._numbers, self._numbers + categories)]
        self.model = self.make(*places)
        self.model.fit(self.array(X), y)
        return self

    def array(self, X: pd.DataFrame) -> np.ndarray:
        array = self._arrays.transform(X)
        if self.limited:
            array[:, self._numbers :] = np.minimum(array[:, self._numbers :], _LEVELS)
        return array

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(self.array(X))


class Holes:
    """Trains on the rows and on copies of them, each with its own share of cells removed."""

    def __init__(self, model: OnArrays, seed: int):
        self.model, self.seed = model, seed

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Holes:
        rng = np.random.default_rng(self.seed)
        many = pd.concat([X] * COPIES, ignore_index=True)
        share = rng.uniform(0, MOST_HOLES, size=(len(many), 1))
        copies = many.mask(rng.uniform(size=many.shape) < share)
        self.model.fit(pd.concat([X, copies], ignore_index=True), np.tile(y, COPIES + 1))
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(X)


# --- how sure -------------------------------------------------------------------------------------


class Around:
    """A normal distribution around what a regressor says, see the top of this file."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Around:
        self.model = self.make().fit(X, y)
        return self

    def look(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        """Find the variances; it is no part of the time of a fit."""
        squares: list[list[np.ndarray]] = [[] for _ in SHARES]
        for train, held in KFold(FOLDS, shuffle=True, random_state=seed).split(X):
            model = self.make().fit(X.iloc[train], y[train])
            for share, own in zip(SHARES, squares, strict=True):
                found = model.predict(without(X.iloc[held], share, seed))
                own.append((found - y[held]) ** 2)
        self.variances = np.array([np.concatenate(own).mean() for own in squares])

    def told(self, X: pd.DataFrame, y: np.ndarray, share: float) -> tuple[np.ndarray, ...]:
        """Mean, -ln p(y) and whether y is within the interval, of each row."""
        mean = self.model.predict(X)
        deviation = np.sqrt(np.interp(share, SHARES, self.variances))
        return normal(mean, np.full(len(y), max(deviation, 1e-9)), y)


def normal(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mean, -ln p(y) and whether y is within the interval, of normal distributions."""
    reach = norm.ppf(0.5 + LEVEL / 2) * std
    return mean, -norm.logpdf(y, mean, std), np.abs(y - mean) <= reach


def without(X: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Rows with a share of their cells removed."""
    return X.mask(np.random.default_rng(1000 + seed).random(X.shape) < share)


# --- ridge ----------------------------------------------------------------------------------------


def ridge(imputer: Any = None, indicators: bool = False) -> OnArrays:
    """Imputed, scaled, one-hot; the imputer of numbers (default: the mean) sees scaled ones."""
    imputer = imputer or SimpleImputer(keep_empty_features=True)
    common = SimpleImputer(strategy="most_frequent", keep_empty_features=True)

    def make(numbers: list[int], categories: list[int]) -> Any:
        parts = [
            (make_pipeline(StandardScaler(), imputer), numbers),
            (make_pipeline(common, OneHotEncoder(handle_unknown="ignore")), categories),
        ]
        if indicators:
            parts.append((MissingIndicator(error_on_new=False), numbers + categories))
        columns = make_column_transformer(*parts, sparse_threshold=0.0)
        return make_pipeline(columns, RidgeCV(_ALPHAS))

    return OnArrays(make)


# --- boosting -------------------------------------------------------------------------------------


def boosting(seed: int, **options: Any) -> OnArrays:
    return OnArrays(
        lambda _, categories: HistGradientBoostingRegressor(
            categorical_features=categories or None, random_state=seed, **options
        ),
        limited=True,
    )


class Quantiles:
    """Boosting of the mean, and of the two ends of the interval by the quantile loss."""

    def __init__(self, seed: int):
        ends = (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)
        self.models = [boosting(seed)] + [boosting(seed, loss="quantile", quantile=q) for q in ends]

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Quantiles:
        for model in self.models:
            model.fit(X, y)
        return self

    def told(self, X: pd.DataFrame, y: np.ndarray, share: float) -> tuple[np.ndarray, ...]:
        mean, low, high = (model.predict(X) for model in self.models)
        return mean, np.full(len(y), np.nan), (low <= y) & (y <= high)


class CatBoost:
    """CatBoost with a variance of its own for each row."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> CatBoost:
        from catboost import CatBoostRegressor

        self._texts = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
        self.model = CatBoostRegressor(
            loss_function="RMSEWithUncertainty", cat_features=self._texts, random_seed=self.seed,
            thread_count=1, verbose=False, allow_writing_files=False,
        )  # fmt: skip
        self._unit = y.mean(), max(y.std(), 1e-9)
        self.model.fit(self._frame(X), (y - self._unit[0]) / self._unit[1])
        return self

    def _frame(self, X: pd.DataFrame) -> pd.DataFrame:
        texts = {
            name: X[name].astype(object).where(X[name].notna(), "none") for name in self._texts
        }
        return X.assign(**{name: own.astype(str) for name, own in texts.items()})

    def told(self, X: pd.DataFrame, y: np.ndarray, share: float) -> tuple[np.ndarray, ...]:
        shift, scale = self._unit
        mean, variance = self.model.predict(self._frame(X)).T
        return normal(shift + scale * mean, scale * np.sqrt(np.maximum(variance, 1e-12)), y)


class NGBoost:
    """NGBoost, its cells imputed by the mean and one-hot."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> NGBoost:
        from ngboost import NGBRegressor

        self._columns = ridge(indicators=True)
        self._columns.fit(X, y)
        model = NGBRegressor(random_state=self.seed, verbose=False)
        self.model = model.fit(self._features(X), y)
        return self

    def _features(self, X: pd.DataFrame) -> np.ndarray:
        return self._columns.model[0].transform(self._columns.array(X))

    def told(self, X: pd.DataFrame, y: np.ndarray, share: float) -> tuple[np.ndarray, ...]:
        found = self.model.pred_dist(self._features(X))
        return normal(found.loc, np.maximum(found.scale, 1e-9), y)


# --- all ------------------------------------------------------------------------------------------

PEERS: dict[str, Callable[[int], Any]] = {
    "ridge": lambda seed: Around(lambda: ridge(indicators=True)),
    "kNN, ridge": lambda seed: Around(lambda: ridge(KNNImputer(keep_empty_features=True))),
    "HGB": lambda seed: Around(lambda: boosting(seed)),
    "HGB, holes": lambda seed: Around(lambda: Holes(boosting(seed), seed)),
    "HGB, quantiles": Quantiles,
    "CatBoost": CatBoost,
    "NGBoost": NGBoost,
}
