"""What the experiments with multinomial naive Bayes (MNB) share: sets, training, rivals, pictures.

Documents are raw counts of words, which most sets have stemmed and between blanks. Training
is Algorithm 1 with the settings of the supplement: lambda = 1e-5, the check-step, a flat start, no
averaging, and the prior P1 (alpha = 1) or P2 (alpha = ln |W|). Weights are those of Table 1, with
p(y | d) computed once a document. The pseudo-code is read to the letter beside it, by
`discem.paper.printed`: with p(y | d) anew for every word, and once a document.

Rivals are LIBLINEAR's, as the paper names them and with LIBLINEAR's own defaults: logistic
regression and the SVM (squared hinge loss), both in the primal, C = 1, a tolerance of 0.01 and no
bias; and plain MNB.
"""

import gzip
import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from lab.datasets import load_text
from lab.plots import BY_LOSS, REFERENCE, key, panels
from lab.study import Claim, Evidence, Part, Picture, Plan, Table
from sklearn import naive_bayes
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from discem.paper import multinomial, printed
from discem.report.plots import COLOURS

SETS = {"20ng": "20 Newsgroups", "r52": "Reuters-52", "cade": "Cade"}
STEMMED = ("20ng", "r52", "r8", "webkb", "cade")  # byte for byte what the paper used
MARKERS = {"20ng": "o", "r52": "x", "cade": "^"}  # the paper's own
PRIORS = ("P1", "P2")
LOSSES = {"ncll": "NCLL", "hinge": "Hinge"}
MEASURES = {"hinge": "hinge loss", "ncll": "NCLL", "perplexity": "normalised perplexity"}
LAMBDA = 1e-5  # the only one that the paper prints for text
OTHER_LAMBDAS = (1.0, 0.1, 0.01, 0.001, 0.0001)
READINGS = {  # of the algorithms
    "table": "Table 1",
    "document": "pseudo-code, p(y | d) once a document",
    "word": "pseudo-code, p(y | d) anew for every word",
}
EPOCHS = 30  # of the curves of losses
SECONDS = {"20ng": 0.35, "r52": 0.15, "cade": 0.7}  # of an epoch with its measuring
LIBLINEAR = {"fit_intercept": False, "tol": 0.01}
RIVALS: dict[str, Callable[[int], Any]] = {  # made for a number of words
    "LR": lambda _: OneVsRestClassifier(LogisticRegression(solver="liblinear", **LIBLINEAR)),
    "SVM": lambda _: LinearSVC(dual=False, **LIBLINEAR),
    "MNB": lambda _: naive_bayes.MultinomialNB(),
    "MNB-P2": lambda n_words: naive_bayes.MultinomialNB(alpha=float(np.log(n_words))),
}
RIVAL_SECONDS = {"LR": 13.0, "SVM": 4.0, "MNB": 1.0, "MNB-P2": 1.0}
NEAR = 0.02  # two points of accuracy: very close
FALLS = 0.9  # of what it was
SPIKES = (
    "The check-step at this lambda does not diverge. Spikes are the first epochs' under P1, where "
    "steps near 1 meet counts that are still light."
)
# Runs of letters, which may hold hyphens and apostrophes, single ! and ?, and smileys by themselves
TOKENS = re.compile(
    r"(?<!\S)(?:[:;=8][-o*']?[)\](\[dp/:}{@|\\]|[)\](\[dp/:}{@|\\][-o*']?[:;=8])(?!\S)"
    r"|[^\W\d_]+(?:['-]+[^\W\d_]+)*|[!?]"
)


# --- parts ----------------------------------------------------------------------------------------


def parts(
    plan: Plan,
    models: Iterable[tuple[str, str]],
    rivals: Iterable[str] = (),
    epochs: int = EPOCHS,
    *,
    losses: bool,
    reading: str = "table",
    lam: float = LAMBDA,
    sets: Iterable[str] = tuple(SETS),
    seeds: int = 3,
) -> list[Part]:
    """Train each model, a loss and a prior, on each set and seed, and each rival on each set."""
    if plan.quick:
        epochs = min(epochs, 6)
    cost = 2 * epochs if reading == "word" else epochs
    named = "" if reading == "table" else f"-by-{reading}"
    named += "" if lam == LAMBDA else f"-lambda-{lam:g}"
    settings = {"reading": reading, "losses": losses, "lam": lam}
    sets = ["r52"] if plan.quick else sets
    return [
        Part(f"{data}-{rival}", line, {"data": data, "rival": rival}, (data,), RIVAL_SECONDS[rival])
        for data in sets
        for rival in rivals
    ] + [
        Part(
            f"{data}-{loss}-{prior}{named}-{seed}",
            train,
            {"data": data, "loss": loss, "prior": prior, "epochs": epochs, "seed": seed} | settings,
            (data,),
            SECONDS[data] * cost,
        )
        for data in sets
        for loss, prior in models
        for seed in plan.seeds_or(seeds, quick=1)
    ]


