"""Filling in cells: `TableImputer` beside the imputers of scikit-learn.

Two thirds of the rows of a table are trained on. Of the others, 20 and then 50 % of the cells are
removed, the same for all methods. A number is judged by RMSE over the standard deviation of its
column, a category by accuracy; figures are means over the columns of a table, then over tables.
Imputers of scikit-learn see numbers scaled and categories one-hot; the largest of the filled-in
columns of a category is its level. `spread` is the variance of drawn cells over that of the cells
that were removed.

    python benchmarks/impute.py
    python benchmarks/impute.py --sets 'wine' --methods 'discem*' --splits 1 --json impute.json
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import clock, versions, write_json
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from table_sets import BUNDLED, bundled, files, read
from threadpoolctl import threadpool_limits

import discem

RATES = (0.2, 0.5)
FEWEST, MOST = 150, 1500  # rows of a table; of more, some


class OneHot:
    """A numeric imputer for tables: numbers scaled, a column for each level of a category."""

    def __init__(self, imputer: Any):
        self.imputer = imputer

    def fit(self, X: pd.DataFrame) -> OneHot:
        self.numbers = [name for name in X if is_number(X[name])]
        seen = {name: X[name].dropna().unique() for name in X if name not in self.numbers}
        self.levels = {name: levels for name, levels in seen.items() if len(levels)}
        self.mean, self.scale = X[self.numbers].mean(), X[self.numbers].std(ddof=0)
        self.scale = self.scale.where(self.scale > 0, 1.0)
        self.imputer.fit(self._encoded(X))
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        filled = self.imputer.transform(self._encoded(X))
        k, result = len(self.numbers), X.copy()
        result[self.numbers] = filled[:, :k] * self.scale.to_numpy() + self.mean.to_numpy()
        for name, levels in self.levels.items():
            best = filled[:, k : k + len(levels)].argmax(axis=1)
            k += len(levels)
            result[name] = X[name].astype(object).where(X[name].notna(), levels[best])
        return result

    def _encoded(self, X: pd.DataFrame) -> np.ndarray:
        parts = [((X[self.numbers] - self.mean) / self.scale).to_numpy(dtype=float)]
        for name, levels in self.levels.items():
            cells = X[name].to_numpy(dtype=object)[:, None]
            hot = (cells == np.asarray(levels, dtype=object)).astype(float)
            parts.append(np.where(X[name].isna().to_numpy()[:, None], np.nan, hot))
        return np.hstack(parts)


def trees(seed: int) -> Any:
    return IterativeImputer(
        ExtraTreesRegressor(20, min_samples_leaf=3, random_state=seed), max_iter=3,
        n_nearest_features=30, keep_empty_features=True, random_state=seed,
    )  # fmt: skip


METHODS: dict[str, Callable[[int], Any]] = {
    "discem": lambda seed: discem.TableImputer(random_state=seed),
    "discem, one mixture": lambda seed: discem.TableImputer(n_mixtures=1, random_state=seed),
    "mean, mode": lambda _: OneHot(SimpleImputer(keep_empty_features=True)),
    "KNN": lambda _: OneHot(KNNImputer(keep_empty_features=True)),
    "iterative, ridge": lambda seed: OneHot(
        IterativeImputer(keep_empty_features=True, random_state=seed)
    ),
    "iterative, trees": lambda seed: OneHot(trees(seed)),
}


def is_number(column: pd.Series) -> bool:
    """Whether cells are numbers, as their type says."""
    return pd.api.types.is_numeric_dtype(column.dtype)


def errors(
    train: pd.DataFrame, X: pd.DataFrame, filled: pd.DataFrame, removed: np.ndarray
) -> tuple[float, float]:
    """RMSE / sd of numbers and accuracy of categories, means over columns."""
    numbers, categories = [], []
    for j, name in enumerate(X):
        rows, seen = removed[:, j], train[name].dropna()
        if not rows.any() or seen.nunique() < 2:
            continue
        true, found = X[name][rows], filled[name][rows]
        if is_number(X[name]):
            off = true.to_numpy(dtype=float) - found.to_numpy(dtype=float)
            numbers.append(np.sqrt(np.mean(off**2)) / seen.std(ddof=0))
        else:
            same = true.to_numpy(dtype=object) == found.to_numpy(dtype=object)
            categories.append(same.mean())
    return mean_of(numbers), mean_of(categories)


def spread(X: pd.DataFrame, drawn: pd.DataFrame, removed: np.ndarray) -> float:
    """The variance of drawn cells over that of removed ones, mean over columns of numbers."""
    ratios = []
    for j, name in enumerate(X):
        true, found = X[name][removed[:, j]], drawn[name][removed[:, j]]
        if is_number(X[name]) and true.nunique() > 1:
            ratios.append(found.astype(float).var() / true.astype(float).var())
    return mean_of(ratios)


def mean_of(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def one_split(name: str, X: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Figures of a method on one cutting of a table, by rate."""
    order = np.random.default_rng(seed).permutation(len(X))
    cut = 2 * len(X) // 3
    train, test = X.iloc[order[:cut]], X.iloc[order[cut:]].reset_index(drop=True)
    model, fit = clock(METHODS[name](seed).fit, train)
    result: dict[str, Any] = {"fit": fit, "rmse": [], "accuracy": [], "transform": [], "spread": []}
    for rate in RATES:
        hidden = np.random.default_rng(1000 + seed).random(test.shape) < rate
        removed = hidden & test.notna().to_numpy()
        filled, seconds = clock(model.transform, test.mask(hidden))
        rmse, accuracy = errors(train, test, filled, removed)
        drawn = None
        if name == "discem":
            drawn = model.impute(test.mask(hidden), how="draw", random_state=seed)
        result["rmse"].append(rmse)
        result["accuracy"].append(accuracy)
        result["transform"].append(seconds)
        result["spread"].append(float("nan") if drawn is None else spread(test, drawn, removed))
    return result


