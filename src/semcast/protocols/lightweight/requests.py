"""What local clients ask for, on its way to the ring.

The entries of Amir 1995, 5.1: connect, disconnect, join, leave and multicast; `Session.take` is receive.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import ClassVar

from semcast.core.ids import MAX_NAME, MemberId
from semcast.protocols.lightweight.ids import ViewId
from semcast.protocols.lightweight.messages import (
    Came,
    Cast,
    Client,
    Gone,
    Join,
    Leave,
    Operation,
    Private,
    encode,
)
from semcast.protocols.lightweight.notes import Notes
from semcast.protocols.lightweight.sessions import Refused, Session, Turns, Wish
from semcast.protocols.lightweight.settings import (
    MAX_GROUP,
    MAX_ITEM,
    MAX_RUN,
    MAX_TARGETS,
    LightweightSettings,
)

Sending = tuple[bytes, bool]
"""An operation without its tag, and whether it has to be safe."""


class Requests:
    """The sessions of a daemon, and the order in which it says what they want.

    Args:
        me: the daemon.
        settings: of the daemon.
        notes: what it tells the history.
        flushed: called when all that a client sent in a view that ends is with the ring.
    """

    session_kind: ClassVar[type[Session]] = Session

    def __init__(
        self,
        me: MemberId,
        settings: LightweightSettings,
        notes: Notes,
        flushed: Callable[[str], None],
    ) -> None:
        self.sessions: dict[Client, Session] = {}
        self.overfull: list[Session] = []
        """Who has more to take than it may."""
        self.put_out_for: Counter[str] = Counter()
        """Clients that were put out, by reason."""
        self.purged_before = 0
        """Messages that were dropped for clients that are gone."""
        self.sends: deque[Sending] = deque()
        """What goes to the ring next."""
        self._me = me
        self._settings = settings
        self._notes = notes
        self._flushed = flushed
        self._turns = Turns(settings.quantum)
        self._again: list[Sending] = []
        self._names: dict[str, Session] = {}  # who has a name now
        self._last: dict[str, int] = {}  # the last session of names that are free again

    def __len__(self) -> int:
        """What has yet to be handed to the ring."""
        return len(self.sends) + len(self._again) + sum(len(each.waiting) for each in self.sessions.values())

    @property
    def held(self) -> bool:
        """Whether everybody waits for a client here that has too much to take."""
        return any(session.holds and not session.closed for session in self.overfull)

    # Connections

    def connect(self, name: str, number: int) -> Session:
        """A client comes; `number` is above that of every earlier session of this name: a time does."""
        full = f"{name}@{self._me.name}"
        if not name or "@" in name or len(full.encode()) > MAX_NAME:
            raise Refused(f"{name!r} is no name: 1 to {MAX_NAME - len(self._me.name) - 1} bytes, no @")
        return self._begin(name, full, number)

    def connect_host(self, number: int) -> Session:
        """The program that this daemon is a part of: it goes by the name of the daemon, which has no @."""
        return self._begin(self._me.name, self._me.name, number)

    def _begin(self, name: str, full: str, number: int) -> Session:
        if full in self._names:
            raise Refused(f"the name {name!r} is taken: another client of this daemon has it")
        if len(self.sessions) >= self._settings.clients:
            raise Refused(f"there are {self._settings.clients} clients already")
        if number <= self._last.get(full, 0):
            raise Refused(f"session {number} of {name!r}: there was {self._last[full]} already")
        session = self.session_kind(Client(full, number), self._settings, self.overfull)
        self.sessions[session.client] = self._names[full] = session
        self._notes.session(session.client, "came")
        self._ask(session, Came(session.client), 0)
        return session

    def free_number(self, name: str, number: int) -> int:
        """A number for the next session of this name: this one, or the next that was not used."""
        return max(number, self._last.get(f"{name}@{self._me.name}", 0) + 1)

    def disconnect(self, session: Session, cause: str) -> None:
        """It is gone; what it asked for before still happens."""
        self._end(session, cause, "gone")

    def put_out(self, session: Session, cause: str) -> None:
        """The same, and nobody asked it."""
        self.put_out_for[cause] += not session.closed
        self._end(session, cause, "out")

    def close(self, cause: str) -> None:
        """The daemon is no more: all are put out. Who only is its client did not ask for that."""
        for session in list(self.sessions.values()):
            own = session.client.name == self._me.name
            self.put_out(session, cause if own else f"the daemon left: {cause}")

    def _end(self, session: Session, cause: str, level: str) -> None:
        if session.closed:
            return
        client = session.client
        self.purged_before += session.purged
        session.close(cause, out=level == "out")
        del self._names[client.name]
        self._last[client.name] = client.incarnation
        if len(self._last) > 2 * self._settings.clients:
            del self._last[next(iter(self._last))]
        self._notes.session(client, level)
        self._ask(session, Gone(client, cause[:200]), 0)

    def forget(self, client: Client) -> None:
        """The last that was heard of it is done."""
        self.sessions.pop(client, None)

    # Requests

    def join(self, session: Session, group: str, *, vs: bool = False) -> int:
        """It wants to be in a group; returns the number of the request, as `Placed` counts."""
        _check_name(group)
        if group in session.asked:
            raise Refused(f"{session.client} is in {group!r} already, or will be")
        if len(session.asked) >= self._settings.memberships:
            raise Refused(f"{session.client} is in {self._settings.memberships} groups already")
        seq = session.number(1)
        session.asked.add(group)
        self._notes.asked(session.client, "join", seq, 1, (group,))
        self._ask(session, Join(session.client, seq, group, vs), 1)
        return seq

    def leave(self, session: Session, group: str) -> int:
        """It wants to be in a group no more."""
        if group not in session.asked:
            raise Refused(f"{session.client} is not in {group!r}")
        seq = session.number(1)
        session.asked.discard(group)
        self._notes.asked(session.client, "leave", seq, 1, (group,))
        self._ask(session, Leave(session.client, seq, group), 1)
        return seq

    def cast(
        self,
        session: Session,
        groups: Sequence[str],
        payloads: Sequence[bytes],
        *,
        view: ViewId | None = None,
        safe: bool = False,
        items: Sequence[str] | None = None,
        at_most: int | None = None,
    ) -> int:
        """A run of messages to groups, whether it is in them or not; returns the number of the first.

        `view` is that of a `vs` group of which it is a member. Whoever names none sends as one from outside.
        `items` says what each message is about. `at_most` is known where the run came in a frame: they have
        no more bytes than that.
        """
        if not 1 <= len(groups) <= MAX_TARGETS or len(set(groups)) != len(groups):
            raise Refused(f"{len(groups)} groups: 1 to {MAX_TARGETS}, each once")
        if not 1 <= len(payloads) <= MAX_RUN:
            raise Refused(f"{len(payloads)} messages: 1 to {MAX_RUN}")
        most = self._settings.run_bytes
        if (at_most is None or at_most > most) and sum(map(len, payloads)) > most:
            raise Refused(f"a run of more than {most} bytes")
        if items is not None and (len(items) != len(payloads) or max(map(len, items)) > MAX_ITEM):
            raise Refused(f"one item for each message, of at most {MAX_ITEM} characters")
        for group in groups:
            _check_name(group)
        if view is not None and (len(groups) != 1 or session.ready.get(groups[0]) == view):
            raise Refused(f"{session.client} has said that it sends nothing more in that view")
        seq = session.number(len(payloads))
        self._notes.asked(session.client, "cast", seq, len(payloads), groups, view, items=items)
        about = None if items is None else list(items)
        cast = Cast(session.client, seq, tuple(groups), view, safe, list(payloads), about)
        self._ask(session, cast, len(payloads), safe=safe)
        return seq

    def private(self, session: Session, to: Client, payload: bytes) -> int:
        """A message to one other session."""
        if len(payload) > self._settings.run_bytes:
            raise Refused(f"a message of more than {self._settings.run_bytes} bytes")
        seq = session.number(1)
        self._notes.asked(session.client, "private", seq, 1, to=to)
        self._ask(session, Private(session.client, seq, to, payload), 1)
        return seq

    def ready(self, session: Session, group: str, view: ViewId) -> None:
        """It sends nothing more in a view that ends."""
        told = session.blocked.get(group)
        if session.closed or told is None or told[0] != view:
            return  # it is late
        del session.blocked[group]
        session.ready[group] = view
        session.wish(Wish(b"", 0, ready=(group, view)))
        self._turns.add(session)

    def _ask(self, session: Session, operation: Operation, count: int, *, safe: bool = False) -> None:
        session.wish(Wish(encode(operation), count, safe))
        self._turns.add(session)

    # To the ring

    def fill(self, room: int) -> None:
        """Have up to so many operations ready to be sent, in turns."""
        while self._turns and len(self.sends) < room:
            session, wish = self._turns.next()
            if wish.ready is None:
                self.sends.append((wish.body, wish.safe))
            else:
                group, view = wish.ready
                session.flushed[group] = view
                self._flushed(group)

    def say(self, operation: Operation) -> None:
        """Something of the daemon itself, behind all that is to be sent already."""
        self.sends.append((encode(operation), False))

    def again(self, body: bytes, *, safe: bool) -> None:
        """An own operation was void."""
        self._again.append((body, safe))

    def resume(self) -> None:
        """The census is done: what was void is handed over again, before anything else."""
        self.sends.extendleft(reversed(self._again))
        self._again.clear()


def _check_name(group: str) -> None:
    if not 1 <= len(group) <= MAX_GROUP:
        raise Refused(f"{group!r} is no name of a group: 1 to {MAX_GROUP} characters")
