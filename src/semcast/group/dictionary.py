"""A dictionary that every member of a group has, also through partitions (Amir 1995, section 7.4).

Each update carries a timestamp; of two for the same key the later wins everywhere, whatever the order in
which a partition and a merge bring them together. When members come together, one of each side sends what it
has: joiners get the state that way, and sides that were apart become one.
"""

import asyncio
import enum
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any

import msgspec

from semcast.core.events import Rejoining, TransitionalView, ViewChange
from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.group.errors import GroupError
from semcast.group.events import GroupDelivery
from semcast.group.group import Group
from semcast.group.joining import join
from semcast.group.machine import MACHINE

_LOG = logging.getLogger("semcast.group")
_CHUNK = 200_000
"""Bytes of state in a message, about."""


class Stamp(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """When an update was made, and by whom: no two are equal."""

    at: int
    member: MemberId


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a key. A deleted key is remembered, so that an older update does not bring it back."""

    value: Any
    stamp: Stamp
    deleted: bool = False


class _What(enum.IntEnum):
    UPDATE = 0
    STATE = 1
    STATE_END = 2


class _Word(msgspec.Struct, frozen=True, array_like=True):
    """What members say to each other."""

    what: _What
    entries: dict[str, Entry] = {}
    side: tuple[MemberId, ...] = ()
    """End of a state: whose it is."""


Merge = Callable[[str, Entry, Entry], Entry]
"""Key, what is here, what came: which of them stays, or something made of both."""


def latest(_key: str, here: Entry, came: Entry) -> Entry:
    """The later update wins."""
    return max(here, came, key=lambda entry: entry.stamp)


class ReplicatedDict(Mapping[str, Any]):
    """The same dictionary at every member: reads are local, writes go to the group.

    Values may be numbers, text, bytes, lists and dictionaries (MessagePack).

    ```python
    async with ReplicatedDict.join("settings") as settings:
        await settings.set("colour", "blue")
        print(settings["colour"])
    ```
    """

    def __init__(self, group: Group, merge: Merge = latest) -> None:
        self.group = group
        self._merge = merge
        self._entries: dict[str, Entry] = {}
        self._clock = 0
        self._wall = MACHINE.get().wall
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(_Word).decode
        self._side: set[MemberId] = {group.member}  # who came into this view together with this member
        self._silent: set[MemberId] = set()  # members of the view whose state has not come
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None  # kept: a task that nobody holds may vanish
        self.refused = 0
        """Messages of the group that were none of ours."""

    @classmethod
    def join(cls, group: str, merge: Merge = latest, **settings: Any) -> "ReplicatedDict":
        """Join a group that holds one dictionary; settings as for `semcast.join`."""
        return cls(join(group, **settings), merge)

    async def __aenter__(self) -> "ReplicatedDict":
        await self.group.__aenter__()
        self._task = asyncio.create_task(self._follow(), name=f"semcast dictionary {self.group.name}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._task is not None:
                self._task.cancel()
                with suppress(asyncio.CancelledError, GroupError):
                    await self._task
        finally:
            await self.group.close()

    # Reading

    def __getitem__(self, key: str) -> Any:
        entry = self._entries[key]
        if entry.deleted:
            raise KeyError(key)
        return entry.value

    def __iter__(self) -> Iterator[str]:
        return (key for key, entry in self._entries.items() if not entry.deleted)

    def __len__(self) -> int:
        return sum(not entry.deleted for entry in self._entries.values())

    async def wait_until(self, condition: Callable[["ReplicatedDict"], bool]) -> None:
        """Wait until a condition on the dictionary holds."""
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self) or self._ended())
        if not condition(self):
            assert self._task is not None
            self._task.result()
            raise GroupError(f"{self.group.name} ended")

    async def ready(self) -> None:
        """Wait until the contents have been received from the other members."""
        await self.wait_until(lambda _: self.group.arrived and not self._silent)

    # Writing

    async def set(self, key: str, value: Any) -> None:
        """Set a key. A newer value replaces this one for members that are behind."""
        await self._assign({key: Entry(value, self._stamp())})

    async def update(self, values: Mapping[str, Any]) -> None:
        """Set several keys at once: every member sees all of them or none."""
        if values:
            stamp = self._stamp()
            await self._assign({key: Entry(value, stamp) for key, value in values.items()})

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[dict[str, Any]]:
        """Set several keys at once: `async with d.transaction() as t: t["a"] = 1`.

        Nothing is sent if the block raises.
        """
        values: dict[str, Any] = {}
        yield values
        await self.update(values)

    async def delete(self, key: str) -> None:
        """Remove a key."""
        if key not in self:
            raise KeyError(key)
        await self._assign({key: Entry(None, self._stamp(), deleted=True)})

    async def _assign(self, entries: dict[str, Entry]) -> None:
        """Here only once it was accepted: what cannot be sent must not be here alone."""
        await self.group.send(self._encode(_Word(_What.UPDATE, entries)), items=list(entries))
        self._apply(entries)

    def _stamp(self) -> Stamp:
        """Later than all that was seen here, and close to the time of day."""
        self._clock = max(self._clock + 1, self._wall() // 1_000)
        return Stamp(self._clock, self.group.member)

    # Following the group

    async def _follow(self) -> None:
        try:
            async for deliveries in self.group.batches():
                for each in deliveries:
                    await self._on_delivery(each)
                async with self._changed:
                    self._changed.notify_all()
        except GroupError:
            raise  # the group is over
        except Exception as error:  # of `merge`, perhaps: the others must not wait for who reads no more
            _LOG.error("%s: %s leaves: its dictionary failed: %r", self.group.name, self.group.member, error)
            self._leaving = asyncio.create_task(self.group.close())
            raise
        finally:
            async with self._changed:
                self._changed.notify_all()

    async def _on_delivery(self, each: GroupDelivery) -> None:
        if isinstance(each, Batch):
            for payload in each.payloads:
                self._on_word(payload)
        elif isinstance(each, TransitionalView):
            self._side = set(each.view.members)
        elif isinstance(each, Rejoining):
            self._side, self._silent = {each.member}, set()  # what it has meets what the others have
        elif isinstance(each, ViewChange):
            await self._on_view(each)

    def _on_word(self, payload: bytes) -> None:
        try:
            word = self._decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.refused += 1
            return
        self._apply(word.entries)
        if word.what is _What.STATE_END:
            self._silent -= set(word.side)

    def _apply(self, entries: dict[str, Entry]) -> None:
        for key, came in entries.items():
            here = self._entries.get(key)
            self._entries[key] = came if here is None else self._merge(key, here, came)
            self._clock = max(self._clock, came.stamp.at)

    async def _on_view(self, change: ViewChange) -> None:
        """Where sides meet, or a transfer broke off, one of each side says what it has."""
        members = set(change.view.members)
        self._side &= members
        broke_off = bool(self._silent)
        self._silent = members if broke_off or members != self._side else set()
        if self._silent and min(self._side) == self.group.member:
            await self._send_state()

    async def _send_state(self) -> None:
        chunk: dict[str, Entry] = {}
        size = 0
        for key, entry in list(self._entries.items()):
            chunk[key] = entry
            size += len(key) + len(self._encode(entry))
            if size > _CHUNK:
                await self.group.send(self._encode(_Word(_What.STATE, chunk)))
                chunk, size = {}, 0
        await self.group.send(self._encode(_Word(_What.STATE, chunk)))
        await self.group.send(self._encode(_Word(_What.STATE_END, side=tuple(sorted(self._side)))))

    def _ended(self) -> bool:
        return self._task is not None and self._task.done()
