"""A pattern (`semcast.patterns`) on a live group.

```python
async with semcast.live("seats", lambda me: PrimaryBackup(me, book), minimum=2) as seats:
    number = seats.pattern.request(b"Ann")
    print(await seats.answer(number))
```
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeVar

from semcast.core.events import Rejoining
from semcast.core.ids import MemberId
from semcast.group.errors import GroupClosedError, GroupError
from semcast.group.joining import join
from semcast.patterns.pattern import Numbered, Pattern

P = TypeVar("P", bound=Pattern)
_LOG = logging.getLogger("semcast.group")


class Live(Generic[P]):
    """A member of a group that runs a pattern. Made by `live`.

    A task of its own passes events to the pattern and sends its messages. Joiners get the state. If the
    pattern raises, or a message cannot be sent, the error is logged, this member leaves, and waiting calls
    raise.
    """

    def __init__(self, group: str, make: Callable[[MemberId], P], **settings: Any) -> None:
        self._make = make
        self.group = join(group, state=self, **settings)
        """The group; nobody else sends there or iterates it."""
        self._pattern = make(self.group.member)
        self.group.when_unblocked(self._offer)
        self._loop = asyncio.get_running_loop()
        self._offered: P | None = None  # whose message the stack was offered
        self._outcome: bool | None = None  # whether it took it; written by the loop's thread
        self._changed = asyncio.Condition()
        self._answers: dict[int, Numbered] = {}
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._leaving: asyncio.Task[None] | None = None  # kept: a task that nobody holds may vanish

    @property
    def pattern(self) -> P:
        """The pattern. Use it in the thread of the event loop; messages it creates are sent soon after."""
        self._loop.call_soon(self._offer)
        return self._pattern

    # Life

    async def __aenter__(self) -> "Live[P]":
        await self.group.__aenter__()
        self._task = asyncio.create_task(self._follow(), name=f"semcast pattern {self.group.name}")
        try:
            await self.until(lambda pattern: pattern.view is not None)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the group. Messages that the pattern has not sent yet are dropped."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.group.close()
        await self._notify()

    # For the program

    async def until(self, condition: Callable[[P], bool]) -> None:
        """Wait until a condition on the pattern holds."""
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self._pattern) or self._ended() is not None)
        if not condition(self._pattern):
            raise self._ended() or GroupClosedError(f"{self.group.name} is closed")

    async def answer(self, number: int) -> Numbered:
        """Wait for the answer to the request or read with this number.

        Raises GroupError if this member is expelled before: then the outcome is unknown.
        """
        asked = self._pattern
        async with self._changed:
            await self._changed.wait_for(
                lambda: number in self._answers or self._pattern is not asked or self._ended() is not None
            )
        if number in self._answers:
            return self._answers.pop(number)
        if self._pattern is not asked:
            raise GroupError(f"{asked.me} was expelled from {self.group.name} before {number} was answered")
        raise self._ended() or GroupClosedError(f"{self.group.name} is closed")

    def _ended(self) -> GroupError | None:
        if self._task is None or not self._task.done():
            return None
        error = None if self._task.cancelled() else self._task.exception()
        if isinstance(error, GroupError):
            return error
        if self._failure is None:
            return GroupClosedError(f"{self.group.name} is closed")
        closed = GroupClosedError(f"{self.group.name} was left, because its pattern failed: {self._failure}")
        closed.__cause__ = self._failure
        return closed

    # State hooks

    def export(self) -> bytes:
        """For who joins."""
        return self._pattern.export()

    def restore(self, state: bytes) -> None:
        """Go on from there."""
        self._pattern.restore(state)

    # The group

    async def _follow(self) -> None:
        """Tell the pattern what happens."""
        try:
            async for deliveries in self.group.batches():
                self._advance()  # what was taken before these came
                for each in deliveries:
                    if isinstance(each, Rejoining):  # what the former one had under way is its own affair
                        self._pattern = self._make(each.member)
                        self._answers.clear()
                    else:
                        self._pattern.on_delivery(each)
                self._answers |= {answer.number: answer for answer in self._pattern.take_answers()}
                self._offer()
                await self._notify()
        except GroupError:
            raise  # the group is over
        except Exception as error:  # of the pattern, or of what the program gave it
            self._fail(error)
        finally:
            with suppress(RuntimeError):  # the loop has ended
                await self._notify()

    def _offer(self) -> None:
        """Multicast the pattern's next message, in the view that it is made for; one at a time."""
        pattern = self._pattern
        if self._offered is not None or pattern.view is None:
            return
        message = pattern.waiting()
        if message is None or self._failure is not None:
            return
        try:
            self.group.offer(pattern.view.id, message.payload, message.annotation, self._on_outcome)
        except GroupError:
            return  # it is over: whoever waits is told
        except (TypeError, ValueError) as error:  # too large, or nothing that can be sent
            self._fail(error)
            return
        self._offered = pattern

    def _on_outcome(self, taken: bool) -> None:
        """In the loop's thread, before anything that follows is delivered."""
        self._outcome = taken
        with suppress(RuntimeError):  # the program has ended
            self._loop.call_soon_threadsafe(self._advance)

    def _advance(self) -> None:
        """If the last message was taken, go on with the next; if not, later: there is room, or a new view."""
        taken, offered = self._outcome, self._offered
        if taken is None or offered is None:
            return
        self._outcome = self._offered = None
        if taken:
            offered.sent()
            self._offer()

    def _fail(self, error: Exception) -> None:
        """The pattern cannot go on. Its member leaves: the others must not wait for it."""
        _LOG.error("%s: %s leaves: its pattern failed: %r", self.group.name, self.group.member, error)
        self._failure = error
        self._leaving = asyncio.create_task(self.group.close())

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def live(group: str, make: Callable[[MemberId], P], **settings: Any) -> Live[P]:
    """Run a pattern in a group of its own: `async with semcast.live(...) as service`.

    `make` builds the pattern for a member; the class itself if it needs nothing else. Settings are those of
    `semcast.join`; the stack is vsync, with the order that the pattern needs.
    """
    chosen = {"stack": "vsync", **settings}
    kind = make if isinstance(make, type) else None
    if kind is not None and issubclass(kind, Pattern) and kind.order != "fifo":
        chosen.setdefault("order", kind.order)
    return Live(group, make, **chosen)
