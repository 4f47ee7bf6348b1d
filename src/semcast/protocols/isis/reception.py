"""The frames that reach a process of a causal domain: to which group they go, and what they ask of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from semcast.core.events import Left
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.isis.client_frames import ClientFrame
from semcast.protocols.isis.departures import answer_of
from semcast.protocols.isis.frames import (
    OWN_FRAMES,
    Advance,
    Direct,
    DirectHeard,
    DirectWanted,
    InGroup,
    Marker,
    MarkWanted,
    OwnFrame,
    Reached,
    ReachedWanted,
    Stable,
    StableWanted,
    TakenWanted,
)
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.stamps import Time
from semcast.protocols.vsync.frames import Goodbye, Hello, InView, Received

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis

_FAR = 1 << 32
"""No number of an ordered message is so far above another."""


class Reception:
    """Of one process.

    Args:
        domain: the process.
    """

    def __init__(self, domain: "Isis") -> None:
        self._domain = domain

    def receive(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Those of one group that come in a row go there together."""
        run: list[Frame] = []
        group = -1
        for frame in frames:
            if type(frame) is not InGroup:
                self._domain.stats.stale += 1
                continue
            if frame.group != group:
                self._pass_on(now, source, group, run)
                group, run = frame.group, []
            run.append(frame.frame)
        self._pass_on(now, source, group, run)

    def _pass_on(self, now: Nanos, source: MemberId, group: int, frames: list[Frame]) -> None:
        domain = self._domain
        if domain.is_over:
            domain.stats.stale += len(frames)
            return
        if not frames or source == domain.me:
            return
        seat = domain.seat_numbered(group)
        inside: list[Frame] = []
        for frame in frames:
            kind = type(frame)
            if kind is InView:
                inside.append(frame)
            elif kind in OWN_FRAMES:
                self._on_own_frame(now, source, group, frame)  # type: ignore[arg-type]
            elif isinstance(frame, ClientFrame):
                domain.clientele.on_frame(now, source, group, frame)
            else:
                if isinstance(frame, Received):
                    self._hear_of_view(now, group, source, frame.view)
                inside.append(frame)
        if seat is None:
            self._answer_who_waits(source, group, inside)
        elif inside and not domain.is_over:
            seat.member.on_frames(now, source, inside)
            domain.drain(now, seat)

    def _answer_who_waits(self, source: MemberId, group: int, frames: Sequence[Frame]) -> None:
        """Who looks for a view that this process was the last to leave hears that nobody is in it."""
        for frame in frames:
            if isinstance(frame, Hello) and frame.last is not None:
                view = self._domain.departures.over(group, frame.last.view)
                if view:
                    self._domain.out.send(source, InGroup(group, Goodbye(view)))

    def _hear_of_view(self, now: Nanos, group: int, source: MemberId, view: int) -> None:
        seat = self._domain.seat_numbered(group)
        if seat is not None:
            seat.heard(source, view)
        self._domain.departures.heard(now, group, source, view)

    def _on_own_frame(self, now: Nanos, source: MemberId, group: int, frame: OwnFrame) -> None:
        seat = self._domain.seat_numbered(group)
        stream = None if seat is None else seat.member.stream
        if isinstance(frame, ReachedWanted):
            answer = self._domain.departures.answer(group) if seat is None else answer_of(seat)
            if answer is not None:
                self._domain.out.send(source, InGroup(group, answer))
        elif isinstance(frame, Reached):
            self._domain.departures.on_reached(now, group, source, frame)
            if seat is not None and stream is not None:
                self._meet(seat, stream.members, source, frame)
        elif isinstance(frame, Direct):
            self._domain.arrivals.on_direct(source, group, frame)
        elif isinstance(frame, DirectHeard):
            self._domain.directs.on_heard(now, source, frame)
        elif isinstance(frame, DirectWanted):
            self._domain.arrivals.on_wanted(source)
        elif isinstance(frame, Stable):
            self._domain.policy.settled(group, Time(frame.view, dict(frame.counts)))
        elif isinstance(frame, StableWanted) and self._domain.departures.over(group, frame.view):
            self._domain.out.send(source, InGroup(group, Stable(frame.view, frame.counts)))
        elif seat is None or stream is None:
            self._domain.stats.stale += 1
        elif isinstance(frame, StableWanted):
            if seat.all_have(frame.view, frame.counts):
                self._domain.out.send(source, InGroup(group, Stable(frame.view, frame.counts)))
        elif isinstance(frame, MarkWanted):
            self._domain.policy.on_mark_wanted(seat, source, frame.epoch)
        elif isinstance(frame, Marker):
            self._domain.policy.on_marker(seat, source, frame)
        elif source not in stream.members:
            self._domain.stats.stale += 1
        elif isinstance(frame, Advance):
            if frame.view == stream.view().id and stream.rank == 0:
                self.advance(now, seat, frame.number)
        elif isinstance(frame, TakenWanted):
            self._domain.errands.tell(seat, source)
        elif frame.view == stream.view().id:
            most = [count + stream.reach for count in stream.queued]
            seat.taking.hears(source, frame, stream.members, most)

    def advance(self, now: Nanos, seat: Seat, number: int) -> None:
        """Of the holder of a group: say this number there, for somebody waits for it."""
        stream = seat.member.stream
        if stream is None or number > seat.turns.said_upto + _FAR:
            self._domain.stats.stale += 1
            return
        seat.order(stream).numbering.advance(number)
        seat.member.settle_order(now, stream)
        self._domain.drain(now, seat)

    def _meet(self, seat: Seat, mine: Sequence[MemberId], source: MemberId, frame: Reached) -> None:
        """Two groups of one name, founded by who could not hear each other: the smaller one gives way."""
        theirs = frame.members
        if source not in theirs or not set(mine).isdisjoint(theirs):
            return
        if (len(theirs), mine[0]) > (len(mine), theirs[0]):
            self._domain.put_out(
                seat.name, Left("there is another group of this name, which is older or larger", again=True)
            )
