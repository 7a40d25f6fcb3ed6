"""Laws of averages of models: what a `TableClassifier` keeps of the candidates it tried."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import discem
from discem import MixtureClassifier, TableClassifier
from discem.datasets import customers
from discem.estimators._average import REST, Member, picked
from discem.estimators._candidates import numbers_of
from discem.estimators._choice import Mark, Result
from discem.estimators._tables import Encoded
from discem.exceptions import ModelFileError, OptionError
from discem.io.tables import Layout, check_table


def table(n=240, seed=0):
    rows, y = customers(n, random_state=seed)
    return pd.DataFrame(rows), np.asarray(y)


@pytest.fixture(scope="module")
def averaged():
    X, y = table()
    return TableClassifier(random_state=0).fit(X, y), X, y


def test_members_are_of_the_best_candidates(averaged):
    model, _, y = averaged
    assert [member["weight"] for member in model.members_] == [0.25] * 4
    taken = [each for each in model.choice_ if each["taken"]]
    assert 1 <= len(taken) <= 4 and sum(each["weight"] for each in taken) == 1.0
    assert all(each["held_out"] == len(y) for each in taken)
    assert any(each["held_out"] < len(y) for each in model.choice_)  # far behind on the first part
    best = min(each["log_loss"] for each in model.choice_)
    assert best == min(each["log_loss"] for each in taken)
    counting = [each["prior_strength"] for each in model.choice_ if each["loss"] == "nll"]
    assert {1.0, 0.25} <= {*counting}
    np.testing.assert_array_equal(model.class_count_, np.unique(y, return_counts=True)[1])


def results(log_p, weights=None):
    """Of candidates that give the right class of each row, by column, such a log-probability."""
    log_p = np.asarray(log_p, dtype=float)
    weights = np.ones(log_p.shape[1]) if weights is None else weights
    marks = [Mark(own < 0, -weights * own[None], own, weights, -own.mean(), 1.0) for own in log_p]
    return [Result({"place": place}, [each]) for place, each in enumerate(marks)]


def shares(*answer, **options):
    return {result.options["place"]: share for result, share in picked(results(*answer), **options)}


def test_what_is_picked_makes_the_mean_do_best():
    rng = np.random.default_rng(0)
    one = np.log(rng.uniform(0.5, 0.9, 4000))
    assert shares([one - 1.0, one, one - 0.5], most=4) == {1: 1.0}
    half = np.arange(4000) < 2000
    apart = [np.where(half, -0.1, -2.0), np.where(half, -2.0, -0.1), np.full(4000, -1.5)]
    assert shares(apart, most=4) == {0: 0.5, 1: 0.5}
    assert shares(apart, most=1) == {0: 1.0}


def test_few_rows_are_no_reason_to_trust_one_candidate():
    log_p = np.repeat([[-0.5], [-0.6], [-0.7], [-0.8]], 6, axis=1)
    assert shares(log_p, most=4) == dict.fromkeys(range(4), 0.25)
    assert shares(np.repeat(log_p, 500, axis=1), most=4) == {0: 1.0}
    heavy = np.full(6, 500.0)  # a weight of rows beside each other, not of evidence
    assert len(picked(results(log_p, heavy / heavy.mean()), most=4)) == 4


def test_probabilities_are_the_mean_of_those_of_the_members(averaged):
    model, X, _ = averaged
    expected = sum(weight * own.predict_proba(X) for own, weight in model._fitted.members)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[expected.argmax(axis=1)])
    joint = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(logsumexp(joint, axis=1), model.score_samples(X), rtol=1e-9)


def test_many_rows_are_scored_some_at_a_time(averaged, monkeypatch):
    model, X, _ = averaged
    at_once, seen = model.predict_log_proba(X), []
    score = MixtureClassifier.predict_log_proba
    monkeypatch.setattr("discem.estimators._average._AT_ONCE", 100)
    monkeypatch.setattr(
        MixtureClassifier, "predict_log_proba", lambda me, X: seen.append(len(X)) or score(me, X)
    )
    np.testing.assert_allclose(model.predict_log_proba(X), at_once, rtol=1e-12)
    assert len(seen) == 4 * 3  # members, and parts of 240 rows


def test_no_class_is_less_probable_than_can_be_known():
    X, y = table()
    model = discem.GaussianNB(random_state=0).fit(X[["age"]].to_numpy(float), y)
    far = model.predict_log_proba([[1e12], [40.0]])
    assert far.min() == -29.5 and np.exp(far).sum(axis=1) == pytest.approx(1.0)


def test_whole_numbers_are_numbers_unless_nearly_all_are_the_same():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({
        "few": rng.integers(6, size=300),
        "same": np.where(rng.random(300) < 0.95, 0, rng.integers(6, size=300)),
        "zeros": np.where(rng.random(300) < 0.5, 0, rng.integers(1, 60, size=300)),
        "amounts": np.where(rng.random(300) < 0.5, 0, rng.integers(1, 6000, size=300)),
    })  # fmt: skip
    rows = Encoded.read(Layout.learn(check_table(X), "auto"), X)
    assert [c.family for c in rows.layout.columns] == [*["categorical"] * 2, *["hurdle"] * 2]
    assert numbers_of(rows, "auto") == {"few": "gaussian", "zeros": "gaussian"}
    assert numbers_of(rows, {"few": "categorical"}) == {"zeros": "gaussian"}
    assert numbers_of(rows, "gaussian") == {}


def test_columns_intercept_and_the_rest_are_the_score(averaged):
    model, X, _ = averaged
    for i in range(5):
        why = model.explain(X.iloc[[i]])
        assert why.columns == [*X, REST]
        log_p = why.scores - logsumexp(why.scores)
        np.testing.assert_allclose(log_p, model.predict_log_proba(X.iloc[[i]])[0], atol=1e-10)


def test_one_model_where_one_is_wanted():
    X, y = table()
    model = TableClassifier(average=1, random_state=0).fit(X, y)
    assert len(model.members_) == 1 and model.members_[0]["weight"] == 1.0
    assert sum(each["taken"] for each in model.choice_) == 1
    assert REST not in model.explain(X[:1]).columns


def test_rows_without_a_label_are_learnt_by_all_members():
    """Models of the choice have not seen them, so others are trained."""
    X, y = table()
    y = y.astype(object)
    y[:20] = None
    with pytest.warns(UserWarning, match="20 of 240 rows have no label"):
        model = TableClassifier(random_state=0).fit(X, y)
    assert 1 <= len(model.members_) <= 4
    assert sum(member["weight"] for member in model.members_) == pytest.approx(1.0)


def test_streams_priors_and_files_concern_all_members(averaged, tmp_path):
    X, y = table(300, seed=1)
    model = TableClassifier(random_state=0).fit(X[:200], y[:200])
    model.save(tmp_path / "m")
    again = discem.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    before = [own.learner_.t for own, _ in model._fitted.members]
    for each in (model, again):
        each.partial_fit(X[200:], y[200:])
    assert all(
        own.learner_.t > t for (own, _), t in zip(model._fitted.members, before, strict=True)
    )
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-9)
    rare = model.set_class_prior({"leaves": 0.01, "stays": 0.99}).predict_proba(X)[:, 0]
    assert (rare < again.predict_proba(X)[:, 0]).all()
    model.set_class_prior(None).calibrate(X, y)
    assert model.temperature_ == model.chosen_["temperature"]


def test_files_with_other_weights_are_refused(averaged, tmp_path):
    model, _, _ = averaged
    for weights in ((0.5,) * 4, (1.5, -0.5, 0.0, 0.0)):
        pairs = zip(model._fitted.members, weights, strict=True)
        own = TableClassifier(random_state=0)
        own._fitted = type(model._fitted)(
            model.chosen_, model.choice_, [Member(each.model, w) for each, w in pairs]
        )
        with pytest.raises(ModelFileError, match="weight"):
            own.save(tmp_path / "m")


def test_senseless_options_are_refused():
    X, y = table(40)
    for options in ({"average": 0}, {"average": 1.5}, {"covariance": "wide"}, {"whole_numbers": 3}):
        with pytest.raises(OptionError, match=next(iter(options))):
            TableClassifier(**options).fit(X, y)


def test_never_far_behind_nll():
    """Many classes of few rows, flags that are nearly exact: counting is good there."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(15), 5)
    flags = (rng.random((15, 6)) < 0.5)[np.concatenate([y, y])]
    X = pd.DataFrame((flags ^ (rng.random(flags.shape) < 0.02)).astype(float))
    X["number"] = np.concatenate([y, y]) % 4 + rng.normal(size=150)
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loss in ("auto", "nll"):
            model = TableClassifier(loss=loss, random_state=0).fit(X[:75], y)
            losses.append(-model.predict_log_proba(X[75:])[np.arange(75), y].mean())
    assert losses[0] < losses[1] + 0.1


