"""A table as it comes, with text, counts, dates and empty cells: fit, look, decide, explain.

python examples/tables.py                          # on a made table of customers
python examples/tables.py FILE.csv TARGET          # on yours; needs pandas
python examples/tables.py --picture docs/tables-why  # also draw why, as .png and .svg
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import discem
from discem.datasets import customers

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("file", nargs="?", help="a CSV file with a header")
parser.add_argument("target", nargs="?", help="its column of labels")
parser.add_argument("--picture", type=Path, metavar="PATH", help="where to draw the explanation")
options = parser.parse_args()

if options.file:
    import pandas as pd

    frame = pd.read_csv(options.file)
    X, y = frame.drop(columns=options.target).to_dict("records"), frame[options.target].to_numpy()
else:
    X, y = customers(1500, random_state=0)  # dicts; a data frame is as good
X, X_test, y, y_test = train_test_split(X, y, test_size=0.6, random_state=0)

# What is left at "auto" is chosen on rows that are held out; then all rows are trained on.
model = discem.TableClassifier(random_state=0).fit(X, y)
print("what each column was taken for:")
for name, family in model.families_.items():
    print(f"  {name:<12} {family}")
names = ("n_components", "loss", "hide", "missing", "prior_strength")
print("\nchosen:", {name: model.chosen_[name] for name in names})

print("\ntest cells removed   accuracy   log-loss")
rng = np.random.default_rng(0)
for share in (0.0, 0.2, 0.4, 0.6):
    left = [{k: cell for k, cell in row.items() if rng.random() >= share} for row in X_test]
    loss = log_loss(y_test, model.predict_proba(left), labels=model.classes_)
    print(f"{share:18.0%}   {model.score(left, y_test):8.3f}   {loss:8.3f}")

# The score of a class is a sum over the columns, so a prediction falls into exact parts.
chance = model.predict_proba(X_test)[:, 0]
row = X_test[int(chance.argmax())]
why = model.explain(row)
print(f"\np({model.classes_[0]}) is highest, {chance.max():.4f}, of\n{row}")
print("what each column adds to the log-odds:")
for name, part in why.against():
    if abs(part) > 1e-9:  # missing cells add nothing, unless it says something that they are
        print(f"  {part:+.2f}  {name} = {row.get(name, 'missing')}")
if options.picture:
    from discem.report.plots import plot_explanation, save_figure

    save_figure(plot_explanation(why, cells=row), options.picture)

# A second model of the same rows, trained by NLL, knows what rows look like.
drawn, labels = model.sample(1, random_state=0)
print(f"\na row that never was: {drawn[0]}, {labels[0]}")
density = model.score_samples(X_test)
print(f"ln p(x) of test rows: {np.median(density):.1f}, of the strangest {density.min():.1f}:")
print(X_test[int(density.argmin())])
