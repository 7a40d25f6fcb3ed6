"""What only a joint can do: laws of imputation, conditional draws, distributions and outliers."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import kstest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_table import FIXED, GIVEN, made

import discem
from discem import GaussianNB, MixtureClassifier, NaiveBayes, TableClassifier, TableImputer
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


def density_of(model, row, name, k):
    """The density of a column given the rest of the row, at one place, up to a constant."""
    j = [column.name for column in row.layout.columns].index(name)
    return lambda x: np.exp(joint(model, row, j, [float(x)], k)[0] + 10.0)


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
    density = density_of(model, row, name, k)
    breaks = {"points": [-3, 0, 2, 5, 9] if low < 0 else [0.05, 0.5, 2, 8, 30], "limit": 80}

    def integral(of, to=high, options=breaks):
        return quad(of, low + (1e-9 if name in GIVEN else 0), to, epsrel=1e-5, **options)[0]

    spike = density(0.0) if name == "rain" else 0.0
    total = integral(density) + spike
    mean = integral(lambda x: x * density(x)) / total
    square = integral(lambda x: x * x * density(x)) / total
    below = (integral(density, 1.5, {}) + spike) / total
    np.testing.assert_allclose(found.mean()[0], mean, rtol=1e-3)
    np.testing.assert_allclose(found.variance_of()[0], square - mean**2, rtol=1e-2)
    np.testing.assert_allclose(found.cdf(np.array([1.5]))[0], below, rtol=1e-3)
    q = found.quantile(0.9)
    np.testing.assert_allclose(found.cdf(q)[0], 0.9, rtol=1e-6)
    if name != "rain":
        grid = np.linspace(low + 0.01, 15.0, 3000)
        peak = grid[joint(model, row, j, grid, k).argmax()]
        assert abs(found.mode()[0] - peak) < 0.02


@covariances
def test_draws_have_the_distribution_of_their_columns(covariance):
    """Also two of them together: correlated numbers are drawn so."""
    model, rows = mixture(covariance)
    names = list(rows.layout.families_)
    wide = [replace_span(column) for column in rows.layout.columns]
    layout = discem.io.tables.replace(rows.layout, columns=wide)
    both = lacking(rows, names.index("size"))
    both = lacking(both, names.index("width"), 0)._replace(layout=layout)
    many = both.take(np.zeros(4000, dtype=int))
    cells, _ = discem.estimators._impute.draw([model], many, None, np.random.RandomState(0))
    drawn = layout.decode(cells)
    for name in ("size", "width"):
        answer = distribution([model], both, None, names.index(name))

        def cdf(x, answer=answer):
            return np.array([answer.cdf(np.array([each]))[0] for each in np.ravel(x)])

        assert kstest(drawn[name].iloc[:500], cdf).pvalue > 1e-3
    # the slope of one on the other is that of the conditional means
    known = Encoded.read(layout, drawn.iloc[:2000].assign(width=None))
    means = distribution([model], known, None, names.index("width")).mean()
    off = drawn["width"].to_numpy()[:2000] - means
    assert abs(np.corrcoef(off, drawn["size"].to_numpy()[:2000])[0, 1]) < 0.08


def replace_span(column):
    return discem.io.columns.replace(column, span=[])


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
    for options in ({"how": "median"}, {"n_draws": 2}, {"n_draws": 0}):
        with pytest.raises(OptionError):
            model.impute(table[0], **options)
    with pytest.raises(AttributeError, match="held out"):
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
    with pytest.raises(AttributeError, match="usual"):
        model.outliers(X)


def test_models_of_arrays_know_outliers():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), np.arange(600) % 2
    model = GaussianNB(loss="nll").fit(X[:300], y[:300])
    fresh = rng.normal(size=(2000, 3))
    assert 0.02 < model.outliers(fresh, 0.05, usual=X[300:]).mean() < 0.1
    assert model.outliers(fresh + 9.0, 0.05, usual=X[300:]).all()
    with pytest.raises(OptionError, match="array of numbers"):
        MixtureClassifier().fit(X, y).impute(X)


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
