"""What is agreed on when a view ends; as a value of consensus it names newcomers by id, others by rank."""

from collections.abc import Sequence

import msgspec

from semcast.core.ids import MemberId
from semcast.protocols.semantic.frames import Seq, Seqs
from semcast.protocols.vsync.frames import Cause, Members, Ranks, Report


class Change(msgspec.Struct, frozen=True):
    """The next view, and what is delivered in this one."""

    members: list[MemberId]
    """Of the next view: those who go on in their old order, then those who join."""
    joined: list[MemberId]
    left: list[tuple[MemberId, str]]
    cut: list[int]
    """By rank in this view, up to which message."""
    providers: list[MemberId]
    """Those who go on and whose applications hand the state over, in the order in which they are asked."""
    report: bytes = b""
    view: int = 0
    """The number of the next view."""
    reformed: bool = False
    """Whether fewer than a quorum agreed to it, all who live."""
    lost: bool = False
    """Whether nobody who lives has the state."""
    unread: bool = False
    """Whether nobody reads who has the state: who does so first may be asked for it, by another change."""


class _Wire(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The same; ranks are those in the view that ends."""

    staying: Ranks
    joined: Members
    left: list[tuple[int, Cause]]
    cut: Seqs
    providers: Ranks
    report: Report
    view: Seq
    reformed: bool
    lost: bool
    unread: bool


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Wire).decode


def encode(change: Change, members: Sequence[MemberId]) -> bytes:
    """As a value of consensus among the members of the view that ends."""
    ranks = {member: rank for rank, member in enumerate(members)}
    joined = set(change.joined)
    wire = _Wire(
        [ranks[member] for member in change.members if member not in joined],
        change.joined,
        [(ranks[member], cause) for member, cause in change.left],
        change.cut,
        [ranks[member] for member in change.providers],
        change.report,
        change.view,
        change.reformed,
        change.lost,
        change.unread,
    )
    return _encode(wire)


def report_of(value: bytes) -> bytes:
    """What a value says of the order; nothing if it says nothing at all."""
    try:
        return _decode(value).report
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return b""


def decode(value: bytes, members: Sequence[MemberId]) -> Change | None:
    """What a value says; None if it says nothing about these members."""
    try:
        wire = _decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    named = (*wire.staying, *wire.providers, *(rank for rank, _ in wire.left))
    if not all(0 <= rank < len(members) for rank in named):
        return None
    staying = [members[rank] for rank in wire.staying]
    return Change(
        members=[*staying, *wire.joined],
        joined=wire.joined,
        left=[(members[rank], cause) for rank, cause in wire.left],
        cut=wire.cut,
        providers=[members[rank] for rank in wire.providers],
        report=wire.report,
        view=wire.view,
        reformed=wire.reformed,
        lost=wire.lost,
        unread=wire.unread,
    )
