"""How fast one version is beside another: two source trees, in turns, in one run on one thread.

BEFORE and AFTER are checkouts, folders that hold `src/discem`; the installed libraries are the same
for both. Each tree has a process of its own, warm before it is measured, and the processes take
turns question by question. A second process of BEFORE takes part as "again": what lies between
the two is noise, and a ratio means something only beyond it. Each round has new processes, for
where its memory happens to lie can make one 1.4 times as slow as another of the same tree. The
questions:

1. words (MultinomialNB, 20 Newsgroups), numbers (GaussianNB, digits), topics (TopicClassifier,
   WebKB) and a mixture (MixtureClassifier, digits): an epoch, a fit of four epochs, a prediction of
   the training rows;
2. import: what `import discem` costs beyond `import sklearn.base`;
3. first fit: the first `fit` of a fresh process, with compiled code on disk;
4. with `--cold`, the same with nothing on disk, and then, in that process, fits with another loss,
   with label sets and with soft labels.

Texts are `<name>/train.txt.gz` in `--data DIR` (or DISCEM_DATA), `label<TAB>words` a line; else the
docstrings of the installed libraries. Ratios are after / before: below 1 is faster.

    git worktree add ../before v0.1
    python benchmarks/versions.py ../before . --data DIR --repeat 9 --cold --json versions.json
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import ONE_THREAD, FailedError, clock, seconds_of, versions, write_json
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from speed import FIRST_FIT, IMPORT, Times, printed_by

import discem
from discem.datasets import docstrings

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {  # estimator, data, options
    "words, ncll": ("MultinomialNB", "20ng", {"loss": "ncll"}),
    "words, hinge": ("MultinomialNB", "20ng", {"loss": "hinge"}),
    "numbers": ("GaussianNB", "digits", {"loss": "ncll"}),
    "topics": ("TopicClassifier", "webkb", {"loss": "ncll"}),
    "mixture": ("MixtureClassifier", "digits", {"loss": "ncll"}),
}
FIRST = ("GaussianNB", "MultinomialNB", "TopicClassifier")  # whose first fit is measured
SIDES = ("before", "again", "after")
TURNS = 3  # of a process, in a round
MORE_FITS = """
sets, shares = np.eye(2, dtype=bool)[y], np.full((100, 2), 0.5)
sets[::3] = True
for loss, target in (("hinge", y), ("ncll", sets), ("ncll", shares)):
    begun = time.perf_counter()
    discem.{name}(loss=loss, max_iter=1, random_state=0).fit(X, target)
    print(time.perf_counter() - begun)
