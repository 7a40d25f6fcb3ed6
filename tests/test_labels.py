"""Labels, label sets and shares of every kind: each comes back as it was given, or is refused."""

import itertools
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import discem
from discem import GaussianNB, MixtureClassifier, TableClassifier, TextClassifier
from discem.estimators import _input
from discem.exceptions import DiscemError, InputError
from discem.io.cells import is_missing
from discem.targets import UNKNOWN, UNLABELLED

X = np.array([[0.0], [0.1], [1.0], [1.1], [0.5]])
NAN = float("nan")
DAYS = [date(2020, 1, 1), date(2020, 1, 2)]
TIMES = [datetime(2020, 1, 1, 5), datetime(2020, 1, 1, 6)]
BIG = [2**53 + 1, 2**53]
HUGE = [2**70, 2**70 + 1]
few = settings(max_examples=60, deadline=None)


def five(one, other, last):
    return [one, one, other, other, last]


def fitted(y, **options):
    return GaussianNB(loss="nll", max_iter=1, random_state=0, **options).fit(X, y)


# --- what is a label ------------------------------------------------------------------------------

PAIRS = {
    "text": ["a", "b"],
    "empty text": ["", "a"],
    "half a character": ["a", "\ud800"],
    "booleans": [True, False],
    "floats": [1.0, 2.0],
    "decimals": [Decimal(1), Decimal("2.0")],
    "decimals and NumPy's": [Decimal(1), np.uint64(2)],
    "fractions": [Fraction(1), Fraction(2)],
    "large integers": BIG,
    "large integers and floats": [2**53 + 1, float(2**53)],
    "large decimals": [Decimal(2**53 + 1), Decimal(2**53)],
    "unsigned integers": [2**63, 2**63 + 1],
    "signed and unsigned integers": [-1, 2**63],
    "integers beyond 64 bits": HUGE,
    "dates": DAYS,
    "times": TIMES,
    "dates of NumPy": [*np.array(DAYS, dtype="M8[D]")],
    "times of pandas": [*pd.to_datetime(["2020", "2021"])],
    "durations": [timedelta(1), timedelta(0, 1)],
    "years": [*np.array([1, 2], dtype="m8[Y]")],
    "bytes": [b"a", b"b"],
}
NOTHING = {
    "None": None,
    "NaN": NAN,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "NaT of NumPy": np.datetime64("NaT"),
    "a duration that is none": np.timedelta64("NaT"),
    "a decimal that is none": Decimal("NaN"),
    "a signalling one": Decimal("sNaN"),
    "a masked cell": np.ma.masked,
}


@pytest.mark.parametrize("pair", PAIRS)
def test_labels_come_back(pair, tmp_path):
    """Equal and distinct, from predictions, samples and files."""
    one, other = PAIRS[pair]
    y = five(one, other, None)
    model = fitted(y)
    assert sorted(model.classes_.tolist()) == sorted([one, other])
    assert model.predict(X).tolist()[:4] == y[:4]
    assert np.unique(model.sample(20, random_state=0)[1]).tolist() == sorted([one, other])
    assert model.score(X, y) == 1.0  # of those that have a label
    model.save(tmp_path / "m")
    loaded = discem.load(tmp_path / "m")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.partial_fit(X, y).classes_.tolist() == model.classes_.tolist()


@pytest.mark.parametrize("nothing", NOTHING)
@pytest.mark.parametrize("pair", ["text", "booleans", "large integers", "dates", "floats"])
def test_a_missing_label_is_missing(pair, nothing):
    one, other = PAIRS[pair]
    model = fitted(five(one, other, NOTHING[nothing]))
    assert model.class_count_.tolist() == [2.0, 2.0]
    assert sorted(model.classes_.tolist()) == sorted([one, other])
    sets = fitted([{one}, one, {other}, {one, other}, NOTHING[nothing]])
    assert sorted(sets.classes_.tolist()) == sorted([one, other])


