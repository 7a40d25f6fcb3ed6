"""Laws of training on the workers of a cluster, and what happens when some of it is gone."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import tiny
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from discem import (
    Dask,
    GaussianNB,
    MixtureClassifier,
    MultinomialNB,
    NaiveBayes,
    TableClassifier,
    TableRegressor,
    TextClassifier,
    TopicClassifier,
    inverse,
    models,
)
from discem.engines import Data, Rule, Session, Shards, Threads, balanced, is_skewed
from discem.engines import dask as dask_engine
from discem.engines.sequential import Stride, take_steps
from discem.estimators import _pieces
from discem.exceptions import EngineError, InputError, MissingExtraError, OptionError, warn
from discem.families import FAMILIES
from discem.figures import FIGURES, ROWS
from discem.io.partitions import some_rows, together
from discem.io.rows import joined
from discem.io.tables import LevelsSeen
from discem.losses import NCLL
from discem.targets import label_sets, labels
from discem.training import Learner

da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

every_family = pytest.mark.parametrize("family", FAMILIES)


def start_cluster(processes=True):
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=":0"
    )


@pytest.fixture(scope="module")
def client():
    with start_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def apart(monkeypatch):
    """Let few rows be trained apart, in as many parts as may be."""
    monkeypatch.setattr(Threads, "parts", lambda self, state, rows, n_rows: self.n_jobs)


@pytest.fixture
def sampled(monkeypatch):
    """Let a sample be less than all rows, though these are few."""
    monkeypatch.setattr(_pieces, "SAMPLE", 150)


class Here(Session):
    """Workers that are this process."""

    def __init__(self, parts=3):
        self.engine, self.threads = Dask(parts=parts), parts

    def submit(self, function, *futures, **given):
        return function(*futures, **given)

    def gather(self, futures):
        return futures


def numbers(n=600, K=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    return rng.normal(size=(n, 4)) + y[:, None], y


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, "yes", "no")
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + (y == "yes"),
            "sort": rng.choice(list("abc"), n),
            "count": rng.poisson(20 + 5 * (y == "yes")),
        }
    )
    frame.loc[rng.random(n) < 0.2, "size"] = np.nan
    frame.loc[y == "yes", "sort"] = rng.choice(list("ccd"), int((y == "yes").sum()))
    return frame, y


def documents(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["x", "y", "z"], n)
    words = {label: [f"{label}{i}" for i in range(30)] + ["and", "or"] for label in "xyz"}
    texts = [" ".join(rng.choice(words[label], 6)) for label in y]
    return texts, y


# --- the engine -----------------------------------------------------------------------------------


def test_nothing_of_dask_is_imported_before_it_is_needed():
    code = (
        "import sys, discem; discem.Dask(); discem.GaussianNB(engine='dask')._check_options(); "
        "assert not {'dask', 'distributed'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_dask_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'discem\[dask\]'"):
        GaussianNB(engine="dask").fit(*numbers())


def shards_of(family, sizes, seed=0, K=3):
    """Rows of a family in parts, and a state to begin with."""
    X, y = tiny.data(family, n=sum(sizes), seed=seed)
    rows, targets = tiny.view(family, X), labels(y)
    ends = np.cumsum([0, *sizes])
    own = [np.arange(a, b) for a, b in pairwise(ends)]
    data = Data(rows, targets, np.ones(sum(sizes)))
    pieces = [data.take(i) for i in own]
    groups = [[piece] for piece in pieces]
    shards = Shards(Here(), groups, sizes, rows.n_cells, 1.0, data, np.arange(sum(sizes)))
    return shards, pieces, tiny.begin(family, X, y, average=True), X


@every_family
def test_a_round_is_the_mean_of_its_parts(family):
    """Each takes about every P-th step, P being as many times its rows as there are rows."""
    shards, pieces, start, X = shards_of(family, [30, 20, 10])
    rule = Rule(NCLL(), tiny.PLAIN, inverse(0.1), 60.0, 1)
    learner = Learner(copy.deepcopy(start), rule, Dask())
    figures = learner.learn(shards, 5)
    states = []
    for piece, part in zip(pieces, [Stride(0, 2), Stride(1, 3), Stride(2, 6)], strict=True):
        state = copy.deepcopy(start)
        order = np.random.RandomState((5, len(states))).permutation(len(piece.weights))
        for now, _ in take_steps(state, rule, 0, piece, order, np.zeros(len(FIGURES)), stride=part):
            state = now
        states.append(state)
    mean = models.mean_of(states, [30, 20, 10])
    assert (figures[ROWS], learner.t) == (60, 60)
    for one, other in ((learner.state, mean), (learner.model, mean.averaged())):
        np.testing.assert_allclose(tiny.scores(one, X), tiny.scores(other, X), rtol=1e-9)


def test_parts_take_steps_of_many_rows_in_single_precision(monkeypatch):
    """As threads do: products of words then take less time."""
    shards, _, start, _ = shards_of("words", [30, 30])
    seen, steps = [], dask_engine.take_steps

    def watched(state, rule, t, data, *args, **options):
        seen.append((rule.batch, data.rows.values.dtype))
        return steps(state, rule, t, data, *args, **options)

    monkeypatch.setattr(dask_engine, "take_steps", watched)
    for batch in (1, 8):
        rule = Rule(NCLL(), tiny.PLAIN, inverse(0.1), 60.0, batch)
        shards.round(start, rule, 0, 3, (0, 60))
    assert seen == [(1, np.float64)] * 2 + [(8, np.float32)] * 2


def test_rounds_see_every_row_once():
    shards, _, start, _ = shards_of("gaussian", [700, 500, 300])
    seen = []
    for span in ((0, 400), (400, 900), (900, 1500)):
        rule = Rule(NCLL(), tiny.PLAIN, inverse(0.1), 1500.0, 1)
        seen.append(shards.round(start, rule, 0, 3, span).rows)
    assert sum(seen) == 1500


@every_family
def test_tallies_of_parts_make_that_of_all(family):
    X, y = tiny.data(family, n=60)
    rows, d = tiny.view(family, X), tiny.width(X)
    own = [np.arange(60)[i::3] for i in range(3)]

    def collect(chosen):
        parts = list(labels(y).take(chosen).parts(np.ones(len(chosen))))
        return FAMILIES[family].collect(rows.take(chosen), parts, sizes(rows, d), 3)

    got = FAMILIES[family].merged([collect(chosen) for chosen in own])
    expected = collect(np.arange(60))
    if family in ("gaussian", "lognormal"):
        np.testing.assert_allclose(got[:3], expected[:3])
        np.testing.assert_allclose(got[3], expected[3], rtol=0.5)  # their third moments are unknown
    else:
        np.testing.assert_allclose(tiny.flat(got), tiny.flat(expected))


def sizes(rows, d):
    """The levels of columns are known beforehand where rows are in parts."""
    if rows.values.dtype != np.int32:
        return d
    return tuple(int(column.max()) + 1 for column in rows.values.T)


@every_family
def test_rows_that_are_taken_apart_and_joined_are_the_same(family):
    rows = tiny.view(family, tiny.data(family, n=20)[0])
    again = joined([rows.take(np.arange(0, 7)), rows.take(np.arange(7, 20))])
    for one, other in zip(again, rows, strict=True):
        if other is None:
            assert one is None
            continue
        np.testing.assert_array_equal(one, other)
        assert (one.dtype, one.flags.writeable) == (other.dtype, other.flags.writeable)


def test_targets_of_parts_may_be_of_several_kinds():
    got = dask_engine.join_targets([labels([0, -1]), label_sets([[True, False], [True, True]])])
    assert got.codes[:2].tolist() == [0, -1]
    assert got.share.tolist() == [[0, 0], [0, 0], [1, 0], [1, 1]]


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_groups_have_rows_and_are_about_as_large(parts):
    rng = np.random.default_rng(parts)
    rows = rng.integers(0, 100, 40).tolist()
    groups = balanced(rows, parts)
    assert [i for group in groups for i in group] == list(range(40))
    assert len(groups) == parts
    totals = [sum(rows[i] for i in group) for group in groups]
    assert max(totals) < 1.5 * sum(rows) / parts
    assert balanced([60, 70, 100, 0, 130], 4) == [[0], [1], [2], [3, 4]]
    assert balanced([7, 0], 4) == [[0, 1]]
    assert balanced([10] * 8, 2) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_rows_that_are_dealt_are_all_there_and_every_part_has_its_share_of_a_class():
    y = np.sort(np.random.default_rng(0).integers(0, 3, 500))
    rows, ends = tiny.view("gaussian", np.arange(500.0)[:, None]), [0, 100, 107, 400, 500]
    own = [np.arange(a, b) for a, b in pairwise(ends)]
    weights = (np.arange(500) % 5 > 0) * 1.0  # some are held out
    whole = Data(rows, labels(y), weights)
    pieces = [whole.take(i) for i in own]
    groups, sizes = [[pieces[0], pieces[1]], [pieces[2]], [pieces[3]]], [85, 235, 80]
    shards = Shards(Here(), groups, sizes, 500, 2.0, whole, np.arange(500), parts=4)
    assert shards.record == {"parts": 4, "dealt": 1.0}
    assert shards.sizes == [len(part.weights) for part in shards.parts]
    assert sum(shards.sizes) == 400
    assert max(shards.sizes) - min(shards.sizes) <= 3
    seen = np.concatenate([part.rows.values[:, 0] for part in shards.parts]).astype(int)
    assert sorted(seen) == np.flatnonzero(weights).tolist()
    for part in shards.parts:
        np.testing.assert_array_equal(part.targets.codes, y[part.rows.values[:, 0].astype(int)])
        share = np.bincount(part.targets.codes) / len(part.weights)
        np.testing.assert_allclose(share, np.bincount(y) / 500, atol=0.03)
        assert set(part.weights) == {0.5}


def test_parts_differ_by_more_than_chance_or_not():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(52, 0.3))
    for n in (200, 10**6):
        assert not is_skewed(rng.multinomial(n, shares, size=8))
        assert is_skewed(np.diag(np.full(4, n)))
    assert is_skewed(np.array([[900, 900], [100, 100], [100, 100]]))  # one has most of the rows
    assert not is_skewed(np.array([[500, 500]]))


def test_engines_survive_clones_and_pickles():
    marker = threading.Lock  # something with a `submit` is a client
    engine = Dask(type("Client", (), {"submit": marker})(), parts=4)
    model = clone(GaussianNB(engine=engine))
    assert model.engine.client is engine.client
    assert model.engine.parts == 4
    back = pickle.loads(pickle.dumps(model))
    assert (back.engine.client, back.engine.parts) == (None, 4)


@pytest.mark.parametrize("engine", ["spark", 3, Dask("tcp://x"), Dask(parts=0), Dask(parts=1.5)])
def test_other_engines_are_refused(engine):
    with pytest.raises(OptionError, match=r"engine=|Dask: "):
        GaussianNB(engine=engine).fit(*numbers())


# --- fits -----------------------------------------------------------------------------------------


def test_arrays(client, sampled):
    X, y = numbers()
    rows, answers = da.from_array(X, chunks=(150, 3)), da.from_array(y, chunks=200)
    local = GaussianNB(random_state=0).fit(X, y)
    model = GaussianNB(engine=Dask(client), random_state=0).fit(rows, answers)
    assert abs(model.score(X, y) - local.score(X, y)) < 0.02
    np.testing.assert_array_equal(model.class_count_, local.class_count_)
    lazy = model.predict(rows)
    assert (lazy.shape, lazy.dtype, lazy.numblocks) == ((600,), y.dtype, (4,))
    np.testing.assert_array_equal(lazy.compute(), model.predict(X))
    for name in ("predict_proba", "predict_log_proba", "predict_joint_log_proba"):
        lazy = getattr(model, name)(rows)
        assert lazy.shape == (600, 3)
        np.testing.assert_allclose(lazy.compute(), getattr(model, name)(X))
    np.testing.assert_allclose(local.score_samples(rows).compute(), local.score_samples(X))


def test_very_many_rows_are_taken_in_larger_steps(client):
    X, y = numbers(8192)
    options = {"max_iter": 2, "tol": None, "random_state": 0}
    model = GaussianNB(engine=Dask(client), **options).fit(X, y)
    assert model.learner_.rule.batch == 8192 // 256
    assert model.learner_.rule.by_row
    local = GaussianNB(random_state=0).fit(X, y)
    assert model.score(X, y) > local.score(X, y) - 0.003


def test_arrays_whose_lengths_are_unknown_and_labels_that_are_here(client):
    X, y = numbers()
    rows = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()
    model = GaussianNB(engine="dask", random_state=0).fit(rows, y.tolist())
    assert model.score(X, y) > 0.7
    assert model.predict(rows).compute().shape == (600,)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_parts_of_a_frame_make_the_frame(library):
    """Whatever library it is of, with the names of its columns."""
    frames = pytest.importorskip(library)
    make = frames.Table.from_pydict if library == "pyarrow" else frames.DataFrame
    whole = make({"number": [1.0, 2.0, 3.0], "level": ["a", None, "b"]})
    parts = [some_rows(whole, np.arange(*span)) for span in ((0, 2), (2, 3))]
    assert together(parts).equals(whole)


def test_rows_that_are_here_are_sent(client, apart):
    X, y = numbers()
    model = GaussianNB(engine=Dask(client, parts=3), random_state=0).fit(X, y)
    again = GaussianNB(engine=Dask(client, parts=3), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7
    np.testing.assert_array_equal(model.mean_, again.mean_)
    frame, label = table()
    for X in (frame, frame.to_dict("records")):
        assert NaiveBayes(engine=Dask(client), random_state=0).fit(X, label).score(X, label) > 0.75


@pytest.mark.parametrize("kind", [GaussianNB, MultinomialNB])
def test_partitions_sorted_by_class_are_dealt(client, kind, apart):
    X, y = numbers(1600) if kind is GaussianNB else counts(1600)
    X = X if kind is GaussianNB else X.toarray()
    options = {"loss": "ncll", "max_iter": 3, "tol": None, "random_state": 0}

    def fit(order):
        rows = da.from_array(X[order], chunks=(200, X.shape[1]))
        return kind(engine=Dask(client, parts=8), **options).fit(rows, y[order])

    by_class = np.argsort(y, kind="stable")
    one_of_a_class = np.concatenate([by_class[:200], np.sort(by_class[200:])])
    mixed = fit(np.arange(1600))
    assert "dealt" not in mixed.history_[-1]
    assert mixed.score(X, y) > kind(**options).fit(X, y).score(X, y) - 0.02
    for order in (by_class, one_of_a_class):
        model = fit(order)
        assert (model.history_[-1]["parts"], model.history_[-1]["dealt"]) == (8, 1.0)
        assert model.score(X, y) > mixed.score(X, y) - 0.01


def counts(n=400, K=3):
    rng = np.random.default_rng(0)
    y, shares = rng.integers(0, K, n), rng.dirichlet(np.full(40, 0.3), K)
    X = np.stack([rng.multinomial(20, shares[k]) for k in y]).astype(float)
    X[:, :10] += 2 * X[:, 10:20]  # words that depend on each other
    return sp.csr_matrix(X), y


def test_sparse_blocks(client, sampled):
    X, y = counts()
    rows = da.from_array(X.toarray(), chunks=(100, 40)).map_blocks(sp.csr_matrix)
    model = MultinomialNB(engine=Dask(client), max_iter=4, random_state=0).fit(rows, y)
    assert model.score(X, y) > 0.9
    assert {"loss", "held_out"} <= model.chosen_.keys() and model.choice_
    np.testing.assert_array_equal(model.predict(rows).compute(), model.predict(X))


def mixture(**options):
    return MixtureClassifier(hide=0.5, **options)


@pytest.mark.parametrize(
    ("kind", "sample"),
    [(NaiveBayes, 600), (mixture, 200), (TableClassifier, 300)],
)
def test_tables(client, kind, sample, monkeypatch):
    monkeypatch.setattr(_pieces, "SAMPLE", sample)
    X, y = table()
    whole = dd.from_pandas(X.assign(y=y), npartitions=4)
    rows, answers = whole[["size", "sort", "count"]], whole["y"]
    local = kind(random_state=0).fit(X, y)
    model = kind(engine=Dask(client), random_state=0).fit(rows, answers)
    assert abs(model.score(X, y) - local.score(X, y)) < 0.03
    assert model.families_ == local.families_
    np.testing.assert_array_equal(model.class_count_, local.class_count_)
    np.testing.assert_array_equal(model.predict(rows).compute(), model.predict(X))
    assert model.predict_proba(rows).compute().shape == (600, 2)


def test_a_level_that_the_sample_lacks_is_known(client, sampled):
    X, y = table()
    X.loc[X.index[400:403], "sort"] = "rare"
    bag = db.from_sequence(X.dropna().to_dict("records"), npartitions=3)
    model = NaiveBayes(engine=Dask(client), random_state=1).fit(bag, y[X.dropna().index])
    assert "rare" in model.layout_.columns[1].levels
    assert model.families_["sort"] == "categorical: text, 5 levels"


@pytest.mark.parametrize(("kind", "sample"), [("bag", 150), ("series", 400)])
def test_documents(client, kind, sample, monkeypatch):
    monkeypatch.setattr(_pieces, "SAMPLE", sample)
    texts, y = documents()
    options = {"loss": "ncll", "weighting": "tfidf", "max_iter": 3, "min_df": 2}
    local = TextClassifier(random_state=0, **options).fit(texts, y)
    X, answers = dd.from_pandas(pd.Series(texts), npartitions=3), y
    if kind == "bag":
        X, answers = (db.from_sequence(list(each), npartitions=4) for each in (texts, y))
    model = TextClassifier(engine=Dask(client), random_state=0, **options).fit(X, answers)
    assert model.vocabulary_ == local.vocabulary_
    np.testing.assert_array_equal(model.bag_.document_count, local.bag_.document_count)
    assert model.score(texts, y) > 0.97
    np.testing.assert_array_equal(model.predict(X).compute(), model.predict(texts))


def test_documents_without_labels_and_hashed_words(client):
    texts, y = documents()
    some = np.where(np.arange(len(y)) % 3 > 0, y, None)
    bag = db.from_sequence(texts, npartitions=4)
    options = {"n_features": 512, "loss": "ncll", "max_iter": 3, "random_state": 0}
    model = TextClassifier(engine=Dask(client), **options).fit(bag, some)
    assert model.score(texts, y) > 0.95
    assert model.chosen_["unlabelled"]["rows"] > 0


def test_topics(client, sampled):
    texts, y = documents(300)
    bag = db.from_sequence(texts, npartitions=3)
    model = TopicClassifier(text=True, engine=Dask(client), random_state=0).fit(bag, y)
    assert model.score(texts, y) > 0.95
    assert model.transform(bag).compute().shape == (300, 6)


def test_options_that_need_all_rows(client, sampled):
    """Classes are balanced, and rows held out, as in a local fit."""
    X, y = numbers()
    weights = 1.0 + (np.arange(600) % 2)
    rows, weight = da.from_array(X, chunks=(200, 4)), da.from_array(weights, chunks=200)
    options = {"class_weight": "balanced", "random_state": 0}
    local = GaussianNB(**options).fit(X, y, weights)
    model = GaussianNB(engine=Dask(client), **options).fit(rows, y, weight)
    np.testing.assert_allclose(model.class_count_, local.class_count_)
    early = GaussianNB(engine=Dask(client), early_stopping=True, random_state=0).fit(rows, y)
    assert "validation_loss" in early.history_[0]
    assert 600 - 15 <= early.class_count_.sum() <= 600 - 12  # a tenth of each class of the sample
    assert early.score(X, y) > 0.7


def test_progress_and_callbacks_are_those_of_a_local_fit(client, capsys):
    X, y = numbers()
    seen = []
    model = GaussianNB(
        engine=Dask(client), max_iter=3, tol=None, verbose=2, random_state=0,
        callback=lambda model, record: seen.append(model.score(X, y)) or len(seen) == 2,
    )  # fmt: skip
    model.fit(da.from_array(X, chunks=(200, 4)), y)
    assert len(seen) == model.n_iter_ == 2
    assert "epoch 2/3" in capsys.readouterr().err


def test_searches_and_files(client, tmp_path):
    X, y = numbers(200)
    search = GridSearchCV(
        GaussianNB(engine=Dask(client), max_iter=2, tol=None), {"init": ["prior"]}, cv=2
    )
    best = search.fit(X, y).best_estimator_
    path = tmp_path / "model.skops"
    best.save(path)
    code = (
        "import sys; sys.modules['dask'] = sys.modules['distributed'] = None; import discem; "
        f"print(discem.load({str(path)!r}).predict({X[:3].tolist()!r}).tolist())"
    )
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert answer.stdout.decode().strip() == str(best.predict(X[:3]).tolist())
    assert pickle.loads(pickle.dumps(best)).predict(X[:3]).tolist() == best.predict(X[:3]).tolist()


# --- what is wrong with the input -----------------------------------------------------------------


def test_partitions_that_are_empty_or_have_one_class_or_no_label(client, apart):
    X, y = numbers(600)
    order = np.argsort(y, kind="stable")
    frame = pd.DataFrame(X[order], columns=list("abcd")).assign(y=y[order].astype(float))
    frame.loc[frame.index[100:200], "y"] = np.nan
    parts = [frame[:100], frame[100:200], frame[:0], frame[200:400], frame[400:]]
    whole = dd.from_delayed([_delayed(part) for part in parts], meta=frame[:0])
    model = GaussianNB(engine=Dask(client, parts=4), random_state=0).fit(
        whole[[*"abcd"]], whole["y"]
    )
    assert model.classes_.tolist() == [0, 1, 2]
    known = frame["y"].notna()
    assert model.score(frame.loc[known, [*"abcd"]], frame["y"][known]) > 0.6
    assert model.predict(whole[[*"abcd"]]).compute().shape == (600,)


def _delayed(part):
    import dask

    return dask.delayed(part)


def test_a_bad_row_is_named_and_the_client_stays_usable(client):
    X, y = numbers()
    X[333, 2] = np.inf
    rows = da.from_array(X, chunks=(200, 4))
    with pytest.raises(InputError, match=r"partition 1: .*infinity at row 133, column 2"):
        GaussianNB(engine=Dask(client)).fit(rows, y)
    with pytest.raises(InputError, match="partition 2: document 1 is 3"):
        texts = ["a b", "c d", "e f", "g h", "i j", 3]
        TextClassifier(engine=Dask(client)).fit(
            db.from_sequence(texts, npartitions=3), list("abcabc")
        )
    X[333, 2] = 0.0
    assert GaussianNB(engine=Dask(client), random_state=0).fit(da.from_array(X, chunks=(200, 4)), y)


def test_a_column_of_text_here_and_numbers_there_is_refused():
    parts = [LevelsSeen.look([{"a": 1.5}, {"a": 2.0}]), LevelsSeen.look([{"a": "x"}])]
    with pytest.raises(InputError, match="column 'a' holds text in some partitions, as 'x'"):
        LevelsSeen.merge(*parts)


def test_what_workers_warn_of_is_said_once():
    def complain(X):
        warn(f"{len(X)} rows are too few", UserWarning)
        return -X

    X, y = numbers(300)
    pieces = _pieces.Pieces.read(Here(), X, y, None, 0)
    with pytest.warns(UserWarning) as told:
        mapped = pieces.map(complain)
    said = [str(each.message) for each in told]
    assert said == ["300 rows are too few", "100 rows are too few"]  # of the sample, and of pieces
    np.testing.assert_array_equal(mapped.sample.X, -X)


def test_collections_that_do_not_fit_are_refused(client):
    X, y = numbers()
    rows = da.from_array(X, chunks=(200, 4))
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    cases = [
        (rows, None, "target y is None"),
        (rows, y[:-1], "X has 600 rows but y has 599"),
        (X, da.from_array(y, chunks=200), "y is a collection of dask, and X is not"),
        (frame, dd.from_pandas(pd.Series(y), npartitions=2), "X has 3 partitions, y has 2"),
        (rows, da.from_array(y[:-1], chunks=200), "partition 2: X has 200 rows but y has 199"),
        (rows, np.full(600, None), "y has no label at all"),
        (rows, np.zeros(600), "y has one class only"),
        (rows[:0], y[:0], "all its partitions are empty"),
    ]
    for X_, y_, message in cases:
        with pytest.raises(InputError, match=message):
            GaussianNB(engine=Dask(client)).fit(X_, y_)
    with pytest.raises(InputError, match=r"fit it with engine='dask', or compute\(\) it"):
        GaussianNB().fit(rows, y)


# --- faults ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frail():
    """A cluster whose workers may be killed."""
    with start_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


PHASES = ["size_of", "checked", "_deal", "_take_part"]


def fit_in_parts(client):
    X, y = numbers(1000)
    rows, y = da.from_array(X, chunks=(125, 4)), np.sort(y)  # such rows are dealt
    options = {"max_iter": 3, "tol": None, "random_state": 0}
    return GaussianNB(engine=Dask(client, parts=4), **options).fit(rows, y)


@pytest.mark.parametrize("phase", PHASES)
def test_a_worker_that_dies_changes_nothing(client, frail, phase, apart, monkeypatch):
    expected = fit_in_parts(client)
    frail.wait_for_workers(2)  # one may still be on its way back from the phase before
    submit, killed = Session.submit, []

    def killing(self, function, *futures, **given):
        future = submit(self, function, *futures, **given)
        name = getattr(function, "__name__", "")
        if name == phase and not killed and given.get("seed", (0, 3))[1] == 3:
            killed.append(kill_a_worker(frail))
        return future

    monkeypatch.setattr(Session, "submit", killing)
    model = fit_in_parts(frail)
    assert killed
    np.testing.assert_array_equal(model.mean_, expected.mean_)
    np.testing.assert_array_equal(model.var_, expected.var_)


def kill_a_worker(client):
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)
    return pid


def test_ctrl_c_leaves_the_model_of_the_last_round(client):
    X, y = numbers(2000)
    model = GaussianNB(engine=Dask(client), max_iter=10**6, tol=None, random_state=0)
    model.callback = lambda model, record: record["epoch"] == 2 and interrupt()
    with pytest.raises(KeyboardInterrupt):
        model.fit(da.from_array(X, chunks=(500, 4)), y)
    assert model.n_iter_ >= 2
    assert model.score(X, y) > 0.7
    deadline = time.time() + 10
    while any(client.processing().values()) and time.time() < deadline:
        time.sleep(0.1)
    assert not any(client.processing().values())
    assert client.submit(sum, [1, 2]).result() == 3


def interrupt():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_when_the_scheduler_is_gone_the_last_model_is_kept():
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = start_cluster(processes=False)
        client = distributed.Client(cluster, timeout=5)

        def gone(model, record):
            if record["stage"] == "fit" and record["epoch"] == 2:
                cluster.close()

        model = TableClassifier(engine=Dask(client), loss="ncll", max_iter=50, tol=None)
        model.set_params(n_components=1, hide=0.0, missing="ignore", temperature=1.0)
        model.set_params(prior_strength=1.0, callback=gone, random_state=0)
        try:
            with pytest.raises(EngineError, match="the scheduler of dask does not answer"):
                model.fit(dd.from_pandas(X, npartitions=3), y)
        finally:
            client.close()
            cluster.close()
    assert model.n_iter_ >= 2
    assert model.score(X, y) > 0.75


def test_a_local_cluster_is_made_and_closed(monkeypatch):
    def none():
        raise ValueError("No clients found")

    made, make = [], distributed.LocalCluster

    def start(**options):
        made.append(make(**options, processes=False))  # that takes less time
        return made[0]

    monkeypatch.setattr(distributed, "default_client", none)
    monkeypatch.setattr(distributed, "LocalCluster", start)
    X, y = numbers(300)
    model = GaussianNB(engine="dask", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7
    assert [str(cluster.status) for cluster in made] == ["Status.closed"]


def test_numbers_are_read_by_workers_and_told_lazily(client, sampled):
    """All rows of a regressor that are few come here as they were; of more there is a sample."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "k": rng.choice([*"xyz"], 300)})
    frame["y"] = frame["a"] + 2.0 * (frame["k"] == "x")
    options = {"n_components": 2, "average": 1, "max_iter": 5, "random_state": 0}
    options |= {"missing": "ignore", "whole_numbers": "levels", "tol": None}
    few, X = dd.from_pandas(frame[:150], npartitions=3), frame[["a", "k"]]
    far = TableRegressor(**options, engine=Dask(client)).fit(few[["a", "k"]], few["y"])
    here = TableRegressor(**options).fit(X[:150], frame["y"][:150])
    np.testing.assert_allclose(far.predict(X), here.predict(X))
    rows = dd.from_pandas(X, npartitions=2)
    np.testing.assert_array_equal(far.predict(rows).compute(), far.predict(X))
    np.testing.assert_array_equal(far.predict_quantiles(rows).compute(), far.predict_quantiles(X))
    many = dd.from_pandas(frame, npartitions=3)
    with pytest.warns(UserWarning, match="a sample of 1[45][0-9] of 300 rows"):
        far.fit(many[["a", "k"]], many["y"])
    both = frame[["y", "y"]].set_axis([*"pq"], axis=1)
    pair = TableRegressor(**options).fit(X, both)
    np.testing.assert_array_equal(pair.predict(rows).compute(), pair.predict(X))
    with pytest.raises(InputError, match="several answers"):
        pair.predict_quantiles(rows)


