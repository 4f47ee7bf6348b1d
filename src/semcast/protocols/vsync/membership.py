"""Who is in the group: looking for it, founding it, joining, leaving; one view after the other."""

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import ClassVar

from semcast.core.confirming import Confirming
from semcast.core.events import Left, Minority
from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.quorum import is_quorum
from semcast.core.reader import Reader
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.backoff import CAP
from semcast.protocols.pieces import Courier
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.semantic.frames import Data, Notice, Request
from semcast.protocols.semantic.stops import Stops
from semcast.protocols.vsync.admission import LONGEST_CAUSE, Admission
from semcast.protocols.vsync.batches import BatchOrder
from semcast.protocols.vsync.bulk import is_bulky
from semcast.protocols.vsync.candidates import Candidates
from semcast.protocols.vsync.changes import Change
from semcast.protocols.vsync.consensus_frames import Decision, Instance
from semcast.protocols.vsync.departure import Departure
from semcast.protocols.vsync.detector import FailureDetector, Oracle
from semcast.protocols.vsync.epochs import Epoch, Epochs
from semcast.protocols.vsync.flush import ViewChange, first_position
from semcast.protocols.vsync.founding import FAR, Founding
from semcast.protocols.vsync.frames import (
    Goodbye,
    Hello,
    InView,
    Known,
    Refused,
    Standing,
    Superseded,
    Welcome,
)
from semcast.protocols.vsync.hopeless import FAILURES, Hopeless
from semcast.protocols.vsync.joining import Joining
from semcast.protocols.vsync.ledger import Installed as Entered
from semcast.protocols.vsync.ledger import Ledger
from semcast.protocols.vsync.orders import CausalOrder, FifoOrder
from semcast.protocols.vsync.past import Past
from semcast.protocols.vsync.provision import Provision
from semcast.protocols.vsync.readership import UNREAD, Readership
from semcast.protocols.vsync.serving import Serving
from semcast.protocols.vsync.settings import Agreement, Engine, Order, Reform, VsyncSettings
from semcast.protocols.vsync.states import MOVES, Cause, State
from semcast.protocols.vsync.stream import OrderFactory, ViewStream
from semcast.protocols.vsync.token import TokenOrder
from semcast.protocols.vsync.transfer import StateTransfer

ASKED = "asked to"
"""Why a member leaves whose program has closed its group."""
_OUT = (State.SERVING, State.LEFT)
_INSIDE = (Data, Request, Notice)
"""Frames about messages: they say which view these are of."""
_MOST_PATIENCE = 3
"""What may be lost is sent again ever more rarely, up to 2^3 times the first interval."""


class VsyncTimer(Timer):
    """What virtual synchrony waits for."""

    HELLO = "hello"
    CHECK = "check"
    RESEND = "resend"


def order_of(settings: VsyncSettings) -> OrderFactory:
    """What lines up the messages of a view."""
    if settings.order is Order.FIFO:
        return FifoOrder
    if settings.order is Order.CAUSAL:
        return CausalOrder
    return TokenOrder if settings.engine is Engine.TOKEN else BatchOrder


