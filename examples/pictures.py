"""What a classifier has learnt, and how far to trust it, in pictures.

python examples/pictures.py
python examples/pictures.py --picture docs/model  # docs/model-classes.png and docs/model-trust.png
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from discem import TableClassifier
from discem.datasets import customers

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--picture", type=Path, metavar="PATH", help="where to draw")
options = parser.parse_args()

X, y = customers(1500, random_state=0)
train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = TableClassifier(random_state=0).fit(train, y_train)

beliefs = model.plot_classes()  # one panel for each column
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
model.plot_history(left)
model.plot_calibration(test, y_test, middle)
model.plot_rejection(test, y_test, right)

print("Columns, the most telling first:", ", ".join(ax.get_title("left") for ax in beliefs))
print(f"Accuracy on {len(test)} other rows: {100 * model.score(test, y_test):.1f} %")
if options.picture:
    for name, drawn in (("classes", beliefs[0].figure), ("trust", figure)):
        path = options.picture.with_name(f"{options.picture.name}-{name}.png")
        drawn.savefig(path, dpi=110)
        print(f"wrote {path}")
