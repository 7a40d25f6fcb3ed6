"""SGD and what goes beyond the paper: the rules that choose, the figures that claims rest on."""

import json

import numpy as np
import pytest
from lab import catalogue, study

NAMES = ("sgd", "steps", "tables", "missing", "text")


@pytest.fixture
def reviews(tmp_path, monkeypatch):
    """Two classes that share most words, as a data set of its own."""
    rng = np.random.default_rng(0)
    for part, n in (("train", 300), ("test", 100)):
        lines = []
        for i in range(n):
            label = ("neg", "pos")[i % 2]
            words = [*rng.choice(["the", "film", "is"], 6), *rng.choice([label, "so"], 3)]
            lines.append(f"{label}\t{' '.join(words)}\n")
        (tmp_path / "films").mkdir(exist_ok=True)
        (tmp_path / "films" / f"{part}.txt").write_text("".join(lines))
    monkeypatch.setenv("DISCEM_DATA", str(tmp_path))
    return tmp_path / "films"


@pytest.fixture
def sgd():
    module = catalogue.load("sgd")
    module.counts.cache_clear()
    return module


@pytest.mark.parametrize("name", NAMES)
def test_nothing_done_is_nothing_said(name):
    report = catalogue.load(name).report({})
    assert not (report.pictures or report.claims or report.tables)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quick", [True, False])
def test_parts_have_names_of_their_own_and_settings_that_json_holds(name, quick):
    parts = catalogue.load(name).parts(study.Plan(quick=quick))
    assert len({part.name for part in parts}) == len(parts)
    for part in parts:
        assert json.loads(json.dumps(part.settings)) == part.settings
        assert "/" not in part.name


# --- sgd ------------------------------------------------------------------------------------------


def test_sgd_takes_the_split_that_is_given(sgd, reviews):
    X, _, X_test, _ = sgd.counts("films", None)
    assert (X.shape[0], X_test.shape[0]) == (300, 100)
    np.savetxt(reviews / "heldout3000.txt", [0, 1, 399], fmt="%d")
    sgd.counts.cache_clear()
    X, _, X_test, y_test = sgd.counts("films", None)
    assert (X.shape[0], X_test.shape[0]) == (397, 3)
    assert y_test.tolist() == ["neg", "pos", "pos"]


def test_sgd_steps_are_those_of_the_paper(sgd, reviews, monkeypatch):
    steps = []

    class Spy(sgd.SGDClassifier):
        def partial_fit(self, X, y, classes):
            steps.append(self.eta0)
            assert self.alpha == 1e-4
            return super().partial_fit(X, y, classes)

    monkeypatch.setattr(sgd, "SGDClassifier", Spy)
    monkeypatch.setattr(sgd, "ROWS", 1)
    sgd.descend(*sgd.counts("films", None), "ncll", 0.5, 2, 0)
    t = np.arange(600) + 0.5
    assert steps == pytest.approx(0.5 / (1 + 0.5 * 1e-4 * t))


@pytest.mark.parametrize("method", ["sgd", "P1", "P2"])
def test_sgd_learns_what_there_is_to_learn(sgd, reviews, method):
    result = sgd.train("films", None, method, "ncll", 3, 0)
    accuracy = np.array([run["accuracy"] for run in result["runs"]])
    assert accuracy.shape == (len(sgd.LAMBDAS), 3)
    assert accuracy.max() > 0.85  # one document in eight has no word of its label
    assert max(run["first"] for run in result["runs"]) > 0.7


@pytest.mark.parametrize("method", ["sgd", "P1"])
def test_sgd_gives_the_same_figures_for_the_same_seed(sgd, reviews, method):
    np.random.seed(0)  # noqa: NPY002  others' random numbers have no say
    one = sgd.train("films", None, method, "hinge", 2, 0)
    np.random.seed(1)  # noqa: NPY002
    assert sgd.train("films", None, method, "hinge", 2, 0) == one


def runs_of(first, accuracy):
    return [{"first": f, "accuracy": a} for f, a in zip(first, accuracy, strict=True)]


def test_sgd_shows_five_lambdas_that_training_documents_chose(sgd):
    first = [0.5, 0.6, 0.7, 0.8, 0.7, 0.6, 0.5, 0.5]  # best in the middle
    accuracy = [[0.99, 0.99]] * 1 + [[0.7, 0.8]] * 6 + [[0.99, 0.99]]  # the test says: the ends
    found = sgd.shown({"runs": runs_of(first, accuracy)})
    assert found["lambdas"] == sgd.LAMBDAS[1:6]
    assert found["best"] == 0.8


def test_sgd_counts_epochs_until_one_lambda_is_near_the_best(sgd):
    accuracy = [[0.5, 0.5, 0.5]] * 8
    accuracy[0], accuracy[1] = [0.7, 0.796, 0.79], [0.6, 0.7, 0.8]
    found = sgd.shown({"runs": runs_of([0.9] * 5 + [0.5] * 3, accuracy)})
    assert found["arrival"] == 2
    assert found["arrive"] == 2
    assert found["ends"] == [each[-1] for each in accuracy]


def right(share):
    return catalogue.load("accuracy").mnb.packed(np.arange(1000) < round(1000 * share))


def sgd_results(sgd, quick, ends=0.8, line=0.8):
    """`quick` methods are right from the first epoch, others from the third."""
    lines = {name: {"accuracy": line} | right(line) for name in sgd.LINES}
    results = {"lines": {"data": "imdb", "words": 9, "lines": lines}}
    for method in sgd.METHODS:
        curve = [ends] * 3 if method in quick else [0.6, 0.6, ends]
        for loss in ("ncll", "hinge"):
            runs = [run | right(ends) for run in runs_of([0.7] * 8, [curve] * 8)]
            results[f"{method}-{loss}"] = {
                "data": "imdb", "method": method, "loss": loss, "seed": 0, "runs": runs,
            }  # fmt: skip
    return results


