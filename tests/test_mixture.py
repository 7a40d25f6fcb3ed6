"""Mixtures: laws of the model against enumeration, and the estimator as users meet it."""

import copy
import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import tiny
from checks import data_checks
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import discem
from discem import GaussianNB, Interior, MixtureClassifier, NormalBetaPrime, constant
from discem.datasets import toy, toy_accuracy
from discem.exceptions import InputError, OptionError
from discem.families import FAMILIES
from discem.figures import LOSS
from discem.io.column_kinds import COLUMN_KINDS
from discem.models import Moves

every_density = pytest.mark.parametrize("family", tiny.CELLS)
every_family = pytest.mark.parametrize("family", FAMILIES)
# of arrays, which are no tables: these are in test_table.py
of_arrays = pytest.mark.parametrize(
    "family", [name for name in FAMILIES if name == "gaussian" or name not in COLUMN_KINDS]
)
built_in = pytest.mark.parametrize("family", ["gaussian", "words"])
FIRST = np.array([0, 2, 3, 6])  # where the components of three classes begin
CLASS = np.array([0, 0, 1, 2, 2, 2])
NAMES = np.array(["ash", "birch", "cedar"])


def problem(family, n=24, seed=0, prior=None):
    """Rows, codes of three classes, and a mixture with 2, 1 and 3 components."""
    X, part = tiny.data(family, n=n, d=4, K=6, seed=seed)
    if FAMILIES[family].accepts.missing:
        X[::5, 1] = np.nan
    return X, CLASS[part], tiny.begin(family, X, part, K=6, prior=prior, first=FIRST)


def within(joint):
    """The same sums and posteriors by class: ln p(y, x), p(c | y, x)."""
    of_class = [joint[:, FIRST[k] : FIRST[k + 1]] for k in range(3)]
    a = np.stack([logsumexp(part, axis=1) for part in of_class], axis=1)
    return a, np.exp(joint - a[:, CLASS])


# --- the model ------------------------------------------------------------------------------------


@every_density
def test_scores_and_posteriors_are_those_of_enumeration(family):
    X, _, model = problem(family)
    expected, posterior = within(tiny.log_density(model, X))
    scores, found = model.scores(model.read(tiny.view(family, X)))
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found, posterior, atol=1e-10)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_word_scores_sum_to_one_over_all_documents(length):
    """p(document | y) over every sequence of words: the components are summed out exactly."""
    _, _, model = problem("words")
    documents = [np.bincount(d, minlength=4) for d in itertools.product(range(4), repeat=length)]
    a = tiny.scores(model, np.array(documents, dtype=float))
    p = model.class_counts
    np.testing.assert_allclose(np.exp(a).sum(axis=0), p / p.sum(), rtol=1e-10)


@every_density
def test_the_move_is_that_of_the_expected_statistics(family):
    """E[s(k, z, x)] shares the weight of a class by the posterior of its components."""
    X, _, model = problem(family)
    batch, moves = model.read(tiny.view(family, X)), Moves(0.0025, 1e-3, 1e-3, tiny.PLAIN)
    weights = 0.01 * np.random.default_rng(0).normal(size=(len(X), 3))
    _, posterior = within(tiny.log_density(model, X))
    components = model._replace(first=np.arange(7))  # each a class of its own
    moved, _ = copy.deepcopy(model).moved(batch, posterior, weights, moves)
    other, _ = components.moved(batch, None, weights[:, CLASS] * posterior, moves)
    np.testing.assert_allclose(tiny.held(moved), tiny.held(other), rtol=1e-10)


@every_family
@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_nll_never_rises_over_full_batches(family, rho):
    """Every full-batch NLL step is a (partial) step of EM: the likelihood cannot fall."""
    X, y, model = problem(family, n=60)
    X = np.where(np.isnan(X), 1.0, X)
    y[::4] = -1  # components and classes both to be found
    projection, losses = Interior(0.9999, 0.0), []
    for _ in range(25):
        model, figures = tiny.run(model, X, y, "nll", rho, np.inf, projection, batch=60)
        losses.append(figures[LOSS])
    assert (np.diff(losses) <= 1e-9 * np.abs(losses[0])).all()
    assert losses[-1] < losses[0] - 0.1


