"""One turn: the only way in which a stack is driven.

A burst of commands, frames and timers goes in; what the stack wants is done; it is given what waits to be
sent; what it delivers is put where the application takes it. Simulated hosts, live groups, the test lab and
the benchmarks all go this way, so that what is judged in a simulation is what runs live. Time is an argument.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Protocol

from semcast.core.certificates import Certificates
from semcast.core.events import (
    Away,
    Back,
    Confirmed,
    Delivery,
    Event,
    Left,
    Minority,
    Rejoining,
    Unblocked,
    Unconfirmed,
    ViewChange,
)
from semcast.core.handover import Handover
from semcast.core.holdup import Holdup
from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Dest, Frame, Outbox, Timer, Write
from semcast.core.outgoing import Outgoing
from semcast.core.stack import Stack
from semcast.core.watchers import Onlooker, Watcher

_MATTERS = frozenset({Unblocked, Left, Minority, ViewChange, Confirmed, Unconfirmed, Away, Back})
"""Events that a turn looks at itself."""
_CALLS = 256
"""Calls of the application that a turn deals with, at most: what is delivered must not wait for long."""
_LOOK: Nanos = MILLISECOND
"""How often a turn asks who holds its member back, as long as nobody does."""
_PLENTY = 1 << 16
"""Messages that are dropped at a time, where nothing is kept for the application."""


class World(Protocol):
    """What a turn acts on: the wires, the clock's alarms, and the application."""

    def set_timer(self, timer: Timer, at: Nanos | None) -> None:
        """Let a timer go off at a moment, whatever it was set to before; None for never."""

    def store(self, now: Nanos, writes: Sequence[Write]) -> None:
        """Write records, in order; a turn with the tickets of syncs follows when those are done."""

    def send(self, now: Nanos, sends: Sequence[tuple[Dest, Frame]]) -> None:
        """Bring frames to members, in order."""

    def flush(self, now: Nanos) -> None:
        """The stack is done for the moment: what was kept to be sent together has to leave."""

    def wake(self) -> None:
        """There is something for the application: in its mailbox, room to send more, or an end."""

    def renew(self, member: MemberId) -> None:
        """Another incarnation goes on: no timer is set, and what is sent is from this member."""


Renew = Callable[[MemberId], tuple[MemberId, Random] | None]
"""Given a member that was put out of its group: the incarnation that comes back, and its chance; or None."""


