"""What the parts of a server share: what it knows, where it stands, and what it wants.

The rules by which it decides are pure functions, each in a file of its own; they are named here so that a
broken server of the simulator can have another one.
"""

from collections.abc import Collection, Mapping
from typing import ClassVar

from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.replication import messages
from semcast.replication.amnesia import rolled_back
from semcast.replication.books import Books
from semcast.replication.exchange import Exchange
from semcast.replication.fitness import Vitals
from semcast.replication.ids import ConfId, Server
from semcast.replication.journal import Journal
from semcast.replication.knowledge import Accounts, Knowledge, Prim, learn
from semcast.replication.messages import Said
from semcast.replication.notes import Notes
from semcast.replication.quorum import is_quorum, may_found
from semcast.replication.records import Record
from semcast.replication.settings import ReplicationSettings
from semcast.replication.states import MOVES, Cause, State


class ServerStanding:
    """Of one server.

    Args:
        books: what its disk said.
        settings: of this server.
        out: for records, notes and answers.
    """

    journal_kind: ClassVar[type[Journal]] = Journal

    def __init__(self, books: Books, settings: ReplicationSettings, out: Outbox) -> None:
        self.books = books
        self.settings = settings
        self.out = out
        self.stats = Statistics()
        self.journal = self.journal_kind(books, out)
        self.notes = Notes(out, wanted=settings.notes)
        self.state = State.BOOT
        self.exchange: Exchange | None = None
        """Of the configuration that the server is in."""
        self.counted: tuple[Server, ...] = ()
        """Who counts in it, as all agreed."""
        self.sends: list[tuple[bytes, bool]] = []
        """What is to be multicast next, and whether safe."""
        self.exit = ""
        """Why the server wants to be out of the group, if it does."""
        self.alarm = ""
        """A promise was broken: two servers have different actions green at one position."""
        self.vitals = Vitals()
        self.unfit = ""
        """Why this server makes no actions, as of the last exchange, if it should not."""
        self.refusal = ""
        """Whom this server has nothing to do with, and why, as of the last exchange."""

    @property
    def server(self) -> Server:
        """Who this is."""
        assert self.books.server is not None
        return self.books.server

    @property
    def conf(self) -> ConfId | None:
        """The configuration that it is in."""
        return None if self.exchange is None else self.exchange.conf

    @property
    def told_line(self) -> int:
        """The green line that others may be told: what is on the disk."""
        return self.journal.durable.line

    def shift_to(self, cause: Cause) -> None:
        """Move, as the table says."""
        self.state = MOVES[self.state, cause]
        self.notes.phase(self.state.value)

    def write(self, record: Record) -> None:
        """Change the books, and the disk with them."""
        self.journal.write(record)

    def say(self, message: Said, *, safe: bool = False) -> None:
        """Multicast in the group."""
        self.sends.append((messages.encode(message), safe))

    # The rules

    def learn(self, accounts: Accounts) -> Knowledge:
        """Figure 6.12."""
        return learn(accounts)

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        """Figure 6.13."""
        return is_quorum(prim, here)

    def may_found(self, names: Collection[str], here: Collection[Server]) -> bool:
        """Who installs the first primary."""
        return may_found(names, here)

    def rolled_back(self, states: Mapping[Server, messages.State]) -> Mapping[Server, str]:
        """Who has forgotten what it vouched for, and what that is."""
        return rolled_back(states)
