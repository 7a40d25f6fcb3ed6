"""Laws of the sequential engine."""

import copy

import numpy as np
import pytest
import tiny
from tiny import flat

from discem import Check, Interior, NormalGamma, constant, inverse, models
from discem.engines import Engine, Rule, Sequential, check_needs
from discem.engines.sequential import sweep
from discem.exceptions import OptionError
from discem.families import FAMILIES, Family, gaussian, settle
from discem.losses import LOSSES, NCLL, NLL
from discem.targets import label_sets, soft_labels
from discem.training import Learner

every_family = pytest.mark.parametrize("family", FAMILIES)
compiled = pytest.mark.parametrize("family", tiny.OWN)
every_loss = pytest.mark.parametrize("loss", LOSSES)


# --- compiled = plain -----------------------------------------------------------------------------


@compiled
@every_loss
@pytest.mark.parametrize("projection", [Interior(0.5, 1.0), Check()], ids=str)
def test_compiled_is_plain(family, loss, projection):
    """The compiled sweep is the same function as its source, on a short horizon."""
    X, y = tiny.data(family, n=20)
    y[3] = -1
    if FAMILIES[family].accepts.missing:
        X[5, 0] = np.nan
    start = tiny.begin(family, X, y, average=True)
    weights = np.linspace(0.5, 1.5, 20)
    for batch in (1, 6):
        results = []
        for function in (sweep, sweep.plain):
            state, figures = tiny.run(
                start, X, y, LOSSES[loss], 0.2, 20, projection, batch, weights, function
            )
            results.append(np.concatenate([flat(state), figures]))
        np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-11)
        assert not np.allclose(results[0][: flat(start).size], flat(start)), "nothing moved"


# --- NLL is the generative estimate ---------------------------------------------------------------


def test_one_full_batch_of_nll_is_the_map_gaussian():
    """From the prior, rho = n / (n + nu): (nu mu0 + sum s) / (n + nu), the closed-form MAP."""
    X, y = tiny.data("gaussian", n=30)
    n, K, alpha = 30, 3, 2.0
    prior = NormalGamma(alpha, alpha, mean=0.5, variance=4.0)
    state = tiny.begin("gaussian", X, y, prior, alpha, init="prior")  # at mass K
    state.classes.counts[:] /= K
    state.features.mass[:] /= K
    state = state._replace(classes=state.classes._replace(nu=alpha * K))
    rho = n / (n + alpha * K)
    after, _ = tiny.run(state, X, y, NLL(), rho, n, Interior(0.9999, 0.0), batch=n)
    p, (m, v) = tiny.parameters(after)[0], gaussian.moments(after.features)
    for k in range(K):
        own = X[y == k]
        assert p[k] == pytest.approx((len(own) + alpha) / (n + alpha * K))
        first = (own.sum(axis=0) + alpha * 0.5) / (len(own) + alpha)
        second = ((own**2).sum(axis=0) + alpha * (4.0 + 0.25)) / (len(own) + alpha)
        np.testing.assert_allclose(m[k], first, rtol=1e-10)
        np.testing.assert_allclose(v[k] + m[k] ** 2, second, rtol=1e-10)
    closed = tiny.begin("gaussian", X, y, prior, alpha)
    np.testing.assert_allclose([m, v], gaussian.moments(closed.features), rtol=1e-10)


def test_one_full_batch_of_nll_is_the_map_words():
    """From anywhere, rho = 1: the statistics of the data plus the prior (here nu = 0)."""
    X, y = tiny.data("words", n=30)
    state = tiny.begin("words", X, y, init="prior")
    after, _ = tiny.run(state, X, y, NLL(), 1.0, 30, Check(), batch=30)
    expected = np.stack([X[y == k].sum(axis=0) + 1.0 for k in range(3)])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tiny.parameters(after)[1][:, 0], expected, rtol=1e-9)


