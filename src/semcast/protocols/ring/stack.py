"""The ring as a stack: every input goes to the handler of its event."""

from collections.abc import Sequence

from semcast.core.events import ViewChange
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Timer
from semcast.core.stack import Stack
from semcast.protocols.ring.frames import (
    AttemptJoin,
    FormToken,
    Join,
    Leave,
    Packet,
    Presence,
    RecoveryToken,
    Token,
    TokenAck,
    TokenWanted,
)
from semcast.protocols.ring.membership import FAR, MembershipRing
from semcast.protocols.ring.passing import RingTimer
from semcast.protocols.ring.states import Cause, State


class Ring(MembershipRing, Stack):
    """One member of a group with dynamic membership: agreed and safe order, through partitions and merges.

    It starts alone in a configuration of its own and looks for others.
    """

    def start(self, now: Nanos) -> None:
        """Deliver the configuration of one, and shift to Gather."""
        self._queue.change(ViewChange(self.view(), joined=(self.me,)))
        self._heard_at = now
        self._plan_token_loss(now)
        self.out.set_timer(RingTimer.PRESENCE, now + self._rng.randrange(self.settings.presence))
        self._gather(now, Cause.STARTED)
        if self.settings.search > self.settings.gather:
            self._searching = True
            self.out.set_timer(RingTimer.GATHER, now + self.settings.search)

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """Dispatch; what no correct member sends is dropped and counted."""
        if source == self.me or self.state is State.LEFT:
            self.stats.stale += 1
        elif isinstance(frame, Packet):
            self._on_any_packet(now, source, frame)
        elif isinstance(frame, Token):
            self._on_regular_token(now, source, frame)
        elif isinstance(frame, TokenAck):
            self._on_ack(frame)
        elif isinstance(frame, TokenWanted):
            self._on_token_wanted(now, source, frame)
        elif isinstance(frame, RecoveryToken):
            self._on_recovery_token(now, source, frame)
        elif isinstance(frame, FormToken):
            self._on_form_token(now, source, frame)
        elif not self._sensible(frame):
            self.stats.malformed += 1
        elif isinstance(frame, Join):
            self._on_join(now, source, frame)
        elif isinstance(frame, AttemptJoin):
            self._on_attempt_join(now, source, frame)
        elif isinstance(frame, Presence):
            self._on_presence(now, source, frame)
        elif isinstance(frame, Leave):
            self._on_leave(now, source, frame)

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Several in a row from one member: packets among them are handled together."""
        conf, packets = self.order.conf, []
        known = source in self.order.members and source != self.me and self.state is not State.LEFT
        for frame in frames:
            if known and type(frame) is Packet and frame.conf == conf:
                packets.append(frame)
                continue
            if packets:
                self._on_packets(now, packets)
                packets = []
            self.on_frame(now, source, frame)
            conf = self.order.conf
            known = source in self.order.members and source != self.me and self.state is not State.LEFT
        if packets:
            self._on_packets(now, packets)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Dispatch."""
        if self.state is State.LEFT:
            return
        if timer is RingTimer.RETRANSMIT:
            self._on_retransmit_timer(now)
        elif timer is RingTimer.HOLD:
            self._release_held(now)
        elif timer is RingTimer.TOKEN_LOSS:
            self._on_token_loss_timer(now)
        elif timer is RingTimer.PRESENCE:
            self._on_presence_timer(now)
        elif timer is RingTimer.GATHER:
            self._on_gather_timer(now)
        elif timer is RingTimer.JOIN:
            self._on_join_timer(now)
        elif timer is RingTimer.COMMIT:
            self._on_commit_timer(now)
        else:
            assert timer is RingTimer.LEAVE
            self._on_leave_timer(now)

    def phase(self) -> str:
        """The state of the membership algorithm."""
        return self.state.value

    def _on_any_packet(self, now: Nanos, source: MemberId, packet: Packet) -> None:
        if packet.conf == self.order.conf:
            if source in self.order.members:
                self._on_packet(now, packet)
            else:
                self.stats.malformed += 1
        elif self._ring is not None and packet.conf == self._ring.conf:
            # Somebody has installed already; so will this member.
            if source in self._ring.members and self._ring.plausible((packet,)):
                self._ring.receive(packet)
            else:
                self.stats.malformed += 1
        elif self._believable(packet.conf) and source not in self.order.members:
            self._notice(now, source, packet.conf)
        else:
            self.stats.stale += 1

    def _on_regular_token(self, now: Nanos, source: MemberId, token: Token) -> None:
        if token.conf == self.order.conf and self._ring_works():
            if token.seq < self.order.delivered and self._fresh(source, token):
                # Somebody passed off a packet under a number that no token gave out: begin anew.
                self.stats.malformed += 1
                self._on_token_loss(now)
            else:
                self._on_token(now, source, token)
        elif self._ring is not None and token.conf == self._ring.conf and self._promised:
            # Only who found everybody finished sends this.
            if token.number > self._token_number and source == self._ring.predecessor:
                self._install(now)
                self._on_token(now, source, token)
            else:
                self._acknowledge(source, token)
        else:
            self.stats.stale += 1

    def _fresh(self, source: MemberId, token: Token) -> bool:
        """Whether this is the token, as far as can be told."""
        order = self.order
        return token.number > self._token_number and source == order.predecessor and order.credible(token)

    def _on_token_wanted(self, now: Nanos, source: MemberId, frame: TokenWanted) -> None:
        if frame.conf == self.order.conf and source in self.order.members:
            self._asked = self._held is None
            self._release_held(now)
        else:
            self.stats.stale += 1

    def _sensible(self, frame: Frame) -> bool:
        """Whether the numbers of a membership frame can be true."""
        if isinstance(frame, Join | AttemptJoin):
            return self._believable(frame.conf) and frame.highest <= self.highest + FAR
        return isinstance(frame, Presence | Leave) and self._believable(frame.conf)

    # Timers of the ring as a whole

    def _plan_token_loss(self, at: Nanos) -> None:
        self.out.set_timer(RingTimer.TOKEN_LOSS, at + self.settings.token_loss)

    def _on_token_loss_timer(self, now: Nanos) -> None:
        """Looked at once per timeout, so that nothing has to be set anew for each packet."""
        alone = len(self.order.members) == 1 and self.state not in (State.FORM, State.EVS)
        if alone:
            self._heard_at = now
        if now - self._heard_at >= self.settings.token_loss:
            self._heard_at = now
            self._on_token_loss(now)
        self._plan_token_loss(self._heard_at)

    def _on_presence_timer(self, now: Nanos) -> None:
        if self._may_merge():
            self.stats.control_frames += 1
            self.out.announce(Presence(self.order.conf))
        spread = self.settings.presence // 4 + 1
        self.out.set_timer(RingTimer.PRESENCE, now + self.settings.presence + self._rng.randrange(spread))
