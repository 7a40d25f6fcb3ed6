"""Laws of TableRegressor: tables as they come, and numbers to be told from them."""

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import discem
from discem import TableRegressor
from discem.estimators._planes import Normals
from discem.estimators._predicted import PredictedNumbers
from discem.estimators._responses import Response
from discem.exceptions import InputError, ModelFileError, OptionError

GOLDEN = Path(__file__).parent / "golden" / "regressor.skops"
FIXED = {
    "n_components": 2, "missing": "ignore", "whole_numbers": "levels", "average": 1,
    "density": False, "max_iter": 8, "tol": None, "random_state": 0,
}  # fmt: skip


def made(n=200, seed=0, holes=0.1):
    """A table of mixed columns, some cells missing, and numbers that hang on them."""
    rng = np.random.default_rng(seed)
    size, slope = rng.normal(size=n), rng.normal(size=n)
    kind, few = rng.integers(0, 3, n), rng.integers(0, 4, n)
    y = 2.0 * size + np.where(kind == 0, 3.0, -1.0) * slope + few + 0.2 * rng.normal(size=n)
    table = pd.DataFrame(
        {
            "size": size,
            "slope": slope,
            "kind": np.array(["oak", "elm", "ash"], dtype=object)[kind],
            "few": few.astype(float),
        }
    )
    missing = rng.random(table.shape) < holes
    missing[0] = False
    return table.mask(missing), y


def fitted(n=200, **options):
    X, y = made(n)
    return TableRegressor(**FIXED | options).fit(X, y), X, y


# --- scikit-learn ---------------------------------------------------------------------------------

ORDER = "components begin at clusters that depend on the order of rows"


@parametrize_with_checks(
    [TableRegressor(**FIXED | {"hide": 0.0, "max_iter": 15})],
    expected_failed_checks=lambda _: {"check_sample_weight_equivalence_on_dense_data": ORDER},
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_clone_pipelines_and_cross_validation():
    X, y = made()
    model = TableRegressor(**FIXED)
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(model, X, y, cv=2).min() > 0.2
    pipeline = make_pipeline(FunctionTransformer(), model).fit(X, y)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))


# --- the distribution that is predicted -----------------------------------------------------------


def mixed(kind, seed=0):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(3), size=4)
    means, variances = rng.normal(1.0, 1.0, size=(1, 4, 3)), rng.gamma(2.0, 0.1, size=(1, 4, 3))
    # so wide a range that nothing is cut off
    return PredictedNumbers(Normals(shares, means, variances), [Response(kind, -9.0, 9.0)], True)


@pytest.mark.parametrize("kind", ["real", "positive"])
def test_a_distribution_is_its_density(kind):
    found = mixed(kind)
    grid = np.linspace(-12.0 if kind == "real" else 1e-6, 400.0, 400_001)
    for row in range(len(found)):
        own = found[row]
        density = np.exp(np.concatenate([found[[row] * 1000].log_prob(part)
                                         for part in np.split(grid[:-1], 400)]))  # fmt: skip
        step = grid[1] - grid[0]
        assert density.sum() * step == pytest.approx(1.0, abs=1e-4)
        mean = (grid[:-1] * density).sum() * step
        assert own.mean[0] == pytest.approx(mean, rel=1e-3)
        second = (grid[:-1] ** 2 * density).sum() * step
        assert own.std[0] == pytest.approx(np.sqrt(second - mean**2), rel=1e-2)
        for q in (0.01, 0.3, 0.5, 0.95):
            at = own.quantile(q)[0]
            assert density[grid[:-1] <= at].sum() * step == pytest.approx(q, abs=2e-3)
            assert own.cdf(at)[0] == pytest.approx(q, abs=1e-9)


def test_counts_have_probabilities():
    found = mixed("count")
    counts = np.arange(400.0)
    p = np.exp([found.log_prob(y) for y in counts])
    np.testing.assert_allclose(p.sum(axis=0), 1.0, atol=1e-3)
    np.testing.assert_allclose(np.cumsum(p, axis=0)[7], found.cdf(7.0), rtol=1e-9)
    assert np.isneginf(found.log_prob(2.5)).all() and np.isneginf(found.log_prob(-1.0)).all()
    assert (found.quantile(0.5) == np.rint(found.quantile(0.5))).all()


