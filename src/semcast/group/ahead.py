"""What was read for a program before it asked for it: it waits for an answer, or does not iterate."""

from collections import deque
from collections.abc import Sequence

from semcast.core.events import Skipped, ViewChange
from semcast.core.messages import Batch
from semcast.group.events import GroupDelivery

Portion = tuple[Sequence[GroupDelivery], Sequence[GroupDelivery]]
"""A list for the program, and what in it is no message."""


class Ahead:
    """Lists, in order, up to a bound.

    Args:
        messages: so many, at most; what comes last may exceed it.
        size: bytes of them.
    """

    def __init__(self, messages: int, size: int) -> None:
        self._most, self._most_bytes = messages, size
        self._portions: deque[Portion] = deque()
        self._messages = self._bytes = 0
        self._dropped = 0
        self._view: ViewChange | None = None  # the last one that was dropped

    def __bool__(self) -> bool:
        return bool(self._portions) or self._dropped > 0

    @property
    def messages(self) -> int:
        """How many there are."""
        return self._messages

    @property
    def full(self) -> bool:
        """Whether there is no room for more."""
        return self._messages >= self._most or self._bytes >= self._most_bytes

    def put(self, portion: Portion) -> None:
        """Another list."""
        self._portions.append(portion)
        self._count(portion, 1)

    def take(self) -> Portion:
        """The next list. A program for which some were dropped is told that first."""
        if self._dropped:
            notice: list[GroupDelivery] = [Skipped(self._dropped)]
            if self._view is not None:
                notice.append(ViewChange(self._view.view, joined=self._view.view.members))
            self._dropped, self._view = 0, None
            return notice, notice
        portion = self._portions.popleft()
        self._count(portion, -1)
        return portion

    def drop(self) -> int:
        """Forget all of it; returns how many messages that were."""
        dropped = self._messages
        for _, news in self._portions:
            views = [each for each in news if isinstance(each, ViewChange)]
            self._view = views[-1] if views else self._view
        self._portions.clear()
        self._messages = self._bytes = 0
        self._dropped += dropped
        return dropped

    def _count(self, portion: Portion, sign: int) -> None:
        batches = [each for each in portion[0] if isinstance(each, Batch)]
        self._messages += sign * sum(len(each.payloads) for each in batches)
        self._bytes += sign * sum(sum(map(len, each.payloads)) for each in batches)
