"""What only a joint can do: laws of imputation, conditional draws, distributions and outliers."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.integrate import simpson
from scipy.special import logsumexp
from scipy.stats import chisquare, kstest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_table import FIXED, GIVEN, made

import discem
from discem import (
    GaussianClassifier,
    GaussianNB,
    MixtureClassifier,
    MultinomialNB,
    NaiveBayes,
    TableClassifier,
    TableImputer,
    TextClassifier,
    TopicClassifier,
)
from discem.estimators._impute import distribution
from discem.estimators._tables import Encoded
from discem.exceptions import InputError, OptionError
from discem.io.tables import Layout

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

GOLDEN = [4.078958431502, 1.866517758982]
NUMBERS = ["size", "price", "rain"]
covariances = pytest.mark.parametrize("covariance", ["diag", "full", "tied"])


def mixture(covariance="diag", n=240):
    """A mixture of a table that has a column of each family, and rows with few cells."""
    X, y = made(n)
    X["width"] = 0.7 * X["size"] + np.random.default_rng(1).normal(size=n)
    layout = Layout.learn(X, GIVEN)
    model = MixtureClassifier(2, covariance=covariance, loss="nll", max_iter=5, random_state=0)
    rows = Encoded.read(layout, X)
    return model.fit(rows, y), rows


def joint(model, rows, j, cells, k=None):
    """Give ln p(x) of the first row with each of some cells in column j, brute force."""
    layout, n = rows.layout, len(cells)
    table = layout.decode(rows.take(np.zeros(n, dtype=int)).cells)
    table[layout.columns[j].name] = pd.array(cells, dtype=object)
    found = Encoded.read(layout, table.infer_objects())
    scores = model.predict_joint_log_proba(found)
    return logsumexp(scores, axis=1) if k is None else scores[:, k]


def lacking(rows, j, first=3):
    """A row that lacks a column, and has others."""
    name = rows.layout.columns[j].name
    table = rows.layout.decode(rows.take(np.arange(first, first + 1)).cells)
    return Encoded.read(rows.layout, table.assign(**{name: None}))


def allowed(k, n_classes=3):
    return None if k is None else np.eye(n_classes, dtype=bool)[[k]]


@covariances
@pytest.mark.parametrize("k", [None, 1])
@pytest.mark.parametrize("name", ["member", "town"])
def test_levels_are_those_of_enumeration(name, k, covariance):
    model, rows = mixture(covariance)
    j = list(rows.layout.families_).index(name)
    row = lacking(rows, j)
    scores = joint(model, row, j, rows.layout.columns[j].levels, k)
    found = distribution([model], row, allowed(k), j)
    np.testing.assert_allclose(found.p[0], np.exp(scores - logsumexp(scores)), rtol=1e-9)


@covariances
@pytest.mark.parametrize("k", [None, 1])
def test_counts_are_those_of_enumeration(k, covariance):
    model, rows = mixture(covariance)
    j = list(rows.layout.families_).index("visits")
    row, x = lacking(rows, j), np.arange(150.0)
    scores = joint(model, row, j, x, k)
    p = np.exp(scores - logsumexp(scores))
    found = distribution([model], row, allowed(k), j)._replace(low=0.0, high=149.0)
    np.testing.assert_allclose(found.mean()[0], p @ x, rtol=1e-7)
    np.testing.assert_allclose(found.variance_of()[0], p @ x**2 - (p @ x) ** 2, rtol=1e-6)
    np.testing.assert_allclose(found.cdf(np.array([9.0]))[0], p[:10].sum(), rtol=1e-9)
    assert found.mode()[0] == p.argmax()
    assert found.quantile(0.7)[0] == np.searchsorted(np.cumsum(p), 0.7)


@covariances
@pytest.mark.parametrize("k", [None, 1])
@pytest.mark.parametrize("name", [*NUMBERS, "width"])
def test_numbers_are_those_of_integration(name, k, covariance):
    model, rows = mixture(covariance)
    j = list(rows.layout.families_).index(name)
    row = lacking(rows, j)
    low, high = (0.0, 400.0) if name in GIVEN else (-40.0, 40.0)
    found = distribution([model], row, allowed(k), j)._replace(low=low, high=high)

    def moments(to):
        """The integrals of p(x), x p(x) and x^2 p(x) up to there, but for a factor."""
        x = np.geomspace(1e-9, to, 4001) if name in GIVEN else np.linspace(low, to, 4001)
        p = np.exp(joint(model, row, j, x, k) + 10.0)
        spike = np.exp(joint(model, row, j, [0.0], k)[0] + 10.0) if name == "rain" else 0.0
        return simpson(p, x=x) + spike, simpson(x * p, x=x), simpson(x * x * p, x=x)

    total, mean, square = moments(high)
    mean, square, below = mean / total, square / total, moments(1.5)[0] / total
    np.testing.assert_allclose(found.mean()[0], mean, rtol=1e-6)
    np.testing.assert_allclose(found.variance_of()[0], square - mean**2, rtol=1e-5)
    np.testing.assert_allclose(found.cdf(np.array([1.5]))[0], below, rtol=1e-6)
    q = found.quantile(0.9)
    np.testing.assert_allclose(found.cdf(q)[0], 0.9, rtol=1e-6)
    if name != "rain":
        grid = np.linspace(low + 0.01, 15.0, 3000)
        peak = grid[joint(model, row, j, grid, k).argmax()]
        assert abs(found.mode()[0] - peak) < 0.02


def drawn_from(model, row, n, k=None):
    """Many draws of what one row lacks, wherever they fall, and the components they are of."""
    layout = row.layout
    wide = [discem.io.columns.replace(column, span=[]) for column in layout.columns]
    row = row._replace(layout=discem.io.tables.replace(layout, columns=wide))
    many = row.take(np.zeros(n, dtype=int))
    own = None if k is None else np.repeat(allowed(k), n, axis=0)
    cells, components = discem.estimators._impute.draw([model], many, own, np.random.RandomState(0))
    return row.layout.decode(cells), components


def check_shares(found, p):
    """That so many of each were drawn with these probabilities."""
    found, p = np.array(found, dtype=float), np.array(p)
    own = p * found.sum() > 5
    both = np.append(found[own], found[~own].sum()), np.append(p[own], p[~own].sum())
    expected = np.maximum(both[1] * found.sum(), 1e-3)
    assert chisquare(both[0], expected / expected.sum() * found.sum()).pvalue > 1e-3


@covariances
@pytest.mark.parametrize("k", [None, 1])
def test_draws_of_every_kind_have_its_distribution(k, covariance):
    """The distributions are those of enumeration, as the tests above say."""
    model, rows = mixture(covariance)
    columns, n = rows.layout.columns, 2000
    assert {column.family for column in columns} >= {"gaussian", *GIVEN.values()}
    for j, column in enumerate(columns):
        row = lacking(rows, j)
        cells = drawn_from(model, row, n, k)[0][column.name]
        answer = distribution([model], row, allowed(k), j)
        if column.has_levels:
            check_shares([(cells == level).sum() for level in column.levels], answer.p[0])
        elif column.family == "poisson":
            steps = [answer.cdf(np.array([x]))[0] for x in np.arange(60.0)]
            check_shares(np.bincount(cells.astype(int), minlength=60)[:60], np.diff([0.0, *steps]))
        else:
            if column.family == "hurdle":
                zero = answer.zero()[0]
                check_shares([(cells == 0).sum(), (cells > 0).sum()], [zero, 1.0 - zero])
                answer = answer._replace(shares=answer.shares * answer.positive / (1.0 - zero))
                answer, cells = answer._replace(positive=None), cells[cells > 0]
            found = [answer.cdf(np.array([x]))[0] for x in cells[:500]]
            assert kstest(found, "uniform").pvalue > 1e-3


@covariances
def test_cells_and_classes_are_drawn_together(covariance):
    """As enumeration of all pairs of two columns, and of the classes, says."""
    model, rows = mixture(covariance)
    names = list(rows.layout.families_)
    one, two = names.index("town"), names.index("member")
    row = lacking(lacking(rows, one), two, 0)
    towns, members = (rows.layout.columns[j].levels for j in (one, two))
    cells, components = drawn_from(model, row, 4000)
    classes = model.learner_.model.code[components]
    scores, found = [], []
    for town in towns:
        with_town = Encoded.read(row.layout, row.layout.decode(row.cells).assign(town=town))
        for k in range(3):
            scores.append(joint(model, with_town, two, members, k))
            own = (cells["town"] == town) & (classes == k)
            found.append([(cells["member"][own] == member).sum() for member in members])
    scores = np.ravel(scores)
    check_shares(np.ravel(found), np.exp(scores - logsumexp(scores)))


@covariances
def test_correlated_numbers_are_drawn_together(covariance):
    """The slope of one on the other is that of the conditional means."""
    model, rows = mixture(covariance)
    names = list(rows.layout.families_)
    both = lacking(lacking(rows, names.index("size")), names.index("width"), 0)
    drawn = drawn_from(model, both, 2000)[0]
    known = Encoded.read(rows.layout, drawn.assign(width=None))
    means = distribution([model], known, None, names.index("width")).mean()
    off = drawn["width"].to_numpy() - means
    assert abs(np.corrcoef(off, drawn["size"].to_numpy())[0, 1]) < 0.08


ARRAYS = [
    GaussianNB(loss="nll", random_state=0),
    GaussianClassifier(covariance="full", loss="nll", max_iter=5, random_state=0),
    MixtureClassifier(2, covariance="tied", loss="nll", max_iter=5, random_state=0),
]


@pytest.mark.parametrize("model", ARRAYS, ids=lambda model: type(model).__name__)
def test_models_of_arrays_answer_as_those_of_tables(model):
    """By integration of their scores; classes may have become more frequent."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(y[:, None], 1.0, size=(300, 3)) + rng.normal(size=(300, 1))
    model = clone(model).fit(X, y).set_class_prior([0.9, 0.1])
    row, grid = X[0], np.linspace(-12.0, 14.0, 4001)
    rows = np.tile(row, (len(grid), 1))
    rows[:, 1] = grid
    for label in (None, 1):
        scores = model.predict_joint_log_proba(rows)
        scores = logsumexp(scores, axis=1) if label is None else scores[:, label]
        p = np.exp(scores - logsumexp(scores))
        found = model.distribution(1, {0: row[0], 2: row[2]}, y=label)
        np.testing.assert_allclose(found.mean, p @ grid, atol=1e-6)
        np.testing.assert_allclose(found.std, np.sqrt(p @ grid**2 - (p @ grid) ** 2), atol=1e-6)
        np.testing.assert_allclose(found.cdf(found.quantile(0.9)), 0.9, atol=1e-6)
        holes = np.array([[row[0], np.nan, row[2]]])
        given = None if label is None else [label]
        np.testing.assert_allclose(model.impute(holes, given)[0, 1], found.mean, atol=1e-9)
        drawn, labels = model.sample(500, 0, y=label, given={0: row[0], 2: row[2]})
        assert kstest([found.cdf(x) for x in drawn[:, 1]], "uniform").pvalue > 1e-3
        assert (drawn[:, [0, 2]] == row[[0, 2]]).all()
        assert set(labels) <= ({0, 1} if label is None else {label})
    gains = model.expected_gains({0: row[0]})
    assert gains.keys() == {1, 2}
    assert model.next_cell({0: row[0]}) == max(gains, key=gains.get)
    surprise = model.strangeness(X[:3], usual=X[3:])
    cut = model.score_samples([row]) - model.score_samples(holes)
    usual = model.score_samples(X[3:]) - model.score_samples(np.where([0, 1, 0], np.nan, X[3:]))
    np.testing.assert_allclose(surprise[0, 1], usual.mean() - cut[0], atol=1e-9)


