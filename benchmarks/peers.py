"""Peers that are no scikit-learn classifiers, dressed as such: Vowpal Wabbit, river, a tuned LR.

Where much of `fit` is not training but translation into the peer's own format, the object says
itself how long training took (`fit_seconds_`) and predicting (`predict_seconds_`).
"""

from __future__ import annotations

import math
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from harness import clock, log_loss
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold


class VowpalWabbit:
    """One against all (`--oaa`) in `passes` passes, rows shuffled once.

    Words are numbered and the weights are as many as words times classes, so nothing collides.
    Writing the text file and parsing it into Vowpal Wabbit's binary cache are not counted; the
    seconds are those of a run on the cache: start, passes and, for training, writing the model.
    """

    def __init__(self, passes: int = 1, loss: str = "logistic", random_state: int = 0):
        self.passes, self.loss, self.random_state = passes, loss, random_state
        self._folder = tempfile.TemporaryDirectory()
        self._loss = ["--loss_function", loss]
        if loss == "logistic":
            self.predict_proba = self._predict_proba

    def __repr__(self) -> str:
        return f"vw --oaa K {' '.join(self._loss)} --passes {self.passes} --holdout_off"

    def fit(self, X: csr_matrix, y: np.ndarray) -> VowpalWabbit:
        self.cache(X, y)
        self.fit_seconds_ = self.run(self.passes)
        return self

    def cache(self, X: csr_matrix, y: np.ndarray) -> None:
        """Translate the training rows."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        bits = math.ceil(math.log2(X.shape[1] * len(self.classes_)))
        self._size = ["--oaa", len(self.classes_), "-b", max(bits, 18)]
        order = np.random.default_rng(self.random_state).permutation(X.shape[0])
        self._translate("train", X[order], codes[order])

    def run(self, passes: int) -> float:
        """Train on the cache; seconds."""
        return self._vw(
            *self._size, *self._loss, *self._source("train"), "--passes", passes, "--holdout_off",
            "-f", self._path("model"),
        )  # fmt: skip

    def predict(self, X: csr_matrix) -> np.ndarray:
        if self.loss == "logistic":
            return self.classes_[self._predict_proba(X).argmax(axis=1)]
        return self.classes_[np.array(self._answers(X), dtype=int) - 1]

    def _predict_proba(self, X: csr_matrix) -> np.ndarray:
        # only asked for here: training would take half as long again
        rows = (line.split() for line in self._answers(X, "--probabilities"))
        return np.array([[float(cell.partition(":")[2]) for cell in row] for row in rows])

    def _answers(self, X: csr_matrix, *options: str) -> list[str]:
        self._translate("test", X, np.zeros(X.shape[0], dtype=int))
        self.predict_seconds_ = self._vw(
            "-t", "-i", self._path("model"), *self._loss, *self._source("test"), "--passes", 1,
            "-p", self._path("answers"), *options,
        )  # fmt: skip
        return self._path("answers").read_text().splitlines()

    def _translate(self, part: str, X: csr_matrix, codes: np.ndarray) -> None:
        text = self._path(f"{part}.txt")
        with text.open("w") as lines:
            for i, code in enumerate(codes.tolist()):
                stored = slice(X.indptr[i], X.indptr[i + 1])
                cells = zip(X.indices[stored].tolist(), X.data[stored].tolist(), strict=True)
                words = " ".join(f"{word}:{count:g}" for word, count in cells)
                lines.write(f"{code + 1} | {words}\n")
        self._vw(*self._size, "-t", "-d", text, "-k", *self._source(part))
        text.unlink()

    def _source(self, part: str) -> list[Any]:
        return ["--cache_file", self._path(f"{part}.cache")]

    def _path(self, name: str) -> Path:
        return Path(self._folder.name, name)

    @staticmethod
    def _vw(*arguments: Any) -> float:
        import vowpalwabbit

        def work() -> None:
            vowpalwabbit.Workspace(arg_list=[str(a) for a in (*arguments, "--quiet")]).finish()

        return clock(work)[1]


class River:
    """river's MultinomialNB, one document at a time: that is how it takes words as they come.

    Making dicts of the rows is not counted.
    """

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha

    def __repr__(self) -> str:
        return f"river.naive_bayes.MultinomialNB(alpha={self.alpha})"

    def fit(self, X: csr_matrix, y: np.ndarray) -> River:
        from river.naive_bayes import MultinomialNB

        self.classes_ = np.unique(y)
        self._model = MultinomialNB(alpha=self.alpha)
        documents, labels = dicts(X), y.tolist()

        def learn() -> None:
            for document, label in zip(documents, labels, strict=True):
                self._model.learn_one(document, label)

        self.fit_seconds_ = clock(learn)[1]
        return self

    def predict_proba(self, X: csr_matrix) -> np.ndarray:
        documents, labels = dicts(X), self.classes_.tolist()
        answers, self.predict_seconds_ = clock(
            lambda: [self._model.predict_proba_one(document) for document in documents]
        )
        return np.array([[answer[label] for label in labels] for answer in answers])

    def predict(self, X: csr_matrix) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def dicts(X: csr_matrix) -> list[dict[int, float]]:
    """Rows as river takes them."""
    bounds = X.indptr.tolist()
    words, counts = X.indices.tolist(), X.data.tolist()
    return [
        dict(zip(words[first:last], counts[first:last], strict=True))
        for first, last in pairwise(bounds)
    ]


class TunedLogisticRegression:
    """LBFGS, C of the least log-loss in three folds: the reference for probabilities.

    Within a fold C goes from the smallest to the largest, each fit starting from the one before.
    """

    def __init__(self, strengths: tuple[float, ...] = (1, 3, 10, 30, 100), folds: int = 3):
        self.strengths, self.folds = strengths, folds

    def __repr__(self) -> str:
        return f"LogisticRegression(max_iter=1000), C of {self.strengths} by {self.folds} folds"

    def fit(self, X: csr_matrix, y: np.ndarray) -> TunedLogisticRegression:
        losses = np.zeros(len(self.strengths))
        cut = StratifiedKFold(self.folds, shuffle=True, random_state=0)
        for train, test in cut.split(X, y):
            model = LogisticRegression(max_iter=1000, warm_start=True)
            for place, C in enumerate(self.strengths):
                model.set_params(C=C).fit(X[train], y[train])
                losses[place] += log_loss(y[test], model.predict_proba(X[test]), model.classes_)
        self.chosen_ = {"C": self.strengths[int(losses.argmin())]}
        self._model = LogisticRegression(**self.chosen_, max_iter=1000).fit(X, y)
        self.classes_ = self._model.classes_
        return self

    def predict(self, X: csr_matrix) -> np.ndarray:
        return self._model.predict(X)

    def predict_proba(self, X: csr_matrix) -> np.ndarray:
        return self._model.predict_proba(X)
