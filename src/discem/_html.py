"""Pieces of HTML: text, numbers, and tables that can be sorted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any


def to_html(text: str) -> str:
    r"""Text as HTML, with code in backticks and numbers as people write them.

    >>> to_html("`a < b` & -1.5 %")
    '<code>a &lt; b</code> &amp; −1.5\xa0%'
    """
    text = re.sub(r"(?<![\w.=-])-(?=\d)", "\N{MINUS SIGN}", escape(text))
    text = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)


def sentence(text: str) -> str:
    """Text as HTML that begins with a capital.

    >>> sentence("hinge training is")
    'Hinge training is'
    """
    return to_html(text[:1].upper() + text[1:])


def brief(value: Any, digits: int = 3) -> str:
    r"""A value in a few characters, as people write it.

    >>> brief(-0.52341), brief(25_300), brief(2.0), brief("a"), brief(1e-7), brief(123456.7)
    ('−0.523', '25\u202f300', '2', 'a', '1e−07', '123\u202f457')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if abs(value) >= 1000:
        shown = f"{value:,.0f}" if abs(value) < 1e9 else f"{value:.3g}"
    else:
        shown = f"{value:.{digits}g}"
    return shown.replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")


def sortable_table(
    anchor: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = ""
) -> str:
    """A table with its title and note; ``page.js`` sorts it. Its title gets the id `anchor`."""
    cells = list(zip(*rows, strict=True)) or [()] * len(columns)
    shown = [_cells(column, "th" if n == 0 else "td") for n, column in enumerate(cells)]
    heads = "".join(
        f'<th scope="col"{_class(values)}><button type="button">{to_html(name)}</button></th>'
        for name, values in zip(columns, cells, strict=True)
    )
    lines = "".join(f"<tr>{''.join(row)}</tr>\n" for row in zip(*shown, strict=True))
    note = f'<p class="note">{to_html(note)}</p>' if note else ""
    return (
        f'<div class="head"><p class="title" id="{anchor}">{to_html(title)}</p></div>\n'
        f'<div class="table scroll"><table aria-labelledby="{anchor}"><thead><tr>{heads}</tr>'
        f"</thead>\n<tbody>\n{lines}</tbody></table></div>\n{note}"
    )


def _cells(column: Sequence[Any], tag: str) -> list[str]:
    """The cells of a column; numbers carry their exact value, by which they are sorted."""
    start = '<th scope="row"' if tag == "th" else "<td"
    places, kind = _decimals(column), _class(column)
    cells = []
    for value in column:
        if value is None:
            cells.append(f'{start}{kind} data-missing="">–</{tag}>')
        elif _is_number(value):
            shown = _number(value, places)
            cells.append(f'{start}{kind} data-value="{value!r}">{shown}</{tag}>')
        else:
            cells.append(f"{start}{kind}>{to_html(str(value))}</{tag}>")
    return cells


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _class(column: Sequence[Any]) -> str:
    """Columns of numbers are set flush right, and only those of sentences may break their lines."""
    if all(value is None or _is_number(value) for value in column):
        return ' class="number"'
    return ' class="long"' if any(len(str(value)) > 36 for value in column) else ""


def _decimals(column: Sequence[Any]) -> int:
    """As many as the numbers of the column need, at most four.

    >>> _decimals([0.5, 0.97123]), _decimals([92.4, None]), _decimals([3])
    (4, 1, 0)
    """
    numbers = [value for value in column if isinstance(value, float)]
    return max((len(f"{v:.4f}".rstrip("0").partition(".")[2]) for v in numbers), default=0)


def _number(value: float, places: int) -> str:
    r"""A number as people read it: large ones need fewer decimals.

    >>> _number(0.5, 3), _number(47000, 0), _number(-2.5, 1), _number(3e-7, 4)
    ('0.500', '47\u202f000', '−2.5', '3e−07')
    >>> _number(956.46961, 4)
    '956.47'
    """
    places = min(places, max(0, 5 - len(str(abs(int(value))))))
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.{places}f}"
    if value and not float(shown.replace(",", "")):
        shown = f"{value:.2g}"
    return shown.replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")
