"""A member of a ring that works: it sends when it has the token, and delivers in order (5.2.1).

Deviations: an idle ring does not spin, the first member holds the token until somebody wants it; where
little is sent, a visit may last a while, so that what comes next need not wait for the token; a token is
sent again until its receiver shows signs of life; the last packets of a visit may leave after the token
(the accelerated ring); a member whose delivery queue is full reports a lower `aru`, so that the ring
waits for it; nothing is sent in a configuration that the application has not seen yet.
"""

from collections import Counter, deque
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from random import Random

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.events import Blocked, Delivery, Left, Sent, Unblocked, ViewChange
from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.views import View
from semcast.obsolescence import Purging
from semcast.protocols.ring.delivery import DeliveryQueue, Lateness
from semcast.protocols.ring.flow import Flow
from semcast.protocols.ring.frames import (
    ConfId,
    Leave,
    Packet,
    Part,
    Token,
    TokenWanted,
)
from semcast.protocols.ring.ordering import RingOrder, Span
from semcast.protocols.ring.packing import Assembly, SendQueue, batches_of
from semcast.protocols.ring.passing import RingTimer, TokenPassing
from semcast.protocols.ring.settings import RingSettings, SlowPolicy
from semcast.protocols.ring.states import MOVES, Cause, State
from semcast.wire.limits import MAX_PAYLOAD, check_annotations

_STUCK: Nanos = MILLISECOND
_FEW = 4
"""Packets of a visit that leave before the token even on an accelerated ring."""
_BRIEF_VISIT = 16
"""Packets that a member sends one by one before it lets go of the token."""


