"""Laws of words that come later, and of the scalars that act on all words at once."""

import copy
import inspect
import itertools
import sys

import numpy as np
import pytest
import tiny

from discem import Check, Dirichlet, MultinomialNB, constant
from discem.engines import Sequential
from discem.families._documents import distinct
from discem.families.words import WORDS, WordsFamily, expected_counts
from discem.losses import LOSSES, NCLL
from discem.training import Learner


def cells_of(block):
    return expected_counts(block)


def grown(trained, *sizes):
    """A copy of the learner, whose vocabulary grows to each of the sizes."""
    trained = copy.deepcopy(trained)
    for size in sizes:
        trained.restart(trained.state.with_features(size))
    return trained


def after_a_stream(loss, average, init, rho, new_class):
    """A learner that knows three words, of which the last has never occurred."""
    X, y = tiny.data("words", n=120)
    X[:, 2] = 0.0
    state = tiny.begin("words", X, y, init=init, average=average, prior=Dirichlet(0.7))
    trained = tiny.learner(state, LOSSES[loss], constant(rho), 120)
    tiny.learn(trained, X, y)
    if loss == "nll" and rho > 0.1:
        assert trained.state.features.lazy["scale"] > 1e-3 > (1 - rho) ** 120, "not folded"
    if new_class:
        trained.restart(trained.state.with_classes(np.array([0, -1, 1, 2]), 0.1))
        tiny.learn(trained, X, np.where(y > 0, y + 1, y), np.arange(60))
    return trained


@pytest.fixture(params=["nll", "ncll", "hinge"])
def streamed(request, average, init, rho, new_class):
    return after_a_stream(request.param, average, init, rho, new_class)


every_stream = pytest.mark.parametrize(
    ("average", "init", "rho", "new_class"),
    [*itertools.product([True, False], ["generative", "prior"], [0.01, 0.3], [True, False])],
)


@every_stream
def test_a_new_word_is_one_that_never_occurred(streamed):
    """Cell by cell, in the state and in its average; and totals are the sums of the cells."""
    wide = grown(streamed, 5)
    for one, other in ((streamed.state, wide.state), (streamed.model, wide.model)):
        old, new = cells_of(one.features), cells_of(other.features)
        np.testing.assert_allclose(new[:3], old, rtol=1e-12)
        np.testing.assert_allclose(new[3:], old[[2, 2]], rtol=1e-9)
        np.testing.assert_allclose(other.features.values["total"], new.sum(axis=0), rtol=1e-9)
        assert other.features.lazy["alpha_total"] == pytest.approx(5 * 0.7)
    wide.state.check(wide.state.n_classes, 5)


@every_stream
def test_growing_twice_is_growing_once(streamed):
    """And training goes on alike."""
    K = streamed.state.n_classes
    X, y = tiny.data("words", n=40, d=9, K=K, seed=1)
    once, twice = grown(streamed, 9), grown(streamed, 4, 5, 9)
    for learnt in (once, twice):
        tiny.learn(learnt, X, y)
    for one, other in ((once.state, twice.state), (once.model, twice.model)):
        cells = cells_of(other.features)
        np.testing.assert_allclose(cells, cells_of(one.features), rtol=1e-12)
        np.testing.assert_allclose(other.features.values["total"], cells.sum(axis=0), rtol=1e-9)


def test_growing_leaves_the_words_alone():
    """Memory that is kept for growth is not that of another model."""
    trained = after_a_stream("ncll", True, "prior", 0.01, False)
    wide = grown(trained, 4)
    before = cells_of(wide.state.features).copy()
    wider, apart = copy.deepcopy(wide), grown(wide, 40)
    for n_features in (5, 6, 7, 40):
        wider.restart(wider.state.with_features(n_features))
    np.testing.assert_array_equal(cells_of(wide.state.features), before)
    X, y = tiny.data("words", n=20, d=40)
    for learnt in (wider, apart):
        tiny.learn(learnt, X, y)
    counts = [learnt.state.features.values["count"] for learnt in (wider, apart)]
    np.testing.assert_allclose(*counts, rtol=1e-12)
    np.testing.assert_array_equal(cells_of(wide.state.features), before)


@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_totals_are_the_sums_of_the_cells(rho):
    """However many steps of decay have been taken."""
    X, y = tiny.data("words", n=500)
    trained = tiny.learner(tiny.begin("words", X, y, average=True), "nll", constant(rho), 500)
    for _ in range(3):
        tiny.learn(trained, X, y)
    block = trained.state.features
    np.testing.assert_allclose(block.values["total"], cells_of(block).sum(axis=0), rtol=1e-9)
    average = trained.model.features
    np.testing.assert_allclose(average.values["total"], cells_of(average).sum(axis=0), rtol=1e-9)
    a = tiny.scores(trained.state, X)
    np.testing.assert_allclose(a, tiny.log_density(trained.state, X), rtol=1e-9)


