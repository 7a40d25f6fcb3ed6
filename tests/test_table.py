"""Tables as they come: laws of TableClassifier, and of mixtures and naive Bayes of tables."""

import pickle
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from checks import data_checks
from scipy.special import logsumexp
from scipy.stats import ks_2samp, norm, poisson
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tiny import untimed

import discem
from discem import GaussianNB, MixtureClassifier, NaiveBayes, TableClassifier
from discem.datasets import customers
from discem.estimators._tables import Encoded, Hider, singles
from discem.exceptions import InputError, OptionError
from discem.families import gaussian
from discem.io.tables import Layout

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LABELS = np.array(["ash", "birch", "cedar"])
TOWNS = np.array(["bree", "hobbiton", "rivendell"])
GIVEN = {"price": "lognormal", "rain": "hurdle", "visits": "poisson"}
FIXED = {
    "covariance": "diag",
    "whole_numbers": "levels",
    "average": 1,
    "n_components": 2, "loss": "ncll", "hide": 0.5, "missing": "ignore", "prior_strength": 1.0,
    "temperature": 1.0, "max_iter": 4, "tol": None, "random_state": 0,
}  # fmt: skip
PLAIN = {"loss": "nll", "families": GIVEN, "random_state": 0, "max_iter": 2}  # naive Bayes
both = pytest.mark.parametrize("Model", [TableClassifier, NaiveBayes])


def made(n=150, seed=0, holes=0.1):
    """A table with a column of each family, some of its cells missing, and labels."""
    rng = np.random.default_rng(seed)
    k = rng.permutation(np.arange(n) % 3)
    rain = rng.gamma(2.0, 1.0 + k, size=n) * (rng.random(n) < 0.3 + 0.2 * k)
    table = pd.DataFrame(
        {
            "size": rng.normal(2.0 * k, 1.0),
            "price": np.exp(rng.normal(0.8 * k, 0.6)),
            "rain": rain,
            "visits": rng.poisson(4.0 + 3.0 * k).astype(float),
            "member": pd.array(rng.random(n) < 0.2 + 0.3 * k, dtype="boolean"),
            "town": TOWNS[(k + (rng.random(n) < 0.3)) % 3].astype(object),
        }
    )
    missing = rng.random(table.shape) < holes
    missing[0] = False  # the keys of a dict come in the order of the columns
    return table.mask(missing), LABELS[k]


def options_of(Model):
    if Model is TableClassifier:
        return FIXED | {"families": GIVEN, "density": False}
    return {"families": GIVEN, "random_state": 0, "max_iter": 4, "tol": None}


def fitted(Model=TableClassifier, n=150, **options):
    X, y = made(n)
    return Model(**options_of(Model) | options).fit(X, y), X, y


def same(one, other, X):
    np.testing.assert_array_equal(one.predict_joint_log_proba(X), other.predict_joint_log_proba(X))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def records(table):
    """The table as dicts that lack what is missing."""
    rows = table.astype(object).to_dict("records")
    return [{name: cell for name, cell in row.items() if not pd.isna(cell)} for row in rows]


# --- scikit-learn ---------------------------------------------------------------------------------

ORDER = "training depends on the order of rows, as in SGDClassifier"


def expected_failures(model):
    failures = {"check_sample_weight_equivalence_on_dense_data": ORDER}
    if not isinstance(model, TableClassifier):
        failures["check_sample_weight_equivalence_on_sparse_data"] = ORDER
    return failures


@parametrize_with_checks(
    [TableClassifier(**FIXED | {"hide": 0.0, "max_iter": 15})],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@data_checks([NaiveBayes(max_iter=30)], expected_failures)
def test_scikit_learn_on_one_component(estimator, check):
    check(estimator)


@both
def test_clone_grid_and_pipelines(Model):
    X, y = made(90)
    model = Model(**options_of(Model))
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model.fit(X, y)), "classes_")
    grid = {"hide": [0.0, 0.5], "loss": ["ncll", discem.Blend(0.2)]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.5
    scaled = make_column_transformer((StandardScaler(), ["size"]), remainder="passthrough")
    scaled.set_output(transform="pandas")
    names = {f"remainder__{name}": family for name, family in GIVEN.items()}
    pipeline = make_pipeline(scaled, Model(**options_of(Model) | {"families": names}))
    assert pipeline.fit(X, y).score(X, y) > 0.5
    assert pipeline[-1].families_["remainder__price"] == "lognormal: given"
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))


# --- one model for one training -------------------------------------------------------------------

SOME = {"n_components": "auto", "loss": "auto", "missing": "auto", "temperature": "auto"}


