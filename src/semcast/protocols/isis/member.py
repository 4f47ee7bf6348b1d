"""Virtual synchrony as one group of a domain: its messages are lined up with those of the other groups."""

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, ClassVar

from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.isis.order import DomainOrder
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.vsync.changes import Change
from semcast.protocols.vsync.frames import Known, Welcome
from semcast.protocols.vsync.orders import Lines
from semcast.protocols.vsync.settings import VsyncSettings
from semcast.protocols.vsync.stack import VirtualSynchrony
from semcast.protocols.vsync.states import Cause, State
from semcast.protocols.vsync.stream import ViewStream

if TYPE_CHECKING:
    from semcast.protocols.isis.seat import Seat


class Unbounded(Backlog):
    """What waits for the program in a group of a domain: credit bounds it, so nothing is counted here."""

    def fits(self, count: int, size: int) -> bool:  # noqa: ARG002
        """There is always room."""
        return True

    def over(self) -> bool:
        """Nobody is told to stop."""
        return False


class GroupMember(VirtualSynchrony):
    """One process in one group. What the program is given when is for the domain to say.

    Args:
        me: who this is, in all groups.
        settings: of the group.
        rng: where chance comes from.
        out: what it wants from the world.
        seat: of the process in the group.
    """

    backlog_kind: ClassVar[type[Backlog]] = Unbounded

    def __init__(self, me: MemberId, settings: VsyncSettings, rng: Random, out: Outbox, seat: "Seat") -> None:
        super().__init__(me, settings, rng, out)
        self.untold = False
        """Whether a view has begun of which the program was not told."""
        self._seat = seat
        self._order = self._domain_order
        self._founding.first = seat.settings.first_view

    def remember(self, after: Known | int) -> None:
        """What this process knows of the group, which it left: the view after its own, or that it is over."""
        if isinstance(after, int):
            self._founding.was_left(after)
        else:
            self._founding.learn(after)

    def _domain_order(self, lines: Lines, view: int, position: int) -> DomainOrder:
        return self._seat.order_of(lines, view, position)

    def multicast_plain(self, now: Nanos, payloads: Sequence[bytes], sizes: Sequence[int]) -> int:
        """Multicast messages without annotations; who asks has measured them."""
        stream = self._open_stream()
        if stream is None:
            return 0
        self.backlog.look(now)
        taken = stream.multicast_measured(now, payloads, sizes)
        self._after_multicast(now, stream)
        return taken

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        """The seat has to know who comes along from the view before."""
        self.untold = True
        self._seat.begins(self.stream, event, welcome)
        super()._begin(now, welcome, event)
        self._seat.began(welcome)

    def _shift_to(self, state: State, cause: Cause) -> None:
        super()._shift_to(state, cause)
        if self._is_out and self.stream is not None:
            self._seat.order(self.stream).close()

    def _serve(self, now: Nanos, change: Change) -> None:
        """Not in the next view, which has these members.

        Who is left out as failed is put out, also if it has asked to leave: what it sent may be lost.
        """
        assert self.stream is not None
        seat, time = self._seat, self._seat.time()
        seat.successors, seat.succeeded = tuple(change.members), change.view
        seat.end(self.stream, change.cut)
        lost = False
        if time is not None and time.view == self.stream.view().id:  # else the program has not come so far
            lost = any(count > change.cut[rank] for rank, count in time.counts.items())
        seat.put_out = lost or dict(change.left).get(self.me) == "failed"
        super()._serve(now, change)

    # As the domain goes through its views

    @property
    def entered(self) -> ViewStream | None:
        """Of the view that the program is in; None before the first."""
        first = self._epochs.oldest
        return first.stream if first is not None and first.announced else None

    @property
    def next_view(self) -> int:
        """All that belongs to views before this one was given to the program; 0 before the first."""
        first = self._epochs.oldest
        return 0 if first is None else first.event.view.id

    @property
    def view_waits(self) -> bool:
        """Whether the program is to be told of a view: all that belongs to the one before was given to it."""
        if self._epochs.up_to_date():
            return False
        first = self._epochs.oldest
        if first is None or first.awaits or self._is_out:
            return False
        over = first.stream is not self.stream and not len(first.stream.buffers.to_deliver)
        return over or not first.announced

    def room_freed(self, now: Nanos) -> None:
        """The program was given something. That admits nothing, but what is missing may be asked for."""
        stream = self.stream
        if stream is not None and not self._is_out:
            stream.exchange.room_freed(now)
            self._pump(stream)

    def settle_order(self, now: Nanos, stream: ViewStream) -> None:
        """The order of the current view has something to do."""
        stream.order.settle(now)
        self._pump(stream)

    @property
    def up_to_date(self) -> bool:
        """Whether the program knows the current view."""
        return self.stream is not None and self._up_to_date()

    @property
    def is_out(self) -> bool:
        """Whether it takes no part in views any more."""
        return self._is_out