@every_family
def test_the_generative_start_is_stationary_under_nll(family):
    """The full-batch NLL step vanishes, to first order in rho, at the closed-form estimate."""
    X, y = tiny.data(family, n=30)
    start, rho = tiny.begin(family, X, y), 1e-6
    after, _ = tiny.run(start, X, y, NLL(), rho, 30, batch=30)
    for new, old in zip(tiny.parameters(after)[:2], tiny.parameters(start)[:2], strict=True):
        np.testing.assert_allclose((new - old) / rho, 0.0, atol=1e-4)


@every_family
def test_sequential_nll_converges_to_the_generative_estimate(family):
    """With rho = 1 / (1 + t) from the prior, passes over the data end at the closed form."""
    X, y = tiny.data(family, n=300)
    trained = tiny.learner(tiny.begin(family, X, y, init="prior"), NLL(), inverse(1.0), 300)
    target, gaps = tiny.parameters(tiny.begin(family, X, y)), []
    for _ in range(30):
        tiny.learn(trained, X, y)
        now = tiny.parameters(trained.state)
        off = [np.abs(now[j] - target[j]).max() / np.abs(target[j]).max() for j in (0, 1)]
        gaps.append(max(off))
    assert gaps[-1] < 2e-3
    assert gaps[-1] < 0.2 * gaps[0]


# --- symmetry -------------------------------------------------------------------------------------


@every_family
@every_loss
def test_permuting_classes_permutes_the_result(family, loss):
    """Scores of class k come from the rows of class k, whatever its number."""
    X, y = tiny.data(family, n=30)
    place = np.array([2, 0, 1])  # class k is now called place[k]
    ends = []
    for codes in (y, place[y]):
        state, _ = tiny.run(tiny.begin(family, X, codes), X, codes, LOSSES[loss], 0.1, 30)
        ends.append(tiny.scores(state, X))
    np.testing.assert_allclose(ends[1][:, place], ends[0], rtol=1e-9)


@every_family
@every_loss
def test_permuting_features_changes_nothing(family, loss):
    """Scores do not depend on the order of the columns."""
    X, y = tiny.data(family, n=30)
    ends = []
    for view in (X, X[:, [2, 0, 1]]):
        state, _ = tiny.run(tiny.begin(family, view, y), view, y, LOSSES[loss], 0.1, 30)
        ends.append(tiny.scores(state, view))
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-9)


@every_loss
def test_units_do_not_matter(loss):
    """Shifting and scaling columns shifts ln p(y, x) by the Jacobian alone (Gaussian)."""
    X, y = tiny.data("gaussian", n=30)
    scale, ends = np.array([1e-3, 10.0, 1e5]), []
    for view in (X, 7.0 + X * scale):
        state, _ = tiny.run(tiny.begin("gaussian", view, y), view, y, LOSSES[loss], 0.1, 30)
        ends.append(tiny.scores(state, view))
    np.testing.assert_allclose(ends[1] + np.log(scale).sum(), ends[0], rtol=1e-6)


# --- missing cells --------------------------------------------------------------------------------


@every_loss
def test_a_missing_cell_moves_no_moment(loss):
    """Without a prior (n = inf) the factors of a missing cell stay; the others move."""
    X, y = tiny.data("gaussian")
    start = tiny.begin("gaussian", X, y)
    row, code = X[:1].copy(), [int(tiny.scores(start, X)[0].argmin())]
    row[0, 1] = np.nan
    after, _ = tiny.run(start, row, code, LOSSES[loss], 0.05, np.inf)
    old, new = start.features.factors, after.features.factors
    np.testing.assert_allclose(new[..., 1], old[..., 1], rtol=1e-12)
    seen = gaussian.MEAN, code[0], [0, 2]
    assert not np.isclose(new[seen], old[seen]).any()


