"""All that a server knows, as its log says it (section 6.2, "data structure").

Every change is a record, and a record is the only thing that changes the books: what is applied while the
server works is what is applied when it starts again.
"""

from collections.abc import Callable, Iterable
from typing import Any

from semcast.replication.actions import ASKED, PLAIN, Names, Run, RunId, read_asked, read_change
from semcast.replication.colours import Colours
from semcast.replication.dedupe import Requests
from semcast.replication.ids import Creator, Server
from semcast.replication.knowledge import Prim, Vulnerable
from semcast.replication.membership import Membership
from semcast.replication.records import (
    Base,
    Based,
    Boot,
    Fetched,
    Forgot,
    Founders,
    Green,
    Install,
    Kept,
    KnownGreen,
    Learnt,
    Own,
    OwnRed,
    Pulled,
    Record,
    Red,
    Yellow,
)


class Books:
    """What one server knows."""

    requests_kind: type[Requests] = Requests
    colours_kind: type[Colours] = Colours

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
        self.colours = self.colours_kind()
        self.ongoing: dict[RunId, Run] = {}
        """Own runs that have not been delivered here."""
        self.clock = 0
        """The highest clock that this server gave out."""
        self.members = Membership()
        self.requests = self.requests_kind()
        self.void: set[int] = set()
        """Positions of requests that were done before."""
        self.altered: list[tuple[int, tuple[Server, ...]]] = []
        """Since somebody looked last: where in the order the servers changed, and who they are."""
        self._trans_yellow: list[RunId] = []
        self._fetched: list[Run] = []
        self._base: tuple[Base, list[Run]] | None = None  # read, and not known to be complete
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
            Kept: self._on_kept,
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
            self.members.written(),
            self.requests.written(),
            sorted(self.void),
        )
        return [base, *(Kept(run) for _, run in colours.after(colours.start)), Based()]

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
        for place, action in enumerate(run.actions, position):
            if action[0] != PLAIN:
                self._mind(action, place)

    def _mind(self, action: bytes, position: int) -> None:
        """What an action does to the books themselves, once it is green."""
        if action[0] == ASKED:
            request = read_asked(action)
            if request is None or not self.requests.apply(request, position):
                self.void.add(position)
            return
        change = read_change(action)
        if change is not None and self.members.apply(change, position):
            self.altered.append((position, tuple(self.members.weights)))

    def _learnt(self, record: Learnt) -> None:
        self.prim, self.attempt = record.prim, record.attempt
        self.vulnerable, self.yellow = record.vulnerable, record.yellow

    def _install(self, record: Install) -> None:
        if not self.prim.index:
            self.members.found(record.prim.servers)
        self.prim, self.attempt = record.prim, 0
        self._forget_yellow()
        for run in record.turning:
            self._mark_green(self.colours.reds[run])

    def _founders(self, record: Founders) -> None:
        self.members.found(record.servers)

    def _on_fetched(self, record: Fetched) -> None:
        self._fetched.append(record.run)

    def _pulled(self, record: Pulled) -> None:
        self.members.found(record.founders)
        for run in self._fetched:
            self._mark_green(run)
        self._fetched = []
        if record.prim.rank > self.prim.rank:
            self.prim, self.attempt = record.prim, record.attempt
            self._forget_yellow()

    def _forgot(self, record: Forgot) -> None:
        rest = tuple(pair for pair in self.prim.servers if pair[0] not in record.servers)
        self.prim = Prim(self.prim.index + 1, servers=rest, whole=True, lineage=record.lineage)
        self.attempt, self.vulnerable = 0, None
        self._forget_yellow()
        self.members.forget(set(record.servers))

    def _on_base(self, record: Base) -> None:
        self._base = record, []

    def _on_kept(self, record: Kept) -> None:
        assert self._base is not None, "only a base has something that is kept"
        self._base[1].append(record.run)

    def _based(self, _record: Based) -> None:
        assert self._base is not None, "only a base can be complete"
        base, kept = self._base
        self._base = None
        self.server, self.epoch, self.index, self.names = base.server, base.epoch, base.index, base.names
        self.prim, self.attempt, self.vulnerable = base.prim, base.attempt, base.vulnerable
        self.yellow, self._trans_yellow, self.clock = base.yellow, list(base.trans_yellow), base.clock
        self.colours = self.colours_kind.restored(base.colours, kept)
        self.ongoing = {run.id: run for run in base.ongoing}
        self.members.restore(base.members)
        self._restore_requests(base)
        self.void = set(base.void)

    def _restore_requests(self, base: Base) -> None:
        self.requests.restore(base.requests)

    def _forget_yellow(self) -> None:
        self.yellow = None
        self._trans_yellow = []