def test_penalised_nll_never_rises_under_the_prior_of_mixtures():
    """Nor does NLL + prior, in small steps: the pull is the natural gradient of the penalty."""
    X, y, model = problem("gaussian", n=60, prior=NormalBetaPrime())
    X = np.where(np.isnan(X), 1.0, X)
    model = model._replace(classes=model.classes._replace(alpha=0.0, nu=0.0))
    values = []
    for _ in range(60):
        before = model.penalty()
        model, figures = tiny.run(model, X, y, "nll", 0.05, 60, batch=60)
        values.append(figures[LOSS] + before)
    assert (np.diff(values) <= 1e-9 * np.abs(values[0])).all()
    assert values[-1] < values[0] - 0.1


@every_family
def test_new_classes_have_components_that_differ(family):
    X, _, model = problem(family)
    grown = model.with_classes(np.array([2, -1, 0, 1]), 0.1)
    np.testing.assert_array_equal(grown.sizes, [3, 3, 2, 1])
    old, new = (tiny.scores(each, X) for each in (model, grown))
    known = new[:, [2, 3, 0]] - old  # one constant: there is more mass in all
    np.testing.assert_allclose(known, known[0, 0], rtol=1e-9)
    joint = tiny.joint(grown, X)[:, 3:6]
    assert min(np.abs(joint[:, i] - joint[:, j]).max() for i, j in ((0, 1), (1, 2), (0, 2))) > 0.1
    np.testing.assert_allclose(grown.class_counts[1], 0.1)


# --- the estimator --------------------------------------------------------------------------------


