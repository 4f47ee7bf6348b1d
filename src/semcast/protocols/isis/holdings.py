"""What the servers of a group and all their clients have, as one server knows it (1991, 7.1)."""

from collections.abc import Mapping

from semcast.core.ids import MemberId
from semcast.protocols.isis.client_frames import Came, ClientsHave, ViewItem
from semcast.protocols.isis.contact import Contact
from semcast.protocols.isis.log import Entry, Log, covered
from semcast.protocols.isis.roster import Roster
from semcast.protocols.isis.stamps import Time

_NOTHING = Time(0, {})


class Holdings:
    """At one server.

    Args:
        me: which one.
        log: what it was given.
        contacts: its clients.
        roster: all clients.
    """

    def __init__(self, me: MemberId, log: Log, contacts: Mapping[MemberId, Contact], roster: Roster) -> None:
        self._me = me
        self._log = log
        self._contacts = contacts
        self._roster = roster
        self._have: dict[MemberId, Time] = {}
        self._takes: dict[MemberId, int] = {}  # how many clients of others each server took over
        self._said: tuple[int, Time] | None = None

    def own(self) -> Time:
        """What this server and all its clients have."""
        fed = [contact for contact in self._contacts.values() if contact.begun]
        return min(fed, key=lambda each: each.acked).has if fed else self._log.time

    def _of(self, server: MemberId) -> Time:
        return self.own() if server == self._me else self._have.get(server, _NOTHING)

    def lags(self, time: Time) -> bool:
        """Whether some server or client may not have what was given up to here."""
        roster = self._roster
        if roster.awaited() or roster.unrolled or not roster.members:
            return True
        return not all(self._of(member).covers(time.view, time.counts) for member in roster.members)

    def cover(self, entry: Entry | ViewItem) -> bool:
        """Whether all servers and clients have an entry of the log."""
        return all(covered(self._of(member), entry) for member in self._roster.members)

    # What servers tell each other

    def hear(self, source: MemberId, frame: ClientsHave) -> None:
        """A server said so; what it said before it took a client over does not count any more."""
        if source in self._roster.members and frame.takes >= self._takes.get(source, 0):
            self._takes[source] = frame.takes
            self._have[source] = Time(frame.view, dict(frame.counts))

    def came(self, sender: MemberId, message: Came) -> None:
        """A server has taken a client over, and so much all its clients have, this one included."""
        if message.takes > self._takes.get(sender, 0):
            self._takes[sender] = message.takes
            self._have[sender] = Time(message.view, dict(message.counts))

    def take_over(self) -> int:
        """This server takes a client of another; returns how many it has."""
        self._takes[self._me] = takes = self._takes.get(self._me, 0) + 1
        return takes

    def news(self) -> bool:
        """Whether the other servers have not heard what this one and its clients have."""
        return self._said != (self._takes.get(self._me, 0), self.own())

    def report(self, *, again: bool) -> ClientsHave | None:
        """What to tell them, if they have not heard it."""
        own, takes = self.own(), self._takes.get(self._me, 0)
        if not self._log.time.view or (not again and self._said == (takes, own)):
            return None
        self._said = takes, own
        return ClientsHave(own.view, sorted(own.counts.items()), takes)

    def enter(self, members: tuple[MemberId, ...]) -> None:
        """A view begins."""
        self._have = {each: time for each, time in self._have.items() if each in members}