def lambda_parts(plan: Plan, models: Iterable[tuple[str, str]]) -> list[Part]:
    """The models with other lambdas, one seed on one set."""
    return [
        part
        for lam in OTHER_LAMBDAS
        for part in parts(plan, models, losses=False, lam=lam, sets=["r52"], seeds=1)
    ]


def train(
    data: str,
    loss: str,
    prior: str,
    epochs: int,
    seed: int,
    reading: str,
    losses: bool,
    lam: float = LAMBDA,
) -> dict[str, Any]:
    """Test accuracy, and with `losses` figures of the training set, at the start and by epoch.

    `reading` is one of `READINGS`.
    """
    X, y, X_test, y_test = counts(data)
    measured = tuple(MEASURES) if losses else ()
    curves: dict[str, list[float]] = {name: [] for name in ("accuracy", *measured)}

    def measure(model: Any, _: Any = None) -> None:
        figures = model.measure(X, y) if losses else {}
        for name in measured:
            curves[name].append(figures[name])
        curves["accuracy"].append(model.score(X_test, y_test))

    rows: dict[str, Any] = {"X": X, "y": y, "loss": loss, "prior": prior}
    start = multinomial.train(**rows, epochs=0)
    measure(start)
    options = {"lam": lam, "epochs": epochs, "callback": measure}
    if reading == "table":
        model = multinomial.train(**rows, **options, seed=seed)
    else:
        rng = np.random.default_rng(seed)
        model = printed.train(**rows, **options, reading=reading, seed=rng)
    if losses:
        curves["perplexity"] = [value / len(y) for value in curves["perplexity"]]
    found = {"data": data, "loss": loss, "prior": prior, "seed": seed, "reading": reading}
    found["lambda"] = lam
    return found | curves | packed(model.predict(X_test) == y_test)


def line(data: str, rival: str) -> dict[str, Any]:
    """The test accuracy of another method."""
    X, y, X_test, y_test = counts(data)
    right = RIVALS[rival](X.shape[1]).fit(X, y).predict(X_test) == y_test
    return {"data": data, "rival": rival, "accuracy": float(right.mean())} | packed(right)


def packed(right: np.ndarray) -> dict[str, Any]:
    """Which documents are classified right, as JSON holds it."""
    return {"documents": len(right), "right": np.packbits(right).tobytes().hex()}


def unpacked(result: dict[str, Any]) -> np.ndarray:
    """One number a document: 1 if it is classified right.

    >>> unpacked(packed(np.array([True, False, True])))
    array([1., 0., 1.])
    """
    bits = np.frombuffer(bytes.fromhex(result["right"]), dtype=np.uint8)
    return np.unpackbits(bits, count=result["documents"]).astype(float)