class Membership(Stack):
    """The views of one member. Only one is current; earlier ones may wait for the application."""

    backlog_kind: ClassVar[type[Backlog]] = Backlog
    stops_kind: ClassVar[type[Stops]] = Stops
    view_stream: ClassVar[type[ViewStream]] = ViewStream
    view_change: ClassVar[type[ViewChange]] = ViewChange
    courier_kind: ClassVar[type[Courier]] = Courier
    ledger_kind: ClassVar[type[Ledger]] = Ledger
    transfer_kind: ClassVar[type[StateTransfer]] = StateTransfer
    founding_kind: ClassVar[type[Founding]] = Founding
    candidates_kind: ClassVar[type[Candidates]] = Candidates
    serving_kind: ClassVar[type[Serving]] = Serving
    readership_kind: ClassVar[type[Readership]] = Readership
    provision_kind: ClassVar[type[Provision]] = Provision

    def __init__(self, me: MemberId, settings: VsyncSettings, rng: Random, out: Outbox) -> None:
        settings.check()
        self.me = me
        self.settings = settings
        self.out = out
        self._courier = self.courier_kind(out)
        self.stats = Statistics()
        self.stream: ViewStream | None = None
        """Of the current view."""
        self.state = State.JOINING
        self.moves: Counter[tuple[State, Cause]] = Counter()  # how often each was made
        self.confirming = Confirming(out)
        """Own messages of the current view that somebody waits to hear of."""
        self._rng = rng
        self._terms = settings.terms()
        self._order = order_of(settings)
        self._oracle = Oracle(settings.detector) if settings.agreement is Agreement.ORACLE else None
        self._detector = self._oracle or FailureDetector(settings.detector)
        self._ledger = self.ledger_kind(out)
        self._founding = self.founding_kind(me, settings, rng, self._courier, self._ledger)
        self._commanded = False  # to go on with those who are here
        self._serving: Serving | None = None
        self.backlog = self.backlog_kind(
            settings.queue_messages or settings.buffer_messages,
            settings.queue_bytes or settings.buffer_bytes,
            settings.reserve_bytes,
            settings.lag,
        )
        self.stops = self.stops_kind(me, self.backlog, self._detector.suspects)
        self._transfer = self.transfer_kind(settings.frame_bytes, out)
        self._epochs = Epochs(self.backlog)
        self._changing: ViewChange | None = None
        self._past = Past(settings.resend, self._courier)
        self._welcome: Welcome | None = None
        self._early: list[tuple[MemberId, Frame]] = []
        self._candidates = self.candidates_kind(settings.hello, settings.detector.timeout_initial, rng)
        self._admission = Admission(self._terms, self._candidates, self.stats, out)
        self._hopeless = Hopeless(me, settings, self._detector.suspects)
        self._spoke_at: dict[MemberId, Nanos] = {}  # when members were last heard in this very view
        self._began_at: Nanos = 0  # when the current view did
        self._leaving = ""
        self._departure: Departure | None = None
        self._readership = self.readership_kind(self.backlog, self._transfer, settings)
        self._provision = self.provision_kind(me, settings, self.backlog, self._transfer, self._readership)
        self._joining = Joining(
            me, settings, self._founding, self._readership, rng, self._courier, out, self._enter
        )
        self._blocked = False
        self._resending = False
        self._patience = 0  # doublings of the time after which what may be lost is sent again

    @property
    def left(self) -> bool:
        """Whether this member is out of the group, for good."""
        return self.state is State.LEFT

    @property
    def _is_out(self) -> bool:
        """Whether it takes no part in views any more."""
        return self.state in _OUT

    @property
    def reader(self) -> Reader:
        """The program."""
        return self.backlog.reader

    @reader.setter
    def reader(self, reader: Reader) -> None:
        self.backlog.reader = reader

    # In no view

    def _look(self, now: Nanos) -> None:
        """Look for the group, or found it."""
        if self.stream is not None or self.left:
            return
        if self._joining.unwelcome(now):
            cause = "put out: nobody is left in its view"
            self._leave_for_good(Cause.SUPERSEDED, cause, again=True)
            return
        self.stats.control_frames += 1
        self.out.set_timer(VsyncTimer.HELLO, self._joining.look(now))

    def _found(self, now: Nanos) -> None:
        if self.stream is None and not self.left:
            self._joining.found(now)

    def _on_hello(self, now: Nanos, source: MemberId, frame: Hello) -> None:
        stream = self.stream
        if not self._admission.agrees(source, frame.terms, stands=stream is not None):
            return
        if stream is None:
            self._founding.saw(now, source, frame)
        else:
            self._on_candidate(now, source, frame, stream)

    def _on_candidate(self, now: Nanos, source: MemberId, frame: Hello, stream: ViewStream) -> None:
        """Somebody looks for the view that this member is in."""
        if frame.last is not None:
            self._founding.learn(frame.last)
        if source in stream.members:
            if self._welcome is not None:
                self._courier.send(source, self._welcome)
            return
        self._candidates.saw(now, source)
        if frame.last is None or frame.last.view < stream.view().id or self.state is State.MINORITY:
            self._answer_founder(source)

    def _on_goodbye(self, now: Nanos, source: MemberId, frame: Goodbye) -> None:
        """Somebody looks for the group no more. If it was let in meanwhile, its silence will tell."""
        if self.stream is None:
            self._founding.forget(source)
            if frame.view:
                self._founding.close(frame.view, source)
        else:
            self._candidates.left(now, source)

    def _answer_founder(self, source: MemberId) -> None:
        """Whoever looks for the group hears that it is there."""
        assert self.stream is not None
        view = self.stream.view()
        self._courier.send(source, Standing(Known(view.id, list(view.members))))

    def _on_refused(self, frame: Refused) -> None:
        cause = self._joining.on_refused(frame)
        if cause is not None:
            self._leave_for_good(Cause.REFUSED, f"refused: {cause}", again=False)

    def _enter(self, now: Nanos, welcome: Welcome) -> None:
        """Into the first view of this member, once that is written down."""
        self._joining.entering = True
        record = Entered(Known(welcome.view, list(welcome.members)))
        self._ledger.write(now, record, lambda now: self._entered(now, welcome), anew=True)

    def _entered(self, now: Nanos, welcome: Welcome) -> None:
        self._joining.entering = False
        if self.left:
            return
        if self._founding.founded is not None:
            for other in welcome.members:
                if other != self.me:
                    self._courier.send(other, welcome)
        self._past.decision = welcome.ended
        self._provision.enter(welcome)
        self.out.cancel_timer(VsyncTimer.HELLO)
        view = View(welcome.view, tuple(welcome.members), reformed=welcome.reformed)
        self._shift_to(State.OPERATIONAL, Cause.ADMITTED)
        if len(welcome.joined) < len(welcome.members):
            self._candidates.novice_until = now + CAP
        self._begin(now, welcome, Installed(view, joined=tuple(welcome.newcomers())))
        self._check(now)

    # One view after the other

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        """The next view begins here."""
        view, last = event.view, self.stream
        heard = () if last is None else [last.members[rank] for rank in sorted(last.heard)]
        self._welcome = welcome
        stream = self.view_stream(
            self.me,
            view,
            welcome.base,
            self.settings,
            self._rng,
            self._order,
            self._detector.suspects,
            self.stats,
            self.backlog,
            self.stops,
            welcome.position,
            welcome.newcomers() if self.settings.greeting else (),
        )
        if self.certificates is not None:
            stream.certify(self.certificates)
        self.stream = stream
        self._changing = None
        self._commanded = False
        self._founding.learn(Known(view.id, list(view.members)))
        self._spoke_at = {}
        self._began_at = now
        self._detector.watch(now, [member for member in view.members if member != self.me])
        self._hopeless.begin(view.members, welcome.newcomers(), heard)
        if self._epochs.drop_stateless():
            self._transfer.forget()
        awaits, gives = self._provision.begin(welcome)
        lost = welcome.lost and self.settings.state
        self._epochs.begin(Epoch(event, stream, awaits=awaits, gives=gives, lost=lost))
        self.stops.keep(view.members)
        self._readership.look(now)
        stream.start(now)
        self._pump(stream)

    def _install(self, now: Nanos, change: Change) -> None:
        """What was agreed on is here: end this view, and begin the next once that is written down (t7)."""
        changing = self._changing
        assert changing is not None
        if self.me not in change.members:
            self._serve(now, change)
        elif not self._joining.entering:
            self._joining.entering = True
            record = Entered(Known(change.view, list(change.members)))
            self._ledger.write(now, record, lambda now: self._installed(now, change), anew=True)

    def _installed(self, now: Nanos, change: Change) -> None:
        old, changing = self.stream, self._changing
        self._joining.entering = False
        assert old is not None
        assert changing is not None
        view = old.view()
        old.finish(change.cut, change.report)
        self._pump(old)
        self._end_confirmations(old, change)
        decision = changing.decision
        assert decision is not None
        ended = Decision(Instance(view.id, 0), decision)
        causes = self._past.end(old, ended, change.left)
        welcome = self._welcome_to(change, old, ended)
        event = Installed(
            View(change.view, tuple(change.members), reformed=welcome.reformed),
            joined=tuple(change.joined),
            left=tuple(causes),
            failed=tuple(member for member, cause in change.left if cause == "failed"),
        )
        self._candidates.install(now, change.members, causes)
        self._candidates.judge(now, [who for who, cause in change.left if cause in FAILURES], change.joined)
        self._blocked = self._blocked or old.refuses
        self._provision.install(change)
        self._shift_to(State.OPERATIONAL, Cause.INSTALLED)
        self._begin(now, welcome, event)
        if change.members[0] == self.me:
            for joiner in change.joined:
                self._courier.send(joiner, welcome)
        self._go_on(now)

    def _welcome_to(self, change: Change, old: ViewStream, ended: Decision) -> Welcome:
        """What those who join are told of the next view."""
        ranks = old.buffers.ranks
        base = [change.cut[ranks[member]] if member in ranks else 0 for member in change.members]
        return Welcome(
            change.view,
            change.members,
            base,
            [change.members.index(member) for member in change.joined],
            [change.members.index(member) for member in change.providers],
            max(old.order.position, first_position(change.view)),
            reformed=old.view().id if change.reformed else None,
            lost=change.lost,
            ended=ended,
        )

    def _end_confirmations(self, old: ViewStream, change: Change) -> None:
        """All that was sent in the view is delivered in it, and all have it who go on.

        So it is safe, unless somebody is gone who was not asked to leave.
        """
        if self.confirming:
            sent = old.queued[old.rank]
            accounted = {*change.members, *(member for member, cause in change.left if cause == ASKED)}
            safe = sent if accounted.issuperset(old.members) else old.buffers.stable[old.rank]
            self.confirming.settle(old.view(), delivered=sent, safe=safe, position=old.order.position_of)
            self.confirming.end(old.view(), View(change.view, tuple(change.members)))

    def _go_on(self, now: Nanos) -> None:
        """What came meanwhile."""
        early, self._early = self._early, []
        for source, frame in early:
            self.on_frame(now, source, frame)
        self._look_after_members(now)

    def _shift_to(self, state: State, cause: Cause) -> None:
        assert MOVES.get((self.state, cause)) is state, f"{self.state} -> {state} because of {cause}"
        self.moves[self.state, cause] += 1
        self.state = state

    def _serve(self, now: Nanos, change: Change) -> None:
        """Not in the next view: serve those who are, then leave."""
        old, changing = self.stream, self._changing
        assert old is not None
        assert changing is not None
        assert changing.decision is not None
        cause = self._leaving or f"put out: {dict(change.left).get(self.me, 'failed')}"
        self._shift_to(State.SERVING, Cause.LEAVING if self._leaving else Cause.PUT_OUT)
        self._changing = None
        if not change.members:
            self._courier.announce(Goodbye(change.view))
        decision = Decision(Instance(old.view().id, 0), changing.decision)
        until = now + self.settings.detector.timeout_max
        self._serving = self.serving_kind(old, decision, cause, self._detector.suspects, self._courier, until)
        self._end_service(now)

    def _end_service(self, now: Nanos) -> None:
        """Leave, if nobody needs this member any more."""
        serving = self._serving
        assert serving is not None
        if self.state is State.SERVING and serving.is_over(now):
            self._leave_for_good(Cause.SERVED, serving.cause, again=not self._leaving)

    def _leave_for_good(self, why: Cause, cause: str, *, again: bool) -> None:
        self._shift_to(State.LEFT, why)
        self._joining.reads_first = cause == f"put out: {UNREAD}"
        self._changing = None
        for timer in VsyncTimer:
            self.out.cancel_timer(timer)
        self.out.deliver(Left(cause, again))

    # Why views change

    def leave(self, now: Nanos, cause: str = ASKED) -> None:
        """Leave the group: in agreement with the others, if there are any, and once they have everything."""
        if self.left or self._leaving or self.state is State.SERVING:
            return
        if self._departure is None and self.stream is not None:
            self._departure = Departure(self.stream, cause, now + self.settings.linger)
        if self._departure is None or self._departure.is_due(now, self.stream):
            self._depart(now, cause)

    def _depart(self, now: Nanos, cause: str) -> None:
        self._leaving = cause = cause[:LONGEST_CAUSE]
        if self.stream is None:
            self._courier.announce(Goodbye())  # or others would let it in, and wait for it
        alone = self.stream is None or len(self.stream.members) == 1
        if not alone:
            self._change_view(now, {self.me: cause}, ())
        elif self._changing is None:
            self._leave_alone(cause)
        # else its next view is being written down, with others who join: it leaves that one

    def _leave_alone(self, cause: str) -> None:
        """Who waits to be let in may found the group anew."""
        if self.stream is not None:
            self._courier.announce(Goodbye(self.stream.view().id))
        self._leave_for_good(Cause.LEAVING, cause, again=False)

    def _look_after_members(self, now: Nanos) -> None:
        """Change the view, if there is a reason to."""
        stream = self.stream
        if stream is None or self._is_out:
            return
        if self._leaving and len(stream.members) == 1:
            self._leave_alone(self._leaving)
            return
        leave: dict[MemberId, str] = {}
        suspects = self._detector.suspects
        names = {member.name: member for member in stream.members}
        first = next((m for m in stream.members if m == self.me or not suspects(m)), self.me)
        join = self._candidates.ready(now, stream.members, suspects, helps=first != self.me)
        for candidate in join:
            if candidate.name in names:
                leave[names[candidate.name]] = "started again"
        if self._leaving:
            leave[self.me] = self._leaving
        leave.update(self._hopeless.found(now, stream))
        staying = [m for m in stream.members if m not in leave and not suspects(m)]
        if len(staying) >= self.settings.most_members():
            self._admission.refuse_for_room(join, len(staying))
            join = []  # a view of the same members would follow, and another
        suspected = any(map(suspects, stream.members))
        stateless = self._provision.needs_change(now, asked=self._epochs.newest.gives)
        if leave or join or suspected or stateless:
            self._change_view(now, leave, join)

    def _change_view(
        self,
        now: Nanos,
        leave: dict[MemberId, str],
        join: Iterable[MemberId],
        gone: Iterable[MemberId] = (),
    ) -> None:
        """Of its own accord, or because others do; these are the reasons, and who is known to be dead."""
        stream = self.stream
        assert stream is not None
        if self._changing is None:
            self._shift_to(State.FLUSHING, Cause.CHANGE)
            self._patience = 0
            program = self._provision.end(now)
            self._changing = self.view_change(
                stream, self._courier, self._detector.suspects, self._ledger, program
            )
            self._changing.begin(now, leave, join)
            self._pump(stream)
            if self._changing.coordinates:
                self._changing.announce()
        else:
            self._changing.add(leave.items(), join)
        self._changing.bury(now, gone)
        self._after_change(now)

    def _after_change(self, now: Nanos) -> None:
        changing = self._changing
        if changing is None:
            return
        if changing.change is not None:
            self._install(now, changing.change)
            return
        cut_off = changing.cut_off
        if cut_off and self.state is State.FLUSHING:
            self._shift_to(State.MINORITY, Cause.CUT_OFF)
            self.out.deliver(Minority(len(changing.reachable()), changing.needed))
        elif not cut_off and self.state is State.MINORITY:
            self._shift_to(State.FLUSHING, Cause.WITHIN_REACH)

    # Time

    def _check(self, now: Nanos) -> None:
        """Look who is silent, and who asks to join."""
        if self.left or self.stream is None:
            return
        self._detector.check(now)
        if self.state is State.SERVING:
            self._end_service(now)
        else:
            self._check_view(now)
        if not self.left:
            at = min(self._detector.next_check(now), now + self.settings.detector.heartbeat)
            self.out.set_timer(VsyncTimer.CHECK, max(at, now + self.settings.resend // 4))

    def _check_view(self, now: Nanos) -> None:
        assert self.stream is not None
        self._readership.look(now)
        self._refuse(now)
        if len(self.stream.heard) == len(self.stream.members) - 1:
            self._past.stream = None  # nobody is in the last view any more
        if self._changing is not None:
            self._bury(now)
            self._changing.on_progress(now)
            self._pump(self.stream)
            self._after_change(now)
        else:
            self._look_after_members(now)
        self._look_after_itself(now)

    def _refuse(self, now: Nanos) -> None:
        """Tell those who cannot join, and forget those who do not ask any more."""
        assert self.stream is not None
        members = self.stream.members
        self._candidates.forget(now, members)
        self._admission.refuse_namesakes(members, self._detector.last_heard)

    def _bury(self, now: Nanos) -> None:
        """A change of view that waits for a quorum may learn that the others are dead."""
        stream, changing = self.stream, self._changing
        assert stream is not None
        assert changing is not None
        suspects, last = self._detector.suspects, self._founding.last
        dead = self._candidates.back(stream.members, suspects)
        if self._commanded:
            dead = [member for member in stream.members if suspects(member)]
        elif self.settings.reform is Reform.MANUAL:
            return
        elif last is not None and last.view > stream.view().id:
            alive = [member for member in stream.members if member == self.me or not suspects(member)]
            if not self._candidates.accounts_for(last, alive):
                return  # somebody may be in a later view
        for candidate in self._candidates.ready(now, stream.members, suspects):
            changing.add((), (candidate,))
        changing.bury(now, dead, self._founding.after)

    def _look_after_itself(self, now: Nanos) -> None:
        """Leave, if it is time to, or if the program has stopped and its queue is full."""
        departure = self._departure
        if departure is not None:
            if not self._leaving and departure.is_due(now, self.stream):
                self._depart(now, departure.cause)
        elif self._readership.too_slow(now):
            self.leave(now, "its application is too slow")

    def _resend(self, now: Nanos) -> None:
        """Repeat what may have been lost."""
        self._resending = False
        stream = self.stream
        if stream is None or self.left:
            return
        if self.state is State.SERVING:
            assert self._serving is not None
            self._serving.resend()
            self._plan_resend(now)
            return
        if self._changing is not None:
            self._patience = min(self._patience + 1, _MOST_PATIENCE)
            self._changing.on_timer(now)
            self._pump(stream)
            self._after_change(now)
        else:
            self._patience = 0
            stream.order.resend(now)
            self._pump(stream)
        self._transfer.ask()
        self._plan_resend(now)

    def _plan_resend(self, now: Nanos) -> None:
        stream = self.stream
        if self._resending or stream is None or self.left:
            return
        serving = self.state is State.SERVING
        if serving or self._changing is not None or self._transfer.waits or stream.order.busy:
            self._resending = True
            self.out.set_timer(VsyncTimer.RESEND, now + (self.settings.resend << self._patience))

    def _takes_part(self, now: Nanos, view: int) -> bool:
        """Whether who speaks of a view lives, as far as the current one is concerned.

        Who is in another view is as good as silent. But who goes on may be on its way here for a while: it
        lacks messages of the last view still, or its disk is busy.
        """
        assert self.stream is not None
        current = self.stream.view().id
        if current <= view <= current + 1:
            return True
        last = self._past.decision
        on_its_way = last is not None and view == last.instance.view
        return on_its_way and now - self._began_at < self.settings.detector.timeout_initial

    # Those who are behind, or out

    def _on_superseded(self, now: Nanos, frame: Superseded) -> None:
        """Believed by who hears no quorum of its view: as long as there is one, that view is not over."""
        assert self.stream is not None
        if frame.member != self.me or not self.stream.view().id < frame.view < FAR:
            return
        lately = now - self.settings.detector.timeout_initial
        present = [
            rank
            for rank, member in enumerate(self.stream.members)
            if member == self.me or self._spoke_at.get(member, -1) > lately
        ]
        if not is_quorum(len(self.stream.members), present):
            cause = frame.cause or "the others went on without this member"
            self._leave_for_good(Cause.SUPERSEDED, f"put out: {cause}", again=True)

    # Streams

    def _pump(self, stream: ViewStream) -> None:
        """Hand on what a stream wants from the world."""
        out = stream.out
        if out.sends:
            sends, out.sends = out.sends, []
            view = stream.view().id
            for dest, frame in sends:
                sent = InView(view, frame) if isinstance(frame, _INSIDE) else frame
                if stream.wide or (type(frame) is Data and is_bulky(frame, stream.most_bytes)):
                    self._courier.pass_on(dest, sent, stream.most_bytes)
                else:
                    self.out.sends.append((dest, sent))
        if out.timers:
            if stream is self.stream:
                self.out.timers += out.timers
            out.timers = []
        if out.events:
            self.out.events += out.events
            out.events = []
