"""Defaults on data that nobody had in mind: the laws of every fit, over the zoo."""

import zlib
from functools import cache

import numpy as np
import pytest
import zoo
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from zoo_laws import POINTS, Trained

from discem import (
    Blend,
    Dirichlet,
    GaussianNB,
    MixtureClassifier,
    MultinomialNB,
    NormalGamma,
    TextClassifier,
    TopicClassifier,
    by_row,
)
from discem.losses import LOSSES

# Mixtures of hundreds of components, or over a hundred columns, would take longer than all others.
TOO_LONG = {"a_hundred_classes", "one_hot_of_categories"}
# What has no text: parts of words, and words that no one would write down.
NO_TEXT = {"weighted_words", "a_document_of_a_million_words", "a_word_500_times_in_each_document"}

ESTIMATORS = {
    "GaussianNB": (GaussianNB, list(zoo.TABLES)),
    "MixtureClassifier": (MixtureClassifier, [name for name in zoo.TABLES if name not in TOO_LONG]),
    "MixtureClassifier on words": (MixtureClassifier, list(zoo.COUNTS)),
    "MultinomialNB": (MultinomialNB, list(zoo.COUNTS)),
    "TopicClassifier": (TopicClassifier, list(zoo.COUNTS)),
    "TextClassifier": (TextClassifier, [name for name in zoo.COUNTS if name not in NO_TEXT]),
}
NAIVE = ("GaussianNB", "MultinomialNB")  # whose NLL has a closed form
# What takes long, most of it to learn next to nothing more.
LONG = {
    "nearly_deterministic_flags",
    "a_hundred_classes",
    "one_hot_of_categories",
    "a_rare_class",
    "a_rare_class_of_documents",
    "fifty_classes",
    "long_and_short_documents",
    "a_document_of_a_million_words",
    "a_word_500_times_in_each_document",
}
# Where a law is known to be broken: what is seen, not why, which is not established for most.
# What is not finite, or worse than its start, is excused nowhere.
FEW = "loses to counting where rows are few or wrong"
SLOW = "loses to counting, or depends on the step, where rows are far apart"
TOPICS = "topics lose to counting on few or odd documents"
KNOWN: dict[tuple[str, str], str] = {
    ("GaussianNB", "tiny_classes"): FEW,
    ("GaussianNB", "a_hundred_classes"): FEW,
    ("GaussianNB", "label_as_a_column"): SLOW,
    ("GaussianNB", "a_column_missing_in_a_class"): SLOW,
    ("GaussianNB", "nearly_deterministic_flags"): SLOW,
    ("GaussianNB", "cauchy"): SLOW,
    ("MixtureClassifier on words", "documents_of_one_word"): FEW,
    ("MixtureClassifier on words", "mislabelled_documents"): FEW,
    ("MixtureClassifier on words", "a_document_of_a_million_words"): SLOW,
    ("MultinomialNB", "mislabelled_documents"): FEW,
    ("MultinomialNB", "a_document_of_a_million_words"): SLOW,
    ("MultinomialNB", "fifty_classes"): FEW,
    ("TopicClassifier", "a_word_500_times_in_each_document"): TOPICS,
    ("TopicClassifier", "sixty_documents"): TOPICS,
    ("TopicClassifier", "fifty_classes"): TOPICS,
    ("TopicClassifier", "a_document_of_a_million_words"): SLOW,
    ("TopicClassifier", "twenty_documents"): TOPICS,
    (
        "TopicClassifier",
        "sorted",
    ): "topics of classes that come later take over; there is a warning",
}


def hold(name, member, broken):
    """See that no law is broken, or that it is known."""
    known = KNOWN.get((name, member))
    excused = "not finite" not in broken and "worse than its start" not in broken
    if broken and known and excused:
        pytest.xfail(f"{known}: {broken}")
    assert not broken, broken


