"""A client of etcd that keeps many puts under way: transactions of 100, so many at a time.

Run by whatever Python has `grpcio`: `python etcdpeer.py PORT COUNT SIZE`. The two messages that it needs are
short enough to be written by hand.
"""

import json
import sys
import time
from collections import deque

import grpc  # type: ignore[import-untyped]

AT_ONCE = 100
"""Puts in a transaction: etcd takes 128 at most."""
WINDOW = 16
"""Transactions under way."""


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes, as protocol buffers have it."""
    size, length = bytearray(), len(data)
    while length >= 0x80:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | 2, *size, length]) + data


def _transaction(first: int, size: int) -> bytes:
    puts = (_field(1, b"k%d" % ((first + n) % 1000)) + _field(2, bytes(size)) for n in range(AT_ONCE))
    return b"".join(_field(2, _field(2, put)) for put in puts)


def main(port: int, count: int, size: int) -> None:
    """Say how long it took until all were answered."""
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    grpc.channel_ready_future(channel).result(timeout=30)
    ask = channel.unary_unary("/etcdserverpb.KV/Txn", None, None)
    ask(_transaction(0, size), timeout=30, wait_for_ready=True)
    print(json.dumps({}), flush=True)
    sys.stdin.readline()
    began = time.perf_counter()
    under_way: deque[grpc.Future] = deque()
    for first in range(0, count, AT_ONCE):
        if len(under_way) >= WINDOW:
            under_way.popleft().result()
        under_way.append(ask.future(_transaction(first, size)))
    while under_way:
        under_way.popleft().result()
    print(json.dumps({"wall": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
