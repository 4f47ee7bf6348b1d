"""Virtual synchrony as a stack: every input goes where it belongs."""

from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.confirming import Asked
from semcast.core.events import Blocked, Delivery, Sent, Unblocked
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.views import View
from semcast.protocols.pieces import Piece, Puzzles
from semcast.protocols.semantic.frames import Request
from semcast.protocols.vsync.consensus_frames import ConsensusFrame, Decision
from semcast.protocols.vsync.flush import next_reformed
from semcast.protocols.vsync.frames import (
    Accept,
    Accepted,
    Goodbye,
    Hello,
    Init,
    InView,
    Pred,
    Prepare,
    Promise,
    Received,
    Refused,
    Standing,
    StateChunk,
    StateWanted,
    Superseded,
    Welcome,
    WholeFrame,
)
from semcast.protocols.vsync.membership import Membership, VsyncTimer
from semcast.protocols.vsync.numbers import Numbers, note_room
from semcast.protocols.vsync.settings import VsyncSettings
from semcast.protocols.vsync.states import State
from semcast.protocols.vsync.stream import ViewStream

_EARLY = 512
"""Frames of the next view that may wait for it."""
_AT_ONCE = 8
"""Frames that one member may send in pieces at the same time."""


class VirtualSynchrony(Membership):
    """One member of a group with agreed views: who goes from one to the next has delivered the same.

    It starts in no view, and looks for the group or founds it with others.

    Args:
        me: who this is.
        settings: as the others have them.
        rng: where chance comes from.
        out: what the stack wants from the world.
        formers: from the `successor` of the stack whose place this one takes, if it comes back.
    """

    def __init__(
        self,
        me: MemberId,
        settings: VsyncSettings,
        rng: Random,
        out: Outbox,
        formers: Mapping[MemberId, int] | None = None,
    ) -> None:
        super().__init__(me, settings, rng, out)
        self._numbers = Numbers(me, note_room(settings.frame_bytes), formers)
        self._puzzles = Puzzles(WholeFrame, _AT_ONCE)
        self._asks = 0  # the last message of which somebody waits to know that all have it

    def _up_to_date(self) -> bool:
        """Whether the application knows the current view: it must know in which one it sends."""
        return self._epochs.up_to_date() and not self._is_out

    # Inputs

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:  # noqa: ARG002
        """What earlier incarnations promised, and the last view they were in or agreed to."""
        self._founding.recover(self._ledger.recover(records))

    def start(self, now: Nanos) -> None:
        """Look for others."""
        if self.settings.minimum == 1:
            self._look(now)
        else:
            self.out.set_timer(VsyncTimer.HELLO, now + self._rng.randrange(self.settings.hello // 4 + 1))

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Multicast in this view; nothing while it is about to change, or unknown to the application.

        Annotations name messages of this member as the application counts them.
        """
        stream = self._open_stream()
        if stream is None:
            return 0
        self.backlog.look(now)
        if isinstance(annotation, Enumeration | KEnumeration):
            annotation = self._numbers.translated(annotation)
        taken = stream.multicast(now, payloads, annotation, safe=safe)
        self._after_multicast(now, stream)
        return taken

    def multicast_each(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation],
        *,
        safe: bool = False,
    ) -> int:
        """Messages that have an annotation each: updates of items leave together."""
        items = [note.item for note in annotations if type(note) is Item]
        if len(items) < len(payloads) or safe:
            for taken, (payload, annotation) in enumerate(zip(payloads, annotations, strict=True)):
                if not self.multicast(now, [payload], annotation, safe=safe):
                    return taken
            return len(payloads)
        stream = self._open_stream()
        if stream is None:
            return 0
        self.backlog.look(now)
        taken = stream.multicast_updates(now, payloads, items)
        self._after_multicast(now, stream)
        return taken

    def confirm(self, now: Nanos, ticket: int, *, safe: bool) -> None:  # noqa: ARG002
        """About the message taken last; positions are those of the total order, or among its messages."""
        assert self.stream is not None, "nothing is taken outside of a view"
        number = self._numbers.last
        self.stream.order.watch(number)
        self.confirming.ask(Asked(ticket, number, safe))
        if safe:
            self._asks = number

    def settle_confirmations(self) -> None:
        """Look how far the current view has come. Who has everything of it is not known once it ends."""
        stream = self.stream
        if self._asks and stream is not None:
            self._ask(stream)
        if self.confirming and stream is not None:
            order = stream.order
            self.confirming.settle(
                stream.view(),
                delivered=order.placed(),
                safe=stream.buffers.stable[stream.rank],
                position=order.position_of,
            )

    def _ask(self, stream: ViewStream) -> None:
        """Have the others say what they have, once for all who wait: else only their heartbeats would."""
        number, self._asks = self._asks, 0
        if len(stream.members) > 1 and not stream.frozen:
            stream.ask(number)
            stream.tell()
            self._pump(stream)

    def _after_multicast(self, now: Nanos, stream: ViewStream) -> None:
        for event in stream.out.events:
            if type(event) is Sent:
                self._numbers.took(event.batch)
        self._look_at_backlog()
        self._pump(stream)
        self._plan_resend(now)

    def _open_stream(self) -> ViewStream | None:
        """Of the current view, if messages can be sent in it; if not, whoever wants to must wait."""
        stream = self.stream
        if stream is not None and not stream.frozen and self._up_to_date():
            return stream
        if not self._blocked:
            self._blocked = True
            self.stats.blocked += 1
            self.out.deliver(Blocked())
        return None

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """Dispatch; what no correct member sends is dropped and counted."""
        if source == self.me or self.left:
            self.stats.stale += 1
        elif isinstance(frame, Piece):
            self._on_piece(now, source, frame)
        else:
            self._on_whole_frame(now, source, frame)

    def _on_piece(self, now: Nanos, source: MemberId, piece: Piece) -> None:
        """A part of a frame that is too large for a datagram."""
        data = self._puzzles.add(source, piece)
        if data is None:
            return
        frame = self._puzzles.whole(data, piece.digest)
        if frame is None:
            self.stats.malformed += 1
        else:
            self._on_whole_frame(now, source, frame)

    def _on_whole_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        if self.stream is None:
            self._on_frame_outside(now, source, frame)
        elif self._serving is not None:
            self._serve_frame(now, source, frame)
        elif isinstance(frame, InView | Received | Init | Pred):
            self._on_frame_of_view(now, source, frame, frame.view)
        elif isinstance(frame, ConsensusFrame):
            self._on_frame_of_view(now, source, frame, frame.instance.view)
        elif isinstance(frame, Hello):
            self._on_hello(now, source, frame)
        elif isinstance(frame, Goodbye):
            self._on_goodbye(now, source, frame)
        elif isinstance(frame, Superseded):
            self._on_superseded(now, frame)
        elif isinstance(frame, Prepare | Accept):
            self._answer_founder(source)
        elif isinstance(frame, StateWanted) and source in self.stream.members:
            self._transfer.on_wanted(source, frame)
        elif isinstance(frame, StateChunk):
            self._on_chunk(now, source, frame)
        else:
            self.stats.stale += 1
        self._plan_resend(now)

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Frames of one member in a row: what is due after messages is done once for all of them."""
        self.backlog.look(now)
        run: list[Frame] = []
        for frame in frames:
            if isinstance(frame, InView) and self._is_current(source, frame):
                run.append(frame.frame)
                continue
            self._on_messages(now, source, run)
            run = []
            self.on_frame(now, source, frame)
        self._on_messages(now, source, run)

    def on_synced(self, now: Nanos, ticket: int) -> None:
        """What waited for the disk goes on."""
        if self.left:
            return
        self._ledger.on_synced(now, ticket)
        self._found(now)
        if self.stream is not None and not self._is_out:
            self._progress(now)
        self._plan_resend(now)

    def reform(self, now: Nanos) -> None:
        """Somebody vouches that whoever is not within reach is gone: go on without them."""
        self._founding.reform()
        if self.stream is not None and self._changing is not None:
            self._commanded = True
            self._check(now)
            self._plan_resend(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Dispatch."""
        if self.left:
            return
        self.backlog.look(now)
        if timer is VsyncTimer.HELLO:
            self._look(now)
        elif timer is VsyncTimer.CHECK:
            self._check(now)
        elif timer is VsyncTimer.RESEND:
            self._resend(now)
        elif self.stream is not None and not self._is_out:
            self.stream.on_timer(now, timer)
            self._progress(now)
        self._plan_resend(now)

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """Members find out by themselves who is there, unless there is an oracle."""
        if self._oracle is not None and not self.left:
            self._oracle.failed(member)
            self._check(now)
            self._plan_resend(now)

    def deliver(self, now: Nanos, most: int) -> list[Delivery]:
        """Messages, view by view, and between views what an application must know."""
        taken = self._epochs.deliver(most, self.stream)
        self.backlog.took(now, sum([len(each.payloads) for each in taken if type(each) is Batch]))
        self._room_freed(now)
        if self._blocked and self._up_to_date():
            self._blocked = False
            self.out.deliver(Unblocked())
        return taken

    def deliverable(self) -> bool:
        """Whether `deliver` would hand over anything; who is out may have what the others do without."""
        return not self._is_out and self._epochs.deliverable(self.stream)

    def behind(self) -> bool:
        """Whether a view waits here that the program does not know."""
        return not self._is_out and bool(self._epochs) and not self._up_to_date()

    def queued(self) -> int:
        """D: messages that wait for the program here, and what its mailbox holds beyond its bound."""
        return self.backlog.messages

    def queued_bytes(self) -> int:
        """Bytes of these."""
        return self.backlog.bytes

    def overflowing(self) -> bool:
        """Whether queue and reserve are full of what waits for the program."""
        return self.backlog.overflowing()

    def on_reader(self, now: Nanos) -> None:
        """The program waits, or does not any more: there is more room, or less.

        Who never read has no state; once it reads, it needs one. And who is asked for its state and cannot
        give it any more has the next one asked. Both take a change of view.
        """
        self._room_freed(now)
        if self.settings.state and not self.reader.follows:
            self._provision.stateful = False
        if not self._provision.reads():
            self._epochs.do_without_state()
            self._transfer.forget()
        self._readership.look(now)
        idle = self._epochs and self._changing is None and not self._is_out
        if idle and self._provision.needs_change(now, asked=self._epochs.newest.gives):
            self._change_view(now, {}, ())
            self._plan_resend(now)

    def reclaim(self) -> None:
        """Purge what is obsolete of what waits for the program."""
        for epoch in self._epochs:
            epoch.stream.buffers.purge_late()
            self._pump(epoch.stream)

    def _room_freed(self, now: Nanos) -> None:
        """There may be room in the backlog again, and somebody may be told so."""
        stream = self.stream
        if stream is not None and not self._is_out:
            stream.room_freed(now)
            self._look_at_backlog()
            self._pump(stream)

    def _look_at_backlog(self) -> None:
        """Tell the others to stop, or that they need not any more."""
        over = self.backlog.over()
        if over and self.backlog.hurried():
            self.reclaim()
            over = self.backlog.over()
        if self.stream is not None and over != self.stream.stopping:
            self.stream.tell()

    def held_back(self) -> HeldBack | None:
        """Who or what keeps this member from sending."""
        stream = self.stream
        if stream is None:
            return self._joining.held_back()
        if stream.frozen:
            silent = [member for member in stream.members if self._detector.suspects(member)]
            why = "too few are within reach" if self.state is State.MINORITY else "the view is changing"
            return HeldBack(silent[0] if silent else None, why)
        if not self._up_to_date():
            return HeldBack(self.me, "its program does not know the view")
        if not stream.refuses:
            return None
        by = self.stops.binding()
        if by is not None or (self.backlog.full() and not self.backlog.waits()):
            return HeldBack(by or self.me, "its program does not read")
        behind = stream.laggards(stream.queued)
        return HeldBack(behind[0] if behind else None, "it lacks messages")

    def provide(self, view: int, state: bytes) -> None:
        """The state of the application, as a `StateRequested` asked for it."""
        self._transfer.offer(view, state)

    def buffered(self) -> int:
        """Messages in all buffers."""
        return self._epochs.buffered()

    def phase(self) -> str:
        """joining, operational, flushing, minority, serving, or left."""
        return self.state.value

    def view(self) -> View:
        """The current view; of nobody before the first."""
        return View(0, ()) if self.stream is None else self.stream.view()

    # Its end, and the incarnation that comes after it

    def unsettled(self) -> tuple[MessageId, ...]:
        """Messages that were taken, and may not survive this member's end."""
        return () if self.stream is None else self._numbers.after(self.stream.buffers.safe[self.stream.rank])

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> "VirtualSynchrony":
        """Another incarnation, which only joins: the group is there. It sends what was not taken here."""
        joining = msgspec.structs.replace(self.settings, minimum=0)
        stack = type(self)(member, joining, rng, out, self._numbers.successors())
        stack._joining.reads_first = self._joining.reads_first
        stack._ledger.go_on_from(self._ledger)
        if self._founding.last is not None:
            stack._founding.learn(self._founding.last)
        return stack

    # Frames

    def _on_frame_outside(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        founding = self._founding
        if isinstance(frame, Welcome):
            self.stats.stale += not self._joining.on_welcome(now, source, frame)
        elif isinstance(frame, Hello):
            self._on_hello(now, source, frame)
        elif isinstance(frame, Goodbye):
            self._on_goodbye(now, source, frame)
        elif isinstance(frame, Standing):
            self._joining.on_standing(now, frame)
        elif isinstance(frame, Refused):
            self._on_refused(frame)
        elif isinstance(frame, Prepare):
            founding.on_prepare(now, source, frame)
        elif isinstance(frame, Promise):
            founding.on_promise(now, source, frame)
        elif isinstance(frame, Accept):
            founding.on_accept(now, source, frame)
        elif isinstance(frame, Accepted):
            founding.on_accepted(now, source, frame)
        else:
            founding.saw_view(now)
            self.stats.stale += 1
        self._found(now)

    def _serve_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """Not in the next view, and of use to those who are."""
        serving, stream = self._serving, self.stream
        assert serving is not None
        assert stream is not None
        if isinstance(frame, InView | Received | Init | Pred):
            view = frame.view
        else:
            view = frame.instance.view if isinstance(frame, ConsensusFrame) else 0
        self._detector.heard(now, source)
        serving.heard(source, view)
        serving.on_frame(now, source, frame)
        self._pump(stream)
        self._end_service(now)

    def _on_frame_of_view(self, now: Nanos, source: MemberId, frame: Frame, view: int) -> None:
        stream = self.stream
        assert stream is not None
        current = stream.view().id
        if view == current:
            self._spoke_at[source] = now
        if self._takes_part(now, view):
            self._detector.heard(now, source, beat=type(frame) is Received)
        if view < current:
            self._on_frame_of_the_past(now, source, frame, view)
        elif view > current:
            if view in (current + 1, next_reformed(current)) and len(self._early) < _EARLY:
                self._early.append((source, frame))
            else:
                self.stats.stale += 1
        elif source not in stream.members:
            self.stats.malformed += not self._on_newcomer(now, source, frame)
        elif isinstance(frame, InView):
            self._on_messages(now, source, [frame.frame])
        elif isinstance(frame, Received):
            stream.on_frames(now, source, (frame,))
            self._progress(now)
        else:
            self._on_change_frame(now, source, frame)

    def _on_newcomer(self, now: Nanos, source: MemberId, frame: Frame) -> bool:
        """Somebody who is not in this view knows how it ended; False if no correct process sends this."""
        if not isinstance(frame, Decision) or frame.instance.number:
            return False
        changing, stream = self._changing, self.stream
        if changing is None or stream is None:
            return True  # whoever ends the view will say so
        sound = changing.on_newcomer(now, source, frame)
        self._pump(stream)
        self._after_change(now)
        return sound

    def _is_current(self, source: MemberId, frame: InView) -> bool:
        """Whether a frame is about the messages of the current view, and from somebody in it."""
        stream = self.stream
        if stream is None or self._is_out or source == self.me:
            return False
        return frame.view == stream.view().id and source in stream.members

    def _on_messages(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        if frames and self.stream is not None:
            self._detector.heard(now, source)
            self.stream.on_frames(now, source, frames)
            self._progress(now)
            self._plan_resend(now)

    def _on_frame_of_the_past(self, now: Nanos, source: MemberId, frame: Frame, view: int) -> None:
        """Others may still need messages of the view before this one."""
        previous = self._past.stream
        ours = previous is not None and view == previous.view().id and source in previous.members
        if previous is not None and ours and isinstance(frame, InView):
            if isinstance(frame.frame, Request):
                previous.on_frames(now, source, (frame.frame,))
                self._pump(previous)
        elif previous is not None and ours and isinstance(frame, ConsensusFrame) and frame.instance.number:
            previous.order.on_frame(now, previous.members.index(source), frame)
            self._pump(previous)
        else:
            self.stats.stale += 1
            knows, primary = isinstance(frame, Decision), self.state is not State.MINORITY
            self._past.answer(now, source, view, self.view(), knows=knows, primary=primary)

    def _on_change_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        stream = self.stream
        assert stream is not None
        rank = stream.members.index(source)
        if isinstance(frame, ConsensusFrame) and frame.instance.number:
            stream.order.on_frame(now, rank, frame)
            self._progress(now)
            return
        if isinstance(frame, Init | Pred):
            frame = self._without_strangers(rank, frame)
            self._change_view(now, dict(frame.leave), frame.join, frame.gone)
        elif self._changing is None:
            self._change_view(now, {}, ())
        changing = self._changing
        if changing is None or self.stream is not stream:
            return
        if isinstance(frame, Pred):
            changing.on_pred(now, rank, frame)
        elif isinstance(frame, ConsensusFrame):
            changing.on_consensus(now, rank, frame)
        self._pump(stream)
        self._after_change(now)

    def _without_strangers(self, rank: int, frame: Init | Pred) -> Init | Pred:
        """Who was let in with this view introduces nobody here: else one stranger brings a majority along."""
        welcome = self._welcome
        novice = welcome is not None and rank in welcome.joined and len(welcome.joined) < len(welcome.members)
        return msgspec.structs.replace(frame, join=[]) if novice and frame.join else frame

    def _progress(self, now: Nanos) -> None:
        """Something changed in the stream: it may be what a change of view waits for."""
        stream = self.stream
        assert stream is not None
        if self._changing is not None:
            self._changing.on_progress(now)
        self._look_at_backlog()
        self._pump(stream)
        self._after_change(now)

    def _on_chunk(self, now: Nanos, source: MemberId, frame: StateChunk) -> None:
        state = self._transfer.on_chunk(source, frame)
        if state is not None:
            self._epochs.got_state(state)
            self._provision.stateful = True
            if self._changing is not None:
                self._changing.has_state(now)
                self._after_change(now)
