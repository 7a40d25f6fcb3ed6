"""Tables on the command line: fit, predict, evaluate, explain, and what is wrong with a file."""

import csv
import datetime
import io
import json
import os
import signal
import sys

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs discem[cli]")

from shell import people, send, write

import discem
from discem.cli._screen import Meter
from discem.estimators._average import REST
from discem.io.table_files import read_rows
from discem.io.texts import read_texts

FAST = ("--components", 1, "--loss", "ncll", "--hide", 0, "--missing", "ignore", "--epochs", 3)


def lines_of(path):
    return path.read_text().splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """train.csv, test.csv, and a model of the former."""
    from typer.testing import CliRunner

    from discem import cli

    folder = tmp_path_factory.mktemp("tables")
    write(folder / "train.csv", people(90))
    write(folder / "test.csv", people(40, seed=1))
    words = ["fit", folder / "train.csv", "--target", "out", "--id", "name", *FAST]
    words += ["-o", folder / "model.skops"]
    result = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return discem.load(folder / "model.skops")


def features(rows):
    """As Python has them, for the library itself."""
    return [
        {
            "age": row["age"],
            "job": row["job"],
            "since": np.datetime64(row["since"]),
            "member": row["member"],
        }
        for row in rows
    ]


# --- fit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.jsonl", "a.parquet"])
def test_every_format_gives_the_same_model(name, good, model, tmp_path):
    write(tmp_path / name, people(90))
    out = tmp_path / "m.skops"
    told = good("fit", tmp_path / name, "--target", "out", "--id", "name", *FAST, "-o", out)
    assert "│ since  │ gaussian    │ dates" in told
    assert "│ member │ bernoulli   │ booleans" in told
    assert f"{out}: 90 rows, 2 classes, components 1, loss ncll, hide 0" in told
    again = discem.load(out)
    assert again.roles_ == {"target": "out", "id": "name"}
    test = features(people(40, seed=1))
    np.testing.assert_allclose(again.predict_proba(test), model.predict_proba(test), atol=1e-6)
    found = good("predict", out, write(tmp_path / f"b.{name[2:]}", people(5, seed=2)))
    assert [line.split(",")[0] for line in found.split()] == ["name", "p0", "p1", "p2", "p3", "p4"]


def test_a_fit_is_that_of_the_library(model):
    rows = people(90)
    options = {"n_components": 1, "loss": "ncll", "hide": 0, "missing": "ignore", "max_iter": 3}
    expected = discem.TableClassifier(**options, random_state=0)
    expected.fit(features(rows), [row["out"] for row in rows])
    test = features(people(40, seed=1))
    np.testing.assert_allclose(model.predict_proba(test), expected.predict_proba(test), atol=1e-6)


def test_options_reach_the_model(good, folder, tmp_path):
    out = tmp_path / "m"
    words = "--components 2 --loss nll --hide 0.5 --missing informative --epochs 2 --seed 5"
    words += " --class-weight balanced --ignore since --ignore name --family age=lognormal"
    words += " --ignore name"  # once more
    told = good("fit", folder / "train.csv", "--target", "out", "-o", out, *words.split())
    assert "│ since  │ ignored     │ given" in told
    found = discem.load(out).get_params()
    wanted = {"n_components": 2, "loss": "nll", "hide": 0.5, "missing": "informative"}
    wanted |= {"max_iter": 2, "random_state": 5, "class_weight": "balanced", "callback": None}
    wanted["families"] = {"since": "ignored", "name": "ignored", "age": "lognormal"}
    assert {name: found[name] for name in wanted} == wanted


def test_missing_cells_blanks_and_other_delimiters_are_read(good, folder, model, tmp_path):
    rows = people(90)
    text = (folder / "train.csv").read_text()
    for place, change in enumerate((", ", ";", "|")):
        (tmp_path / f"{place}.csv").write_text(text.replace(",", change))
    words = iter(["", "na", "N/A", "NaN", "NULL", "none", " ? "] * 90)
    mixed = [{k: next(words) if v is None else v for k, v in row.items()} for row in rows]
    write(tmp_path / "3.csv", mixed)
    (tmp_path / "4.csv").write_text("\n".join(f"{i},{line}" for i, line in enumerate(lines_of(
        folder / "train.csv"))).replace("0,", ",", 1))  # fmt: skip
    expected = next(read_rows([folder / "train.csv"]))
    for place in range(5):
        found = next(read_rows([tmp_path / f"{place}.csv"]))
        assert found.names == expected.names
        for name in found.names:
            one, other = found.content(name), expected.content(name)
            np.testing.assert_array_equal(one.values, other.values)
            assert (one.kind, list(one.levels)) == (other.kind, list(other.levels))


