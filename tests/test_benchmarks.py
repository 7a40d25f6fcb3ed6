"""The benchmarks run, and the peer that was written for them does what it says.

Those that run a script as a whole, or other libraries, are slow.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import log_loss as sklearn_log_loss

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch):
    """Import from the folder of the benchmarks, which is no package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def run(script, *options):
    command = [sys.executable, str(BENCHMARKS / script), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_text_prints_and_writes_every_method(tmp_path):
    names = ["text", "tfidf/linear-svc"]
    out = tmp_path / "text.json"
    printed = run("text.py", "--quick", "--methods", *names, "--json", out)
    written = json.loads(out.read_text())
    assert written["versions"]["discem"]
    assert [result["method"] for result in written["results"]] == names
    for result in written["results"]:
        (figures,) = result["runs"]
        assert result["method"] in printed
        assert figures["accuracy"] > 0.5
        assert 0 < figures["fit"] < figures["total"]
    ours, svm = (result["runs"][0]["log_loss"] for result in written["results"])
    assert ours > 0
    assert svm is None
    assert "text against tfidf/linear-svc" in printed
    assert written["summary"]["docstrings"]["fit_ratio"] > 0


@pytest.mark.slow
def test_tabular_writes_the_sets_asked_for(tmp_path):
    out = tmp_path / "tabular.json"
    printed = run("tabular.py", "--sets", "wine", "--splits", 1, "--folds", 2, "--json", out)
    written = json.loads(out.read_text())
    assert written["versions"]["numba"]
    assert {result["data"] for result in written["results"]} == {"wine"}
    for result in written["results"]:
        (figures,) = result["splits"]
        assert result["method"] in printed
        assert figures["accuracy"] > 0.9
        assert figures["seconds"] > 0


@pytest.mark.slow
def test_missing_writes_figures_by_share(tmp_path):
    out = tmp_path / "missing.json"
    names = ["discem nll", "mean + LR, holes"]
    printed = run("missing.py", "--quick", "--sets", "wine", "--methods", *names, "--json", out)
    written = json.loads(out.read_text())
    shares = written["settings"]["shares"]
    for result, name in zip(written["results"], names, strict=True):
        assert result["method"] == name
        assert name in printed
        (figures,) = result["splits"]
        assert len(figures["accuracy"]) == len(figures["log_loss"]) == len(shares)
        assert figures["accuracy"][0] > 0.9 > figures["accuracy"][-1]  # it is harder with less


@pytest.mark.slow
def test_impute_judges_all_methods_on_the_same_cells(tmp_path):
    out = tmp_path / "impute.json"
    names = ["discem", "mean, mode"]
    options = ["--sets", "iris", "--splits", "1", "--methods", *names, "--json", out]
    printed = run("impute.py", *options)
    results = json.loads(out.read_text())["results"]
    ours, mean = (results[name]["iris"][0]["rmse"] for name in names)
    assert all(name in printed for name in names)
    assert max(ours) < 0.9 < min(mean)


@pytest.mark.slow
def test_outliers_are_counted_after_a_fit_and_in_a_stream():
    printed = run("outliers.py", "--what", "flagged", "--sets", "breast_cancer", "--cuts", "1")
    shares = printed.splitlines()[-1].replace("%", "").split()[1:]
    assert len(shares) == 4
    assert all(0 <= float(share) < 15 for share in shares)


def test_holes_are_as_many_as_asked_and_rows_keep_their_labels(benchmarks):
    spec = importlib.util.spec_from_file_location("holes", BENCHMARKS / "missing.py")
    missing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(missing)
    X, rng = np.arange(3000.0).reshape(100, 30), np.random.default_rng(0)
    holes = missing.with_holes(X, 0.3, rng)
    assert np.isnan(holes).mean() == pytest.approx(0.3, abs=0.05)
    assert np.array_equal(holes[~np.isnan(holes)], X[~np.isnan(holes)])
    rows, labels = missing.training_rows(X, np.arange(100), 4, rng)
    assert rows.shape == (400, 30)
    whole = ~np.isnan(rows).all(axis=1)
    assert np.array_equal(np.nanmax(rows[whole] // 30, axis=1), labels[whole])
    assert np.std(np.isnan(rows).mean(axis=1)) > 0.2  # each row has a share of its own


@pytest.mark.slow
def test_vectors_writes_figures_of_every_method(tmp_path):
    out = tmp_path / "vectors.json"
    printed = run("vectors.py", "--quick", "--json", out)
    results = json.loads(out.read_text())["results"]
    assert {each["labels"] for each in results} == {50, 200}
    methods = {each["method"] for each in results}
    assert len(methods) == 5 and all(method in printed for method in methods)
    best = {each["method"]: each["accuracy"] for each in results if each["labels"] == 200}
    assert best["words and vectors"] > 0.8


@pytest.mark.slow
def test_scale_prints_and_writes_every_size(tmp_path):
    out = tmp_path / "scale.json"
    printed = run("scale.py", "--quick", "--json", out)
    written = json.loads(out.read_text())
    assert "seconds grow as" in printed
    for name in ("documents", "classes"):
        for size in written[name]["sizes"]:
            assert size["ns"] > 0
            assert size["memory_ratio"] > 0


@pytest.mark.slow
def test_zoo_repeats_a_case_by_its_name(tmp_path):
    out = tmp_path / "zoo.json"
    printed = run("zoo.py", "--tables", 2, "--counts", 0, "--json", out)
    written = json.loads(out.read_text())
    assert written["versions"]["discem"]
    assert [result["case"] for result in written["results"]] == ["t0", "t0", "t1", "t1"]
    assert "2 cases of seed 0" in printed
    for result in written["results"]:
        assert result["model"] in printed
        assert result["log_loss"]["nll"] >= 0
    again = tmp_path / "again.json"
    run("zoo.py", "--case", "t1", "--json", again)
    repeated = json.loads(again.read_text())["results"]
    for one, other in zip(written["results"][2:], repeated, strict=True):
        del one["seconds"], other["seconds"]
        assert one == other


@pytest.mark.slow
def test_versions_compares_a_tree_with_itself(tmp_path):
    tree, out = BENCHMARKS.parent, tmp_path / "versions.json"
    printed = run("versions.py", tree, tree, "--only", "numbers", "--repeat", 1, "--json", out)
    written = json.loads(out.read_text())
    assert str(tree) in written["trees"]["after"]
    for name, times in written["seconds"]["models"].items():
        assert name in printed
        assert list(times) == ["before", "again", "after"]
        assert all(min(seconds) > 0 for seconds in times.values())


def test_zipf_documents_are_canonical(benchmarks):
    from scale import zipf

    X, y = zipf(7000, 3, 200)  # more than one chunk
    assert X.shape == (7000, 200)
    assert len(y) == 7000
    assert X.indices.dtype == np.int32
    assert X.has_canonical_format
    assert X.sum() / 7000 == pytest.approx(80, rel=0.01)


def test_dmnb_counts_by_what_is_missing_from_certainty(benchmarks):
    from dmnb import DMNB

    model = DMNB(presence=False)
    model.classes_ = np.arange(3)
    model.start(4)
    prior = np.log(4)
    words, counts = np.array([1, 3]), np.array([2.0, 1.0])

    model.learn(words, counts, code=0)  # nothing is known: each problem is even
    rest, own = model.words_
    assert own[:, 0] == pytest.approx(prior + np.array([0, 1.0, 0, 0.5]))
    assert own[:, 1:] == pytest.approx(prior)
    assert rest[:, 0] == pytest.approx(prior)
    assert rest[:, 1] == pytest.approx(prior + np.array([0, 1.0, 0, 0.5]))
    assert model.documents_ == pytest.approx(np.array([[1, 1.5, 1.5], [1.5, 1, 1]]))

    odds = 1.5 * ((prior + 1) / prior) ** 2 * ((prior + 0.5) / prior)
    odds *= (4 * prior / (4 * prior + 1.5)) ** 3
    before = own[1, 0]
    model.learn(words, counts, code=0)
    assert model.words_[1, 1, 0] - before == pytest.approx(2 * (1 - odds / (1 + odds)))


def test_dmnb_sees_words_present_or_absent(benchmarks):
    from dmnb import DMNB

    X, y = csr_matrix([[3.0, 0, 1], [0, 2, 1], [1, 0, 5]]), np.array(["a", "b", "a"])
    model = DMNB().fit(X, y)
    assert model.words_ == pytest.approx(DMNB(presence=False).fit(X.sign(), y).words_)
    assert model.predict(X).tolist() == ["a", "b", "a"]
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1)


def test_log_loss_clips_and_counts_unseen_labels(benchmarks):
    from harness import log_loss

    classes, p = np.array(["a", "b"]), np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
    seen = log_loss(np.array(["a", "b", "a"]), p, classes)
    assert seen == pytest.approx(sklearn_log_loss(["a", "b", "a"], p))
    unseen = log_loss(np.array(["a", "b", "c"]), p, classes)
    assert unseen == pytest.approx((3 * seen + np.log(0.5) - np.log(1e-15)) / 3)


def test_a_process_answers_or_says_why_not(benchmarks):
    from harness import FailedError, in_process

    assert in_process(divmod, 7, 2) == (3, 1)
    with pytest.raises(FailedError, match="ZeroDivisionError"):
        in_process(divmod, 7, 0)
    with pytest.raises(FailedError, match="stopped after"):
        in_process(sum, range(10**10), limit=0.2)


@pytest.mark.slow
def test_cost_is_found_for_every_size(tmp_path):
    out = tmp_path / "cost.json"
    printed = run("cost.py", "--quick", "--json", out)
    written = json.loads(out.read_text())["results"]
    for title, found in written.items():
        assert title in printed
        assert all(value >= 0.0 for value in found["constants"].values())
        assert any(row["fit"] for row in found["rows"])
        assert any(not row["fit"] and row["formula"] > 0.0 for row in found["rows"])


@pytest.mark.slow
def test_streams_writes_costs_and_orders(tmp_path):
    out = tmp_path / "streams.json"
    printed = run("streams.py", "--calls", 8, "--json", out)
    written = json.loads(out.read_text())
    assert all(name in printed for name in written["costs"])
    assert all(figures["late"] > 0 for figures in written["costs"].values())
    assert written["orders"]["GaussianNB"]["1"] > written["orders"]["GaussianNB"]["3000"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_handful_of_kills_leaves_whole_models_and_nothing_else():
    printed = run("torture_kills.py", "--count", 5, "--only", "fit", "stream", "save")
    rows = [line.split() for line in printed.splitlines()[1:]]
    assert [(row[0], row[2]) for row in rows] == [("fit", "0"), ("stream", "0"), ("save", "0")]


# --- regression.py --------------------------------------------------------------------------------


@pytest.mark.slow
def test_regression_writes_figures_by_share(tmp_path):
    pytest.importorskip("pandas")
    out = tmp_path / "a.json"
    options = ["--sets", "sklearn diabetes", "--folds", 1, "--methods", "discem, one*", "ridge"]
    printed = run("regression.py", *options, "--json", out)
    found = json.loads(out.read_text())["results"]["sklearn diabetes"]
    assert [*found] == ["discem, one model", "ridge"]
    for method, record in found.items():
        assert method in printed and record["fit"] > 0
        assert len(record["rmse"]) == len(record["nll"]) == len(record["cover"]) == 4
        assert 0.6 < record["rmse"][0] < record["rmse"][-1] < 1.0
        assert 0.8 < record["cover"][0] < 1.0


# --- tables.py ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tables_writes_figures_by_share_and_keeps_those_of_peers(tmp_path):
    pytest.importorskip("pandas")
    out, again, names = tmp_path / "a.json", tmp_path / "b.json", ["LR", "naive Bayes"]
    sets = ["iris", "made-few"]
    options = ["--quick", "--sets", *sets, "--methods", *names, "--cache", tmp_path / "cache"]
    printed = run("tables.py", *options, "--json", out)
    assert "failures: none" in printed
    written = json.loads(out.read_text())
    assert written["versions"]["pandas"]
    assert [(r["data"], r["method"]) for r in written["results"]] == [
        (data, name) for data in sets for name in names
    ]
    for record in written["results"]:
        assert record["method"] in printed
        assert len(record["accuracy"]) == len(record["log_loss"]) == 4
        assert record["accuracy"][0] > 0.7
        assert record["log_loss"][0] < record["log_loss"][-1]  # it is harder with less
    run("tables.py", *options, "--json", again)
    assert json.loads(again.read_text())["results"] == written["results"]  # to the last second


def test_the_picture_of_removed_cells_has_a_panel_a_figure_and_a_line_a_method(benchmarks):
    pytest.importorskip("matplotlib", reason="pictures need discem[plot]")
    from table_picture import plot_removed

    losses = {"ours": [0.2, 0.3], "LR": [0.2, 1.5]}
    figure = plot_removed([0.0, 0.5], {"accuracy": {"ours": [0.9, 0.8]}, "log-loss": losses})
    assert [len(axes.lines) for axes in figure.axes] == [1, 2]
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "log"]


@pytest.fixture
def tables(benchmarks, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.delitem(sys.modules, "tables", raising=False)  # an experiment has the same name
    yield importlib.import_module("tables")
    del sys.modules["tables"]


class Frequencies:
    """Class frequencies, and a list of the frames that were seen."""

    def __init__(self, seen):
        self.seen = seen

    def fit(self, X, y):
        self.classes_, size = np.unique(y, return_counts=True)
        self.p = size / size.sum()
        return self

    def predict_proba(self, X):
        self.seen.append(X)
        return np.tile(self.p, (len(X), 1))


def test_the_picture_of_seconds_has_a_point_a_method(benchmarks):
    pytest.importorskip("matplotlib", reason="pictures need discem[plot]")
    from table_picture import plot_seconds

    figure = plot_seconds({"ours": 0.5, "theirs": 2.0}, {"accuracy": {"ours": 0.9, "theirs": 0.8}})
    (panel,) = figure.axes
    points = [tuple(each.get_offsets()[0]) for each in panel.collections]
    assert points == [(0.5, 0.9), (2.0, 0.8)]
    assert panel.get_xscale() == "log"


def test_tables_remove_the_same_cells_for_all_methods(tables):
    X, y = tables.load_sets(names=["made-chaff"])["made-chaff"]
    seen = [], []
    for each in seen:
        tables.run(lambda seed, each=each: Frequencies(each), X, y, seed=1, folds=2)
    for one, other in zip(*seen, strict=True):
        assert one.equals(other)
    for fold in (seen[0][:4], seen[0][4:]):
        shares = [part.isna().to_numpy().mean() for part in fold]
        assert shares == pytest.approx(tables.SHARES, abs=0.01)
        for part in fold:
            whole = X.loc[part.index]
            assert part.where(part.notna(), whole).astype(X.dtypes).equals(whole)


def test_tables_tell_what_failed_and_count_it_as_class_frequencies(tables, monkeypatch, capsys):
    class Failing(Frequencies):
        def predict_proba(self, X):
            raise ValueError("no answer")

    monkeypatch.setitem(tables.METHODS, "failing", lambda seed: Failing([]))
    sets = tables.load_sets(names=["made-few", "made-rare"])
    records = tables.judge(["failing", "LR"], sets, seeds=1, cache=None)
    (checks,) = tables.summarise(records, sets).values()
    printed = capsys.readouterr().out
    assert "made-rare, failing, 3 folds: ValueError: no answer" in printed
    expected = tables.run(lambda seed: Frequencies([]), *sets["made-rare"], seed=0)
    failed = [r for r in records if r["method"] == "failing" and r["data"] == "made-rare"]
    assert [r["log_loss"] for r in failed] == [r["log_loss"] for r in expected]
    complete, *removed = checks["failing"]
    assert complete["accuracy_difference"] < 0 < complete["log_loss_ratio"] - 1
    assert complete["worst"]["log_loss_set"] == "made-rare"  # the other has 80 rows
    assert [each["removed"] for each in removed] == [0.2, 0.4, 0.6]
    assert "worst set against LR" in printed


def test_tables_leave_out_what_is_absent(tables, monkeypatch):
    def missing(seed):
        raise ImportError("not here")

    monkeypatch.setitem(tables.METHODS, "missing", missing)
    assert tables.absent(["LR", "missing"]) == {"missing": "not here"}


def test_made_tables_are_the_same_again_and_others_in_another_draw(tables):
    first, again = (tables.load_sets(names=["made-*"]) for _ in range(2))
    other = tables.load_sets(names=["made-*"], draw=1)
    assert len(first) >= 12
    for name, (X, y) in first.items():
        assert X.equals(again[name].X)
        assert np.array_equal(y, again[name].y)
        assert X.shape == other[name].X.shape
        assert not X.equals(other[name].X)
        assert {str(kind) for kind in X.dtypes} <= {"float64", "int64", "str", "object", "category"}
        assert min(np.unique(y, return_counts=True)[1]) >= tables.FOLDS
    large = tables.load_sets(names=["large-*"])
    assert {name: X.shape for name, (X, _) in large.items()} == {
        "large-clusters": (30_000, 20),
        "large-friedman": (30_000, 10),
    }
    assert [tables.group_of(name) for name in ("large-friedman", "made-few", "wine")] == [
        "large",
        "made",
        "real",
    ]
    assert first["made-holes"].X.isna().to_numpy().mean() == pytest.approx(0.4, abs=0.02)
    assert first["made-absent"].X.isna().to_numpy().mean() == pytest.approx(0.4, abs=0.05)
    assert np.bincount(first["made-rare"].y)[1] / 2000 == pytest.approx(0.03, abs=0.01)
    assert first["made-levels"].X["place"].nunique() > 200


def test_table_files_have_their_class_last_and_question_marks(tables, tmp_path):
    folder = tmp_path / "tabular"
    folder.mkdir()
    lines = ["size,colour,class", *("3,red,a", "?,?,b", "5,NA,1") * 2]
    for name in ("one.csv", "two-train.csv", "two-test.csv"):
        (folder / name).write_text("\n".join(lines))
    (folder / "large.csv").write_text("\n".join([lines[0], *lines[1:] * 2000]))
    sets = tables.load_sets(tmp_path, ["one", "two*", "large"])
    assert list(sets) == ["large", "one", "two"]
    X, y = sets["one"]
    assert list(X) == ["size", "colour"]
    assert X["size"].isna().tolist() == X["colour"].isna().tolist() == [False, True, False] * 2
    assert y.tolist() == ["a", "b", "1"] * 2
    assert len(sets["large"].y) == 4000


def test_naive_bayes_of_both_kinds_is_that_of_each(tables):
    import table_peers
    from scipy.special import softmax
    from sklearn import naive_bayes

    X, y = tables.load_sets(names=["made-mixed"])["made-mixed"]
    numbers, categories = X.select_dtypes("number"), X.select_dtypes(exclude="number")
    whole, *parts = (
        table_peers.PEERS["naive Bayes"](0).fit(part, y).predict_proba(part)
        for part in (X, numbers, categories)
    )
    prior = np.log(np.bincount(y) / len(y))
    assert whole == pytest.approx(softmax(np.log(parts).sum(axis=0) - prior, axis=1), abs=1e-9)
    codes = table_peers.Arrays().fit(categories).transform(categories)
    expected = naive_bayes.CategoricalNB().fit(codes, y).predict_proba(codes)
    assert parts[1] == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["LR, indicators", "LR, kNN", "HGB 60, holes", "LightGBM", "XGBoost", "CatBoost", "EBM"],
)
def test_peers_take_columns_without_values_and_levels_never_seen(tables, name):
    if tables.absent([name]):
        pytest.skip(f"{name} is not installed")
    X, y = tables.load_sets(names=["made-few"])["made-few"]
    X = X.assign(empty=np.nan, rare=["common"] * 79 + ["unseen"])
    model = tables.METHODS[name](0).fit(X[:60], y[:60])
    for part in (X[60:], X[60:].mask(np.ones(X[60:].shape, dtype=bool))):
        p = model.predict_proba(part)
        assert p.shape == (20, 2)
        assert p.sum(axis=1) == pytest.approx(1)


@pytest.mark.slow
def test_the_search_for_tables_behind_nll_says_what_it_found(tmp_path):
    out = tmp_path / "search.json"
    run("search.py", "--tables", 2, "--models", "NaiveBayes", "GaussianNB", "--json", out)
    results = json.loads(out.read_text())["results"]
    assert {(each["case"], each["model"]) for each in results} >= {
        (0, "NaiveBayes"),
        (1, "NaiveBayes"),
    }
    for each in results:
        assert each["default"] < 30.0 and not each["too large"]
        assert (each["behind"] == 0.0) or each["behind"] == each["default"] - each["nll"] > 0.02


@pytest.mark.slow
def test_the_table_classifier_takes_part(tables):
    import discem

    if not hasattr(discem, "TableClassifier"):
        pytest.skip("there is no TableClassifier yet")
    records = tables.run("TableClassifier", *tables.load_sets(names=["made-few"])["made-few"], 0)
    assert not [record["error"] for record in records if "error" in record]


def test_a_stream_of_a_table_is_read_converted_and_learnt(benchmarks, tmp_path):
    pytest.importorskip("pyarrow")
    from tables_speed import stream, write_stream

    path = tmp_path / "stream.parquet"
    write_stream(path, 2000)
    found = stream(str(path))
    assert list(found) == ["read", "read and convert", "read, convert and learn"]
    assert found["read, convert and learn"] > 0


@pytest.mark.slow
def test_a_stream_of_files_is_killed_and_goes_on(tmp_path):
    pytest.importorskip("pyarrow")
    printed = run(
        "out_of_core.py",
        "--rows",
        20_000,
        "--kills",
        1,
        "--every",
        2,
        "--beside",
        "--folder",
        tmp_path,
    ).splitlines()
    assert [line.split()[-1] for line in printed[-4:-1:2]] == ["20,000", "20,000"]
    assert printed[-1] == printed[-3]  # the model is that of an unbroken run


@pytest.mark.slow
def test_engines_measure_each_way_to_train(tmp_path):
    pytest.importorskip("distributed")
    out = tmp_path / "ways.json"
    run("engines.py", "--ways", "--quick", "--jobs", 1, "--json", out)
    ways = json.loads(out.read_text())["ways"]
    assert [each["way"] for each in ways[:4]][::3] == ["one thread", "partial_fit, one pass"]
    assert all(each["accuracy"] > 0.7 and 0 < each["pass"] <= each["all"] for each in ways)
    assert np.isfinite([each["foretold"] for each in ways]).all()  # so short a pass is mostly noise
    out = tmp_path / "speed.json"
    run("engines.py", "--quick", "--jobs", 1, 2, "--json", out)
    speed = json.loads(out.read_text())["speed"]
    assert [each["n_jobs"] for each in speed] == [1, 2]
    assert speed[0]["share"] == 1.0


def test_a_device_is_held_against_one_core():
    pytest.importorskip("torch")
    printed = run("gpu.py", "--device", "cpu", "--scale", 0.0001, "--only", "numbers-7", "accuracy")
    assert "torch" in printed.splitlines()[0]
    assert "predictions on the CPU differ by" in printed
    assert "1000 x 50 x 7" in printed


def test_the_cost_of_rounds_is_found_from_what_it_explains(benchmarks):
    pytest.importorskip("distributed")
    import rounds

    words, n = 70.0, 1_000_000
    real = rounds.Cost(tau=3e-9, a=0.05, d=0.002, b=4e-9, c=1e-9)
    state = 8.0 * rounds.NUMBERS * rounds.CLASSES * rounds.VOCABULARY
    epoch = real.steps(n, rounds.CLASSES, words, 1) + real.round(1, state)
    fits = [{"workers": 1, "documents": n, "epoch": epoch}]
    overhead = [
        {"workers": workers, "bytes": size, "seconds": real.round(workers, size)}
        for workers in (1, 2)
        for size in (1e3, 1e7, 1e8)
    ]
    found = rounds.find(fits, overhead, real.d / rounds.TASKS, words)
    np.testing.assert_allclose(found, real, rtol=1e-3)
    given = (n, rounds.CLASSES, rounds.VOCABULARY, words)
    assert rounds.predicted(real, *given, 1, 1) == (pytest.approx(epoch), 1)
    counts = [rounds.rounds_of(*given, 2, epoch) for epoch in range(1, 7)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 1
