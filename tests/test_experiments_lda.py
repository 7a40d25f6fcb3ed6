"""The experiments with topics: what they measure, and what they conclude from it."""

import sys

import numpy as np
import pytest
from lab import catalogue, study
from scipy.special import logsumexp

from discem import TopicClassifier
from discem.paper import topics

lda, losses = catalogue.load("lda"), catalogue.load("lda-losses")
QUICK = study.Plan(quick=True)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Two classes of two kinds of documents each, and an empty one, as `webkb`."""
    rng = np.random.default_rng(0)
    kinds = [[f"{a}{i}" for i in range(5)] for a in "abcd"]
    (tmp_path / "webkb").mkdir()
    for subset, n in (("train", 60), ("test", 30)):
        lines = [f"{'xy'[k // 2]}\t{' '.join(rng.choice(kinds[k], 12))}" for k in [0, 1, 2, 3] * n]
        (tmp_path / "webkb" / f"{subset}.txt").write_text("\n".join([*lines, "x\t", ""]))
    monkeypatch.setenv("DISCEM_DATA", str(tmp_path))
    lda.counts.cache_clear()
    yield
    lda.counts.cache_clear()


@pytest.mark.parametrize("way", lda.WAYS)
def test_accuracy_after_each_epoch(data, way):
    run = {"way": way, "data": "webkb", "loss": "ncll", "seed": 0, "losses": False}
    result = lda.train(epochs=3, **run)
    assert len(result["accuracy"]) == 3
    assert result["accuracy"][-1] > 0.98
    assert result["accuracy"][:1] == lda.train(epochs=1, **run)["accuracy"]


@pytest.mark.parametrize("way", lda.WAYS)
def test_losses_are_of_the_model_at_the_end_of_an_epoch(data, way):
    result = lda.train(way=way, data="webkb", loss="ncll", epochs=2, seed=0, losses=True)
    assert {len(result[name]) for name in losses.FIGURES} == {3}
    X, y, *_ = lda.counts("webkb")
    if way == "discem":
        model = TopicClassifier(loss="ncll", max_iter=2, tol=None, random_state=0).fit(X, y)
        joint = model.predict_joint_log_proba(X)
    else:
        model = topics.train(X, y, loss="ncll", lam=lda.LAMBDA["ncll"], epochs=2, seed=0)
        joint = model.scores(X)
    evidence = logsumexp(joint, axis=1)
    own = joint[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    others = np.where(np.arange(2) == np.searchsorted(model.classes_, y)[:, None], -np.inf, joint)
    hinge = np.maximum(0.0, 1.0 - own + others.max(axis=1)).mean()
    assert result["ncll"][-1] == pytest.approx((evidence - own).mean())
    assert result["hinge"][-1] == pytest.approx(hinge)
    perplexity = np.exp(-evidence.sum() / X.sum())
    assert result["perplexity"][-1] == pytest.approx(perplexity)
    if way == "paper":  # where all classes and words are alike
        assert result["ncll"][0] == pytest.approx(np.log(2), rel=0.02)
        assert result["perplexity"][0] == pytest.approx(20, rel=0.02)


def test_supervised_lda(data, monkeypatch):
    pytest.importorskip("tomotopy", reason="a peer: pip install tomotopy")
    monkeypatch.setattr(lda, "SLDA_SWEEPS", 50)
    result = lda.supervised_lda("webkb", topics=50, seed=0)
    assert result["accuracy"] > 0.95
    assert (result["way"], result["data"]) == ("slda-50", "webkb")


def test_without_tomotopy(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "tomotopy", None)
    with pytest.raises(study.NotPossibleError, match="pip install tomotopy"):
        lda.supervised_lda("webkb", topics=50, seed=0)


@pytest.mark.parametrize("script", [lda, losses])
def test_parts(script):
    full, quick = script.parts(study.Plan()), script.parts(QUICK)
    assert len({part.name for part in full}) == len(full)
    assert {part.data for part in full} == {("r8",), ("webkb",)}
    assert {part.data for part in quick} == {("webkb",)}
    assert sum(part.cost for part in quick) < sum(part.cost for part in full) / 20
    per_seed = len(script.parts(study.Plan(seeds=2))) - len(script.parts(study.Plan(seeds=1)))
    others = 2 * 2 * 2 + 2 * 3 if script is lda else 0  # lambdas, and supervised LDA
    assert per_seed == 2 * 2 * 3 + others  # ways, sets, losses


def test_both_experiments_train_the_same_models_and_once():
    trained = {part.name: part for part in lda.parts(study.Plan())}
    for part in losses.parts(study.Plan()):
        assert trained[part.name] == part


def test_lambda_is_the_only_one_that_the_paper_prints_for_text():
    from multinomial import LAMBDA

    for loss in ("ncll", "hinge"):
        assert lda.lambda_of("paper", loss) == LAMBDA


def accuracies(nll, ncll, hinge, slda=0.8):
    """Results of `lda`: accuracies of the last epoch on WebKB, by the paper's algorithm."""
    found = {"nll": nll, "ncll": ncll, "hinge": hinge}
    runs = {
        f"{loss}-{seed}": {"way": "paper", "data": "webkb", "loss": loss, "accuracy": [0.5, a + e]}
        for loss, a in found.items()
        for seed, e in enumerate((-0.01, 0.01))
    }
    return runs | {"slda": {"way": "slda-50", "data": "webkb", "accuracy": slda}}