@every_loss
def test_a_missing_cell_leaves_its_factors_to_the_prior(loss):
    """With a prior they move as they would for a row that weighs nothing beside it."""
    X, y = tiny.data("gaussian")
    start = tiny.begin("gaussian", X, y)
    row = X[:1].copy()
    row[0, 1] = np.nan
    after, _ = tiny.run(start, row, y[:1], LOSSES[loss], 1e-3, 5.0)
    idle, _ = tiny.run(start, row, y[:1], LOSSES[loss], 1e-3, 5e-9, weights=np.full(1, 1e-9))
    new, expected = after.features.factors[..., 1], idle.features.factors[..., 1]
    np.testing.assert_allclose(new, expected, rtol=1e-5)
    assert not np.allclose(expected, start.features.factors[..., 1], rtol=1e-8)


def test_an_empty_row_scores_its_class_shares():
    """A row with nothing in it has ln p(y, x) = ln p(y)."""
    for family, of in FAMILIES.items():
        nothing = np.nan if of.accepts.missing else 0.0
        X, y = tiny.data(family)
        state = tiny.begin(family, X, y)
        got = tiny.scores(state, np.full((1, 3), nothing))[0]
        np.testing.assert_allclose(got, np.log(tiny.parameters(state)[0]), rtol=1e-12)


# --- passes ---------------------------------------------------------------------------------------


