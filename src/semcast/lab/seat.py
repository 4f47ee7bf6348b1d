"""One member of a lab: the turns of its stack, and its application.

The application reads at once, or only when the test says so (`reads`, `read`). What it multicasts is taken
back if the stack refuses it (`multicast`, and what its `waiting` says), or it waits until there is room, as
live programs do (`send_or_wait`), and reads nothing meanwhile.

A member may have a disk, which outlives it. Its syncs are done at once, after a time, or when the test says
so (`sync_after`, `finish_sync`).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery, Event
from semcast.core.handover import Command, Handover
from semcast.core.ids import MemberId, Nanos
from semcast.core.mailbox import Mailbox
from semcast.core.outbox import Dest, Frame, Timer, Write
from semcast.core.outgoing import Outgoing
from semcast.core.stack import Stack
from semcast.core.turn import Turn
from semcast.lab.application import Application
from semcast.lab.disk import Disk

EVERYTHING = 1 << 30


class Storage(Timer):
    """What a seat waits for besides the timers of its stack."""

    SYNCED = "synced"


class Wire(Protocol):
    """What a seat needs of its lab."""

    now: Nanos

    def post(self, source: MemberId, sends: Sequence[tuple[Dest, Frame]]) -> None:
        """Put frames on the wire."""


class Seat:
    """Drives one stack with `Turn`; what the turn does to the world ends here or on the wire.

    Args:
        wire: of the lab.
        member: who this is.
        stack: its protocol.
        application: what runs on top of it.
        handover: between the two; by default nothing lies between them, so that all is purged that can be.
        disk: what the stack writes to, if there is one.
    """

    def __init__(
        self,
        wire: Wire,
        member: MemberId,
        stack: Stack,
        application: Application,
        handover: Handover | None = None,
        disk: Disk | None = None,
    ) -> None:
        self.application = application
        self.handover = Handover(1, Mailbox(0), application) if handover is None else handover
        self.handover.begin()  # also an application that reads nothing may read later
        self.turn = Turn(member, stack, self.handover, self, watchers=(self,))
        self.alive = True
        """A member that is not does nothing any more."""
        self.reads = True
        """Whether the application takes what is delivered at once."""
        self.events: list[Event] = []
        """All that the stack said."""
        self.timers: dict[Timer, Nanos] = {}
        """When each goes off."""
        self.disk = disk
        self.sync_after: Nanos | None = 0
        """How long a sync takes; None for until `finish_sync`."""
        self._wire = wire
        self._running = False
        self._asks = False  # in `read`
        self._unread: deque[Delivery] = deque()  # of the list that the application took last
        self._held: deque[Outgoing] = deque()  # what the application waits with until there is room
        self._waits = False  # in `send_or_wait`
        self._offers = False  # `outgoing` is what the application's `waiting` said
        self._taken = 0  # messages that the stack took since the last `offer`
        if handover is None:
            self.handover.mailbox.want = EVERYTHING

    @property
    def member(self) -> MemberId:
        """Who this is."""
        return self.turn.member

    @property
    def stack(self) -> Stack:
        """Its protocol."""
        return self.turn.stack

    @property
    def waits(self) -> bool:
        """Whether the application waits for room to send."""
        return bool(self._held)

    # For tests

    def start(self) -> None:
        """The first turn."""
        disk = self.disk
        records = None if disk is None else disk.records()

        def begin(stack: Stack, now: Nanos) -> None:
            if disk is not None and records is not None:
                stack.read_back = disk.read_back
                stack.recover(now, records, disk.first)
            stack.start(now)

        self.call(begin)

    def crash(self, survives: int = 0) -> None:
        """Do nothing any more. Of what the disk has not synced, so many bytes survive."""
        self.alive = False
        if self.disk is not None:
            self.disk.crash(survives)

    def finish_sync(self) -> None:
        """The sync that is under way is done."""
        assert self.disk is not None, "there is no disk"
        self.timers.pop(Storage.SYNCED, None)
        self.run(synced=self.disk.finish())

    def call(self, command: Command) -> None:
        """Have something done to the stack."""
        self.handover.call(command)
        self.run()

    def fire(self, timer: Timer) -> None:
        """A timer goes off, whether it was set or not."""
        if timer is Storage.SYNCED:
            self.finish_sync()
            return
        self.timers.pop(timer, None)
        self.run(timers=(timer,))

    def hear(self, source: MemberId, *frames: Frame) -> None:
        """Frames arrive in a row."""
        self.run([(source, frames)])

    def multicast(self, *payloads: bytes, annotation: Annotation | None = None, safe: bool = False) -> int:
        """Multicast what the stack takes at once; returns how many messages."""
        return self.offer(Outgoing(payloads, annotation, safe))

    def offer(self, outgoing: Outgoing) -> int:
        """As `multicast`, for messages of any kind."""
        self._taken = 0
        self.handover.send(outgoing)
        try:
            self.run()
        finally:
            self._take_back()
        return self._taken

    def send_or_wait(self, outgoing: Outgoing) -> bool:
        """As live programs do: hand over, or wait for room; until then the application reads nothing.

        Returns whether there was room at once. What is sent while it waits (by another task) waits in line.
        """
        self._held.append(outgoing)
        self._send_held()
        room = not self._held
        self.run()
        return room

    def read(self, most: int = EVERYTHING) -> None:
        """Let the application take a list of so many messages at most."""
        mailbox = self.handover.mailbox
        wanted, mailbox.want = mailbox.want, most
        self._asks = True
        self._read()
        mailbox.asked = self._may_read()
        self.run()
        self._asks = mailbox.asked = False
        mailbox.want = wanted

    # For the lab

    def run(
        self,
        arrivals: Iterable[tuple[MemberId, Sequence[Frame]]] = (),
        timers: Iterable[Timer] = (),
        synced: Iterable[int] = (),
    ) -> None:
        """One turn, and more if it left something to do; from inside a turn nothing, since that goes on."""
        if self._running or not self.alive:
            return
        self._running = True
        try:
            self._take_turn(arrivals, timers, synced)
            while self.alive and (self._has_more() or self._syncs_at_once()):
                self._take_turn(synced=self._finished())
        finally:
            self._running = False

    def wants(self) -> bool:
        """Whether a turn would do something, because the application did."""
        self.handover.mailbox.asked = self._may_read()
        return self.alive and (self._has_more() or self.application.waiting() is not None)

    def due(self, now: Nanos) -> list[Timer]:
        """Timers that go off now, which are then set no more."""
        found = [timer for timer, at in self.timers.items() if at <= now]
        for timer in found:
            del self.timers[timer]
        return found

    def _take_turn(
        self,
        arrivals: Iterable[tuple[MemberId, Sequence[Frame]]] = (),
        timers: Iterable[Timer] = (),
        synced: Iterable[int] = (),
    ) -> None:
        self._read()
        self.turn.run(self._wire.now, arrivals, timers, synced)
        self._sync()
        if self._offers:
            self._take_back()

    def _has_more(self) -> bool:
        """Whether another turn would do something, or the application can go on with what it was given."""
        return self.turn.busy() or (self._may_read() and (bool(self._unread) or bool(self.handover)))

    def _sync(self) -> None:
        """Begin to sync what was written."""
        if self.disk is not None and self.disk.begin() and self.sync_after:
            self.timers[Storage.SYNCED] = self._wire.now + self.sync_after

    def _syncs_at_once(self) -> bool:
        return self.sync_after == 0 and self.disk is not None and self.disk.syncing

    def _finished(self) -> Sequence[int]:
        return self.disk.finish() if self.disk is not None and self._syncs_at_once() else ()

    # What a turn does to the world

    def set_timer(self, timer: Timer, at: Nanos | None) -> None:
        """In virtual time."""
        if at is None:
            self.timers.pop(timer, None)
        else:
            self.timers[timer] = at

    def store(self, now: Nanos, writes: Sequence[Write]) -> None:  # noqa: ARG002
        """On the disk of this member."""
        assert self.disk is not None, "a stack that was not told of a disk wants to write"
        self.disk.write(writes)

    def send(self, now: Nanos, sends: Sequence[tuple[Dest, Frame]]) -> None:  # noqa: ARG002
        """Onto the wire."""
        self._wire.post(self.member, sends)

    def flush(self, now: Nanos) -> None:
        """Nothing was kept."""

    def wake(self) -> None:
        """The application looks: whether there is room again, then what it was given."""
        self._send_held()
        self._read()

    def renew(self, member: MemberId) -> None:  # noqa: ARG002
        """Another incarnation goes on."""
        self.timers.clear()

    # What a turn tells

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """What the stack says."""
        self.events += events

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:  # noqa: ARG002
        """A list in `read` is the only one."""
        if self._asks:
            self.handover.mailbox.asked = False

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:  # noqa: ARG002
        """What the stack took: then it may be given the next."""
        self._taken += sum([count for _, count in taken])
        if self._offers:
            self._offers = False
            self.application.sent()
            self._offer()

    def on_renewal(self, now: Nanos, member: MemberId) -> None:
        """The test hears of it by `Rejoining`."""

    # The application

    def _may_read(self) -> bool:
        return (self.reads or self._asks) and not self._held

    def _read(self) -> None:
        """Let the application deal with what it was given, one by one: it may have to wait in the middle."""
        handover, unread, held = self.handover, self._unread, self._held
        while self._may_read() and (unread or handover):
            if not unread:
                unread.extend(handover.take(self._wire.now))
            while unread and not held:
                self.application.on_delivery(unread.popleft())
            if not unread:
                handover.mailbox.finish()
        if not self._asks:
            handover.mailbox.asked = self._may_read()
        self._offer()

    def _offer(self) -> None:
        """Hand over what the application wants to multicast now, instead of what it wanted before."""
        if self._offers:
            self._take_back()
        if self.handover.outgoing or self._held:
            return
        wish = self.application.waiting()
        if wish is not None:
            self.handover.send(Outgoing([wish[0]], wish[1]))
            self._offers = True

    def _take_back(self) -> None:
        self.handover.outgoing.clear()
        self.handover.taken(self.handover.unsent, self.handover.unsent_bytes)
        self._offers = False
        self._send_held()

    def _send_held(self) -> None:
        held, handover = self._held, self.handover
        while held and handover.room_for(len(held[0].payloads)):
            handover.send(held.popleft())
        if held and not self._waits:
            handover.wait(reading=True)
        elif self._waits and not held:
            handover.waited(reading=True)
        self._waits = bool(held)
