"""Whole messages, in order, in both directions between a client and its contact."""

from collections import deque
from collections.abc import Callable

from semcast.core.outbox import Frame
from semcast.protocols.isis.client_frames import ClientHeard, ClientPiece

_WINDOW = 64
"""Pieces that are on their way together."""
_WRAPPER = 64
"""Bytes of a piece besides what it carries."""
_LEAST = 256


class Pipe:
    """One end of it.

    Args:
        session: that it is for; pieces of others are not its own.
        up: whether this end sends to the contact.
        frame_bytes: of a frame, at most.
        most: bytes of a message that comes, at most.
        post: sends a frame to the other end.
    """

    def __init__(
        self, session: int, *, up: bool, frame_bytes: int, most: int, post: Callable[[Frame], None]
    ) -> None:
        self.session = session
        self.owes = False
        """Whether the other end is to be told what has come."""
        self.broken = False
        """Whether the other end sent what cannot be."""
        self.sent = 0
        """The last piece that was handed over."""
        self.acked = 0
        """The other end has all up to this piece."""
        self.received = 0
        self._up = up
        self._size = max(_LEAST, frame_bytes - _WRAPPER)
        self._most = most
        self._post = post
        self._out: deque[ClientPiece] = deque()
        self._posted = 0
        self._early: dict[int, ClientPiece] = {}
        self._parts: list[bytes] = []
        self._bytes = 0
        self._idle = 0  # how far it was when it was looked at last

    def __len__(self) -> int:
        """Pieces that the other end is not known to have."""
        return len(self._out)

    # What goes out

    def push(self, data: bytes) -> int:
        """Send a message; returns which piece is its last."""
        cuts = [data[at : at + self._size] for at in range(0, len(data), self._size)] or [b""]
        for place, cut in enumerate(cuts):
            self.sent += 1
            more = place < len(cuts) - 1
            self._out.append(ClientPiece(self.session, self._up, self.sent, more, cut))
        self._pump()
        return self.sent

    def _pump(self) -> None:
        if self._posted >= self.sent:
            return
        for piece in self._out:
            if piece.nth > self.acked + _WINDOW:
                break
            if piece.nth > self._posted:
                self._posted = piece.nth
                self._post(piece)

    def on_heard(self, frame: ClientHeard) -> None:
        """The other end has so much."""
        if frame.upto > self._posted:
            self.broken = True
            return
        if frame.upto > self.acked:
            self.acked = frame.upto
            while self._out and self._out[0].nth <= self.acked:
                self._out.popleft()
            self._pump()

    def again(self) -> None:
        """From time to time: what made no progress since the last time is sent again."""
        if self._out and self._idle == self.acked:
            for piece in list(self._out)[: _WINDOW // 4]:
                if piece.nth <= self._posted:
                    self._post(piece)
        self._idle = self.acked if self._out else -1

    # What comes

    def on_piece(self, frame: ClientPiece) -> list[bytes]:
        """A piece came; returns the messages that are whole now."""
        self.owes = True
        if frame.nth <= self.received or frame.nth > self.received + _WINDOW:
            return []
        self._early[frame.nth] = frame
        found: list[bytes] = []
        while (piece := self._early.pop(self.received + 1, None)) is not None:
            self.received += 1
            self._parts.append(piece.data)
            self._bytes += len(piece.data)
            if self._bytes > self._most:
                self.broken = True
                return found
            if not piece.more:
                found.append(b"".join(self._parts))
                self._parts, self._bytes = [], 0
        return found

    def tell(self) -> None:
        """Say what has come."""
        self.owes = False
        self._post(ClientHeard(self.session, not self._up, self.received))
