"""Experiments: parts are done once and in processes of their own, which leave no trace."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need discem[plot]")

from lab import catalogue, page, study
from lab.study import Part, PartFailedError, Plan

import discem

SCRIPT = """
import os, signal, time
from pathlib import Path
from discem.report.plots import new_figure
from lab.study import Claim, Evidence, NotPossibleError, Part, Picture, Report

TITLE, PAPER = "A test", "Figure 0"
LOG = Path(__file__).with_name("log")

def do(name, seconds=0.0):
    with LOG.open("a") as log:
        log.write(f"{name} {os.getpid()}\\n")
    time.sleep(seconds)
    if name == "impossible":
        raise NotPossibleError("needs a miracle: wait for one")
    if name == "wrong":
        raise ValueError("no such luck")
    if name == "dead":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "nan":
        return float("nan")
    return {"name": name, "data": os.environ.get("DISCEM_DATA")}

def parts(plan):
    return PARTS

def report(results):
    evidence = [Evidence("a", int("a" in results), 1), Evidence("b", -0.04, None, 0.0)]
    claim = Claim("c", "both hold", "numbers", evidence, "Figure 0", "ours")
    return Report([Picture("drawn", new_figure(1, 1), "", "")], [claim])

PARTS = """


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """Writes an experiment with the given parts; returns its name and how to read its log."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    name = f"fake{abs(hash(tmp_path)) % 10**9}"  # modules are imported once
    monkeypatch.setattr(catalogue, "SCRIPTS", folder)
    for module in (catalogue, page):
        monkeypatch.setattr(module, "ORDER", (name,))
    monkeypatch.syspath_prepend(str(folder))

    def write(*parts):
        (folder / f"{name}.py").write_text(SCRIPT + "[" + ", ".join(parts) + "]\n")
        sys.modules.pop(name, None)
        return name

    write.log = lambda: [line.split() for line in (folder / "log").read_text().splitlines()]
    return write


def part(name, *, cost=1.0, data=(), **settings):
    return f"Part({name!r}, do, {{'name': {name!r}, **{settings}}}, {data!r}, {cost})"


def done(write):
    return [name for name, _ in write.log()]


def run(name, output, plan=Plan(), jobs=1):  # noqa: B008
    (content,) = study.run([name], plan, output, jobs)
    return content


# --- running --------------------------------------------------------------------------------------


def test_parts_are_done_once_and_the_longest_first(experiment, tmp_path):
    name = experiment(part("a"), part("b", cost=3.0))
    told = []
    (content,) = study.run(
        [name], Plan(seeds=4, quick=True), tmp_path, 1, lambda *a: told.append(a)
    )
    assert done(experiment) == ["b", "a"]
    assert told == [(f"{name}: b", 0.75, None), (f"{name}: a", 1.0, None)]
    assert list(content["parts"]) == ["a", "b"]
    assert content["command"] == f"discem reproduce {name} --seeds 4 --quick"
    (claim,) = content["claims"]
    assert (claim["says"], claim["where"], claim["rule"]) == ("c", "Figure 0", "both hold")
    assert (claim["ours"], claim["holds"]) == (False, True)
    assert claim["seen"] == "numbers: a +1.0; b +0.0"
    assert claim["evidence"][0] == {"what": "a", "value": 1, "low": 1, "high": None}
    assert content == json.loads((tmp_path / f"{name}.json").read_text())
    assert {"drawn.png", "drawn.svg"} <= {path.name for path in tmp_path.iterdir()}

    assert run(name, tmp_path)["parts"] == content["parts"]
    assert done(experiment) == ["b", "a"]  # nothing was done again
    experiment(part("a", seconds=0.01), part("b", cost=3.0))
    run(name, tmp_path)
    assert done(experiment) == ["b", "a", "a"]  # it has other settings
    assert study.count([name], Plan(), tmp_path) == (2, 2)
    study.forget([name], Plan(), tmp_path)
    assert study.count([name], Plan(), tmp_path) == (0, 2)


def test_the_command_does_what_is_not_done_yet_and_all_again_if_asked(experiment, tmp_path, good):
    name = experiment(part("a"), part("b"))
    for options, times in ((), 1), ((), 1), (("--fresh", "--jobs", 2), 2):
        good("reproduce", name, "--output", tmp_path / "out", *options)
        assert sorted(done(experiment)) == sorted(["a", "b"] * times)