def cases():
    """Estimator, member and loss, NLL first: others are held against it.

    `make test` takes the losses in turn, and leaves out members that take long. `make test-all`
    takes these in turn, and all losses of the others.
    """
    found = []
    for turn, name in enumerate(ESTIMATORS):
        of = (*LOSSES, *(["auto"] if name == "TextClassifier" else []))
        for place, member in enumerate(ESTIMATORS[name][1]):
            for loss in of:
                long, own = member in LONG, loss == of[(turn + place) % len(of)]
                if own or not long:
                    marks = pytest.mark.slow if long or not own else ()
                    found.append(pytest.param(name, member, loss, marks=marks))
    return pytest.mark.parametrize("name, member, loss", found)


@cache
def sample_of(name, member):
    rng = np.random.default_rng(zlib.crc32(member.encode()))
    drawn = (zoo.TABLES | zoo.COUNTS)[member](rng)
    return zoo.as_texts(drawn) if name == "TextClassifier" else drawn


@cache
def trained(name, member, loss):
    """The default fit, once for all laws."""
    return Trained(ESTIMATORS[name][0](loss=loss, random_state=0), sample_of(name, member))


# --- the laws -------------------------------------------------------------------------------------


@cases()
def test_defaults_do_no_harm(name, member, loss):
    """All is finite; training gains, and warns if it did not converge; NLL is not much better."""
    nll = None if loss == "nll" else trained(name, member, "nll")
    hold(name, member, "; ".join(trained(name, member, loss).broken_laws(nll)))


@pytest.mark.parametrize(
    "name, member",
    [
        pytest.param(name, member, marks=pytest.mark.slow if place % 2 or member in LONG else ())
        for name in NAIVE
        for place, member in enumerate(ESTIMATORS[name][1])
    ],
)
def test_half_the_step_ends_alike(name, member):
    """Training ends where the objective says, not where its steps happen to lead."""
    prior = {"prior": Dirichlet()} if name == "MultinomialNB" else {}  # so that nothing is tried
    model = ESTIMATORS[name][0](loss="ncll", random_state=0, **prior)
    whole = Trained(model, sample_of(name, member))
    rule = whole.core.learner_.rule
    step = by_row(lambda t: rule.schedule(t) / 2)  # guarded as the whole step is
    halved = clone(whole.core).set_params(step=step, projection=rule.projection)
    again = Trained(halved, whole.sample)
    difference, gain = abs(again.end - whole.end), abs(whole.start - whole.end)
    allowed = 0.01 * whole.weight.sum() + 0.05 * gain
    hold(name, member, "" if difference <= allowed else f"{difference:.3g} > {allowed:.3g} apart")


@pytest.mark.parametrize(
    "name, member",
    [
        pytest.param(name, member, marks=pytest.mark.slow if member in LONG else ())
        for name in NAIVE
        for member in ESTIMATORS[name][1]
    ],
)
def test_much_nll_in_the_blend_is_nll(name, member):
    """The closed form of NLL, of rows that weigh kappa times as much."""
    estimator, sample, kappa = ESTIMATORS[name][0], sample_of(name, member), 1e3
    prior = NormalGamma() if name == "GaussianNB" else Dirichlet(1.0)
    blend = Trained(estimator(loss=Blend(kappa), prior=prior, random_state=0), sample)
    heavier = sample._replace(weight=kappa * blend.weight)
    nll = Trained(estimator(loss="nll", prior=prior, random_state=0), heavier)
    apart = np.abs(np.exp(blend.log_proba) - np.exp(nll.log_proba)).max(axis=1)
    hold(name, member, "" if apart.mean() <= 0.1 else f"{apart.mean():.2g} apart")


def test_steps_a_thousand_times_too_large_do_no_harm():
    """Without the guard, which goes back to the start, training would end above it."""
    usual = trained("GaussianNB", "one_column", "ncll")
    rule = usual.core.learner_.rule
    step = by_row(lambda t: 1000 * rule.schedule(t))
    model = clone(usual.core).set_params(step=step, projection=rule.projection, max_iter=10)
    assert not Trained(model, usual.sample).worse_than_its_start()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("estimator", [GaussianNB, MultinomialNB, TopicClassifier])
