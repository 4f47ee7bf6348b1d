"""When a member leaves: it was asked to, or its application does not keep up."""

from semcast.core.events import Left
from semcast.core.ids import Nanos
from semcast.protocols.ring.frames import Leave
from semcast.protocols.ring.member import Member
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.ring.passing import RingTimer
from semcast.protocols.ring.settings import SlowPolicy
from semcast.protocols.ring.states import Cause, State


class Leaving:
    """The wish to leave, and what may cause it."""

    def __init__(self, member: Member) -> None:
        self.cause: str | None = None
        """Why this member leaves, once everybody has what it sent; None as long as it stays."""
        self.full = False
        """Whether the delivery queue is full."""
        self._member = member
        self._since: Nanos | None = None  # the queue is full, and the program stopped
        self._before: Nanos = 0  # so long it did that before, since the queue had room last
        self._settings = member.settings
        self._standing = member.standing
        self._out = member.out

    @property
    def gone(self) -> bool:
        """Whether this member has left."""
        return self._standing.state is State.LEFT

    def ask(self, now: Nanos, cause: str) -> None:
        """Leave when everybody has what was sent here, or soon."""
        self.cause = cause
        self._out.set_timer(RingTimer.LEAVE, now + self._settings.token_loss)

    def note(self, now: Nanos, *, full: bool) -> None:
        """The delivery queue is full, or has room. Only the time counts in which the program has stopped."""
        self.full = full
        runs = full and self._stopped()
        if self._since is not None and not runs:
            self._before += now - self._since
            self._since = None
        if not full:
            self._before = 0
        if runs and self._since is None:
            self._since = now
            if self._settings.policy is SlowPolicy.LEAVE and self.cause is None:
                left = max(0, self._settings.leave_after - self._before)
                self._out.set_timer(RingTimer.LEAVE, now + left)

    def _stopped(self) -> bool:
        """Whether the program neither takes what waits for it nor waits in `send`."""
        return self._member.reader.stopped

    def on_timer(self, now: Nanos, order: RingOrder) -> None:
        """Wait no longer: not for the others, and not for the application."""
        if self.cause is not None:
            self.go(order)
        elif self._since is not None and self._before + now - self._since >= self._settings.leave_after:
            self.cause = f"the application has not kept up for {self._settings.leave_after // 1_000_000} ms"
            self.go(order)

    def refuse(self, cause: str, order: RingOrder) -> None:
        """Not to be a member at all: what the others agreed on does not hold here."""
        self.cause = cause
        self.go(order)

    def go(self, order: RingOrder) -> None:
        """Tell everybody, and be gone."""
        assert self.cause is not None
        self._out.announce(Leave(order.conf))
        self._standing.shift_to(State.LEFT, Cause.LEAVING)
        self._out.deliver(Left(self.cause))
