"""Parcels: bytes that one server fetches from another, in pieces that fit into datagrams.

Who fetches asks for a window of bytes at a time, and again for what was lost; who gives only answers. So
nobody is sent more than it can take, and nobody inside waits for somebody outside.
"""

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.replication.frames import Fetch, Piece

_MOST = 8
"""Parcels that a server keeps for others."""


class Parcels:
    """What a server gives away.

    Args:
        piece: bytes of a piece.
        patience: how long a parcel is kept that nobody asks for.
    """

    def __init__(self, piece: int, patience: Nanos) -> None:
        self._piece = piece
        self._patience = patience
        self._parcels: dict[int, tuple[bytes, Nanos]] = {}  # each with when it was asked for last
        self._last = 0

    def add(self, now: Nanos, data: bytes) -> int:
        """Keep a parcel for somebody; returns its number."""
        for number in [number for number, (_, at) in self._parcels.items() if now - at > self._patience]:
            del self._parcels[number]
        if len(self._parcels) >= _MOST:
            del self._parcels[next(iter(self._parcels))]
        self._last += 1
        self._parcels[self._last] = data, now
        return self._last

    def keeps(self, now: Nanos, number: int) -> bool:
        """Whether a parcel is there, and may still be asked for."""
        found = self._parcels.get(number)
        return found is not None and now - found[1] <= self._patience

    def on_fetch(self, now: Nanos, out: Outbox, source: MemberId, fetch: Fetch) -> None:
        """Send the bytes that somebody asks for, if they are still there."""
        found = self._parcels.get(fetch.parcel)
        if found is None:
            return
        data, _ = found
        self._parcels[fetch.parcel] = data, now
        for place in range(fetch.begin, min(fetch.end, len(data)), self._piece):
            end = min(place + self._piece, fetch.end)
            out.send(source, Piece(fetch.parcel, place, data[place:end]))


class Download:
    """A parcel on its way.

    Args:
        out: for frames.
        source: who has it.
        parcel: its number there.
        size: its bytes.
        window: bytes that are asked for at a time.
    """

    def __init__(self, out: Outbox, source: MemberId, parcel: int, size: int, window: int) -> None:
        self.source, self.parcel = source, parcel
        self._out = out
        self._size, self._window = size, window
        self._whole = bytearray()
        self._ahead: dict[int, bytes] = {}  # pieces behind a hole
        self._asked = 0
        self._ask_on()

    def on_piece(self, source: MemberId, piece: Piece) -> bytes | None:
        """Some bytes came; returns the parcel, once it is whole."""
        have = len(self._whole)
        if source != self.source or piece.parcel != self.parcel or not have <= piece.begin < self._asked:
            return None
        self._ahead[piece.begin] = piece.data
        while (data := self._ahead.pop(len(self._whole), None)) is not None and data:
            self._whole += data
        if len(self._whole) >= self._size:
            return bytes(self._whole)
        if self._asked - len(self._whole) <= self._window // 2:
            self._ask_on()
        return None

    def _ask_on(self) -> None:
        end = min(self._size, len(self._whole) + self._window)
        if end > self._asked:
            self._out.send(self.source, Fetch(self.parcel, self._asked, end))
            self._asked = end

    def again(self) -> None:
        """Nothing came for a while: ask for what is missing first."""
        end = min(self._ahead, default=self._asked)
        self._out.send(self.source, Fetch(self.parcel, len(self._whole), end))