def test_every_classifier_rejects_and_draws_a_class():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    counts = rng.poisson(np.where(y[:, None] == [0, 1, 0, 1], 3.0, 1.0))
    words = [" ".join(np.repeat(["ash", "oak", "elm", "yew"], row)) for row in counts]
    for model, X in (
        (MultinomialNB(random_state=0), counts),
        (TopicClassifier(n_topics=2, max_iter=3, random_state=0), counts),
        (MixtureClassifier(families="words", max_iter=3, random_state=0), counts),
        (TextClassifier(loss="ncll", weighting="counts", random_state=0), words),
    ):
        model.fit(X[:100], y[:100])
        answers, usual = model.predict(X, reject=0.1, usual=X[100:]), X[100:]
        flagged = model.outliers(X, 0.1, usual)
        assert [answer is None for answer in answers] == flagged.tolist()
        assert 0 < flagged.mean() < 0.3
        drawn, labels = model.sample(20, random_state=0, y=1)
        assert len(drawn) == 20
        assert set(labels) == {1}
        with pytest.raises(InputError, match="no class"):
            model.sample(y="fir")
        with pytest.raises(OptionError, match="usual"):
            model.predict(X, reject=0.1)
    with pytest.raises(OptionError, match="'words'"):
        MixtureClassifier(families="words").fit(counts, y).impute(counts)


