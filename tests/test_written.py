"""Cells that lie: texts of numbers and dates, sentinels, identifiers; from Python and files."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discem
from discem import NaiveBayes, TableImputer
from discem.exceptions import InputError
from discem.io.cells import Content
from discem.io.columns import sentinels_of
from discem.io.tables import Layout
from discem.io.written import Written, written

N = 240
DAYS = np.datetime64("2024-01-01") + np.arange(N) * 37 % 300


def dates(format):
    return pd.Series(pd.to_datetime(DAYS).strftime(format))


def column(texts):
    return Layout.learn(pd.DataFrame({"x": texts})).columns[0]


@pytest.mark.parametrize(
    ("texts", "kind", "name"),
    [
        (["$12.30", "$1,204.00", "-$3.10", "N/A"], "number", "$,"),
        (["1,200", "980", "1,234,567"], "number", ","),
        (["12.5%", "3 %", ""], "number", "%"),
        (["1", "2.5", "-3e4", "?"], "number", ""),
        (["12.30 €", "7 €"], "number", "€"),
        (["2024-01-31", "2023-12-01 10:30:00"], "date", "year-month-day"),
        (["31/01/2024", "01/02/2024"], "date", "day/month/year"),
        (["01/31/2024", "01/02/2024"], "date", "month/day/year"),
        (["31.01.2024", "1.2.2024"], "date", "day.month.year"),
        (["2024/01/31"], "date", "year/month/day"),
    ],
)
def test_what_is_unambiguous_is_recognised(texts, kind, name):
    assert written(texts) == Written(kind, name)


@pytest.mark.parametrize(
    "texts",
    [
        ["03/04/2024", "05/06/2024"],  # March or April?
        ["$12.30", "12.30"],  # of two units
        ["$12.30", "€12.30"],
        ["01234", "56789"],  # postal codes
        ["12,5", "3,25"],
        ["1,2000"],
        ["a", "1"],
        ["12345678901234567890"],
        ["nan", "None"],
        ["1_000"],
        ["2024-13-01"],
    ],
)
def test_what_is_not_stays_text(texts):
    assert written(texts) is None


@pytest.mark.parametrize("how", [Written("number", n) for n in ("", "%", "$", "$,", "€,", ",")])
def test_numbers_are_written_as_they_were_read(how):
    values = np.array([0.0, 12.25, -1234.5, 1234567.0, np.nan])
    texts = how.write(values).tolist()
    seen = [text for text in texts if text is not None]
    codes = np.array([0, 1, 2, 3, -1])
    np.testing.assert_allclose(how.read(Content("level", codes, seen)).values, values)


@pytest.mark.parametrize("format", ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d"])
def test_dates_come_back_as_texts(format):
    texts = dates(format)
    found = column(texts)
    assert (found.kind, found.family) == ("date", "gaussian")
    layout = Layout.learn(pd.DataFrame({"x": texts}))
    assert layout.decode(layout.encode(pd.DataFrame({"x": texts})))["x"].tolist() == texts.tolist()
    assert "dates as text" in layout.families_["x"]


def made(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=N)
    price = rng.gamma(3.0, 40.0 * (1 + y))
    month = (1 + rng.integers(2, size=N)).astype(str)
    when = np.where(y, "2024-0", "2023-1").astype(object) + month
    frame = pd.DataFrame(
        {
            "price": [f"${p:,.2f}" for p in price],
            "rate": [f"{r:.1f}%" for r in rng.normal(50 + 9 * y, 9)],
            "when": when + "-15",
            "heat": np.where(rng.random(N) < 0.1, -999.0, rng.normal(20 + y, 4).round(1)),
        }
    )
    frame.loc[::11, "price"] = None
    return frame, np.array(["no", "yes"])[y]


def test_models_read_them_and_say_so(tmp_path):
    X, y = made()
    model = NaiveBayes(random_state=0).fit(X, y)
    told = model.families_
    assert told["price"] == "lognormal: positive and skewed; numbers as text, with $"
    assert told["rate"] == "gaussian: numbers; numbers as text, with %"
    assert told["when"].endswith("dates as text, year-month-day")
    assert told["heat"].endswith("; -999 is missing")
    fresh, labels = made(1)
    assert model.score(fresh, labels) > 0.95  # the date alone tells
    p = model.predict_proba(fresh)
    np.testing.assert_allclose(model.predict_proba(pl.from_pandas(fresh)), p)
    np.testing.assert_allclose(model.predict_proba(pa.Table.from_pandas(fresh)), p)
    rows = [{k: v for k, v in row.items() if v == v} for row in fresh.to_dict("records")]
    np.testing.assert_allclose(model.predict_proba(rows), p)
    # numbers and dates themselves are read by such a model, too
    plain = fresh.assign(
        price=fresh["price"].str.replace("[$,]", "", regex=True).astype(float),
        when=pd.to_datetime(fresh["when"]),
        heat=fresh["heat"].where(fresh["heat"] > -999),
    )
    np.testing.assert_allclose(model.predict_proba(plain), p)
    # and the other way round
    other = NaiveBayes(random_state=0).fit(plain, labels)
    texts = fresh.assign(heat=plain["heat"])
    np.testing.assert_allclose(other.predict_proba(plain), other.predict_proba(texts))
    with pytest.raises(discem.exceptions.InputError, match="'price' held numbers"):
        model.predict(fresh.assign(price="dear"))
    model.save(tmp_path / "model.skops")
    np.testing.assert_array_equal(discem.load(tmp_path / "model.skops").predict_proba(fresh), p)


def test_filled_cells_are_written_as_the_others():
    X, _ = made()
    filled = TableImputer(n_mixtures=1, random_state=0).fit_transform(X)
    assert filled["price"].str.fullmatch(r"\$[\d,]+\.\d\d").all()
    assert (filled["price"][X["price"].notna()] == X["price"].dropna()).all()


def test_texts_that_are_no_numbers_later_are_missing():
    """Among others that are; where none is, the column is another."""
    layout = Layout.learn(pd.DataFrame({"x": [f"{k / 10:g}" for k in range(1, 80)]}))
    with pytest.warns(UserWarning, match="cells of 'x' .* count as missing"):
        found = layout.encode(pd.DataFrame({"x": ["1.5", "about 3", "n/a"]}))
    with pytest.raises(InputError, match=r"held numbers .* text, as 'about 3'"):
        layout.encode(pd.DataFrame({"x": ["about 3"]}))
    np.testing.assert_array_equal(found.numbers[:, 0], [1.5, np.nan, np.nan])


def test_the_command_line_takes_them_for_the_same(good, tmp_path):
    pytest.importorskip("typer")
    X, y = made()
    X.assign(y=y).to_csv(tmp_path / "a.csv", index=False)
    X.assign(y=y).to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    fast = ("--target", "y", "--components", 1, "--loss", "ncll", "--hide", 0.4, "--epochs", 3)
    fast = (*fast, "--missing", "ignore")
    told = []
    for name in ("a.csv", "a.jsonl"):
        path = tmp_path / f"{name}.skops"
        printed = good("fit", tmp_path / name, "-o", path, *fast)
        assert "-999 is missing" in printed
        model = discem.load(path)
        told.append({name: why.partition(";")[0] for name, why in model.families_.items()})
        assert good("predict", path, tmp_path / name).count("\n") >= N
        assert (model.predict(X) == y).mean() > 0.95
    own = {n: w.partition(";")[0] for n, w in NaiveBayes().fit(X, y).families_.items()}
    assert told == [own, own]


def test_sentinels_are_far_outside():
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 90, size=100).astype(float)

    def of(values):
        return sentinels_of(Content("number", np.array(values, dtype=float)))

    assert of([*ages, 999, 999]) == [999.0]
    assert of([*ages, -99, -99, -999, -999]) == [-999.0]
    assert of([*ages, 999]) == []  # once
    assert of([*ages, 99, 99]) == []
    assert of([*(100 * ages), 9999, 9999]) == []
    assert of(ages - 999) == []


def warned(X, y=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        NaiveBayes(random_state=0, max_iter=2).fit(X, np.arange(N) % 2 if y is None else y)
    return [str(each.message) for each in caught if each.category is UserWarning]


def test_columns_that_may_be_mistakes_are_named():
    rng = np.random.default_rng(0)
    good = pd.DataFrame({"size": rng.normal(size=N), "town": rng.choice(list("abc"), N)})
    assert warned(good) == []
    assert warned(good.assign(income=rng.integers(1e4, 9e4, N) * 1.5)) == []
    (told,) = warned(good.assign(number=1000 + rng.permutation(N)))
    assert told.startswith("column 'number' has a different whole number in every row")
    (told,) = warned(good.assign(zip=rng.choice(np.arange(10_000, 99_999), N, replace=False)))
    assert "'zip'" in told
    streets = [f"street {i}" for i in rng.choice(10_000, N - 9, replace=False)] + ["main"] * 9
    (told,) = warned(good.assign(street=streets))
    assert told.startswith("column 'street' holds texts of which most occur once")
    assert warned(good.assign(id=[f"c-{i}" for i in range(N)])) == []  # a name of the row
    day, month = rng.integers(1, 13, N), rng.integers(1, 13, N)  # or the other way round
    parts = zip(day, month, 1800 + np.arange(N), strict=True)
    (told,) = warned(good.assign(day=[f"{d:02d}/{m:02d}/{y}" for d, m, y in parts]))
    assert "'day'" in told
    amounts = [f"{x:.2f}" for x in rng.normal(size=N - 4)] + ["unknown", "tbd", "unknown", "tbd"]
    (told,) = warned(good.assign(amount=amounts))
    assert "'amount' holds numbers as text, but for a few cells such as 'unknown'" in told
    shares = [f"{x:.2f}".replace(".", ",") for x in rng.normal(size=N - 1)] + [None]
    (told,) = warned(good.assign(share=shares))
    assert told.startswith("column 'share' holds numbers with decimal commas, as '")


def test_categories_of_a_library_are_categories():
    codes = pd.Series([str(i % 5) for i in range(N)])
    assert column(codes.astype("category")).kind == "level"
    assert column(codes).kind == "number"
    given = Layout.learn(pd.DataFrame({"x": codes}), {"x": "categorical"})
    assert given.columns[0].kind == "level"