@pytest.fixture(scope="module")
def two_sided():
    """Rows without missing cells have a model of their own."""
    X, y = table(300)
    X = X.drop(columns="id").mask(np.random.default_rng(1).random((300, 8)) < 0.1)
    model = TableClassifier(random_state=0, max_iter=5).fit(X, y)
    layout = model.model_.layout_
    special = MixtureClassifier(1, loss="ncll", random_state=0, max_iter=5)
    model._fitted.complete = special.fit(Encoded.read(layout, check_table(X)), y)
    return model, X, y


def test_complete_rows_are_answered_by_their_own_model(two_sided):
    model, X, _ = two_sided
    complete = X.notna().all(axis=1).to_numpy()
    assert 0 < complete.sum() < len(X)
    found = model.predict_proba(X)
    np.testing.assert_array_equal(
        found[complete], model._fitted.complete.predict_proba(X[complete])
    )
    expected = sum(weight * own.predict_proba(X) for own, weight in model._fitted.members)
    np.testing.assert_allclose(found[~complete], expected[~complete], rtol=1e-12)
    for some in (X[complete], X[~complete], X[:1]):
        np.testing.assert_allclose(model.predict_proba(some), found[some.index], rtol=1e-12)
    assert [each["rows"] for each in model.members_] == ["incomplete"] * 4 + ["complete"]


