"""Types: a user's script under ``mypy --strict``, and the mistakes that it should find."""

import subprocess
import sys
from pathlib import Path

import pytest

import discem

pytest.importorskip("mypy", reason="mypy is not installed")

SCRIPT = """
import numpy as np
import discem
from discem import losses, schedules

X, y = np.zeros((4, 2)), ["a", "b", "a", "b"]
rows = [{"size": 1.0, "kind": "a"}, {"size": None}]

numbers: discem.GaussianNB = discem.GaussianNB(
    loss="ncll", prior=discem.NormalGamma(), step=schedules.inverse(0.1), random_state=0
).fit(X, y, sample_weight=[1.0, 1.0, 1.0, 2.0])
p: np.ndarray = numbers.predict_proba(X)
accuracy: float = numbers.score(X, y)
numbers.set_class_prior({"a": 0.1, "b": 0.9}).calibrate(X, y).save("model.skops")
drawn, labels = numbers.sample(3, random_state=0)

correlated = discem.GaussianClassifier(covariance="auto", loss=losses.Hinge()).fit(X, y)
counts = discem.MultinomialNB(loss="auto", class_weight="balanced").fit(X, y)
bayes = discem.NaiveBayes(families={"kind": "categorical"}).fit(rows, ["x", "y"])
mixture = discem.MixtureClassifier(3, hide=0.5, covariance="full").partial_fit(X, y)
shares: np.ndarray = mixture.responsibilities(X)
topics = discem.TopicClassifier(4, text=True, inference="cvb0").fit(["a b", "c d"], ["x", "y"])
text = discem.TextClassifier(ngram_range=(1, 2))
words = text.fit(["good film", "bad film"], ["+", "-"]).top_words("+", 5)
best: str = words[0][0]
parts: list[tuple[object, float]] = text.explain("good").against("+", "-")
table = discem.TableClassifier(n_components="auto", density=True, n_jobs=-1).fit(rows, ["x", "y"])
strange: np.ndarray = table.outliers(rows, rate=0.05)
filled = table.impute(rows)
cells = discem.TableImputer(n_mixtures=2).fit(rows).transform(rows)
number = discem.TableRegressor().fit(rows, [1.0, 2.0])
blend = discem.GaussianNB(loss=discem.Blend(0.5))
again = discem.load("model.skops")
params: dict[str, object] = numbers.get_params()


class Mine:
    def evaluate(self, seen: object) -> tuple[object, object]:
        return 0.0, 0.0


own = discem.GaussianNB(loss=Mine())
"""

MISTAKES = {
    "GaussianNB(loss=3)": "arg-type",
    "GaussianNB(loss='nccl')": "arg-type",
    "GaussianNB(los='ncll')": "call-arg",
    "TableClassifier(n_componants=3)": "call-arg",
    "TableClassifier(n_components='three')": "arg-type",
    "TextClassifier(max_iter=2.5)": "arg-type",
    "MultinomialNB(early_stoping=True)": "call-arg",
    "MixtureClassifier(2, covariance='ful')": "arg-type",
    "TopicClassifier(2, inference='em')": "arg-type",
    "GaussianClassifier(random_seed=0)": "call-arg",
    "NaiveBayes(n_components=3)": "call-arg",
    "TableImputer(components=3)": "call-arg",
    "TableRegressor(covariance='full')": "call-arg",
    "GaussianNB().fit([[0.0]])": "call-arg",
    "GaussianNB().predict_prob([[0.0]])": "attr-defined",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What mypy says of both scripts, in one run."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "good.py").write_text(SCRIPT)
    lines = ["from discem import *", *MISTAKES]
    (folder / "bad.py").write_text("\n".join(lines))
    (folder / "mypy.ini").write_text(
        "[mypy]\nstrict = True\n[mypy-sklearn.*,scipy.*,pandas.*]\nignore_missing_imports = True\n"
    )
    source = str(Path(discem.__file__).parents[1])
    command = ["-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(folder / "cache")]
    run = subprocess.run(
        [sys.executable, *command, "good.py", "bad.py"],
        cwd=folder,
        env={"PYTHONPATH": source, "PATH": ""},
        capture_output=True,
        text=True,
    )
    return [line for line in run.stdout.splitlines() if ": error: " in line]


def test_a_script_with_every_estimator_passes(told):
    assert not [line for line in told if not line.startswith("bad.py")]
    for name in discem.__all__:
        if isinstance(getattr(discem, name), type) and hasattr(getattr(discem, name), "fit"):
            assert f"discem.{name}" in SCRIPT, name


@pytest.mark.parametrize("line, mistake", enumerate(MISTAKES, start=2))
def test_mistakes_are_found(told, line, mistake):
    found = [each for each in told if each.startswith(f"bad.py:{line}: ")]
    assert found and f"[{MISTAKES[mistake]}]" in found[0], found