@pytest.fixture(scope="module")
def table():
    X, y = made(400)
    X["visits"] = X["visits"].astype("Int64")
    rng = np.random.default_rng(2)
    X["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, len(X)), "D")
    X["town"] = X["town"].astype("category")
    X["const"] = "same"
    X.loc[X.index[5:40], ["when", "const"]] = None
    X.index = [f"row {i}" for i in range(len(X))]
    return X, y


@pytest.fixture(scope="module")
def model(table):
    return TableClassifier(**FIXED | {"families": GIVEN}).fit(*table)


@pytest.fixture(scope="module")
def imputer(table):
    return TableImputer(n_mixtures=2, max_iter=5, families=GIVEN, random_state=0).fit(table[0])


HOWS = pytest.mark.parametrize("how", ["mean", "mode", "draw"])


def check_filled(X, filled, how):
    """What was there is there; what was not is inside the domain, of the same type."""
    assert list(filled.columns) == list(X.columns)
    assert filled.index.equals(X.index)
    assert not filled.isna().any().any()
    for name in X:
        seen = X[name].notna()
        assert (filled[name][seen] == X[name][seen]).all()
        if name in ("town", "member", "const"):
            assert set(filled[name].unique()) <= set(X[name].dropna().unique())
        else:
            assert filled[name].min() >= X[name].min()
            assert filled[name].max() <= X[name].max()
    dtypes = X.dtypes.copy()
    if how == "mean":
        dtypes["visits"] = pd.Float64Dtype()
    assert (filled.dtypes == dtypes).all()


@HOWS
def test_frames_of_pandas_keep_their_types_and_index(table, model, imputer, how):
    X, y = table
    check_filled(X, imputer.impute(X, how=how, random_state=0), how)
    check_filled(X, model.impute(X, y, how=how, random_state=0), how)
    if how != "mean":
        filled = imputer.impute(X, how=how, random_state=0)
        assert (filled["when"] == filled["when"].dt.normalize()).all()


@HOWS
def test_other_tables_keep_their_types(table, imputer, how):
    X = table[0]
    expected = imputer.impute(X, how=how, random_state=0).reset_index(drop=True)
    frame = pl.from_pandas(X.reset_index(drop=True))
    filled = imputer.impute(frame, how=how, random_state=0)
    assert filled.null_count().sum_horizontal()[0] == 0
    changed = [name for name in X if filled[name].dtype != frame[name].dtype]
    assert changed == (["visits"] if how == "mean" else [])
    np.testing.assert_allclose(filled["size"].to_numpy(), expected["size"].to_numpy())
    arrow = imputer.impute(pa.Table.from_pandas(X, preserve_index=False), how=how, random_state=0)
    assert [column.null_count for column in arrow.columns] == [0] * X.shape[1]
    assert pa.types.is_timestamp(arrow.schema.field("when").type)
    rows = X.astype(object).to_dict("records")
    rows = [{name: cell for name, cell in row.items() if not pd.isna(cell)} for row in rows]
    dicts = imputer.impute(rows, how=how, random_state=0)
    assert all(row.keys() == set(X) for row in dicts)
    assert [row["town"] for row in dicts] == expected["town"].tolist()


def test_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 3))
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    filled = TableImputer(random_state=0).fit_transform(holes)
    assert filled.dtype == np.float64
    assert np.abs(filled - X).max() < 1.0  # each says most of the others
    assert np.isnan(holes).any()  # the caller's own


