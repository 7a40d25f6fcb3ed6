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
start, check-step and step size 1 / (1 + 0.1 t), for 5 epochs; and discem's defaults.
"""

from collections.abc import Callable
from statistics import median

import numpy as np
from scipy.stats import norm

from discem import GaussianNB, inverse
from discem.datasets import toy, toy_accuracy
from discem.lab.study import Claim, Part, Picture, Plan, Report, Table
from discem.report.plots import percent, plot_toy

TITLE = "Toy: one Gaussian a class, on data that no Gaussian fits"
PAPER = "Figure 1"

PAPERS_OWN = {  # section 4.1 to the letter, with the step counted from t = 1
    "prior": "paper",
    "init": "prior",
    "step": inverse(0.1),
    "projection": "check",
    "average": False,
    "max_iter": 5,
    "tol": None,
}
SETTINGS = {"paper": PAPERS_OWN, "discem": {}}
RUNS = [
    ("discem", "nll"),  # the optimum has a closed form: there is nothing to do differently
    ("paper", "ncll"),
    ("paper", "hinge"),
    ("discem", "ncll"),
    ("discem", "hinge"),
]
PRINTED = {"nll": 0.786, "ncll": 0.904, "hinge": 0.906}
LOSSES = {"nll": "NLL", "ncll": "NCLL", "hinge": "hinge"}
WAYS = {"paper": "the paper's algorithm", "discem": "discem's defaults"}
DRAWN = 0  # the seed in the pictures


def parts(plan: Plan) -> list[Part]:
    samples = 3_000 if plan.quick else 30_000
    return [
        Part(f"{who}-{loss}-{seed}", train, {"who": who, "loss": loss} | size, cost=0.5)
        for seed in plan.seeds_or(5, quick=2)
        for size in [{"samples": samples, "seed": seed}]
        for who, loss in RUNS
    ]


def train(who: str, loss: str, samples: int, seed: int) -> dict:
    """The accuracy (of the population, not of a sample) and the parameters, class by class."""
    model = GaussianNB(loss=loss, random_state=seed, **SETTINGS[who])
    model.fit(*toy(samples, random_state=seed))
    return {
        "who": who,
        "loss": loss,
        "samples": samples,
        "seed": seed,
        "accuracy": toy_accuracy(model),
        "class_prior": model.class_prior_.tolist(),
        "mean": model.mean_[:, 0].tolist(),
        "variance": model.var_[:, 0].tolist(),
    }


def report(results: dict[str, dict]) -> Report:
    runs = {run: [r for r in results.values() if (r["who"], r["loss"]) == run] for run in RUNS}
    scores = {run: [each["accuracy"] for each in found] for run, found in runs.items()}
    return Report(
        [draw(who, runs, scores) for who in ("paper", "discem")],
        claims(scores),
        [table(scores)],
        [
            "The paper's algorithm is a matter of luck here: see its range over the seeds. Its "
            "check-step is the reason, which moves statistics that left their domain to its edge. "
            "With projection='interior' and nothing else changed the seeds agree.",
            "Accuracies are of the population, by integration. N(0, 3) and N(5, 0.1) are read as "
            "mean and standard deviation: only so is maximum likelihood right 79 % of the time.",
        ],
    )


def claims(scores: dict) -> list[Claim]:
    def claim(loss: str, who: str) -> Claim:
        found, printed = scores[who, loss], PRINTED[loss]
        return Claim(
            f"{LOSSES[loss]} training is right {100 * printed:.1f} % of the time",
            f"{percent(found)} by {WAYS[who]}",
            # theirs is one run on a sample: ours, give or take a point, should include it
            bool(min(found) - 0.01 <= printed <= max(found) + 0.01),
        )

    middle = {run: median(found) for run, found in scores.items()}
    below = sum(
        accuracy < plain
        for loss in ("ncll", "hinge")
        for accuracy, plain in zip(scores["paper", loss], scores["discem", "nll"], strict=True)
    )
    gains = {run: 100 * (middle[run] - middle["discem", "nll"]) for run in RUNS[1:]}
    seen = "; ".join(
        f"{WAYS[who]}: NCLL {gains[who, 'ncll']:+.1f} points, hinge {gains[who, 'hinge']:+.1f}"
        for who in WAYS
    )
    if below:
        seen += f"; but {below} of the runs by the paper's algorithm end below maximum likelihood"
    return [
        claim("nll", "discem"),
        claim("ncll", "paper"),
        claim("hinge", "paper"),
        Claim(
            "Discriminative training makes a good classifier of a model that does not fit",
            f"against maximum likelihood, medians: {seen}",
            min(gains.values()) > 0,
        ),
    ]


def table(scores: dict) -> Table:
    rows = [
        [WAYS[who], LOSSES[loss]]
        + [round(100 * number, 1) for number in (median(found), min(found), max(found))]
        + [round(100 * PRINTED[loss], 1)]
        for (who, loss), found in scores.items()
    ]
    columns = ["training", "loss", "median", "min", "max", "the paper prints"]
    return Table(f"Accuracy over {len(scores[RUNS[0]])} seeds, %", columns, rows)


def draw(who: str, runs: dict, scores: dict) -> Picture:
    chosen = {"NLL": ("discem", "nll"), "NCLL": (who, "ncll"), "Hinge": (who, "hinge")}
    shown = {name: runs[run][DRAWN] for name, run in chosen.items()}
    seeds = len(scores[RUNS[0]])
    figure = plot_toy(
        *toy(shown["NLL"]["samples"], random_state=DRAWN),
        {name: joint(parameters) for name, parameters in shown.items()},
        {name: scores[run] for name, run in chosen.items()},
        f"accuracy: median (range) of {seeds} seeds" if seeds > 1 else "",
    )
    return Picture(
        "toy" if who == "paper" else "toy-defaults",
        figure,
        f"Trained by {WAYS[who]}",
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
