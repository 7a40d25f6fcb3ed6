"""Running averages of states, means of states that were trained apart, and who owns a state."""

import copy
import itertools

import numpy as np
import pytest
import tiny
from tiny import flat

from discem import Check, constant, inverse, models
from discem.engines import Sequential
from discem.families import FAMILIES
from discem.losses import LOSSES, NCLL, NLL

every_family = pytest.mark.parametrize("family", FAMILIES)


def raw(model):
    """Class counts, and the values that are averaged: of words, expected counts."""
    block = model.features
    if block.family == "levels":
        block = FAMILIES["levels"].settled(block)
    if block.family == "words":
        return [model.classes.counts, tiny.means_of(block)]
    return [model.classes.counts, *block.values.values()]


# --- running averages -----------------------------------------------------------------------------


@every_family
@pytest.mark.parametrize("loss", ["ncll", "nll"])
@pytest.mark.parametrize("rho", [0.01, 0.3])
@pytest.mark.parametrize("batch", [1, 4])
def test_the_average_is_the_average_of_the_states(family, loss, rho, batch):
    """sum_t t^2 mu_t / sum_t t^2, also where decay makes the scale of words fold."""
    X, y = tiny.data(family, n=60)
    trained = tiny.learner(
        tiny.begin(family, X, y, average=True), loss, constant(rho), 60, batch=batch
    )
    total, weight = [0.0] * len(raw(trained.state)), 0.0
    for t in range(60 // batch):
        order = np.arange(t * batch, (t + 1) * batch)
        tiny.learn(trained, X, y, order)
        now = raw(tiny.plain(trained.state))
        total = [a + (t + 1) ** 2 * b for a, b in zip(total, now, strict=True)]
        weight += (t + 1) ** 2
    if (family, loss, rho, batch) == ("words", "nll", 0.3, 1):
        assert trained.state.features.lazy["scale"] > 1e-3 > (1 - rho) ** 60, "not folded"
    assert trained.state.weight == weight
    for got, expected in zip(raw(trained.model), total, strict=True):
        np.testing.assert_allclose(got, expected / weight, rtol=1e-7, atol=1e-12)


@every_family
@pytest.mark.parametrize("projection", [tiny.PLAIN, Check()], ids=["interior", "check"])
@pytest.mark.parametrize("batch", [1, 4])
def test_to_average_changes_nothing_else(family, projection, batch):
    """The states themselves are those of training without an average."""
    X, y = tiny.data(family, n=60)
    ends = []
    for average in (True, False):
        start = tiny.begin(family, X, y, average=average)
        trained = tiny.learner(start, NCLL(), constant(0.1), 60, batch, projection)
        ends.append(tiny.held(tiny.plain(tiny.learn(trained, X, y).state)))
    np.testing.assert_allclose(*ends, rtol=1e-12)


@every_family
@pytest.mark.parametrize("average", [True, False])
def test_no_step_moves_nothing(family, average):
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y, average=average)
    trained = tiny.learn(tiny.learner(start, NCLL(), constant(0.0), 12), X, y)
    for model in (trained.state, trained.model):
        np.testing.assert_allclose(tiny.scores(model, X), tiny.scores(start, X), rtol=1e-12)


def after_a_pass(family, loss="ncll", n=60, seed=0):
    """Rows, and a learner that has learnt them and keeps an average."""
    X, y = tiny.data(family, n=n, seed=seed)
    trained = tiny.learner(tiny.begin(family, X, y, average=True), loss, constant(0.05), n)
    return X, y, tiny.learn(trained, X, y)


@every_family
def test_an_average_may_be_put_in_its_place(family):
    """`with_past` makes another model the average so far; training weighs it as it is told to."""
    X, y, trained = after_a_pass(family)
    state, other = trained.state, tiny.begin(family, X, y, init="prior")
    state = copy.deepcopy(state).with_past(other, 7.0)
    np.testing.assert_allclose(flat_held(state.averaged()), flat_held(other), rtol=1e-9)
    assert state.weight == 7.0
    before = raw(tiny.plain(state))
    for got, old, new in zip(
        raw(state.averaged_in(3.0).averaged()), raw(other), before, strict=True
    ):
        np.testing.assert_allclose(got, 0.7 * old + 0.3 * new, rtol=1e-9)


