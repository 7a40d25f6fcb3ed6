"""Answers that are numbers, on the command line."""

import csv
import io
import json

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs discem[cli]")

import discem

FAST = ("--components", 2, "--missing", "ignore", "--epochs", 5)


def rows(n, seed=0, whole=False):
    """Lines of a table whose column y hangs on the others; some cells are missing."""
    rng = np.random.default_rng(seed)
    a, kind = rng.normal(size=n), rng.integers(0, 2, n)
    y = 3.0 * a + 4.0 * kind + 0.1 * rng.normal(size=n)
    lines = ["name,a,kind,y"]
    for i in range(n):
        cell = "" if rng.random() < 0.1 else f"{a[i]:.4f}"
        answer = f"{round(10 * y[i])}" if whole else f"{y[i]:.4f}"
        lines.append(f"r{i},{cell},{'ab'[kind[i]]},{answer}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from typer.testing import CliRunner

    from discem import cli

    folder = tmp_path_factory.mktemp("numbers")
    (folder / "train.csv").write_text(rows(200))
    (folder / "new.csv").write_text(rows(60, seed=1))
    words = ["fit", folder / "train.csv", "--target", "y", "--id", "name", *FAST]
    words += ["-o", folder / "model.skops"]
    result = CliRunner().invoke(cli.app, [*map(str, words)])
    assert result.exit_code == 0, result.output
    folder.joinpath("told").write_text(result.stdout)
    return folder


def test_fit_says_what_it_took(folder):
    told = (folder / "told").read_text()
    assert "regression, for 'y' has numbers with fractions" in told
    model = discem.load(folder / "model.skops")
    assert isinstance(model, discem.TableRegressor)
    assert model.roles_ == {"target": "y", "id": "name"}


def test_the_task_is_that_of_the_target(good, folder, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.skops"
    path.write_text(rows(120, whole=True))
    told = good("fit", path, "--target", "y", "--ignore", "name", *FAST, "-o", out)
    assert "different numbers" in told
    assert isinstance(discem.load(out), discem.TableRegressor)
    told = good("fit", path, "--target", "kind", "--ignore", "name", *FAST, "-o", out)
    assert "2 classes" in told and "regression" not in told
    few = "a,y\n" + "".join(f"{i}.5,{i % 3}\n" for i in range(60))
    path.write_text(few)
    good("fit", path, "--target", "y", *FAST, "-o", out)
    assert isinstance(discem.load(out), discem.TableClassifier)
    told = good("fit", path, "--target", "y", "--task", "regression", *FAST, "-o", out)
    assert isinstance(discem.load(out), discem.TableRegressor) and "--task regression" in told


def test_predictions_are_means_and_quantiles(good, folder):
    model = discem.load(folder / "model.skops")
    said = [*csv.DictReader(io.StringIO((folder / "new.csv").read_text()))]
    table = [{"a": float(row["a"]) if row["a"] else None, "kind": row["kind"]} for row in said]
    mean, std = model.predict(table, return_std=True)
    ends = model.predict_quantiles(table)
    found = [
        *csv.DictReader(io.StringIO(good("predict", folder / "model.skops", folder / "new.csv")))
    ]
    assert [*found[0]] == ["name", "mean", "std", "0.05", "0.5", "0.95"]
    numbers = np.array([[float(row[name]) for name in [*row][1:]] for row in found])
    np.testing.assert_allclose(numbers, np.column_stack([mean, std, ends]), rtol=1e-4, atol=1e-4)
    words = ("predict", folder / "model.skops", folder / "new.csv", "--quantiles", "0.1,0.9")
    record = json.loads(good(*words, "--json").splitlines()[0])
    assert record["name"] == "r0" and [*record["quantiles"]] == ["0.1", "0.9"]
    assert "0.9" in good(*words, "--table").splitlines()[1]


def test_evaluation_has_the_figures(good, folder, tmp_path):
    text = good("evaluate", folder / "model.skops", folder / "new.csv", "--json")
    found = json.loads(text)
    assert found["rows"] == 60 and found["r2"] > 0.5 and 0.7 < found["coverage"] <= 1.0
    model = discem.load(folder / "model.skops")
    said = [*csv.DictReader(io.StringIO((folder / "new.csv").read_text()))]
    table = [{"a": float(row["a"]) if row["a"] else None, "kind": row["kind"]} for row in said]
    y = np.array([float(row["y"]) for row in said])
    off = model.predict(table) - y
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(off**2)))
    assert found["mae"] == pytest.approx(np.abs(off).mean())
    assert found["r2"] == pytest.approx(model.score(table, y))
    assert found["log_density"] == pytest.approx(model.predict_dist(table).log_prob(y).mean())
    assert "RMSE" in good("evaluate", folder / "model.skops", folder / "new.csv")
    lacking = tmp_path / "lacking.csv"
    lacking.write_text("a,kind,y\n0.5,a,\n0.5,a,1.5\n")
    assert "skipped: 1 row" in good("evaluate", folder / "model.skops", lacking)


