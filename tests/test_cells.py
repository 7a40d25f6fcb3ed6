"""Cells and names of every kind: they come back as they were, or are refused by name."""

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discem
from discem import GaussianNB, MixtureClassifier
from discem.exceptions import DiscemError, InputError
from discem.io.cells import is_missing
from discem.io.tables import Layout

Y = ["a", "a", "b", "b", "a", "b"]
BIG = [2**53 + 1, 2**53]
few = settings(max_examples=60, deadline=None)


class Colour(str, Enum):  # noqa: UP042  whose text is not its value
    RED = "red"
    BLUE = "blue"


def six(one, other, last=None):
    return [one, one, other, other, last, last]


def there_and_back(X):
    layout = Layout.learn(X, rare=1)
    return layout.decode(layout.encode(X))


def column_of(table):
    """The cells of the first column, as Python has them."""
    if isinstance(table, list):
        return [row.get("x") for row in table]
    column = table["x"]
    cells = column.to_pylist() if isinstance(column, pa.ChunkedArray) else column.to_list()
    return [None if is_missing(cell) else cell for cell in cells]


BACK = {  # a column, and how to make a table of it
    "large decimals": (six(Decimal(2**53 + 1), Decimal(2**53)), ["dicts", "pandas", "pyarrow"]),
    "large decimals of polars": (six(Decimal(2**53 + 1), Decimal(2**53)), ["polars"]),
    "large fractions": (six(Fraction(2**53 + 1), Fraction(2**53)), ["dicts", "pandas"]),
    "large integers beside floats": (six(2**53 + 1, float(2**53), 1.0), ["dicts", "pandas"]),
    "unsigned integers": (six(2**63, 2**63 + 1), ["dicts", "pandas", "polars", "unsigned"]),
    "integers of 128 bits": (six(2**100, 2**100 + 1), ["dicts", "pandas", "polars"]),
    "decimals of 256 bits": (six(Decimal(10**60), Decimal(10**60 + 1)), ["dicts", "pyarrow"]),
    "signed and unsigned": (six(-1, 2**63), ["dicts", "pandas"]),
    "halves of characters": (six("\ud800", "\ud801"), ["dicts", "pandas"]),
    "a character and its halves": (six("\ud83d\ude00", "\U0001f600"), ["dicts", "pandas"]),
    "NULs": (six("a", "a\0"), ["dicts", "pandas", "polars", "pyarrow"]),
    "texts of an enumeration": (six(Colour.RED, Colour.BLUE), ["dicts", "pandas"]),
}
TABLES = {
    "dicts": lambda cells: [{"x": cell} for cell in cells],
    "pandas": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "polars": lambda cells: pl.DataFrame({"x": pl.Series(cells)}),
    "pyarrow": lambda cells: pa.table({"x": pa.array(cells)}),
    "unsigned": lambda cells: pa.table({"x": pa.array(cells, pa.uint64())}),
}


@pytest.mark.parametrize(
    "kind, backend",
    [(kind, backend) for kind, (_, backends) in BACK.items() for backend in backends],
)
def test_levels_come_back(kind, backend, tmp_path):
    """Of samples, too, and of files."""
    cells = BACK[kind][0]
    X = TABLES[backend](cells)
    assert column_of(there_and_back(X)) == cells
    model = MixtureClassifier(loss="nll", max_iter=1, random_state=0).fit(X, Y)
    drawn = model.sample(20, random_state=0)[0]
    assert set(column_of(drawn)) <= set(cells)
    assert len(model.predict(drawn)) == 20
    model.save(tmp_path / "m")
    loaded = discem.load(tmp_path / "m")
    assert column_of(loaded.sample(20, random_state=0)[0]) == column_of(drawn)


def test_levels_that_the_table_cannot_hold():
    """They came later, from a table of another library."""
    for backend, level in (("polars", "\ud800"), ("pyarrow", "\ud800")):
        first = TABLES[backend](six("a", "b"))
        model = MixtureClassifier(loss="nll", random_state=0).partial_fit(first, Y)
        model.partial_fit(TABLES["pandas"](six(level, "a")), Y)
        with pytest.raises(InputError, match=f"no place in a table of {backend}"):
            model.sample(50, random_state=0)


def test_a_number_is_not_a_level_that_a_float_takes_for_it():
    layout = Layout.learn(TABLES["dicts"](six(2**53 + 1, 2**60)), rare=1)
    assert layout.encode(TABLES["dicts"]([2**53, 2**53 + 1])).codes.ravel().tolist() == [-1, 0]
    assert layout.encode(TABLES["dicts"]([2**53])).codes.ravel().tolist() == [-1]
    assert layout.encode(pd.DataFrame({"x": [2.0**60]})).codes.ravel().tolist() == [1]