def flat_held(model):
    return np.concatenate([part.ravel() for part in raw(model)])


@every_family
def test_an_average_may_be_made_lighter(family):
    """`forget` lets the past weigh what that of a few steps would; it stays where it is."""
    X, y, trained = after_a_pass(family)
    before = flat_held(trained.model)
    trained.forget(4)
    assert trained.state.weight == 1 + 4 + 9 + 16 and trained.rule.since == 56
    np.testing.assert_allclose(flat_held(trained.model), before, rtol=1e-9)
    now = flat_held(tiny.plain(tiny.learn(trained, X, y, order=np.arange(1)).state))
    np.testing.assert_allclose(flat_held(trained.model), (30 * before + 25 * now) / 55, rtol=1e-8)


# --- means of states ------------------------------------------------------------------------------


def trained_apart(family, average, n_parts=3):
    """Rows, states that were trained from one start on parts of them, and their sizes."""
    X, y = tiny.data(family, n=90)
    start, states = tiny.begin(family, X, y, average=average), []
    for part in np.array_split(np.arange(90), n_parts):
        trained = tiny.learner(start, NCLL(), constant(0.05), 90)
        states.append(tiny.learn(trained, X, y, order=part).state)
    return X, y, states, [2.0] + [1.0] * (n_parts - 1)


def statistics(model):
    """Class counts, masses, N and N mu, whose set is convex."""
    _p, (means,), (counts,) = tiny.parameters(model)
    return model.classes.counts, model.features.mass, counts, counts * means


@every_family
@pytest.mark.parametrize("average", [True, False])
def test_a_mean_of_states_is_that_of_their_statistics(family, average):
    """Of the states, and apart from it of their averages; and training goes on from it."""
    X, y, states, sizes = trained_apart(family, average)
    shares, mean = np.array(sizes) / sum(sizes), models.mean_of(states, sizes)
    assert mean.averages == average
    views = [tiny.plain, lambda state: state.averaged()]
    for take in views[: 1 + average]:
        apart = [statistics(take(state)) for state in states]
        classes, mass, counts, sums = (
            sum(share * part for share, part in zip(shares, parts, strict=True))
            for parts in zip(*apart, strict=True)
        )
        got = take(mean)
        np.testing.assert_allclose(got.classes.counts, classes, rtol=1e-9)
        np.testing.assert_allclose(got.features.mass, mass, rtol=1e-9)
        np.testing.assert_allclose(tiny.means_of(got.features), sums / counts, rtol=1e-9)
    if average:
        assert mean.weight == pytest.approx(shares @ [state.weight for state in states])
    more = tiny.learn(tiny.learner(mean, NCLL(), constant(0.05), 90), X, y)
    assert np.isfinite(tiny.scores(more.model, X)).all()


@every_family
@pytest.mark.parametrize("average", [True, False])
def test_the_mean_of_one_state_is_that_state(family, average):
    _, _, states, _ = trained_apart(family, average)
    for share in (1.0, 7.0):
        mean = models.mean_of(states[:1], [share])
        for one, other in ((mean, states[0]), (mean.averaged(), states[0].averaged())):
            np.testing.assert_allclose(tiny.held(one), tiny.held(other), rtol=1e-9)


@every_family
def test_a_mean_leaves_its_states_alone(family):
    _, _, states, sizes = trained_apart(family, True)
    before = [flat(state) for state in states]
    models.mean_of(states, sizes)
    for state, was in zip(states, before, strict=True):
        np.testing.assert_array_equal(flat(state), was)


