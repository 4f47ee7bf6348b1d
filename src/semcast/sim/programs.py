"""How the application of a simulated host spends its time: when it reads, and when it sends.

`Asker` takes a message when it has time for one, as the papers' experiments assume. `Program` is like a live
one: it finds lists in a mailbox, hands over runs of messages, and waits in `send`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from random import Random

import msgspec

from semcast.core.handover import Handover
from semcast.core.ids import MemberId, Nanos
from semcast.core.mailbox import Mailbox
from semcast.core.turn import Turn
from semcast.sim.applications import Reader, Writer
from semcast.sim.bursts import Bursts
from semcast.sim.habits import READER, Habit
from semcast.sim.scheduler import Scheduler
from semcast.sim.statistics import HostStatistics
from semcast.sim.workloads import Source

EVERYTHING = 1 << 30


class Application(ABC):
    """Base: a reader and a writer on one hand-over.

    Args:
        handover: to and from the stack.
        reader: what becomes of what is taken.
        writer: what is sent.
        scheduler: virtual time.
        stats: of the host.
        delay: how long it takes for a message.
    """

    __slots__ = (
        "_free_at",
        "_mailbox",
        "_planned",
        "_scheduler",
        "_stats",
        "delay",
        "handover",
        "nudge",
        "reader",
        "stopped",
        "writer",
    )

    def __init__(
        self,
        handover: Handover,
        reader: Reader,
        writer: Writer,
        scheduler: Scheduler,
        stats: HostStatistics,
        delay: Nanos,
    ) -> None:
        self.handover = handover
        self.reader = reader
        self._mailbox = handover.mailbox
        self.writer = writer
        self.delay = delay
        self.stopped = False
        self.nudge: Callable[[Callable[[], None] | None], None] = _nobody
        """Set by the host: have it take a turn, and do something at its beginning if anything is given."""
        self._scheduler = scheduler
        self._stats = stats
        self._free_at: Nanos = 0
        self._planned = False  # to come back for what is delivered

    def sleep(self, until: Nanos) -> None:
        """Do nothing until then."""
        self._free_at = max(self._free_at, until)

    def plan_next_message(self) -> None:
        """The next message is made after an interval."""
        gap = self.writer.next_gap()
        if gap is not None:
            self._scheduler.at(self._scheduler.now + gap, self._produce)
        else:
            self._no_more()

    @abstractmethod
    def wake(self, *, running: bool) -> None:
        """There is something for the application; in the middle of a turn if one is `running`."""

    def before_turn(self, now: Nanos) -> None:  # noqa: B027
        """The host takes a turn."""

    @abstractmethod
    def after_turn(self, turn: Turn) -> bool:
        """The host took a turn; returns whether it should take another one, though nothing happened."""

    def catch_up(self) -> None:  # noqa: B027
        """The run is over: who stopped reading reads again."""

    def read_at_last(self) -> bool:
        """Nobody waits for anything: who never read does, unless it was skipped; returns whether it does."""
        return False

    @property
    def waiting(self) -> bool:
        """Whether it made something that the stack has not taken yet."""
        return self.writer.waiting or bool(self.reader.answers)

    @property
    def raised(self) -> int:
        """Calls of `send` that raised, because it must read first."""
        return self.writer.desk.raised + self.reader.answers.raised

    def delivered(self, now: Nanos) -> None:  # noqa: B027
        """A list was made for the application."""

    def taken(self) -> None:  # noqa: B027
        """The stack took messages of the application."""

    @abstractmethod
    def _produce(self) -> None:
        """An interval has passed."""

    def _no_more(self) -> None:  # noqa: B027
        """There is nothing more to send."""

    def _read(self) -> int:
        taken = self.reader.read(self._scheduler.now)
        self._stats.read += taken
        return taken


class Asker(Application):
    """One thing at a time: it asks for a message when it has time, and makes the next when one was sent."""

    __slots__ = ()

    def before_turn(self, now: Nanos) -> None:
        """It would deal with a list at once, unless it is busy or has planned to ask."""
        if self.delay == 0 and not self._planned and self._free_at <= now:
            self._mailbox.want, self._mailbox.asked = EVERYTHING, True

    def after_turn(self, turn: Turn) -> bool:
        """If it is busy, it asks when it is free; if it still asks, it was given all there is."""
        mailbox = self._mailbox
        if mailbox.asked:
            mailbox.asked = False
        elif not self._planned and turn.stack.deliverable():
            self._planned = True
            self._scheduler.at(self._free_at, self._ask)
        return False

    def delivered(self, now: Nanos) -> None:
        """It is busy with that for a while."""
        if self.delay:
            self._free_at = now + self.delay
            self._mailbox.asked = False

    def wake(self, *, running: bool) -> None:  # noqa: ARG002
        """What it is told, and what it asked for, it takes at once."""
        handover = self.handover
        handover.renewed = False
        while handover:
            self._read()

    def taken(self) -> None:
        """The next one, then."""
        self.plan_next_message()

    def _ask(self) -> None:
        self._planned = False
        self.nudge(self._ask_now)

    def _ask_now(self) -> None:
        if self._free_at <= self._scheduler.now:
            self._mailbox.want, self._mailbox.asked = 1 if self.delay else EVERYTHING, True

    def _produce(self) -> None:
        if not self.stopped and self.writer.produce():
            self.nudge(self._hand_over)  # one input after the other, in the order in which they came

    def _hand_over(self) -> None:
        self.writer.flush()


class Program(Application):
    """Like a live program: it reads lists, sends runs, answers, and waits where there is no room.

    While the task that reads waits, it reads nothing.
    """

    __slots__ = (
        "_habit",
        "_over",
        "_single",
    )

    def __init__(
        self,
        handover: Handover,
        reader: Reader,
        writer: Writer,
        scheduler: Scheduler,
        stats: HostStatistics,
        delay: Nanos,
        *,
        single: bool,
        habit: Habit,
    ) -> None:
        super().__init__(handover, reader, writer, scheduler, stats, delay)
        self._single = single
        self._habit = habit
        self._over = False  # everybody reads from now on

    def wake(self, *, running: bool) -> None:
        """There may be room again for what it wants to send, and something to read."""
        if self.handover.renewed:
            self.handover.go_on()  # whoever sends must know who it is now, also if it reads nothing
        handed = bool(self.reader.answers) and self.reader.answers.retry()
        blocked, answers = self.writer.blocked(), self.handover.answers
        while answers:
            self.writer.desk.answered(answers.popleft().ticket)
        if blocked:
            handed = self.writer.desk.retry() or handed
            if not self.writer.blocked():
                self.plan_next_message()
        if handed and not running:
            self.nudge(None)
        self._plan_reading()

    def after_turn(self, turn: Turn) -> bool:
        """What it did in the middle of the turn may be left to do."""
        return turn.busy()

    def catch_up(self) -> None:
        """The run is over: who stopped reads again."""
        self._over = True
        self._plan_reading()

    def read_at_last(self) -> bool:
        """What waits for it did not fill its queue: it is delivered when the program asks for it."""
        handover = self.handover
        if self.stopped or handover.unread or handover.reading.began:
            return False
        handover.begin()
        self._plan_reading()
        return True

    def _produce(self) -> None:
        if self.stopped:
            return
        if self.writer.produce():
            self._hand_over()
        if not self.writer.blocked():
            self.plan_next_message()

    def _no_more(self) -> None:
        self._hand_over()

    def _hand_over(self) -> None:
        if self.writer.flush() or self.writer.blocked():
            self.nudge(None)

    def _has_read(self) -> None:
        """What it could not send before may be sent now, and what it makes later need not wait for more."""
        blocked = self.writer.blocked()
        self.writer.desk.has_read()
        if blocked and not self.writer.blocked():
            self.plan_next_message()

    def _plan_reading(self) -> None:
        if not self._planned and self.handover and self._may_read():
            self._come_back_at(max(self._free_at, self._scheduler.now))

    def _may_read(self) -> bool:
        """Whether it wants to read, and need not send before it does."""
        habit = self._habit
        stopped = habit.stops_after is not None and self._stats.read >= habit.stops_after and not self._over
        waits = self.reader.answers.waits or (self._single and self.writer.desk.waits)
        return self.handover.reading.began and not stopped and not waits

    def _come_back_at(self, at: Nanos) -> None:
        self._planned = True
        self._scheduler.at(at, self._come_back)

    def _come_back(self) -> None:
        """It is done with the list it took last."""
        self._planned = False
        now = self._scheduler.now
        if self.stopped:
            return
        if self._free_at > now:  # it was put to sleep
            self._come_back_at(self._free_at)
            return
        if not self._may_read():
            return
        self.handover.dealt_with(now)
        if self.handover:
            self._free_at = now + self.delay * self._read()
            self._has_read()
            self._come_back_at(self._free_at)
            self.nudge(None)
        elif self._habit.pause:
            self._free_at = now + self._habit.pause


class Programs(msgspec.Struct, frozen=True, kw_only=True):
    """The programs of a group: what each sends, and how it reads. Members are numbered from 0."""

    sources: Mapping[int, Source] = {}
    """What members send."""
    again: Callable[[int, MemberId], Source | None] | None = None
    """What a member sends that starts again as another incarnation."""
    delays: Mapping[int, Nanos] = {}
    """How long they take for a message."""
    habits: Mapping[int, Habit] = {}
    """What those do that do not just read."""
    bursts: Bursts | None = None
    """How inputs and messages are grouped; None for one at a time."""
    observe: bool = True
    """Whether they build up state."""
    transfers: bool = False
    """Whether the stack hands over their state."""
    goes_on: bool = False
    """Whether they keep it where their member comes back as another incarnation."""
    queue_messages: int = 1024
    """How many messages may wait for one of them."""
    queue_bytes: int = 64 << 20
    """Bytes of these, and of what it sends."""
    handover: type[Handover] = Handover
    """What lies between them and their stacks, or a mutant of it."""

    def source(self, number: int, member: MemberId) -> Source | None:
        """What an incarnation of a member sends."""
        if not member.incarnation:
            return self.sources.get(number)
        return None if self.again is None else self.again(number, member)

    def start(
        self,
        number: int,
        member: MemberId,
        scheduler: Scheduler,
        stats: HostStatistics,
        rng: Random | None,
    ) -> Application:
        """The program of one incarnation, with its hand-over; `rng` where messages come in bursts."""
        bursts, habit = self.bursts, self.habits.get(number, READER)
        if bursts is None:
            handover = self.handover(1, Mailbox(0))
        else:
            handover = self.handover(
                bursts.send_messages,
                queue_messages=self.queue_messages,
                queue_bytes=self.queue_bytes,
                send_bytes=self.queue_bytes,
                receives=habit.receives,
            )
        if habit.iterates:
            handover.begin()
        reader = Reader(handover, observe=self.observe, transfers=self.transfers, answers=habit.answers)
        reader.me = member
        source = self.source(number, member)
        writer = Writer(handover, source, bursts or Bursts(), rng, lambda: reader.position)
        delay = self.delays.get(number, 0)
        if bursts is None:
            return Asker(handover, reader, writer, scheduler, stats, delay)
        return Program(handover, reader, writer, scheduler, stats, delay, single=bursts.single, habit=habit)


def _nobody(_first: Callable[[], None] | None) -> None:
    raise AssertionError("an application without a host")
