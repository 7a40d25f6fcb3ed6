"""Whether discem imports, fits and predicts under the Python that runs this file."""

import sys

import discem
import discem.cli._app

X, y = [[0.0], [0.2], [1.0], [1.2]], ["low", "low", "high", "high"]
found = discem.GaussianNB(random_state=0).fit(X, y).predict(X).tolist()
assert found == y, found
print(f"smoke test passed under {sys.executable}, Python {sys.version.split()[0]}")
