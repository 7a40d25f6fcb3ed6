"""One page that shows what the experiments found: a single file, to be read anywhere.

The same results give the same page, byte for byte.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any
from xml.etree.ElementTree import ParseError

from discem._html import sentence, sortable_table, to_html
from discem.exceptions import DiscemError
from discem.io.files import write_atomically
from discem.report.assets import asset

from .catalogue import OF_PAPER, ORDER
from .svg import inline_svg

Result = dict[str, Any]
VERDICTS = {"agrees": "✓ agrees", "differs": "✗ differs", "undecided": "? not decidable here"}


class ResultsError(DiscemError, ValueError):
    """A folder that has no results of experiments, or damaged ones."""


def build_page(folder: str | os.PathLike[str]) -> Path:
    """Write ``index.html`` from the results in a folder.

    Parameters
    ----------
    folder : path
        Where `lab.study.run` left its results and pictures.

    Returns
    -------
    Path
        The page: everything is in it, nothing is loaded from elsewhere.

    Raises
    ------
    ResultsError
        If there is no result, or one that cannot be read.
    """
    folder = Path(folder)
    results = {name: _read(path) for name in ORDER if (path := folder / f"{name}.json").exists()}
    if not results:
        raise ResultsError(f"no results in {folder}: run `discem reproduce all` first")
    try:
        page = _page(folder, results)
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultsError(
            f"the results in {folder} are not those of this version ({error!r}): "
            "run `discem reproduce all` again"
        ) from error
    path = folder / "index.html"
    with write_atomically(path) as file:
        file.write(page)
    return path


def _read(path: Path) -> Result:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultsError(f"{path} is damaged ({error}): delete it, and run it again") from error


def _page(folder: Path, results: dict[str, Result]) -> str:
    of_paper = [result for name, result in results.items() if name in OF_PAPER]
    beyond = [result for name, result in results.items() if name not in OF_PAPER]
    parts = {"The paper, reproduced": of_paper, "Beyond the paper": beyond}
    parts = {title: members for title, members in parts.items() if members}
    return Template(_own("page.html")).substitute(
        css=asset("page.css") + _own("results.css"),
        script=asset("page.js") + _own("results.js"),
        version=escape(next(iter(results.values()))["versions"]["discem"]),
        notice=_notice(results),
        contents=_contents(parts),
        scoreboard=_scoreboard(of_paper),
        parts="\n".join(
            f'<h2 id="{_anchor(title)}">{title}</h2>\n'
            + "\n".join(_experiment(folder, result) for result in members)
            for title, members in parts.items()
        ),
        colophon=_colophon(results),
    )


def _own(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower())


# --- the head -------------------------------------------------------------------------------------


def _notice(results: dict[str, Result]) -> str:
    if not any("--quick" in result["command"] for result in results.values()):
        return ""
    return (
        '<p class="notice">This is a quick run: little data and few seeds, to see that everything '
        "works. Its numbers, and what agrees, are not those of the full one.</p>"
    )


def _contents(parts: dict[str, list[Result]]) -> str:
    lists = ['<p><a href="#scoreboard">Do the paper’s claims hold?</a></p>']
    for title, members in parts.items():
        items = "".join(f"<li>{_link(result)}</li>" for result in members)
        lists.append(f"<p>{title}</p>\n<ul>{items}</ul>")
    return "\n".join(lists)


def _link(result: Result) -> str:
    return f'<a href="#{escape(result["experiment"])}">{to_html(result["title"])}</a>'


def _eyebrow(result: Result) -> str:
    """Which figure of the paper it is."""
    return f'<p class="eyebrow">{to_html(result["paper"])}</p>' if result["paper"] else ""


def _scoreboard(results: Sequence[Result]) -> str:
    """Every claim of the paper's experiments, the paper's and ours, and whether it holds."""
    claims = [
        (result, place, claim)
        for result in results
        for place, claim in enumerate(result["claims"], start=1)
    ]
    papers = [each for each in claims if not each[2]["ours"]]
    ours = [each for each in claims if each[2]["ours"]]
    agree = f"{_held(papers)} of the paper’s {len(papers)} claims agree with what we see"
    score = f"{agree}{_open(papers)}."
    if not papers:
        score = "None of the paper’s experiments has been run."
    return (
        '<section id="scoreboard" aria-labelledby="scoreboard-title">\n'
        '<h2 id="scoreboard-title">Do the paper’s claims hold?</h2>\n'
        f'<p class="score">{score}</p>\n'
        "<p>The paper prints three accuracies, and otherwise draws curves without numbers. So we "
        "test its sentences, here in our words. Each verdict follows by the rule beside it from "
        "numbers that are stored with this page. Where the paper leaves a setting or a margin "
        "open, the last column says what we chose. No setting was chosen on test documents. Two of "
        "the paper’s data sets could not be had: Amazon reviews of 2014 stand for those of 2012, "
        "and Cade is left out unless the data folder has it.</p>\n"
        + _claims_table(papers, "The paper says", "Claims of the paper")
        + (
            f"<p>We add claims of our own about the same figures, where the paper says nothing "
            f"or draws no conclusion: {_held(ours)} of {len(ours)} hold.</p>\n"
            + _claims_table(ours, "We say", "Our claims about the paper’s figures")
            if ours
            else ""
        )
        + "</section>"
    )


def _held(claims: Sequence[tuple[Result, int, dict[str, Any]]]) -> int:
    return sum(claim["holds"] for _, _, claim in claims)


def _open(claims: Sequence[tuple[Result, int, dict[str, Any]]]) -> str:
    number = sum(bool(claim["undecided"]) for _, _, claim in claims)
    return f"; {number} cannot be decided here" if number else ""


def _claims_table(
    claims: Sequence[tuple[Result, int, dict[str, Any]]], says: str, label: str
) -> str:
    """A row a claim; on a narrow screen a block of lines, each with the name of its column."""
    heads = [says, "Where", "We see", "Verdict", "Rule, and what we chose"]
    rows = ""
    for result, place, claim in claims:
        link = f'<a href="#{_claim_anchor(result, place)}">{sentence(claim["says"])}</a>'
        asked = f"<p>{sentence(claim['rule'])}</p>"
        if claim["choices"]:
            asked += f'<p class="choices">{sentence(claim["choices"])}</p>'
        if claim["undecided"]:
            asked += f'<p class="choices">{sentence(claim["undecided"])}</p>'
        cells = [
            sentence(claim["where"] or result["paper"]),
            to_html(claim["seen"]),
            _verdict(claim),
            asked,
        ]
        rows += f'<tr><th scope="row" data-label="{says}">{link}</th>' + "".join(
            f'<td data-label="{head}"><div>{cell}</div></td>'
            for head, cell in zip(heads[1:], cells, strict=True)
        )
        rows += "</tr>\n"
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return (
        f'<table class="scoreboard" aria-label="{label}"><thead><tr>{columns}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody></table>\n"
        if rows
        else ""
    )


def _verdict(claim: dict[str, Any]) -> str:
    kind = _kind(claim)
    return f'<p class="verdict {kind}">{VERDICTS[kind]}</p>'


def _kind(claim: dict[str, Any]) -> str:
    if claim["undecided"]:
        return "undecided"
    return "agrees" if claim["holds"] else "differs"


def _claim_anchor(result: Result, place: int) -> str:
    return f"{result['experiment']}-claim-{place}"


def _colophon(results: dict[str, Result]) -> str:
    """What made the results: one line for each set of versions."""
    made: dict[str, list[str]] = {}
    for name, result in results.items():
        versions = ", ".join(f"{what} {which}" for what, which in result["versions"].items())
        made.setdefault(versions, []).append(name)
    lines = [
        f"<p>{to_html(versions)}{': ' + to_html(', '.join(names)) if len(made) > 1 else ''}</p>"
        for versions, names in made.items()
    ]
    return "\n".join(lines)


# --- experiments ----------------------------------------------------------------------------------


def _experiment(folder: Path, result: Result) -> str:
    name = escape(result["experiment"])
    pieces = [
        f'<section class="experiment" id="{name}" aria-labelledby="{name}-title">',
        _eyebrow(result),
        f'<h3 id="{name}-title">{to_html(result["title"])}</h3>',
        _missing(result["missing"]),
        _figure(folder, result),
        *(f"<p>{to_html(note)}</p>" for note in result["notes"]),
        *(
            sortable_table(f"{name}-table-{n}", **table)
            for n, table in enumerate(result["tables"], start=1)
        ),
        f'<p class="made"><code>{escape(result["command"])}</code> '
        f"{result['seconds']:,.0f} seconds of work</p>",
        "</section>",
    ]
    return "\n".join(piece for piece in pieces if piece)


def _missing(missing: Sequence[dict[str, str]]) -> str:
    """What could not be run, and what it takes; one line for all parts with the same reason."""
    if not missing:
        return ""
    parts: dict[str, list[str]] = {}
    for each in missing:
        parts.setdefault(each["why"], []).append(each["part"])
    lines = "".join(
        f"<p><strong>Not run</strong> ({to_html(', '.join(names[:3]))}"
        f"{f' and {len(names) - 3} more' if len(names) > 3 else ''}): {to_html(why)}.</p>"
        for why, names in parts.items()
    )
    return f'<div class="notice">{lines}</div>'


def _figure(folder: Path, result: Result) -> str:
    """The pictures with one caption: what is claimed, what we see, whether the two agree."""
    pictures = "\n".join(_picture(folder, picture) for picture in result["pictures"])
    claims = ""
    for place, claim in enumerate(result["claims"], start=1):
        ours = claim["ours"] or result["experiment"] not in OF_PAPER
        lines = {
            "Our claim" if ours else "The paper says": claim["says"],
            "Where": claim["where"],
            "Rule": claim["rule"],
            "We see": claim["seen"],
            "Our choices": claim["choices"],
            "Not decidable": claim["undecided"],
        }
        pairs = "".join(
            f"<dt>{name}</dt><dd>{sentence(text)}</dd>" for name, text in lines.items() if text
        )
        claims += (
            f'<li id="{_claim_anchor(result, place)}" class="{_kind(claim)}">{_verdict(claim)}'
            f"<dl>{pairs}</dl></li>"
        )
    if not pictures:
        return f'<ul class="claims">{claims}</ul>' if claims else ""
    caption = f'<figcaption><ul class="claims">{claims}</ul></figcaption>' if claims else ""
    return f"<figure>\n{pictures}\n{caption}</figure>"


def _picture(folder: Path, picture: dict[str, str]) -> str:
    path = folder / f"{picture['name']}.svg"
    try:
        svg = inline_svg(path.read_text(encoding="utf-8"), picture["name"], picture["alt"])
    except (OSError, ParseError) as error:
        raise ResultsError(
            f"the picture {path} is missing or damaged: run its experiment again"
        ) from error
    title = to_html(picture["title"])
    return (
        f'<div class="picture"><div class="head"><p class="title">{title}</p>'
        f'<button type="button" aria-label="Enlarge: {escape(picture["title"])}" hidden>Enlarge'
        f'</button></div>\n<div class="scroll">{svg}</div></div>'
    )
