"""Tables of any kind: what their columns are taken for, and what is said of bad ones."""

import builtins
import copy
import json
import pickle
import sys
import warnings
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.special import gammaln

from discem.estimators._files import _built, _described
from discem.exceptions import InputError, MissingExtraError, ModelFileError, OptionError
from discem.families import _level_columns, hurdle
from discem.io.column_kinds import FEW
from discem.io.tables import Cells, Column, Layout, check_table

N = 240
rng = np.random.default_rng(0)
SKEWED = np.exp(rng.normal(size=N))
COLUMNS = {
    "gaussian": rng.normal(size=N),
    "lognormal": SKEWED,
    "hurdle": np.where(rng.random(N) < 0.4, 0.0, SKEWED),
    "poisson": np.append(0, rng.poisson(20.0, N - 1)),
    "bernoulli": rng.integers(0, 2, N) * 2 + 1,
    "categorical": rng.integers(0, 5, N),
    "ignored": np.full(N, 7.0),
}
TEXT = np.array(["red", "green", "blue"])[rng.integers(0, 3, N)]
EAST = timezone(timedelta(hours=1))
DAYS = np.datetime64("2020-01-01") + rng.integers(0, 1000, N)


def learn_one(column, name="x", **options):
    return Layout.learn(pd.DataFrame({name: column}), **options).columns[0]


def the_cells(column, later=None, **options):
    """The cells of one column, or of later ones."""
    layout = Layout.learn(pd.DataFrame({"x": column}), **options)
    return layout.encode(pd.DataFrame({"x": column if later is None else later}))


def roles_of(layout):
    """What each of the codes says."""
    return [slot.role for slot in layout.parts[1].slots]


def assert_same(one: Cells, other: Cells, rtol=1e-12):
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol)


def warned(recwarn):
    return [str(each.message) for each in recwarn.list if each.category is UserWarning]


# --- which family? --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", COLUMNS)
def test_the_rules_of_numbers(family):
    assert learn_one(COLUMNS[family]).family == family
    as_floats = pd.array(COLUMNS[family], dtype="Float64")
    assert learn_one(as_floats).family == family


@pytest.mark.parametrize(
    "column, family, why, kind",
    [
        (TEXT, "categorical", "text, 3 levels", "level"),
        (pd.Categorical(TEXT), "categorical", "text, 3 levels", "level"),
        (pd.Categorical(COLUMNS["categorical"]), "categorical", "categories, 5 levels", "level"),
        (rng.random(N) < 0.3, "bernoulli", "booleans", "bool"),
        (DAYS, "gaussian", "dates, as days since 1970-01-01", "date"),
        (DAYS - DAYS[0], "gaussian", "durations, as days", "duration"),
        (np.where(TEXT == "red", 1.5, 2.5), "bernoulli", "two values", "number"),
        (np.full(N, np.nan), "ignored", "all missing", "number"),
        ([None] * N, "ignored", "all missing", "number"),
        (np.full(N, True), "ignored", "never varies", "bool"),
        (["same"] * N, "ignored", "never varies", "level"),
        ([f"id {i}" for i in range(N)], "ignored", "every value is different", "level"),
        (2**60 + np.arange(N), "ignored", "every value is different", "level"),
        (["a"] * (N - 1) + ["b"], "ignored", "1 level of 2 rows or more", "level"),
    ],
)
def test_the_rules_of_other_cells(column, family, why, kind):
    learnt = learn_one(column)
    assert (learnt.family, learnt.why, learnt.kind) == (family, why, kind)


def test_whole_numbers_need_rows_for_each_level():
    n = FEW * _level_columns.ROWS_PER_LEVEL
    levels = np.arange(n) % FEW
    assert learn_one(levels).family == "categorical"
    assert learn_one(levels[:-1]).family == "gaussian"
    assert learn_one(np.arange(1000) % (FEW + 1)).family == "gaussian"
    assert learn_one(levels + 0.5).family == "gaussian"


def test_counts_vary_as_much_as_their_mean():
    counts = COLUMNS["poisson"]
    assert learn_one(counts + 1).family != "poisson"  # 0 is not among them
    assert learn_one(counts * 3).family != "poisson"
    assert learn_one(-counts).family != "poisson"
    assert learn_one(counts + 0.5 * (counts == 20)).family != "poisson"


def test_a_spike_at_zero():
    zeros = np.arange(N) < 0.3 * N
    assert learn_one(np.where(zeros, 0.0, SKEWED)).family == "hurdle"
    even = 1.0 + rng.random(N)
    assert learn_one(np.where(zeros, 0.0, even)).family == "gaussian"  # not skewed
    assert learn_one(np.where(np.arange(N) < 0.6 * N, 0.0, even)).family == "hurdle"
    assert learn_one(np.where(np.arange(N) < 0.1 * N, 0.0, SKEWED)).family == "gaussian"
    assert learn_one(np.where(zeros, 0.0, -SKEWED)).family == "gaussian"
    few = np.where(np.arange(N) < N - hurdle.POSITIVES + 1, 0.0, SKEWED)
    assert learn_one(few).family == "gaussian"
    three = np.where(zeros, 0.0, np.array([0.5, 1.5, 99.5])[np.arange(N) % 3])
    assert learn_one(three).family == "gaussian"


def test_skewness_must_be_that_of_a_logarithm():
    assert learn_one(-SKEWED).family == "gaussian"
    assert learn_one(1.0 + rng.random(N)).family == "gaussian"
    assert learn_one(1e6 + np.append(rng.random(N), 40.0)).family in ("gaussian", "lognormal")
    for scale in (1e-140, 1e140):
        assert learn_one(SKEWED * scale).family == "lognormal"


def test_rare_levels_have_no_code():
    column = ["a"] * 9 + ["b"] * 8 + ["rare"]
    assert learn_one(column).levels == ["a", "b"]
    assert learn_one(column, rare=1).levels == ["a", "b", "rare"]
    assert learn_one(column, rare=9).family == "ignored"
    assert the_cells(column).codes[-1, 0] == -1