def test_means_of_logarithms_are_bounded_by_what_was_seen():
    """What is beyond twice the largest answer counts as that: it would rule the mean."""
    normals = Normals(np.ones((1, 1)), np.full((1, 1, 1), 1.0), np.full((1, 1, 1), 50.0))
    found = PredictedNumbers(normals, [Response("positive", -2.0, 3.0)], True)
    z = 1.0 + np.sqrt(50.0) * np.random.default_rng(0).normal(size=400_000)
    y = np.minimum(np.exp(z), 2.0 * np.exp(3.0))
    assert found.mean[0] == pytest.approx(y.mean(), rel=0.01)
    assert found.std[0] == pytest.approx(y.std(), rel=0.01)


def test_draws_are_of_the_distribution():
    found = mixed("positive")
    drawn = found.sample(4000, random_state=0)
    for row in range(len(found)):
        own = found[row]
        grid = np.array([own.quantile(q)[0] for q in np.linspace(0.05, 0.95, 19)])
        below = (drawn[:, row, None] <= grid).mean(axis=0)
        np.testing.assert_allclose(below, np.linspace(0.05, 0.95, 19), atol=0.04)
    same = found.sample(2, random_state=1)
    np.testing.assert_array_equal(same, found.sample(2, random_state=1))


def test_intervals_hold_what_they_say():
    X, y = made(900, holes=0.0)
    fresh, truth = made(900, seed=1, holes=0.3)
    model = TableRegressor(random_state=0, n_components=4, density=False).fit(X, y)
    low, middle, high = model.predict_quantiles(fresh).to_numpy().T
    assert (low < middle).all() and (middle < high).all()
    assert 0.85 < np.mean((low <= truth) & (truth <= high)) < 0.95
    mean, std = model.predict(fresh, return_std=True)
    assert np.sqrt(np.mean((mean - truth) ** 2)) == pytest.approx(
        np.sqrt(np.mean(std**2)), rel=0.25
    )
    cells = fresh.notna().all(axis=1)
    assert np.median(std[cells]) < 0.5 * np.median(std[~cells])
    middle_of = [model.predict_dist(fresh).cdf(own) for own in (low, middle, high)]
    np.testing.assert_allclose(np.mean(middle_of, axis=1), [0.05, 0.5, 0.95], atol=1e-9)


# --- tables ---------------------------------------------------------------------------------------


def test_all_kinds_of_frames_are_one():
    model, X, y = fitted()
    expected = model.predict(X)
    rows = X.astype(object).to_dict("records")
    dicts = [{k: cell for k, cell in row.items() if not pd.isna(cell)} for row in rows]
    for frame in (pl.from_pandas(X), dicts, X[[*X][::-1]], X.astype({"kind": "category"})):
        np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-12)
    for answers in (list(y), pl.Series(y), pd.Series(y, index=X.index[::-1]), tuple(y)):
        again = TableRegressor(**FIXED).fit(X, answers)
        np.testing.assert_array_equal(again.predict(X), expected)
    for frame in (X, pl.from_pandas(X)):
        found = model.predict_quantiles(frame, [0.1, 0.9])
        assert type(found) is type(frame) and list(found.columns) == ["0.1", "0.9"]
    assert model.predict_quantiles(X[5:9]).index.tolist() == [5, 6, 7, 8]
    assert model.predict_quantiles(dicts[:3], 0.5).shape == (3, 1)


def test_what_is_not_there_is_missing():
    model, X, _ = fitted()
    expected = model.predict(X.assign(slope=np.nan))
    with pytest.warns(UserWarning, match="'slope'"):
        np.testing.assert_array_equal(model.predict(X.drop(columns="slope")), expected)
    with pytest.warns(UserWarning, match="does not know"):
        np.testing.assert_array_equal(model.predict(X.assign(moon=1)), model.predict(X))
    mean, std = model.predict([{}], return_std=True)
    assert np.isfinite([mean, std]).all()


