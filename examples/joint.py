"""What only a joint can do, in three pictures: fill in cells, doubt, ask.

python examples/joint.py
python examples/joint.py --picture docs/joint  # docs/joint-impute.png and two more
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split

import discem
from discem.report.plots import COLOURS, new_figure, style

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--picture", type=Path, metavar="PATH", help="beginning of the pictures' names")
options = parser.parse_args()


def draw(name: str, figure) -> None:
    if options.picture:
        path = options.picture.with_name(f"{options.picture.name}-{name}.png")
        figure.savefig(path, dpi=110)
        print(f"wrote {path}")


# Fill in cells: a third of those of wines that the imputer has not seen are removed.
train, true = train_test_split(load_wine().data, random_state=0)
removed = np.random.default_rng(0).random(true.shape) < 1 / 3
holes = np.where(removed, np.nan, true)
imputer = discem.TableImputer(random_state=0).fit(train)
means, draws = imputer.impute(holes), imputer.impute(holes, how="draw", random_state=0)
unit = (train.mean(axis=0), train.std(axis=0))
given, filled, drawn = ((cells - unit[0]) / unit[1] for cells in (true, means, draws))
error = np.sqrt(np.mean((given - filled)[removed] ** 2))
plain = np.sqrt(np.mean(given[removed] ** 2))
print(f"filled in: RMSE {error:.2f} standard deviations; with the mean of the column {plain:.2f}")
print("standard deviation of the removed cells, of means and of draws:",
      *(f"{cells[removed].std():.2f}" for cells in (given, filled, drawn)))  # fmt: skip
with style():
    figure = new_figure(8.0, 3.4)
    for panel, cells, title in zip(
        figure.subplots(1, 2, sharex=True, sharey=True), (filled, drawn), ("Means", "One draw"),
        strict=True,
    ):  # fmt: skip
        panel.axline((0, 0), slope=1, color="#737373", linewidth=1)
        panel.scatter(given[removed], cells[removed], s=14, alpha=0.6, linewidths=0)
        panel.set(title=title, xlabel="cell that was removed", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
    figure.axes[0].set_ylabel("cell filled in, in standard deviations")
draw("impute", figure)

# Doubt: a model that has never seen a four.
X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
fixed = {"n_components": 1, "loss": "nll", "hide": 0.0, "prior_strength": 1.0, "temperature": 1.0,
         "covariance": "diag", "missing": "ignore", "whole_numbers": "numbers"}  # fmt: skip
model = discem.TableClassifier(**fixed, random_state=0).fit(X[y != 4], y[y != 4])
density, flagged = model.score_samples(X_test), model.outliers(X_test, rate=0.05)
four = y_test == 4
print(f"outliers at a rate of 5 %: {flagged[~four].mean():.1%} of other digits, "
      f"{flagged[four].mean():.1%} of fours")  # fmt: skip
with style():
    figure = new_figure(8.0, 3.2)
    left, right = figure.subfigures(1, 2, width_ratios=(1.3, 1))
    panel = left.subplots()
    steps = np.linspace(*np.quantile(density, [0.005, 1.0]), 50)
    for own, label in ((~four, "digits that it knows"), (four, "fours")):
        panel.hist(density[own], steps, density=True, alpha=0.65, label=label)
    panel.axvline(density[flagged].max(), color="black", linewidth=1.2, label="outliers are below")
    panel.set(title="ln p(x) of new digits", xlabel="ln p(x), nats", yticks=[], ylim=(0, 0.07))
    panel.legend(ncols=3, columnspacing=1.0, handlelength=1.4)
    right.suptitle("The strangest of all", x=0.04, ha="left", weight="bold", size=10.5)
    for axis, i in zip(right.subplots(3, 5).ravel(), np.argsort(density), strict=False):
        axis.imshow(X_test[i].reshape(8, 8), cmap="Greys")
        axis.set(xticks=[], yticks=[])
        axis.grid(visible=False)
        for spine in axis.spines.values():
            spine.set(visible=True, color=COLOURS[int(y_test[i] == 4)], linewidth=1.5)
draw("outliers", figure)

# Ask: one measurement of a tumour after the other, until the model is sure.
SURE = 0.95
data = load_breast_cancer()
names, kinds = [str(name) for name in data.feature_names], data.target_names[data.target]
X, X_test, y, y_test = train_test_split(data.data, kinds, random_state=0)
rows, rows_test = ([dict(zip(names, row, strict=True)) for row in part] for part in (X, X_test))
fixed |= {"n_components": 3, "loss": "blend", "hide": 0.8}
model = discem.TableClassifier(**fixed, random_state=0).fit(rows, y)
courses, told = [], []
for row in rows_test[:40]:
    known, chances = {}, [model.predict_proba([{}])[0, 1]]
    while max(chances[-1], 1 - chances[-1]) < SURE and len(known) < len(names):
        name = model.next_cell(known)
        known[name] = row[name]
        chances.append(model.predict_proba([known])[0, 1])
    courses.append(chances)
    told.append([*known])
right = [(chances[-1] > 0.5) == (k == model.classes_[1])
         for chances, k in zip(courses, y_test, strict=False)]  # fmt: skip
print(f"measurements asked for until p > {SURE}: {np.mean([len(each) for each in told]):.1f} of "
      f"{len(names)} on average; {np.mean(right):.1%} are right")  # fmt: skip
with style():
    figure = new_figure(8.0, 3.6)
    panel, hard = figure.subplots(), max(range(20), key=lambda i: len(told[i]) * (len(told[i]) < 8))
    for i, chances in enumerate(courses[:20]):
        colour = COLOURS[int(y_test[i] == model.classes_[1])]
        panel.plot(chances, "o-", color=colour, alpha=1.0 if i == hard else 0.35)
    for j, name in enumerate(told[hard]):
        panel.annotate(name, (j + 1, courses[hard][j + 1]), (3, 6), textcoords="offset points",
                       size=8.5)  # fmt: skip
    for sure in (SURE, 1 - SURE):
        panel.axhline(sure, color="#737373", linewidth=1, linestyle="--")
    panel.set(title=f"Twenty tumours: blue {model.classes_[0]}, orange {model.classes_[1]}",
              xlabel="measurements asked for", ylabel=f"p({model.classes_[1]})", ylim=(0, 1),
              xlim=(-0.2, len(told[hard]) + 1.5))  # fmt: skip
draw("questions", figure)
