"""Laws of mixtures of planes: answers that are numbers, with cells that rows lack summed out."""

import numpy as np
import pytest
from scipy import stats

from discem.engines import Data
from discem.estimators._planes import PlanesModel
from discem.estimators._tables import Encoded
from discem.io.rows import Rows, dense_rows
from discem.io.tables import Layout
from discem.losses import NCLL, NLL, Blend
from discem.models.free import placed, slope_of, sums_of, vector_of
from discem.targets import UNLABELLED, Numbers
from discem.training import Plan
from discem.update import judge, update

LOSSES = [NCLL(), NLL(), Blend(0.3)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def table(n=60, answers=1, seed=0, holes=0.2):
    """Rows of numbers, levels and counts, some cells missing, and their answers."""
    rng = np.random.default_rng(seed)
    a, b, kind, count = (
        rng.normal(size=n),
        rng.normal(size=n),
        rng.integers(0, 3, n),
        rng.poisson(3, n),
    )
    y = np.stack([np.where(a > 0, b, -2 * b) + kind + 0.1 * count * k for k in range(answers)], 1)
    y += 0.2 * rng.normal(size=y.shape)
    gone = rng.random((n, 4)) < holes
    cells = {"a": a, "b": b, "k": np.array(list("xyz"))[kind], "c": count}
    names = enumerate(cells.items())
    columns = {name: np.where(gone[:, j], None, own.astype(object)) for j, (name, own) in names}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    families = {"a": "gaussian", "b": "gaussian", "k": "categorical", "c": "poisson"}
    layout = Layout.learn(rows, families)
    return Encoded.read(layout, rows), y


def begin(encoded, y, size=3, loss=LOSSES[2]):
    rng = np.random.RandomState(0)
    return PlanesModel.start(encoded, y, np.ones(len(y)), size, loss, rng)


def as_data(encoded, y, weights=None):
    codes = np.where(np.isnan(y).all(axis=1), UNLABELLED, 0)
    rows = Rows((*encoded.view().parts, dense_rows(y)))
    return Data(rows, Numbers(codes), np.ones(len(y)) if weights is None else weights)


def objective(model, data, loss):
    judged = judge(loss, model, model.read(data.rows), data.targets)
    return float(data.weights @ judged.losses) / data.weights.sum() + model.penalty() / 50.0


# --- the update -----------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("answers", [1, 2])
def test_weights_are_the_gradient_of_the_loss(loss, answers):
    encoded, y = table(answers=answers)
    y[3, 0] = y[5] = np.nan  # a row that lacks an answer, and one that lacks all
    data = as_data(encoded, y, np.random.default_rng(1).uniform(0.5, 2.0, len(y)))
    model = begin(encoded, y).learner_.state
    batch = model.read(data.rows)
    judged = judge(loss, model, batch, data.targets)
    weights = judged.weights * (data.weights / data.weights.sum())[:, None]
    gradient, metric = slope_of(model, sums_of(model, batch, judged.posterior, weights), 50.0)
    assert (metric > 0).all()
    vector, rng = vector_of(model), np.random.default_rng(2)
    unit = np.sqrt(metric)
    for _ in range(6):
        way = rng.normal(size=len(vector)) / unit
        ends = [objective(placed(model, vector + h * way), data, loss) for h in (1e-5, -1e-5)]
        assert gradient @ way == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-6)


@every_loss
def test_small_steps_lower_the_loss(loss):
    encoded, y = table(n=200)
    model = begin(encoded, y, loss=loss)
    data, rule = as_data(encoded, y), model.learner_.rule
    state, before = model.learner_.state, objective(model.learner_.state, data, loss)
    for _ in range(20):
        args = state.read(data.rows), data.targets, data.weights, rule
        state, *_ = update(state, *args, 0.05)
    assert objective(state, data, loss) < before - 1e-3