def test_units_and_shifts_do_not_matter():
    X, y = made(holes=0.0)
    twin = X.assign(size=1e6 * X["size"] - 3e4)
    model, other = (
        TableRegressor(**FIXED | {"target": "real"}).fit(table, answers)
        for table, answers in ((X, y), (twin, 1e-5 * y + 7.0))
    )
    np.testing.assert_allclose(1e-5 * model.predict(X) + 7.0, other.predict(twin), rtol=1e-7)
    shift = other.predict_dist(twin).log_prob(1e-5 * y + 7.0) - model.predict_dist(X).log_prob(y)
    np.testing.assert_allclose(shift, -np.log(1e-5), atol=1e-4)


def test_several_answers_stand_side_by_side():
    X, y = made(300)
    both = pd.DataFrame({"up": y, "down": -2.0 * y + 1.0})
    both.iloc[3, 0] = both.iloc[5, 1] = None
    both.iloc[8] = None
    with pytest.warns(UserWarning, match="1 of 300 rows have no answer"):
        model = TableRegressor(**FIXED).fit(X, both)
    found = model.predict(X)
    assert found.shape == (300, 2) and model.target_ == ["real", "real"]
    np.testing.assert_allclose(found[:, 1], -2.0 * found[:, 0] + 1.0, atol=0.5)
    assert model.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (300, 3, 2)
    dist = model.predict_dist(X)
    own = np.column_stack([y, -2.0 * y + 1.0])
    alone = [np.where(np.arange(2) == k, own, np.nan) for k in range(2)]
    apart = sum(dist.log_prob(each).mean() for each in alone)
    assert dist.log_prob(own).mean() > apart  # one tells of the component, and so of the other
    assert dist.sample(2, 0).shape == (2, 300, 2)
    assert model.score(X, both) > 0.7
    explained = model.explain(X[:1])
    np.testing.assert_allclose(explained.prediction, found[0])
    with pytest.raises(InputError, match="y has 1 columns, and the model has 2 answers"):
        model.partial_fit(X, y)


# --- what y is ------------------------------------------------------------------------------------


def test_skewed_numbers_are_seen_as_logarithms():
    X, y = made(300)
    kinds = {
        "real": y,
        "positive": np.exp(0.8 * y),
        "count": np.random.default_rng(0).poisson(np.exp(0.4 * y)).astype(float),
    }
    for kind, answers in kinds.items():
        model = TableRegressor(**FIXED).fit(X, answers)
        assert model.target_ == kind
        given = TableRegressor(**FIXED | {"target": kind}).fit(X, answers)
        np.testing.assert_array_equal(model.predict(X), given.predict(X))
        low, _, high = model.predict_quantiles(X).to_numpy().T
        assert kind == "real" or (low >= 0.0).all()
        assert np.mean((low <= answers) & (answers <= high)) > 0.8
    assert model.predict_dist(X).log_prob(kinds["count"]).max() <= 0.0
    with pytest.raises(InputError, match="target='positive', but y has -"):
        TableRegressor(target="positive").fit(X, y)
    with pytest.raises(InputError, match="no counts"):
        TableRegressor(target="count").fit(X, np.exp(y))
    with pytest.raises(OptionError, match="2 words for 1 answers"):
        TableRegressor(target=["real", "real"]).fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a"] * 20, "y has 'a' in row 0: a regressor needs numbers"),
        ([None] * 20, "y has no number at all"),
        ([1.0] * 19 + [np.inf], "infinity in row 19"),
        ([1.0] * 19, "X has 20 rows but y has 19"),
        (pd.DataFrame({"p": [1.0] * 20, "q": ["b"] * 20}), "column 'q' of y has 'b' in row 0"),
        (pd.date_range("2020-01-01", periods=20), "a regressor needs numbers"),
        (None, "requires y to be passed"),
    ],
)
def test_answers_that_cannot_be_are_named(y, message):
    X, good = made(20)
    model = TableRegressor(**FIXED).fit(X, good)
    before = model.predict(X)
    with pytest.raises((InputError, TypeError), match=message):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "labels"}, {"loss": "hinge"}, {"n_components": 0}, {"hide": 1.0}, {"cv": 1},
        {"average": 0}, {"missing": "?"}, {"whole_numbers": 3}, {"density": "yes"}, {"max_iter": 0},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_options_are_named(options):
    X, y = made(30)
    with pytest.raises(OptionError, match=next(iter(options))):
        TableRegressor(**options).fit(X, y)


