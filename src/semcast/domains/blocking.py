"""Domains for programs without asyncio: the same calls, which block. Any thread may call them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from semcast.core.ids import MemberId, MessageId
from semcast.core.views import View
from semcast.domains.connecting import connect as open_connection
from semcast.domains.domain import Domain
from semcast.domains.events import DomainEvent
from semcast.domains.light import Flavour, Kind, LightGroup, RoleName, Settled
from semcast.domains.opening import domain as open_domain
from semcast.domains.stream import Outlet
from semcast.engine.loopthread import InThread
from semcast.patterns.calls import CallAnswer, CallRequest, Wanted

T = TypeVar("T")
_THREAD: ContextVar[int | None] = ContextVar("thread", default=None)
"""The thread of the program that calls: who reads must not wait for itself."""


class BlockingDomain(InThread[Domain]):
    """This program in a domain, for threads. Made by `semcast.blocking.domain`."""

    def __init__(
        self, name: str, settings: dict[str, Any], opener: Callable[..., Domain] = open_domain
    ) -> None:
        super().__init__(name, f"semcast.blocking.{opener.__name__}")
        self.name = name
        self._settings = settings
        self._opener = opener

    async def _open(self) -> Domain:
        floor = self._opener(self.name, **self._settings)
        floor.called_by(_THREAD.get)
        return await floor

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Have it done by the loop, and wait."""
        loop, _ = self._opened()
        _THREAD.set(threading.get_ident())  # goes along with what is scheduled
        return loop.call(work)

    @property
    def domain(self) -> Domain:
        """What it stands for; it lives in another thread."""
        return self._opened()[1]

    @property
    def member(self) -> MemberId:
        """Who this program is, in all groups."""
        return self.domain.member

    def join(
        self,
        group: str,
        *,
        flavour: Flavour = "evs",
        kind: Kind = "peer",
        role: RoleName = "",
        timeout: float | None = None,
    ) -> "BlockingLightGroup":
        """Be in a group, as `Domain.join`."""
        joined = self.domain.join(group, flavour=flavour, kind=kind, role=role, timeout=timeout)
        return BlockingLightGroup(self, self.call(joined))

    def send(
        self,
        group: str,
        payload: bytes,
        *,
        item: str | None = None,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
    ) -> MessageId:
        """Multicast one message to a group, as `Domain.send`."""
        return self.call(
            self.domain.send(group, payload, item=item, order=order, timeout=timeout, confirm=confirm)
        )

    def send_many(
        self,
        group: str,
        payloads: Sequence[bytes],
        *,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
    ) -> MessageId:
        """Multicast several messages to a group, as `Domain.send_many`."""
        return self.call(
            self.domain.send_many(group, payloads, order=order, timeout=timeout, confirm=confirm)
        )

    def cast(
        self,
        groups: Sequence[str],
        payload: bytes,
        *,
        item: str | None = None,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
    ) -> MessageId:
        """Multicast one message to several groups at one place, as `Domain.cast`."""
        return self.call(
            self.domain.cast(groups, payload, item=item, order=order, timeout=timeout, confirm=confirm)
        )

    def send_to(self, member: MemberId, payload: bytes, *, timeout: float | None = None) -> MessageId:
        """A message to one program of the domain, as `Domain.send_to`."""
        return self.call(self.domain.send_to(member, payload, timeout=timeout))

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything that this program sent has its place, and every daemon has it."""
        self.call(self.domain.flush(timeout))

    def events(self, timeout: float | None = None) -> Iterator[tuple[str, DomainEvent]]:
        """What happens, one by one, with the name of its group, in the one order of the domain.

        Ends when nothing has happened for `timeout` seconds, or when the domain is closed.
        """
        return self._iterate(self.domain.outlet, timeout)

    def _iterate(self, outlet: Outlet, timeout: float | None) -> Iterator[tuple[str, DomainEvent]]:
        outlet.enter()
        try:
            while True:
                yield from outlet.left_over()
                if not self.call(outlet.fetch(timeout)):
                    return
        finally:
            outlet.leave()


class BlockingLightGroup:
    """A group of a domain, for threads. Made by `BlockingDomain.join`."""

    def __init__(self, domain: BlockingDomain, group: LightGroup) -> None:
        self.domain = domain
        self._group = group

    def __enter__(self) -> "BlockingLightGroup":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave this group. The domain goes on, also where the block raised."""
        self.leave()

    def leave(self) -> None:
        """Leave the group, behind everything that was sent there."""
        self.domain.call(self._group.leave())

    @property
    def name(self) -> str:
        """Of the group."""
        return self._group.name

    @property
    def member(self) -> MemberId:
        """Who this program is."""
        return self._group.member

    @property
    def view(self) -> View | None:
        """The latest view; the program may not have iterated up to it."""
        return self._group.view

    def members(self) -> Sequence[MemberId]:
        """Those of the latest view."""
        return self._group.members()

    def wait_for(self, members: int, timeout: float | None = None) -> View:
        """Wait until the group has so many members; returns the view."""
        return self.domain.call(self._group.wait_for(members, timeout))

    def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
    ) -> MessageId:
        """Multicast one message to the group."""
        return self.domain.call(
            self._group.send(payload, item=item, order=order, timeout=timeout, confirm=confirm)
        )

    def send_many(
        self,
        payloads: Sequence[bytes],
        *,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
    ) -> MessageId:
        """Multicast several messages; returns the id of the last."""
        return self.domain.call(
            self._group.send_many(payloads, order=order, timeout=timeout, confirm=confirm)
        )

    def send_to(self, member: MemberId, payload: bytes, *, timeout: float | None = None) -> MessageId:
        """A message to one member alone."""
        return self.domain.send_to(member, payload, timeout=timeout)

    def call(
        self,
        payload: bytes,
        *,
        replies: Wanted = "all",
        to: Literal["all", "one"] | MemberId = "all",
        timeout: float | None = 10.0,
    ) -> CallAnswer:
        """Ask the members of the group, and wait for what they answer."""
        return self.domain.call(self._group.call(payload, replies=replies, to=to, timeout=timeout))

    def on_call(self, handler: Callable[[CallRequest], bytes | None]) -> None:
        """Answer calls with this function, which runs in a thread of its own."""

        async def answer(request: CallRequest) -> bytes | None:
            return await asyncio.to_thread(handler, request)

        async def serve() -> None:
            self._group.on_call(answer)

        self.domain.call(serve())

    def events(self, timeout: float | None = None) -> Iterator[DomainEvent]:
        """What happens in this group: a filter of the domain's stream, as `LightGroup` says."""
        return (event for _, event in self.domain._iterate(self._group.outlet, timeout))


def connect(where: str = "", /, **settings: Any) -> BlockingDomain:
    """The daemon of this host, for threads: `with semcast.blocking.connect() as host: ...`.

    Args:
        where: as for `semcast.connect`.
        settings: the same.
    """
    return BlockingDomain(where, settings, open_connection)


def domain(group: str, /, *, config: Path | None = None, **settings: Any) -> BlockingDomain:
    """Many groups over one order, for programs without asyncio; everything as for `semcast.domain`."""
    return BlockingDomain(group, {"config": config, **settings})
