"""How a server outside of the group is brought up to date by one inside: pure functions of both sides.

It is given what the other has green *on its disk*, and in the same image what that knows there of primaries:
greens that are only in memory may come in another order after a crash of all. In the other direction it hands
in its own reds, which a member multicasts for it, in red order.
"""

import msgspec

from semcast.replication.actions import Run
from semcast.replication.exchange import reds_of
from semcast.replication.frames import Offer
from semcast.replication.ids import Creator, Number, Server, Weighted
from semcast.replication.knowledge import Prim
from semcast.replication.lineage import goes_on_from
from semcast.replication.machine import Machine
from semcast.replication.records import Fetched, Pulled
from semcast.replication.snapshots import Snapshot
from semcast.replication.states import CREATES
from semcast.replication.strangers import foundation


class Image(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a server has on its disk, and what it can do for the one who asks."""

    line: Number
    prim: Prim
    attempt: Number
    founders: Weighted
    cut: tuple[tuple[Creator, Number], ...]
    """All that it knows of each creator, on the disk or not."""
    takes: bool
    """Whether it can multicast what it is handed."""
    welcome: bool
    """Whether who asks belongs to the group."""
    start: Number = 0
    """It has the actions themselves from here on."""


def image(machine: Machine, server: Server) -> Image:
    """Of this server, for one who asks."""
    books, mark = machine.books, machine.image()
    since = books.members.since.get(server)
    return Image(
        mark.line,
        mark.prim,
        mark.attempt,
        mark.founders,
        tuple(sorted(books.colours.cut.items())),
        machine.conf is not None and machine.state in CREATES,
        since is not None and since <= mark.line,
        books.colours.start,
    )


class Tail(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Green actions behind a position, and what the giver knows with them."""

    image: Image
    position: Number
    runs: list[Run]


_decode_tail = msgspec.msgpack.Decoder(Tail).decode
_decode_runs: "msgspec.msgpack.Decoder[list[Run]]" = msgspec.msgpack.Decoder(list[Run])


def read_tail(data: bytes) -> Tail:
    """What was given."""
    return _decode_tail(data)


def read_runs(data: bytes) -> list[Run]:
    """What was handed in."""
    return _decode_runs.decode(data)


def offer(machine: Machine, server: Server) -> Offer:
    """How this server stands, for one who asks."""
    found = image(machine, server)
    founded = foundation(found.founders)
    return Offer(
        found.line, found.start, found.prim.index > 0, found.takes, found.welcome, found.prim, founded
    )


def tail(machine: Machine, position: int, line: int, most: int) -> list[Run]:
    """Green runs behind a position, up to a line, of so many bytes, about."""
    found: list[Run] = []
    size = 0
    for _, run in machine.books.colours.between(position, line, most):
        if found and size > most:
            break
        found.append(run)
        size += sum(map(len, run.actions))
    return found


def is_foreign(machine: Machine, other: int) -> bool:
    """Whether this is the number of another group."""
    mine = foundation(machine.books.members.founders)
    return bool(mine and other and mine != other)


def may_enter(machine: Machine, offered: Offer) -> bool:
    """A store that knows no primary waits until it was let in, unless it founds the group with the other."""
    if is_foreign(machine, offered.foundation):
        return False
    fresh = not machine.books.prim.index
    founding = not offered.founded and bool(machine.books.names)
    return not fresh or founding or offered.welcome


def follows(machine: Machine, offered: Offer) -> bool:
    """Whether this server can go on with what the other has; it stops where it never can (`lineage.py`)."""
    known, other = machine.books.prim, offered.prim
    if not known.index or not other.index or known.lineage == other.lineage:
        return machine.server not in other.forgot or not machine.stop_for(other)
    if goes_on_from(known, other):
        return True
    return other.rank > known.rank and not machine.stop_for(other)


def take(machine: Machine, runs: list[Run], offered: Image) -> None:
    """Write what was pulled: all or nothing counts after a crash."""
    books = machine.books
    line, known = books.colours.line, books.prim
    if not offered.prim.index or (known.index and (offered.line, offered.prim.rank) <= (line, known.rank)):
        return
    for run in runs:
        machine.journal.write(Fetched(run))
    machine.journal.write(Pulled(offered.prim, offered.attempt, offered.founders))
    machine.pulled(line)


def rebase(machine: Machine, snapshot: Snapshot) -> list[Run]:
    """Go on from a snapshot, here and on the disk; returns own runs that are green in it."""
    overtaken = machine.books.rebase(snapshot)
    machine.journal.begin_anew()
    machine.rebased(overtaken)
    return overtaken


def hand_in(machine: Machine, runs: list[Run]) -> None:
    """Multicast reds for one who is ahead."""
    conf = machine.conf
    if conf is not None and machine.state in CREATES:
        for again in reds_of(conf, runs, machine.settings.run_bytes):
            machine.say(again)
