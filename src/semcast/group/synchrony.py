"""Virtual synchrony for programs: settings, and a stack that knows messages by the ids that `send` returned.

Those count what a program hands over. In the stack the pieces of large messages and the word of a token
holder have numbers, too; and what was handed over to one incarnation may be sent by the next. So ids of one's
own messages in an enumeration are translated when the message that carries them is taken.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from random import Random

from semcast.core.annotations import Annotation, Enumeration
from semcast.core.events import Sent
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.protocols.vsync import VirtualSynchrony, VsyncSettings

_ID_BYTES = 20
_LIVES = 8
_RUNS = 1 << 14
"""Runs of consecutive numbers that are remembered."""


def note_room(packet: int) -> int:
    """Bytes of a datagram that are left for what a message says about others."""
    return packet // 4


class LiveSynchrony(VirtualSynchrony):
    """The stack of a program.

    Args:
        me: who this is.
        settings: as the others have them.
        rng: where chance comes from.
        out: what the stack wants from the world.
        formers: whose messages this one goes on with, if it comes back: those after the first so many.
    """

    def __init__(
        self,
        me: MemberId,
        settings: VsyncSettings,
        rng: Random,
        out: Outbox,
        formers: Mapping[MemberId, int] | None = None,
    ) -> None:
        super().__init__(me, settings, rng, out)
        self.accepted = 0
        """Messages that were taken from the program."""
        self._formers = dict(formers or {})
        self._runs: list[tuple[int, int]] = []  # from this message on, its number is so much higher

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Multicast, and keep account of the numbers."""
        if isinstance(annotation, Enumeration):
            annotation = self._translated(annotation)
        before = len(self.out.events)
        taken = super().multicast(now, payloads, annotation, safe=safe)
        self._count_sent(before)
        return taken

    def multicast_each(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation],
        *,
        safe: bool = False,
    ) -> int:
        """The same for messages that have an annotation each."""
        before, accepted = len(self.out.events), self.accepted
        taken = super().multicast_each(now, payloads, annotations, safe=safe)
        if self.accepted == accepted:  # else they went through `multicast`
            self._count_sent(before)
        return taken

    def behind(self) -> bool:
        """Whether nothing can be sent before the application was given what waits for it."""
        return not self._up_to_date()

    def unsettled(self) -> tuple[MessageId, ...]:
        """Messages that were taken, and may not survive this member's end."""
        if self.stream is None:
            return ()
        safe = self.stream.safe[self.stream.rank]
        last = self.accepted
        while last and self._number(last) > safe:
            last -= 1
        return tuple(MessageId(self.me, count) for count in range(last + 1, self.accepted + 1))

    def successors(self) -> dict[MemberId, int]:
        """For who comes back: how many messages of whom are not its business."""
        known = list(self._formers.items())[-_LIVES:]
        return {**{who: count + self.accepted for who, count in known}, self.me: self.accepted}

    # Numbers

    def _count_sent(self, before: int) -> None:
        """What has left since there were so many events."""
        for event in self.out.events[before:]:
            if type(event) is Sent:
                self._count(event.batch)

    def _count(self, batch: Batch) -> None:
        offset = batch.first - self.accepted - 1
        if not self._runs or self._runs[-1][1] != offset:
            self._runs.append((self.accepted + 1, offset))
            if len(self._runs) > 2 * _RUNS:
                del self._runs[:_RUNS]
        self.accepted += len(batch.payloads)

    def _number(self, count: int) -> int:
        """The number of a message that was taken; 0 if that is forgotten."""
        at = bisect_right(self._runs, count, key=itemgetter(0)) - 1
        return count + self._runs[at][1] if at >= 0 else 0

    def _translated(self, annotation: Enumeration) -> Enumeration:
        """Own messages by their numbers; those of a former life cannot be replaced any more."""
        ids = []
        for named in annotation.ids:
            sender = named.sender
            if sender != self.me and sender not in self._formers:
                ids.append(named)
                continue
            count = named.seq - self._formers.get(sender, 0)
            if 0 < count <= self.accepted and (number := self._number(count)):
                ids.append(MessageId(self.me, number))
        room = note_room(self.settings.frame_bytes)
        while ids and sum(len(named.sender.name.encode()) + _ID_BYTES for named in ids) > room:
            del ids[: len(ids) // 2 + 1]  # what is not named is not replaced, which does no harm
        return Enumeration(tuple(ids))
