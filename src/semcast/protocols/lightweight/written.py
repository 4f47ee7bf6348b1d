"""The messages of a run as they were written: whoever only passes them on does not take them apart.

The daemon of a client has read each of its messages before the run went to the ring, so the others need not
look into it. A run that only a broken daemon can have written has as many messages as it says, of no bytes.
"""

from collections.abc import Sequence
from typing import overload

import msgspec

_decode = msgspec.msgpack.Decoder(list[bytes]).decode

_FEW, _SHORT, _LONG = 0x90, 0xDC, 0xDD
"""How a list begins in msgpack: with its length below 16, in two bytes, or in four."""


class Written(Sequence[bytes]):
    r"""Messages that are taken apart when somebody reads one.

    >>> run = Written(msgspec.Raw(b"\x92\xc4\x01a\xc4\x01b"))
    >>> len(run), run.size, list(run), run == [b"a", b"b"]
    (2, 7, [b'a', b'b'], True)

    Args:
        raw: a list in msgpack. Raises ValueError where it is something else.
    """

    __slots__ = ("_apart", "_count", "raw")

    def __init__(self, raw: msgspec.Raw) -> None:
        self.raw = raw
        self._count = _length(memoryview(raw))
        self._apart: list[bytes] | None = None

    @property
    def size(self) -> int:
        """Bytes, as they are written."""
        return len(self.raw)

    def apart(self) -> list[bytes]:
        """The single messages."""
        if self._apart is None:
            try:
                self._apart = _decode(self.raw)
            except msgspec.DecodeError:
                self._apart = [b""] * self._count
        return self._apart

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> bytes: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[bytes]: ...

    def __getitem__(self, place: int | slice) -> bytes | Sequence[bytes]:
        return self.apart()[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.apart() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.apart())


def run_of(raw: msgspec.Raw) -> Sequence[bytes]:
    r"""The messages in a list in msgpack; a single one is not worth keeping as it is. Raises ValueError.

    >>> run_of(msgspec.Raw(b"\x91\xc4\x01a"))
    [b'a']
    """
    run = Written(raw)
    return _decode(raw) if len(run) == 1 else run


def list_of(payloads: Sequence[bytes]) -> list[bytes]:
    """The single messages of a run, however it is kept."""
    if isinstance(payloads, Written):
        return payloads.apart()
    return payloads if isinstance(payloads, list) else list(payloads)


def _length(raw: memoryview) -> int:
    """Of a list in msgpack, which is whole."""
    kind = raw[0]
    if kind & 0xF0 == _FEW:
        return kind & 0x0F
    if kind == _SHORT:
        return int.from_bytes(raw[1:3], "big")
    if kind == _LONG:
        return int.from_bytes(raw[1:5], "big")
    raise ValueError("not a list")
