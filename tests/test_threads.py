"""Laws of threads: who asks a model sees it before or after a change, never between."""

import copy
import os
import pickle
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import get_ident

import numpy as np
import pytest
from sklearn.base import clone

import discem
from discem import GaussianNB, MixtureClassifier, MultinomialNB, TextClassifier
from discem.engines import Sequential
from discem.estimators import _threads
from discem.estimators._threads import ModelLock, lent, reads, writes

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = RNG.normal(size=(60, 2)) + Y[:, None]
TEXTS = [f"a{k} word{i % 7} of document{i}" for i, k in enumerate(Y)]
SECONDS = 200  # that no test needs, unless a thread waits for ever


def in_thread(work, *args):
    """Start to work in a thread of its own; its `result` waits for the end."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work, *args)
    pool.shutdown(wait=False)
    return future


# --- models ---------------------------------------------------------------------------------------


class Paused(Sequential):
    """Takes a pass batch by batch, and waits in the middle of it."""

    def __init__(self):
        self.within, self.go_on = threading.Event(), threading.Event()

    def __deepcopy__(self, memo):
        return Sequential()

    def learn(self, state, rule, t, data, order, figures, chunk=0):
        for done in super().learn(state, rule, t, data, order, figures, 1):
            yield done
            if not self.within.is_set() and done.rows >= len(order) // 2:
                self.within.set()
                assert self.go_on.wait(SECONDS)


QUESTIONS = {
    "predict_proba": lambda model: model.predict_proba(X),
    "class_prior_": lambda model: model.class_prior_,
    "mean_": lambda model: model.mean_,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)).predict_proba(X),
    "deepcopy": lambda model: copy.deepcopy(model).predict_proba(X),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_nothing_is_seen_of_a_batch_that_is_not_done(ask):
    """Who asks meanwhile gets the answer of afterwards, and nothing else stays behind."""
    model = GaussianNB().partial_fit(X, Y)
    expected = ask(copy.deepcopy(model).partial_fit(X[::-1], Y[::-1]))
    engine = model.learner_.engine = Paused()
    writer = in_thread(model.partial_fit, X[::-1], Y[::-1])
    assert engine.within.wait(SECONDS)
    reader = in_thread(ask, model)
    time.sleep(0.05)
    assert not reader.done()
    engine.go_on.set()
    writer.result(SECONDS)
    np.testing.assert_array_equal(reader.result(SECONDS), expected)
    np.testing.assert_array_equal(ask(model), expected)


@pytest.mark.parametrize("name", ["TextClassifier", "TopicClassifier", "GaussianNB"])
def test_every_answer_is_that_of_a_state_before_or_after_a_batch(name, monkeypatch):
    """Eight threads ask while one learns new words and classes; benchmarks ask for longer."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import torture_threads

    errors = []
    seen = torture_threads.race(
        *torture_threads.STREAMS[name], seconds=0.7, n_batches=20, errors=errors
    )
    assert not errors, errors[:5]
    assert seen["of a state before the last"] > 20


@pytest.mark.parametrize("kind", [GaussianNB, MixtureClassifier, MultinomialNB, TextClassifier])
def test_a_callback_may_ask_and_so_may_the_threads_it_waits_for(kind):
    """They see what it sees; who would train in between waits."""
    asked = []
    given = TEXTS if kind is TextClassifier else np.abs(X)

    def callback(model, record):
        here = model.predict_proba(given)
        there = in_thread(model.predict_proba, given).result(SECONDS)
        copied = in_thread(copy.copy, model).result(SECONDS)
        np.testing.assert_array_equal(here, there)
        # during a fit words are in single precision, and copies in double
        np.testing.assert_allclose(here, copied.predict_proba(given), rtol=1e-4)
        asked.append(record)

    model = kind(max_iter=2, callback=callback, random_state=0)
    if kind is TextClassifier:
        model.set_params(loss="ncll", weighting="tfidf", temperature=1.0)
    elif kind is not MixtureClassifier:
        model.set_params(loss="ncll", tol=None)
    in_thread(model.fit, given, Y).result(SECONDS)
    assert len(asked) >= 2


def test_a_callback_may_change_the_model():
    """It is within the training, which has the model to itself."""
    model = GaussianNB(max_iter=3, tol=None, random_state=0)
    model.callback = lambda model, record: model.calibrate(X, Y).set_class_prior(None) is None
    in_thread(model.fit, X, Y).result(SECONDS)
    assert model.n_iter_ == 3


def test_a_failure_leaves_the_model_to_others():
    model = GaussianNB().partial_fit(X, Y)
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(X * np.inf, Y)
    with pytest.raises(ValueError, match="infinity"):
        model.predict(X * np.inf)
    in_thread(model.partial_fit, X, Y).result(SECONDS)


def test_locks_are_not_part_of_models(tmp_path):
    """Copies of all kinds have their own; where a model is gone, so is its lock."""
    model = TextClassifier(random_state=0).partial_fit(TEXTS, Y)
    model.save(tmp_path / "model.skops")
    alike = [copy.deepcopy(model), copy.copy(model), discem.load(tmp_path / "model.skops")]
    alike.append(pickle.loads(pickle.dumps(model)))
    with lent(model):
        for each in alike:
            each.partial_fit(TEXTS, Y)
    assert clone(model).fit(TEXTS, Y) is not None
    assert "lock" not in repr(vars(model)).lower()
    before = len(_threads._locks)
    del model, alike, each
    assert len(_threads._locks) < before


