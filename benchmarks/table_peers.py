"""What people reach for with a table of mixed columns and missing cells, with its defaults.

Each takes a data frame as it is. Logistic regression and naive Bayes have their missing cells
imputed; boosting takes missing cells and categories natively.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn import naive_bayes
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

COPIES, MOST_HOLES = 4, 0.8  # of the training rows, and of the cells of a copy


class Arrays:
    """Frames as arrays of floats: numbers first, then the numbers of levels, frequent ones first.

    A missing cell is NaN, a level that training did not have is -1. Columns without any value are
    left out: HistGradientBoosting cannot take them.
    """

    def fit(self, X: pd.DataFrame) -> Arrays:
        X = X.loc[:, X.notna().any()]
        is_number = {name: pd.api.types.is_numeric_dtype(X[name]) for name in X}
        self.numbers = [name for name in X if is_number[name]]
        self.levels = {
            name: pd.Index(X[name].astype(object).value_counts().index)
            for name in X
            if not is_number[name]
        }
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        columns = [X[name].to_numpy(dtype=float) for name in self.numbers]
        for name, levels in self.levels.items():
            codes = levels.get_indexer(X[name].astype(object)).astype(float)
            columns.append(np.where(X[name].isna(), np.nan, codes))
        return np.column_stack(columns)


class OnArrays:
    """A classifier of arrays, made from the places of the numbers and those of the categories."""

    def __init__(self, make: Callable[[list[int], list[int]], Any]):
        self.make = make

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> OnArrays:
        self._arrays = Arrays().fit(X)
        numbers, categories = len(self._arrays.numbers), len(self._arrays.levels)
        self._model = self.make([*range(numbers)], [*range(numbers, numbers + categories)])
        self._model.fit(self._arrays.transform(X), y)
        self.classes_ = self._model.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self._model.predict_proba(self._arrays.transform(X))


class Holes:
    """Trains on the rows and on copies of them, each with its own share of cells removed."""

    def __init__(self, model: Any, seed: int):
        self.model, self.seed = model, seed

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Holes:
        rng = np.random.default_rng(self.seed)
        many = pd.concat([X] * COPIES, ignore_index=True)
        share = rng.uniform(0, MOST_HOLES, size=(len(many), 1))
        copies = many.mask(rng.uniform(size=many.shape) < share)
        self.model.fit(pd.concat([X, copies], ignore_index=True), np.tile(y, COPIES + 1))
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(X)


# --- logistic regression --------------------------------------------------------------------------


def logistic(imputer: Any = None, indicators: bool = False) -> OnArrays:
    """Imputed, scaled, one-hot; the imputer of numbers (default: the mean) sees scaled ones."""
    imputer = imputer or SimpleImputer(keep_empty_features=True)

    def make(numbers: list[int], categories: list[int]) -> Any:
        parts = [
            (make_pipeline(StandardScaler(), imputer), numbers),
            (make_pipeline(_commonest(), OneHotEncoder(handle_unknown="ignore")), categories),
        ]
        if indicators:
            parts.append((MissingIndicator(error_on_new=False), numbers + categories))
        dense = 0.0 if indicators else 0.3  # no indicator at all cannot stand beside what is sparse
        columns = make_column_transformer(*parts, sparse_threshold=dense)
        return make_pipeline(columns, LogisticRegression(max_iter=2000))

    return OnArrays(make)


def _commonest() -> Any:
    return SimpleImputer(strategy="most_frequent", keep_empty_features=True)


# --- boosting -------------------------------------------------------------------------------------


class Boosting:
    """HistGradientBoosting, which takes at most 255 levels: rarer ones are one level here."""

    def __init__(self, categories: list[int], **options: Any):
        self.categories = categories
        self._model = HistGradientBoostingClassifier(
            categorical_features=categories or None, **options
        )

    def fit(self, X: np.ndarray, y: np.ndarray) -> Boosting:
        self._model.fit(self._limited(X), y)
        self.classes_ = self._model.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._model.predict_proba(self._limited(X))

    def _limited(self, X: np.ndarray) -> np.ndarray:
        X = X.copy()
        X[:, self.categories] = np.minimum(X[:, self.categories], 254)
        return X


def boosting(seed: int, **options: Any) -> OnArrays:
    return OnArrays(lambda _, categories: Boosting(categories, random_state=seed, **options))


class LightGBM:
    """LightGBM's classifier, told which columns are categories."""

    def __init__(self, categories: list[int], seed: int):
        from lightgbm import LGBMClassifier

        self.categories = categories
        self._model = LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)

    def fit(self, X: np.ndarray, y: np.ndarray) -> LightGBM:
        self._model.fit(X, y, categorical_feature=self.categories)
        self.classes_ = self._model.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._model.predict_proba(X)


