"""Who is in the group: looking for it, founding it, joining, leaving; one view after the other."""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable
from random import Random

import msgspec

from semcast.core.confirming import Confirming
from semcast.core.events import Left, Minority
from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.semantic.frames import Data, Notice, Request
from semcast.protocols.semantic.stops import Stops
from semcast.protocols.vsync.batches import BatchOrder
from semcast.protocols.vsync.consensus_frames import Decision, Instance
from semcast.protocols.vsync.departure import Departure
from semcast.protocols.vsync.detector import FailureDetector, Oracle
from semcast.protocols.vsync.flush import ViewChange
from semcast.protocols.vsync.founding import Founding
from semcast.protocols.vsync.frames import Change, Hello, InView, Superseded, Welcome
from semcast.protocols.vsync.orders import CausalOrder, FifoOrder
from semcast.protocols.vsync.settings import Agreement, Engine, Order, VsyncSettings
from semcast.protocols.vsync.states import MOVES, Cause, State
from semcast.protocols.vsync.stream import OrderFactory, ViewStream
from semcast.protocols.vsync.token import TokenOrder
from semcast.protocols.vsync.transfer import StateTransfer
from semcast.wire.limits import MAX_NAME

_DISTRUSTED = 2
"""Views in a row that begin with somebody in them who is not heard."""
_MOST_PATIENCE = 3
"""What may be lost is sent again ever more rarely, up to 2^3 times the first interval."""
FAR = 1 << 48
"""No view has so high a number."""
_LONGEST_CAUSE = 100
_LAG = 4
"""Heartbeats that anybody may be behind, also when the buffers are full."""
_CANDIDATES = 64
"""Processes that ask to join at the same time, at most."""


class VsyncTimer(Timer):
    """What virtual synchrony waits for."""

    HELLO = "hello"
    CHECK = "check"
    RESEND = "resend"


class Epoch:
    """A view as the application goes through it."""

    __slots__ = ("announced", "awaits", "event", "gives", "state", "stream")

    def __init__(self, event: Installed, stream: ViewStream, *, awaits: bool, gives: bool) -> None:
        self.event = event
        self.stream = stream
        self.awaits = awaits
        """The state of the application is not here yet."""
        self.gives = gives
        """Others wait for this member's state at the beginning."""
        self.state: bytes | None = None
        self.announced = False


def order_of(settings: VsyncSettings) -> OrderFactory:
    """What lines up the messages of a view."""
    if settings.order is Order.FIFO:
        return FifoOrder
    if settings.order is Order.CAUSAL:
        return CausalOrder
    return TokenOrder if settings.engine is Engine.TOKEN else BatchOrder


