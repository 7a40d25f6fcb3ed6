"""Model files: whole or not at all, and nothing in them but models of the library."""

import io
import itertools
import json
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tiny
from sklearn.linear_model import LogisticRegression

pytest.importorskip("skops", reason="it makes files to compare with")

import skops.io

import discem
from discem import (
    Dirichlet,
    GaussianNB,
    Hinge,
    Interior,
    MixtureClassifier,
    MultinomialNB,
    NormalGamma,
    power,
)
from discem.exceptions import ModelFileError
from discem.families import FAMILIES, multiply

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
    assert again.history_ == tiny.untimed(model.history_)
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


def stamped(thing, format=3):
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


# --- by name --------------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make as golden  # noqa: E402


@pytest.mark.parametrize(
    "name", sorted({file.stem for file in GOLDEN.glob("*.json")} - {"regressor"})
)
def test_golden_files_are_read_for_ever(name):
    """Every file that was ever made says what it said, and training goes on from it."""
    model = discem.load(GOLDEN / f"{name}.skops")
    said = json.loads((GOLDEN / f"{name}.json").read_text())
    X, y = golden.MODELS[name][1]()
    rtol = 1e-5 if name == "topics-cvb0" else 1e-9  # topics are found in float32
    np.testing.assert_allclose(model.predict_joint_log_proba(X[:5]), said["joint"], rtol)
    np.testing.assert_allclose(model.predict_proba(X[:5]), said["proba"], rtol)
    assert len(model.history_) == said["history"]
    assert model.partial_fit(X, y).score(X, y) > 0.5
    assert repr(model.get_params()) == repr(golden.MODELS[name][0].get_params())


def test_every_kind_of_model_has_a_golden_file():
    assert {file.stem for file in GOLDEN.glob("*.json")} == {*golden.MODELS, "regressor"}
    made = {type(model).__name__ for model, _ in golden.MODELS.values()}
    # those of the imputer and of the regressor are read in test_joint.py and test_regressor.py
    others = {"load", "TableImputer", "TableRegressor"}
    assert made == set(discem.estimators.__all__) - others


@pytest.mark.parametrize(("format", "version"), [(1, "0.1.0"), (2, "0.2.0.dev0")])
def test_files_of_older_formats_are_refused_by_name(format, version):
    told = rf"written by discem {version}, .*cannot read: fit the model again"
    with pytest.raises(ModelFileError, match=told):
        discem.load(GOLDEN / f"format-{format}.skops")


def test_a_file_is_a_zip_of_arrays_and_names(path):
    """No module is named in it, but those of the container; each array is one member."""
    GaussianNB(max_iter=1).fit(*data()).save(path)
    members = zipfile.ZipFile(path)
    assert b"discem." not in members.read("schema.json")
    arrays = [name for name in members.namelist() if name.endswith(".npy")]
    assert set(members.namelist()) == {*arrays, "schema.json", "discem.json"}
    assert all(np.load(members.open(name), allow_pickle=False).size >= 0 for name in arrays)


def renamed(path, change):
    """The file at `path` with its tree changed."""
    content = skops.io.loads(path.read_bytes(), trusted=[])
    tree = json.loads(content["model"])
    change(tree)
    file = io.BytesIO(skops.io.dumps({"model": json.dumps(tree), "arrays": content["arrays"]}))
    with zipfile.ZipFile(file, "a") as members:
        members.writestr("discem.json", json.dumps({"format": 3, "version": "0.2"}))
    path.write_bytes(file.getvalue())


def nodes(tree, kind):
    """All nodes of a kind."""
    if isinstance(tree, list):
        return [node for each in tree for node in nodes(each, kind)]
    if not isinstance(tree, dict):
        return []
    own = [tree] if tree.get("kind") == kind else []
    return own + [node for each in tree.values() for node in nodes(each, kind)]


def test_a_field_that_the_file_lacks_has_its_default(path):
    """What a later version adds, with a default, is no reason to refuse a file."""
    X, y = data()
    model = GaussianNB(max_iter=2, random_state=0, projection=Interior(0.5, 0.03)).fit(X, y)
    model.save(path)

    def forget(tree):
        for node in nodes(tree, "Interior"):
            del node["fields"]["damping"]
        params = tree["fields"]["params"]["fields"]
        place = params["keys"].index("early_stopping")
        del params["keys"][place], params["values"][place]

    renamed(path, forget)
    again = discem.load(path)
    assert again.projection == Interior(0.5, 0.03) and again.early_stopping is False
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("Block", lambda node: node.update(kind="os.system"), "not ours: os.system"),
        ("Block", lambda node: node["fields"].update(colour=1), "damaged"),
        ("Block", lambda node: node["fields"].update(family="colours"), "damaged"),
        ("Block", lambda node: node["fields"].pop("mass"), "damaged"),
        ("Learner", lambda node: node["fields"].update(t="x", state=3), "damaged"),
    ],
)
def test_names_that_do_not_exist_are_refused(kind, change, message, path):
    GaussianNB(max_iter=1).fit(*data()).save(path)

    def alter(tree):
        for node in nodes(tree, kind):
            change(node)

    renamed(path, alter)
    with pytest.raises(ModelFileError, match=message):
        discem.load(path)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_saved(family, path):
    """Also one that the package does not know; streams go on after reading."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = FAMILIES[family].example(y, 4, rng)
    model = MixtureClassifier(2, families=family, max_iter=2, random_state=0).fit(X, y)
    model.save(path)
    again = discem.load(path)
    assert again.family_ == model.family_
    for one in (model, again):
        one.partial_fit(X, np.where(y == 2, 3, y))  # a class unknown so far
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_columns_that_never_vary_are_saved(path):
    X, y = np.ones((4, 2)), list("aabb")
    model = GaussianNB(random_state=0).fit(X, y)
    model.save(path)
    np.testing.assert_array_equal(discem.load(path).predict_proba(X), model.predict_proba(X))


def test_every_product_is_saved():
    """States of products, with their priors and averages, as trees and back."""
    from discem.estimators._files import _built, _described

    for names in itertools.combinations_with_replacement(FAMILIES, 2):
        family = multiply(*(FAMILIES[name] for name in names))
        y = np.arange(24) % 3
        X = family.example(y, (2, 3), np.random.default_rng(0))
        state = tiny.begin(family, X, y, average=True)
        learner = tiny.learner(state, Hinge(2.0), power(0.1, 50.0), 24)
        arrays = []
        tree = json.loads(json.dumps(_described(learner, arrays)))
        again = _built(tree, arrays)
        np.testing.assert_array_equal(tiny.flat(again.state), tiny.flat(state))
        assert again.rule == learner.rule
        assert again.state.family.name == state.family.name


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
