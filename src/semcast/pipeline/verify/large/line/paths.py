"""The steps of one process in their order, with all that follows its chain taken together.

Where a process delivers messages of one chain in growing rank, only where that begins and ends says anything
about the order of other things. So a path is few blocks: one for each configuration and chain, and one for
every message of the rest.
"""

from typing import NamedTuple

import numpy as np

from semcast.pipeline.verify.large.line.places import REG_BITS, ROW_BITS, Flags, Ints, Places
from semcast.pipeline.verify.large.line.ranks import DELIVERY, REST, SEND, Items

STRETCH_BITS = 17
"""Paths are put together from stretches of so many rows. No result depends on it."""

BACKWARDS, BEHIND, OVERTAKEN = 8, 9, 10
"""BACKWARDS: a process delivers something of its chain after what follows it there. BEHIND: it does so
before it sends it, and never delivers it itself. OVERTAKEN: what goes backwards was sent in the configuration
of its chain, and is delivered in com(c) of that.
"""

_EXAMPLES = 3

NOTHING = -1

_WHAT, _CHAIN = 0, 3
_SENT = _CHAIN + REG_BITS + 1
_SIZE = _SENT + REG_BITS + 1


class Blocks(NamedTuple):
    """Parts of a path: of a chain, of the rest, or something that was noticed."""

    spot: Ints
    what: Ints
    """DELIVERY, or SEND for a message of the rest that is sent; else what was noticed."""

    chain: Ints
    low: Ints
    """The lowest rank that is delivered, NOTHING if none is; of the rest, the sender."""

    high: Ints
    """The highest rank that is delivered; of the rest, the number."""

    aim: Ints
    """The lowest rank of what is sent, NOTHING if nothing is; of the rest, the reg where it was sent."""

    size: Ints
    """Of the rest, how many messages."""

    def only(self, chosen: Ints | Flags) -> "Blocks":
        """Some of them."""
        return Blocks(*(column[chosen] for column in self))


def pack_items(items: Items) -> Ints:
    """Items as rows of numbers, but for who does it."""
    tag = (
        items.what << _WHAT
        | (items.chain + 1) << _CHAIN
        | (items.sent + 1) << _SENT
        | (items.size - 1) << _SIZE
    )
    return np.stack((items.spot, tag, items.low, items.high))


def unpack_items(who: int, packed: Ints) -> Items:
    """The items again."""
    spot, tag, low, high = packed

    def field(begin: int, end: int) -> Ints:
        found: Ints = tag >> begin & ((1 << (end - begin)) - 1)
        return found

    chain, sent = field(_CHAIN, _SENT) - 1, field(_SENT, _SIZE) - 1
    return Items(
        np.full(len(spot), who), spot, field(_WHAT, _CHAIN), chain, low, high, sent, field(_SIZE, 63) + 1
    )


def blocks_of(who: int, items: Items, places: Places) -> Blocks:
    """The blocks of one stretch of a path, and one example of everything that is wrong."""
    is_step = items.what <= SEND
    noticed = items.only(~is_step)
    steps = items.only(is_step)
    steps = steps.only(np.argsort(steps.spot, kind="stable"))
    found = [_as_noticed(noticed, noticed.what)]
    if len(steps.who):
        piece = places.piece(who, steps.spot >> ROW_BITS)
        fresh = (np.diff(piece) != 0) | (np.diff(steps.chain) != 0) | (steps.chain[1:] == REST)
        block = np.concatenate(([0], np.cumsum(fresh)))
        found += [*_wrong(steps, block, places.reg[piece]), _folded(steps, block)]
    return joined_blocks(found)


def joined_blocks(some: list[Blocks]) -> Blocks:
    """All of them."""
    return Blocks(*(np.concatenate(columns) for columns in zip(*some, strict=True)))


def _folded(steps: Items, block: Ints) -> Blocks:
    begins = np.flatnonzero(np.concatenate(([True], block[1:] != block[:-1])))
    chain, rest = steps.chain[begins], steps.chain[begins] == REST
    delivered = steps.what == DELIVERY
    huge = np.iinfo(np.int64).max
    low = np.minimum.reduceat(np.where(delivered, steps.low, huge), begins)
    high = np.maximum.reduceat(np.where(delivered, steps.high, NOTHING), begins)
    aim = np.minimum.reduceat(np.where(delivered, huge, steps.low), begins)
    low, aim = (np.where(column == huge, NOTHING, column) for column in (low, aim))
    return Blocks(
        steps.spot[begins],
        np.where(rest, steps.what[begins], DELIVERY),
        chain,
        np.where(rest, steps.low[begins], low),
        np.where(rest, steps.high[begins], high),
        np.where(rest, steps.sent[begins], aim),
        steps.size[begins],
    )


def _wrong(steps: Items, block: Ints, reg: Ints) -> list[Blocks]:
    """A few deliveries that go backwards, and one message that is sent too late."""
    delivered = np.flatnonzero((steps.what == DELIVERY) & (steps.chain != REST))
    before, after = delivered[:-1], delivered[1:]
    back = (block[before] == block[after]) & (steps.high[before] > steps.low[after])
    overtaken = back & (steps.sent[after] == steps.chain[after]) & (reg[after] == steps.chain[after])
    sends = np.flatnonzero((steps.what == SEND) & (steps.chain != REST))
    last = np.searchsorted(delivered, sends) - 1
    previous = delivered[last] if len(delivered) else sends
    behind = (last >= 0) & (block[previous] == block[sends]) & (steps.high[previous] > steps.low[sends])
    return [
        _as_noticed(steps.only(after[back][:1]), BACKWARDS),
        _as_noticed(steps.only(sends[behind][:1]), BEHIND),
        _as_noticed(steps.only(after[overtaken][:_EXAMPLES]), OVERTAKEN),
    ]


def _as_noticed(items: Items, what: int | Ints) -> Blocks:
    kind = np.broadcast_to(np.asarray(what, np.int64), items.spot.shape)
    return Blocks(items.spot, kind, items.chain, items.low, items.high, items.sent, items.size)
