"""6.3 where there is a line: who delivers something has what others delivered before it.

Whoever delivers two messages delivers them in the order of the line. What is left is what a process p lacks:
a message m is asked of it if some q delivered m, and after it an m' that p delivered in a configuration with
the sender of m. Of all that p in such a configuration and q both delivered, only the last matters: it is the
top of p and q. And of what q delivered and p lacks, only the first matters to know whether there is anything
to look at.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from semcast.pipeline.verify.large.line.holdings import holdings_of
from semcast.pipeline.verify.large.line.ranks import Window
from semcast.pipeline.verify.large.line.rest import Straggler

Lives = Mapping[int, Collection[int]]
"""By reg, the processes that spent any time in com(c)."""

Asker = tuple[int, int, int, int]
"""A process p, another one q, a sender, and a reg."""

Debt = tuple[int, int, int, int, int]
"""A process and a reg, a sender, and the first and last message that are lacking."""


def tops_of(window: Window) -> Iterator[tuple[int, int, int]]:
    """(piece, q, rank): the highest that was delivered there and by q."""
    for held in holdings_of(window):
        for pieces in held.piece:
            for who, others in zip(held.who.tolist(), held.piece, strict=True):
                both = np.flatnonzero((pieces >= 0) & (others >= 0))
                if not len(both):
                    continue
                here, at = pieces[both], np.array([0])
                if (here != here[0]).any():
                    _, at = np.unique(here, return_index=True)
                for part in both[at].tolist():
                    yield int(pieces[part]), who, held.rank(part)


def lows_of(window: Window, lives: Lives) -> Iterator[tuple[Asker, int]]:
    """The lowest rank of what q delivered, and p lacks."""
    for held in holdings_of(window):
        for lacking in lives[held.reg]:
            missing = held.sent & ~held.there(lacking)
            if missing.any():
                for who, others in zip(held.who.tolist(), held.piece, strict=True):
                    found = np.flatnonzero(missing & (others >= 0))
                    if len(found):
                        yield (lacking, who, window.author, held.reg), held.rank(int(found[-1]))


def debts_of(window: Window, lives: Lives, tops: Mapping[Asker, int]) -> Iterator[Debt]:
    """What p lacks and q delivered before the top of both; tops are doubled ranks."""
    for held in holdings_of(window):
        ranks = 2 * window.chains.rank(held.first)
        for lacking in lives[held.reg]:
            missing = held.sent & ~held.there(lacking)
            asked = np.zeros_like(missing)
            if missing.any():
                for who, others in zip(held.who.tolist(), held.piece, strict=True):
                    top = tops.get((lacking, who, window.author, held.reg), -1)
                    asked |= missing & (others >= 0) & (ranks < top)
            for first, last in zip(*(column.tolist() for column in held.absolute(asked)), strict=True):
                yield lacking, held.reg, window.author, first, last


@dataclass(slots=True)
class Tops:
    """What p and q both delivered last, for each sender in the configuration where p did."""

    rank: dict[Asker, int] = field(default_factory=lambda: defaultdict(lambda: -1))
    """Doubled; between ranks for the rest."""

    ranked: dict[Asker, int] = field(default_factory=lambda: defaultdict(lambda: -1))
    """Without the rest."""

    turn: dict[Asker, int] = field(default_factory=lambda: defaultdict(lambda: -1))
    """Of the rest only."""


def gather_tops(
    tops: Mapping[tuple[int, int], int],
    rest: Collection[Straggler],
    who: Sequence[int],
    reg: Sequence[int],
    members: Sequence[Set[int]],
) -> Tops:
    """The tops by sender. `who`, `reg` and `members` say of a piece whose it is, and who is there."""
    found = Tops()
    below: dict[tuple[int, int], int] = {}
    turns: dict[tuple[int, int], int] = {}
    for message in rest:
        for piece in message.pieces.values():
            for other in message.pieces:
                key = piece, other
                below[key] = max(below.get(key, -1), message.below)
                turns[key] = max(turns.get(key, -1), message.turn)
    for piece, other in {**tops, **below}:
        rank, between = 2 * tops.get((piece, other), -1), 2 * below.get((piece, other), -1) + 1
        for author in members[piece]:
            asker = who[piece], other, author, reg[piece]
            found.ranked[asker] = max(found.ranked[asker], rank)
            found.rank[asker] = max(found.rank[asker], rank, between)
            found.turn[asker] = max(found.turn[asker], turns.get((piece, other), -1))
    return found


def debts_of_rest(rest: Collection[Straggler], lives: Lives, tops: Tops) -> Iterator[Debt]:
    """What of the rest p lacks, and q delivered before something that both have."""
    for message in rest:
        if not message.sent:
            continue
        for lacking in lives[message.reg]:
            if lacking in message.pieces:
                continue
            keys = [(lacking, who, message.author, message.reg) for who in message.pieces]
            if any(tops.ranked[key] > 2 * message.below + 1 or tops.turn[key] > message.turn for key in keys):
                yield lacking, message.reg, message.author, message.first, message.last
