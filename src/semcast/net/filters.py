"""Programs for the kernel that drop datagrams by source before they take room in a socket (classic BPF).

A filter sees a datagram from its UDP header on; the IP header before it is read at offsets of its own.
"""

import ctypes
import socket
import struct
from collections.abc import Sequence
from itertools import chain

from semcast.net.addresses import Address

MOST_NAMED = 320
"""Sources in one program: the kernel takes 4096 instructions, and an IPv6 address needs 11."""

_SO_ATTACH_FILTER = 26
_SO_DETACH_FILTER = 27
_LOAD_WORD, _LOAD_HALF, _AND, _JUMP_EQUAL, _RETURN = 0x20, 0x28, 0x54, 0x15, 0x06
_IP_HEADER = -0x100000
_RANDOM = -0x1000 + 56
_SOURCE_AT = {socket.AF_INET: 12, socket.AF_INET6: 8}
_WHOLE = 0xFFFF
_SHARE = 16

Instruction = bytes


def program(
    family: socket.AddressFamily, let_in: Sequence[Address], keep_out: Sequence[Address], *, few: bool
) -> list[Instruction]:
    """What to do with a datagram, by where it comes from.

    Args:
        family: of the socket.
        let_in: these come in, at any rate.
        keep_out: these do not.
        few: of all others, only one datagram in 16 comes in, drawn at random.
    """
    assert len(let_in) + len(keep_out) <= MOST_NAMED
    others = [_step(_RETURN, _WHOLE)]
    if few:
        drawn = [_step(_LOAD_WORD, _RANDOM), _step(_AND, _SHARE - 1), _step(_JUMP_EQUAL, 0, 0, 1)]
        others = [*drawn, *others, _step(_RETURN, 0)]
    named = chain(
        (_verdict(family, each, _WHOLE) for each in let_in), (_verdict(family, each, 0) for each in keep_out)
    )
    return [*chain.from_iterable(named), *others]


def attach(sock: socket.socket, steps: Sequence[Instruction]) -> bool:
    """Let the kernel run it on what comes to a socket, in place of an earlier one; False if it refuses."""
    code = ctypes.create_string_buffer(b"".join(steps))
    described = struct.pack("@HP", len(steps), ctypes.addressof(code))
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)
    except OSError:
        return False
    return True


def detach(sock: socket.socket) -> None:
    """Let everything in again."""
    sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)


def _verdict(family: socket.AddressFamily, source: Address, size: int) -> list[Instruction]:
    """So many bytes of a datagram from this source; what comes from elsewhere goes on behind it."""
    host, port = source
    packed = socket.inet_pton(family, host.partition("%")[0])
    words = struct.unpack(f">{len(packed) // 4}I", packed)
    left = 2 * len(words) + 3
    steps: list[Instruction] = []
    for at, word in enumerate(words):
        left -= 2
        steps.append(_step(_LOAD_WORD, _IP_HEADER + _SOURCE_AT[family] + 4 * at))
        steps.append(_step(_JUMP_EQUAL, word, 0, left))
    return [*steps, _step(_LOAD_HALF, 0), _step(_JUMP_EQUAL, port, 0, 1), _step(_RETURN, size)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> Instruction:
    return struct.pack("=HBBI", code, if_true, if_false, value & 0xFFFFFFFF)
