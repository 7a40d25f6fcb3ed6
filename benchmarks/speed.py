"""How fast it is, beside its peers, in one run on one thread. This is what `make bench` runs.

Four questions, one table each:

1. words: an epoch over a sparse corpus, as a multiple of scikit-learn's MultinomialNB.fit;
2. numbers: GaussianNB on the digits;
3. import: what `import discem` costs beyond `import sklearn.base`;
4. first fit: the first `fit` of a fresh process.

The corpus is 20 Newsgroups if `--data DIR` (or DISCEM_DATA) holds `20ng/train.txt.gz`, one document
a line, `label<TAB>words`; else the docstrings of the installed libraries. Methods take turns within
each repeat, so that a busy moment of the machine hits all of them; medians and minima are over
repeats. Where the two ratios differ much, the machine was busy: that of minima is then nearer the
truth.

    python benchmarks/speed.py
    python benchmarks/speed.py --data DIR --repeat 9 --json speed.json
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import seconds_of, versions, write_json
from sklearn import naive_bayes
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import discem
from discem.datasets import docstrings

LOSSES = {"ncll": "log_loss", "hinge": "hinge"}  # ours, and SGDClassifier's name of the same
Times = dict[str, list[float]]  # seconds of each repeat


# --- words and numbers ----------------------------------------------------------------------------


def corpus(data: str | None) -> tuple[str, Any, np.ndarray]:
    """A name, a CSR matrix of counts (float64) and integer labels."""
    # here, for a process that measures an older version may lack what it needs
    from laboratory import DataNotFoundError, load_text

    try:
        texts, labels = load_text("20ng", data)
        name, pattern = "20 Newsgroups, stemmed, training part", r"\S+"
    except DataNotFoundError as reason:
        print(f"20 Newsgroups skipped: {reason}", file=sys.stderr)
        texts, labels = docstrings()
        name, pattern = "docstrings of the installed libraries", r"(?u)\b\w\w+\b"
    X = CountVectorizer(token_pattern=pattern, dtype=np.float64).fit_transform(texts)
    return name, X, np.unique(labels, return_inverse=True)[1]


def epochs(model: Any, X: Any, y: np.ndarray) -> float:
    """Seconds of an epoch, as the model's history has them; the first one warms the memory."""
    history = model.fit(X, y).history_
    return median(record["seconds"] for record in history[1:] or history)


def measure_words(X: Any, y: np.ndarray, repeat: int) -> Times:
    """An epoch, and a fit of one epoch, of every method in turn."""
    classes = np.unique(y)
    table = np.random.default_rng(0).uniform(size=(X.shape[1], len(classes)))
    work: dict[str, Callable[[], float]] = {
        "scikit-learn MultinomialNB.fit": lambda: seconds_of(naive_bayes.MultinomialNB().fit, X, y),
        "X @ table (SciPy): every visit, no log": lambda: seconds_of(lambda: X @ table),
    }
    for loss, name in LOSSES.items():

        def fitted(loss: str = loss) -> float:
            model = discem.MultinomialNB(loss=loss, max_iter=1, random_state=0)
            return seconds_of(model.fit, X, y)

        def epoch(loss: str = loss) -> float:
            model = discem.MultinomialNB(loss=loss, max_iter=4, tol=None, random_state=0)
            return epochs(model, X, y)

        def descent(name: str = name) -> float:
            model = SGDClassifier(loss=name, random_state=0)
            return seconds_of(lambda: model.partial_fit(X, y, classes=classes))

        work[f"discem MultinomialNB {loss}, epoch"] = epoch
        work[f"discem MultinomialNB {loss}, fit(max_iter=1)"] = fitted
        work[f"scikit-learn SGDClassifier {name}, epoch"] = descent
    return take_turns(work, repeat)


def measure_numbers(X: np.ndarray, y: np.ndarray, repeat: int) -> tuple[Times, dict[str, int]]:
    """Fits of every method in turn, and an epoch of ours; also how many epochs a fit takes."""
    count = {}
    work: dict[str, Callable[[], float]] = {
        "scikit-learn GaussianNB.fit": lambda: seconds_of(naive_bayes.GaussianNB().fit, X, y),
        "scikit-learn LogisticRegression.fit, scaled": lambda: seconds_of(
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit, X, y
        ),
    }
    for loss in ("nll", *LOSSES):

        def fitted(loss: str = loss) -> float:
            model = discem.GaussianNB(loss=loss, random_state=0)
            seconds = seconds_of(model.fit, X, y)
            count[f"discem GaussianNB {loss}, fit"] = model.n_iter_
            return seconds

        def epoch(loss: str = loss) -> float:
            return epochs(discem.GaussianNB(loss=loss, max_iter=4, tol=None, random_state=0), X, y)

        work[f"discem GaussianNB {loss}, epoch"] = epoch
        work[f"discem GaussianNB {loss}, fit"] = fitted
    return take_turns(work, repeat), count