def test_draws_and_labels(table, model):
    X, y = table
    one, two = model.impute(X, how="draw", n_draws=2, random_state=0)
    assert not one.equals(two)
    unlabelled = np.where(np.arange(len(y)) % 2, y, None)
    assert model.impute(X, unlabelled)["size"].notna().all()
    high, low = (model.impute([{"rain": 0.0}], [label])[0]["size"] for label in ("cedar", "ash"))
    assert high > low + 2.0  # 4 and 0
    drawn, labels = model.sample(200, random_state=0, y="cedar", given={"town": "bree"})
    assert set(labels) == {"cedar"}
    assert set(drawn["town"]) == {"bree"}
    assert (
        abs(drawn["size"].mean() - model.distribution("size", {"town": "bree"}, "cedar").mean) < 0.4
    )
    _, labels = model.sample(400, random_state=0, given={"size": 4.5})
    share = model.density_.predict_proba([{"size": 4.5}])[0, 2]
    assert abs((labels == "cedar").mean() - share) < 0.1


def typed_frame():
    """A column of each type that pandas has for what models read."""
    rng, n = np.random.default_rng(0), 80
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    return pd.DataFrame(
        {
            "plain": rng.normal(size=n),
            "single": rng.normal(size=n).astype("float32"),
            "byte": rng.integers(0, 100, n).astype("int8"),
            "whole": pd.array(rng.integers(0, 50, n), dtype="Int64"),
            "income": np.rint(np.exp(rng.normal(10.0, 1.0, n))).astype(int),
            "flag": rng.random(n) < 0.4,
            "text": pd.array(rng.choice(["u", "v"], n), dtype="string"),
            "rank": pd.Categorical(rng.choice(["lo", "mid"], n), ["lo", "mid", "hi"], ordered=True),
            "day": days,
            "zone": days.tz_localize("Europe/Paris"),
            "took": pd.to_timedelta(rng.integers(0, 3000, n), "s"),
            "amount": [f"${x:,.2f}" for x in rng.lognormal(7.0, 1.0, n)],
            "written": days.strftime("%Y-%m-%d"),
            "always": "same",
            "never": np.full(n, np.nan),
        }
    )


