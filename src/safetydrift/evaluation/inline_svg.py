"""A drawing as part of a page: colours become variables of its style sheet, fonts are the page's."""

from __future__ import annotations

import re
import warnings
from io import StringIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from matplotlib import style

from safetydrift.evaluation.palette import CSS_COLOURS, STYLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure


def inline_svg(figure: Figure, *, key: str, title: str, description: str) -> str:
    """Return a figure as an ``svg`` element to stand inside a page.

    Colours become variables of the page's style sheet (`CSS_COLOURS`), fonts are the page's, and nothing depends
    on when or where it was drawn.

    Parameters
    ----------
    figure
        A figure of this module.
    key
        Distinguishes the element's ids from those of other drawings on the page: a letter, then letters, digits
        and hyphens.
    title, description
        What a reader who cannot see the drawing is told.
    """
    stream = StringIO()
    with style.context(["default", STYLE]), warnings.catch_warnings():
        # The page's fonts will have the glyph that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure.savefig(stream, format="svg", facecolor="none", metadata={"Date": None, "Creator": None})
    drawn = ET.fromstring(stream.getvalue())  # noqa: S314 - written a line ago, by us
    root = ET.Element(
        "svg",
        {
            "viewBox": drawn.attrib["viewBox"],
            "role": "img",
            "aria-labelledby": f"{key}-title {key}-desc",
            "style": f"--natural: {float(drawn.attrib['viewBox'].split()[2]):g}",
        },
    )
    ET.SubElement(root, "title", {"id": f"{key}-title"}).text = title
    ET.SubElement(root, "desc", {"id": f"{key}-desc"}).text = description
    root.extend(part for part in (_cleaned(part, key) for part in drawn) if part is not None)
    return ET.tostring(root, encoding="unicode")


_UNWANTED = frozenset({"metadata", "style"})
_FONT_SIZE = re.compile(r"[\d.]+px")
_COLOUR = re.compile("|".join(CSS_COLOURS), re.IGNORECASE)


def _cleaned(element: ET.Element, key: str) -> ET.Element | None:
    """Return a copy fit for a page; None for what only a file of its own needs, or draws nothing."""
    tag = _local(element.tag)
    if tag in _UNWANTED or element.get("style") == "fill: none":
        return None
    copy = ET.Element(tag, dict(_attributes(tag, element, key)))
    copy.text = element.text if tag == "text" else None
    copy.extend(part for part in (_cleaned(part, key) for part in element) if part is not None)
    return copy if len(copy) or tag not in {"g", "defs"} else None


def _attributes(tag: str, element: ET.Element, key: str) -> Iterator[tuple[str, str]]:
    """Yield attributes without namespaces, ids prefixed, colours variable."""
    for name, value in ((_local(name), value) for name, value in element.attrib.items()):
        if name == "id":
            if tag != "g":  # groups are numbered by matplotlib, and never referred to
                yield name, f"{key}-{value}"
        elif name == "style":
            yield name, "; ".join(_declarations(value))
        elif name == "href":
            yield name, value.replace("#", f"#{key}-")
        else:
            yield name, value.replace("url(#", f"url(#{key}-")


def _declarations(styles: str) -> Iterator[str]:
    """Yield what the page may keep of a style attribute: all but the font, of which only the size."""
    for declaration in styles.split(";"):
        name, _, value = declaration.strip().partition(": ")
        if name == "font":
            yield f"font-size: {''.join(_FONT_SIZE.findall(value)[:1])}"
        elif name != "font-family":
            yield f"{name}: {_COLOUR.sub(lambda found: CSS_COLOURS[found[0].lower()], value)}"


def _local(name: str) -> str:
    return name.rpartition("}")[2]
