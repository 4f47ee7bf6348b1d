"""Point-to-point FIFO channels with purging (Pereira 2002, appendix B)."""

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.obsolescence import PurgingBuffer
from semcast.protocols.semantic.congestion import RoundTrip
from semcast.protocols.semantic.frames import ChannelData
from semcast.protocols.semantic.settings import ChannelSettings
from semcast.wire.annotations import to_wire

_RESEND_LIMIT = 8
"""Messages sent again at once, at most."""


class SendingEnd:
    """The sending end: what is not acknowledged, and how far it may be sent."""

    def __init__(self, me: MemberId, settings: ChannelSettings) -> None:
        self._me = me
        self._window = settings.window
        self._span = settings.span
        self._round_trip = RoundTrip(settings.rto_initial, settings.rto_min, settings.rto_max)
        self.to_send = PurgingBuffer(settings.purging, limit_messages=settings.buffer_messages)
        self._next = 1  # the sequence number after the last one added
        self._sent = 0
        self._acked = 0
        self._room = settings.buffer_messages
        self._sent_at: dict[int, Nanos] = {}
        self._tries = 1
        self._deadline: Nanos | None = None

    def accepts(self, batch: Batch) -> bool:
        """Whether there is room for it, and the destination is not too far behind."""
        return batch.first <= self._acked + self._span and self.to_send.fits(batch)

    def add(self, batch: Batch) -> int:
        """Buffer a message; returns how many others it made obsolete."""
        added = self.to_send.add(batch)
        assert added, "the caller checks that it fits"
        self._next = batch.last + 1
        return len(self.to_send.take_receipts())

    def transmit(self, now: Nanos) -> list[ChannelData]:
        """What may go out now and has not yet."""
        low = self._low()
        last = min(low + self._window, self._acked + 1 + self._room) - 1
        frames = []
        for batch in self.to_send:
            if self._sent < batch.first <= last:
                self._sent = batch.first
                self._sent_at[batch.first] = now
                frames.append(self._frame(batch, low))
        if not frames and self._silent_purge(low):
            frames.append(ChannelData(low, low, []))
        if self._deadline is None and self._acked < self._next - 1:
            self._deadline = now + self._round_trip.after(self._tries)
        return frames

    def resend(self, now: Nanos) -> list[ChannelData]:
        """What was sent and not acknowledged in time; a probe if nothing may be sent."""
        if self._deadline is None or self._deadline > now:
            return []
        self._tries += 1
        self._deadline = now + self._round_trip.after(self._tries)
        low = self._low()
        frames = [self._frame(batch, low) for batch in self.to_send if batch.first <= self._sent]
        self._sent_at.clear()  # a round trip is measured only on what was sent once
        return frames[:_RESEND_LIMIT] or [ChannelData(low, low, [])]

    def on_ack(self, now: Nanos, upto: int, room: int) -> list[ChannelData]:
        """An acknowledgement arrived: forget, and send what it makes possible."""
        self._room = room
        if upto > self._acked:
            sent_at = self._sent_at.get(upto)
            if sent_at is not None:
                self._round_trip.sample(now - sent_at)
            self._acked = upto
            self._tries = 1
            self.to_send.trim(upto)
            self._sent_at = {seq: at for seq, at in self._sent_at.items() if seq > upto}
            self._deadline = None
        return self.transmit(now)

    def resend_at(self) -> Nanos | None:
        """When to look again."""
        return self._deadline

    def _low(self) -> int:
        """The lower bound of the window: everything before it is acknowledged or purged."""
        return next((batch.first for batch in self.to_send), self._next)

    def _silent_purge(self, low: int) -> bool:
        """Whether the other end waits for messages that were purged, with nothing to tell it so."""
        return self._acked < low - 1 and self._deadline is None

    def _frame(self, batch: Batch, low: int) -> ChannelData:
        return ChannelData(batch.first, low, batch.payloads, to_wire(batch.annotation))


class ReceivingEnd:
    """The receiving end: puts messages in sequence, skipping what the sender purged."""

    def __init__(self, settings: ChannelSettings) -> None:
        self._window = settings.window
        self._span = settings.span
        self._most = min(settings.window, settings.buffer_messages)
        self.upto = 0
        self._low = 1
        self.pending: dict[int, Batch] = {}

    def plausible(self, first: int, count: int, low: int) -> bool:
        """Whether a correct sender sends this."""
        if not (first >= 1 and low >= 1 and count <= 1):
            return False
        return first < low + self._window and low <= self.upto + 1 + self._span

    def receive(self, batch: Batch) -> bool:
        """Keep a message for its turn; False if it is known already."""
        if batch.first <= self.upto or batch.first in self.pending:
            return False
        if len(self.pending) == self._most and batch.first < (last := max(self.pending)):
            del self.pending[last]  # it is sent again; what comes before it must not stay out
        if len(self.pending) < self._most:
            self.pending[batch.first] = batch
        return True

    def settle(self, low: int) -> list[int]:
        """The sender's window starts at `low`: what is missing below was purged. Returns what is skipped."""
        self._low = max(self._low, low)
        return self.skip_settled()

    def skip_settled(self) -> list[int]:
        """Skip purged messages that are next in sequence."""
        skipped = []
        while self.upto + 1 < self._low and self.upto + 1 not in self.pending:
            self.upto += 1
            skipped.append(self.upto)
        return skipped

    def next_batch(self) -> Batch | None:
        """The message that is next in sequence, if it is here."""
        return self.pending.get(self.upto + 1)

    def accepted(self, batch: Batch) -> None:
        """The message was queued for delivery."""
        del self.pending[batch.first]
        self.upto = batch.first
