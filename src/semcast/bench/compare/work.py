"""The work that all do alike: every message is stamped by its sender and unpacked at every member."""

import struct
import threading
import time

import msgspec

STAMP = struct.Struct("<HHQQ")  # of which task, sender, number, and when it was sent
HOST = "127.0.0.1"
AT_ONCE = 64
"""Messages that are handed over together, where a contestant takes lists."""
_HELLO = 0
_WARM_UP = 0.25
"""The part of the time that does not count."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the members do next: between two moments of the clock that all of them have."""

    number: int
    """From 1 on."""
    size: int
    senders: int = 1
    rate: int = 0
    """Messages a second of each sender; 0 for as many as possible."""
    begin: int
    """In nanoseconds, as `time.monotonic_ns`."""
    end: int


class Seen(msgspec.Struct, frozen=True):
    """What one member saw of a task."""

    rate: float
    """Messages a second, without those of the first quarter."""
    cpu: float
    """Seconds of the processor in a second of that time."""
    latencies: list[int]
    """In nanoseconds, of messages of others."""
    in_order: bool
    """Whether no message was missing, or twice, or before an earlier one of its sender."""


class Counter:
    """Takes messages at one member, one by one."""

    def __init__(self, me: int, members: int) -> None:
        self._me = me
        self._members = members
        self.heard: set[int] = set()
        """Members of whom anything came."""
        self.begin(_HELLO, timed=False)

    def begin(self, task: int, *, timed: bool) -> None:
        """A task begins: what was sent for another counts no more."""
        self._task = task
        self._counts = [0] * self._members
        self._next = [0] * self._members
        self._gaps = 0
        self._latencies: list[int] = []
        self.take = self._take_timed if timed else self._take

    def _take(self, payload: bytes) -> None:
        task, sender, number, _ = STAMP.unpack_from(payload)
        if task != self._task or not task:
            self.heard.add(sender)
            return
        self._counts[sender] += 1
        if number != self._next[sender]:
            self._gaps += 1
        self._next[sender] = number + 1

    def _take_timed(self, payload: bytes) -> None:
        self._take(payload)
        task, sender, _, sent_at = STAMP.unpack_from(payload)
        if task == self._task and sender != self._me:
            self._latencies.append(time.monotonic_ns() - sent_at)

    def watch(self, task: Task) -> Seen:
        """Wait until the task is over; what this member saw of it."""
        sleep_until(task.begin + int(_WARM_UP * (task.end - task.begin)))
        began, count, cpu = time.monotonic_ns(), sum(self._counts), time.process_time()
        sleep_until(task.end)
        seconds = (time.monotonic_ns() - began) / 1e9
        rate = (sum(self._counts) - count) / seconds
        return Seen(rate, (time.process_time() - cpu) / seconds, self._latencies, self._gaps == 0)


def stamped(task: int, me: int, number: int, padding: bytes) -> bytes:
    """A message of a task."""
    return STAMP.pack(task, me, number, time.monotonic_ns()) + padding


def hello(me: int) -> bytes:
    """One that says only that a member is there."""
    return STAMP.pack(_HELLO, me, 0, 0)


def sleep_until(moment: int) -> None:
    """By the clock of all members."""
    threading.Event().wait(max(0, moment - time.monotonic_ns()) / 1e9)
