"""Choosing and weighing: what is held out, what is tried, and what is left of it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, StratifiedKFold, TimeSeriesSplit
from tiny import untimed

import discem
from discem import MixtureClassifier, MultinomialNB, TableClassifier, TextClassifier
from discem.estimators import _choice, _components
from discem.estimators._choice import (
    Choice,
    Chooser,
    Mark,
    is_behind,
    less_surprised,
    mark,
    more_accurate,
    weigh,
)
from discem.estimators._folds import Split, splits
from discem.exceptions import OptionError
from discem.progress import Choosing

LABELS = np.array(["ash", "birch", "cedar"])


def labels(n=120, K=3, seed=0):
    return np.random.default_rng(seed).integers(0, K, n)


def numbers(n=120, K=3, seed=0):
    codes = labels(n, K, seed)
    return np.random.default_rng(seed + 1).normal(size=(n, 4)) + 1.5 * codes[:, None], LABELS[codes]


def counts(n=120, seed=0):
    codes = labels(n, seed=seed)
    rate = 1.0 + 2.0 * (codes[:, None] == np.arange(9) % 3)
    return np.random.default_rng(seed + 1).poisson(rate).astype(float), LABELS[codes]


def texts(n=120, seed=0):
    X, y = counts(n, seed)
    words = np.array([f"w{j}" for j in range(9)])
    return [" ".join(np.repeat(words, row.astype(int))) for row in X], y


def tables(n=120, seed=0):
    X, y = numbers(n, seed=seed)
    return pd.DataFrame(X, columns=list("abcd")), y


CHOOSING = {
    "table": (TableClassifier(random_state=0, max_iter=8, density=False, tol=None), tables),
    "text": (TextClassifier(random_state=0, max_iter=4), texts),
    "multinomial": (MultinomialNB(random_state=0, max_iter=8), counts),
    "mixture": (MixtureClassifier("auto", random_state=0, max_iter=4, tol=None), numbers),
}
every_estimator = pytest.mark.parametrize("name", CHOOSING)


def model_of(name, **options):
    return clone(CHOOSING[name][0]).set_params(**options), *CHOOSING[name][1]()


# --- what is held out -----------------------------------------------------------------------------


def held_of(codes, weights=None, **options):
    weights = np.ones(len(codes)) if weights is None else weights
    return splits(codes, weights, np.random.RandomState(0), **options)


def test_a_part_is_of_each_class_and_leaves_no_class_out():
    codes = np.repeat([0, 1, 2], [1000, 500, 1])
    (part,) = held_of(codes)
    assert np.bincount(part.codes).tolist() == [200, 100]
    assert not part.weights[part.held].any() and np.count_nonzero(part.weights) == 1501 - 300


@pytest.mark.parametrize("n, parts", [(30, 5), (400, 3), (1200, 1)])
def test_few_rows_are_held_out_in_turn(n, parts):
    found = held_of(np.arange(n) % 2)
    held = np.concatenate([part.held for part in found])
    assert len(found) == parts and len(set(held)) == len(held) >= min(n, 200)


def test_folds_hold_out_every_row_once():
    found = held_of(labels(), cv=4)
    assert len(found) == 4
    assert sorted(np.concatenate([part.held for part in found])) == list(range(120))


def test_rows_of_no_label_or_weight_are_in_no_part():
    codes, weights = labels(), np.ones(120)
    codes[::5], weights[1::5] = -1, 0.0
    for cv in (None, 3, StratifiedKFold(3), np.arange(120) // 10):
        for part in held_of(codes, weights, cv=cv):
            used = np.r_[part.held, part.train]
            assert (codes[used] >= 0).all() and (weights[used] > 0).all()


@pytest.mark.parametrize("kind", [np.array, pd.Series, list], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("names", ["text", "number"])
def test_rows_of_a_group_are_held_out_together(kind, names):
    groups = np.arange(120) // 6
    groups = np.array([f"g{g}" for g in groups]) if names == "text" else groups
    found = held_of(labels(), cv=kind(groups))
    assert len(found) == 5
    for part in found:
        assert not set(groups[part.held]) & set(groups[part.train])
        assert len(part.held) + len(part.train) == 120


def test_splitters_and_pairs_say_it_themselves():
    codes = labels()
    for part in held_of(codes, cv=TimeSeriesSplit(3)):
        assert part.train.max() < part.held.min()
    pairs = [(np.arange(80), np.arange(80, 120)), (np.arange(40, 120), np.arange(40))]
    for cv in (pairs, iter(pairs)):
        found = held_of(codes, cv=cv)
        assert [part.held.tolist() for part in found] == [held.tolist() for _, held in pairs]
        assert [part.train.tolist() for part in found] == [train.tolist() for train, _ in pairs]


def test_what_is_held_out_has_a_class_that_is_trained_on():
    codes = np.repeat([0, 1, 2], 20)
    (part,) = held_of(codes, cv=[(np.arange(30), np.arange(30, 60))])
    assert part.codes.tolist() == [1] * 10  # nothing was trained on for the third


@pytest.mark.parametrize(
    "cv, message",
    [
        (1, "cv=1 must be"), ("3", "cv='3' must be"), (2.5, "cv=2.5 must be"),
        ([0, 1] * 59, "118 groups"), (np.zeros(120), "one group"),
        ([([-1], [0])], "from 0 on"), ([([0.5], [0])], "from 0 on"), ([(0, 1, 2)], "cv: "),
        ([([0, 1], [200])], "holds out no row"), (GroupKFold(3), "cv: "),
        (StratifiedKFold(90), "cv: "),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_say_it_is_refused(cv, message):
    for name in CHOOSING:
        model, X, y = model_of(name, cv=cv)
        with pytest.raises(OptionError, match=message):
            model.fit(X, y)


@every_estimator
def test_estimators_choose_by_what_cv_says(name):
    """Rows are those that `fit` was given, wherever unlabelled ones stand among them."""
    model, X, y = model_of(name, cv=np.arange(120) // 6)
    y = y.astype(object)
    y[:12] = None
    assert model.fit(X, y).score(X[12:], y[12:]) > 0.7
    held = getattr(model, "chosen_", {"held_out": 108})["held_out"]
    assert held == 108  # all of them, once
    twin, _, _ = model_of(name, cv=[*_pairs(np.arange(120) // 6, np.arange(12, 120))])
    twin.fit(X, y)
    assert untimed(twin.choice_) == untimed(model.choice_)


def _pairs(groups, rows):
    for train, held in GroupKFold(5).split(rows, groups=groups[rows]):
        yield rows[train], rows[held]


def test_copies_that_are_apart_deceive_and_groups_do_not():
    """Each row ten times: a part held out at random has all been seen in training."""
    X, y = numbers(30, seed=4)
    y = np.random.default_rng(0).permutation(y)  # there is nothing to learn
    X, y, groups = np.repeat(X, 10, axis=0), np.repeat(y, 10), np.repeat(np.arange(30), 10)
    options = {"n_components": 8, "random_state": 0, "density": False, "max_iter": 20}
    apart, together = (
        TableClassifier(cv=cv, **options).fit(X, y).choice_[0] for cv in (None, groups)
    )
    assert together["log_loss"] > apart["log_loss"] + 0.2


# --- what is tried --------------------------------------------------------------------------------


class Guess:
    """A model that gives the right class so many points more than the others."""

    n_iter_ = 1

    def __init__(self, points):
        self.points = points


def chooser_of(codes, better=less_surprised, parts=2, kept=None, of=3, **options):
    held = np.array_split(np.arange(len(codes)), parts)
    parts = [Split(np.ones(len(codes)), rows, codes[rows], np.ones(len(rows))) for rows in held]

    def score(options, part, model):
        K = int(codes.max()) + 1
        noise = np.random.RandomState(part.held[0]).normal(size=(2, len(part.held), K))
        return noise + model.points * (part.codes[:, None] == np.arange(K))

    def keep(options, model, mark):
        if kept is not None:
            kept.append((options, model, mark))

    def train(options, part, watch):
        if options["points"] is None:
            raise KeyboardInterrupt
        return Guess(options["points"])

    return Chooser(parts, train, score, better, keep, of=of, **options)


@pytest.mark.parametrize("better", [less_surprised, more_accurate])
def test_the_best_candidate_is_taken(better):
    chooser = chooser_of(labels(), better)
    best = chooser.best_of({"points": p} for p in (0.0, 2.0, 1.0))
    assert best.options == {"points": 2.0} and chooser.held_out == 120
    choice = chooser.choice()
    assert [each["taken"] for each in choice] == [False, True, False]
    assert [each["weight"] for each in choice] == [0.0, 1.0, 0.0]
    assert choice[1]["log_loss"] == min(each["log_loss"] for each in choice)
    assert choice[1]["accuracy"] == max(each["accuracy"] for each in choice)
    assert len(best.models) == 2 and not chooser.results[0].models


def test_a_candidate_far_behind_on_the_first_part_is_left():
    chooser = chooser_of(labels(), parts=4, of=4, hopeless=is_behind)
    best = chooser.best_of({"points": p} for p in (2.0, 0.0, 2.01, 4.0))
    assert best.options == {"points": 4.0}
    assert [each["held_out"] for each in chooser.choice()] == [120, 30, 120, 120]
    assert [each.complete for each in chooser.results] == [True, False, True, True]
    first, left = chooser.results[:2]
    assert is_behind(left.mark, first.mark) and not is_behind(first.mark, left.mark)
    assert not is_behind(left.mark, first.mark, errors=1e9)


def test_candidates_may_depend_on_how_earlier_ones_did():
    def climb():
        best = yield {"points": 0.0}
        while best.options["points"] < 3.0:
            best = yield {"points": best.options["points"] + 1.0}

    chooser = chooser_of(labels(), all_models=True)
    assert chooser.best_of(climb()).options == {"points": 3.0}
    assert [each["points"] for each in chooser.choice()] == [0.0, 1.0, 2.0, 3.0]
    assert all(len(result.models) == 2 for result in chooser.results)


def test_a_leader_stays_unless_it_is_beaten():
    chooser = chooser_of(labels())
    leader = chooser.best_of([{"points": 2.0}])
    assert chooser.best_of([{"points": 1.0}], leader) is leader
    assert [each["taken"] for each in chooser.choice()] == [True, False]
    assert chooser.best_of([{"points": 1.0}]) is not leader  # which takes no part


def test_what_is_kept_is_the_best_so_far():
    kept = []
    chooser = chooser_of(labels(), kept=kept)
    with pytest.raises(KeyboardInterrupt):
        chooser.best_of({"points": p} for p in (1.0, 2.0, 0.0, None, 5.0))
    assert [options["points"] for options, _, _ in kept if options["points"] != 1.0] == [2.0]
    assert kept[-1][2] is chooser.best.mark and kept[-1][1].points == 2.0
    assert kept[0][2] is None and [each["points"] for each in chooser.choice()] == [1.0, 2.0, 0.0]


def test_progress_is_told(capsys):
    chooser = chooser_of(labels(), verbose=2)
    chooser.best_of({"points": p} for p in (1.0, 2.0, 0.0))
    *lines, end = capsys.readouterr().err.splitlines()
    assert end.startswith("choice: 3 candidates in ")
    assert [line.split(",")[0] for line in lines] == [f"choice: {k} of 3" for k in (1, 2, 3)]
    best = min(each["log_loss"] for each in chooser.choice())
    assert all(f"best log-loss {best:.4f}" in line for line in lines[1:])
    assert not any("left" in line for line in lines)  # it is no time


def test_a_long_choice_says_how_long_still(capsys):
    choosing = Choosing(2, of=4)
    choosing.begun -= 30.0
    choosing.begin()
    choosing.end(0.5)
    assert capsys.readouterr().err == "choice: 1 of 4, best log-loss 0.5000, about 90 s left\n"


def test_a_choice_is_silent_if_not_asked(capsys):
    chooser_of(labels()).best_of([{"points": 1.0}])
    assert not capsys.readouterr().err


@every_estimator
def test_a_choice_is_on_record(name, tmp_path, capsys):
    model, X, y = model_of(name, verbose=1)
    before = model.get_params()
    model.fit(X, y)
    assert model.get_params() == before
    assert " candidates in " in capsys.readouterr().err
    choice = model.choice_
    figures = {"log_loss", "accuracy", "temperature", "epochs", "seconds", "weight", "taken"}
    assert len(choice) > 2 and all(figures < each.keys() for each in choice)
    assert 1 <= sum(each["taken"] for each in choice) <= (4 if name == "table" else 1)
    assert sum(each["weight"] for each in choice) == pytest.approx(1.0)
    assert "trials" not in getattr(model, "chosen_", {})
    assert len(str(choice).splitlines()) == len(choice) + 1
    assert str(choice).startswith(next(iter(choice[0])))
    paths = [tmp_path / f"{number}.skops" for number in range(2)]
    model.save(paths[0])
    again = discem.load(paths[0])
    assert isinstance(again.choice_, Choice) and untimed(again.choice_) == untimed(choice)
    clone(model).fit(X, y).save(paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()


@every_estimator
def test_files_do_not_keep_what_was_held_out(name, tmp_path):
    model, X, y = model_of(name, cv=np.arange(120) // 6)
    model.fit(X, y).save(tmp_path / "model")
    assert discem.load(tmp_path / "model").cv is None
    model.set_params(cv=3).save(tmp_path / "model")
    assert discem.load(tmp_path / "model").cv == 3
    assert pickle.loads(pickle.dumps(model)).cv == 3


@pytest.mark.parametrize("records", [[], [1], [{"loss": [object]}]], ids=str)
@every_estimator
def test_a_record_from_elsewhere_is_looked_at(name, records, tmp_path):
    model, X, y = model_of(name)
    model.fit(X, y)
    vars(getattr(model, "_fitted", model))["choice" if hasattr(model, "_fitted") else "choice_"] = (
        Choice(records) if records else records
    )
    with pytest.raises(discem.exceptions.ModelFileError, match="choice_"):
        model.save(tmp_path / "model")


@every_estimator
@pytest.mark.parametrize("nth", [1, 4])
def test_ctrl_c_leaves_the_best_so_far(name, nth, monkeypatch):
    """Of candidates, or of the parts of the first; a later fit begins anew."""
    model, X, y = model_of(name)
    marked, real = [], _choice.mark

    def interrupted(parts, scores):
        marked.append(parts)
        if len(marked) == nth + 1:
            raise KeyboardInterrupt
        return real(parts, scores)

    with monkeypatch.context() as patch:
        patch.setattr(_choice, "mark", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert model.score(X, y) > 0.6
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert sum(each["taken"] for each in model.choice_) == (1 if model.choice_ else 0)
    same = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(same, clone(model).fit(X, y).predict_proba(X))


def test_where_nothing_is_tried_nothing_is_on_record():
    X, y = numbers()
    model = MixtureClassifier("auto", random_state=0, max_iter=4, tol=None).fit(X, y)
    assert model.choice_
    assert not model.set_params(n_components=2).fit(X, y).choice_
    assert not MultinomialNB(tol=None, max_iter=2).fit(*counts()).choice_
    assert str(model.choice_) == "nothing was tried"


def test_a_number_of_components_is_judged_by_all_rows_where_they_are_few(monkeypatch):
    """As the others are: one fifth after the other."""
    seen, real = [], _components.splits
    monkeypatch.setattr(
        _components,
        "splits",
        lambda *args, **options: seen.append(real(*args, **options)) or seen[-1],
    )
    MixtureClassifier("auto", random_state=0, max_iter=3, tol=None).fit(*numbers(100))
    assert sum(len(part.held) for part in seen[0]) == 100


# --- weighing -------------------------------------------------------------------------------------


def marks_of(points, n=3000, views=2, seed=0, weights=None):
    """Marks of models that give the right of three classes so many points, each with own noise."""
    codes, rng = labels(n, seed=seed), np.random.default_rng(seed)
    weights = np.ones(n) if weights is None else weights
    part = Split(weights, np.arange(n), codes, weights)
    right = codes[:, None] == np.arange(3)
    return [mark([part], [rng.normal(size=(views, n, 3)) + p * right]) for p in points]


def log_loss_of(weights, marks):
    """Of the arithmetic mean, over rows and views."""
    p = np.exp([-each.losses / each.weights for each in marks])
    return -(np.log(np.tensordot(weights, p, axes=1)) * marks[0].weights).mean()


@pytest.mark.parametrize("points", [(2.0,), (2.0, 2.0), (0.0, 1.0, 2.0), (2.0, -1.0, 2.2, 0.1)])
@pytest.mark.parametrize("n", [1, 20, 3000])
def test_weights_are_shares(points, n):
    found = weigh(marks_of(points, n))
    assert found.shape == (len(points),) and (found > 0).all()
    assert found.sum() == pytest.approx(1.0, rel=1e-12)


def test_a_candidate_that_equals_another_shares_with_it():
    one, other = marks_of((2.0, 1.5))
    alone, both = weigh([one, other], pseudo=0.0), weigh([one, one, other], pseudo=0.0)
    assert both[0] == pytest.approx(both[1], rel=1e-12)
    assert both[0] + both[1] == pytest.approx(alone[0], abs=0.02)
    order = weigh([other, one, one])
    np.testing.assert_allclose(order[::-1], weigh([one, one, other]), rtol=1e-12)


@pytest.mark.parametrize("n", [30, 3000])
def test_the_mean_is_not_behind_its_best_part(n):
    """But for what the pseudo-counts cost."""
    for seed in range(5):
        marks = marks_of((0.5, 1.0, 2.0), n, seed=seed)
        best = min(each.losses.mean() for each in marks)
        assert log_loss_of(weigh(marks, pseudo=0.0, rounds=2000), marks) <= best + 1e-6
        assert log_loss_of(weigh(marks), marks) <= best + 15.0 / (n + 15.0) * np.log(15.0)


def test_candidates_that_err_apart_do_better_together():
    marks = marks_of((1.5, 1.5, 1.5))
    assert log_loss_of(weigh(marks), marks) < min(each.losses.mean() for each in marks) - 0.02


def test_a_candidate_that_is_dominated_is_dropped():
    """Its weight is that of the pseudo-counts."""
    last = 1.0
    for n in (300, 3000, 30_000):
        one, _ = marks_of((2.0, 0.0), n)
        worse = one._replace(losses=one.losses + 1.0)  # less probable, every time
        found = weigh([one, worse])[1]
        assert found < last / 3 and found == pytest.approx(5.0 / n, rel=0.7)
        last = found


def test_views_of_a_row_are_one_row_and_weights_count_rows():
    marks = marks_of((2.0, 1.0), 200, views=1)
    thrice = [each._replace(losses=np.tile(each.losses, (3, 1))) for each in marks]
    np.testing.assert_allclose(weigh(thrice), weigh(marks), rtol=1e-12)
    heavy = np.where(np.arange(200) < 100, 1.0, 3.0)
    marks = marks_of((2.0, 1.0), 200, weights=heavy)
    rows = np.repeat(np.arange(200), heavy.astype(int))
    copies = [
        each._replace(losses=(each.losses / each.weights)[:, rows], weights=np.ones(400))
        for each in marks
    ]
    np.testing.assert_allclose(weigh(marks, pseudo=5.0), weigh(copies, pseudo=10.0), rtol=1e-9)


def test_views_of_a_row_are_no_more_evidence_for_a_temperature():
    codes = labels(6)
    scores = np.random.default_rng(0).normal(size=(1, 6, 3)) + 2.0 * np.eye(3)[codes]
    part = Split(np.ones(6), np.arange(6), codes, np.ones(6))
    once, often = mark([part], [scores]), mark([part], [np.tile(scores, (5, 1, 1))])
    assert often.temperature == pytest.approx(once.temperature, rel=1e-3)
    assert often.log_loss == pytest.approx(once.log_loss, rel=1e-6)


def test_a_chooser_weighs_what_it_tried():
    """Out of fold; the models of the folds are there to be averaged."""
    codes = labels(600)
    chooser = chooser_of(codes, parts=4, all_models=True)
    chooser.best_of({"points": p} for p in (0.0, 1.0, 3.0))
    weights = weigh([result.mark for result in chooser.results])
    choice = chooser.choice(weights)
    assert [each["weight"] for each in choice] == weights.tolist()
    assert weights.argmax() == 2 and all(each["taken"] for each in choice)
    assert [len(result.models) for result in chooser.results] == [4, 4, 4]
    result, part = chooser.results[2], chooser.parts[1]
    scores = chooser.score(result.options, part, result.models[1])
    tempered = log_softmax(result.mark.temperature * scores, axis=2)
    own = tempered[:, np.arange(len(part.held)), part.codes]
    np.testing.assert_allclose(-result.mark.losses[:, part.held], own)


def test_a_log_loss_does_not_make_up_for_likely_errors():
    def mark_of(right, loss):
        ones = np.ones(100)
        return Mark((np.arange(100) < right)[None], loss * ones[None], ones[None], ones, loss, 1.0)

    assert more_accurate(mark_of(90, 0.3), mark_of(90, 0.4))
    assert more_accurate(mark_of(91, 0.5), mark_of(89, 0.4))
    assert not more_accurate(mark_of(89, 0.3), mark_of(90, 0.4))
