"""A stack on real sockets, in a thread of its own.

The loop gives the stack one burst of input, then acts on its outbox, exactly as a simulated host does. The
application lives in another thread: it leaves commands in a queue and takes deliveries out of a mailbox, so
that whatever it does, tokens and timers go on.
"""

import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery, Event
from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.stack import Stack
from semcast.net.addresses import Address
from semcast.net.alarms import Alarms
from semcast.net.mailbox import Mailbox
from semcast.net.post import Post
from semcast.net.sockets import Endpoint
from semcast.wire import DatagramCodec
from semcast.wire.status import Status

Command = Callable[[Stack, Nanos], None]

_HOUSEKEEPING: Nanos = SECOND
SWITCH_INTERVAL = 0.0002
"""Seconds after which Python lets another thread run; 5 ms by default (docs/decisions/0006)."""


class Watcher(Protocol):
    """Whoever wants to know what the driver does. Called in the driver's thread."""

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        """Events of the stack, before the frames that go with them leave."""

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        """What the application is about to get."""

    def on_multicast(self, now: Nanos, taken: "Sequence[tuple[Outgoing, int]]") -> None:
        """What the stack took from the application and how many messages of each, before any leaves."""


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """Messages the application wants multicast."""

    payloads: Sequence[bytes]
    annotation: Annotation | None
    safe: bool
    annotations: Sequence[Annotation] | None = None
    """Or one for each of them."""

    def after(self, taken: int) -> "Outgoing":
        """What is left of them."""
        notes = None if self.annotations is None else self.annotations[taken:]
        return Outgoing(self.payloads[taken:], self.annotation, self.safe, notes)


class Renewal(msgspec.Struct, frozen=True):
    """Who goes on in the place of a member that was put out of its group."""

    member: MemberId
    stack: Stack
    notice: Sequence[Delivery]
    """What the application hears of it."""