FAR = {
    "seconds": np.datetime64(2**62, "s"),
    "years": np.datetime64(2**62, "Y"),
    "years that are few days": np.datetime64(800_000, "Y"),
    "microseconds": np.datetime64(-(2**62), "us"),
    "pandas": pd.Timestamp(np.datetime64("300000-01-01", "s")),
}


@pytest.mark.parametrize("unit", FAR)
def test_dates_beyond_all_calendars(unit):
    cells = [np.datetime64("2020-01-01", "D"), FAR[unit], None]
    with pytest.raises(InputError, match="beyond the years 1 to 9999 in row 1"):
        there_and_back(TABLES["dicts"](cells))


def test_durations_that_are_too_long():
    for long in (
        timedelta(10**8 + 1),
        np.timedelta64(2**62, "D"),
        pd.Timedelta(np.timedelta64(2**45, "s")),
    ):
        with pytest.raises(InputError, match=r"more than 1e\+08 days in row 1"):
            there_and_back(TABLES["dicts"]([timedelta(1), long]))
    with pytest.raises(InputError, match=r"more than 1e\+08 days in row 0"):
        there_and_back(np.array([[2**62], [1]], dtype="m8[s]"))


def test_units_of_dates_and_durations():
    """Each cell may have its own."""
    cells = [
        np.datetime64("2020", "Y"),
        np.datetime64("2020-01-03T12", "h"),
        date(2020, 1, 2),
        pd.Timestamp("2020-01-05"),
        datetime(2020, 1, 6, tzinfo=UTC),
        np.datetime64("NaT"),
    ]
    days = Layout.learn(TABLES["dicts"](cells)).encode(TABLES["dicts"](cells)).numbers.ravel()
    np.testing.assert_array_equal(days - days[0], [0.0, 2.5, 1.0, 4.0, 5.0, np.nan])
    cells = [np.timedelta64(1, "W"), timedelta(1), pd.Timedelta(2, "D"), np.timedelta64(36, "h")]
    lengths = Layout.learn(TABLES["dicts"](cells)).encode(TABLES["dicts"](cells)).numbers.ravel()
    np.testing.assert_array_equal(lengths, [7.0, 1.0, 2.0, 1.5])
    for unit in "Y", "M":
        with pytest.raises(InputError, match=rf"timedelta64\[{unit}\]: give it in days"):
            there_and_back(TABLES["dicts"]([np.timedelta64(1, unit), np.timedelta64(1, "D")]))


def test_what_is_missing():
    nothing = [
        None,
        float("nan"),
        pd.NA,
        pd.NaT,
        Decimal("sNaN"),
        np.ma.masked,
        np.datetime64("NaT"),
    ]
    for one, other in ((1, 2), ("a", "b"), (True, False), (date(2020, 1, 1), date(2020, 1, 2))):
        cells = [one, other, *nothing]
        found = column_of(there_and_back(TABLES["dicts"](cells)))
        assert [cell is None for cell in found] == [False] * 2 + [True] * len(nothing)


def test_levels_without_end():
    for level in (np.inf, Decimal("Infinity"), Decimal("1E+400"), Fraction(10**400), 10**200):
        with pytest.raises(InputError, match="a level that is infinite, or beyond"):
            Layout.learn(pd.DataFrame({"x": pd.Categorical([1, level])}))


# --- matrices of numbers --------------------------------------------------------------------------


def test_dates_are_no_numbers():
    """Not even as objects, of which NumPy makes some."""
    rows = [[np.datetime64("2020-01-01"), 1.0], [np.datetime64("2021-01-01"), 2.0]]
    for X in (rows, np.array(rows, dtype=object), pd.DataFrame(rows, dtype=object)):
        with pytest.raises(InputError, match=r"date or time .* at row 0, column 0"):
            GaussianNB().fit(X, ["a", "b"])
    days = pd.to_datetime(["2020", "2021"])
    codes = pa.chunked_array([pa.array(days).dictionary_encode()])
    arrow = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(codes)})
    dated = pd.DataFrame({"x": pd.Categorical(days)}), pa.table({"x": pa.array(days)})
    for X in (*dated, arrow, pa.table({"x": codes})):
        with pytest.raises(InputError, match="column 'x' of X holds dates or times"):
            GaussianNB().fit(X, ["a", "b"])


