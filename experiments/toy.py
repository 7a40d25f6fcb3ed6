"""Figure 1 of the paper: a model that does not fit its data, and is a good classifier all the same.

The data (section 4.1). Class -1 is N(0, 3). Class 1 is 0.8 N(-5, 0.1) + 0.2 N(5, 0.1): two needles,
one on each side. Both classes are equally frequent. The Bayes classifier is right 97.9 % of the
time: it answers 1 near the needles and -1 elsewhere.

The model. A Gaussian naive Bayes, one Gaussian a class, cannot have two needles. Maximum
likelihood puts a wide Gaussian between them, and the classifier is right 79.05 % of the time (in
the limit; the paper measured 78.6 %). Trained by NCLL or hinge loss the same five parameters no
longer describe the data but separate them: -1 in the middle, 1 on both sides, right 92 % of the
time.

What is run, for seeds 0, 1, ...: maximum likelihood; the paper's algorithm with its own prior,
start, check-step and step size 1 / (1 + lambda t), for 5 epochs; the same with interior steps in
place of the check-step; and discem's defaults. Beside them stand the optima of the two losses
themselves, for the population: no algorithm that minimises the loss can end elsewhere.

The paper does not say which lambda its toy had. Its section 3.2 says that trying 1, 0.1, 0.01,
0.001, ... suffices. Ours is 1, the first of that list; the next two are shown.
"""

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from lab.study import Claim, Evidence, Part, Picture, Plan, Report, Table
from scipy.optimize import minimize
from scipy.stats import norm

from discem import GaussianNB
from discem.datasets import toy, toy_accuracy
from discem.paper import gaussian
from discem.report.plots import plot_toy

TITLE = "Toy: one Gaussian a class, on data that no Gaussian fits"
PAPER = "Figure 1"

LAMBDAS = (1.0, 0.1, 0.01)
JUDGED = f"lambda {LAMBDAS[0]:g}"
EPOCHS = 5
CHECK = {lam: f"lambda {lam:g}" for lam in LAMBDAS}
INTERIOR = {lam: f"interior, lambda {lam:g}" for lam in LAMBDAS}
WAYS: dict[str, tuple[float, str]] = {
    way: (lam, projection)
    for projection, ways in {"check": CHECK, "interior": INTERIOR}.items()
    for lam, way in ways.items()
}
RUNS = [  # NLL has a closed form: there is nothing to do differently
    ("discem", "nll"), *((way, loss) for way in (*WAYS, "discem") for loss in ("ncll", "hinge")),
]  # fmt: skip
PRINTED = {"nll": 0.786, "ncll": 0.904, "hinge": 0.906}
LOSSES = {"nll": "NLL", "ncll": "NCLL", "hinge": "hinge"}
NAMES = {
    "discem": "discem's defaults",
    **{way: f"the paper's algorithm, {way}" for way in CHECK.values()},
    **{way: f"the same with interior steps, lambda {lam:g}" for lam, way in INTERIOR.items()},
}
DRAWN = 0  # the seed in the pictures
NEAR = 1.0  # points, to what is printed
FAR = 5.0  # points above maximum likelihood: a better classifier, not a luckier one
POOR = 0.8


def parts(plan: Plan) -> list[Part]:
    samples = 3_000 if plan.quick else 30_000
    return [
        Part(f"{slug(way)}-{loss}-{seed}", train, settings | {"seed": seed}, cost=0.6)
        for seed in plan.seeds_or(20, quick=3)
        for way, loss in RUNS
        for settings in [{"way": way, "loss": loss, "samples": samples}]
    ] + [Part(f"optimum-{loss}", optimum, {"loss": loss}) for loss in ("ncll", "hinge")]


def slug(way: str) -> str:
    return way.replace(",", "").replace(" ", "-")


def train(way: str, loss: str, samples: int, seed: int) -> dict:
    """Accuracies (of the population, not of a sample) and the parameters, class by class."""
    epochs: list[float] = []
    rows = toy(samples, random_state=seed)

    def measure(model, record) -> None:
        epochs.append(toy_accuracy(model))

    model: Any
    if way == "discem":
        model = GaussianNB(loss=loss, random_state=seed, callback=measure).fit(*rows)
    else:  # section 4.1 to the letter, with the step counted from t = 1
        lam, projection = WAYS[way]
        model = gaussian.train(
            *rows, loss=loss, prior="paper", projection=projection, damping=0.0, lam=lam,
            epochs=EPOCHS, seed=seed, callback=measure,
        )  # fmt: skip
    return {
        "way": way,
        "loss": loss,
        "samples": samples,
        "seed": seed,
        "accuracy": toy_accuracy(model),
        "first_epoch": epochs[0] if epochs else None,
        "class_prior": model.class_prior_.tolist(),
        "mean": model.mean_[:, 0].tolist(),
        "variance": model.var_[:, 0].tolist(),
    }