class Turn:
    """Drives one stack.

    Args:
        member: who this is.
        stack: its protocol.
        handover: to and from its application.
        world: what is done to the rest of the world.
        watchers: told of all that happens.
        renew: names the next incarnation of a member that was put out against its will.
        certificates: where the stack notes them, for a watcher that records.
    """

    __slots__ = (
        "_calls",
        "_looked_at",
        "_minority",
        "_out",
        "_refused",
        "_renew",
        "_see_deliveries",
        "_see_events",
        "_see_multicast",
        "_tickets",
        "_watchers",
        "_world",
        "first_view",
        "handover",
        "holdup",
        "left",
        "member",
        "settled",
        "stack",
    )

    def __init__(
        self,
        member: MemberId,
        stack: Stack,
        handover: Handover,
        world: World,
        *,
        watchers: Sequence[Watcher] = (),
        renew: Renew | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        self.member = member
        self.stack = stack
        self.handover = handover
        stack.reader = handover.reader
        stack.certificates = certificates
        self.settled = False
        """Whether the stack has looked for others and begun to work, with them or alone."""
        self.first_view = 0
        """The view in which it began to work."""
        self.holdup = Holdup()
        """Who or what has kept this member from sending."""
        self.left: Left | None = None
        """How the member left its group, if it did."""
        self._out: Left | None = None  # the stack is out, and it is not settled yet who goes on
        self._world = world
        self._watchers = watchers
        self._see_events = [each.on_events for each in watchers if _looks(each, "on_events")]
        self._see_deliveries = [each.on_deliveries for each in watchers if _looks(each, "on_deliveries")]
        self._see_multicast = [each.on_multicast for each in watchers if _looks(each, "on_multicast")]
        self._renew = renew
        self._tickets: dict[int, None] = {}  # confirmations that the stack owes
        self._refused = False  # flow control wants the application to wait
        self._calls = 0  # of the application, in this turn
        self._looked_at: Nanos = -_LOOK  # when it was asked who holds this member back
        self._minority: tuple[MemberId, int] | None = None  # where the application was told of that

    def start(self, now: Nanos, records: Sequence[bytes] | None = None, first: int = 0) -> None:
        """The first turn. Where there is a disk, `records` is what it kept, from position `first` on."""
        if records is not None:
            self.stack.recover(now, records, first)
        self.stack.start(now)
        self.run(now)

    def run(
        self,
        now: Nanos,
        arrivals: Iterable[tuple[MemberId, Sequence[Frame]]] = (),
        timers: Iterable[Timer] = (),
        synced: Iterable[int] = (),
    ) -> None:
        """One burst of everything: commands, frames of members, timers that are due, and tickets of syncs."""
        self._calls = 0
        handover, stack = self.handover, self.stack
        if handover.commands:
            self._obey(now)
        if handover.discarded is not None and handover.asks_again():
            self._tell(handover.resume())
        if not handover.reading.reads_on(now, stack) and handover.reading.look(now, stack):
            stack.on_reader(now)
        for source, frames in arrivals:
            stack.on_frames(now, source, frames)
        for timer in timers:
            stack.on_timer(now, timer)
        for ticket in synced:
            stack.on_synced(now, ticket)
        self._settle(now)
        self._hand_out(now)
        self._see_who_waits(now)
        if not self.settled and self.stack.settled():
            self.settled = True
            self.first_view = self.stack.view().id
            self._world.wake()
        wanted = self.handover.members_wanted
        if wanted and len(self.stack.view().members) >= wanted:
            self._world.wake()

    @property
    def owed(self) -> int:
        """Confirmations that the stack has yet to answer."""
        return len(self._tickets)

    def busy(self) -> bool:
        """Whether another turn would do something, though nothing has happened."""
        handover = self.handover
        if handover.commands or handover.reading.stirred():
            return True
        if handover.discarded is not None and handover.asks_again():
            return True
        if handover.outgoing:
            if not self._refused and not handover.renewed:
                return True
        elif handover.leaving:
            return True
        return self.left is None and self.stack.deliverable() and handover.has_room(self.stack)

    def _settle(self, now: Nanos) -> None:
        """Do what the stack wants, and give it what waits to be sent, until both are done."""
        handover = self.handover
        while True:
            if handover.commands:
                self._obey(now)
            if self._tickets:
                self.stack.settle_confirmations()
            out = self.stack.out
            if out.sends or out.timers or out.events or out.writes:
                self._drain(now)
            if self._out is not None and self._go_on_anew(now):
                continue
            if not (handover.outgoing or handover.leaving) or not self._hand_in(now):
                break
        self._world.flush(now)

    def _obey(self, now: Nanos) -> None:
        commands = self.handover.commands
        while commands:
            commands.popleft()(self.stack, now)

    def _drain(self, now: Nanos) -> None:
        """Do what the stack wants.

        What is recorded comes before what is written to the disk in the same turn. A process that is killed
        between has said what it did, and not done it; else a record would be there that no history explains.
        """
        out, world = self.stack.out, self._world
        while out.sends or out.timers or out.events or out.writes:
            if out.timers:
                timers, out.timers = out.timers, []
                for timer, at in timers:
                    world.set_timer(timer, at)
            if out.events:
                events, out.events = out.events, []
                for see in self._see_events:
                    see(now, events)
                for event in events:
                    if type(event) in _MATTERS:
                        self._on_event(event)
            if out.writes:
                writes, out.writes = out.writes, []
                world.store(now, writes)
            if out.sends:
                sends, out.sends = out.sends, []
                world.send(now, sends)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Unblocked):
            self._refused = False
        elif isinstance(event, Left):
            self._out = event
        elif isinstance(event, ViewChange | Away | Back):
            self._tell((event,))
        elif isinstance(event, Confirmed | Unconfirmed):
            self._answer(event)
        elif isinstance(event, Minority):
            where = self.member, self.stack.view().id
            if self._minority != where:  # once in a view is enough: only the next view ends it
                self._minority = where
                self._tell((event,))

    def _tell(self, notice: Sequence[Delivery]) -> None:
        """What a stack says besides its deliveries, and the application should hear between them."""
        if self.handover.unread:
            self.handover.drop(notice)
        else:
            self.handover.put(notice)
            self._world.wake()

    def _answer(self, answer: Confirmed | Unconfirmed) -> None:
        self._tickets.pop(answer.ticket, None)
        self.handover.answers.append(answer)
        self._world.wake()

    def _owe_nothing(self, cause: str) -> None:
        """The stack is out of its group, and answers nobody any more."""
        for ticket in list(self._tickets):
            self._answer(Unconfirmed(ticket, cause))

    def _go_on_anew(self, now: Nanos) -> bool:
        """The stack is out of its group: let another take its place, if it was put out against its will."""
        left, former = self._out, self.stack
        assert left is not None
        self._out = None
        self._owe_nothing(f"{self.member} left before it was known: {left.cause}")
        comes_back = left.again and self._renew is not None and not self.handover.reading.closing
        chosen = self._renew(self.member) if comes_back and self._renew is not None else None
        stack = None if chosen is None else former.successor(*chosen, Outbox())
        if chosen is None or stack is None:
            self.left = left
            self._world.wake()
            return False
        notice = Rejoining(self.member, chosen[0], left.cause, former.unsettled())
        self._world.flush(now)  # what the former sent leaves under its own name
        self._refused = False
        self.member, self.stack = chosen[0], stack
        stack.reader = self.handover.reader
        stack.certificates = former.certificates
        if stack.certificates is not None:
            stack.certificates.renew()
        self.handover.renewed = True
        self._world.renew(self.member)
        for watcher in self._watchers:
            watcher.on_renewal(now, self.member)
        stack.start(now)
        self._tell((notice,))
        self._world.wake()  # whoever sends must know who it is now, also where nobody reads
        return True

    # From the application

    def _hand_in(self, now: Nanos) -> bool:
        """Give the stack what waits; returns whether it was given anything."""
        handover = self.handover
        if self.left is not None:
            self._discard()
            return False
        if not handover.outgoing:
            if handover.leaving:
                handover.leaving = False
                self.stack.leave(now)
                return True
            return False
        if self._refused or handover.renewed or self._calls >= _CALLS:
            return False
        given = self._multicast(now, handover)
        freed = sum([taken for _, taken in given])
        if freed:
            for see in self._see_multicast:
                see(now, given)
            self._free(freed, sum([each.bytes(taken) for each, taken in given]))
        return True

    def _multicast(self, now: Nanos, handover: Handover) -> list[tuple[Outgoing, int]]:
        stack, outgoing = self.stack, handover.outgoing
        given: list[tuple[Outgoing, int]] = []
        while outgoing and self._calls < _CALLS:
            self._calls += 1
            each = handover.head()
            if each.annotations is None:
                taken = stack.multicast(now, each.payloads, each.annotation, safe=each.safe)
            else:
                taken = stack.multicast_each(now, each.payloads, each.annotations, safe=each.safe)
            given.append((each, taken))
            if taken < len(each.payloads):
                outgoing[0] = each.after(taken)
                self._refused = True
                break
            outgoing.popleft()
            if each.confirm is not None:
                self._confirm(now, *each.confirm)
        return given

    def _confirm(self, now: Nanos, ticket: int, safe: bool) -> None:
        """Ask the stack what becomes of what it took last."""
        self._tickets[ticket] = None
        self.stack.confirm(now, ticket, safe=safe)

    def _discard(self) -> None:
        """The stack is out of the group: nobody takes these any more."""
        outgoing, freed, size = self.handover.outgoing, 0, 0
        while outgoing:
            each = self.handover.head()
            outgoing.popleft()
            freed += len(each.payloads)
            size += each.bytes(len(each.payloads))
            if each.confirm is not None:
                self._answer(Unconfirmed(each.confirm[0], f"{self.member} left before it was sent"))
        self.handover.leaving = False
        if freed:
            self._free(freed, size)

    def _free(self, count: int, size: int) -> None:
        if self.handover.taken(count, size):
            self._world.wake()

    # To the application

    def _hand_out(self, now: Nanos) -> None:
        """Fill the mailbox: the application may take its time. Who has left delivers nothing more."""
        handover, stack = self.handover, self.stack
        reading = handover.reading
        if not (reading.reader.began or handover.unread) and reading.fills(now, stack):
            reading.look(now, stack)
            stack.on_reader(now)
            self._settle(now)  # it may send now, which comes before what it delivers
        more = self.stack.deliverable()
        while more and self.left is None and handover.has_room(self.stack):
            self._hand_over(now, handover)
            self._settle(now)  # what this made the stack send comes before what it delivers next
            more = self.stack.deliverable()
        handover.more = more or self.stack.watches_mailbox

    def _hand_over(self, now: Nanos, handover: Handover) -> None:
        """One list."""
        unread = handover.unread
        deliveries = self.stack.deliver(now, _PLENTY if unread else handover.mailbox.want)
        if not deliveries:
            return
        for see in self._see_deliveries:
            see(now, deliveries)
        if unread:
            handover.drop(deliveries)
            return
        handover.put(deliveries)
        if handover.awaited:
            self._world.wake()

    def _see_who_waits(self, now: Nanos) -> None:
        """Tell those who wait in `send` if waiting will not help; see who holds this member back."""
        handover, stack = self.handover, self.stack
        reading = handover.reading
        if reading.reader.waits and stack.overflowing():
            handover.overflow(stack)
            self._world.wake()
        elif handover.overflowing:
            handover.overflowing = False
        urgent = reading.answers_first or self.holdup.now is not None
        due = reading.stalled or now - self._looked_at >= _LOOK
        if urgent or (due and (handover.outgoing or stack.pending())):
            self._looked_at = now
            held = stack.held_back() if self.left is None else None
            self.holdup.note(now, held)
            if reading.put_answers_first(held is not None) and reading.waiting:
                self._world.wake()


def _looks(watcher: Watcher, name: str) -> bool:
    """Whether a watcher does anything there."""
    return getattr(type(watcher), name) is not getattr(Onlooker, name)