HELD = {
    "masked": np.ma.array([7, 7, 3, 3, 0], mask=[0, 0, 0, 0, 1]),
    "a column that is masked": np.ma.array([[7], [7], [3], [3], [0]], mask=[[0]] * 4 + [[1]]),
    "numbers of pandas": pd.array(five(*BIG, None), dtype="Int64"),
    "a series of them": pd.Series(five(*BIG, None), dtype="Int64"),
    "categories": pd.Categorical(five(*BIG, None)),
    "arrow in pandas": pd.Series(five(*BIG, None), dtype="int64[pyarrow]"),
    "sparse": pd.Series(pd.arrays.SparseArray(five(7, 3, 7))),
    "polars": pl.Series(five(*BIG, None)),
    "128 bits": pl.Series(five(*HUGE, None), dtype=pl.Int128),
    "nanoseconds of polars": pl.Series(np.array(five(5, 6, 5), dtype="M8[ns]")),
    "pyarrow": pa.array(five(*BIG, None)),
    "chunks": pa.chunked_array([BIG, [None, *BIG]]),
    "codes": pa.array(five("a", "b", None)).dictionary_encode(),
    "nanoseconds of pyarrow": pa.array(np.array(five(5, 6, 5), dtype="M8[ns]")),
    "decimals of pyarrow": pa.array(five(Decimal(2**53 + 1), Decimal(2**53), None)),
    "texts of NumPy": np.array(five("a", "b", None), dtype=np.dtypes.StringDType(na_object=None)),
    "a frame of one column": pl.DataFrame({"y": five(*BIG, None)}),
    "nanoseconds in a frame": pd.DataFrame({"y": np.array(five(5, 6, 5), dtype="M8[ns]")}),
    "nanoseconds that are masked": np.ma.array(
        np.array(five(5, 6, 7), dtype="M8[ns]"), mask=[0, 0, 0, 0, 1]
    ),
    "a table of one column": pa.table({"y": five(*BIG, None)}),
    "values of a dict": dict(enumerate(five(*BIG, 1))).values(),
    "texts in memory": memoryview(np.array(five("a", "b", "a"))),
}


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("holder", HELD)
def test_whatever_holds_labels(holder):
    model = fitted(HELD[holder])
    assert len(model.classes_) == (3 if holder == "values of a dict" else 2)
    assert (model.classes_.dtype.kind == "M") == holder.startswith("nanoseconds")
    assert len(set(model.predict(X[1:4]).tolist())) == 2


FAR = [2**30, 2**30 - 1]
DATED = {
    "dates of pyarrow": pa.array(five(*FAR, None), pa.int32()).cast(pa.date32()),
    "milliseconds": pa.array(five(0, 86_400_000, None), pa.int64()).cast(pa.date64()),
    "times of pyarrow": pa.chunked_array([pa.array(five(2**62, 1, None), pa.timestamp("s"))]),
    "dates of polars": pl.Series(five(*FAR, None), dtype=pl.Int32).cast(pl.Date),
    "times of polars": pl.Series(five(2**62, 1, None), dtype=pl.Int64).cast(pl.Datetime("ms")),
    "arrow in pandas": pd.Series(
        pa.array(five(2**62, 1, None), pa.timestamp("s")), dtype=pd.ArrowDtype(pa.timestamp("s"))
    ),
}


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("holder", DATED)
def test_dates_that_python_has_not(holder):
    """Columns of them hold such, and so do NumPy's arrays."""
    y = DATED[holder]
    model = fitted(y)
    assert len(model.classes_) == 2 and model.class_count_.sum() == 4.0
    assert (model.classes_.dtype == "M8[D]") == (holder.startswith("dates") or "milli" in holder)
    assert len(set(model.predict(X[1:4]).tolist())) == 2
    frame = y.to_frame() if hasattr(y, "to_frame") else pa.table({"y": y})
    np.testing.assert_array_equal(fitted(frame).classes_, model.classes_)


# --- what is said of classes ----------------------------------------------------------------------


NANOSECONDS = {"nanoseconds": [*np.array([1, 2], dtype="M8[ns]")]}