@lru_cache(maxsize=2)
def counts(data: str, most: int | None = None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Training rows (`most` of them) and labels, test rows and labels.

    The words of a row are in order: otherwise whoever sorts them in place would change what those
    who come later add up, and in which order.
    """
    (texts, labels), (test_texts, test_labels) = documents(data)
    words = vectorizer(data)
    X, X_test = words.fit_transform(texts[:most]), words.transform(test_texts)
    for matrix in (X, X_test):
        matrix.sort_indices()
    return X, np.array(labels[:most]), X_test, np.array(test_labels)


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
    """Words are what stands between blanks where they are stemmed, else runs of letters.

    Where a list of words lies beside the data, as the IMDB's own does, it is the vocabulary, and
    words are cut as those of the list were.
    """
    vocabulary = Path(os.environ["DISCEM_DATA"], data, f"{data}.vocab.gz")
    if vocabulary.exists():
        words = gzip.decompress(vocabulary.read_bytes()).decode().split()
        return CountVectorizer(tokenizer=tokens, token_pattern=None, vocabulary=words, dtype=float)
    stemmed = data in STEMMED
    pattern = r"\S+" if stemmed else "[a-z]+"
    return CountVectorizer(token_pattern=pattern, lowercase=not stemmed, dtype=float)


def tokens(text: str) -> list[str]:
    """Of a review: without its markup, and without the 's of a genitive.

    >>> tokens("<br />it was Tom's so-so :) film! in 1999")
    ['it', 'was', 'tom', 'so-so', ':)', 'film', '!', 'in']
    """
    return TOKENS.findall(re.sub(r"<[^>]*>", " ", text.lower()).replace("'s", ""))


# --- results --------------------------------------------------------------------------------------


class Results:
    """The results of parts: curves by set, loss and prior, and the lines of the rivals."""

    def __init__(self, results: dict[str, dict], reading: str = "table", lam: float = LAMBDA):
        self.lines: dict[tuple[str, str], dict] = {}
        self.runs: dict[tuple[str, str, str], list[dict]] = {}
        for each in results.values():
            if "rival" in each:
                self.lines[each["data"], each["rival"]] = each
            elif (each["reading"], each["lambda"]) == (reading, lam):
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

    def line(self, data: str, rival: str) -> float:
        return self.lines[data, rival]["accuracy"]

    def epochs(self) -> int:
        """Of all runs."""
        return len(next(iter(self.runs.values()))[0]["accuracy"]) - 1

    def each(self, say: Callable[[tuple[str, str, str]], Evidence]) -> list[Evidence]:
        """`say(run)` for every run, with its set and prior before what it says."""
        return [
            found._replace(what=f"{run[0]} {run[2]}{found.what}")
            for run in self.runs
            for found in [say(run)]
        ]


def falls(results: Results, paper: str, measure: str, where: str) -> Claim:
    """That a measure ends below its start."""
    means = {run: results.mean(run, measure) for run in results.runs}
    return Claim(
        paper,
        f"its mean over the training set ends below {100 * FALLS:.0f} % of the start, on every set "
        "and with either prior",
        f"share left after {results.epochs()} epochs, in %",
        results.each(
            lambda run: Evidence("", 100 * means[run][-1] / means[run][0], None, 100 * FALLS)
        ),
        where,
        f"lambda and priors are the paper's; {results.epochs()} epochs and the margin are ours",
        ".1f",
    )


def closeness(what: str, ours: Iterable[dict], others: Iterable[dict]) -> Evidence:
    """Points above others: two, or two standard errors where those are more, are very close.

    The error is that of the mean difference over test documents, each classified by both.
    """
    means = [np.mean([unpacked(each) for each in runs], axis=0) for runs in (ours, others)]
    difference = means[0] - means[1]
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    bound = 100 * max(NEAR, 2 * error)
    return Evidence(what, 100 * float(difference.mean()), -bound, bound)


CLOSE = (
    "the two accuracies differ by at most 2 points either way, or by two standard errors of the "
    "difference over test documents where those are more"
)


def other_lambdas(
    results: dict[str, dict], loss: str, where: str
) -> tuple[list[Claim], list[Table]]:
    """That other lambdas yield similar results, and the accuracies by lambda, if they were run."""
    found = {lam: Results(results, lam=lam) for lam in (*OTHER_LAMBDAS, LAMBDA)}
    if any("r52" not in each.sets for each in found.values()):
        return [], []
    first = {
        prior: [run for run in found[LAMBDA].runs["r52", loss, prior] if run["seed"] == 0]
        for prior in PRIORS
    }
    epochs = found[LAMBDA].epochs()
    claim = Claim(
        f"{LOSSES[loss]}-MNB: other values of lambda yield similar results, though more slowly",
        f"with each other lambda the accuracy is very close to that with {LAMBDA:g}: {CLOSE}",
        f"points above lambda = {LAMBDA:g} after {epochs} epochs",
        [
            closeness(f"{prior} {lam:g}", found[lam].runs["r52", loss, prior], first[prior])
            for prior in PRIORS
            for lam in OTHER_LAMBDAS
        ],
        where,
        f"lambdas are the first of the list in section 3.2; Reuters-52, one seed, {epochs} epochs "
        "and the margin are ours",
    )
    rows = [
        [prior, epoch]
        + [
            round(100 * runs[0]["accuracy"][epoch], 1)
            for lam in found
            for runs in [first[prior] if lam == LAMBDA else found[lam].runs["r52", loss, prior]]
        ]
        for prior in PRIORS
        for epoch in (epochs // 3, epochs)
    ]
    columns = ["prior", "epoch", *(f"lambda {lam:g}" for lam in found)]
    return [claim], [Table("Test accuracy on Reuters-52 by lambda, %, seed 0", columns, rows)]


# --- pictures -------------------------------------------------------------------------------------


def draw_losses(results: Results, name: str, title: str) -> Picture:
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
        f"{title} on its training set: mean of the seeds, with their range",
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
        for other, rival in results.lines:
            if other == data and rival != "MNB-P2":  # far below, as in the paper
                accuracy = 100 * results.line(data, rival)
                panel.axhline(accuracy, **REFERENCE)
                where = (1.01, accuracy)
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
