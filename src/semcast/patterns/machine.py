"""A replicated state machine under total order (Pereira 2002, 2.3.3 and 3.4.4, figure 3.10).

Updates and reads are multicast; everybody executes them in the same order. A read is answered by the member
that asked, when its own request is delivered. Then that member multicasts a reply, which says which updates
were overwritten before anybody read them: slow members skip these. What a read has seen is never named, so
it is there wherever the read is.

Deviations: of all servers only the one that was asked replies, and it needs no message for the answer
itself; so a reply makes the one before it obsolete. Where reads are rare, the first member of the view
multicasts such notes of its own accord (3.4.4: "additional messages could be used"). Positions are those of
the total order.
"""

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from semcast.core.annotations import KEnumeration
from semcast.core.events import ViewChange
from semcast.core.ids import MemberId
from semcast.core.messages import Message
from semcast.obsolescence import ReadWriteTracker
from semcast.patterns.operations import Value, assign
from semcast.patterns.pattern import Pattern, PatternMessage

UNMARKED = KEnumeration(0, 0, total=True)
"""Of an update: it replaces nothing, and may be replaced."""


class Update(msgspec.Struct, frozen=True, array_like=True, tag=0, gc=False):
    """Assign to an item."""

    item: str
    value: Value


class Get(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """What is the value of an item?"""

    item: str
    number: int


class Reply(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Only its annotation says something."""


class ReadAnswer(NamedTuple):
    """The value an item had at a position of the total order."""

    number: int
    item: str
    value: bytes | None
    at: int


_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(Update | Get | Reply).decode
_read_state = msgspec.msgpack.Decoder(dict[str, bytes]).decode


class StateMachine(Pattern):
    """Items that everybody may write and read. For groups with total order.

    >>> from semcast.core import Batch
    >>> p = StateMachine(MemberId("p"))
    >>> p.update("x", b"1"); p.update("x", b"2"); p.read("x")
    1
    >>> for at in (1, 2, 5):                            # what a stack does; others took 3 and 4
    ...     message = p.waiting(); p.sent()
    ...     p.on_delivery(Batch(p.me, at, [message.payload], message.annotation, order=at))
    >>> p.take_answers()
    [ReadAnswer(number=1, item='x', value=b'2', at=5)]
    >>> p.waiting().annotation.positions()              # the reply: nobody needs the first update
    [1]
    """

    order = "total"
    tracker: type[ReadWriteTracker] = ReadWriteTracker

    def __init__(self, me: MemberId, k: int = 256, note_every: int = 64) -> None:
        """A reply can replace the `k` positions before it.

        After `note_every` updates without a reply the first member says what is obsolete; 0 for never.
        """
        super().__init__(me)
        self._tracker = self.tracker(k)
        self._note_every = note_every
        self._unsaid = 0  # updates since the last reply
        self._state: dict[str, bytes] = {}
        self._outgoing: deque[Update | Get | Reply] = deque()
        self._replying = False  # a reply is among them
        self._number = 0
        self._answers: list[ReadAnswer] = []

    # For the application

    @property
    def state(self) -> Mapping[str, bytes]:
        """The items as they are here now. A slow member may be behind, or see some newer than others."""
        return MappingProxyType(self._state)

    def update(self, item: str, value: Value) -> None:
        """Assign to an item; None deletes it."""
        self._outgoing.append(Update(item, value))

    def read(self, item: str) -> int:
        """Ask for the value of an item, exactly; the answer has the number that this returns."""
        self._number += 1
        self._outgoing.append(Get(item, self._number))
        return self._number

    def take_answers(self) -> list[ReadAnswer]:
        """The answers that came since the last call."""
        answers, self._answers = self._answers, []
        return answers

    # The group

    def export(self) -> bytes:
        """All items."""
        return _encode(self._state)

    def restore(self, state: bytes) -> None:
        """Go on from this state."""
        self._state = _read_state(state)

    def waiting(self) -> PatternMessage | None:
        """The next message to multicast; a reply says what is obsolete by now."""
        if not self._outgoing:
            return None
        first = self._outgoing[0]
        if isinstance(first, Reply):
            return PatternMessage(_encode(first), self._tracker.tag())
        return PatternMessage(_encode(first), UNMARKED if isinstance(first, Update) else None)

    def sent(self) -> None:
        """It left. Its place in the order is known when it is delivered."""
        if isinstance(self._outgoing.popleft(), Reply):
            self._replying = False

    def _on_message(self, message: Message) -> None:
        if message.order is None:
            raise ValueError(f"message {message.id} has no place in a total order: choose order=total")
        try:
            record = _read(message.payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.refused += 1
            self._tracker.on_other(message.order)
            return
        if isinstance(record, Update):
            self._tracker.on_update(record.item, message.order)
            assign(self._state, {record.item: record.value})
            self._unsaid += 1
            if self._note_every and self._unsaid >= self._note_every and self._speaks():
                self._reply()
        elif isinstance(record, Get):
            self._on_get(message.sender, record, message.order)
        else:
            self._tracker.on_reply(message.order)
            self._unsaid = 0

    def _on_get(self, sender: MemberId, record: Get, at: int) -> None:
        self._tracker.on_get(record.item, at)
        if sender == self.me:
            value = self._state.get(record.item)
            self._answers.append(ReadAnswer(record.number, record.item, value, at))
            self._reply()

    def _speaks(self) -> bool:
        return self.view is not None and self.view.members[0] == self.me

    def _reply(self) -> None:
        """One that waits is as good: it is tagged when it leaves."""
        self._unsaid = 0
        if not self._replying:
            self._replying = True
            self._outgoing.append(Reply())

    def _on_view(self, change: ViewChange) -> None:
        """Nothing changes: positions go on."""
