"""Laws of staying inside: whatever the step, nothing leaves the domain, and no number is lost."""

import functools

import numpy as np
import pytest
import tiny
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from discem import Check, Interior, NormalBetaPrime, PaperNormalGamma
from discem.exceptions import OptionError
from discem.families import FAMILIES, _inside, family_of
from discem.io.rows import copied
from discem.models import Moves
from discem.projections import check_projection

every_family = pytest.mark.parametrize("family", FAMILIES)
PROJECTIONS = [Interior(0.5, 0.0), Interior(0.1), Interior(caution=2.0), Check()]
every_projection = pytest.mark.parametrize("projection", PROJECTIONS, ids=str)


def sizes(low, high):
    return st.floats(low, high).map(lambda e: 10.0**e)


def signed(low, high):
    return st.just(0.0) | st.tuples(sizes(low, high), st.sampled_from([-1.0, 1.0])).map(np.prod)


def several(numbers, n):
    return st.lists(numbers, min_size=n, max_size=n).map(np.array)


@functools.cache
def two_classes(family, prior=None):
    """A model of two classes and two features."""
    X, y = tiny.data(family, n=8, d=2, K=2)
    return tiny.begin(family, X, y, prior=prior, K=2)


def anywhere(model, counts, mass, numbers, spread):
    """The model at some other point of its domain: 8 numbers, and 8 that are positive."""
    model = copied(model)  # steps of many levels change their scales in place
    block = model.features
    classes = model.classes._replace(counts=counts.copy())
    size = len(tiny.means_of(block))
    if block.family in tiny.CORRELATED:
        values = {"mean": numbers[:4].reshape(2, 2)}
        if "covariance" in block.values:
            deviation = spread[:4].reshape(2, 2) ** 0.1
            one = np.array([[1.0, 0.6], [0.6, 1.0]])[:, :, None]
            values["covariance"] = one * deviation[:, None] * deviation
    elif block.family in ("gaussian", "lognormal"):
        values = {"mean": numbers[:4].reshape(2, 2), "variance": spread[:4].reshape(2, 2)}
    elif "first" in block.fixed:
        p = np.resize(spread, (size, 2))
        total = np.add.reduceat(p, block.fixed["first"][:-1])[block.fixed["column"]]
        values = {"share": np.maximum(p / total, 1e-250)}
    elif block.family == "words":
        cells = spread[:4].reshape(2, 2)
        lazy = block.lazy | {"gamma": 1e-9}
        total = cells.sum(axis=0) + 1e-9 * lazy["alpha_total"]
        values = {"count": cells, "total": total, "unseen": np.zeros(2)}
        block = block._replace(lazy=lazy)
    else:
        (name,) = block.values
        values = {name: spread[:4].reshape(2, 2)}
    block = block._replace(values=values, mass=np.full(len(block.mass), mass))
    return model._replace(classes=classes, blocks=(block,))


def rows_of(family, x):
    """Three rows that a family takes, from six numbers."""
    x = x.reshape(3, 2)
    if family in ("categorical", "bernoulli", "levels"):
        return (np.abs(x) > 1.0) * 1.0
    if family == "lognormal":
        return np.exp(np.clip(x, -300.0, 300.0))
    if family in ("gaussian", *tiny.CORRELATED):
        return x
    return np.minimum(np.abs(x), 1e12)


def positives(model, first):
    """All numbers of a model that must stay positive, in the same order.

    Of a covariance they are its eigenvalues beside that of the first model.
    """
    block = tiny.settled(model.features)
    own = [block.mass, model.classes.counts]
    if block.family == "words":
        return [*own, tiny.means_of(block), block.values["total"]]
    if block.family == "normal":
        now, then = (np.moveaxis(m.features.values["covariance"], -1, 0) for m in (model, first))
        back = np.linalg.inv(np.linalg.cholesky(then))
        found = np.linalg.eigvalsh(back @ now @ back.swapaxes(1, 2))
        return [*own, found + 1e-9 * np.abs(found).max(axis=1, keepdims=True)]  # but for rounding
    return [*own, *(block.values[name] for name in family_of(block).positive)]


