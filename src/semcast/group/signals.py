"""Leaving in good order when the process is told to end. A program may be in several groups: all are left."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Protocol

ENDING = (signal.SIGINT, signal.SIGTERM)


class SignalSource(Protocol):
    """Where signals are heard."""

    def hear(self, number: signal.Signals, act: Callable[[], bool]) -> None:
        """Call this at the signal from now on; it says whether somebody waited for it."""

    def ignore(self, number: signal.Signals) -> None:
        """The signal does what it did before."""


class LoopSource:
    """The loop of the main thread.

    Args:
        loop: that runs.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopSource) and other._loop is self._loop

    def __hash__(self) -> int:
        return hash(id(self._loop))

    def hear(self, number: signal.Signals, act: Callable[[], bool]) -> None:
        """From now on."""
        self._loop.add_signal_handler(number, act)

    def ignore(self, number: signal.Signals) -> None:
        """The signal does what it did before."""
        if not self._loop.is_closed():
            with suppress(RuntimeError, ValueError):
                self._loop.remove_signal_handler(number)


class ProcessSource:
    """The main thread itself, for programs without asyncio. There is one."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, object] = {}

    def hear(self, number: signal.Signals, act: Callable[[], bool]) -> None:
        """From now on."""

        def heard(_number: int, _frame: FrameType | None) -> None:
            if not act():  # another thread ended the wait, which cannot change handlers
                self.ignore(number)
                os.kill(os.getpid(), number)

        before = signal.signal(number, heard)
        self._before.setdefault(number, before)

    def ignore(self, number: signal.Signals) -> None:
        """The signal does what it did before; in another thread than the main one nothing can be changed."""
        with suppress(ValueError):
            signal.signal(number, self._before[number])  # type: ignore[arg-type]
            del self._before[number]


PROCESS = ProcessSource()
_WATCHING: "dict[tuple[SignalSource, signal.Signals], list[SignalWatch]]" = {}


class SignalWatch:
    """Calls something at the first signal; at the second one the process ends as it would have without."""

    def __init__(self) -> None:
        self._source: SignalSource | None = None
        self._signals: Sequence[signal.Signals] = ()
        self._act: Callable[[], object] = _nothing
        self._begun: object = None

    def start(
        self, signals: Sequence[signal.Signals], act: Callable[[], object], source: SignalSource | None = None
    ) -> None:
        """From now on; at the running loop, if there is no other source."""
        self.stop()
        self._source = LoopSource(asyncio.get_running_loop()) if source is None else source
        self._act = act
        for each in signals:
            key = self._source, each
            if key not in _WATCHING:
                self._source.hear(each, lambda key=key: _tell(key))  # type: ignore[misc]
            _WATCHING.setdefault(key, []).append(self)
            self._signals = (*self._signals, each)

    def stop(self) -> None:
        """Signals do what they did before, unless somebody else waits for them."""
        source, signals = self._source, self._signals
        self._source, self._signals = None, ()
        if source is None:
            return
        for each in signals:
            others = _WATCHING[source, each]
            others.remove(self)
            if not others:
                del _WATCHING[source, each]
                source.ignore(each)

    def act(self) -> None:
        """The signal is here."""
        self.stop()
        self._begun = self._act()  # kept: a task that nobody holds may vanish


def _tell(key: tuple[SignalSource, signal.Signals]) -> bool:
    watching = [*_WATCHING.get(key, ())]
    for watch in watching:
        watch.act()
    return bool(watching)


def _nothing() -> None:
    """Nobody waits for a signal."""
