"""The picture at the end of the demo: both runs on one time line, and what came of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from semcast.demo.svg import AMBER, BLUE, GREEN, INK, LINE, RED, SOFT, VIOLET, Canvas
from semcast.demo.tape import Tape

WIDTH, HEIGHT = 1120, 720
LEFT, RIGHT = 92, WIDTH - 32
TOP, BOTTOM = 178, 408
"""Of the chart."""
LANES, LANE = 472, 34
GAP = 26
"""Between the two runs."""
_GRID = 500


class Facts(NamedTuple):
    """What the demo found, in figures."""

    offered: float
    """Messages a second that the sender offers."""
    slow_ms: float
    """That the slow member takes for each."""
    plain: float
    """Messages a second at the fast members, with plain reliability."""
    semantic: float
    """The same with obsolescence."""
    skipped: int
    stale_ms: int
    hold: int
    """Properties that hold; 0 where nobody looked."""
    events: int


def poster(plain: Tape, semantic: Tape, facts: Facts) -> str:
    """An SVG file."""
    canvas = Canvas(WIDTH, HEIGHT, "One slow member of five")
    _head(canvas, facts)
    halves = _halves(plain, semantic)
    _grid(canvas, facts.offered)
    for half, rate in zip(halves, (facts.plain, facts.semantic), strict=True):
        _half(canvas, half, rate, facts.offered)
        _lanes(canvas, half)
    for number, name in enumerate(semantic.names):
        words = f"{name} sends" if number == 0 else f"{name} slow" if number == len(plain.names) - 1 else name
        canvas.text(LEFT - 12, LANES + LANE * number + 19, words, size=12, anchor="end", bold=True)
    _foot(canvas)
    return canvas.render()


class _Half(NamedTuple):
    """One run, and where it is drawn."""

    tape: Tape
    title: str
    colour: str
    left: float
    right: float
    slow_above: bool
    """Whether the slow member's line has its name above it."""

    def x(self, at: float) -> float:
        return round(self.left + (self.right - self.left) * min(1.0, at / max(self.tape.times[-1], 0.01)), 1)


def _halves(plain: Tape, semantic: Tape) -> tuple[_Half, _Half]:
    """Side by side, each as wide as it was long."""
    share = plain.times[-1] / max(plain.times[-1] + semantic.times[-1], 0.01)
    middle = LEFT + (RIGHT - LEFT - GAP) * min(0.6, max(0.3, share))
    return (
        _Half(plain, "plain reliability", RED, LEFT, middle, slow_above=False),
        _Half(semantic, "with obsolescence (Semcast)", BLUE, middle + GAP, RIGHT, slow_above=True),
    )


def _head(canvas: Canvas, facts: Facts) -> None:
    canvas.text(32, 44, "One slow member of five", size=24, anchor="start", bold=True)
    words = (
        f"Five processes share a table of prices. p0 offers {facts.offered:.0f} quotes a second;"
        f" p4 needs {facts.slow_ms:g} ms for each, so it can take {1000 / facts.slow_ms:.0f}."
    )
    canvas.text(32, 70, words, size=14, anchor="start", colour=SOFT)
    times = facts.semantic / max(facts.plain, 1.0)
    figures = [
        (f"{times:.0f} times", "the throughput of plain reliability", BLUE),
        (f"{facts.skipped:,}", "replaced quotes the slow member skipped", AMBER),
        (f"{facts.stale_ms} ms", "the slow member was behind, at most", VIOLET),
    ]
    if facts.hold:
        figures.append((f"{facts.hold} of {facts.hold}", f"promises held in {facts.events:,} events", GREEN))
    for number, (figure, what, colour) in enumerate(figures):
        x = 32 + 266 * number
        canvas.text(x, 114, figure, size=24, anchor="start", bold=True, colour=colour)
        canvas.text(x, 134, what, size=12, anchor="start", colour=SOFT)


def _y(rate: float, offered: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * min(rate / offered, 1.15) / 1.15, 1)


def _grid(canvas: Canvas, offered: float) -> None:
    for rate in range(0, int(offered * 1.15) + 1, _GRID):
        y = _y(rate, offered)
        canvas.line(LEFT, y, RIGHT, y, LINE, width=0.8)
        canvas.text(LEFT - 10, y + 4, f"{rate}", size=11, anchor="end", colour=SOFT)
    canvas.text(LEFT - 60, TOP - 12, "quotes/s", size=12, anchor="start", colour=SOFT)