class OperationalRing(TokenPassing):
    """The part of a member that needs no membership algorithm."""

    def __init__(self, me: MemberId, settings: RingSettings, rng: Random, out: Outbox) -> None:
        super().__init__(me, settings, out)
        self.state = State.OPERATIONAL
        self.moves: Counter[tuple[State, Cause]] = Counter()
        self.alive = True
        """Whether the token of this configuration still goes round, as far as this member knows."""
        self.highest = 1
        """The highest number of any configuration this member has heard of."""
        self.order = self._order(self._conf_id(self.highest), (me,))
        self._rng = rng
        purging = Purging.OFF if settings.policy is SlowPolicy.BLOCK else Purging.LAZY
        self._queue = self._delivery_queue(purging)
        self._sends = SendQueue(settings.packet_bytes, settings.send_messages, settings.send_bytes)
        self._rest: deque[Batch] = deque()  # delivered by the ring, and no room in the queue yet
        self._assembly = Assembly(settings.max_message)
        self._flow = Flow(settings, 1)
        self._due = False  # there may be something to pump
        self._seen = False  # the application knows of this configuration
        self._blocked = False
        self._full_since: Nanos | None = None
        self._lateness = Lateness(settings.lag)
        self._left: set[MemberId] = set()
        self._last_sent = 0
        self._last_safe = 0
        self._leaving: str | None = None
        # Tokens
        self._held: Token | None = None
        self._lingered = 0  # packets sent since, which the token held counts already
        self._idle = False  # when the token was here last, there was nothing new
        self._last_seen: tuple[int, int, list[Span]] | None = None
        self._wanted = False  # asked for the token since the last visit
        self._asked = False  # was asked for it before it came

    # What it is made of

    def _conf_id(self, number: int) -> ConfId:
        """A name for a configuration that nobody ever gave to another one."""
        return ConfId(number, self.me)

    def _order(self, conf: ConfId, members: tuple[MemberId, ...]) -> RingOrder:
        return RingOrder(conf, members, self.me, self.settings.window)

    def _delivery_queue(self, purging: Purging) -> DeliveryQueue:
        return DeliveryQueue(self.settings.queue_messages, purging)

    # Inputs of the application

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Queue for the next visit of the token what there is room for."""
        if annotation is not None and len(payloads) != 1:
            raise ValueError("an annotation speaks for exactly one payload")
        return self.multicast_each(now, payloads, None if annotation is None else [annotation], safe=safe)

    def multicast_each(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation] | None,
        *,
        safe: bool = False,
    ) -> int:
        """The same for messages of which each has an annotation."""
        if self.state is State.LEFT or self._leaving is not None:
            raise ValueError(f"{self.me} has left the group")
        self._check(payloads, annotations)
        accepted = self._sends.add(payloads, annotations, safe=safe)
        if accepted < len(payloads) and not self._blocked:
            self._blocked = True
            self.stats.blocked += 1
            self.out.deliver(Blocked())
        if accepted:
            self._want_token(now)
        return accepted

    def _check(self, payloads: Sequence[bytes], annotations: Sequence[Annotation] | None) -> None:
        longest = max(map(len, payloads), default=0)
        if longest > self.settings.max_message:
            raise ValueError(f"payload of {longest} bytes: max_message is {self.settings.max_message}")
        if annotations is not None:
            if len(annotations) != len(payloads):
                raise ValueError(f"{len(annotations)} annotations for {len(payloads)} payloads")
            check_annotations(min(longest, MAX_PAYLOAD // 2), annotations)

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        """Hand over messages and configuration changes, in order."""
        if self._due:
            self._pump(now)
        queue = self._queue
        taken = queue.pop(most, behind=self._lateness.behind(now))
        delivered = 0
        for each in taken:
            if type(each) is Batch:
                delivered += len(each.payloads)
            elif isinstance(each, ViewChange) and each.view.representative == self.order.conf.representative:
                self._seen = self._seen or each.view.id == self.order.conf.number
        self.stats.delivered += delivered
        self._lateness.took(now, delivered, len(queue))
        if self._rest:
            self._pump(now)
        else:
            self._give_receipts()
        if self._sends:
            self._want_token(now)
        return taken

    def deliverable(self) -> bool:
        """Whether `deliver` would hand over anything."""
        return self._due or bool(self._queue)

    def buffered(self) -> int:
        """Messages in the queues, and packets kept for others."""
        return (
            len(self._queue)
            + self._sends.messages
            + len(self.order.store)
            + sum([len(batch.payloads) for batch in self._rest])
        )

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        """Leave once everybody has what was sent here, or soon after."""
        if self.state is State.LEFT or self._leaving is not None:
            return
        self._leaving = cause
        self.out.set_timer(RingTimer.LEAVE, now + self.settings.token_loss)
        self._want_token(now)
        self._leave_if_done()

    def _leave_if_done(self) -> None:
        if self._leaving is None or self._sends or self.state is State.LEFT:
            return
        if self.order.confirmed_aru >= self._last_sent:
            self._go()

    def _go(self) -> None:
        assert self._leaving is not None
        self.out.announce(Leave(self.order.conf))
        self._shift_to(State.LEFT, Cause.LEAVING)
        self.out.deliver(Left(self._leaving))

    # States

    def _shift_to(self, state: State, cause: Cause) -> None:
        assert MOVES.get((self.state, cause)) is state, f"{self.state} -> {state} because of {cause}"
        self.moves[self.state, cause] += 1
        self.state = state

    def _ring_works(self) -> bool:
        """Whether the token of the current configuration is still this member's business."""
        return self.alive and self.state in (State.OPERATIONAL, State.GATHER, State.COMMIT)

    # Packets

    def _on_packet(self, now: Nanos, packet: Packet) -> None:
        self._on_packets(now, (packet,))

    def _on_packets(self, now: Nanos, packets: Sequence[Packet]) -> None:
        """Packets of this configuration: what they complete is handed over together."""
        order, stats = self.order, self.stats
        plausible, before = order.plausible(packets), order.my_aru
        new = order.receive_all(plausible)
        stats.malformed += len(packets) - len(plausible)
        stats.duplicates += len(plausible) - new
        if new:
            self._heard_at = now
            if self._outgoing is not None and order.highest_seq > self._outgoing_seq:
                self._outgoing = None  # only a regular token has a number to be above
        if order.my_aru > before:
            self._pump(now)

    def _pump(self, now: Nanos) -> None:
        """Hand the queue whatever is in order, and safe where that was asked for."""
        self._due = False
        if self.state in (State.FORM, State.EVS):
            return  # what is delivered from here on is decided together
        if not len(self._queue):
            self._lateness.took(now, 0, 0)
        order, rest, queue = self.order, self._rest, self._queue
        while True:
            while rest:
                batch = rest[0]
                taken = queue.add(batch, behind=self._lateness.behind(now))
                if taken < len(batch.payloads):
                    if taken:
                        rest[0] = batch.cut(batch.first + taken, batch.last)
                    self._full(now)
                    self._give_receipts()
                    return
                rest.popleft()
            sender, parts = order.ripe(queue.room)
            if not parts:
                break
            batches = self._assembly.batches(order.members[sender], parts)
            if sum([len(batch.payloads) for batch in batches]) <= queue.room:
                queue.extend(batches)
            else:
                rest += batches
        self._full_since = None
        self._give_receipts()

    def _full(self, now: Nanos) -> None:
        if self._full_since is None:
            self._full_since = now
            if self.settings.policy is SlowPolicy.LEAVE and self._leaving is None:
                self.out.set_timer(RingTimer.LEAVE, now + self.settings.leave_after)

    def _on_leave_timer(self, now: Nanos) -> None:
        if self._leaving is not None:
            self._go()
        elif self._full_since is not None and now - self._full_since >= self.settings.leave_after:
            self._leaving = f"the application has not kept up for {self.settings.leave_after // 1_000_000} ms"
            self._go()

    def _give_receipts(self) -> None:
        receipts = self._queue.take_receipts()
        if receipts:
            self.stats.purged_delivery += len(receipts)
            self.out.events += receipts
        self.stats.malformed += self._assembly.refused
        self._assembly.refused = 0

    # The token

    def _on_token(self, now: Nanos, source: MemberId, token: Token) -> None:
        if token.number <= self._token_number:
            self._acknowledge(source, token)
            self.stats.stale += 1
            return
        if source != self.order.predecessor or not self.order.credible(token):
            self.stats.malformed += 1
            return
        if self.order.highest_seq > token.seq:
            self.stats.malformed += self.order.forget_above(token.seq)
        self._accept(now, token)
        self._lingered = 0
        asked, hold = self._asked, self._hold_for(token)
        if hold:
            self._held = token
            self._acknowledge(source, token)
            self.out.set_timer(RingTimer.HOLD, now + hold)
        elif not asked and self._idle and self._lingers():
            self._send_held(now, token)
        else:
            if self._idle and not self._has_to_send():
                self._acknowledge(source, token)  # no packet will tell, and the token may rest somewhere
            self._visit(now, token)

    def _hold_for(self, token: Token) -> Nanos:
        """How long the first member waits for better times before it passes on a token with nothing new."""
        stuck = token.fcc == 0 and (token.seq, token.aru, token.rtr) == self._last_seen
        self._last_seen = (token.seq, token.aru, token.rtr)
        # Everybody has everything; who waits for more than that has said so on the token.
        self._idle = token.seq == token.aru == self.order.my_aru and not token.rtr
        asked, self._asked = self._asked, False
        if self.order.rank != 0 or asked:
            return 0
        if self._idle:
            return self.settings.hold if self._pressing(token) < 0 and not self._has_to_send() else 0
        # Somebody's application holds the ring back: no use in going round at full speed.
        return min(self.settings.hold, _STUCK) if stuck else 0

    def _pressing(self, token: Token) -> int:
        """Who needs another rotation: somebody waits to know that everybody has something."""
        order = self.order
        waits = order.confirmed_aru < self._last_safe if self._due else order.delivered < order.my_aru
        if (waits and not self._rest) or self._leaving is not None:
            return order.rank
        return -1 if token.pressing == order.rank else token.pressing

    def _has_to_send(self) -> bool:
        return self._seen and bool(self._sends)

    def _needs_token(self) -> bool:
        return self._has_to_send() or self._leaving is not None

    def _visit(self, now: Nanos, token: Token) -> None:
        """What a member does while it has the token."""
        order, out = self.order, self.out
        if self._due:
            self._pump(now)
        answers = order.answers(token.rtr, self._flow.limit) if token.rtr else []
        for packet in answers:
            self.stats.retransmitted += 1
            out.multicast(packet)
        lingered, self._lingered = self._lingered, 0
        began = token.seq - lingered
        room = self._flow.allowance(began, token.aru, token.fcc) - len(answers) - lingered
        packets = self._number(token.seq, room) if room > 0 and self._has_to_send() else []
        seq = token.seq + len(packets)
        accelerated = self.settings.accelerated
        answered = {packet.seq for packet in answers}
        rtr = order.requests(token.rtr, answered, seq, accelerated=accelerated > 0)
        self.stats.requested += len(rtr)
        aru, lowered_by = order.lower_aru(token, seq, self._held_at())
        order.release(aru)
        sent = len(answers) + len(packets) + lingered
        fcc = self._flow.account(began, token.fcc, sent, seq, lost=bool(token.rtr))
        # A few are no burden to who gets the token, and it need not come back for them.
        early = len(packets) if len(packets) <= _FEW else max(0, len(packets) - accelerated)
        for packet in packets[:early]:
            out.multicast(packet)
        pressing = self._pressing(token)
        onward = Token(order.conf, token.number + 1, seq, aru, lowered_by, rtr, fcc, pressing)
        self._pass(now, order.successor, onward, seq)
        for packet in packets[early:]:
            out.multicast(packet)
        self._wanted = False
        if packets:
            self._due = True  # let them leave first
        else:
            self._pump(now)
        order.trim()
        self._unblock()
        self._leave_if_done()

    def _held_at(self) -> int:
        """The highest `aru` this member admits to: less than it has while its application is far behind."""
        return self.order.delivered + self.settings.window // 2 if self._rest else self.order.my_aru

    def _number(self, seq: int, most: int) -> list[Packet]:
        """Give numbers to the next packets, and keep them."""
        order = self.order
        conf, rank = order.conf, order.rank
        drafts = self._sends.pop(most)
        packets = [
            Packet(conf, number, rank, draft.safe, draft.parts)
            for number, draft in enumerate(drafts, seq + 1)
        ]
        order.receive_all(packets)
        self._last_sent = seq + len(packets)
        if any(draft.safe for draft in drafts):
            self._last_safe = self._last_sent
        for safe, run in groupby(drafts, key=attrgetter("safe")):
            self._tell_sent([part for draft in run for part in draft.whole], safe=safe)
        return packets

    def _tell_sent(self, parts: Sequence[Part], *, safe: bool) -> None:
        for batch in batches_of(self.me, parts):
            self.stats.sent += len(batch.payloads)
            self.out.deliver(Sent(batch, self.order.conf.number, safe))

    def _unblock(self) -> None:
        if self._blocked and self._sends.messages < self.settings.send_messages:
            self._blocked = False
            self.out.deliver(Unblocked())

    # An idle ring

    def _want_token(self, now: Nanos) -> None:
        """There is something to send: get the token if nobody else is using it."""
        if not self._needs_token() or not self._ring_works():
            return
        if len(self.order.members) == 1:
            self._send_alone(now)
        elif self._held is not None:
            if self._idle and self._lingers():
                self._send_held(now, self._held)
            else:
                self._release_held(now)
        elif self._idle and not self._wanted and (self.order.rank != 0 or self.settings.linger):
            self._wanted = True
            if self.settings.linger:  # whoever has sent something lately may have it
                self.out.multicast(TokenWanted(self.order.conf))
            else:
                self.out.send(self.order.members[0], TokenWanted(self.order.conf))

    def _lingers(self) -> bool:
        """Whether what there is to send may leave at once, and the token stay for what comes next."""
        return (
            self.settings.linger > 0
            and self._lingered < _BRIEF_VISIT
            and self._leaving is None
            and self._has_to_send()
            and self._sends.brief
        )

    def _send_held(self, now: Nanos, token: Token) -> None:
        """A visit that has begun, and goes on for a while."""
        packets = self._number(token.seq, 1)
        self.out.multicast(packets[0])
        if not self._lingered:
            self.out.set_timer(RingTimer.HOLD, now + self.settings.linger)
        self._lingered += 1
        self._held = msgspec.structs.replace(token, seq=token.seq + 1)
        self._wanted = False
        self._due = True
        self._unblock()

    def _release_held(self, now: Nanos) -> None:
        if self._held is not None:
            token, self._held = self._held, None
            if self._ring_works() and token.conf == self.order.conf:
                self._visit(now, token)

    def _send_alone(self, now: Nanos) -> None:
        """In a ring of one, everybody has everything at once."""
        if self.state is not State.OPERATIONAL:
            return
        order = self.order
        while self._sends and not self._rest:
            self._number(order.my_aru, self.settings.visit)
            order.confirmed_aru = order.my_aru
            self._pump(now)
            order.trim()
        self._unblock()
        self._leave_if_done()

    def view(self) -> View:
        """The current configuration. The application may not have taken all that comes before it."""
        conf = self.order.conf
        return View(conf.number, self.order.members, representative=conf.representative)