def test_levels_are_plain_and_in_order():
    assert learn_one(pd.Categorical(TEXT, categories=["red", "green", "blue", "none"])).levels == [
        *("blue", "green", "red")
    ]
    for column in (COLUMNS["categorical"], COLUMNS["categorical"].astype(np.float32)):
        levels = learn_one(column).levels
        assert levels == [0, 1, 2, 3, 4] and {type(level) for level in levels} == {int}
    assert learn_one(np.where(TEXT == "red", 1.5, -2)).levels == [-2, 1.5]
    assert learn_one(TEXT == "red").levels == [False, True]
    assert learn_one(pd.cut(COLUMNS["gaussian"], [-9, 0, 9])).levels == ["(-9, 0]", "(0, 9]"]


def test_documents_are_texts():
    reviews = [f"this is review number {i} of many" for i in range(30)]
    column = learn_one(reviews, name="review")
    assert column.family == "text" and column.why == "7 words each" and column.levels == []
    assert learn_one(reviews, families={"x": "ignored"}).why == "given"
    assert learn_one(reviews[:15] * 2).family == "categorical"  # as many as half of the rows
    assert learn_one(reviews[:19]).family == "ignored"
    assert learn_one([text[:10] for text in reviews]).family == "ignored"


# --- families that are given ----------------------------------------------------------------------


def test_families_are_given():
    frame = pd.DataFrame(COLUMNS)
    layout = Layout.learn(frame, families={"bernoulli": "gaussian", "poisson": "auto"})
    assert layout.columns[4].family == "gaussian" and layout.columns[4].why == "given"
    assert layout.families_["poisson"] == "poisson: counts"
    everything = Layout.learn(frame, families="gaussian")
    assert {column.family for column in everything.columns} == {"gaussian"}
    assert Layout.learn(frame.to_numpy(), families={2: "ignored"}).columns[2].why == "given"
    assert learn_one([1, 1, 1], families="bernoulli").levels == [0, 1]
    assert learn_one([True], families="bernoulli").levels == [False, True]
    assert learn_one(["no", "yes"], families="bernoulli").levels == ["no", "yes"]
    assert learn_one([1.5, 2.5, 2.5, 1.5, 3.5], families="categorical").levels == [1.5, 2.5]
    assert learn_one([1.5, 2.5], families="categorical").levels == [1.5, 2.5]
    large = learn_one(2**60 + np.arange(N), families="gaussian")
    assert (large.family, large.kind) == ("gaussian", "number")


@pytest.mark.parametrize(
    "families, message",
    [
        ("normal", "'normal' of column 'gaussian' is not one of"),
        ({"gaussian": "normal"}, "'normal' of column 'gaussian' is not one of"),
        ({"gausian": "gaussian"}, "no column 'gausian'; did you mean 'gaussian'"),
        ({7: "gaussian"}, "no column 7; there are: 'gaussian', 'lognormal'"),
        (["gaussian"], "must be 'auto', a family, or a dict"),
        ({"gaussian": None}, "None of column 'gaussian'"),
        ({"gaussian": ["auto"]}, r"\['auto'\] of column 'gaussian'"),
    ],
)
def test_families_that_are_none(families, message):
    with pytest.raises(OptionError, match=message):
        Layout.learn(pd.DataFrame(COLUMNS), families=families)


@pytest.mark.parametrize(
    "family, column, message",
    [
        ("poisson", [1, 2, -3.5], "column 'x' is given as 'poisson', but holds -3.5 in row 2"),
        ("poisson", [1, 2.5], "holds 2.5 in row 1: it takes whole numbers from 0"),
        ("lognormal", [1, 2, 0], "holds 0 in row 2: it takes numbers above 0"),
        ("hurdle", [0, -1, 0], "holds -1 in row 1"),
        ("bernoulli", [1, 2, 3], "holds 3 values, as 1, 2, 3: it takes two"),
        ("bernoulli", ["a", "a"], "holds 1 values, as 'a'"),
        ("gaussian", [None, "a"], "holds text, as 'a' in row 1: give 'categorical'"),
    ],
)
def test_families_that_do_not_fit(family, column, message):
    with pytest.raises(InputError, match=message):
        learn_one(column, families={"x": family})


# --- cells ----------------------------------------------------------------------------------------


