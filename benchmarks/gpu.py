"""How fast one GPU trains beside one core, end to end from host memory, and as well.

Data are made up. Every case is fitted with the default settings: all rows on the device, and some
of them on one core, as many as take a while. Rows a second are those of a whole fit, so they count
the check of the input, the copy to the device and all passes. `times` compares these rates. Then
both fit the same rows, and accuracy and log-loss on fresh ones stand side by side.

In full it needs 40 GB of host memory; `--scale 0.1` takes a tenth of the rows.

Both also fit 200 000 rows of 50 columns and 7 classes, digits of scikit-learn, and with `--data`
the data sets 20ng, r52 and amazon14 of that folder: `<name>/train.txt.gz` and `test.txt.gz`.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --only words-20 numbers-7 --scale 0.1
    python benchmarks/gpu.py --device cpu --scale 0.001        # PyTorch without a GPU: a trial
    python benchmarks/gpu.py --only words-20 --profile         # where the time goes
"""

from __future__ import annotations

import argparse
import cProfile
import gzip
import importlib
import os
import platform
import pstats
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from threadpoolctl import threadpool_limits

try:
    import array_api_compat  # noqa: F401
except ImportError:  # SciPy brings a copy along, which is enough for a measurement
    for name in ("", ".torch", ".numpy", ".common"):
        module = importlib.import_module(f"scipy._lib.array_api_compat{name}")
        sys.modules[f"array_api_compat{name}"] = module

import discem

SEED, CHUNK, LENGTH, VOCABULARY, SUBJECTS = 0, 1 << 19, 80, 50_000, 100
MANY = 200_000  # rows of a table whose accuracy is held against the core's


class Case(NamedTuple):
    """Data to make up, and how to train on them."""

    rows: int  # of the device
    few: int  # of one core
    make: Callable[[int, torch.device], tuple[Any, np.ndarray]]
    estimator: Callable[..., Any]
    options: dict[str, Any] | None = None


def numbers(columns: int, classes: int, apart: float) -> Callable:
    """Normal columns whose means and deviations depend on the class."""

    def make(n: int, device: torch.device) -> tuple[np.ndarray, np.ndarray]:
        random = torch.Generator(device).manual_seed(SEED)
        given = {"generator": random, "device": device, "dtype": torch.float64}
        means = apart * torch.randn((classes, columns), **given)
        spread = 0.7 + 0.6 * torch.rand((classes, columns), **given)
        X, y = np.empty((n, columns)), np.empty(n, dtype=np.int64)
        for first in range(0, n, CHUNK):
            size = min(CHUNK, n - first)
            codes = torch.randint(classes, (size,), generator=random, device=device)
            shared = torch.randn((size, 1), **given)  # columns overlap
            noise = torch.randn((size, columns), **given) + 0.5 * shared
            X[first : first + size] = (means[codes] + spread[codes] * noise).cpu().numpy()
            y[first : first + size] = codes.cpu().numpy()
        return X, y

    return make


def words(classes: int) -> Callable:
    """Documents by Zipf's law: words of a list of the class, of a subject, and of all documents.

    Classes prefer some subjects, which fill half of a document: naive Bayes takes each of its words
    for new evidence, and has to be trained.
    """

    def make(n: int, device: torch.device) -> tuple[Any, np.ndarray]:
        random = torch.Generator(device).manual_seed(SEED)
        law = torch.cumsum(1.0 / torch.arange(1, VOCABULARY + 1, device=device).double(), 0)
        law = law / law[-1]
        shift = torch.randint(VOCABULARY, (classes,), generator=random, device=device)
        subjects = torch.randint(VOCABULARY, (SUBJECTS,), generator=random, device=device)
        liking = torch.rand((classes, SUBJECTS), generator=random, device=device) ** 4
        liking = torch.cumsum(liking, 1) / torch.sum(liking, 1, keepdim=True)
        liking[:, -1] = 1.0
        parts, labels = [], []
        for first in range(0, n, CHUNK):
            size = min(CHUNK, n - first)
            codes = torch.randint(classes, (size,), generator=random, device=device)
            u = torch.rand((size, LENGTH), generator=random, device=device, dtype=torch.float64)
            word = torch.searchsorted(law, u).clamp_(max=VOCABULARY - 1)
            where = torch.rand((size, LENGTH), generator=random, device=device)
            u = torch.rand((size, 1), generator=random, device=device)
            subject = subjects[torch.searchsorted(liking[codes], u)[:, 0]]
            word = word + (where < 1 / 10) * shift[codes][:, None]
            word = word + (where > 1 / 2) * subject[:, None]
            word = torch.sort(word % VOCABULARY, dim=1).values
            new = torch.ones_like(word, dtype=torch.bool)
            new[:, 1:] = word[:, 1:] != word[:, :-1]
            begins = torch.nonzero(new.reshape(-1))[:, 0]
            ends = torch.cat([begins[1:], begins.new_tensor([size * LENGTH])])
            stored = (ends - begins).cpu().numpy(), word.reshape(-1)[begins].int().cpu().numpy()
            parts.append((*stored, new.sum(dim=1).cpu().numpy()))
            labels.append(codes.cpu().numpy())
        values, indices, sizes = (np.concatenate(each) for each in zip(*parts, strict=True))
        del parts
        indptr = np.zeros(n + 1, dtype=np.int32 if len(values) < 2**31 else np.int64)
        np.cumsum(sizes, out=indptr[1:])
        stored = values.astype(np.float64), indices, indptr
        return sp.csr_matrix(stored, shape=(n, VOCABULARY)), np.concatenate(labels)

    return make


