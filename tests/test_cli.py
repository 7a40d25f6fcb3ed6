"""The command line as a user meets it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discem

pytest.importorskip("typer", reason="the command line needs discem[cli]")
pytest.importorskip("matplotlib", reason="pictures need discem[plot]")

from lab import catalogue
from sklearn import datasets as bundled
from typer.testing import CliRunner

from discem import cli
from discem.report import demo as demo_module
from discem.report._output import output_folder

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *words: CliRunner().invoke(cli.app, [str(word) for word in words])


def test_version(run):
    result = run("--version")
    assert (result.exit_code, result.stdout.strip()) == (0, f"discem {discem.__version__}")


@pytest.fixture(scope="module")
def quick_demo(tmp_path_factory):
    """What the quick demo finds, and what it tells of its progress."""
    told, folder = [], tmp_path_factory.mktemp("demo")
    scores, picture = demo_module.run_demo(folder, quick=True, progress=lambda *s: told.append(s))
    return scores, picture, told


def test_demo_prints_one_table_and_draws_the_toy(run, tmp_path, monkeypatch, quick_demo):
    def again(output, *_):
        (output_folder(output) / "demo-toy.png").write_bytes(quick_demo[1].read_bytes())
        return quick_demo[0], output / "demo-toy.png"

    monkeypatch.setattr(demo_module, "run_demo", again)
    result = run("demo", "--quick", "--output", tmp_path / "new" / "folder")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(len(line) for line in lines if line.startswith("│")) <= 100
    for data in ("toy", "wine", "breast cancer", "digits", "wine, mixed, holes", "docstrings"):
        assert sum(line.startswith(f"│ {data} ") for line in lines) == 1
    for method in ("plain naive Bayes", "discem NLL", "discem NCLL", "logistic regression"):
        assert sum(f"│ {method} " in line for line in lines) == 5
    svm = [line for line in lines if "linear SVM" in line]
    assert len(svm) == 5 and all(line.split("│")[4].strip() == "-" for line in svm)
    picture = tmp_path / "new" / "folder" / "demo-toy.png"
    assert picture.read_bytes().startswith(PNG)
    assert str(picture) in result.stdout


def test_demo_scores_make_sense(quick_demo):
    scores, _, told = quick_demo
    found = {(score.data, score.method): score for score in scores}
    assert len(found) == len(scores) == 5 * 6 + 3 + 1
    assert found["wine, mixed, holes", "discem TableClassifier"].accuracy > 0.8
    assert found["docstrings", "discem TextClassifier"].accuracy > 0.5
    assert found["toy", "discem NCLL"].accuracy > found["toy", "plain naive Bayes"].accuracy + 0.05
    assert all(0.6 < score.accuracy <= 1 for score in scores if score.data in demo_module.TABLES)
    assert all((s.log_loss is None) == (s.method == "linear SVM") for s in scores)
    shares = [share for _, share, _ in told]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] <= 1
    assert any(step == "digits: discem hinge" for step, *_ in told)


def test_demo_without_matplotlib_says_how_to_get_the_picture(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(demo_module, "TABLES", {})
    tiny = demo_module._table("docstrings", bundled.load_iris, 0)
    monkeypatch.setattr(demo_module, "_docstrings", lambda *_: tiny)
    monkeypatch.setattr(demo_module, "_mixed", lambda *_: tiny)
    result = run("demo", "--quick", "--output", tmp_path)
    assert result.exit_code == 0, result.output
    assert "pip install 'discem[plot]'" in result.stdout
    assert not list(tmp_path.iterdir())


def test_reproduce_toy_writes_pictures_numbers_and_the_page(run, tmp_path, monkeypatch):
    monkeypatch.delenv("DISCEM_DATA", raising=False)
    result = run("reproduce", "toy", "data", "--quick", "--seeds", 1, "--output", tmp_path)
    assert result.exit_code == 0, result.output
    for name in ("toy.png", "toy-defaults.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
    assert f"page: {tmp_path / 'index.html'}" in result.stdout
    assert (tmp_path / "index.html").exists()
    assert "not done: data needs the data set 'r52': pass --data DIR" in result.stdout
    assert [line.split()[1] for line in result.stdout.splitlines() if line.startswith("│")] == [
        "toy",
        "data",
    ]
    written = json.loads((tmp_path / "toy.json").read_text())
    assert written["versions"]["discem"] == discem.__version__
    assert written["command"] == "discem reproduce toy --seeds 1 --quick"
    parts = {name: each["result"] for name, each in written["parts"].items()}
    assert 0.74 < parts["discem-nll-0"]["accuracy"] < 0.83
    assert parts["discem-nll-0"]["mean"] == pytest.approx([0, -3], abs=0.3)
    assert parts["discem-nll-0"]["variance"] == pytest.approx([9, 16], rel=0.1)
    for loss in ("ncll", "hinge"):
        assert 0.85 < parts[f"discem-{loss}-0"]["accuracy"] < 0.98
    told = " ".join(claim["says"] for claim in written["claims"])
    assert all(printed in told for printed in ("78.6", "90.4", "90.6"))
    shown = {row[1]: row[2] for row in written["tables"][0]["rows"] if "defaults" in row[0]}
    assert shown["NLL"] == round(100 * parts["discem-nll-0"]["accuracy"], 1)


def test_reproduce_lists_what_exists(run):
    result = run("reproduce")
    assert result.exit_code == 0
    for name in ("toy", "mnb-hinge", "mnb-ncll", "accuracy", "data"):
        assert sum(line.startswith(f"│ {name} ") for line in result.stdout.splitlines()) == 1
    result = run("reproduce", "toy", "nosuch")
    assert result.exit_code == 2
    (message,) = [line for line in result.stderr.splitlines() if line]
    assert message.startswith("discem: no experiment 'nosuch'; there is: toy, mnb-hinge, ")


def test_reproduce_says_in_one_line_that_an_installed_package_has_no_experiments(tmp_path):
    """The package alone is what a wheel installs."""
    package = Path(discem.__file__).parent
    shutil.copytree(package, tmp_path / "discem", ignore=shutil.ignore_patterns("__pycache__"))
    code = "from discem.cli import main; main('reproduce', 'toy')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("discem: there are no experiments in an installed package: ")
    assert not (tmp_path / "output").exists()


def test_an_experiment_is_a_script_too(tmp_path):
    script = catalogue.SCRIPTS / "data.py"
    surroundings = {k: v for k, v in os.environ.items() if k != "DISCEM_DATA"}
    surroundings["PYTHONPATH"] = str(Path(discem.__file__).parents[1])
    command = [sys.executable, str(script), "--quick", "--output", str(tmp_path)]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "data.json").read_text())["missing"]


@pytest.mark.parametrize("words", [("demo", "--quick"), ("reproduce", "toy", "--quick")])
def test_an_output_that_cannot_be_written_is_one_line(run, tmp_path, words):
    (tmp_path / "file").write_text("")
    result = run(*words, "--output", tmp_path / "file")
    assert result.exit_code == 2
    assert result.stdout == ""
    message = [line for line in result.stderr.splitlines() if line.startswith("discem: ")]
    assert message == [f"discem: cannot write to {tmp_path / 'file'}: File exists"]
    assert "Traceback" not in result.output


def test_results_do_not_go_where_the_data_are(run, tmp_path):
    """Whatever the folder is called."""
    (tmp_path / "data" / "r52").mkdir(parents=True)
    (tmp_path / "data" / "r52" / "train.txt").write_text("a\tgood film\n")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    for folder in ("data", "link", "data/r52", "link/r52"):
        words = ("toy", "--quick", "--data", tmp_path / "data", "--output", tmp_path / folder)
        result = run("reproduce", *words)
        assert result.exit_code == 2
        told = f"cannot write to {tmp_path / folder}: it is one of the folders that are read"
        assert told in result.stderr
    assert [path.name for path in (tmp_path / "data").rglob("*")] == ["r52", "train.txt"]


def test_reproduce_without_matplotlib_fails_before_the_work(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("reproduce", "toy", "--quick", "--output", tmp_path)
    assert result.exit_code == 2
    assert "pip install 'discem[plot]'" in result.stderr
    assert not list(tmp_path.iterdir())


def test_control_c_ends_with_a_word(run, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "run_demo", interrupt)
    result = run("demo", "--output", tmp_path)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "discem: interrupted"


def test_without_typer_the_message_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from discem.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("pip install 'discem[cli]'")
    assert "Traceback" not in done.stderr
