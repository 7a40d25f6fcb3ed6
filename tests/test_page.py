"""The page of results: the file, and what a reader meets in a browser."""

import json
import re
import shutil

import pytest
from lab.page import ResultsError, build_page
from lab.plots import BY_LOSS, REFERENCE, key, panels
from lab.svg import inline_svg

from discem.report.plots import save_figure, style

NASTY = "<script>alert('no')</script> & \"so on\""


def claim(says, seen, holds, ours=False, undecided=""):
    return {
        "says": says,
        "where": "" if ours else "Section 4.1",
        "ours": ours,
        "rule": "it is above 2 %",
        "choices": "the margin is ours",
        "seen": seen,
        "holds": holds,
        "undecided": undecided,
        "evidence": [],
    }


def result(name, **changes):
    """What an experiment leaves behind."""
    return {
        "experiment": name,
        "title": f"About {name}",
        "paper": "Figure 1",
        "command": f"discem reproduce {name}",
        "versions": {"discem": "1.2.3", "python": "3.11"},
        "seconds": 12.0,
        "pictures": [],
        "claims": [],
        "tables": [],
        "notes": [],
        "missing": [],
        "parts": {},
    } | changes


def write(folder, *results):
    for each in results:
        (folder / f"{each['experiment']}.json").write_text(json.dumps(each))
    return build_page(folder)


def draw(path):
    with style():
        figure, axes = panels(2)
        for place in axes[0]:
            place.plot([0, 1, 2], [3, 1, 0.5], "o-", color=BY_LOSS["ncll"], label="NCLL")
            place.axhline(1, label="SVM", **REFERENCE)
            place.set(title="a title", xlabel="epoch", ylabel="loss")
        key(figure, axes[0, 0])
        save_figure(figure, path)


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    path = tmp_path_factory.mktemp("picture") / "curves.svg"
    draw(path)
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory, curves):
    folder = tmp_path_factory.mktemp("results")
    pictures = {}
    for name in ("toy", "mnb-hinge", "steps"):
        shutil.copy(curves, folder / f"{name}.svg")
        pictures[name] = [{"name": name, "title": "Curves", "alt": "A falling curve."}]
    claims = [
        claim("NCLL is better.", "It is.", True),
        claim(NASTY, "It is not.", False),
        claim("Who knows.", "It may be.", False, undecided="the data could not be had"),
        claim("We add this.", "So it is.", True, ours=True),
    ]
    table = {
        "title": "Accuracy",
        "columns": ["data", "accuracy", "documents"],
        "rows": [["b10", 0.875, 47_000], ["b9", None, 9], ["a", 0.9375, 100]],
        "note": "On the test part.",
    }
    wide = {
        "title": "Many columns",
        "columns": ["method", *(f"data set {n}" for n in range(12))],
        "rows": [["ours", *range(12)], ["a rival with quite a long name", *range(12)]],
        "note": "",
    }
    missing = [{"part": f"r8-{n}", "why": "needs the data set 'r8'"} for n in range(5)]
    return write(
        folder,
        result(
            "steps",
            pictures=pictures["steps"],
            claims=[claim("x", "y", False)],
        ),
        result("toy", pictures=pictures["toy"], title=NASTY, claims=claims, tables=[table, wide]),
        result("mnb-hinge", pictures=pictures["mnb-hinge"], notes=["See `projection`.", "More."]),
        result("lda", missing=missing),
    )


# --- the file -------------------------------------------------------------------------------------


def test_nothing_is_loaded_from_elsewhere(page):
    assert not re.search(r"https?:|//\w|@import|\bsrc=", page.read_text())


def test_text_is_escaped(page):
    html = page.read_text()
    assert "alert(" in html
    assert "<script>alert" not in html


def test_ids_are_unique_and_links_lead_somewhere(page):
    html = page.read_text()
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert {"toy", "mnb-hinge", "lda", "steps", "scoreboard", "toy-claim-2"} <= set(ids)
    assert set(re.findall(r'(?:href="#|url\(#|labelledby=")([^")]+)', html)) <= set(ids)


def test_experiments_come_in_order_and_parts(page):
    heads = re.findall(r"<h[23] id=\"([\w-]+)\"", page.read_text())
    assert heads == [
        "scoreboard-title",
        "the-paper-reproduced",
        "toy-title",
        "mnb-hinge-title",
        "lda-title",
        "beyond-the-paper",
        "steps-title",
    ]


