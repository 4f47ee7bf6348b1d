"""A token on its way: it is sent again until there is a sign that it arrived."""

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Timer
from semcast.protocols.ring.frames import FormToken, RecoveryToken, Token, TokenAck
from semcast.protocols.ring.member import Member
from semcast.protocols.ring.pieces import in_pieces
from semcast.wire.limits import MAX_SEQ

SLOWEST = 10
"""Times `token_loss` that a ring which is slow, and not lost, may take at most."""
FIRST_ROUNDS = 8
"""Rotations after which it is known how long they take."""
AT_A_TIME = 8
"""Members that agree, and get the token round, in the time that was set; so many more take as long again."""
LARGE = 4
"""And so many times as long at most: ghosts cost time, but not all of it."""
LONGEST_PAUSE = 8
"""Times `retransmit` between two copies of a token, at most."""

AnyToken = Token | RecoveryToken | FormToken


class RingTimer(Timer):
    """What the ring waits for."""

    TOKEN_LOSS = "token loss"  # noqa: S105
    RETRANSMIT = "retransmit"
    ACK = "ack"
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
        self.rotation: Nanos = 0
        """How long the token takes to come round: the slowest of late."""
        self._accepted_at: Nanos | None = None
        self._rounds = 0  # of this configuration
        self._outgoing: tuple[MemberId, AnyToken] | None = None
        self._passed_at: Nanos = 0
        self._outgoing_seq = 0
        self._retransmit_at: Nanos = 0
        self._planned: Nanos | None = None  # when the timer is due
        self._owed: tuple[MemberId, Token] | None = None  # who has yet to learn that a token is here
        self._owed_at: Nanos = 0
        self._to_pay = False  # the timer for that is set

    def follow(self, now: Nanos, token: AnyToken) -> None:
        """The first token of an attempt to form a ring: its numbers count from now on."""
        self.number = token.number
        self.heard_at = now
        self._accepted_at = None
        self._rounds = 0

    def accept(self, now: Nanos, token: AnyToken) -> None:
        """The token came: the one that was passed on before has arrived."""
        self.number = self._stats.token_hops = token.number
        self.heard_at = now
        self._outgoing = self._owed = None
        if self._accepted_at is not None:
            self.rotation = max(now - self._accepted_at, self.rotation - (self.rotation >> 4))
            self._rounds += 1
        self._accepted_at = now

    def patience(self, size: int) -> Nanos:
        """How long a working ring of so many may give no sign of life.

        Three rotations, where they take that long. As long as hardly any was seen, the size must tell.
        """
        loss = self._settings.token_loss
        least = stretched(loss, size) if self._rounds < FIRST_ROUNDS else loss
        return max(least, min(3 * self.rotation, SLOWEST * loss))

    def acknowledge(self, source: MemberId, token: AnyToken) -> None:
        """Tell who passed the token that it is here."""
        if source != self._me:
            conf = token.form_id if isinstance(token, FormToken) else token.conf
            self._stats.control_frames += 1
            self._out.send(source, TokenAck(conf, token.number))

    def acknowledge_later(self, now: Nanos, source: MemberId, token: Token) -> None:
        """The same, before that member would send it again, unless it learns it by what is sent meanwhile."""
        self._owed, self._owed_at = (source, token), now + self._settings.retransmit // 2
        if not self._to_pay:
            self._to_pay = True
            self._out.set_timer(RingTimer.ACK, self._owed_at)

    def on_ack_timer(self, now: Nanos) -> None:
        """Looked at once in a while, so that nothing has to be set anew for each token."""
        self._to_pay = self._owed is not None and now < self._owed_at
        if self._to_pay:
            self._out.set_timer(RingTimer.ACK, self._owed_at)
        elif self._owed is not None:
            self.acknowledge(*self._owed)
            self._owed = None

    def pass_on(self, now: Nanos, dest: MemberId, token: AnyToken, seq: int = MAX_SEQ) -> None:
        """Send a token on, and again until there is a sign that it arrived.

        A packet with a number above `seq` is one: only who has the regular token gives out numbers.
        """
        self._outgoing, self._outgoing_seq = (dest, token), seq
        self._passed_at = now
        self._send(dest, token)
        self._retransmit_at = now + self._settings.retransmit
        if self._planned is None or self._planned > self._retransmit_at:
            self._plan()

    def _plan(self) -> None:
        self._planned = self._retransmit_at
        self._out.set_timer(RingTimer.RETRANSMIT, self._retransmit_at)

    def _send(self, dest: MemberId, token: AnyToken) -> None:
        if isinstance(token, Token):
            self._out.send(dest, token)
        else:
            for frame in in_pieces(token):
                self._out.send(dest, frame)

    def unanswered(self, now: Nanos) -> tuple[Nanos, MemberId, AnyToken] | None:
        """The token that is under way: for how long, to whom, and which."""
        if self._outgoing is None:
            return None
        return now - self._passed_at, *self._outgoing

    def heard(self, now: Nanos, highest_seq: int) -> None:
        """Packets came that were not here before."""
        self.heard_at = now
        if self._outgoing is not None and highest_seq > self._outgoing_seq:
            self._outgoing = None
        if self._owed is not None and highest_seq > self._owed[1].seq:
            self._owed = None

    def forget(self) -> None:
        """The ring broke: nobody needs the token that is under way."""
        self._outgoing = self._owed = None

    def on_retransmit_timer(self) -> None:
        """The timer is no longer set."""
        self._planned = None

    def send_again(self, now: Nanos) -> None:
        """Send the token again, unless it has arrived."""
        if self._outgoing is None:
            return
        if now >= self._retransmit_at:
            self._stats.control_frames += 1
            self._send(*self._outgoing)
            # The longer it takes, the more likely the way is long, and not the token lost.
            pause = max(self._settings.retransmit, (now - self._passed_at) // 2)
            self._retransmit_at = now + min(pause, LONGEST_PAUSE * self._settings.retransmit)
        self._plan()

    def on_ack(self, frame: TokenAck) -> None:
        """The token arrived."""
        if self._outgoing is not None:
            token = self._outgoing[1]
            conf = token.form_id if isinstance(token, FormToken) else token.conf
            if (conf, token.number) == (frame.conf, frame.number):
                self._outgoing = None
                if self._planned is not None:
                    self._planned = None
                    self._out.cancel_timer(RingTimer.RETRANSMIT)


def stretched(time: Nanos, members: int) -> Nanos:
    """Where many speak, each has to listen to many, and a token goes a long way."""
    return time * min(max(members, AT_A_TIME), LARGE * AT_A_TIME) // AT_A_TIME
