"""What one slow receiver does to a group: simulated with the real protocol code."""

from semcast.core.ids import MILLISECOND
from semcast.demo.svg import BLUE, LINE, RED, SOFT, Canvas
from semcast.sim.slow_receiver import SlowReceiver, measure

DELAYS = (5, 10, 15, 20, 25, 30, 40)
LEFT, RIGHT, TOP, BOTTOM = 64, 700, 74, 330
MOST = 110.0


def slow_receiver() -> str:
    """Messages a second at the sender, by the time the slowest receiver takes for each."""
    canvas = Canvas(720, 400, "One slow receiver: throughput of the group")
    canvas.text(24, 30, "One slow member: how fast may the others go?", size=15, anchor="start", bold=True)
    words = "messages a second the sender gets rid of; it offers 100. Half of them update one item."
    canvas.text(24, 50, words, size=12, anchor="start", colour=SOFT)
    for rate in (0, 25, 50, 75, 100):
        canvas.line(LEFT, _y(rate), RIGHT, _y(rate), LINE, width=0.8)
        canvas.text(LEFT - 8, _y(rate) + 4, str(rate), size=11, anchor="end", colour=SOFT)
    for delay in DELAYS:
        canvas.text(_x(delay), BOTTOM + 18, f"{delay} ms", size=11, colour=SOFT)
    words = "time the slow member takes for each message"
    canvas.text((LEFT + RIGHT) / 2, BOTTOM + 40, words, size=12, colour=SOFT)
    for stack, name, colour, above in (
        ("s-rm", "semantic reliability (S-RM)", BLUE, -12),
        ("reliable", "plain reliability", RED, 20),
    ):
        rates = [measure(SlowReceiver(stack, delay * MILLISECOND)).sent for delay in DELAYS]
        points = [(_x(delay), _y(rate)) for delay, rate in zip(DELAYS, rates, strict=True)]
        canvas.path("M" + " L".join(f"{x:g},{y:g}" for x, y in points), colour, width=2.5)
        for (x, y), rate in zip(points, rates, strict=True):
            canvas.dot(x, y, colour)
            canvas.text(x, y + above, f"{rate:.0f}", size=11, colour=colour, halo=True)
        x, y = points[4]
        canvas.text(
            x + 14, y + above + (-14 if above < 0 else 34), name, colour=colour, anchor="start", bold=True
        )
    return canvas.render()


def _x(delay: float) -> float:
    return LEFT + 24 + (RIGHT - LEFT - 48) * (delay - DELAYS[0]) / (DELAYS[-1] - DELAYS[0])


def _y(rate: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * rate / MOST, 1)
