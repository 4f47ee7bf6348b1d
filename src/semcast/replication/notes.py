"""What a server tells the history, if anybody wants it: rows of kinds of their own.

They are described in `specs/replication/kinds.py`. Nothing here is read by the protocol.
"""

from collections.abc import Collection, Sequence

from semcast.core.events import Note
from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.replication.actions import ASKED, Asked, Run, read_asked
from semcast.replication.creation import Wish
from semcast.replication.ids import Server
from semcast.replication.knowledge import Prim
from semcast.replication.messages import Again

RED, YELLOW, GREEN = "red", "yellow", "green"


class Notes:
    """Where a server writes down what it does."""

    def __init__(self, out: Outbox, *, wanted: bool) -> None:
        self.wanted = wanted
        self._out = out

    def _note(self, note: Note) -> None:
        self._out.deliver(note)

    def store(self, server: Server, epoch: int, line: int, index: int, reds: Sequence[Run]) -> None:
        """The server starts, with what its disk had."""
        if self.wanted:
            members = (as_member(server),)
            self._note(Note("store", None, epoch, len(reds), index, order=line, members=members))
            for run in reds:
                self.colour(RED, run)

    def phase(self, name: str) -> None:
        """It is in another state."""
        if self.wanted:
            self._note(Note("phase", level=name))

    def requests(self, run: Run, wishes: Sequence[Wish]) -> None:
        """It made actions: one row for each, since each may be answered in another way."""
        if not self.wanted:
            return
        for index, wish in enumerate(wishes, run.first):
            request = read_asked(wish.action) if wish.action[0] == ASKED else None
            members = None if request is None else (as_client(request),)
            seen = " ".join(f"{creator.member}:{last}" for creator, last in wish.seen) or None
            creator = run.creator.member
            self._note(Note("request", creator, index, 1, level=wish.level, members=members, digest=seen))

    def colour(self, level: str, run: Run) -> None:
        """Actions are red or yellow."""
        if self.wanted:
            self._note(Note("colour", run.creator.member, run.first, len(run.actions), run.clock, level))

    def green(self, run: Run, position: int, void: Collection[int]) -> None:
        """Actions are green, and requests among them are done; but not those that were done before."""
        if not self.wanted:
            return
        self._note(Note("colour", run.creator.member, run.first, len(run.actions), None, GREEN, position))
        for place, action in enumerate(run.actions, position):
            request = read_asked(action) if action[0] == ASKED else None
            if request is not None and place not in void:
                self._note(Note("done", order=place, members=(as_client(request),)))

    def again(self, again: Again) -> None:
        """It sends actions in an exchange."""
        if not self.wanted:
            return
        position = again.position
        for run in again.runs:
            count, conf = len(run.actions), str(again.conf)
            self._note(
                Note("again", run.creator.member, run.first, count, order=position or None, digest=conf)
            )
            position += count if position else 0

    def install(self, prim: Prim, before: Prim, line: int, counted: Sequence[Server]) -> None:
        """It installs a primary after another, with these present."""
        if not self.wanted:
            return
        assert prim.conf is not None
        weights = dict(prim.servers)
        told = " ".join(str(weights.get(server, "-")) for server in counted)
        after = "whole" if before.whole else str(before.conf)
        self._note(
            Note(
                "install",
                prim.conf.representative,
                prim.conf.number,
                view=prim.index,
                level=told,
                order=line,
                members=tuple(map(as_member, counted)),
                digest=after,
            )
        )

    def group(self, servers: Collection[Server], line: int) -> None:
        """The servers of the group, as of a line."""
        if self.wanted:
            self._note(Note("group", order=line, members=tuple(map(as_member, sorted(servers)))))

    def durable(self, line: int, index: int, reds: int, digest: bytes | None) -> None:
        """So much is on its disk; of what was red when it came, so many runs since the start."""
        if self.wanted:
            text = None if digest is None else digest.hex()
            self._note(Note("durable", count=reds, order=line, view=index, digest=text))

    def reply(self, level: str, creator: MemberId, index: int, position: int) -> None:
        """It answers about an action."""
        if self.wanted:
            self._note(Note("reply", creator, index, 1, level=level, order=position))

    def read(self, level: str, client: str, line: int, reds: Sequence[Run]) -> None:
        """It shows a client what it has."""
        if self.wanted:
            told = " ".join(f"{run.creator.member}:{run.first}+{len(run.actions)}" for run in reds)
            self._note(Note("reply", level=level, order=line, members=(MemberId(client),), digest=told))

    def snapshot(self, line: int, digest: bytes) -> None:
        """It goes on from the snapshot of another, which has all green actions up to here."""
        if self.wanted:
            self._note(Note("snapshot", order=line, digest=digest.hex()))

    def white(self, line: int, servers: Collection[Server]) -> None:
        """All of the group have actions up to here green on their disks."""
        if self.wanted:
            self._note(Note("white", order=line, members=tuple(map(as_member, sorted(servers)))))

    def alarm(self, text: str) -> None:
        """It found a server with other actions."""
        if self.wanted:
            self._note(Note("alarm", digest=text))


def as_member(server: Server) -> MemberId:
    """A server in a column for members: its store in the place of the incarnation."""
    return MemberId(server.name, server.store)


def as_client(request: Asked) -> MemberId:
    """A request there: its number in the place of the incarnation."""
    return MemberId(request.client, request.number)
