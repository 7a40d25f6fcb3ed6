"""Figure 3 of the paper: accuracy of NCLL-MNB and Hinge-MNB beside three other methods.

Figure 3 has NCLL-MNB with the prior P1 and Hinge-MNB with the prior P2; the supplement has the
other two as well (panels c of its Figures 1 and 2), and so do we. Settings are those of the
supplement (see multinomial.py), for 100 epochs. The others are logistic regression and the SVM by
LIBLINEAR, in the primal and with its own defaults, and plain multinomial naive Bayes (MNB) with one
pseudo-count a word. All see the same raw counts.
"""

import multinomial as mnb
from lab.study import Claim, Evidence, Part, Plan, Report, Table

TITLE = "MNB trained discriminatively, beside logistic regression and SVM"
PAPER = "Figure 3"

EPOCHS = 100
MODELS = [(loss, prior) for loss in mnb.LOSSES for prior in mnb.PRIORS]
SHOWN = [("ncll", "P1"), ("hinge", "P2")]  # in Figure 3
OTHERS = [("ncll", "P2"), ("hinge", "P1")]  # in the supplement only
EARLY = 10  # epochs
PEERS = {"ncll": "LR", "hinge": "SVM"}  # they minimise the same loss, or nearly
WORSE = 2.0  # points: much worse
WHERE = "Section 4.2, Figure 3; Supplement, Figures 1 (c) and 2 (c)"


def parts(plan: Plan) -> list[Part]:
    return mnb.parts(plan, MODELS, mnb.RIVALS, EPOCHS, losses=False)


def report(results: dict[str, dict]) -> Report:
    found = mnb.Results(results)
    if not found.sets:
        return Report()
    better = above_plain(found)
    return Report(
        [mnb.draw_accuracy(found, "accuracy")],
        [
            near_peers(found, SHOWN, "the models of Figure 3", "Section 4.2, Figure 3"),
            near_peers(
                found,
                OTHERS,
                "with the other prior too",
                "Supplement, Figures 1 (c) and 2 (c)",
            ),
            similar(found),
            sensitive(found),
            plain_p2_is_worse(found),
            better,
        ],
        [table(found)],
        [
            *([] if better.holds() else [below_plain(found)]),
            "LIBLINEAR's SVM is the primal one that the paper names. By its dual, scikit-learn's "
            "default, it stops before it has converged on raw counts, 2 to 3 points lower on 20 "
            "Newsgroups.",
            "What we add to the paper (other priors and starts, interior steps, tf-idf) is "
            "compared elsewhere on this page; here all is as in the paper.",
        ],
    )


def below_plain(found: mnb.Results) -> str:
    lines = "; ".join(
        f"{mnb.SETS[data]}: "
        + ", ".join(f"{name} {100 * found.line(data, name):.1f}" for name in ("MNB", "LR", "SVM"))
        for data in found.sets
    )
    return (
        f"Plain MNB is hard to beat with raw counts where it is above LIBLINEAR, too: {lines}. "
        "Discriminative training classifies nearly all training documents right within a few "
        "epochs (see the losses of NCLL-MNB and Hinge-MNB), and has little left to learn from."
    )


def near_peers(found: mnb.Results, models: list[tuple[str, str]], which: str, where: str) -> Claim:
    return Claim(
        f"NCLL-MNB and Hinge-MNB are very close to LIBLINEAR's LR and SVM: {which}",
        f"{mnb.CLOSE}, on every set",
        f"points above LR or SVM after {found.epochs()} epochs",
        [
            mnb.closeness(
                f"{data} {mnb.LOSSES[loss]} {prior}",
                found.runs[data, loss, prior],
                [found.lines[data, PEERS[loss]]],
            )
            for data in found.sets
            for loss, prior in models
        ],
        where,
        "lambda, priors and rivals are the paper's; "
        f"{found.epochs()} epochs and the margin are ours",
    )


def similar(found: mnb.Results) -> Claim:
    return Claim(
        "Other combinations of loss and prior show similar results",
        f"with the prior that Figure 3 does not show: {mnb.CLOSE}, on every set",
        f"points above the prior of Figure 3 after {found.epochs()} epochs",
        [
            mnb.closeness(
                f"{data} {mnb.LOSSES[loss]} {other}",
                found.runs[data, loss, other],
                found.runs[data, loss, prior],
            )
            for data in found.sets
            for (loss, prior), (_, other) in zip(SHOWN, OTHERS, strict=True)
        ],
        "Section 4.2",
        f"lambda and priors are the paper's; {found.epochs()} epochs and the margin are ours",
    )


def spread(found: mnb.Results, data: str, loss: str, epoch: int) -> float:
    """Between the priors, in points."""
    p1, p2 = (found.mean((data, loss, prior), "accuracy")[epoch] for prior in mnb.PRIORS)
    return 100 * float(abs(p1 - p2))


def sensitive(found: mnb.Results) -> Claim:
    epochs = sorted({min(EARLY, found.epochs()), found.epochs()})
    return Claim(
        "NCLL depends more on the prior than hinge, especially on Cade",
        f"the accuracies with P1 and P2 differ more under NCLL, after {epochs[0]} epochs and after "
        f"{epochs[-1]}, on every set",
        "points between the priors, NCLL less hinge",
        [
            Evidence(
                f"{data}, {epoch} epochs",
                spread(found, data, "ncll", epoch) - spread(found, data, "hinge", epoch),
                0.0,
            )
            for data in found.sets
            for epoch in epochs
        ],
        "Section 4.2; Supplement, Figures 1 (c) and 2 (c)",
        "lambda and priors are the paper's; the epochs are ours",
        undecided=""
        if "cade" in found.sets
        else "Cade, the set that the claim names, could not be had; on the others the answer can "
        "change with the number of epochs",
    )


def plain_p2_is_worse(found: mnb.Results) -> Claim:
    return Claim(
        "Plain MNB is much worse with P2 than with P1",
        f"at least {WORSE:g} points, on every set",
        "points lost",
        [
            Evidence(data, 100 * (found.line(data, "MNB") - found.line(data, "MNB-P2")), WORSE)
            for data in found.sets
        ],
        "Supplement, Figures 1 and 2",
        "the margin is ours",
    )


def above_plain(found: mnb.Results) -> Claim:
    return Claim(
        "Discriminative training makes MNB a better classifier than plain MNB",
        "the models of Figure 3 are more accurate after the last epoch, on every set",
        "points above plain MNB",
        [
            Evidence(
                f"{data} {mnb.LOSSES[loss]} {prior}",
                100 * (found.final((data, loss, prior)) - found.line(data, "MNB")),
                0.0,
            )
            for data in found.sets
            for loss, prior in SHOWN
        ],
    )


def table(found: mnb.Results) -> Table:
    rows = [
        [mnb.SETS[data]]
        + [round(100 * found.final((data, *model)), 1) for model in MODELS]
        + [round(100 * found.line(data, rival), 1) for rival in mnb.RIVALS]
        for data in found.sets
    ]
    columns = ["data", *(f"{mnb.LOSSES[loss]}-MNB, {prior}" for loss, prior in MODELS)]
    columns += [name.replace("-", ", ") for name in mnb.RIVALS]
    return Table(f"Test accuracy after {found.epochs()} epochs, %", columns, rows)


if __name__ == "__main__":
    from discem.cli import main

    main("reproduce", "accuracy")
