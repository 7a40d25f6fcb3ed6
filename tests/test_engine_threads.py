"""Laws of training in parts: on threads, whose states are averaged."""

import copy
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import tiny
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_estimators import expected_failures
from tiny import flat

import discem
from discem import (
    GaussianNB,
    MixtureClassifier,
    MultinomialNB,
    TextClassifier,
    TopicClassifier,
    constant,
    inverse,
    models,
)
from discem.datasets import DataNotFoundError, load_text
from discem.engines import Data, Rule, Sequential, Threads, count_jobs, threads
from discem.exceptions import OptionError
from discem.families import FAMILIES, multiply
from discem.figures import FIGURES, ROWS
from discem.losses import LOSSES, NCLL
from discem.targets import labels
from discem.training import Learner

every_family = pytest.mark.parametrize("family", FAMILIES)


class Split(Threads):
    """Threads for few rows, too: as many parts as are asked for."""

    def parts(self, state, rows, n_rows):
        return self.n_jobs


def learner(start, engine, batch=1, n=60, schedule=None):
    rule = Rule(NCLL(), tiny.PLAIN, schedule or inverse(0.1), float(n), batch)
    return Learner(copy.deepcopy(start), rule, engine)


def problem(family, n=60):
    X, y = tiny.data(family, n=n)
    return X, y, tiny.begin(family, X, y, average=True)


@pytest.fixture
def split(monkeypatch):
    """Let few rows be worth a thread, for estimators."""
    monkeypatch.setattr(Threads, "parts", Split.parts)


# --- the engine -----------------------------------------------------------------------------------


@every_family
@pytest.mark.parametrize("batch", [1, 7])
def test_engines_can_be_exchanged(family, batch):
    """One thread is the sequential engine, to the last bit; so are few rows on many."""
    X, y, start = problem(family)
    ends = []
    for engine in (Sequential(), Split(1), Threads(1), Threads(8)):
        trained = tiny.learn(learner(start, engine, batch), X, y, chunk=14)
        ends.append(np.concatenate([flat(trained.state), flat(trained.model), [trained.t]]))
    for end in ends[1:]:
        np.testing.assert_array_equal(end, ends[0])


