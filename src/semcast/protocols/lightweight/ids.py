"""Names of views and positions: where they stand in the order of the daemons.

A view of a lightweight group is named by the configuration of daemons in which it was installed and by a
number there, which counts the changes of *all* groups. What comes behind a `TransitionalView` of the daemons
is a *rest*: another part of the old configuration may have another rest, so what is named there carries the
first member of this part, and is ordered between the old configuration and the next.
"""

from typing import Annotated

import msgspec

from semcast.core.ids import MAX_NUMBER, MemberId
from semcast.core.views import View

Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
Change = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
"""Numbers that clients are told, in any language: none loses them."""
_BITS = 53
"""Of what is counted within a configuration."""


class Epoch(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A configuration of daemons, or what one part of its members delivers of it at the end."""

    number: Number
    rest: bool
    representative: MemberId
    """Who formed the configuration; of a rest, the first of those who go on together."""

    def __str__(self) -> str:
        return f"{self.number}{'~' if self.rest else '@'}{self.representative}"


class ViewId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A view of a lightweight group. Those that one client sees grow."""

    epoch: Epoch
    change: Change

    def __str__(self) -> str:
        return f"{self.epoch}.{self.change}"


class Position(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A place in the order of the daemons: one for each message, over all groups."""

    epoch: Epoch
    index: Change

    def __str__(self) -> str:
        return f"{self.epoch}:{self.index}"


def place_of(epoch: Epoch, number: int) -> int:
    """One number that grows as the name does: configuration, whether it is the rest of one, count."""
    return (epoch.number << 1 | epoch.rest) << _BITS | number


def plain_view(name: ViewId, members: tuple[MemberId, ...]) -> View:
    """A view of a lightweight group as programs and patterns know views."""
    number = place_of(name.epoch, name.change)
    return View(number, members, representative=name.epoch.representative)
