"""The total order of a token holder: ABCAST (Birman et al. 1991, 5.2).

The holder says in which order messages come, in a *sets-order*: a message of its own without content, so
that it is repaired, tracked and flushed like any other, but never waits for a program. It goes at the end of
every burst of input, for all that came in it. Where for some time all messages are another member's, the
token moves there.

As in the paper, messages travel as CBCAST does, so that no message is received before its causes. What was
delivered is a beginning of the total order: its length says as much as a vector timestamp. A *stamp* is the
position of the last message of another member that the sender had lined up, counted from the beginning of
the view, and stands at messages that were sent after something new. A message is queued once the sets-orders
up to that position are here, and what they name. So the prefixes that members report at the end of a view
are causally closed, and what has no order by then comes after all its causes.

Deviations: the holder lines up what it ordered once its own sets-order is queued, and in uniform mode, as
everybody else, once that and the messages are safe (the paper's holder delivers before, which is not
uniform). Sets-orders are counted, so that one of an old holder is recognised.
"""

from collections import deque

import msgspec

from semcast.core.ids import Nanos
from semcast.core.messages import Batch
from semcast.protocols.semantic.frames import Seq
from semcast.protocols.vsync.orders import Lines
from semcast.protocols.vsync.sets_order import SetsOrder
from semcast.protocols.vsync.total import TotalOrder

_MOVE_AFTER = 4
"""Sets-orders in a row about one other member only, before the token moves there."""
_AHEAD = 1 << 20
"""No sets-order is so far ahead of another."""


_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(SetsOrder).decode
_read_stamp = msgspec.msgpack.Decoder(Seq).decode
_COMMAND = b"\x93"
"""How a sets-order begins, as an array of three; a stamp is a number."""


class TokenOrder(TotalOrder):
    """What the holder of the token says; at first that is the member of rank 0."""

    def __init__(self, lines: Lines, view: int, position: int) -> None:
        super().__init__(lines, view, position)
        self.holder = 0
        self._number = 0
        self._said: dict[
            tuple[int, int], tuple[int, SetsOrder]
        ] = {}  # (number, rank) -> message, what it says
        self._alike = 0  # sets-orders in a row about `_only` and nobody else
        self._only = -1
        self._planned = False
        self._begin = self._stamped = position
        self._named = position  # up to where sets-orders name messages
        self._here = position  # up to where all of these are queued
        self._missing: deque[tuple[int, int, int]] = deque()  # others: (rank, upto, position behind them)

    def head(self) -> bytes:
        """A stamp, if something new came before."""
        return b"" if self.learnt == self._stamped else _encode(self.learnt - self._begin)

    def sent(self) -> None:
        """It left: the next one need not say it again."""
        self._stamped = self.learnt

    def ready(self, rank: int, head: bytes) -> bool:  # noqa: ARG002
        """Whether everything up to the position in a stamp is queued."""
        if not head or head.startswith(_COMMAND):
            return True
        return self._begin + _read_stamp(head) <= self._reached()

    def _reached(self) -> int:
        """Up to which position all messages are named and queued, or known to be purged."""
        missing, queued = self._missing, self.lines.queued
        while missing and queued[missing[0][0]] >= missing[0][1]:
            self._here = missing.popleft()[2]
        return self._here

    def assign(self, rank: int, upto: int, by: tuple[int, int]) -> None:
        """Count the positions that are named."""
        more = upto - self.assigned[rank]
        if more > 0:
            self._named += more
            self._missing.append((rank, upto, self._named))
        super().assign(rank, upto, by)

    def sound(self, head: bytes) -> bool:
        """Whether it is a sets-order or a stamp of this view."""
        if not head:
            return True
        try:
            if not head.startswith(_COMMAND):
                return _read_stamp(head) > 0
            told = _read(head)
        except msgspec.MsgspecError:
            return False
        lines = self.lines
        size = len(lines.members)
        if told.token >= size or told.number > self._number + _AHEAD:
            return False
        return all(rank < size and upto <= lines.queued[rank] + lines.reach for rank, upto in told.order)

    def is_command(self, batch: Batch) -> bool:
        """Whether it begins with a sets-order."""
        return batch.head.startswith(_COMMAND)

    def obey(self, rank: int, command: Batch) -> None:
        """Listen to a sets-order."""
        told = _read(command.head)
        if told.number > self._number:
            self._said[told.number, rank] = command.first, told
        self._obey()

    def settle(self, now: Nanos) -> None:
        """Line up; the holder speaks once the burst is over."""
        self.line_up()
        if not self._planned and self._must_speak():
            self._planned = True
            self.lines.wake_at(now)

    def tick(self, now: Nanos) -> None:  # noqa: ARG002
        """Speak, if there is something to say."""
        self._planned = False
        if self._must_speak():
            self._say()

    def finish(self, report: bytes) -> None:  # noqa: ARG002
        """Every sets-order of the view is here."""
        self.finish_turns()

    def _must_speak(self) -> bool:
        lines = self.lines
        return self.holder == lines.rank and self.unassigned() and not lines.frozen and lines.may_command()

    def _say(self) -> None:
        """Multicast a sets-order for everything that has come."""
        order = [(rank, upto) for rank, upto in enumerate(self.lines.queued) if upto > self.assigned[rank]]
        stamped = self._stamped
        self.lines.command(_encode(SetsOrder(self._number + 1, order, self._next_holder(order))))
        self._stamped = stamped  # a sets-order has no stamp

    def _next_holder(self, order: list[tuple[int, int]]) -> int:
        me = self.lines.rank
        only = order[0][0] if len(order) == 1 else me
        self._alike = self._alike + 1 if only == self._only else 1
        self._only = only
        move = only != me and self._alike >= _MOVE_AFTER and not self.lines.suspects(only)
        return only if move else me

    def _obey(self) -> None:
        """Take sets-orders in their order, each from who holds the token by then."""
        while (speaker := self.speaker()) is not None:
            rank = speaker
            seq, told = self._said.pop((self._number + 1, rank))
            self._number += 1
            for of, upto in told.order:
                self.assign(of, upto, (rank, seq))
            self.assign(rank, seq, (rank, seq))
            self.holder = told.token
            self._alike = 0 if told.token != rank else self._alike

    def speaker(self) -> int | None:
        """Who says what comes next, if that is here: nobody but the holder of the token."""
        return self.holder if (self._number + 1, self.holder) in self._said else None
