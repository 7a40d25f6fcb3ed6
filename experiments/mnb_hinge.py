"""Figure 2 of the paper and of its supplement: multinomial naive Bayes trained by the hinge loss.

What happens to three figures of the training set, of which only the first is minimised: the hinge
loss, the NCLL, and the normalised perplexity, which is exp(-ln p(documents) / words) divided by the
number of documents. All are of the model as it stands at the end of each epoch, not of the changing
model while it is trained. And the accuracy on the test set, beside LIBLINEAR's SVM and plain MNB.
"""

import multinomial as mnb

from discem.lab.study import Claim, Part, Plan, Report

TITLE = "Hinge-MNB: what is lost while the hinge loss falls"
PAPER = "Figure 2; Supplement, Figure 2"

MODELS = [("hinge", "P1"), ("hinge", "P2")]


def parts(plan: Plan) -> list[Part]:
    return mnb.parts(plan, MODELS, ["SVM", "MNB"], epochs=15)


def report(results: dict[str, dict]) -> Report:
    found = mnb.Results(results)
    if not found.sets:
        return Report()
    return Report(
        [
            mnb.draw_losses(found, "mnb-hinge", "hinge"),
            mnb.draw_accuracy(found, "mnb-hinge-accuracy"),
        ],
        [
            mnb.falls(found, "Hinge-MNB lowers the hinge loss", "hinge"),
            ncll_rises(found),
            perplexity_falls_first(found),
            perplexity_rises_under_p1(found),
            mnb.near(found, "SVM"),
        ],
        notes=[
            "From a flat start every loss falls at first, NCLL too; what then rises is NCLL, while "
            "the hinge loss goes on falling. Documents with a margin of 1 teach nothing more, but "
            "the prior adds its counts at every step: it lets larger margins shrink to the 1 that "
            "is asked for, and words become more alike, so that perplexity climbs back towards "
            "that of the flat start.",
            mnb.SPIKES,
            "Weights are those of the paper's Table 1 (1 and -1). The pseudo-code of the "
            "supplement has 1 - p(y) and p(wrong class) instead, which is no hinge loss.",
        ],
    )


def ncll_rises(found: mnb.Results) -> Claim:
    means = {run: found.mean(run, "ncll") for run in found.runs}
    seen = mnb.each_run(
        found,
        lambda run: (
            f"from {means[run].min():.3f} (epoch {means[run].argmin()}) to {means[run][-1]:.3f}"
        ),
    )
    return Claim(
        "Hinge-MNB tends to raise the NCLL",
        f"After a first fall NCLL rises: {seen}.",
        all(mean[-1] > 1.1 * mean.min() for mean in means.values()),
    )


def perplexity_falls_first(found: mnb.Results) -> Claim:
    means = {run: found.mean(run, "perplexity") for run in found.runs}
    seen = mnb.each_run(found, lambda run: "{:.2f}, {:.2f}, {:.2f}".format(*means[run][[0, 1, -1]]))
    return Claim(
        "Hinge-MNB lowers perplexity at the very beginning only",
        f"At the start, after one epoch, and at the end: {seen}.",
        all(mean.argmin() == 1 and mean[-1] > mean[1] for mean in means.values()),
    )


def perplexity_rises_under_p1(found: mnb.Results) -> Claim:
    rises = {
        run: float(mean[-1] / mean[1] - 1)
        for run in found.runs
        for mean in [found.mean(run, "perplexity")]
    }
    seen = mnb.each_run(found, lambda run: f"{100 * rises[run]:+.0f} %")
    return Claim(
        "Its perplexity then rises much more under P1 than under P2",
        f"From the first epoch to the last: {seen}.",
        all(rises[data, "hinge", "P1"] > rises[data, "hinge", "P2"] for data in found.sets),
    )


if __name__ == "__main__":
    from discem.cli import main

    main("reproduce", "mnb-hinge")
