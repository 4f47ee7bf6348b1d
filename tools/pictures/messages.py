"""One message through each stack: who sends what, from `send` at one member to delivery at all."""

from semcast.demo.svg import AMBER, BLUE, GREEN, LINE, RED, SOFT, VIOLET, Canvas

WIDTH = 760
STEP = 44


class Lanes:
    """Members side by side, time downwards."""

    def __init__(self, title: str, names: tuple[str, ...], steps: int) -> None:
        self.canvas = Canvas(WIDTH, 120 + STEP * steps, title)
        self.canvas.text(24, 30, title, size=15, anchor="start", bold=True)
        gap = (WIDTH - 220) / (len(names) - 1)
        self.x = {name: 110 + gap * number for number, name in enumerate(names)}
        for name, x in self.x.items():
            self.canvas.box(x - 62, 48, 124, 30, BLUE)
            self.canvas.text(x, 68, name, bold=True)
            self.canvas.line(x, 78, x, 104 + STEP * steps, LINE)
        self.y = 90.0

    def step(self) -> None:
        """Later."""
        self.y += STEP

    def arrow(self, source: str, target: str, words: str, colour: str = BLUE, *, lost: bool = False) -> None:
        """A frame from one to another; a lost one ends half way."""
        x1, x2 = self.x[source], self.x[target]
        end = x1 + (x2 - x1) * (0.62 if lost else 0.985)
        fall = 14 * (end - x1) / (x2 - x1)
        self.canvas.line(x1, self.y, end, self.y + fall, RED if lost else colour, arrow=True, dashed=lost)
        if lost:
            self.canvas.text(
                end + 12, self.y + fall + 5, "✕ lost", size=12, colour=RED, anchor="start", halo=True
            )
        if words:
            self.canvas.text((x1 + end) / 2, self.y + fall / 2 - 7, words, size=12, colour=colour, halo=True)

    def note(self, at: str, words: str, colour: str = SOFT) -> None:
        """What a member does."""
        x = self.x[at]
        self.canvas.dot(x, self.y + 10, colour, 4)
        last = max(self.x.values())
        if x == last:
            self.canvas.text(x - 10, self.y + 14, words, size=12, anchor="end", colour=colour, halo=True)
        else:
            self.canvas.text(x + 10, self.y + 14, words, size=12, anchor="start", colour=colour, halo=True)

    def everywhere(self, words: str, colour: str = GREEN) -> None:
        """What all members do."""
        for x in self.x.values():
            self.canvas.dot(x, self.y + 10, colour, 5)
        xs = sorted(self.x.values())
        self.canvas.text(
            xs[0] + 14, self.y + 14, words, size=12, colour=colour, bold=True, anchor="start", halo=True
        )


def ring() -> str:
    """The token orders; two rotations make a message safe."""
    lanes = Lanes('stack="ring": a token orders messages', ("a", "b", "c"), 8)
    lanes.note("a", "send(m): queued until a holds the token")
    lanes.step()
    lanes.arrow("c", "a", "token: next number 17", AMBER)
    lanes.step()
    lanes.arrow("a", "b", "", BLUE)
    lanes.arrow("a", "c", "m is number 17", BLUE)
    lanes.step()
    lanes.everywhere('order="agreed": delivered after 16')
    lanes.step()
    lanes.arrow("a", "b", "token: next 18, all have 16", AMBER)
    lanes.step()
    lanes.arrow("b", "c", "token", AMBER)
    lanes.step()
    lanes.arrow("c", "a", "token: all have 17", AMBER)
    lanes.step()
    lanes.note("a", "one more rotation tells everybody")
    lanes.step()
    lanes.everywhere('order="safe": delivered, all have it')
    return lanes.canvas.render()


def vsync() -> str:
    """Sent at once; total order adds a decision; stability by acknowledgements."""
    lanes = Lanes('stack="vsync": send at once, agree on views', ("a", "b", "c"), 6)
    lanes.note("a", "send(m)")
    lanes.step()
    lanes.arrow("a", "b", "", BLUE)
    lanes.arrow("a", "c", 'm, with a\'s vector time if order="causal"', BLUE)
    lanes.step()
    lanes.everywhere("fifo, causal: delivered")
    lanes.step()
    lanes.arrow("b", "a", "order: m is next", AMBER)
    lanes.arrow("b", "c", 'order="total": b orders', AMBER)
    lanes.step()
    lanes.everywhere("total: delivered")
    lanes.step()
    lanes.arrow("c", "a", "gossip: everybody has m; buffers are freed", VIOLET)
    return lanes.canvas.render()


def semantic() -> str:
    """S-RM: loss, a request, and a replacement."""
    lanes = Lanes('stack="s-rm": a message, or one that replaces it', ("a", "b", "c (slow)"), 8)
    lanes.note("a", 'send(p1, item="IBM")')
    lanes.step()
    lanes.arrow("a", "b", "", BLUE)
    lanes.arrow("a", "c (slow)", "p1", BLUE)
    lanes.step()
    lanes.note("c (slow)", "p1 waits: the program is busy", AMBER)
    lanes.step()
    lanes.arrow("a", "b", 'p2, item="IBM"', BLUE)
    lanes.arrow("a", "c (slow)", "", BLUE, lost=True)
    lanes.step()
    lanes.arrow("c (slow)", "b", "request: p2 is missing", AMBER)
    lanes.step()
    lanes.arrow("b", "c (slow)", "p2 (any holder repairs)", BLUE)
    lanes.step()
    lanes.note("c (slow)", "p2 replaces p1 in the queue: p1 is purged", RED)
    lanes.step()
    lanes.note("b", "delivered p1, p2", GREEN)
    lanes.note("c (slow)", "delivers p2 only", GREEN)
    lanes.step()
    lanes.arrow("c (slow)", "a", "gossip: what everybody has; buffers are freed", VIOLET)
    return lanes.canvas.render()


def gossip() -> str:
    """A publisher, a logger and a subscriber that was away."""
    lanes = Lanes('stack="gossip": publish, log, catch up', ("publisher", "logger", "subscriber"), 7)
    lanes.arrow("publisher", "logger", "m", BLUE)
    lanes.arrow("publisher", "subscriber", "", BLUE, lost=True)
    lanes.step()
    lanes.note("logger", "writes m to disk", SOFT)
    lanes.step()
    lanes.arrow("logger", "publisher", "logged: send(..., logged=True) returns", GREEN)
    lanes.step()
    lanes.arrow("logger", "subscriber", "gossip: the log ends at m", VIOLET)
    lanes.step()
    lanes.arrow("subscriber", "logger", "request: m is missing", AMBER)
    lanes.step()
    lanes.arrow("logger", "subscriber", "m, or a receipt that m was replaced", BLUE)
    lanes.step()
    lanes.arrow("subscriber", "logger", "acknowledged: the session moves on", GREEN)
    return lanes.canvas.render()
