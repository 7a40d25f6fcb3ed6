"""The results of the full run: verdicts follow from numbers, and pages from verdicts."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pictures need discem[plot]")

from lab import catalogue

from discem._html import to_html
from discem.report.plots import style

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "experiments" / "results"
CLAIMS = json.loads((FOLDER / "toy.json").read_text(encoding="utf-8"))["claims"]

pytestmark = pytest.mark.skipif(
    not all("undecided" in claim for claim in CLAIMS),
    reason="experiments/results are of a run before claims could be open: discem reproduce all",
)


def stored(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def keeps_bounds(evidence):
    low, high = evidence["low"], evidence["high"]
    return (low is None or evidence["value"] >= low) and (high is None or evidence["value"] <= high)


@pytest.mark.parametrize("name", catalogue.ORDER)
def test_verdicts_follow_from_the_numbers_stored(name):
    """The claims are recomputed from the parts' numbers, the verdicts from the claims' evidence."""
    content = stored(name)
    results = {part: each["result"] for part, each in content["parts"].items()}
    with style():
        report = catalogue.load(name).report(results)
    again = json.loads(json.dumps([claim.as_json() for claim in report.claims]))
    assert content["claims"]
    for claim, recomputed in zip(content["claims"], again, strict=True):
        numbers = [each.pop("value") for each in claim["evidence"]]
        assert numbers == pytest.approx([each.pop("value") for each in recomputed["evidence"]])
        assert claim == recomputed
        for each, number in zip(claim["evidence"], numbers, strict=True):
            each["value"] = number
        kept = all(map(keeps_bounds, claim["evidence"]))
        assert claim["holds"] == (kept and not claim["undecided"])
        assert claim["rule"]
        assert claim["evidence"]
    assert content["tables"] == json.loads(json.dumps([each._asdict() for each in report.tables]))


def test_the_run_is_whole_and_one():
    contents = [stored(name) for name in catalogue.ORDER]
    assert {each["command"] for each in contents} == {
        f"discem reproduce {name}" for name in catalogue.ORDER
    }
    assert len({json.dumps(each["versions"]) for each in contents}) == 1
    absent = {each["part"].split("-")[0] for content in contents for each in content["missing"]}
    assert absent <= {"cade"}  # which could not be had


def test_the_page_shows_these_claims():
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    contents = [stored(name) for name in catalogue.ORDER]
    for content in contents:
        for claim in content["claims"]:
            assert to_html(claim["seen"])[1:] in page  # its first letter may be a capital
    papers = [
        claim["holds"]
        for content in contents
        if content["experiment"] in catalogue.OF_PAPER
        for claim in content["claims"]
        if not claim["ours"]
    ]
    assert f"{sum(papers)} of the paper’s {len(papers)} claims agree" in page
    assert len(re.findall('<p class="verdict', page)) >= sum(len(c["claims"]) for c in contents)


def test_the_pages_have_these_figures():
    """``python experiments/pages.py`` writes them."""
    from pages import BLOCKS, PAGES, filled

    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert [filled(text) for text in texts] == texts
    blocks = [name for text in texts for name in re.findall(r"<!-- results: (\w+) -->", text)]
    assert sorted(blocks) == sorted(BLOCKS)
