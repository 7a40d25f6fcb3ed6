"""Label shift: `adapt` on rows of Adult whose classes are more or less frequent than in training.

A model is trained on Adult's training part. From its test part rows are drawn, so that a share of
them earns more than 50K, and the model adapts to these rows without their labels. Printed are the
share it finds, the standard error it gives and its true error (root mean square over draws), and
the log-loss before and after.

    python benchmarks/shift.py --data DIR
    python benchmarks/shift.py --data DIR --models 'NaiveBayes*' --draws 20
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from harness import versions
from sklearn.metrics import log_loss
from table_sets import files, read
from threadpoolctl import threadpool_limits

import discem

SHARES: tuple[float | None, ...] = (0.9, 0.4, None)  # None: that of the test part
ROWS = (500, 4000)
MODELS: dict[str, Callable[[int], Any]] = {
    "TableClassifier": lambda seed: discem.TableClassifier(random_state=seed),
    "NaiveBayes": lambda seed: discem.NaiveBayes(random_state=seed),
}


def drawn(y: np.ndarray, share: float | None, n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of which a share are of the second class."""
    label = np.unique(y)[1]
    if share is None:
        return rng.choice(len(y), n, replace=False)
    own, rest = np.flatnonzero(y == label), np.flatnonzero(y != label)
    size = min(n, int(len(own) / share), int(len(rest) / (1.0 - share)))
    k = round(share * size)
    return np.r_[rng.choice(own, k, replace=False), rng.choice(rest, size - k, replace=False)]


def one_draw(model: Any, X: Any, y: np.ndarray) -> dict[str, float]:
    adapted = model.adapt(X)
    losses = [log_loss(y, m.predict_proba(X), labels=m.classes_) for m in (model, adapted)]
    return {
        "true": float(np.mean(y == model.classes_[1])),
        "found": float(adapted.shift_.now[1]),
        "error": float(adapted.shift_.error[1]),
        "drift": adapted.shift_.drift,
        "before": losses[0],
        "after": losses[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("DISCEM_DATA", "."))
    parser.add_argument("--models", metavar="PATTERN", default="*")
    parser.add_argument("--draws", type=int, default=5, help="of rows (default 5)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    path = files(options.data)["adult"]
    train = read("adult", path)
    test = read("adult", path.with_name(path.name.replace("train", "test")))
    print(", ".join(f"{name} {value}" for name, value in versions().items()))
    head = ("true", "found", "s.e.", "off", "drift", "log-loss", "adapted")
    print(f"{'model':<18}{'rows':>6}" + "".join(f"{name:>10}" for name in head))
    with threadpool_limits(1):
        for name in [each for each in MODELS if fnmatch(each, options.models)]:
            model = MODELS[name](0).fit(train.X, train.y)
            for share in SHARES:
                for n in ROWS:
                    runs = []
                    for seed in range(options.draws):
                        rows = drawn(test.y, share, n, np.random.default_rng(seed))
                        runs.append(one_draw(model, test.X.iloc[rows], test.y[rows]))
                    print(f"{name:<18}{len(rows):>6}" + figures(runs), flush=True)


def figures(runs: list[dict[str, float]]) -> str:
    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    off = float(np.sqrt(np.mean([(run["found"] - run["true"]) ** 2 for run in runs])))
    shown = (mean["true"], mean["found"], mean["error"], off, mean["drift"])
    return "".join(f"{f:10.3f}" for f in (*shown, mean["before"], mean["after"]))


if __name__ == "__main__":
    main()
