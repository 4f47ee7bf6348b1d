"""What a live group must know of a stack."""

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.registry import Registry
from semcast.core.stack import Stack
from semcast.protocols.families import Family as Protocol
from semcast.wire.limits import MAX_MESSAGE

if TYPE_CHECKING:
    from semcast.group.settings import GroupSettings


PACKET_OVERHEAD = 200
"""Bytes of a datagram that a packet needs besides its messages, at most."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What a stack is made for."""

    member: MemberId
    members: tuple[MemberId, ...]
    """All who are ever in the group, where that is fixed."""
    settings: "GroupSettings"
    """Those of the family."""
    datagram: int
    """Bytes of a datagram, before it is sealed."""
    packet: int
    """Bytes of messages in it, where they have company."""
    state: bool
    """Whether who joins is given the state of the application."""
    epoch: int = 0
    """The time of day, in nanoseconds, when the clock of the machine stood at 0."""


class Asked(msgspec.Struct, frozen=True):
    """What the settings ask of the stack; recordings say so."""

    order: str = "fifo"
    uniform: bool = False
    stack: str = ""
    """The stack that is judged, where it has another name than the family."""


def _nothing(_settings: "GroupSettings") -> tuple[MemberId, ...]:
    return ()


def _fifo(_settings: "GroupSettings") -> Asked:
    return Asked()


def _never(_settings: "GroupSettings") -> int:
    return 0


def _ask_for_others(_settings: "GroupSettings") -> str:
    return "do others run, with the same settings and keys?"


def _large(_site: Site) -> int:
    return MAX_MESSAGE


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A stack, for programs."""

    name: str
    protocol: Protocol
    """What it puts on the wire."""
    settings: "type[GroupSettings]"
    """What can be set, with a check."""
    build: Callable[[Site, Random, Outbox], Stack]
    runs: tuple[str, ...] = ()
    """The stacks it runs, by the names under which they are simulated and judged; its own where empty."""
    fixed: bool = False
    """Whether the members are those of a list, `members`, in a view that never changes."""

    # What it has in common with the others of its group

    alike: Callable[["GroupSettings"], tuple[MemberId, ...]] = _nothing
    """What all members must have set alike, as names that tell their datagrams from those of others."""
    kinds: tuple[tuple[MemberId, ...], ...] = ()
    """All that `alike` may say, for who watches groups; nothing at all need not be named."""
    asked: Callable[["GroupSettings"], Asked] = _fifo

    # Sending

    largest: Callable[[Site], int] = _large
    """Bytes of a message, at most."""
    splits: bool = True
    """Whether a message may be larger than a datagram."""
    note_room: Callable[[int], int] | None = None
    """Bytes beside a message for the items it is about, where packets of a size leave few."""
    takes_updates: bool = True
    """Whether updates of items are handed over many at a time."""
    safe: bool = False
    """Whether single messages can be sent as safe."""
    confirms: tuple[str, ...] = ("delivered", "safe")
    """What a program may wait for after it has sent something."""
    instead_of_safe: str = ""
    """What to do else, for errors."""
    announces: bool = True
    """Whether the stack says itself when messages leave; else they leave where it takes them."""
    renumbers: bool = False
    """Whether numbers of messages are the stack's own: then who waits for its messages counts them."""

    calls: bool = False
    """Whether members can call each other: there are agreed views."""

    clients: bool = False
    """Whether its members send nothing themselves, and programs are clients of theirs (`semcast.domain`)."""

    # Life

    keeps: bool = False
    """Whether its members keep records, where they have a disk."""
    transfers: bool = False
    """Whether who joins can be given the state of the application."""
    admits: bool = False
    """Whether a member must be let in by others, so that who is alone waits."""
    forgets: Callable[["GroupSettings"], int] = _never
    """How many found a group that has one beginning only while most of them remember it; 0 for none."""
    advice: Callable[["GroupSettings"], str] = _ask_for_others
    """What to look at when a member has been looking for its group for a while."""
    visiting: Mapping[str, Any] = {}
    """Settings of somebody who is there only for one command."""
    tailing: str = "leave"
    """The policy of somebody who only listens."""


FAMILIES: Registry[Family] = Registry("stack")