@every_family
@pytest.mark.parametrize("batch", [1, 7])
def test_a_round_is_the_mean_of_its_parts(family, batch):
    """Each part takes every P-th step, with its number in the whole, as its family scales it."""
    X, y, start = problem(family)
    P, n, schedule = 3, 60, inverse(0.1)
    trained = tiny.learn(learner(start, Split(P), batch), X, y)
    states, sizes = [], []
    for place in range(P):
        own = np.arange(n)[np.arange(n) // batch % P == place]
        numbers = np.arange(-(-n // batch))[place::P] + 1
        rho = FAMILIES[family].step_of_part(schedule(numbers), P)
        alone = learner(start, Sequential(), batch, schedule=Replay(rho))
        states.append(tiny.learn(alone, X, y, order=own).state)
        sizes.append(len(own))
    mean = models.mean_of(states, sizes)
    np.testing.assert_allclose(*(tiny.held(end) for end in (trained.state, mean)), rtol=1e-9)
    assert trained.t == -(-n // batch)


class Replay:
    """Steps of given sizes, one after the other."""

    def __init__(self, rho):
        self.rho = rho

    def __call__(self, t):
        return self.rho[np.asarray(t, dtype=int) - 1]


@every_family
def test_the_average_weighs_what_that_of_one_thread_does(family):
    """So that a stream, or one thread, can go on from it."""
    X, y, start = problem(family)
    weights = [
        tiny.learn(learner(start, engine), X, y).state.weight for engine in (Sequential(), Split(3))
    ]
    assert weights[1] == pytest.approx(weights[0], rel=0.01)


@every_family
def test_the_mean_with_a_state_that_has_no_average_yet(family):
    """Its average, of nothing, is itself."""
    X, y, start = problem(family)
    after = tiny.learn(learner(start, Sequential()), X, y).state
    mean = models.mean_of([start, after], [1, 1]).averaged()
    pair = [start.averaged(), after.averaged()]
    expected = models.mean_of(pair, [1, 1])
    np.testing.assert_allclose(tiny.scores(mean, X), tiny.scores(expected, X), rtol=1e-9)


def test_products_of_families_can_be_learnt_in_parts():
    """With the smaller of their steps."""
    both = multiply(FAMILIES["gaussian"], FAMILIES["words"])
    assert both.step_of_part(np.ones(1), 4) == 1.0
    assert both.least_rows == FAMILIES["gaussian"].least_rows
    assert both.least_visits == max(each.least_visits for each in both.factors)
    y = np.arange(60) % 3
    X = both.example(y, (2, 3), np.random.default_rng(0))
    start = tiny.begin(both, X, y, average=True)
    trained = tiny.learn(learner(start, Split(3)), X, y)
    assert np.isfinite(tiny.scores(trained.model, X)).all()


@every_family
def test_figures_are_those_of_all_rows(family):
    X, y, start = problem(family)
    figures = np.zeros(len(FIGURES))
    data = Data(tiny.view(family, X), labels(y), np.ones(60))
    rule = Rule(NCLL(), tiny.PLAIN, constant(0.0), 60.0, 1)
    ends = []
    for engine in (Sequential(), Split(4)):
        figures = np.zeros(len(FIGURES))
        done = list(engine.learn(copy.deepcopy(start), rule, 0, data, np.arange(60), figures))
        assert (done[-1].rows, done[-1].t) == (60, 60)
        ends.append(figures)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-12)
    assert ends[1][ROWS] == 60


@every_family
def test_scores_are_those_of_one_thread(family, monkeypatch):
    monkeypatch.setattr(threads, "_SCORED", 10.0)
    X, _, start = problem(family)
    rows = tiny.view(family, X)
    for order in (None, np.array([3, 1, 40, 2])):
        expected = Sequential().score(start, rows, order)
        np.testing.assert_allclose(Threads(3).score(start, rows, order), expected, rtol=1e-13)
    assert Threads(3).score(start, rows, np.arange(0)).shape == (0, 3)


# --- how many parts and rounds --------------------------------------------------------------------


def many_rows(n, d, K):
    rng = np.random.default_rng(0)
    y = np.arange(n) % K
    return rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(K, d))[y], y


def test_few_rows_stay_on_one_thread_and_many_do_not():
    """By the record of the family, and by what it costs to copy and average a state."""
    X, y = many_rows(40, 50, 4)
    state, rows = tiny.begin("gaussian", X, y, K=4, average=True), tiny.view("gaussian", X)
    engine = Threads(8)
    assert engine.parts(state, rows, 1000) == 1
    assert engine.parts(state, rows, 60_000) == 3
    assert engine.parts(state, rows, 1_000_000) == 8
    wide, y = many_rows(40, 5000, 4)
    state, rows = tiny.begin("gaussian", wide, y, K=4, average=True), tiny.view("gaussian", wide)
    assert engine.parts(state, rows, 900) == 2, "a part should have some rows"
    X = sp.random(50, 54_000, 84 / 54_000, format="csr", random_state=0)
    y = np.arange(50) % 20
    state = tiny.begin("words", X.toarray(), y, K=20, average=True)
    assert engine.parts(state, FAMILIES["words"].view(X), 11_293) == 4  # about 20 Newsgroups
    assert Threads(2).parts(state, FAMILIES["words"].view(X), 11_293) == 2


def test_rounds_become_longer_and_end_in_time():
    """Parts meet often at first; an epoch of few rows is one round, a long one is several."""
    X, y = many_rows(40, 50, 4)
    state, rows = tiny.begin("gaussian", X, y, K=4, average=True), tiny.view("gaussian", X)
    data, rule = Data(rows, labels(y), np.ones(40)), Rule(NCLL(), None, None, 1e5, 1)
    first = np.diff(Threads(4).rounds(state, rule, 0, data, 100_000, 4, 20_000))
    assert first.sum() == 100_000 and first[0] == 400 and (np.diff(first[:-1]) >= 0).all()
    assert first.max() <= 1.5 * 80_000
    later = np.diff(Threads(4).rounds(state, rule, 400_000, data, 100_000, 4, 20_000))
    assert len(later) < len(first) / 3
    assert Threads(4).rounds(state, rule, 0, data, 500, 4, 20_000) == [0, 500]
    batches = Threads(4).rounds(state, rule._replace(batch=64), 0, data, 100_000, 4, 20_000)
    assert not (np.array(batches[:-1]) % 64).any() and batches[-1] == 100_000


def test_what_n_jobs_means():
    assert count_jobs(None) == 1
    assert count_jobs(3) == count_jobs(np.int64(3)) == 3
    assert count_jobs(-1) >= 1
    assert count_jobs(-1000) == 1
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(OptionError, match="n_jobs="):
            count_jobs(wrong)
        with pytest.raises(OptionError, match="n_jobs="):
            TextClassifier(n_jobs=wrong).fit(["a", "b"], [0, 1])


# --- estimators -----------------------------------------------------------------------------------


def counts(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    rates = np.where(np.arange(40) % 4 == y[:, None], 0.9, 0.4)
    return sp.csr_matrix(rng.poisson(rates).astype(float)), y


def numbers(n=240):
    return many_rows(n, 6, 4)


ESTIMATORS = {
    "GaussianNB": (GaussianNB(max_iter=5), numbers),
    "MultinomialNB": (MultinomialNB(loss="ncll"), counts),
    "MixtureClassifier": (MixtureClassifier(max_iter=5), numbers),
    "mixture of words": (MixtureClassifier(max_iter=5), counts),
    "TopicClassifier": (TopicClassifier(max_iter=4), counts),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@every_estimator
def test_the_same_seed_and_threads_give_the_same_model(name, split):
    """To the last bit, whatever thread comes first; and one thread is what it always was."""
    kind, data = ESTIMATORS[name]
    X, y = data()
    scores = {}
    for jobs in (None, 1, 3, 3, 3):
        model = clone(kind).set_params(n_jobs=jobs, random_state=0).fit(X, y)
        found = model.predict_joint_log_proba(X)
        np.testing.assert_array_equal(scores.setdefault(jobs or 1, found), found)
    assert not np.array_equal(scores[1], scores[3]), "threads were not used"


@every_estimator
def test_threads_learn_as_well(name, split):
    """On rows that were not seen."""
    kind, data = ESTIMATORS[name]
    X, y = data(4000)
    (X, y), (fresh, own) = (X[::2], y[::2]), (X[1::2], y[1::2])
    y, own = y.copy(), own.copy()
    accuracy = {}
    for jobs in (None, 4):
        model = clone(kind).set_params(n_jobs=jobs, random_state=0).fit(X, y)
        accuracy[jobs] = model.score(fresh, own)
    assert accuracy[4] > accuracy[None] - 0.02


def test_a_stream_of_large_batches_uses_threads_and_small_ones_do_not(monkeypatch):
    X, y = numbers(2000)
    monkeypatch.setattr(FAMILIES["gaussian"], "least_visits", 12_000.0, raising=False)
    ends = []
    for jobs in (None, 4):
        model = GaussianNB(n_jobs=jobs, random_state=0)
        for part in np.array_split(np.arange(2000), 20):
            model.partial_fit(X[part], y[part])
        ends.append(model.predict_joint_log_proba(X))
    np.testing.assert_array_equal(*ends)
    large = [
        GaussianNB(n_jobs=jobs, random_state=0).partial_fit(X, y).partial_fit(X, y)
        for jobs in (None, 4)
    ]
    one, many = (model.predict_joint_log_proba(X) for model in large)
    assert not np.array_equal(one, many)
    assert large[1].score(X, y) > large[0].score(X, y) - 0.02
    assert large[1].stream_["rows"] == 4000


def test_n_jobs_is_an_option_and_no_part_of_the_model(tmp_path, split):
    """It goes to files and back, and may be changed at any time."""
    X, y = numbers()
    model = GaussianNB(max_iter=3, n_jobs=3, random_state=0).fit(X, y)
    model.save(tmp_path / "model.skops")
    loaded = discem.load(tmp_path / "model.skops")
    assert loaded.n_jobs == 3
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    again = [copy.deepcopy(each).partial_fit(X, y).predict_proba(X) for each in (model, loaded)]
    np.testing.assert_array_equal(*again)
    loaded.set_params(n_jobs=None).partial_fit(X, y)
    assert isinstance(loaded.learner_.engine, Sequential)
    assert not isinstance(loaded.learner_.engine, Threads)


def test_golden_files_have_no_threads_and_can_use_them():
    for path in (Path(__file__).parent / "golden").glob("[!f]*.skops"):  # but for format-1
        assert discem.load(path).n_jobs is None


def test_choices_do_not_depend_on_threads(split):
    X, y = counts(400)
    chosen = [MultinomialNB(n_jobs=jobs, random_state=0).fit(X, y).chosen_ for jobs in (None, 3)]
    assert chosen[0] == chosen[1]


@parametrize_with_checks(
    [GaussianNB(n_jobs=2), MultinomialNB(n_jobs=2)], expected_failed_checks=expected_failures
)
def test_scikit_learn_is_content_with_threads(estimator, check):
    check(estimator)


# --- interruptions --------------------------------------------------------------------------------


def test_ctrl_c_leaves_the_model_of_the_last_round(monkeypatch):
    """A whole one: what threads do meanwhile is to no one's harm, and they end soon."""
    X, y = numbers(300)
    rounds, go = [], threading.Event()
    learn = threads.take_steps

    def slow(state, rule, t, *args):
        yield from learn(state, rule, t, *args)
        if t >= 300:  # in the second epoch
            go.set()
            time.sleep(0.3)

    monkeypatch.setattr(threads, "take_steps", slow)
    monkeypatch.setattr(Threads, "parts", Split.parts)
    model = GaussianNB(n_jobs=3, random_state=0, max_iter=5, tol=None)
    model.callback = lambda model, record: rounds.append(model.predict_joint_log_proba(X)) and None

    def strike():
        go.wait(100)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=strike).start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(rounds) == model.n_iter_ < 5
    assert model.learner_.t == 300
    np.testing.assert_array_equal(model.predict_joint_log_proba(X), rounds[-1])
    model.partial_fit(X, y)  # and it can learn on


def test_a_lack_of_memory_is_said(monkeypatch, split):
    def none_left(state):
        raise MemoryError

    X, y = numbers()
    monkeypatch.setattr(threads, "copied", none_left)
    with pytest.raises(MemoryError, match="n_jobs=3: 3 threads need memory for 5 models"):
        GaussianNB(n_jobs=3).fit(X, y)


def test_an_error_in_a_thread_is_that_of_the_fit(split):
    def broken(t):
        raise ZeroDivisionError("no step")

    X, y = numbers()
    with pytest.raises(ZeroDivisionError, match="no step"):
        GaussianNB(n_jobs=3, step=broken).fit(X, y)


# --- data sets that are not bundled ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["r52", "20ng"])
def test_threads_are_as_good_on_text(name):
    """Within half a point of one thread, where the data are there."""
    try:
        (texts, y), (fresh, own) = load_text(name, None), load_text(name, None, "test")
    except DataNotFoundError:
        pytest.skip("no data")
    options = {"loss": "ncll", "weighting": "tfidf", "temperature": 1.0, "max_iter": 5}
    accuracy = [
        TextClassifier(n_jobs=jobs, random_state=0, **options).fit(texts, y).score(fresh, own)
        for jobs in (None, 8)
    ]
    assert accuracy[1] > accuracy[0] - 0.005


def test_every_loss_can_be_learnt_in_parts():
    X, y, start = problem("gaussian")
    for loss in LOSSES.values():
        trained = learner(start, Split(3))
        trained.rule = trained.rule._replace(loss=loss)
        assert np.isfinite(tiny.scores(tiny.learn(trained, X, y).model, X)).all()
