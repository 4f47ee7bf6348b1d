"""Simulated programs that give a logger batches, as a streaming query of Spark does.

A batch has tasks, each with a stage of its own, and some tasks fail half-way and are run again. When all
pieces are on the logger's disk, the program asks for the batch to be published, by the key (program, number),
and then has on its own disk that the batch is done. Who crashes before that does the batch again.
"""

from collections.abc import Sequence
from random import Random
from zlib import crc32

from semcast.core.events import Note
from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.protocols.gossip.client import Done, LogClient, Question, Result
from semcast.protocols.gossip.queries import Denied, Put, Release, Taken
from semcast.sim.gossip_scenario import Strangers
from semcast.wire.annotations import WireAnnotation, WireItem

_PIECE = 4
"""Messages of a piece, at most."""
_TOKEN = 6
_AGAIN = 100 * MILLISECOND
"""After which a batch that was refused is done again."""

Messages = list[tuple[bytes, WireAnnotation | None]]


class Publishing(Strangers, frozen=True, kw_only=True):
    """Settings of a group in which some programs are no members, and publish."""

    publishers: tuple[int, ...] = (0,)
    gateway: str = ""
    """The logger that they give their batches to."""
    batches: int = 8
    pause: Nanos = 200 * MILLISECOND
    """Between two batches."""
    failing: float = 0.2
    """How often a task fails half-way, and is run again."""
    hasty: float = 0.2
    """How often a program asks for a batch before all of it is on disk."""
    whole: float = 0.2
    """How often a batch is given at once, without stages."""
    twice: float = 0.2
    """How often a program asks twice."""
    repeated: float = 0.2
    """How often a batch that is done is done again, as by a program that has forgotten that it was done."""


class PublisherTimer(Timer):
    """When it is time for the next batch."""

    NEXT = "next"


class Publisher(LogClient):
    """One program.

    Args:
        me: who it is.
        settings: what it does.
        rng: which tasks fail, and how hasty it is.
        out: where everything goes.
    """

    def __init__(self, me: MemberId, settings: Publishing, rng: Random, out: Outbox) -> None:
        super().__init__(me, settings.gateway, rng, out)
        self._who = me.name.rstrip("-")  # without what long names are filled with: stages are named after it
        self._settings = settings
        self._rng = rng
        self._batch = 0
        self._attempt = 0
        self._synced = 0
        self._now: Nanos = 0

    @property
    def _key(self) -> str:
        return f"{self._who}/{self._batch}"

    # Life

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:  # noqa: ARG002
        """Go on after the last batch that is done."""
        self._now = now
        self._batch = max((int(record) + 1 for record in records), default=0)

    def start(self, now: Nanos) -> None:
        """Look for the logger, and begin."""
        super().start(now)
        self.out.deliver(Note("publisher", order=self._batch))
        self._begin(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """The next batch, or what was asked in vain."""
        self._now = now
        if timer is PublisherTimer.NEXT:
            self._begin(now)
        else:
            super().on_timer(now, timer)

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """An answer."""
        self._now = now
        super().on_frame(now, source, frame)

    def on_synced(self, now: Nanos, ticket: int) -> None:
        """A batch is done for good."""
        if ticket == self._synced:
            self._batch += self._rng.random() >= self._settings.repeated
            self.out.set_timer(PublisherTimer.NEXT, now + self._settings.pause)

    # Batches

    def _begin(self, now: Nanos) -> None:
        """Give the logger a batch: the same one, however often it is done again."""
        if self._batch >= self._settings.batches:
            return
        self._now = now
        self._attempt += 1
        self.stats.sent += 1  # the run is not over while there are batches
        messages = messages_of(self._key)
        payloads = b"".join(payload for payload, _ in messages)
        self.out.deliver(Note("offered", count=len(messages), order=crc32(payloads), digest=self._key))
        if self._rng.random() < self._settings.whole:
            self._ask_for([Put(0, 0, self._key.encode(), 0, 1, messages)])
        else:
            self._stage(messages)

    def _stage(self, messages: Messages) -> None:
        """By one or two tasks; then ask."""
        cut = self._rng.randint(1, len(messages))
        stages = [self._task(part) for part in (messages[:cut], messages[cut:]) if part]
        waiting = {(stage, number) for stage, pieces in stages for number in range(len(pieces))}
        hasty = self._rng.random() < self._settings.hasty
        release = Release(0, 0, self._key.encode(), [(stage, len(pieces)) for stage, pieces in stages])
        attempt = self._attempt

        def staged(piece: tuple[str, int]) -> Done:
            def done(result: Result) -> None:
                waiting.discard(piece)
                if attempt != self._attempt:
                    return
                if isinstance(result, Denied):
                    self._refused(result)
                elif not waiting and not hasty:
                    self.out.deliver(Note("asked", digest=self._key))
                    self._ask_for(release)

            return done

        asks = self._rng.randint(1, len(waiting)) if hasty else 0
        for stage, pieces in stages:
            for number, piece in enumerate(pieces):
                self._put(stage, number, piece, staged((stage, number)))
                asks -= 1
                if asks == 0:
                    self._ask_for(release)

    def _task(self, messages: Messages) -> tuple[str, list[Messages]]:
        """A stage and its pieces; before it, perhaps, one of a task that fails."""
        size = self._rng.randint(1, _PIECE)
        pieces = [messages[start : start + size] for start in range(0, len(messages), size)]
        if self._rng.random() < self._settings.failing:
            failed = self._stage_name()
            for number in range(self._rng.randint(1, len(pieces))):
                self._put(failed, number, pieces[number], _nothing)
        return self._stage_name(), pieces

    def _stage_name(self) -> str:
        return f"{self._who}/{self._rng.randrange(16**_TOKEN):x}"

    def _put(self, stage: str, number: int, piece: Messages, done: Done) -> None:
        self.ask(self._now, [Put(0, 0, b"-", 0, 1, piece, stage, number)], done)

    def _ask_for(self, question: Question) -> None:
        """Have the batch published; the first answer counts."""
        attempt = self._attempt

        def done(result: Result) -> None:
            if attempt != self._attempt:
                return
            if isinstance(result, Denied):
                self._refused(result)
            else:
                assert isinstance(result, Taken)
                self._taken(result)

        self.ask(self._now, question, done)
        if self._rng.random() < self._settings.twice:
            self.ask(self._now, question, done)

    def _refused(self, denied: Denied) -> None:
        """Do it again, from the beginning; but not in a log that is another one."""
        self._attempt += 1
        self.out.deliver(Note("refused", level=denied.trouble, digest=self._key))
        assert denied.trouble != "invalid", denied.why
        if denied.trouble != "log":
            self.out.set_timer(PublisherTimer.NEXT, self._now + _AGAIN)

    def _taken(self, taken: Taken) -> None:
        self._attempt += 1
        level = "known" if taken.known else "logged"
        self.out.deliver(
            Note(
                "taken", sender=self.logger, seq=taken.position, level=level, order=self.log, digest=self._key
            )
        )
        self._synced += 1
        self.out.append(b"%d" % self._batch)
        self.out.sync(self._synced)


def messages_of(key: str) -> Messages:
    """What is in a batch: plain messages, or updates of items, or both."""
    rng = Random(f"batch/{key}")
    about = rng.choice((0.0, 0.5, 1.0))
    return [
        (f"{key}/{place}".encode(), WireItem(f"{key}/{place}") if rng.random() < about else None)
        for place in range(rng.randint(1, 12))
    ]


def _nothing(_result: Result) -> None:
    """Nobody waits for it."""