@pytest.mark.parametrize("pair", PAIRS | NANOSECONDS)
def test_options_name_classes_by_their_labels(pair, tmp_path):
    """Of any kind; and go to files."""
    one, other = (PAIRS | NANOSECONDS)[pair]
    y = five(one, other, one)
    for options, counts in (
        ({"n_components": {one: 2, other: 1}}, [2.0, 3.0]),
        ({"class_weight": {one: 3.0, other: 1.0}}, [2.0, 9.0]),
        ({"unlabelled": other}, [3.0]),
    ):
        model = MixtureClassifier(loss="nll", max_iter=1, random_state=0, **options).fit(X, y)
        assert sorted(model.class_count_.tolist()) == counts
        model.save(tmp_path / "m")
        again = discem.load(tmp_path / "m").fit(X, y)
        np.testing.assert_array_equal(again.classes_, model.classes_)
        np.testing.assert_array_equal(again.class_count_, model.class_count_)
    model = fitted(y).set_class_prior({one: 0.9, other: 0.1})
    assert sorted(model.class_frequency_.tolist()) == pytest.approx([0.1, 0.9])
    with pytest.raises(InputError, match="lacks the class"):
        model.set_class_prior({one: 1.0})


def test_weights_of_no_class():
    for class_weight, message in (
        ({"a": 1.0, "c": 2.0}, "class_weight has 'c', which is no class, and lacks 'b'"),
        ({"a": 1.0, "b": "much"}, "holds what is no number"),
        ({"a": 1.0, 2: 2.0}, "class_weight mixes text, as 'a', with other labels, as 2"),
        (["balanced"], "must be None, 'balanced' or a dict"),
    ):
        with pytest.raises(DiscemError, match=message):
            fitted(five("a", "b", None), class_weight=class_weight)
    assert fitted(five("1", "2", "1"), class_weight={"1": 3.0}).class_count_.tolist() == [9.0, 2.0]


@pytest.mark.parametrize("pair", ["dates", "nanoseconds", "bytes", "large decimals"])
def test_classes_of_tables_and_texts(pair, tmp_path):
    one, other = (PAIRS | NANOSECONDS)[pair]
    y = five(one, other, one)
    rows = [{"x": x} for x in X.ravel()]
    model = TableClassifier(loss="nll", max_iter=1, random_state=0).fit(rows, y)
    model.save(tmp_path / "m")
    assert discem.load(tmp_path / "m").predict(rows).tolist() == model.predict(rows).tolist()
    texts = ["wheat crop", "wheat", "ore metal", "ore", "wheat ore"]
    model = TextClassifier(loss="nll", random_state=0).fit(texts, y)
    assert model.top_words(one, 1)[0][0] == "wheat"
    assert model.explain("wheat").against(one, other)[0][1] > 0.0
    with pytest.raises(InputError, match="there is no class"):
        model.top_words(date(1999, 1, 1))


# --- what is none ---------------------------------------------------------------------------------

