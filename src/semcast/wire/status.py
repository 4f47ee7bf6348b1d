"""What a live member says of itself once a second, for whoever watches the group without being in it."""

from typing import Annotated

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.wire.limits import MAX_CONTACTS, MAX_MEMBERS, MAX_PAYLOAD, MAX_SEQ

MAX_REASON = 160
"""Characters of a reason."""
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)]


class Status(Frame, frozen=True, array_like=True, tag=17, gc=False):
    """Where a member stands. Drivers send it and keep it from the stacks, which know nothing of it."""

    phase: Annotated[str, msgspec.Meta(max_length=32)]
    view: Count
    representative: MemberId | None
    """Who formed the view, where views have such a one."""
    members: Annotated[int, msgspec.Meta(ge=0, le=MAX_MEMBERS)]
    sent: Count
    delivered: Count
    purged: Count
    """Messages that its application did not get because others replace them."""
    retransmitted: Count
    buffered: Count
    unsent: Count
    """Messages that flow control holds back."""
    uptime: Count
    """Nanoseconds since it started: tells an old report from a new one, and is what rates refer to."""
    deaf: bool = False
    """Whether somebody this member knows was not heard at the meeting point lately."""
    unread: Count = 0
    """Messages that its program has not read."""
    held_by: MemberId | None = None
    """The member that keeps this one from sending, where it is one."""
    held_why: Annotated[str, msgspec.Meta(max_length=MAX_REASON)] = ""
    """Why this member may not send just now; empty where it may."""
    held_for: Count = 0
    """Nanoseconds since then."""


class Contacts(Frame, frozen=True, array_like=True, tag=18, gc=False):
    """Where others are: for members who look for each other by lists that do not name everybody."""

    known: Annotated[
        list[
            tuple[
                MemberId,
                Annotated[str, msgspec.Meta(max_length=64)],
                Annotated[int, msgspec.Meta(ge=1, lt=1 << 16)],
            ]
        ],
        msgspec.Meta(max_length=MAX_CONTACTS),
    ]


class Probe(Frame, frozen=True, array_like=True, tag=98, gc=False):
    """As large as a datagram may be: if it arrives, it is answered, and others of its size arrive, too."""

    number: Count
    padding: Annotated[bytes, msgspec.Meta(max_length=MAX_PAYLOAD)]


class Probed(Frame, frozen=True, array_like=True, tag=99, gc=False):
    """The probe of this number came."""

    number: Count


class GoOn(Frame, frozen=True, array_like=True, tag=101, gc=False):
    """An operator vouches that whoever is not within reach is gone (`semcast reform`)."""

    view: Count
    """The view of whoever is told: in any other it means nothing."""
