"""S-SRM: semantically sender-based reliable multicast (Pereira 2002, 4.2) over the channels of appendix B.

Nothing is promised once the sender crashed, so `to_send` may be purged at once. Deviation: frames carry
the lower bound of the window instead of letting receivers infer it from "s + w arrived, so s was purged";
it says the same, sooner, and does not need both ends to agree on w.

A program that reads where it sends takes nothing while it waits to send. Meanwhile more than the buffer holds
is kept for it, up to a reserve; else all could wait for each other (`docs/flow-control.md`).
"""

from collections.abc import Sequence

from semcast.core.annotations import Annotation
from semcast.core.events import Blocked, Purged, Unblocked, ViewChange
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.obsolescence import PurgingBuffer
from semcast.protocols.semantic.channel import ReceivingEnd, SendingEnd
from semcast.protocols.semantic.frames import ChannelAck, ChannelData
from semcast.protocols.semantic.settings import ChannelSettings
from semcast.wire.annotations import from_wire
from semcast.wire.limits import check_message


class SsrmTimer(Timer):
    """What S-SRM waits for."""

    RESEND = "resend"


class SenderMulticast(Stack):
    """One member of a group with static membership."""

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: ChannelSettings, out: Outbox
    ) -> None:
        settings.check()
        self.members = tuple(members)
        self.settings = settings
        self.out = out
        self.stats = Statistics()
        self._me = me
        others = [member for member in self.members if member != me]
        self.outgoing = {member: SendingEnd(me, settings) for member in others}
        self.incoming = {member: ReceivingEnd(settings) for member in others}
        self.to_deliver = PurgingBuffer(settings.purging, limit_messages=settings.buffer_messages)
        self._seq = 0
        self._blocked = False
        self._closed: set[MemberId] = set()  # those we told, or would have to tell, that we are full
        self._resend_at: Nanos | None = None

    def start(self, now: Nanos) -> None:  # noqa: ARG002 - part of the contract
        """Announce the static view."""
        self.out.deliver(ViewChange(self.view(), joined=self.members))

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Put each message in the buffer towards every destination (t1), while all have room."""
        if safe:
            raise ValueError("safe delivery is a matter of the whole group here: see uniform agreement")
        if annotation is not None and len(payloads) != 1:
            raise ValueError("an annotation speaks for exactly one payload")
        for payload in payloads:
            check_message(payload, annotation)
        for accepted, payload in enumerate(payloads):
            if not self._multicast(now, batch_of(self._me, self._seq + 1, [payload], annotation)):
                if not self._blocked:
                    self._blocked = True
                    self.stats.blocked += 1
                    self.out.deliver(Blocked())
                return accepted
        return len(payloads)

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """Dispatch; what no correct member sends is dropped and counted."""
        if source not in self.incoming:
            self.stats.malformed += 1
        elif isinstance(frame, ChannelData):
            self._on_data(source, frame)
        elif isinstance(frame, ChannelAck):
            self._on_ack(now, source, frame)
        else:
            self.stats.malformed += 1

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Send again what was not acknowledged in time."""
        assert timer is SsrmTimer.RESEND
        self._resend_at = None
        for member, channel in self.outgoing.items():
            frames = channel.resend(now)
            self.stats.retransmitted += len(frames)
            self._send_all(member, frames)
        self._plan_resend()

    def member_failed(self, now: Nanos, member: MemberId) -> None:  # noqa: ARG002 - part of the contract
        """Nothing is owed to a crashed member any more."""
        self.outgoing.pop(member, None)
        self._unblock()

    def deliver(self, now: Nanos, most: int) -> list[Batch]:  # noqa: ARG002 - part of the contract
        """Hand over up to `most` messages (t4), and let the senders know of the room."""
        batches = self.to_deliver.pop(most)
        self.stats.delivered += sum(len(batch.payloads) for batch in batches)
        if batches and self._closed:
            closed, self._closed = sorted(self._closed), set()
            for member in closed:
                self._accept_from(member)
        if batches:
            self._unblock()
        return batches

    def on_reader(self, now: Nanos) -> None:  # noqa: ARG002 - part of the contract
        """The program waits, or does not any more: there is more room, or less."""
        self.to_deliver.limit(self._limit())
        closed, self._closed = sorted(self._closed), set()
        for member in closed:
            self._accept_from(member)
        self._unblock()

    def queued(self) -> int:
        """Messages that wait for the program here, and what its mailbox holds beyond its bound."""
        return len(self.to_deliver) + self.reader.excess

    def overflowing(self) -> bool:
        """Whether buffer and reserve are full of what waits for the program."""
        return len(self.to_deliver) >= self.settings.buffer_messages + self.settings.reserve_messages

    def deliverable(self) -> bool:
        """Whether a message waits for the application."""
        return len(self.to_deliver) > 0

    def phase(self) -> str:
        """Membership is static: there is only one."""
        return "operational"

    def view(self) -> View:
        """And one view."""
        return View(1, self.members)

    def buffered(self) -> int:
        """The fullest of the buffers: each has the same bound. What is in the reserve has one of its own."""
        return max(
            min(len(self.to_deliver), self.settings.buffer_messages),
            *(len(channel.to_send) for channel in self.outgoing.values()),
            *(len(channel.pending) for channel in self.incoming.values()),
            0,
        )

    def _multicast(self, now: Nanos, batch: Batch) -> bool:
        if not self.to_deliver.fits(batch):
            return False
        if not all(channel.accepts(batch) for channel in self.outgoing.values()):
            return False
        self._seq = batch.first
        self.stats.sent += 1
        self.to_deliver.add(batch)
        self._account_purged()
        for member, channel in self.outgoing.items():
            self.stats.purged_retransmission += channel.add(batch)
            self._send_all(member, channel.transmit(now))
        self._plan_resend()
        return True

    def _on_data(self, source: MemberId, frame: ChannelData) -> None:
        channel = self.incoming[source]
        annotated = frame.annotation is not None
        if not channel.plausible(frame.first, len(frame.payloads), frame.low) or (
            annotated and len(frame.payloads) != 1
        ):
            self.stats.malformed += 1
            return
        if frame.payloads:
            batch = batch_of(source, frame.first, frame.payloads, from_wire(frame.annotation))
            self.stats.duplicates += not channel.receive(batch)
        for seq in channel.settle(frame.low):
            self.stats.skipped += 1
            self.out.deliver(Purged(MessageId(source, seq)))
        self._accept_from(source)

    def _accept_from(self, source: MemberId) -> None:
        """Queue what is next in sequence (t3), skip what is known to be purged, and acknowledge."""
        channel = self.incoming[source]
        while True:
            batch = channel.next_batch()
            if batch is None:
                break
            if not self.to_deliver.add(batch):
                self.stats.refused += 1
                break
            self._account_purged()
            channel.accepted(batch)
            for seq in channel.skip_settled():
                self.stats.skipped += 1
                self.out.deliver(Purged(MessageId(source, seq)))
        self.stats.control_frames += 1
        room = max(self._limit() - len(self.to_deliver), 0)
        if room == 0:
            self._closed.add(source)
        self.out.send(source, ChannelAck(channel.upto, room))

    def _on_ack(self, now: Nanos, source: MemberId, frame: ChannelAck) -> None:
        channel = self.outgoing.get(source)
        if channel is None:
            return
        if frame.upto > self._seq:
            self.stats.malformed += 1
            return
        self._send_all(source, channel.on_ack(now, frame.upto, frame.room))
        self._plan_resend()
        self._unblock()

    def _limit(self) -> int:
        """How many messages may wait for the program now."""
        reserve = self.settings.reserve_messages if self.reader.waits else 0
        return self.settings.buffer_messages + reserve

    def _unblock(self) -> None:
        if self._blocked:
            self._blocked = False
            self.out.deliver(Unblocked())

    def _account_purged(self) -> None:
        for victim, by in self.to_deliver.take_receipts():
            self.stats.purged_delivery += 1
            replacement = MessageId(by.sender, by.first)
            self.out.deliver(Purged(MessageId(victim.sender, victim.first), replacement))

    def _send_all(self, member: MemberId, frames: list[ChannelData]) -> None:
        for frame in frames:
            self.out.send(member, frame)

    def _plan_resend(self) -> None:
        due = min((at for c in self.outgoing.values() if (at := c.resend_at()) is not None), default=None)
        if due is not None and (self._resend_at is None or due < self._resend_at):
            self._resend_at = due
            self.out.set_timer(SsrmTimer.RESEND, due)