def test_a_result_of_another_version_or_a_damaged_one_is_not_used(experiment, tmp_path):
    name = experiment(part("a"))
    run(name, tmp_path)
    kept = tmp_path / "parts" / name / "a.json"
    for text in (kept.read_text().replace(discem.__version__, "0.0.0"), '{"version": '):
        kept.write_text(text)
        assert study.count([name], Plan(), tmp_path) == (0, 1)


def test_what_cannot_be_done_is_said_and_the_rest_is_done(experiment, tmp_path):
    (tmp_path / "data" / "here").mkdir(parents=True)
    (tmp_path / "data" / "here" / "train.txt").write_text("")
    name = experiment(
        part("a"), part("impossible"), part("b", data=("here",)), part("c", data=("nowhere",))
    )
    content = run(name, tmp_path / "out", Plan(data=str(tmp_path / "data")))
    assert list(content["parts"]) == ["a", "b"]
    assert content["parts"]["b"]["result"]["data"] == str(tmp_path / "data")
    why = {each["part"]: each["why"] for each in content["missing"]}
    assert why["impossible"] == "needs a miracle: wait for one"
    assert "'nowhere'" in why["c"] and "nowhere/*.txt.gz" in why["c"]
    assert str(tmp_path) not in json.dumps(content["missing"])  # results may be published
    without = run(name, tmp_path / "out")
    assert [each["part"] for each in without["missing"]] == ["impossible", "b", "c"]
    assert "--data DIR" in without["missing"][1]["why"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("wrong", "ValueError: no such luck"),
        ("dead", "the process died, exit code -9"),
        ("nan", "ValueError: Out of range float values"),
    ],
)
def test_a_part_that_fails_is_named_and_those_done_are_kept(experiment, tmp_path, bad, message):
    name = experiment(part("a", cost=2.0), part(bad))
    with pytest.raises(PartFailedError, match=f"{name}, part '{bad}': {message}"):
        run(name, tmp_path)
    assert study.count([name], Plan(), tmp_path) == (1, 2)


# --- interrupting ---------------------------------------------------------------------------------


def start(name, folder, output, *options):
    code = f"""if True:
        from pathlib import Path
        from lab import catalogue
        catalogue.SCRIPTS, catalogue.ORDER = Path({str(folder)!r}), ({name!r},)
        from discem.cli import main
        main("reproduce", {name!r}, "--output", {str(output)!r}, *{options!r})
    """
    places = (Path(module.__file__).parents[1] for module in (discem, catalogue))
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))}
    surroundings.pop("DISCEM_DATA", None)
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=surroundings, stdout=pipe, stderr=pipe, text=True, start_new_session=True,
    )  # fmt: skip


def wait_until(true, seconds=60.0):
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.05)


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_ends_early_leaves_no_process_and_keeps_what_is_done(experiment, tmp_path, how):
    pytest.importorskip("typer", reason="the command line needs discem[cli]")
    quick, slow = [f"quick{i}" for i in range(3)], ["slow0", "slow1"]
    name = experiment(
        *(part(each, cost=2.0) for each in quick), *(part(each, seconds=60.0) for each in slow)
    )
    output = tmp_path / "out"
    process = start(name, tmp_path / "scripts", output, "--jobs", "2")
    kept = output / "parts" / name
    log = tmp_path / "scripts" / "log"
    wait_until(lambda: log.exists() and log.read_text().count("slow") == 2)
    wait_until(lambda: len(list(kept.glob("quick*.json"))) == 3)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does
    else:
        process.kill()
    _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors
    pids = {pid for _, pid in experiment.log()}
    wait_until(lambda: not any(map(alive, pids)), seconds=10)
    assert study.count([name], Plan(), output) == (3, 5)
    if how == signal.SIGKILL:
        return
    assert process.returncode == 130
    last = errors.splitlines()[-1]
    assert last == "discem: interrupted; 3 of 5 parts are done, the same command does the rest"

    script = tmp_path / "scripts" / f"{name}.py"  # the same parts, but they do not sleep
    script.write_text(script.read_text().replace("time.sleep(seconds)", "pass"))
    process = start(name, tmp_path / "scripts", output, "--jobs", "1")
    shown, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "5 of 5" in shown
    assert sorted(done(experiment)) == sorted([*quick, *slow, *slow])


# --- the scripts ----------------------------------------------------------------------------------


def test_without_data_there_are_sections_that_say_so(tmp_path):
    names = [
        name
        for name in catalogue.ORDER
        if all(part.data for part in catalogue.load(name).parts(Plan(quick=True)))
    ]
    assert {"accuracy", "sgd", "lda", "lda-losses"} <= set(names)
    contents = study.run(names, Plan(quick=True), tmp_path)
    assert all(content["missing"] and not content["tables"] for content in contents)
    told = page.build_page(tmp_path).read_text()
    assert told.count("<strong>Not run</strong>") >= len(names)


