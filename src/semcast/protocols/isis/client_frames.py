"""The frames between the clients of a group and its servers, and what travels in them.

A client has one contact among the servers. Between the two is a pipe in each direction (`pipe.py`), which
carries whole messages in order: `Up` to the contact, `Down` to the client.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.protocols.semantic.frames import Rank, Seq
from semcast.protocols.vsync.frames import Members
from semcast.wire.limits import MAX_MEMBERS

Fields = Annotated[list[tuple[Rank, Seq]], msgspec.Meta(max_length=MAX_MEMBERS)]
"""Of a vector time: ranks, and the last message of each."""
Word = Annotated[str, msgspec.Meta(max_length=100)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
_MOST = 256
_LISTED = 1 << 16


class ClientHello(Frame, frozen=True, array_like=True, tag=170, gc=False):
    """Who is a server of this group, and takes me?"""

    session: Seq
    """Grows whenever this client asks for a contact, from a random number on: others had its name before."""
    style: Word
    placed: bool
    """Whether it was a client before, and has been given something."""


class ClientOffer(Frame, frozen=True, array_like=True, tag=171, gc=False):
    """I do, and have so many clients; or, with a text, nobody does."""

    session: Seq
    load: Seq
    refusal: Word = ""


class ClientPiece(Frame, frozen=True, array_like=True, tag=172, gc=False):
    """A piece of a message in a pipe."""

    session: Seq
    up: bool
    """Whether it goes to the contact."""
    nth: Seq
    more: bool
    """Whether the message goes on in the next piece."""
    data: bytes


class ClientHeard(Frame, frozen=True, array_like=True, tag=173, gc=False):
    """Pieces up to `upto` are here, and I am alive."""

    session: Seq
    up: bool
    """Whether these pieces went to the contact."""
    upto: Seq


class ClientOut(Frame, frozen=True, array_like=True, tag=174, gc=False):
    """Somebody is no client any more."""

    client: MemberId
    """As another incarnation, whoever reads it is not meant."""
    cause: Word


class ClientsHave(Frame, frozen=True, array_like=True, tag=175, gc=False):
    """Between servers: my program and all my clients have what I was given up to here."""

    view: Seq
    counts: Fields
    takes: Seq
    """How many clients of others I have taken over so far."""


ClientFrame = ClientHello | ClientOffer | ClientPiece | ClientHeard | ClientOut | ClientsHave


class Said(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The vector time of another group, as in a stamp."""

    group: Name
    view: Seq
    counts: Fields


Stamps = Annotated[list[Said], msgspec.Meta(max_length=_MOST)]


# To the contact


class Attach(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """The first message: what the client was given so far (D of 7.1), nothing if it is new."""

    placed: bool
    view: Seq
    counts: Fields


class ClientCast(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A message of the client to all servers."""

    number: Seq
    marked: bool
    others: Stamps
    epoch: Seq
    lamport: Seq
    payload: bytes


class Settle(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Say when all servers and clients have what came before this."""

    nth: Seq


class Bye(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """The client leaves."""


class FlushWanted(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """Say when the programs of all servers have taken these messages, which the client was given."""

    nth: Seq
    view: Seq
    counts: Fields


Up = Attach | ClientCast | Settle | Bye | FlushWanted


# To the client


class ViewItem(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A view of the servers."""

    view: Seq
    members: Members
    joined: Members
    left: Members
    failed: Members


class Item(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A run of messages of one sender, and how far its contact is with them (D of 7.1)."""

    view: Seq
    counts: Fields
    sender: MemberId
    first: Seq
    payloads: list[bytes]
    items: list[str] | None
    marked: bool
    others: Stamps
    epoch: Seq
    lamport: Seq


class Done(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """The programs of all servers have taken what the client sent, up to this number."""

    number: Seq


class Settled(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """All servers and clients have it."""

    nth: Seq


class Flushed(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """The programs of all servers have taken what the client was given before it asked."""

    nth: Seq


class Farewell(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """Its sender leaves, and all servers and clients have all that came before this."""


Down = ViewItem | Item | Done | Settled | Flushed | Farewell


# Among servers, as messages of the group for their programs


class Relay(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """What a client sends, multicast by its contact."""

    client: MemberId
    number: Seq
    marked: bool
    payload: bytes


class ForClient(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """What a server sends to its fellows and one client."""

    client: MemberId
    marked: bool
    payload: bytes


Among = Relay | ForClient


# And what they say to each other about clients, in messages that are not for programs


class Came(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Its sender is the contact of a client."""

    client: MemberId
    session: Seq
    takes: Seq
    """If another server was before: how many such its sender has taken over, with this one."""
    view: Seq
    counts: Fields
    """So far its sender has given to all its clients, this one included."""


class Gone(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """Somebody is no client any more: it left as of a session, or, with 0, is given up for good."""

    client: MemberId
    session: Seq


class Visitor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A client, and the last of its messages that was relayed."""

    client: MemberId
    session: Seq
    last: Seq


class Roll(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """For servers that have joined: clients of its sender, and those that have no contact."""

    more: bool
    """Whether there are more of them."""
    style: Word
    visitors: Annotated[list[Visitor], msgspec.Meta(max_length=_LISTED)]
    orphans: Annotated[list[Visitor], msgspec.Meta(max_length=_LISTED)]


About = Came | Gone | Roll
TAG = b"\xc7"
"""The first byte of what is about clients alone, where other messages have a head; none begins so."""

encode = msgspec.msgpack.Encoder().encode
read_up = msgspec.msgpack.Decoder(Up).decode
read_down = msgspec.msgpack.Decoder(Down).decode
read_among: Callable[[bytes], Among] = msgspec.msgpack.Decoder(Among).decode
_read_about: Callable[[bytes], About] = msgspec.msgpack.Decoder(About).decode


def is_about(head: bytes) -> bool:
    """Whether a message is about clients alone.

    >>> is_about(TAG + encode(Gone(MemberId("c"), 1))), is_about(b"")
    (True, False)
    """
    return head[:1] == TAG


def read_about(head: bytes) -> About:
    """What it says; raises `msgspec.MsgspecError` where that is nothing."""
    return _read_about(head[1:])
