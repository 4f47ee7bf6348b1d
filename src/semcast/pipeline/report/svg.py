"""Figures of matplotlib as markup: colours follow the light and dark sets of the page, points have titles."""

import io
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from xml.etree import ElementTree

from matplotlib import rc_context
from matplotlib.figure import Figure

from semcast.pipeline.report.markup import Markup

COLOURS = 8
_NAMES = (*(f"k{number}" for number in range(COLOURS)), "text", "soft", "rule", "card", "paper")
_SPACE = re.compile(r"\s*\n\s*")
_LONG = re.compile(r"\d+\.\d{3,}")
_STAND_IN = re.compile(r"#0a0a([0-9a-f]{2})")
_FONT = re.compile(r"font-(?:size|family):[^;]*;?\s*")
_HREF = "{http://www.w3.org/1999/xlink}href"


def colour(name: str) -> str:
    """What stands in a figure for a colour of the page, by the name of its CSS variable.

    >>> colour("k2")
    '#0a0a02'
    """
    return f"#0a0a{_NAMES.index(name):02x}"


def empty(width: int, height: int) -> Figure:
    """A figure of so many pixels."""
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    figure.patch.set_visible(False)
    return figure


def markup(figure: Figure, label: str, titles: Mapping[str, Sequence[str]] | None = None) -> Markup:
    """The figure, said by `label` to who cannot see it.

    Args:
        figure: drawn in the colours that `colour` gives, in pixels.
        label: what it shows.
        titles: for artists, by their `gid`: the title of all of it, then those of its points.
    """
    drawn = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "semcast"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    text = drawn.getvalue()
    root = ElementTree.fromstring(text)  # noqa: S314 (matplotlib's own)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    for useless in root.findall("metadata") + root.findall("defs"):
        root.remove(useless)
    _simplify(root, sha256(text.encode()).hexdigest()[:8], titles or {})
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height, "role": "img"}
    root.set("aria-label", label)
    plain = _SPACE.sub(" ", ElementTree.tostring(root, "unicode"))
    return Markup(_STAND_IN.sub(lambda found: f"var(--{_NAMES[int(found[1], 16)]})", plain))


def _simplify(root: ElementTree.Element, unique: str, titles: Mapping[str, Sequence[str]]) -> None:
    """Names only for what is referred to, other than in every other figure of the page; fonts of the page."""
    used = {element.attrib[_HREF][1:] for element in root.iter("use")}
    for element in list(root.iter()):
        name = element.attrib.pop("id", "")
        if name in used:
            element.set("id", f"{unique}-{name}")
        if _HREF in element.attrib:
            element.set("href", f"#{unique}-{element.attrib.pop(_HREF)[1:]}")
        if element.tag == "text":
            element.set("style", _FONT.sub("", element.attrib.get("style", "")))
        for key, value in element.attrib.items():  # places, never what is written there
            element.set(key, _LONG.sub(lambda found: f"{float(found[0]):.2f}", value))
        if name.startswith("value"):
            for text in element.iter("text"):
                text.set("class", "value")
        if name in titles:
            _entitle(element, titles[name])


def _entitle(element: ElementTree.Element, titles: Sequence[str]) -> None:
    for place, title in zip(element.iter("use"), titles[1:], strict=False):
        ElementTree.SubElement(place, "title").text = title
    whole = ElementTree.Element("title")
    whole.text = titles[0]
    element.insert(0, whole)
