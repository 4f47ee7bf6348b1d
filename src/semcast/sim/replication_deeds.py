"""What clients and operators do to simulated replication servers."""

from collections.abc import Sequence

from semcast.core.ids import Nanos
from semcast.core.stack import Stack
from semcast.replication.actions import Asked, Change, Join, Leave, Reweigh, asked, change
from semcast.replication.books import Books
from semcast.replication.creation import Cut, Wish
from semcast.replication.lineage import ForgetError, forgetting
from semcast.replication.reads import DIRTY, SESSION
from semcast.replication.records import decode, encode
from semcast.replication.stack import Replication
from semcast.sim.faults import Deed, Offline


def server_of(stacks: Sequence[Stack], member: int) -> Replication:
    """The server on a host."""
    stack = stacks[member]
    assert isinstance(stack, Replication)
    return stack


class Ask(Deed, frozen=True, tag="ask"):
    """A client asks for something, perhaps again, and perhaps after it looked elsewhere."""

    client: str
    number: int
    level: str
    looked_at: int | None = None
    """The member where it read what has no place yet, right before."""

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """Take what it saw along."""
        seen: Cut = ()
        if self.looked_at is not None:
            other = server_of(stacks, self.looked_at)
            if other.books.prim.index:
                shown = other.reading.read(DIRTY, self.client)
                seen = () if shown is None else shown.cut
        action = asked(Asked(self.client, self.number, 0, b"asked"))
        server_of(stacks, self.member).request(now, [Wish(action, self.level, None, seen)])


class LookDeed(Deed, frozen=True, tag="look"):
    """A client reads."""

    client: str
    level: str

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:  # noqa: ARG002
        """Where there is a group."""
        server = server_of(stacks, self.member)
        if server.books.prim.index and (self.level != SESSION or server.machine.settings.notes):
            server.reading.read(self.level, self.client)


class Collect(Deed, frozen=True, tag="collect"):
    """The state of a service is asked for, and what is in it forgotten, if there is much of it."""

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:  # noqa: ARG002
        """At the point of the order that it is given next."""
        server_of(stacks, self.member).want_state()


class Forget(Offline, frozen=True, tag="forget"):
    """An operator makes a server go on without others (`semcast serve --forget`)."""

    others: tuple[int, ...]
    wiped: bool
    """Whether the disks of these are gone, too. If not, they come back, and might go on by themselves."""

    def do(self, records: Sequence[bytes]) -> Sequence[bytes]:
        """Nothing where it is refused, or where those might be a quorum."""
        books = Books()
        books.replay(map(decode, records))
        names = [f"p{number}" for number in self.others]
        weights = {server.name: weight for server, weight in books.prim.servers}
        lost = sum(weights.get(name, 0) for name in names)
        if books.server is None or (not self.wiped and 2 * lost >= sum(weights.values())):
            return ()
        try:
            return [encode(forgetting(books.server, books.prim, books.members, names, loss=False))]
        except ForgetError:
            return ()


class Alter(Deed, frozen=True, tag="alter"):
    """An operator changes the group: `what` is join, leave or weigh."""

    what: str
    other: int
    weight: int = 1

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """The server that is meant must have started once."""
        target = server_of(stacks, self.other).books.server
        if target is None:
            return
        changes: dict[str, Change] = {
            "join": Join(target, self.weight),
            "leave": Leave(target),
            "weigh": Reweigh(target, self.weight),
        }
        server_of(stacks, self.member).request(now, [Wish(change(changes[self.what]))])