def test_missing_cells_of_a_matrix():
    nothing = [pd.NA, pd.NaT, Decimal("sNaN"), np.datetime64("NaT"), None]
    rows = [[0.0, 1], [1.0, 2], *([0.5, each] for each in nothing)]
    y = ["a", "b", *"aabab"]
    holes = np.array([[0.0, 1], [1.0, 2], *[[0.5, np.nan]] * 5])
    expected = GaussianNB(random_state=0).fit(holes, y).predict_proba(holes)
    masked = np.ma.array(np.nan_to_num(holes), mask=np.isnan(holes))
    for X in (rows, np.array(rows, dtype=object), masked):
        found = GaussianNB(random_state=0).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(found, expected)
    frame = pd.DataFrame(rows, columns=["one", "two"], dtype=object)
    assert GaussianNB().fit(frame, y).feature_names_in_.tolist() == ["one", "two"]


BAD = {
    "text": (six("a", "b"), "the text 'a' at row 0, column 0"),
    "half a character": (six("\ud800", "b"), "the text .* at row 0, column 0"),
    "lists": (six(1.0, [2]), r"has \[2\] at row 2, column 0"),
    "endless": (six(1.0, Fraction(10**400)), "has Fraction.* at row 2, column 0"),
    "clocks": (six(1.0, time(1)), r"has datetime.time\(1, 0\) at row 2, column 0"),
    "complex": (six(1.0, 1j), "has 1j at row 2, column 0"),
    "bytes": (six(1.0, b"x"), "has b'x' at row 2, column 0"),
}


@pytest.mark.parametrize("kind", BAD)
def test_cells_that_are_no_numbers(kind):
    cells, message = BAD[kind]
    rows = np.empty((6, 2), dtype=object)
    rows[:] = [[0.0, 1.0]] * 6
    for row, cell in enumerate(cells):
        rows[row, 0] = cell
    for X in (rows, pd.DataFrame(rows, dtype=object)):
        with pytest.raises(InputError, match=message):
            GaussianNB().fit(X, Y)


@pytest.mark.filterwarnings("ignore:X has feature names, but")  # of a table of pyarrow
def test_numbers_of_every_frame():
    numbers = [*range(6)]
    expected = GaussianNB(random_state=0).fit(np.array(numbers, dtype=float)[:, None], Y)
    for X in (
        pa.table({"x": numbers}),
        pl.DataFrame({"x": numbers}),
        pa.table({"x": pa.array([*map(Decimal, numbers)])}),
    ):
        model = GaussianNB(random_state=0).fit(X, Y)
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    with pytest.raises(DiscemError):
        GaussianNB().fit(pl.DataFrame({"x": pl.Series(numbers, dtype=pl.Int128)}), Y)