class Driver:
    """Runs one stack until it is closed.

    Args:
        member: who this is.
        stack: its protocol.
        endpoint: its sockets.
        codec: of its group.
        peers: where to look for others besides the meeting point.
        multicast: whether what is for everybody is sent once, where all are heard at the meeting point.
        wake_application: called, from the driver's thread, when there is something in the mailbox, room for
            more messages, or an end.
        watchers: told of all that happens.
        tend: called once a second, in the driver's thread.
        renew: called, there, with a stack that is out of its group; gives another to go on with, or None.
    """

    def __init__(
        self,
        member: MemberId,
        stack: Stack,
        endpoint: Endpoint,
        codec: DatagramCodec,
        *,
        peers: Sequence[Address] = (),
        multicast: bool = False,
        wake_application: Callable[[], None],
        watchers: Sequence[Watcher] = (),
        tend: Callable[[], None] | None = None,
        renew: Callable[[Stack], Renewal | None] | None = None,
    ) -> None:
        self.member = member
        self.stack = stack
        self.endpoint = endpoint
        self.mailbox = Mailbox(time.monotonic_ns)
        self.failure: BaseException | None = None
        self.finished = False
        """Whether the thread has ended, for whatever reason."""
        self.settled = False
        """Whether the stack has looked for others and begun to work, with them or alone."""
        self.first_view = 0
        """The view in which it began to work."""
        self._post = Post(member, endpoint, codec, peers, multicast=multicast)
        self.stats = self._post.stats
        self._wake_application = wake_application
        self._watchers = watchers
        self._tend = tend
        self._renew = renew
        self.renewed = False
        """Whether another incarnation waits for `go_on` before it sends what was handed over."""
        self._outgoing: deque[Outgoing] = deque()
        self.unsent = 0
        """Messages that wait here for the stack to take them. Both threads write it, under the lock."""
        self.application_waits = False
        self._lock = threading.Lock()
        self._commands: deque[Command] = deque()
        self._alarms = Alarms()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._asleep = False
        self._closing = False
        self._leave_asked = False
        self._nobody_reads = False  # the application is done; what still comes is taken for it
        self._housekeeping_at: Nanos = 0
        self._started_at: Nanos = 0
        self._refused = False  # flow control wants the application to wait
        self._thread = threading.Thread(target=self._run, name=f"semcast {member}", daemon=True)

    # Called by the application's thread

    def start(self) -> None:
        """Start the thread."""
        # A busy application thread gives up the interpreter only so often; a token must not wait for long.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))
        self._thread.start()

    def send(self, outgoing: Outgoing) -> None:
        """Hand messages over."""
        with self._lock:
            self.unsent += len(outgoing.payloads)
        self._outgoing.append(outgoing)
        self._wake()

    def call(self, command: Command) -> None:
        """Have something done to the stack, in the driver's thread."""
        self._commands.append(command)
        self._wake()

    def go_on(self) -> None:
        """The application knows who it is now."""
        self.renewed = False
        self._wake()

    def taken(self) -> None:
        """The application took a list out of the mailbox."""
        self._wake()

    def leave(self) -> None:
        """Leave the group once the stack has taken what was handed over; nothing may be handed over after."""
        self._leave_asked = self._nobody_reads = True
        self._wake()

    def buffered(self) -> int:
        """Messages in the buffers of the stack."""
        while True:
            try:
                return self.stack.buffered()
            except RuntimeError:  # it changed while it was being counted
                continue

    def close(self) -> None:
        """Stop, and wait until the thread has ended."""
        self._closing = True
        if not self.finished:
            os.eventfd_write(self._wake_fd, 1)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self.endpoint.close()
        if self._wake_fd >= 0:
            os.close(self._wake_fd)
            self._wake_fd = -1

    def _wake(self) -> None:
        if self._asleep and not self.finished:
            os.eventfd_write(self._wake_fd, 1)

    # The driver's thread

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException as error:  # the application is told, whatever it is
            self.failure = error
        finally:
            self.finished = True
            self._wake_application()

    def _loop(self) -> None:
        poll = select.epoll()
        try:
            poll.register(self._wake_fd, select.EPOLLIN)
            for fileno in self.endpoint.filenos():
                poll.register(fileno, select.EPOLLIN)
            self._started_at = time.monotonic_ns()
            self.stack.start(self._started_at)
            ready: list[int] = []
            while not self._closing:
                self._turn(ready)
                ready = self._sleep(poll)
        finally:
            poll.close()

    def _sleep(self, poll: select.epoll) -> list[int]:
        """Wait for something to happen; returns the sockets at which it did."""
        self._asleep = True
        leaves = self._leave_asked and not self._outgoing
        if self._outgoing_is_moving() or self._commands or leaves or self._closing or self._can_deliver():
            timeout = 0.0
        else:
            alarm = self._alarms.next_at()
            due = self._housekeeping_at if alarm is None else min(alarm, self._housekeeping_at)
            timeout = max(0.0, (due - time.monotonic_ns()) / SECOND)
        ready = [fileno for fileno, _ in poll.poll(timeout)]
        self._asleep = False
        if self._wake_fd in ready:
            os.eventfd_read(self._wake_fd)
        return ready

    def _can_deliver(self) -> bool:
        """Whether the application made room while the driver was not looking."""
        return self._has_room() and self.stack.deliverable()

    def _has_room(self) -> bool:
        """Whether the application takes more; also if it waits in `send`, and only that can end it."""
        return self.mailbox.has_room() or self._nobody_reads or (self.application_waits and self._behind())

    def _behind(self) -> bool:
        return self.stack.behind()

    def _outgoing_is_moving(self) -> bool:
        """Whether something was handed over that the stack has not refused yet."""
        return bool(self._outgoing) and not self._refused and not self.renewed

    def _turn(self, ready: Sequence[int]) -> None:
        """One burst of everything."""
        now = time.monotonic_ns()
        stack = self.stack
        while self._commands:
            self._commands.popleft()(stack, now)
        if ready:
            for source, frames in self._post.receive(now, ready):
                stack.on_frames(now, source, frames)
        while (timer := self._alarms.pop(now)) is not None:
            stack.on_timer(now, timer)
        self._drain(now)
        if self._renew is not None and stack.phase() == "left":
            stack = self._go_on_anew(now)
        self._refused = False
        self._multicast(now)
        if self._leave_asked and not self._outgoing:
            self._leave_asked = False
            stack.leave(now)
        self._drain(now)
        self._deliver(now)
        if not self.settled and stack.phase() == "operational":
            self.settled = True
            self.first_view = stack.view().id
            self._wake_application()
        self._post.introduce()
        if now >= self._housekeeping_at:
            self._housekeeping_at = now + _HOUSEKEEPING
            self._post.tend(now)
            if self._tend is not None:
                self._tend()
            self._announce_status(now)

    def _go_on_anew(self, now: Nanos) -> Stack:
        """The stack was put out of its group: let another take its place."""
        assert self._renew is not None
        renewal = None if self._nobody_reads else self._renew(self.stack)
        if renewal is None:
            return self.stack
        self.member, self.stack = renewal.member, renewal.stack
        self._post.renew(self.member)
        self._alarms.clear()
        self.renewed = True
        self.mailbox.put(renewal.notice)
        self.stack.start(now)
        self._wake_application()
        return self.stack

    def _multicast(self, now: Nanos) -> None:
        if self.renewed:
            return
        if self._outgoing and self.stack.phase() == "left":
            self._discard()
            return
        freed = 0
        given: list[tuple[Outgoing, int]] = []
        while self._outgoing:
            each = self._outgoing[0]
            if each.annotations is None:
                taken = self.stack.multicast(now, each.payloads, each.annotation, safe=each.safe)
            else:
                taken = self.stack.multicast_each(now, each.payloads, each.annotations, safe=each.safe)
            freed += taken
            given.append((each, taken))
            if taken < len(each.payloads):
                self._outgoing[0] = each.after(taken)
                self._refused = True
                break
            self._outgoing.popleft()
        if freed:
            for watcher in self._watchers:
                watcher.on_multicast(now, given)
            self._free(freed)

    def _discard(self) -> None:
        """The stack is out of the group: nobody takes these any more."""
        freed = 0
        while self._outgoing:
            freed += len(self._outgoing.popleft().payloads)
        self._free(freed)

    def _free(self, count: int) -> None:
        with self._lock:
            self.unsent -= count
        if self.application_waits:
            self.application_waits = False  # whoever still has to wait says so again
            self._wake_application()

    def _deliver(self, now: Nanos) -> None:
        """Fill the mailbox: the application may take its time."""
        put = False
        mailbox, stack = self.mailbox, self.stack
        while self._has_room() and stack.deliverable():
            deliveries = stack.deliver(now, mailbox.want)
            if deliveries:
                for watcher in self._watchers:
                    watcher.on_deliveries(now, deliveries)
                if not self._nobody_reads:
                    mailbox.put(deliveries)
                    put = True
                self._drain(now)  # what this made the stack send comes before what it delivers next
        if put:
            self._wake_application()

    def _drain(self, now: Nanos) -> None:
        out = self.stack.out
        while out.sends or out.timers or out.events:
            if out.timers:
                timers, out.timers = out.timers, []
                for timer, at in timers:
                    self._alarms.set(timer, at)
            if out.events:
                events, out.events = out.events, []
                for watcher in self._watchers:
                    watcher.on_events(now, events)
            if out.sends:
                sends, out.sends = out.sends, []
                self._post.send(sends)

    def _announce_status(self, now: Nanos) -> None:
        """For observers, who never say that they are there."""
        stack, stats = self.stack, self.stack.stats
        view = stack.view()
        status = Status(
            phase=stack.phase(),
            view=view.id,
            representative=view.representative,
            members=len(view.members),
            sent=stats.sent,
            delivered=stats.delivered,
            purged=stats.purged_delivery,
            retransmitted=stats.retransmitted,
            buffered=stack.buffered(),
            unsent=self.unsent,
            uptime=now - self._started_at,
            deaf=self._post.deaf,
        )
        if status.phase != "left":
            self._post.announce([status])
