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
start, check-step and step size 1 / (1 + 0.1 t), for 5 epochs; and discem's defaults. The paper's
algorithm usually arrives near 92 %, but depends on the seed (see the range). Its check-step is
the reason: with projection="interior" and nothing else changed the seeds agree.

    python experiments/toy.py           writes toy.png, toy-defaults.png, toy.json beside this file
"""

from pathlib import Path
from statistics import median

from discem.report.toy import reproduce_toy

result = reproduce_toy(output=Path(__file__).parent, seeds=5, samples=30_000)

print("accuracy, %     median    min    max   the paper prints")
for run in result["runs"]:
    accuracies = run["accuracies"]
    numbers = (median(accuracies), min(accuracies), max(accuracies), run["printed"])
    print(f"{run['by']:7} {run['loss']:6}", *(f"{100 * number:7.1f}" for number in numbers))