def test_an_answer_of_nothing_is_learnt_as_an_unlabelled_row():
    encoded, y = table()
    model = begin(encoded, y).learner_.state
    data = as_data(encoded, np.full_like(y, np.nan))
    judged = judge(NCLL(), model, model.read(data.rows), data.targets)
    np.testing.assert_allclose(judged.losses, -judged.seen.free)


def test_rows_of_weight_two_are_two_rows():
    encoded, y = table(holes=0.0)
    twice = np.r_[np.arange(len(y)), :20]
    weights = np.where(np.arange(len(y)) < 20, 2.0, 1.0)
    model = begin(encoded, y).learner_.state
    found = []
    for data in (as_data(encoded, y, weights), as_data(encoded.take(twice), y[twice])):
        batch = model.read(data.rows)
        judged = judge(NCLL(), model, batch, data.targets)
        shares = judged.weights * (data.weights / data.weights.sum())[:, None]
        found.append(slope_of(model, sums_of(model, batch, judged.posterior, shares), 50.0)[0])
    np.testing.assert_allclose(*found, atol=1e-12)


# --- brute force ----------------------------------------------------------------------------------


def trained(seed=0):
    encoded, y = table(n=80, seed=seed, holes=0.1)
    model = begin(encoded, y)
    model.train(encoded, y, np.ones(len(y)), np.random.RandomState(0), Plan(8, None))
    return model, encoded.layout


def density(shares, means, variances, at):
    return shares @ stats.norm.pdf(at, means, np.sqrt(variances))


def test_hidden_numbers_are_integrated_over():
    """Density, mean and quantiles of y agree with sums over a grid of the number that lacks."""
    model, layout = trained()
    grid = np.linspace(-9.0, 9.0, 4001)
    known = {"b": 0.7, "k": "y", "c": 2}
    full = Encoded.read(layout.named_by_keys(), [known | {"a": a} for a in grid])
    state = model.learner_.model
    answer = model.answers(full.view())
    empty = Rows((*full.view().parts, dense_rows(np.full((len(grid), 1), np.nan))))
    joint = state.classes_alone.joint(state.read(empty)[:-1])
    weight = np.exp(joint - joint.max())  # p(a, rest, component)
    inside = (grid > state.answer.fixed["low"][1]) & (grid < state.answer.fixed["high"][1])
    assert weight[~inside].sum() < 0.2 * weight.sum()  # planes go on beyond what was seen
    shares, means, variances = (
        part[..., 0, :]
        for part in model.answers(Encoded.read(layout.named_by_keys(), [known]).view())
    )
    unclipped = state.answer._replace(
        fixed=state.answer.fixed | {"low": np.full(7, -1e9), "high": np.full(7, 1e9)}
    )
    model.learner_.restart(state._replace(blocks=(*state.blocks[:-1], unclipped)))
    answer = model.answers(full.view())
    points = np.linspace(-6.0, 9.0, 40)
    brute = [
        (weight * stats.norm.pdf(at, answer.means[0], np.sqrt(answer.variances[0]))).sum()
        for at in points
    ]
    own = [density(shares, means[0], variances[0], at) for at in points]
    np.testing.assert_allclose(own, np.array(brute) / weight.sum(), rtol=1e-5, atol=1e-9)
    mean = (weight * answer.means[0]).sum() / weight.sum()
    assert shares @ means[0] == pytest.approx(mean, rel=1e-6)
    for at in points[::8]:  # so quantiles are those, too
        below = (weight * stats.norm.cdf(at, answer.means[0], np.sqrt(answer.variances[0]))).sum()
        own = shares @ stats.norm.cdf(at, means[0], np.sqrt(variances[0]))
        assert own == pytest.approx(below / weight.sum(), abs=1e-6)


CELLS = {  # of a column of each kind; numbers are so close that sums are integrals
    "gaussian": np.linspace(-9.0, 9.0, 3001),
    "lognormal": np.exp(np.linspace(-9.0, 9.0, 3001)),  # whose density is that of the logarithm
    "poisson": np.arange(80),
    "bernoulli": np.array([False, True]),
    "categorical": np.array([*"xyz"]),
}


