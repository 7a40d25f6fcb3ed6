"""Model files from a stranger: what does not hang together is refused before it is used."""

import dataclasses
import io
import itertools
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import zipfile

import hostile
import numpy as np
import pytest
import tiny
from hostile import golden, pairs_of, places, put_together, taken_apart

import discem
from discem import GaussianNB, MultinomialNB, TextClassifier, TopicClassifier
from discem.exceptions import InputError, ModelFileError, OptionError
from discem.families import FAMILIES, multiply
from discem.io.patterns import check_pattern


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def refused(path):
    """The one line that a file is refused with."""
    with pytest.raises(ModelFileError) as caught:
        discem.load(path)
    (line,) = str(caught.value).splitlines()
    assert "model.skops" in line and len(line) < 1000
    return line


def test_altered_files_are_refused_or_harmless():
    """The first cases of `benchmarks/torture.py files`, in a process that must live."""
    command = [sys.executable, hostile.__file__, "0", "120"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    found = [json.loads(line) for line in result.stdout.splitlines()]
    ends = [outcome for outcome in found if outcome["end"] != "begun"]
    assert len(ends) == 120
    assert [each for each in ends if each["end"] not in ("refused", "harmless")] == []
    assert sum(each["end"] == "refused" for each in ends) > 60


# --- arrays ---------------------------------------------------------------------------------------


def fields(value):
    """The parts of a state by name, where it has any."""
    if isinstance(value, dict):
        return dict(value)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return value._asdict()
    return dict(enumerate(value)) if isinstance(value, tuple) else {}


def parts(state, path=()):
    """All arrays of a state, by path."""
    if isinstance(state, np.ndarray):
        yield path, state
    for name, value in fields(state).items():
        yield from parts(value, (*path, name))


def replaced(state, path, array):
    if not path:
        return array
    name, new = path[0], replaced(fields(state)[path[0]], path[1:], array)
    if isinstance(state, dict):
        return state | {name: new}
    if isinstance(name, int):
        return (*state[:name], new, *state[name + 1 :])
    return state._replace(**{name: new})


SPOILT = {
    "shorter": lambda a: a[:-1].copy(),
    "longer": lambda a: np.concatenate([a, a[:1]]) if a.size else np.zeros((1, *a.shape[1:])),
    "deeper": lambda a: a[None].copy(),
    "single": lambda a: a.astype(np.float32),
    "whole": lambda a: a.astype(np.int32),
    "text": lambda a: a.astype("U8"),
    "missing": lambda a: np.full_like(a, np.nan, dtype=np.float64),
    "endless": lambda a: np.full_like(a, np.inf, dtype=np.float64),
    "list": lambda a: a.tolist(),
}
SINGLES = list(FAMILIES)
PAIRS = [" * ".join(pair) for pair in itertools.pairwise([*FAMILIES, SINGLES[0]])]


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", [*SINGLES, *PAIRS])
def test_no_array_of_a_state_is_trusted(name, average):
    """Of every family, alone and in products: good ones pass, any that is altered is refused."""
    factors = [FAMILIES[each] for each in name.split(" * ")]
    family = factors[0] if len(factors) == 1 else multiply(*factors)
    y = np.arange(24) % 3
    width = (2, 3) if len(factors) == 2 else 4
    X = family.example(y, width, np.random.default_rng(0))
    state = tiny.begin(family, X, y, average=average)
    state.check(3, width)
    for place, array in parts(state):
        for how, spoil in SPOILT.items():
            if not array.size and how not in ("longer", "deeper", "single", "text"):
                continue
            if (place[-1], how) == ("scale", "missing"):  # that of columns which never vary
                continue
            with pytest.raises((ModelFileError, AttributeError, TypeError, IndexError, ValueError)):
                replaced(state, place, spoil(array)).check(3, width)
                pytest.fail(f"{place} {how} passed")
    with pytest.raises(ModelFileError):
        state.check(4, width)
    with pytest.raises(ModelFileError):
        state.check(3, (3, 3) if len(factors) == 2 else 5)


def test_the_files_that_corrupted_memory(path):
    """Counts cut to one row, 2 000 class counts, a vocabulary longer than the arrays."""
    tree, arrays = taken_apart(golden.HERE / "text.skops")
    counts = next(i for i, a in enumerate(arrays) if a.ndim == 2 and a.shape[1] == 3)
    put_together(path, tree, [a[:1] if i == counts else a for i, a in enumerate(arrays)])
    assert "count of words has the shape (1, 3), not (14, 3)" in refused(path)
    tree, arrays = taken_apart(golden.HERE / "gaussian.skops")
    put_together(path, tree, [np.resize(a, 2000) if i == 2 else a for i, a in enumerate(arrays)])
    assert "counts of the classes has the shape (2000,), not (3,)" in refused(path)
    model = discem.load(golden.HERE / "text.skops")
    model.bag_.vocabulary["zebra"] = len(model.bag_.vocabulary)
    model.bag_.document_count = np.append(model.bag_.document_count, 1.0)
    with pytest.raises(ModelFileError, match=r"not written.*words are not those of its model"):
        model.save(path)


def altered(path, name, change):
    """A golden file with something changed in its tree."""
    tree, arrays = taken_apart(golden.HERE / f"{name}.skops")
    change(tree)
    put_together(path, tree, arrays)
    return path


def setting(under, key, value):
    """Change the value of a key in all dicts of that name."""

    def change(tree):
        chosen = pairs_of(tree, under)
        known = [(keys, values) for keys, values in chosen if key in keys]
        for keys, values in known:
            values[keys.index(key)] = value
        if not known:
            keys, values = chosen[0]
            keys.append(key)
            values.append(value)

    return change


@pytest.mark.parametrize(
    ("name", "under", "key", "value", "message"),
    [
        ("text", "options", "token_pattern", r"(\w+)+!", "may take for ever"),
        ("text", "options", "input", "filename", "input"),
        ("text", "options", "ngram_range", [1, 10**6], "ngram_range is above 100"),
        ("text", "params", "token_pattern", r"(a|a)*$", "may take for ever"),
        ("topics-gibbs", "options", "analyzer", "file", "analyzer='file'"),
        ("topics-gibbs", "params", "n_sweeps", 10**9, "n_sweeps=1000000000"),
        ("gaussian", "params", "callback", 3, "a callback"),
        ("gaussian", "params", "loss", "logistic", "loss='logistic'"),
        ("gaussian", "fitted", "predict", 3, "no attribute 'predict'"),
        ("gaussian", "fitted", "__class__", "x", "no attribute '__class__'"),
        ("gaussian", "fitted", "temperature_", -1.0, "temperature_ is not above 0"),
        ("gaussian", "fitted", "n_features_in_", 4, "mean of gaussian has the shape"),
        ("gaussian", "fitted", "_seen", "many", "_seen is not a number"),
        ("multinomial", "fitted", "chosen_", [], "chosen_ is not a dict"),
        ("naive-bayes", "fitted", "layout_", 3, "does not know its columns"),
        ("naive-bayes", "params", "forget", 0.5, "forget=0.5"),
        ("table", "params", "hide", 1.0, "hide=1.0"),
        ("table", "params", "missing", "maybe", "missing='maybe'"),
        ("table", "chosen", "temperature", -1.0, "temperature is not above 0"),
        ("table", "chosen", "loss", "logistic", "loss='logistic'"),
        ("table", "fitted", "n_features_in_", 5, "its columns are not those of its table"),
    ],
)  # fmt: skip
def test_options_and_attributes_are_those_of_a_fit(name, under, key, value, message, path):
    assert message in refused(altered(path, name, setting(under, key, value)))


def test_endless_sweeps_are_refused(path):
    def change(tree):
        for holder, key in places(tree):
            if key == "sweeps":
                holder[key] = 10**12

    assert "sweeps is above 10000" in refused(altered(path, "topics-cvb0", change))


@pytest.mark.parametrize(
    "state",
    [
        ["MT19937", np.arange(624, dtype=np.uint32), 10**6, 0, 0.0],
        ["MT19937", np.arange(3, dtype=np.uint32), 0, 0, 0.0],
        ["MT19937", np.arange(624.0), 0, 0, 0.0],
    ],
)
def test_random_states_stay_inside(state, path):
    """NumPy reads beyond its keys if it is told to."""
    X, y = golden.table()
    GaussianNB(max_iter=1, random_state=np.random.RandomState(0)).fit(X, y).save(path)
    assert discem.load(path).random_state.randint(100) >= 0
    tree, arrays = taken_apart(path)
    node = next(h[k] for h, k in places(tree) if isinstance(h[k], dict) and "state" in h[k])
    arrays.append(state[1])
    node["state"] = [state[0], {"array": len(arrays) - 1}, *state[2:]]
    put_together(path, tree, arrays)
    refused(path)


# --- containers -----------------------------------------------------------------------------------


def test_bombs_are_refused_before_they_go_off(path):
    """4 GB of zeros are a small file, if it may be compressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("discem.json", json.dumps(hostile.STAMP))
        members.writestr("schema.json", b" " * 10**7)
    assert path.stat().st_size < 20_000
    assert "compressed" in refused(path)
    whole = (golden.HERE / "gaussian.skops").read_bytes()
    header = b"'shape': (3,), }" + b" " * 20
    longer = whole.replace(header, b"'shape': (3000000000000,), }" + b" " * 8)
    assert len(longer) == len(whole) and longer != whole
    path.write_bytes(_with_right_sums(longer))
    assert "not as long as it says" in refused(path)


def _with_right_sums(data):
    """The same members in a zip whose checksums are right."""
    out, source = io.BytesIO(), zipfile.ZipFile(io.BytesIO(data))
    with zipfile.ZipFile(out, "w") as members:
        for info in source.infolist():
            begin = info.header_offset + 30 + len(info.filename)
            members.writestr(info.filename, data[begin : begin + info.file_size])
    return out.getvalue()


def test_texts_and_booleans_are_some(path):
    """NumPy holds any four bytes for a letter, and any byte for a truth."""
    tree, arrays = taken_apart(golden.HERE / "gaussian.skops")
    for number, kind in ((0x110000, "U1"), (7, "?")):
        code = np.uint32 if kind == "U1" else np.uint8
        labels = np.array([0, 1, number], dtype=code).view(kind)
        put_together(path, tree, [labels, *arrays[1:]])
        assert "that is none" in refused(path)


def test_members_that_overlap_are_refused(path):
    """One array that stands for a thousand."""
    tree, arrays = taken_apart(golden.HERE / "gaussian.skops")
    put_together(path, tree, [*arrays, np.zeros(10_000)])
    data = bytearray(path.read_bytes())
    directory = zipfile.ZipFile(path).infolist()
    name = f"{len(arrays)}.npy".encode()
    place = data.rindex(name) - 46  # its entry in the directory of the zip
    entry = bytes(data[place : place + 46 + len(name)])
    many = b"".join(entry.replace(name, b"%02d.npy" % i)[: len(entry)] for i in range(60, 90))
    end = data.rindex(b"PK\x05\x06")
    tail = bytearray(data[end:])
    tail[8:12] = (len(directory) + 30).to_bytes(2, "little") * 2
    tail[12:16] = (int.from_bytes(tail[12:16], "little") + len(many)).to_bytes(4, "little")
    path.write_bytes(bytes(data[:end]) + many + bytes(tail))
    assert "larger than the file" in refused(path)


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_what_is_no_file_is_refused_at_once(kind, path, tmp_path):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    answer = []
    thread = threading.Thread(target=lambda: answer.append(refused(path)), daemon=True)
    thread.start()
    thread.join(20)
    assert answer and "not a model file" in answer[0]


@pytest.mark.parametrize("member", ["schema.json", "discem.json", "tree", "history"])
def test_deep_nesting_is_refused(member, path):
    deep = "[" * 100_000 + "]" * 100_000
    tree, arrays = taken_apart(golden.HERE / "gaussian.skops")
    if member == "history":
        for holder, key in places(tree):
            if key == "history":
                holder[key] = deep
    put_together(path, tree, arrays)
    if member != "history":
        source = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
        with zipfile.ZipFile(path, "w") as members:
            for name in source.namelist():
                text = source.read(name)
                if name == "schema.json" and member == "tree":
                    schema = json.loads(text)
                    schema["content"]["model"]["content"] = json.dumps(deep)
                    text = json.dumps(schema)
                members.writestr(name, deep if name == member else text)
    refused(path)


def test_the_command_line_says_it_in_one_line(path):
    pytest.importorskip("typer", reason="the command line needs discem[cli]")
    from typer.testing import CliRunner

    from discem import cli

    tree, arrays = taken_apart(golden.HERE / "text.skops")
    put_together(path, tree, [a[:1] if a.ndim == 2 else a for a in arrays])
    for model in (path, "/dev/zero"):
        result = CliRunner().invoke(cli.app, ["explain", str(model), "a tall tree"])
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1 and result.stderr.startswith("discem: ")


# --- the same training, the same file -------------------------------------------------------------

SAME = ["gaussian", "mixture-words", "table", "topics-gibbs", "text"]


@pytest.mark.parametrize("name", SAME)
def test_the_same_training_gives_the_same_bytes(name, tmp_path):
    model, rows = golden.MODELS[name]
    X, y = rows()
    files = []
    for number in range(2):
        path = tmp_path / f"{number}.skops"
        fresh = type(model)(**model.get_params(deep=False)).fit(X, y).partial_fit(X[:9], y[:9])
        fresh.save(path)
        files.append(path.read_bytes())
        again = discem.load(path)
        again.save(path)
        files.append(path.read_bytes())
    assert len(set(files)) == 1


def test_skops_reads_the_container(path):
    io_ = pytest.importorskip("skops.io")
    discem.load(golden.HERE / "text.skops").save(path)
    assert io_.get_untrusted_types(file=path) == []
    content = io_.load(path)
    assert json.loads(content["model"])["kind"] == "TextClassifier"
    for one, two in zip(content["arrays"], taken_apart(path)[1], strict=True):
        np.testing.assert_array_equal(one, two)


# --- patterns of words ----------------------------------------------------------------------------

QUICK = [
    *(r"(?u)\b\w\w+\b", r"\b[a-m]\w+\b", r"\S+", r"\w+|[^\w\s]", r"(?u)\b\w[\w-]+\b", r"[^,]+"),
    *(r"\w+(?:-\w+)*", r"[A-Za-z]{3,}", r"(?u)\b(\w\w+)\b", r"https?://\S+|\w+", r"#\w+|@\w+|\w+"),
    *(r"(?:[A-Z]\.)+|\w+(?:['-]\w+)*|\$?\d+(?:\.\d+)?%?|[][.,;?():_`-]", r".+", r"\w{2,20}"),
    *(r"\d+[.,]?\d*|\w+", r"(?i)[a-z]+", r"\w", r"\w+(?:\s\w+)*", r"[\w']+", r"(?:se|us)e?"),
]
SLOW = [
    *(r"(\w+)+!", r"(a+)+$", r"(a|a)*b", r"(\w*)*", r"(\w+\s?)*$", r"[\s\S]*@", r"(?:a?a?)+b"),
    *(r"\w*\w*\w*\w*x", r"(\w)\1", r"(?=a+)b", r"((a+)+)+", r"(?x)( a+ )+b", r"(?:\w\w?)+x"),
    *(r"(?:a{1,30}){1,30}b", r"(?:a{1,30}){30}b", r"(?:.\w*)*x", r"(?:[^,]\w*)*x", r"(a+|b+){9}c"),
    *(r"\w+(?:\s\w+)*@", r"(?i)(?:A[a-z]*)*1", r"(?:-\w+\w?)*x", r"[\s\S]*\bx", r"(?:[\s\S]+x)"),
]


@pytest.mark.parametrize("pattern", QUICK)
def test_patterns_that_people_use(pattern):
    check_pattern(pattern)
    text = "don't re-use A.B.C. $3.50, see https://x.org #tag 12,5 " * 2000
    signal.alarm(20)
    try:
        assert re.findall(pattern, text) and len(re.findall(pattern, "a" * 2000 + "!")) < 4000
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("pattern", SLOW)
def test_patterns_that_take_for_ever(pattern):
    with pytest.raises(OptionError, match="may take for ever"):
        check_pattern(pattern)


def test_such_a_pattern_is_refused_before_training():
    with pytest.raises(OptionError, match=r"token_pattern=.*lists of words"):
        TextClassifier(token_pattern=r"(\w+)+!").fit(["a b", "c d"], [0, 1])
    with pytest.raises(OptionError, match="token_pattern="):
        TopicClassifier(text={"token_pattern": r"(\w+)+!"}).fit(["a b", "c d"], [0, 1])


# --- memory that is not ours ----------------------------------------------------------------------


def stream(Model):
    """A model in a stream, and batches to come, with new words and a new class."""
    texts, y = golden.texts()
    if Model is MultinomialNB:
        X, y = golden.counts()
        return Model(loss="ncll", random_state=0).partial_fit(X, y), [(X[:9], y[:9])] * 2
    options = {"text": True} if Model is TopicClassifier else {}
    model = Model(random_state=0, **options).partial_fit(texts, y)
    more = [f"{text} and {word}" for text, word in zip(texts, "kappa lambda omega", strict=False)]
    return model, [(more[:3], y[:3]), (["an oak has acorns", "acorns fall"], ["oak", "oak"])]


@pytest.mark.parametrize("Model", [TextClassifier, TopicClassifier, MultinomialNB])
@pytest.mark.parametrize("how", ["pickle", "protocol 2", "r", "r+", "c"])
def test_pickled_streams_learn_on(Model, how, tmp_path):
    """Also where their arrays are a file, which stays as it is."""
    import joblib

    model, batches = stream(Model)
    if how in ("pickle", "protocol 2"):
        again = pickle.loads(pickle.dumps(model, 2 if how == "protocol 2" else 5))
    else:
        joblib.dump(model, tmp_path / "model.joblib")
        before = (tmp_path / "model.joblib").read_bytes()
        again = joblib.load(tmp_path / "model.joblib", mmap_mode=how)
    for X, y in batches:
        for each in (model, again):
            each.partial_fit(X, y)
    X, _ = batches[0]
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    if how not in ("pickle", "protocol 2"):
        del again
        assert (tmp_path / "model.joblib").read_bytes() == before


def test_a_view_of_foreign_memory_never_grows_into_it():
    from discem.io.rows import extended

    theirs = np.arange(12.0).reshape(6, 2)
    for foreign in (np.frombuffer(theirs.tobytes()).reshape(6, 2), theirs.view(np.memmap)):
        grown = extended(foreign[:3], 2, 7.0)
        assert grown.shape == (5, 2) and (grown[3:] == 7.0).all()
        np.testing.assert_array_equal(foreign, theirs)
    ours = extended(theirs.copy(), 1, 0.0)
    assert np.shares_memory(extended(ours, 1, 0.0), ours)


def test_long_documents_are_not_drawn(path):
    model = discem.load(golden.HERE / "text.skops")
    model.model_.learner_.state.features.fixed["length"][0] = 1e8
    with pytest.raises(InputError, match="cannot be drawn"):
        model.sample(1)
