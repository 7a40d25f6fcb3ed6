"""Text: accuracy, log-loss, seconds and memory beside the usual classifiers.

Data sets are folders of `--data DIR` (or DISCEM_DATA), each with `train.txt.gz` and `test.txt.gz`,
one document per line, `label<TAB>text`; without any, the docstrings of the installed libraries. All
methods but `text*` see the same words, scikit-learn's default tokens: `text*` takes the strings
themselves, with tokens of its own, `counts/*` raw counts, `tfidf/*`
TfidfVectorizer(sublinear_tf=True). No choice sees a test part.

Each run is a fresh process on one core, with a small fit first, so that imports do not
count. What is counted:

- words: making the training matrix from strings (for `text*`: its use of CountVectorizer);
- fit: training without that; for Vowpal Wabbit and river without translation, see peers.py;
- predict: labels of the test part, without making its matrix;
- peak: memory of the fit beyond what was held before it; that of `text*` includes the words'.

Methods with randomness are run with several seeds; ± is the standard deviation over them. Hinge
losses without calibration have no log-loss.

    python benchmarks/text.py --data DIR --json text.json
    python benchmarks/text.py --sets r8 webkb --methods 'text*' 'tfidf/*' --seeds 1
    python benchmarks/text.py --quick
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dmnb import DMNB
from harness import (
    FailedError,
    clock,
    in_process,
    log_loss,
    peak_memory,
    reset_peak,
    versions,
    words_clock,
    write_json,
)
from laboratory import DataNotFoundError, load_text
from peers import River, TunedLogisticRegression, VowpalWabbit
from sklearn import naive_bayes
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import discem
from discem import Dirichlet, constant
from discem.datasets import docstrings

NAMES = ("20ng", "r52", "r8", "webkb", "imdb", "amazon14")
PARTS = ("train", "test")
OURS, SVM, TUNED = "text", "tfidf/linear-svc", "tfidf/lr-tuned"  # what the summary compares
SAME = "tfidf/linear-svc-bigrams"  # .. in seconds: an SVM on the words that ours tries

FROM_EQUAL_WORDS = {"init": "prior", "step": constant(1.0), "average": True, "tol": None}
# of discem.MultinomialNB on raw counts, each chosen on a fifth of the training part
SETTINGS: dict[str, dict[str, Any]] = {
    "20ng": {"prior": Dirichlet(0.1), "step": constant(3e-4), "max_iter": 1},
    "r52": FROM_EQUAL_WORDS | {"loss": "hinge", "prior": Dirichlet(30.0), "max_iter": 6},
    "r8": FROM_EQUAL_WORDS | {"loss": "hinge", "prior": Dirichlet(10.0), "max_iter": 8},
    "webkb": {"loss": "hinge", "average": True, "tol": None, "max_iter": 4},
    "amazon14": FROM_EQUAL_WORDS | {"loss": "hinge", "prior": Dirichlet(100.0), "max_iter": 4},
    "imdb": {"prior": Dirichlet(1.0), "step": constant(1.5e-4), "max_iter": 1},
}

# --- methods --------------------------------------------------------------------------------------

WORDS: dict[str, Callable[[], Any]] = {
    "counts": lambda: CountVectorizer(dtype=np.float64),
    "tfidf": lambda: TfidfVectorizer(sublinear_tf=True),
    "bigrams": lambda: TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)),
}


class Method(NamedTuple):
    """A classifier from a seed."""

    make: Callable[[int], Any]
    words: str  # what it is trained on, a key of WORDS
    strings: bool = False  # makes the words itself
    random: bool = False
    needs: str | None = None  # a module that may be absent
    sets: tuple[str, ...] = ()  # data sets that it is meant for, if not all
    options: dict[str, dict[str, Any]] | None = None  # by data set

    def model(self, seed: int, data: str) -> Any:
        model = self.make(seed)
        return model.set_params(**self.options.get(data, {})) if self.options else model


def _text(**options: Any) -> Callable[[int], Any]:
    return lambda seed: discem.TextClassifier(random_state=seed, **options)


def _ours(loss: str) -> Callable[[int], Any]:
    return lambda seed: discem.MultinomialNB(loss=loss, random_state=seed)


def _liblinear(seed: int) -> Any:
    return OneVsRestClassifier(LogisticRegression(solver="liblinear"))


def _sgd(loss: str) -> Callable[[int], Any]:
    return lambda seed: SGDClassifier(loss=loss, random_state=seed)


def _svm(seed: int) -> Any:
    return LinearSVC(random_state=0)


def _vowpal(passes: int, loss: str = "logistic") -> Method:
    return Method(
        lambda seed: VowpalWabbit(passes, loss, seed), "counts", random=True, needs="vowpalwabbit"
    )


METHODS = {
    "text": Method(_text(), "counts", strings=True, random=True),
    "text-ncll": Method(_text(loss="ncll"), "counts", strings=True, random=True),
    "text-words": Method(_text(ngram_range=(1, 1)), "counts", strings=True, random=True),
    "counts/discem": Method(
        _ours("ncll"), "counts", random=True, sets=tuple(SETTINGS), options=SETTINGS
    ),
    "counts/discem-ncll": Method(_ours("ncll"), "counts", random=True),
    "counts/discem-hinge": Method(_ours("hinge"), "counts", random=True),
    "counts/mnb": Method(lambda seed: naive_bayes.MultinomialNB(), "counts"),
    "counts/mnb-0.1": Method(lambda seed: naive_bayes.MultinomialNB(alpha=0.1), "counts"),
    "counts/complement": Method(lambda seed: naive_bayes.ComplementNB(), "counts"),
    "counts/dmnb": Method(lambda seed: DMNB(random_state=seed), "counts", random=True),
    "counts/dmnb-5": Method(
        lambda seed: DMNB(epochs=5, presence=False, random_state=seed), "counts", random=True
    ),
    "counts/lr-liblinear": Method(_liblinear, "counts"),
    "counts/linear-svc": Method(_svm, "counts"),
    "counts/sgd-log": Method(_sgd("log_loss"), "counts", random=True),
    "counts/sgd-hinge": Method(_sgd("hinge"), "counts", random=True),
    "counts/vw-1": _vowpal(1),
    "counts/vw-10": _vowpal(10),
    "counts/vw-hinge-10": _vowpal(10, "hinge"),
    "counts/river": Method(lambda seed: River(), "counts", needs="river"),
    "tfidf/linear-svc": Method(_svm, "tfidf"),
    "tfidf/linear-svc-bigrams": Method(_svm, "bigrams"),
    "tfidf/lr-tuned": Method(lambda seed: TunedLogisticRegression(), "tfidf"),
    "tfidf/sgd-log": Method(_sgd("log_loss"), "tfidf", random=True),
    "tfidf/sgd-hinge": Method(_sgd("hinge"), "tfidf", random=True),
    "tfidf/complement": Method(lambda seed: naive_bayes.ComplementNB(), "tfidf"),
}


# --- data -----------------------------------------------------------------------------------------


def read(name: str, data: str | None, most: int | None = None) -> dict[str, tuple[list, list]]:
    """Texts and labels of the train and test parts, `most` random documents of each at most."""
    if name == "docstrings":
        texts, labels = docstrings(max_per_library=most // 4 if most else 400)
        cut = train_test_split(texts, labels, test_size=0.3, random_state=0)
        parts = {"train": (cut[0], cut[2]), "test": (cut[1], cut[3])}
    else:
        parts = {part: load_text(name, data, part) for part in PARTS}
    if most is None:
        return parts
    rng = np.random.default_rng(0)
    kept = {part: rng.permutation(len(labels))[:most] for part, (_, labels) in parts.items()}
    return {
        part: ([texts[i] for i in kept[part]], [labels[i] for i in kept[part]])
        for part, (texts, labels) in parts.items()
    }


def prepare(
    name: str, data: str | None, most: int | None, kinds: set[str], folder: Path
) -> dict[str, Any]:
    """Leave the strings, labels and matrices of a data set in a folder; its sizes and seconds."""
    parts = read(name, data, most)
    vocabulary: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for part, (texts, labels) in parts.items():
        (folder / f"{part}.json").write_text(json.dumps(texts))
        np.save(folder / f"{part}.npy", np.array(labels))
    for kind in kinds:
        vectorizer = WORDS[kind]()
        X, seconds[kind] = clock(vectorizer.fit_transform, parts["train"][0])
        vocabulary[kind] = X.shape[1]
        for part, matrix in (("train", X), ("test", vectorizer.transform(parts["test"][0]))):
            sp.save_npz(folder / f"{kind}-{part}.npz", matrix, compressed=False)
    return {
        "documents": {part: len(labels) for part, (_, labels) in parts.items()},
        "classes": len(set(parts["train"][1])),
        "vocabulary": vocabulary,
        "seconds": seconds,
    }


def _load(folder: Path, kind: str, part: str) -> sp.csr_matrix:
    return sp.load_npz(folder / f"{kind}-{part}.npz")


# --- one run --------------------------------------------------------------------------------------


def measure(name: str, data: str, seed: int, folder: Path, words: float) -> dict[str, Any]:
    """All figures of one method with one seed; `words` are the seconds of making its matrix."""
    warnings.simplefilter("ignore")  # of scikit-learn about convergence and rare classes
    method = METHODS[name]
    y, y_test = (np.load(folder / f"{part}.npy") for part in PARTS)
    if method.strings:
        X, X_test = (json.loads((folder / f"{part}.json").read_text()) for part in PARTS)
    else:
        X, X_test = (_load(folder, method.words, part) for part in PARTS)
    warm_up(method.model(0, data), X, y, method.strings)

    held = reset_peak()
    with words_clock() as own:
        model, fitting = clock(method.model(seed, data).fit, X, y)
    peak = peak_memory() - held
    words = sum(own) if method.strings else words
    with words_clock() as own_test:
        predicted, predicting = clock(model.predict, X_test)
    fitting = getattr(model, "fit_seconds_", fitting - sum(own))
    loss = None
    if hasattr(model, "predict_proba"):
        loss = log_loss(y_test, model.predict_proba(X_test), model.classes_)
    return {
        "seed": seed,
        "accuracy": float((predicted == y_test).mean()),
        "log_loss": loss,
        "words": words,
        "fit": fitting,
        "total": words + fitting,
        "predict": getattr(model, "predict_seconds_", predicting - sum(own_test)),
        "peak": peak / 1e6,
        "settings": " ".join(repr(model).split()),
        "chosen": {key: str(value) for key, value in getattr(model, "chosen_", {}).items()},
    }


def warm_up(model: Any, X: Any, y: np.ndarray, strings: bool) -> None:
    """A small fit, of some documents of the two most frequent classes."""
    labels = [label for label, _ in Counter(y.tolist()).most_common(2)]
    rows = np.concatenate([np.flatnonzero(y == label)[:50] for label in labels])
    part = [X[i] for i in rows] if strings else X[rows]
    model.fit(part, y[rows]).predict(part)


# --- all runs -------------------------------------------------------------------------------------


def compare(
    sets: list[str], names: list[str], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Every method on every data set, one result each."""
    most = 300 if options.quick else None
    for data in sets:
        mine = [name for name in names if data in (METHODS[name].sets or sets)]
        kinds = {METHODS[name].words for name in mine}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            try:
                size = in_process(prepare, data, options.data, most, kinds, folder)
            except FailedError as reason:
                print(f"\n{data} skipped: {reason}")
                continue
            print(
                f"\n{data}: {size['documents']['train']} + {size['documents']['test']} documents,"
                f" {size['classes']} classes, vocabulary {min(size['vocabulary'].values())}"
            )
            print(HEAD)
            for name in mine:
                result = {"data": data, "method": name, "size": size}
                result |= run(name, data, folder, size["seconds"][METHODS[name].words], options)
                print(row(result), flush=True)
                yield result