def test_claims_of_the_paper_and_ours_are_told_apart(page):
    html = page.read_text()
    assert "1 of the paper’s 3 claims agree with what we see; 1 cannot be decided here." in html
    assert "? not decidable here" in html and "The data could not be had" in html
    assert "where the paper says nothing or draws no conclusion: 1 of 1 hold" in html
    assert html.count("<dt>The paper says</dt>") == 3
    assert html.count("<dt>Our claim</dt>") == 2
    assert "<dd>We add this.</dd>" in html


def test_what_was_not_run_says_why(page):
    assert "(r8-0, r8-1, r8-2 and 2 more): needs the data set &#x27;r8&#x27;" in page.read_text()


def test_code_in_notes(page):
    assert "<p>See <code>projection</code>.</p>" in page.read_text()


def test_the_same_results_make_the_same_page(page):
    before = page.read_bytes()
    assert build_page(page.parent).read_bytes() == before


def test_the_same_figure_makes_the_same_picture(curves, tmp_path):
    draw(tmp_path / "curves")
    assert (tmp_path / "curves.svg").read_bytes() == curves.read_bytes()


def test_quick_runs_are_called_so(page, tmp_path):
    assert "quick run" not in page.read_text()
    quick = write(tmp_path, result("toy", command="discem reproduce toy --quick"))
    assert "quick run" in quick.read_text()


def test_folder_without_results(tmp_path):
    with pytest.raises(ResultsError, match=r"no results in .*discem reproduce all"):
        build_page(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"experiment": "toy", "runs": []}'])
def test_damaged_results(tmp_path, content):
    (tmp_path / "toy.json").write_text(content)
    with pytest.raises(ResultsError, match=re.escape(str(tmp_path))):
        build_page(tmp_path)


@pytest.mark.parametrize("content", [None, "<svg"])
def test_lost_picture(tmp_path, content):
    picture = {"name": "curve", "title": "Curve", "alt": "A curve."}
    if content:
        (tmp_path / "curve.svg").write_text(content)
    with pytest.raises(ResultsError, match=r"curve\.svg is missing or damaged"):
        write(tmp_path, result("toy", pictures=[picture]))


def test_inline_svg_takes_the_page_s_colours():
    shapes = "".join(
        f'<path style="fill: {c}"/>' for c in ("#000000", "#ffffff", "#aacfe6", "#d55e00")
    )
    svg = inline_svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 1">{shapes}</svg>', "name", "alt"
    )
    shares = re.findall(r"color-mix\(in \w+, (\S+) (\d+)%", svg)
    ink = "var(--ink)"
    assert shares == [(ink, "100"), (ink, "0"), ("#006fb4", "33"), ("#d55e00", "88")]


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture
def view(browser, page):
    """Opens the page; afterwards nothing may have gone wrong on it."""
    troubles, contexts = [], []

    def open_page(width=1280, height=800, scheme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **options
        )
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(5000)
        tab.on("console", lambda message: troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("request", lambda request: request.url != page.as_uri() and troubles.append(request))
        tab.goto(page.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles


def column(tab, n, table=0):
    return (
        tab.locator(".table table")
        .nth(table)
        .locator(f"tbody tr > :nth-child({n})")
        .all_inner_texts()
    )


def colour(tab, value):
    """Red, green and blue (0 to 255) of a CSS colour, as the page shows it."""
    script = """value => {
        const canvas = new OffscreenCanvas(1, 1).getContext("2d");
        const probe = document.body.appendChild(document.createElement("i"));
        probe.style.color = value;
        canvas.fillStyle = getComputedStyle(probe).color;
        probe.remove();
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }"""
    return tab.evaluate(script, value)


def contrast(tab, one, other):
    """Of two colours, as WCAG defines it."""

    def luminance(value):
        parts = (part / 255 for part in colour(tab, value))
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_shown(view, scheme):
    tab = view(scheme=scheme)
    figures = tab.locator(".picture svg")
    assert figures.count() == 3
    for figure in figures.all():
        box = figure.bounding_box()
        assert box["width"] > 700
        assert box["height"] > 150
        ink = figure.locator("text").first.evaluate("each => getComputedStyle(each).fill")
        assert colour(tab, ink) == colour(tab, "var(--ink)")
    assert tab.get_by_role("img", name="A falling curve.").count() == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(view, scheme):
    tab = view(scheme=scheme)
    for text in ("--ink", "--muted", "--accent", "--agrees", "--differs"):
        for ground in ("--paper", "--raised"):
            assert contrast(tab, f"var({text})", f"var({ground})") >= 4.5, (text, ground)


def test_sorting_by_mouse(view):
    tab = view()
    accuracy = tab.get_by_role("button", name="accuracy", exact=True)
    accuracy.click()
    assert column(tab, 2) == ["0.8750", "0.9375", "–"]
    accuracy.click()
    assert column(tab, 2) == ["0.9375", "0.8750", "–"]
    header = tab.get_by_role("columnheader", name="accuracy", exact=True)
    assert header.get_attribute("aria-sort") == "descending"
    tab.get_by_role("button", name="documents").click()
    assert column(tab, 3) == ["9", "100", "47\u202f000"]
    assert header.get_attribute("aria-sort") is None


def test_sorting_by_keyboard(view):
    tab = view()
    tab.get_by_role("button", name="data", exact=True).focus()
    tab.keyboard.press("Enter")
    assert column(tab, 1) == ["a", "b9", "b10"]
    tab.keyboard.press("Space")
    assert column(tab, 1) == ["b10", "b9", "a"]


def test_theme_is_switched_and_remembered(view):
    tab = view(scheme="light")
    button = tab.get_by_role("button", name="Dark theme")
    light = colour(tab, "var(--paper)")
    button.click()
    dark = colour(tab, "var(--paper)")
    assert sum(dark) < 150 < sum(light)
    assert tab.evaluate("localStorage.getItem('discem-theme')") == "dark"
    # Chromium loses what three in a hundred fresh contexts store for a file, so it is given again.
    tab.context.add_init_script("localStorage.setItem('discem-theme', 'dark')")
    tab.reload()
    assert colour(tab, "var(--paper)") == dark
    assert button.get_attribute("aria-pressed") == "true"


def test_without_storage_the_theme_can_still_be_switched(view):
    tab = view()
    tab.context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('forbidden') }})"
    )
    tab.reload()
    tab.get_by_role("button", name="Dark theme").click()
    assert sum(colour(tab, "var(--paper)")) < 150


