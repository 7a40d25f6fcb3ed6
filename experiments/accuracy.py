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
PEERS = {"ncll": "LR", "hinge": "SVM"}  # they minimise the same loss, or nearly
WORSE = 2.0  # points: much worse
WHERE = "Section 4.2, Figure 3; Supplement, Figures 1 (c) and 2 (c)"


def parts(plan: Plan) -> list[Part]:
    return mnb.parts(plan, MODELS, mnb.RIVALS, EPOCHS, reading="document", losses=False)


def report(results: dict[str, dict]) -> Report:
    found = mnb.Results(results)
    if not found.sets:
        return Report()
    better = above_plain(found)
    return Report(
        [mnb.draw_accuracy(found, "accuracy")],
        [
            *(near_peer(found, loss) for loss in mnb.LOSSES),
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


def near_peer(found: mnb.Results, loss: str) -> Claim:
    peer = PEERS[loss]
    return Claim(
        f"{mnb.LOSSES[loss]}-MNB is very close to LIBLINEAR's {peer}",
        f"{mnb.CLOSE}, on every set and with either prior",
        f"points above {peer} after {found.epochs()} epochs",
        [
            mnb.closeness(f"{data} {run[2]}", found.runs[run], found.lines[data, peer])
            for data in found.sets
            for run in found.runs
            if run[:2] == (data, loss)
        ],
        WHERE,
        "lambda, priors and rival are the paper's; "
        f"{found.epochs()} epochs and the margin are ours",
    )


def spread(found: mnb.Results, data: str, loss: str) -> float:
    """Between the priors, in points."""
    return 100 * abs(found.final((data, loss, "P1")) - found.final((data, loss, "P2")))


def sensitive(found: mnb.Results) -> Claim:
    return Claim(
        "NCLL is more sensitive to the prior than hinge",
        "the accuracies with P1 and P2 differ more under NCLL, on every set",
        "points between the priors, NCLL less hinge",
        [
            Evidence(data, spread(found, data, "ncll") - spread(found, data, "hinge"), 0.0)
            for data in found.sets
        ],
        "Section 4.2; Supplement, Figures 1 (c) and 2 (c)",
        f"lambda and priors are the paper's; {found.epochs()} epochs are ours",
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
