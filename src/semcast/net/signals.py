"""Signals wait while a program takes a turn of its group itself.

A handler of the program may raise: Ctrl-C does, and so do many handlers of SIGTERM and SIGALRM. Python calls
it between any two steps of the main thread, also in the middle of a turn, and a protocol that is left half
way cannot go on.

The functions of `signal` try to make an enum of each handler they return. That took 22 microseconds a turn,
and twice as many where caches are cold. Those of `_signal`, which they wrap, take 2.
"""

import _signal
import signal
import threading
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object]

_ABOUT = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGALRM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Those that programs have handlers for."""


class Signals:
    """Keeps the handlers of a program for after its turn. Used in one turn, by one thread."""

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._came: list[tuple[int, FrameType | None]] = []

    def hold(self) -> None:
        """From here on they wait. Whatever this raises, `let_go` is called afterwards."""
        if threading.current_thread() is not threading.main_thread():
            return  # handlers run in the main thread only
        for number in _ABOUT:
            handler = _signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                _signal.signal(number, self._note)

    def let_go(self) -> None:
        """Call the handlers of what came meanwhile. They may raise."""
        try:
            while self._handlers:
                number, handler = next(iter(self._handlers.items()))
                _signal.signal(number, handler)
                del self._handlers[number]
            while self._came:
                number, frame = self._came.pop(0)
                installed = _signal.getsignal(number)
                if callable(installed):
                    installed(number, frame)
        finally:
            if self._handlers or self._came:  # a handler has raised, and there are more
                self.let_go()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))