def test_drawn_rows_have_the_types_of_the_training(tmp_path):
    X = typed_frame()
    frame = pl.from_pandas(X).with_columns(pl.col("rank").cast(pl.Enum(["lo", "mid", "hi"])))
    arrow = pa.Table.from_pandas(X, preserve_index=False)
    for table in (X, frame, arrow):
        model = NaiveBayes(loss="nll", max_iter=2).fit(table, np.arange(len(X)) % 2)
        model.save(tmp_path / "model.skops")
        for each in (model, discem.load(tmp_path / "model.skops")):
            drawn, _ = each.sample(20, random_state=0, given={"byte": 7})
            types = (each.dtypes if table is X else each.schema for each in (table, drawn))
            if table is arrow:
                assert next(types).equals(next(types))
            else:
                assert dict(next(types)) == dict(next(types))
    drawn = discem.load(tmp_path / "model.skops").sample(500, random_state=0)[0].to_pandas()
    assert set(drawn["always"]) == {"same"}
    assert (drawn["income"] == drawn["income"].round()).all()
    assert drawn["written"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    for name in ("income", "took", "zone"):
        assert drawn[name].min() >= X[name].min()
        assert drawn[name].max() <= X[name].max()


def test_what_is_odd_about_cells_is_known():
    """Sentinels are filled in, texts of days get days, and whole log-normal numbers are whole."""
    X = typed_frame()
    X["age"] = np.where(np.arange(len(X)) % 9, X["byte"] % 40 + 20.0, -999.0)
    holes = X.assign(
        written=X["written"].where(X.index > 20),
        income=X["income"].astype(float).where(X.index > 20),
    )
    model = NaiveBayes(loss="nll", max_iter=2).fit(holes, np.arange(len(X)) % 2)
    for how in ("mean", "mode", "draw"):
        filled = model.impute(holes, how=how, random_state=0)
        assert filled["age"].min() >= 20
        assert filled["written"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
        assert filled["income"].between(holes["income"].min(), holes["income"].max()).all()
        assert how == "mean" or (filled["income"] == filled["income"].round()).all()
        assert filled["never"].isna().all()
    dates = model.distribution("day")
    assert dates.cdf(dates.quantile(0.5)) == pytest.approx(0.5, abs=1e-6)
    assert dates.cdf(pd.Timestamp("2100-01-01")) == 1.0


def test_what_cannot_be_asked(table, model):
    for given in ({"shape": 1.0}, {"town": "moria"}):
        with pytest.raises(InputError, match=r"shape|moria"):
            model.sample(given=given)
    with pytest.raises(InputError, match="'size' is given"):
        model.distribution("size", given={"size": 1.0})
    with pytest.raises(InputError, match="never varies"):
        model.distribution("const")
    with pytest.raises(InputError, match="no class"):
        model.sample(y="fir")
    for ask in (
        lambda: model.impute(table[0], table[1][:3]),
        lambda: model.sample(given=[1.0]),
        lambda: model.sample(y=["ash", "oak"]),
        lambda: model.next_cell(table[0][:1]),
        lambda: model.next_cell({}, costs=3),
        lambda: model.distribution("when").cdf("soon"),
        lambda: model.distribution("size").quantile([0.1, 0.9]),
        lambda: model.predict(table[0], reject=1.0),
    ):
        with pytest.raises((InputError, OptionError)):
            ask()
    for options in ({"how": "median"}, {"n_draws": 2}, {"n_draws": 0}):
        with pytest.raises(OptionError):
            model.impute(table[0], **options)
    with pytest.raises(OptionError, match="held out"):
        TableClassifier(**FIXED | {"density": False}).fit(*table).outliers(table[0])


def test_outliers_are_as_many_as_asked_and_have_reasons():
    X, y = made(1500, holes=0.0)
    model = TableClassifier(**FIXED | {"families": GIVEN}).fit(X, y)
    fresh, _ = made(4000, seed=5, holes=0.0)
    models = [model]
    for seed in (1, 2, 3):  # 1 % of 1 500 rows are few: draws differ
        models.append(clone(model).fit(*made(1500, seed=seed, holes=0.0)))
    for rate in (0.01, 0.05):
        found = np.mean([each.outliers(fresh, rate).mean() for each in models])
        assert rate / 1.5 < found < 1.5 * rate
    strange = fresh[:100].assign(price=fresh["price"][:100] * 1e3)
    assert model.outliers(strange).mean() > 0.9
    names = list(X)
    why = model.strangeness(strange).argmax(axis=1)
    assert np.mean(why == names.index("price")) > 0.9
    assert np.abs(model.strangeness(fresh).mean(axis=0)).max() < 0.5
    answers = model.predict(strange, reject=0.01)
    assert [answer is None for answer in answers] == model.outliers(strange, 0.01).tolist()


def test_streams_know_what_is_usual():
    X, y = made(6000, holes=0.0)
    model = TableClassifier(families=GIVEN, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(0, 5000, 500):
            model.partial_fit(X[i : i + 500], y[i : i + 500])
    fresh = made(4000, seed=5, holes=0.0)[0]
    for rate in (0.01, 0.05):
        assert rate / 2 < model.outliers(fresh, rate).mean() < 2 * rate
    assert np.abs(model.strangeness(fresh).mean(axis=0)).max() < 0.5
    assert model.outliers(fresh[:100].assign(price=fresh["price"][:100] * 1e3)).mean() > 0.9
    filled = model.impute(X[:50].assign(size=None))
    assert np.corrcoef(filled["size"].astype(float), X["size"][:50])[0, 1] > 0.5
    # a town that is new is learnt, and the rows before still say what is usual
    model.partial_fit(X[5000:5500].assign(town="moria"), y[5000:5500])
    model.partial_fit(X[5500:], y[5500:])
    assert model.outliers(fresh, 0.05).mean() < 0.2
    assert len(model._fitted.usual.scores) <= 3000


def test_streams_of_new_levels_know_what_is_usual():
    """Each batch has towns that none had before."""
    X, y = made(2000, holes=0.0)
    X["town"] = [f"{town} {i // 20}" if i % 10 == 0 else town for i, town in enumerate(X["town"])]
    model = TableClassifier(families=GIVEN, random_state=0)
    for i in range(0, 2000, 250):
        model.partial_fit(X[i : i + 250], y[i : i + 250])
    assert len(model._fitted.usual.scores) == 1000
    assert 0.02 < model.outliers(made(2000, seed=5, holes=0.0)[0], 0.05).mean() < 0.1


@pytest.mark.parametrize("Model", [NaiveBayes, MixtureClassifier])
def test_every_mixture_of_a_table_answers(Model, table):
    X, y = table
    model = Model(families=GIVEN, loss="nll", max_iter=5, random_state=0).fit(X, y)
    check_filled(X, model.impute(X, y, how="draw", random_state=0), "draw")
    drawn, labels = model.sample(50, random_state=0, y="cedar", given={"town": "bree"})
    assert set(labels) == {"cedar"}
    assert set(drawn["town"]) == {"bree"}
    plain, _ = model.sample(50, random_state=0)
    assert list(plain) == list(X)
    towns = model.distribution("town", {"size": 4.0})
    np.testing.assert_allclose(sum(towns.values()), 1.0)
    low, high = (model.distribution("size", y=label).mean for label in ("ash", "cedar"))
    assert high > low + 2.0
    usual, strange = X[:200], X[200:].assign(price=X["price"][200:] * 1e3)
    assert model.outliers(X[200:], 0.05, usual).mean() < 0.15
    assert model.outliers(strange, 0.05, usual)[strange["price"].notna()].mean() > 0.9
    why = model.strangeness(strange, usual).argmax(axis=1)
    assert np.mean(why[strange["price"].notna()] == list(X).index("price")) > 0.9
    with pytest.raises(OptionError, match="usual"):
        model.outliers(X)


def test_files(table, model, imputer, tmp_path):
    X = table[0]
    for saved in (model, imputer):
        saved.save(tmp_path / "model.skops")
        again = discem.load(tmp_path / "model.skops")
        pd.testing.assert_frame_equal(again.impute(X), saved.impute(X))
    model.save(tmp_path / "model.skops")
    again = discem.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.strangeness(X), model.strangeness(X))


def golden_rows():
    """Rows of arithmetic alone: the same everywhere."""
    i = np.arange(60)
    sizes = np.where(i % 7 == 3, None, (i * 37 % 60) / 10.0)
    sorts = np.where(i % 5 == 2, None, np.where(i * 37 % 60 > 30, "large", "small"))
    return [
        {name: cell for name, cell in (("size", size), ("sort", sort)) if cell is not None}
        for size, sort in zip(sizes, sorts, strict=True)
    ]


def test_the_golden_file_of_the_imputer():
    """It was made by `TableImputer(n_mixtures=2, max_iter=5, random_state=0)`, of these rows."""
    imputer = discem.load(Path(__file__).parent / "golden" / "imputer.skops")
    filled = imputer.transform(golden_rows())
    assert filled[2] == {"size": 1.4, "sort": "small"}
    np.testing.assert_allclose([filled[3]["size"], filled[10]["size"]], GOLDEN, rtol=1e-9)


def test_pipelines(table, imputer):
    X, y = table
    numbers = X[["size", "price", "rain"]]
    forest = RandomForestClassifier(5, random_state=0)
    pipeline = make_pipeline(TableImputer(n_mixtures=1, random_state=0), forest)
    assert pipeline.fit(numbers, y).score(numbers, y) > 0.8
    assert imputer.get_feature_names_out().tolist() == list(X)
    pandas = TableImputer(n_mixtures=1, random_state=0).set_output(transform="pandas")
    assert list(pandas.fit_transform(pl.from_pandas(numbers))) == list(numbers)


@parametrize_with_checks([TableImputer(n_mixtures=2, max_iter=5, random_state=0)])
def test_scikit_learn(estimator, check):
    check(estimator)