class Membership(ABC):
    """The views of one member. Only one is current; earlier ones may wait for the application."""

    backlog_kind: type[Backlog] = Backlog
    stops_kind: type[Stops] = Stops
    view_stream: type[ViewStream] = ViewStream
    view_change: type[ViewChange] = ViewChange

    def __init__(self, me: MemberId, settings: VsyncSettings, rng: Random, out: Outbox) -> None:
        settings.check()
        self.me = me
        self.settings = settings
        self.out = out
        self.stats = Statistics()
        self.stream: ViewStream | None = None
        """Of the current view."""
        self.state = State.JOINING
        self.moves: Counter[tuple[State, Cause]] = Counter()
        """How often each move was made."""
        self.confirming = Confirming(out)
        """Own messages of the current view that somebody waits to hear of."""
        self._rng = rng
        self._order = order_of(settings)
        fail_stop = settings.agreement is Agreement.ORACLE
        self._oracle = Oracle(settings.detector) if fail_stop else None
        self._detector = self._oracle or FailureDetector(settings.detector)
        self._founding = (
            Founding(me, settings.minimum, settings.hello, rng, out) if settings.minimum else None
        )
        queue = settings.queue_messages or settings.buffer_messages
        self.backlog = self.backlog_kind(queue, settings.buffer_bytes, settings.reserve_bytes)
        self.stops = self.stops_kind(me, self.backlog, self._detector.suspects)
        self._transfer = StateTransfer(settings.frame_bytes, out)
        self._stateful = False
        self._epochs: deque[Epoch] = deque()
        self._changing: ViewChange | None = None
        self._previous: ViewStream | None = None
        self._decision: Decision | None = None
        self._causes: dict[MemberId, str] = {}  # why those are not in this view who were in the last one
        self._welcome: Welcome | None = None
        self._early: list[tuple[MemberId, Frame]] = []
        self._candidates: dict[MemberId, tuple[Nanos, Nanos]] = {}  # heard of first, and last
        self._distrust: dict[MemberId, int] = {}  # in how many views in a row somebody was not heard
        self._answered: dict[MemberId, Nanos] = {}
        self._samples: deque[tuple[Nanos, list[int]]] = deque()
        self._leaving = ""
        self._departure: Departure | None = None
        self._keeps_up_at: Nanos = 0  # when the application was last seen to follow
        self._blocked = False
        self._resending = False
        self._patience = 0  # doublings of the time after which what may be lost is sent again

    @property
    def left(self) -> bool:
        """Whether this member is out of the group, for good."""
        return self.state is State.LEFT

    # In no view

    def _look(self, now: Nanos) -> None:
        """Look for the group, or found it."""
        if self.stream is not None or self.left:
            return
        self.stats.control_frames += 1
        self.out.announce(Hello(self._founding is not None))
        if self._founding is not None:
            self._founding.tick(now)
            self._found(now)
        spread = self.settings.hello // 4 + 1
        self.out.set_timer(VsyncTimer.HELLO, now + self.settings.hello + self._rng.randrange(spread))

    def _found(self, now: Nanos) -> None:
        """Begin the first view, if it is agreed, and let the others in."""
        if self._founding is None or self._founding.founded is None or self.stream is not None:
            return
        everybody = list(self._founding.founded)
        if self.me in everybody:
            welcome = Welcome(1, everybody, [0] * len(everybody), everybody, everybody)
            for other in everybody:
                if other != self.me:
                    self.out.send(other, welcome)
            self._enter(now, welcome)

    def _on_hello(self, now: Nanos, source: MemberId, frame: Hello) -> None:
        if self.stream is None:
            if self._founding is not None and frame.founding:
                self._founding.saw(now, source)
        elif source in self.stream.members:
            if self._welcome is not None:
                self.out.send(source, self._welcome)
        elif len(source.name) <= MAX_NAME and (
            source in self._candidates or len(self._candidates) < _CANDIDATES
        ):
            first, _ = self._candidates.get(source, (now, now))
            self._candidates[source] = first, now

    def _on_welcome(self, now: Nanos, source: MemberId, frame: Welcome) -> None:
        members = set(frame.members)
        sound = (
            {self.me, source} <= members
            and members.issuperset(frame.providers)
            and len(members) == len(frame.members) == len(frame.base) <= self.settings.most_members()
            and 1 <= frame.view < FAR
        )
        if self.stream is None and sound:
            self._enter(now, frame)
        else:
            self.stats.stale += 1

    def _enter(self, now: Nanos, welcome: Welcome) -> None:
        """Into the first view of this member. Where nobody is left who has the state, it begins anew."""
        self._founding = None
        if self.settings.state and not welcome.providers:
            welcome = msgspec.structs.replace(welcome, providers=[self.me])
        self._stateful = not self.settings.state or self.me in welcome.providers
        self.out.cancel_timer(VsyncTimer.HELLO)
        view = View(welcome.view, tuple(welcome.members))
        self._shift_to(State.OPERATIONAL, Cause.ADMITTED)
        self._begin(now, welcome, Installed(view, joined=tuple(welcome.joined)))
        self._check(now)

    # One view after the other

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        """The next view begins here."""
        view = event.view
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
            welcome.joined if self.settings.greeting else (),
        )
        self.stream = stream
        self._changing = None
        self._samples.clear()
        self._detector.watch(now, [member for member in view.members if member != self.me])
        suspected = [member for member in view.members if self._detector.suspects(member)]
        self._distrust = {member: self._distrust.get(member, 0) + 1 for member in suspected}
        needy = self.settings.state and len(welcome.providers) < len(view.members)
        provider = welcome.providers[0] if welcome.providers else None
        gives = needy and provider == self.me
        if not self._stateful:
            self._epochs.clear()  # the state at the beginning of this view covers all of it
            if provider is not None:
                self._transfer.want(view.id, provider)
        self._epochs.append(Epoch(event, stream, awaits=not self._stateful, gives=gives))
        self.stops.keep(view.members)
        self._count_backlog()
        stream.start(now)
        self._pump(stream)

    def _count_backlog(self) -> None:
        """What waits for the program is whatever waits in its views."""
        self.backlog.queues = [epoch.stream.buffers for epoch in self._epochs]
        self.backlog.lacks_state = bool(self._epochs) and self._epochs[0].awaits

    def _install(self, now: Nanos, change: Change) -> None:
        """What was agreed on is here: end this view, and begin the next (t7)."""
        old, changing = self.stream, self._changing
        assert old is not None
        assert changing is not None
        if self.me not in change.members:
            if self._leaving:
                self._leave_for_good(Cause.LEAVING, self._leaving)
            else:
                cause = dict(change.left).get(self.me, "failed")
                self._leave_for_good(Cause.PUT_OUT, f"put out: {cause}")
            return
        view = old.view()
        old.finish(change.cut, change.report)
        self._pump(old)
        self._end_confirmations(old, change)
        decision = changing.decision
        assert decision is not None
        self._decision = Decision(Instance(view.id, 0), decision)
        for member in change.members:
            self._candidates.pop(member, None)
        ranks = {member: rank for rank, member in enumerate(view.members)}
        base = [change.cut[ranks[member]] if member in ranks else 0 for member in change.members]
        welcome = Welcome(
            view.id + 1, change.members, base, change.joined, change.providers, old.order.position
        )
        failed = tuple(member for member, cause in change.left if cause == "failed")
        self._causes = {member: cause for member, cause in change.left if cause != "failed"}
        event = Installed(
            View(view.id + 1, tuple(change.members)),
            joined=tuple(change.joined),
            left=tuple(member for member, cause in change.left if cause != "failed"),
            failed=failed,
        )
        self._previous = old
        self._blocked = self._blocked or old.refuses
        self._shift_to(State.OPERATIONAL, Cause.INSTALLED)
        self._begin(now, welcome, event)
        if change.members[0] == self.me:
            for joiner in change.joined:
                self.out.send(joiner, welcome)
        self._go_on(now)

    def _end_confirmations(self, old: ViewStream, change: Change) -> None:
        """All that was sent in the view is delivered in it. If all go on, all of them have it."""
        if self.confirming:
            sent = old.queued[old.rank]
            safe = sent if set(change.members).issuperset(old.members) else old.buffers.stable[old.rank]
            self.confirming.settle(old.view(), delivered=sent, safe=safe, position=old.order.position_of)
            self.confirming.end(old.view(), View(old.view().id + 1, tuple(change.members)))

    def _go_on(self, now: Nanos) -> None:
        """What came meanwhile."""
        early, self._early = self._early, []
        for source, frame in early:
            self.on_frame(now, source, frame)
        self._look_after_members(now)

    @abstractmethod
    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """A frame arrived."""

    def _shift_to(self, state: State, cause: Cause) -> None:
        assert MOVES.get((self.state, cause)) is state, f"{self.state} -> {state} because of {cause}"
        self.moves[self.state, cause] += 1
        self.state = state

    def _leave_for_good(self, why: Cause, cause: str) -> None:
        self._shift_to(State.LEFT, why)
        self._changing = None
        for timer in VsyncTimer:
            self.out.cancel_timer(timer)
        self.out.deliver(Left(cause, again=not self._leaving))

    # Why views change

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        """Leave the group: in agreement with the others, if there are any, and once they have everything."""
        if self.left or self._leaving:
            return
        if self._departure is None and self.stream is not None:
            self._departure = Departure(self.stream, cause, now + self.settings.linger)
        if self._departure is None or self._departure.is_due(now, self.stream):
            self._depart(now, cause)

    def _depart(self, now: Nanos, cause: str) -> None:
        self._leaving = cause = cause[:_LONGEST_CAUSE]
        if self.stream is None or len(self.stream.members) == 1:
            self._leave_for_good(Cause.LEAVING, cause)
        else:
            self._change_view(now, {self.me: cause}, ())

    def _look_after_members(self, now: Nanos) -> None:
        """Change the view, if there is a reason to."""
        stream = self.stream
        if stream is None or self.left:
            return
        names = {member.name: member for member in stream.members}
        leave: dict[MemberId, str] = {}
        join = []
        first = next((m for m in stream.members if m == self.me or not self._detector.suspects(m)), self.me)
        patience = 0 if first == self.me else 3 * self.settings.hello
        for candidate, (since, last) in list(self._candidates.items()):
            former = names.get(candidate.name)
            outdated = former is not None and former.incarnation >= candidate.incarnation
            if outdated or now - last > 5 * self.settings.hello:
                del self._candidates[candidate]
            elif last > since and now - since >= patience:  # one that has spoken twice is there
                join.append(candidate)
                if former is not None:
                    leave[former] = "started again"
        if self._leaving:
            leave[self.me] = self._leaving
        leave.update(self._hopeless(now, stream))
        leave.update(self._deaf(stream))
        suspected = any(self._detector.suspects(member) for member in stream.members)
        if leave or join or suspected:
            self._change_view(now, leave, join)

    def _hopeless(self, now: Nanos, stream: ViewStream) -> dict[MemberId, str]:
        """Who delays stability beyond the limits (5.4.3)."""
        limits = [self.settings.expel_after] if self.settings.expel_after else []
        if self.settings.expel_when_full and stream.refuses:
            limits.append(_LAG * self.settings.detector.heartbeat)
        if stream.frozen or not (self.settings.expel_after or self.settings.expel_when_full):
            return {}
        self._samples.append((now, list(stream.queued)))
        longest = max(self.settings.expel_after, _LAG * self.settings.detector.heartbeat)
        while len(self._samples) > 1 and self._samples[1][0] <= now - longest:
            self._samples.popleft()
        found: dict[MemberId, str] = {}
        for limit in limits:
            then = next((queued for at, queued in reversed(self._samples) if at <= now - limit), None)
            if then is not None:
                found.update(dict.fromkeys(stream.laggards(then), "too slow"))
        return found if len(found) <= (len(stream.members) - 1) // 2 else {}

    def _deaf(self, stream: ViewStream) -> dict[MemberId, str]:
        """Of two who do not hear each other for several views, though others hear both, the later one."""
        for member, views in self._distrust.items():
            if views >= _DISTRUSTED and self._detector.suspects(member):
                later = max(member, self.me, key=stream.members.index)
                return {later: "not heard by all"}
        return {}

    def _change_view(self, now: Nanos, leave: dict[MemberId, str], join: Iterable[MemberId]) -> None:
        """Of its own accord, or because others do; these are the reasons."""
        stream = self.stream
        assert stream is not None
        if self._changing is None:
            self._shift_to(State.FLUSHING, Cause.CHANGE)
            self._patience = 0
            gives = self._stateful and self.settings.state
            self._changing = self.view_change(stream, self.out, self._detector.suspects, stateful=gives)
            self._changing.begin(now, leave, join)
            self._pump(stream)
            if self._changing.coordinates:
                self._changing.announce()
        else:
            self._changing.add(leave.items(), join)
        self._after_change(now)

    def _after_change(self, now: Nanos) -> None:
        changing = self._changing
        if changing is None:
            return
        if changing.change is not None:
            self._install(now, changing.change)
            return
        reachable = changing.reachable()
        cut_off = reachable < changing.majority
        if cut_off and self.state is State.FLUSHING:
            self._shift_to(State.MINORITY, Cause.CUT_OFF)
            self.out.deliver(Minority(reachable, changing.majority))
        elif not cut_off and self.state is State.MINORITY:
            self._shift_to(State.FLUSHING, Cause.WITHIN_REACH)

    # Time

    def _check(self, now: Nanos) -> None:
        """Look who is silent, and who asks to join."""
        if self.left or self.stream is None:
            return
        self._detector.check(now)
        if len(self.stream.heard) == len(self.stream.members) - 1:
            self._previous = None  # nobody is in the last view any more
        if self._changing is not None:
            self._changing.on_progress(now)
            self._pump(self.stream)
            self._after_change(now)
        else:
            self._look_after_members(now)
        self._look_after_itself(now)
        if not self.left:
            at = min(self._detector.next_check(now), now + self.settings.detector.heartbeat)
            self.out.set_timer(VsyncTimer.CHECK, max(at, now + self.settings.resend // 4))

    def _look_after_itself(self, now: Nanos) -> None:
        """Leave, if it is time to, or if the program has stopped and its queue is full."""
        departure = self._departure
        if departure is not None:
            if not self._leaving and departure.is_due(now, self.stream):
                self._depart(now, departure.cause)
        elif not (self.backlog.reader.stopped and self.backlog.full()):
            self._keeps_up_at = now
        elif self.settings.leave_after and now - self._keeps_up_at >= self.settings.leave_after:
            self.leave(now, "its application is too slow")

    def _resend(self, now: Nanos) -> None:
        """Repeat what may have been lost."""
        self._resending = False
        stream = self.stream
        if stream is None or self.left:
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
        if self._changing is not None or self._transfer.waits or stream.order.busy:
            self._resending = True
            self.out.set_timer(VsyncTimer.RESEND, now + (self.settings.resend << self._patience))

    # Those who are behind, or out

    def _on_late(self, now: Nanos, source: MemberId, view: int, *, knows: bool) -> None:
        """A frame of a view that is over: its sender lacks the decision, or is not among us.

        Who says what was decided `knows` it: to answer a decision with a decision would never end.
        """
        self.stats.stale += 1
        stream = self.stream
        assert stream is not None
        if now - self._answered.get(source, -self.settings.resend) < self.settings.resend // 2:
            return
        if len(self._answered) > 2 * _CANDIDATES + len(stream.members):
            self._answered.clear()
        self._answered[source] = now
        if source not in stream.members:
            self.out.send(source, Superseded(stream.view().id, source, self._causes.get(source, "")))
        elif not knows and self._decision is not None and self._decision.instance.view == view:
            self.out.send(source, self._decision)

    def _on_superseded(self, frame: Superseded) -> None:
        current = 0 if self.stream is None else self.stream.view().id
        if self.stream is not None and frame.member == self.me and current < frame.view < FAR:
            cause = frame.cause or "the others went on without this member"
            self._leave_for_good(Cause.SUPERSEDED, f"put out: {cause}")

    # Streams

    def _pump(self, stream: ViewStream) -> None:
        """Hand on what a stream wants from the world."""
        out = stream.out
        if out.sends:
            sends, out.sends = out.sends, []
            view = stream.view().id
            for dest, frame in sends:
                if isinstance(frame, Data | Request | Notice):
                    self.out.sends.append((dest, InView(view, frame)))
                else:
                    self.out.sends.append((dest, frame))
        if out.timers:
            if stream is self.stream:
                self.out.timers += out.timers
            out.timers = []
        if out.events:
            self.out.events += out.events
            out.events = []