"""
Answer = dict[str, float]  # seconds by what took them
Ask = Callable[[str], Answer]  # the question put to a side


# --- in the process of a tree ---------------------------------------------------------------------


def work(question: str, folder: Path) -> Answer:
    """One turn of a model."""
    name, data, options = MODELS[question]
    X, y = read(folder / data)
    model = getattr(discem, name)(max_iter=4, tol=None, random_state=0, **options)
    fitted, fit = clock(model.fit, X, y)
    epochs = [record["seconds"] for record in fitted.history_[1:]]  # the first warms the memory
    predictions = [seconds_of(fitted.predict, X) for _ in range(3)]
    return {"epoch": median(epochs), "fit of 4 epochs": fit, "predict": median(predictions)}


@functools.cache
def read(path: Path) -> tuple[Any, np.ndarray]:
    return pickle.loads(path.read_bytes())


def serve(folder: Path) -> None:
    """Say which tree this is, then answer questions, a line each, until there are no more."""
    warnings.simplefilter("ignore")
    print(json.dumps(discem.__file__), flush=True)
    for line in sys.stdin:
        print(json.dumps(work(line.strip(), folder)), flush=True)


class Worker:
    """A process of a tree that answers questions about models."""

    def __init__(self, tree: Path, folder: Path):
        command = [sys.executable, __file__, "--serve", str(folder)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=os.environ | imports_from(tree), **pipes)
        self.questions: Any = self.process.stdin
        self.answers: Any = self.process.stdout
        found = Path(self._hear())
        if found.parent != tree / "src" / "discem":
            raise FailedError(f"{tree} was to be measured, but {found} was imported")

    def ask(self, question: str) -> Answer:
        self.questions.write(question + "\n")
        self.questions.flush()
        return self._hear()

    def warm(self, questions: list[str]) -> Worker:
        """Load or compile all that the questions need."""
        for question in questions:
            self.ask(question)
        return self

    def close(self) -> None:
        self.questions.close()
        self.process.wait()

    def _hear(self) -> Any:
        line = self.answers.readline()
        if not line:
            raise FailedError(f"the process died, exit code {self.process.wait()}")
        return json.loads(line)


# --- in the process that asks ---------------------------------------------------------------------


def imports_from(tree: Path) -> dict[str, str]:
    """The environment of a process that imports discem from a tree."""
    return {"PYTHONPATH": str(tree / "src")}


def write_data(name: str, data: str | None, folder: Path) -> str:
    """Put rows and labels where workers find them; say what they are."""
    # here, for a process that measures an older version may lack what it needs
    from laboratory import DataNotFoundError, load_text

    X: Any
    title = name
    if name == "digits":
        X, labels = load_digits(return_X_y=True)
    else:
        try:
            (texts, labels), pattern = load_text(name, data), r"\S+"
        except DataNotFoundError as reason:
            print(f"{name} skipped: {reason}", file=sys.stderr)
            (texts, labels), pattern, title = docstrings(), r"(?u)\b\w\w+\b", "docstrings"
        X = CountVectorizer(token_pattern=pattern, dtype=np.float64).fit_transform(texts)
    y = np.unique(labels, return_inverse=True)[1]
    (folder / name).write_bytes(pickle.dumps((X, y)))
    return f"{title} ({X.shape[0]} rows, {X.shape[1]} columns, {y.max() + 1} classes)"


def take_turns(sides: Mapping[str, Ask], questions: list[str], turns: int) -> dict[str, Times]:
    """Answers by what was asked and by side; the side that begins changes from turn to turn."""
    found: dict[str, Times] = {}
    for turn in range(turns):
        for question in questions:
            for side in SIDES[turn % 3 :] + SIDES[: turn % 3]:
                for what, seconds in sides[side](question).items():
                    times = found.setdefault(f"{question}: {what}", {side: [] for side in SIDES})
                    times[side].append(seconds)
    return found


def measure_models(
    trees: dict[str, Path], names: list[str], data: str | None, repeat: int
) -> dict[str, Times]:
    found: dict[str, Times] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = dict.fromkeys(MODELS[question][1] for question in names)
        print("data:", ", ".join(write_data(kind, data, folder) for kind in kinds))
        for tree in dict.fromkeys(trees.values()):  # a process that compiles is not like the others
            Worker(tree, folder).warm(names).close()
        for _ in range(repeat):
            workers = {side: Worker(trees[side], folder).warm(names) for side in SIDES}
            asks = {side: worker.ask for side, worker in workers.items()}
            for question, times in take_turns(asks, names, TURNS).items():
                so_far = found.setdefault(question, {side: [] for side in SIDES})
                for side in SIDES:
                    so_far[side] += times[side]
            for worker in workers.values():
                worker.close()
    return found


def measure_import(trees: dict[str, Path], repeat: int) -> dict[str, Times]:
    def ask(side: str, _: str) -> Answer:
        return {"after sklearn.base": float(printed_by(IMPORT, **imports_from(trees[side]))[0])}

    for side in trees:
        ask(side, "")  # byte code
    return take_turns({side: functools.partial(ask, side) for side in SIDES}, ["import"], repeat)


def measure_first_fit(trees: dict[str, Path], repeat: int) -> dict[str, Times]:
    """The first fit of a process, numba's import included."""
    with tempfile.TemporaryDirectory() as caches:

        def ask(side: str, name: str) -> Answer:
            cache = Path(caches, *trees[side].parts[1:], name)
            own = {"XDG_CACHE_HOME": str(cache)} | imports_from(trees[side])
            return {"first fit": float(printed_by(FIRST_FIT.format(name=name), **own)[0])}

        for side in ("before", "after"):
            for name in FIRST:
                ask(side, name)  # compiles
        sides = {side: functools.partial(ask, side) for side in SIDES}
        return take_turns(sides, list(FIRST), repeat)


