"""Tables whose test cells go missing at random: accuracy and log-loss beside imputation.

Each data set is cut into five stratified folds. A method trains on four of them, complete, or on
copies of their rows with holes, and is then tested on the fifth with 0, 10, ... 90 % of its cells
missing, the same cells for all methods. Copies are `--copies` times the training rows; each copy of
a row has its own share of holes, uniform between 0 and 1: training for any subset of the columns.

`±` is the standard deviation over cuttings into folds (`--splits`).

    python benchmarks/missing.py
    python benchmarks/missing.py --sets digits --methods 'discem*' --json missing.json
    python benchmarks/missing.py --quick
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import clock, log_loss, versions, write_json
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tabular import DATA
from threadpoolctl import threadpool_limits

import discem

SHARES = tuple(tenth / 10 for tenth in range(10))


class Method(NamedTuple):
    """A classifier from a seed."""

    make: Callable[[int], Any]
    holes: bool = False  # trains on copies with holes
    slow: bool = False


def _ours(loss: Any) -> Callable[[int], Any]:
    return lambda seed: discem.GaussianNB(loss=loss, random_state=seed)


def _logistic(imputer: Callable[[int], Any]) -> Callable[[int], Any]:
    """Scaled first, so that distances and regressions of the imputer see columns alike."""
    return lambda seed: make_pipeline(
        StandardScaler(), imputer(seed), LogisticRegression(max_iter=2000)
    )


def _mean(seed: int) -> Any:
    return SimpleImputer(keep_empty_features=True)


def _neighbours(seed: int) -> Any:
    return KNNImputer(keep_empty_features=True)


def _chained(seed: int) -> Any:
    return IterativeImputer(
        max_iter=3, n_nearest_features=10, keep_empty_features=True, random_state=seed
    )


def _boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed)


METHODS = {
    "discem nll": Method(_ours("nll")),
    "discem ncll": Method(_ours("ncll")),
    "discem blend": Method(_ours(discem.Blend())),
    "discem ncll, holes": Method(_ours("ncll"), holes=True),
    "mean + LR": Method(_logistic(_mean)),
    "kNN + LR": Method(_logistic(_neighbours)),
    "iterative + LR": Method(_logistic(_chained), slow=True),
    "mean + LR, holes": Method(_logistic(_mean), holes=True),
    "boosting": Method(_boosting, slow=True),
    "boosting, holes": Method(_boosting, holes=True, slow=True),
}


def with_holes(X: np.ndarray, share: Any, rng: np.random.Generator) -> np.ndarray:
    """A copy in which each cell is missing with probability `share` (of the row, or of all)."""
    return np.where(rng.uniform(size=X.shape) < share, np.nan, X)


def training_rows(
    X: np.ndarray, y: np.ndarray, copies: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Copies of the rows, each with a share of holes of its own."""
    X, y = np.tile(X, (copies, 1)), np.tile(y, copies)
    return with_holes(X, rng.uniform(size=(len(X), 1)), rng), y


def one_split(method: Method, X, y, folds: int, copies: int, seed: int) -> dict[str, Any]:
    """Accuracy and log-loss by share of missing cells, and mean seconds, of one cutting."""
    classes, seconds, predicting = np.unique(y), [], []
    probabilities = np.empty((len(SHARES), len(y), len(classes)))
    cut = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for fold, (train, test) in enumerate(cut.split(X, y)):
        rng = np.random.default_rng((seed, fold))  # the same holes for every method
        tests = [with_holes(X[test], share, rng) for share in SHARES]
        rows = X[train], y[train]
        if method.holes:
            rows = training_rows(*rows, copies, rng)
        model, spent = clock(method.make(seed).fit, *rows)
        seconds.append(spent)
        for place, holes in enumerate(tests):
            probabilities[place, test], spent = clock(model.predict_proba, holes)
            predicting.append(spent / len(test))
    return {
        "accuracy": [float((classes[p.argmax(axis=1)] == y).mean()) for p in probabilities],
        "log_loss": [log_loss(y, p, classes) for p in probabilities],
        "seconds": float(np.mean(seconds)),
        "predict_ms": 1e3 * float(np.mean(predicting)),  # a row
    }


def compare(names: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every method on every data set."""
    results = []
    for data in options.sets:
        X, y = DATA[data](return_X_y=True)
        for name in names:
            method = METHODS[name]
            if options.quick and method.slow:
                continue
            runs = [
                one_split(method, X, y, options.folds, options.copies, seed)
                for seed in range(options.splits)
            ]
            results.append({"data": data, "method": name, "splits": runs})
            print(row(results[-1]), flush=True)
    return results


def row(result: dict[str, Any]) -> str:
    """One line of the table: accuracy in per cent by share of missing cells."""
    runs = result["splits"]
    accuracy = np.array([run["accuracy"] for run in runs])
    text = f"{result['data']:<14} {result['method']:<19}"
    text += "".join(f"{100 * each:7.1f}" for each in accuracy.mean(axis=0))
    spread = accuracy.std(axis=0).max()
    text += f"{100 * spread:8.1f}{np.mean([run['seconds'] for run in runs]):9.2f}"
    return text + f"{np.mean([run['predict_ms'] for run in runs]):12.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], epilog="methods: " + ", ".join(METHODS)
    )
    parser.add_argument("--sets", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument(
        "--methods", nargs="+", metavar="PATTERN", default=["*"], help="as 'discem*'; default: all"
    )
    parser.add_argument("--splits", type=int, default=2, help="cuttings into folds (default 2)")
    parser.add_argument("--folds", type=int, default=5, help="folds of each (default 5)")
    parser.add_argument("--copies", type=int, default=5, help="of a row, with holes (default 5)")
    parser.add_argument(
        "--quick", action="store_true", help="one split, one copy, no slow methods: a trial"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    if options.quick:
        options.splits = options.copies = 1
    names = [n for n in METHODS if any(fnmatch(n, pattern) for pattern in options.methods)]
    if not names:
        parser.error(f"no method is named like {options.methods}: there are {list(METHODS)}")
    warnings.simplefilter("ignore")  # of scikit-learn about convergence of imputers
    found = versions()
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    shares = "".join(f"{share:7.0%}" for share in SHARES)
    print(f"accuracy, %\n{'data':<14} {'method':<19}{shares}", end="")
    print(f"{'max ±':>8}{'fit, s':>9}{'a row, ms':>12}")
    with threadpool_limits(1):
        results = compare(names, options)
    if options.json:
        settings = {"folds": options.folds, "copies": options.copies, "shares": SHARES}
        content = {"versions": found, "settings": settings, "results": results}
        write_json(options.json, content)


if __name__ == "__main__":
    main()
