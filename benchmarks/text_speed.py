"""How fast it is on text, beside Vowpal Wabbit, river, LIBLINEAR and scikit-learn's SGD.

Four questions, one table each, on 20 Newsgroups if `--data DIR` (or DISCEM_DATA) holds it, else on
the docstrings of the installed libraries:

1. pass: an epoch over raw counts. Vowpal Wabbit's is a further pass over its binary cache, taken
   from the difference of runs with five passes and with one: no start, no parsing of text. One
   core for all: Vowpal Wabbit would otherwise read the cache in a second thread;
2. stream: `partial_fit` in batches of 1000 rows, against river. Matrices, dicts and data frames are
   made before the clock runs, except where the row says "from strings";
3. fit: MultinomialNB on raw counts with the settings of text.py, against LIBLINEAR's logistic
   regression and SVM, and what accuracy each has;
4. default fit: TextClassifier with all its choices, less its use of CountVectorizer, against
   LinearSVC on ready tf-idf.

Methods take turns within each repeat; medians and minima are over repeats, ratios are to the first
row of a table. Peers that are not installed are left out.

    python benchmarks/text_speed.py --data DIR --json text_speed.json
    python benchmarks/text_speed.py --quick
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import seconds_of, use_one_core, versions, words_clock, write_json
from peers import VowpalWabbit, dicts
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from speed import LOSSES, Times, epochs, show, take_turns
from text import SETTINGS, find_sets, read
from threadpoolctl import threadpool_limits

import discem

BATCH = 1000
VOWPAL_LOSSES = {"ncll": "logistic", "hinge": "hinge"}  # ours, and Vowpal Wabbit's name of the same


def installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


# --- 1. a pass ------------------------------------------------------------------------------------


def measure_pass(X: sp.csr_matrix, y: np.ndarray, loss: str, repeat: int) -> Times:
    classes = np.unique(y)
    model = discem.MultinomialNB(loss=loss, max_iter=4, tol=None, random_state=0)

    def descent() -> float:
        peer = SGDClassifier(loss=LOSSES[loss], random_state=0)
        return seconds_of(lambda: peer.partial_fit(X, y, classes=classes))

    work: dict[str, Callable[[], float]] = {
        f"discem MultinomialNB {loss}, epoch": lambda: epochs(model, X, y),
        f"scikit-learn SGDClassifier {LOSSES[loss]}, epoch": descent,
    }
    if installed("vowpalwabbit"):
        vowpal = VowpalWabbit(loss=VOWPAL_LOSSES[loss])
        vowpal.cache(X, y)
        name = f"Vowpal Wabbit {VOWPAL_LOSSES[loss]}, pass"
        work[name] = lambda: (vowpal.run(5) - vowpal.run(1)) / 4
    return take_turns(work, repeat)


# --- 2. a stream ----------------------------------------------------------------------------------


def measure_stream(texts: list[str], X: sp.csr_matrix, y: np.ndarray, repeat: int) -> Times:
    """Seconds of 1000 documents of the same random stream."""
    order = np.random.default_rng(0).permutation(len(y))
    stream, labels, strings = X[order], y[order], [texts[i] for i in order]
    cuts = list(pairwise([*range(0, len(y), BATCH), len(y)]))
    batches = [(stream[first:last], labels[first:last]) for first, last in cuts]
    share = BATCH / len(y)

    def ours(loss: str) -> float:
        model = discem.MultinomialNB(loss=loss, random_state=0)
        return share * seconds_of(lambda: [model.partial_fit(*batch) for batch in batches])

    def ours_from_strings() -> float:
        model = discem.TextClassifier(random_state=0)
        parts = [(strings[first:last], labels[first:last]) for first, last in cuts]
        return share * seconds_of(lambda: [model.partial_fit(*part) for part in parts])

    work: dict[str, Callable[[], float]] = {
        f"discem MultinomialNB {loss}, partial_fit": partial(ours, loss)
        for loss in ("ncll", "hinge", "nll")
    }
    work["discem TextClassifier, partial_fit from strings"] = ours_from_strings
    if installed("river", "pandas"):
        work |= river_streams(batches, strings, labels)
    return take_turns(work, repeat)


def river_streams(
    batches: list[tuple[sp.csr_matrix, np.ndarray]], strings: list[str], labels: np.ndarray
) -> dict[str, Callable[[], float]]:
    """How river takes the second thousand documents or, in data frames, all of them.

    Not the first thousand, where nearly every word is new. Learning only counts words; predicting
    before learning is what discem does with each row.
    """
    import pandas as pd
    from river import compose, feature_extraction, naive_bayes

    documents = dicts(sp.vstack([X for X, _ in batches[:2]]).tocsr())
    known = labels[: len(documents)].tolist()
    frames = []
    for X, y in batches:
        own = np.unique(X.indices)  # a frame of the whole vocabulary would be slower
        columns = [str(word) for word in own]
        frame = pd.DataFrame.sparse.from_spmatrix(X[:, own], columns=columns)
        frames.append((frame, pd.Series(y)))

    def learn(model: Any, rows: list[Any], predict: bool = False) -> float:
        for row, label in zip(rows[:BATCH], known[:BATCH], strict=True):
            model.learn_one(row, label)
        pairs = list(zip(rows[BATCH:], known[BATCH:], strict=True))

        def work() -> None:
            for row, label in pairs:
                if predict:
                    model.predict_proba_one(row)
                model.learn_one(row, label)

        return seconds_of(work) * BATCH / max(len(pairs), 1)

    def learn_frames() -> float:
        model = naive_bayes.MultinomialNB()
        return (
            seconds_of(lambda: [model.learn_many(*frame) for frame in frames]) * BATCH / len(labels)
        )

    def from_strings() -> Any:
        words = feature_extraction.BagOfWords(lowercase=True)
        return compose.Pipeline(words, naive_bayes.MultinomialNB())

    return {
        "river MultinomialNB, learn_many": learn_frames,
        "river MultinomialNB, learn_one": lambda: learn(naive_bayes.MultinomialNB(), documents),
        "river MultinomialNB, predict and learn_one": lambda: learn(
            naive_bayes.MultinomialNB(), documents, predict=True
        ),
        "river BagOfWords + MNB, learn_one from strings": lambda: learn(
            from_strings(), strings[: len(documents)]
        ),
    }


# --- 3. a whole fit on raw counts -----------------------------------------------------------------


def measure_fits(
    train: tuple[Any, np.ndarray], test: tuple[Any, np.ndarray], name: str, repeat: int
) -> tuple[Times, dict[str, str]]:
    """Seconds of fits, and their accuracy."""
    notes: dict[str, str] = {}
    models = {
        "discem MultinomialNB, settings of text.py": discem.MultinomialNB(
            random_state=0, **SETTINGS.get(name, {})
        ),
        "LIBLINEAR logistic regression": OneVsRestClassifier(
            LogisticRegression(solver="liblinear")
        ),
        "LinearSVC": LinearSVC(random_state=0),
    }

    def fit(method: str) -> float:
        seconds = seconds_of(lambda: models[method].fit(*train))
        notes[method] = f"(accuracy {models[method].score(*test):.4f})"
        return seconds

    return take_turns({method: partial(fit, method) for method in models}, repeat), notes


# --- 4. the default fit ---------------------------------------------------------------------------


def measure_default(texts: list[str], y: np.ndarray, repeat: int) -> Times:
    X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    words: list[float] = []

    def ours() -> float:
        with words_clock() as own:
            seconds = seconds_of(lambda: discem.TextClassifier(random_state=0).fit(texts, y))
        words.append(sum(own))
        return seconds - words[-1]

    work = {
        "LinearSVC, fit": lambda: seconds_of(lambda: LinearSVC(random_state=0).fit(X, y)),
        "TextClassifier, fit less words": ours,
    }
    return take_turns(work, repeat) | {"TextClassifier, words (CountVectorizer)": words}


# --- report ---------------------------------------------------------------------------------------


def main() -> None:
    """Measure, print, and write JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", metavar="DIR", help="folder of data sets (default: DISCEM_DATA)")
    parser.add_argument("--set", metavar="NAME", help="default: 20ng if found, else docstrings")
    parser.add_argument("--repeat", type=int, default=5, help="repeats of each (default 5)")
    parser.add_argument("--quick", action="store_true", help="docstrings, two repeats: a trial")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    if options.quick:
        options.set, options.repeat = "docstrings", 2
    warnings.simplefilter("ignore")  # of scikit-learn about convergence
    begun = time.perf_counter()
    found = versions("vowpalwabbit", "river")
    print(", ".join(f"{name} {value}" for name, value in found.items()))

    name = options.set or find_sets(options.data)[0]
    parts = read(name, options.data)
    (texts, labels), (test_texts, test_labels) = parts["train"], parts["test"]
    vectorizer = CountVectorizer(dtype=np.float64)
    X, X_test = vectorizer.fit_transform(texts), vectorizer.transform(test_texts)
    y, y_test = np.array(labels), np.array(test_labels)
    print(f"\n{name}: {X.shape[0]} documents, {len(set(labels))} classes, {X.nnz} stored words")

    tables: dict[str, Times] = {}
    for loss in LOSSES:
        tables[loss] = show_first(
            f"Pass over raw counts, {loss}", measure_pass(X, y, loss, options.repeat)
        )
    times = measure_stream(texts, X, y, options.repeat)
    rates = {method: f"({BATCH / median(t):.0f} documents/s)" for method, t in times.items()}
    tables["stream"] = show_first(f"Stream, {BATCH} documents", times, rates)
    times, notes = measure_fits((X, y), (X_test, y_test), name, options.repeat)
    tables["fits"] = show_first("Raw counts, whole fit", times, notes)
    tables["default"] = show_first("tf-idf, default fit", measure_default(texts, y, options.repeat))
    print(f"\nin all {time.perf_counter() - begun:.0f} s")
    if options.json:
        content = {"versions": found, "data": name, "settings": str(SETTINGS), "notes": notes}
        write_json(options.json, content | {"seconds": tables})


def show_first(title: str, times: Times, notes: dict[str, str] | None = None) -> Times:
    """Print a table with ratios to its first row."""
    show(title, times, next(iter(times)), notes)
    return times


if __name__ == "__main__":
    use_one_core()
    with threadpool_limits(1):
        main()