def test_where_cells_go():
    frame = pd.DataFrame({**COLUMNS, "text": TEXT})
    layout = Layout.learn(frame)
    cells = layout.encode(frame)
    assert layout.numbers == [0, 1, 2] and layout.counts == [3]
    assert layout.codes == [2, 4, 5, 7] and roles_of(layout) == ["zero", *["level"] * 3]
    assert layout.n_levels.tolist() == [2, 2, 5, 3]
    for array, dtype in zip(cells, (np.float64, np.int32, np.float64), strict=True):
        assert array.dtype == dtype and array.flags.c_contiguous
    assert cells.n_rows == N
    np.testing.assert_array_equal(cells.numbers[:, 0], COLUMNS["gaussian"])
    np.testing.assert_allclose(cells.numbers[:, 1], np.log(SKEWED))
    zero = COLUMNS["hurdle"] == 0
    np.testing.assert_array_equal(np.isnan(cells.numbers[:, 2]), zero)
    np.testing.assert_array_equal(cells.codes[:, 0], ~zero)
    np.testing.assert_array_equal(cells.codes[:, 1], COLUMNS["bernoulli"] // 2)
    np.testing.assert_array_equal(np.array(["blue", "green", "red"])[cells.codes[:, 3]], TEXT)
    np.testing.assert_array_equal(cells.counts[:, 0], COLUMNS["poisson"])
    base = layout.log_base(cells)
    logs = cells.numbers[:, 1] + np.where(zero, 0.0, cells.numbers[:, 2])
    np.testing.assert_allclose(base, -logs - gammaln(COLUMNS["poisson"] + 1.0))


def test_missing_cells_have_no_part_in_the_base():
    layout = Layout.learn(pd.DataFrame(COLUMNS))
    with pytest.warns(UserWarning, match="X has no columns"):
        cells = layout.encode(pd.DataFrame({"ignored": [1.0, 2.0]}))
    assert np.isnan(cells.numbers).all() and np.isnan(cells.counts).all()
    assert (cells.codes == -1).all()
    np.testing.assert_array_equal(layout.log_base(cells), [0.0, 0.0])


def dates_of(column):
    return the_cells(column, families={"x": "gaussian"}).numbers[:, 0]


def test_dates_are_days():
    first = [datetime(1970, 1, 1), datetime(1970, 1, 2, 12)]
    for column in (
        first,
        pd.Series(first, dtype=object),
        pd.Series(first).dt.tz_localize("UTC"),
        pd.Series(first).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        pd.Series([each.replace(tzinfo=UTC) for each in first], dtype=object),
        pd.Series([first[0].replace(hour=1, tzinfo=EAST), first[1]], dtype=object),
        pd.Series([np.datetime64(each, "ms") for each in first], dtype=object),
        pd.Series(first).astype("datetime64[ns]"),
        pd.Series(first).astype("datetime64[s]"),
    ):  # fmt: skip
        np.testing.assert_allclose(dates_of(column), [0.0, 1.5])
    days = [date(1970, 1, 1), None, date(1, 1, 1), date(9999, 12, 31)]
    expected = [0.0, np.nan, -719162.0, 2932896.0]
    np.testing.assert_array_equal(dates_of(pd.Series(days, dtype=object)), expected)
    for dtype in ("M8[D]", "M8[s]", ">M8[s]"):
        table = np.array(days, dtype="M8[D]").astype(dtype)[:, None]
        cells = Layout.learn(table).encode(table)
        np.testing.assert_array_equal(cells.numbers[:, 0], expected)
    months = np.array([["1970-01"], ["1970-02"], ["NaT"]], dtype="M8[M]")
    np.testing.assert_array_equal(Layout.learn(months).encode(months).numbers[:2, 0], [0.0, 31.0])
    np.testing.assert_array_equal(
        dates_of(pd.period_range("1970-01", periods=2, freq="M")), [0, 31]
    )
    lengths = [timedelta(hours=12), timedelta(days=-2), np.timedelta64(6, "h"), pd.NaT]
    np.testing.assert_array_equal(
        dates_of(pd.Series(lengths, dtype=object)), [0.5, -2, 0.25, np.nan]
    )


def test_objects_are_looked_at():
    numbers = [
        Decimal("1.5"),
        2,
        np.float32(3),
        Fraction(1, 2),
        None,
        np.int8(4),
        Decimal("NaN"),
        True,
    ]
    cells = the_cells(pd.Series(numbers, dtype=object))
    np.testing.assert_array_equal(cells.numbers[:, 0], [1.5, 2, 3, 0.5, np.nan, 4, np.nan, 1])
    for missing in (None, np.nan, pd.NA, pd.NaT, float("nan")):
        column = pd.Series(["a", "b", missing, np.str_("a")], dtype=object)
        assert the_cells(column, rare=1).codes[:, 0].tolist() == [0, 1, -1, 0]
        column = pd.Series([True, np.False_, missing], dtype=object)
        assert the_cells(column).codes[:, 0].tolist() == [1, 0, -1]
        column = pd.Series([datetime(1970, 1, 1), missing, datetime(1970, 1, 2)], dtype=object)
        np.testing.assert_array_equal(the_cells(column).numbers[:, 0], [0, np.nan, 1])
    assert learn_one(["1", "2", "b"], rare=1).levels == ["1", "2", "b"]
    assert learn_one(["01", "02", "10"], rare=1).levels == ["01", "02", "10"]  # codes


def test_a_level_is_the_same_number_in_any_type():
    later = (
        [0.0, 1.0, 4.0, np.nan, 9.0, 0.5],
        np.array([0, 1, 4, np.nan, 9, 0.5], dtype=np.float16),
        [0, True, 4, None, Decimal(9), 0.5],
        pd.Categorical([0, 1, 4, None, 9, 0.5]),
    )
    for column in later:
        cells = the_cells(COLUMNS["categorical"], pd.Series(column))
        assert cells.codes[:, 0].tolist() == [0, 1, 4, -1, -1, -1]
    learnt = pd.Categorical(COLUMNS["categorical"])
    assert the_cells(learnt, [4, 0, 7]).codes[:, 0].tolist() == [4, 0, -1]
    assert the_cells([True, False], [1, 0, 2]).codes[:, 0].tolist() == [1, 0, -1]
    tenths = np.array([0.1, 0.7, 0.1, 0.3])
    for one, other in ((tenths, tenths.astype("f4")), (tenths.astype("f4"), tenths)):
        cells = the_cells(one, other, families="categorical", rare=1)
        assert cells.codes[:, 0].tolist() == [0, 2, 0, 1]


def test_large_whole_numbers_are_names():
    names = 2**60 + np.array([0, 1, 1, 0, 2, 2])
    assert the_cells(names).codes[:, 0].tolist() == [0, 1, 1, 0, 2, 2]
    nullable = pd.array([*names.tolist(), None], dtype="Int64")
    for column in (
        nullable,
        pd.Series(nullable, dtype=object),
        pd.Series(nullable, dtype="int64[pyarrow]"),
    ):
        assert the_cells(names, column).codes[:, 0].tolist() == [0, 1, 1, 0, 2, 2, -1]
    for table in (pl.DataFrame({"x": [*names.tolist(), None]}), pa.table({"x": nullable})):
        layout = Layout.learn(pd.DataFrame({"x": names}))
        assert layout.encode(table).codes[:, 0].tolist() == [0, 1, 1, 0, 2, 2, -1]
    assert the_cells(names, [1, 2]).codes[:, 0].tolist() == [-1, -1]
    assert the_cells(COLUMNS["gaussian"], [2**60]).numbers[0, 0] == 2.0**60
    for table in (pd.DataFrame({"x": nullable}), pl.DataFrame({"x": [*names.tolist(), None]})):
        layout = Layout.learn(table)  # names come back to the last digit
        assert_same(layout.encode(layout.decode(layout.encode(table))), layout.encode(table))
    unsigned = np.array([2**63 + 1, 2**63 + 2] * 2, dtype=np.uint64)
    assert the_cells(unsigned).codes[:, 0].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "learnt, later, message",
    [
        (COLUMNS["gaussian"], ["a"], "column 'x' held numbers .* now it holds text, as 'a'"),
        (COLUMNS["categorical"], [None, "b"], "held numbers .* holds text, as 'b' in row 1"),
        (TEXT, [None, 2], "held text .* now it holds numbers, as 2 in row 1"),
        (TEXT, [True], "held text .* holds booleans, as True in row 0"),
        (TEXT, pd.to_datetime(["2020-01-01"]), "held text .* holds dates"),
        (DAYS, [3.5], "held dates .* holds numbers, as 3.5 in row 0"),
        (DAYS, pd.to_timedelta(["3 days"]), "held dates .* holds durations"),
        (DAYS - DAYS[0], DAYS, "held durations .* holds dates"),
        (COLUMNS["gaussian"], DAYS, "held numbers .* holds dates"),
        (TEXT == "red", ["yes"], "held booleans .* holds text, as 'yes' in row 0"),
        (COLUMNS["gaussian"], [1, "a"], "holds numbers, as 1 in row 0, and text, as 'a' in row 1"),
        (COLUMNS["gaussian"], [1, np.inf], "contains infinity at row 1, column 'x'"),
    ],
)  # fmt: skip
def test_contradictions(learnt, later, message):
    layout = Layout.learn(pd.DataFrame({"x": learnt}))
    later = pd.DataFrame({"x": later})
    with pytest.raises(InputError, match=message):
        layout.encode(later)
    if layout.columns[0].levels:
        with pytest.raises(InputError, match=message):
            layout.extended(later)


