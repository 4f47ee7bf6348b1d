"""Who is a client of a group, as all its servers know it (1991, 7.4).

Servers tell each other of clients in messages of the group that are not for programs: who came (`Came`), who
is none any more (`Gone`), and, with each view, which ones there are (`Roll`). Clients of a server that failed
are *orphans*: the first server takes them over, and nobody else, so that the one who gives them up is the one
who would take them.
"""

from collections import deque
from collections.abc import Collection, Iterable

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.isis.client_frames import TAG, About, Came, Gone, Roll, Visitor, encode
from semcast.protocols.isis.styles import Style
from semcast.protocols.vsync.orders import Lines

_REMEMBERED = 4096
"""Clients that are gone of which it is remembered that they are."""
_ROLL = 64
"""Clients that are named in one message."""
_PATIENCE = 3
"""Times of the longest silence after which an orphan that does not come is given up."""


class Listed:
    """A client, as every server knows it."""

    def __init__(self, contact: MemberId, session: int) -> None:
        self.contact = contact
        self.session = session


class Roster:
    """At one server.

    Args:
        me: which one.
        style: of the group.
    """

    def __init__(self, me: MemberId, style: Style) -> None:
        self.listed: dict[MemberId, Listed] = {}
        """All clients, by what servers said."""
        self.gone: dict[MemberId, None] = {}
        """Who is a client no more."""
        self.orphans: dict[MemberId, Nanos | None] = {}
        """Whose contact is not there any more, and when it was last heard of."""
        self.commands: deque[About] = deque()
        """What the servers are to be told of clients."""
        self.members: tuple[MemberId, ...] = ()
        """The servers."""
        self.unrolled: set[MemberId] = set()
        """Servers of which it is not known which clients they have."""
        self.relayed: dict[MemberId, int] = {}
        """By client, the last of its messages that has come."""
        self.given: dict[MemberId, int] = {}
        """And that the program was given."""
        self._me = me
        self._style = style.value

    @property
    def is_first(self) -> bool:
        """Whether this server takes orphans over."""
        return bool(self.members) and self.members[0] == self._me

    def awaited(self) -> Collection[MemberId]:
        """Clients whose contact is not there any more: nobody knows what they have."""
        return self.orphans

    def may_take(self, client: MemberId) -> bool:
        """Clients of others only the first server takes, when their contact is not there any more."""
        listed = self.listed.get(client)
        if client in self.gone or not self.members or self.unrolled:
            return False
        if listed is None or listed.contact == self._me:
            return True
        return client in self.orphans and self.is_first

    # What servers tell each other

    def must_speak(self, lines: Lines) -> bool:
        """Whether there is something to tell the servers that can be told now."""
        return bool(self.commands) and not lines.frozen and lines.may_command()

    def speak(self, lines: Lines) -> None:
        """Tell the servers what there is to tell."""
        while self.must_speak(lines):
            lines.command(TAG + encode(self.commands.popleft()))

    def started_again(self, client: MemberId) -> bool:
        """Whether a later incarnation of it is a client."""
        name, number = client.name, client.incarnation
        return any(each.name == name and each.incarnation > number for each in self.listed)

    def came(self, sender: MemberId, message: Came) -> bool:
        """A server is the contact of a client, it says; returns whether that is so."""
        client, listed = message.client, self.listed.get(message.client)
        if client in self.gone or (listed is not None and listed.session > message.session):
            return False
        self.listed[client] = Listed(sender, message.session)
        self.orphans.pop(client, None)
        if sender not in self.members:
            self.orphans[client] = None
        return True

    def went(self, message: Gone) -> bool:
        """Somebody is no client any more; returns whether it is given up for good."""
        client, listed = message.client, self.listed.get(message.client)
        if message.session:
            if listed is not None and listed.session <= message.session:
                del self.listed[client]
                self.orphans.pop(client, None)
            return False
        self.listed.pop(client, None)
        self.orphans.pop(client, None)
        self.give_up(client)
        return True

    def give_up(self, client: MemberId) -> None:
        """It can be a client no more, as this incarnation."""
        self.gone[client] = None
        if len(self.gone) > _REMEMBERED:
            old = next(iter(self.gone))
            del self.gone[old]
            self.relayed.pop(old, None)
            self.given.pop(old, None)

    def rolled(self, sender: MemberId, message: Roll) -> bool:
        """A server named its clients; returns whether the group is of the same style for it."""
        if not message.more:
            self.unrolled.discard(sender)
        if message.style != self._style:
            return False
        for visitor in message.visitors:
            self._enrol(visitor, sender, orphan=sender not in self.members)
        for visitor in message.orphans:
            self._enrol(visitor, sender, orphan=True)
        return True

    def _enrol(self, visitor: Visitor, contact: MemberId, *, orphan: bool) -> None:
        client = visitor.client
        self.relayed[client] = max(visitor.last, self.relayed.get(client, 0))
        if client not in self.listed:  # else the program is given it, or was
            self.given[client] = max(visitor.last, self.given.get(client, 0))
        if client in self.gone or client in self.listed:
            return
        self.listed[client] = Listed(contact, visitor.session)
        if orphan:
            self.orphans[client] = None

    # Views, and time

    def enter(self, members: tuple[MemberId, ...], mine: Iterable[tuple[MemberId, int]]) -> None:
        """A view begins: who has joined knows of no clients. Those of this server, with their sessions."""
        if not self.members or self.unrolled:
            self.unrolled = {each for each in members if each != self._me}
        self.members = members
        for client, listed in self.listed.items():
            if listed.contact not in members:
                self.orphans.setdefault(client, None)
        self._call(mine)

    def _call(self, mine: Iterable[tuple[MemberId, int]]) -> None:
        """Also who joined when somebody failed has to know whom that one served."""
        own = [
            Visitor(client, session, self.relayed.get(client, 0))
            for client, session in mine
            if client in self.listed
        ]
        lost = self.orphans if self.is_first else {}
        listed = [Visitor(each, self.listed[each].session, self.relayed.get(each, 0)) for each in lost]
        rolls = [Roll(True, self._style, own[at : at + _ROLL], []) for at in range(0, len(own), _ROLL)]
        rolls += [Roll(True, self._style, [], listed[at : at + _ROLL]) for at in range(0, len(listed), _ROLL)]
        others = [each for each in self.commands if not isinstance(each, Roll)]
        self.commands = deque([*rolls, Roll(False, self._style, [], []), *others])

    def tick(self, now: Nanos, limit: Nanos, contacts: Collection[MemberId]) -> None:
        """Orphans that say nothing for too long are given up, unless they are clients of this server.

        At once, if they have started again: nobody comes as the former incarnation.
        """
        if not self.is_first:
            return
        for client, since in list(self.orphans.items()):
            if client not in contacts and self.started_again(client):
                self.commands.append(Gone(client, 0))
                self.orphans[client] = now
            elif since is None:
                self.orphans[client] = now
            elif now - since > _PATIENCE * limit:
                self.orphans[client] = now
                if client not in contacts:
                    self.commands.append(Gone(client, 0))
