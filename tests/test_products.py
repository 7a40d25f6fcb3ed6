"""Products of families: any two can share a row, and a model of both is the sum of its parts."""

import itertools

import numpy as np
import pytest
import tiny
from scipy.special import logsumexp

from discem import Interior, NaiveBayes, constant, models
from discem.families import FAMILIES, family_of, multiply
from discem.figures import LOSS
from discem.losses import LOSSES, NCLL
from discem.targets import infer, labels

PAIRS = list(itertools.combinations_with_replacement(FAMILIES, 2))
every_pair = pytest.mark.parametrize("names", PAIRS, ids=" * ".join)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def problem(names, n=24, K=3, average=False, seed=0, first=None, init="generative"):
    """Rows that have a part of each family, their classes, and a model of both."""
    family = multiply(*(FAMILIES[name] for name in names))
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    X = family.example(y, (2, 3), rng)
    for part, name in zip(X, names, strict=True):
        if FAMILIES[name].accepts.missing:
            part[::5, 1] = np.nan
    return X, y, tiny.begin(family, X, y, K=K, average=average, first=first, init=init)


def alone(model, j):
    """The model of one part."""
    return model._replace(blocks=(model.blocks[j],))


@every_pair
def test_scores_add(names):
    """Ln p(y) + ln p(first | y) + ln p(second | y), also where components are summed out."""
    X, _, model = problem(names)
    known = [FAMILIES[name].known.name for name in names]
    assert model.family.name == " * ".join(known)
    np.testing.assert_allclose(tiny.scores(model, X), tiny.log_density(model, X), rtol=1e-10)
    log_p = np.log(model.classes.shares)
    parts = [tiny.scores(alone(model, j), X[j]) - log_p for j in (0, 1)]
    np.testing.assert_allclose(tiny.scores(model, X), sum(parts) + log_p, rtol=1e-9)
    first = np.array([0, 2, 3, 6])
    X, _, model = problem(names, n=30, K=6, first=first)
    joint = tiny.log_density(model, X)
    expected = [logsumexp(joint[:, first[k] : first[k + 1]], axis=1) for k in range(3)]
    np.testing.assert_allclose(tiny.scores(model, X), np.stack(expected, axis=1), rtol=1e-9)


@pytest.mark.parametrize(
    "names, loss",
    [(pair, list(LOSSES)[i % len(LOSSES)]) for i, pair in enumerate(PAIRS)],  # one knows no other
)
def test_a_step_is_that_of_each_part_for_the_weights_of_both(names, loss):
    """And leverages add."""
    X, y, model = problem(names)
    batch = model.read(model.family.view(X))
    scores, posterior = model.scores(batch)
    _, W = LOSSES[loss].evaluate(infer(scores, labels(y)))
    moves = models.Moves(float(0.01 * W.sum()), 1e-3, 1e-3, Interior())
    parts = [alone(model, j) for j in (0, 1)]
    reach = [part.leverage(batch[j : j + 1], None, W, moves) for j, part in enumerate(parts)]
    reach = [own for own in reach if own is not None]
    both = model.leverage(batch, posterior, W, moves)
    assert both is None or np.allclose(both, sum(reach), rtol=1e-12, atol=0.0)
    assert (both is None) == (not reach)
    expected = [
        part.moved(batch[j : j + 1], None, 0.01 * W, moves)[0]
        for j, part in enumerate(alone(problem(names)[2], j) for j in (0, 1))
    ]
    after, _ = model.moved(batch, None, 0.01 * W, moves)
    for j in (0, 1):
        np.testing.assert_allclose(tiny.held(alone(after, j)), tiny.held(expected[j]), rtol=1e-12)


@every_pair
def test_training_lowers_the_loss(names):
    """From equal classes, with an average."""
    X, y, start = problem(names, n=30, init="prior", average=True)
    for loss in ("nll", "ncll"):
        first = tiny.run(start, X, y, loss, 0.0)[1][LOSS]
        trained = tiny.learner(start, loss, constant(0.2), 30, batch=5)
        for _ in range(5):
            tiny.learn(trained, X, y)
        assert tiny.run(trained.model, X, y, loss, 0.0)[1][LOSS] < first - 0.5


