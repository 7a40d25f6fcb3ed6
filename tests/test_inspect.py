"""The page of a model: what is in it, and what a reader meets in a browser."""

import json
import re
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs discem[cli]")

from scipy.sparse import random as random_counts
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import discem
from discem.datasets import customers, docstrings
from discem.report.inspection import model_page
from discem.report.inspection.panels import masses

NASTY = "<script>alert('no')</script>"
FEW = {"random_state": 0, "max_iter": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of each kind, and files of data."""
    folder = tmp_path_factory.mktemp("models")
    rows, y = customers(400, random_state=0)
    rows = [row | {NASTY: i % 3} for i, row in enumerate(rows)]
    texts, labels = docstrings(max_per_library=30)
    X, iris = load_iris(return_X_y=True)
    counts = random_counts(300, 90, 0.2, "csr", rng=0)
    counts.data = np.ceil(5 * counts.data)
    several = np.arange(300) % 5
    models = {
        "table": discem.TableClassifier(**FEW).fit(rows[:250], y[:250]),
        "bayes": discem.NaiveBayes(**FEW).fit(rows, y),
        "text": discem.TextClassifier(random_state=0).fit(texts, labels),
        "topics": discem.TopicClassifier(2, text=True, **FEW).fit(texts, labels),
        "numbers": discem.GaussianNB(**FEW).fit(X, iris),
        "correlated": discem.GaussianClassifier(**FEW).fit(X, iris),
        "counts": discem.MultinomialNB(**FEW).fit(counts, several),
        "mixed": discem.MixtureClassifier(2, **FEW).fit(X, iris),
        "mixed-words": discem.MixtureClassifier(2, **FEW).fit(counts, several),
        "hashed": discem.TextClassifier(n_features=64, **FEW).fit(texts, labels),
    }
    stream = discem.TableClassifier()
    models["stream"] = stream.partial_fit(rows[:200], y[:200]).partial_fit(rows[200:], y[200:])
    for name, model in models.items():
        model.save(folder / f"{name}.skops")
    lines = [json.dumps({"text": t, "label": z}) for t, z in zip(texts, labels, strict=True)]
    (folder / "texts.jsonl").write_text("\n".join(lines))
    lines = [
        json.dumps(row | {"outcome": label}, default=str)
        for row, label in zip(rows[250:], y[250:], strict=True)
    ]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    header = "a,b,c,d,kind\n"
    table = [",".join(map(str, [*row, label])) for row, label in zip(X, iris, strict=True)]
    (folder / "iris.csv").write_text(header + "\n".join(table))
    return folder


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KINDS = ["table", "bayes", "text", "topics", "numbers", "correlated", "counts", "mixed"]
KINDS += ["mixed-words", "hashed", "stream"]
DATA = {
    "table": ["rows.jsonl", "--target", "outcome"],
    "text": ["texts.jsonl"],
    "topics": ["texts.jsonl"],
    "numbers": ["iris.csv", "--target", "kind"],
}


def made(run, folder, name, *more):
    result = run("inspect", folder / f"{name}.skops", *more)
    assert result.exit_code == 0, result.output
    return result.stdout


def data_of(folder, name):
    file, *more = DATA[name]
    return "--data", folder / file, *more


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_model_has_a_page(run, folder, name):
    page = made(run, folder, name)
    assert {"summary", "training", "classes", "settings"} <= set(
        re.findall(r'<section id="(\w+)', page)
    )
    assert not re.search(r"https?:|//\w|@import|\bsrc=", page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|labelledby=")([^"]+)', page)) <= set(ids)
    assert page == made(run, folder, name)
    model = discem.load(folder / f"{name}.skops")
    for label in model.classes_.tolist():
        assert f">{label}<" in page


@pytest.mark.parametrize("name", DATA)
def test_data_is_judged_as_score_judges_it(run, folder, name):
    page = made(run, folder, name, *data_of(folder, name))
    model = discem.load(folder / f"{name}.skops")
    file = folder / DATA[name][0]
    if name == "numbers":
        X, y = load_iris(return_X_y=True)
    else:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        y = [row.pop("outcome", None) or row.pop("label", None) for row in rows]
        X = [row["text"] for row in rows] if "text" in rows[0] else rows
    if name == "table":
        X = [row | {"since": np.datetime64(row.get("since", "NaT"))} for row in X]
    score = 100 * model.score(X, y)
    assert f"<dt>accuracy</dt><dd>{score:.1f}\N{NO-BREAK SPACE}%</dd>" in page
    assert "The least certain" in page
    assert ("The strangest" in page) and 'class="confusion"' in page


def test_labels_are_not_needed(run, folder, tmp_path):
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    (tmp_path / "new.jsonl").write_text("\n".join(json.dumps(row) for row in rows[:20]))
    page = made(run, folder, "table", "--data", tmp_path / "new.jsonl")
    assert "nothing can be said of the accuracy" in page
    assert "The strangest rows" in page and "The most certain mistakes" not in page


def test_the_most_certain_mistake_comes_first(run, folder):
    page = made(run, folder, "table", *data_of(folder, "table"))
    part = page.split("The most certain mistakes")[1].split("<h3>")[0]
    sure = [float(each) for each in re.findall(r"\(([\d.]+)\N{NO-BREAK SPACE}%\)", part)]
    assert len(sure) > 3 and sure == sorted(sure, reverse=True)


def test_text_of_the_model_is_escaped(run, folder):
    page = made(run, folder, "table", *data_of(folder, "table"))
    assert "alert(" in page and NASTY not in page


def test_what_a_page_says_of_two_classes_is_their_divergence(folder):
    """By Jensen and Shannon, in thousandths of a bit, of a flag: 0.9 and 0.2."""
    rows = [{"flag": i % 10 < 9} for i in range(200)] + [{"flag": i % 10 < 2} for i in range(200)]
    model = discem.NaiveBayes(loss="nll").fit(rows, ["a"] * 200 + ["b"] * 200)
    (told,) = re.findall(r'data-pairs="(\d+)"', model_page(model, "flags"))
    from discem.estimators._beliefs import beliefs

    p, q = masses(beliefs(model)[0])
    middle = (p + q) / 2
    expected = 500 * float((p * np.log2(p / middle) + q * np.log2(q / middle)).sum())
    assert abs(int(told) - expected) <= 0.5
    assert 350 < expected < 450


def test_what_is_no_classifier_is_refused(bad, tmp_path):
    rows = [{"size": float(i % 2), "sort": "ab"[i % 2]} for i in range(60)]
    discem.TableImputer(random_state=0).fit(rows).save(tmp_path / "imputer.skops")
    assert "TableImputer, which is no classifier" in bad("inspect", tmp_path / "imputer.skops")


def test_options_of_data_need_data(bad, folder):
    assert "--target goes with --data" in bad("inspect", folder / "table.skops", "--target", "y")


def test_the_model_is_not_overwritten(bad, folder):
    path = folder / "numbers.skops"
    assert "one of the files that are read" in bad("inspect", path, "-o", path)


def test_columns_that_do_not_fit_are_named(bad, folder, tmp_path):
    (tmp_path / "few.csv").write_text("a,b\n1,2\n")
    told = bad("inspect", folder / "numbers.skops", "--data", tmp_path / "few.csv")
    assert "takes 4 columns, and there are 2" in told


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture
def view(browser, run, folder, tmp_path):
    """Opens the page of a model; afterwards nothing may have gone wrong on it."""
    troubles, contexts = [], []

    def open_page(name, *more, width=1280, scheme="light", **options):
        path = tmp_path / "page.html"
        made(run, folder, name, *more, "-o", path)
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, color_scheme=scheme, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(5000)
        tab.on("console", lambda message: troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("request", lambda request: request.url != path.as_uri() and troubles.append(request))
        tab.goto(path.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles


def titles(tab):
    return tab.locator(".panel b").all_inner_texts()


def test_two_classes_are_compared_from_the_keyboard(view, folder):
    tab = view("numbers")
    first = titles(tab)
    assert tab.locator("#every").get_attribute("aria-pressed") == "true"
    tab.locator("#one").focus()
    tab.keyboard.press("ArrowDown")  # versicolor
    tab.locator("#other").focus()
    tab.keyboard.press("ArrowDown")  # virginica
    assert tab.locator("#every").get_attribute("aria-pressed") == "false"
    assert tab.locator(".panel").first.locator("path:visible").count() == 2
    shown = [float(each.split()[0]) for each in tab.locator(".tells").all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    tab.locator("#every").focus()
    tab.keyboard.press("Enter")
    assert tab.locator(".panel").first.locator("path:visible").count() == 3
    assert titles(tab) == first


def test_the_words_of_a_pair_are_those_of_python(view, folder):
    tab = view("text")
    model = discem.load(folder / "text.skops")
    log_p, words = model._words()
    one, other = 1, 3
    tab.locator("#one").select_option(str(one))
    tab.locator("#other").select_option(str(other))
    shown = tab.locator(".card.pair").first.locator("li span").all_inner_texts()
    score = np.exp(log_p[one]) * (log_p[one] - log_p[other])
    best = [words[j] for j in np.argsort(-score, kind="stable")[: len(shown)]]
    assert len(shown) > 5
    by_word = dict(zip(words, score, strict=True))
    assert len(set(shown) & set(best)) >= len(best) - 1  # ln p has three decimals on the page
    assert np.allclose([by_word[w] for w in shown], [by_word[w] for w in best], rtol=0.01)
    assert tab.locator(".card:visible").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_table_on_a_phone(view, folder, scheme):
    tab = view("table", *data_of(folder, "table"), width=390, scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 150) == (scheme == "dark")


def test_readable_without_scripts(view):
    tab = view("numbers", java_script_enabled=False)
    assert tab.locator(".panel path:visible").count() == 12
    assert not tab.locator("#compare").is_visible()


def test_a_page_of_very_many_words_is_small_and_opens_soon(browser, tmp_path):
    """54 000 words and 20 classes: below 3 MB, and there in 2 s."""
    rng = np.random.default_rng(0)
    counts = random_counts(2000, 54_000, 0.002, "csr", rng=0)
    counts.data = np.ceil(5 * counts.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = discem.MultinomialNB(loss="nll").fit(counts, rng.integers(0, 20, 2000))
    path = tmp_path / "large.html"
    path.write_text(model_page(model, "large"), encoding="utf-8")
    assert path.stat().st_size < 3e6
    tab = browser.new_page()
    begun = time.process_time(), time.monotonic()
    tab.goto(path.as_uri())
    tab.locator("#every").wait_for()
    tab.locator("#other").select_option("7")
    assert tab.locator(".card.pair").count() == 2
    assert time.monotonic() - begun[1] < 2.0
    tab.close()
