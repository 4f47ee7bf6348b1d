"""Who and which: identifiers of members and messages, and the unit of time."""

from typing import Annotated

import msgspec

MAX_NAME = 64
"""Bytes of a member's name: it is in every datagram, and in frames that must fit in one."""
MAX_NUMBER = 1 << 62
"""Of incarnations and messages; no decoder accepts more."""

Nanos = int
"""Time in integer nanoseconds. Its origin is the driver's; only differences mean anything."""

SECOND: Nanos = 1_000_000_000
MILLISECOND: Nanos = 1_000_000
MICROSECOND: Nanos = 1_000


class MemberId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A process in a group. A restart under the same name is a new incarnation, hence another member."""

    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
    incarnation: Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)] = 0

    def __str__(self) -> str:
        return self.name if self.incarnation == 0 else f"{self.name}#{self.incarnation}"


class MessageId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The `seq`-th message of one sender, counted from 1."""

    sender: MemberId
    seq: Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]

    def __str__(self) -> str:
        return f"({self.sender},{self.seq})"