BAD = {
    "continuous": (five(1.5, 2.0, 1), "continuous.* has 1.5 in row 0"),
    "fractions": (five(Decimal("1.5"), 2, 1), r"continuous.* has Decimal\('1.5'\) in row 0"),
    "infinity": (five(1, Decimal("inf"), None), "infinity at row 2"),
    "beyond": (five(1, 10**200, None), "beyond 1e.150 at row 2"),
    "a NUL": (five("a", "a\0", "a"), r"'a\\x00' in row 2, a label that ends with a NUL"),
    "a NUL of bytes": (five(b"a", b"a\0", None), r"b'a\\x00' in row 2, .*NUL"),
    "zones of pandas": (
        pd.Series(pd.date_range("2020", periods=5, tz="UTC")),
        "UTC., times with a",
    ),
    "zones of polars": (
        pl.Series(np.arange(5)).cast(pl.Datetime("ms", "UTC")),
        "'UTC'., times with a time zone",
    ),
    "zones of pyarrow": (
        pa.array([2**62] * 5, pa.timestamp("s", "Europe/Rome")),
        "Rome., times with a time zone",
    ),
    "a time zone": (five(TIMES[0], TIMES[0].replace(tzinfo=UTC), None), "row 2, a time with"),
    "dates and times": (five(DAYS[0], TIMES[0], None), "mixes dates, as .* with other labels"),
    "dates and numbers": (five(DAYS[0], 1, None), "mixes dates, as .* with other labels, as 1"),
    "text and numbers": (five(1, "a", None), "mixes text, as 'a', with other labels, as 1"),
    "units": (
        five(np.timedelta64(1, "Y"), np.timedelta64(1, "D"), None),
        r"timedelta64\[D\] and timedelta64\[Y\]",
    ),
    "years too far": (
        five(np.datetime64(2**60, "s"), np.datetime64(1, "ns"), None),
        r"datetime64\[ns\] and datetime64\[s\]",
    ),
    "a clock": (five(time(1), time(2), None), r"has datetime.time\(1, 0\) in row 0"),
    "an identity": (five(uuid.UUID(int=1), "a", None), "has UUID.* in row 0"),
    "a period": (pd.Series(pd.period_range("2020", periods=5)), "has Period.* in row 0"),
    "complex": (five(1j, 1, 1), "Complex data not supported: y has 1j in row 0"),
    "complex numbers": (np.ones(5) * 1j, "Complex data not supported"),
    "a complex column": (np.ones((5, 1)) * 1j, "^Complex data not supported: y holds complex128$"),
    "text that is none": (
        pa.Array.from_buffers(
            pa.string(),
            5,
            [None, pa.py_buffer(np.arange(6, dtype="i4")), pa.py_buffer(b"\xff" * 5)],
        ),
        "y cannot be read: .*codec can't decode",
    ),
    "records": (np.zeros(5, dtype=[("a", int)]), "y holds"),
    "dicts": ([{"a": 1.0}] * 5, r"has \{'a': 1.0\} in row 0"),
    "lists": (pa.array([["a"]] * 5), r"has \['a'\] in row 0"),
    "a column of lists": (pa.table({"y": [["a"]] * 5}), r"has \['a'\] in row 0"),
    "rows of several lengths": ([[1], [1, 2], [1], [2], [2]], r"has \[1, 2\] in row 1"),
    "lists and sets": ([{1}, [1], {2}, {2}, {1}], r"has \[1\] in row 1"),
    "a text": ("abcde", "1d array or a list, got 'abcde'"),
    "a number": (3, "1d array or a list, got 3"),
    "three axes": (np.zeros((5, 2, 2)), "1d array, got an array of shape"),
    "no columns": (np.zeros((5, 0)), "y has no columns"),
    "a sparse matrix": (sp.csr_array(np.eye(5)), "y is a sparse matrix"),
}


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_label_is_named(kind):
    y, message = BAD[kind]
    with pytest.raises(InputError, match=message):
        fitted(y)
    with pytest.raises(InputError, match=message):
        GaussianNB().partial_fit(X, y)


def test_streams_keep_one_kind():
    """Or say so; labels of another type, but of the kind, are joined without loss."""
    kinds = {"text": ["a", "b"], "dates": DAYS, "times": TIMES, "durations": [timedelta(1)] * 2}
    numbers = {"small": [1, 2], "floats": [1.0, 2.0**53], "large": BIG, "huge": HUGE}
    numbers |= {"unsigned": [2**63, 2**63 + 1], "negative": [-1, -2], "booleans": [True, False]}
    for first, then in itertools.permutations([*kinds.values(), [1, 2]], 2):
        stream = GaussianNB().partial_fit(X, five(*first, None))
        with pytest.raises(InputError, match="not of one kind"):
            stream.partial_fit(X, five(*then, None))
    for first, then in itertools.permutations(numbers.values(), 2):
        stream = GaussianNB().partial_fit(X, five(*first, None)).partial_fit(X, five(*then, None))
        assert set(stream.classes_.tolist()) == {*first, *then}
        assert stream.class_count_.sum() == 8.0
    with pytest.raises(InputError, match=r"classes has 'a\\x00'"):
        GaussianNB().partial_fit(X, five("a", "b", None), classes=["a\0", "a"])


# --- sets and shares ------------------------------------------------------------------------------

BAD_SETS = {
    "None in one": ([{1}, 1, {1, 2}, 2, {None, 1}], "row 4 holds None, which is no label"),
    "NaN in one": ([{1}, 1, {1, 2}, 2, {NAN, 1}], "row 4 holds nan"),
    "NA alone": ([{"a"}, {pd.NA}, {"b"}, {"a"}, None], "row 1 holds <NA>"),
    "tuples": ([{"a"}, {"b"}, {"a"}, {(1, 2)}, None], r"has \(1, 2\) in row 3"),
    "of two kinds": ([{"a"}, {"b"}, {"a"}, {1}, None], "mixes text, as 'a', with other labels"),
    "a NUL": ([{"a", "b"}, {"b"}, {"a\0"}, {"a"}, None], r"'a\\x00' in row 2"),
    "empty": ([{"a"}, {"b"}, set(), {"a"}, None], "label set of row 2 is empty"),
}