def tables(pattern: str) -> dict[str, pd.DataFrame]:
    """Tables of enough rows by name."""
    found = {name: read(name, path).X for name, path in files().items() if fnmatch(name, pattern)}
    found |= {name: bundled(name).X for name in BUNDLED if fnmatch(name, pattern)}
    rng, some = np.random.default_rng(0), {}
    for name, X in found.items():
        if len(X) >= FEWEST:
            some[name] = X.iloc[rng.permutation(len(X))[:MOST]].reset_index(drop=True)
    return some


def row(name: str, method: str, runs: list[dict[str, Any]]) -> str:
    """One line of the table."""
    figures = [np.nanmean([run[key] for run in runs], axis=0) for key in ("rmse", "accuracy")]
    text = f"{name:<26} {method:<20}" + "".join(f"{f:8.3f}" for f in np.concatenate(figures))
    text += "".join(f"{f:8.2f}" for f in np.nanmean([run["spread"] for run in runs], axis=0))
    text += f"{np.mean([run['fit'] for run in runs]):9.2f}"
    return text + f"{np.mean([run['transform'] for run in runs]):9.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", metavar="PATTERN", default="*", help="names of tables")
    parser.add_argument("--methods", metavar="PATTERN", nargs="+", default=["*"])
    parser.add_argument("--splits", type=int, default=2, help="cuttings (default 2)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [n for n in METHODS if any(fnmatch(n, pattern) for pattern in options.methods)]
    print(", ".join(f"{name} {value}" for name, value in versions().items()))
    head = "".join(f"{f'{what} {r:.0%}':>8}" for what in ("rmse", "acc", "spr") for r in RATES)
    print(f"{'table':<26} {'method':<20}{head}{'fit, s':>9}{'fill, s':>9}")
    results: dict[str, dict[str, Any]] = {name: {} for name in names}
    with threadpool_limits(1):
        for table, X in tables(options.sets).items():
            for name in names:
                runs = [one_split(name, X, seed) for seed in range(options.splits)]
                results[name][table] = runs
                print(row(table, name, runs), flush=True)
    for name in names:
        print(row("mean over tables", name, [mean_run(r) for r in results[name].values()]))
    if options.json:
        write_json(options.json, {"versions": versions(), "rates": RATES, "results": results})


def mean_run(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of a table, of all its cuttings."""
    return {key: np.mean([run[key] for run in runs], axis=0) for key in runs[0]}


if __name__ == "__main__":
    main()
