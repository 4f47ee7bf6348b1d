"""`wait_for`: programs that wait until enough members are there."""

import asyncio
from collections.abc import Callable

from semcast.core.handover import Handover
from semcast.core.views import View
from semcast.net.seat import Seat


class Gathering:
    """Those who wait. All calls are made in the program's thread.

    Args:
        name: of the group.
        handover: is told how many members are waited for.
        seat: whose stack knows the view.
        check_open: raises where the group has ended.
    """

    def __init__(self, name: str, handover: Handover, seat: Seat, check_open: Callable[[], None]) -> None:
        self.seen = asyncio.Event()
        """Set when the stack may be in another view, or when it is over."""
        self._name = name
        self._handover = handover
        self._seat = seat
        self._check_open = check_open
        self._wanted: list[int] = []  # how many members each call waits for

    async def wait_for(self, members: int, timeout: float | None) -> View:
        """Wait until the stack is in a view of so many members; TimeoutError says who is there."""
        self._check_open()
        self._wanted.append(members)
        try:
            async with asyncio.timeout(timeout):
                return await self._gathered(members)
        except TimeoutError:
            there = self._seat.stack.view().members
            names = ", ".join(sorted(member.name for member in there)) or "nobody"
            raise TimeoutError(
                f"{self._name}: {len(there)} of {members} members after {timeout:g} s: {names}"
            ) from None
        finally:
            self._wanted.remove(members)
            self._handover.members_wanted = min(self._wanted, default=0)

    async def _gathered(self, members: int) -> View:
        while len((view := self._seat.stack.view()).members) < members:
            self.seen.clear()
            self._handover.members_wanted = min(self._wanted)
            if len(self._seat.stack.view().members) < members:
                await self.seen.wait()
            self._check_open()
        return view
