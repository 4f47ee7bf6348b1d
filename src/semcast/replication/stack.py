"""The replication server as a stack, above any stack with extended virtual synchrony.

It sits in the turn of the one below, under the queue of the application: it takes every delivery at once,
so nobody in the group ever waits for the service. The application hands over requests, and is given green
actions in the global order, once their place is on the disk.
"""

from collections.abc import Callable, Sequence
from random import Random

from semcast.core.annotations import Annotation
from semcast.core.events import (
    Blocked,
    Delivery,
    Left,
    TransitionalView,
    Unblocked,
    ViewChange,
)
from semcast.core.heldback import HeldBack
from semcast.core.ids import MAX_NUMBER, SECOND, MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.replication import outside, pull
from semcast.replication.actions import Run, plain
from semcast.replication.backlog import Backlog
from semcast.replication.books import Books
from semcast.replication.creation import QUEUED, STRICT, Wish
from semcast.replication.fitness import Vitals
from semcast.replication.frames import FRAMES, Fetch, HandedIn, Offered, Piece, Wanted
from semcast.replication.handing import Handing
from semcast.replication.ids import Server, conf_of
from semcast.replication.machine import Machine
from semcast.replication.parcels import Parcels
from semcast.replication.reads import DirtyRead, ReadQueue
from semcast.replication.records import decode
from semcast.replication.settings import ReplicationSettings
from semcast.replication.states import CREATES, IN_GROUP, State
from semcast.replication.supply import Supply

Below = Callable[[MemberId, Random, Outbox], Stack]
"""Makes the group communication that a server is driven by."""

_OURS = frozenset(FRAMES)
_PLENTY = 1 << 16
_STRANGERS = 1000
_PARCEL = 10 * SECOND
"""How long a parcel is kept that nobody fetches."""


class ReplicationTimer(Timer):
    """What a server waits for besides what the stack below does."""

    PULL = "pull"
    DISK = "disk"