def data(family, n=150, seed=0):
    rng = np.random.default_rng(seed)
    if family == "gaussian":
        X, y = load_iris(return_X_y=True)
        rows = rng.permutation(150)[:n]
        return X[rows], NAMES[y[rows]]
    p = rng.dirichlet(np.full(12, 0.3), size=6)
    part = rng.integers(6, size=n)
    X = np.stack([rng.multinomial(1 + rng.poisson(14), p[k]) for k in part]).astype(float)
    return X, NAMES[part // 2]


def fitted(family, **options):
    X, y = data(family)
    options = {"random_state": 0, "max_iter": 5, "tol": None, "families": family} | options
    return MixtureClassifier(**options).fit(X, y), X, y


def same(one, other, X, rtol=0.0):
    np.testing.assert_allclose(
        one.predict_joint_log_proba(X), other.predict_joint_log_proba(X), rtol=rtol, atol=rtol
    )


ORDER = "training depends on the order of rows, as in SGDClassifier"


def expected_failures(model):
    failures = {"check_sample_weight_equivalence_on_dense_data": ORDER}
    if model.families != "gaussian":
        failures["check_sample_weight_equivalence_on_sparse_data"] = ORDER
    if model.families == "words":
        failures["check_class_weight_classifiers"] = "feeds negative numbers to counts"
    return failures


@parametrize_with_checks([MixtureClassifier()], expected_failed_checks=expected_failures)
def test_scikit_learn(estimator, check):
    check(estimator)


@data_checks([MixtureClassifier(families="words", max_iter=15)], expected_failures)
def test_scikit_learn_on_words(estimator, check):
    check(estimator)


@built_in
@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_probabilities_agree(family, loss):
    model, X, y = fitted(family, loss=loss, n_components=3, max_iter=20)
    joint = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(model.score_samples(X), logsumexp(joint, axis=1))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    assert model.score(X, y) > 0.9
    share = model.mu_["component"]
    if family == "gaussian":
        logs = norm.logpdf(X[:, None], model.means_, np.sqrt(model.variances_)).sum(axis=2)
    else:
        logs = X @ model.component_log_prob_.T
    full = logs + np.log(share)
    np.testing.assert_allclose(model.score_samples(X), logsumexp(full, axis=1), rtol=1e-9)
    r = model.responsibilities(X)
    np.testing.assert_allclose(r, np.exp(full - logsumexp(full, axis=1, keepdims=True)), atol=1e-9)
    best = model.predict_component(X)
    np.testing.assert_array_equal(best, r.argmax(axis=1))
    np.testing.assert_array_equal(model.n_components_, [3, 3, 3])
    assert model.component_class_.tolist() == np.repeat(NAMES, 3).tolist()
    np.testing.assert_allclose(np.add.reduceat(model.weights_, [0, 3, 6]), 1.0)
    theta = model.theta_
    assert {len(value) for value in theta.values()} == {9}
    with pytest.raises(OptionError, match="no linear form"):
        model.to_linear()
    with pytest.raises(AttributeError, match="only components"):
        _ = model.component_log_prob_ if family == "gaussian" else model.means_


@built_in
def test_samples_are_of_the_model(family):
    model, *_ = fitted(family, loss="nll")
    X, y = model.sample(20_000, random_state=0)
    mu = model.mu_
    first = mu["x" if family == "gaussian" else "word"]
    for k, label in enumerate(NAMES):
        own, mine = X[y == label], model.component_class_ == label
        assert len(own) / len(X) == pytest.approx(model.class_prior_[k], abs=0.015)
        expected = first[mine].sum(axis=0) / mu["component"][mine].sum()
        error = own.std(axis=0) / np.sqrt(len(own))
        assert (np.abs(own.mean(axis=0) - expected) < 5 * error + 1e-9).all()


def test_sparse_is_dense_and_means_words():
    X, y = data("words")
    dense = MixtureClassifier(families="words", random_state=0, max_iter=3).fit(X, y)
    for kind in (sp.csr_matrix, sp.coo_matrix):
        model = MixtureClassifier(random_state=0, max_iter=3).fit(kind(X), y)
        assert model.family_ == "words"
        same(dense, model, kind(X), 1e-12)
        assert "perplexity" in model.history_[-1]
    assert MixtureClassifier(max_iter=1).fit(X, y).family_ == "gaussian"


def test_missing_cells_are_summed_out():
    X, y = data("gaussian")
    X[::4, 2] = np.nan
    model = MixtureClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.94
    X[:, 2] = np.nan
    rest = [0, 1, 3]
    sd = np.sqrt(model.variances_[:, rest])
    logs = norm.logpdf(X[:, None, rest], model.means_[:, rest], sd).sum(axis=2)
    full = logs + np.log(model.mu_["component"])
    np.testing.assert_allclose(model.score_samples(X), logsumexp(full, axis=1), rtol=1e-9)


@of_arrays
@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_classes_come_as_they_like(family, loss):
    X, y = data(family)
    model = MixtureClassifier(loss=loss, families=family, random_state=0)
    model.partial_fit(X[y == "birch"], y[y == "birch"])
    model.partial_fit(X[y != "ash"], y[y != "ash"])
    model.partial_fit(X[y == "ash"], y[y == "ash"])
    for _ in range(10):
        model.partial_fit(X, y)
    assert model.score(X, y) > (0.95 if family == "gaussian" else 0.75)
    model.partial_fit(X, [None] * len(y))
    assert model.classes_.tolist() == NAMES.tolist()
    assert model.n_components_.tolist() == [2, 2, 2]
    assert model.score(X, y) > (0.85 if family == "gaussian" else 0.75)


@of_arrays
def test_files_and_streams(family, tmp_path):
    model, X, y = fitted(family, n_components={"ash": 2, "birch": 1, "cedar": 3})
    assert model.n_components_.tolist() == [2, 1, 3]
    model.set_class_prior([0.2, 0.3, 0.5]).calibrate(X, y)
    model.save(tmp_path / "model.skops")
    again = discem.load(tmp_path / "model.skops")
    same(model, again, X)
    same(model, pickle.loads(pickle.dumps(model)), X)
    more = np.where(y == "cedar", "oak", y)
    for one in (model, again):
        one.partial_fit(X, more)
    same(model, again, X)
    assert model.n_components_.tolist() == [2, 1, 3, 3]


@of_arrays
def test_sets_and_shares_of_one_are_labels(family):
    model, X, y = fitted(family, max_iter=3)
    sure = y[:, None] == NAMES
    for targets in (sure, sure.astype(float)):
        other = MixtureClassifier(random_state=0, max_iter=3, tol=None, families=family)
        same(model, other.fit(X, targets), X, 1e-9)


def test_units_do_not_matter():
    X, y = data("gaussian")
    scale = np.array([1e-3, 10.0, 1e5, 1.0])
    options = {"random_state": 0, "max_iter": 5, "tol": None}
    one = MixtureClassifier(**options).fit(X, y)
    other = MixtureClassifier(**options).fit(7.0 + X * scale, y)
    np.testing.assert_allclose(
        one.predict_proba(X), other.predict_proba(7.0 + X * scale), atol=1e-6
    )


# --- labels that are not there --------------------------------------------------------------------


@pytest.mark.parametrize("mark", [None, np.nan, -1])
def test_unlabelled_rows(mark):
    X, y = data("gaussian")
    codes = np.searchsorted(NAMES, y)
    known = np.arange(150) % 5 == 0
    some = np.array([c if k else mark for c, k in zip(codes, known, strict=True)], dtype=object)
    if mark == -1:
        some = some.astype(int)
    options = {"random_state": 0, "max_iter": 30, "unlabelled": -1}
    model = MixtureClassifier(**options).fit(X, some)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.class_count_.sum() == 30
    assert model.score(X, codes) > 0.9
    none = MixtureClassifier(unlabelled_weight=0.0, **options).fit(X, some)
    assert not np.allclose(none.predict_proba(X), model.predict_proba(X), atol=1e-4)
    model.calibrate(X, some)


def test_minus_one_is_a_class_unless_said_otherwise():
    X, y = toy(500, random_state=0)
    assert MixtureClassifier(max_iter=1).fit(X, y).classes_.tolist() == [-1, 1]
    with pytest.raises(InputError, match="one class only"):
        MixtureClassifier(max_iter=1, unlabelled=-1).fit(X, y)


def test_unlabelled_rows_find_the_spikes():
    """Few labels and many rows without: p(x) shows where the narrow class is."""
    X, y = toy(6000, random_state=0)
    few = y.astype(object)
    few[40:] = None
    options = {"n_components": {-1: 1, 1: 2}, "random_state": 0, "loss": "nll"}
    with_them = toy_accuracy(MixtureClassifier(unlabelled_weight=1.0, **options).fit(X, few))
    without = toy_accuracy(MixtureClassifier(**options).fit(X[:40], y[:40]))
    assert with_them > 0.9 > without + 0.1


# --- the start, and components that die -----------------------------------------------------------


def test_fewer_rows_than_components():
    X = np.array([[0.0], [0.1], [5.0], [5.0], [5.0], [9.0]])
    y = np.array(["a", "a", "b", "b", "b", "c"])
    model = MixtureClassifier(n_components=3, random_state=0).fit(X, y)
    assert model.n_components_.tolist() == [2, 1, 1]
    assert np.isfinite(model.predict_proba(X)).all()
    stream = MixtureClassifier(n_components=3, random_state=0).partial_fit(X, y)
    assert stream.n_components_.tolist() == [3, 3, 3]
    assert np.isfinite(stream.predict_proba(X)).all()
    assert len(np.unique(stream.means_.round(9), axis=0)) == 9


@built_in
def test_the_prior_start_breaks_the_symmetry(family):
    model, X, y = fitted(family, init="prior", max_iter=30)
    factors = model.means_ if family == "gaussian" else model.component_log_prob_
    assert len(np.unique(factors.round(6), axis=0)) == 6
    assert model.score(X, y) > 0.85


def test_a_dead_component_is_named():
    X, y = data("gaussian")
    still = {"max_iter": 1, "tol": None, "step": constant(0.0)}
    model = MixtureClassifier(random_state=0, **still)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X, y)
    model.learner_.state.classes.counts[3] = 1e-6
    with pytest.warns(ConvergenceWarning, match="component 1 of class 'birch' has died"):
        model.partial_fit(X, y)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_components": 0}, "n_components=0 must be"),
        ({"n_components": {"ash": "auto"}}, "must be a whole number"),
        ({"n_components": {"ash": 2, "birch": 2}}, "lacks the class 'cedar'"),
        ({"families": "cauchy"}, "families='cauchy' is unknown"),
        ({"unlabelled_weight": -1.0}, "unlabelled_weight"),
        ({"prior": "flat"}, "prior='flat' is unknown"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(OptionError, match=message):
        MixtureClassifier(**options).fit(*data("gaussian"))


def test_automatic_number_of_components():
    X, y = toy(6000, random_state=0)
    model = MixtureClassifier("auto", random_state=0, max_iter=10).fit(X, y)
    assert model.n_components_[1] >= 2
    assert toy_accuracy(model) > 0.95


# --- what it is for -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss, seed", [("ncll", 0), ("ncll", 1), ("hinge", 2)])
def test_toy(loss, seed):
    X, y = toy(random_state=seed)
    model = MixtureClassifier(n_components=2, loss=loss, max_iter=15, random_state=seed).fit(X, y)
    assert toy_accuracy(model) >= 0.975


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_small_tables(load):
    X, y = load(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    mixture, plain = (
        cross_val_score(Model(random_state=0), X, y, cv=folds).mean()
        for Model in (MixtureClassifier, GaussianNB)
    )
    assert mixture > plain - 0.005


def test_digits():
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))
    model = MixtureClassifier(random_state=0).fit(X[rows[:1200]], y[rows[:1200]])
    assert model.score(X[rows[1200:]], y[rows[1200:]]) >= 0.965
