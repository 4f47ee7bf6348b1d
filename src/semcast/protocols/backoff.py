"""Back-off: who keeps failing to become or to stay a member is invited less and less often, up to a cap.

A deviation from the papers, which invite whomever they hear. Where a link is dead for good, each attempt to
use it stops everybody for a while.
"""

from random import Random

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.wire.limits import MAX_MEMBERS

FIRST: Nanos = 500 * MILLISECOND
"""How long somebody is held off after a second failure in a row; twice as long after each further one."""
CAP: Nanos = 5 * SECOND
"""And no longer than that: so soon after a network has healed an attempt is made."""


class Failures:
    """How often one member has failed."""

    __slots__ = ("count", "joined_at", "until")

    def __init__(self) -> None:
        self.count = 0
        self.until: Nanos = 0
        self.joined_at: Nanos | None = None


class Backoff:
    """Who is held off, and until when, as one member sees it."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._failures: dict[MemberId, Failures] = {}

    def failed(self, now: Nanos, member: MemberId) -> None:
        """The others formed without it though they should have had it, or went on without it."""
        found = self._failures.pop(member, None) or Failures()
        if found.joined_at is not None and now - found.joined_at >= CAP:
            found.count = 0
        found.joined_at = None
        found.count += 1
        wait = self._wait(found.count)
        found.until = now + wait - self._rng.randrange(wait // 8 + 1)
        self._failures[member] = found  # the last to fail is the last to be forgotten
        if len(self._failures) > MAX_MEMBERS:
            del self._failures[next(iter(self._failures))]

    def joined(self, now: Nanos, member: MemberId) -> None:
        """It is in a ring or view with this member; once that has lasted, its failures are forgotten."""
        found = self._failures.get(member)
        if found is not None:
            found.joined_at = now

    def holds(self, now: Nanos, member: MemberId) -> bool:
        """Whether it is too early to try with this member again."""
        found = self._failures.get(member)
        return found is not None and now < found.until and found.joined_at is None

    def suspects(self, member: MemberId) -> bool:
        """Whether it has failed before."""
        found = self._failures.get(member)
        return found is not None and found.joined_at is None

    def _wait(self, count: int) -> Nanos:
        return min(CAP, FIRST << min(count - 2, 32)) if count > 1 else 0
