"""State transfer: who joins is given the state at the beginning of its first view, chunk by chunk.

The one who needs it asks for the next chunks while earlier ones are under way: a *window* of them, which
grows as long as they arrive, as TCP's does, and shrinks where something is lost. It asks again and again, so
lost datagrams need nobody's attention. Chunks are kept apart from messages: they take no room of those, and
the view goes on meanwhile. If the provider crashes, or its program does not hand over its state any more,
another view follows, and the next one is asked for the state at the beginning of that.
"""

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.protocols.vsync.frames import StateChunk, StateWanted
from semcast.wire.limits import MAX_STATE

_LEAST = 16
"""Chunks that may be under way at first."""
_MOST_BYTES = 1 << 20
"""Bytes that may be, at most: about half of what a receiver's socket holds."""
_AHEAD = 4
"""Requests that a window is divided into."""


class StateTransfer:
    """One member's part: it gives the state away, or waits for it."""

    def __init__(self, chunk_bytes: int, out: Outbox) -> None:
        self._chunk_bytes = chunk_bytes
        self._out = out
        self._view = 0
        self._chunks: list[bytes] = []
        self._wanted: tuple[int, MemberId] | None = None
        self._got: dict[int, bytes] = {}
        self._next = 0  # chunks before it are here
        self._asked = 0  # and those before this one were asked for
        self._count = 1  # as far as known
        self._size = 0
        self._most = max(_MOST_BYTES // chunk_bytes, _LEAST)
        self._window = _LEAST
        self._progress = -1  # chunks that were here when it was asked again

    @property
    def waits(self) -> bool:
        """Whether this member waits for the state."""
        return self._wanted is not None

    @property
    def here(self) -> int:
        """Chunks of it that have come."""
        return len(self._got)

    # Giving

    def offer(self, view: int, state: bytes) -> None:
        """The state at the beginning of a view; that of an earlier one is not needed any more."""
        if len(state) > MAX_STATE:
            raise ValueError(f"the exported state has {len(state)} bytes; at most {MAX_STATE} are allowed")
        step = self._chunk_bytes
        self._view = view
        self._chunks = [state[start : start + step] for start in range(0, len(state), step)] or [b""]

    def offers(self, view: int) -> bool:
        """Whether the state at the beginning of a view is here for who wants it."""
        return bool(self._chunks) and view == self._view

    def on_wanted(self, source: MemberId, frame: StateWanted) -> None:
        """Send what was asked for."""
        if frame.view == self._view:
            end = min(frame.chunk + min(frame.count, self._most), len(self._chunks))
            for number in range(frame.chunk, end):
                chunk = StateChunk(self._view, number, len(self._chunks), self._chunks[number])
                self._out.send(source, chunk)

    # Getting

    def want(self, view: int, provider: MemberId) -> None:
        """Ask for the state at the beginning of a view."""
        self.forget()
        self._wanted = view, provider
        self._ask_on()

    def forget(self) -> None:
        """The state is not wanted any more."""
        self._wanted = None
        self._got = {}
        self._next = self._asked = self._size = 0
        self._count, self._window, self._progress = 1, _LEAST, -1

    def ask(self) -> None:
        """What was asked for may be lost: if nothing came since the last time, ask again, for less."""
        if self._wanted is None:
            return
        here = len(self._got)
        if here == self._progress:
            self._window = max(self._window // 2, 1)
            self._asked = self._next
            self._ask_on()
        self._progress = here

    def on_chunk(self, source: MemberId, frame: StateChunk) -> bytes | None:
        """The whole state, if this was the last that was missing."""
        if self._wanted != (frame.view, source) or not self._next <= frame.chunk < self._next + self._most:
            return None
        if frame.chunk in self._got or (not frame.data and frame.count > 1):
            return None  # nobody sends empty chunks
        self._size += len(frame.data)
        if self._size > MAX_STATE:
            self.want(*self._wanted)  # nobody offers so much
            return None
        self._got[frame.chunk] = frame.data
        self._count = frame.count
        while self._next in self._got:
            self._next += 1
        if self._next < frame.count:
            self._window = min(self._window + 1, self._most)
            self._ask_on()
            return None
        state = b"".join(self._got[number] for number in range(frame.count))
        self.forget()
        return state

    def _ask_on(self) -> None:
        """Ask for what fits in the window, a good part of it at a time."""
        assert self._wanted is not None
        view, provider = self._wanted
        end = self._next + self._window
        if end - self._asked >= max(self._window // _AHEAD, 1) and (self._asked < self._count):
            self._out.send(provider, StateWanted(view, self._asked, end - self._asked))
            self._asked = end
