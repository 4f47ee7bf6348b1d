"""HTML and SVG: text is escaped unless it is markup already."""

from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Content = str | Markup


def tag(name: str, *content: Content, **attributes: str | float) -> Markup:
    """An element. `class_` stands for class, and `stroke_width` for stroke-width.

    >>> tag("p", "1 < 2", tag("b", "!"), class_="note")
    '<p class="note">1 &lt; 2<b>!</b></p>'
    """
    written = "".join(f' {_name(key)}="{_value(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def joined(content: Iterable[Content]) -> Markup:
    """One after the other."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in content))


def table(
    head: Iterable[Content],
    rows: Iterable[Iterable[Content] | Markup],
    *,
    words: int = 1,
    stacked: bool = False,
) -> Markup:
    """A table; the first `words` columns hold words, the others numbers; a row may be markup already.

    With `stacked`, what a row is about stands above its numbers on narrow screens.
    """
    top = tag("tr", *(tag("th", cell, class_=_kind(at, words)) for at, cell in enumerate(head)))
    body = [
        row
        if isinstance(row, Markup)
        else tag("tr", *(tag("td", cell, class_=_kind(at, words)) for at, cell in enumerate(row)))
        for row in rows
    ]
    return tag(
        "div",
        tag("table", tag("thead", top), tag("tbody", *body)),
        class_="wide stacked" if stacked else "wide",
    )


def prose(text: str) -> Markup:
    """Words, in which what stands between backticks is a name in a program.

    >>> prose("`full` <= 1")
    '<code>full</code> &lt;= 1'
    """
    parts = text.split("`")
    return joined(tag("code", part) if place % 2 else part for place, part in enumerate(parts))


def listed(items: Iterable[Content], **attributes: str) -> Markup:
    """A list with bullets."""
    return tag("ul", *(tag("li", item) for item in items), **attributes)


def _kind(at: int, words: int) -> str:
    return "word" if at < words else "number"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