def run(
    name: str, data: str, folder: Path, words: float, options: argparse.Namespace
) -> dict[str, Any]:
    """The runs of a method with its seeds, or why there are none."""
    method = METHODS[name]
    if method.needs and importlib.util.find_spec(method.needs) is None:
        return {"runs": [], "reason": f"{method.needs} is not installed"}
    runs: list[dict[str, Any]] = []
    try:
        for seed in range(options.seeds if method.random else 1):
            runs.append(in_process(measure, name, data, seed, folder, words, limit=options.limit))
    except FailedError as reason:
        return {"runs": runs, "reason": str(reason)}
    return {"runs": runs, "reason": None}


def find_sets(data: str | None) -> list[str]:
    """The usual data sets that are there, else the docstrings."""
    found = []
    for name in NAMES:
        try:
            load_text(name, data, "test")
            found.append(name)
        except DataNotFoundError:
            continue
    return found or ["docstrings"]


# --- report ---------------------------------------------------------------------------------------

HEAD = (
    f"{'method':<26}{'accuracy, %':>15}{'log-loss':>17}"
    f"{'words, s':>10}{'fit, s':>9}{'total, s':>10}{'predict, s':>12}{'peak, MB':>10}"
)


def mean(result: dict[str, Any], figure: str) -> float:
    """Over seeds; NaN where the method has no such figure."""
    values = [run[figure] for run in result["runs"]]
    return float(np.mean(values)) if values and None not in values else float("nan")


