"""Laws of the families: everything that moves is a gradient, seen by numerical differences."""

import copy

import numpy as np
import pytest
import tiny

from discem import NormalBetaPrime, NormalGamma
from discem.families import FAMILIES, Family, family_of, multiply, words
from discem.losses import LOSSES, value_and_weights
from discem.models import Moves
from discem.targets import label_sets, soft_labels

every_family = pytest.mark.parametrize("family", FAMILIES)
every_loss = pytest.mark.parametrize("loss", LOSSES)
PRIORS = {"gaussian": [NormalGamma(), NormalBetaPrime()], "lognormal": [NormalBetaPrime()]}
CASES = [(name, prior) for name in FAMILIES for prior in PRIORS.get(name, [None])]
H = 1e-6


def bent(of, theta, normalizer, h):
    """A family whose natural parameters and log-normalizers are a little off."""

    class Bent(type(of)):
        def table(self, block):
            now, log_z = super().table(block)
            return now + h * theta, None if log_z is None else log_z + h * normalizer

        def cells(self, block, batch):
            return super().cells(block, batch) * np.exp(h * theta[batch.words])

        def _shares(self, block, levels, columns):
            return super()._shares(block, levels, columns) * np.exp(h * theta[levels])

    return Bent()


def sums_of(block, batch, W):
    """Expected statistics, dense, and how many cells were seen."""
    family = family_of(block)
    found = family.expected(block, batch, W)
    if block.family != "words":
        return family.gathered(block, found)
    batch, sums = found
    dense = np.zeros_like(block.values["count"])
    dense[batch.words] = sums
    return dense, None


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in tiny.CORRELATED])
def test_expected_statistics_are_the_gradient_of_the_scores(family):
    """D sum_ik W_ik a_k(x_i) / d theta = G, and by the log-normalizers it is minus the mass."""
    of, (X, y) = FAMILIES[family], tiny.data(family)
    block, rng = tiny.begin(family, X, y).features, np.random.default_rng(2)
    batch, W = of.read(block, of.view(tiny.holed(family, X))), rng.normal(size=(12, 3))
    sums, seen = sums_of(block, batch, W)
    linear = family != "words" and of.table(block)[1] is not None
    for _ in range(5):
        theta, normalizer = rng.normal(size=sums.shape), rng.normal(size=(3, 3))
        up, down = (
            (W * bent(of, theta, normalizer, h).scores(block, batch)).sum() for h in (H, -H)
        )
        expected = (theta * sums).sum() - ((normalizer * seen).sum() if linear else 0.0)
        assert (up - down) / (2 * H) == pytest.approx(expected, rel=1e-5, abs=1e-5)


# --- moves, along directions that stay in the domain ----------------------------------------------


def directions(family, model, n=4):
    """From the block of a model towards those of others: the change of theta, and blocks on it."""
    for seed in range(1, n + 1):
        X, y = tiny.data(family, seed=seed, n=30)
        if family == "categorical":
            X = np.minimum(X, np.diff(model.features.fixed["first"]) - 1)
        other = tiny.begin(family, X, y)
        yield towards(*(tiny.settled(each.features) for each in (model, other)))


def towards(block, other):
    if block.family == "words":
        off = {"count": tiny.means_of(other) - tiny.means_of(block)}
    else:
        off = {name: other.values[name] - value for name, value in block.values.items()}

    def at(h):
        values = {name: block.values[name] + h * part for name, part in off.items()}
        if block.family == "words":
            total = block.values["total"] + h * off["count"].sum(axis=0)
            values = block.values | values | {"total": total}
        return block._replace(values=values)

    def theta(h):
        if block.family == "words":
            return words.log_probabilities(at(h)).T
        return family_of(block).table(at(h))[0]

    return (theta(H) - theta(-H)) / (2 * H), at


def moved_by(before, after, counts):
    """The change of mean parameters times the counts behind them."""
    if before.family == "words":
        return tiny.means_of(after) - tiny.means_of(before)
    return counts * (tiny.means_of(after) - tiny.means_of(before))


@pytest.mark.parametrize(("family", "prior"), CASES)
def test_the_prior_pulls_by_the_gradient_of_its_penalty(family, prior):
    """A step of nothing but prior changes N mu by -pull d penalty / d theta."""
    X, y = tiny.data(family)
    model = tiny.begin(family, X, y, prior=prior)
    model, _ = tiny.run(model, X, y, rho=0.05)  # away from the mode
    of, block, pull = FAMILIES[family], model.features, 1e-7
    step = model._step(Moves(0.0, pull, pull, tiny.PLAIN))
    batch = of.read(block, of.view(X))
    after, _ = of.moved(copy.deepcopy(block), of.expected(block, batch, np.zeros((12, 3))), step)
    change = moved_by(block, after, tiny.counts_of(block, model.classes.shares))
    for theta, at in directions(family, model):
        up, down = (family_of(at(h)).penalty(at(h)) for h in (H, -H))
        slope = (up - down) / (2 * H)
        assert (change * theta).sum() / pull == pytest.approx(-slope, rel=1e-4, abs=1e-4)


