"""One stack of one group at a hub, with what is handed over between it and its application."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from semcast.core.annotations import Item
from semcast.core.certificates import Certificates
from semcast.core.events import Delivery, Left
from semcast.core.handover import Command, Handover
from semcast.core.holdup import Holdup
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Dest, Frame, Timer, Write
from semcast.core.outgoing import Outgoing
from semcast.core.stack import Stack
from semcast.core.turn import Renew, Turn
from semcast.core.watchers import Watcher
from semcast.net.alarms import Alarms
from semcast.wire.status import MAX_REASON, Status


class Post(Protocol):
    """Where a seat's frames go: a hub."""

    def send(self, sends: Sequence[tuple[Dest, Frame]]) -> None:
        """To one member each, or to everybody."""

    def announce(self, frames: Sequence[Frame]) -> None:
        """Tell those who are not known yet."""

    def renew(self, member: MemberId) -> None:
        """Go on as another incarnation."""


class Disk(Protocol):
    """Where a seat's records go. Another thread writes them."""

    @property
    def records(self) -> Sequence[bytes]:
        """What it kept."""

    @property
    def first(self) -> int:
        """The position of the first of these."""

    def read_back(self, first: int, most: int) -> Sequence[bytes]:
        """Synced records from a position on, for the stack; none if the first was given up."""

    def store(self, writes: Sequence[Write]) -> None:
        """Have records written, in order."""

    def ready(self) -> bool:
        """Whether `take` has something to say."""

    def take(self) -> Sequence[int]:
        """Tickets of syncs that were done since. Raises what happened, if the disk is of no use any more."""


class Effects:
    """What the turns of a seat do to the world.

    Args:
        wake_application: called when there is something for it.
        disk: for records, where they are kept.
    """

    def __init__(self, wake_application: Callable[[], None], disk: Disk | None) -> None:
        self.alarms = Alarms()
        self.disk = disk
        self.post: Post | None = None
        self._wake_application = wake_application
        self._to_wake = False

    def set_timer(self, timer: Timer, at: Nanos | None) -> None:
        """One of the alarms."""
        self.alarms.set(timer, at)

    def store(self, now: Nanos, writes: Sequence[Write]) -> None:  # noqa: ARG002
        """On the disk of this member."""
        assert self.disk is not None, "a stack that was not told of a disk wants to write"
        self.disk.store(writes)

    def send(self, now: Nanos, sends: Sequence[tuple[Dest, Frame]]) -> None:  # noqa: ARG002
        """At once: a token must not wait for what comes after it."""
        assert self.post is not None
        self.post.send(sends)

    def flush(self, now: Nanos) -> None:
        """Everything has left already."""

    def wake(self) -> None:
        """The application may look, once the turn is over: before, both would want the processor."""
        self._to_wake = True

    def end_turn(self) -> None:
        """Wake the application, if there is something for it."""
        if self._to_wake:
            self._to_wake = False
            self._wake_application()

    def renew(self, member: MemberId) -> None:
        """Another incarnation goes on."""
        self.alarms.clear()
        assert self.post is not None
        self.post.renew(member)


