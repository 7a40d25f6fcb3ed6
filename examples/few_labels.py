"""Few labels: rows without one, rows with two candidates, and annotators who are unsure."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

import discem

X, X_test, y, y_test = train_test_split(*load_iris(return_X_y=True), test_size=0.5, random_state=0)
rng = np.random.default_rng(0)
known = rng.permutation(len(y))[:15]


def show(what, X, y):
    accuracy = discem.GaussianNB(random_state=0).fit(X, y).score(X_test, y_test)
    print(f"{what:<36} {accuracy:.3f}")


show(f"all {len(y)} rows labelled", X, y)
some = np.full(len(y), np.nan)
some[known] = y[known]
show(f"{len(known)} labelled rows alone", X[known], y[known])
show(f"and {len(y) - len(known)} unlabelled rows", X, some)

pairs = np.eye(3, dtype=bool)[y]
pairs[np.arange(len(y)), (y + rng.integers(1, 3, size=len(y))) % 3] = True
show("each row with two candidate labels", X, pairs)

shares = 0.7 * np.eye(3)[y] + 0.1
show("each label only 80 % sure", X, shares)
