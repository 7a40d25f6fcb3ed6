"""Figure 5 of the supplement: what training does to the losses of the topic classifier.

The models are those of `lda`, and their figures are of the training documents: NCLL of NCLL-LDA and
hinge loss of Hinge-LDA, each beside that of NLL-LDA, and the perplexity of all three, which is exp
of minus ln p(d) per word. They are of the model as it stands at the end of an epoch, on all
documents; epoch 0 is the start.
"""

from statistics import mean
from typing import Any

import numpy as np
from lab.plots import BY_LOSS, key, panels
from lab.study import Claim, Evidence, Part, Picture, Plan, Report, Table
from lda import LOSSES, MEASURED, SETS, WAYS, topic_parts

TITLE = "Topics in each class: losses"
PAPER = "Supplement, Figure 5"

FIGURES = {"ncll": "NCLL", "hinge": "hinge loss", "perplexity": "perplexity"}
TICKS = [500, 1000, 2000, 5000, 10_000]
SHOWN = {"ncll": ("nll", "ncll"), "hinge": ("nll", "hinge"), "perplexity": tuple(LOSSES)}
MOVES = 2.0  # %, what a change of perplexity is at least
EPOCHS_SHOWN = (1, 5, 10, 20)  # of the perplexity that falls first, then rises


def parts(plan: Plan) -> list[Part]:
    seeds = plan.seeds_or(MEASURED, quick=2)
    return topic_parts(plan, WAYS, LOSSES, seeds[:MEASURED])  # some of `lda`, done once


def report(results: dict[str, dict[str, Any]]) -> Report:
    runs: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for result in results.values():
        runs.setdefault((result["way"], result["data"], result["loss"]), []).append(result)
    curves = {
        (*run, name): np.array([each[name] for each in found])
        for run, found in runs.items()
        for name in FIGURES
    }
    ways = [way for way in WAYS if any(run[0] == way for run in runs)]
    return Report(
        [draw(way, curves) for way in ways],
        claims(curves),
        [table(curves)],
        [
            "The paper's curves do not say where they begin. Its start is all words alike, of a "
            "perplexity as large as the vocabulary, which the first epoch lowers under any loss: "
            "hence perplexity is judged from the end of the first epoch on, and at its end beside "
            "that of NLL-LDA.",
            "The claims are held against the paper's algorithm. With our defaults, drawn as well, "
            "training starts at topics that were found by maximum likelihood, and a prior that is "
            "heavier than the data draws perplexity up under NCLL and hinge loss.",
        ],
    )


def draw(way: str, curves: dict[tuple[str, ...], np.ndarray]) -> Picture:
    sets = [data for data in SETS if any(run[:2] == (way, data) for run in curves)]
    figure, axes = panels(len(FIGURES), len(sets), sharex=True)
    for row, data in enumerate(sets):
        for column, (name, title) in enumerate(FIGURES.items()):
            panel = axes[row, column]
            panel.set(title=f"{SETS[data]}: {title}", yscale="log")
            if name == "perplexity":  # it spans little more than a power of ten
                panel.set_yticks(TICKS, [f"{tick:,}" for tick in TICKS])
                panel.tick_params(which="minor", left=False, labelleft=False)
            for loss in SHOWN[name]:
                if (found := curves.get((way, data, loss, name))) is None:
                    continue
                epochs = np.arange(found.shape[1])
                panel.plot(epochs, found.mean(axis=0), color=BY_LOSS[loss], label=LOSSES[loss])
            panel.xaxis.get_major_locator().set_params(integer=True)
    for panel in axes[-1]:
        panel.set_xlabel("epoch")
    key(figure, axes[0, -1])
    return Picture(
        f"lda-losses-{way}",
        figure,
        f"Losses on the training documents, {WAYS[way]}",
        "NCLL, hinge loss and perplexity of the training documents by epoch, on logarithmic axes, "
        f"for topic classifiers trained under NLL, NCLL and hinge loss with {WAYS[way]}.",
    )


def claims(curves: dict[tuple[str, ...], np.ndarray]) -> list[Claim]:
    """What the paper says of the losses, held against its own algorithm, mean over starts."""
    means = {run[1:]: found.mean(axis=0) for run, found in curves.items() if run[0] == "paper"}
    sets = [data for data in SETS if all((data, loss, "ncll") in means for loss in LOSSES)]
    if not sets:
        return []
    discriminative = [(data, loss) for data in sets for loss in ("ncll", "hinge")]

    def change(data: str, loss: str) -> float:
        """Of perplexity, in %, from the end of the first epoch to the last."""
        found = means[data, loss, "perplexity"]
        return 100 * float(found[-1] / found[1] - 1)

    def end(data: str, loss: str, name: str) -> float:
        return float(means[data, loss, name][-1])

    choices = "model, priors and sampler are the paper's; lambda, epochs and the margin are ours"
    course = "; ".join(
        f"on {SETS[data]} that of NCLL-LDA is "
        + ", ".join(f"{found[each]:.0f} after {each}" for each in EPOCHS_SHOWN if each < len(found))
        for data in sets
        for found in [means[data, "ncll", "perplexity"]]
    )
    return [
        Claim(
            "Neither NCLL-LDA nor Hinge-LDA lowers perplexity; NLL-LDA does",
            f"from the first epoch to the last NLL-LDA lowers it by {MOVES:g} % or more, the "
            f"others do not, and they end {MOVES:g} % or more above NLL-LDA",
            "change in %",
            [Evidence(f"{SETS[d]} NLL-LDA", change(d, "nll"), None, -MOVES) for d in sets]
            + [Evidence(f"{SETS[d]} {LOSSES[x]}", change(d, x), -MOVES) for d, x in discriminative]
            + [
                Evidence(
                    f"{SETS[data]} {LOSSES[loss]}, end against NLL-LDA's",
                    100 * (end(data, loss, "perplexity") / end(data, "nll", "perplexity") - 1),
                    MOVES,
                )
                for data, loss in discriminative
            ],
            PAPER,
            f"{choices}. The verdict hangs on the number of epochs, because perplexity can fall at "
            f"first and rise later: {course}",
            "+z.1f",
        ),
        Claim(
            "NLL-LDA lowers NCLL and hinge loss too, but less than the training for them does",
            "under NLL-LDA the loss ends below its start, and the training for it ends below that",
            "at the end, as a share of the start under NLL-LDA, and of NLL-LDA's end under the "
            "training for it",
            [
                Evidence(
                    f"{SETS[data]} {FIGURES[loss]} of NLL-LDA",
                    float(end(data, "nll", loss) / means[data, "nll", loss][0]),
                    None,
                    1.0,
                )
                for data, loss in discriminative
            ]
            + [
                Evidence(
                    f"{SETS[data]} {FIGURES[loss]} of {LOSSES[loss]}",
                    end(data, loss, loss) / end(data, "nll", loss),
                    None,
                    1.0,
                )
                for data, loss in discriminative
            ],
            PAPER,
            choices,
            ".3f",
        ),
    ]


def table(curves: dict[tuple[str, ...], np.ndarray]) -> Table:
    return Table(
        "Losses of the training documents, mean over starts",
        ["data", "training", "figure", "start", "first epoch", "last epoch"],
        [
            [
                SETS[data],
                f"{LOSSES[loss]}, {WAYS[way]}",
                FIGURES[name],
                *(round(mean(found[:, place].tolist()), 4) for place in (0, 1, -1)),
            ]
            for (way, data, loss, name), found in curves.items()
        ],
    )


if __name__ == "__main__":
    from discem.cli import main

    main("reproduce", "lda-losses")