@every_family
def test_parts_counted_apart_make_the_whole(family):
    """NLL, next to no prior: the state of the pooled statistics of parts, in units of the whole."""
    from test_generative import faint

    X, y = tiny.data(family, n=60)
    whole = tiny.begin(family, X, y, faint(family), alpha=1e-9)
    states, parts = [], (np.arange(60) % 4 == 0, np.arange(60) % 4 != 0)
    for part in parts:
        state = tiny.begin(family, X[part], y[part], faint(family), alpha=1e-9)
        states.append(state._replace(blocks=(in_units_of(whole.features, state.features),)))
    mean = models.mean_of(states, [part.sum() for part in parts])
    for got, expected in zip(statistics(mean), statistics(whole), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9)


def in_units_of(whole, block):
    """A Gaussian block held in the units of another."""
    if "shift" not in block.fixed:
        return block
    shift, scale = whole.fixed["shift"][:, None], whole.fixed["scale"][:, None]
    own, size = block.fixed["shift"][:, None], block.fixed["scale"][:, None]
    ratio = size / scale
    units = {"variance": ratio**2, "covariance": ratio[:, None] * ratio}
    values = {name: value * units[name] for name, value in block.values.items() if name in units}
    mean = (own + size * block.values["mean"] - shift) / scale
    return whole._replace(values={"mean": mean} | values)


# --- the owner of the state -----------------------------------------------------------------------


@every_family
def test_a_snapshot_brings_everything_back(family):
    """State, average and number of steps; and it can be used again."""
    X, y, trained = after_a_pass(family, n=30)
    kept = trained.snapshot()
    before = np.concatenate([flat(trained.state), flat(trained.model)])
    for _ in range(2):
        after = flat(tiny.learn(trained, X, y).model)
        trained.restore(kept)
        assert trained.t == 30
        now = np.concatenate([flat(trained.state), flat(trained.model)])
        np.testing.assert_array_equal(now, before)
        assert not np.array_equal(after, flat(trained.model))


def test_a_snapshot_has_the_beginning_of_its_average():
    """Else what went back to its start would average from a step that is yet to come."""
    X, y = tiny.data("gaussian", n=30)
    trained = tiny.learner(tiny.begin("gaussian", X, y, average=True), NCLL(), inverse(0.1), 30)
    kept = trained.snapshot()
    tiny.learn(trained, X, y).forget(3)
    assert trained.rule.since == 27
    trained.restore(kept)
    assert (trained.t, trained.rule.since) == (0, 0)


@every_family
def test_a_restart_goes_on_averaging(family):
    """The state is the only record of an average, and a learner that keeps one goes on to."""
    X, y, trained = after_a_pass(family, n=30)
    other = copy.deepcopy(trained.model)
    assert not other.averages
    trained.restart(other)
    assert trained.state.averages
    np.testing.assert_allclose(tiny.held(trained.model), tiny.held(other), rtol=1e-9)
    tiny.learn(trained, X, y)
    assert not np.allclose(tiny.held(trained.model), tiny.held(tiny.plain(trained.state)))
    never = tiny.learner(tiny.begin(family, X, y), NLL(), constant(0.05), 30)
    never.restart(other)
    assert not never.state.averages


@pytest.mark.parametrize(("family", "loss"), [*itertools.product(tiny.DENSE, LOSSES)])
def test_a_step_leaves_the_state_before_it_alone(family, loss):
    """Of dense families, which are never changed in place: an interruption finds a whole state."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y, average=True)
    before = flat(start).copy()
    tiny.learner(start, loss, constant(0.2), 12)
    for done in Sequential().learn(*pass_of(start, X, y, loss)):
        assert done.rows == 12
    np.testing.assert_array_equal(flat(start), before)


def pass_of(start, X, y, loss):
    from discem.engines import Data, Rule
    from discem.figures import FIGURES
    from discem.targets import labels

    rule = Rule(LOSSES[loss], tiny.PLAIN, constant(0.2), 12.0, 5)
    rows = start.family.view(X)
    return start, rule, 0, Data(rows, labels(y), np.ones(12)), np.arange(12), np.zeros(len(FIGURES))