def test_what_was_chosen_makes_the_same_model():
    """Bit for bit, and so does the same seed; another seed does not."""
    X, y = made(120)
    options = options_of(TableClassifier) | SOME | {"density": True}
    model = TableClassifier(**options).fit(X, y)
    chosen = {name: model.chosen_[name] for name in ("hide", "prior_strength", *SOME)}
    fixed = TableClassifier(**options | chosen).fit(X, y)
    same(model, fixed, X)
    assert fixed.chosen_.items() >= (chosen | {"epochs": model.chosen_["epochs"]}).items()
    same(model, TableClassifier(**options).fit(X, y), X)
    np.testing.assert_array_equal(model.score_samples(X), fixed.score_samples(X))
    other = TableClassifier(**options | {"random_state": 1}).fit(X, y)
    assert untimed(other.choice_) != untimed(model.choice_)
    assert model.chosen_["held_out"] > 0 and len(model.choice_) > 2
    best = min(trial["log_loss"] for trial in model.choice_)
    assert best < np.log(3)


def frames(table):
    """The table as everybody has it."""
    yield "polars", pl.from_pandas(table)
    yield "dicts", records(table)
    yield "lists", {name: [None if pd.isna(c) else c for c in table[name]] for name in table}
    yield "shuffled", table[list(table)[::-1]]
    yield "objects", table.astype(object).where(table.notna(), None)
    yield "categories", table.astype({"town": "category"})
    try:
        import pyarrow
    except ImportError:
        return
    yield "pyarrow", pyarrow.Table.from_pandas(table)


@both
def test_all_kinds_of_frames_are_one(Model):
    """Fitted on any, asked with any; columns are found by name."""
    model, X, y = fitted(Model)
    for kind, frame in frames(X):
        if kind == "lists":
            frame = pl.DataFrame(frame)
        same_answers = model.predict_joint_log_proba(frame)
        np.testing.assert_array_equal(same_answers, model.predict_joint_log_proba(X), kind)
        if kind == "shuffled":
            continue  # sums are taken in another order
        other = Model(**options_of(Model)).fit(frame, y)
        np.testing.assert_array_equal(
            other.predict_joint_log_proba(frame), model.predict_joint_log_proba(X), kind
        )
        assert other.families_.keys() == model.families_.keys()


@both
def test_what_is_not_there_is_missing(Model):
    """A column, a key, a level: all are cells that nobody has seen."""
    model, X, _ = fitted(Model)
    lacking = X.assign(town=None, price=np.nan)
    expected = model.predict_joint_log_proba(lacking)
    with pytest.warns(UserWarning) as caught:
        found = model.predict_joint_log_proba(X.drop(columns=["town", "price"]))
    assert len(caught) == 1 and "no columns 'price', 'town'" in str(caught[0].message)
    np.testing.assert_array_equal(found, expected)
    rows = [{key: row[key] for key in row if key not in ("town", "price")} for row in records(X)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict_joint_log_proba(rows), expected)
        new = model.predict_joint_log_proba(X.assign(town="mordor"))
    np.testing.assert_array_equal(new, model.predict_joint_log_proba(X.assign(town=None)))
    with pytest.warns(UserWarning, match="does not know: 'moon'"):
        np.testing.assert_array_equal(model.predict(X.assign(moon=1.0)), model.predict(X))
    with pytest.warns(UserWarning, match="outside of what"):
        low = model.predict_joint_log_proba(X.assign(price=-1.0))
    np.testing.assert_array_equal(low, model.predict_joint_log_proba(X.assign(price=np.nan)))
    nothing = model.predict_proba([{}])
    np.testing.assert_allclose(nothing.sum(), 1.0)


# --- the density ----------------------------------------------------------------------------------


def density(model, X):
    """Ln p(y, x) of naive Bayes, by the textbook: (n, K)."""
    numbers, kinds, counts = model.learner_.model.blocks
    (m, v), rates = gaussian.moments(numbers), counts.values["rate"]
    levels = np.split(kinds.values["share"], kinds.fixed["first"][1:-1])
    cells = model.layout_.encode(X)
    logs = norm.logpdf(cells.numbers[:, None], m, np.sqrt(v))
    total = np.nansum(logs, axis=2) + np.log(model.class_prior_)
    for j, column in enumerate(model.layout_.numbers):
        if model.layout_.columns[column].family != "gaussian":  # of the logarithm
            total -= np.nan_to_num(cells.numbers[:, [j]])
    for d, p in enumerate(levels):
        seen = cells.codes[:, d] >= 0
        total[seen] += np.log(p[cells.codes[seen, d]])
    logs = poisson.logpmf(cells.counts[:, :, None], rates)
    return total + np.nansum(logs, axis=1)


def test_densities_are_those_of_scipy():
    """Of every family, with cells missing, by NLL and after another loss."""
    for options in (PLAIN, PLAIN | {"loss": "ncll", "hide": 0.3}):
        X, y = made()
        model = NaiveBayes(**options).fit(X, y)
        expected = density(model, X)
        np.testing.assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-9)
        np.testing.assert_allclose(model.score_samples(X), logsumexp(expected, axis=1), rtol=1e-9)


