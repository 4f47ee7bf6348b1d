"""All that a server knows, as its log says it (section 6.2, "data structure").

Every change is a record, and a record is the only thing that changes the books: what is applied while the
server works is what is applied when it starts again.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import msgspec

from semcast.replication.actions import CHANGE, PLAIN, Names, Run, RunId
from semcast.replication.colours import Colours
from semcast.replication.dedupe import Answered, Requests
from semcast.replication.ids import Creator, Server, Weighted
from semcast.replication.knowledge import Prim, Vulnerable
from semcast.replication.lineage import made_up
from semcast.replication.membership import Membership, Roll
from semcast.replication.records import (
    Base,
    Based,
    Boot,
    Fetched,
    Forgot,
    Founders,
    Green,
    Install,
    KeptRun,
    KnownGreen,
    Learnt,
    Own,
    OwnRed,
    Pulled,
    Record,
    Red,
    StatePiece,
    Yellow,
)
from semcast.replication.snapshots import KeptState, Snapshot, pieces_of
from semcast.replication.tables import Tables


class Rebuilt(NamedTuple):
    """A log that began anew, as far as it was read."""

    base: Base
    kept: list[Run]
    pieces: list[StatePiece]


class Books:
    """What one server knows."""

    requests_kind: ClassVar[type[Requests]] = Requests
    colours_kind: ClassVar[type[Colours]] = Colours

    def __init__(self) -> None:
        self.server: Server | None = None
        """Who this is; None before the first start."""
        self.epoch = 0
        self.index = 0
        """The last action that this server made in this epoch."""
        self.names: Names = ()
        """Who is to found the group, if this server was told."""
        self.prim = Prim()
        self.attempt = 0
        self.vulnerable: Vulnerable | None = None
        self.yellow: tuple[RunId, ...] | None = None
        """None: not valid, this server was not in the last primary to its end."""
        self.heard: dict[Server, int] = {}
        """How far the disks of other servers were, by their word."""
        self.colours = self.colours_kind()
        self.ongoing: dict[RunId, Run] = {}
        """Own runs that have not been delivered here."""
        self.clock = 0
        """The highest clock that this server gave out."""
        self.tables = Tables(self.requests_kind())
        self.settled = Tables(self.requests_kind())
        """The same where the log begins."""
        self.state: KeptState | None = None
        """What the service was, in the log: all actions up to where the log begins are in it."""
        self.void: set[int] = set()
        """Positions of requests that were done before."""
        self.altered: list[tuple[int, tuple[Server, ...]]] = []
        """Since somebody looked last: where in the order the servers changed, and who they are."""
        self._trans_yellow: list[RunId] = []
        self._fetched: list[Run] = []
        self._base: Rebuilt | None = None  # read, and not known to be complete
        self._apply: dict[type[Any], Callable[[Any], None]] = {
            Boot: self._boot,
            Own: self._own,
            Red: self._red,
            OwnRed: self._own_red,
            Yellow: self._yellow,
            Green: self._green,
            KnownGreen: self._known_green,
            Learnt: self._learnt,
            Install: self._install,
            Founders: self._founders,
            Fetched: self._on_fetched,
            Pulled: self._pulled,
            Forgot: self._forgot,
            Base: self._on_base,
            KeptRun: self._on_kept,
            StatePiece: self._on_piece,
            Based: self._based,
        }

    def apply(self, record: Record) -> None:
        """One record."""
        self._apply[type(record)](record)

    def replay(self, records: Iterable[Record]) -> None:
        """All that is on a disk."""
        for record in records:
            self.apply(record)

    @property
    def creator(self) -> Creator:
        """Who the actions are by that this server makes."""
        assert self.server is not None
        return Creator(self.server, self.epoch)

    @property
    def members(self) -> Membership:
        """The servers of the group."""
        return self.tables.members

    @property
    def requests(self) -> Requests:
        """Which requests of clients are done."""
        return self.tables.requests

    @property
    def belongs(self) -> bool:
        """Whether this server is one of the group, as far as it knows."""
        return self.server in self.members.weights

    def found_yellow(self) -> tuple[RunId, ...]:
        """What was delivered since the primary was over."""
        return tuple(self._trans_yellow)

    def condensed(self) -> list[Record]:
        """Records that say the same as all before them."""
        assert self.server is not None
        colours = self.colours
        base = Base(
            self.server,
            self.epoch,
            self.index,
            self.names,
            self.prim,
            self.attempt,
            self.vulnerable,
            self.yellow,
            tuple(self._trans_yellow),
            self.clock,
            colours.written(),
            list(self.ongoing.values()),
            self.settled.members.written(),
            self.settled.requests.written(),
            tuple(self.heard.items()),
        )
        pieces = [] if self.state is None else pieces_of(self.state)
        return [base, *pieces, *(KeptRun(run) for _, run in colours.after(colours.start)), Based()]

    def trim(self, line: int) -> None:
        """Forget the actions themselves up to a line, as far as whole runs go."""
        colours = self.colours
        for position, run in colours.between(colours.start, line, colours.line):
            for place, action in _telling(run, position):
                self.settled.apply(action, place)
        colours.trim(line)
        self.void = {place for place in self.void if place > colours.start}

    # What records do

    def _boot(self, record: Boot) -> None:
        self.server, self.epoch, self.index = record.server, record.epoch, 0
        self.names = record.names
        self._fetched, self._base = [], None

    def _own(self, record: Own) -> None:
        run = record.run
        self.ongoing[run.id] = run
        self.index = run.last
        self.clock = max(self.clock, run.clock)

    def _red(self, record: Red) -> None:
        self._mark_red(record.run)

    def _own_red(self, record: OwnRed) -> None:
        run = self.ongoing.get(record.id)
        if run is not None:
            self._mark_red(run)

    def _mark_red(self, run: Run) -> None:
        if self.colours.mark_red(run):
            self.ongoing.pop(run.id, None)

    def _yellow(self, record: Yellow) -> None:
        run = record.run
        self._mark_red(run)
        if not self.colours.is_green(run.id) and run.id not in self._trans_yellow:
            self._trans_yellow.append(run.id)

    def _green(self, record: Green) -> None:
        self._mark_green(record.run)

    def _known_green(self, record: KnownGreen) -> None:
        run = self.ongoing.get(record.id) or self.colours.reds.get(record.id)
        if run is not None:
            self._mark_green(run)

    def _mark_green(self, run: Run) -> None:
        position = self.colours.mark_green(run)
        if not position:
            return
        self.ongoing.pop(run.id, None)
        for place, action in _telling(run, position):
            self._mind(action, place)

    def _mind(self, action: bytes, position: int) -> None:
        """What an action does to the books themselves, once it is green."""
        to_do, altered = self.tables.apply(action, position)
        if not to_do and action[0] != CHANGE:
            self.void.add(position)
        if altered:
            self.altered.append((position, self.members.by_actions()))

    def _found(self, servers: Weighted) -> None:
        self.members.found(servers)
        self.settled.members.found(servers)

    def _know(self, prim: Prim) -> None:
        """A primary; and who was given up before it."""
        self.prim = prim
        for tables in (self.tables, self.settled):
            tables.members.forget(frozenset(prim.forgot))

    def _learnt(self, record: Learnt) -> None:
        self._know(record.prim)
        self.attempt = record.attempt
        self.vulnerable, self.yellow = record.vulnerable, record.yellow
        if record.heard:
            self.heard = dict(record.heard)

    def _install(self, record: Install) -> None:
        if not self.prim.index:
            self._found(record.prim.servers)
        self.prim, self.attempt = record.prim, 0
        self._forget_yellow()
        for run in record.turning:
            self._mark_green(self.colours.reds[run])

    def _founders(self, record: Founders) -> None:
        self._found(record.servers)

    def _on_fetched(self, record: Fetched) -> None:
        self._fetched.append(record.run)

    def _pulled(self, record: Pulled) -> None:
        self._found(record.founders)
        for run in self._fetched:
            self._mark_green(run)
        self._fetched = []
        if record.prim.rank > self.prim.rank:
            self._know(record.prim)
            self.attempt = record.attempt
            self._forget_yellow()

    def _forgot(self, record: Forgot) -> None:
        self._know(made_up(self.prim, record, self.members))
        self.attempt, self.vulnerable = 0, None
        self._forget_yellow()

    def _on_base(self, record: Base) -> None:
        self._base = Rebuilt(record, [], [])

    def _on_kept(self, record: KeptRun) -> None:
        assert self._base is not None, "only a base has something that is kept"
        self._base.kept.append(record.run)

    def _on_piece(self, record: StatePiece) -> None:
        assert self._base is not None, "only a base has a state"
        self._base.pieces.append(record)

    def _based(self, _record: Based) -> None:
        assert self._base is not None, "only a base can be complete"
        base, kept, pieces = self._base
        self._base = None
        self.server, self.epoch, self.index, self.names = base.server, base.epoch, base.index, base.names
        self._know(base.prim)
        self.attempt, self.vulnerable = base.attempt, base.vulnerable
        self.yellow, self._trans_yellow, self.clock = base.yellow, list(base.trans_yellow), base.clock
        self.colours = self.colours_kind.begun(base.colours)
        self._begin_tables(base.members, base.requests)
        self.heard = dict(base.heard)
        self.ongoing, self.void = {}, set()
        for run in kept:
            self._mark_green(run)
        for run in base.colours.reds:
            self._mark_red(run)
        self.ongoing = {run.id: run for run in base.ongoing}
        self.altered.clear()
        self.state = KeptState.joined(pieces)

    def _begin_tables(self, members: Roll, requests: Answered) -> None:
        for tables in (self.tables, self.settled):
            tables.members.restore(members)
            self._restore_requests(tables, requests)

    def _restore_requests(self, tables: Tables, requests: Answered) -> None:
        tables.requests.restore(requests)

    # Snapshots

    def snapshot(self, state: KeptState) -> Snapshot:
        """What another server needs to go on from where the log begins here."""
        colours, settled = self.colours.written(), self.settled
        return Snapshot(
            msgspec.structs.replace(colours, reds=[]),
            settled.members.written(),
            settled.requests.written(),
            state,
        )

    def rebase(self, snapshot: Snapshot) -> list[Run]:
        """Go on from a snapshot; returns own runs that are green in it.

        What it knows of primaries stays: it learns of newer ones with all actions that belong to them.
        """
        former = self.colours
        self.colours = self.colours_kind.begun(snapshot.colours)
        overtaken = self.colours.keep_reds(former)
        self._begin_tables(snapshot.members, snapshot.requests)
        self.void = set()
        for run in [run for run in self.ongoing.values() if self.colours.is_green(run.id)]:
            overtaken.append(self.ongoing.pop(run.id))
        self.state = snapshot.state
        self.altered = [(self.colours.start, self.members.by_actions())]
        return [run for run in overtaken if run.creator.server == self.server]

    def _forget_yellow(self) -> None:
        self.yellow = None
        self._trans_yellow = []


def _telling(run: Run, position: int) -> list[tuple[int, bytes]]:
    """The actions of a run that say something to the servers themselves, each with its position."""
    if run.plain:
        return []
    return [pair for pair in enumerate(run.actions, position) if pair[1][0] != PLAIN]
