"""Topic classifiers: time of the Gibbs sampler, seconds of a fit, accuracy over seeds.

1. sampler: nanoseconds per token and sweep of one class with two topics, one thread, as the slope
   between runs of 10 and of 50 sweeps over the training documents;
2. fit: seconds of a default fit, compiled code of Gibbs sampling loaded before the clock runs;
3. accuracy on the official split, mean and range over seeds, for the three losses, with this
   library's defaults and with the paper's prior and start.

Data sets are folders of `--data DIR` (or DISCEM_DATA), each with `train.txt.gz` and `test.txt.gz`.

    python benchmarks/topics.py --data DIR --sets webkb r8 --seeds 10 --json topics.json
"""

from __future__ import annotations

import argparse
import time
from statistics import mean
from typing import Any

from harness import versions, write_json
from laboratory import load_text
from sklearn.feature_extraction.text import CountVectorizer

from discem import TopicClassifier, inverse
from discem.engines import Sequential
from discem.io.rows import sparse_rows
from discem.models.topics import Gibbs

LOSSES = ("nll", "ncll", "hinge")
PAPER = {"prior": "paper", "init": "prior", "step": inverse(1e-3), "average": True, "tol": None}
SETTINGS: dict[str, dict[str, Any]] = {"defaults": {}, "paper": PAPER}


def sampler(X, y) -> float:
    """Nanoseconds per token, class and sweep."""
    model = TopicClassifier(inference="gibbs", max_iter=1, random_state=0).fit(X, y)
    rows = sparse_rows(X)
    seconds = {}
    for sweeps in (10, 50):
        state = model.learner_.model._replace(inference=Gibbs(sweeps, 1))
        times = []
        for _ in range(3):
            begun = time.perf_counter()
            Sequential().score(state, rows)
            times.append(time.perf_counter() - begun)
        seconds[sweeps] = min(times)
    work = float(X.sum()) * len(model.classes_) * 40
    return 1e9 * (seconds[50] - seconds[10]) / work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="DIR", help="folder of data sets (default: DISCEM_DATA)")
    parser.add_argument("--sets", nargs="+", default=["webkb", "r8"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--inference", choices=["cvb0", "gibbs"], default="cvb0")
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for name in options.sets:
        (texts, y), (test, truth) = (
            load_text(name, options.data, subset=s) for s in ("train", "test")
        )
        vectorizer = CountVectorizer(token_pattern=r"\S+")
        X, X_test = vectorizer.fit_transform(texts).astype(float), vectorizer.transform(test)
        results.append({"set": name, "sampler_ns": sampler(X, y)})
        print(f"{name}: Gibbs sampler {results[-1]['sampler_ns']:.1f} ns per token and sweep")
        for setting in options.settings:
            for loss in LOSSES:
                scores, seconds = [], []
                for seed in range(options.seeds):
                    model = TopicClassifier(
                        loss=loss,
                        inference=options.inference,
                        random_state=seed,
                        **SETTINGS[setting],
                    )
                    begun = time.perf_counter()
                    model.fit(X, y)
                    seconds.append(time.perf_counter() - begun)
                    scores.append(model.score(X_test, truth))
                results.append(
                    {"set": name, "setting": setting, "loss": loss, "accuracy": scores}
                    | {"inference": options.inference, "seconds": seconds}
                )
                print(
                    f"{name} {setting:8} {loss:5} accuracy {mean(scores):.4f} "
                    f"({min(scores):.4f} to {max(scores):.4f}), fit {min(seconds):.2f} s, "
                    f"{model.n_iter_} epochs",
                    flush=True,
                )
    if options.json:
        content = {"versions": versions(), "results": results}
        write_json(options.json, content)


if __name__ == "__main__":
    main()