@pytest.mark.parametrize("kind", BAD_SETS)
def test_what_no_set_holds(kind):
    y, message = BAD_SETS[kind]
    for held in (y, np.array(y, dtype=object), pd.Series(y, dtype=object)):
        with pytest.raises(InputError, match=message):
            fitted(held)


def test_sets_of_one_class_are_labels():
    """In a part of a stream, say."""
    stream = GaussianNB().partial_fit(X, [{"a"}, {"b"}, {"a", "b"}, "a", None])
    stream.partial_fit(X, [{"a"}, "a", frozenset("a"), None, {"a"}]).partial_fit(X, [{"c"}] * 5)
    assert stream.classes_.tolist() == ["a", "b", "c"]
    assert stream.class_count_.tolist() == [7.0, 2.0, 5.0]
    assert fitted([{"a"}, "a", None, NAN, {"a"}]).class_count_.tolist() == [3.0]


COLUMNS = {"b": [1.0, 1.0, 0.0, 0.0, 0.5], "a": [0.0, 0.0, 1.0, 1.0, 0.5]}
TRUTHS = {name: [value > 0 for value in column] for name, column in COLUMNS.items()}
FRAMES = {
    "pandas": pd.DataFrame,
    "numbers and a mask": lambda c: pd.DataFrame(c).convert_dtypes(),
    "arrow in pandas": lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
    "objects": lambda c: pd.DataFrame(c, dtype=object),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "a batch of pyarrow": pa.RecordBatch.from_pydict,
}


@pytest.mark.parametrize("columns", [COLUMNS, TRUTHS], ids=["shares", "sets"])
@pytest.mark.parametrize("frame", FRAMES)
def test_columns_are_classes_in_every_frame(frame, columns):
    values, classes = _input.read_y(FRAMES[frame](columns), 5)
    assert classes.tolist() == ["a", "b"]
    assert values.tolist() == [*map(list, zip(columns["a"], columns["b"], strict=True))]
    assert (values.dtype == bool) == (columns is TRUTHS)


def test_shares_are_those_of_numbers_of_any_type():
    decimals = {name: [*map(Decimal, column)] for name, column in COLUMNS.items()}
    mixed = {"b": [True, True, False, False, False], "a": [0, 0, 1, 1, 1]}
    for columns in (decimals, mixed):
        values, _ = _input.read_y(pd.DataFrame(columns, dtype=object), 5)
        both = [columns["a"], columns["b"]]
        np.testing.assert_array_equal(values, np.array(both, dtype=float).T)


NAMED = {
    "levels of names": ([("x", "a"), ("x", "b")], r"header of y has \('x', 'a'\) in column 0"),
    "two of a name": (["a", "a"], "two columns of the name 'a'"),
    "two kinds": (["b", 1], "header of y mixes text, as 'b', with other labels, as 1"),
    "none": (["b", None], "header of y has .* in column 1, which can be no label"),
    "a NUL": (["a", "a\0"], r"header of y has 'a\\x00' in column 1"),
}


@pytest.mark.parametrize("kind", NAMED)
def test_names_that_are_no_labels(kind):
    names, message = NAMED[kind]
    frame = pd.DataFrame(np.eye(2)[[0, 0, 1, 1, 0]])
    frame.columns = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else names
    with pytest.raises(InputError, match=message):
        fitted(frame)


def test_cells_that_are_no_shares():
    for cell, message in (("1", "'1' in row 4, column 'a'"), (DAYS[0], "in row 4, column 'a'")):
        frame = pd.DataFrame({"b": COLUMNS["b"], "a": [*COLUMNS["a"][:4], cell]})
        with pytest.raises(InputError, match=message):
            fitted(frame)
    with pytest.raises(InputError, match="soft label of row 4"):
        fitted(pa.table({"b": COLUMNS["b"], "a": [*COLUMNS["a"][:4], None]}))
    with pytest.raises(InputError, match="not there yet"):
        fitted(pl.DataFrame(COLUMNS).lazy())
    masked = np.ma.array(np.eye(2)[[0, 0, 1, 1, 0]], mask=[[False] * 2] * 4 + [[True] * 2])
    with pytest.raises(InputError, match="soft label of row 4"):
        fitted(masked)


