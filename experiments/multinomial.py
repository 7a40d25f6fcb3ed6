"""What the experiments with multinomial naive Bayes (MNB) share: sets, training, rivals, pictures.

Documents are raw counts of words, which most sets have stemmed and between blanks. Training
is Algorithm 1 with the settings of the supplement: lambda = 1e-5, the check-step, a flat start, no
averaging, and the prior P1 (alpha = 1) or P2 (alpha = ln |W|).
"""

import os
import warnings
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import naive_bayes
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from discem import MultinomialNB, constant, inverse
from discem.datasets import load_text
from discem.lab.study import Claim, Part, Picture, Plan
from discem.report.plots import BY_LOSS, COLOURS, REFERENCE, key, panels

SETS = {"20ng": "20 Newsgroups", "r52": "Reuters-52", "cade": "Cade"}
STEMMED = ("20ng", "r52", "r8", "webkb", "cade")  # byte for byte what the paper used
MARKERS = {"20ng": "o", "r52": "x", "cade": "^"}  # the paper's own
PRIORS = {"P1": "laplace", "P2": "log"}
LOSSES = {"ncll": "NCLL", "hinge": "Hinge"}
MEASURES = {"hinge": "hinge loss", "ncll": "NCLL", "perplexity": "normalised perplexity"}
SECONDS = {"20ng": 0.5, "r52": 0.2, "cade": 1.0}  # of an epoch with its measuring
RIVALS = {  # LIBLINEAR, L2-regularised; the SVM by its dual, whose optimum is the same
    "LR": lambda: OneVsRestClassifier(LogisticRegression(solver="liblinear")),
    "SVM": lambda: LinearSVC(random_state=0),
    "MNB": naive_bayes.MultinomialNB,
}
RIVAL_SECONDS = {"LR": 13.0, "SVM": 4.0, "MNB": 1.0}
NEAR = 0.01  # one point of accuracy
SPIKES = (
    "The check-step at this lambda does not diverge. Spikes are the first epochs' under P1, where "
    "steps near 1 meet counts that are still light."
)


# --- parts ----------------------------------------------------------------------------------------


def parts(
    plan: Plan, models: Iterable[tuple[str, str]], rivals: Iterable[str], epochs: int
) -> list[Part]:
    """Train each model, a loss and a prior, on each set and seed, and each rival on each set."""
    if plan.quick:
        epochs = min(epochs, 6)
    found = []
    for data in ["r52"] if plan.quick else SETS:
        for rival in rivals:
            settings = {"data": data, "rival": rival}
            found.append(Part(f"{data}-{rival}", line, settings, (data,), RIVAL_SECONDS[rival]))
        for loss, prior in models:
            for seed in plan.seeds_or(3, quick=1):
                settings = {"data": data, "loss": loss, "prior": prior, "seed": seed}
                name = f"{data}-{loss}-{prior}-{seed}"
                cost = SECONDS[data] * epochs
                found.append(Part(name, train, settings | {"epochs": epochs}, (data,), cost))
    return found


def train(data: str, loss: str, prior: str, epochs: int, seed: int) -> dict[str, Any]:
    """Figures of the training set and the test accuracy, at the start and after each epoch."""
    X, y, X_test, y_test = counts(data)
    curves: dict[str, list[float]] = {name: [] for name in (*MEASURES, "accuracy")}

    def measure(model: MultinomialNB, record: dict[str, float]) -> None:
        for name in MEASURES:
            curves[name].append(record[f"rescored_{name}"])
        curves["accuracy"].append(model.score(X_test, y_test))

    settings = {
        "loss": loss,
        "prior": PRIORS[prior],
        "init": "prior",
        "projection": "check",
        "average": False,
        "tol": None,
        "rescore": True,
        "callback": measure,
        "random_state": seed,
    }
    MultinomialNB(step=constant(0.0), max_iter=1, **settings).fit(X, y)  # stays at the start
    MultinomialNB(step=inverse(1e-5), max_iter=epochs, **settings).fit(X, y)
    curves["perplexity"] = [value / len(y) for value in curves["perplexity"]]
    return {"data": data, "loss": loss, "prior": prior, "seed": seed} | curves


