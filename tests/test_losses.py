"""Laws of the losses, over the registry and over every kind of target."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax

from discem.exceptions import OptionError
from discem.losses import LOSSES, NLL, Blend, Hinge, resolve_loss, value_and_weights
from discem.targets import IN_SET, SHARED, Targets, infer, label_sets, labels, soft_labels

K = 4
TARGETS = {
    "label": 2,
    "unlabelled": -1,
    "set": np.array([True, False, True, False]),
    "soft": np.array([0.1, 0.2, 0.7, 0.0]),
}
SCALES = [1.0, 30.0, 1e5]
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
every_scale = pytest.mark.parametrize("scale", SCALES)


def draws(scale, n=50):
    return np.random.default_rng(7).normal(size=(n, K)) * scale


@every_loss
@every_target
@every_scale
def test_weights_are_minus_the_derivative(loss, target, scale):
    """w_k = -d loss / d a_k, by central differences."""
    h, smooth = 1e-4 * max(1.0, scale / 100), 0
    for a in draws(scale):
        value, weights = value_and_weights(loss, a, target)
        ends = np.array(
            [
                [value_and_weights(loss, a + sign * h * e, target)[0] for e in np.eye(K)]
                for sign in (1, -1)
            ]
        )
        up, down = (ends[0] - value) / h, (value - ends[1]) / h
        if loss == "hinge" and np.abs(up - down).max() > 0.1:
            continue  # a kink
        smooth += 1
        np.testing.assert_allclose(weights, -(up + down) / 2, atol=2e-5 if scale < 1e3 else 1e-2)
    assert smooth > 40


@every_target
@every_scale
@pytest.mark.parametrize(
    ("loss", "total"), [("nll", 1.0), ("ncll", 0.0), ("hinge", 0.0), (Blend(0.3), 0.3)]
)
def test_weights_sum_to_the_decay(loss, total, target, scale):
    """sum_k w_k = -d loss / d (a shift of all scores): 0 if shift-invariant, 1 for NLL."""
    for a in [*draws(scale), np.array([-1e300, 0.0, 1e300, 1.0])]:
        _, weights = value_and_weights(loss, a, target)
        assert weights.sum() == pytest.approx(total, abs=1e-12)


@every_loss
@every_scale
def test_a_set_of_one_is_a_label(loss, scale):
    """T = {y} and q = e_y are the label y."""
    for a in draws(scale):
        value, weights = value_and_weights(loss, a, 1)
        for same in (np.arange(K) == 1, np.eye(K)[1]):
            value_same, weights_same = value_and_weights(loss, a, same)
            assert value_same == pytest.approx(value, rel=1e-12, abs=1e-12)
            np.testing.assert_allclose(weights_same, weights, atol=1e-14)


@every_loss
@every_scale
def test_the_set_of_all_classes_is_no_label(loss, scale):
    """T = all classes is the unlabelled row."""
    for a in draws(scale):
        value, weights = value_and_weights(loss, a, -1)
        value_all, weights_all = value_and_weights(loss, a, np.ones(K, dtype=bool))
        assert value_all == pytest.approx(value, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(weights_all, weights, atol=1e-14)


@every_scale
def test_closed_forms(scale):
    """The values and weights of the table of the method, from SciPy."""
    T = TARGETS["set"]
    for a in draws(scale):
        cases = {
            ("nll", -1): (-logsumexp(a), softmax(a)),
            ("ncll", -1): (0.0, np.zeros(K)),
            ("hinge", -1): (0.0, np.zeros(K)),
            ("nll", 1): (-a[1], np.eye(K)[1]),
            ("ncll", 1): (-log_softmax(a)[1], np.eye(K)[1] - softmax(a)),
            ("hinge", 1): (max(0.0, 1 - a[1] + np.delete(a, 1).max()), None),
            ("nll", "set"): (-logsumexp(a[T]), np.where(T, softmax(np.where(T, a, -np.inf)), 0)),
            ("hinge", "set"): (max(0.0, 1 - a[T].max() + a[~T].max()), None),
            ("ncll", "soft"): (-TARGETS["soft"] @ log_softmax(a), TARGETS["soft"] - softmax(a)),
        }
        for (loss, target), (value, weights) in cases.items():
            got, got_weights = value_and_weights(loss, a, TARGETS.get(target, target))
            assert got == pytest.approx(value, rel=1e-10, abs=1e-10 * scale)
            if weights is not None:
                np.testing.assert_allclose(got_weights, weights, atol=1e-10 * scale)


@every_target
def test_blend_is_the_sum(target):
    """Blend(kappa) = NCLL + kappa NLL, in value and weights."""
    for a in draws(3.0):
        for kappa in (0.0, 0.25, 4.0):
            blend = value_and_weights(Blend(kappa), a, target)
            ncll, nll = (value_and_weights(loss, a, target) for loss in ("ncll", "nll"))
            for j in (0, 1):
                np.testing.assert_allclose(blend[j], ncll[j] + kappa * nll[j], atol=1e-11)


@every_scale
def test_hinge_is_at_most_one_more_than_ncll(scale):
    """Hinge <= 1 + NCLL (the paper's bound without the 1 is false at margin 0)."""
    for a in [*draws(scale), np.zeros(K)]:
        hinge, ncll = (value_and_weights(loss, a, 0)[0] for loss in ("hinge", "ncll"))
        assert hinge <= 1 + ncll + 1e-12 * scale


def test_hinge_moves_the_best_right_and_the_best_wrong_class():
    """Weights are e_best(T) - e_best(not T), and the margin is a parameter."""
    a = np.array([0.0, 1.0, 0.5, -1.0])
    assert value_and_weights("hinge", a, 0)[1].tolist() == [1, -1, 0, 0]
    assert value_and_weights("hinge", a, TARGETS["set"])[1].tolist() == [0, -1, 1, 0]
    assert value_and_weights(Hinge(0.4), a, 1) == (0.0, pytest.approx(np.zeros(K)))
    assert value_and_weights(Hinge(0.6), a, 1)[0] == pytest.approx(0.1)


ENCODED = {
    "label": labels(np.array([0, 1, 2, 3, -1] * 4)),
    "set": label_sets(np.random.default_rng(1).random((20, K)) < [0.3, 0.6, 0.3, 1.0]),
    "soft": soft_labels(np.random.default_rng(2).dirichlet(np.ones(K), 20)),
}
ENCODED["mixed"] = Targets(  # kinds of targets may stand side by side
    np.where(np.arange(20) % 3 == 0, ENCODED["label"].codes, ENCODED["set"].codes),
    ENCODED["set"].share,
)
every_kind = pytest.mark.parametrize("targets", ENCODED.values(), ids=ENCODED)


def alone(targets, i):
    """The target of one row, as `value_and_weights` takes it."""
    if targets.codes[i] >= -1:
        return int(targets.codes[i])
    return targets.share[i] > 0 if targets.codes[i] == IN_SET else targets.share[i]


@every_loss
@every_kind
def test_rows_of_a_batch_are_rows_alone(loss, targets):
    """Whatever kinds of targets stand side by side, and however far the scores are apart."""
    scored = np.concatenate([draws(scale, 10) for scale in (2.0, 1e4)])
    values, weights = LOSSES[loss].evaluate(infer(scored, targets))
    for i in range(20):
        value, weight = value_and_weights(loss, scored[i], alone(targets, i))
        assert values[i] == pytest.approx(value, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(weights[i], weight, atol=1e-14)


@every_kind
def test_inferences_are_posteriors(targets):
    """Clamped and free sums, and that each posterior sums to one; no class is both right and wrong.

    Of shares, what is given are these, and the clamped score is that which they expect.
    """
    scored = draws(5.0, 20)
    seen = infer(scored, targets)
    np.testing.assert_allclose(seen.free, logsumexp(scored, axis=1), rtol=1e-12)
    np.testing.assert_allclose(seen.posterior, softmax(scored, axis=1), rtol=1e-10)
    np.testing.assert_allclose(seen.given.sum(axis=1), 1.0, rtol=1e-12)
    for i in range(20):
        target = alone(targets, i)
        if targets.codes[i] == SHARED:
            assert seen.clamped[i] == pytest.approx(target @ scored[i])
            np.testing.assert_array_equal(seen.given[i], target)
            continue
        right = np.ones(K, bool) if np.ndim(target) == 0 and target < 0 else np.zeros(K, bool)
        right = right | (target if np.ndim(target) else np.arange(K) == target)
        assert seen.clamped[i] == pytest.approx(logsumexp(scored[i][right]))
        assert right[seen.right[i]] and scored[i][seen.right[i]] == scored[i][right].max()
        gap = np.inf if right.all() else scored[i][right].max() - scored[i][~right].max()
        assert seen.margin[i] == pytest.approx(gap)


@every_kind
@pytest.mark.parametrize("scale", [1e5, 1e150, 1e300])
def test_no_scores_are_too_far_apart(targets, scale):
    """Values and weights are numbers, and weights are about 1 at most."""
    for loss in LOSSES.values():
        values, weights = loss.evaluate(infer(draws(scale, 20), targets))
        assert np.isfinite(values).all() and (np.abs(weights) < 1.2).all()


def test_an_empty_batch_has_no_losses():
    for loss in LOSSES.values():
        values, weights = loss.evaluate(infer(np.zeros((0, K)), labels([])))
        assert values.shape == (0,) and weights.shape == (0, K)


@pytest.mark.parametrize("loss", ["huber", "NCLL", ""])
def test_unknown_names_are_refused_by_name(loss):
    """An unknown loss is an error that names it and the known ones."""
    with pytest.raises(OptionError, match=f"loss='{loss}'.*'blend', 'hinge', 'ncll', 'nll'"):
        resolve_loss(loss)


@pytest.mark.parametrize(
    "loss", [Blend(-1.0), Blend(np.nan), Hinge(0.0), Hinge(np.inf), 3, None, (1.0,), NLL]
)
def test_senseless_losses_are_refused(loss):
    """Parameters outside their domain, and things that are no loss, are errors."""
    with pytest.raises(OptionError, match="loss="):
        resolve_loss(loss)


@every_loss
def test_names_and_objects_are_the_same_loss(loss):
    """A name stands for its object; whole-number parameters become floats."""
    assert resolve_loss(loss) == resolve_loss(LOSSES[loss]) == LOSSES[loss]
    assert type(resolve_loss(Blend(1)).kappa) is float


def test_targets_can_be_taken_apart():
    """`take` and `parts` agree for every kind: weights add up, rows stay what they are."""
    for name, targets in ENCODED.items():
        if name == "mixed":
            continue
        weights = np.linspace(0.5, 1.5, 20)
        total = np.zeros((20, K))
        for codes, weight in targets.parts(weights):
            known = codes >= 0
            total[known, codes[known]] += weight[known]
        np.testing.assert_allclose(total, weights[:, None] * targets.even_shares(K))
        some = np.array([4, 0, 7])
        np.testing.assert_array_equal(
            targets.take(some).even_shares(K), targets.even_shares(K)[some]
        )


WRONG = {
    "no pair": (lambda seen: None, "must return a pair"),
    "one number": (lambda seen: (0.0, seen.given), r"values of shape \(\); expected \(2,\)"),
    "transposed": (lambda seen: (seen.free, seen.given.T), r"weights of shape \(3, 2\)"),
    "not a number": (lambda seen: (seen.free, seen.given * np.nan), "weights that are not finite"),
}


@pytest.mark.parametrize(("evaluate", "told"), WRONG.values(), ids=WRONG)
def test_a_loss_of_your_own_that_returns_nonsense_is_refused_before_training(evaluate, told):
    Mine = type("Mine", (), {"evaluate": lambda self, seen: evaluate(seen)})
    with pytest.raises(OptionError, match=told):
        resolve_loss(Mine())