def test_names_of_every_kind_are_classes():
    for names in (["b", "a"], [7, 3], HUGE[::-1], DAYS[::-1], TIMES[::-1], [True, False]):
        frame = pd.DataFrame(np.eye(2)[[0, 0, 1, 1, 0]], columns=pd.Index(names, dtype=object))
        model = fitted(frame)
        assert model.classes_.tolist() == sorted(names)
        assert model.predict(X[1:3]).tolist() == names
        assert model.partial_fit(X, frame).classes_.tolist() == sorted(names)


def test_texts_take_sets_and_frames():
    """The classes are those that are named, not their numbers."""
    texts = ["wheat crop", "wheat", "ore metal", "ore", "wheat ore"]
    for y in (
        [{"corn"}, "corn", {"ore"}, "ore", {"ore", "corn"}],
        pa.table({"ore": COLUMNS["a"], "corn": COLUMNS["b"]}),
    ):
        model = TextClassifier(loss="nll", random_state=0).fit(texts, y)
        assert model.predict(texts[:3]).tolist() == ["corn", "corn", "ore"]
        assert model.partial_fit(texts, y).classes_.tolist() == ["corn", "ore"]


def test_one_label_may_stand_for_none():
    for y in (five("a", "b", -1), pd.array(five(7, 3, -1), dtype="Int64"), five(7, 3, pd.NA)):
        model = MixtureClassifier(loss="nll", max_iter=1, unlabelled=-1, random_state=0).fit(X, y)
        assert len(model.classes_) == 2
        assert model.class_count_.sum() == 4.0


# --- laws -----------------------------------------------------------------------------------------

WHOLE = st.one_of(st.integers(-3, 3), st.sampled_from([*BIG, *HUGE, 2**63, -(2**63), 2**64]))
KINDS = {
    "text": st.text(st.characters(categories=["L", "Cs", "Cc"]), max_size=2),
    "bytes": st.binary(max_size=2),
    "numbers": st.one_of(
        WHOLE, WHOLE.map(float), WHOLE.map(Decimal), WHOLE.map(Fraction), st.booleans(),
        st.integers(0, 2**64 - 1).map(np.uint64), st.integers(-9, 9).map(np.float32),
    ),
    "any numbers": st.one_of(st.floats(), st.decimals(allow_nan=False), st.fractions()),
    "dates": st.dates(),
    "times": st.datetimes(),
    "durations": st.timedeltas(),
    "dates of NumPy": st.builds(
        np.datetime64, st.integers(-(2**60), 2**60), st.sampled_from(["D", "h", "s", "us", "ns"])
    ),
    "others": st.sampled_from([1j, (1, 2), len, uuid.UUID(int=1), time(1), object(), b"a", "a", 1]),
}  # fmt: skip
MISSING = st.sampled_from([*NOTHING.values()])
VECTORS = st.sampled_from([*KINDS]).flatmap(
    lambda kind: st.lists(KINDS[kind] | MISSING, min_size=1, max_size=6)
)
PLAIN = {str, int, float, bool, date, datetime, timedelta, type(None)}  # polars dies of others


HOLDERS = {
    "list": list,
    "tuple": tuple,
    "objects": lambda cells: pd.Series(cells, dtype=object).to_numpy(),
    "array": np.array,
    "pandas": pd.Series,
    "categories": pd.Categorical,
    "series of categories": lambda cells: pd.Series(pd.Categorical(cells)),
    "dictionary of pyarrow": lambda cells: pa.array(cells).dictionary_encode(),
    "polars": lambda cells: pl.Series(cells if set(map(type, cells)) <= PLAIN else []),
    "pyarrow": pa.array,
}


def same(one, other):
    """Whether two labels are one: pandas and NumPy have times and numbers of their own."""
    if isinstance(one, np.number) and isinstance(other, Decimal):
        return same(one.item(), other)
    if isinstance(one, Decimal) and isinstance(other, np.number):
        return same(other, one)
    try:
        return bool(one == other) or bool(np.asarray(one) == np.asarray(other))
    except (TypeError, ValueError, ArithmeticError):
        return False


