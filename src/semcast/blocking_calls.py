"""Handlers of calls in a group for threads: in threads of their own, one at a time.

While a handler waits for a call of its own, the next one runs: else two members that ask each other, or one
that asks itself, would wait for ever.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from semcast.group.calling import Handler
from semcast.patterns.calls import CallRequest

_MOST = 256
"""Threads, at most: handlers that wait for calls of their own, one inside the other."""
_IDLE = 2
"""Threads that stay for the next request."""


class HandlerThreads:
    """Runs handlers in the order of requests.

    Args:
        name: of the threads.
        finish: told of what a handler returned or raised.
    """

    def __init__(self, name: str, finish: Callable[[CallRequest, object], None]) -> None:
        self._name = name
        self._finish = finish
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Handler, CallRequest]] = deque()
        self._busy = False  # a handler runs that does not wait
        self._threads: set[int] = set()
        self._idle = 0
        self._closed = False

    def run(self, handler: Handler, request: CallRequest) -> None:
        """When its turn comes."""
        with self._changed:
            self._waiting.append((handler, request))
            self._see_to_it()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The calling thread waits: if it runs a handler, others may run meanwhile."""
        if threading.get_ident() not in self._threads:
            yield
            return
        with self._changed:
            self._busy = False
            self._see_to_it()
        try:
            yield
        finally:
            with self._changed:
                self._changed.wait_for(lambda: not self._busy)
                self._busy = True

    def close(self) -> None:
        """No further handler is begun."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _see_to_it(self) -> None:
        """A thread takes the next request, if one may run."""
        self._changed.notify_all()
        if self._waiting and not self._busy and not self._idle and len(self._threads) < _MOST:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        me = threading.get_ident()
        with self._changed:
            self._threads.add(me)
        while (job := self._next()) is not None:
            handler, request = job
            try:
                result: object = handler(request)
            except Exception as error:
                result = error
            with self._changed:
                self._busy = False
                self._see_to_it()
            self._finish(request, result)
        with self._changed:
            self._threads.discard(me)

    def _next(self) -> tuple[Handler, CallRequest] | None:
        with self._changed:
            if self._idle >= _IDLE and not self._waiting:
                return None
            self._idle += 1
            try:
                self._changed.wait_for(lambda: self._closed or (bool(self._waiting) and not self._busy))
            finally:
                self._idle -= 1
            if self._closed:
                return None
            self._busy = True
            return self._waiting.popleft()
