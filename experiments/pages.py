"""Fill the figures of the docs from the results of a full run: ``python experiments/pages.py``.

What stands between ``<!-- results: NAME -->`` and ``<!-- end -->`` is written by the function of
that name below, from the tables and claims in `results`; the tests hold one against the other.
"""

import json
import re
from pathlib import Path
from typing import Any

from lab.catalogue import OF_PAPER

RESULTS = Path(__file__).with_name("results")
DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS / "figures.md", DOCS / "reproduction.md"]

Cell = tuple[float, float | None]  # accuracy in % and log-loss


def filled(text: str, results: Path = RESULTS) -> str:
    """The text with its blocks written anew."""
    return re.sub(
        r"(<!-- results: (\w+) -->\n).*?(?=<!-- end -->)",
        lambda found: found[1] + BLOCKS[found[2]](results),
        text,
        flags=re.DOTALL,
    )


def read(results: Path, name: str) -> dict[str, Any]:
    return json.loads((results / f"{name}.json").read_text(encoding="utf-8"))


def rows(results: Path, name: str) -> list[dict[str, Any]]:
    """Of the first table of an experiment."""
    table = read(results, name)["tables"][0]
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def markdown(columns: list[str], lines: list[list[str]]) -> str:
    table = [["", *columns], ["---"] * (len(columns) + 1), *lines]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in table)


def claims(results: Path) -> str:
    found = [claim for name in OF_PAPER for claim in read(results, name)["claims"]]
    papers = [claim for claim in found if not claim["ours"]]
    ours = [claim["holds"] for claim in found if claim["ours"]]
    agree = sum(claim["holds"] for claim in papers)
    undecided = sum(bool(claim["undecided"]) for claim in papers)
    return (
        f"{agree} of the paper's {len(papers)} claims agree with our results, "
        f"{len(papers) - agree - undecided} differ, and {undecided} cannot be decided here. We add "
        f"{len(ours)} claims about the same figures, and {sum(ours)} of them hold.\n"
    )


def toy(results: Path) -> str:
    def cell(row: dict[str, Any]) -> str:
        if row["min"] is None:
            return f"{row['median']:.1f}"
        return f"{row['median']:.1f} ({row['min']:.1f} to {row['max']:.1f})"

    losses = ["NLL", "NCLL", "hinge"]
    found = {(row["training"], row["loss"]): cell(row) for row in rows(results, "toy")}
    ways = list(dict.fromkeys(way for way, _ in found))  # ours comes first, for it has NLL
    ways = [*ways[1:-1], ways[0], ways[-1]]
    return markdown(
        losses, [[way, *(found.get((way, each), "") for each in losses)] for way in ways]
    )


def topics(results: Path) -> str:
    found = {(row["data"], row["method"]): row["mean"] for row in rows(results, "lda")}
    methods = {
        "NLL": "NLL-LDA, discem's defaults",
        "NCLL": "NCLL-LDA, discem's defaults",
        "hinge": "Hinge-LDA, discem's defaults",
        "supervised LDA": "sLDA, 50 topics (tomotopy)",
    }
    lines = []
    for data, name in {"WebKB": "WebKB", "Reuters R8": "R8"}.items():
        values = [found[data, method] for method in methods.values()]
        lines.append([name, *(bold(f"{value:.2f}", value == max(values)) for value in values)])
    return markdown(list(methods), lines)


def tables(results: Path) -> str:
    methods = {
        "scikit-learn GaussianNB": "naive Bayes (scikit-learn)",
        "discem GaussianNB, nll": 'discem, `loss="nll"`',
        "discem GaussianNB, ncll": '**discem, `loss="ncll"`**',
        "discem GaussianNB, hinge": 'discem, `loss="hinge"`, calibrated',
        "discem MixtureClassifier, ncll": "**discem, `MixtureClassifier()`**",
        "LogisticRegression, scaled": "logistic regression, scaled columns",
        "HistGradientBoosting": "gradient boosting (HistGradientBoosting)",
    }
    return compared(results, "tables", ["wine", "breast cancer", "digits"], methods, 100)


def text(results: Path) -> str:
    methods = {
        "MultinomialNB of scikit-learn, counts": "naive Bayes",
        "LinearSVC, tf-idf": "LinearSVC",
        "LogisticRegression, tuned, tf-idf": "logistic regression, tuned",
        "TextClassifier()": "**`TextClassifier()`**",
        "TextClassifier, NCLL": '`TextClassifier(loss="ncll")`',
    }
    sets = ["20ng", "r52", "r8", "webkb", "imdb", "amazon14"]
    return compared(results, "text", sets, methods, 1)


def compared(
    results: Path, name: str, sets: list[str], methods: dict[str, str], whole: float
) -> str:
    """Accuracy, divided by `whole`, and log-loss; the best of a column are bold."""
    found: dict[tuple[str, str], Cell] = {
        (row["data"], row["method"]): (row["accuracy, %"] / whole, row["log-loss"])
        for row in rows(results, name)
    }
    places = 3 if whole > 1 else 1
    best = {
        data: (
            max(round(found[data, method][0], places) for method in methods),
            min(round(loss, 3) for m in methods if (loss := found[data, m][1]) is not None),
        )
        for data in sets
    }

    def cell(data: str, method: str) -> str:
        accuracy, loss = found[data, method]
        shown = f"{accuracy:.{places}f}".lstrip("0")
        first = bold(shown, round(accuracy, places) == best[data][0])
        if loss is None:
            return f"{first} / -"
        return f"{first} / {bold(f'{loss:.3f}'.lstrip('0'), round(loss, 3) == best[data][1])}"

    return markdown(
        sets, [[title, *(cell(data, method) for data in sets)] for method, title in methods.items()]
    )


def bold(shown: str, best: bool) -> str:
    return f"**{shown}**" if best else shown


BLOCKS = {each.__name__: each for each in (claims, toy, topics, tables, text)}

if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
