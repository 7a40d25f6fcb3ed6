"""Beyond the paper: classifying rows whose cells are missing.

A joint distribution sums a missing cell out; other classifiers need imputation, or trees that take
NaN. Methods train on complete rows, or on copies of them with holes, and are tested with 0 to 90 %
of the cells missing at random. The work is done by benchmarks/missing.py, which says more about it.
"""

from typing import Any

import numpy as np
from lab.plots import REFERENCE, key, panels
from lab.study import Claim, Evidence, Part, Picture, Plan, Report, Table
from tables import benchmark, plain_ticks

from discem.report.plots import COLOURS

TITLE = "Test cells that go missing"
PAPER = ""

WHOLE: dict[str, Any] = {"linestyle": "solid"}
HOLES: dict[str, Any] = {"linestyle": (0, (4, 2))}  # trained on rows with holes
LINES: dict[str, dict[str, Any]] = {
    "discem nll": WHOLE | {"color": COLOURS[2], "marker": "o"},
    "discem ncll": WHOLE | {"color": COLOURS[0], "marker": "o"},
    "discem blend": WHOLE | {"color": COLOURS[5], "marker": "o"},
    "discem ncll, holes": HOLES | {"color": COLOURS[0], "marker": "o"},
    "mean + LR": WHOLE | {"color": COLOURS[1]},
    "mean + LR, holes": HOLES | {"color": COLOURS[1]},
    "kNN + LR": WHOLE | {"color": COLOURS[3]},
    "iterative + LR": WHOLE | {"color": COLOURS[4]},
    "boosting": WHOLE | {"color": REFERENCE["color"]},
    "boosting, holes": HOLES | {"color": REFERENCE["color"]},
}
OURS = "discem ncll, holes"
MANY = 0.7  # of the cells


def parts(plan: Plan) -> list[Part]:
    costs = {"wine": 20, "breast cancer": 30, "digits": 400}
    if plan.quick:
        costs = {"wine": 4, "breast cancer": 6}
    splits = len(plan.seeds_or(2, quick=1))
    return [
        Part(
            data.replace(" ", "-"),
            measure,
            {"data": data, "splits": splits, "quick": plan.quick},
            cost=cost,
        )
        for data, cost in costs.items()
    ]


def measure(data: str, splits: int, quick: bool) -> dict:
    return benchmark("missing.py", "--sets", data, "--splits", splits, *["--quick"] * quick)


# --- what it says ---------------------------------------------------------------------------------


def report(results: dict[str, dict]) -> Report:
    found: dict = {}  # data: method: figures by share
    shares: list[float] = []
    for each in results.values():
        shares = each["settings"]["shares"]
        for result in each["results"]:
            runs = result["splits"]
            found.setdefault(result["data"], {})[result["method"]] = {
                figure: np.mean([run[figure] for run in runs], axis=0) for figure in runs[0]
            }
    if not found:
        return Report()
    return Report(
        [draw(found, shares)],
        claims(found, shares),
        [table(found, shares)],
        [
            "Discriminative training relies on columns together, and is misled when most of them "
            "are gone: trained on complete rows, NCLL is then worse than plain naive Bayes. "
            "Training on rows with holes, which needs nothing but NaN in copies of the rows, or a "
            "blend of the two losses repairs that, at a small price on complete rows.",
            "Filling cells from the nearest training rows does very well where columns are "
            "correlated, as neighbouring pixels of digits are, and naive Bayes ignores that. It "
            "keeps the training rows and searches them for each prediction: see the last column.",
        ],
    )


def claims(found: dict, shares: list[float]) -> list[Claim]:
    many = shares.index(MANY)

    fall = {
        data: each["discem ncll"]["accuracy"][many] - each["discem nll"]["accuracy"][many]
        for data, each in found.items()
    }
    mean = {
        data: {method: float(figures["accuracy"].mean()) for method, figures in each.items()}
        for data, each in found.items()
    }
    repaired = {
        data: each[OURS] - max(each["discem ncll"], each["discem nll"])
        for data, each in mean.items()
    }
    imputed = {data: each[OURS] - each["mean + LR, holes"] for data, each in mean.items()}
    rivals = {  # the best that is not ours
        data: max((m for m in each if "discem" not in m), key=each.__getitem__)
        for data, each in mean.items()
    }
    best = {data: each[OURS] - each[rivals[data]] for data, each in mean.items()}

    def gaps(figures: dict, names: dict | None = None) -> list[Evidence]:
        return [
            Evidence(data + (f" ({names[data]})" if names else ""), 100 * float(gap), 0.0)
            for data, gap in figures.items()
        ]

    return [
        Claim(
            "Trained on complete rows, NCLL is worse than NLL where "
            f"{100 * MANY:.0f} % of the cells are missing",
            "it is less accurate on every table",
            "NCLL less NLL, points",
            [each._replace(low=None, high=0.0) for each in gaps(fall)],
        ),
        Claim(
            "Trained on rows with holes, NCLL is more accurate than either",
            "on average over the shares of missing cells, on every table",
            "above the better of the two, points",
            gaps(repaired),
        ),
        Claim(
            "It is no less accurate than logistic regression with imputed means, trained on the "
            "same rows with holes",
            "on average over the shares of missing cells, on every table",
            "points",
            gaps(imputed),
        ),
        Claim(
            "No other method is more accurate",
            "on average over the shares of missing cells, on every table",
            "points above the best of them",
            gaps(best, rivals),
        ),
    ]


def table(found: dict, shares: list[float]) -> Table:
    shown = [shares.index(share) for share in (0.0, 0.3, 0.5, 0.7, 0.9)]
    columns = ["data", "method", *(f"{100 * shares[place]:.0f} % missing" for place in shown)]
    columns += ["mean accuracy", "mean log-loss", "fit, s", "predict, ms a row"]
    rows = [
        [data, method]
        + [round(100 * float(each["accuracy"][place]), 1) for place in shown]
        + [round(100 * float(each["accuracy"].mean()), 1), round(float(each["log_loss"].mean()), 3)]
        + [round(float(each["seconds"]), 3), round(float(each["predict_ms"]), 3)]
        for data, methods in found.items()
        for method, each in methods.items()
    ]
    return Table("Accuracy, %, by share of missing cells", columns, rows)


def draw(found: dict, shares: list[float]) -> Picture:
    figure, axes = panels(len(found), 2, height=2.9, sharex=True)
    for (above, below), (data, methods) in zip(axes.T, found.items(), strict=True):
        for method, each in methods.items():
            look = LINES[method] | {"markersize": 3, "label": method}
            above.plot(100 * np.array(shares), 100 * each["accuracy"], **look)
            below.plot(100 * np.array(shares), each["log_loss"], **look)
        above.set(title=data)
        below.set(yscale="log", xlabel="missing cells, %")
        plain_ticks(below.yaxis)
    axes[0, 0].set(ylabel="accuracy, %")
    axes[1, 0].set(ylabel="log-loss")
    key(figure, axes[0, 0], 4)
    return Picture(
        "missing",
        figure,
        "Accuracy and log-loss as test cells go missing; dashed: trained on rows with holes",
        "All curves fall; those of models trained on complete rows fall first, those of naive "
        "Bayes, of models trained on holes and of imputation by neighbours last.",
    )


if __name__ == "__main__":
    from discem.cli import main

    main("reproduce", "missing")
