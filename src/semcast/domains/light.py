"""`LightGroup`: a group of a domain, as one of its members sees it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeVar

from semcast.core.events import Rejoining, TransitionalView, ViewChange
from semcast.core.ids import MemberId, MessageId
from semcast.core.views import View
from semcast.domains.calling import GroupCalls
from semcast.domains.events import DomainDelivery, DomainEvent
from semcast.domains.stream import Outlet
from semcast.group.calling import Handler
from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError
from semcast.patterns.calls import ALL, ONE, CallAnswer, Wanted, check_wanted
from semcast.protocols.lightweight.events import Delivered, GroupView
from semcast.protocols.lightweight.ids import ViewId

if TYPE_CHECKING:
    from semcast.domains.domain import Domain

H = TypeVar("H", bound=Handler)
Flavour = Literal["evs", "vs"]
"""Which view a message is delivered in: that of its place in the order, or the one its sender was in (`vs`).
The first member of a group decides for all."""
Kind = Literal["peer", "client-server", "diffusion"]
"""How a group of a causal domain is used."""
RoleName = Literal["", "server", "client"]
"""What this program is in a group that has clients."""
Settled = Literal["delivered", "safe"]
"""How far a message has to have come. In a domain both say the same: it has its place, and every daemon that
is there has it."""


class LightGroup:
    """A group that this program is in. Made by `Domain.join`.

    Joining and leaving are messages in the order of the domain, so they cost nobody else anything.
    """

    def __init__(
        self,
        domain: "Domain",
        name: str,
        outlet: Outlet,
        *,
        vs: bool = False,
        kind: Kind = "peer",
        role: RoleName = "",
    ) -> None:
        self.domain = domain
        self.name = name
        self.outlet = outlet
        """What its iterator is given."""
        self.wants_vs = vs
        self.kind, self.role = kind, role
        self.view: View | None = None
        """The latest view; the program may not have iterated up to it. None until there is one."""
        self.changed = asyncio.Event()
        """Set when it is in another view, or over."""
        self.over = ""
        """Why this program is in the group no more, if that is so."""
        self.released: Callable[[], Awaitable[None]] = _nothing
        """Called when this program has left the group."""
        self._view_id: ViewId | None = None
        self._vs = False
        self._blocked = False  # its view ends: nothing is sent until the next one is there
        self.asked = False
        """Whether the domain was asked to let this program in."""
        self._leaving = False
        self._calls: GroupCalls | None = None
        self._known = False  # whether the program has had the time to set its `on_call`
        self._early: list[Delivered | ViewChange | TransitionalView | Rejoining] = []  # until then

    async def __aenter__(self) -> "LightGroup":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave this group. The domain goes on, also where the block raised."""
        await self.leave()

    async def leave(self) -> None:
        """Leave the group, behind everything that was sent there. Its iterator ends."""
        try:
            await self.domain.leave(self)
        finally:
            await self.released()

    async def close(self) -> None:
        """The same as `leave`."""
        await self.leave()

    # About it

    @property
    def member(self) -> MemberId:
        """Who this program is, in all groups of the domain."""
        return self.domain.member

    def members(self) -> Sequence[MemberId]:
        """Those of the latest view, in the order in which they joined."""
        return () if self.view is None else self.view.members

    async def wait_for(self, members: int, timeout: float | None = None) -> View:
        """Wait until the group has so many members; returns the view. After `timeout`, TimeoutError."""
        return await self.domain.wait_for(self, members, timeout)

    # Sending

    async def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
        to: MemberId | None = None,
    ) -> MessageId:
        """Multicast one message to the group, as `Domain.send`.

        With `to`, a server of a client-server group sends it to the servers and to this client.
        """
        self._check()
        return await self.domain.send(
            self.name, payload, item=item, order=order, timeout=timeout, confirm=confirm, to=to
        )

    def check_cast(self, *, items: bool, order: str, to: MemberId | None) -> None:
        """Raise where this program may not send that, in a group that has clients."""
        if to is not None and (self.kind, self.role) != ("client-server", "server"):
            raise ConfigurationError(f"to={to}: only servers of a client-server group send to one client")
        if self.kind == "peer":
            return
        if self.role == "client" and self.kind == "diffusion":
            raise GroupError(f"{self.name}: clients of a diffusion group only listen")
        if order == "domain":
            raise ConfigurationError(f"order 'domain': {self.name} has clients, which know no such order")
        if items and (to is not None or self.role == "client"):
            raise ConfigurationError(
                "what a client sends or is sent alone replaces nothing, so it has no item"
            )

    async def send_many(
        self,
        payloads: Sequence[bytes],
        *,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
    ) -> MessageId:
        """Multicast several messages; returns the id of the last. As `Domain.send_many`."""
        self._check()
        return await self.domain.send_many(self.name, payloads, order=order, timeout=timeout, confirm=confirm)

    async def send_items(
        self,
        updates: Sequence[tuple[str, bytes]],
        *,
        order: str = "agreed",
        timeout: float | None = None,
    ) -> MessageId:
        """Multicast several updates, each of an item; returns the id of the last."""
        self._check()
        return await self.domain.send_items(self.name, updates, order=order, timeout=timeout)

    async def send_to(self, member: MemberId, payload: bytes, *, timeout: float | None = None) -> MessageId:
        """A message to one member alone, in the same order. As `Domain.send_to`."""
        return await self.domain.send_to(member, payload, timeout=timeout)

    def _check(self) -> None:
        self.domain.check_member(self)

    # Calling

    async def call(
        self,
        payload: bytes,
        *,
        replies: Wanted = "all",
        to: Literal["all", "one"] | MemberId = "all",
        timeout: float | None = 10.0,
    ) -> CallAnswer:
        """Ask the members of the group, and wait for what they answer: as `Group.call`.

        Those have to answer who are in the view in which the request is delivered, if they have an `on_call`.
        """
        self._check()
        check_wanted(replies)
        if self.role == "client" and (to == "one" or self.kind == "diffusion"):
            raise ConfigurationError(
                "clients of a client-server group call all its servers, or a certain one"
            )
        if to != "all" and replies not in ("first", "all", 1):
            raise ConfigurationError(f"replies={replies!r}: only one member is asked")
        whom = to if isinstance(to, MemberId) else ONE if to == "one" else ALL
        return await self.domain.outlast(self._open_calls().desk.call(payload, replies, whom, timeout))

    def on_call(self, handler: H) -> H:
        """Answer calls with this function: `@group.on_call`, as `Group.on_call`.

        It runs as soon as the domain is told of the request; the program may not have iterated up to it.
        Set it right after `join`, before anything else is awaited: then no request is missed.
        """
        self._check()
        self._open_calls().desk.serve(handler)
        return handler

    def _open_calls(self) -> GroupCalls:
        if self._calls is None:
            self._calls = self.domain.calls_of(self)
        return self._calls

    # Receiving

    async def __aiter__(self) -> AsyncIterator[DomainEvent]:
        """What happens in this group, one by one: a filter of the domain's stream.

        Between two groups that are read this way nothing is said about the order: two tasks read at
        their own pace. Where that order matters, iterate over the domain. Who iterates over a group and then
        stops reading holds up all that this program reads of the domain, as with any part of one stream.
        """
        async for _, event in self.outlet.events():
            yield event

    async def batches(self) -> AsyncIterator[Sequence[DomainDelivery]]:
        """The same in lists: runs of messages (`Batch`), and changes of view between them."""
        async for deliveries in self.outlet.batches():
            yield [delivery for _, delivery in deliveries]

    # By the domain

    def installed(self, event: GroupView, change: ViewChange) -> None:
        """It is in another view."""
        self.view, self._view_id, self._vs = change.view, event.id, event.vs
        self._blocked = False
        self.changed.set()
        self.note(change)

    def note(self, event: ViewChange | TransitionalView | Rejoining) -> None:
        """Calls have to know, too."""
        if self._early:
            self._early.append(event)
        elif self._calls is not None:
            self._calls.note(event)

    def hear_calls(self, run: Delivered) -> None:
        """What calls sent here. Who answers none has to say so, so somebody always listens.

        What comes with the first view waits: the program learns of that view a little later.
        """
        calls = self._open_calls()
        if self._known:
            calls.hear(run)
        else:
            self._early.append(run)

    def known(self) -> None:
        """The program knows that it is in the group, and answers calls from the first on if it wants to."""
        self._known = True
        early, self._early = self._early, []
        for each in early:
            if isinstance(each, Delivered):
                self.hear_calls(each)
            else:
                self.note(each)

    def block(self) -> None:
        """Its view ends."""
        self._blocked = True

    def again(self, news: Rejoining) -> None:
        """This program comes back as another member, which is in no view yet."""
        self.note(news)
        self.view = self._view_id = None
        self._blocked = False

    def end(self, cause: str) -> None:
        """This program is in the group no more."""
        self.over = cause
        self.changed.set()
        self.outlet.arrived.set()
        if self._calls is not None:
            self._calls.end(GroupClosedError(f"{self.name} of {self.domain.name}: {cause}"))

    @property
    def leaving(self) -> bool:
        """Whether this program has asked to leave."""
        return self._leaving

    def leaves(self) -> None:
        """This program has asked to leave."""
        self._leaving = True

    @property
    def may_send(self) -> bool:
        """Whether a member may send: it has a view, and in a `vs` group that does not end.

        Who has asked to leave sends as one from outside, and waits for nothing.
        """
        return self._leaving or (self._view_id is not None and not self._blocked)

    @property
    def sending_view(self) -> ViewId | None:
        """The view that its messages name; none from its leave on."""
        return self._view_id if self._vs and not self._leaving else None


async def _nothing() -> None:
    """Nobody wants to know."""
