"""Laws of `n_jobs`: estimators that learn on threads."""

import copy
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from checks import data_checks
from lab.datasets import DataNotFoundError, load_text
from sklearn.base import clone
from test_estimators import expected_failures

import discem
from discem import GaussianNB, MixtureClassifier, MultinomialNB, TextClassifier, TopicClassifier
from discem.engines import Sequential, Threads, count_jobs, threads
from discem.exceptions import OptionError
from discem.families import FAMILIES


@pytest.fixture
def split(monkeypatch):
    """Let few rows be worth a thread."""
    monkeypatch.setattr(Threads, "parts", lambda self, state, rows, n_rows: self.n_jobs)


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


def many_rows(n, d, K):
    rng = np.random.default_rng(0)
    y = np.arange(n) % K
    return rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(K, d))[y], y


def counts(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    rates = np.where(np.arange(40) % 4 == y[:, None], 0.9, 0.4)
    return sp.csr_matrix(rng.poisson(rates).astype(float)), y


def numbers(n=240):
    return many_rows(n, 6, 4)


ESTIMATORS = {
    "GaussianNB": (GaussianNB(max_iter=5, batch_size=8), numbers),
    "MultinomialNB": (MultinomialNB(loss="ncll", tol=None, max_iter=5, batch_size=16), counts),
    "MixtureClassifier": (MixtureClassifier(max_iter=5, batch_size=8), numbers),
    "mixture of words": (MixtureClassifier(max_iter=5, batch_size=8), counts),
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
    X, y = data(2000)
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
    model = MultinomialNB(batch_size=16, random_state=0)
    chosen = [clone(model).set_params(n_jobs=jobs).fit(X, y).chosen_ for jobs in (None, 3)]
    assert chosen[0] == chosen[1]


@data_checks([GaussianNB(n_jobs=2)], expected_failures)
def test_scikit_learn_is_content_with_threads(estimator, check, split):
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
    monkeypatch.setattr(Threads, "parts", lambda self, state, rows, n_rows: self.n_jobs)
    model = GaussianNB(n_jobs=3, random_state=0, max_iter=5, tol=None, batch_size=1)
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
        GaussianNB(n_jobs=3, batch_size=8).fit(X, y)


def test_an_error_in_a_thread_is_that_of_the_fit(split):
    def broken(t):
        raise ZeroDivisionError("no step")

    X, y = numbers()
    with pytest.raises(ZeroDivisionError, match="no step"):
        GaussianNB(n_jobs=3, step=broken).fit(X, y)


# --- data sets that are not bundled ---------------------------------------------------------------


def test_threads_are_as_good_on_text():
    """Within half a point of one thread, where the data are there."""
    try:
        (texts, y), (fresh, own) = load_text("r52", None), load_text("r52", None, "test")
    except DataNotFoundError:
        pytest.skip("no data")
    options = {"loss": "ncll", "weighting": "tfidf", "temperature": 1.0, "max_iter": 8}
    accuracy = [
        TextClassifier(n_jobs=jobs, random_state=0, **options).fit(texts, y).score(fresh, own)
        for jobs in (None, 8)
    ]
    assert accuracy[1] > accuracy[0] - 0.005
