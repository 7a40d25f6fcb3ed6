"""Names of every kind on the command line: of files, columns and classes."""

import csv
import io
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("typer", reason="the command line needs discem[cli]")

from typer.testing import CliRunner

import discem
from discem import cli
from discem.io.sources import csv_rows
from discem.io.texts import is_missing

some = settings(max_examples=6, deadline=None)  # each fits and predicts
ODD = ["-o", "--target", "a b", "a\nb", "a\rb", "\x1b[31m", "*", "[ab]", "a,b;c|d\te", 'say "no"']
ODD += [
    "Größe",
    "年齢",
    "e\u0301",
    "\u2028",
    "\x85",
    "#",
    "row",
    "label",
    "probability",
    "{x}",
    "[bold]",
]
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
words = st.text(letters, min_size=1, max_size=12).map(str.strip) | st.sampled_from(ODD)
names = words.filter(lambda word: word and not is_missing(word))
files = names.map(lambda name: name.replace("/", "|")).filter(lambda name: name[0] != ".")


def run(*words):
    result = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert "a mistake of discem" not in result.output, result.output
    return result


def good(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def bad(*words):
    """A refusal is one line, whatever the names in it."""
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1 and result.stderr.startswith("discem: ")
    return result.stderr


def tsv(rows):
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", quoting=csv.QUOTE_ALL)
    writer.writerows([rows[0], *(row.values() for row in rows)])
    return text.getvalue()


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@some
@given(
    columns=st.lists(names, min_size=3, max_size=3, unique=True),
    classes=st.lists(names, min_size=2, max_size=2, unique=True),
    stem=files,
    kind=st.sampled_from(["tsv", "jsonl"]),
)
@example(columns=["-o", "--id", "label"], classes=["a\rb", "a\nb"], stem="-o", kind="jsonl")
@example(columns=["a\nb", "a;b", "*"], classes=["-", "--"], stem="[ab]*\n", kind="tsv")
def test_a_table_of_any_names(columns, classes, stem, kind):
    target, id, feature = columns
    rows = [{target: classes[i % 2], id: f"p{i}", feature: 10.0 * (i % 2) + i} for i in range(8)]
    with TemporaryDirectory() as folder:
        data, model, out = (Path(folder, f"{stem}.{end}") for end in (kind, "skops", "csv"))
        data.write_bytes((tsv(rows) if kind == "tsv" else jsonl(rows)).encode())
        before = data.read_bytes()
        good("fit", data, "--target", target, "--id", id, "--stream", "-o", model)
        fitted = discem.load(model)
        assert fitted.roles_ == {"target": target, "id": id}
        assert sorted(fitted.classes_.tolist()) == sorted(classes)
        assert fitted.feature_names_in_.tolist() == [feature]
        for name in (data, model):
            told = bad("predict", model, data, "-o", name)
            assert "it is one of the files that are read" in told
        good("predict", model, data, "-o", out)
        (_, header), *found = csv_rows(str(out), 1, delimiter=",")
        taken = id in ("label", "probability", "probabilities")
        assert header == ["id" if taken else id, "label"]
        assert [name for _, (name, _) in found] == [f"p{i}" for i in range(8)]
        assert {label for _, (_, label) in found} <= set(classes)
        assert data.read_bytes() == before
        assert sorted(os.listdir(folder)) == sorted(each.name for each in (data, model, out))


@some
@given(
    columns=st.lists(names, min_size=2, max_size=2, unique=True),
    classes=st.lists(names, min_size=2, max_size=2, unique=True),
    stem=files,
)
@example(columns=["--text-column", "-"], classes=["a\rb", "a\tb\n"], stem="--json ?")
def test_documents_of_any_names(columns, classes, stem):
    text, label = columns
    rows = [{text: f"{'good' if i % 2 else 'bad'} film", label: classes[i % 2]} for i in range(8)]
    with TemporaryDirectory() as folder:
        data, model, out = (Path(folder, f"{stem}.{end}") for end in ("jsonl", "skops", "txt"))
        data.write_text(jsonl(rows))
        options = ("--text-column", text, "--label-column", label)
        good("fit", data, *options, "--stream", "-o", model)
        assert discem.load(model).roles_ == {"text": text, "label": label}
        told = bad("fit", data, "--text-column", label, "--stream", "--resume", model, "-o", out)
        assert "has learnt with --text-column" in told
        assert "one of the files that are read" in bad("predict", model, data, "-o", data)
        good("predict", model, data, "-o", out, "--json", *options)
        found = [json.loads(line)["label"] for line in out.read_bytes().splitlines()]
        assert found == [row[label] for row in rows]
        good("predict", model, data, "-o", out, *options)
        assert out.read_bytes().count(b"\n") == 8
        assert json.loads(data.read_bytes().splitlines()[0]) == rows[0]
        assert len(os.listdir(folder)) == 3
