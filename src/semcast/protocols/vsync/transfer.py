"""State transfer: who joins is given the state at the beginning of its first view, chunk by chunk.

The one who needs it asks, again and again, for the chunks that come next; so lost datagrams need nobody's
attention. If the provider crashes, a view without it follows, and the next one is asked for the state at the
beginning of that.
"""

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.protocols.vsync.frames import StateChunk, StateWanted
from semcast.wire.limits import MAX_STATE

_AT_ONCE = 16
"""Chunks sent for one request."""


class StateTransfer:
    """One member's part: it gives the state away, or waits for it."""

    def __init__(self, chunk_bytes: int, out: Outbox) -> None:
        self._chunk_bytes = chunk_bytes
        self._out = out
        self._view = 0
        self._chunks: list[bytes] = []
        self._wanted: tuple[int, MemberId] | None = None
        self._got: list[bytes] = []
        self._size = 0

    @property
    def waits(self) -> bool:
        """Whether this member waits for the state."""
        return self._wanted is not None

    # Giving

    def offer(self, view: int, state: bytes) -> None:
        """The state at the beginning of a view; that of an earlier one is not needed any more."""
        if len(state) > MAX_STATE:
            raise ValueError(f"a state of {len(state)} bytes: at most {MAX_STATE} can be handed over")
        step = self._chunk_bytes
        self._view = view
        self._chunks = [state[start : start + step] for start in range(0, len(state), step)] or [b""]

    def offers(self, view: int) -> bool:
        """Whether the state at the beginning of a view is here for who wants it."""
        return bool(self._chunks) and view == self._view

    def on_wanted(self, source: MemberId, frame: StateWanted) -> None:
        """Send some of it."""
        if frame.view == self._view:
            for number in range(frame.chunk, min(frame.chunk + _AT_ONCE, len(self._chunks))):
                chunk = StateChunk(self._view, number, len(self._chunks), self._chunks[number])
                self._out.send(source, chunk)

    # Getting

    def want(self, view: int, provider: MemberId) -> None:
        """Ask for the state at the beginning of a view."""
        self._wanted = view, provider
        self._got, self._size = [], 0
        self.ask()

    def forget(self) -> None:
        """The state of an earlier view is not wanted any more."""
        self._wanted, self._got, self._size = None, [], 0

    def ask(self) -> None:
        """Ask for what comes next."""
        if self._wanted is not None:
            view, provider = self._wanted
            self._out.send(provider, StateWanted(view, len(self._got)))

    def on_chunk(self, source: MemberId, frame: StateChunk) -> bytes | None:
        """The whole state, if this was the last that was missing."""
        if self._wanted != (frame.view, source) or frame.chunk != len(self._got):
            return None
        if not frame.data and frame.count > 1:
            return None  # nobody sends empty chunks
        self._size += len(frame.data)
        if self._size > MAX_STATE:
            self._got, self._size = [], 0  # begin anew: nobody offers so much
            return None
        self._got.append(frame.data)
        if len(self._got) < frame.count:
            if len(self._got) % _AT_ONCE == 0:
                self.ask()
            return None
        state = b"".join(self._got)
        self._wanted, self._got = None, []
        return state
