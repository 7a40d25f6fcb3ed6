"""Kinds of table columns are registered, and nothing else has to hear of them."""

import numpy as np
import pandas as pd
import pytest
from exponential import Waits

import discem
from discem import MixtureClassifier, TableClassifier
from discem.exceptions import InputError, ModelFileError, OptionError
from discem.families import COLUMN_KINDS, ColumnKind, register_column
from discem.io.column_kinds import NUMBER, Found
from discem.io.tables import Layout

rng = np.random.default_rng(0)
N = 400
Y = np.where(rng.random(N) < 0.5, "script", "person")
WAIT = rng.exponential(np.where(Y == "script", 0.1, 3.0))
WAIT[::9] = np.nan
# the classes are apart on the circle, where 0 is beside 2 pi, and not on the line
ANGLE = (np.where(Y == "script", 0.0, np.pi) + rng.normal(0.0, 0.4, N)) % (2 * np.pi)
FRAME = pd.DataFrame({"wait": WAIT, "size": rng.normal(size=N), "angle": ANGLE})
SOON = {"n_components": 1, "loss": "ncll", "hide": 0.0, "random_state": 0}


class Angles(ColumnKind):
    """Angles, as places on the circle: two numbers of the Gaussian family for each cell."""

    name = "angle"
    slots = (NUMBER, NUMBER)
    turn = 1
    takes = "numbers from 0 to 2 pi"

    def recognise(self, sample):
        known = sample.kind == "number" and not sample.is_whole and sample.where == "column 'angle'"
        return Found("angles") if known else None

    def outside(self, values):
        return (values < 0.0) | (values > 2 * np.pi)

    def split(self, values):
        return np.cos(values), np.sin(values)

    def join(self, parts):
        return np.arctan2(parts[1], parts[0]) % (2 * np.pi)

    def within(self, column, part):
        return part


@pytest.fixture
def kinds():
    before = dict(COLUMN_KINDS)
    yield register_column(Waits()), register_column(Angles())
    COLUMN_KINDS.clear()
    COLUMN_KINDS.update(before)


@pytest.mark.usefixtures("kinds")
def test_a_kind_has_a_family_of_its_own():
    """It takes its cells in a table of any other columns, in streams and files."""
    given = {"wait": "exponential", "angle": "ignored"}
    model = TableClassifier(families=given, **SOON).fit(FRAME, Y)
    assert model.families_["wait"] == "exponential: given"
    assert [block.family for block in model.model_.learner_.model.blocks] == [
        "gaussian",
        "categorical",
        "poisson",
        "exponential",
    ]
    assert model.score(FRAME[["wait"]], Y) > 0.8
    # the family's own naive Bayes says the same of these cells
    cells = FRAME[["wait"]].to_numpy()
    alone = MixtureClassifier(1, families={0: "exponential"}, loss="nll", random_state=0)
    beside = MixtureClassifier(1, families=given, loss="nll", random_state=0).fit(FRAME, Y)
    np.testing.assert_allclose(
        alone.fit(cells, Y).predict_proba(cells),
        beside.predict_proba(FRAME[["wait"]]),
        rtol=1e-9,
    )
    stream = TableClassifier(families=given, random_state=0)
    stream.partial_fit(FRAME[:200], Y[:200]).partial_fit(FRAME[200:], Y[200:])
    assert stream.score(FRAME, Y) > 0.8


@pytest.mark.usefixtures("kinds")
def test_missing_cells_of_a_kind_are_drawn():
    given = {"wait": "exponential", "angle": "ignored"}
    model = TableClassifier(families=given, **SOON).fit(FRAME, Y)
    drawn, _ = model.sample(2000, random_state=0, y="person")
    assert drawn["wait"].mean() == pytest.approx(np.nanmean(WAIT[Y == "person"]), rel=0.2)
    filled = model.impute(FRAME, how="draw", random_state=0)
    assert filled["wait"].notna().all()
    with pytest.raises(OptionError, match="'wait': columns of kind 'exponential' cannot be asked"):
        model.distribution("wait")


def test_files_know_a_kind_only_where_it_is_registered(kinds, tmp_path):
    model = TableClassifier(families={"wait": "exponential"}, **SOON).fit(FRAME, Y)
    model.save(tmp_path / "model.skops")
    again = discem.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))
    del COLUMN_KINDS["exponential"]
    with pytest.raises(ModelFileError, match="column 'wait' is of no known family"):
        discem.load(tmp_path / "model.skops")


@pytest.mark.usefixtures("kinds")
def test_a_cell_may_become_several_numbers_of_a_family():
    """Angles are recognised, are near each other across 0, and come back."""
    layout = Layout.learn(FRAME)
    assert layout.families_["angle"] == "angle: angles"
    assert layout.numbers == [0, 1, 2, 2]
    np.testing.assert_allclose(layout.decode(layout.encode(FRAME))["angle"], ANGLE)
    frame = FRAME[["angle"]]
    circle = TableClassifier(**SOON).fit(frame, Y)
    line = TableClassifier(families="gaussian", **SOON).fit(frame, Y)
    assert circle.score(frame, Y) > 0.97
    assert circle.score(frame, Y) >= line.score(frame, Y)
    hidden = TableClassifier(**SOON | {"hide": 0.5}).fit(FRAME.assign(wait=0.0), Y)
    assert hidden.score(frame, Y) > 0.97


@pytest.mark.usefixtures("kinds")
def test_cells_that_a_kind_does_not_take():
    with pytest.raises(InputError, match="holds -1 in row 1: it takes numbers from 0"):
        Layout.learn([{"wait": 1.0}, {"wait": -1.0}], {"wait": "exponential"})
    layout = Layout.learn(FRAME[["wait"]], {"wait": "exponential"})
    with pytest.warns(UserWarning, match="as numbers from 0 in 'wait'"):
        cells = layout.encode(pd.DataFrame({"wait": [-1.0, 2.0]}))
    np.testing.assert_array_equal(cells[3], [[np.nan], [2.0]])


def test_the_names_of_kinds_are_told(kinds):
    with pytest.raises(OptionError, match="'exponential'"):
        Layout.learn(FRAME, {"wait": "exponentially"})
    assert {kind.name for kind in kinds} == {"exponential", "angle"}