def test_naive_bayes_by_nll_counts():
    """Rates, shares and moments are those of the classes, but for a weak prior."""
    X, y = made(900, holes=0.2)
    model = NaiveBayes(**PLAIN).fit(X, y)
    numbers, kinds, counts = model.learner_.model.blocks
    (m, v), shares, rates = gaussian.moments(numbers), kinds.values["share"], counts.values["rate"]
    for k, label in enumerate(LABELS):
        own = X[y == label]
        assert m[k, 0] == pytest.approx(own["size"].mean(), abs=0.05)
        assert v[k, 0] == pytest.approx(own["size"].var(), rel=0.1)
        assert m[k, 1] == pytest.approx(np.log(own["price"]).mean(), abs=0.05)
        wet = own["rain"][own["rain"] > 0]
        assert m[k, 2] == pytest.approx(np.log(wet).mean(), abs=0.05)
        assert shares[1, k] == pytest.approx((own["rain"].dropna() > 0).mean(), abs=0.02)
        assert shares[3, k] == pytest.approx(own["member"].mean(), abs=0.02)
        frequent = own["town"].value_counts(normalize=True).reindex(TOWNS, fill_value=0.0)
        np.testing.assert_allclose(shares[4:7, k], frequent, atol=0.02)
        assert rates[0, k] == pytest.approx(own["visits"].mean(), rel=0.03)


def test_a_lognormal_column_is_a_gaussian_of_logarithms():
    X, y = made()
    logs = X.assign(price=np.log(X["price"]))
    one = NaiveBayes(**PLAIN).fit(X, y)
    other = NaiveBayes(**PLAIN | {"families": GIVEN | {"price": "gaussian"}}).fit(logs, y)
    jacobian = -logs["price"].fillna(0.0).to_numpy()
    np.testing.assert_allclose(
        one.score_samples(X), other.score_samples(logs) + jacobian, rtol=1e-9
    )
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(logs), rtol=1e-9)


