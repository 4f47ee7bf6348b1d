"""How soon a busy thread lets another run: sooner than usual while a loop runs (docs/decisions/0006)."""

import sys
import threading

SWITCH_INTERVAL = 0.0002
"""Seconds after which Python lets another thread run; 5 ms by default."""

_lock = threading.Lock()
_before: list[float] = []
"""One entry for each loop that runs; the first is what the program had set."""


def hasten() -> None:
    """A loop starts: a busy program must give up the interpreter soon, for a token cannot wait for long."""
    with _lock:
        _before.append(sys.getswitchinterval())
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))


def relax() -> None:
    """A loop has ended; after the last one the program has what it had."""
    with _lock:
        restored = _before.pop()
        if not _before:
            sys.setswitchinterval(restored)
