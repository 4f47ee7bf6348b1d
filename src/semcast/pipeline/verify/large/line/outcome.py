"""What the paths of one run say about the specifications that are about order alone.

A line is an order of all events in which the deliveries of a message are one moment, and those of a
configuration. Where there is one, 6.1 and 6.2 hold. 1.1 and 2.4 ask for an order of the same events with
fewer of them taken together, so they hold, too. And so does 2.3: if something that was sent after p came to c
preceded the coming of q to c, it would be in the line after c, and before it.

Where there is none, sends or no sends decide between 6.1 and 6.2. 1.1 holds if there is a line that does not
take configurations together. Else the others stay open: what breaks the line may be nothing but deliveries of
one message that are not one moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from semcast.pipeline.verify.large.line.knots import Block, Knots
from semcast.pipeline.verify.large.line.paths import BACKWARDS, BEHIND, OVERTAKEN, Blocks
from semcast.pipeline.verify.large.line.places import ROW_BITS, Entry
from semcast.pipeline.verify.large.line.ranks import AGAIN, ASTRAY, EARLY, OVER_BOUND, SEND

PRECEDENCE, CUT_AFTER, CUT_BEFORE = "evs_1_1_precedence", "evs_2_3_cut_after", "evs_2_4_cut_before"
RESPECTS, SAME_MOMENT = "evs_6_1_order_respects_precedence", "evs_6_2_same_moment"
CAUSAL, AGREED = "evs_5_causal", "evs_6_3_agreed"
ORDER = (PRECEDENCE, CUT_AFTER, CUT_BEFORE, RESPECTS, SAME_MOMENT)

_MOST_OVERTAKEN = 1000
MOST_BLOCKS = 400_000
"""The most parts of paths that the driver walks through."""

TOO_MUCH = "messages that no single process delivered are too many to order them"
TOO_LONG = "a row is about more messages than can be ordered here"
NO_LINE = "deliveries have no common order, and without one the run is too large to tell"
LOOSE = "a message was delivered in several configurations that have nothing in common"
TANGLED = "what no single process delivered may be out of the order of its senders"
ENDLESS = "what was sent before leads too far back"
CIRCULAR = "precedence runs in a circle"

Spot = tuple[int, int]
"""A process, and the index of a row there."""


@dataclass(slots=True)
class Outcome:
    """The specifications that a run breaks, and those that cannot be told."""

    broken: dict[str, tuple[Spot, str]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    line: Knots | None = None
    """Where there is a line."""

    deliveries: Knots | None = None
    """Where there is one of deliveries alone, without sends, and without configurations taken together."""

    overtaken: list[Spot] = field(default_factory=list)
    """Some deliveries that come after what the reference delivered after them: 6.3 forbids that if the sender
    is a member there."""

    loose: bool = False
    """Whether a message is delivered in several com(c): then com(c) have lines of their own."""


def outcome(blocks: Mapping[int, Blocks], entries: Mapping[int, list[Entry]]) -> Outcome:
    """Judge one run by its paths; `entries` are configurations, in the order of each process."""
    found = Outcome()
    noticed = _noticed(blocks)
    if OVER_BOUND in noticed:
        found.unknown = dict.fromkeys(ORDER, TOO_LONG)
        return found
    paths = {who: _path(blocks.get(who), entries.get(who, [])) for who in sorted({*blocks, *entries})}
    found.overtaken = _overtaken(blocks)
    found.loose = AGAIN in noticed or ASTRAY in noticed
    _judge(found, noticed, paths)
    return found


def _judge(found: Outcome, noticed: dict[int, Spot], paths: dict[int, list[Block | Entry]]) -> None:
    early, behind, back = noticed.get(EARLY), noticed.get(BEHIND), noticed.get(BACKWARDS)
    precedes = False
    if back is None:
        line = Knots(paths, sends=True)
        stuck = _spot(line.stuck())
        if stuck is None and early is None and behind is None:
            found.line = found.deliveries = line
            return
        deliveries = Knots(paths, sends=False, together=False)
        found.deliveries = None if deliveries.walk.stuck else deliveries
        precedes = (
            early is None and behind is None and not Knots(paths, sends=True, together=False).walk.stuck
        )
        behind = behind or stuck
        back = _spot(Knots(paths, sends=False).stuck())
    one = early or behind or back
    assert one is not None
    found.broken[RESPECTS] = one, "deliveries in different orders"
    if back is not None:
        found.broken[SAME_MOMENT] = back, "deliveries in different orders"
    if early is not None:
        found.broken[PRECEDENCE] = early, "delivered before it was sent"
    elif not precedes:
        found.unknown[PRECEDENCE] = NO_LINE
    found.unknown |= dict.fromkeys((CUT_AFTER, CUT_BEFORE), NO_LINE if early is None else CIRCULAR)


def _noticed(blocks: Mapping[int, Blocks]) -> dict[int, Spot]:
    """An example of everything that was noticed."""
    found: dict[int, Spot] = {}
    for who, some in sorted(blocks.items()):
        for what, spot in zip(some.what.tolist(), some.spot.tolist(), strict=True):
            if what > SEND:
                found.setdefault(what, (who, spot >> ROW_BITS))
    return found


def _overtaken(blocks: Mapping[int, Blocks]) -> list[Spot]:
    found = ((who, some.spot[some.what == OVERTAKEN].tolist()) for who, some in sorted(blocks.items()))
    return [(who, spot >> ROW_BITS) for who, spots in found for spot in spots][:_MOST_OVERTAKEN]


def _path(blocks: Blocks | None, entries: list[Entry]) -> list[Block | Entry]:
    path: list[Block | Entry] = list(entries)
    if blocks is not None:
        steps = blocks.only(blocks.what <= SEND)
        path += map(Block._make, zip(*(column.tolist() for column in steps), strict=True))
    return sorted(path, key=lambda part: part.spot)


def _spot(stuck: tuple[int, int] | None) -> Spot | None:
    return None if stuck is None else (stuck[0], stuck[1] >> ROW_BITS)