@pytest.mark.parametrize("mixed", [False, True])
def test_the_order_of_factors_does_not_matter(mixed):
    X, y, one = problem(("gaussian", "words"), first=np.array([0, 2, 3]) if mixed else None)
    other = tiny.begin(multiply(FAMILIES["words"], FAMILIES["gaussian"]), X[::-1], y)
    other, y = other._replace(first=one.first), np.minimum(y, one.n_classes - 1)
    ends = []
    for model, rows in ((one, X), (other, X[::-1])):
        after, _ = tiny.run(model, rows, y, "ncll", 0.05, 24, Interior(), batch=4)
        ends.append(tiny.scores(after, rows))
    np.testing.assert_allclose(*ends, rtol=1e-9)


def test_three_families_share_a_row():
    """Products of products are flat."""
    names = ("gaussian", "words", "exponential")
    family = multiply(multiply(FAMILIES[names[0]], FAMILIES[names[1]]), FAMILIES[names[2]])
    assert family.name == " * ".join(names) and len(family.factors) == 3
    y = np.arange(30) % 3
    X = family.example(y, (2, 3, 2), np.random.default_rng(0))
    model = tiny.begin(family, X, y)
    after, figures = tiny.run(model, X, y, NCLL(), 0.02, 30)
    assert tiny.run(after, X, y, NCLL(), 0.0, 30)[1][LOSS] < figures[LOSS]
    np.testing.assert_allclose(tiny.scores(after, X), tiny.log_density(after, X), rtol=1e-10)


@pytest.mark.parametrize("empty", [0, 1])
@pytest.mark.parametrize("names", [pair for pair in PAIRS if "words" not in pair], ids=" * ".join)
def test_a_part_without_columns_says_nothing(names, empty):
    """Scores, steps, averages, means of states and checks are those of the other part."""
    X, y, _ = problem(names)
    X = tuple(part[:, :0] if j == empty else part for j, part in enumerate(X))
    family = multiply(*(FAMILIES[name] for name in names))
    both = tiny.begin(family, X, y, average=True)
    rest = tiny.begin(names[1 - empty], X[1 - empty], y, average=True)
    ends = []
    for model, rows in ((both, X), (rest, X[1 - empty])):
        after, _ = tiny.run(model, rows, y, "ncll", 0.1, 24, Interior(), batch=4)
        mean = models.mean_of([after, after], [1, 2])
        ends.append([tiny.scores(each, rows) for each in (after, after.averaged(), mean)])
        ends[-1].append(after.penalty())
    for got, expected in zip(*ends, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9)


@every_pair
def test_a_product_is_streamed(names):
    """Means of states, penalties and drawn rows are those of both parts."""
    X, y, model = problem(names, average=True)
    after, _ = tiny.run(model, X, y, NCLL(), 0.02, 24)
    wider = after.with_classes(np.array([2, -1, 0, 1]), 0.1)
    known = tiny.scores(wider, X)[:, [2, 3, 0]] - tiny.scores(after, X)
    np.testing.assert_allclose(known, known[0, 0], rtol=1e-7, atol=1e-9)
    mean = models.mean_of([model, after], [1, 3])
    for j in (0, 1):
        own = models.mean_of([alone(model, j), alone(after, j)], [1, 3])
        np.testing.assert_allclose(
            tiny.held(alone(mean, j).averaged()), tiny.held(own.averaged()), rtol=1e-12
        )
    parts = [family_of(block).penalty(block) for block in mean.blocks]
    assert mean.penalty() == pytest.approx(mean.classes.penalty() + sum(parts))


def test_levels_that_are_new_leave_the_other_parts_of_a_table_alone():
    """A column of categories grows in a stream, beside numbers and counts that cannot."""
    rng = np.random.default_rng(0)
    rows = [
        {"size": float(rng.normal(i % 2)), "calls": int(rng.poisson(5)), "kind": "ab"[i % 2]}
        for i in range(200)
    ]
    y = np.arange(200) % 2
    model = NaiveBayes(random_state=0).partial_fit(rows, y)
    before = model.predict_proba(rows)
    model.partial_fit([row | {"kind": "c"} for row in rows[:4]], y[:4])
    assert model.layout_.columns[2].levels == ["a", "b", "c"]
    np.testing.assert_allclose(model.predict_proba(rows), before, atol=0.2)
