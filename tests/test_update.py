"""Laws of the one update: what a step does, to whom, and what it measures."""

import numpy as np
import pytest
import tiny

from discem import Check, Interior, constant, inverse
from discem.families import FAMILIES
from discem.figures import LOSS, ROWS, SHORTENED, WEIGHT
from discem.losses import LOSSES, NCLL, NLL, Hinge, value_and_weights
from discem.targets import UNKNOWN, label_sets, labels, soft_labels

every_family = pytest.mark.parametrize("family", FAMILIES)
every_loss = pytest.mark.parametrize("loss", LOSSES)
rng = np.random.default_rng(5)
TARGETS = {
    "labels": labels(np.arange(12) % 3),
    "sets": label_sets(rng.random((12, 3)) < [0.5, 0.5, 1.0]),
    "soft": soft_labels(rng.dirichlet(np.ones(3), 12)),
    "few": labels(np.where(np.arange(12) % 2, -1, np.arange(12) % 3)),
}
in_turn = tiny.in_turn("family, loss, targets", list(FAMILIES), list(LOSSES), TARGETS)


# --- a step is the five lines, and a batch is the mean of its rows --------------------------------


def target_of(targets, i):
    """The target of one row, as `value_and_weights` takes it."""
    if targets.plain:
        return int(targets.codes[i])
    return targets.share[i] > 0 if targets.codes[i] == -3 else targets.share[i]


@in_turn
def test_a_step_is_the_update_of_the_method(family, loss, targets):
    """N mu <- N mu + sum_i W_ik s(x_i) - decay N mu, by loops over rows and classes (n = inf)."""
    X, y = tiny.data(family)
    model, rho, weights = tiny.begin(family, X, y), 0.01, np.linspace(0.5, 1.5, 12)
    X = tiny.holed(family, X)
    after, judged, shortened = tiny.step(model, X, targets, loss, rho, weights=weights)
    assert shortened == 0
    (p, (means,), (counts,)), a = tiny.parameters(model), tiny.scores(model, X)
    sums, count, classes, decay = counts * means, counts.copy(), model.classes.counts.copy(), 0.0
    S, seen = tiny.statistics_of(model, X), tiny.seen_of(model.features, X)
    for i in range(12):
        target = target_of(targets, i)
        blank = np.ndim(target) == 0 and target < 0
        value, w = value_and_weights("nll" if blank else loss, a[i], target)
        assert judged.losses[i] == pytest.approx(value, abs=1e-12)
        for k in range(3):
            W = rho / 12 * weights[i] * w[k]
            sums[:, k] += W * S[i][:, k]
            count[:, k] += W * seen[i]
            classes[k] += W
            decay += W
    sums -= decay * counts * means
    count -= decay * counts * (family != "words")
    np.testing.assert_allclose(tiny.means_of(after.features), sums / count, rtol=1e-9)
    np.testing.assert_allclose(after.classes.counts, classes - decay * p, rtol=1e-10)


@in_turn
def test_the_step_of_a_batch_is_the_mean_of_the_steps_of_its_rows(family, loss, targets):
    """Of statistics, prior included, where nothing is clipped; so the order does not matter."""
    X, y = tiny.data(family)
    model, rho = tiny.begin(family, X, y), 1e-4
    X, start = tiny.holed(family, X), tiny.held(tiny.begin(family, X, y))
    whole, _, short = tiny.step(model, X, targets, loss, rho, n=12)
    moves = []
    for i in range(12):
        one, _, more = tiny.step(model, X[i : i + 1], targets.take([i]), loss, rho, n=12)
        moves.append(tiny.held(one) - start)
        short += more
    assert short == 0
    # means of factors move by S / N: their own count moves, too, which is of second order
    atol = 1e-9 if family == "words" else 30 * rho**2 * np.abs(start).max()
    np.testing.assert_allclose(tiny.held(whole) - start, np.mean(moves, axis=0), atol=atol)
    order = np.random.default_rng(0).permutation(12)
    shuffled, _, _ = tiny.step(model, X[order], targets.take(order), loss, rho, n=12)
    np.testing.assert_allclose(tiny.held(shuffled), tiny.held(whole), rtol=1e-9)


