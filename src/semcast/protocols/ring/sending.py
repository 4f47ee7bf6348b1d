"""What this member has to send: it waits for the token, and gets its numbers when the token is here."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import ClassVar

from semcast.core.annotations import Annotation
from semcast.core.events import Blocked, Sent, Unblocked
from semcast.protocols.ring.confirming import Answers
from semcast.protocols.ring.frames import Packet, Part
from semcast.protocols.ring.member import Member, note_places
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.ring.packing import SendQueue, batches_of
from semcast.wire.limits import MAX_PAYLOAD, check_annotations


class Sending:
    """From the application to numbered packets; tells it when to wait, and what has left."""

    answers_kind: ClassVar[type[Answers]] = Answers

    def __init__(self, member: Member) -> None:
        settings = member.settings
        self.queue = SendQueue(settings.packet_bytes, settings.send_messages, settings.send_bytes)
        self.answers = self.answers_kind(member.out)
        self.last_sent = 0
        """The last number this member gave out in this configuration, and the last that has to be safe."""
        self.last_safe = 0
        self._me = member.me
        self._member = member
        self._settings = settings
        self._out = member.out
        self._stats = member.stats
        self._blocked = False

    def add(self, payloads: Sequence[bytes], annotations: Sequence[Annotation] | None, *, safe: bool) -> int:
        """Take as many messages as there is room for; returns how many."""
        sizes = list(map(len, payloads))
        self._check(sizes, annotations)
        accepted = self.queue.add_sized(payloads, sizes, annotations, safe=safe)
        if accepted < len(payloads) and not self._blocked:
            self._blocked = True
            self._stats.blocked += 1
            self._out.deliver(Blocked())
        return accepted

    def _check(self, sizes: Sequence[int], annotations: Sequence[Annotation] | None) -> None:
        if annotations is None and sum(sizes) <= self._settings.max_message:
            return
        longest = max(sizes, default=0)
        if longest > self._settings.max_message:
            raise ValueError(f"payload of {longest} bytes: max_message is {self._settings.max_message}")
        if annotations is not None:
            if len(annotations) != len(sizes):
                raise ValueError(f"{len(annotations)} annotations for {len(sizes)} payloads")
            check_annotations(min(longest, MAX_PAYLOAD // 2), annotations)

    def number(self, order: RingOrder, seq: int, most: int) -> list[Packet]:
        """Give the numbers after `seq` to the next packets, `most` at most, and keep them."""
        conf, rank = order.conf, order.rank
        drafts = self.queue.pop(most)
        packets = [
            Packet(conf, number, rank, draft.safe, draft.parts)
            for number, draft in enumerate(drafts, seq + 1)
        ]
        order.receive_all(packets)
        self.last_sent = seq + len(packets)
        if any(draft.safe for draft in drafts):
            self.last_safe = self.last_sent
        self.last_safe = max(self.last_safe, self.answers.numbered(packets))
        certificates = self._member.certificates
        if certificates is not None:
            for packet in packets:
                note_places(certificates, None, packet)
        for safe, run in groupby(drafts, key=attrgetter("safe")):
            self._tell([part for draft in run for part in draft.whole], conf.number, safe=safe)
        return packets

    def _tell(self, parts: Sequence[Part], view: int, *, safe: bool) -> None:
        for batch in batches_of(self._me, parts):
            self._stats.sent += len(batch.payloads)
            self._out.deliver(Sent(batch, view, safe))

    def unblock(self) -> None:
        """Tell an application that was refused something when there is room again."""
        if self._blocked and self.queue.messages < self._settings.send_messages:
            self._blocked = False
            self._out.deliver(Unblocked())

    def begin(self) -> None:
        """A new configuration: numbers start again, and so does a message that was cut off."""
        self.queue.restart()
        self.last_sent = self.last_safe = 0