def row(result: dict[str, Any]) -> str:
    """One line of the table."""
    if not result["runs"]:
        return f"{result['method']:<26}  {result['reason']}"
    text = f"{result['method']:<26}"
    for figure, unit, digits in (("accuracy", 100, 2), ("log_loss", 1, 3)):
        values = [unit * run[figure] for run in result["runs"] if run[figure] is not None]
        cell = f"{np.mean(values):.{digits}f}" if values else "-"
        spread = f" ± {np.std(values):.{digits}f}" if len(values) > 1 else ""
        text += f"{cell:>8}{spread:<8}"
    for figure, width, digits in (("words", 8, 2), ("fit", 9, 2), ("total", 10, 2)):
        text += f"{mean(result, figure):{width}.{digits}f}"
    text += f"{mean(result, 'predict'):12.2f}{mean(result, 'peak'):10.0f}"
    return text + (f"  {result['reason']}" if result["reason"] else "")


def summarize(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Per data set, and over all: ours against the SVM and the tuned logistic regression."""
    by_place = {(result["data"], result["method"]): result for result in results}
    none: dict[str, Any] = {"runs": []}
    summary = {}
    for data in dict.fromkeys(result["data"] for result in results):
        names = (OURS, SVM, TUNED, SAME)
        ours, svm, tuned, same = (by_place.get((data, name), none) for name in names)
        summary[data] = {
            "points": 100 * (mean(ours, "accuracy") - mean(svm, "accuracy")),
            "log_loss_ratio": mean(ours, "log_loss") / mean(tuned, "log_loss"),
            "fit_ratio": mean(ours, "fit") / mean(svm, "fit"),
            "total_ratio": mean(ours, "total") / mean(same, "total"),
        }
    return summary


def show_summary(summary: dict[str, dict[str, float]]) -> None:
    """Print it, with the mean of the points and the geometric means of the ratios."""
    print(f"\n{OURS} against {SVM}, {TUNED} for the log-loss, and {SAME} for the total")
    print(f"{'':<12}{'accuracy, points':>18}{'log-loss, ratio':>18}{'fit, ratio':>12}{'total':>8}")
    points, *ratios = np.array([list(line.values()) for line in summary.values()]).T
    rows = {data: tuple(line.values()) for data, line in summary.items()}
    rows["mean"] = (points.mean(), *(np.exp(np.log(r).mean()) for r in ratios))
    for data, (point, loss, fit, total) in rows.items():
        print(f"{data:<12}{point:+18.2f}{loss:18.2f}{fit:12.2f}{total:8.2f}")


def main() -> None:
    """Measure, print, and write JSON on request."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], epilog="methods: " + " ".join(METHODS)
    )
    parser.add_argument("--data", metavar="DIR", help="folder of data sets (default: DISCEM_DATA)")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="default: the usual ones found")
    parser.add_argument(
        "--methods", nargs="+", metavar="PATTERN", default=["*"], help="as 'tfidf/*'; default: all"
    )
    parser.add_argument("--seeds", type=int, default=3, help="runs of random methods (default 3)")
    parser.add_argument("--limit", type=float, default=300, help="seconds of a run (default 300)")
    parser.add_argument("--quick", action="store_true", help="300 documents, one seed: a trial")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    if options.quick:
        options.seeds = 1
        options.sets = options.sets or ["docstrings"]
    names = [n for n in METHODS if any(fnmatch(n, pattern) for pattern in options.methods)]
    if not names:
        parser.error(f"no method is named like {options.methods}: there are {list(METHODS)}")

    begun = time.perf_counter()
    found = versions("vowpalwabbit", "river")
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    results = []
    for result in compare(options.sets or find_sets(options.data), names, options):
        results.append(result)
        if options.json:  # after each: hours of work are not lost to an interruption
            content = {
                "versions": found,
                "settings": {
                    "seeds": options.seeds,
                    "limit": options.limit,
                    "discem": str(SETTINGS),
                },
                "results": results,
                "summary": {
                    data: {name: value for name, value in line.items() if np.isfinite(value)}
                    for data, line in summarize(results).items()
                },
            }
            write_json(options.json, content)
    if {OURS, SVM} <= set(names) and results:
        show_summary(summarize(results))
    print(f"\nin all {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
