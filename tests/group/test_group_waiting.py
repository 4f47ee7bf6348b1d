"""When a call may send at once, and when it looks again."""

import asyncio
import time

import pytest

from semcast.core.handover import Handover
from semcast.group.errors import GroupClosedError
from semcast.group.waiting import Room

SMALL, LARGE = b".", bytes(1 << 16)


class Desk:
    def __init__(self, messages: int = 4096, size: int = 1 << 20) -> None:
        self.handover = Handover(messages, send_bytes=size)
        self.open = True
        self.looks = 0
        self.room = Room(
            "desk", self.handover, lambda: None, self._check, lambda: "nobody", time.monotonic_ns
        )

    def _check(self) -> None:
        self.looks += 1
        if not self.open:
            raise GroupClosedError("desk is closed")

    def sends(self, payload: bytes = SMALL) -> bool:
        """Whether it may be sent at once; a task that sends for long is refused, so that others run."""
        if not self.room.open_for_one(payload):
            return False
        self.handover.send_plain(payload)
        return True


async def _rested(desk: Desk) -> Desk:
    await desk.room.wait(0, reading=False, timeout=None)  # others have just run
    return desk


def test_small_messages_are_looked_at_once_for_several() -> None:
    async def main() -> None:
        desk = await _rested(Desk())
        before = desk.looks
        assert all(desk.sends() for _ in range(8))
        assert desk.looks == before + 1

    asyncio.run(main())


def test_permits_never_exceed_the_room_there_is() -> None:
    async def main() -> None:
        desk = await _rested(Desk(messages=5))
        sent = 0
        while desk.sends():
            sent += 1
        assert sent == 5
        assert desk.handover.unsent == 5

    asyncio.run(main())


def test_large_messages_are_looked_at_one_by_one() -> None:
    async def main() -> None:
        desk = await _rested(Desk(size=100_000))
        assert desk.sends()
        assert desk.sends(LARGE)
        assert desk.sends(LARGE), "the last may exceed the bound"
        assert not desk.sends(LARGE), "also where small ones would still be permitted"

    asyncio.run(main())


def test_who_closes_a_group_sends_nothing_more() -> None:
    async def main() -> None:
        desk = await _rested(Desk())
        assert desk.sends()
        desk.open = False
        desk.room.wake()  # as `close` does
        with pytest.raises(GroupClosedError):
            desk.sends()

    asyncio.run(main())