# --- choosing and training ------------------------------------------------------------------------


def test_what_was_chosen_is_on_record():
    X, y = made(160)
    model = TableRegressor(random_state=0, max_iter=6, tol=None, density=False).fit(X, y)
    assert {each["n_components"] for each in model.choice_} >= {1, 4, 16}
    weights = [member["weight"] for member in model.members_]
    assert sum(weights) == pytest.approx(1.0) and len(weights) % 4 == 0
    assert model.chosen_["held_out"] == 160
    again = TableRegressor(random_state=0, max_iter=6, tol=None, density=False).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    one = TableRegressor(random_state=0, max_iter=6, average=1, density=False).fit(X, y)
    assert len(one.members_) == 1
    assert one.members_[0]["n_components"] == one.chosen_["n_components"]


def test_rows_are_held_out_as_cv_says():
    X, y = made(80)
    options = FIXED | {"n_components": "auto"}
    groups = np.arange(80) // 8
    by_group = TableRegressor(**options, cv=groups).fit(X, y)
    pairs = [*GroupKFold(5).split(X, groups=groups)]
    by_pairs = TableRegressor(**options, cv=pairs).fit(X, y)
    assert by_group.choice_[0]["log_loss"] == pytest.approx(by_pairs.choice_[0]["log_loss"])


def test_a_weight_of_none_is_no_row():
    X, y = made()
    wild = y.copy()
    wild[100:] = 1e6
    weights = np.where(np.arange(200) < 100, 1.0, 0.0)
    model = TableRegressor(**FIXED | {"target": "real"}).fit(X, wild, weights)
    assert np.abs(model.predict(X)).max() < 30.0


def test_rows_without_an_answer_are_told_and_taken():
    X, y = made()
    known = np.where(np.arange(200) < 60, y, np.nan)
    with pytest.warns(UserWarning, match="140 of 200 rows have no answer"):
        model = TableRegressor(**FIXED).fit(X, known)
    assert model.score(X[60:], y[60:]) > 0.5
    assert model.score(X, known) == pytest.approx(model.score(X[:60], y[:60]))


def test_a_stream_comes_close_to_a_fit():
    X, y = made(1500)
    stream = TableRegressor(random_state=0)
    for begin in range(0, 1200, 200):
        stream.partial_fit(X[begin : begin + 200], y[begin : begin + 200])
    whole = TableRegressor(**FIXED | {"n_components": 4}).fit(X[:1200], y[:1200])
    assert stream.score(X[1200:], y[1200:]) > whole.score(X[1200:], y[1200:]) - 0.1
    assert stream.stream_["rows"] == 1200
    assert stream.outliers(X.assign(size=50.0)).all()  # it has a density, too


