"""Datagrams: a version, the group they belong to, who sent them, and packed frames.

Layout: version (1 byte), group (8 bytes), then MessagePack: [source, [frame, frame, ...]]. Frames are
encoded once and joined under one array header, so that packing copies bytes and decoding is one call.
"""

import enum
import hashlib
import struct
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from types import GenericAlias
from typing import Protocol

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.wire.decoded import Datagram
from semcast.wire.status import Contacts, GoOn, Probe, Probed, Status

VERSION = 1
SEALED_VERSION = 0x81
"""Of datagrams that only a key opens (`sealing.py`)."""
_HEADER = struct.Struct(">B8s")
_COUNT = struct.Struct(">BH")
_ARRAY16 = 0xDC
_ONE = _COUNT.pack(_ARRAY16, 1)
_PAIR = b"\x92"
MAX_FRAMES = 0xFFFF
_SOURCES = 4096
"""Sources of which it is known how their datagrams begin."""
GROUP_AT = slice(1, 9)
"""Where every datagram, sealed or not, and every piece of one names its group."""


class Malformed(enum.Enum):
    """Why bytes were not a datagram for us."""

    TRUNCATED = "truncated"
    VERSION = "unknown version"
    GROUP = "another group"
    BODY = "undecodable body"
    OVERSIZED = "oversized"
    SEALED = "sealed, and there is no key here"
    UNSEALED = "not sealed"
    KEY = "sealed with an unknown key"
    FORGED = "forged or damaged"
    REPLAYED = "replayed"
    STALE = "of an old session"
    ELSEWHERE = "not from where its sender is"


class DatagramCodec(Protocol):
    """What a driver needs of a codec, sealed or not."""

    @property
    def group(self) -> bytes:
        """The eight bytes that name the group in its datagrams."""

    @property
    def authentic(self) -> bool:
        """Whether only members can make what it decodes."""

    def encode(self, source: MemberId, frames: Sequence[Frame]) -> list[bytes]:
        """Pack frames, in order, into as few datagrams as possible."""

    def decode(self, data: bytes) -> Datagram | Malformed:
        """A datagram, or why it is none. Never raises, whatever the bytes."""


class Codec:
    """Encodes and decodes the datagrams of one group.

    Args:
        group: its name.
        members: those who are always in it, where that is fixed.
        limit: bytes of a datagram.
        frames: the types of frames that the family of its stack sends; those of drivers come on top.

    >>> class Ping(Frame, frozen=True, array_like=True, tag=100):
    ...     number: int
    >>> p = MemberId("p")
    >>> codec = Codec("prices", [p], 1400, [Ping])
    >>> [datagram] = codec.encode(p, [Ping(7)])
    >>> codec.decode(datagram).frames
    [Ping(number=7)]
    >>> codec.decode(datagram[:-1])
    <Malformed.BODY: 'undecodable body'>
    """

    def __init__(
        self, group: str, members: Iterable[MemberId], limit: int, frames: Iterable[type[Frame]]
    ) -> None:
        self.limit = limit
        self._encoder = msgspec.msgpack.Encoder()
        # Made at run time: mypy (and so the compiled wheel) would read `list[...]` as the alias of a type.
        known = GenericAlias(list, reduce(or_, (Status, Contacts, Probe, Probed, GoOn, *frames)))
        self._decoder: msgspec.msgpack.Decoder[tuple[MemberId, list[Frame]]]
        self._decoder = msgspec.msgpack.Decoder(GenericAlias(tuple, (MemberId, known)))
        self._frames_decoder: msgspec.msgpack.Decoder[list[Frame]] = msgspec.msgpack.Decoder(known)
        # How the datagrams of sources that were heard begin, and where the last one was from: often the next
        # is from there, too.
        self._beginnings: dict[bytes, MemberId] = {}
        self._lengths: list[int] = []  # that beginnings have: few, as no name is long
        self._heard: tuple[bytes, MemberId] | None = None
        self.group = fingerprint(group, members)
        """What its datagrams call it."""
        self._header = _HEADER.pack(VERSION, self.group)
        self._prefixes: dict[MemberId, bytes] = {}

    @property
    def authentic(self) -> bool:
        """Anybody can."""
        return False

    def encode(self, source: MemberId, frames: Sequence[Frame]) -> list[bytes]:
        """Pack frames, in order, into as few datagrams as the limit allows.

        A frame that is larger than the limit on its own goes out alone.
        """
        prefix = self._prefixes.get(source)
        if prefix is None:
            prefix = self._header + _PAIR + self._encoder.encode(source)
            self._prefixes[source] = prefix
        room = self.limit - len(prefix) - _COUNT.size
        datagrams: list[bytes] = []
        packed: list[bytes] = []
        size = 0
        encode = self._encoder.encode
        for frame in frames:
            encoded = encode(frame)
            length = len(encoded)
            if packed and (size + length > room or len(packed) == MAX_FRAMES):
                datagrams.append(_join(prefix, packed))
                packed, size = [], 0
            packed.append(encoded)
            size += length
        if packed:
            datagrams.append(_join(prefix, packed))
        return datagrams

    def decode(self, data: bytes) -> Datagram | Malformed:
        """A datagram, or why it is none. Never raises, whatever the bytes."""
        heard = self._heard
        if heard is None or not data.startswith(heard[0]):
            heard = self._recall(data)
        if heard is not None and len(data) <= 0xFFFF:
            beginning, source = heard
            try:
                return Datagram(source, self._frames_decoder.decode(memoryview(data)[len(beginning) :]))
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                return Malformed.BODY
        return self._decode(data)

    def _recall(self, data: bytes) -> tuple[bytes, MemberId] | None:
        """Whether another source that was heard lately begins like this."""
        for length in self._lengths:
            beginning = data[:length]
            source = self._beginnings.get(beginning)
            if source is not None:
                self._heard = heard = beginning, source
                return heard
        return None

    def _decode(self, data: bytes) -> Datagram | Malformed:
        if len(data) < len(self._header):
            return Malformed.TRUNCATED
        if len(data) > 0xFFFF:
            return Malformed.OVERSIZED
        if data[0] != VERSION:
            return Malformed.SEALED if data[0] == SEALED_VERSION else Malformed.VERSION
        if not data.startswith(self._header):
            return Malformed.GROUP
        try:
            source, frames = self._decoder.decode(memoryview(data)[len(self._header) :])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return Malformed.BODY
        beginning = self._header + _PAIR + self._encoder.encode(source)
        if data.startswith(beginning):
            if len(self._beginnings) >= _SOURCES:
                self._beginnings.clear()
                self._lengths.clear()
            self._beginnings[beginning] = source
            if len(beginning) not in self._lengths:
                self._lengths.append(len(beginning))
            self._heard = beginning, source
        return Datagram(source, frames)


def fingerprint(group: str, members: Iterable[MemberId]) -> bytes:
    """Eight bytes that differ between groups, and between ideas of who is in one."""
    digest = hashlib.blake2b(group.encode(), digest_size=8)
    for member in members:
        digest.update(msgspec.msgpack.encode(member))
    return digest.digest()


def _join(prefix: bytes, packed: list[bytes]) -> bytes:
    if len(packed) == 1:
        return prefix + _ONE + packed[0]
    return b"".join((prefix, _COUNT.pack(_ARRAY16, len(packed)), *packed))