def _half(canvas: Canvas, half: _Half, rate: float, offered: float) -> None:
    tape = half.tape
    canvas.text(
        (half.left + half.right) / 2, TOP - 12, half.title, size=14, colour=half.colour, bold=True, halo=True
    )
    _average(canvas, half, rate, offered)
    slow = len(tape.names) - 1
    for number in range(len(tape.names)):
        colour = AMBER if number == slow else half.colour
        for run in _runs(tape, number):
            points = [(half.x(at), _y(seen, offered)) for at, seen in run]
            canvas.path(
                "M" + " L".join(f"{x:g},{y:g}" for x, y in points),
                colour,
                width=2.6 if number == slow else 1.8,
            )
    last = [sights[slow].rate for sights in tape.sights[-8:]]
    y = _y(sum(last) / max(len(last), 1), offered)
    canvas.text(half.right - 6, y - 10, "p4, slow", size=12, anchor="end", colour=AMBER, halo=True)
    if half.slow_above:
        fast = _y(max(sights[1].rate for sights in tape.sights), offered)
        canvas.text(half.right - 6, fast - 8, "the others", size=12, anchor="end", colour=BLUE, halo=True)
    for at in range(0, int(tape.times[-1]) + 1, 2):
        canvas.text(half.x(at), BOTTOM + 18, f"{at} s", size=11, colour=SOFT)
    for mark in tape.marks:
        x = half.x(mark.at)
        canvas.line(x, TOP, x, LANES + LANE * len(tape.names), RED, dashed=True, width=1)


def _average(canvas: Canvas, half: _Half, rate: float, offered: float) -> None:
    """Of the fast members, as an area with its figure."""
    top = _y(rate, offered)
    canvas.area(half.left, top, half.right - half.left, BOTTOM - top, half.colour)
    inside = BOTTOM - top > 60
    x, y = half.left + 170, (top + BOTTOM) / 2 + 8 if inside else top - 34
    canvas.text(x, y, f"{rate:.0f} quotes/s", size=22, colour=half.colour, bold=True)
    canvas.text(x, y + 18, "to each fast member", size=12, colour=half.colour)


def _runs(tape: Tape, number: int) -> Iterator[list[tuple[float, float]]]:
    """The rates of one member while it was there; one stretch for each of its processes."""
    run: list[tuple[float, float]] = []
    for at, sights in zip(tape.times, tape.sights, strict=True):
        if sights[number].view:
            run.append((at, sights[number].rate))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _lanes(canvas: Canvas, half: _Half) -> None:
    """Who was in which view."""
    tape = half.tape
    full = len(tape.names)
    for number in range(full):
        top = LANES + LANE * number
        canvas.line(half.left, top + 15, half.right, top + 15, LINE, width=0.8)
        for begin, end, view in _stays(tape, number):
            left, right = half.x(begin), half.x(end)
            if view and right - left > 1:
                colour = half.colour if view == full else GREEN
                canvas.box(left, top + 3, right - left, 24, colour, 4)
                words = f"view of {view}"
                if right - left > 7 * len(words):
                    canvas.text((left + right) / 2, top + 19, words, size=11, colour=colour)
    for place, mark in enumerate(tape.marks):
        y = LANES - 22 if place % 2 == 0 else LANES - 8
        x = half.x(mark.at)
        words = f"{tape.names[mark.member]}: {mark.words}"
        room = x + 7 * len(words) < half.right
        canvas.text(
            x + 5 if room else x - 5,
            y,
            words,
            size=11,
            colour=RED,
            anchor="start" if room else "end",
            halo=True,
        )


def _stays(tape: Tape, number: int) -> list[tuple[float, float, int]]:
    """From when to when a member was in a view of so many."""
    found: list[tuple[float, float, int]] = []
    for at, sights in zip(tape.times, tape.sights, strict=True):
        view = sights[number].view
        if found and found[-1][2] == view:
            found[-1] = found[-1][0], at, view
        else:
            if found and view:  # until the next one; one that is killed was last seen before
                found[-1] = found[-1][0], at, found[-1][2]
            found.append((at, at, view))
    return found


def _foot(canvas: Canvas) -> None:
    lines: Sequence[str] = (
        "A quote replaces the one before it of the same stock. With plain reliability a member that is full"
        " stops everybody. Semcast skips replaced quotes, for that member alone.",
        "Nobody waits for p4, nothing that counts is lost, and all five tables are the same in the end."
        " The views above are agreed: members see the same ones, also around a kill -9.",
    )
    for number, words in enumerate(lines):
        canvas.text(32, 668 + 20 * number, words, size=12, anchor="start", colour=SOFT)
    canvas.text(RIGHT, 44, "semcast demo", size=14, anchor="end", colour=INK, bold=True)
