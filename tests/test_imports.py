"""What is loaded to import, to train and to start the command line, counted in modules."""

import json
import os
import subprocess
import sys
from pathlib import Path

import discem

MODULES = "import json, sys; print(json.dumps(sorted(sys.modules)))"
NUMBERS = """
import numpy as np
rng = np.random.default_rng(0)
y = np.arange(60) % 3
X = rng.poisson(1.0 + 3.0 * (y[:, None] == np.arange(5) % 3)).astype(float)
texts = [" ".join(["grey bark keys", "white bark paper", "needles resin"][k].split()) for k in y]
"""
FITS = """
import warnings
import discem
warnings.simplefilter("ignore")
few = {"max_iter": 2, "random_state": 0}
for model in (
    discem.GaussianNB(**few), discem.MultinomialNB(**few), discem.MixtureClassifier(2, **few),
    discem.NaiveBayes(**few), discem.TopicClassifier(**few),
    discem.TableClassifier(n_components=2, **few),
):
    model.fit(X, y).partial_fit(X, y).predict_proba(X)
model = discem.TextClassifier(loss="ncll", random_state=0)
model.fit(texts, y).partial_fit(texts, y).predict(texts)
"""


def loaded(code):
    """The modules of a fresh process that has run this."""
    surroundings = os.environ | {"PYTHONPATH": str(Path(discem.__file__).parents[1])}
    command = [sys.executable, "-c", f"{code}\n{MODULES}"]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_alone_loads_nothing():
    new = loaded("import discem") - loaded("")
    assert {name.partition(".")[0] for name in new} <= {"discem"}


def test_an_estimator_loads_little_more_than_scikit_learn_does():
    """Time is of the modules loaded: these are pure Python, and small."""
    new = loaded("from discem import GaussianNB") - loaded("import sklearn.naive_bayes")
    others = {name for name in new if name.partition(".")[0] != "discem"}
    assert len(new) < 125
    assert not {name for name in others if name.partition(".")[0] not in sys.stdlib_module_names}


def test_no_fit_and_no_prediction_compiles_or_draws():
    found = {name.partition(".")[0] for name in loaded(NUMBERS + FITS)}
    assert not found & {"numba", "llvmlite", "dask", "distributed", "matplotlib", "typer"}


def test_the_command_line_answers_before_it_loads_anything_large():
    new = loaded("import discem.cli._app")
    assert not {name.partition(".")[0] for name in new} & {"numpy", "scipy", "sklearn", "numba"}


def test_no_file_is_long():
    """A reader finds a place in a file that fits on a few pages."""
    source = Path(discem.__file__).parent
    sizes = {p.name: len(p.read_text(encoding="utf-8").splitlines()) for p in source.rglob("*.py")}
    assert max(sizes.values()) <= 450, max(sizes, key=sizes.__getitem__)