@pytest.mark.parametrize("kind", CELLS)
def test_hidden_cells_are_summed_over(kind):
    """Shares of components, and mean and variance of y in each, are sums over the cell that lacks.

    So the conditional mean and variance of y are exact, of every kind of column.
    """
    rng, n = np.random.default_rng(3), 80
    b = rng.normal(size=n)
    drawn = {
        "gaussian": rng.normal(size=n), "lognormal": np.exp(0.5 * b + rng.normal(size=n)),
        "poisson": rng.poisson(3, n), "bernoulli": rng.random(n) < 0.4,
        "categorical": rng.choice([*"xyz"], n, p=[0.5, 0.3, 0.2]),
    }[kind]  # fmt: skip
    y = b + np.unique(drawn, return_inverse=True)[1] / n + 0.2 * rng.normal(size=n)
    rows = [{"b": own, "h": cell} for own, cell in zip(b.tolist(), drawn.tolist(), strict=True)]
    layout = Layout.learn(rows, {"b": "gaussian", "h": kind})
    encoded = Encoded.read(layout, rows)
    model = begin(encoded, y[:, None])
    model.train(encoded, y[:, None], np.ones(n), np.random.RandomState(0), Plan(8, None))
    state = model.learner_.model
    wide = {side: np.full_like(state.answer.fixed[side], end)
            for side, end in (("low", -1e9), ("high", 1e9))}  # fmt: skip
    answer = state.answer._replace(fixed=state.answer.fixed | wide)
    model.learner_.restart(state._replace(blocks=(*state.blocks[:-1], answer)))
    told = [{"b": 0.4, "h": cell} for cell in CELLS[kind].tolist()]
    full = Encoded.read(layout, told)
    each, lacking = (
        model.answers(full.view()),
        model.answers(Encoded.read(layout, [{"b": 0.4}]).view()),
    )
    alone = model.learner_.model.classes_alone
    joint = alone.joint(alone.read(full.view()))
    weight = np.exp(joint - joint.max())
    np.testing.assert_allclose(lacking.shares[0], weight.sum(axis=0) / weight.sum(), rtol=1e-5)
    p = weight / weight.sum(axis=0)
    mean = (p * each.means[0]).sum(axis=0)
    np.testing.assert_allclose(lacking.means[0, 0], mean, rtol=1e-5, atol=1e-7)
    spread = (p * (each.variances[0] + each.means[0] ** 2)).sum(axis=0) - mean**2
    np.testing.assert_allclose(lacking.variances[0, 0], spread, rtol=1e-5)


def test_one_component_is_a_ridge_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * rng.normal(size=400)
    encoded = Encoded.read(Layout.learn(X), X)
    found = begin(encoded, y[:, None], size=1).answers(encoded.view())
    np.testing.assert_allclose(found.means[0, :, 0], X @ [1.0, -2.0, 0.5] + 3.0, atol=0.05)
    assert found.variances[0, 0, 0] == pytest.approx(0.01, rel=0.2)


# --- training -------------------------------------------------------------------------------------


def test_training_lowers_the_loss_and_a_stream_comes_near():
    encoded, y = table(n=600, holes=0.0)
    data = as_data(encoded, y)
    whole, stream = (begin(encoded, y, size=6, loss=Blend(0.02)) for _ in range(2))

    def loss_of(model):
        state = model.learner_.model
        return judge(NCLL(), state, state.read(data.rows), data.targets).losses.mean()

    before = loss_of(whole)
    whole.train(encoded, y, np.ones(len(y)), np.random.RandomState(0), Plan(20, None))
    for _ in range(10):
        stream.learn(encoded, y, np.ones(len(y)))
    ends = [loss_of(model) for model in (whole, stream)]
    assert ends[0] < before - 0.1
    assert ends[1] < before - 0.5 * (before - ends[0])
    whole._check_fitted()
    stream._check_fitted()
