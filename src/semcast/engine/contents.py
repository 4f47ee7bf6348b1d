"""What is in an action of the engine: a header, and what the service is given.

The header is fixed and short, since every server reads that of every action.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from semcast.engine.levels import STRICT, UPDATES
from semcast.engine.service import Expectation
from semcast.replication.actions import ASKED, PLAIN, Asked, read_asked

UPDATE, READ, CALL, MARK = 0, 1, 2, 3
"""Kinds: a body for the service; a question that is answered at its place; a procedure, or what is
expected; a place at which every server remembers what it has."""

_HEADER = struct.Struct(">BBQQ")
_PLAIN = struct.Struct(">BBBQQ")
"""The same with the kind of the action before it: for those that no client may ask for again."""
PLAIN_BYTES = _PLAIN.size
unpack_plain = _PLAIN.unpack_from
_LEVELS = {level: code for code, level in enumerate(UPDATES)}


class ProcedureCall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A body with more to it: a procedure that is given it, and answers that are expected."""

    body: bytes
    procedure: str = ""
    version: int = 0
    expect: tuple[Expectation, ...] = ()


class Content(NamedTuple):
    """An action, read."""

    kind: int
    level: str
    stamp: int
    token: int
    """By it the server that made the action knows who waits for it."""
    body: bytes
    asked: Asked | None


_encode = msgspec.msgpack.encode
_decode_call = msgspec.msgpack.Decoder(ProcedureCall).decode


def written(kind: int, level: str, stamp: int, token: int, body: bytes) -> bytes:
    """The contents of an action."""
    return _HEADER.pack(kind, _LEVELS[level], stamp, token) + body


def plain_updates(stamp: int, token: int, bodies: Sequence[bytes]) -> list[bytes]:
    """Strict actions for the service, with tokens from one on."""
    pack, strict = _PLAIN.pack, _LEVELS[STRICT]
    return [pack(PLAIN, UPDATE, strict, stamp, each) + body for each, body in enumerate(bodies, token)]


def call(body: bytes, procedure: str, version: int, expect: tuple[Expectation, ...]) -> bytes:
    """The body of a call."""
    return _encode(ProcedureCall(body, procedure, version, expect))


def read_call(body: bytes) -> ProcedureCall:
    """What is called."""
    return _decode_call(body)


def read(action: bytes) -> Content | None:
    """What is in an action; None where no engine made it."""
    asked, start = None, 1
    if not action:
        return None
    if action[0] == ASKED:
        asked = read_asked(action)
        if asked is None:
            return None
        action, start = asked.body, 0
    elif action[0] != PLAIN:
        return None
    if len(action) < start + _HEADER.size:
        return None
    kind, level, stamp, token = _HEADER.unpack_from(action, start)
    if kind > MARK or level >= len(UPDATES):
        return None
    return Content(kind, UPDATES[level], stamp, token, action[start + _HEADER.size :], asked)