@few
@given(VECTORS, st.sampled_from([*HOLDERS]))
def test_labels_are_the_same_where_they_were(cells, holder):
    """Row by row: missing ones are missing, equal ones are one class, no others are."""
    try:
        y = HOLDERS[holder](cells)
    except Exception:  # it cannot hold them
        return
    try:
        found, _ = _input.read_y(y, len(cells), needed=False)
        classes = _input.find_classes(found)
        codes = _input.encode(found, classes).codes if found.ndim == 1 else None
    except DiscemError:
        return
    if codes is None:
        return
    by_number, _ = _input.read_y(_input.coded(y), len(cells), needed=False)
    np.testing.assert_array_equal(_input.find_classes(by_number), classes)
    assert _input.encode(by_number, classes).codes.tolist() == codes.tolist()
    assert (codes != UNKNOWN).all()
    if holder in ("list", "tuple", "objects"):  # others may have changed them
        assert [code == UNLABELLED for code in codes] == [*map(is_missing, cells)]
        for one, other in itertools.combinations(np.flatnonzero(codes >= 0), 2):
            assert (codes[one] == codes[other]) == same(cells[one], cells[other])
        for row in np.flatnonzero(codes >= 0):
            assert same(classes[codes[row]], cells[row])


def test_labels_by_number_are_of_rows_that_are_there():
    """Categories that no row has are no classes; what is wrong is said of rows, or not at all."""
    y = pd.Series(pd.Categorical(["b", None, "a"], categories=["c", "b", "a"]))
    found = _input.coded(y)
    assert isinstance(found, _input.Coded)
    assert _input.find_classes(found).tolist() == ["a", "b"]
    assert _input.encode(found, np.array(["b", "c"])).codes.tolist() == [0, UNLABELLED, UNKNOWN]
    with pytest.raises(InputError, match="X has 2 rows but y has 3"):
        _input.read_y(found, 2)
    with pytest.raises(InputError, match="no label at all"):
        _input.read_y(_input.coded([None, None]), 2)
    with pytest.raises(InputError, match="in row 2, a label that ends with a NUL"):
        _input.read_y(_input.coded(["a", "b", "a\0"]), 3)


@few
@given(
    st.lists(
        st.sampled_from([*KINDS]).flatmap(
            lambda kind: (
                st.frozensets(KINDS[kind] | MISSING.filter(lambda x: x is None), max_size=3)
                | KINDS[kind]
                | MISSING
            )
        ),
        min_size=1,
        max_size=5,
    )
)
def test_sets_hold_what_they_were_given(cells):
    try:
        found, classes = _input.read_y(cells, len(cells), needed=False)
    except DiscemError:
        return
    if classes is None:
        sets = [row for row, cell in enumerate(cells) if isinstance(cell, frozenset)]
        assert not sets or len(_input.find_classes(found)) == 1
        assert all(same(found[row], each) for row in sets for each in cells[row])
        return
    for row, cell in enumerate(cells):
        nothing = not isinstance(cell, frozenset) and is_missing(cell)
        given = cell if isinstance(cell, frozenset) else [cell]
        for label, member in zip(classes, found[row], strict=True):
            assert member == (nothing or any(same(label, each) for each in given))


@settings(max_examples=25, deadline=None)
@given(VECTORS)
def test_a_model_keeps_its_labels(tmp_path_factory, cells):
    """Through training, prediction, samples, files and a stream."""
    numbers = np.arange(len(cells), dtype=float)[:, None] * 10.0
    model = GaussianNB(loss="nll", max_iter=1, random_state=0)
    try:
        model.fit(numbers, cells)
    except DiscemError:
        return
    path = tmp_path_factory.mktemp("model") / "m"
    model.save(path)
    loaded = discem.load(path)
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert set(model.sample(5, random_state=0)[1].tolist()) <= set(model.classes_.tolist())
    for each in (model, loaded.partial_fit(numbers, cells)):
        assert len(each.classes_) == len(model.classes_)
        found = each.predict(numbers)
        assert all(any(same(label, cell) for cell in cells) for label in found)
    assert 0.0 <= model.score(numbers, cells) <= 1.0
