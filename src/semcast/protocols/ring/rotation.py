"""The token of one configuration at one member: what it does when the token comes (Amir 1995, 5.2.1).

Deviations: an idle ring does not spin, the first member holds the token until somebody wants it; where
little is sent, a visit may last a while, so that what comes next need not wait for the token; a token is
sent again until its receiver shows signs of life; the last packets of a visit may leave after the token
(the accelerated ring); a member whose delivery queue is full reports a lower `aru`, so that the ring
waits for it; one with more than a full queue says stop on the token, and as long as anybody does only those
send whose programs wait in `send` or close; nothing is sent in a configuration that the application has not
been given yet.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from semcast.core.heldback import HeldBack
from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.protocols.ring.flow import Flow
from semcast.protocols.ring.frames import Packet, Token, TokenWanted
from semcast.protocols.ring.leaving import Leaving
from semcast.protocols.ring.member import Member
from semcast.protocols.ring.ordering import RingOrder, Span
from semcast.protocols.ring.outlet import Outlet
from semcast.protocols.ring.passing import RingTimer, TokenPassing
from semcast.protocols.ring.pieces import multicast
from semcast.protocols.ring.sending import Sending
from semcast.protocols.ring.states import State

_STUCK: Nanos = MILLISECOND
_FEW = 4
"""Packets of a visit that leave before the token even on an accelerated ring."""
_BRIEF_VISIT = 64
"""Packets that a member sends one by one before it lets go of the token, at most."""
_HASTY_VISIT = 4
"""Of these, packets that may leave in less than `_HASTE` after the one before: who has more to send fills
packets while the token goes round."""
_HASTE: Nanos = MILLISECOND // 2
_LONG_VISIT = 10
"""Such a visit lasts for so many times `linger` at most; it ends before if nothing was sent for one."""
_SELDOM = 3
"""After so many times `linger` it is looked again whether anything was sent: each look costs a turn."""


class Rotation:
    """One configuration at work. A new one begins with everything at zero, so it is another object."""

    flow_kind: ClassVar[type[Flow]] = Flow

    def __init__(
        self,
        member: Member,
        order: RingOrder,
        passing: TokenPassing,
        sending: Sending,
        outlet: Outlet,
        leaving: Leaving,
    ) -> None:
        self.order = order
        self.alive = True
        """Whether the token still goes round, as far as this member knows."""
        self.held: Token | None = None
        self.stop = -1
        """The rank of who says stop, as far as this member knows; -1 for nobody."""
        self._member = member
        self._enough = member.enough
        self._settings = member.settings
        self._standing = member.standing
        self._out = member.out
        self._stats = member.stats
        self._passing = passing
        self._sending = sending
        self._outlet = outlet
        self._leaving = leaving
        self._flow = self.flow_kind(member.settings, len(order.members))
        self._window = member.settings.window_of(len(order.members))
        self._several = len(order.members) > 1
        self._closed_by = -1  # the rank of who had lowered `aru` when the window was closed
        self._lingered = 0  # packets sent since, which the token held counts already
        self._brief = min(_BRIEF_VISIT, member.settings.visit)
        self._hasty = 0  # of these, soon after the one before
        self._lingered_at: Nanos = 0  # when the last of them left
        self._linger_ends: Nanos = 0  # whatever there is to send
        self._idle = False  # when the token was here last, there was nothing new
        self._quiet = False  # nobody had sent anything for a rotation; some had yet to say that they have all
        self._last_seen: tuple[int, int, list[Span]] | None = None
        self._wanted = False  # asked for the token since the last visit
        self._wanted_at: Nanos = 0  # when it asked last
        self._asked = False  # was asked for it before it came

    def works(self) -> bool:
        """Whether the token is still this member's business."""
        return self.alive and self._standing.obeys

    # Packets

    def on_packets(self, now: Nanos, packets: Sequence[Packet]) -> None:
        """Packets of this configuration: what they complete is handed over together."""
        order, stats = self.order, self._stats
        plausible, before = order.plausible(packets), order.my_aru
        new = order.receive_all(plausible)
        stats.malformed += len(packets) - len(plausible)
        stats.duplicates += len(plausible) - new
        if new:
            self._passing.heard(now, order.highest_seq)
        if order.my_aru > before:
            self._outlet.pump(now, order)
        if self._settings.linger and (self._wanted or order.highest_seq > order.my_aru) and self.works():
            self._ask_for_token(now)  # who lingers does not know that something is missing here, or wanted

    # The token

    def on_token(self, now: Nanos, source: MemberId, token: Token) -> None:
        """The token came, or a copy of it, or something that looks like it."""
        order, passing = self.order, self._passing
        if token.number <= passing.number:
            passing.acknowledge(source, token)
            self._stats.stale += 1
            return
        if source != order.predecessor or not order.credible(token):
            self._stats.malformed += 1
            return
        if order.highest_seq > token.seq:
            self._stats.malformed += order.forget_above(token.seq)
        passing.accept(now, token)
        self.stop = self._stop_on(now, token)
        self._lingered = self._hasty = 0
        asked, hold = self._asked, self.hold_for(token)
        if hold:
            self.held = token
            passing.acknowledge(source, token)
            self._out.set_timer(RingTimer.HOLD, now + hold)
        elif not asked and self._lingers(token):
            self._send_held(now, token)
        else:
            if (
                self._idle and not self._has_to_send()
            ):  # no packet will tell, and the token may rest somewhere
                if token.fcc:
                    passing.acknowledge_later(now, source, token)
                else:
                    passing.acknowledge(source, token)
            self.visit(now, token)

    def fresh(self, source: MemberId, token: Token) -> bool:
        """Whether this is the token, as far as can be told."""
        order = self.order
        return token.number > self._passing.number and source == order.predecessor and order.credible(token)

    def hold_for(self, token: Token) -> Nanos:
        """How long the leader may hold an idle token."""
        stuck = token.fcc == 0 and (token.seq, token.aru, token.rtr) == self._last_seen
        self._last_seen = (token.seq, token.aru, token.rtr)
        # Everybody has everything; who waits for more than that has said so on the token.
        self._idle = token.seq == token.aru == self.order.my_aru and not token.rtr
        asked, self._asked = self._asked, False
        if self.order.rank != 0 or asked:
            return 0
        if self._idle:
            return self._settings.hold if self._pressing(token) < 0 and not self._has_to_send() else 0
        # Somebody's application holds the ring back: no use in going round at full speed.
        return min(self._settings.hold, _STUCK) if stuck else 0

    def _pressing(self, token: Token) -> int:
        """Who needs another rotation: it waits to know that everybody has something, or for room to send."""
        order, outlet = self.order, self._outlet
        waits = order.confirmed_aru < self._sending.last_safe
        if not outlet.due:
            waits = waits or order.delivered < order.my_aru
        if (waits and not outlet.rest) or self._leaving.cause is not None or self._has_to_send():
            return order.rank
        return -1 if token.pressing == order.rank else token.pressing

    def _has_to_send(self) -> bool:
        wanted = self._sending.queue.messages > 0 and self._outlet.seen and self._enough
        return wanted and not self._stopped()

    # A program that does not keep up

    def _stop_on(self, now: Nanos, token: Token) -> int:
        """Who says stop. Each that does puts itself there: who finds itself knows that nobody else does."""
        if self._outlet.stops(now):
            return self.order.rank
        return -1 if token.stop == self.order.rank else token.stop

    def _stopped(self) -> bool:
        """Whether this member must not send what it has, because more than a full queue waits somewhere."""
        stop = self.stop >= 0 if self._several else self._outlet.backlog.stops
        return stop and not self._comes_first()

    def _comes_first(self) -> bool:
        """Whether what is pending here goes before what is new.

        A program that waits in `send` reads only when that was sent, and one that closes adds nothing to it.
        """
        reader = self._member.reader
        return reader.waits or reader.closing or self._leaving.cause is not None

    def may_lift_stop(self) -> bool:
        """Whether this member has said stop, and needs the token to take that back."""
        return self.stop == self.order.rank and not self._outlet.backlog.stops

    def held_back(self) -> HeldBack | None:
        """Who or what keeps this member from sending what it has."""
        members, outlet = self.order.members, self._outlet
        if not self._sending.queue:
            return None
        if not outlet.seen:
            return HeldBack(self._member.me, "its program has not been given the configuration")
        if len(members) == 1:
            waits = bool(outlet.rest) or self._stopped()
            return HeldBack(self._member.me, "its program does not keep up") if waits else None
        if self._stopped():
            return HeldBack(members[self.stop], "its program does not keep up")
        if self._closed_by >= 0:
            return HeldBack(members[self._closed_by], "it lacks messages, or has no room for them")
        return None

    def visit(self, now: Nanos, token: Token) -> None:
        """What a member does while it has the token."""
        order, out, stats, outlet, flow = self.order, self._out, self._stats, self._outlet, self._flow
        size = self._settings.packet_bytes
        if outlet.due:
            outlet.pump(now, order)
        self.stop = self._stop_on(now, token)
        answers = order.answers(token.rtr, flow.limit) if token.rtr else []
        for packet in answers:
            stats.retransmitted += 1
            multicast(out, packet, size)
        lingered, self._lingered, self._hasty = self._lingered, 0, 0
        began = token.seq - lingered
        shared = token.pressing not in (-1, order.rank)
        room = flow.allowance(began, token.aru, token.fcc, shared=shared) - len(answers) - lingered
        closed = flow.closed(token.seq, token.aru)
        if room <= 0 and not closed and self._comes_first():
            room = 1
        packets = self._sending.number(order, token.seq, room) if room > 0 and self._has_to_send() else []
        full = closed or flow.full(began, token.aru, shared=shared)
        self._closed_by = token.lowered_by if full else -1
        seq = token.seq + len(packets)
        accelerated = self._settings.accelerated
        answered = {packet.seq for packet in answers}
        rtr = order.requests(token.rtr, answered, seq, accelerated=accelerated > 0)
        stats.requested += len(rtr)
        aru, lowered_by = order.lower_aru(token, seq, self._held_at())
        order.release(aru)
        sent = len(answers) + len(packets) + lingered
        fcc = flow.account(began, token.fcc, sent, seq, lost=bool(token.rtr))
        # A few are no burden to who gets the token, and it need not come back for them.
        early = len(packets) if len(packets) <= _FEW else max(0, len(packets) - accelerated)
        for packet in packets[:early]:
            multicast(out, packet, size)
        self._quiet = fcc == 0 and not rtr and seq == order.my_aru
        pressing = self._pressing(token)
        onward = Token(order.conf, token.number + 1, seq, aru, lowered_by, rtr, fcc, pressing, self.stop)
        self._passing.pass_on(now, order.successor, onward, seq)
        for packet in packets[early:]:
            multicast(out, packet, size)
        self._wanted = False
        if packets:
            outlet.due = True  # let them leave first
        else:
            outlet.pump(now, order)
        order.trim()
        self._sending.unblock()
        self.leave_if_done()

    def _held_at(self) -> int:
        """The highest `aru` this member admits to: less than it has while its application is far behind."""
        order = self.order
        return order.delivered + self._window // 2 if self._outlet.rest else order.my_aru

    def leave_if_done(self) -> None:
        """Leave, if that is wanted and everybody has what was sent here."""
        leaving, sending = self._leaving, self._sending
        if leaving.cause is None or sending.queue or leaving.gone:
            return
        if self.order.confirmed_aru >= sending.last_sent:
            leaving.go(self.order)

    # An idle ring

    def want_token(self, now: Nanos) -> None:
        """There is something to send, or to say: get the token if nobody else is using it."""
        wanted = self._has_to_send() or self._leaving.cause is not None or self.may_lift_stop()
        if not wanted or not self.works():
            return
        order, settings = self.order, self._settings
        if len(order.members) == 1:
            self._send_alone(now)
        elif self.held is not None:
            if self._lingers(self.held):
                self._send_held(now, self.held)
            else:
                self.release_held(now)
        elif order.rank != 0 or settings.linger:
            self._ask_for_token(now)

    def _ask_for_token(self, now: Nanos) -> None:
        """Once, or again where it may have been lost; and only if the token may rest somewhere."""
        linger = self._settings.linger
        again = linger > 0 and now - self._wanted_at >= linger
        if not (self._idle or self._quiet) or self.held is not None or (self._wanted and not again):
            return
        self._wanted, self._wanted_at = True, now
        wish = TokenWanted(self.order.conf)
        if linger:  # whoever has sent something lately may have it
            self._out.multicast(wish)
        else:
            self._out.send(self.order.members[0], wish)

    def on_token_wanted(self, now: Nanos) -> None:
        """Somebody has something to send: let go of the token, or of the next one."""
        self._asked = self.held is None
        self.release_held(now)

    def on_hold_timer(self, now: Nanos) -> None:
        """Go on with the token, unless it is in use."""
        linger = self._settings.linger
        in_use = self.held is not None and self._lingered and now - self._lingered_at < linger
        if in_use and now < self._linger_ends:
            self._out.set_timer(RingTimer.HOLD, min(now + _SELDOM * linger, self._linger_ends))
        else:
            self.release_held(now)

    def hurry(self, now: Nanos) -> None:
        """Somebody here waits to know that all have what was sent: the token must not stay."""
        if self.order.confirmed_aru < self._sending.last_safe:
            self.release_held(now)

    def _lingers(self, token: Token) -> bool:
        """Whether what there is to send may leave at once, and the token stay for what comes next.

        Not where somebody waits for the token to go round.
        """
        return (
            self._settings.linger > 0
            and self._idle
            and self._lingered < self._brief
            and self._hasty < _HASTY_VISIT
            and token.pressing in (-1, self.order.rank)
            and self.order.confirmed_aru >= self._sending.last_safe
            and self._leaving.cause is None
            and self._has_to_send()
            and self._sending.queue.brief
        )

    def _send_held(self, now: Nanos, token: Token) -> None:
        """A visit that has begun, and goes on for a while."""
        packets = self._sending.number(self.order, token.seq, 1)
        multicast(self._out, packets[0], self._settings.packet_bytes)
        if not self._lingered:
            settings = self._settings
            self._linger_ends = now + min(_LONG_VISIT * settings.linger, settings.token_loss // 4)
            self._out.set_timer(RingTimer.HOLD, now + settings.linger)
        elif now - self._lingered_at < _HASTE:
            self._hasty += 1
        self._lingered += 1
        self._lingered_at = now
        self.held = msgspec.structs.replace(token, seq=token.seq + 1)
        self._wanted = False
        self._outlet.due = True
        self._sending.unblock()

    def release_held(self, now: Nanos) -> None:
        """Go on with the token, if it is here."""
        if self.held is not None:
            token, self.held = self.held, None
            if self.works():
                self.visit(now, token)

    def _send_alone(self, now: Nanos) -> None:
        """In a ring of one, everybody has everything at once."""
        if self._standing.state is not State.OPERATIONAL:
            return
        order, sending, outlet = self.order, self._sending, self._outlet
        while self._has_to_send() and not outlet.rest:
            sending.number(order, order.my_aru, self._settings.visit)
            order.confirmed_aru = order.my_aru
            outlet.pump(now, order)
            order.trim()
        sending.unblock()
        self.leave_if_done()
