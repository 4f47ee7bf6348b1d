"""Primary components: attempts, agreement and installation (Amir 1995, figures 6.14 to 6.17), and guests."""

from collections.abc import Callable, Collection
from hashlib import blake2b

import msgspec

from semcast.core.ids import MemberId
from semcast.replication.actions import RunId
from semcast.replication.exchange import Exchange
from semcast.replication.ids import ConfId, Server, Weighted, servers_of
from semcast.replication.knowledge import Knowledge, Prim, Vulnerable
from semcast.replication.lineage import past_of
from semcast.replication.making import Making
from semcast.replication.marking import Marking
from semcast.replication.messages import Cpc, Installed
from semcast.replication.records import Install, Learnt
from semcast.replication.standing import ServerStanding
from semcast.replication.states import Cause, State
from semcast.replication.trimming import Trimming


class Primaries:
    """Installs the primaries that one server is in.

    Args:
        standing: of the server.
        marking: of actions that turn green with an installation.
        making: of actions, which goes on then.
        trimming: is told how far the others are.
    """

    def __init__(
        self, standing: ServerStanding, marking: Marking, making: Making, trimming: Trimming
    ) -> None:
        self.next: Vulnerable | None = None
        """The attempt that is under way."""
        self._cpcs: set[Server] = set()
        self._standing = standing
        self._books = standing.books
        self._marking = marking
        self._making = making
        self._trimming = trimming

    @property
    def guest(self) -> bool:
        """Whether it takes part in an attempt without being one of the servers to be."""
        return self.next is None or self._standing.server not in servers_of(self.next.servers)

    def begin(self) -> None:
        """Another configuration: no attempt is under way."""
        self.next, self._cpcs = None, set()

    def construct(self, exchange: Exchange, known: Knowledge, part: Weighted) -> None:
        """Remember the attempt on the disk, then agree to it (Claim 2). Guests do the same."""
        standing, attempt = self._standing, known.attempt + 1
        self.next = Vulnerable(known.prim.index, attempt, exchange.conf, part)
        heard = self._trimming.heard_of_others()
        standing.write(Learnt(known.prim, attempt, self.record_of_attempt(), known.yellow, heard))
        standing.shift_to(Cause.QUORUM)

        def tell() -> None:
            if standing.exchange is exchange and standing.state is State.CONSTRUCT:
                standing.say(Cpc(exchange.conf), safe=True)

        self.withhold_cpc(tell)

    def withhold_cpc(self, tell: Callable[[], None]) -> None:
        """An attempt must be remembered by who agreed to it."""
        self._standing.journal.sync(tell)

    def record_of_attempt(self) -> Vulnerable | None:
        """What a server remembers of an attempt that it agrees to."""
        return self.next

    def awaited(self) -> Collection[Server]:
        """Whose word an installation needs: that of everybody who counted."""
        return self._standing.counted

    def on_cpc(self, sender: MemberId, _cpc: Cpc) -> None:
        """Figures 6.14 and 6.16. A CPC of before is of no meaning elsewhere (slip 4)."""
        standing = self._standing
        assert standing.exchange is not None
        if standing.state not in (State.CONSTRUCT, State.NO):
            return
        server = standing.exchange.server_of(sender)
        if server is not None:
            self._cpcs.add(server)
        if self._cpcs.issuperset(self.awaited()):
            self.agreed()

    def agreed(self) -> None:
        """A guest never installs: it stays vulnerable, and drops what it is given, until it may stop."""
        if self._standing.state is State.NO or self.guest:
            self._remember_agreement()
            self._standing.shift_to(Cause.UNDECIDED)
            return
        self.install()
        self._standing.shift_to(Cause.INSTALLED)
        self._making.flush()
        self.go_if_removed()

    def _remember_agreement(self) -> None:
        """Nothing waits for the disk: it only helps to find out who forgets that it agreed (`amnesia`)."""
        books = self._books
        if books.vulnerable is not None:
            agreed = msgspec.structs.replace(books.vulnerable, agreed=True)
            self._standing.write(Learnt(books.prim, books.attempt, agreed, books.yellow))

    def decided(self) -> None:
        """In Un: somebody has installed it. A server that is no guest has installed it, too."""
        self.install()
        self._standing.shift_to(Cause.ACTION)

    def install(self) -> None:
        """Figure 6.15, as one record: yellow turn green (OR-1.2), then reds in red order (OR-2)."""
        books, exchange, attempt = self._books, self._standing.exchange, self.next
        assert exchange is not None
        assert attempt is not None
        before, line, servers = books.prim, books.colours.line, tuple(books.members.weights)
        prim = Prim(
            attempt.index + 1,
            attempt.attempt,
            exchange.conf,
            attempt.servers,
            lineage=before.lineage or _lineage(exchange.conf),
            past=past_of(before, line),
            forgot=before.forgot,
        )
        self.write_install(prim, self._turning())
        self._marking.all_placed(line)
        self._note(prim, before, line, servers)
        for server in self._standing.counted:
            self._trimming.told(server, line)
        self._tell_guests(exchange, prim)

    def _note(self, prim: Prim, before: Prim, line: int, servers: Collection[Server]) -> None:
        notes = self._standing.notes
        notes.install(prim, before, line, self._standing.counted)
        if not before.index:
            notes.group(self._books.members.weights, 0)
        elif before.whole:
            notes.group(servers, line)

    def _turning(self) -> tuple[RunId, ...]:
        """What turns green at an installation, in order."""
        books = self._books
        first = [run for run in books.yellow or () if run in books.colours.reds]
        done = set(first)
        return (*first, *(run.id for run in books.colours.in_red_order() if run.id not in done))

    def write_install(self, prim: Prim, turning: tuple[RunId, ...]) -> None:
        """All of it, or nothing."""
        self._standing.write(Install(prim, turning))

    def _tell_guests(self, exchange: Exchange, prim: Prim) -> None:
        """They wait to hear that the primary is on a disk: then nobody needs them any more."""
        standing = self._standing
        guests = set(standing.counted).difference(servers_of(prim.servers))

        def tell() -> None:
            if guests and standing.exchange is exchange and standing.state is State.REG_PRIM:
                standing.say(Installed(exchange.conf))

        standing.journal.sync(tell)

    def on_installed(self, _sender: MemberId, _installed: Installed) -> None:
        """One that was removed stops here, and not before: it might be needed for a quorum until then."""
        standing = self._standing
        if (
            standing.state in (State.REG_PRIM, State.UN)
            and self.guest
            and standing.server in self._books.members.removed
        ):
            self.stop()

    def go_if_removed(self) -> None:
        """A primary keeps its servers. One that was removed goes, and comes back as a guest of the next."""
        standing = self._standing
        if standing.state is State.REG_PRIM and standing.server in self._books.members.removed:
            standing.exit = "removed from the group: this server comes back as a guest of the next primary"

    def stop(self) -> None:
        """It was removed, and nobody needs it any more."""
        self._standing.shift_to(Cause.REMOVED)
        self._standing.exit = "removed from the group"


def _lineage(conf: ConfId) -> int:
    """Of a group that is founded in this configuration; all founders come to the same."""
    return 1 + int.from_bytes(blake2b(str(conf).encode(), digest_size=7).digest(), "little")
