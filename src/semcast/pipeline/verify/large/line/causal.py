"""5 where there is a line: who delivers something has what was sent before it.

What a process p has come to in com(c) is, of each sender, the last message that was sent there and that p
delivered. Everything that a sender sent before it is asked of p. More is asked only where one of these
senders had delivered something beyond that before it sent the message that p has come to: then p is asked for
that, too, and all that its sender sent before it, and so on. Where nobody had, there is nothing more to ask
for: what comes after a message of the same sender is beyond, as that is, so a chain of causes that leads
back to what p has delivered crosses there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from semcast.pipeline.verify.large.line.agreed import Debt, Lives
from semcast.pipeline.verify.large.line.knots import Ranked, Unranked
from semcast.pipeline.verify.large.line.places import ROW_BITS, Ints
from semcast.pipeline.verify.large.line.ranks import REST, Window
from semcast.pipeline.verify.large.line.rest import Straggler
from semcast.pipeline.verify.large.line.spans import cut, edges, inside

Frontier = Mapping[tuple[int, int, int], int]
"""By process, reg and sender: the last message of that sender that is asked for."""


def frontier_of(window: Window) -> Iterator[tuple[int, int, int, int]]:
    """(who, reg, author, number): the last one that was delivered, of those sent in the same com(c)."""
    mine = _own(window)
    keys = np.stack((window.parts.who[mine], window.places.reg[window.piece[mine]]))
    last = window.parts.last[mine] + window.base
    for who, reg in np.unique(keys, axis=1).T.tolist():
        yield who, reg, window.author, int(last[(keys[0] == who) & (keys[1] == reg)].max())


def sends_of(window: Window, wanted: Mapping[int, Collection[int]]) -> Iterator[tuple[int, int, int]]:
    """(author, number, spot): where the sender sent some messages; `wanted` are their numbers."""
    sends = window.sends
    for number in wanted.get(window.author, ()):
        at = number - window.base
        found = np.flatnonzero((sends.first <= at) & (at <= sends.last))
        for place in found[:1].tolist():
            offset = int(sends.offset[place] + at - sends.first[place])
            yield window.author, number, (int(sends.row[place]) << ROW_BITS) + offset


def crossings_of(
    window: Window, lives: Lives, frontier: Frontier, spots: Mapping[tuple[int, int, int], int]
) -> Iterator[tuple[int, int, int, int]]:
    """(who, reg, author, number): the last message beyond the frontier of `who` that a sender had delivered.

    `spots` says where a sender sent the last message that is asked of `who`: by `who`, reg and sender.
    """
    parts = window.parts
    spot = (parts.row << ROW_BITS) + parts.offset
    sent = window.sent.reg(parts.first)
    last = parts.last + window.base
    for reg in np.unique(sent[sent >= 0]).tolist():
        for who in lives.get(reg, ()):
            beyond = np.flatnonzero((sent == reg) & (last > frontier.get((who, reg, window.author), 0)))
            for deliverer in np.unique(parts.who[beyond]).tolist():
                limit = spots.get((who, reg, deliverer))
                if limit is not None and deliverer != window.author:
                    some = beyond[(parts.who[beyond] == deliverer) & (spot[beyond] < limit)]
                    if len(some):
                        yield who, reg, window.author, int(last[some].max())


def causes_of(window: Window, lives: Lives, frontier: Frontier) -> Iterator[Debt]:
    """What is asked of processes that they lack."""
    sent = window.sent
    for reg in np.unique(sent.regs[sent.regs >= 0]).tolist():
        here = sent.regs == reg
        for who in lives.get(reg, ()):
            upto = np.minimum(sent.last[here], frontier.get((who, reg, window.author), 0) - window.base)
            asked = sent.first[here] <= upto
            mine = window.parts.only((window.parts.who == who) & (window.places.reg[window.piece] == reg))
            _, low, high = cut(sent.first[here][asked], upto[asked], edges(mine.first, mine.last))
            free = inside(low, mine.first, mine.last) < 0
            for first, last in zip(low[free].tolist(), high[free].tolist(), strict=True):
                yield who, reg, window.author, first + window.base, last + window.base


def streams_of(window: Window) -> Iterator[tuple[int, int, int, int, int, int]]:
    """(who, author, reg, window, low, high): between which spots messages of the same com(c) are delivered.

    The low one is negative if they are not in the order of their numbers.
    """
    mine = _own(window)
    parts, reg = window.parts.only(mine), window.places.reg[window.piece[mine]]
    order = np.lexsort((parts.first, reg, parts.who))
    who, reg, spot = parts.who[order], reg[order], ((parts.row << ROW_BITS) + parts.offset)[order]
    fresh = np.flatnonzero((np.diff(who) != 0) | (np.diff(reg) != 0)) + 1
    for begin, some in zip([0, *fresh.tolist()], np.split(spot, fresh), strict=True):
        if len(some):
            low = int(some[0]) if (np.diff(some) > 0).all() else -1
            yield int(who[begin]), window.author, int(reg[begin]), window.base, low, int(some[-1])


def disordered(streams: Iterable[tuple[int, ...]]) -> tuple[int, int] | None:
    """A process that delivers messages of a sender out of order, and about the spot; None if none does."""
    before: tuple[tuple[int, int, int], int] | None = None
    for *stream, _, low, high in sorted(streams):
        who, author, reg = stream
        if low < 0 or (before is not None and before[0] == (who, author, reg) and before[1] >= low):
            return who, high
        before = (who, author, reg), high
    return None


def marks_of(window: Window) -> Iterator[tuple[int, int, int, int]]:
    """(author, reg, number, rank) of messages in chains that are next to the rest, and of the outermost."""
    sent = window.sent.reg(window.parts.first)
    regular = (window.chain == sent) & (sent >= 0)
    rest = (window.chain == REST) & (sent >= 0)
    for reg in np.unique(sent[regular]).tolist():
        chosen = regular & (sent == reg)
        numbers = np.unique(np.concatenate((window.parts.first[chosen], window.parts.last[chosen])))
        after = np.searchsorted(numbers, window.parts.first[rest & (sent == reg)])
        near = np.unique(np.concatenate((after - 1, after, [0, len(numbers) - 1])))
        near = numbers[near[(near >= 0) & (near < len(numbers))]]
        for number, rank in zip(near.tolist(), window.chains.rank(near).tolist(), strict=True):
            yield window.author, reg, number + window.base, rank


def successions(
    marks: Iterable[tuple[int, int, int, int]], rest: Iterable[Straggler]
) -> list[list[Ranked | Unranked]]:
    """For each sender and com(c) with some of the rest, what must follow each other in the line."""
    found: dict[tuple[int, int], list[tuple[int, Ranked | Unranked]]] = {}
    for message in rest:
        if message.sent:
            name = Unranked(message.author, message.first)
            found.setdefault((message.author, message.reg), []).append((message.first, name))
    for author, reg, number, rank in marks:
        if (author, reg) in found:
            found[author, reg].append((number, Ranked(reg, rank)))
    return [[name for _, name in sorted(set(names))] for names in found.values()]


def _own(window: Window) -> Ints:
    """The parts that were delivered in com(c) of the configuration they were sent in."""
    sent = window.sent.reg(window.parts.first)
    return np.flatnonzero((sent >= 0) & (sent == window.places.reg[window.piece]))
