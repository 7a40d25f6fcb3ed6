"""The demo: naive Bayes, discem and other classifiers on data of every installation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as bundled
from sklearn import naive_bayes as plain
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ..datasets import docstrings, toy, toy_accuracy
from ..estimators import GaussianNB, MultinomialNB, TableClassifier, TextClassifier
from ..exceptions import MissingExtraError
from ._output import Progress, output_folder
from .plots import joint_of, plot_toy, save_figure

TABLES = {
    "wine": bundled.load_wine,
    "breast cancer": bundled.load_breast_cancer,
    "digits": bundled.load_digits,
}
HOLES, LEVELS = 0.2, 4  # of the mixed table: share of cells removed, and levels per category


@dataclass
class Task:
    """Training rows, test rows, and the accuracy function."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    words: bool = False
    texts: tuple[list[str], list[str]] | None = None  # the rows as texts, if they are
    mixed: bool = False  # every second column is categorical, and cells are missing
    epochs: int = 100  # the most epochs when many models are tried
    accuracy: Callable[[Any], float] | None = None  # of a population, if known


@dataclass
class Score:
    """One line of the table of the demo."""

    data: str
    method: str
    accuracy: float
    log_loss: float | None  # None without probabilities
    seconds: float


def run_demo(
    output: str | os.PathLike[str],
    seed: int = 0,
    quick: bool = False,
    progress: Progress | None = None,
) -> tuple[list[Score], Path | None]:
    """Train every method on every data set, and draw the toy.

    Parameters
    ----------
    output : path
        Folder for the picture of the toy.
    seed : int
        Of samples, splits and the order of rows.
    quick : bool
        Little data, to see that everything runs.
    progress : callable, optional
        Called with the name of the step, the share of the work done, and the training loss.

    Returns
    -------
    scores : list of Score
    picture : Path or None
        None if matplotlib is not installed.
    """
    folder = output_folder(output)
    tell = progress or (lambda *_: None)
    tell("reading docstrings", 0.0, None)
    texts = _docstrings(seed, 40 if quick else 400)
    tables = [_table(name, load, seed) for name, load in TABLES.items()]
    mixed = _mixed("wine, mixed, holes", bundled.load_wine, seed, 5 if quick else 100)
    tasks = [_toy(seed, 2_000 if quick else 30_000), *tables, mixed, texts]

    fits = [(task, *named) for task in tasks for named in _methods(task, seed).items()]
    scores, fitted = [], {}
    for done, (task, name, method) in enumerate(fits):
        tell(f"{task.name}: {name}", done / len(fits), None)
        begun = time.perf_counter()
        with threadpool_limits(1):  # a fair race; and threads that wait for busy cores crawl
            model = method.fit(_rows(task, method)[0], task.y)
        scores.append(_score(task, name, model, time.perf_counter() - begun))
        fitted[task.name, name] = model
    return scores, _picture(tasks[0], fitted, folder)


class Calibrated:
    """Calibrate hinge training, which only fixes margins, on a held-out fifth of the rows."""

    def __init__(self, model: Any, seed: int):
        self.model, self.seed = model, seed

    def fit(self, X: Any, y: np.ndarray) -> Any:
        X, X_held, y, y_held = train_test_split(
            X, y, test_size=0.2, stratify=y, random_state=self.seed
        )
        return self.model.fit(X, y).calibrate(X_held, y_held)


def _methods(task: Task, seed: int) -> dict[str, Any]:
    """Return new classifiers by name. Only linear ones need scaled columns."""
    if task.mixed:
        return _methods_of_tables(task, seed)
    ours = MultinomialNB if task.words else GaussianNB
    losses: Any = ("nll", "ncll", "hinge")
    nll, ncll, hinge = (ours(loss=loss, random_state=seed) for loss in losses)
    scale = "passthrough" if task.words else StandardScaler()
    methods = {
        "plain naive Bayes": (plain.MultinomialNB if task.words else plain.GaussianNB)(),
        "discem NLL": nll,
        "discem NCLL": ncll,
        "discem hinge": Calibrated(hinge, seed),
        "logistic regression": make_pipeline(scale, LogisticRegression(max_iter=1000)),
        "linear SVM": make_pipeline(scale, LinearSVC(random_state=seed)),
    }
    if task.texts is not None:
        methods["discem TextClassifier"] = TextClassifier(random_state=seed)
    return methods


