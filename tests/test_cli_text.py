"""Text on the command line: fit, predict, evaluate, explain, and being killed."""

import copy
import csv
import gzip
import io
import json
import os
import pickle
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, log_loss, precision_recall_fscore_support

pytest.importorskip("typer", reason="the command line needs discem[cli]")

from shell import send
from typer.testing import CliRunner

import discem
from discem import cli
from discem.cli._interrupts import Interrupts, Stopped
from discem.cli._output import opened
from discem.cli._screen import Meter
from discem.exceptions import DiscemError, ModelFileError
from discem.report.evaluation import Evaluation

WORDS = {
    "corn": "harvest crop bushel farm wheat",
    "gold": "mine ounce metal ore bullion",
    "ships": "port cargo vessel harbour tanker",
}
FAST = ("--loss", "ncll", "--weighting", "tfidf", "--epochs", "3")  # nothing to choose
SHARED = ["the", "market", "price", "report", "today", "year", "said", "new"]


def corpus(n, seed=0):
    """(label, text) pairs that a few words tell apart."""
    rng = random.Random(seed)
    documents = []
    for label in rng.choices(list(WORDS), k=n):
        words = rng.choices(WORDS[label].split(), k=3) + rng.choices(SHARED, k=4)
        documents.append((label, " ".join(words)))
    return documents


def lines(documents):
    return "".join(f"{label or ''}\t{text}\n" for label, text in documents)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """train.txt, test.txt and a model of the former."""
    folder = tmp_path_factory.mktemp("text")
    (folder / "train.txt").write_text(lines(corpus(120)))
    (folder / "test.txt").write_text(lines(corpus(40, seed=1)))
    words = ["fit", str(folder / "train.txt"), "-o", str(folder / "model.skops"), *FAST]
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return discem.load(folder / "model.skops")


TEST = corpus(40, seed=1)
LABELS, TEXTS = [label for label, _ in TEST], [text for _, text in TEST]


# --- fit ------------------------------------------------------------------------------------------