def test_explanations_of_both_sides_are_exact(two_sided):
    model, X, _ = two_sided
    why = model.explain(X[:40])
    log_p = why.scores - logsumexp(why.scores, axis=1, keepdims=True)
    np.testing.assert_allclose(log_p, model.predict_log_proba(X[:40]), atol=1e-10)
    assert why.columns == [*X, REST]
    complete = X[:40].notna().all(axis=1).to_numpy()
    assert (why.contributions[complete, -1] == 0).all()
    assert (why.contributions[~complete, -1] != 0).any()


def test_streams_priors_calibration_and_files_concern_both_sides(two_sided, tmp_path):
    model, X, y = two_sided
    model.save(tmp_path / "m")
    again = discem.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    before = again._fitted.complete.learner_.t
    rare = again.set_class_prior({"leaves": 0.01, "stays": 0.99}).predict_proba(X)[:, 0]
    assert (rare < model.predict_proba(X)[:, 0]).all()
    again.set_class_prior(None).partial_fit(X, y)
    assert again._fitted.complete.learner_.t > before
    again.calibrate(X, [*y])
    assert {each["temperature"] for each in again.members_} != {1.0}
    again._fitted.complete = again._fitted.complete.learner_
    with pytest.raises(ModelFileError, match="model"):
        again.save(tmp_path / "n")


def test_a_model_of_complete_rows_is_taken_where_it_is_surely_better(monkeypatch):
    """Here columns say nothing alone."""
    for place in ("_table_preset", "_table_choice"):
        monkeypatch.setattr(f"discem.estimators.{place}.FOLDED", 500)
    monkeypatch.setattr("discem.estimators._table_choice._SURE", 0.0)
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(1500, 4)), columns=list("abcd"))
    y = (X["a"] * X["b"] + X["c"] * X["d"] > 0).to_numpy()
    model = TableClassifier(random_state=0, density=False).fit(X[:1000], y[:1000])
    assert [each["rows"] for each in model.members_] == ["incomplete", "complete"]
    assert [each["taken"] for each in model.choice_ if each["rows"] == "complete"].count(True) == 1
    assert model.chosen_["temperature"] == model.model_.temperature_
    losses = []
    for complete in (model._fitted.complete, None):
        model._fitted.complete = complete
        log_p = model.predict_log_proba(X[1000:])
        losses.append(-log_p[np.arange(500), y[1000:].astype(int)].mean())
    assert losses[0] < losses[1]
    for options in ({"average": 1}, {"hide": 0.5}):
        other = TableClassifier(random_state=0, density=False, **options).fit(X[:1000], y[:1000])
        assert [each["rows"] for each in other.members_] == ["all"]
