"""What only a joint can do, on the command line: impute, sample, outliers, explain a whole file."""

import csv
import datetime
import io
import json

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs discem[cli]")

from shell import people, write

import discem

FAST = ("--components", 2, "--loss", "ncll", "--hide", 0, "--missing", "ignore", "--epochs", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from typer.testing import CliRunner

    from discem import cli

    folder = tmp_path_factory.mktemp("joint")
    write(folder / "train.csv", people(200))
    words = ["fit", folder / "train.csv", "--target", "out", "--id", "name", *FAST]
    result = CliRunner().invoke(cli.app, [*map(str, words), "-o", str(folder / "model.skops")])
    assert result.exit_code == 0, result.output
    return folder


def read(path):
    """The rows of a file, as its format has them."""
    if path.suffix == ".parquet":
        from pyarrow.parquet import read_table

        return read_table(path).to_pylist()
    text = path.read_text()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text), delimiter="\t" if ".tsv" in path.name else ","))


# --- impute ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_impute_fills_in_what_is_missing_and_keeps_the_rest(form, good, folder, tmp_path):
    rows = people(40, seed=1)
    path, out = write(tmp_path / f"in.{form}", rows), tmp_path / f"out.{form}"
    good("impute", folder / "model.skops", path, "-o", out)
    filled = []
    for row, old, new in zip(rows, read(path), read(out), strict=True):
        assert list(new) == list(row)
        missing = [name for name, cell in row.items() if cell is None]
        assert all(new[name] == old[name] for name in row if name not in missing)
        filled += [(name, new[name]) for name in missing]
    levels = {"job": {"cook", "clerk", "nurse"}, "member": {"true", "false"}}
    assert len(filled) > 5
    for name, cell in filled:
        assert 0 < float(cell) < 100 if name == "age" else str(cell).lower() in levels[name]


def test_impute_is_that_of_the_library(good, folder, tmp_path):
    rows, names = people(40, seed=1), ("age", "job", "member")
    path = write(tmp_path / "a.jsonl", rows)
    good("impute", folder / "model.skops", path, "-o", tmp_path / "b.jsonl")
    cells = [{n: r[n] for n in names} | {"since": np.datetime64(r["since"])} for r in rows]
    expected = discem.load(folder / "model.skops").impute(cells)
    for row, other in zip(read(tmp_path / "b.jsonl"), expected, strict=True):
        assert row["age"] == pytest.approx(other["age"])
        assert (row["job"], row["member"]) == (other["job"], other["member"])


def test_dates_come_back_as_the_file_writes_them(good, folder, tmp_path):
    cells = "age,since,member\n50,2024-02-03,TRUE\n40,?,?\n"
    told = good("impute", folder / "model.skops", "-", "--format", "csv", input=cells)
    *_, (_, since, member) = csv.reader(io.StringIO(told))
    assert datetime.date.fromisoformat(since).year == 2024
    assert member in ("TRUE", "FALSE")


def test_draws_are_those_of_the_seed(good, folder, tmp_path):
    path = write(tmp_path / "a.csv", people(40, seed=1))
    words = ("impute", folder / "model.skops", path, "--how", "draw", "--seed")
    assert good(*words, 1) == good(*words, 1) != good(*words, 2)


# --- sample ---------------------------------------------------------------------------------------


def test_sample_draws_what_is_given(good, folder, tmp_path):
    words = ("sample", folder / "model.skops", "-n", 30, "--label", "yes")
    words += ("--given", "job=cook", "--given", "since=2024-05-06")
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        good(*words, "-o", tmp_path / name)
        rows = read(tmp_path / name)
        assert len(rows) == 30 and list(rows[0]) == ["age", "job", "since", "member", "out"]
        assert {(row["job"], str(row["since"]), row["out"]) for row in rows} == {
            ("cook", "2024-05-06", "yes")
        }
        assert len({row["age"] for row in rows}) > 10
    assert read(tmp_path / "a.parquet")[0]["since"] == datetime.date(2024, 5, 6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("job", "--given job: expected NAME=CELL"),
        ("nose=3", "--given nose=3: expected NAME=CELL, of one of 'age', 'job'"),
        ("age=old", "column 'age': 'old', but the model knows numbers"),
        ("job=king", "'king'"),
    ],
)
def test_what_cannot_be_given_is_named(given, message, bad, folder):
    assert message in bad("sample", folder / "model.skops", "--given", given)


def test_a_sample_is_not_written_over_the_model(bad, folder):
    path = folder / "model.skops"
    assert "one of the files that are read" in bad("sample", path, "-o", path)


# --- outliers -------------------------------------------------------------------------------------


def test_outliers_are_named_with_the_cells_that_are_strange(run, folder, tmp_path):
    rows = people(40, seed=1)
    rows[7]["age"] = 900.0
    path = write(tmp_path / "a.csv", rows)
    words = ("outliers", folder / "model.skops", path, "--rate", 0.001)
    result = run(*words, "--json")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    found = min(records, key=lambda record: record["ln_p"])
    assert len(records) <= 3 and found["name"] == "p7" and found["ln_p"] < -100
    (name, cell, nats), *_ = found["because"]
    assert (name, cell) == ("age", "900.0") and nats > 100
    assert "outliers in 40 rows, at a rate of 0.001" in result.stderr
    assert "│ p7 " in run(*words).stdout
    run(*words, "-o", tmp_path / "b.csv")
    assert "age = 900.0 (+" in (tmp_path / "b.csv").read_text()


def test_streams_do_not_know_what_is_usual(good, bad, folder, tmp_path):
    out = tmp_path / "m"
    good("fit", folder / "train.csv", "--target", "out", "--id", "name", "--stream", "-o", out)
    assert "does not know what is usual" in bad("outliers", out, folder / "train.csv")
    assert "expected a share" in bad("outliers", out, folder / "train.csv", "--rate", 2)


# --- explain --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_whole_file_is_explained(form, good, folder, tmp_path):
    path, out = write(tmp_path / f"a.{form}", people(20, seed=1)), tmp_path / f"b.{form}"
    good("explain", folder / "model.skops", path, "-o", out)
    rows = read(out)
    assert [row["name"] for row in rows] == [f"p{i}" for i in range(20)]
    for row in rows:
        parts = [float(row[name]) for name in ("start", "age", "job", "since", "member")]
        rest = [float(cell) for name, cell in row.items() if name.startswith("(")]
        assert sum(parts + rest) == pytest.approx(float(row["log_odds"]))
        assert (float(row["probability"]) > 0.5) == (float(row["log_odds"]) > 0)


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["impute", "sample", "outliers", "explain -o b.csv"])
def test_documents_are_refused(command, good, bad, tmp_path):
    (tmp_path / "a.txt").write_text("one\tred wine\ntwo\tgreen tea\n" * 5)
    good("fit", tmp_path / "a.txt", "--loss", "ncll", "--epochs", 1, "-o", tmp_path / "m")
    command, *more = command.split()
    data = [] if command == "sample" else [tmp_path / "a.txt"]
    told = bad(command, tmp_path / "m", *data, *more)
    assert "is a model of documents" in told