class Quadratic:
    """The classifier sign(b0 + b1 u + b2 u^2), u = x / 5: what two Gaussians can be at most."""

    def __init__(self, weights: np.ndarray):
        self.weights = weights

    def margin(self, x: np.ndarray) -> np.ndarray:
        return np.polynomial.polynomial.polyval(x / 5, self.weights)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.where(self.margin(X[:, 0]) > 0, 1, -1)


def optimum(loss: str) -> dict:
    """The accuracy where the expected loss is least, which is convex in the three weights."""
    x = np.arange(-16.0, 16.0, 0.005)
    densities = {
        -1: norm.pdf(x, 0, 3),
        1: 0.8 * norm.pdf(x, -5, 0.1) + 0.2 * norm.pdf(x, 5, 0.1),
    }

    def expected(weights: np.ndarray) -> float:
        margin = Quadratic(weights).margin(x)
        return 0.005 * sum(
            float(density @ cost(label * margin)) / 2 for label, density in densities.items()
        )

    def cost(margin: np.ndarray) -> np.ndarray:
        return np.logaddexp(0, -margin) if loss == "ncll" else np.maximum(0, 1 - margin)

    weights = np.zeros(3)
    for _ in range(5):  # the simplex of Nelder and Mead is made anew, should it have collapsed
        options = {"maxiter": 2000, "xatol": 1e-7, "fatol": 1e-12}
        weights = minimize(expected, weights, method="Nelder-Mead", options=options).x
    accuracy = toy_accuracy(Quadratic(weights))
    return {"way": "optimum", "loss": loss, "accuracy": accuracy, "weights": weights.tolist()}


# --- what it says ---------------------------------------------------------------------------------


def report(results: dict[str, dict]) -> Report:
    runs = {run: [r for r in results.values() if (r["way"], r["loss"]) == run] for run in RUNS}
    scores = {run: [each["accuracy"] for each in found] for run, found in runs.items()}
    best = {r["loss"]: r["accuracy"] for r in results.values() if r["way"] == "optimum"}
    return Report(
        [draw(way, runs, scores) for way in (JUDGED, "discem")],
        claims(scores, best),
        [table(runs, scores, best)],
        notes(runs, scores, best),
    )


def claims(scores: dict, best: dict) -> list[Claim]:
    middle = {run: 100 * median(found) for run, found in scores.items()}
    seeds = len(scores[RUNS[0]])

    def printed(loss: str, way: str) -> Claim:
        value = 100 * PRINTED[loss]
        off = middle[way, loss] - value
        return Claim(
            f"{LOSSES[loss]} training is right {value:.1f} % of the time",
            f"the median of {seeds} seeds is within {NEAR:g} point of it, about four standard "
            "errors of an accuracy on 30 000 points",
            "median, and points above what is printed",
            [Evidence(f"{NAMES[way]}, {middle[way, loss]:.1f} %,", off, -NEAR, NEAR)],
            "Figure 1",
            "closed form; seeds and margin are ours"
            if loss == "nll"
            else "lambda, the first of the list in section 3.2, 5 epochs, seeds and margin are "
            "ours",
        )

    return [
        printed("nll", "discem"),
        printed("ncll", JUDGED),
        printed("hinge", JUDGED),
        Claim(
            "A model that does not match the data classifies well when it is trained by a "
            "discriminative loss",
            f"medians are at least {FAR:g} points above maximum likelihood",
            "points above maximum likelihood",
            [
                Evidence(LOSSES[loss], middle[JUDGED, loss] - middle["discem", "nll"], FAR)
                for loss in ("ncll", "hinge")
            ],
            "Section 4.1",
            "the margin is ours",
        ),
        Claim(
            "The check-step does not hurt convergence",
            f"with no lambda is the median with the check-step more than {NEAR:g} point below that "
            "of the same runs with interior steps",
            "points above interior steps",
            [
                Evidence(
                    f"{LOSSES[loss]}, lambda {lam:g}",
                    middle[CHECK[lam], loss] - middle[INTERIOR[lam], loss],
                    -NEAR,
                )
                for loss in ("ncll", "hinge")
                for lam in LAMBDAS
            ],
            "Section 3.2",
            "lambdas are the first three of the list in section 3.2; interior steps and the margin "
            "are ours",
        ),
        Claim(
            "discem's defaults find the optimum of the loss",
            "the median is within half a point of the accuracy of the loss's own optimum",
            "points above it",
            [
                Evidence(LOSSES[loss], middle["discem", loss] - 100 * best[loss], -0.5, 0.5)
                for loss in best
            ],
        ),
    ]