def test_samples_are_like_the_rows():
    """Tables of the same kind, whose columns have the marginals of the training by class."""
    X, y = made(900, holes=0.0)
    model = TableClassifier(**options_of(TableClassifier) | {"density": True, "max_iter": 1})
    model.fit(X, y)
    drawn, labels = model.sample(6000, random_state=0)
    assert type(drawn) is pd.DataFrame and list(drawn) == list(X)
    for label in LABELS:
        own, new = X[y == label], drawn[labels == label]
        assert len(new) / 6000 == pytest.approx(1 / 3, abs=0.03)
        for name in ("size", "price", "visits"):
            assert ks_2samp(own[name], new[name]).statistic < 0.12, (label, name)
        wet, drawn_wet = own["rain"][own["rain"] > 0], new["rain"][new["rain"] > 0]
        assert len(drawn_wet) / len(new) == pytest.approx(len(wet) / len(own), abs=0.05)
        assert ks_2samp(wet, drawn_wet).statistic < 0.15
        assert new["member"].mean() == pytest.approx(own["member"].mean(), abs=0.05)
        for town in TOWNS:
            share = (new["town"] == town).mean()
            assert share == pytest.approx((own["town"] == town).mean(), abs=0.05)
    first, again = (model.sample(5, random_state=3)[0] for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    for kind in (pl.DataFrame, list):
        given = pl.from_pandas(X) if kind is pl.DataFrame else records(X)
        few = NaiveBayes(**PLAIN).fit(given, y).sample(4, random_state=0)[0]
        assert type(few) is kind and len(few) == 4


def test_the_density_answers_what_is_asked_of_it():
    X, y = made()
    options = options_of(TableClassifier)
    model = TableClassifier(**options | {"density": "auto"}).fit(X, y)
    assert model.density_.loss == "nll"
    np.testing.assert_array_equal(model.score_samples(X), model.density_.score_samples(X))
    assert model.score_samples(X).mean() > model.model_.score_samples(X).mean()
    odd = X.assign(size=100.0)
    assert (model.score_samples(odd) < model.score_samples(X)).all()
    none = TableClassifier(**options).fit(X, y)
    same(model, none, X)
    np.testing.assert_array_equal(none.score_samples(X), none.model_.score_samples(X))
    with pytest.raises(AttributeError, match="density=True"):
        _ = none.density_


# --- why ------------------------------------------------------------------------------------------


@both
def test_columns_and_intercept_are_the_score(Model):
    """Exactly, whatever the temperature and the prior of the classes; what is missing adds 0."""
    model, X, y = fitted(Model, missing="informative")
    model.calibrate(X, y).set_class_prior([0.2, 0.3, 0.5])
    assert model.temperature_ != 1.0
    expected = model.predict_proba(X)
    for i in range(8):
        row = X.iloc[[i]]
        why = model.explain(row)
        assert why.columns == list(X) and why.classes.tolist() == LABELS.tolist()
        scores = why.intercept + why.contributions.sum(axis=0)
        np.testing.assert_allclose(
            np.exp(scores - logsumexp(scores)), expected[i], rtol=1e-10, atol=1e-12
        )
        np.testing.assert_allclose(why.contributions.sum(axis=1), 0.0, atol=1e-12)
        one, other = why.against("ash", "cedar")[0]
        assert other == pytest.approx(
            float(np.subtract(*why.contributions[list(X).index(one)][[0, 2]]))
        )
        for given in (records(row)[0], records(row), pl.from_pandas(row)):
            np.testing.assert_array_equal(model.explain(given).contributions, why.contributions)
    with pytest.raises(InputError, match="no class 'oak'"):
        why.against("oak")


@both
def test_a_missing_cell_adds_nothing(Model):
    model, X, _ = fitted(Model)
    row = records(X.dropna())[0]
    whole = model.explain(row)
    for j, name in enumerate(X):
        less = model.explain({key: row[key] for key in row if key != name})
        np.testing.assert_array_equal(less.contributions[j], 0.0)
        assert np.abs(whole.contributions[j]).max() > 1e-6
        if Model is NaiveBayes:  # columns do not speak of each other
            rest = np.arange(len(list(X))) != j
            np.testing.assert_allclose(
                less.contributions[rest], whole.contributions[rest], atol=1e-10
            )
            gap = less.intercept - whole.intercept  # what the cell says alike of all classes
            np.testing.assert_allclose(gap, gap[0], atol=1e-9)
    empty = model.explain({})
    np.testing.assert_array_equal(empty.contributions, 0.0)


def test_arrays_of_numbers_are_explained_too():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + y[:, None]
    X[::7, 1] = np.nan
    for model in (GaussianNB(max_iter=2), MixtureClassifier(2, max_iter=2, random_state=0)):
        model.fit(X, y).calibrate(X, y).set_class_prior([0.3, 0.7])
        for row in (X[0], X[7:8], X[3].tolist()):
            why = model.explain(row)
            proba = model.predict_proba(np.atleast_2d(row))[0]
            np.testing.assert_allclose(
                np.exp(why.scores - logsumexp(why.scores)), proba, rtol=1e-10
            )
        assert (model.explain(X[7]).contributions[1] == 0.0).all()
        assert why.columns == [0, 1, 2]
    words = MixtureClassifier(families="words", max_iter=1).fit(np.abs(np.nan_to_num(X)), y)
    with pytest.raises(OptionError, match="'words' are not explained by column"):
        words.explain(np.ones(3))


# --- cells that training hides --------------------------------------------------------------------


def parts_of(rows):
    return [part.values for part in rows.parts]


@pytest.mark.parametrize("informative", [False, True])
def test_hidden_cells_are_whole_columns_of_a_row(informative):
    """All parts of a column go together, others stay; of complete rows there are some."""
    X, _ = made(400, holes=0.0 if not informative else 0.05)
    layout = Layout.learn(X, GIVEN, informative)
    rows = Encoded(layout.encode(X), layout).view()
    shown = Hider(layout, 0.6)(rows, np.random.RandomState(0))
    owners = layout.numbers, layout.codes, layout.counts
    hidden = np.zeros(X.shape, dtype=bool)
    for part, (before, after) in enumerate(zip(parts_of(rows), parts_of(shown), strict=True)):
        changed = ~((before == after) | (np.isnan(before) & np.isnan(after)))
        for place, column in enumerate(owners[part]):
            hidden[:, column] |= changed[:, place]
    for part, after in enumerate(parts_of(shown)):
        for place, column in enumerate(owners[part]):
            gone = hidden[:, column]
            tells = part == 1 and layout.parts[1].slots[place].role == "missing"
            if part == 1:
                assert (after[gone, place] == (1 if tells else -1)).all()
            else:
                assert np.isnan(after[gone, place]).all()
            np.testing.assert_array_equal(after[~gone, place], parts_of(rows)[part][~gone, place])
    np.testing.assert_array_equal(shown.parts[2].base, rows.parts[2].base)
    assert 0.25 < (~hidden.any(axis=1)).mean() < 0.55
    assert 0.1 < hidden.mean() < 0.3
    assert hidden.mean(axis=1).max() <= 1.0
    again = Hider(layout, 0.6)(rows, np.random.RandomState(0))
    for one, other in zip(parts_of(again), parts_of(shown), strict=True):
        np.testing.assert_array_equal(one, other)
    alone = singles(Encoded(layout.encode(X[:1]), layout).view(), layout, np.arange(X.shape[1]))
    for part, values in enumerate(parts_of(alone)):
        for place, column in enumerate(owners[part]):
            others = np.arange(X.shape[1] + 1) != column
            gone = values[others, place]
            assert (np.isnan(gone) if part != 1 else gone == -1).all()


def test_hiding_makes_good_models_of_few_cells():
    X, y = made(400, holes=0.0)
    fresh, truth = made(2000, seed=1, holes=0.0)
    few = fresh.mask(np.random.default_rng(2).random(fresh.shape) < 0.6)
    losses = []
    for hide in (0.0, 0.8):
        model = NaiveBayes(families=GIVEN, hide=hide, random_state=0, max_iter=20).fit(X, y)
        p = model.predict_log_proba(few)
        losses.append(-p[np.arange(len(p)), np.searchsorted(LABELS, truth)].mean())
    assert losses[1] < losses[0]


def test_missing_cells_may_tell():
    """Where cells are missing in one class only, a model that listens to it knows that class."""
    X, y = made(300, holes=0.0)
    X.loc[(y == "ash") & (np.arange(300) % 4 > 0), "size"] = np.nan
    options = options_of(TableClassifier) | {"hide": 0.0}  # what is hidden is missing as well
    listens, ignores = (
        TableClassifier(**options | {"missing": kind}).fit(X, y)
        for kind in ("informative", "ignore")
    )
    row = {"size": None}
    assert listens.predict_proba([row])[0, 0] > 0.8
    assert ignores.predict_proba([row])[0, 0] < 0.6
    auto = TableClassifier(**options | {"missing": "auto", "hide": 0.5}).fit(X, y)
    assert auto.chosen_["missing"] == "informative"


# --- what is known of the answers -----------------------------------------------------------------


def test_labels_that_are_not_there_are_counted():
    X, y = made()
    for missing in (None, np.nan, pd.NA):
        given = y.astype(object)
        given[::3] = missing
        with pytest.warns(UserWarning, match="50 of 150 rows have no label"):
            model = TableClassifier(**options_of(TableClassifier)).fit(X, given)
        assert model.class_count_.sum() == 100
    assert model.classes_.tolist() == LABELS.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        TableClassifier(**options_of(TableClassifier)).fit(X, y)
    with pytest.raises(InputError, match="no label at all"):
        TableClassifier().fit(X, [None] * 150)


@both
def test_sets_and_shares_of_one_are_labels(Model):
    """Frames name the classes by their columns, in any order; sets by what is in them."""
    model, X, y = fitted(Model, n=90)
    sure = pd.DataFrame({label: (y == label).astype(float) for label in LABELS[::-1]})
    for targets in (sure, sure.astype(bool), pl.from_pandas(sure), [{label} for label in y]):
        other = Model(**options_of(Model)).fit(X, targets)
        assert other.classes_.tolist() == LABELS.tolist()
        np.testing.assert_allclose(
            other.predict_joint_log_proba(X), model.predict_joint_log_proba(X), rtol=1e-9
        )
    mixed = [{"ash", "birch"} if label == "ash" else label for label in y]
    either = Model(**options_of(Model)).fit(X, mixed)
    assert either.classes_.tolist() == LABELS.tolist()
    assert not np.allclose(either.predict_proba(X), model.predict_proba(X), atol=1e-3)
    for bad, message in (
        (sure * 2.0, "soft label of row 0 is not a distribution"),
        ([set(), *y[1:]], "label set of row 0 is empty"),
        (sure[["ash"]].rename(columns={"ash": "x"}).assign(z="text"), "must hold booleans"),
        (sure[:5], "90 rows but y has 5"),
        ([{"ash"}] * 90, "one class only, 'ash'"),
    ):
        with pytest.raises(InputError, match=message):
            Model(**options_of(Model)).fit(X, bad)


@both
def test_weights_of_classes_are_weights_of_rows(Model):
    X, y = made(90)
    by_class = {"ash": 3.0, "birch": 1.0, "cedar": 0.5}
    one = Model(**options_of(Model) | {"class_weight": by_class}).fit(X, y)
    weights = [by_class[label] for label in y]
    other = Model(**options_of(Model)).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-9)
    long = options_of(Model) | {"max_iter": 30}
    one = Model(**long | {"class_weight": by_class}).fit(X, y)
    alone = Model(**long).fit(X, y)
    heavier = one.predict_proba(X).mean(axis=0) - alone.predict_proba(X).mean(axis=0)
    assert heavier[0] > 0.0 > heavier[2]
    for bad, message in (([1.0] * 89, "inconsistent|89"), (-np.ones(90), "row 0 is negative")):
        with pytest.raises(ValueError, match=message):
            Model(**options_of(Model)).fit(X, y, sample_weight=bad)


