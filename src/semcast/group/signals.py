"""Leaving in good order when the process is told to end."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

ENDING = (signal.SIGINT, signal.SIGTERM)


class SignalWatch:
    """Calls something at the first signal; at the second one the process ends as it would have without."""

    def __init__(self) -> None:
        self._signals: Sequence[signal.Signals] = ()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun: object = None

    def start(self, signals: Sequence[signal.Signals], act: Callable[[], object]) -> None:
        """From now on. Only the loop of the main thread hears of signals."""
        self.stop()
        self._loop, self._signals = asyncio.get_running_loop(), tuple(signals)
        for each in self._signals:
            self._loop.add_signal_handler(each, self._on_signal, act)

    def stop(self) -> None:
        """Signals do what they did before."""
        loop, signals = self._loop, self._signals
        self._loop, self._signals = None, ()
        if loop is not None and not loop.is_closed():
            for each in signals:
                with suppress(RuntimeError, ValueError):
                    loop.remove_signal_handler(each)

    def _on_signal(self, act: Callable[[], object]) -> None:
        self.stop()
        self._begun = act()  # kept: a task that nobody holds may vanish