@pytest.mark.parametrize("learnt", [COLUMNS["gaussian"], COLUMNS["categorical"], TEXT, DAYS])
def test_all_missing_contradicts_nothing(learnt):
    for nothing in (
        [None, None],
        [np.nan] * 2,
        pd.array([None] * 2, dtype="str"),
        pd.array([None] * 2, dtype="Int64"),
        pd.to_datetime([None, None]),
        pd.Categorical([None, None], categories=["a", "b"]),
    ):
        cells = the_cells(learnt, nothing)
        assert np.isnan(cells.numbers).all() and (cells.codes == -1).all()


def test_values_that_a_family_cannot_have(recwarn):
    layout = Layout.learn(pd.DataFrame(COLUMNS))
    rows = {name: [column[0]] * 4 for name, column in COLUMNS.items()}
    later = pd.DataFrame(
        rows
        | {"lognormal": [0.0, -1.0, 1.0, np.nan], "hurdle": [0, -1, 2, None]}
        | {"poisson": [1.5, -1.0, 7.0, np.nan]}
    )
    cells = layout.encode(later)
    assert np.isnan(cells.numbers[:, 1]).tolist() == [True, True, False, True]
    assert cells.codes[:, 0].tolist() == [0, -1, 1, -1]
    assert np.isnan(cells.counts[:, 0]).tolist() == [True, True, False, True]
    (message,) = warned(recwarn)
    assert message.startswith("cells of 'lognormal', 'hurdle', 'poisson' are outside")


# --- columns --------------------------------------------------------------------------------------


def test_columns_are_found_by_name(recwarn):
    frame = pd.DataFrame({**COLUMNS, "text": TEXT})
    layout = Layout.learn(frame)
    cells = layout.encode(frame)
    assert_same(layout.encode(frame[frame.columns[::-1]]), cells)
    assert_same(layout.encode(pl.from_pandas(frame.drop(columns="ignored"))), cells)
    assert not warned(recwarn)
    fewer = layout.encode(frame.drop(columns=["poisson", "text", "hurdle"]))
    assert np.isnan(fewer.counts).all() and (fewer.codes[:, [0, 3]] == -1).all()
    np.testing.assert_array_equal(fewer.codes[:, 1], cells.codes[:, 1])
    assert warned(recwarn) == [
        "X has no columns 'hurdle', 'poisson', 'text': all their cells are missing"
    ]
    recwarn.clear()
    more = frame.assign(**{f"new {i}": [[]] * N for i in range(7)})  # nobody looks at them
    assert_same(layout.encode(more), cells)
    assert warned(recwarn) == [
        "X has columns that the model does not know: 'new 0', 'new 1', 'new 2', 'new 3', 'new 4' "
        "and 2 more"
    ]
    with pytest.raises(InputError, match="none of the columns of the model: it has 'a'"):
        layout.encode(pd.DataFrame({"a": [1]}))


def test_columns_without_names_are_found_by_place():
    frame = pd.DataFrame(COLUMNS)
    named, unnamed = Layout.learn(frame), Layout.learn(frame.to_numpy())
    for layout in (named, unnamed):
        cells = layout.encode(frame)
        assert_same(layout.encode(frame.to_numpy()), cells)
        with pytest.raises(InputError, match="X has 3 features, but it is expecting 7 features"):
            layout.encode(frame.to_numpy()[:, :3])
    with pytest.raises(InputError, match="X has 3 features"):
        unnamed.encode(frame.iloc[:, :3])