def test_sorted_streams_do_not_forget_all(estimator, loss):
    """One class after another: at least half of what counting would know is known at the end."""
    rng = np.random.default_rng(0)
    y = zoo.labels(rng, 300, 3)
    make = zoo.bells if estimator is GaussianNB else zoo.documents
    X, y, _, X_fresh, y_fresh = zoo.cut(make(y, rng, 20), y, 300)
    accuracy = {}
    for each in {loss, "nll"}:
        model = estimator(loss=each, random_state=0)
        for part in np.array_split(np.argsort(y, kind="stable"), 10):
            model.partial_fit(X[part], y[part])
        assert np.isfinite(model.predict_joint_log_proba(X_fresh)).all()
        accuracy[each] = model.score(X_fresh, y_fresh)
    guess = np.bincount(y_fresh).max() / len(y_fresh)
    least = (guess + accuracy["nll"]) / 2
    broken = "" if accuracy[loss] >= least else f"accuracy {accuracy[loss]:.3f} < {least:.3f}"
    hold(estimator.__name__, "sorted", broken)


# --- random data ----------------------------------------------------------------------------------

few = settings(
    max_examples=15,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # every step of a shrinking would be two fits
)
seeds = st.integers(0, 2**32 - 1)
spoilt = st.builds(
    zoo.Spoiling,
    uneven=st.sampled_from([0.0, 0.5, 1.0]),
    wrong=st.sampled_from([0.0, 0.0, 0.4]),
    missing=st.sampled_from([0.0, 0.0, 0.3]),
    weighted=st.booleans(),
    shifted=st.booleans(),
    repeated=st.booleans(),
)
discriminative = st.sampled_from(["ncll", "hinge", "blend"])


def obeys_all_laws(estimator, loss, sample):
    nll, model = (Trained(estimator(loss=each, random_state=0), sample) for each in ("nll", loss))
    # they may have more parameters than rows, and wrong labels besides
    allowed = POINTS + model.price_of_few_rows()
    broken = nll.broken_laws(None) + model.broken_laws(nll, allowed)
    assert not broken, "; ".join(broken)


@few
@given(
    seed=seeds,
    n=st.integers(40, 200),
    K=st.integers(2, 6),
    kinds=st.lists(st.sampled_from(sorted(zoo.KINDS)), min_size=1, max_size=8),
    spoilt=spoilt,
    estimator=st.sampled_from([GaussianNB, MixtureClassifier]),
    loss=discriminative,
)
def test_random_tables_do_no_harm(seed, n, K, kinds, spoilt, estimator, loss):
    sample = zoo.random_table(np.random.default_rng(seed), n, K, kinds, spoilt)
    obeys_all_laws(estimator, loss, sample)


@pytest.mark.slow
@few
@given(
    seed=seeds,
    n=st.integers(40, 200),
    K=st.integers(2, 6),
    words=st.integers(2, 150),
    contrast=st.sampled_from([0.0, 0.5, 1.5]),
    spoilt=spoilt,
)
def test_random_counts_do_no_harm(seed, n, K, words, contrast, spoilt):
    """By default, which is to choose; other models and losses are in `benchmarks/zoo.py`."""
    sample = zoo.random_counts(np.random.default_rng(seed), n, K, words, contrast, spoilt)
    obeys_all_laws(MultinomialNB, "auto", sample)


# --- the zoo itself -------------------------------------------------------------------------------


@pytest.mark.parametrize("member", zoo.TABLES | zoo.COUNTS)
def test_members_are_drawn_alike_and_know_all_classes(member):
    draw = (zoo.TABLES | zoo.COUNTS)[member]
    one, two = (draw(np.random.default_rng(0)) for _ in range(2))
    for first, second in zip(one, two, strict=True):
        dense = [x.toarray() if hasattr(x, "toarray") else x for x in (first, second)]
        np.testing.assert_equal(*dense)
    assert set(one.y_fresh) <= set(one.y)
    assert one.X.shape[1] == one.X_fresh.shape[1]
    assert len(one.y_fresh) >= 100
