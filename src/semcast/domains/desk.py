"""Between a link and the groups of a program: what is asked for, and what is told, session after session."""

import asyncio
from collections import deque
from collections.abc import Callable

from semcast.core.events import Left, Rejoining
from semcast.core.ids import MessageId
from semcast.domains.books import Books
from semcast.domains.events import Undeliverable, private_of, transitional_of, view_of
from semcast.domains.light import LightGroup
from semcast.domains.link import JoinRequest, Link, ReadyRequest, Refusal, Request, Terms
from semcast.domains.stream import Outlet, Stream
from semcast.group.errors import GroupError, UnconfirmedError
from semcast.protocols.clients.permissions import is_call
from semcast.protocols.lightweight.events import (
    Block,
    ClientEvent,
    Delivered,
    GroupTransitional,
    GroupView,
    LeftGroup,
    Out,
    Placed,
    PrivateDelivered,
    Replaced,
)
from semcast.protocols.lightweight.events import Undeliverable as NobodyThere

_RECEIPTS = 1 << 14
_PATIENCE = 0.2
"""Seconds that much may wait where nobody ever iterated: the task that reads may be about to start."""


class Desk:
    """One program of a domain.

    Args:
        link: to its daemon.
        bound: messages that wait for who reads.
        changed: called when somebody who waits should look again.
        is_over: whether nothing more comes; raises where the end was not asked for.
    """

    def __init__(
        self, link: Link, bound: int, changed: Callable[[], None], is_over: Callable[[], bool]
    ) -> None:
        self.link = link
        self.groups: dict[str, LightGroup] = {}
        """Those that this program is in, or wants to be in."""
        self.failure: GroupError | None = None
        """What ended it, if something did."""
        self.stream = Stream(bound, self.hear, is_over)
        self.terms: Terms
        self.books: Books
        self._changed = changed
        self._is_over = is_over
        self._coming: asyncio.Task[None] | None = None  # back, as another member
        self._hearing = False
        self._skipping: asyncio.TimerHandle | None = None  # it may be that nobody wants to read
        self.receipts: deque[Replaced] = deque(maxlen=_RECEIPTS)
        """What was dropped because this program was slow; the newest, where nobody looks."""
        self._handlers: dict[type, Callable[..., None]] = {
            Delivered: self._on_delivered,
            Placed: self._on_placed,
            GroupView: self._on_view,
            GroupTransitional: self._on_transitional,
            Block: self._on_block,
            LeftGroup: self._on_left,
            PrivateDelivered: self._on_private,
            NobodyThere: self._on_undeliverable,
            Replaced: self._on_replaced,
            Out: self._on_out,
            Refusal: self._on_refusal,
        }

    def begin(self, terms: Terms) -> None:
        """A session has begun."""
        self.terms = terms
        self.books = Books(terms.client)

    def end(self) -> None:
        """The program closes the domain."""
        if self._coming is not None:
            self._coming.cancel()
        if self._skipping is not None:
            self._skipping.cancel()
        self.books.end(UnconfirmedError("the domain was closed before that was known"))
        for group in self.groups.values():
            group.end("the domain was closed")
        self.stream.wake()

    def outlet(self, group: str) -> Outlet:
        """For the iterator of a group."""

        def is_over() -> bool:
            seat = self.groups.get(group)
            return seat is None or seat.outlet is not outlet or self._is_over()

        outlet = self.stream.outlet(is_over)
        return outlet

    # Asking

    def room_for(self, messages: int, size: int) -> bool:
        """Whether so much may be asked for now."""
        return self._coming is None and self.link.room_for(messages, size)

    def submit(self, request: Request) -> int:
        """Ask for something; returns its first number."""
        first = self.books.note(request)
        self.link.submit(request)
        return first

    # Hearing

    def hear(self) -> None:
        """Take what the link has, as far as the program reads."""
        if self._hearing or self._coming is not None:
            return
        self._hearing = True
        try:
            while not self.stream.full() and self._coming is None and (events := self.link.take()):
                for event in events:
                    self._handlers[type(event)](event)
        finally:
            self._hearing = False
        if self._skipping is None and self.stream.full() and self.stream.unread():
            self._skipping = asyncio.get_running_loop().call_later(_PATIENCE, self._skip)
        self._changed()

    def _skip(self) -> None:
        """Nobody has begun to read for a while: the program may not want to."""
        self._skipping = None
        self.stream.skip_unread()
        self.hear()

    def _on_delivered(self, event: ClientEvent) -> None:
        assert type(event) is Delivered
        groups = event.groups
        if len(groups) > 1:
            if is_call(groups):
                if groups[0] in self.groups:
                    self.groups[groups[0]].hear_calls(event)
                return
            groups = tuple(group for group in groups if group in self.groups) or groups
        self.stream.put(groups, event)

    def _on_placed(self, event: ClientEvent) -> None:
        assert type(event) is Placed
        self.books.place(event.upto)

    def _on_view(self, event: ClientEvent) -> None:
        assert type(event) is GroupView
        change = view_of(event)
        seat = self.groups.get(event.group)
        if seat is not None:
            seat.installed(event, change)
        self.stream.put((event.group,), change)

    def _on_transitional(self, event: ClientEvent) -> None:
        assert type(event) is GroupTransitional
        news, seat = transitional_of(event), self.groups.get(event.group)
        if seat is not None:
            seat.note(news)
        self.stream.put((event.group,), news)

    def _on_block(self, event: ClientEvent) -> None:
        """Answered at once: what this program sends from now on waits for the next view."""
        assert type(event) is Block
        seat = self.groups.get(event.group)
        if seat is not None:
            seat.block()
        self.submit(ReadyRequest(event.group, event.view))

    def _on_left(self, event: ClientEvent) -> None:
        assert type(event) is LeftGroup
        self.stream.put((event.group,), Left(event.cause or "asked to"))
        self._forget(event.group, event.cause or "this program left it")

    def _on_private(self, event: ClientEvent) -> None:
        assert type(event) is PrivateDelivered
        self.stream.put_private(private_of(event))

    def _on_undeliverable(self, event: ClientEvent) -> None:
        assert type(event) is NobodyThere
        self.stream.put_private(Undeliverable(MessageId(self.books.member, event.seq), event.to))

    def _on_refusal(self, event: "ClientEvent | Refusal") -> None:
        assert type(event) is Refusal
        self.books.refuse(event.seq, event.count, GroupError(event.text))
        seat = self.groups.get(event.group)
        if seat is not None and seat.view is None:
            self._forget(event.group, event.text)

    def _on_replaced(self, event: ClientEvent | Refusal) -> None:
        assert type(event) is Replaced
        self.receipts.append(event)

    def _forget(self, group: str, cause: str) -> None:
        seat = self.groups.pop(group, None)
        self.stream.remove(group)
        if seat is not None:
            seat.end(cause)

    # Coming back

    def _on_out(self, event: ClientEvent) -> None:
        assert type(event) is Out
        self.books.end(UnconfirmedError(f"{self.books.member} was put out before that was known"))
        self._coming = asyncio.get_running_loop().create_task(self._come_back(event.cause))

    async def _come_back(self, cause: str) -> None:
        """As another member, in the same groups; the program hears of it once."""
        former = self.books
        try:
            self.begin(await self.link.renew())
        except GroupError as error:
            self.failure = error
            self.stream.wake()
            for seat in self.groups.values():
                seat.changed.set()
        else:
            news = Rejoining(former.member, self.books.member, cause, former.unsettled())
            self.stream.put_everywhere(news)
            for name, seat in list(self.groups.items()):
                if seat.leaving:
                    self._forget(name, "this program left it")
                elif seat.asked:  # who still waits for room asks itself
                    seat.again(news)
                    self.submit(JoinRequest(name, seat.wants_vs, seat.kind, seat.role))
        finally:
            self._coming = None
        self.hear()
        self._changed()
