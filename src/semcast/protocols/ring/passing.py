"""A token on its way: it is sent again until there is a sign that it arrived."""

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Timer
from semcast.protocols.ring.frames import FormToken, RecoveryToken, Token, TokenAck
from semcast.protocols.ring.member import Member
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

    def __init__(self, member: Member) -> None:
        self.number = 0
        """Of the last token that was taken: who comes with this or less brings a copy."""
        self.heard_at: Nanos = 0
        """When there was a sign of life of the ring."""
        self._me = member.me
        self._settings = member.settings
        self._out = member.out
        self._stats = member.stats
        self._outgoing: tuple[MemberId, AnyToken] | None = None
        self._outgoing_seq = 0
        self._retransmit_at: Nanos = 0
        self._retransmit_planned = False

    def follow(self, now: Nanos, token: AnyToken) -> None:
        """The first token of an attempt to form a ring: its numbers count from now on."""
        self.number = token.number
        self.heard_at = now

    def accept(self, now: Nanos, token: AnyToken) -> None:
        """The token came: the one that was passed on before has arrived."""
        self.number = self._stats.token_hops = token.number
        self.heard_at = now
        self._outgoing = None

    def acknowledge(self, source: MemberId, token: AnyToken) -> None:
        """Tell who passed the token that it is here."""
        if source != self._me:
            conf = token.form_id if isinstance(token, FormToken) else token.conf
            self._stats.control_frames += 1
            self._out.send(source, TokenAck(conf, token.number))

    def pass_on(self, now: Nanos, dest: MemberId, token: AnyToken, seq: int = MAX_SEQ) -> None:
        """Send a token on, and again until there is a sign that it arrived.

        A packet with a number above `seq` is one: only who has the regular token gives out numbers.
        """
        self._outgoing, self._outgoing_seq = (dest, token), seq
        self._out.send(dest, token)
        self._retransmit_at = now + self._settings.retransmit
        if not self._retransmit_planned:
            self._retransmit_planned = True
            self._out.set_timer(RingTimer.RETRANSMIT, self._retransmit_at)

    def heard(self, now: Nanos, highest_seq: int) -> None:
        """Packets came that were not here before."""
        self.heard_at = now
        if self._outgoing is not None and highest_seq > self._outgoing_seq:
            self._outgoing = None

    def forget(self) -> None:
        """The ring broke: nobody needs the token that is under way."""
        self._outgoing = None

    def on_retransmit_timer(self, now: Nanos) -> None:
        """Send the token again, unless it has arrived."""
        self._retransmit_planned = False
        if self._outgoing is None:
            return
        if now >= self._retransmit_at:
            self._stats.control_frames += 1
            self._out.send(*self._outgoing)
            self._retransmit_at = now + self._settings.retransmit
        self._retransmit_planned = True
        self._out.set_timer(RingTimer.RETRANSMIT, self._retransmit_at)

    def on_ack(self, frame: TokenAck) -> None:
        """The token arrived."""
        if self._outgoing is not None:
            token = self._outgoing[1]
            conf = token.form_id if isinstance(token, FormToken) else token.conf
            if (conf, token.number) == (frame.conf, frame.number):
                self._outgoing = None
                if self._retransmit_planned:
                    self._retransmit_planned = False
                    self._out.cancel_timer(RingTimer.RETRANSMIT)
