"""`send(..., confirm=...)`: who waits to know what became of a message."""

import asyncio
from typing import Literal

import msgspec

from semcast.core.events import Confirmed, Unconfirmed
from semcast.core.ids import MessageId
from semcast.core.views import View
from semcast.group.errors import ConfigurationError, UnconfirmedError
from semcast.group.registry import Family

Confirm = Literal["delivered", "safe", "logged"]
"""How far a message has to have come."""


class Confirmation(msgspec.Struct, frozen=True):
    """Confirms a message: it is delivered in `view`, and `safe` or `logged` if that was asked for.

    Safe: every member of the view has it. Logged: loggers have it on disk. A message that was purged is
    confirmed, too: its replacement was delivered.
    """

    id: MessageId
    """As `send` returns it without `confirm`."""
    view: View
    """In which it is delivered."""
    position: int
    """Its place there. Ring: the packet, in the order of all. vsync in total order: `Message.order`. Else the
    number of the message among those of its sender, as the others see it."""


class Confirmations:
    """The calls that wait. All of them are made in the program's thread."""

    def __init__(self) -> None:
        self._next = 1
        self._waiting: dict[int, asyncio.Future[Confirmed]] = {}

    def open(self, confirm: Confirm) -> "tuple[tuple[int, bool], asyncio.Future[Confirmed]]":
        """A ticket for the stack, and what will be known."""
        ticket, self._next = self._next, self._next + 1
        future: asyncio.Future[Confirmed] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = future
        future.add_done_callback(lambda _: self._waiting.pop(ticket, None))
        return (ticket, confirm != "delivered"), future

    def answer(self, answer: Confirmed | Unconfirmed) -> None:
        """The stack answered; perhaps nobody waits any more."""
        future = self._waiting.get(answer.ticket)
        if future is None or future.done():
            return
        if isinstance(answer, Confirmed):
            future.set_result(answer)
        else:
            future.set_exception(UnconfirmedError(answer.cause))

    def end(self, error: BaseException) -> None:
        """Nothing more will be known."""
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(error)


def check_confirm(confirm: str | None, family: Family) -> None:
    """Refuse what there is not."""
    if confirm is not None and confirm not in family.confirms:
        known = " and ".join(family.confirms)
        raise ConfigurationError(f"confirm {confirm!r}: stack {family.name} has {known}")