def test_several_files_are_one_table(good, bad, folder, tmp_path):
    rows = people(90)
    parts = [write(tmp_path / f"{i}.csv", rows[i * 45 : i * 45 + 45]) for i in range(2)]
    good("fit", *parts, "--target", "out", "--id", "name", *FAST, "-o", tmp_path / "m.skops")
    assert (tmp_path / "m.skops").read_bytes() == (folder / "model.skops").read_bytes()
    good("fit", "-", "--format", "csv", "--target", "out", "--id", "name", *FAST,
         "-o", tmp_path / "n.skops", input=(folder / "train.csv").read_text())  # fmt: skip
    assert (tmp_path / "n.skops").read_bytes() == (folder / "model.skops").read_bytes()
    write(tmp_path / "less.csv", [{"age": 1.0, "out": "no"}])
    told = bad("fit", parts[0], tmp_path / "less.csv", "--target", "out", "-o", tmp_path / "x")
    assert "less.csv: its columns are not those of" in told
    other = write(tmp_path / "a.jsonl", rows)
    assert "not of the format" in bad("fit", parts[0], other, "--target", "out", "-o", "x")


def test_unlabelled_rows_are_learnt_from(run, good, folder, tmp_path):
    rows = [row | {"out": None} if i % 3 == 0 else row for i, row in enumerate(people(60))]
    path, out = write(tmp_path / "some.csv", rows), tmp_path / "m"
    result = run("fit", path, "--target", "out", *FAST, "-o", out)
    assert "discem: 20 of 60 rows have no label" in result.stderr
    assert "60 rows, 2 classes" in result.stdout
    found = json.loads(good("evaluate", out, path, "--json"))
    assert (found["rows"], found["unlabelled"]) == (40, 20)


