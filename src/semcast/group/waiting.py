"""Waiting in `send`: for room, for others to run, and no longer than that can help."""

import asyncio
from collections.abc import Callable

from semcast.core.events import Confirmed
from semcast.core.handover import Handover
from semcast.core.ids import MILLISECOND, Nanos
from semcast.group.errors import BacklogError, SendTimeoutError

_TURN: Nanos = MILLISECOND
"""A task that only sends lets others run after so long: also who reads what is delivered meanwhile."""
_LOOK = 64
"""Messages after which such a task looks at the clock, and whether there is room."""
_SMALL = 4096
"""Bytes of a message for which nobody looks: so many of them exceed no bound that matters."""


class Room:
    """Where the calls of one program wait until there is room for what they send.

    Args:
        group: its name, for errors.
        handover: to the stack.
        wake_loop: called when a call begins to wait, or was refused: the stack should know.
        check_open: raises if nothing can be sent any more.
        why: says in words what holds this member back.
        clock: of the machine.
    """

    def __init__(
        self,
        group: str,
        handover: Handover,
        wake_loop: Callable[[], None],
        check_open: Callable[[], None],
        why: Callable[[], str],
        clock: Callable[[], Nanos],
    ) -> None:
        self._group = group
        self._handover = handover
        self._wake_loop = wake_loop
        self._check_open = check_open
        self._why = why
        self._clock = clock
        self._changed = asyncio.Event()
        self._unwatched = 0  # messages that may be sent before the next look at the clock
        self._permits = 0  # small messages that may be sent before the next look at anything
        self._in_a_row = False  # the loop has not gone round since something was sent
        self._began_at: Nanos = 0  # when that was

    def wake(self) -> None:
        """There may be room, or no hope of any."""
        self._permits = 0
        self._changed.set()

    def open_for_one(self, payload: bytes) -> bool:
        """`open_for(1)`, looked at once for several small messages: it costs more than to hand one over.

        What ends the group, or makes others wait, is seen at the next look, or when `wake` is called.
        """
        if self._permits > 0 and type(payload) is bytes and len(payload) <= _SMALL:
            self._permits -= 1
            return True
        if not self.open_for(1):
            return False
        self._permits = min(self._unwatched, self._handover.room - 1)
        self._unwatched -= max(self._permits, 0)
        return True

    def open_for(self, count: int) -> bool:
        """Whether so many messages can be sent at once, whoever calls, and nobody else has to run first."""
        self._check_open()
        handover = self._handover
        if handover.reading.answers_first or not handover.room_for(count):
            return False
        if self._unwatched <= 0:
            if self._busy_for() >= _TURN:
                return False
            self._unwatched = _LOOK
        self._unwatched -= count
        return True

    async def wait(self, count: int, *, reading: bool, timeout: float | None) -> None:
        """Return once there is room for so many messages."""
        self._check_open()
        if self._unwatched <= 0:
            await self._let_others_run()
        self._unwatched -= count
        if not self._handover.room_for(count, reading=reading):
            try:
                async with asyncio.timeout(timeout):
                    await self._stay(count, reading=reading)
            except TimeoutError:
                raise SendTimeoutError(
                    f"{self._group}: no room to send for {timeout} s: {self._why()}"
                ) from None

    async def outlast(
        self, answer: "asyncio.Future[Confirmed]", *, reading: bool, timeout: float | None = None
    ) -> Confirmed:
        """Wait for a confirmation: what is delivered meanwhile needs room, too."""
        try:
            async with asyncio.timeout(timeout):
                return await self._outlast(answer, reading=reading)
        except TimeoutError:
            error = SendTimeoutError(
                f"{self._group}: it was sent, and no logger said for {timeout:.3g} s that it is on disk"
            )
            error.accepted = 1
            raise error from None

    async def _outlast(self, answer: "asyncio.Future[Confirmed]", *, reading: bool) -> Confirmed:
        handover = self._handover
        handover.wait(reading=reading)
        before = handover.overflows
        answer.add_done_callback(lambda _: self.wake())
        try:
            while not answer.done():
                self._changed.clear()
                self._wake_loop()  # the stack has to know that this program waits
                await self._changed.wait()
                if handover.overflows != before and not answer.done():
                    self._give_up(accepted=1)
            return answer.result()
        finally:
            answer.cancel()  # nobody waits any more
            handover.waited(reading=reading)

    def try_now(self, count: int, *, reading: bool) -> bool:
        """Whether there is room at once; raises where `wait` would."""
        self._check_open()
        handover = self._handover
        if handover.room_for(count, reading=reading):
            return True
        handover.reading.refused(reading=reading)
        self._wake_loop()
        if handover.overflowing:
            self._give_up()
        return False

    async def _stay(self, count: int, *, reading: bool) -> None:
        handover = self._handover
        handover.wait(reading=reading)
        before = handover.overflows
        try:
            while not handover.room_for(count, reading=reading):
                self._changed.clear()
                self._wake_loop()  # the stack has to know that this program waits
                if not handover.room_for(count, reading=reading):
                    await self._changed.wait()
                self._check_open()
                if handover.overflows != before and not handover.room_for(count, reading=reading):
                    self._give_up()
        finally:
            handover.waited(reading=reading)

    def _give_up(self, accepted: int = 0) -> None:
        self._handover.backlogs += 1
        error = BacklogError(
            f"{self._group}: {self._handover.backlog} messages wait to be read here while this program waits"
            " to send, and there is room for no more of them: read in another task, answer less, or raise"
            " `reserve`"
        )
        error.accepted = accepted
        raise error

    def _busy_for(self) -> Nanos:
        """How long messages have been sent in a row: nobody else could run since the first of them."""
        now = self._clock()
        if not self._in_a_row:
            self._in_a_row, self._began_at = True, now
            asyncio.get_running_loop().call_soon(self._others_ran)
        return now - self._began_at

    def _others_ran(self) -> None:
        self._in_a_row = False

    async def _let_others_run(self) -> None:
        self._unwatched = _LOOK
        if self._busy_for() >= _TURN:
            await asyncio.sleep(0)
            self._check_open()