class Replication(Stack):
    """One server.

    Args:
        me: who this is in the group communication.
        settings: of the server.
        below: makes the stack that delivers to it; again, when it comes back from outside.
        rng: chance, for the name of a new store and for the stack below.
        out: for everything that it wants.
        machine: its kind, or a mutant.
        reading: how it answers reads, or a mutant.
        state: whether the application says what its state is, for snapshots.
    """

    def __init__(
        self,
        me: MemberId,
        settings: ReplicationSettings,
        below: Below,
        rng: Random,
        out: Outbox,
        *,
        machine: type[Machine] = Machine,
        reading: type[ReadQueue] = ReadQueue,
        state: bool = False,
    ) -> None:
        self.me = me
        self.hands_over = state
        self.snapshots = settings.snapshots and state
        """Whether the state of the application goes into the log."""
        self.machine_kind = machine
        self.reading_kind = reading
        self.settings = settings
        self.out = out
        self._below = below
        self._rng = rng
        self._inner_out = Outbox()
        self.inner = below(me, rng, self._inner_out)
        self._running = False  # the stack below was started, and has not left
        self._refused = False  # the stack below has no room
        self._leaving: Left | None = None
        self._gone = False
        self._outside: outside.Outside | None = None
        self._recovered = False
        self._now: Nanos = 0
        self._awaited = 0  # the sync that the disk timer is about
        self.vitals = Vitals()
        """What it tells of itself: to be filled in before it starts."""
        self.handing = Handing()
        """What the application is given."""
        self.strangers: dict[str, Server] = {}
        """Servers that want to be let in, by name."""
        self._looks: list[DirtyRead] = []
        self.overtaken: list[Run] = []
        """Own runs that were done as part of a snapshot: their outcomes are not known here."""
        self._parcels = Parcels(settings.piece_bytes, _PARCEL)
        self._backlog = Backlog(settings.backlog)
        self._become(self.machine_kind(self.machine_kind.books_kind(), settings, out))

    def _become(self, machine: Machine) -> None:
        self.machine = machine
        machine.vitals = self.vitals
        self.reading = self.reading_kind(machine)
        self.supply = Supply(machine, self.out, self._parcels, self.want_state)
        self.stats: Statistics = machine.stats

    @property
    def books(self) -> Books:
        """All that the server knows."""
        return self.machine.books

    # Life

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:  # noqa: ARG002
        """Read the log (figure 6.18)."""
        self._recovered = True
        self.books.replay(map(decode, records))
        self.handing.begin(self.books)

    def _hand_over_state(self) -> None:
        self.handing.hand_over_state(self.books)

    def start(self, now: Nanos) -> None:
        """A new epoch; the group is entered once that is on the disk."""
        assert self._recovered, "a replication server needs a disk"
        self._now = now
        server = self.books.server or Server(self.me.name, self._rng.randrange(1, MAX_NUMBER))
        names = self.settings.names or self.books.names
        self.machine.boot(server, self.me.incarnation + 1, names, self._up)
        self._settle(now)

    def _up(self) -> None:
        """The epoch is on the disk, unless that took so long that the server has left meanwhile."""
        if self._gone:
            return
        if self.machine.state is State.OUT:
            self._go_outside()
        else:
            self._enter()

    def _enter(self) -> None:
        self._running = True
        self.inner.start(self._now)

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        """The process ends; the server stays one of its group."""
        self._leave(now, Left(cause))
        self._settle(now)

    def _leave(self, now: Nanos, left: Left) -> None:
        self._leaving = left
        self.machine.exit = ""
        if self._running:
            self.inner.leave(now, left.cause)
        else:
            self._on_left(left)

    def _on_left(self, left: Left) -> None:
        """The stack below is out of its group."""
        self._running = False
        wanted = self._leaving or left
        if self._gone or not wanted.again:
            self._gone = True
            self._stay_away()
            self.out.deliver(wanted)
            return
        self._leaving = None
        if self.machine.state is State.OUT:
            self._go_outside()
        else:
            self.machine.journal.sync(self._come_back)

    def _stay_away(self) -> None:
        """Whatever comes from its disk or from others by now, it asks for nothing, and does not come back."""
        self._outside = None
        self.out.cancel_timer(ReplicationTimer.PULL)

    def phase(self) -> str:
        """The state of the algorithm; a server in a primary is operational."""
        if self._gone:
            return "left"
        return "operational" if self.machine.state is State.REG_PRIM else self.machine.state.value

    def settled(self) -> bool:
        """Whether it takes requests: also where there is no primary, as one of a group that was founded."""
        machine = self.machine
        return machine.accepts and machine.state in CREATES and machine.conf is not None

    def phases(self) -> tuple[str, ...]:
        """The same, the state in the algorithm, and the phase below."""
        return self.phase(), self.machine.state.value, self.inner.phase()

    def view(self) -> View:
        """The configuration below, and whether it is a primary."""
        view = self.inner.view()
        primary = self.machine.state is State.REG_PRIM
        return View(view.id, view.members, primary, view.representative)

    # Outside of the group

    def _go_outside(self) -> None:
        self._outside = outside.Outside(
            self.machine, self.out, self._parcels, self._come_back, self._on_rebased, self._has_room
        )
        self._ask()

    def _has_room(self) -> bool:
        """Whether the service keeps up.

        One that reads nothing yet, or nothing before it has sent something, would be waited for in vain.
        """
        self._backlog.look(self._now, self.books.colours, self.handing.given)
        return self.reader.waits or not self.reader.began or not self._backlog.slow

    def _on_rebased(self, overtaken: list[Run]) -> None:
        """What the application has is replaced once the snapshot is on the disk."""
        self.overtaken += overtaken
        self.handing.awaits_state = True
        self.machine.journal.sync(self._hand_over_state)

    def _ask(self) -> None:
        assert self._outside is not None
        self._outside.ask()
        self.out.set_timer(ReplicationTimer.PULL, self._now + self.settings.pull_every)

    def _come_back(self) -> None:
        """All that this server lacked is on its disk."""
        if self._gone:
            return
        self._outside = None
        self.out.cancel_timer(ReplicationTimer.PULL)
        if self.inner.phase() == "left":
            self._gone = True
            self.out.deliver(Left("this server comes back with what it lacked", again=True))
        else:
            self.machine.returned()
            self._enter()

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> Stack:
        """The same server, as another member of the group communication."""
        new = Replication(
            member,
            self.settings,
            self._below,
            rng,
            out,
            machine=self.machine_kind,
            reading=self.reading_kind,
            state=self.hands_over,
        )
        new._recovered = True
        new.vitals = self.vitals
        new._become(self.machine_kind(self.books, self.settings, out))
        new.machine.creation.adopt(self.machine.creation)
        new.handing, new._looks, new.overtaken = self.handing, self._looks, self.overtaken
        new.snapshots = self.snapshots
        if self.handing.awaits_state:  # the sync of the new epoch is after that of the snapshot
            new.machine.journal.sync(new._hand_over_state)
        return new

    # From the application

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,  # noqa: ARG002
        *,
        safe: bool = False,
    ) -> int:
        """Requests without a client: those that ask for safe delivery are answered once they have a place."""
        level = STRICT if safe else QUEUED
        return self.request(now, [Wish(plain(payload), level) for payload in payloads])

    def request(self, now: Nanos, wishes: Sequence[Wish]) -> int:
        """Take requests, as many as there is room for; those with a ticket are `Answered`."""
        before = self.machine.creation.blocked
        taken = self.machine.request(wishes)
        if self.machine.creation.blocked and not before:
            self.stats.blocked += 1
            self.out.deliver(Blocked())
        self._settle(now)
        return taken

    def collect(self, now: Nanos, position: int) -> None:
        """The service has all actions up to a position on its own: they may be forgotten."""
        if not self.supply.busy(now):
            self.machine.collect(min(position, self.handing.given))
            self._settle(now)

    def want_state(self) -> None:
        """Ask the application, at the point of the order that it is given next."""
        if self.hands_over:
            self.handing.want_state()

    def provide(self, view: int, state: bytes) -> None:
        """The state that was asked for: for the log, and for servers outside."""
        kept = self.handing.answered(view, state)
        if kept is None:
            return
        self.supply.on_state(kept)
        if not self.supply.busy(self._now):
            self.machine.keep(kept)

    def when_shown(self, now: Nanos, act: Callable[[], None]) -> None:
        """Have this called once a dirty read would show all that was answered here until now."""
        self._looks.append(DirtyRead(self.machine, act))
        self._settle(now)

    def _look(self) -> None:
        due = [look for look in self._looks if look.due(self.machine)]
        if due:
            self._looks = [look for look in self._looks if look not in due]
            for look in due:
                look.act()

    # From the world

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """What is for the stack below goes there."""
        if type(frame) in _OURS:
            self._on_ours(now, source, frame)
        elif self._running:
            self.inner.on_frame(now, source, frame)
        self._settle(now)

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """The same for several."""
        ours = [frame for frame in frames if type(frame) in _OURS]
        for frame in ours:
            self._on_ours(now, source, frame)
        if self._running:
            others = [frame for frame in frames if type(frame) not in _OURS] if ours else frames
            self.inner.on_frames(now, source, others)
        self._settle(now)

    def _on_ours(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        if isinstance(frame, Fetch):
            self._parcels.on_fetch(now, self.out, source, frame)
        elif isinstance(frame, Piece) and self._outside is not None:
            self._outside.on_piece(now, source, frame)
        elif isinstance(frame, Offered):
            if self._outside is not None:
                self._outside.on_offered(source, frame)
        elif self.machine.state not in IN_GROUP or not self._running:
            self.stats.stale += 1
        elif isinstance(frame, Wanted):
            if pull.is_foreign(self.machine, frame.foundation):
                return
            if frame.server not in self.books.members and len(self.strangers) < _STRANGERS:
                self.strangers[frame.server.name] = frame.server
            self.supply.on_wanted(now, source, frame)
        elif isinstance(frame, Piece):
            self.supply.on_piece(source, frame)
        else:
            assert isinstance(frame, HandedIn)
            self.supply.on_handed_in(source, frame)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Its own, or one of the stack below."""
        self._now = now
        if timer is ReplicationTimer.PULL:
            if self._outside is not None:
                self._ask()
        elif timer is ReplicationTimer.DISK:
            self._on_disk_timer()
        elif self._running:
            self.inner.on_timer(now, timer)
        self._settle(now)

    def _on_disk_timer(self) -> None:
        awaited, self._awaited = self._awaited, 0
        if awaited == self.machine.journal.awaited and self._running:
            self.machine.stall("the disk of this server takes too long")

    def _watch_disk(self, now: Nanos) -> None:
        """Looked at once per sync at most, and rarely: a timer that is set is left alone."""
        awaited = self.machine.journal.awaited
        if awaited and not self._awaited and self._running:
            self._awaited = awaited
            self.out.set_timer(ReplicationTimer.DISK, now + self.settings.patience)

    def on_synced(self, now: Nanos, ticket: int) -> None:
        """Records are on the disk."""
        self._now = now
        self.machine.on_synced(ticket)
        self._settle(now)

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """For the stack below."""
        if self._running:
            self.inner.member_failed(now, member)
            self._settle(now)

    # Between the machine and the stack below

    def _settle(self, now: Nanos) -> None:
        """Take what is delivered, and send what the server wants to say, until both are done."""
        self._now = now
        machine = self.machine
        self._watch_service()
        while True:
            self._drain()
            if self._running and self.inner.deliverable():
                for each in self.inner.deliver(now, _PLENTY):
                    self._hear(each)
            elif machine.exit and self._leaving is None:
                self._leave(now, Left(machine.exit, again=machine.state is not State.STOPPED))
            elif not (self._running and machine.sends and not self._refused and self._leaving is None):
                break
            else:
                self._send(now)
        self._unblock()
        self._watch_disk(now)
        if self._looks:
            self._look()
        if self.snapshots and self.machine.may_trim and self.handing.given >= self.machine.trimming.trimmable:
            self.want_state()

    def _watch_service(self) -> None:
        """Its own clients wait for a service that is slow, and nobody else does."""
        making, held = self.machine.making, self.machine.making.holds
        making.holds = not self._has_room()
        if making.holds and self._backlog.full and self._running:
            self.machine.stall("the service of this server is too slow")
        elif held and not making.holds:
            making.flush()

    def _hear(self, each: Delivery) -> None:
        machine = self.machine
        if type(each) is Batch:
            sender, before = each.sender, machine.state
            for payload in each.payloads:
                machine.on_message(sender, payload)
            if machine.state is State.REG_PRIM and before is not State.REG_PRIM:
                self.handing.tell(ViewChange(self.view()), self.books.colours.line)
        elif isinstance(each, TransitionalView):
            machine.on_trans_conf()
        elif isinstance(each, ViewChange):
            machine.on_reg_conf(conf_of(each.view), each.view.members)
            self._tell_view(each)

    def _tell_view(self, change: ViewChange) -> None:
        """The application is told of configurations; of those that become a primary once more."""
        view = change.view
        told = View(view.id, view.members, False, view.representative)
        change = ViewChange(told, change.joined, change.left, change.failed)
        self.handing.tell(change, self.books.colours.line)

    def _send(self, now: Nanos) -> None:
        """A run of messages of one kind."""
        sends = self.machine.sends
        safe = sends[0][1]
        count = next((at for at, each in enumerate(sends) if each[1] != safe), len(sends))
        taken = self.inner.multicast(now, [payload for payload, _ in sends[:count]], safe=safe)
        del sends[:taken]
        self._refused = taken < count

    def _drain(self) -> None:
        """What the stack below wants from the world; what it says is for this server."""
        inner, out = self._inner_out, self.out
        if inner.sends:
            out.sends += inner.sends
            inner.sends = []
        if inner.timers:
            out.timers += inner.timers
            inner.timers = []
        if inner.events:
            events, inner.events = inner.events, []
            for event in events:
                if isinstance(event, Unblocked):
                    self._refused = False
                elif isinstance(event, Left):
                    self._on_left(event)

    def _unblock(self) -> None:
        creation = self.machine.creation
        if creation.blocked and creation.room > 0 and self.machine.accepts:
            creation.blocked = False
            self.out.deliver(Unblocked())

    # To the application

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:  # noqa: ARG002
        """Green actions that are on the disk, as batches with positions, and configurations between them."""
        taken, count = self.handing.deliver(self.machine, most)
        self.stats.delivered += count
        return taken

    def deliverable(self) -> bool:
        """Whether `deliver` would hand over anything."""
        return self.handing.ready(self.machine)

    def pending(self) -> int:
        """Requests that have not become actions."""
        return len(self.machine.creation)

    def held_back(self) -> HeldBack | None:
        """Why requests wait."""
        if not len(self.machine.creation):
            return None
        if self.machine.unfit:
            return HeldBack(self.me, self.machine.unfit)
        if self.machine.making.holds:
            return HeldBack(self.me, "its service is slower than the order of all")
        return HeldBack(None, f"the server is in {self.machine.state.value}")

    def buffered(self) -> int:
        """What waits here and below."""
        return self.inner.buffered() + len(self.machine.creation) + len(self.machine.sends)