@every_family
@every_loss
@pytest.mark.parametrize("projection", [Interior(0.5, 0.05), Check()], ids=str)
def test_the_order_within_a_batch_does_not_matter(family, loss, projection):
    """Statistics are summed, and projected once; also where steps are far too large."""
    X, y = tiny.data(family, n=24)
    start, X = tiny.begin(family, X, y, average=True), tiny.holed(family, X)
    order = np.concatenate([np.random.default_rng(0).permutation(12) + 12 * b for b in (0, 1)])
    weights = np.linspace(0.5, 1.5, 24)
    ends = [
        tiny.run(start, X[o], y[o], loss, 5.0, 24, projection, batch=12, weights=weights[o])
        for o in (np.arange(24), order)
    ]
    assert ends[0][1][SHORTENED] > 0, "no step was shortened"
    np.testing.assert_allclose(tiny.flat(ends[0][0]), tiny.flat(ends[1][0]), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-8)


@every_family
@every_loss
def test_targets_of_all_kinds_teach_alike(family, loss):
    """A set of one and a certain share are the label."""
    X, y = tiny.data(family, n=30)
    start, onehot = tiny.begin(family, X, y), y[:, None] == np.arange(3)
    for batch in (1, 7):
        ends = [
            tiny.held(tiny.run(start, X, target, loss, 0.1, 30, batch=batch)[0])
            for target in (y, label_sets(onehot), soft_labels(onehot))
        ]
        for other in ends[1:]:
            np.testing.assert_allclose(other, ends[0], rtol=1e-9)


@every_family
def test_a_weight_of_two_is_two_rows_in_a_batch(family):
    X, y = tiny.data(family, n=6)
    start, weights = tiny.begin(family, X, y), np.array([2.0, 1.0, 1.0, 1.0, 2.0, 1.0])
    twice = np.repeat(np.arange(6), weights.astype(int))
    weighted, _, _ = tiny.step(start, X, y, NCLL(), 0.06, 10, weights=weights)
    repeated, _, _ = tiny.step(start, X[twice], y[twice], NCLL(), 0.08, 10)
    np.testing.assert_allclose(tiny.held(weighted), tiny.held(repeated), rtol=1e-9)


@tiny.in_turn(
    "family, loss, projection",
    list(FAMILIES),
    list(LOSSES),
    {"interior": Interior(), "cautious": Interior(caution=2.0), "check": Check()},
)
def test_rows_of_no_weight_teach_nothing(family, loss, projection):
    """Nor does a batch without rows, nor a step of size 0."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y, average=True)
    for rows, rho, weight in ((12, 0.1, 0.0), (0, 0.1, 1.0), (12, 0.0, 1.0)):
        after, _, _ = tiny.step(
            start, X[:rows], y[:rows], loss, rho, 12, projection, np.full(rows, weight)
        )
        np.testing.assert_allclose(tiny.held(after), tiny.held(start), rtol=1e-12)


# --- symmetry -------------------------------------------------------------------------------------


@every_family
@every_loss
def test_permuting_classes_permutes_the_result(family, loss):
    X, y = tiny.data(family, n=30)
    place, ends = np.array([2, 0, 1]), []  # class k is now called place[k]
    for codes in (y, place[y]):
        state, _ = tiny.run(tiny.begin(family, X, codes), X, codes, loss, 0.1, 30, batch=4)
        ends.append(tiny.scores(state, X))
    np.testing.assert_allclose(ends[1][:, place], ends[0], rtol=1e-9)


@every_family
@every_loss
def test_permuting_features_changes_nothing(family, loss):
    X, y = tiny.data(family, n=30)
    ends = []
    for view in (X, X[:, [2, 0, 1]]):
        state, _ = tiny.run(tiny.begin(family, view, y), view, y, loss, 0.1, 30, batch=4)
        ends.append(tiny.scores(state, view))
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-9)


@every_loss
def test_units_do_not_matter(loss):
    """Shifting and scaling columns shifts ln p(y, x) by the Jacobian alone (Gaussian)."""
    X, y = tiny.data("gaussian", n=30)
    scale, ends = np.array([1e-3, 10.0, 1e5]), []
    for view in (X, 7.0 + X * scale):
        state, _ = tiny.run(tiny.begin("gaussian", view, y), view, y, loss, 0.1, 30)
        ends.append(tiny.scores(state, view))
    np.testing.assert_allclose(ends[1] + np.log(scale).sum(), ends[0], rtol=1e-6)


# --- rows that say less ---------------------------------------------------------------------------


INDEPENDENT = [f for f in FAMILIES if FAMILIES[f].accepts.missing and f not in tiny.CORRELATED]


@pytest.mark.parametrize("family", INDEPENDENT)
@every_loss
def test_a_missing_cell_leaves_its_factors_to_the_prior(family, loss):
    """Without a prior they stay; with one they move as for a row that weighs next to nothing."""
    X, y = tiny.data(family)
    start, row = tiny.begin(family, X, y), X[:1].copy()
    code = [int(tiny.scores(start, X)[0].argmin())]
    row[0, 1] = np.nan
    per = len(tiny.means_of(start.features)) // 3
    own = slice(per, 2 * per) if per > 1 and "first" in start.features.fixed else slice(1, None, 3)
    ends = [start]
    for n, weight in ((np.inf, 1.0), (5.0, 1.0), (5e-9, 1e-9)):
        after, _, _ = tiny.step(start, row, code, loss, 1e-3, n, weights=np.full(1, weight))
        ends.append(after)
    old, still, pulled, idle = (tiny.means_of(end.features)[own] for end in ends)
    np.testing.assert_allclose(still, old, rtol=1e-12)
    assert not np.allclose(*(tiny.means_of(end.features) for end in ends[:2]), rtol=1e-9)
    np.testing.assert_allclose(pulled, idle, rtol=1e-4)


@every_family
def test_unlabelled_rows_are_learnt_but_not_measured(family):
    """A row without a label moves the model by NLL whatever the loss, and enters no figure."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y)
    ends = [tiny.run(start, X[:1], [-1], loss, 0.05, 12) for loss in LOSSES]
    for state, figures in ends:
        np.testing.assert_array_equal(tiny.flat(state), tiny.flat(ends[0][0]))
        assert figures[WEIGHT] == figures[5] == 0
    assert not np.allclose(tiny.held(ends[0][0]), tiny.held(start))


