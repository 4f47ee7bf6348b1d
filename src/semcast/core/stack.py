"""The contract between a protocol stack and whatever drives it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar

from semcast.core.annotations import Annotation
from semcast.core.certificates import Certificates
from semcast.core.events import Delivery, Left, Unconfirmed
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.reader import Reader
from semcast.core.statistics import Statistics
from semcast.core.views import View


class Stack(ABC):
    """Inputs are methods, outputs go to `out`; messages are pulled, so that back-pressure is natural.

    Every input that any driver uses is here. What a stack need not care about has a default.
    """

    out: Outbox
    stats: Statistics
    read_back: Callable[[int, int], Sequence[bytes]] | None = None
    """Reads synced records from a position on: at least one, then as many as fit into so many bytes; none if
    the first is not synced, or was given up. The driver puts it here before `recover`, where there is a disk.
    It takes as long as the disk does: see docs/decisions/0011."""
    _reader: Reader | None = None
    _certificates: Certificates | None = None

    @property
    def reader(self) -> Reader:
        """The program that this stack delivers to. The turn puts its own here, and keeps it true."""
        if self._reader is None:
            self._reader = Reader()
        return self._reader

    @reader.setter
    def reader(self, reader: Reader) -> None:
        self._reader = reader

    @property
    def certificates(self) -> Certificates | None:
        """Where to note certificates; None where nobody records. The turn puts it here first of all."""
        return self._certificates

    @certificates.setter
    def certificates(self, certificates: Certificates | None) -> None:
        self._certificates = certificates

    watches_mailbox: ClassVar[bool] = False
    """Whether what it does next may depend on how much of what it delivered the program has taken."""

    # Life

    def recover(  # noqa: B027 (not all keep records)
        self, now: Nanos, records: Sequence[bytes], first: int = 0
    ) -> None:
        """There is a disk, and this is what it kept of what earlier incarnations appended.

        Called at most once, before `start`. Where it is not called, nothing outlives a crash. The records may
        be many, and are read while they are iterated over: go through them once, and keep what is needed.
        `first` is the position of the first (see `Outbox.trim`).
        """

    @abstractmethod
    def start(self, now: Nanos) -> None:
        """Begin: called once, before any other input."""

    def leave(self, now: Nanos, cause: str = "asked to") -> None:  # noqa: ARG002
        """Leave the group; `Left` says when that is done. At once, where nobody has to be told."""
        self.out.deliver(Left(cause))

    def disconnect(self, now: Nanos) -> None:  # noqa: B027 (not all owe anything to who is away)
        """The program knows that its machine will be away: tell who has to know, and say nothing more."""

    def reconnect(self, now: Nanos) -> None:  # noqa: B027
        """It is back."""

    def reform(self, now: Nanos) -> None:  # noqa: B027 (not all need a majority)
        """Somebody vouches that whoever is not within reach is gone: go on without them."""

    @abstractmethod
    def phase(self) -> str:
        """What the stack is doing, in a word of its own: "operational" while it works, "left" at the end."""

    def settled(self) -> bool:
        """Whether the stack has looked for others and begun to work, with them or alone."""
        return self.phase() == "operational"

    def phases(self) -> tuple[str, ...]:
        """The phase, and the state of a machine on top of it, if there is one: what ambushes wait for."""
        return (self.phase(),)

    @abstractmethod
    def view(self) -> View:
        """The view the stack is in. The application may not have taken all that comes before it."""

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> "Stack | None":  # noqa: ARG002
        """What goes on in the place of this stack, which was put out of its group, as another incarnation."""
        return None

    def unsettled(self) -> tuple[MessageId, ...]:
        """Messages that were taken here and may not survive this member's end, as `send` numbered them."""
        return ()

    # From the application

    @abstractmethod
    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Multicast as many of `payloads` as flow control allows, in order; returns how many.

        Where not all are taken, an `Unblocked` follows as soon as another try is worth it. With `safe` they
        are delivered only once every member has them, where the stack can tell. An annotation names messages
        of this member by the order in which the application sent them, whatever numbers the stack gives them.
        """

    def multicast_each(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation],
        *,
        safe: bool = False,
    ) -> int:
        """`multicast` for messages of which each has an annotation."""
        for taken, (payload, annotation) in enumerate(zip(payloads, annotations, strict=True)):
            if not self.multicast(now, [payload], annotation, safe=safe):
                return taken
        return len(payloads)

    def confirm(self, now: Nanos, ticket: int, *, safe: bool) -> None:  # noqa: ARG002
        """Tell when the message taken last is delivered here, or, with `safe`, when every member has it, too.

        The answer is a `Confirmed` or an `Unconfirmed` with this ticket. It does not depend on what the
        application takes: a message is delivered as soon as nothing but this member's end can keep it from
        its place in the view, and what was purged counts, since its replacement is there. If the view in
        which the message left changes before that, the answer is `Unconfirmed`.
        """
        self.out.deliver(Unconfirmed(ticket, "this stack does not say what became of a message"))

    def settle_confirmations(self) -> None:  # noqa: B027 (not all confirm)
        """Answer what can be answered by now. The turn calls it as long as an answer is awaited."""

    def provide(self, view: int, state: bytes) -> None:  # noqa: ARG002
        """The state of the application, as a `StateRequested` asked for it."""
        raise AssertionError("a stack that hands over no state never asks for it")

    # From the world

    @abstractmethod
    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """A frame arrived from `source`."""

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Several frames of one member arrived, in a row."""
        for frame in frames:
            self.on_frame(now, source, frame)

    @abstractmethod
    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """A timer set earlier is due."""

    def on_synced(self, now: Nanos, ticket: int) -> None:  # noqa: ARG002
        """Every record that was appended before `out.sync(ticket)` outlives a crash from now on."""
        raise AssertionError("a stack that keeps no records asks for no sync")

    def member_failed(self, now: Nanos, member: MemberId) -> None:  # noqa: B027 (not all have one)
        """A failure detector that does not err says that `member` crashed."""

    # To the application

    def on_reader(self, now: Nanos) -> None:  # noqa: B027 (not all hold anything back for it)
        """What `reader` says has changed: it waits, waits no more, receives nothing any more, or closes."""

    @abstractmethod
    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        """Hand over up to `most` messages, and the changes of view that come before and between them."""

    @abstractmethod
    def deliverable(self) -> bool:
        """Whether `deliver` would hand over anything."""

    def behind(self) -> bool:
        """Whether a view waits here that the program does not know.

        Nothing can be sent in a view before the program was told of it. If something is to be sent, the turn
        delivers up to that view, whether there is room for it or not.
        """
        return False

    def pending(self) -> int:
        """Messages that were taken from the program and have not left."""
        return 0

    def queued(self) -> int:
        """Messages that wait for the program here, and what its mailbox holds beyond its bound."""
        return self.reader.excess

    def queued_bytes(self) -> int:
        """Bytes of the messages that wait for the program."""
        return 0

    def reclaim(self) -> None:  # noqa: B027 (not all keep what is obsolete)
        """Purge what is obsolete of what waits for the program, now, if the policy allows it."""

    def overflowing(self) -> bool:
        """Whether queue and reserve are full of what waits for the program: who waits in `send` is told."""
        return False

    # About it

    def caveat(self) -> str:
        """What cannot be promised as things are now, in words; empty where all is well."""
        return ""

    def leaves_unheard(self) -> bool:
        """Whether a member that leaves now would wait for a word that nobody is there to say."""
        return False

    def held_back(self) -> HeldBack | None:
        """Who or what keeps this member from sending, if anything does."""
        return None

    @abstractmethod
    def buffered(self) -> int:
        """Messages in all buffers now, counted in the buffers themselves."""
