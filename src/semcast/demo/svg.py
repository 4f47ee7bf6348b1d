"""A small canvas that writes SVG: boxes, lines, arrows and text, readable on light and dark pages."""

from html import escape

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
INK, SOFT, PAPER, LINE = "#1c2733", "#5a6b7b", "#ffffff", "#c9d3dc"
BLUE, GREEN, AMBER, RED, VIOLET = "#2f6fb4", "#2e8b62", "#c98a17", "#c0473c", "#7a56a6"
TINTS = {BLUE: "#e6f0fa", GREEN: "#e4f4ec", AMBER: "#fbf1dc", RED: "#fae6e4", VIOLET: "#f0e9f8"}


class Canvas:
    """Collects shapes. Later ones lie over earlier ones."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height = width, height
        self._title = title
        self._parts: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, colour: str = SOFT, radius: int = 6
    ) -> None:
        """A rounded rectangle, tinted with its colour."""
        fill = TINTS.get(colour, "#f3f6f8")
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"'
            f' fill="{fill}" stroke="{colour}" stroke-width="1.2"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 13,
        colour: str = INK,
        anchor: str = "middle",
        bold: bool = False,
        halo: bool = False,
    ) -> None:
        """One line of text, with its baseline at y; with a halo where it lies over lines."""
        weight = ' font-weight="600"' if bold else ""
        weight += f' stroke="{PAPER}" stroke-width="4" paint-order="stroke"' if halo else ""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>"
        )

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        colour: str = LINE,
        *,
        arrow: bool = False,
        dashed: bool = False,
        width: float = 1.5,
    ) -> None:
        """A straight line, or an arrow."""
        self.path(f"M{x1:g},{y1:g} L{x2:g},{y2:g}", colour, arrow=arrow, dashed=dashed, width=width)

    def path(
        self, d: str, colour: str, *, arrow: bool = False, dashed: bool = False, width: float = 1.5
    ) -> None:
        """Any path."""
        head = f' marker-end="url(#head-{colour[1:]})"' if arrow else ""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dash}{head}/>'
        )

    def area(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A pale rectangle without a border, to lie behind lines."""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{TINTS[colour]}"/>'
        )

    def dot(self, x: float, y: float, colour: str, radius: float = 4) -> None:
        """A filled circle."""
        self._parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{colour}"/>')

    def badge(self, x: float, y: float, words: str, colour: str) -> None:
        """A number in a circle."""
        self._parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="9" fill="{PAPER}" stroke="{colour}"/>')
        self.text(x, y + 4, words, size=11, colour=colour, bold=True)

    def render(self) -> str:
        """The file."""
        colours = (INK, SOFT, LINE, *TINTS)
        heads = "".join(
            f'<marker id="head-{colour[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
            f' markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
            for colour in colours
        )
        body = "\n".join(self._parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"'
            f' width="{self.width}" height="{self.height}" font-family="{FONT}" role="img">\n'
            f"<title>{escape(self._title)}</title>\n<defs>{heads}</defs>\n"
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{PAPER}"/>\n{body}\n</svg>\n'
        )