@pytest.mark.parametrize("stage", ["choice", "fit", "density"])
def test_ctrl_c_leaves_what_was_trained(stage):
    X, y = made(120)
    stages = []

    def stop(_, record):
        stages.append(record["stage"])
        if record["stage"] == stage and stages.count(stage) > 2:
            raise KeyboardInterrupt
        return False

    average = 1 if stage == "fit" else "auto"
    model = TableRegressor(max_iter=5, average=average, callback=stop, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert stages[-1] == stage


# --- why ------------------------------------------------------------------------------------------


def test_columns_and_base_are_the_prediction():
    X, y = made(600, holes=0.0)
    model = TableRegressor(random_state=0, n_components=8, whole_numbers="levels").fit(X, y)
    row = {"size": 1.5, "kind": "oak"}
    found = model.explain(row)
    assert found.prediction == pytest.approx(model.predict([row])[0])
    parts = dict(zip(found.columns, found.contributions, strict=True))
    assert parts["slope"] == pytest.approx(0.0, abs=1e-12)  # a missing cell moves nothing
    assert found.largest()[0][0] == "size" and parts["size"] > 1.5
    assert found.base == pytest.approx(model.predict([{}])[0])
    # the slope matters much in an oak, and to know it makes the answer narrower
    assert found.if_known.keys() == {"slope", "few"}
    assert found.if_known["slope"] < 0.6 * found.std
    whole = {"size": 1.5, "kind": "oak", "slope": 0.0, "few": 1.0}
    assert model.explain(whole).if_known == {}
    with pytest.raises(InputError, match="one row at a time"):
        model.explain(X[:2])


def test_a_plane_is_explained_by_its_slopes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -2.0, 0.0]
    model = TableRegressor(**FIXED | {"n_components": 1}).fit(X, y)
    found = model.explain(np.array([[1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(found.contributions, [1.0, -2.0, 0.0], atol=0.15)


# --- the density ----------------------------------------------------------------------------------


def test_the_density_answers_what_is_asked_of_it():
    X, y = made(300)
    model = TableRegressor(random_state=0, max_iter=6).fit(X, y)
    filled = model.impute(X)
    assert not filled.isna().any().any()
    pd.testing.assert_frame_equal(filled.where(X.notna()), X, check_dtype=False)
    drawn, answers = model.sample(400, random_state=0)
    assert list(drawn) == list(X) and answers.shape == (400,)
    assert stats.ks_2samp(answers, y).pvalue > 1e-4
    given, _ = model.sample(20, random_state=0, given={"kind": "oak"})
    assert set(given["kind"]) == {"oak"}
    odd = X.assign(size=50.0)
    assert model.outliers(odd).all() and model.outliers(X, rate=0.05).mean() < 0.15
    assert model.strangeness(odd[:3]).argmax(axis=1).tolist() == [0, 0, 0]
    assert model.distribution("kind", {"size": 0.0}).keys() == {"ash", "elm", "oak"}
    plain = TableRegressor(**FIXED).fit(X, y)
    assert plain.score_samples(odd).max() < plain.score_samples(X).min()
    with pytest.raises(AttributeError, match="no density"):
        plain.impute(X)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [True, False])
def test_files(density, tmp_path):
    model, X, y = fitted(density=density, average="auto", n_components="auto")
    path = tmp_path / "model.skops"
    model.save(path)
    again = discem.load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.choice_.data[0]["n_components"] == 1 and again.target_ == "real"
    second = tmp_path / "again.skops"
    again.save(second)
    assert path.read_bytes() == second.read_bytes()
    again.partial_fit(X, y)
    assert np.isfinite(again.predict(X)).all()


def golden_rows():
    """Rows of arithmetic alone: the same everywhere."""
    i = np.arange(60)
    size = np.where(i % 7 == 3, np.nan, (i * 37 % 60) / 10.0)
    y = (i * 37 % 60) / 5.0 + (i % 3) + (i * 11 % 7) / 20.0
    return pd.DataFrame({"size": size, "sort": np.array([*"abc"], dtype=object)[i % 3]}), y


def test_the_golden_file_of_the_regressor():
    """It was made by `TableRegressor(**FIXED)`, of these rows.

    With ``PYTHONPATH=tests python -c "import test_regressor as t; t.make_golden()"``.
    """
    model, (X, y) = discem.load(GOLDEN), golden_rows()
    mean, std = model.predict(X[:4], return_std=True)
    said = json.loads(GOLDEN.with_suffix(".json").read_text())
    np.testing.assert_allclose(mean, said["mean"], rtol=1e-9)
    np.testing.assert_allclose(std, said["std"], rtol=1e-9)
    assert model.partial_fit(X, y).score(X, y) > 0.5


def make_golden():
    X, y = golden_rows()
    model = TableRegressor(**FIXED).fit(X, y)
    if GOLDEN.exists():
        raise SystemExit(f"{GOLDEN} is there already, and golden: it must stay as it is")
    model.save(GOLDEN)
    mean, std = model.predict(X[:4], return_std=True)
    said = {"version": discem.__version__, "mean": mean.tolist(), "std": std.tolist()}
    GOLDEN.with_suffix(".json").write_text(json.dumps(said, indent=1) + "\n")


@pytest.mark.parametrize("harm", ["plane", "responses", "flat", "weight", "white"])
def test_a_harmed_file_is_refused(harm, tmp_path):
    model, _, _ = fitted()
    fitted_parts, member = model._fitted, model._fitted.members[0]
    block = member.model.learner_.state.answer
    if harm == "plane":
        block.values["plane"][0, 0, 0] = np.nan
    elif harm == "white":
        block.fixed["white"] = block.fixed["white"][:, :-1]
    elif harm == "responses":
        fitted_parts.responses = fitted_parts.responses * 2
    elif harm == "flat":
        fitted_parts.flat = None
    else:
        fitted_parts.members[0] = member._replace(weight=0.5)
    with pytest.raises(ModelFileError):
        model.save(tmp_path / "model.skops")


# --- odd tables -----------------------------------------------------------------------------------


def test_odd_tables_are_learnt_from():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=[*"abc"])
    y = (X["a"] - X["b"] * (X["c"] > 0) + 0.1 * rng.normal(size=200)).to_numpy()
    spiked, wild = X.copy(), y.copy()
    spiked.iloc[3, 0], wild[5] = 1e9, 1e9
    cases = {
        "copies": (X.assign(**{f"a{k}": X["a"] for k in range(10)}), y, 0.75),
        "constant": (X.assign(k=1.0), y, 0.7),
        "few": (X[:20], y[:20], -1.0),
        "spiked": (spiked, y, 0.5),
        "wild": (X, wild, 0.7),
        "three": (X, np.sign(np.rint(y)), 0.3),
    }
    for name, (table, answers, least) in cases.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = TableRegressor(random_state=0, density=False).fit(table, answers)
        mean, std = model.predict(table, return_std=True)
        assert np.isfinite(mean).all() and np.isfinite(std).all(), name
        assert np.isfinite(model.predict_quantiles(table)).all().all(), name
        rest = np.delete(np.arange(len(answers)), 5)
        assert model.score(table.iloc[rest], answers[rest]) > least, name


@pytest.mark.parametrize("rows", [pd.DataFrame({"a": [1.0] * 9, "b": [None] * 9}), [{"a": 1.0}]])
def test_a_table_of_which_nothing_varies_is_refused(rows):
    for learn in (TableRegressor().fit, TableRegressor().partial_fit):
        with pytest.raises(InputError, match=f"no column varies.* n_samples = {len(rows)}:"):
            learn(rows, np.arange(float(len(rows))))


def test_more_columns_than_rows_are_no_reason_to_be_sure():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 120))
    y = X[:, 0] - 2.0 * X[:, 1] + 0.5 * rng.normal(size=160)
    model = TableRegressor(random_state=0, density=False).fit(X[:60], y[:60])
    found = model.predict_dist(X[60:])
    inside = (found.quantile(0.05) <= y[60:]) & (y[60:] <= found.quantile(0.95))
    assert inside.mean() > 0.7
    assert found.log_prob(y[60:]).mean() > -3.0  # a normal distribution about the mean has -2.2


def test_an_absurd_answer_is_taken_for_missing_and_told():
    X, y = made(100)
    y[7] = 1e9
    with pytest.warns(UserWarning, match="y has 1e\\+09, which is nothing like the rest: 1 of 100"):
        model = TableRegressor(**FIXED).fit(X, y)
    assert np.abs(model.predict(X)).max() < 30.0
    assert np.isfinite(model.predict_dist(X).log_prob(y)).all()


def test_a_constant_answer_is_the_answer():
    X, _ = made(60)
    model = TableRegressor(random_state=0).fit(X, np.full(60, 5.0))
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, 5.0, rtol=1e-5)
    assert std.max() < 1e-3
