"""Laws of the schedules."""

import math

import numpy as np
import pytest

from discem import constant, inverse, power
from discem.exceptions import OptionError
from discem.schedules import step_sizes

FORMULAS = {
    "inverse": (inverse(0.01), lambda t: 1 / (1 + 0.01 * t)),
    "power": (power(0.3, 50.0, 0.75), lambda t: 0.3 * (50 / (50 + t)) ** 0.75),
    "constant": (constant(0.2), lambda t: 0.2),
}
every_schedule = pytest.mark.parametrize(
    ("schedule", "formula"), FORMULAS.values(), ids=FORMULAS.keys()
)


@every_schedule
def test_the_size_of_step_t(schedule, formula):
    """rho(t) is the formula of the docstring, for one t and for many."""
    for t in (1, 7, 10_000):
        assert schedule(t) == pytest.approx(formula(t), rel=1e-14)
    np.testing.assert_allclose(
        step_sizes(schedule, 5, 100), [formula(t) for t in range(5, 105)], rtol=1e-14
    )


@every_schedule
def test_pieces_are_the_whole(schedule, formula):
    """Steps 1..30 are steps 1..10 followed by steps 11..30."""
    pieces = np.concatenate([step_sizes(schedule, 1, 10), step_sizes(schedule, 11, 20)])
    np.testing.assert_array_equal(pieces, step_sizes(schedule, 1, 30))


@pytest.mark.parametrize(
    "schedule",
    [lambda t: 0.1 if t < 5 else 0.01, lambda t: 1 / math.sqrt(t), lambda t: min(0.5, 1 / t)],
    ids=["branch", "math", "min"],
)
@pytest.mark.parametrize("count", [0, 1, 8])
def test_schedules_may_take_one_step_at_a_time(schedule, count):
    """A callable that knows only scalars gives the same sizes."""
    sizes = step_sizes(schedule, 3, count)
    assert sizes.dtype == np.float64
    np.testing.assert_allclose(sizes, [schedule(t) for t in range(3, 3 + count)])


def test_one_number_is_a_constant():
    """A schedule that ignores t is broadcast."""
    np.testing.assert_array_equal(step_sizes(lambda t: 0.5, 1, 3), [0.5, 0.5, 0.5])


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf])
@pytest.mark.parametrize("where", [1, 4])
def test_impossible_sizes_are_refused(bad, where):
    """Negative and non-finite sizes are errors, wherever they occur."""
    with pytest.raises(OptionError, match="negative or non-finite"):
        step_sizes(lambda t: np.where(t == where, bad, 0.1), 1, 4)