@pytest.mark.parametrize("rho", [0.1, 0.999])
def test_an_interruption_finds_a_whole_state(rho):
    """Wherever Ctrl-C strikes while a step is worked out, totals stay the sums of the cells."""
    X, y = tiny.data("words", n=10)
    code, (lines, first) = WordsFamily.moved.__code__, inspect.getsourcelines(WordsFamily.moved)
    written = next(i for i, line in enumerate(lines) if "written at once" in line)
    for line in range(first + 1, first + written + 2):
        trained = tiny.learner(tiny.begin("words", X, y, average=True), "nll", constant(rho), 10)
        visits = iter(range(100))

        def strike(frame, event, _, line=line, visits=visits):
            if frame.f_code is code and frame.f_lineno == line and next(visits) == 4:
                raise KeyboardInterrupt
            return strike if frame.f_code is code else None

        previous = sys.gettrace()
        sys.settrace(strike)
        try:
            tiny.learn(trained, X, y)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(previous)
        block = trained.state.features
        np.testing.assert_allclose(block.values["total"], cells_of(block).sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("n_words", [10, 100_000])
def test_words_of_a_batch(n_words):
    """Distinct words and their places, whether few or many of the vocabulary."""
    indices = np.random.default_rng(0).integers(0, n_words, 50)
    words, place = distinct(indices, n_words)
    np.testing.assert_array_equal(words, np.unique(indices))
    np.testing.assert_array_equal(words[place], indices)


def test_a_word_twice_in_a_document_is_one_word():
    """Storage with repeated entries means their sum."""
    import scipy.sparse as sp

    X, y = tiny.data("words", n=6)
    twice = sp.csr_array((np.repeat(X.ravel() / 2, 2), np.repeat(np.tile(np.arange(3), 6), 2),
                          np.arange(0, 37, 6)), shape=X.shape)  # fmt: skip
    start = tiny.begin("words", X, y)
    for batch in (1, 6):
        ends = [tiny.run(start, rows, y, NCLL(), 0.5, 6, Check(), batch)[0] for rows in (X, twice)]
        np.testing.assert_allclose(*(cells_of(end.features) for end in ends), rtol=1e-12)


@pytest.mark.parametrize("projection, hears", [(Check(), True), (tiny.PLAIN, False)])
def test_the_check_step_hears_documents_that_teach_next_to_nothing(projection, hears):
    X, y = tiny.data("words", n=8)
    start = tiny.begin("words", X, y, init="prior")
    some = {"rho": 0.1, "n": 8, "projection": projection}
    moved = []
    for little in (0.0, 1e-6):
        after, judged, _ = tiny.step(start, X, y, weights=np.where(y == y[0], 1.0, little), **some)
        moved.append(cells_of(after.features))
    taught = X.T @ (judged.weights * np.where(y == y[0], 0.0, 1e-6 * 0.1 / 8)[:, None])
    rest = moved[1] - moved[0] - taught  # what the prior gives is the same for all words
    assert (np.ptp(rest) < 1e-3 * np.abs(taught).max()) == hears


@pytest.mark.parametrize("average", [True, False])
def test_a_fit_works_in_single_precision_and_ends_in_double(average, monkeypatch):
    """It goes where a fit in double precision goes."""
    X, y = tiny.data("words", n=200, d=30)
    ends, seen, epoch = [], [], Learner.epoch

    def watched(learner, *some):
        seen.append(precision(learner))
        return epoch(learner, *some)

    def keep(model, record):
        kept = copy.deepcopy(model.learner_), Learner.from_fields(**model.learner_.to_fields())
        assert [precision(each) for each in kept] == 2 * [{np.dtype(np.float64)}]

    monkeypatch.setattr(Learner, "epoch", watched)
    options = {"loss": "ncll", "average": average, "batch_size": 20, "max_iter": 5, "tol": None}
    for in_place in (True, False):
        monkeypatch.setattr(Sequential, "in_place", in_place)
        model = MultinomialNB(prior=Dirichlet(1.0), random_state=0, **options)
        model.callback = keep
        ends.append(model.fit(X, y).predict_log_proba(X))
        assert precision(model.learner_) == {np.dtype(np.float64)}
    assert seen == 5 * [{np.dtype(np.float32)}] + 5 * [{np.dtype(np.float64)}]
    np.testing.assert_allclose(*ends, atol=1e-3)


def precision(learner):
    block = learner.state.features
    tables = (array for array in block.past.values() if array.ndim == 2)
    return {array.dtype for array in (block.values["count"], *tables)}


def test_rounding_leaves_something_of_a_collapsed_cell():
    """In single precision, in which a count may take away more than what the prior gave."""
    X, y = tiny.data("words", n=8)
    block = tiny.begin("words", X, y).features
    block.lazy["gamma"] = 2.0
    block.values["count"][:] = -2.0 * block.fixed["alpha"][:, None]
    single = WORDS.in_precision(block, np.float32)
    single.values["count"][0] *= 1.0 + 2e-7
    for light in (False, True):
        rows = WORDS.view(X)
        batch = WORDS.read(single, WORDS.lightened(rows) if light else rows)
        assert WORDS.cells(single, batch).min() > 1e-8
    back = WORDS.in_precision(single, np.float64)
    assert back.values["count"].dtype == np.float64 and cells_of(back).min() > 1e-8
