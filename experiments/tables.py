"""Beyond the paper: this library's defaults on tables, beside its peers.

Five-fold cross-validation of scikit-learn's own tables, over several cuttings into folds. Nothing
is tuned. The work is done by benchmarks/tabular.py, which says more about it.
"""

import ctypes
import json
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from lab.plots import REFERENCE, panels
from lab.study import Claim, Evidence, NotPossibleError, Part, Picture, Plan, Report, Table

from discem.report.plots import COLOURS

TITLE = "Tables: defaults against peers"
PAPER = ""

NCLL = "discem GaussianNB, ncll"
PLAIN, LOGISTIC, BOOSTING = (
    "scikit-learn GaussianNB", "LogisticRegression, scaled", "HistGradientBoosting",
)  # fmt: skip


def parts(plan: Plan) -> list[Part]:
    costs = {"wine": 10, "breast cancer": 20, "digits": 240}
    if plan.quick:
        costs = {"wine": 5, "breast cancer": 5}
    splits = len(plan.seeds_or(4, quick=1))
    return [
        Part(
            data.replace(" ", "-"),
            measure,
            {"data": data, "splits": splits, "boosting": not plan.quick},
            cost=cost,
        )
        for data, cost in costs.items()
    ]


def measure(data: str, splits: int, boosting: bool) -> dict:
    options = ["--sets", data, "--splits", splits] + ["--all"] * boosting
    return benchmark("tabular.py", *options)


def benchmark(script: str, *options: object) -> dict:
    """What a script of the benchmarks writes as JSON."""
    path = Path(__file__).parents[1] / "benchmarks" / script
    if not path.exists():
        raise NotPossibleError("the benchmarks are not installed: use a clone of the repository")
    with TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        command = [sys.executable, path, *options, "--json", out]
        run = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        if run.returncode:
            raise RuntimeError(f"{script} failed:\n{run.stderr[-2000:]}")
        return json.loads(out.read_text())


def _end_with_parent() -> None:
    """Whoever stops the experiment stops the benchmark: PR_SET_PDEATHSIG is 1."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


# --- what it says ---------------------------------------------------------------------------------


def report(results: dict[str, dict]) -> Report:
    found: dict = {}  # data: method: figure: mean and standard deviation
    for each in results.values():
        for result in each["results"]:
            runs = result["splits"]
            found.setdefault(result["data"], {})[result["method"]] = {
                figure: (float(np.mean(values)), float(np.std(values)))
                for figure in ("accuracy", "log_loss", "seconds")
                for values in [[run[figure] for run in runs]]
            }
    if not found:
        return Report()
    rows = [
        [
            data,
            method,
            round(100 * figures["accuracy"][0], 2),
            round(100 * figures["accuracy"][1], 2),
            round(figures["log_loss"][0], 4),
            round(figures["seconds"][0], 3),
        ]
        for data, methods in found.items()
        for method, figures in methods.items()
    ]
    columns = ["data", "method", "accuracy, %", "±", "log-loss", "fit, s"]
    return Report(
        [draw(found)],
        claims(found),
        [
            Table(
                "Five-fold cross-validation",
                columns,
                rows,
                "±: standard deviation over cuttings into folds. Hinge trains on four fifths of "
                "each training part and fits its temperature to the rest. Seconds of a fit, on one "
                "thread beside other work: compare them within a table only.",
            )
        ],
        [
            "Where it loses: the Gaussians of digits are a poor likeness, and logistic regression "
            "and boosting have the better probabilities there. Training row by row until the loss "
            "settles takes longer than LBFGS on tables of this size."
        ],
    )


def claims(found: dict) -> list[Claim]:
    def against(says: str, peer: str, figure: str, slack: float) -> Claim:
        """That NCLL is no worse than a peer anywhere, give or take `slack`."""
        accurate = figure == "accuracy"
        unit, what = (100, "points of accuracy") if accurate else (1, "nats of log-loss")
        return Claim(
            says,
            "it is no worse on any table" + (f", give or take {slack:g} {what}" if slack else ""),
            f"NCLL less its peer, {what}",
            [
                Evidence(
                    data,
                    unit * (methods[NCLL][figure][0] - methods[peer][figure][0]),
                    *((-slack, None) if accurate else (None, slack)),
                )
                for data, methods in found.items()
                if peer in methods
            ],
            form="+z.1f" if accurate else "+z.3f",
        )

    result = [
        against("NCLL training is more accurate than naive Bayes", PLAIN, "accuracy", 0),
        against("NCLL training has better probabilities than naive Bayes", PLAIN, "log_loss", 0),
        against(
            "NCLL training is as accurate as logistic regression", LOGISTIC, "accuracy", 0.5
        ),
        against(
            "NCLL training has probabilities as good as those of logistic regression",
            LOGISTIC, "log_loss", 0.01,
        ),
        against("NCLL training is as accurate as gradient boosting", BOOSTING, "accuracy", 0.5),
    ]  # fmt: skip
    return [claim for claim in result if claim.evidence]


def draw(found: dict) -> Picture:
    figure, axes = panels(len(found), 2, height=2.0, sharey=True)
    for (above, below), (data, methods) in zip(axes.T, found.items(), strict=True):
        for axis, name, unit in ((above, "accuracy", 100), (below, "log_loss", 1)):
            scaled = {m: tuple(unit * each for each in methods[m][name]) for m in methods}
            dots(axis, scaled, {m for m in methods if m.startswith("discem")})
        above.set(title=data, xlabel="accuracy, %")
        below.set(xlabel="log-loss", xscale="log")
        plain_ticks(below.xaxis)
    return Picture(
        "tables",
        figure,
        "Accuracy and log-loss, ours in blue; bars: standard deviation over cuttings into folds",
        "Dots by method: NCLL is level with logistic regression, and far better than naive Bayes.",
    )


def dots(axis, values: Mapping[str, tuple[float, ...] | None], ours: Collection[str]) -> None:
    """A row a method, `ours` in blue: a dot for the mean and a bar for the spread."""
    for place, (name, value) in enumerate(values.items()):
        if value is not None:
            mean, spread = value
            colour = COLOURS[0] if name in ours else REFERENCE["color"]
            axis.errorbar(mean, place, xerr=spread or None, fmt="o", color=colour, markersize=5)
    axis.set_yticks(range(len(values)), values)
    axis.set_ylim(len(values) - 0.5, -0.5)
    axis.locator_params(axis="x", nbins=5)


def plain_ticks(axis) -> None:
    """Few and plain ticks of an axis with a logarithmic scale."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


if __name__ == "__main__":
    from discem.cli import main

    main("reproduce", "tables")
