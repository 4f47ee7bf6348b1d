"""A packet before it has a number."""

import msgspec

from semcast.protocols.ring.frames import Part


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A packet to be: what is in it, but not its number."""

    safe: bool
    parts: list[Part]
    whole: list[Part]
    """The messages that end in this packet, those in fragments put together."""
    messages: int
    bytes: int
    """Payload bytes in the packet."""