class Seat:
    """Takes the turns of one stack, in the thread of a loop; the application comes from another.

    Args:
        member: who this is.
        stack: its protocol.
        handover: to and from its application.
        wake_application: called, in the loop's thread, when there is something in the mailbox, room for
            more messages, or an end.
        watchers: told of all that happens.
        renew: called, there, with a member that was put out of its group; names the one that comes back.
        disk: of the member, where it has one.
        certificates: where the stack notes them, for a watcher that records.
    """

    def __init__(
        self,
        member: MemberId,
        stack: Stack,
        handover: Handover,
        *,
        wake_application: Callable[[], None],
        watchers: Sequence[Watcher] = (),
        renew: Renew | None = None,
        disk: Disk | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        self.handover = handover
        self.failure: BaseException | None = None
        """What ended it, if something went wrong."""
        self.wake_loop: Callable[[], None] = _nobody
        """Set by whoever runs the loop: called when the application did something."""
        self.push_loop: Callable[[], None] = _nobody
        """The same where it waits for a message to leave: it may take the turn itself."""
        self._effects = Effects(wake_application, disk)
        self._turn = Turn(
            member,
            stack,
            handover,
            self._effects,
            watchers=watchers,
            renew=renew,
            certificates=certificates,
        )
        self._started_at: Nanos = 0
        self._told = False  # observers know that it has left

    # Called by the application's thread

    def send(self, outgoing: Outgoing) -> None:
        """Hand messages over."""
        self.handover.send(outgoing)
        self.push_loop()

    def send_plain(self, payload: bytes) -> None:
        """Hand over one message that says nothing about others."""
        self.handover.send_plain(payload)
        self.push_loop()

    def send_update(self, payload: bytes, item: Item) -> None:
        """Hand over one message that updates an item."""
        self.handover.send_update(payload, item)
        self.push_loop()

    def call(self, command: Command) -> None:
        """Have something done to the stack, in the loop's thread."""
        self.handover.call(command)
        self.wake_loop()

    def leave(self) -> None:
        """Leave the group once the stack has taken what was handed over."""
        self.handover.leave()
        self.wake_loop()

    def take(self, now: Nanos) -> Sequence[Delivery]:
        """The next list for the application; there is room for another one then."""
        taken = self.handover.take(now)
        if self.handover.heeded:
            self.wake_loop()
        return taken

    def reform(self, view: int) -> None:
        """Somebody vouches that whoever is not within reach is gone, while the stack is in this view."""

        def reform(stack: Stack, now: Nanos) -> None:
            if stack.view().id == view:
                stack.reform(now)

        self.call(reform)

    def go_on(self) -> None:
        """The application knows who it is now."""
        self.handover.go_on()
        self.wake_loop()

    def buffered(self) -> int:
        """Messages in the buffers of the stack."""
        while True:
            try:
                return self.stack.buffered()
            except RuntimeError:  # it changed while it was being counted
                continue

    # About it

    @property
    def member(self) -> MemberId:
        """Who this is now."""
        return self._turn.member

    @property
    def stack(self) -> Stack:
        """Its protocol."""
        return self._turn.stack

    @property
    def settled(self) -> bool:
        """Whether the stack has looked for others and begun to work, with them or alone."""
        return self._turn.settled

    @property
    def first_view(self) -> int:
        """The view in which it began to work."""
        return self._turn.first_view

    @property
    def holdup(self) -> Holdup:
        """Who or what has kept it from sending."""
        return self._turn.holdup

    @property
    def left(self) -> Left | None:
        """How it left its group for good, if it did."""
        return self._turn.left

    def members(self) -> Sequence[MemberId]:
        """Of the view its stack is in."""
        return self._turn.stack.view().members

    # Called by the hub, in the loop's thread

    def attach(self, post: Post) -> None:
        """From now on frames go there."""
        self._effects.post = post

    def start(self, now: Nanos, _arrivals: Iterable[tuple[MemberId, Sequence[Frame]]]) -> None:
        """The first turn."""
        self._started_at = now
        disk = self._effects.disk
        if disk is None:
            self._turn.start(now)
        else:
            self._turn.stack.read_back = disk.read_back
            self._turn.start(now, disk.records, disk.first)
        self._effects.end_turn()

    def run(self, now: Nanos, arrivals: Iterable[tuple[MemberId, Sequence[Frame]]]) -> None:
        """A turn."""
        disk = self._effects.disk
        synced = disk.take() if disk is not None and disk.ready() else ()
        self._turn.run(now, arrivals, self._effects.alarms.due(now), synced)
        if self._turn.left is not None and not self._told:
            self._told = True
            assert self._effects.post is not None
            self._effects.post.announce([self.status(now)])
        self._effects.end_turn()

    def next_at(self) -> Nanos | None:
        """When its next timer goes off; 0 where a turn has something to do at once."""
        disk = self._effects.disk
        if self._turn.busy() or (disk is not None and disk.ready()):
            return 0
        return self._effects.alarms.next_at()

    def fail(self, error: BaseException) -> None:
        """It is not driven any more, because of this."""
        self.failure = error
        self._effects.wake()
        self._effects.end_turn()

    def status(self, now: Nanos, *, deaf: bool = False) -> Status:
        """For observers, who never say that they are there."""
        stack = self._turn.stack
        stats, view = stack.stats, stack.view()
        held = self._turn.holdup.now
        return Status(
            phase="left" if self._turn.left is not None else stack.phase(),
            view=view.id,
            representative=view.representative,
            members=len(view.members),
            sent=stats.sent,
            delivered=stats.delivered,
            purged=stats.purged_delivery,
            retransmitted=stats.retransmitted,
            buffered=stack.buffered(),
            unsent=self.handover.unsent,
            uptime=now - self._started_at,
            deaf=deaf,
            unread=self.handover.mailbox.unfinished + stack.queued(),
            held_by=None if held is None else held[0].by,
            held_why="" if held is None else held[0].why[:MAX_REASON],
            held_for=0 if held is None else max(0, now - held[1]),
        )


def _nobody() -> None:
    """There is no loop yet."""
