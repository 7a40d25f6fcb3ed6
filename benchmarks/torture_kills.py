"""Processes that are killed at random: what they saved before is whole, and nothing else is left.

Runs of `discem` get a SIGKILL, SIGTERM or SIGINT at a random moment:

* fit: a fit in memory, over a model that is there already,
* stream: a stream that saves its model after every batch,
* save: a model that is written again and again.

After each, the model file has to load and to be one that was saved: the one before, the new one, or
that of the documents so far, to the last bit of its predictions. A fit in memory that is asked to
end saves what it has learnt so far, in the middle of an epoch or of a choice: that model has to be
finite, and better than guessing. A signal that can be answered is answered with one line and the
exit code of a shell. The next run that writes to the folder has to leave no temporary file there.

    python benchmarks/torture_kills.py                    # 200 kills, half an hour
    python benchmarks/torture_kills.py --count 8 --seed 3 --only stream save
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import discem

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
SHARES = {"fit": 0.45, "stream": 0.35, "save": 0.2}
BATCH = 10
FIT = ("--loss", "ncll", "--weighting", "tfidf", "--epochs", "5")  # nothing to choose
MAIN = "from discem.cli import main; main()"
SAVING = """
import sys, discem
path, *others = sys.argv[1:]
models = [discem.load(each) for each in others]
while True:
    for model in models:
        model.save(path)
