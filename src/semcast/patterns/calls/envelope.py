"""What calls are on the wire: ordinary messages of the group, with a mark where others have an annotation.

So the payloads of all other messages are what programs sent (`core.marks`). Who reads looks at the annotation
of a run of messages, never at a payload.
"""

from typing import Annotated

import msgspec

from semcast.core.ids import MAX_NAME, MAX_NUMBER, MemberId
from semcast.core.marks import is_mark
from semcast.core.messages import Batch

ALL, ONE = 0, 1
"""Whom a request is for: everybody in the view in which it is delivered, or one of them."""

REPLY, ERROR, ABSTAINS = 0, 1, 2
"""What somebody says to a request: a result, that it failed, or that it answers no calls at all."""

ENVELOPE = 4 * MAX_NAME + 64
"""Bytes that a request, a reply or a private message has besides its body, at most."""

Number = Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)]


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A request. With the name of its sender its number names it."""

    number: Number
    to: Annotated[int, msgspec.Meta(ge=ALL, le=ONE)] | MemberId
    patience: Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
    """Nanoseconds after which nobody waits for an answer any more; 0 for never."""
    body: bytes


class Say(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """What the sender says to a request."""

    caller: MemberId
    number: Number
    what: Annotated[int, msgspec.Meta(ge=REPLY, le=ABSTAINS)]
    body: bytes


class Whisper(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A message for one member. All have it; the others do not look at it."""

    to: MemberId
    body: bytes


Envelope = Ask | Say | Whisper

encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Envelope] = msgspec.msgpack.Decoder(Envelope)


def marked(batch: Batch) -> bool:
    """Whether a run of messages, which is one message then, belongs to calls.

    >>> from semcast.core.marks import MARK
    >>> from semcast.core.messages import batch_of
    >>> marked(batch_of(MemberId("p"), 1, [b"x"], MARK)), marked(batch_of(MemberId("p"), 1, [b"x"]))
    (True, False)
    """
    return is_mark(batch.annotation)


def read(payload: bytes) -> Envelope | None:
    """What is in an envelope; None if it is none."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):  # msgspec leaves the latter to us
        return None