def take_turns(work: dict[str, Callable[[], float]], repeat: int) -> Times:
    times: Times = {name: [] for name in work}
    for _ in range(repeat):
        for name, run in work.items():
            times[name].append(run())
    return times


# --- processes ------------------------------------------------------------------------------------

IMPORT = """
import time, sys, sklearn.base
begun = time.perf_counter()
import discem
print(time.perf_counter() - begun, "numba" in sys.modules)
"""
FIRST_FIT = """
import time, numpy as np, discem
X, y = np.abs(np.random.default_rng(0).normal(size=(100, 5))), np.arange(100) % 2
begun = time.perf_counter()
discem.{name}(max_iter=1, random_state=0).fit(X, y)
print(time.perf_counter() - begun)
"""


def printed_by(code: str) -> list[str]:
    """What a fresh interpreter prints."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def measure_import(repeat: int) -> Times:
    printed_by(IMPORT)  # byte code
    answers = [printed_by(IMPORT) for _ in range(repeat)]
    if any(loaded == "True" for _, loaded in answers):
        print("note: `import discem` imports numba, which it should not", file=sys.stderr)
    return {"import discem, after sklearn.base": [float(seconds) for seconds, _ in answers]}


def measure_first_fit(repeat: int) -> Times:
    """The first fit of a process."""
    return {
        name: [float(printed_by(FIRST_FIT.format(name=name))[0]) for _ in range(repeat)]
        for name in ("GaussianNB", "MultinomialNB")
    }


# --- report ---------------------------------------------------------------------------------------


def show(title: str, times: Times, base: str | None = None, notes: dict[str, str] | None = None):
    """Print one table; ratios are to the method `base`."""
    print(f"\n{title}")
    ratio = f"{'ratio':>8}{'of minima':>11}" if base else ""
    print(f"{'':<48}{'median, ms':>12}{'min, ms':>10}{ratio}")
    for name, seconds in times.items():
        line = f"{name:<48}{1e3 * median(seconds):12.1f}{1e3 * min(seconds):10.1f}"
        if base:
            line += f"{median(seconds) / median(times[base]):8.2f}"
            line += f"{min(seconds) / min(times[base]):11.2f}"
        print(line + f"  {(notes or {}).get(name, '')}".rstrip())


def limits(X: Any, n_classes: int) -> dict[str, float]:
    """What an epoch cannot avoid: table cells visited, and logarithms by two ways of counting."""
    return {
        "documents": X.shape[0],
        "vocabulary": X.shape[1],
        "classes": n_classes,
        "stored_words": int(X.nnz),
        "table_bytes": int(X.nnz) * n_classes * 8,
        "logs_of_visits": int(X.nnz) * n_classes,
        "logs_of_documents": X.shape[0] * n_classes,
    }


def main() -> None:
    """Measure, print, and write JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", metavar="DIR", help="folder of data sets (default: DISCEM_DATA)")
    parser.add_argument("--repeat", type=int, default=5, help="repeats of each (default 5)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    begun = time.perf_counter()
    found = versions()
    print(", ".join(f"{name} {value}" for name, value in found.items()))

    name, X, y = corpus(options.data)
    size = limits(X, int(y.max()) + 1)
    words = measure_words(X, y, options.repeat)
    show(f"Words: {name}, {X.shape[0]} documents, {y.max() + 1} classes", words, next(iter(words)))
    print(
        f"the limit: {size['stored_words']} stored words x {size['classes']} classes x 8 bytes ="
        f" {size['table_bytes'] / 1e6:.0f} MB of table visited an epoch;\nlogarithms:"
        f" {size['logs_of_visits'] / 1e6:.1f} million at one a visit,"
        f" {size['logs_of_documents'] / 1e6:.2f} million at one per class and document"
    )
    numbers, count = measure_numbers(*load_digits(return_X_y=True), options.repeat)
    notes = {method: f"({epochs} epochs)" for method, epochs in count.items()}
    show("Numbers: digits, 1797 rows, 64 columns", numbers, next(iter(numbers)), notes)
    imports = measure_import(options.repeat)
    show("Import", imports)
    first = measure_first_fit(options.repeat)
    show("First fit of a process (100 rows)", first)
    print(f"\nin all {time.perf_counter() - begun:.0f} s")
    if options.json:
        tables = {"words": words, "numbers": numbers, "import": imports, "first_fit": first}
        content = {"versions": found, "corpus": name, "limits": size, "seconds": tables}
        write_json(options.json, content)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