def write_table(path, documents):
    rows = [{"body": text, "topic": label} for label, text in documents]
    kind = path.name.split(".")[1]
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
        return
    text = io.StringIO()
    if kind == "jsonl":
        text.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(text, ["body", "topic"], delimiter="\t" if kind == "tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        file.write(text.getvalue())


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.jsonl", "a.parquet"])
def test_every_format_gives_the_same_model(name, good, folder, model, tmp_path):
    write_table(tmp_path / name, corpus(120))
    columns = ("--text-column", "body", "--label-column", "topic")
    told = good("fit", tmp_path / name, "-o", tmp_path / "m.skops", *columns, *FAST)
    assert told.startswith(f"{tmp_path / 'm.skops'}: 120 documents, 3 classes")
    again = discem.load(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_fit_from_standard_input_and_several_files(good, folder, model, tmp_path):
    documents = corpus(120)
    (tmp_path / "half.txt").write_text(lines(documents[:60]))
    files = (tmp_path / "half.txt", "-")
    good("fit", *files, "-o", tmp_path / "m", *FAST, input=lines(documents[60:]))
    again = discem.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_pairs_of_words_are_tried(good, folder, tmp_path):
    told = good("fit", folder / "train.txt", "-o", tmp_path / "m", "--ngrams", "auto")
    model = discem.load(tmp_path / "m")
    assert model.ngram_range == "auto"
    assert f"n-grams {model.chosen_['ngram_range']}" in told


def test_options_reach_the_model(good, folder, tmp_path):
    options = "--loss hinge --weighting counts --ngrams 1-2 --epochs 3 --seed 5"
    options += " --class-weight balanced"
    for columns in ("--min-df 2", "--hash 4096"):
        good(
            "fit",
            folder / "train.txt",
            "-o",
            tmp_path / columns,
            *options.split(),
            *columns.split(),
        )
    found = discem.load(tmp_path / "--min-df 2").get_params()
    found["n_features"] = discem.load(tmp_path / "--hash 4096").n_features
    wanted = {
        "loss": "hinge",
        "weighting": "counts",
        "ngram_range": (1, 2),
        "min_df": 2,
        "max_iter": 3,
        "random_state": 5,
        "class_weight": "balanced",
        "n_features": 4096,
        "callback": None,
    }
    assert {name: found[name] for name in wanted} == wanted


def test_unlabelled_documents_are_learnt_from(good, folder, tmp_path):
    documents = [(label if i % 3 else None, text) for i, (label, text) in enumerate(corpus(120))]
    (tmp_path / "some.txt").write_text(lines(documents))
    good("fit", tmp_path / "some.txt", "-o", tmp_path / "m", *FAST)
    some = discem.load(tmp_path / "m")
    assert sorted(some.classes_) == sorted(WORDS)
    assert some.chosen_["unlabelled"]["rows"] == 40


def test_lines_on_stderr_tell_documents_and_loss(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("discem.cli._screen._SECONDS_BETWEEN_LINES", 0.0)
    for stream in ([], ["--stream"]):
        result = run("fit", folder / "train.txt", "-o", tmp_path / "m", "--loss", "ncll", *stream)
        told = result.stderr.splitlines()
        step = r"(epoch \d+|documents 120 of about 120, 0 s left)"
        shown = rf"discem: {step}  [\d,]+ documents/s  loss \d\.\d{{4}}"
        assert any(re.match(shown, line) for line in told), told


def test_progress_has_the_share_of_all_epochs(folder, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(Meter, "tell", lambda self, *args, **more: told.append((args, more)))
    words = ["fit", str(folder / "train.txt"), "-o", str(tmp_path / "m"), "--epochs", "3"]
    words += ["--loss", "ncll"]  # which has epochs
    assert CliRunner().invoke(cli.app, words).exit_code == 0
    epochs = [(args, more) for args, more in told if args[0] in ("epoch 1", "epoch 2", "epoch 3")]
    assert [args[1] for args, _ in epochs] == pytest.approx([1 / 3, 2 / 3, 1])
    for (_, _, loss), more in epochs:
        assert loss > 0
        assert more["rate"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--loss nosuch", "nosuch"),
        ("--ngrams 0", "--ngrams 0: expected a length"),
        ("--encoder nothing", "encoder='nothing' is unknown: use one of ['wordllama', "),
        ("--ngrams 3-2", "--ngrams 3-2: expected a length"),
        ("--ngrams two", "--ngrams two: expected a length"),
        ("--min-df few", "--min-df few: expected a count"),
        ("--class-weight big", "'big' is not"),
        ("--min-df 0", "--min-df 0: expected a count"),
        ("--min-df 1.5", "--min-df 1.5: expected a count"),
        ("--min-df 2 --hash 64", "--min-df needs words that are known beforehand"),
        ("--min-df 2 --stream", "--min-df needs words that are known beforehand"),
        ("--min-df 1000", "--min-df 1000: there are only 120 documents"),
        ("--min-df 120", "--min-df 120: no word is in so many documents"),
        ("--seed 99999999999", "see discem fit --help"),
        ("--save-every 10", "--save-every is for streams: add --stream"),
        ("--batch-size 10", "--batch-size is for streams: add --stream"),
        ("--resume old.skops", "--resume is for streams: add --stream"),
        ("--stream --epochs 3", "leave out --epochs"),
        ("--stream --resume old.skops --loss nll", "leave out --loss"),
        ("--format xml", "format 'xml' is unknown"),
        ("--hash many", "see discem fit --help"),
        ("--nosuch", "see discem fit --help"),
    ],
)
def test_misuse_is_one_line_and_writes_nothing(options, message, bad, folder, tmp_path):
    told = bad("fit", folder / "train.txt", "-o", tmp_path / "m", *options.split())
    assert message in told
    assert not list(tmp_path.iterdir())


def test_an_output_that_cannot_be_written_is_known_before_the_work(bad, folder, tmp_path):
    assert "no folder" in bad("fit", folder / "train.txt", "-o", tmp_path / "no" / "m")
    assert "it is a folder" in bad("fit", folder / "train.txt", "-o", tmp_path)


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_bad_data_is_one_line(stream, bad, tmp_path):
    def told(name, content, *options):
        (tmp_path / name).write_bytes(content)
        return bad("fit", tmp_path / name, "-o", tmp_path / "m", *options, *stream)

    assert "empty.txt: no documents" in told("empty.txt", b"")
    assert "there is no such file" in bad("fit", tmp_path / "no.txt", "-o", tmp_path / "m")
    assert "no column 'body'; there is 'label', 'text'" in told(
        "a.csv", b"label,text\na,b\n", "--text-column", "body"
    )
    assert "line 1: expected label<TAB>text" in told("a.txt", b"hello\n")
    assert "line 1: cannot be read as UTF-8" in told("a.txt", b"a\t\xff\n")
    assert not (tmp_path / "m").exists()
    assert "cannot be read" in told("a.txt.gz", gzip.compress(b"a\tbad\n" * 999)[:-9])
    assert (tmp_path / "m").exists() == bool(stream)  # what could be read of it is learnt


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_data_that_cannot_be_learnt_from_is_said_in_words_of_the_shell(stream, run, bad, tmp_path):
    def told(content, *options):
        (tmp_path / "a.txt").write_text(content)
        return bad("fit", tmp_path / "a.txt", "-o", tmp_path / "m", *options, *stream)

    assert "2 documents has a label" in told("\tgood film\n\tgood plot\n")
    if not stream:
        one = told("a\tgood film\na\tgood plot\n")
        assert "all labels are 'a'" in one
        assert "--loss nll or --stream" in one
    assert not (tmp_path / "m").exists()


def test_options_of_the_program_itself_are_one_line_too(bad, good):
    assert bad("--foo") == "No such option: --foo; see discem --help"
    assert "'nosuch'" in bad("nosuch")


@pytest.mark.parametrize("command", ["", "fit", "predict", "evaluate", "explain", "reproduce"])
def test_help_is_for_people(command, good):
    told = good(*command.split(), "--help")
    assert "<bool>" not in told and "list[str]" not in told and "as is right" not in told
    if command:
        assert "--format" in told or command == "reproduce"
    else:
        assert "--install-completion" in told
        assert all(each in told for each in ("fit", "predict", "evaluate", "explain"))


@pytest.mark.parametrize(
    ("words", "wanted"), [("discem pre", "predict"), ("discem fit --save", "--save-every")]
)
def test_shells_can_complete_words(words, wanted, monkeypatch):
    shell = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    surroundings = {"_DISCEM_COMPLETE": "complete_bash"} | shell
    result = CliRunner().invoke(cli.app, [], prog_name="discem", env=surroundings)
    assert result.output.split() == [wanted]


# --- streams --------------------------------------------------------------------------------------


def test_a_stream_is_partial_fit(good, folder, tmp_path):
    told = good("fit", "--stream", folder / "train.txt", "-o", tmp_path / "m", "--batch-size", 50)
    assert "120 documents, 3 classes, progressive accuracy" in told
    documents = corpus(120)
    expected = discem.TextClassifier(random_state=0)
    for begin in (0, 50, 100):
        part = documents[begin : begin + 50]
        expected.partial_fit([text for _, text in part], [label for label, _ in part])
    found = discem.load(tmp_path / "m")
    np.testing.assert_array_equal(found.predict_proba(TEXTS), expected.predict_proba(TEXTS))
    assert f"{expected.progressive_accuracy_:.4f}" in told


def test_resume_is_as_if_never_stopped(good, tmp_path):
    documents = corpus(120)
    whole, part = tmp_path / "whole.skops", tmp_path / "part.skops"
    stream = ("fit", "-", "--stream", "--batch-size", 30)
    good(*stream, "-o", whole, input=lines(documents))
    good(*stream, "-o", part, input=lines(documents[:60]))
    good(*stream, "-o", part, "--resume", part, input=lines(documents[60:]))
    one, other = discem.load(whole), discem.load(part)
    assert one.n_documents_ == other.n_documents_ == 120
    np.testing.assert_array_equal(one.predict_proba(TEXTS), other.predict_proba(TEXTS))


def test_what_a_stream_knows_of_columns_may_only_be_repeated(good, bad, tmp_path):
    """Else it would be taught the classes of another question."""
    data, path, out = tmp_path / "a.jsonl", tmp_path / "m", tmp_path / "n"
    rows = [{"body": text, "topic": label, "title": "x"} for label, text in corpus(60)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = ("--text-column", "body", "--label-column", "topic")
    good("fit", data, "--stream", *names, "-o", path)
    resume = ("fit", data, "--stream", "--resume", path, "-o", out)
    for flag, name, known in (("--text-column", "title", "body"), ("--label-column", "x", "topic")):
        told = bad(*resume, flag, name)
        assert told.startswith(
            f"{flag} {name}: {path} has learnt with {flag} {known}; leave it out"
        )
    assert not out.exists()
    good(*resume)
    good(*resume, *names)
    good("fit", "-", *resume[2:], input=lines(corpus(5)))  # which has no columns
    assert discem.load(out).roles_ == {"text": "body", "label": "topic"}
    good("fit", "-", "--stream", "-o", path, input=lines(corpus(5)))
    assert discem.load(path).roles_ == {}
    good(*resume, *names)
    assert discem.load(out).roles_ == {"text": "body", "label": "topic"}


@pytest.mark.parametrize("roles", [{"label": 3}, {"target": "x"}, ["label"]])
def test_columns_that_no_command_remembers_are_refused(roles, model, tmp_path):
    model = copy.deepcopy(model)
    model._fitted.roles = roles
    with pytest.raises(ModelFileError, match="roles_ are not names of columns"):
        model.save(tmp_path / "m")


def test_a_bad_line_in_a_stream_keeps_what_came_before(bad, tmp_path):
    told = bad(
        *("fit", "-", "--stream", "--batch-size", 10, "-o", tmp_path / "m"),
        input=lines(corpus(25)) + "no tab\n",
    )
    assert "standard input, line 26: expected label<TAB>text" in told
    assert f"{tmp_path / 'm'} has learnt the first 25 of these documents" in told
    assert discem.load(tmp_path / "m").n_documents_ == 25


def test_a_stream_may_go_on_without_labels(good, folder, tmp_path):
    resume = ("--stream", "--resume", folder / "model.skops", "-o", tmp_path / "m")
    told = good("fit", "-", *resume, input="\tharvest wheat\n")
    assert told == f"{tmp_path / 'm'}: 121 documents, 3 classes\n"


def test_a_stream_that_is_sorted_is_told_of_once(run, tmp_path):
    result = run(
        *("fit", "-", "--stream", "--batch-size", 10, "-o", tmp_path / "m"),
        input=lines(sorted(corpus(120))),
    )
    assert result.exit_code == 0
    (told,) = result.stderr.splitlines()
    assert told.startswith("discem: the labels of this stream come in long runs")
    assert told.endswith("--loss nll, to which their order does not matter")


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stream_that_is_interrupted_is_saved(signum, code, run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Meter, "tell", send(signum, "documents 60"))
    path = tmp_path / "m"
    result = run("fit", "--stream", "--batch-size", 30, folder / "train.txt", "-o", path)
    assert result.exit_code == code
    (message,) = result.stderr.splitlines()
    wanted = f"discem: interrupted; {path} has learnt the first 60 of these documents"
    assert message == wanted
    assert discem.load(path).n_documents_ == 60
    assert signal.getsignal(signum) is not None and os.listdir(tmp_path) == ["m"]


def test_control_c_before_an_epoch_leaves_the_model_that_was_there(
    run, folder, tmp_path, monkeypatch
):
    """All words are counted, and a model has begun, but nothing is learnt."""

    def strike(self, *args, **more):
        os.kill(os.getpid(), signal.SIGINT)
        return learn(self, *args, **more)

    learn = discem.training.Learner.learn
    monkeypatch.setattr(discem.training.Learner, "learn", strike)
    (tmp_path / "m").write_bytes(b"before")
    result = run("fit", folder / "train.txt", "-o", tmp_path / "m", *FAST)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "discem: interrupted"
    assert (tmp_path / "m").read_bytes() == b"before"


def test_control_c_keeps_a_fit_so_far(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Meter, "tell", send(signal.SIGINT, "epoch 1"))
    result = run("fit", folder / "train.txt", "-o", tmp_path / "m", *FAST)
    assert result.exit_code == 130
    assert f"interrupted; {tmp_path / 'm'} has the model trained so far" in result.stderr
    assert discem.load(tmp_path / "m").score(TEXTS, LABELS) > 0.5


def test_control_c_before_anything_is_learnt_writes_nothing(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Meter, "tell", send(signal.SIGINT, "reading 120"))
    result = run("fit", folder / "train.txt", "-o", tmp_path / "m")
    assert result.exit_code == 130
    assert result.stderr == "discem: interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_a_signal_during_the_last_save_comes_too_late(
    signum, stream, good, folder, tmp_path, monkeypatch
):
    def save(self, path):
        os.kill(os.getpid(), signum)
        before(self, path)

    before = discem.TextClassifier.save
    monkeypatch.setattr(discem.TextClassifier, "save", save)
    told = good("fit", folder / "train.txt", "-o", tmp_path / "m", "--loss", "nll", *stream)
    assert told.startswith(f"{tmp_path / 'm'}: 120 documents, 3 classes")
    assert discem.load(tmp_path / "m").n_documents_ == 120
    assert signal.getsignal(signum) in (signal.SIG_DFL, signal.default_int_handler)


def test_what_a_library_makes_of_a_signal_is_still_a_signal():
    with pytest.raises(Stopped) as caught, Interrupts():  # as NumPy does while it is loaded
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError("numpy._core.multiarray failed to import") from None
    assert caught.value.exit_code == 143


def test_signals_wait_for_the_end_of_a_block():
    done = []
    with Interrupts() as interrupts:
        with pytest.raises(Stopped), interrupts.held():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("whole")
        assert done == ["whole"] and not interrupts.cut
        with pytest.raises(Stopped), interrupts.held():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            done.append("never")
        assert done == ["whole"] and interrupts.cut
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.fixture
def start():
    """Start the command in a process of its own."""
    begun = []

    def start(*words, before="", **more):
        code = f"{before}\nfrom discem.cli import main\nmain()"
        command = [sys.executable, "-c", code, *map(str, words)]
        paths = [str(Path(discem.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more
        begun.append(subprocess.Popen(command, env=surroundings, **pipes))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_a_stream_that_is_killed_leaves_the_last_saved_model(start, tmp_path):
    """It saves all the time, so that the blow falls into a save as likely as not."""
    data, path = tmp_path / "data.txt", tmp_path / "m"
    data.write_text(lines(corpus(50_000)))
    process = start(
        *("fit", "--stream", "--batch-size", 10, "--save-every", 10, data, "-o", path),
    )
    wait_for(path.exists)
    first = path.stat().st_mtime_ns
    wait_for(lambda: path.stat().st_mtime_ns > first)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    model = discem.load(path)
    assert 20 <= model.n_documents_ < 50_000 and model.n_documents_ % 10 == 0
    assert model.predict(TEXTS).shape == (40,)


KILLED = """
import os, signal
from discem.cli._screen import Meter

def tell(self, step, *args, **more):
    if step.startswith("choice: 2 of 6, best log-loss 0."):
        os.kill(os.getpid(), signal.SIGKILL)

Meter.tell = tell
"""


def test_a_fit_that_is_killed_leaves_the_old_model(start, folder, tmp_path):
    path = tmp_path / "m"
    path.write_bytes((folder / "model.skops").read_bytes())
    process = start("fit", folder / "test.txt", "-o", path, before=KILLED)
    assert process.wait(120) == -signal.SIGKILL
    assert path.read_bytes() == (folder / "model.skops").read_bytes()
    assert os.listdir(tmp_path) == ["m"]


def test_control_c_while_a_stream_waits_for_input(start, tmp_path):
    path = tmp_path / "m"
    process = start(
        *("fit", "--stream", "--batch-size", 10, "--save-every", 20, "-", "-o", path),
        stdin=subprocess.PIPE,
    )
    process.stdin.write(lines(corpus(25)))
    process.stdin.flush()
    wait_for(path.exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    message = process.stderr.read().splitlines()[-1]
    assert message.startswith(
        f"discem: interrupted; {path} has learnt the first 20 of these documents"
    )
    assert discem.load(path).n_documents_ == 20


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_predictions_that_are_interrupted_leave_nothing(signum, code, start, folder, tmp_path):
    process = start(
        *("predict", folder / "model.skops", "-", "--batch-size", 1, "-o", tmp_path / "out"),
        stdin=subprocess.PIPE,
    )
    process.stdin.write("harvest wheat\n")
    process.stdin.flush()
    wait_for(lambda: os.listdir(tmp_path))
    assert os.listdir(tmp_path) != ["out"]
    process.send_signal(signum)
    assert ended(process, code) == "interrupted"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain"])
def test_commands_that_are_terminated_say_so(command, run, folder, monkeypatch):
    def strike(*_):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(discem.TextClassifier, "predict_log_proba", strike)
    monkeypatch.setattr(discem.TextClassifier, "explain", strike)
    before = signal.getsignal(signal.SIGTERM)
    result = run(command, folder / "model.skops", folder / "test.txt")
    assert (result.exit_code, result.stderr) == (143, "discem: interrupted\n")
    assert signal.getsignal(signal.SIGTERM) is before


def test_commands_run_in_threads_that_get_no_signals(good, folder):
    words = ("predict", folder / "model.skops", folder / "test.txt")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(good, *words).result() == good(*words)


# --- what is not to be destroyed ------------------------------------------------------------------


@pytest.fixture
def names(tmp_path):
    """Names of one file of documents: its own, others, and links of both kinds."""
    data = tmp_path / "data.txt"
    data.write_text(lines(corpus(30)))
    (tmp_path / "link").symlink_to(data)
    (tmp_path / "hard").hardlink_to(data)
    (tmp_path / "folder").mkdir()
    return [data, tmp_path / "link", tmp_path / "hard", tmp_path / "folder" / ".." / "data.txt"]


def test_what_is_read_is_not_written_to(names, bad, folder):
    data, before = names[0], names[0].read_bytes()
    for name in names:
        for options in ([], ["--stream"]):
            assert "one of the files that are read" in bad("fit", data, "-o", name, *options)
        predict = ("predict", folder / "model.skops", folder / "test.txt", data)
        assert "one of the files that are read" in bad(*predict, "-o", name)
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    "pattern", ["*.txt", "**/data*", "[d]ata.txt", "link*", "?ard", "f*/../d*"]
)
def test_what_a_pattern_names_is_not_written_to(pattern, names, bad, folder, tmp_path):
    data, before = names[0], names[0].read_bytes()
    read = ("--format", "txt", tmp_path / pattern)
    for command in (["fit"], ["fit", "--stream"], ["predict", folder / "model.skops"]):
        for name in names:
            told = bad(*command, *read, "-o", name)
            assert told == f"cannot write to {name}: it is one of the files that are read"
    assert data.read_bytes() == before and (tmp_path / "hard").samefile(data)


def test_a_pattern_in_a_linked_folder_names_the_same_files(names, bad, folder, tmp_path):
    data, before = names[0], names[0].read_bytes()
    (tmp_path / "folder" / "there").symlink_to(tmp_path, target_is_directory=True)
    pattern = tmp_path / "folder" / "there" / "*.txt"
    assert "files that are read" in bad("predict", folder / "model.skops", pattern, "-o", data)
    assert data.read_bytes() == before


def test_packed_files_that_a_pattern_names_are_not_written_to(bad, folder, tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt.gz").write_bytes(gzip.compress(lines(corpus(9)).encode()))
    before = (tmp_path / "b.txt.gz").read_bytes()
    words = ("predict", folder / "model.skops", tmp_path / "*.gz", "-o", tmp_path / "b.txt.gz")
    assert "files that are read" in bad(*words)
    assert (tmp_path / "b.txt.gz").read_bytes() == before


@pytest.mark.parametrize("command", ["predict", "predict --json", "evaluate", "explain --json"])
def test_what_is_read_does_not_grow_by_what_is_printed(command, start, folder, names):
    """A command that reads what it appends would never end."""
    data, before = names[0], names[0].read_bytes()
    command, *options = command.split()
    with open(names[2], "a") as file:
        words = (command, folder / "model.skops", data, *options)
        told = ended(start(*words, stdout=file), 2)
    assert told == "cannot write to standard output: it is one of the files that are read"
    assert data.read_bytes() == before


def test_a_model_that_goes_on_does_not_grow_by_what_is_printed(start, folder, tmp_path):
    path, out = tmp_path / "m", tmp_path / "out"
    path.write_bytes((folder / "model.skops").read_bytes())
    with open(path, "a") as file:
        words = ("fit", folder / "train.txt", "--stream", "--resume", path, "-o", out)
        told = ended(start(*words, stdout=file), 2)
    assert told == "cannot write to standard output: it is one of the files that are read"
    assert path.read_bytes() == (folder / "model.skops").read_bytes()


def test_a_model_does_not_go_to_the_standard_output(start, bad, folder, tmp_path):
    assert "name a file" in bad("fit", folder / "train.txt", "-o", "-")
    out = tmp_path / "out"
    with out.open("w") as file:
        told = ended(start("fit", folder / "train.txt", "-o", "/dev/stdout", stdout=file), 2)
    assert told == "cannot write a model to standard output: name a file"
    assert out.read_bytes() == b""


def test_the_model_is_not_replaced_by_its_predictions(bad, folder, tmp_path):
    path = tmp_path / "model"
    path.write_bytes((folder / "model.skops").read_bytes())
    (tmp_path / "link").symlink_to(path)
    for name in (path, tmp_path / "link"):
        told = bad("predict", path, folder / "test.txt", "-o", name)
        assert told == f"cannot write to {name}: it is one of the files that are read"
    assert path.read_bytes() == (folder / "model.skops").read_bytes()


def test_standard_input_is_not_written_to(start, names):
    data, before = names[0], names[0].read_bytes()
    with data.open() as file:
        process = start("fit", "-", "-o", data, stdin=file)
        assert process.wait(120) == 2
    assert "it is one of the files that are read" in process.stderr.read()
    assert data.read_bytes() == before


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_devices_and_pipes_are_not_written_to(command, bad, folder, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    words = {"fit": ["fit"], "predict": ["predict", folder / "model.skops"]}[command]
    for special in (path, "/dev/full"):
        told = bad(*words, folder / "test.txt", "-o", special)
        assert told == f"cannot write to {special}: it is a device or a pipe, not a file"
    assert path.is_fifo()


def test_a_model_takes_the_place_of_the_one_before(good, folder, tmp_path):
    path, link = tmp_path / "model", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    good("fit", folder / "train.txt", "-o", link, "--loss", "nll")
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert discem.load(path).n_documents_ == 120


def test_predictions_go_to_standard_output_by_any_of_its_names(start, good, folder, tmp_path):
    predict = ("predict", folder / "model.skops", folder / "test.txt")
    assert good(*predict, "-o", "-") == good(*predict)
    out = tmp_path / "out"
    out.write_text("kept\n")
    with out.open("a") as file:
        assert start(*predict, "-o", "/dev/stdout", stdout=file).wait(120) == 0
    assert out.read_text() == "kept\n" + good(*predict)


# --- one line, whatever happens -------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), {signum})

sys.meta_path.insert(0, Finder())
"""


def ended(process, code):
    """The one line that a process has on stderr."""
    assert process.wait(120) == code
    told = process.stderr.read()
    assert told.count("\n") == 1 and told.startswith("discem: "), told
    return told.removeprefix("discem: ").rstrip("\n")


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("name", ["typer", "scipy"])
def test_a_signal_while_modules_are_loaded(name, signum, code, start, folder, tmp_path):
    before = INTERRUPTED.format(name=name, signum=int(signum))
    process = start("fit", folder / "train.txt", "-o", tmp_path / "m", before=before)
    assert ended(process, code) == "interrupted"


def test_before_ctrl_c_is_heard_next_to_nothing_is_loaded():
    code = "import sys; before = {*sys.modules}; import discem.cli; print(*{*sys.modules} - before)"
    sources = str(Path(discem.__file__).parents[1])
    surroundings = os.environ | {"PYTHONPATH": sources}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=surroundings)
    assert set(done.stdout.decode().split()) == {"discem", "discem.cli", "discem.cli._start"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
@pytest.mark.parametrize("words", ["--version", "predict --table"])
def test_a_full_standard_output_is_one_line(words, start, folder):
    command, *options = words.split()
    data = [] if command == "--version" else [folder / "model.skops", folder / "test.txt"]
    with open("/dev/full", "w") as full:
        process = start(command, *data, *options, stdout=full)
        assert ended(process, 2) == "standard output: No space left on device"


def test_a_closed_standard_output_is_named(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(DiscemError, match="standard output: it is closed"), opened(None):
        pytest.fail("there is nothing to write to")


def test_a_limit_on_memory_is_one_line(start, folder, tmp_path):
    pytest.importorskip("resource")
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (300 << 20,) * 2)"
    ended(start("fit", folder / "train.txt", "-o", tmp_path / "m", before=limit), 2)


def test_running_out_of_memory_is_one_line(bad, folder, monkeypatch):
    def fail(*_):
        raise MemoryError("Unable to allocate 75 GiB")

    monkeypatch.setattr(discem.TextClassifier, "predict_log_proba", fail)
    assert bad("predict", folder / "model.skops", folder / "test.txt") == "out of memory"


def test_what_nobody_thought_of_is_one_line(run, folder, monkeypatch):
    def fail(*_):
        raise TypeError("an array\nof what?")

    monkeypatch.setattr(discem.TextClassifier, "predict_log_proba", fail)
    words = ("predict", folder / "model.skops", folder / "test.txt")
    result = run(*words)
    assert result.exit_code == 1
    (told,) = result.stderr.splitlines()
    assert "TypeError: an array\\nof what?" in told and "DISCEM_TRACEBACK=1" in told
    monkeypatch.setenv("DISCEM_TRACEBACK", "1")
    assert isinstance(run(*words).exception, TypeError)


def test_data_and_models_that_are_none_are_one_line(bad, folder, tmp_path):
    path, model = folder / "model.skops", ("evaluate", folder / "model.skops")
    assert bad("predict", "/dev/zero", path) == (
        f"{path}: its name does not tell the format; add --format, one of "
        "txt, csv, tsv, jsonl, parquet"
    )
    test = folder / "test.txt"
    assert "it is a device or a pipe, not a file" in bad("predict", "/dev/zero", test)
    assert f"{tmp_path} cannot be read: it is a folder" in bad("predict", tmp_path, test)
    assert f"{tmp_path}: it is a folder" in bad(*model, tmp_path)
    zero = ("/dev/zero", "--format", "txt", "--max-size", 1)
    assert "longer than 1 MB; raise --max-size" in bad(*model, *zero)
    for name, content in (("a\n.txt", b"\xff"), ("deep.jsonl", b"[" * 100_000)):
        (tmp_path / name).write_bytes(content)
        assert "cannot be read as" in bad(*model, tmp_path / name)


def test_packed_text_that_fills_the_memory_is_refused(bad, good, tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"a\tgood film\nb\tbad film\n" * 100_000))
    fit = ("fit", path, "-o", tmp_path / "m", "--loss", "nll", "--epochs", 1, "--max-size")
    assert "unpacks to more than 1 MB and than 100 times its size" in bad(*fit, 1)
    assert "200,000 documents" in good(*fit, 20)


def test_labels_that_no_file_can_hold_are_escaped(good, folder, tmp_path):
    texts = ["wheat crop", "ore metal"] * 5
    labels = ["corn\ud800", "gold"] * 5
    path = tmp_path / "m"
    discem.TextClassifier(loss="nll", random_state=0).fit(texts, labels).save(path)
    for output in ([], ["-o", tmp_path / "out"]):
        told = good("predict", path, "-", "--json", *output, input="wheat\n")
        record = json.loads(told or (tmp_path / "out").read_text())
        assert record["label"] == "corn\ud800"
    assert good("predict", path, "-", input="wheat\n") == "corn \n"


# --- model files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain"])
def test_a_wrong_or_damaged_model_is_one_line(command, bad, folder, tmp_path):
    path = tmp_path / "m"
    whole = (folder / "model.skops").read_bytes()

    def told(content):
        path.write_bytes(content)
        return bad(command, path, folder / "test.txt")

    for content in (whole[: len(whole) // 2], whole[:-1], b"", b"text", pickle.dumps([1])):
        assert told(content) == f"{path} is not a model file of discem, or it is damaged"
    discem.GaussianNB(max_iter=1).fit([[0.0], [1.0]], ["a", "b"]).save(path)
    assert (
        told(path.read_bytes()) == f"{path} holds a GaussianNB, which does not take text or tables"
    )
    path.unlink()
    assert bad(command, path, folder / "test.txt") == (
        f"{path} cannot be read: No such file or directory"
    )


def test_resume_of_a_damaged_model_leaves_the_output_alone(bad, folder, tmp_path):
    (tmp_path / "old").write_bytes(b"text")
    resume = ("--stream", "--resume", tmp_path / "old", "-o", tmp_path / "m")
    assert "is not a model file" in bad("fit", folder / "train.txt", *resume)
    assert not (tmp_path / "m").exists()


# --- predict --------------------------------------------------------------------------------------


def test_predict_prints_a_line_for_every_document(good, folder, model):
    expected = model.predict(TEXTS).tolist()
    path = folder / "model.skops"
    assert good("predict", path, folder / "test.txt").splitlines() == expected
    bare = "".join(f"{text}\n" for text in TEXTS)
    assert good("predict", path, "-", input=bare).splitlines() == expected
    small = good("predict", path, folder / "test.txt", "--batch-size", 7)
    assert small.splitlines() == expected


def test_predict_with_probabilities(good, folder, model):
    shares = model.predict_proba(TEXTS)
    path, data = folder / "model.skops", folder / "test.txt"
    rows = [line.split("\t") for line in good("predict", path, data, "--proba").splitlines()]
    assert [label for label, _ in rows] == model.predict(TEXTS).tolist()
    np.testing.assert_allclose([float(p) for _, p in rows], shares.max(axis=1), atol=6e-5)
    records = [json.loads(line) for line in good("predict", path, data, "--json").splitlines()]
    assert [set(record) for record in records] == [{"label", "probability"}] * 40
    records = good("predict", path, data, "--json", "--proba").splitlines()
    found = [list(json.loads(line)["probabilities"].values()) for line in records]
    np.testing.assert_allclose(found, shares)


def test_predict_as_a_table(good, folder):
    documents = "\t[bold]harvest[/bold] wheat \x1b[31mcrop\n"
    told = good("predict", folder / "model.skops", "-", "--table", "--no-labels", input=documents)
    assert "corn" in told
    assert " [bold]harvest[/bold] wheat  [31mcrop" in told
    assert "\x1b" not in told
    long = f"{'wheat ' * 100}\n"
    told = good("predict", folder / "model.skops", "-", "--table", input=long)
    assert {len(line) for line in told.splitlines()} == {100}


def test_predict_to_a_file_that_appears_whole(good, bad, folder, model, tmp_path):
    path, out = folder / "model.skops", tmp_path / "out"
    assert good("predict", path, folder / "test.txt", "-o", out) == ""
    assert out.read_text().splitlines() == model.predict(TEXTS).tolist()
    before = out.read_bytes()
    bad("predict", path, "-", "-o", out, input=b"harvest\n\xff\n")
    assert out.read_bytes() == before
    assert os.listdir(tmp_path) == ["out"]
    assert "either --json or --table" in bad(
        "predict", path, "-", "--json", "--table", input="harvest\n"
    )


def test_no_labels_takes_a_line_as_it_is(good, folder):
    line = "harvest wheat crop\tore\n"  # only the last word is the text, if there are labels
    predict = ("predict", folder / "model.skops", "-")
    assert good(*predict, input=line) == "gold\n"
    assert good(*predict, "--no-labels", input=line) == "corn\n"


def test_a_pipe_that_breaks_is_no_error(start, folder, tmp_path):
    data = tmp_path / "data.txt"
    data.write_text(lines(corpus(30_000)))
    process = start("predict", folder / "model.skops", data, "--json", "--batch-size", 50)
    assert json.loads(process.stdout.readline())["label"] in WORDS
    process.stdout.close()
    process.wait(120)
    assert process.stderr.read() == ""


# --- evaluate -------------------------------------------------------------------------------------


def test_evaluation_agrees_with_sklearn():
    rng = np.random.default_rng(0)
    classes = ["a", "b", "c"]
    proba = rng.dirichlet(np.ones(3), size=200)
    labels = rng.choice(classes, p=[0.6, 0.4, 0.0], size=200)  # c is predicted, never there
    result = Evaluation(classes)
    for begin in range(0, 200, 70):
        result.add(labels[begin : begin + 70].tolist(), np.log(proba[begin : begin + 70]))
    found = np.array(classes)[proba.argmax(axis=1)]
    assert result.accuracy == pytest.approx(accuracy_score(labels, found))
    assert result.log_loss == pytest.approx(log_loss(labels, proba, labels=classes))
    assert result.macro_f1 == pytest.approx(f1_score(labels, found, average="macro"))
    expected = precision_recall_fscore_support(labels, found, labels=classes, zero_division=0)
    for score, *figures in zip(result.by_class(), *expected, strict=True):
        assert [figure or 0 for figure in score[1:]] == pytest.approx(figures)
    assert result.by_class()[2].recall is None
    counts = [times for _, _, times in result.confusions()]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == (labels != found).sum()
    for label, wrong, times in result.confusions():
        assert times == ((labels == label) & (found == wrong)).sum()


def test_evaluate(good, folder, model):
    found = json.loads(good("evaluate", folder / "model.skops", folder / "test.txt", "--json"))
    assert found["documents"] == 40
    assert found["accuracy"] == pytest.approx(model.score(TEXTS, LABELS))
    expected = log_loss(LABELS, model.predict_proba(TEXTS), labels=model.classes_)
    assert found["log_loss"] == pytest.approx(expected)
    told = good("evaluate", folder / "model.skops", folder / "test.txt")
    assert f"accuracy {found['accuracy']:.4f}  log-loss {found['log_loss']:.4f}" in told
    for label in WORDS:
        row = next(line for line in told.splitlines() if line.startswith(f"│ {label} "))
        assert row.split("│")[-2].strip() == str(LABELS.count(label))


def test_evaluate_names_unknown_labels_and_counts_unlabelled(good, bad, folder, model):
    documents = lines([("corn", "harvest wheat"), ("tin", "metal ore"), (None, "cargo")])
    evaluate = ("evaluate", folder / "model.skops", "-")
    found = json.loads(good(*evaluate, "--json", input=documents))
    assert (found["documents"], found["unlabelled"], found["accuracy"]) == (2, 1, 0.5)
    assert found["unknown_labels"] == {"tin": 1}
    known = model.predict_log_proba(["harvest wheat"])[0][list(model.classes_).index("corn")]
    assert found["log_loss"] == pytest.approx(-known)
    assert found["confusions"] == [{"label": "tin", "predicted": "gold", "count": 1}]
    told = good(*evaluate, input=documents)
    assert "skipped: 1 document without a label" in told
    assert "does not know the label (not in the log-loss): tin (1)" in told
    assert "none of the 1 documents has a label" in bad(*evaluate, input="\tcargo\n")


# --- explain --------------------------------------------------------------------------------------


def test_an_explanation_adds_up(good, folder, model):
    text = "harvest of wheat and crop, one ounce today"
    explain = ("explain", folder / "model.skops", text, "--json")
    record = json.loads(good(*explain))
    assert record["label"] == "corn"
    ranked = model.classes_[(-model.predict_log_proba([text])[0]).argsort()]
    assert record["against"] == ranked[1]
    log_proba = dict(zip(model.classes_, model.predict_log_proba([text])[0], strict=True))
    odds = log_proba["corn"] - log_proba[record["against"]]
    assert record["log_odds"] == pytest.approx(odds)
    assert dict(record["words"])["harvest"] > 0
    top = json.loads(good(*explain, "--top", 2))
    assert top["words"] == record["words"][:2]
    for told in (record, top):
        total = told["start"] + sum(part for _, part in told["words"]) + told["other_words"]
        assert total == pytest.approx(record["log_odds"])
    sizes = [abs(part) for _, part in record["words"]]
    assert sizes == sorted(sizes, reverse=True)
    there = json.loads(good(*explain, "--label", "gold", "--against", "corn"))
    back = json.loads(good(*explain, "--label", "corn", "--against", "gold"))
    assert (there["label"], there["against"]) == ("gold", "corn")
    assert there["log_odds"] == pytest.approx(-back["log_odds"])
    assert dict(there["words"])["harvest"] == pytest.approx(-dict(back["words"])["harvest"])


def test_explain_as_a_table_of_files_and_standard_input(good, folder):
    told = good("explain", folder / "model.skops", "harvest wheat", "--against", "gold")
    assert told.startswith("corn against gold, probability 0.")
    assert any(line.startswith("│ harvest ") and "+" in line for line in told.splitlines())
    assert "harvest" in good("explain", folder / "model.skops", "harvest " * 1000)
    for data, input in ((folder / "test.txt", None), ("-", lines(TEST))):
        records = good("explain", folder / "model.skops", data, "--json", input=input)
        assert len(records.splitlines()) == 40


def test_words_of_a_class(good, bad, folder):
    words = ("explain", folder / "model.skops", "--words")
    found = json.loads(good(*words, "corn", "--top", 5, "--json"))["words"]
    assert {word for word, _ in found} == set(WORDS["corn"].split())
    assert found[0][0] in good(*words, "corn", "--top", 1)
    assert "no class 'tin'; it knows corn, gold, ships" in bad(*words, "tin")


def test_explain_needs_something_to_explain(bad, folder):
    path = folder / "model.skops"
    assert "give either a text" in bad("explain", path)
    assert "give either a text" in bad("explain", path, "harvest", "--words", "corn")
    assert "nosuch.txt: there is no such file" in bad("explain", path, "nosuch.txt")
    assert "no class 'tin'" in bad("explain", path, "harvest", "--label", "tin")
    assert "both 'corn'" in bad("explain", path, "x", "--label", "corn", "--against", "corn")


# --- the page in docs/ ----------------------------------------------------------------------------

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"


def test_commands_of_the_page_run(good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"corn": "crude", "gold": "grain", "ships": "trade"}
    documents = [(names[label], text) for label, text in corpus(60)]
    Path("parts").mkdir()
    for name in ("train.txt", "test.txt", "more.txt", "parts/1.txt", "parts/2.txt"):
        Path(name).write_text(lines(documents))
    Path("new.txt").write_text("".join(f"{text}\n" for _, text in documents))
    rows = [{"body": text, "stars": label} for label, text in documents]
    Path("reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cells = "".join(f"{row['stars']},{row['body']}\n" for row in rows)
    Path("reviews.csv").write_text(f"stars,body\n{cells}")
    adults = [
        f"p{i},{20 + i % 40},{sex},{i % 7},{1000 + i * i},{'<>'[i % 3 > 0]}50K"
        for i, sex in enumerate(["Male", "Female"] * 60)
    ]
    for name in ("adult.csv", "adult-test.csv", "new.csv"):
        header = "person,age,sex,education_num,fnlwgt,class"
        Path(name).write_text("\n".join([header, *adults]) + "\n")
    monkeypatch.setattr("discem.estimators._candidates._kinds", lambda *_: ())  # quick choices
    monkeypatch.setattr("discem.estimators._candidates._variations", lambda *_: ())
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) > 10
    for command in commands:
        *source, call = command.split(" | ")
        words = shlex.split(call, comments=True)
        assert words[0] == "discem"
        if words[1] == "reproduce":  # see test_cli.py: here it would take an hour
            continue
        if {"--workers", "--scheduler"} & set(words):  # see test_cli_workers.py
            assert words[2] in ("parts/*.txt", "parts/*.csv")
            continue
        input = Path(source[0].removeprefix("cat ")).read_text() if source else None
        told = good(*words[1:], input=input)
        assert told or {"-o", "outliers"} & set(words)  # of which there may be none