# --- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--target outt", "no column 'outt', which --target names; did you mean 'out'?"),
        ("--target zz", "no column 'zz', which --target names; there is 'name', 'age'"),
        ("--target out --id zz", "no column 'zz', which --id names"),
        ("--target out --ignore zz", "no column 'zz', which --ignore names"),
        ("--target out --family zz=poisson", "no column 'zz', which --family names"),
        ("--target out --family age", "--family age: expected NAME=FAMILY"),
        ("--target out --family age=normal", "--family age=normal: expected NAME=FAMILY"),
        ("--target out --family age=poisson", "train.csv, line 2: it takes whole numbers"),
        ("--target out --family age=poisson --ignore age", "--ignore and --family both name"),
        ("--target out --id out", "--target and --id are both 'out'"),
        ("--target out --ignore out", "--target and --ignore both name 'out'"),
        ("--target out --family out=poisson", "--target and --family both name 'out'"),
        ("--target out --id name --ignore name", "--id and --ignore both name 'name'"),
        ("--target out --family age=poisson --family age=gaussian", "both name 'age'"),
        (
            "--target name",
            "column 'name' has 90 different labels in 90 rows: these are not classes",
        ),
        ("--target out --ngrams 2", "--ngrams is for documents, and this is a table"),
        ("--target out --text-column age", "--text-column is for documents"),
        ("--target out --format txt", "a table is one of csv, tsv, jsonl, parquet, not txt"),
        ("--target out --stream --epochs 3", "leave out --epochs"),
        ("--target out --hide 1.5", "see discem fit --help"),
        ("--components 2", "--components is for tables: add --target NAME"),
        ("--id name", "--id is for tables: add --target NAME"),
        ("--ignore name", "--ignore is for tables: add --target NAME"),
        ("", "no column 'text'; there is 'name', 'age', 'job', 'since', 'member', 'out'; if it"),
        ("--stream", "if it is a table, name the column of its labels with --target"),
    ],
)
def test_misuse_is_one_line_and_writes_nothing(options, message, bad, folder, tmp_path):
    told = bad("fit", folder / "train.csv", "-o", tmp_path / "m", *options.split())
    assert message in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stream", [[], ["--stream"]])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "a.csv: no rows in it"),
        ("a.csv", "age,out\n", "a.csv: no rows in it"),
        ("a.csv", "age,out\n1,a\n2,b\n3,b,c\n", "a.csv, line 4: 3 columns, but the header has 2"),
        ("a.csv", "age,age,out\n1,1,a\n", "more than one column is named 'age'"),
        ("a.csv", 'age,out\n"1,a\n', "a.csv, line 2: unexpected end of data"),
        ("a.csv", "age,out\n1,?\n2,\n", "2 rows has a label"),
        ("a.csv", "out\na\nb\n", "a.csv: no column besides 'out'"),
        ("a.csv", "x,age,out\n" + "1,1,a\n1,1,b\n" * 20, "no column varies"),
        ("a.csv", "age,out\n" + "1,a\n2,b\n" * 9 + "x,b\n", "a.csv, line 20, column 'age': 'x'"),
        ("a.csv", "age,out\n1,a\n2,b\ninf,b\n", "a.csv, line 4, column 'age': 'inf' is beyond"),
        ("a.csv", "age,out\n1,a\n\0,b\n", "a.csv, line 3, column 'age': the cell holds a NUL"),
        ("a.csv", "age,out\r1,a\r2,b\r", "a.csv, line 1: a carriage return (CR) that ends no line"),
        ("a.csv", "age,out\n1\r,a\n2,b\n", "a.csv, line 2: a carriage return (CR) that ends"),
        (
            "a.jsonl",
            '{"age": 1, "out": "a"}\n\n{"age": Infinity, "out": "b"}\n',
            "there is infinity at {}, line 3, column 'age'",
        ),
        ("a.jsonl", '{"age": 1, "out": "a"}\n{"age": "x", "out": "b"}\n', "a.jsonl, line 2, col"),
        ("a.jsonl", '{"age": [1], "out": "a"}\n{"out": "b"}\n', "column 'age': [1] is nested"),
        ("a.jsonl", '{"age": 1, "out": ["a"]}\n', "line 1, 'out': expected one label"),
        (
            "a.jsonl",
            '{"age": 1, "out": "a\\u0000"}\n',
            "line 1, 'out': the label 'a\\x00' ends with a",
        ),
        ("a.jsonl", '{"age": 1, "age": 2, "out": "a"}\n', "more than one field is named 'age'"),
        ("a.jsonl", "[1]\n", "a.jsonl, line 1: expected a JSON object"),
        ("a.parquet", "none", "cannot be read as Parquet"),
    ],
)
def test_bad_data_is_one_line(name, content, message, stream, run, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
    (tmp_path / name).write_text(content)
    words = ("--target", "out", "-o", tmp_path / "m", *stream)
    result = run("fit", tmp_path / name, *words)
    assert result.exit_code == 2
    (told,) = result.stderr.splitlines()
    assert message.format(tmp_path / name) in told
    learnt = stream and "line 4: 3 columns" in told  # what came before it
    assert sorted(os.listdir(tmp_path)) == ([name, "m"] if learnt else [name])


def test_one_class_leaves_nothing_to_tell_apart(bad, good, tmp_path):
    path = write(tmp_path / "a.csv", [{"age": i, "out": "no"} for i in range(30)])
    words = ("fit", path, "--target", "out", "-o", tmp_path / "m")
    told = bad(*words)
    assert "all labels are 'no'" in told and "add rows of other classes" in told
    good(*words, "--loss", "nll", "--epochs", 1)
    good(*words, "--stream")


def test_columns_of_texts_are_read_by_their_words(good, bad, tmp_path):
    words = ["good", "bad"]
    rows = [{"note": f"the {i} of many notes is {words[i % 2]}", "size": i % 7, "out": "ab"[i % 2]}
            for i in range(60)]  # fmt: skip
    data, path = write(tmp_path / "a.csv", rows), tmp_path / "m"
    good("fit", data, "--target", "out", "-o", path)
    rows = [row | {"note": "a bad note", "out": None} for row in rows[:3]]
    rows[1]["note"] *= 30
    write(tmp_path / "b.csv", rows)
    told = good("explain", path, tmp_path / "b.csv", "--row", 1, "--json")
    (found,) = [json.loads(line) for line in told.splitlines()]
    assert found["label"] == "b" and found["texts"]["note"][0][0] == "bad"
    shown = good("explain", path, tmp_path / "b.csv", "--row", 2)
    assert "bad" in shown and "..." in shown
    given = ("fit", data, "--target", "out", "--family", "note=text", "-o", path)
    good(*given, "--stream", "--batch-size", 30)
    assert "encoder='x' is unknown" in bad(*given, "--encoder", "x")
    numbers = ("fit", data, "--target", "size", "--task", "regression", "-o", path)
    assert "--encoder is for texts" in bad(*numbers, "--encoder", "wordllama")
    told = bad(*numbers)
    assert "column 'note' is text" in told and "leave it out with --ignore" in told


def test_parquet_without_its_library_says_how_to_get_it(bad, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    told = bad("fit", tmp_path / "a.parquet", "--target", "out", "-o", tmp_path / "m")
    assert "pip install 'discem[parquet]'" in told


def test_models_of_the_other_kind_are_told_of(bad, good, folder, tmp_path):
    (tmp_path / "a.txt").write_text("a\tgood film\nb\tbad film\n" * 5)
    text, table = tmp_path / "t.skops", folder / "model.skops"
    good("fit", tmp_path / "a.txt", "--loss", "nll", "-o", text)
    for command in ("predict", "evaluate", "explain"):
        told = bad(command, text, folder / "test.csv")
        assert f"no column 'text'; there is 'name', 'age'" in told  # noqa: F541
        assert f"{text} is a model of documents, not of tables" in told
        assert "a table is one of csv" in bad(command, table, tmp_path / "a.txt")
        told = bad(command, table, folder / "test.csv", "--text-column", "age")
        assert f"--text-column is for documents, and {table} is a model of tables" in told
    assert "--id is for tables" in bad("predict", text, tmp_path / "a.txt", "--id", "age")
    assert "--row is for tables" in bad("explain", text, tmp_path / "a.txt", "--row", 1)
    assert "--target is for tables" in bad("evaluate", text, tmp_path / "a.txt", "--target", "x")
    assert "--words is for documents" in bad("explain", table, "--words", "yes")
    assert f"no file 'some text', and {table} is a model of tables" in bad(
        "explain", table, "some text"
    )
    more = ("--stream", "--resume", text, "-o", text)
    assert "--target is for tables" in bad("fit", folder / "test.csv", "--target", "out", *more)
    discem.TableClassifier(max_iter=1).fit([[0.0], [1.0]] * 5, ["a", "b"] * 5).save(text)
    assert "whose columns have no names" in bad("predict", text, folder / "test.csv")


# --- streams and signals --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_stream_is_partial_fit(name, good, tmp_path):
    rows, out = people(90), tmp_path / "m"
    path = write(tmp_path / name, rows)
    told = good("fit", path, "--target", "out", "--id", "name", "--stream", "-o", out,
                "--batch-size", 40)  # fmt: skip
    assert f"{out}: 90 rows, 2 classes" in told
    expected, right = discem.TableClassifier(random_state=0), 0
    for begin in (0, 40, 80):
        part = rows[begin : begin + 40]
        labels = [row["out"] for row in part]
        if begin:
            right += int((expected.predict(features(part)) == labels).sum())
        expected.partial_fit(features(part), labels)
    test = features(people(40, seed=1))
    found = discem.load(out).predict_proba(test)
    np.testing.assert_allclose(found, expected.predict_proba(test), atol=1e-6)
    assert f"progressive accuracy {right / 50:.4f}" in told


def test_resume_is_as_if_never_stopped(good, tmp_path):
    rows = people(90)
    whole, part = tmp_path / "whole.skops", tmp_path / "part.skops"
    columns = ("--target", "out", "--id", "name", "--stream", "--batch-size", 30)
    good("fit", write(tmp_path / "all.csv", rows), *columns, "-o", whole)
    good("fit", write(tmp_path / "one.csv", rows[:60]), *columns, "-o", part)
    more = ("--stream", "--resume", part, "-o", part)
    good("fit", write(tmp_path / "two.csv", rows[60:]), *more)
    models = discem.load(part), discem.load(whole)
    assert [len(model.files_) for model in models] == [2, 1]
    for path, model in zip((part, whole), models, strict=True):
        model.files_.clear()  # which were two, and one
        model.save(path)
    assert part.read_bytes() == whole.read_bytes()


def test_what_a_stream_knows_of_columns_may_only_be_repeated(good, bad, folder, tmp_path):
    path, out, before = tmp_path / "m", tmp_path / "n", {"target": "out", "id": "name"}
    stream = ("fit", folder / "train.csv", "--stream")
    good(*stream, "--target", "out", "--id", "name", "-o", path)
    resume = (*stream, "--resume", path, "-o", out)
    fresh = "leave it out, or fit a new model"
    for flag, name, known in (("--target", "job", "out"), ("--id", "age", "name")):
        told = bad(*resume, flag, name)
        assert told == f"{flag} {name}: {path} has learnt with {flag} {known}; {fresh}"
    assert "leave out --ignore" in bad(*resume, "--ignore", "age")
    assert not out.exists()
    good(*resume, "--target", "out", "--id", "name")
    good(*resume, "--id", "name")
    assert discem.load(out).roles_ == before


def test_a_column_that_was_learnt_from_gets_no_role_later(good, bad, folder, tmp_path):
    path, out, test = tmp_path / "m", tmp_path / "n", people(40, seed=1)
    rows = [{k: v for k, v in row.items() if k != "name"} for row in people(90)]
    data = write(tmp_path / "a.csv", rows)
    good("fit", data, "--stream", "--target", "out", "-o", path)
    resume = ("fit", folder / "train.csv", "--stream", "--resume", path, "-o", out)
    told = bad(*resume, "--id", "age")
    assert told.startswith(f"--id age: {path} has learnt from this column")
    assert "--target and --id are both 'out'" in bad(*resume, "--id", "out")
    assert "no column 'zz', which --id names" in bad(*resume, "--id", "zz")
    assert not out.exists()
    good(*resume, "--id", "name")  # which is new
    assert discem.load(out).roles_ == {"target": "out", "id": "name"}
    mine = discem.TableClassifier(random_state=0)
    mine.partial_fit(features(test), [row["out"] for row in test]).save(path)
    assert f"--target age: {path} has learnt from this column" in bad(*resume, "--target", "age")
    assert "add --target NAME" in bad(*resume)
    good(*resume, "--target", "out")


def test_a_stream_keeps_what_came_before_a_bad_row(bad, tmp_path):
    path = write(tmp_path / "a.csv", people(90))
    lines = lines_of(path)
    lines[70] = lines[70].replace(lines[70].split(",")[1], "old", 1)
    path.write_text("\n".join(lines))
    out = tmp_path / "m"
    words = ("fit", path, "--target", "out", "--stream", "--batch-size", 30, "-o", out)
    told = bad(*words)
    assert "line 71, column 'age': 'old', but the model knows numbers in it" in told
    assert told.endswith(f"{out} has learnt the first 60 of these rows")
    lines[70] = "too,few"
    path.write_text("\n".join(lines))
    told = bad(*words)
    assert "line 71: 2 columns" in told
    assert told.endswith(f"{out} has learnt the first 69 of these rows")
    assert discem.load(out).stream_["rows"] == 69


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stream_that_is_interrupted_is_saved(signum, code, run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Meter, "tell", send(signum, "rows 60"))
    path = tmp_path / "m"
    words = ("--target", "out", "--stream", "--batch-size", 30)
    result = run("fit", folder / "train.csv", *words, "-o", path)
    assert result.exit_code == code
    assert f"interrupted; {path} has learnt the first 60 of these rows" in result.stderr
    assert discem.load(path).roles_ == {"target": "out"}
    assert os.listdir(tmp_path) == ["m"]


def test_control_c_keeps_a_fit_so_far(run, good, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Meter, "tell", send(signal.SIGINT, "choice: 3 of"))
    result = run("fit", folder / "train.csv", "--target", "out", *FAST, "-o", tmp_path / "m")
    assert result.exit_code == 130
    assert f"interrupted; {tmp_path / 'm'} has the model trained so far" in result.stderr
    monkeypatch.undo()
    assert json.loads(good("evaluate", tmp_path / "m", folder / "test.csv", "--json"))["rows"] == 40


@pytest.mark.parametrize("step", ["reading 90", "choice: 1 of"])
def test_control_c_before_anything_is_learnt_leaves_all_as_it_was(
    step, run, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(Meter, "tell", send(signal.SIGINT, step))
    (tmp_path / "m").write_bytes(b"before")
    result = run("fit", folder / "train.csv", "--target", "out", *FAST, "-o", tmp_path / "m")
    assert result.exit_code == 130
    assert result.stderr == "discem: interrupted\n"
    assert (tmp_path / "m").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["m"]


# --- predict --------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_model(good, folder, model, tmp_path):
    rows = people(40, seed=1)
    labels, proba = model.predict(features(rows)), model.predict_proba(features(rows))
    path, data = folder / "model.skops", folder / "test.csv"
    found = list(csv.DictReader(io.StringIO(good("predict", path, data, "--batch-size", 7))))
    assert [row["label"] for row in found] == labels.tolist()
    assert [row["name"] for row in found] == [row["name"] for row in rows]
    found = list(csv.reader(io.StringIO(good("predict", path, data, "--proba"))))
    assert found[0] == ["name", "label", "p(no)", "p(yes)"]
    shares = np.array([row[2:] for row in found[1:]], dtype=float)
    np.testing.assert_allclose(shares, proba, rtol=1e-4, atol=1e-5)
    good("predict", path, data, "--proba", "-o", tmp_path / "a.jsonl")
    found = [json.loads(line) for line in lines_of(tmp_path / "a.jsonl")]
    assert found[3]["name"] == "p3" and found[3]["label"] == labels[3]
    assert found[3]["probabilities"] == pytest.approx({"no": proba[3][0], "yes": proba[3][1]})
    assert good("predict", path, data, "--json", "--proba") == (tmp_path / "a.jsonl").read_text()
    good("predict", path, data, "-o", tmp_path / "a.tsv")
    assert lines_of(tmp_path / "a.tsv")[:2] == ["name\tlabel", f"p0\t{labels[0]}"]
    assert "│ p0   │" in good("predict", path, data, "--table")


def test_predictions_do_not_replace_a_part_of_the_table(bad, folder, tmp_path):
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name, people(9))
    before, path = (tmp_path / "b.csv").read_bytes(), tmp_path / "b.csv"
    for command in (["predict", folder / "model.skops"], ["fit", "--target", "out"]):
        told = bad(*command, tmp_path / "*.csv", "-o", path)
        assert told == f"cannot write to {path}: it is one of the files that are read"
    assert path.read_bytes() == before


def test_rows_without_a_name_have_a_number(good, bad, folder, tmp_path):
    rows = [{k: v for k, v in row.items() if k != "name"} for row in people(9, seed=1)]
    data, path = write(tmp_path / "a.csv", rows), folder / "model.skops"
    found = [line.split(",")[0] for line in good("predict", path, data, "--batch-size", 4).split()]
    assert found == ["row", *map(str, range(1, 10))]
    assert "no column 'who', which --id names" in bad("predict", path, data, "--id", "who")
    found = good("predict", path, data, "--id", "since").split()
    assert found[1].startswith(rows[0]["since"])


def test_columns_that_are_not_there_or_not_known_are_told_of_once(run, bad, folder, tmp_path):
    rows = [
        {"more": 1, **{k: v for k, v in row.items() if k not in ("age", "out")}}
        for row in people(40, seed=1)
    ]
    data = write(tmp_path / "a.csv", rows)
    result = run("predict", folder / "model.skops", data, "--batch-size", 10)
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"discem: {data}: no column 'age'; all cells of it are missing",
        f"discem: {data}: left out, as the model does not know: 'more'",
    ]
    result = run("predict", folder / "model.skops", folder / "test.csv")
    assert result.stderr == ""
    write(data, [{"x": 1, "y": 2}])
    told = bad("predict", folder / "model.skops", data)
    assert "none of the columns of the model is there; it knows 'age', 'job'" in told
    assert "no column 'out', which --target names" in bad(
        "evaluate", folder / "model.skops", write(data, rows)
    )


def test_cells_are_what_they_were_in_training(bad, good, folder, tmp_path):
    """Texts that look like numbers stay texts; numbers must be numbers."""
    path = folder / "model.skops"
    rows = [row | {"job": "12", "member": "TRUE", "age": None} for row in people(5)]
    assert len(good("predict", path, write(tmp_path / "a.csv", rows)).split()) == 6
    for name, cell, kind in (("age", "old", "numbers"), ("since", "12", "dates")):
        rows = [row | {name: cell} if i == 3 else row for i, row in enumerate(people(5))]
        told = bad("predict", path, write(tmp_path / "a.csv", rows))
        assert f"a.csv, line 5, column '{name}': '{cell}', but the model knows {kind}" in told
    rows = [row | {"age": "old"} for row in people(5)]
    told = bad("predict", path, write(tmp_path / "a.jsonl", rows))
    assert "a.jsonl, line 1, column 'age': 'old', but the column holds numbers" in told
    parquet = tmp_path / "a.parquet"
    told = bad("evaluate", path, write(parquet, rows))
    assert "column 'age' held numbers when the model was fitted, and now it holds text" in told
    rows = [row | {"age": float("inf")} if i == 3 else row for i, row in enumerate(people(5))]
    told = bad("predict", path, write(parquet, rows))
    assert told == f"there is infinity at {parquet}, row 4, column 'age'"


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (datetime.date(2020, 1, 1), "dates, as 2020-01-01"),
        (datetime.datetime(2020, 1, 1, 12, 30), "dates, as 2020-01-01 12:30:00"),
        (datetime.timedelta(hours=30), "durations, as 1 day, 6:00:00"),
    ],
)
def test_dates_are_shown_as_dates(cell, shown, bad, folder, tmp_path):
    path = write(tmp_path / "a.parquet", [row | {"age": cell} for row in people(5)])
    told = bad("predict", folder / "model.skops", path)
    assert told.endswith(f"when the model was fitted, and now it holds {shown} in {path}, row 1")