@every_family
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("loss", [NLL(), NCLL()], ids=["nll", "ncll"])
def test_pieces_are_the_whole(family, batch, loss):
    """A pass in pieces, by calls or by chunks, is the same pass: state, average, steps."""
    X, y = tiny.data(family, n=60)
    start = tiny.begin(family, X, y, average=True)

    def fresh():
        return tiny.learner(start, loss, inverse(0.1), 60, batch=batch)

    whole = tiny.learn(fresh(), X, y)
    assert np.isfinite(flat(whole.state)).all() and np.isfinite(flat(whole.model)).all()
    halves = tiny.learn(fresh(), X, y, order=np.arange(30))
    tiny.learn(halves, X, y, order=np.arange(30, 60))
    for pieces in (halves, tiny.learn(fresh(), X, y, chunk=7), tiny.learn(fresh(), X, y, chunk=1)):
        assert pieces.t == whole.t == 60 // batch
        np.testing.assert_allclose(flat(pieces.state), flat(whole.state), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(flat(pieces.model), flat(whole.model), rtol=1e-10, atol=1e-12)


@every_family
def test_a_weight_of_two_is_two_rows_in_a_batch(family):
    """Rows of a batch see the same model, so weights and repetitions are one thing."""
    X, y = tiny.data(family, n=6)
    start = tiny.begin(family, X, y)
    weights = np.array([2.0, 1.0, 1.0, 1.0, 2.0, 1.0])
    twice = np.repeat(np.arange(6), weights.astype(int))
    weighted, _ = tiny.run(start, X, y, NCLL(), 0.06, 10, batch=6, weights=weights)
    repeated, _ = tiny.run(start, X[twice], y[twice], NCLL(), 0.08, 10, batch=8)
    np.testing.assert_allclose(tiny.scores(weighted, X), tiny.scores(repeated, X), rtol=1e-9)


@every_family
@every_loss
def test_figures_are_those_of_the_scores_before_each_step(family, loss):
    """With rho = 0 a pass measures the model: mean losses and accuracy from its scores."""
    X, y = tiny.data(family, n=20)
    state = tiny.begin(family, X, y)
    a = tiny.scores(state, X)
    _, figures = tiny.run(state, X, y, LOSSES[loss], 0.0, 20)
    own, rows = a[np.arange(20), y], np.arange(20)
    rivals = np.where(rows[:, None] * 0 + np.arange(3) == y[:, None], -np.inf, a).max(axis=1)
    log_p = np.log(np.exp(a - a.max(axis=1, keepdims=True)).sum(axis=1)) + a.max(axis=1)
    expected = {
        "nll": -own.sum(),
        "ncll": (log_p - own).sum(),
        "hinge": np.maximum(0, 1 - own + rivals).sum(),
    }
    expected["blend"] = expected["ncll"] + LOSSES["blend"].kappa * expected["nll"]
    np.testing.assert_allclose(figures[2:5], [expected[k] for k in ("nll", "ncll", "hinge")])
    assert figures[1] == pytest.approx(expected[loss])
    assert figures[5] == (a.argmax(axis=1) == y).sum()
    assert figures[0] == figures[7] == 20


@every_family
def test_unlabelled_rows_are_learnt_but_not_measured(family):
    """A row without a label moves the model by NLL whatever the loss, and enters no figure."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y)
    ends = [tiny.run(start, X[:1], [-1], LOSSES[loss], 0.05, 12) for loss in LOSSES]
    for state, figures in ends:
        np.testing.assert_array_equal(flat(state), flat(ends[0][0]))
        assert figures[0] == figures[5] == 0
    assert not np.allclose(flat(ends[0][0]), flat(start))


@every_family
def test_no_step_moves_nothing(family):
    """A step of size 0 leaves the model as it is, also its average."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y, average=True)
    trained = tiny.learn(tiny.learner(start, NCLL(), constant(0.0), 12), X, y)
    for model in (trained.state, trained.model):
        np.testing.assert_allclose(tiny.scores(model, X), tiny.scores(start, X), rtol=1e-12)


@every_family
def test_a_new_class_leaves_the_others_as_they_are(family):
    """`with_classes` arranges the classes and adds new ones; p(x | k) of the old stay."""
    X, y = tiny.data(family, n=30)
    trained = tiny.learner(tiny.begin(family, X, y, average=True), NCLL(), constant(0.05), 30)
    tiny.learn(trained, X, y)
    before = copy.deepcopy(trained.model)
    trained.restart(models.with_classes(trained.state, np.array([1, -1, 0, 2]), 0.01))
    _, means, _ = tiny.parameters(trained.model)
    np.testing.assert_allclose(means[[2, 0, 3]], tiny.parameters(before)[1], rtol=1e-9)
    assert np.isfinite(tiny.scores(trained.model, X)).all()


# --- a batch is one step --------------------------------------------------------------------------


@every_family
@every_loss
@pytest.mark.parametrize("projection", [Interior(0.5, 0.05), Check()], ids=str)
@pytest.mark.parametrize("rho", [0.1, 5.0])
def test_the_order_within_a_batch_does_not_matter(family, loss, projection, rho):
    """Statistics are summed, and projected once; also where steps are far too large."""
    X, y = tiny.data(family, n=24)
    if FAMILIES[family].accepts.missing:
        X[5, 0] = np.nan
    start = tiny.begin(family, X, y, average=True)
    order = np.concatenate([np.random.default_rng(0).permutation(12) + 12 * b for b in (0, 1)])
    weights = np.linspace(0.5, 1.5, 24)
    ends = [
        tiny.run(start, X[o], y[o], LOSSES[loss], rho, 24, projection, batch=12, weights=weights[o])
        for o in (np.arange(24), order)
    ]
    assert ends[0][1][6] > 0 or rho < 1, "no step was shortened"
    np.testing.assert_allclose(flat(ends[0][0]), flat(ends[1][0]), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-9)


@every_family
@every_loss
@pytest.mark.parametrize("projection", [Interior(0.5, 0.05), Check()], ids=str)
@pytest.mark.parametrize("rho", [0.1, 5.0])
def test_the_fused_move_is_a_batch_of_one(family, loss, projection, rho):
    """`update` is `gather_row` and `settle`; but for weights too small for a visit."""
    X, y = tiny.data(family, n=20)
    start = tiny.begin(family, X, y, average=True)
    rows, K = tiny.view(family, X), 3
    fused, room = copy.deepcopy(start), models.make_room(start, rows, 1)
    apart, wide = copy.deepcopy(start), models.make_room(start, rows, 2)
    generator = np.random.default_rng(1)
    for i in range(20):
        r = rho * generator.normal(size=K) / 20
        step = r.sum(), rho / 20, rho / 20, projection
        models.update(fused, rows, i, 0, r, *step, room)
        models.gather_row(apart, rows, i, 0, r, wide)
        settle(apart, *step, wide)
    assert np.isfinite(flat(fused)).all()
    np.testing.assert_allclose(flat(fused), flat(apart), rtol=1e-9, atol=1e-12)


# --- kinds of targets side by side ----------------------------------------------------------------


@every_family
@every_loss
def test_targets_of_all_kinds_teach_alike(family, loss):
    """A set of one and a certain share are the label; in one compiled sweep."""
    X, y = tiny.data(family, n=30)
    start = tiny.begin(family, X, y)
    onehot = y[:, None] == np.arange(3)
    ends = [
        tiny.run(start, X, target, LOSSES[loss], 0.1, 30)[0]
        for target in (y, label_sets(onehot), soft_labels(onehot))
    ]
    for other in ends[1:]:
        np.testing.assert_allclose(flat(other), flat(ends[0]), rtol=1e-9)


# --- means of states ------------------------------------------------------------------------------


def trained_apart(family, average, n_parts=3):
    """A start, and states that were trained from it on parts of the data."""
    X, y = tiny.data(family, n=90)
    start = tiny.begin(family, X, y, average=average)
    parts = np.array_split(np.arange(90), n_parts)
    states = []
    for part in parts:
        trained = tiny.learner(start, NCLL(), constant(0.05), 90)
        states.append(tiny.learn(trained, X, y, order=part).state)
    return X, states, [len(part) for part in parts]


@every_family
@pytest.mark.parametrize("average", [True, False])
def test_a_mean_of_states_is_a_state(family, average):
    """Expected statistics are those of the parts, weighted; so are those of the averages."""
    X, states, sizes = trained_apart(family, average)
    sizes[0] *= 2
    shares = np.array(sizes) / sum(sizes)
    mean = models.mean_of(states, sizes)
    assert models.averages(mean) == average

    def statistics(model):
        """Class counts, N and N mu, whose set is convex."""
        _, mu, mass = tiny.parameters(model)
        return models.class_counts(model), mass, mass * mu

    for take in (lambda state: models.with_average(state, None, 0.0), models.averaged):
        apart = [statistics(take(state)) for state in states]
        got = statistics(take(mean))
        for j in (0, 2):
            # where p(y) differs between parts, N is not a product of p(y) and masses any more:
            # the means of the factors are right, and so is the mass of each feature
            expected = sum(share * each[j] for share, each in zip(shares, apart, strict=True))
            count = sum(share * each[1] for share, each in zip(shares, apart, strict=True))
            if j == 0:
                np.testing.assert_allclose(got[0], expected, rtol=1e-9)
            else:
                np.testing.assert_allclose(got[2] / got[1], expected / count, rtol=1e-9)
                np.testing.assert_allclose(got[1].sum(axis=0), count.sum(axis=0), rtol=1e-9)
    scores = tiny.scores(models.averaged(mean), X)
    assert np.isfinite(scores).all()
    more = tiny.learner(mean, NCLL(), constant(0.05), 90)  # and training goes on from it
    assert np.isfinite(tiny.scores(tiny.learn(more, X, np.arange(90) % 3).model, X)).all()


@every_family
@pytest.mark.parametrize("average", [True, False])
def test_the_mean_of_one_state_is_that_state(family, average):
    X, states, _ = trained_apart(family, average)
    for share in (1.0, 7.0):
        mean = models.mean_of(states[:1], [share])
        for view in (models.averaged, lambda state: models.with_average(state, None, 0.0)):
            np.testing.assert_allclose(
                tiny.scores(view(mean), X), tiny.scores(view(states[0]), X), rtol=1e-9
            )


FAINT = {"gaussian": {"nu_mean": 1e-9, "nu_variance": 1e-9}, "words": {"alpha": 1e-9}}
FAINT |= {name: {"nu": 1e-9} for name in ("exponential", "poisson", "categorical", "bernoulli")}
FAINT["lognormal"] = FAINT["gaussian"]


@every_family
def test_parts_counted_apart_make_the_whole(family):
    """NLL, complete rows, next to no prior: closed forms of parts, by rows, average to that of all.

    Parts share the units of the whole.
    """
    X, y = tiny.data(family, n=60)
    of = FAMILIES[family]
    prior = of.resolve_prior("data", True, 3)[0]._replace(**FAINT[family])
    whole = tiny.begin(family, X, y, prior, alpha=1e-9)
    states, parts = [], (np.arange(60) % 4 == 0, np.arange(60) % 4 != 0)
    for part in parts:
        state = tiny.begin(family, X[part], y[part], prior, alpha=1e-9)
        states.append(in_units_of(whole, state))
    mean = models.mean_of(states, [part.sum() for part in parts])
    np.testing.assert_allclose(models.class_counts(mean), models.class_counts(whole), rtol=1e-6)
    for got, expected in zip(tiny.parameters(mean), tiny.parameters(whole), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9)


def in_units_of(whole, state):
    """A Gaussian model held in the units of another."""
    if not hasattr(state.features, "units"):
        return state
    m, v = gaussian.moments(state.features)
    shift, scale, _ = whole.features.units
    factors = np.stack([(m - shift) / scale, v / scale**2])
    return state._replace(features=whole.features._replace(factors=factors))


# --- engines are objects --------------------------------------------------------------------------


@compiled
def test_engines_can_be_exchanged(family):
    X, y = tiny.data(family, n=20)
    start = tiny.begin(family, X, y, average=True)
    ends = []
    for engine in (Sequential(), tiny.Plain()):
        held: Engine = engine
        rule = Rule(NCLL(), tiny.PLAIN, constant(0.1), 20.0, 1)
        trained = tiny.learn(Learner(copy.deepcopy(start), rule, held), X, y)
        ends.append(np.concatenate([flat(trained.state), flat(trained.model)]))
    np.testing.assert_allclose(*ends, rtol=1e-9, atol=1e-11)


def test_an_engine_says_what_a_family_lacks():
    """By name: of the family, of what is missing, of the engine."""
    X, y = tiny.data("gaussian")
    model = tiny.begin("gaussian", X, y)

    class Demanding(Sequential):
        needs = ("add_scores", "inside", "with_features")

    check_needs(Sequential(), model)
    with pytest.raises(OptionError, match=r"'gaussian' lacks with_features.*engine Demanding"):
        check_needs(Demanding(), model)
    with pytest.raises(OptionError, match="lacks with_features"):
        Learner(model, Rule(NCLL(), tiny.PLAIN, constant(0.1), 12.0, 1), Demanding())
    assert not Family().provides("view")


# --- the owner of the state -----------------------------------------------------------------------


@every_family
def test_a_snapshot_brings_everything_back(family):
    """State, average and number of steps; and it can be used again."""
    X, y = tiny.data(family, n=30)
    trained = tiny.learner(tiny.begin(family, X, y, average=True), NCLL(), inverse(0.1), 30)
    tiny.learn(trained, X, y)
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
    X, y = tiny.data(family, n=30)
    trained = tiny.learner(tiny.begin(family, X, y, average=True), NCLL(), constant(0.05), 30)
    other = copy.deepcopy(tiny.learn(trained, X, y).model)
    assert not models.averages(other)
    trained.restart(other)
    assert models.averages(trained.state)
    np.testing.assert_allclose(flat(trained.model), flat(other), rtol=1e-9)
    tiny.learn(trained, X, y)
    assert not np.allclose(flat(trained.model), flat(models.with_average(trained.state, None, 0.0)))
    never = tiny.learner(tiny.begin(family, X, y), NCLL(), constant(0.05), 30)
    never.restart(other)
    assert not models.averages(never.state)
