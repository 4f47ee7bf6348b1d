"""State machines, drawn from the tables that the code obeys."""

from collections.abc import Mapping
from math import atan2, cos, hypot, sin

from semcast.demo.svg import AMBER, BLUE, GREEN, INK, RED, SOFT, Canvas
from semcast.protocols.ring import states as ring
from semcast.protocols.vsync import consensus
from semcast.protocols.vsync import states as vsync
from semcast.replication import states as replication

Moves = Mapping[tuple[str, str], list[str]]
"""From and to: the causes."""
Places = Mapping[str, tuple[float, float]]

BOX = (128, 36)
COLOURS = {"operational": GREEN, "reg-prim": GREEN, "decided": GREEN, "left": RED, "stopped": RED}


def ring_states() -> str:
    """Membership of the ring."""
    places = {
        "operational": (110, 70),
        "gather": (420, 70),
        "commit": (420, 210),
        "form": (420, 350),
        "evs": (110, 350),
        "left": (110, 210),
    }
    moves = _by_cause({(a.value, c.value): b.value for (a, c), b in ring.MOVES.items()})
    return _draw("The ring: states of a member", places, moves, "operational")


def vsync_states() -> str:
    """A member with agreed views."""
    places = {
        "joining": (110, 70),
        "operational": (420, 70),
        "flushing": (420, 210),
        "minority": (420, 350),
        "serving": (110, 350),
        "left": (110, 210),
    }
    moves = _by_cause({(a.value, c.value): b.value for (a, c), b in vsync.MOVES.items()})
    return _draw("Virtual synchrony: states of a member", places, moves, "joining")


def replication_states() -> str:
    """A replication server."""
    places = {
        "boot": (110, 60),
        "non-prim": (110, 180),
        "exchange-states": (330, 180),
        "exchange-actions": (560, 180),
        "construct": (560, 300),
        "reg-prim": (560, 420),
        "trans-prim": (330, 420),
        "no": (330, 300),
        "un": (150, 340),
        "out": (330, 60),
        "stopped": (110, 460),
    }
    moves = _by_cause({(a.value, c.value): b.value for (a, c), b in replication.MOVES.items()})
    return _draw("Replication: states of a server", places, moves, "boot")


def consensus_states() -> str:
    """One instance of consensus at one member."""
    places = {
        "idle": (110, 70),
        "gathering": (420, 70),
        "proposed": (420, 190),
        "awaiting": (110, 190),
        "fetching": (110, 310),
        "acked": (420, 310),
        "decided": (265, 410),
    }
    moves = {
        (str(old), str(new)): ["enters a round" if new in ("gathering", "awaiting") else f"{new}"]
        for old, reached in consensus.MOVES.items()
        for new in reached
    }
    return _draw("Consensus: phases of one instance", places, moves, "idle")


def _by_cause(table: Mapping[tuple[str, str], str]) -> Moves:
    found: dict[tuple[str, str], list[str]] = {}
    for (old, cause), new in table.items():
        found.setdefault((old, new), []).append(cause)
    return found


def _draw(title: str, places: Places, moves: Moves, start: str) -> str:
    named = {state for pair in moves for state in pair}
    if named != set(places):
        raise ValueError(f"{title}: no place for {named ^ set(places)}")
    legend = max(x for x, _ in places.values()) + BOX[0] / 2 + 60
    height = max(max(y for _, y in places.values()) + 60, 70 + 20 * len(moves))
    words = [f"{old} → {new}: {', '.join(causes)}" for (old, new), causes in moves.items()]
    canvas = Canvas(int(legend + 40 + 6.6 * max(map(len, words))), int(height), title)
    canvas.text(24, 28, title, size=15, anchor="start", bold=True)
    for number, (old, new) in enumerate(moves, 1):
        colour = SOFT if old != new else AMBER
        _arrow(canvas, places, old, new, str(number), colour)
        canvas.badge(legend + 8, 52 + 20 * number - 4, str(number), SOFT)
        canvas.text(legend + 24, 52 + 20 * number, words[number - 1], size=12, anchor="start")
    for state, (x, y) in places.items():
        colour = COLOURS.get(state, BLUE)
        canvas.box(x - BOX[0] / 2, y - BOX[1] / 2, *BOX, colour)
        canvas.text(x, y + 5, state, bold=True, colour=INK)
    x, y = places[start]
    canvas.dot(x - BOX[0] / 2 - 22, y, INK, 5)
    canvas.line(x - BOX[0] / 2 - 16, y, x - BOX[0] / 2 - 2, y, INK, arrow=True)
    return canvas.render()


def _arrow(canvas: Canvas, places: Places, old: str, new: str, number: str, colour: str) -> None:
    """A bent arrow from box to box, so that both directions of a pair can be told apart."""
    (x1, y1), (x2, y2) = places[old], places[new]
    if old == new:
        top = y1 - BOX[1] / 2
        canvas.path(
            f"M{x1 + 20:g},{top:g} C{x1 + 20:g},{top - 34:g} {x1 + 62:g},{top - 34:g} {x1 + 50:g},{top:g}",
            colour,
            arrow=True,
        )
        canvas.badge(x1 + 48, top - 24, number, colour)
        return
    angle = atan2(y2 - y1, x2 - x1)
    bend = 22 + 0.06 * hypot(x2 - x1, y2 - y1)
    mx, my = (x1 + x2) / 2 - bend * sin(angle), (y1 + y2) / 2 + bend * cos(angle)
    sx, sy = _edge(x1, y1, mx, my)
    ex, ey = _edge(x2, y2, mx, my)
    canvas.path(f"M{sx:g},{sy:g} Q{mx:g},{my:g} {ex:g},{ey:g}", colour, arrow=True)
    canvas.badge(0.25 * sx + 0.5 * mx + 0.25 * ex, 0.25 * sy + 0.5 * my + 0.25 * ey, number, colour)


def _edge(x: float, y: float, tx: float, ty: float) -> tuple[float, float]:
    """Where the line from the middle of a box to a point leaves the box, rounded."""
    dx, dy = tx - x, ty - y
    reach = min(
        (BOX[0] / 2 + 3) / abs(dx) if dx else float("inf"), (BOX[1] / 2 + 3) / abs(dy) if dy else float("inf")
    )
    return round(x + dx * reach, 1), round(y + dy * reach, 1)
