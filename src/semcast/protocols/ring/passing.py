"""A token on its way: it is sent again until there is a sign that it arrived."""

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox, Timer
from semcast.core.statistics import Statistics
from semcast.protocols.ring.frames import FormToken, RecoveryToken, Token, TokenAck
from semcast.protocols.ring.settings import RingSettings
from semcast.wire.limits import MAX_SEQ

AnyToken = Token | RecoveryToken | FormToken


class RingTimer(Timer):
    """What the ring waits for."""

    TOKEN_LOSS = "token loss"  # noqa: S105
    RETRANSMIT = "retransmit"
    HOLD = "hold"
    GATHER = "gather"
    JOIN = "join"
    COMMIT = "commit"
    PRESENCE = "presence"
    LEAVE = "leave"


class TokenPassing:
    """The part of a member that hands tokens on, whatever is on them."""

    def __init__(self, me: MemberId, settings: RingSettings, out: Outbox) -> None:
        self.me = me
        self.settings = settings
        self.out = out
        self.stats = Statistics()
        self._token_number = 0
        self._outgoing: tuple[MemberId, AnyToken] | None = None
        self._outgoing_seq = 0
        self._retransmit_at: Nanos = 0
        self._retransmit_planned = False
        self._heard_at: Nanos = 0

    def _accept(self, now: Nanos, token: AnyToken) -> None:
        self._token_number = self.stats.token_hops = token.number
        self._heard_at = now
        self._outgoing = None

    def _acknowledge(self, source: MemberId, token: AnyToken) -> None:
        if source != self.me:
            conf = token.form_id if isinstance(token, FormToken) else token.conf
            self.stats.control_frames += 1
            self.out.send(source, TokenAck(conf, token.number))

    def _pass(self, now: Nanos, dest: MemberId, token: AnyToken, seq: int = MAX_SEQ) -> None:
        """Send a token on, and again until there is a sign that it arrived."""
        self._outgoing, self._outgoing_seq = (dest, token), seq
        self.out.send(dest, token)
        self._retransmit_at = now + self.settings.retransmit
        if not self._retransmit_planned:
            self._retransmit_planned = True
            self.out.set_timer(RingTimer.RETRANSMIT, self._retransmit_at)

    def _on_retransmit_timer(self, now: Nanos) -> None:
        self._retransmit_planned = False
        if self._outgoing is None:
            return
        if now >= self._retransmit_at:
            self.stats.control_frames += 1
            self.out.send(*self._outgoing)
            self._retransmit_at = now + self.settings.retransmit
        self._retransmit_planned = True
        self.out.set_timer(RingTimer.RETRANSMIT, self._retransmit_at)

    def _on_ack(self, frame: TokenAck) -> None:
        if self._outgoing is not None:
            token = self._outgoing[1]
            conf = token.form_id if isinstance(token, FormToken) else token.conf
            if (conf, token.number) == (frame.conf, frame.number):
                self._outgoing = None
                if self._retransmit_planned:
                    self._retransmit_planned = False
                    self.out.cancel_timer(RingTimer.RETRANSMIT)
