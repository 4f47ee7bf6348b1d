"""One's own messages: as the application counts them, and under the numbers they got in the stack.

An application knows its messages by the order in which it handed them over. In the stack the pieces of large
messages and the commands of a token holder have numbers, too; and what was handed over to one incarnation may
be sent by the next. So one's own messages in an annotation are translated when the message that carries it is
taken.
"""

from bisect import bisect_right
from collections.abc import Mapping
from operator import itemgetter

from semcast.core.annotations import Enumeration, KEnumeration
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Batch

_LIVES = 8
"""Former incarnations that are remembered."""
_RUNS = 1 << 14
"""Runs of consecutive numbers that are remembered."""
_ID_BYTES = 20
"""Of an id on the wire, besides the sender's name."""


def note_room(packet: int) -> int:
    """Bytes of a frame that are left for what a message says about others."""
    return packet // 4


class Numbers:
    """Of the messages of one member.

    Args:
        me: who this is.
        room: bytes that an enumeration may take up.
        formers: whose messages this one goes on with, if it comes back: those after the first so many.
    """

    def __init__(self, me: MemberId, room: int, formers: Mapping[MemberId, int] | None = None) -> None:
        self._me = me
        self._room = room
        self._formers = dict(formers or {})
        self._accepted = 0  # messages that were taken from the application
        self._runs: list[tuple[int, int]] = []  # from this message on, its number is so much higher

    def took(self, batch: Batch) -> None:
        """The next messages of the application left, with these numbers."""
        offset = batch.first - self._accepted - 1
        if not self._runs or self._runs[-1][1] != offset:
            self._runs.append((self._accepted + 1, offset))
            if len(self._runs) > 2 * _RUNS:
                del self._runs[:_RUNS]
        self._accepted += len(batch.payloads)

    @property
    def last(self) -> int:
        """The number of the message that was taken last; 0 before the first."""
        return self._number(self._accepted) if self._accepted else 0

    def translated(self, annotation: Enumeration | KEnumeration) -> Enumeration | KEnumeration:
        """What the next message replaces, by numbers; messages of a former life are out of reach."""
        if isinstance(annotation, Enumeration):
            return self._enumeration(annotation)
        return annotation if annotation.total else self._k_enumeration(annotation)

    def _k_enumeration(self, annotation: KEnumeration) -> KEnumeration:
        """It is relative to the position of its message, whichever life that position was counted in."""
        last = self._accepted
        base = self._number(last) + 1 if last else 1
        bitmap = 0
        for position in annotation.positions():
            count = last + 1 - (annotation.base - position)
            if count > 0 and (number := self._number(count)):
                bitmap |= 1 << (base - number - 1)
        return KEnumeration(base, bitmap)

    def _enumeration(self, annotation: Enumeration) -> Enumeration:
        ids = []
        for named in annotation.ids:
            sender = named.sender
            if sender != self._me and sender not in self._formers:
                ids.append(named)
                continue
            count = named.seq - self._formers.get(sender, 0)
            if 0 < count <= self._accepted and (number := self._number(count)):
                ids.append(MessageId(self._me, number))
        while ids and sum(len(named.sender.name.encode()) + _ID_BYTES for named in ids) > self._room:
            del ids[: len(ids) // 2 + 1]  # what is not named is not replaced, which does no harm
        return Enumeration(tuple(ids))

    def after(self, number: int) -> tuple[MessageId, ...]:
        """The messages whose numbers are higher, as the application knows them."""
        last = self._accepted
        while last and self._number(last) > number:
            last -= 1
        return tuple(MessageId(self._me, count) for count in range(last + 1, self._accepted + 1))

    def successors(self) -> dict[MemberId, int]:
        """For the incarnation that comes back: how many messages of whom are not its business."""
        known = list(self._formers.items())[-_LIVES:]
        return {**{who: count + self._accepted for who, count in known}, self._me: self._accepted}

    def _number(self, count: int) -> int:
        """The number of a message that was taken; 0 if that is forgotten."""
        at = bisect_right(self._runs, count, key=itemgetter(0)) - 1
        return count + self._runs[at][1] if at >= 0 else 0
