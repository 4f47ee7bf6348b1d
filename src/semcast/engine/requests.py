"""Requests on their way from the program to its server, and the answers that come back.

Both sides have a thread of their own. Requests of one tick of the program's loop are handed over together.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from semcast.core.events import Answered, Delivery, Event, Unblocked
from semcast.core.handover import Command
from semcast.core.ids import MemberId, Nanos
from semcast.core.outgoing import Outgoing
from semcast.core.stack import Stack
from semcast.core.watchers import Watcher
from semcast.replication.creation import Wish
from semcast.replication.stack import Replication

_AT_ONCE = 4096


class Requests(Watcher):
    """What waits to be taken by the server, and answers that the program has not seen.

    Args:
        loop: of the program.
        hear: called there when there are answers.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, hear: Callable[[], None]) -> None:
        self._loop = loop
        self._hear = hear
        self._waiting: deque[Sequence[Wish]] = deque()
        self._answers: deque[Answered] = deque()
        self._call: Callable[[Command], None] | None = None
        self._handing = False  # the loop of the program is about to
        self._waking = False

    def attach(self, call: Callable[[Command], None]) -> None:
        """From now on commands go there."""
        self._call = call

    # In the thread of the program

    def add(self, wishes: Sequence[Wish]) -> None:
        """Have the server take these, after all before them."""
        self._waiting.append(wishes)
        if not self._handing:
            self._handing = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._handing = False
        if self._call is not None:
            self._call(self._offer)

    def answers(self) -> list[Answered]:
        """Those that came since the last time."""
        found: list[Answered] = []
        while self._answers:
            found.append(self._answers.popleft())
        return found

    def _wake(self) -> None:
        self._waking = False
        self._hear()

    # In the thread of the server

    def _offer(self, stack: Stack, now: Nanos) -> None:
        """As many as it takes; the rest when it says that there is room."""
        assert isinstance(stack, Replication)
        waiting = self._waiting
        while waiting:
            some = list(waiting.popleft())
            while waiting and len(some) < _AT_ONCE:
                some += waiting.popleft()
            taken = stack.request(now, some)
            if taken < len(some):
                waiting.appendleft(some[taken:])
                return

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Answers, and the word that there is room."""
        for event in events:
            if type(event) is Answered:
                self._answers.append(event)
            elif type(event) is Unblocked and self._waiting and self._call is not None:
                self._call(self._offer)
        if self._answers and not self._waking:
            self._waking = True
            with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
                self._loop.call_soon_threadsafe(self._wake)

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        """These go another way."""

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:
        """Nothing goes that way."""

    def on_renewal(self, now: Nanos, member: MemberId) -> None:  # noqa: ARG002
        """The server comes back: it goes on with what waits."""
        if self._call is not None:
            self._call(self._offer)