def _methods_of_tables(task: Task, seed: int) -> dict[str, Any]:
    """Return classifiers for categories and missing cells, with imputation where needed."""
    places = np.arange(task.X.shape[1])
    numbers, levels = places[::2].tolist(), places[1::2].tolist()
    columns = make_column_transformer(
        (make_pipeline(StandardScaler(), SimpleImputer()), numbers),
        (
            make_pipeline(
                SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
            ),
            levels,
        ),
    )
    return {
        "discem TableClassifier": TableClassifier(max_iter=task.epochs, random_state=seed),
        "logistic regression, imputed": make_pipeline(columns, LogisticRegression(max_iter=1000)),
        "HistGradientBoosting": HistGradientBoostingClassifier(
            categorical_features=levels, random_state=seed
        ),
    }


def _rows(task: Task, method: Any) -> tuple[Any, Any]:
    """Return the rows to train and test a method on."""
    if task.texts is not None and isinstance(method, TextClassifier):
        return task.texts
    return task.X, task.X_test


def _score(task: Task, name: str, model: Any, seconds: float) -> Score:
    rows = _rows(task, model)[1]
    correct = task.accuracy(model) if task.accuracy else model.score(rows, task.y_test)
    loss = None
    if hasattr(model, "predict_proba"):
        loss = log_loss(task.y_test, model.predict_proba(rows), labels=model.classes_)
    return Score(task.name, name, float(correct), loss, seconds)


def _toy(seed: int, samples: int) -> Task:
    fresh = toy(samples, random_state=seed + 1)
    return Task("toy", *toy(samples, random_state=seed), *fresh, accuracy=toy_accuracy)


def _table(name: str, load: Callable, seed: int) -> Task:
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    return Task(name, X, y, X_test, y_test)


def _mixed(name: str, load: Callable, seed: int, epochs: int) -> Task:
    """Return a table with every second column cut into equally frequent levels, and with holes."""
    X, y = load(return_X_y=True)
    for j in range(1, X.shape[1], 2):
        X[:, j] = np.searchsorted(np.quantile(X[:, j], np.arange(1, LEVELS) / LEVELS), X[:, j])
    rng = np.random.default_rng(seed)
    X = np.where(rng.uniform(size=X.shape) < HOLES, np.nan, X)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    return Task(name, X, y, X_test, y_test, mixed=True, epochs=epochs)


def _docstrings(seed: int, per_library: int) -> Task:
    texts, labels = docstrings(max_per_library=per_library, random_state=seed)
    train, test, y, y_test = train_test_split(
        texts, np.array(labels), test_size=0.3, stratify=labels, random_state=seed
    )
    counts = CountVectorizer(min_df=2, dtype=np.float64)
    X = counts.fit_transform(train)
    rows = X, y, counts.transform(test), y_test
    return Task("docstrings", *rows, words=True, texts=(train, test))


def _picture(task: Task, fitted: dict, folder: Path) -> Path | None:
    names = {"NLL": "discem NLL", "NCLL": "discem NCLL", "Hinge": "discem hinge"}
    models = {short: fitted[task.name, name] for short, name in names.items()}
    accuracies = {short: [toy_accuracy(model)] for short, model in models.items()}
    joints = {short: joint_of(model) for short, model in models.items()}
    try:
        save_figure(plot_toy(task.X, task.y, joints, accuracies), folder / "demo-toy")
    except MissingExtraError:
        return None
    return folder / "demo-toy.png"