def test_dates_that_a_given_family_cannot_have_are_shown_as_dates(bad, folder, tmp_path):
    words = ("fit", folder / "train.csv", "--target", "out", "-o", tmp_path / "m", "--family")
    (first, *_), days = people(1), sorted(row["since"] for row in people(90))
    write(tmp_path / "a.csv", [row | {"since": f"{row['since']}T12:00"} for row in people(90)])
    first_days = [*dict.fromkeys(days)][:3]
    assert f"values, as {', '.join(first_days)}: it takes two" in bad(*words, "since=bernoulli")
    told = bad("fit", tmp_path / "a.csv", *words[2:], "since=poisson")
    assert f"but holds {first['since']} 12:00:00 in" in told


def test_a_line_of_json_may_lack_any_field(good, folder, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"age": 70}\n\n{}\n{"job": "clerk"}\n')
    found = good("predict", folder / "model.skops", tmp_path / "a.jsonl", "--batch-size", 1)
    assert [line.split(",")[0] for line in found.split()] == ["row", "1", "2", "3"]


def parquet(path, name, column):
    """A file of `people`, but for one column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(people(len(column)))
    table = table.set_column(table.schema.get_field_index(name), name, column)
    pq.write_table(table, path / "a.parquet")
    return path / "a.parquet"


def test_dates_that_python_has_not_are_one_line(bad, good, folder, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
    far = pa.array([2**30, 1] * 20, pa.int32()).cast(pa.date32())
    model, data = folder / "model.skops", parquet(tmp_path, "name", far)
    for words in (["predict", model, data], ["explain", model, data, "--row", 1]):
        assert f"{data}, column 'name' cannot be read: days=1073741824" in bad(*words)
    data = parquet(tmp_path, "out", far)
    fit = ("fit", data, "--target", "out", "-o", tmp_path / "m")
    cv = ("evaluate", data, "--target", "out", "--cv", 2)
    documents = ("fit", data, "--text-column", "job", "--label-column", "out", "-o", tmp_path / "m")
    for words in (fit, [*fit, "--stream"], cv, ["evaluate", model, data], documents):
        told = bad(*words)
        assert told.startswith(f"{data}") and "cannot be read: days=1073741824" in told
    assert not (tmp_path / "m").exists()


def test_labels_of_parquet_are_texts_as_in_csv(good, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
    days = pa.array([1, 2] * 20, pa.date32())
    for column, labels in (
        (days, {"1970-01-02", "1970-01-03"}),
        (days.cast(pa.timestamp("s")), {"1970-01-02 00:00:00", "1970-01-03 00:00:00"}),
        (pa.array([1, 2] * 20).cast(pa.decimal128(20, 1)), {"1.0", "2.0"}),
        (pa.array(["b", "", None, "a"] * 10).dictionary_encode(), {"a", "b"}),
        (pa.array([1, None] * 20).dictionary_encode(), {"1"}),
        (pa.array(["b", None, "", "a"] * 10), {"a", "b"}),
    ):
        data = parquet(tmp_path, "out", column)
        good("fit", data, "--target", "out", "--stream", "-o", tmp_path / "m")
        assert set(discem.load(tmp_path / "m").classes_.tolist()) == labels


# --- evaluate and explain -------------------------------------------------------------------------


def test_evaluate(good, bad, folder, model, tmp_path):
    rows = people(40, seed=1)
    found = json.loads(good("evaluate", folder / "model.skops", folder / "test.csv", "--json"))
    assert found["accuracy"] == model.score(features(rows), [row["out"] for row in rows])
    assert found["rows"] == 40
    told = good("evaluate", folder / "model.skops", folder / "test.csv")
    assert "rows 40" in told and "document" not in told
    renamed = write(tmp_path / "a.csv", [{("real" if k == "out" else k): v
                    for k, v in row.items()} for row in rows])  # fmt: skip
    again = good("evaluate", folder / "model.skops", renamed, "--target", "real", "--json")
    assert json.loads(again) == found
    unnamed = discem.TableClassifier(max_iter=1, random_state=0)
    unnamed.fit(features(rows), [row["out"] for row in rows]).save(tmp_path / "m")
    told = bad("evaluate", tmp_path / "m", folder / "test.csv")
    assert told == "the model does not know which column has the labels: add --target NAME"


def test_cross_validation(good, bad, folder, tmp_path, monkeypatch):
    before = discem.TableClassifier.fit

    def quick(self, *args):
        return before(self.set_params(max_iter=2, n_components=1, loss="ncll", hide=0.0), *args)

    monkeypatch.setattr(discem.TableClassifier, "fit", quick)
    words = ("evaluate", folder / "train.csv", "--target", "out", "--ignore", "name", "--cv", 3)
    found = json.loads(good(*words, "--json"))
    assert found["rows"] == 90 and len(found["parts"]) == 3
    assert found["accuracy"] == pytest.approx(np.mean(found["parts"]))
    assert found["accuracy"] > 0.7
    assert json.loads(good(*words, "--json")) == found
    assert "accuracy of each part" in good(*words)
    rare = [*people(30), people(1)[0] | {"out": "rare"}]
    found = json.loads(good("evaluate", write(tmp_path / "a.csv", rare), *words[2:], "--json"))
    assert found["rows"] == 31 and found["log_loss"] < 2
    assert "--cv 300: no class has more than" in bad(*words[:-1], 300)
    cut = write(tmp_path / "a.jsonl", [row | {"out": "a" * (i % 2) + "\0"}
                for i, row in enumerate(people(9))])  # fmt: skip
    assert "a.jsonl, line 1, 'out': the label '\\x00' ends" in bad("evaluate", cut, *words[2:])
    assert "add --target NAME" in bad("evaluate", folder / "train.csv", "--cv", 3)
    assert "--target and --id are both 'out'" in bad(*words, "--id", "out")
    assert "--target and --ignore both name 'out'" in bad(*words, "--ignore", "out")
    assert "give a MODEL and DATA" in bad("evaluate", folder / "train.csv", "--target", "out")
    assert "--text-column is for documents" in bad(*words, "--text-column", "job")
    model = folder / "model.skops"
    assert "--ignore is for --cv" in bad("evaluate", model, folder / "test.csv", "--ignore", "age")


def test_an_explanation_adds_up(good, bad, folder, model):
    path, data, rows = folder / "model.skops", folder / "test.csv", people(40, seed=1)
    found = json.loads(good("explain", path, data, "--row", 17, "--json"))
    parts = sum(part for *_, part in found["columns"]) + found["other_columns"]
    assert found["log_odds"] == pytest.approx(found["start"] + parts)
    assert found["name"] == "p16"
    proba = model.predict_proba(features(rows[16:17]))[0]
    assert found["probability"] == pytest.approx(proba.max(), abs=1e-5)
    cells = {name: cell for name, cell, _ in found["columns"]}
    assert cells["since"] == rows[16]["since"]
    told = good("explain", path, data, "--row", 17, "--top", 1)
    assert "name p16: " in told and "(other columns)" in told and " = " in told
    assert len(good("explain", path, data, "--json").splitlines()) == 40
    nothing = json.loads(good("explain", path, "-", "--format", "jsonl", "--json", input="{}\n"))
    rest = sum(part for *_, part in nothing["columns"])
    assert [name for name, *_ in nothing["columns"]] == [REST]
    assert nothing["log_odds"] == pytest.approx(nothing["start"] + rest)
    assert "--row 41: there are only 40 rows" in bad("explain", path, data, "--row", 41)
    assert "no class 'maybe'" in bad("explain", path, data, "--row", 1, "--label", "maybe")


def test_dates_of_parquet_are_told_as_texts(good, folder, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
    import pyarrow.parquet as pq

    table = pa.table({"age": [50.0, None], "since": pa.array([19800, None], pa.date32())})
    pq.write_table(table, tmp_path / "a.parquet")
    words = (folder / "model.skops", tmp_path / "a.parquet", "--json")
    found = json.loads(good("explain", *words, "--row", 1))
    cells = {name: cell for name, cell, _ in found["columns"] if name != REST}
    assert cells == {"age": 50.0, "since": "2024-03-18"}
    found = good("predict", *words, "--id", "since").splitlines()
    assert [json.loads(line)["since"] for line in found] == ["2024-03-18", None]


# --- cells ----------------------------------------------------------------------------------------


def test_cells_of_text():
    def read(*cells, **more):
        found = read_texts(cells, "x", lambda row: f"line {row}", **more)
        return found.kind, found.values.tolist(), list(found.levels)

    assert read("1", "-2.5e3", "+.5") == ("number", [1.0, -2500.0, 0.5], [])
    assert read("True", "false", "TRUE") == ("bool", [1.0, 0.0, 1.0], [])
    assert read("1970-01-02", "1970-01-03T12:00:00Z") == ("date", [1.0, 2.5], [])
    assert read("1_000", "2") == ("level", [0, 1], ["1_000", "2"])
    assert read("12345678901234567890", "2")[0] == "level"  # a name, not a number
    assert read("1970-13-45")[0] == "level"
    assert read("a ", " a", "?") == ("level", [0, 0, -1], ["a"])
    assert read("?", None)[0] == "number"
    assert read("1", "true", typed=True)[0] == "level"
    assert read("?", "NA", typed=True) == ("level", [0, 1], ["?", "NA"])
    assert read("9007199254740993", kind="whole")[2] == [9007199254740993]
    numbers = [str(i) for i in range(30)]
    with pytest.raises(discem.exceptions.InputError, match="line 30, column 'x': 'abc', while 30"):
        read(*numbers, "abc")
    assert read(*numbers, "abc", given=True)[0] == "level"
    assert read(*numbers, *"abcdef")[0] == "level"
