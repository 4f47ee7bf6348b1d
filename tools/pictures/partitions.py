"""A partition and a merge, beside each other: what the ring and virtual synchrony do."""

from semcast.demo.svg import AMBER, BLUE, GREEN, RED, SOFT, VIOLET, Canvas

WIDTH = 920
NAMES = "abcde"
LEFT, TOP, GAP = 70, 78, 36


def partition() -> str:
    """Two rows of time lines."""
    canvas = Canvas(WIDTH, 560, "A partition and a merge")
    canvas.text(24, 30, "A partition and a merge", size=15, anchor="start", bold=True)
    _half(canvas, 0, 'stack="ring": both sides go on (extended virtual synchrony)')
    _views(
        canvas,
        0,
        (
            (0, 5, 100, 250, "view 1: a b c d e", BLUE),
            (0, 3, 330, 560, "view 2: a b c", GREEN),
            (3, 5, 330, 560, "view 2': d e", VIOLET),
            (0, 5, 680, 880, "view 3: a b c d e", BLUE),
        ),
    )
    _between(canvas, 0, 252, "transitional", "views")
    _between(canvas, 0, 572, "transitional", "views")
    _half(canvas, 1, 'stack="vsync": the majority goes on (primary partition)')
    _views(
        canvas,
        1,
        (
            (0, 5, 100, 250, "view 1: a b c d e", BLUE),
            (0, 3, 330, 560, "view 2: a b c", GREEN),
            (3, 5, 330, 560, "Minority: d e wait", RED),
            (0, 5, 680, 880, "view 3: a b c d e", BLUE),
        ),
    )
    _between(canvas, 1, 252, "consensus", "on view 2")
    _between(canvas, 1, 572, "d, e rejoin:", "state transfer")
    return canvas.render()


def _top(half: int) -> float:
    return TOP + half * 250


def _half(canvas: Canvas, half: int, title: str) -> None:
    top = _top(half)
    canvas.text(24, top - 18, title, size=13, anchor="start", colour=SOFT, bold=True)
    for number, name in enumerate(NAMES):
        y = top + 20 + GAP * number
        canvas.text(50, y + 5, name, bold=True)
        canvas.line(LEFT, y, WIDTH - 30, y)
    canvas.line(290, top - 4, 290, top + GAP * 5 + 8, RED, dashed=True)
    canvas.text(290, top + GAP * 5 + 22, "network splits", size=11, colour=RED)
    canvas.line(620, top - 4, 620, top + GAP * 5 + 8, AMBER, dashed=True)
    canvas.text(620, top + GAP * 5 + 22, "network heals", size=11, colour=AMBER)


def _views(canvas: Canvas, half: int, views: tuple[tuple[int, int, int, int, str, str], ...]) -> None:
    for first, last, left, right, words, colour in views:
        top = _top(half) + 6 + GAP * first
        height = GAP * (last - first) - 8
        canvas.box(left, top, right - left, height, colour)
        canvas.text((left + right) / 2, top + height / 2 + 5, words, bold=True, colour=colour)


def _between(canvas: Canvas, half: int, left: int, *words: str) -> None:
    top = _top(half) + 6 + GAP * 2.5
    for number, line in enumerate(words):
        canvas.text(
            left + 38 if left < 400 else left + 50,
            top + 14 * number - 60,
            line,
            size=11,
            colour=SOFT,
            halo=True,
        )
