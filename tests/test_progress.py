"""What is told while a model is trained, and of input that is not what it should be."""

import logging
import re
import warnings

import numpy as np
import pytest

import discem
from discem.exceptions import InputError
from discem.progress import Choosing, Progress

X, Y = np.random.default_rng(0).normal(size=(60, 2)), ["a", "b"] * 30
RECORD = {"loss": 0.5, "accuracy": 0.75}


def told(capsys):
    return capsys.readouterr().err.splitlines()


def test_a_short_fit_says_one_line(capsys):
    model = discem.GaussianNB(verbose=1, random_state=0).fit(X, Y)
    (line,) = told(capsys)
    assert re.fullmatch(r"\d+ epochs in \d\.\d s, converged  loss [\d.]+  accuracy [\d.]+", line)
    assert line.startswith(f"{model.n_iter_} epochs")


def test_each_epoch_is_told_if_asked_for(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        discem.GaussianNB(verbose=2, max_iter=3, random_state=0).fit(X, Y)
    lines = told(capsys)
    assert [line.split("  ")[0] for line in lines[:-1]] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert "all epochs were used" in lines[-1]


def test_no_time_is_told_that_is_none(capsys):
    progress = Progress(2, 10, 100)
    for _ in range(10):
        progress.epoch(RECORD)
    assert not any("left" in line for line in told(capsys))


def test_time_left_is_told_where_it_is_some(capsys, monkeypatch):
    progress = Progress(2, 4, 100)
    progress.begun -= 30.0
    progress.epoch(RECORD)
    (line,) = told(capsys)
    assert line.endswith("at most 90 s left")


def test_nothing_is_said_unless_asked(capsys):
    discem.GaussianNB(random_state=0).fit(X, Y)
    assert told(capsys) == []


def test_the_logger_hears_what_is_not_printed(capsys, caplog):
    with caplog.at_level(logging.INFO, logger="discem"):
        discem.GaussianNB(random_state=0).fit(X, Y)
    assert "converged" in caplog.records[-1].getMessage()
    assert told(capsys) == []


def test_a_terminal_shows_one_bar(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    progress = Progress(1, 4, 100)
    progress.shown -= 1.0
    progress.epoch(RECORD)
    progress.close(converged=False)
    shown = capsys.readouterr().err
    assert "\r\x1b[K[#####...............] epoch 1/4" in shown
    assert shown.count("\n") == 1


def test_a_choice_says_no_time_at_its_end(capsys):
    choosing = Choosing(1, 1)
    choosing.begin()
    choosing.end(0.25)
    choosing.close()
    assert told(capsys) == ["choice: 1 candidate in 0.0 s, best log-loss 0.2500"]


@pytest.mark.parametrize("verbose", [1, 2])
def test_a_choice_says_a_line_for_each_candidate_only_if_asked(capsys, monkeypatch, verbose):
    monkeypatch.setattr("discem.progress._SELDOM", 1e9)  # on a slow machine, too
    discem.TableClassifier(n_components=1, hide=0.0, verbose=verbose, random_state=0).fit(X, Y)
    lines = [line for line in told(capsys) if line.startswith("choice")]
    assert len(lines) == 1 if verbose == 1 else len(lines) > 3
    assert re.search(r"choice: \d+ candidates in [\d.]+ s, best log-loss 0\.\d+$", lines[-1])


# --- messages -------------------------------------------------------------------------------------

ESTIMATORS = [discem.GaussianNB, discem.MultinomialNB, discem.TableClassifier]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_label_for_all_rows(estimator):
    with pytest.raises(InputError, match="got 'a': give one cell for each row"):
        estimator().fit(np.abs(X), "a")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_dimension(estimator):
    with pytest.raises(InputError, match="2D array, got 1D array instead, of 60 cells") as error:
        estimator().fit(X[:, 0], Y)
    assert len(str(error.value)) < 200


def test_one_text():
    with pytest.raises(InputError, match="X is one text, 'good film': expected a list of texts"):
        discem.TextClassifier().fit("good film", ["+"])


def test_names_of_a_class_prior():
    model = discem.GaussianNB(random_state=0).fit(X, Y)
    with pytest.raises(InputError, match=r"has .c., which is no class; the classes are: .*b"):
        model.set_class_prior({"a": 0.5, "c": 0.5})
    with pytest.raises(InputError, match=r"lacks the class 'b'; the classes are: \['a', 'b'\]"):
        model.set_class_prior({"a": 1.0})


def test_a_column_that_is_the_label_in_other_words():
    rows = [
        {"size": float(x), "code": {"a": "no", "b": "yes"}[y]}
        for x, y in zip(X[:, 0], Y, strict=True)
    ]
    with pytest.warns(UserWarning, match="column 'code' tells the class of every row"):
        discem.TableClassifier(random_state=0, max_iter=2).fit(rows, Y)
    rows[0]["code"] = "yes"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        discem.TableClassifier(random_state=0, max_iter=2).fit(rows, Y)
