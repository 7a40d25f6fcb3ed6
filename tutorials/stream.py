"""
Learn from a stream
===================

Handwritten digits arrive in small batches. A tenth of the cells is missing, and for a
while there are no sevens at all. The model learns from each batch once, and is tested
on each batch before it learns from it.
"""

# %%
# The stream
# ----------

import warnings

import matplotlib.pyplot as plt
import numpy as np
from discem import GaussianNB
from discem.exceptions import SortedStreamWarning
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
X, y = X[order], y[order]
X = np.where(
    rng.uniform(size=X.shape) < 0.1, np.nan, X
)  # a tenth of the cells is missing
X_test, y_test, X, y = X[:400], y[:400], X[400:], y[400:]
early = np.arange(len(y)) < 600
X, y = X[~(early & (y == 7))], y[~(early & (y == 7))]  # sevens come late

# %%
# One batch after the other
# -------------------------
# ``partial_fit`` learns from the next rows. New classes may come at any time.

model, seen, before, on_test = GaussianNB(random_state=0), [], [], []
for first in range(0, len(X), 50):
    batch, answers = X[first : first + 50], y[first : first + 50]
    known = len(model.classes_) if first else 0
    model.partial_fit(batch, answers)
    if len(model.classes_) > known:
        print(f"after {first + len(batch):4} rows: {len(model.classes_)} classes")
    seen.append(first + len(batch))
    before.append(model.history_[-1]["accuracy"])  # of each row, before it was learnt
    on_test.append(model.score(X_test, y_test))

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(seen, before, label="batches, before they were learnt", alpha=0.6)
ax.plot(seen, on_test, label="test rows, of all ten digits")
ax.axvline(600, color="grey", linewidth=0.8)
ax.set(xlabel="rows seen", ylabel="accuracy", title="Sevens come after 600 rows")
ax.legend()
print(f"accuracy on test rows: {on_test[-1]:.3f}")

# %%
# ``stream_`` has the figures of the whole stream so far.

for name, value in model.stream_.items():
    if name != "seconds":
        print(f"{name:<9} {value:.3f}")

# %%
# Mix the rows
# ------------
# A stream that is sorted by label teaches one class at a time, and the model forgets
# the others. discem notices and warns. The progressive accuracy is of no use then:
# while all rows are zeros, "zero" is always right.

sorted_rows = np.argsort(y, kind="stable")
bad = GaussianNB(random_state=0)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for rows in np.array_split(sorted_rows, 30):
        bad.partial_fit(X[rows], y[rows], classes=np.arange(10))
print(
    next(
        str(each.message)
        for each in told
        if issubclass(each.category, SortedStreamWarning)
    )
)
print(f"progressive accuracy {bad.stream_['accuracy']:.3f}", end=", ")
print(f"on test rows {bad.score(X_test, y_test):.3f}")
