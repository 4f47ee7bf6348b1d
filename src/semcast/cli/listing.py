"""Who is listed: what `semcast members` would show, for commands that must reach all of them."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from semcast.cli.live import errors_explained, short_names
from semcast.core.ids import MemberId, Nanos
from semcast.group.observing import observe
from semcast.group.settings import GroupSettings
from semcast.net.observer import Observer

ANNOUNCED = 1.5
"""Seconds in which every member speaks at least once."""
LOOK = 0.05
"""Seconds after which to look again who is there."""


class Listing:
    """Listens to what the members announce, as long as the command runs."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    async def complete(self) -> None:
        """Wait until everybody who is there was heard."""
        await asyncio.to_thread(self._observer.listen, ANNOUNCED)

    def members(self) -> dict[MemberId, Nanos]:
        """Who is listed now, and when each was last heard."""
        self._observer.wait(0)
        return {each.member: each.at for each in self._observer.members()}

    async def remaining(self, members: Mapping[MemberId, Nanos]) -> list[MemberId]:
        """Those of them who are still there: who has left says so, and who is there speaks again."""
        until = time.monotonic() + ANNOUNCED
        while True:
            heard = self.members()
            silent = [member for member, at in members.items() if heard.get(member) == at]
            if not silent or time.monotonic() > until:
                return [member for member in members if member in heard and member not in silent]
            await asyncio.sleep(LOOK)


def names(members: Iterable[MemberId]) -> str:
    """How to call them in an error."""
    return ", ".join(short_names(members).values())


@contextmanager
def listing(group: str, settings: GroupSettings) -> Iterator[Listing]:
    """Beside a member with these settings: its port is its own."""
    bind = settings.bind and settings.bind.rpartition(":")[0] + ":0"
    with errors_explained():
        observer = observe(group, msgspec.structs.replace(settings, bind=bind))
    with observer:
        yield Listing(observer)