def lightgbm(seed: int) -> OnArrays:
    import lightgbm  # noqa: F401, so that an absent one is known before there is a fit

    return OnArrays(lambda _, categories: LightGBM(categories, seed))


class XGBoost:
    """XGBoost's classifier, which takes classes from 0 on, and an unknown level as missing."""

    def __init__(self, categories: list[int], seed: int):
        self.categories, self.seed = categories, seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> XGBoost:
        from xgboost import XGBClassifier

        self.classes_, codes = np.unique(y, return_inverse=True)
        kinds = ["c" if j in self.categories else "q" for j in range(X.shape[1])]
        self._model = XGBClassifier(
            random_state=self.seed, n_jobs=1, enable_categorical=True, feature_types=kinds
        )
        self._model.fit(self._known(X), codes)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._model.predict_proba(self._known(X))

    def _known(self, X: np.ndarray) -> np.ndarray:
        X = X.copy()
        X[:, self.categories] = np.where(X[:, self.categories] < 0, np.nan, X[:, self.categories])
        return X


def xgboost(seed: int) -> OnArrays:
    import xgboost  # noqa: F401

    return OnArrays(lambda _, categories: XGBoost(categories, seed))


class CatBoost:
    """CatBoost's classifier, told which columns are categories: whole numbers, -2 where missing."""

    def __init__(self, categories: list[int], seed: int, **options: Any):
        from catboost import CatBoostClassifier

        self.categories = categories
        self._model = CatBoostClassifier(
            random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False, **options
        )

    def fit(self, X: np.ndarray, y: np.ndarray) -> CatBoost:
        self._model.fit(self._frame(X), y, cat_features=self.categories)
        self.classes_ = self._model.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._model.predict_proba(self._frame(X))

    def _frame(self, X: np.ndarray) -> pd.DataFrame:
        columns = dict(enumerate(X.T))
        for j in self.categories:
            columns[j] = np.where(np.isnan(X[:, j]), -2.0, X[:, j]).astype(int)
        return pd.DataFrame(columns)


def catboost(seed: int, **options: Any) -> OnArrays:
    import catboost  # noqa: F401

    return OnArrays(lambda _, categories: CatBoost(categories, seed, **options))


def ebm(seed: int) -> OnArrays:
    """The explainable boosting machine of interpret: a sum of functions of columns and of pairs."""
    from interpret.glassbox import ExplainableBoostingClassifier

    def make(numbers: list[int], categories: list[int]) -> Any:
        kinds = ["continuous"] * len(numbers) + ["nominal"] * len(categories)
        return ExplainableBoostingClassifier(feature_types=kinds, random_state=seed, n_jobs=1)

    return OnArrays(make)


# --- naive Bayes ----------------------------------------------------------------------------------


class NaiveBayes:
    """GaussianNB of the numbers and CategoricalNB of the categories, imputed, with one prior.

    Unknown levels are taken for missing.
    """

    def __init__(self, numbers: list[int], categories: list[int]):
        self.numbers, self.categories = numbers, categories

    def fit(self, X: np.ndarray, y: np.ndarray) -> NaiveBayes:
        self.classes_, size = np.unique(y, return_counts=True)
        self._prior = np.log(size / size.sum())
        self._parts = []
        mean = make_pipeline(StandardScaler(), SimpleImputer(keep_empty_features=True))
        for columns, imputer, model in (
            (self.numbers, mean, naive_bayes.GaussianNB()),
            (self.categories, _commonest(), naive_bayes.CategoricalNB()),
        ):
            if columns:
                model.fit(imputer.fit_transform(X[:, columns]), y)
                self._parts.append((columns, imputer, model))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        X = X.copy()
        X[:, self.categories] = np.where(X[:, self.categories] < 0, np.nan, X[:, self.categories])
        scores = np.tile(self._prior, (len(X), 1))
        for columns, imputer, model in self._parts:
            joint = model.predict_joint_log_proba(imputer.transform(X[:, columns]))
            scores += joint - self._prior
        return softmax(scores, axis=1)


# --- all ------------------------------------------------------------------------------------------

PEERS: dict[str, Callable[[int], Any]] = {
    "LR": lambda seed: logistic(),
    "LR, indicators": lambda seed: logistic(indicators=True),
    "LR, kNN": lambda seed: logistic(KNNImputer(keep_empty_features=True)),
    "HGB 60": lambda seed: boosting(seed, max_iter=60),
    "HGB": lambda seed: boosting(seed),
    "HGB 60, holes": lambda seed: Holes(boosting(seed, max_iter=60), seed),
    "HGB, holes": lambda seed: Holes(boosting(seed), seed),
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "CatBoost": catboost,
    "CatBoost 300, holes": lambda seed: Holes(catboost(seed, iterations=300), seed),
    "EBM": ebm,
    "naive Bayes": lambda seed: OnArrays(NaiveBayes),
}
