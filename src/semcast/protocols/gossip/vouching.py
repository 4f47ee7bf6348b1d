"""Loggers tell the one that closes streams whom they hear: a member may talk to its home logger alone.

Where membership is a fixed list, a member that never sent says nothing to all; a client behind NAT never
does. Without this the logger that decides would take such a member for silent, and close its stream, and that
of the incarnation after it, for ever. And nobody would end a session whose home logger was forgotten.
"""

from collections.abc import Callable

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.frames import Heard, entries

_TIMES = 8
"""How many times in a `silence` each logger says whom it hears."""


class Vouching:
    """Of one logger.

    Args:
        silence: how long a sender may say nothing.
        colleagues: the other loggers.
        heard_since: the members with a stream that this logger heard itself, since a moment.
        out: where frames go.
    """

    def __init__(
        self,
        silence: Nanos,
        colleagues: Colleagues,
        heard_since: Callable[[Nanos], list[MemberId]],
        out: Outbox,
    ) -> None:
        self._silence = silence
        self._colleagues = colleagues
        self._heard_since = heard_since
        self._out = out
        self._told_at: Nanos = 0
        self._vouched_at: dict[str, Nanos] = {}  # by logger

    def tell(self, now: Nanos) -> None:
        """A round of a logger that does not decide: say whom it heard since it said so last."""
        decider = self._colleagues.decider()
        if decider is None or now - self._told_at < self._silence // _TIMES:
            return
        heard = self._heard_since(self._told_at)
        self._told_at = now
        for part in entries((member, 0) for member in heard):
            self._out.send(decider, Heard([member for member, _ in part]))

    def vouched(self, now: Nanos, source: MemberId) -> bool:
        """A colleague says whom it hears; returns whether it had not for long.

        Then nobody was silent before this: who talks to that logger alone could not be heard.
        """
        before = self._vouched_at.get(source.name)
        self._vouched_at[source.name] = now
        return before is None or now - before > self._silence // 2

    def complete(self, now: Nanos) -> bool:
        """Whether all other loggers have said lately whom they hear."""
        at = self._vouched_at
        return all(name in at and now - at[name] <= self._silence // 2 for name in self._colleagues.names)
