"""Pictures on their way to pages: the latest of each group, for as many pages as there are."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from semcast.dashboard.picture import Picture

_encode = msgspec.json.Encoder().encode
_QUIET = 15.0
"""Seconds after which a page that hears nothing is sent a comment, so that nobody closes its connection."""


class Feed:
    """Of one dashboard.

    Args:
        about: what pages should know besides: whether this is a replay, and of what.
    """

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        self._pictures: dict[str, Picture] = {}
        self._changed = asyncio.Condition()
        self._versions: dict[str, int] = {}
        self._closed = False
        self._stirring: asyncio.Task[None] | None = None

    def show(self, picture: Picture) -> None:
        """There is something new in it."""
        self._pictures[picture.group] = picture
        self._versions[picture.group] = self._versions.get(picture.group, 0) + 1
        self._stir()

    def begin_again(self) -> None:
        """What comes is no continuation: pages forget what they have seen."""
        self._pictures.clear()
        self._versions.clear()

    def close(self) -> None:
        """Nothing comes any more: pages are let go."""
        self._closed = True
        self._stir()

    def everything(self) -> bytes:
        """All that is known now, with the last minutes."""
        pictures = [picture.snapshot(history=True) for picture in self._pictures.values()]
        return _encode({"about": self.about, "groups": pictures})

    async def events(self) -> AsyncIterator[bytes]:
        """For one page: everything, then what is new, as server-sent events."""
        told = dict(self._versions)
        yield b"event: everything\ndata: " + self.everything() + b"\n\n"
        while not self._closed:
            try:
                async with asyncio.timeout(_QUIET), self._changed:
                    while not self._closed and self._versions == told:
                        await self._changed.wait()
            except TimeoutError:
                yield b": nothing new\n\n"
                continue
            if not set(told) <= set(self._versions):
                told = dict(self._versions)
                yield b"event: everything\ndata: " + self.everything() + b"\n\n"
                continue
            news = [group for group, version in self._versions.items() if told.get(group) != version]
            told = dict(self._versions)
            for group in news:
                yield b"event: picture\ndata: " + _encode(self._pictures[group].snapshot()) + b"\n\n"

    def _stir(self) -> None:
        self._stirring = asyncio.get_running_loop().create_task(self._notify())

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
