"""Messages for one member, as their sender sees them (1991, 7.2).

A direct message says what it comes after, as a multicast would, and is counted by nobody else. So its sender
sends nothing more until the addressee says that it stands in its line: then nothing can overtake it there.
The failure of the addressee ends the wait; that it leaves the group does not, for it may still be given the
message. Deviation: the paper has it acknowledged on reception, where it may wait for a view that messages in
other groups do not wait for.
"""

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.isis.frames import MAX_HEAD, MAX_PARTS, Direct, DirectHeard, DirectWanted, InGroup
from semcast.protocols.isis.program import Letter
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.stamps import Foreign, Head

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis

_WINDOW = 32
"""Parts of one message that are on their way together."""
_WRAPPER = 64
"""Bytes of a part besides what it carries."""
_LEAST = 256
"""Bytes of a message in one part, at least."""
_MOST_PATIENCE = 5
"""Who does not answer is asked ever more rarely, up to 2^5 times the first interval."""

encode_head = msgspec.msgpack.Encoder().encode


class Way:
    """To one member.

    Args:
        to: who that is.
        now: when it begins.
    """

    def __init__(self, to: MemberId, now: Nanos) -> None:
        self.to = to
        self.group = 0
        """The number of the group that the latest message is of."""
        self.parts: list[Direct] = []
        """Of the message that is on its way, those that are not known to be in place."""
        self.untaken: deque[int] = deque()
        """The last parts of messages that its program has not taken."""
        self.refused = False
        """Whether the latest message is for nobody."""
        self.gone = False
        """Whether the member has failed."""
        self.heard_at = now

    def taken_by_all(self, nth: int) -> bool:
        """Whether a message was taken, or never will be."""
        return self.gone or not self.untaken or self.untaken[0] > nth

    def hears(self, now: Nanos, frame: DirectHeard) -> None:
        """The member has so much."""
        self.heard_at = now
        if self.parts and self.parts[-1].nth <= frame.upto:
            self.refused = frame.refused
            if self.refused:
                self.untaken.pop()
        self.parts = [part for part in self.parts if part.nth > frame.upto]
        while self.untaken and self.untaken[0] <= frame.taken:
            self.untaken.popleft()


class Directs:
    """Those of one process. At most one of them is on its way.

    Args:
        domain: the process.
        patience: somebody who has left all groups of this process, and says nothing for so long, is gone.
    """

    def __init__(self, domain: "Isis", patience: Nanos) -> None:
        self._domain = domain
        self._longest = patience
        self._ways: dict[MemberId, Way] = {}
        self._way: Way | None = None  # of the message that is on its way
        self._nth = 0
        self.patience = 0
        """How often nobody has answered."""

    # What the program sends

    @property
    def under_way(self) -> bool:
        """Whether a message is not known to be in place: nothing else is sent."""
        return self._way is not None

    def waits(self) -> bool:
        """Whether somebody has to answer."""
        return any(way.untaken for way in self._ways.values())

    def has_room(self, to: MemberId) -> bool:
        """Whether another one may be sent to a member: what its program has not taken is within credit."""
        way = self._ways.get(to)
        return way is None or len(way.untaken) < self._domain.settings.credit

    def send(self, now: Nanos, seat: Seat, letter: Letter) -> None:
        """It leaves, in the current view of a group."""
        domain = self._domain
        domain.policy.sends(seat)
        time = seat.time()
        assert time is not None
        stamp, epoch = self.stamp(seat), domain.policy.epoch
        head = Head(sorted(time.counts.items()), stamp, letter.number, epoch, seat.totals.lamport)
        domain.notes.sent_to(seat.name, letter, time.view, head)
        domain.stats.sent += 1
        if letter.to == domain.me:
            nth = domain.arrivals.own(seat, time.view, head, letter)
            domain.program.letter_left(domain.arrivals.source(domain.me), nth)
            return
        way = self._ways.setdefault(letter.to, Way(letter.to, now))
        way.group, way.refused, way.heard_at = seat.number, False, now
        way.parts = self._cut(seat, time.view, encode_head(head), letter)
        way.untaken.append(way.parts[-1].nth)
        self._way, self.patience = way, 0
        self._post(way)

    def stamp(self, seat: Seat) -> list[Foreign]:
        """What it comes after in other groups. Nobody else there is told, so it stays owed."""
        return seat.owed()

    def _cut(self, seat: Seat, view: int, head: bytes, letter: Letter) -> list[Direct]:
        size = max(_LEAST, seat.frame_bytes - min(len(head), MAX_HEAD) - _WRAPPER)
        payload = letter.payload
        cuts = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
        assert len(cuts) <= MAX_PARTS
        first, count = self._nth + 1, len(cuts)
        self._nth += count
        return [
            Direct(view, first + at, at, count, letter.marked, head if at == count - 1 else b"", cut)
            for at, cut in enumerate(cuts)
        ]

    def look(self) -> bool | None:
        """What became of the message that is on its way: whether it is in place; None if nobody knows."""
        way = self._way
        assert way is not None
        if way.parts and not way.gone:
            return None
        self._way = None
        nobody = way.gone or way.refused
        if not nobody:
            self._domain.program.letter_left(way, way.untaken[-1] if way.untaken else 0)
        return not nobody

    # What others say

    def on_heard(self, now: Nanos, source: MemberId, frame: DirectHeard) -> None:
        """Somebody has so many of them."""
        way = self._ways.get(source)
        if way is None or frame.upto > self._nth:
            self._domain.stats.stale += 1
            return
        before = len(way.parts)
        way.hears(now, frame)
        if len(way.parts) < before:
            self.patience = 0
            if way.parts:
                self._post(way)
        self._tidy(way)

    def failed(self, members: tuple[MemberId, ...]) -> None:
        """These are in no group any more: whoever failed in one did so in all."""
        for member in members:
            way = self._ways.get(member)
            if way is not None:
                self._end(way)

    def _end(self, way: Way) -> None:
        way.gone = True
        way.untaken.clear()
        self._tidy(way)

    def _tidy(self, way: Way) -> None:
        if not way.untaken and way is not self._way:
            self._ways.pop(way.to, None)

    # From time to time

    def ask(self, now: Nanos) -> None:
        """What was sent, or what was said about it, may have been lost."""
        self.patience = min(self.patience + 1, _MOST_PATIENCE)
        for way in list(self._ways.values()):
            if now - way.heard_at > self._longest and not self._domain.meets(way.to):
                self._end(way)  # it has left, and then the domain as a whole
            elif way.parts:
                self._post(way)
            elif way.untaken:
                self._domain.out.send(way.to, InGroup(way.group, DirectWanted()))

    def _post(self, way: Way) -> None:
        for part in way.parts[:_WINDOW]:
            self._domain.out.send(way.to, InGroup(way.group, part))