def test_a_stream_reads_each_batch_once(monkeypatch):
    """The density takes the rows as the classifier has read them; an answer may have any form."""
    reads = []
    encode = Layout.encode
    monkeypatch.setattr(Layout, "encode", lambda *args: reads.append(1) or encode(*args))
    rows, y = customers(300, random_state=0)
    model = TableClassifier(random_state=0).partial_fit(rows[:150], y[:150])
    model.partial_fit(rows[150:], y[150:])
    assert len(reads) == 2
    assert model.model_.layout_ is model.density_.layout_
    shares = (np.array(y)[:, None] == model.classes_).astype(float)
    model.partial_fit(rows, shares)
    assert len(reads) == 3 and model.density_.stream_["rows"] == 600
    apart = TableClassifier(missing="informative", random_state=0).partial_fit(rows, y)
    assert len(reads) == 5  # it is told which cells are missing, and its density is not
    assert apart.model_.layout_.informative and not apart.density_.layout_.informative


def test_steps_of_a_stream_become_fewer_and_teach_as_much():
    """Batches grow as the steps of rows become small: what is learnt is about the same."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=12_000)
    X = pd.DataFrame(rng.normal(size=(12_000, 4)) + 0.5 * y[:, None], columns=list("abcd"))
    one, other = (NaiveBayes(random_state=0, batch_size=size) for size in ("auto", 16))
    for model in (one, other):
        for begin in range(0, 10_000, 5_000):
            model.partial_fit(X[begin : begin + 5_000], y[begin : begin + 5_000])
    grown = one.learner_.rule.grown(10_000).batch
    assert 64 < grown <= 4096 and other.learner_.rule.grown(10_000).batch == 16
    assert one.learner_.t == other.learner_.t
    found = [-model.predict_log_proba(X[10_000:]) for model in (one, other)]
    losses = [each[np.arange(2000), y[10_000:]].mean() for each in found]
    assert losses[0] < losses[1] + 0.01


def test_components_that_no_rows_are_for_are_not_tried():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 5)
    X = pd.DataFrame(rng.normal(size=(40, 3))[y] * 3 + rng.normal(size=(200, 3)))
    model = TableClassifier(random_state=0, density=False).fit(X, y)
    assert {trial["n_components"] for trial in model.choice_} == {1}


def test_what_is_learnt_of_frequencies_and_temperatures():
    model, X, _ = fitted()
    before = model.predict_log_proba(X)
    seen = model.class_count_ / model.class_count_.sum()
    new = {"ash": 0.7, "birch": 0.2, "cedar": 0.1}
    model.set_class_prior(new)
    expected = before + np.log(np.array([0.7, 0.2, 0.1]) / seen)
    np.testing.assert_allclose(
        model.predict_log_proba(X), expected - logsumexp(expected, axis=1, keepdims=True), atol=1e-9
    )
    np.testing.assert_allclose(model.class_frequency_, [0.7, 0.2, 0.1])
    model.set_class_prior(None)
    fresh, truth = made(seed=5)
    predicted = model.predict(fresh)
    model.calibrate(fresh, truth)
    assert model.chosen_["temperature"] == model.temperature_ == model.model_.temperature_ != 1.0
    np.testing.assert_array_equal(model.predict(fresh), predicted)


# --- streams --------------------------------------------------------------------------------------


def batches(X, y, size=50):
    for first in range(0, len(y), size):
        yield X[first : first + size], y[first : first + size]


@both
def test_a_stream_comes_close_to_a_fit(Model):
    X, y = made(1500)
    fresh, truth = made(1000, seed=1)
    options = options_of(Model) | ({"n_components": 1} if Model is TableClassifier else {})
    stream = Model(**options)
    for part in batches(X, y, 100):
        stream.partial_fit(*part)
    whole = Model(**options | {"max_iter": 20}).fit(X, y)
    assert stream.score(fresh, truth) > whole.score(fresh, truth) - 0.03
    assert stream.stream_["rows"] == 1500 and stream.stream_["batches"] == 15


def test_classes_and_levels_come_as_they_like():
    X, y = made(600, holes=0.0)
    known = (y != "cedar") & (X["town"] != "rivendell").to_numpy()
    for Model in (TableClassifier, NaiveBayes, MixtureClassifier):
        own = NaiveBayes if Model is MixtureClassifier else Model
        model = Model(**options_of(own) | ({"n_components": 2} if own is not Model else {}))
        model.partial_fit(X[known], y[known])
        assert model.classes_.tolist() == ["ash", "birch"]
        before = model.predict_proba(X.assign(town="rivendell"))
        np.testing.assert_array_equal(before, model.predict_proba(X.assign(town=None)))
        for part in list(batches(X, y)) * 3:
            model.partial_fit(*part)
        assert model.classes_.tolist() == LABELS.tolist()
        after = model.predict_proba(X.assign(town="rivendell"))
        assert np.abs(after - model.predict_proba(X.assign(town=None))).max() > 0.01
        assert model.score(X, y) > 0.7
        model.partial_fit(X, [None] * 600)
        assert np.isfinite(model.predict_proba(X)).all()


def test_a_column_that_holds_something_else_is_named():
    """And nothing is learnt from such a batch."""
    X, y = made(100)
    for Model in (TableClassifier, NaiveBayes):
        model = Model(**options_of(Model)).partial_fit(X, y)
        before = model.predict_proba(X)
        dates = pd.to_datetime(X["size"].fillna(0.0), unit="D")
        for column, cells, message in (
            ("size", "large", "column 'size' held numbers.*'large'"),
            ("town", 7.0, "column 'town' held text"),
            ("size", dates, "column 'size' held numbers"),
        ):
            for call in ("partial_fit", "predict"):
                with pytest.raises(InputError, match=message) as caught:
                    given = (X.assign(**{column: cells}), y)
                    getattr(model, call)(*given[: 1 + (call == "partial_fit")])
                assert "\n" not in str(caught.value)
        flags = X.assign(member=pd.array(np.arange(100) % 3, dtype="Int64"))
        with pytest.raises(InputError, match="column 'member' had the values"):
            model.partial_fit(flags, y)
        np.testing.assert_array_equal(model.predict_proba(X), before)
        assert model.n_iter_ == 1


def drifting(n, seed, shift):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    sort = np.where(rng.random(n) < 0.9, y, 1 - y)
    if shift:  # what stood for one class now stands for the other
        sort = 1 - sort
    size = rng.normal(3.0 * (y if not shift else 1 - y))
    return pd.DataFrame({"size": size, "sort": np.array(["a", "b"])[sort]}), y


@pytest.mark.parametrize("Model", [TableClassifier, NaiveBayes])
def test_forgetting_follows_what_changes(Model):
    scores = {}
    for forget in (None, 200):
        options = {"random_state": 0, "forget": forget, "loss": "nll"}
        model = Model(**options | ({"hide": 0.0} if Model is TableClassifier else {}))
        for shift, n in ((False, 6000), (True, 300)):
            X, y = drifting(n, int(shift), shift)
            for part in batches(X, y, 300):
                model.partial_fit(*part)
        scores[forget] = model.score(*drifting(1000, 7, True))
    assert scores[200] > 0.9
    assert scores[None] < 0.3


def test_after_a_fit_a_stream_goes_on():
    """The model that classifies and that of the density learn both."""
    X, y = made(300)
    model = TableClassifier(**options_of(TableClassifier) | {"density": True}).fit(X, y)
    before = model.predict_proba(X), model.score_samples(X)
    more = np.where(y == "cedar", "oak", y)
    model.partial_fit(X, more)
    assert model.classes_.tolist() == [*LABELS, "oak"] == model.density_.classes_.tolist()
    assert not np.allclose(model.predict_proba(X)[:, :3], before[0])
    assert not np.allclose(model.score_samples(X), before[1])
    assert model.sample(3, random_state=0)[0].shape == (3, 6)


# --- interruptions --------------------------------------------------------------------------------


def interrupting(stage, epoch=2):
    def callback(model, record):
        if record["stage"] == stage and record["epoch"] >= epoch:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("stage", ["choice", "fit", "density"])
def test_ctrl_c_leaves_what_was_trained(stage):
    """The model of the training so far, or the one before it, or none."""
    X, y = made(90)
    options = options_of(TableClassifier) | {"loss": "auto", "density": True}
    model = TableClassifier(**options | {"callback": interrupting(stage)})
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    if stage == "choice":
        assert not hasattr(model, "_fitted")
        with pytest.raises(Exception, match="not fitted"):
            model.predict(X)
        model.set_params(callback=None).fit(X, y)
        before = model.predict_proba(X)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(callback=interrupting(stage)).fit(X, y[::-1])
        np.testing.assert_array_equal(model.predict_proba(X), before)
        return
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.n_iter_ == (2 if stage == "fit" else 4)
    assert model.score_samples(X).shape == (90,)
    model.set_params(callback=None).partial_fit(X, y)


def test_callbacks_are_told_the_stage():
    X, y = made(90)
    stages, options = [], options_of(TableClassifier) | {"loss": "auto", "density": True}

    def callback(model, record):
        assert isinstance(model, TableClassifier) and record["epoch"] >= 1
        stages.append(record["stage"])

    TableClassifier(**options | {"callback": callback}).fit(X, y)
    order = [stage for i, stage in enumerate(stages) if i == 0 or stages[i - 1] != stage]
    assert order == ["choice", "fit", "density"]
    assert stages.count("fit") == 4
    stopped = TableClassifier(
        **options | {"callback": lambda model, record: record["stage"] == "fit"}
    ).fit(X, y)
    assert stopped.n_iter_ == 1 and np.isfinite(stopped.predict_proba(X)).all()


def test_what_is_refused_leaves_the_model_as_it_was():
    model, X, y = fitted()
    before = model.predict_proba(X)
    for bad in ((X.assign(size=np.inf), y), (X, y[:5]), (X[:0], y[:0])):
        with pytest.raises(ValueError):
            model.fit(*bad)
        np.testing.assert_array_equal(model.predict_proba(X), before)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [False, True])
def test_files(density, tmp_path):
    X, y = made(90)
    options = options_of(TableClassifier) | {"density": density, "missing": "informative"}
    for kind, frame in (("pandas", X), ("dicts", records(X))):
        paths = [tmp_path / f"{kind}-{number}.skops" for number in range(3)]
        model = TableClassifier(**options).fit(frame, y).calibrate(frame, y)
        model.save(paths[0])
        again = discem.load(paths[0])
        again.save(paths[1])
        TableClassifier(**options).fit(frame, y).calibrate(frame, y).save(paths[2])
        assert len({path.read_bytes() for path in paths}) == 1
        same(model, again, frame)
        assert again.chosen_ == model.chosen_ and again.families_ == model.families_
        np.testing.assert_array_equal(again.score_samples(frame), model.score_samples(frame))
        why, whys = model.explain(frame[:1]), again.explain(frame[:1])
        np.testing.assert_array_equal(why.contributions, whys.contributions)
        for one in (model, again):
            one.partial_fit(frame, np.where(y == "ash", "oak", y))
        same(model, again, frame)
        assert type(again.sample(2)[0]) is type(frame)


# --- careless -------------------------------------------------------------------------------------


def one_line(error):
    assert "\n" not in str(error.value) and len(str(error.value)) < 500
    return str(error.value)


@both
def test_tables_that_cannot_be_are_named(Model):
    X, y = made(60)
    double = pd.concat([X, X[["size"]]], axis=1)
    for table, labels, message in (
        (double, y, "two columns.*'size'"),
        (X.assign(size=np.inf), y, "infinit.*'size'|'size'.*infinit"),
        (X.assign(size=[-np.inf, *X["size"][1:]]), y, "infinit.*'size'|'size'.*infinit"),
        (X.assign(size=["many", *X["size"][1:]]), y, "'size'"),
        (X, y[:-1], "60 rows but y has 59"),
        (X, ["ash"] * 60, "one class only, 'ash'"),
        (X[:0], y[:0], "0 rows|no rows|0 sample"),
        (X[[]], y, "0 feature|no column"),
        (X.assign(town=None)[["town"]], y, "no column"),
        (X.assign(size=1.0)[["size"]], y, "no column"),
        (X, None, "y"),
        (X, [1.5, 2.5] * 30, "continuous|classes"),
        (X, np.array([*y[:-1].tolist(), 7], dtype=object), "mixes text, as 'birch', with .* 7"),
    ):
        with pytest.raises(ValueError, match=message) as error:
            Model(**options_of(Model) | {"families": {}}).fit(table, labels)
        one_line(error)
    for options, message in (
        ({"families": {"sise": "gaussian"}}, "no column 'sise'; did you mean 'size'"),
        ({"families": {"size": "cauchy"}}, "'cauchy' of column 'size'"),
        ({"families": "cauchy"}, "cauchy"),
        ({"families": {"town": "gaussian"}}, "column 'town' is given as 'gaussian', but holds"),
        ({"families": {"size": "poisson"}}, "column 'size' is given as 'poisson', but holds"),
        ({"families": {"visits": "bernoulli"}}, "column 'visits' is given as 'bernoulli'"),
        ({"families": 3}, "families=3"),
        ({"hide": 1.0}, "hide=1.0"),
        ({"hide": "some"}, "hide='some'"),
        ({"missing": "maybe"}, "missing='maybe'"),
        ({"forget": 0}, "forget=0"),
        ({"loss": "logistic"}, "loss='logistic'"),
    ):
        with pytest.raises((OptionError, InputError), match=message) as error:
            Model(**options_of(Model) | options).fit(X, y)
        one_line(error)


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 0}, {"n_components": True}, {"n_components": "many"},
        {"prior_strength": 0.0}, {"prior_strength": "weak"}, {"temperature": -1.0},
        {"density": "yes"}, {"max_iter": 0}, {"random_state": "x"},
    ],
)  # fmt: skip
def test_wrong_options_are_named(options):
    X, y = made(30)
    for call in ("fit", "partial_fit"):
        with pytest.raises(OptionError, match=f"{next(iter(options))}") as error:
            getattr(TableClassifier(**FIXED | options), call)(X, y)
        one_line(error)


def test_odd_tables_are_learnt_from():
    """Few rows, columns that say nothing, levels without end: what can be learnt is."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    good = rng.normal(2.0 * y)
    odd = pd.DataFrame(
        {
            "good": good,
            "none": [None] * 200,
            "same": 3.0,
            "id": [f"row {i}" for i in range(200)],
            "mixed": [i if i % 2 else str(i % 3) for i in range(200)],
            "huge": good * 1e100,
            "tiny": good * 1e-200,
            "late": [None] * 190 + [1.0] * 10,
            "many": [f"level {i}" for i in rng.integers(1000, size=200)],
        }
    ).drop(columns="mixed")
    for Model in (TableClassifier, NaiveBayes):
        model = Model(**options_of(Model) | {"families": "auto"}).fit(odd, y)
        assert model.score(odd, y) > 0.7
        assert model.families_["none"] == "ignored: all missing"
        assert model.families_["same"] == "ignored: never varies"
        assert model.families_["id"].startswith("ignored")
        assert model.explain(odd[:1]).columns == list(odd)
    for n in (2, 3, 5):
        model = TableClassifier(random_state=0).fit(odd[["good"]][:n], y[:n])
        assert np.isfinite(model.predict_proba(odd[["good"]])).all()


def test_a_thousand_levels():
    rng = np.random.default_rng(0)
    level = rng.integers(1000, size=6000)
    y = np.where(rng.random(6000) < 0.9, level % 2, 1 - level % 2)
    X = pd.DataFrame({"code": [f"c{j}" for j in level]})
    model = NaiveBayes(random_state=0, max_iter=10).fit(X, y)
    assert model.score(X, y) > 0.85


def test_thousands_of_columns():
    """They take their time, and no more: nothing is quadratic in columns."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = pd.DataFrame(rng.normal(size=(40, 4000)) + 0.3 * y[:, None])
    X.columns = [f"f{j}" for j in range(4000)]
    begun = time.process_time()
    model = TableClassifier(**FIXED | {"max_iter": 2}).fit(X, y)
    model.predict(X)
    assert time.process_time() - begun < 20
    assert model.score(X, y) > 0.9


# --- the old name of an option --------------------------------------------------------------------


def test_the_old_name_of_families_is_refused_by_the_new_one():
    X = np.random.default_rng(0).poisson(2.0, size=(30, 3)).astype(float)
    with pytest.raises(OptionError, match="did you mean 'families'"):
        MixtureClassifier(family="words").fit(X, np.arange(30) % 2)
