"""In which order the messages of a view are lined up for the application: FIFO, and causal.

An order is asked at fixed points of the life of a view: for the head of a message about to be sent, whether a
message may be queued, where a queued message goes, and what is left to do when the view ends.
"""

from collections.abc import Sequence
from typing import Annotated, Protocol

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame
from semcast.protocols.semantic.frames import Rank, Seq
from semcast.protocols.semantic.sequence import InSequence
from semcast.protocols.vsync.causes import Causes
from semcast.wire.limits import MAX_MEMBERS

Stamp = Annotated[list[tuple[Rank, Seq]], msgspec.Meta(max_length=MAX_MEMBERS)]
"""Of a vector timestamp, the fields that changed."""

_encode = msgspec.msgpack.Encoder().encode
_read_stamp = msgspec.msgpack.Decoder(Stamp).decode


class Lines(Protocol):
    """What an order sees of the stream of messages that it orders. Vectors are indexed by rank."""

    members: tuple[MemberId, ...]

    @property
    def queued(self) -> list[int]:
        """Up to where messages are queued here."""

    @property
    def delivered(self) -> list[int]:
        """Up to where the application was given them."""

    @property
    def rank(self) -> int:
        """Of this member."""

    @property
    def reach(self) -> int:
        """How far a correct member can be ahead of another."""

    @property
    def frozen(self) -> bool:
        """Whether nothing is sent or accepted any more in this view."""

    def replaced_upto(self, rank: int) -> int:
        """What replaces skipped messages of `rank` is among those up to here."""

    def due_upto(self, rank: int) -> int:
        """Messages of `rank` up to here may be delivered."""

    def append(self, batch: Batch) -> None:
        """Line up for the application."""

    def may_command(self) -> bool:
        """Whether a command may be multicast now."""

    def command(self, head: bytes) -> None:
        """Multicast a message without content that only the order reads."""

    def send(self, rank: int | None, frame: Frame) -> None:
        """Send a frame to one member, or to all others."""

    def wake_at(self, at: Nanos) -> None:
        """Ask for `tick` then; now means after everything that has arrived with this input."""

    def replace(self, rank: int, seq: int, by: Batch) -> None:
        """Do not deliver a message that is lined up: another replaces it."""

    def waits(self, rank: int, seq: int) -> bool:
        """Whether an annotated message is lined up."""

    def suspects(self, rank: int) -> bool:
        """Whether a member is suspected."""


class FifoOrder(InSequence):
    """As they are queued: each sender's messages in sequence. The base of the other orders."""

    def __init__(self, lines: Lines, view: int, position: int) -> None:
        super().__init__(lines.append)
        self.lines = lines
        self.view = view
        self.position = position
        """How many messages the total order has counted."""
        self.settled = 0
        """How many decisions about the order are known here."""

    @property
    def busy(self) -> bool:
        """Whether `resend` has something to do."""
        return False

    # Where one's own messages are, for `Stack.confirm`

    def placed(self) -> int:
        """Own messages up to here have their place in the view."""
        return self.lines.due_upto(self.lines.rank)

    def watch(self, number: int) -> None:
        """Somebody will ask for the position of this message of its own."""

    def position_of(self, number: int) -> int:
        """Its place: where nothing else is ordered, that among the messages of this member."""
        return number

    def keep_causes(self, causes: Causes) -> bool:  # noqa: ARG002
        """Say there what comes before each message; False if this order does not know."""
        return False

    def lined_up(self, batch: Batch) -> None:
        """Messages, whole by now, were put where the application takes them."""

    # The course of time

    def settle(self, now: Nanos) -> None:
        """After every input: line up what can be."""

    def tick(self, now: Nanos) -> None:
        """The time asked for has come."""

    def on_frame(self, now: Nanos, rank: int, frame: Frame) -> None:
        """A frame about the order arrived."""

    def resend(self, now: Nanos) -> None:
        """Send again what may be lost."""

    def heard(self, rank: int, settled: int) -> None:
        """A member said how many decisions it knows."""

    # The end of the view

    def report(self) -> bytes:
        """What this member knows that the others need to end the view."""
        return b""

    def merge(self, reports: Sequence[bytes]) -> bytes | None:
        """The reports of a majority as one; None if one of them is nonsense."""
        return None if any(reports) else b""

    def has(self, report: bytes) -> bool:
        """Whether everything that a merged report names is here; asks for it if not."""
        return not report

    def finish(self, report: bytes) -> None:
        """Everything that belongs to the view is queued: line up the rest of it, the same way everywhere."""


class CausalOrder(FifoOrder):
    """CBCAST (Birman et al. 1991, 5.1): queue a message once its causes are queued or purged.

    A head has the fields of the vector timestamp that changed since the last message (5.4); the number of
    the message itself is the sender's own field. A purged message hands on its fields in the notice that
    names it.
    """

    def __init__(self, lines: Lines, view: int, position: int) -> None:
        super().__init__(lines, view, position)
        self.stamped = list(lines.delivered)
        """What the last message of this member was stamped with."""
        self._causes: Causes | None = None
        self._head = b""
        self._stamp: list[tuple[int, int]] = []  # what `_head` says: a head is asked about several times

    def head(self) -> bytes:
        """The fields that changed since the last message that left."""
        delivered = self.lines.delivered
        if delivered == self.stamped:
            return b""
        me = self.lines.rank
        changed = [
            (rank, seq)
            for rank, (seq, before) in enumerate(zip(delivered, self.stamped, strict=True))
            if seq > before and rank != me
        ]
        return _encode(changed) if changed else b""

    def sent(self) -> None:
        """It left: the next one need not say it again."""
        self.stamped = list(self.lines.delivered)

    def sound(self, head: bytes) -> bool:
        """Whether it is a timestamp of this view."""
        if not head:
            return True
        try:
            stamp = self._read(head)
        except msgspec.MsgspecError:
            return False
        size = len(self.lines.members)
        return all(rank < size for rank, _ in stamp)

    def ready(self, rank: int, head: bytes) -> bool:  # noqa: ARG002
        """Whether the causes are queued, or known to be purged."""
        if not head:
            return True
        queued = self.lines.queued
        return all(queued[cause] >= seq for cause, seq in self._read(head))

    def keep_causes(self, causes: Causes) -> bool:
        """Vector timestamps say it."""
        self._causes = causes
        return True

    def accept(self, rank: int, part: Batch) -> None:
        """Messages were queued: for who records, what they come after."""
        if self._causes is not None:
            self._note(rank, part.first, part.head)
        super().accept(rank, part)

    def skipped(self, rank: int, seq: int, head: bytes) -> None:
        """A message is known to be purged, and what follows has its causes, too."""
        self._note(rank, seq, head)

    def _note(self, rank: int, seq: int, head: bytes) -> None:
        if self._causes is not None and head:
            self._causes.note(rank, seq, self._read(head))

    def _read(self, head: bytes) -> list[tuple[int, int]]:
        if head != self._head:
            self._stamp = _read_stamp(head)
            self._head = head
        return self._stamp