def line(data: str, rival: str) -> dict[str, Any]:
    """The test accuracy of another method."""
    X, y, X_test, y_test = counts(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of LIBLINEAR's dual, near its end
        accuracy = RIVALS[rival]().fit(X, y).score(X_test, y_test)
    return {"data": data, "rival": rival, "accuracy": float(accuracy)}


@lru_cache(maxsize=2)
def counts(data: str, most: int | None = None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Training rows (`most` of them) and labels, test rows and labels."""
    (texts, labels), (test_texts, test_labels) = documents(data)
    words = vectorizer(data)
    X = words.fit_transform(texts[:most])
    return X, np.array(labels[:most]), words.transform(test_texts), np.array(test_labels)


def documents(data: str) -> list[tuple[list[str], list[str]]]:
    """Texts and labels for training, and for testing.

    The paper trains on more of the IMDB than is usual. A file says which reviews are left for the
    test then: their places in both parts together.
    """
    parts = [load_text(data, subset=subset) for subset in ("train", "test")]
    other = Path(os.environ["DISCEM_DATA"], data, "heldout3000.txt")
    if not other.exists():
        return parts
    texts, labels = (first + second for first, second in zip(*parts, strict=True))
    test = np.isin(np.arange(len(texts)), np.loadtxt(other, dtype=int))
    return [
        ([texts[i] for i in chosen], [labels[i] for i in chosen])
        for chosen in (np.flatnonzero(~test), np.flatnonzero(test))
    ]


def vectorizer(data: str) -> CountVectorizer:
    """Words are what stands between blanks where they are stemmed, else runs of letters."""
    stemmed = data in STEMMED
    pattern = r"\S+" if stemmed else "[a-z]+"
    return CountVectorizer(token_pattern=pattern, lowercase=not stemmed, dtype=np.float64)


# --- results --------------------------------------------------------------------------------------


class Results:
    """The results of parts: curves by set, loss and prior, and the lines of the rivals."""

    def __init__(self, results: dict[str, dict]):
        self.lines: dict[tuple[str, str], float] = {}
        self.runs: dict[tuple[str, str, str], list[dict]] = {}
        for each in results.values():
            if "rival" in each:
                self.lines[each["data"], each["rival"]] = each["accuracy"]
            else:
                run = each["data"], each["loss"], each["prior"]
                self.runs.setdefault(run, []).append(each)
        self.sets = [data for data in SETS if any(run[0] == data for run in self.runs)]

    def curves(self, run: tuple[str, str, str], measure: str) -> np.ndarray:
        """One row a seed, one column an epoch; the first is the start."""
        return np.array([each[measure] for each in self.runs[run]])

    def mean(self, run: tuple[str, str, str], measure: str) -> np.ndarray:
        return self.curves(run, measure).mean(axis=0)

    def final(self, run: tuple[str, str, str]) -> float:
        """Test accuracy after the last epoch."""
        return float(self.mean(run, "accuracy")[-1])


def each_run(results: Results, say: Any) -> str:
    """`say(run)` for every run, with its set and prior."""
    return "; ".join(f"{run[0]} {run[2]} {say(run)}" for run in results.runs)


def falls(results: Results, paper: str, measure: str) -> Claim:
    """That a measure ends below its start."""
    means = {run: results.mean(run, measure) for run in results.runs}
    seen = each_run(results, lambda run: f"{means[run][0]:.2f} to {means[run][-1]:.3f}")
    return Claim(paper, f"{seen}.", all(mean[-1] < mean[0] for mean in means.values()))


def near(results: Results, rival: str) -> Claim:
    """That models end at most a point below a rival."""
    name = {"LR": "logistic regression", "SVM": "the SVM"}[rival]
    gaps = {run: results.final(run) - results.lines[run[0], rival] for run in results.runs}
    seen = each_run(results, lambda run: f"{100 * gaps[run]:+.1f}")
    return Claim(
        f"Trained by sdEM, MNB is very close to {name} (we ask: at most a point below)",
        f"Points of test accuracy against {name} after the last epoch: {seen}.",
        min(gaps.values()) >= -NEAR,
    )


# --- pictures -------------------------------------------------------------------------------------


def draw_losses(results: Results, name: str, loss: str) -> Picture:
    """The three measures of the training set; sets by marker and colour, priors by dash."""
    figure, axes = panels(3)
    colours = dict(zip(SETS, COLOURS, strict=False))
    for place, (measure, label) in enumerate(MEASURES.items()):
        for run in results.runs:
            data, _, prior = run
            draw_curves(
                axes[0, place],
                results.curves(run, measure),
                first=0,
                color=colours[data],
                marker=MARKERS[data],
                linestyle="solid" if prior == "P1" else (0, (3, 1.5)),
                label=f"{SETS[data]}, {prior}",
            )
        axes[0, place].set(title=label, xlabel="epoch")
        if measure != "perplexity":
            axes[0, place].set_yscale("log")
    key(figure, axes[0, 0], columns=4)
    return Picture(
        name,
        figure,
        f"{LOSSES[loss]}-MNB on its training set: mean of the seeds, with their range",
        "Three panels over epochs: hinge loss, conditional log-loss and normalised perplexity, "
        "for each data set under the priors P1 and P2.",
    )


def draw_accuracy(results: Results, name: str) -> Picture:
    """Test accuracy, a panel a set, with the lines of the rivals."""
    figure, axes = panels(max(len(results.sets), 2), height=3.0)
    for place, data in enumerate(results.sets):
        panel = axes[0, place]
        for run in results.runs:
            if run[0] == data:
                _, loss, prior = run
                draw_curves(
                    panel,
                    100 * results.curves(run, "accuracy")[:, 1:],  # the start is a tie of classes
                    first=1,
                    color=BY_LOSS[loss],
                    linestyle="solid" if prior == "P1" else (0, (3, 1.5)),
                    label=f"{LOSSES[loss]}-MNB, {prior}",
                )
        for (other, rival), accuracy in results.lines.items():
            if other == data:
                panel.axhline(100 * accuracy, **REFERENCE)
                where = (1.01, 100 * accuracy)
                panel.annotate(rival, where, xycoords=("axes fraction", "data"), va="center")
        panel.set(title=SETS[data], xlabel="epoch", ylabel="test accuracy, %")
    for panel in axes[0, len(results.sets) :]:
        panel.remove()
    key(figure, axes[0, 0])
    return Picture(
        name,
        figure,
        "Accuracy on the test set: mean of the seeds, with their range",
        "Accuracy over epochs, a panel for each data set, beside lines for other methods.",
    )


def draw_curves(axes: Any, values: np.ndarray, first: int, **look: Any) -> None:
    """The mean over rows, and their range, over epochs from `first`."""
    epochs = np.arange(first, first + values.shape[1])
    axes.plot(epochs, values.mean(axis=0), **look)
    low, high = values.min(axis=0), values.max(axis=0)
    axes.fill_between(epochs, low, high, color=look["color"], alpha=0.18, linewidth=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
