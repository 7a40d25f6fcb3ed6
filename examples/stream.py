"""A stream: digits arrive in batches, some cells are missing, one class comes late."""

import numpy as np
from sklearn.datasets import load_digits

import discem

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
X, y = X[order], y[order]
X_test, y_test, X, y = X[:400], y[:400], X[400:], y[400:]
X = np.where(rng.uniform(size=X.shape) < 0.1, np.nan, X)
late = (y == 7) & (np.arange(len(y)) < 600)  # no seven among the first 600 rows
X, y = X[~late], y[~late]

model = discem.GaussianNB(random_state=0)
print("rows seen  classes  accuracy so far  accuracy on test rows")
for start in range(0, len(X), 200):
    model.partial_fit(X[start : start + 200], y[start : start + 200])
    progressive = model.history_[-1]["accuracy"]  # of each row before it was learnt
    print(
        f"{min(start + 200, len(X)):9}  {len(model.classes_):7}  {progressive:15.3f}"
        f"  {model.score(X_test, y_test):21.3f}"
    )