def test_copies_are_of_what_is_now():
    """What was copied does not change when the model does."""
    for model, given in ((GaussianNB(), X), (TextClassifier(), TEXTS)):
        model.partial_fit(given, Y)
        before = model.predict_proba(given)
        state = model.__getstate__()
        model.partial_fit(given, Y[::-1])
        other = type(model)()
        other.__setstate__(state)
        np.testing.assert_array_equal(other.predict_proba(given), before)


def test_warnings_name_the_line_that_called():
    """Whatever stands between it and the warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GaussianNB(max_iter=1, random_state=0).fit(X, Y)
        MultinomialNB(max_iter=1, loss="ncll", init="prior", tol=1e-9).fit(np.abs(X), Y)
        TextClassifier().partial_fit(TEXTS * 4, np.sort(np.tile(Y, 4)))
    assert len(caught) >= 3
    assert {warning.filename for warning in caught} == {__file__}


# --- the lock -------------------------------------------------------------------------------------


class Notes:
    """A model of nothing, that notes who is there."""

    def __init__(self):
        self.here, self.most, self.torn = 0, 0, False
        self.mutex = threading.Lock()

    @reads
    def look(self, seconds=0.0):
        with self.mutex:
            self.here += 1
            self.most = max(self.most, self.here)
        time.sleep(seconds)
        with self.mutex:
            self.here -= 1
        return self.torn

    @reads
    def look_twice(self, meanwhile=lambda: None):
        self.look()
        meanwhile()
        return self.look()

    @writes
    def change(self, seconds=0.0, meanwhile=lambda: None):
        self.torn = True
        meanwhile()
        time.sleep(seconds)
        self.torn = False
        return self.here

    @writes
    def change_twice(self):
        self.look()
        return self.change() + self.change()

    @reads
    def change_by_looking(self):
        with pytest.raises(RuntimeError, match="cannot be trained"):
            self.change()
        return get_ident() in _threads._locks[self].inside


def test_readers_read_together_and_writers_write_alone():
    notes = Notes()
    threads = [in_thread(notes.look, 0.2) for _ in range(4)]
    time.sleep(0.05)
    assert in_thread(notes.change).result(SECONDS) == 0
    assert not any(thread.result(SECONDS) for thread in threads)
    assert notes.most == 4


def test_a_thread_may_take_again_what_it_has():
    """Also while another waits to write, which goes before new readers."""
    notes = Notes()
    waiting = []

    def meanwhile():
        waiting.append(in_thread(notes.change))
        time.sleep(0.05)

    assert in_thread(notes.look_twice, meanwhile).result(SECONDS) is False
    assert waiting[0].result(SECONDS) == 0
    assert in_thread(notes.change_twice).result(SECONDS) == 0


def test_nobody_waits_for_ever():
    """Neither a writer among busy readers, nor readers beside a busy writer."""
    notes, done = Notes(), threading.Event()

    def busy(work):
        times = 0
        while not done.is_set():
            work()
            times += 1
        return times

    readers = [in_thread(busy, notes.look) for _ in range(4)]
    writer = in_thread(busy, notes.change)
    time.sleep(0.5)
    done.set()
    assert all(reader.result(SECONDS) > 10 for reader in readers)
    assert writer.result(SECONDS) > 10


def test_training_within_a_prediction_is_refused():
    notes = Notes()
    assert notes.change_by_looking()  # and it still has what it had
    assert notes.change() == 0


def test_what_is_lent_can_be_read_but_not_written():
    notes, order = Notes(), []

    def meanwhile():
        with lent(notes):
            other.append(in_thread(lambda: order.append(notes.change())))
            time.sleep(0.05)
            assert in_thread(notes.look).result(SECONDS)
        order.append("mine")

    other = []
    notes.change(meanwhile=meanwhile)
    other[0].result(SECONDS)
    assert order == ["mine", 0]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer of POSIX")
def test_ctrl_c_leaves_no_lock_behind():
    """Wherever it strikes: waiting, inside, coming and going."""
    notes, done = Notes(), threading.Event()

    def busy():
        while not done.is_set():
            notes.change()

    def strike(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, strike)
    writer = in_thread(busy)
    struck = 0
    try:
        for i in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + 1e-6 * i)
                while True:
                    _, _ = notes.look(), notes.change()
            except KeyboardInterrupt:
                struck += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        done.set()
    writer.result(SECONDS)
    assert struck == 300
    notes.mutex = threading.Lock()
    assert in_thread(notes.change).result(SECONDS) >= 0
    lock: ModelLock = _threads._locks[notes]
    assert not lock.inside and not lock.queue


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_wait_for_threads_of_its_parent():
    notes = Notes()
    writer = in_thread(notes.change, 0.5)
    time.sleep(0.05)
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        notes.look()
        os._exit(notes.change())
    assert os.waitpid(child, 0)[1] == 0
    writer.result(SECONDS)
