"""Threads: eight ask a model while one teaches it new words and classes.

Every change of the model (a batch, a calibration, another class prior) is made beforehand, one
after the other, and all answers after each change are noted. Then one thread makes the same changes
while others ask: each answer must be that of some state before or after a change, and a thread that
asks twice must not see the model go back. Copies (pickled, deep, in files) are asked, too.

    python benchmarks/torture_threads.py                 a minute
    python benchmarks/torture_threads.py --seconds 600
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import pickle
import random
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import versions, write_json

import discem
from discem import GaussianNB, MixtureClassifier, MultinomialNB, TextClassifier, TopicClassifier

Change = Callable[[Any], Any]
Question = Callable[[Any], Any]


# --- streams --------------------------------------------------------------------------------------


def texts(n: int, batch: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Documents with words that only this batch and later ones have, and more and more classes."""
    y = rng.integers(2 + batch // 8, size=n)
    known = np.arange(20 + 10 * batch)
    return [" ".join(f"w{j} c{k}" for j in rng.choice(known, 12)) for k in y], y


def numbers(n: int, batch: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(2 + batch // 8, size=n)
    return rng.normal(size=(n, 4)) + y[:, None], y


def counts(n: int, batch: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(2 + batch // 8, size=n)
    return rng.poisson(1.0 + 2.0 * (np.arange(30) % 10 == y[:, None] % 10)), y


STREAMS: dict[str, tuple[Callable, Callable]] = {
    "TextClassifier": (lambda: TextClassifier(random_state=0), texts),
    "TextClassifier, hinge": (lambda: TextClassifier(loss="hinge", random_state=0), texts),
    "TextClassifier, hashed": (lambda: TextClassifier(n_features=256, random_state=0), texts),
    "TopicClassifier": (lambda: TopicClassifier(text=True, random_state=0), texts),
    "MultinomialNB": (lambda: MultinomialNB(average=True, random_state=0), counts),
    "GaussianNB": (lambda: GaussianNB(random_state=0), numbers),
    "MixtureClassifier": (lambda: MixtureClassifier(random_state=0), numbers),
}


def stream(make: Callable, n_batches: int) -> list[Change]:
    """What happens to a model: batches, and now and then a change of mind."""

    def learn(batch: int) -> Change:
        X, y = make(20, batch, np.random.default_rng(batch))
        return lambda model: model.partial_fit(X, y)

    def change_mind(batch: int) -> Change:
        X, y = make(20, 0, np.random.default_rng(1000 + batch))
        if batch % 2:
            return lambda model: model.set_class_prior(None)
        return lambda model: model.calibrate(X, y)

    changes: list[Change] = []
    for batch in range(n_batches):
        changes.append(learn(batch))
        if batch % 5 == 4:
            changes.append(change_mind(batch))
    return changes


def saved(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.skops")
        return discem.load(Path(folder) / "model.skops")


def questions(X: Any) -> dict[str, Question]:
    asked: dict[str, Question] = {
        "predict": lambda model: model.predict(X),
        "predict_proba": lambda model: model.predict_proba(X),
        "predict_joint_log_proba": lambda model: model.predict_joint_log_proba(X),
        "score_samples": lambda model: model.score_samples(X),
        "class_prior_": lambda model: model.class_prior_,
        "pickle": lambda model: pickle.loads(pickle.dumps(model)).predict_proba(X),
        "deepcopy": lambda model: copy.deepcopy(model).predict_proba(X),
        "save": lambda model: saved(model).predict_proba(X),
    }
    if isinstance(X, list):
        asked["explain"] = lambda model: (
            tuple(model.explain(X[0])) if isinstance(model, TextClassifier) else model.topics_
        )
    else:
        asked["sample"] = lambda model: model.sample(2, random_state=0)[1]
    return asked


def digest(answer: Any) -> str:
    parts = answer if isinstance(answer, tuple) else (answer,)
    content = b"|".join(repr((np.shape(p), np.asarray(p).tolist())).encode() for p in parts)
    return hashlib.sha256(content).hexdigest()


# --- the race -------------------------------------------------------------------------------------


def race(
    new: Callable[[], Any],
    make: Callable,
    seconds: float,
    n_readers: int = 8,
    n_batches: int = 40,
    errors: list[str] | None = None,
) -> Counter:
    """Let threads ask while one changes the model, again and again; count what they saw."""
    changes = stream(make, n_batches)
    asked = questions(make(5, n_batches // 2, np.random.default_rng(99))[0])
    states: dict[tuple[str, str], list[int]] = {}  # which states give this answer
    model = new()
    for state, change in enumerate(changes):
        change(model)
        for name, ask in asked.items():
            states.setdefault((name, digest(ask(model))), []).append(state)
    seen, errors, lock = Counter(), [] if errors is None else errors, threading.Lock()

    def read(model: Any, seed: int, done: threading.Event) -> None:
        choose, last, mine = random.Random(seed), 0, Counter()
        quick = [name for name in asked if name not in ("pickle", "deepcopy", "save")]
        while not done.is_set():
            name = choose.choice(quick if choose.random() < 0.9 else list(asked))
            mine["answers"] += 1
            try:
                later = [s for s in states.get((name, digest(asked[name](model))), ()) if s >= last]
            except Exception as error:
                mine["errors"] += 1
                errors.append(f"{name}: {error!r}")
                continue
            if later:
                last = later[0]
                mine["of a state before the last"] += last < len(changes) - 1
            else:
                mine["of no state"] += 1
                errors.append(f"{name}: of no state after {last}")
        with lock:
            seen.update(mine)

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        model, done = new(), threading.Event()
        changes[0](model)
        readers = [
            threading.Thread(target=read, args=(model, seed + 100 * seen["rounds"], done))
            for seed in range(n_readers)
        ]
        for reader in readers:
            reader.start()
        for change in changes[1:]:
            change(model)
            seen["changes"] += 1
        done.set()
        for reader in readers:
            reader.join()
        last = len(changes) - 1
        for name, ask in asked.items():  # nothing stays behind of what was going on
            seen["answers"] += 1
            if last not in states.get((name, digest(ask(model))), ()):
                seen["stale"] += 1
                errors.append(f"{name}: stale")
        seen["rounds"] += 1
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="in all")
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = ("rounds", "changes", "answers", "of a state before the last")
    bad = ("errors", "of no state", "stale")
    print(f"{'':24}" + "".join(f"{name:>{len(name) + 2}}" for name in (*columns, *bad)))
    results, errors = {}, []
    for name, (new, make) in STREAMS.items():
        results[name] = race(
            new, make, options.seconds / len(STREAMS), options.readers, errors=errors
        )
        found = results[name]
        print(f"{name:24}" + "".join(f"{found[n]:{len(n) + 2}}" for n in (*columns, *bad)))
    for error, n in Counter(errors).most_common(10):
        print(n, error)
    if options.json:
        write_json(options.json, {"versions": versions(), "results": results})
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
