"""Members that are heard, and without which the others are better off (5.4.3)."""

from collections import deque
from collections.abc import Callable, Collection, Sequence

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.vsync.settings import VsyncSettings
from semcast.protocols.vsync.stream import ViewStream

LAG = 4
"""Heartbeats that anybody may be behind, also when the buffers are full."""
_DISTRUSTED = 2
"""Views in a row that begin with somebody in them who is not heard."""
_TOO_SLOW, _DEAF = "too slow", "not heard by all"
FAILURES = frozenset(("failed", _TOO_SLOW, _DEAF))
"""Why the others go on without a member that did not ask to leave, and may come back to the same end."""


class Hopeless:
    """As one member sees them: who delays stability for too long, and who hears only some.

    Args:
        me: this member.
        settings: how long is too long.
        suspects: whether somebody is silent.
    """

    def __init__(self, me: MemberId, settings: VsyncSettings, suspects: Callable[[MemberId], bool]) -> None:
        self._me = me
        self._settings = settings
        self._suspects = suspects
        self._samples: deque[tuple[Nanos, list[int]]] = deque()  # what was queued here, and when
        self._distrust: dict[MemberId, int] = {}  # in how many views in a row somebody was not heard

    def begin(
        self, members: Sequence[MemberId], joined: Sequence[MemberId], heard: Collection[MemberId] = ()
    ) -> None:
        """A view begins; some were heard in the last. Who joins has used up the first of its views."""
        self._samples.clear()
        for member in heard:
            self._distrust.pop(member, None)
        strangers = members if self._me in joined else joined
        suspected = [member for member in members if self._suspects(member)]
        self._distrust = {member: self._distrust.get(member, 0) + 1 for member in suspected}
        self._distrust.update(dict.fromkeys(strangers, _DISTRUSTED))

    def found(self, now: Nanos, stream: ViewStream) -> dict[MemberId, str]:
        """Who should not be in the next view, and why."""
        return {**self._too_slow(now, stream), **self._deaf(stream)}

    def _too_slow(self, now: Nanos, stream: ViewStream) -> dict[MemberId, str]:
        """Who delays stability beyond the limits; never so many that no majority is left."""
        settings = self._settings
        limits = [settings.expel_after] if settings.expel_after else []
        if settings.expel_when_full and stream.refuses:
            limits.append(LAG * settings.detector.heartbeat)
        if stream.frozen or not (settings.expel_after or settings.expel_when_full):
            return {}
        self._samples.append((now, list(stream.queued)))
        longest = max(settings.expel_after, LAG * settings.detector.heartbeat)
        while len(self._samples) > 1 and self._samples[1][0] <= now - longest:
            self._samples.popleft()
        found: dict[MemberId, str] = {}
        for limit in limits:
            then = next((queued for at, queued in reversed(self._samples) if at <= now - limit), None)
            if then is not None:
                found.update(dict.fromkeys(stream.laggards(then), _TOO_SLOW))
        return found if len(found) <= (len(stream.members) - 1) // 2 else {}

    def _deaf(self, stream: ViewStream) -> dict[MemberId, str]:
        """Of two who do not hear each other for several views, though others hear both, the later one."""
        for member, views in self._distrust.items():
            heard = stream.members.index(member) in stream.heard
            if views >= _DISTRUSTED and not heard and self._suspects(member):
                later = max(member, self._me, key=stream.members.index)
                return {later: _DEAF}
        return {}
