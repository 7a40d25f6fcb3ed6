"""What to ask next: laws of `expected_gains` and `next_cell`."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from test_table import FIXED, GIVEN, made

from discem import TableClassifier
from discem.exceptions import InputError, OptionError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OPTIONS = FIXED | {"families": GIVEN}


@pytest.fixture(scope="module")
def model():
    """One model that classifies and is the density, too: gains are then exact information."""
    return TableClassifier(**OPTIONS | {"density": False}).fit(*made(400))


def entropy(log_p):
    return -(np.exp(log_p) * log_p).sum()


@pytest.mark.parametrize("name", ["town", "member"])
def test_gains_of_levels_are_the_information_by_enumeration(model, name):
    row = {"size": 1.0, "visits": 6.0}
    levels = model.distribution(name, row)
    seen = made(400)[0][name].notna().mean()
    found = sum(
        p * entropy(model.predict_log_proba([row | {name: level}])[0])
        for level, p in levels.items()
    )
    expected = seen * (entropy(model.predict_log_proba([row])[0]) - found)
    assert expected > 0.01
    np.testing.assert_allclose(model.expected_gains(row)[name], expected, rtol=1e-6)


def test_gains_of_numbers_are_the_information_by_integration(model):
    row = {"town": "bree"}
    x = np.linspace(-12.0, 16.0, 4001)
    joint = model.predict_joint_log_proba(pd.DataFrame({"town": "bree", "size": x}))
    p = np.exp(logsumexp(joint, axis=1))
    log_p = joint - logsumexp(joint, axis=1, keepdims=True)
    left = (p * -(np.exp(log_p) * log_p).sum(axis=1)).sum() / p.sum()
    seen = made(400)[0]["size"].notna().mean()
    expected = seen * (entropy(model.predict_log_proba([row])[0]) - left)
    np.testing.assert_allclose(model.expected_gains(row)["size"], expected, rtol=0.08)


def test_what_is_asked_next(model):
    row = {"price": 2.0}
    gains = model.expected_gains(row)
    assert set(gains) == {"size", "rain", "visits", "member", "town"}
    assert min(gains.values()) >= 0.0
    best = model.next_cell(row)
    assert gains[best] == max(gains.values())
    asked, costs = [], {}
    while (name := model.next_cell(row, costs)) is not None:
        asked.append(name)
        costs[name] = np.inf
    assert asked == sorted(gains, key=gains.get, reverse=True)
    dear = dict.fromkeys(gains, 1.0) | {best: 1e6}
    assert model.next_cell(row, dear) == asked[1]
    assert model.next_cell(made(400)[0].iloc[0].to_dict()) is None  # nothing is missing
    assert model.expected_gains(row | {"size": np.nan, "town": None, "member": pd.NA}) == gains
    # a level that training did not see is known, though it says nothing
    assert "town" not in model.expected_gains({"town": "moria"})


def test_cells_that_are_hardly_ever_there_are_worth_less():
    X, y = made(600, holes=0.0)
    X["hint"] = np.where(np.arange(len(X)) % 10 == 0, y, None)
    often = X.assign(hint=np.where(np.arange(len(X)) % 10 < 9, y, None))
    rare, usual = (TableClassifier(**OPTIONS).fit(table, y) for table in (X, often))
    assert rare.expected_gains({})["hint"] < 0.2 * usual.expected_gains({})["hint"]


def test_what_cannot_be_asked(model):
    with pytest.raises(InputError, match="no column 'shape'"):
        model.next_cell({"shape": 1.0})
    with pytest.raises(InputError, match="no column 'shape'"):
        model.next_cell({}, {"shape": 1.0})
    with pytest.raises(OptionError, match="'size' is 0"):
        model.next_cell({}, {"size": 0})
