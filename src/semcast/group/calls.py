"""How a program calls its group, and answers: `Group.call`, `Group.on_call`, `Group.send_to`."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, TypeVar

from semcast.core.ids import MemberId, MessageId
from semcast.core.views import View
from semcast.group.calling import CallDesk, Handler
from semcast.group.drafts import Drafts
from semcast.group.errors import ConfigurationError, GroupError
from semcast.group.families import FAMILIES
from semcast.group.inbox import Inbox
from semcast.group.registry import Family
from semcast.group.settings import GroupSettings
from semcast.group.waiting import Room
from semcast.patterns.calls import (
    ALL,
    ENVELOPE,
    ONE,
    CallAnswer,
    CallRequest,
    Wanted,
    Whisper,
    check_wanted,
    encode,
)

To = Literal["all", "one"] | MemberId
"""Whom a call asks: everybody, one of them, or this member."""

H = TypeVar("H", bound=Handler)


class CallingSide(ABC):
    """The part of a `Group` that calls and answers."""

    name: str
    settings: GroupSettings
    largest: int
    _desk: CallDesk
    _drafts: Drafts
    _entered: bool
    _family: Family
    _inbox: Inbox
    _room: Room

    @property
    @abstractmethod
    def view(self) -> View | None:
        """The latest view that this program has seen."""

    @abstractmethod
    def _check_open(self) -> None:
        """Raise where the group is not open."""

    async def call(
        self,
        payload: bytes,
        *,
        replies: Wanted = "all",
        to: To = "all",
        timeout: float | None = 10.0,
    ) -> CallAnswer:
        """Send a request to the members of the group, and wait for their replies.

        The request is ordered with the other messages. All members of the view in which it is delivered are
        asked, this one included, if they have an `on_call`.

        Args:
            payload: the request.
            replies: how many replies to wait for: `first`, `majority`, `all`, or a number. Members that leave
                count as asked; `all` does not wait for them.
            to: `all`; `one` (a work queue: each request goes to one member, and to the next if that leaves);
                or a member.
            timeout: seconds to wait; then the answer says who is `missing`. None for no limit.

        Raises `CallError` if the outcome cannot be known, `BacklogError` if this program must read first,
        `SendTimeoutError` if flow control did not allow to send, and `GroupClosedError`.
        """
        self._check_calls()
        if type(payload) is not bytes:
            raise TypeError(f"payload of type {type(payload).__name__}: must be bytes, so encode text")
        check_wanted(replies)
        if timeout is not None and (not timeout > 0 or math.isinf(timeout)):
            raise ValueError(f"timeout {timeout}: must be above 0, or None")
        if to not in ("all", "one") and not isinstance(to, MemberId):
            raise ValueError(f"to {to!r}: choose all, one, or a member of the view")
        if to != "all" and replies not in ("first", "all", 1):
            raise ValueError(f"replies={replies!r}: only one member is asked")
        self._check_open()
        whom = to if isinstance(to, MemberId) else ONE if to == "one" else ALL
        self._inbox.keep()
        with self._inbox.calling():
            return await self._desk.call(payload, replies, whom, timeout)

    def on_call(self, handler: H) -> H:
        """Set the function that handles calls: `@group.on_call`.

        It gets a `CallRequest` and returns bytes, or None for an empty reply; an exception is reported to the
        caller. A plain function runs at the position of the request: the program has read all messages
        before it. An async function starts there, and several run at the same time; it is cancelled when
        nobody waits for its reply any more.
        """
        self._check_calls()
        self._desk.serve(handler)
        self._inbox.keep()
        if self._entered:
            self._desk.soon(self._inbox.read_meanwhile)
        return handler

    async def send_to(self, member: MemberId, payload: bytes, *, timeout: float | None = None) -> MessageId:
        """Send a message to one member, ordered with all others; its program gets a `PrivateMessage`.

        Other programs do not see it, but it travels to all members: it is not secret. If the member has left
        by then, nobody gets it.
        """
        self._check_calls()
        if not isinstance(member, MemberId):
            raise TypeError(f"send_to {member!r}: must be a member of the view")
        if type(payload) is not bytes:
            raise TypeError(f"payload of type {type(payload).__name__}: must be bytes, so encode text")
        if len(payload) > (most := self.largest - ENVELOPE):
            raise ValueError(f"payload of {len(payload)} bytes: at most {most} are allowed")
        view = self.view
        if view is not None and member not in view.members:
            raise GroupError(f"{member} is not in view {view.name} of {self.name}")
        if not self._room.open_for(1):
            await self._wait_for_call_room(timeout)
        return self._drafts.marked([encode(Whisper(member, payload))])

    # For programs without asyncio

    def run_handlers(self, runner: Callable[[Handler, CallRequest], None]) -> None:
        """Have handlers run by this; `finish_call` is told what came of them."""
        self._desk.runner = runner

    def finish_call(self, request: CallRequest, result: object) -> None:
        """A handler returned this, or raised it. May be called from any thread."""
        self._desk.soon(lambda: self._desk.finish(request, result))

    def iterating(self) -> AbstractContextManager[None]:
        """The program iterates for as long."""
        return self._inbox.loop()

    async def _wait_for_call_room(self, timeout: float | None) -> None:
        await self._room.wait(1, reading=self._inbox.reads(), timeout=timeout)

    def _check_calls(self) -> None:
        if not self._family.calls:
            able = " or ".join(sorted(each.name for each in FAMILIES if each.calls))
            here = self._family.name
            raise ConfigurationError(f"calls need stack {able}; this group has {here}")
        if not self.settings.receive:
            raise ConfigurationError(f"{self.name} was joined with receive=False: no answers would come")
