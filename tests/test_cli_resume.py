"""Streams of files that go on where they stopped: no row is learnt twice, whatever stopped them."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("typer", reason="the command line needs discem[cli]")

from shell import people, send, write

import discem
from discem.cli._screen import Meter
from discem.exceptions import ModelFileError
from discem.io.seen import Seen

STREAM = ("--stream", "--batch-size", 30)
TARGET = ("--target", "out", "--id", "name")
KILLS = 2


def documents(n, seed=0):
    rng = random.Random(seed)
    labels = (rng.choice(["corn", "gold"]) for _ in range(n))
    return [
        {"label": label, "text": f"{label} " + " ".join(rng.choices("abcdefgh", k=5))}
        for label in labels
    ]


def make(kind, path, n, seed=0):
    return write(path, people(n, seed) if kind == "table" else documents(n, seed))


def rows_of(path):
    model = discem.load(path)
    return int(model.stream_["rows"])


def learnt(path):
    """All that a model file holds, but for how it came to its files."""
    model = discem.load(path)
    fields = model.model_.learner_.to_fields()
    return {name: str(fields[name]) for name in ("t", "epochs", "history", "stream", "state")}


every_kind = pytest.mark.parametrize(
    ("kind", "name"),
    [("table", "a.csv"), ("table", "a.jsonl"), ("table", "a.parquet"), ("table", "a.tsv.gz"),
     ("text", "a.csv"), ("text", "a.jsonl"), ("text", "a.parquet"), ("text", "a.csv.gz")],
)  # fmt: skip


@every_kind
@pytest.mark.parametrize("stop", [60, 150])
def test_a_stream_goes_on_where_it_stopped(kind, name, stop, run, good, tmp_path, monkeypatch):
    """In the middle of a file, to the last bit; also if the batches spanned files."""
    data = [make(kind, tmp_path / f"{i}{name}", 100, i) for i in range(2)]
    more = TARGET if kind == "table" else ()
    whole, part = tmp_path / "whole", tmp_path / "part"
    good("fit", *data, *more, *STREAM, "-o", whole)
    if kind == "table" and stop == 150:
        stop = 160  # batches end with their files
    noun = "rows" if kind == "table" else "documents"
    monkeypatch.setattr(Meter, "tell", send(signal.SIGINT, f"{noun} {stop}"))
    assert run("fit", *data, *more, *STREAM, "-o", part).exit_code == 130
    monkeypatch.undo()
    assert rows_of(part) == stop
    good("fit", *data, *STREAM, "--resume", part, "-o", part)
    assert learnt(part) == learnt(whole)


@every_kind
def test_files_that_were_learnt_are_left_out(kind, name, run, good, tmp_path):
    """New ones are learnt, and what was written anew, and what a file has grown by."""
    model, first = tmp_path / "m", make(kind, tmp_path / f"1{name}", 60)
    more = TARGET if kind == "table" else ()
    good("fit", first, *more, *STREAM, "-o", model)
    resume = (*STREAM, "--resume", model, "-o", model)
    again = run("fit", first, *resume)
    assert again.exit_code == 0 and f"{first}: all of it was learnt before" in again.stderr
    assert rows_of(model) == 60
    make(kind, tmp_path / f"2{name}", 40, seed=1)
    good("fit", tmp_path / f"*{name}", *resume)
    assert rows_of(model) == 100
    make(kind, first, 50, seed=2)
    good("fit", first, *resume)
    assert rows_of(model) == 150
    if name in ("a.csv", "a.jsonl"):
        longer = make(kind, tmp_path / f"longer{name}", 70, seed=2).read_bytes()
        assert longer.startswith(first.read_bytes())
        first.write_bytes(longer)
        told = run("fit", first, *resume)
        assert f"{first}: its first 50 {'row' if kind == 'table' else 'document'}s" in told.stderr
        assert rows_of(model) == 170


def test_standard_input_is_never_left_out(good, tmp_path):
    lines = "".join(json.dumps(document) + "\n" for document in documents(30))
    stream = ("fit", "-", "--format", "jsonl", *STREAM, "-o", tmp_path / "m")
    good(*stream, input=lines)
    good(*stream, "--resume", tmp_path / "m", input=lines)
    assert rows_of(tmp_path / "m") == 60
    assert discem.load(tmp_path / "m").files_ == {}


def test_a_model_does_not_tell_the_names_of_its_files(good, tmp_path):
    data = make("table", tmp_path / "secret.csv", 60)
    good("fit", data, *TARGET, *STREAM, "-o", tmp_path / "m")
    model = discem.load(tmp_path / "m")
    (seen,) = model.files_.values()
    assert seen.rows == 60 and seen.whole
    assert "secret" not in str(model.files_)


@pytest.mark.parametrize("files", [{"a": 3}, {"a": Seen(-1, 0, 0)}, [], {"a": Seen(1, 2, 3, 4)}])
def test_files_that_no_command_has_read_are_refused(files, tmp_path):
    model = discem.TextClassifier(random_state=0).fit(["corn", "gold"] * 9, ["x", "y"] * 9)
    model._fitted.files = files
    with pytest.raises(ModelFileError):
        model.save(tmp_path / "m")


def test_progress_is_in_rows_and_time_left(good, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
    told = []
    monkeypatch.setattr(
        Meter, "tell", lambda self, step, share=None, *_, **__: told.append((step, share))
    )
    for name in ("a.parquet", "a.csv"):
        data = make("table", tmp_path / name, 90)
        good("fit", data, *TARGET, *STREAM, "-o", tmp_path / "m")
        step, share = told[-2]
        assert step.startswith("rows 60 of about 9") and step.endswith(" s left")
        assert share == pytest.approx(60 / 90, abs=0.02)


def test_a_stream_that_is_killed_learns_no_row_twice(tmp_path):
    """Killed at random moments, and gone on with: the model is that of a run in one go."""
    rows, rng = 2000, random.Random(0)
    data = [make("table", tmp_path / f"{i}.csv", rows // 4, i) for i in range(4)]
    whole, part = tmp_path / "whole", tmp_path / "part"
    words = [sys.executable, "-c", "from discem.cli import main; main()", "fit", *data, "--stream"]
    words += ["--batch-size", "50", "--save-every", "50"]
    subprocess.run([*words, *TARGET, "-o", whole], check=True, capture_output=True)

    def saved():
        return part.stat().st_mtime_ns if part.exists() else 0

    for _ in range(KILLS):
        resume = ["--resume", part] if part.exists() else TARGET
        process = subprocess.Popen(
            [*words, *resume, "-o", part], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(rng.randint(1, 8)):  # models that it writes
            before = saved()
            while saved() == before and process.poll() is None:
                time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.02))
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert 0 < rows_of(part) < rows
    subprocess.run([*words, "--resume", part, "-o", part], check=True, capture_output=True)
    assert rows_of(part) == rows == rows_of(whole)
    assert learnt(part) == learnt(whole)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]
