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
        self.full_since: Nanos | None = None
        """Since when the delivery queue has no room for what the ring has delivered."""
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

    def full(self, now: Nanos) -> None:
        """The delivery queue is full."""
        if self.full_since is None:
            self.full_since = now
            if self._settings.policy is SlowPolicy.LEAVE and self.cause is None:
                self._out.set_timer(RingTimer.LEAVE, now + self._settings.leave_after)

    def on_timer(self, now: Nanos, order: RingOrder) -> None:
        """Wait no longer: not for the others, and not for the application."""
        if self.cause is not None:
            self.go(order)
        elif self.full_since is not None and now - self.full_since >= self._settings.leave_after:
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
