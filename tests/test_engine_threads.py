"""Laws of training in parts: on threads, whose states are averaged."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
import tiny
from tiny import flat

from discem import inverse, models
from discem.engines import Data, Rule, Sequential, Threads, threads
from discem.families import FAMILIES, multiply
from discem.figures import FIGURES, ROWS
from discem.losses import LOSSES, NCLL
from discem.schedules import constant
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


@pytest.mark.parametrize("rho", [1e-4, 1e-2, 1.0])
def test_a_step_of_a_part_takes_fewer_rows_but_moves_no_less_than_one_of_the_whole(rho):
    rule = Rule(NCLL(), tiny.PLAIN, constant(rho), 6000.0, 400, by_row=True)
    taken = rule.of_part(0, 4.0).batch
    assert 100 <= taken <= 400
    assert taken in (100, 400) or 4.0 * rho * taken <= 0.4
    assert rule.of_part(0, 1.0) == rule


# --- how many parts and rounds --------------------------------------------------------------------


def numbers(n, d, K):
    rng = np.random.default_rng(0)
    y = np.arange(n) % K
    return rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(K, d))[y], y


def test_few_rows_stay_on_one_thread_and_many_do_not():
    """By the record of the family, and by what it costs to copy and average a state."""
    X, y = numbers(40, 50, 4)
    state, rows = tiny.begin("gaussian", X, y, K=4, average=True), tiny.view("gaussian", X)
    engine = Threads(8)
    assert engine.parts(state, rows, 1000) == 1
    assert engine.parts(state, rows, 60_000) == 3
    assert engine.parts(state, rows, 1_000_000) == 8
    wide, y = numbers(40, 5000, 4)
    state, rows = tiny.begin("gaussian", wide, y, K=4, average=True), tiny.view("gaussian", wide)
    assert engine.parts(state, rows, 900) == 2, "a part should have some rows"
    X = sp.random(50, 54_000, 84 / 54_000, format="csr", random_state=0)
    y = np.arange(50) % 20
    state = tiny.begin("words", X.toarray(), y, K=20, average=True)
    rows = FAMILIES["words"].view(X)
    assert engine.parts(state, rows, 11_293) == 1, "two threads take longer on 20 Newsgroups"
    assert engine.parts(state, rows, 120_000) == 3
    assert Threads(2).parts(state, rows, 120_000) == 2


def test_rounds_become_longer_and_end_in_time():
    """Parts meet often at first; an epoch of few rows is one round, a long one is several."""
    X, y = numbers(40, 50, 4)
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


def test_every_loss_can_be_learnt_in_parts():
    X, y, start = problem("gaussian")
    for loss in LOSSES.values():
        trained = learner(start, Split(3))
        trained.rule = trained.rule._replace(loss=loss)
        assert np.isfinite(tiny.scores(tiny.learn(trained, X, y).model, X)).all()
