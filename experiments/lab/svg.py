"""Matplotlib's SVG made a part of a page: its text, its theme and its names fit in."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"


def inline_svg(source: str, name: str, alt: str) -> str:
    """Turn an SVG file into an element to be put into HTML.

    Black becomes the page's ink and white its paper, also the white in greys and pale colours;
    strong colours take in a little ink, so that they stand out from a light page and from a dark
    one. Ids begin with `name` so that several pictures can share a page. Coordinates keep a
    hundredth of a point.

    Parameters
    ----------
    source : str
        What the file holds.
    name : str
        Of the picture, unlike that of any other on the page.
    alt : str
        What there is to see, for those who do not.

    Examples
    --------
    >>> inline_svg('<svg xmlns="http://www.w3.org/2000/svg" width="90pt" height="45pt" '
    ...            'viewBox="0 0 90 45"><path style="stroke: #000000"/></svg>', "curve", "A curve.")
    '<svg viewBox="0 0 90 45" role="img" aria-label="A curve." style="--width: 120px; --ratio: 2"><path style="stroke: color-mix(in srgb, var(--ink) 100%, var(--paper))" /></svg>'
    """  # noqa: E501
    root = ElementTree.fromstring(source)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == SVG + "style" or not child.tag.startswith(SVG):  # or metadata's
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        if element.tag != "text" and element.tag != "tspan":
            element.text = None
        element.tail = None
        element.attrib = {
            key.removeprefix(XLINK): _value(key, text, name) for key, text in element.attrib.items()
        }
    _drop_unused_ids(root)
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": alt,
        "style": f"--width: {width * 4 / 3:.0f}px; --ratio: {width / height:.4g}",  # 72 points: 96
    }
    return ElementTree.tostring(root, encoding="unicode")


def _value(key: str, text: str, name: str) -> str:
    if key == "id":
        return f"{name}-{text}"
    if key == XLINK + "href":
        return re.sub("^#", f"#{name}-", text)
    if key in ("d", "x", "y", "points"):
        return " ".join(re.sub(r"-?\d+\.\d+", lambda found: _short(found[0]), text).split())
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: _colour(found[0]), text)


def _short(number: str) -> str:
    return f"{float(number):.2f}".rstrip("0").rstrip(".")


def _colour(colour: str) -> str:
    channels = bytes.fromhex(colour[1:])
    white = min(channels)
    if white == max(channels):
        hue = "var(--ink)"
    elif white > 127:
        hue = "#" + bytes(round(255 * (c - white) / (255 - white)) for c in channels).hex()
    else:
        return f"color-mix(in oklab, {colour} 88%, var(--ink))"
    return f"color-mix(in srgb, {hue} {100 - white / 2.55:.0f}%, var(--paper))"


def _drop_unused_ids(root: ElementTree.Element) -> None:
    values = " ".join(value for element in root.iter() for value in element.attrib.values())
    used = set(re.findall(r"#([^)\s]+)", values))
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