def test_figures_can_be_enlarged(view):
    tab = view()
    svg, dialog = tab.locator("svg").first, tab.get_by_role("dialog")
    before = svg.bounding_box()["width"]
    button = tab.get_by_role("button", name="Enlarge: Curves").first
    button.focus()
    tab.keyboard.press("Enter")
    assert dialog.is_visible()
    assert dialog.locator("svg").bounding_box()["width"] > before
    tab.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert button.evaluate("each => each === document.activeElement")
    svg.click()
    assert dialog.is_visible()
    dialog.get_by_role("button", name="Close").click()
    assert svg.bounding_box()["width"] == before


@pytest.mark.parametrize("width", [390, 1440])
def test_claims_stand_in_a_table_with_all_that_judges_them(view, width):
    tab = view(width=width)
    rows = tab.get_by_role("table", name="Claims of the paper").locator("tbody tr")
    assert rows.count() == 3
    first = rows.first
    for text in ("NCLL is better.", "Section 4.1", "It is.", "agrees", "It is above 2 %"):
        assert first.get_by_text(text, exact=False).first.is_visible()
    assert first.get_by_text("The margin is ours").is_visible()
    link, verdict = first.locator("a").bounding_box(), first.locator(".verdict").bounding_box()
    stacked = verdict["y"] > link["y"] + link["height"] - 1
    assert stacked == (width == 390)
    if stacked:  # each line is named, and the statement has the whole width
        assert first.locator("th").bounding_box()["width"] > 340
        named = "each => getComputedStyle(each, '::before').content"
        assert first.locator("td").first.evaluate(named) == '"Where"'
    assert tab.get_by_role("table", name="Our claims").locator("tbody tr").count() == 1


def test_on_a_phone_only_boxes_scroll_sideways(view):
    tab = view(width=390, height=844, has_touch=True)
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    figure = tab.locator(".picture .scroll").first
    assert figure.evaluate("box => box.scrollWidth > box.clientWidth && box.tabIndex === 0")
    wide = tab.locator(".table").nth(1)
    left = wide.locator("tbody th").first.bounding_box()["x"]
    assert wide.evaluate("box => (box.scrollLeft = 300, box.scrollLeft)") == 300
    assert wide.locator("tbody th").first.bounding_box()["x"] == left


def test_keyboard_reaches_the_results_first(view):
    tab = view()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the results"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"


def test_readable_without_scripts(view):
    tab = view(java_script_enabled=False)
    assert tab.locator(".picture svg").first.bounding_box()["width"] > 700
    assert not tab.get_by_text("Enlarge", exact=True).first.is_visible()