def measure_cold(trees: dict[str, Path], repeat: int) -> dict[str, Times]:
    """The first fit where nothing was ever compiled, and others in the same process."""
    kinds = ("first fit, nothing on disk", "then hinge", "then label sets", "then soft labels")

    def ask(side: str, name: str) -> Answer:
        with tempfile.TemporaryDirectory() as cache:
            own = {"XDG_CACHE_HOME": cache} | imports_from(trees[side])
            printed = printed_by((FIRST_FIT + MORE_FITS).format(name=name), **own)
        return dict(zip(kinds, map(float, printed), strict=True))

    return take_turns({side: functools.partial(ask, side) for side in SIDES}, list(FIRST), repeat)


# --- report ---------------------------------------------------------------------------------------


def show(title: str, found: dict[str, Times]) -> None:
    """Print one table."""
    print(f"\n{title}")
    print(f"{'':<44}{'median, ms':>21}{'after / before':>18}{'again / before':>18}")
    print(f"{'':<44}{'before':>11}{'after':>10}" + f"{'medians':>9}{'minima':>9}" * 2)
    for name, times in found.items():
        line = f"{name:<44}"
        line += f"{1e3 * median(times['before']):11.2f}{1e3 * median(times['after']):10.2f}"
        for side in ("after", "again"):
            for figure in (median, min):
                line += f"{figure(times[side]) / figure(times['before']):9.2f}"
        print(line)


def describe(tree: Path) -> str:
    """The commit of a checkout, if it is one."""
    command = ["git", "-C", str(tree), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "no commit"


def checkout(path: str) -> Path:
    tree = Path(path).resolve()
    if not (tree / "src" / "discem" / "__init__.py").exists():
        raise argparse.ArgumentTypeError(f"{path} holds no src/discem")
    return tree


def main() -> None:
    """Measure, print, and write JSON on request."""
    questions = (*MODELS, "import", "first fit")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before", type=checkout, help="a checkout, a folder that holds src/discem")
    parser.add_argument("after", type=checkout, help="another")
    parser.add_argument("--data", metavar="DIR", help="folder of data sets (default: DISCEM_DATA)")
    parser.add_argument("--repeat", type=int, default=5, help="rounds (default 5)")
    parser.add_argument(
        "--cold", type=int, nargs="?", const=1, default=0, metavar="ROUNDS", help="compile, too"
    )
    names = "; ".join(questions)
    parser.add_argument("--only", nargs="+", choices=questions, metavar="NAME", help=names)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)  # read by libraries as processes load them
    begun = time.perf_counter()
    trees = {"before": options.before, "again": options.before, "after": options.after}
    commits = {side: f"{tree}, {describe(tree)}" for side, tree in trees.items()}
    libraries = {name: value for name, value in versions().items() if name != "discem"}
    print(", ".join(f"{name} {value}" for name, value in libraries.items()))
    print(f"before: {commits['before']}\nafter: {commits['after']}")

    tables: dict[str, dict[str, Times]] = {}
    asked = options.only or questions
    if models := [name for name in asked if name in MODELS]:
        tables["models"] = measure_models(trees, models, options.data, options.repeat)
        show("Warm processes", tables["models"])
    if "import" in asked:
        tables["import"] = measure_import(trees, options.repeat)
        show("Import", tables["import"])
    if "first fit" in asked:
        tables["first_fit"] = measure_first_fit(trees, options.repeat)
        show("First fit of a process (100 rows), compiled code on disk", tables["first_fit"])
    if options.cold:
        tables["cold"] = measure_cold(trees, options.cold)
        show("Fresh processes (100 rows), nothing on disk: compiles", tables["cold"])
    print(f"\nin all {time.perf_counter() - begun:.0f} s")
    if options.json:
        content = {"versions": libraries, "trees": commits, "seconds": tables}
        write_json(options.json, content)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        main()