def test_parts_are_held_out_in_turn(good, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(rows(60))
    words = ("evaluate", "--cv", 2, path, "--target", "y", "--ignore", "name", "--json")
    found = json.loads(good(*words).splitlines()[-1])
    assert found["rows"] == 60 and len(found["parts"]) == 2


def test_explanations_add_up(good, folder, tmp_path):
    text = good("explain", folder / "model.skops", folder / "new.csv", "--row", 1, "--json")
    record = json.loads(text)
    moved = record["start"] + sum(part for *_, part in record["columns"]) + record["other_columns"]
    assert moved == pytest.approx(record["prediction"])
    assert "moves the mean by" in good(
        "explain", folder / "model.skops", folder / "new.csv", "--row", 2
    )
    out = tmp_path / "why.csv"
    good("explain", folder / "model.skops", folder / "new.csv", "-o", out)
    first = next(csv.DictReader(io.StringIO(out.read_text())))
    parts = float(first["start"]) + float(first["a"]) + float(first["kind"])
    assert parts == pytest.approx(float(first["prediction"]), abs=1e-3)


def test_streams_and_the_density(good, folder, tmp_path):
    out = tmp_path / "m.skops"
    words = ("fit", folder / "train.csv", "--target", "y", "--ignore", "name", "--stream")
    good(*words, "--batch-size", 50, "-o", out)
    assert discem.load(out).stream_["rows"] == 200
    good("fit", folder / "new.csv", "--stream", "--resume", out, "-o", out)
    assert discem.load(out).stream_["rows"] == 260
    filled = good("impute", folder / "model.skops", folder / "new.csv")
    assert all(row["a"] for row in csv.DictReader(io.StringIO(filled)))
    drawn = [*csv.DictReader(io.StringIO(good("sample", folder / "model.skops", "-n", 5)))]
    assert len(drawn) == 5 and all(np.isfinite(float(row["y"])) for row in drawn)
    good("outliers", folder / "model.skops", folder / "new.csv")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("predict MODEL NEW --proba", "--proba is for classes"),
        ("predict MODEL NEW --quantiles 0.5,2", "--quantiles 0.5,2: expected numbers"),
        ("explain MODEL NEW --label a", "--label is for classes"),
        ("sample MODEL --label a", "--label is for classes"),
        ("fit TRAIN --target y --class-weight balanced -o OUT", "balanced is for classes"),
        ("fit TRAIN --target y --loss hinge -o OUT", "--loss hinge is for classes"),
        ("fit TRAIN --target y --workers 2 -o OUT", "train classifiers"),
        ("fit TRAIN --target kind --task regression -o OUT", "is no number; for classes"),
        ("fit TRAIN --target y --resume MODEL --stream --task regression -o OUT", "leave it out"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(bad, folder, tmp_path, words, message):
    places = {"MODEL": folder / "model.skops", "NEW": folder / "new.csv"}
    places |= {"TRAIN": folder / "train.csv", "OUT": tmp_path / "out.skops"}
    told = bad(*(str(places.get(word, word)) for word in words.split()))
    assert message in told
