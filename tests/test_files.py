"""Model files: whole or not at all, and nothing in them but models of the library."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

pytest.importorskip("skops", reason="model files need discem[files]")

import skops.io

import discem
from discem import Dirichlet, GaussianNB, Hinge, Interior, MultinomialNB, NormalGamma, power
from discem.exceptions import ModelFileError

MODELS = {
    GaussianNB: {"prior": NormalGamma(mean=0.5), "loss": Hinge(2.0), "projection": "check"},
    MultinomialNB: {"prior": Dirichlet(0.5), "step": power(0.1, 50), "projection": Interior(0.3)},
}
every_model = pytest.mark.parametrize("Model", MODELS)


def data(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=60)
    return rng.poisson(1.0 + 3.0 * (y[:, None] == np.arange(5) % 3)), np.array(["a", "b", "c"])[y]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


@every_model
@pytest.mark.parametrize("options", ["default", "own"])
def test_round_trip(Model, options, path):
    X, y = data()
    options = MODELS[Model] if options == "own" else {}
    model = Model(max_iter=3, random_state=0, **options).fit(X, y)
    model.set_class_prior([0.2, 0.3, 0.5]).calibrate(X, y)
    model.save(path)
    again = discem.load(path)
    assert type(again) is Model
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    np.testing.assert_array_equal(again.classes_, model.classes_)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    more, labels = data(1)
    labels = np.where(labels == "c", "d", labels)  # a class unknown so far
    for one in (model, again):
        one.partial_fit(more, labels)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@every_model
def test_save_replaces_and_leaves_nothing_behind(Model, path):
    X, y = data()
    path.write_text("old")
    model = Model(max_iter=1, callback=lambda model, record: None, random_state=0).fit(X, y)
    callback = model.callback
    model.save(str(path))
    assert model.callback is callback
    assert discem.load(str(path)).callback is None
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_save_that_fails_keeps_the_old_file(path, monkeypatch):
    model = GaussianNB(max_iter=1).fit(*data())
    model.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space"):
        model.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_step_that_is_code_is_refused_when_saved(path):
    model = GaussianNB(max_iter=1, step=lambda t: 0.1 / t).fit(*data())
    with pytest.raises(ModelFileError, match="A step or a loss of your own"):
        model.save(path)
    assert not list(path.parent.iterdir())


def whole(path):
    GaussianNB(max_iter=1).fit(*data()).save(path)
    return path.read_bytes()


def stamped(thing, format=2):
    """A file as if `thing` had been saved as a model."""
    file = io.BytesIO(skops.io.dumps(thing))
    with zipfile.ZipFile(file, "a") as members:
        members.writestr("discem.json", json.dumps({"format": format, "version": "9.1"}))
    return file.getvalue()


DAMAGED = {
    "random": lambda path: np.random.default_rng(0).bytes(2000),
    "empty": lambda path: b"",
    "text": lambda path: b"model",
    "half": lambda path: whole(path)[: len(whole(path)) // 2],
    "cut": lambda path: whole(path)[:-1],
    "flipped": lambda path: bytes(b ^ (i % 97 == 50) for i, b in enumerate(whole(path))),
    "pickle": lambda path: pickle.dumps(GaussianNB(max_iter=1).fit(*data())),
    "estimator": lambda path: skops.io.dumps(LogisticRegression().fit(*data())),
    "stranger": lambda path: stamped(LogisticRegression().fit(*data())),
    "bare": lambda path: skops.io.dumps({"format": "discem"}),
    "no model": lambda path: stamped([1, 2]),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_not_a_model(kind, path):
    path.write_bytes(DAMAGED[kind](path))
    with pytest.raises(ModelFileError, match=r"model\.skops"):
        discem.load(path)


def test_file_of_a_newer_release(path):
    path.write_bytes(stamped(GaussianNB(max_iter=1).fit(*data()), format=99))
    with pytest.raises(ModelFileError, match=r"written by discem 9\.1.*newer"):
        discem.load(path)


def test_no_file(path):
    with pytest.raises(FileNotFoundError, match=r"model\.skops"):
        discem.load(path)


class Foreign:
    """A type that is not the library's."""


@pytest.mark.parametrize(
    "thing", [Foreign(), pickle.loads, np.testing.assert_equal], ids=["object", "loads", "function"]
)
def test_foreign_types_are_refused(thing, path):
    path.write_bytes(stamped(thing))
    with pytest.raises(ModelFileError, match="not ours"):
        discem.load(path)