TARGETS = {
    "label": 1,
    "unlabelled": -1,
    "set": np.array([True, True, False]),
    "soft": np.array([0.2, 0.5, 0.3]),
}


def targets_of(target):
    target = np.asarray(target)[None]
    if target.dtype == bool:
        return label_sets(target)
    return soft_labels(target) if target.ndim == 2 else target


@tiny.in_turn("family, loss, target", list(FAMILIES), list(LOSSES), TARGETS)
def test_the_move_is_the_natural_gradient(family, loss, target):
    """N mu goes along -dl/dtheta, with l the loss + penalty / n; so do the classes."""
    X, codes = tiny.data(family)
    model, n, rho = tiny.begin(family, X, codes), 7.0, 1e-7
    row, alone = X[2:3], isinstance(target, int) and target < 0
    if loss == "hinge" and isinstance(target, int) and not alone:  # where the loss is not zero
        target = int(tiny.scores(model, row)[0].argmin())

    def objective(model):
        a = tiny.scores(model, row)[0]
        return value_and_weights("nll" if alone else loss, a, target)[0] + model.penalty() / n

    after, _, shortened = tiny.step(model, row, targets_of(target), loss, rho, n)
    assert shortened == 0
    change = moved_by(
        model.features, after.features, tiny.counts_of(model.features, model.classes.shares)
    )
    for theta, at in directions(family, model):
        up, down = (objective(model._replace(blocks=(at(h),))) for h in (H, -H))
        expected = -(up - down) / (2 * H)
        assert (change * theta).sum() / rho == pytest.approx(expected, rel=1e-4, abs=2e-5)
    counts, old = after.classes.counts, model.classes.counts
    assert old.sum() == pytest.approx(1.0)
    for k in range(3):
        logits = H * (np.arange(3) == k)
        ends = [
            objective(model._replace(classes=model.classes._replace(counts=old * np.exp(b))))
            for b in (logits, -logits)
        ]
        expected = -(ends[0] - ends[1]) / (2 * H)
        got = (counts / counts.sum() - old)[k] / rho
        assert got == pytest.approx(expected, rel=1e-4, abs=1e-5)


# --- leverage -------------------------------------------------------------------------------------


def reach(model, batch, k, eps):
    """How far a weight of `eps` moves the score of class k of one row, classes held."""
    _, posterior = model.scores(batch)
    W = eps * (np.arange(model.n_classes) == k)[None].astype(float)
    after, _ = copy.deepcopy(model).moved(batch, posterior, W, Moves(0.0, 0.0, 0.0, tiny.PLAIN))
    after = after._replace(classes=model.classes)
    return after.scores(batch)[0][0, k]


DAMPED = [name for name, family in FAMILIES.items() if type(family).leverage is not Family.leverage]


@pytest.mark.parametrize("first", [None, np.array([0, 2, 3])], ids=["plain", "mixed"])
@pytest.mark.parametrize("names", [*((f,) for f in DAMPED), ("gaussian", "words")], ids="+".join)
def test_leverage_is_how_far_a_row_moves_its_own_score(names, first):
    """D a_k / d W_k of each row, by differences; with missing cells, and in mixtures."""
    family = multiply(*(FAMILIES[name] for name in names))
    size = 3 if len(names) == 1 else (3, 3)
    y = np.arange(12) % 3
    X = family.example(y, size, np.random.default_rng(0))
    X = tiny.holed(names[0], X) if len(names) == 1 else X
    model, eps = tiny.begin(family, X, y, first=first), 1e-7
    moves = Moves(0.0, 0.0, 0.0, tiny.PLAIN)
    for i in range(6):
        batch = model.read(family.view(tiny.take(X, [i])))
        a, posterior = model.scores(batch)
        leverage = model.leverage(batch, posterior, np.zeros_like(a), moves)
        for k in range(model.n_classes):
            slope = (reach(model, batch, k, eps) - reach(model, batch, k, -eps)) / (2 * eps)
            assert leverage[0, k] == pytest.approx(slope, rel=1e-4, abs=1e-6)