def table(runs: dict, scores: dict, best: dict) -> Table:
    rows = [
        [NAMES[way], LOSSES[loss]]
        + [round(100 * number, 1) for number in (median(found), min(found), max(found))]
        + [round(100 * float(np.mean(np.array(found) < POOR)), 1)]
        + [round(100 * first, 1) if (first := first_epoch(runs[way, loss])) else None]
        + [round(100 * PRINTED[loss], 1)]
        for (way, loss), found in scores.items()
    ]
    for loss, accuracy in best.items():
        alone = [None, None, None, None]  # there are no seeds
        ends = round(100 * accuracy, 1), *alone, round(100 * PRINTED[loss], 1)
        rows.append(["optimum of the loss", LOSSES[loss], *ends])
    columns = [
        "training", "loss", "median", "min", "max", "seeds below 80 %", "after one epoch",
        "the paper prints",
    ]  # fmt: skip
    return Table(f"Accuracy over {len(scores[RUNS[0]])} seeds, %", columns, rows)


def first_epoch(runs: list[dict]) -> float | None:
    found = [run["first_epoch"] for run in runs if run["first_epoch"] is not None]
    return median(found) if found else None


def notes(runs: dict, scores: dict, best: dict) -> list[str]:
    ends = " and ".join(f"{100 * best[loss]:.1f} % ({LOSSES[loss]})" for loss in best)
    early = " and ".join(
        f"{100 * first:.1f} % ({LOSSES[loss]})"
        for loss in ("ncll", "hinge")
        if (first := first_epoch(runs[JUDGED, loss])) is not None
    )
    return [
        f"The optima of the losses are right {ends} of the time, more than the paper prints: its "
        f"runs had probably not converged. Ours are at {early} after one epoch.",
        "The paper's algorithm is a matter of luck at smaller lambdas: see the share of seeds "
        "that end below 80 %. Its check-step is the reason, which moves statistics that left "
        "their domain to its edge. With interior steps and nothing else changed the seeds agree "
        "far better.",
        "Accuracies are of the population, by integration. N(0, 3) and N(5, 0.1) are read as "
        "mean and standard deviation: only so is maximum likelihood right 79 % of the time.",
    ]


def draw(way: str, runs: dict, scores: dict) -> Picture:
    chosen = {"NLL": ("discem", "nll"), "NCLL": (way, "ncll"), "Hinge": (way, "hinge")}
    shown = {name: runs[run][DRAWN] for name, run in chosen.items()}
    seeds = len(scores[RUNS[0]])
    figure = plot_toy(
        *toy(shown["NLL"]["samples"], random_state=DRAWN),
        {name: joint(parameters) for name, parameters in shown.items()},
        {name: scores[run] for name, run in chosen.items()},
        f"accuracy: median (range) of {seeds} seeds" if seeds > 1 else "",
    )
    return Picture(
        "toy-defaults" if way == "discem" else "toy",
        figure,
        f"Trained by {NAMES[way]}",
        "Histogram of the two classes with the Gaussians of each; those of maximum likelihood "
        "overlap, those of NCLL and hinge put class 1 on both sides of class -1.",
    )


def joint(parameters: dict) -> Callable[[np.ndarray], np.ndarray]:
    """p(y, x) of a Gaussian naive Bayes."""
    weight, mean, variance = (
        np.array(parameters[name]) for name in ("class_prior", "mean", "variance")
    )
    return lambda x: weight * norm.pdf(x[:, None], mean, np.sqrt(variance))


if __name__ == "__main__":
    from discem.cli import main

    main("reproduce", "toy")