def test_ignored_columns_are_not_looked_at():
    layout = Layout.learn(pd.DataFrame({"x": COLUMNS["gaussian"], "y": [1] * N}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layout.encode(pd.DataFrame({"x": [1.0], "y": [["a list"]]}))
        layout.encode(pd.DataFrame({"x": [1.0]}))


def test_names_are_texts_or_numbers():
    frame = pd.DataFrame(
        np.eye(3), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    )
    assert check_table(frame).names == ["('a', 1)", "('a', 2)", "('b', 1)"]
    frame = pd.DataFrame(np.eye(3), columns=[np.int64(3), "3", 2.5])
    names = check_table(frame).names
    assert names == [3, "3", "2.5"] and type(names[0]) is int


# --- bad tables -----------------------------------------------------------------------------------

BAD = {
    "two of a name": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns of the name 'a'"),
    "arrow, two of a name": (
        pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), "two columns of the name 'a'",
    ),
    "no rows": (pd.DataFrame({"a": []}), r"0 sample\(s\) \(shape=\(0, 1\)\) while a minimum"),
    "no columns": (
        np.empty((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required\.",
    ),
    "an empty list": ([], r"0 sample\(s\)"),
    "an empty frame": (pd.DataFrame(), r"0 sample\(s\)"),
    "empty dicts": ([{}, {}], r"0 feature\(s\)"),
    "empty lists": ([[], []], r"0 feature\(s\)"),
    "sparse": (sp.csr_array(np.eye(3)), "sparse matrix.*MultinomialNB or MixtureClassifier"),
    "one axis": (np.arange(3), "Expected 2D array, got 1D array instead.*Reshape your data"),
    "a list of numbers": ([1, 2, 3], "Expected 2D array, got 1D array instead"),
    "a list of texts": (["ab", "cd"], "Expected 2D array"),
    "a series": (pd.Series([1, 2]), "Expected 2D array"),
    "a polars series": (pl.Series([1, 2]), "Expected 2D array"),
    "three axes": (np.zeros((2, 2, 2)), "Found array with dim 3"),
    "a number": (np.float64(3), "dim 0"),
    "a text": ("a,b", "X is a str: expected a data frame"),
    "nothing": (None, "X is a NoneType: expected a data frame"),
    "a generator": ((row for row in ()), "X is a generator"),
    "lazy": (pl.LazyFrame({"a": [1]}), r"LazyFrame, whose rows are not there yet: collect\(\)"),
    "complex": (np.eye(2) * 1j, "Complex data not supported"),
    "a complex column": (pd.DataFrame({"a": [1j, 2]}), "Complex data not supported: column 'a'"),
    "a complex cell": ([[1.0], [2j]], "Complex data not supported: column 0, row 1"),
    "lists": (pd.DataFrame({"a": [[1], [2]]}), r"column 'a' holds \[1\] in row 0"),
    "polars lists": (pl.DataFrame({"a": [[1], [2]]}), r"column 'a' holds List\(Int64\)"),
    "polars structs": (pl.DataFrame({"a": [{"b": 1}]}), "column 'a' holds Struct"),
    "polars times": (pl.DataFrame({"a": [datetime.now().time()]}), "column 'a' holds Time"),
    "arrow lists": (pa.table({"a": [[1], [2]]}), "column 'a' holds list<"),
    "arrow structs": (pa.table({"a": [{"b": 1}]}), "column 'a' holds struct<"),
    "arrow times": (pa.table({"a": [datetime.now().time()]}), "column 'a' holds time64"),
    "arrow bytes": (pa.table({"a": [b"b"]}), "column 'a' holds b'b' in row 0"),
    "a dict": (
        np.array([[1.0], [{"foo": "bar"}]], dtype=object), "argument must be .* string.* number",
    ),
    "nested lists": ([[1, [2, 3]], [4, [5, 6]]], r"column 1 holds \[2, 3\] in row 0"),
    "bytes": (np.array([[b"a"]]), "column 0 holds .S1"),
    "ragged": ([[1, 2], [3]], "row 1 of X has 1 cells, but row 0 has 2"),
    "lists and dicts": ([[1, 2], {"a": 3}], r"row 1 of X is {'a': 3}, unlike row 0"),
    "dicts and lists": ([{"a": 3}, [1]], r"row 1 of X is \[1\], unlike row 0"),
    "mixed": (
        pd.DataFrame({"price": [3, None, "cheap"]}),
        "column 'price' holds numbers, as 3 in row 0, and text, as 'cheap' in row 2",
    ),
    "mixed dates": ([[date(2020, 1, 1)], [3]], "dates, as .* and numbers, as 3 in row 1"),
    "mixed categories": (
        pd.DataFrame({"a": pd.Categorical(["b", 1])}), "the levels 'b', a text, and 1, a number",
    ),
    "infinity": (np.array([[1.0, 2.0], [3.0, -np.inf]]), "contains infinity at row 1, column 1"),
    "arrow infinity": (pa.table({"a": [1.0, np.inf]}), "contains infinity at row 1, column 'a'"),
    "an infinite decimal": ([[Decimal("inf")]], "contains infinity at row 0, column 0"),
    "too large": ([[1e151]], r"a value beyond 1e\+150 at row 0, column 0"),
    "too many digits": ([[10**400], [1]], "contains infinity at row 0, column 0"),
    "the year 10000": (
        pd.DataFrame({"when": np.array(["2020-01-01", "10000-01-01"], dtype="M8[s]")}),
        "column 'when' holds a date beyond the years 1 to 9999 in row 1",
    ),
    "the year 0": (np.array([["0000-12-31"]], dtype="M8[D]"), "beyond the years 1 to 9999"),
    "a year of the universe": (np.array([[2**40]], dtype="M8[Y]"), "beyond the years 1 to 9999"),
    "before the year 1 in UTC": (
        [[datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))]], "beyond the years 1 to 9999",
    ),
    "a year beyond numbers": (np.array([[2**62]], dtype="M8[Y]"), "beyond the years 1 to 9999"),
    "a date of NumPy": ([[np.datetime64("2020")], [np.datetime64("12000")]], "9999 in row 1"),
    "months long": (np.array([[3]], dtype="m8[M]"), r"holds timedelta64\[M\]: give it in days"),
    "of no unit": (np.array([[3]], dtype="m8"), "column 0 holds timedelta64: give it in days"),
    "bytes in a dictionary": (pa.table({"a": pa.array([b"b"]).dictionary_encode()}), "holds bytes"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables(kind):
    X, message = BAD[kind]
    with pytest.raises(InputError, match=message) as caught:
        Layout.learn(X)
    assert "\n" not in str(caught.value)


def test_errors_are_those_that_scikit_learn_expects():
    with pytest.raises(TypeError):
        Layout.learn(BAD["a dict"][0])
    for kind in ("sparse", "one axis", "no rows", "complex"):
        with pytest.raises(ValueError):
            check_table(BAD[kind][0])


# --- backends -------------------------------------------------------------------------------------


def mixed_frame(seed=1, n=60):
    """A table with a column of every kind, some cells of each missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "whole": rng.integers(0, 10_000, n),
            "level": rng.integers(0, 3, n),
            "positive": np.exp(2 * rng.normal(size=n)),
            "zero": np.where(rng.random(n) < 0.5, 0.0, np.exp(2 * rng.normal(size=n))),
            "count": np.append(0, rng.poisson(20, n - 1)),
            "text": rng.choice(["a", "b", "ñ", ""], n),
            "flag": rng.random(n) < 0.5,
            "when": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**6, n), "s"),
            "took": pd.to_timedelta(rng.integers(0, 10**6, n), "s"),
        }
    )
    frame = frame.convert_dtypes()
    return frame.mask(rng.random(frame.shape) < 0.1)


def as_dicts(frame):
    rows = frame.astype(object).to_dict("records")
    return [{k: v for k, v in row.items() if not pd.isna(v)} for row in rows]


def as_objects(frame):
    return frame.astype(object).to_numpy()


def as_arrow_dtypes(frame):
    return pa.Table.from_pandas(frame).to_pandas(types_mapper=pd.ArrowDtype)


def as_categories(frame):
    return frame.assign(text=frame["text"].astype("category"))


def as_batches(frame, pieces=3):
    """An arrow table in pieces, whose text has a dictionary of its own in each."""
    table = pa.Table.from_pandas(frame)
    size = -(-len(frame) // pieces)
    texts = [
        table.slice(i * size, size)["text"].combine_chunks().dictionary_encode()
        for i in range(pieces)
    ]
    place = table.schema.get_field_index("text")
    return table.set_column(place, "text", pa.chunked_array(texts))


def as_views(frame):
    texts = pa.array(frame["text"].tolist(), pa.string_view(), from_pandas=True)
    return pa.Table.from_pandas(frame).set_column(list(frame).index("text"), "text", texts)


def as_polars(frame, dtype):
    return pl.from_pandas(frame).with_columns(pl.col("text").cast(dtype))


BACKENDS = {
    "pandas, nullable": lambda frame: frame,
    "pandas, old types": lambda frame: frame.astype(object).infer_objects(),
    "pandas, arrow": as_arrow_dtypes,
    "pandas, categories": as_categories,
    "polars": lambda frame: pl.from_pandas(frame),
    "polars, Categorical": lambda frame: as_polars(frame, pl.Categorical),
    "polars, Enum": lambda frame: as_polars(frame, pl.Enum(["ñ", "b", "c", "a", ""])),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame),
    "pyarrow, dictionaries": as_batches,
    "pyarrow, a batch": lambda frame: as_batches(frame, 1).to_batches()[0],
    "pyarrow, views": as_views,
    "dicts": as_dicts,
    "array": as_objects,
    "lists": lambda frame: as_objects(frame).tolist(),
}  # fmt: skip
FAMILY_OF = {
    "number": "gaussian",
    "whole": "gaussian",
    "level": "categorical",
    "positive": "lognormal",
    "zero": "hurdle",
    "count": "poisson",
    "text": "categorical",
    "flag": "bernoulli",
    "when": "gaussian",
    "took": "gaussian",
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_give_the_same_cells(backend):
    frame = mixed_frame()
    expected = Layout.learn(frame)
    assert {column.name: column.family for column in expected.columns} == FAMILY_OF
    table = BACKENDS[backend](frame)
    layout = Layout.learn(table)
    layout.check()
    if layout.named:
        assert layout.families_ == {name: expected.families_[name] for name in layout.families_}
    cells = expected.encode(frame)
    assert_same(layout.encode(table), cells)
    assert_same(expected.encode(table), cells)
    decoded = layout.decode(cells)
    named = backend.split(",")[0]
    assert type(decoded).__module__.split(".")[0] == {
        "pandas": "pandas", "polars": "polars", "pyarrow": "pyarrow", "dicts": "builtins",
    }.get(named, "numpy")  # fmt: skip
    assert_same(layout.encode(decoded), cells)
    later = mixed_frame(seed=2, n=40)
    assert_same(layout.encode(BACKENDS[backend](later)), expected.encode(later))
    again = _built(json.loads(json.dumps(_described(layout, []))), [])
    again.check()
    assert again == layout
    for copied in (copy.deepcopy(layout), pickle.loads(pickle.dumps(layout))):
        assert_same(copied.encode(table), cells)


def test_a_table_of_numbers_comes_back_as_one():
    X = np.column_stack([COLUMNS[name] for name in ("gaussian", "hurdle", "bernoulli")])
    X[3:9] = np.nan
    layout = Layout.learn(X)
    decoded = layout.decode(layout.encode(X))
    assert decoded.dtype == np.float64
    np.testing.assert_allclose(decoded, X)


@pytest.mark.parametrize("backend", BACKENDS)
def test_types_come_back(backend):
    decode = Layout.learn(BACKENDS[backend](mixed_frame())).decode
    layout = Layout.learn(BACKENDS[backend](mixed_frame()))
    decoded = decode(layout.encode(BACKENDS[backend](mixed_frame())))
    if backend == "dicts":
        row = {name: cell for each in decoded for name, cell in each.items()}
        assert isinstance(row["when"], datetime) and isinstance(row["flag"], bool)
        assert isinstance(row["text"], str) and isinstance(row["took"], timedelta)
    if layout.backend == "polars":
        assert decoded.schema["when"] == pl.Datetime and decoded.schema["flag"] == pl.Boolean
        assert decoded["number"].null_count() == mixed_frame()["number"].isna().sum()
    if layout.backend == "pandas":
        assert decoded["when"].dtype.kind == "M"
        flag = "bool[pyarrow]" if "arrow" in backend else "boolean"
        assert decoded["flag"].dtype == flag


def test_frames_of_narwhals():
    nw = pytest.importorskip("narwhals")
    frame = mixed_frame()
    expected = Layout.learn(frame).encode(frame)
    for native in (frame, pl.from_pandas(frame)):
        wrapped = nw.from_native(native)
        assert_same(Layout.learn(wrapped).encode(wrapped), expected)
    with pytest.raises(InputError, match="collect"):
        check_table(nw.from_native(pl.LazyFrame({"a": [1]})))


class Foreign:
    """A data frame of a library that nobody knows."""

    columns = ("a",)


def test_foreign_frames(monkeypatch):
    with pytest.raises(InputError, match="X is a Foreign: expected a data frame"):
        check_table(Foreign())
    found = builtins.__import__

    def without(name, *args):
        if name.startswith("narwhals"):
            raise ImportError(name)
        return found(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "narwhals", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'discem\[frames\]'"):
        check_table(Foreign())
    for X in (mixed_frame(), np.eye(3), [{"a": 1}, {"a": 2}]):
        check_table(X)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of np.matrix
def test_other_arrays():
    class Array:
        def __array__(self, dtype=None, copy=None):
            return np.eye(3)

    assert check_table(Array()).names == [0, 1, 2]
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], mask=[[0, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(check_table(masked).content(1).values, [np.nan, 4.0, 6.0])
    strings = np.array([["a", "x"], ["b", "x"], ["a", "y"]])
    assert Layout.learn(strings, rare=1).encode(strings).codes.tolist() == [[0, 0], [1, 0], [0, 1]]
    flags = np.array([[True], [False]])
    assert Layout.learn(flags).decode(Layout.learn(flags).encode(flags)).tolist() == flags.tolist()
    dense = pd.DataFrame({"x": pd.arrays.SparseArray([0.0, 1.0, 0.0, 2.0])})
    np.testing.assert_array_equal(check_table(dense).content(0).values, [0, 1, 0, 2])
    sizes = pl.DataFrame({"x": [1.5, None, 2.5]}, schema={"x": pl.Decimal(5, 2)})
    np.testing.assert_array_equal(check_table(sizes).content(0).values, [1.5, np.nan, 2.5])
    sizes = pa.table({"x": pa.array([Decimal("1.5"), None]), "nothing": pa.nulls(2)})
    np.testing.assert_array_equal(check_table(sizes).content(0).values, [1.5, np.nan])
    assert check_table(sizes).content(1).missing.all()
    large = pl.DataFrame({"x": pl.Series([2**100, 3, None], dtype=pl.Int128)})
    assert check_table(large).content(0).levels == [2**100, 3]
    assert check_table(np.matrix(np.eye(2))).content(1).values.tolist() == [0.0, 1.0]


def test_dictionaries_of_arrow():
    """They may be of numbers, hold missing levels, and hold one twice."""
    indices = pa.array([0, 1, 2, 3, None, 0], pa.uint8())
    levels = pa.array(["a", None, "b", "a"])
    table = pa.table({"x": pa.DictionaryArray.from_arrays(indices, levels)})
    layout = Layout.learn(table, rare=1)
    assert layout.columns[0].levels == ["a", "b"]
    assert layout.encode(table).codes[:, 0].tolist() == [0, -1, 1, 0, -1, 0]
    numbers = pa.DictionaryArray.from_arrays(indices, pa.array([1.0, np.nan, 2.5, 7]))
    layout = Layout.learn(pa.table({"x": numbers}), rare=1)
    assert layout.columns[0].levels == [1, 2.5, 7]
    assert layout.encode(pd.DataFrame({"x": [7, 2.5, 3]})).codes[:, 0].tolist() == [2, 1, -1]
    gaussian = Layout.learn(pa.table({"x": numbers}), families="gaussian")
    np.testing.assert_array_equal(
        gaussian.encode(pa.table({"x": numbers})).numbers[:, 0], [1, np.nan, 2.5, 7, np.nan, 1]
    )


# --- growing --------------------------------------------------------------------------------------


def test_new_levels_come_after_the_old_ones():
    first = pd.DataFrame({"text": ["b", "c", "b"], "n": [1.0, 2.0, 3.5], "two": [0, 1, 0]})
    layout = Layout.learn(first, families={"n": "categorical"}, rare=1)
    assert layout.extended(first) is layout
    assert layout.extended(first.iloc[:1]) is layout
    later = pd.DataFrame({"text": ["z", None, "a"], "n": [0.0, np.nan, 2.0], "two": [1, None, 1]})
    more = layout.extended(later)
    assert [column.levels for column in more.columns] == [
        ["b", "c", "a", "z"], [1, 2, 3.5, 0], [0, 1],
    ]  # fmt: skip
    assert layout.columns[0].levels == ["b", "c"]
    assert_same(more.encode(first), layout.encode(first))
    assert more.encode(later).codes.tolist() == [[3, 3, 1], [-1, -1, -1], [2, 1, 1]]
    assert layout.encode(later).codes.tolist() == [[-1, -1, 1], [-1, -1, -1], [-1, 1, 1]]
    more.check()
    with pytest.raises(InputError, match=r"column 'two' had the values 0 and 1 .* and now 2"):
        layout.extended(later.assign(two=[0, 2, 1]))
    assert layout.encode(later.assign(two=[0, 2, 1])).codes[:, 2].tolist() == [0, -1, 1]


@pytest.mark.filterwarnings("ignore:X has columns that the model does not know")
def test_batches_with_other_dictionaries():
    words = np.array(["d", "a", "c", "b"])
    layout, seen = None, []
    for seed in range(5):
        column = words[np.random.default_rng(seed).integers(0, min(seed + 2, 4), 20)]
        batch = pa.RecordBatch.from_pydict({"x": pa.array(column.tolist()).dictionary_encode()})
        table = check_table(batch.append_column("unknown", pa.nulls(20)) if seed else batch)
        layout = Layout.learn(table, rare=1) if layout is None else layout.extended(table)
        seen.append((column, layout.encode(table).codes[:, 0]))
    for column, codes in seen:
        np.testing.assert_array_equal(np.array(layout.columns[0].levels)[codes], column)


def test_what_is_missing_may_tell():
    frame = mixed_frame()
    frame["rarely"] = np.where(np.arange(len(frame)) % 3 == 0, "yes", None)  # and never "no"
    frame["never"] = np.nan
    frame["always"] = np.arange(len(frame)) % 2
    layout = Layout.learn(frame, informative=True)
    cells = layout.encode(frame)
    telling = [
        (layout.columns[j].name, cells.codes[:, k])
        for k, (j, role) in enumerate(zip(layout.codes, roles_of(layout), strict=True))
        if role == "missing"
    ]
    assert [name for name, _ in telling] == [*FAMILY_OF, "rarely"]
    for name, codes in telling:
        np.testing.assert_array_equal(codes, frame[name].isna())
    assert (layout.n_levels[np.array(roles_of(layout)) == "missing"] == 2).all()
    decoded = layout.decode(cells)
    assert_same(layout.encode(decoded.assign(rarely=frame["rarely"])), cells)
    codes = np.where(np.array(roles_of(layout)) == "missing", 1, cells.codes)
    hidden = Cells([cells.numbers, codes, cells.counts])
    assert layout.decode(hidden).drop(columns="always").isna().all(axis=None)
    with pytest.warns(UserWarning, match="no columns"):
        fewer = layout.encode(frame[["number"]])
    assert (
        fewer.codes[:, roles_of(layout).index("missing")].tolist()
        == frame["number"].isna().tolist()
    )
    last = max(k for k, role in enumerate(roles_of(layout)) if role == "missing")
    assert (fewer.codes[:, last] == 1).all()


# --- sizes ----------------------------------------------------------------------------------------


def test_one_row():
    layout = Layout.learn([{"a": 1.5, "b": "x"}])
    assert {column.family for column in layout.columns} == {"ignored"}
    cells = layout.encode([{"a": 1.5, "b": "x"}])
    assert [array.shape for array in cells] == [(1, 0)] * 3
    assert layout.log_base(cells).tolist() == [0.0]
    layout.check()


def test_many_levels():
    words = [f"word {i}" for i in range(1000)]
    column = np.array(words)[rng.integers(0, 1000, 20_000)]
    frame = pd.DataFrame({"x": column, "number": rng.integers(0, 10**9, 20_000) * 10})
    layout = Layout.learn(frame, families={"number": "categorical"})
    assert layout.n_levels[0] == len(set(column))
    codes = layout.encode(frame).codes
    np.testing.assert_array_equal(np.array(layout.columns[0].levels)[codes[:, 0]], column)
    known = np.isin(frame["number"], layout.columns[1].levels)
    np.testing.assert_array_equal(codes[:, 1] >= 0, known)


def test_many_columns():
    wide = np.random.default_rng(0).normal(size=(50, 10_000))
    wide[0, 0] = np.nan
    layout = Layout.learn(wide)
    assert layout.encode(wide).numbers.shape == (50, 10_000)
    assert len(layout.extended(wide).columns) == 10_000


# --- what a file may hold -------------------------------------------------------------------------

GOOD = Layout.learn(
    pd.DataFrame({"n": SKEWED, "t": TEXT, "c": COLUMNS["categorical"], "b": TEXT == "red"})
)
HOSTILE = [
    (0, {"family": "cauchy"}, "no known family"),
    (0, {"family": ["gaussian"]}, "no known family"),
    (0, {"family": "categorical"}, "levels that are none"),
    (0, {"kind": "level"}, "cells that its family cannot have"),
    (0, {"kind": None}, "no known kind"),
    (0, {"levels": [1]}, "its family has none"),
    (0, {"levels": None}, "no levels"),
    (0, {"name": None}, "no name"),
    (0, {"name": True}, "no name"),
    (0, {"name": ["n"]}, "no name"),
    (0, {"name": "t"}, "two columns of one name"),
    (0, {"why": 3}, "no reason"),
    (0, {"holes": "some"}, "no word on missing cells"),
    (1, {"levels": ["a", "a"]}, "a level twice"),
    (1, {"levels": ["a", 1]}, "levels that are none"),
    (1, {"levels": []}, "levels that are none"),
    (1, {"levels": ["a", None]}, "levels that are none"),
    (1, {"levels": [["a"], ["b"]]}, "levels that are none"),
    (1, {"kind": "number"}, "levels of another kind"),
    (2, {"levels": [1, np.nan]}, "endless"),
    (2, {"levels": [1, np.inf]}, "endless"),
    (2, {"levels": [1, 10**400]}, "endless"),
    (2, {"levels": [1, True]}, "a level twice"),
    (3, {"levels": [False, True, 2]}, "3 levels, not two"),
]


@pytest.mark.parametrize("place, change, message", HOSTILE)
def test_columns_of_a_file(place, change, message):
    columns = list(GOOD.columns)
    columns[place] = replace(columns[place], **change)
    with pytest.raises(ModelFileError, match=message):
        replace(GOOD, columns=columns).check()


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": None},
        {"columns": ["n"]},
        {"named": False},
        {"named": 1},
        {"informative": None},
        {"backend": "excel"},
        {"backend": ["pandas"]},
        {"backend": "array"},
    ],
)
def test_layouts_of_a_file(change):
    GOOD.check()
    with pytest.raises(ModelFileError):
        replace(GOOD, **change).check()


def test_whatever_is_drawn_can_be_read():
    """Samples of a model may lie beyond all calendars."""
    frame = mixed_frame()
    layout = Layout.learn(frame)
    cells = layout.encode(frame)
    for size in (-1e9, 1e9):
        wild = Cells([np.full_like(cells.numbers, size), *cells[1:]])
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            layout.encode(layout.decode(wild))


def test_levels_are_found_once():
    table = check_table(pd.DataFrame({"x": TEXT}))
    assert table.content(0) is table.content(0)
    assert check_table(table) is table
    assert isinstance(Layout.learn(table).columns[0], Column)
