"""The core on any standard array: one step there is one step in NumPy.

The strict namespace has nothing but the standard, of an old edition; its arrays are on a second
device, so that nothing may stay with the host that belongs to the device, or mix the two.
"""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import test_regression
import tiny

from discem import Check, Interior, NormalBetaPrime, PaperNormalGamma
from discem._arrays import beside, namespace_of, on_device, segment_max, segment_sum
from discem.engines import Rule
from discem.exceptions import InputError
from discem.families import FAMILIES, multiply
from discem.losses import LOSSES, NCLL, NLL, Blend, resolve_loss
from discem.targets import Targets, label_sets, labels, soft_labels
from discem.update import update

strict = pytest.importorskip("array_api_strict", reason="the strict array namespace is absent")
every_loss = pytest.mark.parametrize("loss", LOSSES)
PRIORS = {"gaussian": [None, NormalBetaPrime(), PaperNormalGamma()]}
CASES = [(name, prior) for name in tiny.DENSE for prior in PRIORS.get(name, [None])]
PROJECTIONS = [Interior(0.5, 0.03, 2.0), Interior(0.5, 0.0), Check()]
rng = np.random.default_rng(3)
TARGETS = {
    "labels": labels(np.arange(24) % 2),
    "few": labels(np.where(np.arange(24) % 3, np.arange(24) % 2, -1)),
    "sets": label_sets(rng.random((24, 2)) < [0.6, 1.0]),
    "soft": soft_labels(rng.dirichlet(np.ones(2), 24)),
}
TARGETS["mixed"] = Targets(
    np.where(np.arange(24) % 3 == 0, 1, TARGETS["sets"].codes), TARGETS["sets"].share
)


@pytest.fixture(autouse=True)
def old_edition():
    with strict.ArrayAPIStrictFlags(api_version="2023.12"):
        yield


@pytest.fixture
def there():
    """An array of the second device."""
    return strict.asarray([0.0], device=strict.Device("device1"))


def host(state):
    """The state with all its arrays in NumPy; everything that was given is on the device."""
    if isinstance(state, dict):
        return {name: host(part) for name, part in state.items()}
    if isinstance(state, tuple):
        parts = [host(part) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    if is_dataclass(state):
        named = {field.name: host(getattr(state, field.name)) for field in fields(state)}
        return replace(state, **named)
    if isinstance(state, np.ndarray | np.generic) or not hasattr(state, "to_device"):
        return state
    assert state.device == strict.Device("device1")
    return np.asarray(state.to_device(strict.Device("CPU_DEVICE")))


def problem(family, prior=None, first=None):
    """Rows of two classes with missing cells, and a model of three components or two."""
    of = FAMILIES[family] if isinstance(family, str) else family
    y, width = np.arange(24) % 3, 3 if isinstance(family, str) else (2, 3)
    X = of.example(y, width, np.random.default_rng(0))
    model = tiny.begin(of, X, y, prior=prior, average=True, first=first)
    for part in X if isinstance(X, tuple) else (X,):
        part[::5, 1] = np.nan
    return of, X, model


def compare(model, rows, targets, loss, projection, rho, there):
    """One step on both sides, the average, the scores, the penalty."""
    rule = Rule(resolve_loss(loss), projection, None, 24.0, 24)
    weights, ends = np.linspace(0.5, 1.5, 24), []
    for start in (model, on_device(model, there)):
        state, judged, shortened = update(start, start.read(rows), targets, weights, rule, rho)
        state = state.averaged_in(2.0)
        scores, _ = state.averaged().scores(state.read(rows))
        ends.append((host(state), host(scores), host(judged), host(shortened), state.penalty()))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(tiny.flat(other), tiny.flat(one), rtol=1e-9, atol=1e-12)


@tiny.in_turn(
    "case, loss, projection",
    {f"{family}-{prior}": (family, prior) for family, prior in CASES},
    list(LOSSES),
    {str(projection): projection for projection in PROJECTIONS},
)
def test_a_step_on_strict_arrays_is_a_step_in_numpy(case, loss, projection, there):
    """Of naive Bayes and of mixtures, with missing cells, also where steps are far too large."""
    for first, rho in ((None, 0.1), (None, 30.0), (np.array([0, 2, 3]), 0.1)):
        of, X, model = problem(*case, first)
        targets = labels(np.arange(24) % model.n_classes)
        compare(model, of.view(X), targets, loss, projection, rho, there)


@tiny.in_turn("family, loss, targets", tiny.DENSE, list(LOSSES), TARGETS)
def test_targets_of_all_kinds_on_strict_arrays(family, loss, targets, there):
    of, X, model = problem(family, first=np.array([0, 2, 3]))
    compare(model, of.view(X), targets, loss, Interior(), 0.1, there)


def test_products_on_strict_arrays(there):
    of, X, model = problem(multiply(FAMILIES["gaussian"], FAMILIES["categorical"]))
    compare(model, of.view(X), labels(np.arange(24) % 3), "ncll", Interior(), 0.1, there)


@pytest.mark.parametrize("loss", [NCLL(), NLL(), Blend(0.3)], ids=str)
def test_regression_on_strict_arrays(loss, there):
    encoded, y = test_regression.table(24, answers=2)
    y[::7, 1] = np.nan
    learner = test_regression.begin(encoded, y, loss=loss).learner_
    data = test_regression.as_data(encoded, y)
    state = learner.state.with_average()
    compare(state, data.rows, data.targets, loss, Interior(), 0.1, there)


def test_segments_are_the_same_on_strict_arrays(there):
    values, first = rng.normal(size=(9, 4)), np.array([0, 2, 3, 9])
    across = segment_sum(beside(values.T, there), first, axis=1)
    np.testing.assert_allclose(host(across), segment_sum(values.T, first, axis=1))
    for function in (segment_sum, segment_max):
        got = function(beside(values, there), first)
        np.testing.assert_allclose(host(got), function(values, first))
        assert function(values[:0], first[:1]).shape == (0, 4)


def test_a_stranger_to_the_standard_is_named():
    with pytest.raises(InputError, match="list is no standard array"):
        namespace_of([1.0])