@every_family
@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_a_label_that_is_not_known_teaches_nothing(family, loss):
    """But for the prior: every class would be right."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y)
    after, _, _ = tiny.step(start, X, labels(np.full(12, UNKNOWN)), loss)
    np.testing.assert_allclose(tiny.held(after), tiny.held(start), rtol=1e-12)


# --- what a pass measures -------------------------------------------------------------------------


@every_family
@every_loss
@pytest.mark.parametrize("batch", [1, 6])
def test_figures_are_those_of_the_scores_before_each_step(family, loss, batch):
    """With rho = 0 a pass measures the model: mean losses and accuracy from its scores."""
    X, y = tiny.data(family, n=20)
    state = tiny.begin(family, X, y)
    a = tiny.scores(state, X)
    _, figures = tiny.run(state, X, y, loss, 0.0, 20, batch=batch)
    expected = {
        name: sum(value_and_weights(name, a[i], y[i])[0] for i in range(20)) for name in LOSSES
    }
    np.testing.assert_allclose(figures[2:5], [expected[k] for k in ("nll", "ncll", "hinge")])
    if loss == "hinge" and batch > 1:  # steps of several rows take one without edges
        soft = Hinge().smoothed(0.1)
        expected[loss] = sum(value_and_weights(soft, a[i], y[i])[0] for i in range(20))
    assert figures[LOSS] == pytest.approx(expected[loss])
    assert figures[5] == (a.argmax(axis=1) == y).sum()
    assert figures[WEIGHT] == figures[ROWS] == 20


@every_family
@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("loss", [NLL(), NCLL()], ids=["nll", "ncll"])
def test_pieces_are_the_whole(family, batch, loss):
    """A pass in pieces, by calls or by chunks, is the same pass: state, average, steps."""
    X, y = tiny.data(family, n=63)
    start = tiny.begin(family, X, y, average=True)

    def fresh():
        return tiny.learner(start, loss, inverse(0.1), 63, batch=batch)

    whole = tiny.learn(fresh(), X, y)
    halves = tiny.learn(fresh(), X, y, order=np.arange(28))
    tiny.learn(halves, X, y, order=np.arange(28, 63))
    for pieces in (halves, tiny.learn(fresh(), X, y, chunk=9), tiny.learn(fresh(), X, y, chunk=1)):
        assert pieces.t == whole.t == 63 // batch
        for one, other in ((pieces.state, whole.state), (pieces.model, whole.model)):
            np.testing.assert_allclose(tiny.flat(one), tiny.flat(other), rtol=1e-10, atol=1e-12)


@every_family
@every_loss
def test_training_lowers_every_loss_and_repeats_itself(family, loss):
    """From equal classes; the same rows in the same order give the same numbers."""
    X, y = tiny.data(family, n=60)
    start, ends = tiny.begin(family, X, y, init="prior", average=True), []
    for _ in range(2):
        trained = tiny.learner(start, loss, constant(0.2), 60, batch=6)
        for _ in range(8):
            tiny.learn(trained, X, y)
        ends.append(trained.model)
    before, after = (tiny.run(m, X, y, loss, 0.0)[1][LOSS] for m in (start, ends[0]))
    assert after < before - 1.0
    np.testing.assert_array_equal(tiny.flat(ends[0]), tiny.flat(ends[1]))