@pytest.mark.parametrize("name", catalogue.ORDER)
@pytest.mark.parametrize("quick", [False, True])
def test_every_experiment_keeps_the_contract(name, quick):
    script = catalogue.load(name)
    assert script.TITLE and isinstance(script.PAPER, str)
    parts = script.parts(Plan(quick=quick))
    names = [each.name for each in parts]
    assert len(set(names)) == len(names)
    for each in parts:
        assert isinstance(each, Part)
        assert re.fullmatch(r"[\w.+-]+", each.name)  # it becomes a file
        assert json.loads(json.dumps(each.settings)) == each.settings
        assert getattr(sys.modules[each.work.__module__], each.work.__name__) is each.work
    if all(each.data for each in parts):
        assert isinstance(script.report({}), study.Report)  # there may be no data at all


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """A little set under the name of a real one: two classes, five words, a document without."""
    data = tmp_path_factory.mktemp("data")
    (data / "r52").mkdir()
    rng = np.random.default_rng(0)
    for subset in ("train", "test"):
        lines = [
            f"{label}\t{' '.join(rng.choice(words, size=8))}"
            for _ in range(20)
            for label, words in (("x", ["c", "b", "a"]), ("y", ["c", "d.e", "F"]))
        ]
        (data / "r52" / f"{subset}.txt").write_text("\n".join([*lines, "x\t"]) + "\n")
    return data


def assert_begins_flat_and_learns(curves, loss):
    assert len(curves["accuracy"]) == 7  # the start, and six epochs
    assert curves["hinge"][0] == pytest.approx(1)
    assert curves["ncll"][0] == pytest.approx(np.log(2))
    assert curves["perplexity"][0] == pytest.approx(5 / 41)  # words / documents
    assert curves[loss][-1] < curves[loss][0] / 4
    assert curves["accuracy"][-1] > 0.9


def test_multinomial_curves_are_the_same_in_any_order_and_number_of_jobs(documents, tmp_path):
    plan = Plan(data=str(documents), quick=True)
    names, told = ["mnb-hinge", "accuracy", "data"], []
    contents = study.run(names, plan, tmp_path, 2, lambda *said: told.append(said[0]))
    hinge, accuracy, data = contents
    shared = ["mnb-hinge: r52-SVM"]  # the first that wants it is told of
    assert [each for each in told if each.endswith("r52-SVM")] == shared
    assert hinge["parts"]["r52-SVM"] == accuracy["parts"]["r52-SVM"]
    assert_begins_flat_and_learns(hinge["parts"]["r52-hinge-P1-0"]["result"], "hinge")
    assert hinge["claims"][0]["holds"]
    assert not hinge["missing"]
    (row,) = accuracy["tables"][0]["rows"]
    assert row[0] == "Reuters-52" and all(value > 90 for value in row[1:])
    assert data["parts"]["r52"]["result"] == {
        "words": 5, "classes": 2, "train": 41, "test": 41, "empty": 1,
    }  # fmt: skip
    assert not data["claims"][0]["holds"]  # these are not the paper's figures
    assert {each["part"] for each in data["missing"]} == {"r8", "webkb"}

    again = study.run(["accuracy", "mnb-hinge"], plan, tmp_path / "again", jobs=1)
    for one, other in zip((accuracy, hinge), again, strict=True):
        assert without_seconds(one) == without_seconds(other)


def without_seconds(content):
    return {name: value for name, value in content.items() if name != "seconds"}


def test_what_ran_before_a_part_does_not_change_it(documents, monkeypatch):
    """Parts share matrices, and some methods sort the words of a row in place."""
    monkeypatch.setenv("DISCEM_DATA", str(documents))
    script = catalogue.load("mnb-ncll")
    parts = script.parts(Plan(data=str(documents), quick=True))
    parts = [each for each in parts if each.settings.get("reading") != "word"]  # slow to compile
    assert parts[0].settings["rival"] == "LR"  # which sorts

    def results(parts):
        script.mnb.counts.cache_clear()
        return {each.name: each.work(**each.settings) for each in parts}

    found = results(parts)
    assert found == results(parts[::-1])
    assert_begins_flat_and_learns(found["r52-ncll-P1-0"], "ncll")
    script.mnb.counts.cache_clear()
