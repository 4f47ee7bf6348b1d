"""What may be forgotten: what is white (6.1), and what a snapshot has in the place of actions."""

from semcast.replication.ids import Server
from semcast.replication.journal import Journal
from semcast.replication.notes import Notes
from semcast.replication.settings import ReplicationSettings
from semcast.replication.snapshots import KeptState
from semcast.replication.white import GreenLines


class Trimming:
    """Of the log of one server.

    Args:
        journal: the log.
        settings: of the server.
        notes: where it is written down what is white.
    """

    def __init__(self, journal: Journal, settings: ReplicationSettings, notes: Notes) -> None:
        self.white = 0
        """All servers have the actions up to here green on their disks."""
        self._lines = GreenLines()
        self._journal, self._books = journal, journal.books
        self._settings = settings
        self._notes = notes

    def told(self, server: Server, line: int) -> bool:
        """A server said how far its disk is; returns whether that is news."""
        return self._lines.told(server, line)

    def heard(self, server: Server | None, line: int) -> None:
        """The same, in the course of things: more may be white by that."""
        if server is not None and self.told(server, line):
            servers = self._books.members.weights
            white = self._lines.white(servers)
            if white > self.white:
                self.white = white
                self._notes.white(white, servers)

    def heard_of_others(self) -> tuple[tuple[Server, int], ...]:
        """How far the disks of the other servers were, by their word, now or before this one started."""
        books = self._books
        lines = {
            server: max(self._lines.of(server), books.heard.get(server, 0))
            for server in sorted(books.members.weights)
            if server != books.server
        }
        return tuple((server, line) for server, line in lines.items() if line)

    @property
    def trimmable(self) -> int:
        """Up to here nobody should need the actions themselves: who does is given a snapshot."""
        return max(self.white, self._journal.durable.line - self._settings.retention)

    @property
    def due(self) -> bool:
        """Whether there is much to forget."""
        every = self._settings.trim_every
        return bool(every) and self.trimmable - self._books.colours.start >= every

    def collect(self, position: int) -> None:
        """The service has all actions up to a position on its own: forget what may be forgotten of them."""
        kept = self._books.state
        self._trim(position, None if kept is None or kept.position <= position else kept)

    def keep(self, state: KeptState) -> None:
        """The same, with the state of the service: it is written down with what is behind it."""
        self._trim(state.position, state)

    def _trim(self, position: int, state: KeptState | None) -> None:
        line = min(self.trimmable, position)
        if self.due and line > self._books.colours.start:
            self._books.state = state
            self._books.trim(line)
            self._journal.begin_anew()
