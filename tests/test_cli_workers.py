"""Fits on workers from the command line: files are parts, of documents and of tables."""

import json
import os
import signal
import sys

import pytest

pytest.importorskip("typer", reason="the command line needs discem[cli]")
pytest.importorskip("distributed", reason="workers need discem[dask]")

import distributed
from shell import send
from test_cli_tables import FAST, people, write

from discem import load
from discem.cli._screen import Meter
from discem.engines import Shards
from discem.engines.clusters import open_client
from discem.exceptions import EngineError
from discem.io.parts import FilePart, parts_of
from discem.io.sources import expanded

TABLE = ("--target", "out", "--id", "name", *FAST)
TEXT = ("--loss", "ncll", "--weighting", "tfidf", "--epochs", 2)


@pytest.fixture(scope="module")
def at():
    """What asks for two workers that are there already."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        yield "--scheduler", cluster.scheduler_address


def write_texts(folder, n=3):
    """Files of documents that two words tell apart."""
    for place in range(n):
        lines = [
            f"{'good' if i % 2 else 'bad'}\tword{i % 7} {'fine' if i % 2 else 'poor'} film{i % 5}"
            for i in range(place, 40 + place)
        ]
        (folder / f"part-{place}.txt").write_text("\n".join(lines) + "\n")
    return folder / "part-*.txt"


def write_tables(folder, kind, rows):
    half = len(rows) // 2
    for place, some in enumerate([rows[:half], rows[half:]]):
        write(folder / f"part-{place}.{kind}", some)
    return folder / f"part-*.{kind}"


# --- names of files -------------------------------------------------------------------------------


def test_a_pattern_is_the_files_that_it_matches(tmp_path, good, bad):
    names = write_texts(tmp_path)
    (tmp_path / "part-[x].txt").write_text("good\tfine\n")
    assert expanded([str(tmp_path / "part-[x].txt")]) == [str(tmp_path / "part-[x].txt")]
    assert len(expanded([str(names), "-"])) == 5
    (tmp_path / "part-[x].txt").unlink()
    assert "120 documents" in good("fit", names, *TEXT, "-o", tmp_path / "m")
    told = json.loads(good("evaluate", tmp_path / "m", names, "--json"))
    assert told["documents"] == 120
    assert len(good("predict", tmp_path / "m", names).splitlines()) == 120
    assert "no file has such a name" in bad("fit", tmp_path / "*.csv", "-o", tmp_path / "m2")
    assert "are read" in bad("fit", names, "-o", tmp_path / "part-1.txt")


def test_row_groups_are_parts_and_small_ones_are_together(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": list(range(70))}), path, row_group_size=10)
    assert parts_of([path], None) == [FilePart(path, "parquet")]
    monkeypatch.setattr("discem.io.parts._LEAST", 20)
    found = [(part.groups, part.before) for part in parts_of([path], None)]
    assert found == [((0, 1), 0), ((2, 3), 20), ((4, 5, 6), 40)]


# --- fits -----------------------------------------------------------------------------------------


def test_documents_on_workers_of_this_machine(tmp_path, good):
    names = write_texts(tmp_path)
    told = good("fit", names, "--workers", 2, *TEXT, "-o", tmp_path / "m")
    assert "120 documents, 2 classes, loss ncll" in told
    model = load(tmp_path / "m")
    assert model.engine is None
    assert model.predict(["a poor film"]).tolist() == ["bad"]
    assert "fine" in model.vocabulary_


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_tables_are_read_as_they_are_without_workers(tmp_path, good, at, kind):
    rows = people(240)
    for row in rows[1 if kind == "parquet" else 0 : 120]:  # .. which knows the type of a column
        row["job"] = None  # so that one part does not tell what it is
    names = write_tables(tmp_path, kind, rows)
    here = good("fit", names, *TABLE, "-o", tmp_path / "here")
    there = good("fit", names, *TABLE, *at, "-o", tmp_path / "there")
    # the temperature is that of an average of models here, and of a single one there
    same = there.replace("there", "here").partition("temperature")[0]
    assert same == here.partition("temperature")[0]
    one, other = load(tmp_path / "here"), load(tmp_path / "there")
    assert one.families_ == other.families_
    assert other.roles_ == {"target": "out", "id": "name"}
    given = [{"age": 61.0, "job": "cook"}, {"age": 39.0}]
    assert (one.predict(given) == other.predict(given)).all()


def test_one_file_is_cut_for_all_workers(tmp_path, good, at, monkeypatch):
    monkeypatch.setattr("discem.engines.threads.Threads.parts", lambda self, *_: self.n_jobs)
    path = write(tmp_path / "a.csv", people(240))
    good("fit", path, *TABLE, *at, "-o", tmp_path / "m")
    assert load(tmp_path / "m").model_.history_[-1]["parts"] == 2


# --- what is wrong --------------------------------------------------------------------------------


def test_errors_name_the_file_and_the_line(tmp_path, bad, at):
    rows = people(240)
    names = write_tables(tmp_path, "csv", rows)
    broken = tmp_path / "part-1.csv"
    sound = broken.read_text()

    def told(line, edit, *more):
        lines = sound.splitlines()
        lines[line - 1] = edit(lines[line - 1])
        broken.write_text("\n".join(lines) + "\n")
        return bad("fit", names, *TABLE, *more, *at, "-o", tmp_path / "m")

    assert f"{broken}, line 31: 7 columns" in told(31, lambda line: line + ",1")
    stray = told(12, lambda line: line.replace(line.split(",")[1], "old", 1))
    assert f"{broken}, line 12, column 'age': 'old', while" in stray
    assert "there is no 'since'" in told(1, lambda line: line.replace("since", "until"))
    below = told(
        7, lambda line: line.replace(line.split(",")[1], "-5", 1), "--family", "age=lognormal"
    )
    assert f"holds -5 in {broken}, line 7" in below
    broken.write_text(sound)
    assert "no column 'outt'" in bad("fit", names, "--target", "outt", *at, "-o", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_kinds_that_differ_between_files_of_json_are_refused(tmp_path, bad, at):
    for place, size in enumerate([3, '"3"']):
        lines = [f'{{"size": {size}, "out": "{"ab"[i % 2]}"}}' for i in range(20)]
        (tmp_path / f"{place}.jsonl").write_text("\n".join(lines) + "\n")
    told = bad("fit", tmp_path / "*.jsonl", "--target", "out", *at, "-o", tmp_path / "m")
    assert "1.jsonl, line 1, column 'size'" in told


@pytest.mark.parametrize(
    "words, told",
    [
        (("--workers", 2, "--stream"), "leave out --workers"),
        (("--scheduler", "tcp://x:1", "--stream"), "leave out --scheduler"),
        (("--scheduler", "tcp://x:1", "--workers", 2), "leave out --workers"),
        (("--scheduler", "nowhere"), "no scheduler of dask answers there"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, bad, monkeypatch, words, told):
    monkeypatch.setattr("discem.engines.clusters._SECONDS", 0.5)
    names = write_texts(tmp_path)
    assert told in bad("fit", names, *words, "-o", tmp_path / "m")


def test_standard_input_and_a_missing_extra(tmp_path, bad, at, monkeypatch):
    assert "workers read files" in bad("fit", "-", *at, "-o", tmp_path / "m")
    monkeypatch.setitem(sys.modules, "distributed", None)
    told = bad("fit", write_texts(tmp_path), "--workers", 2, "-o", tmp_path / "m")
    assert "pip install 'discem[dask]'" in told


# --- the end --------------------------------------------------------------------------------------


def test_ctrl_c_saves_what_was_learnt(tmp_path, run, at, monkeypatch):
    monkeypatch.setattr(Meter, "tell", send(signal.SIGINT, "epoch 3"))
    names = write_texts(tmp_path)
    result = run("fit", names, *TEXT[:4], "--epochs", 50, *at, "-o", tmp_path / "m")
    assert result.exit_code == 130
    assert "has the model trained so far" in result.stderr
    assert 2 <= load(tmp_path / "m").n_iter_ <= 4


def test_workers_leave_ctrl_c_to_the_command():
    with open_client(1, None) as client:
        (pid,) = client.run(os.getpid).values()
        os.kill(pid, signal.SIGINT)
        assert client.submit(os.getpid).result(timeout=20) == pid


def test_when_the_scheduler_is_gone_the_last_model_is_saved(tmp_path, run, at, monkeypatch):
    before, rounds = Shards.round, []

    def take(self, *args):
        rounds.append(args)
        if len(rounds) > 3:
            raise EngineError("the scheduler is gone")
        return before(self, *args)

    monkeypatch.setattr(Shards, "round", take)
    words = (*TEXT[:4], "--epochs", 50, *at, "-o", tmp_path / "m")
    result = run("fit", write_texts(tmp_path), *words)
    assert result.exit_code == 2
    assert result.stderr.endswith("has the model trained so far\n")
    assert load(tmp_path / "m").predict(["a poor film"]).tolist() == ["bad"]