@pytest.mark.parametrize(
    "results, holds",
    [
        (accuracies(0.85, 0.86, 0.87), [True, True]),
        (accuracies(0.85, 0.86, 0.84), [True, False]),
        (accuracies(0.85, 0.86, 0.8505), [True, False]),  # half of a tenth of a point
        (accuracies(0.85, 0.86, 0.87, slda=0.865), [False, True]),
        (accuracies(0.78, 0.79, 0.80, slda=0.7), [False, True]),  # class-slda has 0.808
    ],
)
def test_claims_on_accuracy(results, holds):
    report = lda.report(results)
    assert [claim.holds() for claim in report.claims] == holds
    assert [bool(claim.where) for claim in report.claims] == [True, False]  # the paper's, ours
    assert len(report.pictures) == 1
    rows = {row[1]: row[2:] for row in report.tables[0].rows}
    mean, low, high, starts = rows["NCLL-LDA, the paper's algorithm"]
    assert low < mean < high
    assert starts == 2


@pytest.mark.parametrize("fewer, worse", [((0.79, 0.7), True), ((0.81, 0.7), False)])
def test_fewer_topics_are_judged_one_by_one(fewer, worse):
    results = accuracies(0.85, 0.86, 0.87) | {
        f"slda-{topics}": {"way": f"slda-{topics}", "data": "webkb", "accuracy": accuracy}
        for topics, accuracy in zip(lda.FEWER_TOPICS, fewer, strict=True)
    }
    claim = lda.report(results).claims[-1]
    assert (claim.says, claim.holds()) == ("Supervised LDA with fewer topics is worse", worse)


def curves(nll=(1.0, 0.9, 0.8), own=(1.0, 0.5, 0.1), before=1000.0, after=1050.0, low=800.0):
    """Results of `lda-losses`, where discriminative training moves perplexity so."""
    one = {"way": "paper", "data": "r8"}
    generative = {"loss": "nll", "ncll": nll, "hinge": nll, "perplexity": (2000.0, 900.0, low)}
    trained = {"ncll": own, "hinge": own, "perplexity": (2000.0, before, after)}
    return {"nll": one | generative} | {
        loss: one | {"loss": loss} | trained for loss in ("ncll", "hinge")
    }


@pytest.mark.parametrize(
    "results, holds",
    [
        (curves(), [True, True]),
        (curves(after=990.0), [True, True]),  # a change of 1 % is none
        (curves(after=970.0), [False, True]),
        (curves(low=890.0), [False, True]),  # NLL-LDA has to lower it
        (curves(before=805.0, after=810.0), [False, True]),  # too near to NLL-LDA's
        (curves(nll=(1.0, 0.9, 1.1)), [True, False]),
        (curves(own=(1.0, 0.5, 0.85)), [True, False]),
    ],
)
def test_claims_on_losses(results, holds):
    report = losses.report(results)
    assert [claim.holds() for claim in report.claims] == holds
    assert [picture.name for picture in report.pictures] == ["lda-losses-paper"]


@pytest.mark.parametrize("script", [lda, losses])
def test_nothing_done(script):
    report = script.report({})
    assert not report.claims
    assert not report.pictures
    assert not report.tables[0].rows