# --- vectors of texts -----------------------------------------------------------------------------


def test_workers_make_the_vectors_of_texts(client, monkeypatch):
    rng = np.random.default_rng(0)
    mood = rng.choice([-1, 1], 400)
    texts = [f"{' '.join(rng.choice(['the', 'sea', 'was'], 4))} {'-+'[int(m > 0)]}" for m in mood]
    y = np.where(mood > 0, "good", "bad").astype(object)
    y[::5] = None

    def encoder(texts):
        return np.array([[text.count("+"), text.count("-"), len(text) % 3] for text in texts])

    monkeypatch.setattr(_pieces, "SAMPLE", 150)
    model = TextClassifier(encoder, engine=Dask(client), max_iter=3, random_state=0)
    model.fit(db.from_sequence(texts, npartitions=4), y)
    meaning = model._fitted.meaning
    assert meaning.model.class_count_.sum() == np.sum(y != None)  # noqa: E711  of all rows
    assert model.chosen_["vectors"]["log_loss"] < model.chosen_["vectors"]["words_alone"]
    truth = np.where(mood > 0, "good", "bad")
    assert model.score(texts, truth) > 0.95
    assert (
        model.predict(db.from_sequence(texts[:20], npartitions=2)).compute() == truth[:20]
    ).all()
    here = TextClassifier(encoder, max_iter=3, random_state=0).fit(texts, y)
    assert np.mean(here.predict(texts) == model.predict(texts)) > 0.97


def test_text_columns_are_not_trained_on_workers(client):
    rng = np.random.default_rng(0)
    review = [" ".join(rng.choice(["a", "good", "bad", "film", "it", "was"], 8)) for _ in range(60)]
    frame = dd.from_pandas(pd.DataFrame({"stars": rng.random(60), "review": review}), npartitions=2)
    y = np.tile(["a", "b"], 30)
    with pytest.raises(InputError, match="an engine does not read: fit without engine"):
        TableClassifier(engine=Dask(client)).fit(frame, y)
    with pytest.raises(InputError, match="MixtureClassifier does not read: use TableClassifier"):
        MixtureClassifier(families={}, engine=Dask(client)).fit(frame, y)