CASES = {
    "numbers-7": Case(10_000_000, 200_000, numbers(50, 7, 0.3), discem.GaussianNB),
    "numbers-1000": Case(10_000_000, 10_000, numbers(200, 1000, 0.3), discem.GaussianNB),
    "words-20": Case(10_000_000, 100_000, words(20), discem.MultinomialNB),
    "words-1000": Case(10_000_000, 20_000, words(1000), discem.MultinomialNB),
    "components": Case(
        1_000_000, 50_000, numbers(50, 7, 0.3), discem.MixtureClassifier, {"n_components": 3}
    ),
    "correlated": Case(1_000_000, 50_000, numbers(30, 7, 0.3), discem.GaussianClassifier),
}


class Fit(NamedTuple):
    """What a fit came to."""

    model: Any
    seconds: float
    before: float  # the first pass
    epoch: float  # seconds of a pass, the median of the later half
    epochs: int


def fit(case: Case, X: Any, y: np.ndarray, device: Any, profile: bool = False) -> Fit:
    """Train with the default settings."""
    model = case.estimator(random_state=SEED, device=device, **(case.options or {}))
    profiler = cProfile.Profile()
    begun = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(1 if device is None else None):
        warnings.simplefilter("ignore")
        if profile:
            profiler.enable()
        model.fit(X, y)
        profiler.disable()
    seconds = time.perf_counter() - begun
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
    passes = [record["seconds"] for record in model.history_]
    later = median(passes[len(passes) // 2 :])
    return Fit(model, seconds, seconds - sum(passes), later, len(passes))


def judge(model: Any, X: Any, y: np.ndarray) -> tuple[float, float]:
    """Accuracy, in percent, and the log-loss of rows whose class was in the training."""
    log_p, known = model.predict_log_proba(X), np.isin(y, model.classes_)
    place = np.searchsorted(model.classes_, y[known])
    right = 100.0 * (model.classes_[log_p.argmax(axis=1)] == y).mean()
    return float(right), float(-log_p[known, place].mean())


def speed(name: str, case: Case, options: argparse.Namespace, device: Any, place: Any) -> None:
    """One line of the table of speed, and one of that of accuracy."""
    n = max(int(case.rows * options.scale), 1000)
    few, fresh = min(case.few, n), min(20_000, max(n // 10, 100))
    (X, y), begun = case.make(n + fresh, place), time.perf_counter()
    X, y, Z, z = X[:n], y[:n], X[n:], y[n:]
    on_device = fit(case, X, y, device, options.profile)
    if place.type == "cuda":
        memory = torch.cuda.max_memory_allocated(place) / 1e9
        torch.cuda.reset_peak_memory_stats(place)
    else:
        memory = float("nan")
    again = judge(on_device.model, Z, z)
    both = fit(case, X[:few], y[:few], device)
    line = (
        f"{name:14}{n:>11,}{on_device.before:9.2f}{on_device.epoch:9.3f}{on_device.epochs:7}"
        f"{on_device.seconds:9.2f}{n / on_device.seconds:>13,.0f}{memory:8.1f}"
    )
    if options.no_core:
        print(line, f"   {again[0]:.2f} / {again[1]:.4f}", flush=True)
        return
    core = fit(case, X[:few], y[:few], None)
    times = n / on_device.seconds / (few / core.seconds)
    passes = n / on_device.epoch / (few / core.epoch)
    here, there = judge(core.model, Z, z), judge(both.model, Z, z)
    both.model.set_params(device=None)
    off = np.abs(both.model.predict_log_proba(Z) - _on(both.model, Z, device)).max()
    print(
        line + f"{few:>12,}{core.epoch:9.3f}{core.epochs:7}{core.seconds:9.2f}"
        f"{few / core.seconds:>11,.0f}{times:8.1f}{passes:8.1f}\n"
        f"    same rows: core {here[0]:.2f} / {here[1]:.4f}, device {there[0]:.2f} / {there[1]:.4f}"
        f" in {both.seconds:.2f} s; all rows {again[0]:.2f} / {again[1]:.4f}; "
        f"predictions on the CPU differ by {off:.0e}; {time.perf_counter() - begun:.0f} s in all",
        flush=True,
    )


def _on(model: Any, X: Any, device: Any) -> np.ndarray:
    return model.set_params(device=device).predict_log_proba(X)


def read(path: Path) -> tuple[list[str], list[str]]:
    """Documents and labels of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t", 1) for line in file]
    return [text for _, text in pairs], [label for label, _ in pairs]


def accuracy(options: argparse.Namespace, device: Any) -> None:
    """Data sets on both."""
    from sklearn.datasets import load_digits
    from sklearn.feature_extraction.text import CountVectorizer

    X, y = load_digits(return_X_y=True)
    test = np.arange(len(y)) % 3 == 0
    sets = {"digits": (discem.GaussianNB, X[~test], y[~test], X[test], y[test])}
    n = max(int(MANY * min(options.scale, 1.0)), 1000)
    X, y = numbers(50, 7, 0.3)(n + n // 10, torch.device("cpu"))
    sets[f"{n} x 50 x 7"] = discem.GaussianNB, X[:n], y[:n], X[n:], y[n:]
    for name in ("20ng", "r52", "amazon14"):
        folder = options.data / name if options.data else Path()
        if options.data and (folder / "train.txt.gz").exists():
            (texts, y), (fresh, z) = (read(folder / f"{p}.txt.gz") for p in ("train", "test"))
            counter = CountVectorizer(min_df=2)
            X, Z = counter.fit_transform(texts).astype(float), counter.transform(fresh)
            sets[name] = discem.MultinomialNB, X, np.array(y), Z.astype(float), np.array(z)
    print(f"\n{'data set':16}{'core':>20}{'s':>8}{'device':>20}{'s':>8}{'differ by':>12}")
    for name, (estimator, X, y, Z, z) in sets.items():
        case = Case(0, 0, numbers(1, 2, 1.0), estimator)
        core, there = (fit(case, X, y, each) for each in (None, device))
        here, other = judge(core.model, Z, z), judge(there.model, Z, z)
        print(
            f"{name:16}{here[0]:11.2f} / {here[1]:.4f}{core.seconds:8.2f}"
            f"{other[0]:11.2f} / {other[1]:.4f}{there.seconds:8.2f}{other[0] - here[0]:12.2f}",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda", help="of PyTorch (default cuda)")
    parser.add_argument("--dtype", default="float64", help="float64 (default) or float32")
    parser.add_argument("--only", nargs="*", choices=[*CASES, "accuracy"], help="these cases only")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many rows")
    parser.add_argument("--data", type=Path, metavar="DIR", help="a folder of data sets")
    parser.add_argument("--no-core", action="store_true", help="the device only")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    options = parser.parse_args()
    place = torch.device(options.device)
    device = discem.Device(place, options.dtype)
    name = platform.processor() or platform.machine()
    found = {"python": platform.python_version(), "discem": discem.__version__}
    found |= {"numpy": np.__version__, "torch": torch.__version__}
    if place.type == "cuda":
        name = f"{torch.cuda.get_device_name(place)}, CUDA {torch.version.cuda}, {name}"
    print(f"{name}, {os.cpu_count()} cores;", ", ".join(f"{k} {v}" for k, v in found.items()))
    print(f"{device}; 'before' is what comes before the first pass, 'epoch' a pass of all rows")
    small = Case(0, 0, numbers(5, 2, 1.0), discem.GaussianNB)
    fit(small, *small.make(1000, place), device)  # what is loaded once
    chosen = options.only or [*CASES, "accuracy"]
    print(
        f"\n{'':14}{'rows':>11}{'before':>9}{'epoch':>9}{'passes':>7}{'fit, s':>9}{'rows/s':>13}"
        f"{'GB':>8}{'core: rows':>12}{'epoch':>9}{'passes':>7}{'fit, s':>9}{'rows/s':>11}"
        f"{'times':>8}{'a pass':>8}"
    )
    for name in chosen:
        if name in CASES:
            speed(name, CASES[name], options, device, place)
    if "accuracy" in chosen:
        accuracy(options, device)


if __name__ == "__main__":
    main()