@every_family
@every_projection
@settings(max_examples=20, deadline=None)
@given(
    counts=several(sizes(-12, 6), 2),
    mass=sizes(-9, 9),
    numbers=several(signed(-6, 60), 8),
    spread=several(sizes(-30, 12), 8),
    x=several(signed(-12, 150), 6),
    weights=several(signed(-12, 6), 6),
    decay=st.just(0.0) | sizes(-12, 6),
    pull=sizes(-12, 6),
)
def test_steps_of_any_size_stay_inside(
    family, projection, counts, mass, numbers, spread, x, weights, decay, pull
):  # fmt: skip
    """All positive and finite; an interior step loses at most `share` of each."""
    for prior in {"gaussian": [None, NormalBetaPrime(), PaperNormalGamma()]}.get(family, [None]):
        before = anywhere(two_classes(family, prior), counts, mass, numbers, spread)
        was = [each.copy() for each in positives(before, before)]
        batch = before.read(before.family.view(rows_of(family, x)))
        W, moves = weights.reshape(3, 2), Moves(decay, pull, pull, projection)
        with np.errstate(all="ignore"):  # as in `update`
            reach = before.leverage(batch, None, W, moves)
        assert reach is None or (np.isfinite(reach).all() and (reach >= 0).all())
        with np.errstate(all="ignore"):  # as in `update`
            after, _ = before.moved(batch, None, W, moves)
        now = positives(after, before)
        assert all(np.isfinite(each).all() and (each > 0).all() for each in now)
        assert np.isfinite(tiny.means_of(after.features)).all()
        assert np.isfinite(tiny.log_odds(after)).all()
        if isinstance(projection, Interior):
            # words lose to decay at once, before the rows move those that they have
            twice = family == "words" and decay > 0 and (W < 0).any()
            keep = (1 - projection.share) ** (2 if twice else 1) * (1 - 1e-9)
            for new, old in zip(now, was, strict=True):
                assert (new >= keep * old).all()


@settings(max_examples=300)
@given(share=st.floats(0.05, 0.95), n=signed(-6, 6), s=signed(-6, 6), v=signed(-6, 6))
@example(share=0.5, n=-0.1, s=0.0, v=-5.0)
def test_the_interior_fraction_is_the_largest(share, n, s, v):
    """All of [0, f] keeps 1 - share of count and variance; a little beyond f does not."""

    def slack(f):
        c = 1 + f * n
        variance = (c * (1 + f * v) - f * f * s * s) / (c * c)
        return min(c, variance) - (1 - share)

    f = float(_inside.fractions(share, *(np.array([[each]]) for each in (n, s, v)))[0, 0])
    assert 0 < f <= 1
    assert min(slack(part * f) for part in np.linspace(0, 1 - 1e-7, 50)) > -1e-6
    if f < 1:
        beyond = slack(f * (1 + 1e-5))
        assume(abs(beyond) > 1e-9)  # a grazing root cannot be told from none
        assert beyond < 0


@every_family
def test_small_steps_are_not_shortened(family):
    """What keeps a step inside vanishes as steps become small."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y)
    ends = [
        tiny.step(start, X, y, "ncll", 1e-6, 12, projection)[0]
        for projection in (Interior(0.5, 0.0), Interior(0.5, 1.0), Interior(caution=3.0), Check())
    ]
    for end in ends[1:]:
        move, other = (tiny.held(e) - tiny.held(start) for e in (ends[0], end))
        np.testing.assert_allclose(other, move, rtol=1e-2, atol=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
@pytest.mark.parametrize("far", [1e2, 1e4, 1e40, 1e140])
def test_damping_makes_a_row_explain_itself_once(family, far):
    """However far out a row is, it moves its own scores by about 1 / damping at most."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y)
    row = (X[:1] + 1.0) * far
    after, _, _ = tiny.step(start, row, [0], "nll", 0.1, np.inf, Interior(0.5, 0.03))
    a, b = (tiny.scores(model, row)[0, 0] for model in (start, after))
    rounding = 1e-9 * abs(a)
    assert -rounding <= b - a < 100.0 + rounding
    assert np.median(np.abs(tiny.scores(after, X) - tiny.scores(start, X))) < 10.0


def test_caution_shortens_the_steps_of_rare_classes():
    """And of them only."""
    X, y = tiny.data("gaussian", n=120)
    y = np.where(np.arange(120) < 3, 2, y % 2)
    start = tiny.begin("gaussian", X, y)

    def move(caution):
        after, _, _ = tiny.step(start, X, y, "ncll", 0.05, 120, Interior(0.5, 0.0, caution))
        return tiny.means_of(after.features) - tiny.means_of(start.features)

    plain, careful = move(0.0), move(5.0)
    np.testing.assert_allclose(careful[:, :2], plain[:, :2], rtol=1e-9)
    assert (np.abs(careful[:, 2]) < 0.8 * np.abs(plain[:, 2])).all()


@pytest.mark.parametrize(
    "projection", [Interior(0.0), Interior(1.0), Interior(damping=-1), 3, Check]
)
def test_senseless_projections_are_refused(projection):
    with pytest.raises(OptionError, match="projection="):
        check_projection(projection)