"""
WORDS = {
    "corn": "harvest crop bushel farm wheat",
    "gold": "mine ounce metal ore bullion",
    "ships": "port cargo vessel harbour tanker",
}
SHARED = ["the", "market", "price", "report", "today", "year", "said", "new"]


class Failure(NamedTuple):
    """A kill after which something was wrong."""

    case: str
    why: str


def corpus(n: int, seed: int) -> list[tuple[str, str]]:
    """(label, text) pairs that a few words tell apart; new words go on to come."""
    rng = random.Random(seed)
    pairs = []
    for i, label in enumerate(rng.choices(list(WORDS), k=n)):
        words = rng.choices(WORDS[label].split(), k=3) + rng.choices(SHARED, k=4)
        pairs.append((label, " ".join([*words, f"word{i // 3}"])))
    return pairs


TRAIN, OTHER, STREAM = corpus(200, 0), corpus(200, 1), corpus(50_000, 2)
TRUTH, TEST = zip(*corpus(50, 3), strict=True)


def answers(model: discem.TextClassifier) -> np.ndarray:
    return model.predict_log_proba(TEST)


class References:
    """What the models that may be found have to say."""

    def __init__(self) -> None:
        model = discem.TextClassifier(loss="ncll", weighting="tfidf", max_iter=5, random_state=0)
        model.fit([text for _, text in TRAIN], [label for label, _ in TRAIN])
        self.trained = answers(model)
        self._stream = discem.TextClassifier(random_state=0)
        self._prefixes: list[np.ndarray] = []

    def prefix(self, n: int) -> np.ndarray:
        """Of the first `n` documents of the stream."""
        while len(self._prefixes) * BATCH < n:
            begin = len(self._prefixes) * BATCH
            part = STREAM[begin : begin + BATCH]
            self._stream.partial_fit([text for _, text in part], [label for label, _ in part])
            self._prefixes.append(answers(self._stream))
        return self._prefixes[n // BATCH - 1]


class Killer:
    """A folder of data, and runs that do not live to see their end."""

    def __init__(self, folder: Path, seed: int):
        self.folder = folder
        self.rng = random.Random(seed)
        self.references = References()
        self.fitting = 4.0  # seconds, until it is known better
        for name, pairs in (("train", TRAIN), ("other", OTHER), ("stream", STREAM)):
            lines = (f"{label}\t{text}\n" for label, text in pairs)
            (folder / f"{name}.txt").write_text("".join(lines))
        self.old = folder / "old.skops"
        model = discem.TextClassifier(loss="ncll", weighting="tfidf", max_iter=2, random_state=0)
        model.fit([text for _, text in OTHER], [label for label, _ in OTHER]).save(self.old)
        self.large = folder / "large.skops"
        large = discem.TextClassifier(n_features=2**15, random_state=0)
        large.partial_fit([text for _, text in OTHER], [label for label, _ in OTHER])
        large.save(self.large)

    def start(self, code: str, *words: object) -> subprocess.Popen[str]:
        paths = [str(Path(discem.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-c", code, *map(str, words)]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=surroundings, text=True, **pipes)

    def kill(self, process: subprocess.Popen[str], seconds: float) -> tuple[signal.Signals, str]:
        """Signal after so many seconds, if it still runs; which signal, and what it said."""
        signum = self.rng.choice(SIGNALS)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signum)
        try:
            return signum, process.communicate(timeout=300)[1]
        finally:
            process.kill()

    # --- what is killed: each says what the file may be, given what the process said --------------

    def fit(self, path: Path) -> Iterator[str]:
        path.write_bytes(self.old.read_bytes())
        begun = time.monotonic()
        process = self.start(MAIN, "fit", self.folder / "train.txt", "-o", path, *FIT)
        signum, told = self.kill(process, self.rng.uniform(0, 1.1 * self.fitting))
        if process.returncode == 0:
            self.fitting = time.monotonic() - begun
        yield from answered(signum, process.returncode, told)
        if path.read_bytes() != self.old.read_bytes():
            found = discem.load(path)
            if "trained so far" in told:
                if not np.isfinite(answers(found)).all():
                    yield "the model so far has answers that are not finite"
                if found.score(TEST, TRUTH) <= max(Counter(TRUTH).values()) / len(TRUTH):
                    yield "the model so far is no better than guessing"
            elif not np.array_equal(answers(found), self.references.trained):
                yield f"the model is neither the one before nor the new one, and it said {told!r}"

    def stream(self, path: Path) -> Iterator[str]:
        options = ("--stream", "--batch-size", BATCH, "--save-every", BATCH)
        data = self.folder / "stream.txt"
        process = self.start(MAIN, "fit", data, *options, "-o", path)
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        signum, told = self.kill(process, self.rng.uniform(0, 0.7))
        yield from answered(signum, process.returncode, told)
        model = discem.load(path)
        if not np.array_equal(answers(model), self.references.prefix(model.n_documents_)):
            yield f"the model is not that of the first {model.n_documents_} documents"
        if "interrupted" in told and f"first {model.n_documents_:,} of" not in told:
            yield f"the model has {model.n_documents_} documents, but it said {told!r}"

    def save(self, path: Path) -> Iterator[str]:
        process = self.start(SAVING, path, self.old, self.large)
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        self.kill(process, self.rng.uniform(0, 0.3))
        found = answers(discem.load(path))
        saved = (answers(discem.load(each)) for each in (self.old, self.large))
        if not any(np.array_equal(found, each) for each in saved):
            yield "the model is none that was saved"

    def case(self, kind: str, number: int) -> list[Failure]:
        """One kill, and what was wrong after it."""
        folder = self.folder / f"{kind}-{number}"
        folder.mkdir()
        path = folder / "model.skops"
        run: Callable[[Path], Iterator[str]] = getattr(self, kind)
        failures = [Failure(f"{kind}-{number}", why) for why in run(path)]
        left.update({kind: len(temporaries(folder))})
        discem.load(self.old).save(path)
        if temporaries(folder):
            failures.append(Failure(f"{kind}-{number}", "the next run left a temporary file"))
        return failures


left: Counter[str] = Counter()  # temporary files that kills have left, by what was killed


def temporaries(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.name.startswith(".discem-")]


def answered(signum: signal.Signals, code: int, told: str) -> Iterator[str]:
    """What is wrong with the end of a command that got a signal."""
    asleep = {-signum} if signum != signal.SIGINT else set()  # before it could listen
    if code not in {0, 128 + signum, *asleep}:
        if "Traceback" in told and "/discem/" not in told:
            return  # the interpreter itself was starting, and Python said so
        yield f"{signum.name}: exit code {code}: {told}"
    elif "Traceback" in told:
        yield f"{signum.name}: {told}"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="how many kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(SHARES), default=list(SHARES))
    options = parser.parse_args(words)
    total = sum(SHARES[kind] for kind in options.only)
    failures: list[Failure] = []
    print(f"{'':10}{'kills':>8}{'failures':>10}{'left':>8}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        killer = Killer(Path(folder), options.seed)
        for kind in options.only:
            count = max(round(options.count * SHARES[kind] / total), 1)
            wrong = [failure for number in range(count) for failure in killer.case(kind, number)]
            failures += wrong
            print(f"{kind:10}{count:8}{len(wrong):10}{left[kind]:8}", flush=True)
    for failure in failures:
        print(f"{failure.case}: {failure.why}")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