def test_sgd_claims_follow_the_figures(sgd):
    with study.style():
        for quick, expected in ((("P1", "P2"), True), (("sgd",), False)):
            report = sgd.report(sgd_results(sgd, quick))
            assert not any(claim.where for claim in report.claims)  # the paper concludes nothing
            holds = [claim.holds() for claim in report.claims]
            assert holds == [True, True, expected, expected, True]  # all end alike
            assert len(report.pictures) == 2


@pytest.mark.parametrize("line, holds", [(0.81, True), (0.83, False), (0.77, False)])
def test_sgd_closeness_is_judged_at_one_lambda_and_either_way(sgd, line, holds):
    results = sgd_results(sgd, ("P1", "P2"), line=line)
    for each in results.values():  # no other lambda has a say
        for place, run in enumerate(each.get("runs", ())):
            if place != sgd.JUDGED:
                run |= {"accuracy": [0.5] * 3} | right(0.5)
    with study.style():
        claims = sgd.report(results).claims[:2]
    assert [claim.holds() for claim in claims] == [holds, holds]


# --- steps ----------------------------------------------------------------------------------------


def test_steps_inside_survive_what_check_steps_do_not():
    steps = catalogue.load("steps")
    results = {loss: steps.train("wine", loss, True, 0) for loss in ("ncll", "hinge")}
    for result in results.values():
        least = {way: min(run["accuracy"]) for way, run in result["runs"].items()}
        assert least[steps.CHECK] < 0.6 < 0.85 < least[steps.INTERIOR]
        assert all(all(run["finite"]) for run in result["runs"].values())
    with study.style():
        report = steps.report(results)
    assert all(claim.holds() for claim in report.claims)
    swapped = {  # were it the other way round, it would be said
        loss: result
        | {"runs": dict(zip(steps.WAYS, reversed(result["runs"].values()), strict=True))}
        for loss, result in results.items()
    }
    with study.style():
        assert not any(claim.holds() for claim in steps.report(swapped).claims)


# --- benchmarks -----------------------------------------------------------------------------------


def test_without_benchmarks_there_is_a_reason(monkeypatch, tmp_path):
    tables = catalogue.load("tables")
    monkeypatch.setattr(tables, "__file__", str(tmp_path / "experiments" / "tables.py"))
    with pytest.raises(study.NotPossibleError, match="clone of the repository"):
        tables.benchmark("tabular.py")


def test_a_benchmark_that_fails_says_why():
    with pytest.raises(RuntimeError, match="unrecognized arguments"):
        catalogue.load("tables").benchmark("tabular.py", "--no-such-option")


def test_tables_are_measured_and_reported():
    tables = catalogue.load("tables")
    result = tables.measure("wine", splits=1, boosting=False)
    assert result["versions"]["discem"]
    with study.style():
        report = tables.report({"wine": result})
    accuracies = {row[1]: row[2] for row in report.tables[0].rows}
    assert accuracies[tables.NCLL] > 95
    for each in result["results"]:
        if each["method"] == tables.NCLL:
            each["splits"][0]["accuracy"] = 0.5  # claims are no decoration
    with study.style():
        holds = {claim.says: claim.holds() for claim in tables.report({"wine": result}).claims}
    assert not holds["NCLL training is more accurate than naive Bayes"]


def missing_results(accuracy):
    shares = [tenth / 10 for tenth in range(10)]
    results = [
        {
            "data": "wine",
            "method": method,
            "splits": [
                {
                    "accuracy": [value] * 10,
                    "log_loss": [0.1] * 10,
                    "seconds": 1.0,
                    "predict_ms": 1.0,
                }
            ],
        }
        for method, value in accuracy.items()
    ]
    return {"wine": {"settings": {"shares": shares}, "results": results}}


def test_missing_names_the_best_rival():
    missing = catalogue.load("missing")
    accuracy = {"discem nll": 0.8, "discem ncll": 0.7, "discem ncll, holes": 0.85}
    accuracy |= {"mean + LR, holes": 0.6, "kNN + LR": 0.9}
    with study.style():
        claims = missing.report(missing_results(accuracy)).claims
        better = missing.report(missing_results(accuracy | {"kNN + LR": 0.5})).claims
    assert [claim.holds() for claim in claims] == [True, True, True, False]
    assert "wine (kNN + LR) -5.0" in claims[-1].seen()
    assert better[-1].holds()


def text_results(accuracy):
    return {
        "r8": {
            "results": [
                {"data": "r8", "method": "counts/vw-10", "runs": [], "reason": "is not installed"}
            ]
            + [
                {
                    "data": "r8",
                    "method": method,
                    "runs": [
                        {"accuracy": value, "log_loss": None if "svc" in method else 0.1}
                        | {"fit": 1.0, "words": 1.0, "predict": 0.1}
                    ],
                }
                for method, value in accuracy.items()
            ]
        }
    }


def test_text_compares_with_the_svm_and_names_who_is_absent():
    text = catalogue.load("text")
    accuracy = {"text": 0.95, "tfidf/linear-svc": 0.94, "counts/mnb": 0.9}
    with study.style():
        report = text.report(text_results(accuracy))
        worse = text.report(text_results(accuracy | {"text": 0.93}))
    assert [claim.holds() for claim in report.claims] == [True, True]  # no logistic regression here
    assert [claim.holds() for claim in worse.claims] == [False, True]
    assert "Vowpal Wabbit" in report.notes[-1]
    assert report.tables[0].rows[1][4] is None  # an SVM has no log-loss
