"""What servers say to each other in the total order of their group (section 6.2).

All messages name a configuration: what was handed over in one and sent in the next is for nobody.
"""

from typing import Annotated

import msgspec

from semcast.replication.actions import Names, Run, RunId
from semcast.replication.ids import ConfId, Creator, Number, Server, Weighted
from semcast.replication.knowledge import Account, Prim, Vulnerable

Version = Annotated[str, msgspec.Meta(max_length=100)]
RUN_BYTES = 48_000
"""Bytes of actions in one message, about."""


class Actions(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """New actions. `line` is the green line of their creator on its disk."""

    conf: ConfId
    line: Number
    run: Run


class State(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """All that a server knows; it is on its disk."""

    conf: ConfId
    server: Server
    green: Number
    """Its green line, and the chain hash there."""
    digest: bytes
    start: Number
    """The position from which on it has the actions themselves."""
    cut: tuple[tuple[Creator, Number], ...]
    """The last action that it has of each creator."""
    attempt: Number
    prim: Prim
    vulnerable: Vulnerable | None
    yellow: tuple[RunId, ...] | None
    weights: Weighted
    """Its servers by what is green there."""
    founders: Weighted
    names: Names
    """Who is to found the group, where it was told."""
    limit: Number
    """Actions that it would rather not be given in an exchange."""
    wall: Number = 0
    """Its clock: milliseconds since 1970; 0 where it has none."""
    versions: Annotated[tuple[Version, ...], msgspec.Meta(max_length=16)] = ()
    """Of what does actions there."""
    heard: tuple[tuple[Server, Number], ...] = ()
    """The green lines that other servers told it, each of its disk."""

    def account(self) -> Account:
        """What knowledge is made of."""
        return Account(self.prim, self.attempt, self.yellow, self.vulnerable)


class Again(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Actions that some have and some do not: green from a position on, or, without one, red."""

    conf: ConfId
    position: Number
    runs: list[Run]


class Done(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """This share of the exchange is complete."""

    conf: ConfId
    share: Number


class Cpc(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """Create primary component: this server has the attempt on its disk."""

    conf: ConfId


class Installed(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """The primary of this configuration is on a disk of one of its servers."""

    conf: ConfId


class Line(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    """How far the disk of a server is that makes no actions."""

    conf: ConfId
    line: Number


Said = Actions | State | Again | Done | Cpc | Installed | Line

_decoder: "msgspec.msgpack.Decoder[Said]" = msgspec.msgpack.Decoder(Said)
_encoder = msgspec.msgpack.Encoder()


def encode(message: Said) -> bytes:
    """As it is multicast."""
    return _encoder.encode(message)


def decode(payload: bytes) -> Said | None:
    """What was multicast; None where no server says such a thing. All servers come to the same."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