HOSTILE = {
    "a series": pd.Series([1, 2]),
    "a long text": "a" * 10_000,
    "a long number": 10**5000,
    "a list of one": [10**5000],
    "a long fraction": Fraction(10**400),
    "complex": np.complex64(1),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_messages_are_a_line(kind):
    """Whatever is in a cell, or is a label."""
    cells = [HOSTILE[kind], 1.0]
    for X in ([{"x": cell} for cell in cells], pd.DataFrame({"x": pd.Series(cells, dtype=object)})):
        for Model in (GaussianNB, MixtureClassifier):
            with pytest.raises(DiscemError) as told:
                Model().fit(X, ["a", "b"])
            assert "\n" not in str(told.value) and len(str(told.value)) < 300
    with pytest.raises(InputError) as told:
        GaussianNB().fit([[0.0], [1.0], [2.0]], [*cells, "a"])
    assert "\n" not in str(told.value) and len(str(told.value)) < 300


def test_columns_that_their_library_cannot_give():
    far = pa.array([2**62, 1], pa.timestamp("us")).dictionary_encode()
    period = pd.DataFrame({"x": pd.PeriodIndex.from_ordinals([2**40, 1], freq="D")})
    for X in (pa.table({"x": far}), period):
        with pytest.raises(InputError, match=r"^column 'x' cannot be read: .*[oO]ut of"):
            Layout.learn(X)


# --- the command line -----------------------------------------------------------------------------


def test_halves_of_characters_in_files(good, tmp_path):
    """As names, levels, labels and identities: outputs spell them."""
    half = "\ud800"
    rows = [
        {
            "id": f"{i}{half}",
            f"x{half}": [f"a{half}", "b"][i % 2],
            "n": i,
            "y": [f"A{half}", "B"][i % 2],
        }
        for i in range(40)
    ]
    data, model, out = tmp_path / "t.jsonl", tmp_path / "m", tmp_path / "out"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    good("fit", data, "--target", "y", "--id", "id", "-o", model, "--loss", "nll", "--epochs", 1)
    shown = good("predict", model, data, "--proba")
    assert shown.splitlines()[1].startswith("0\\ud800,A\\ud800,")
    good("predict", model, data, "--proba", "-o", out)
    assert out.read_text() == shown
    record = json.loads(good("predict", model, data, "--json").splitlines()[0])
    assert (record["id"], record["label"]) == (f"0{half}", f"A{half}")
    for command in (["predict", "--table"], ["evaluate"], ["explain", "--row", 1]):
        good(command[0], model, data, *command[1:])


# --- laws -----------------------------------------------------------------------------------------

KINDS = {
    "text": st.text(st.characters(categories=["L", "Cs", "Cc"]), max_size=2),
    "whole": st.one_of(
        st.integers(-3, 3), st.sampled_from([*BIG, 2**63, 2**63 + 1, -(2**63), 2**70, 2**70 + 1]),
    ).flatmap(lambda n: st.sampled_from([int, Decimal, Fraction]).map(lambda kind: kind(n))),
    "numbers": st.one_of(st.floats(), st.integers(), st.fractions(), st.booleans(), st.decimals()),
    "dates": st.dates() | st.datetimes() | st.datetimes(timezones=st.just(UTC)),
    "dates of NumPy": st.builds(
        np.datetime64, st.integers(-(2**62), 2**62),
        st.sampled_from(["Y", "M", "D", "h", "s", "us", "ns", "as"]),
    ),
    "durations": st.timedeltas() | st.builds(
        np.timedelta64, st.integers(-99, 99), st.sampled_from(["Y", "W", "D", "s", "us", "fs"]),
    ),
    "others": st.sampled_from([1j, (1, 2), len, time(1), object(), b"a", "a", 1, True, [1], {}]),
}  # fmt: skip
MISSING = st.sampled_from([None, float("nan"), pd.NA, pd.NaT, Decimal("sNaN"), np.ma.masked])
COLUMNS = st.sampled_from([*KINDS]).flatmap(
    lambda kind: st.lists(KINDS[kind] | MISSING, min_size=1, max_size=6)
)


def as_given(cell):
    """What a cell is, to the microsecond."""
    if isinstance(cell, str):
        return str.__str__(cell)
    if isinstance(cell, np.datetime64):
        return cell.astype("M8[us]").item()
    if isinstance(cell, np.timedelta64):
        return cell.astype("m8[us]").item()
    if isinstance(cell, datetime):
        return cell.replace(tzinfo=None)
    return datetime(cell.year, cell.month, cell.day) if isinstance(cell, date) else cell


@few
@given(COLUMNS, st.sampled_from(["dicts", "pandas"]))
def test_cells_come_back_as_they_were(cells, backend):
    """Missing ones missing, texts and whole numbers exactly, others to rounding."""
    try:
        X = TABLES[backend](cells)
    except Exception:  # pandas cannot hold them
        return
    try:
        layout = Layout.learn(X, rare=1)
        found = column_of(layout.decode(layout.encode(X)))
    except DiscemError:
        return
    if layout.columns[0].family == "ignored":
        distinct = {as_given(cell) for cell in cells if not is_missing(cell)}
        near = all(isinstance(each, int | float | Decimal | Fraction) for each in distinct)
        assert len(distinct) < 2 or (near and len({*map(float, distinct)}) == 1)
        return
    for given_one, back in zip(cells, found, strict=True):
        if is_missing(given_one):
            assert back is None
        elif isinstance(given_one, str | int) and not isinstance(back, float):
            assert back == as_given(given_one)
        elif isinstance(back, datetime | timedelta):
            assert abs(back - as_given(given_one)) < timedelta(milliseconds=100)
        else:
            assert back == pytest.approx(float(given_one), rel=1e-12)


NAMES = st.one_of(
    st.text(st.characters(), max_size=2), st.text("\ud83d\ude00\0", max_size=2), st.integers(),
    st.dates(), st.datetimes(), st.timedeltas(), st.decimals(allow_nan=False), st.booleans(),
    st.binary(max_size=2), st.none(),
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(COLUMNS, st.lists(NAMES, min_size=2, max_size=2, unique_by=str), st.booleans())
def test_a_model_keeps_its_cells(tmp_path_factory, cells, names, said):
    """Through training, prediction, samples, files and a stream, whatever columns are called.

    Something may be `said` of a column by its name.
    """
    X = [{names[0]: cell, names[1]: float(row)} for row, cell in enumerate(cells)]
    y = ["a", "b", "a", "b", "a", "b"][: len(cells)]
    families = {names[1]: "gaussian"} if said else "auto"
    model = MixtureClassifier(families=families, loss="nll", max_iter=1, random_state=0)
    try:
        model.fit(X, y)
    except DiscemError:
        return
    path = tmp_path_factory.mktemp("model") / "m"
    model.save(path)
    loaded = discem.load(path)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    for each in (model, loaded.partial_fit(X, y)):
        drawn, _ = each.sample(3, random_state=0)
        assert set(each.predict(drawn)) <= {*y}
