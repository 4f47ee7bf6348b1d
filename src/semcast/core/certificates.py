"""Certificates: what a protocol knows of the place of a message, kept for who records a run.

A stack notes them only where somebody records (`Stack.certificates`). They spare a checker of large runs the
search for an order; no checker believes them.
"""

from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from semcast.core.ids import MemberId
from semcast.core.messages import Batch


class Place(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a message is in the order of a ring: its configuration, its packet, and its index there."""

    configuration: int
    representative: MemberId | None
    """Who formed the configuration."""
    packet: int
    index: int

    def after(self, count: int) -> "Place":
        """The place of a message so many later in the same packet."""
        if not count:
            return self
        return Place(self.configuration, self.representative, self.packet, self.index + count)


Vector = tuple[tuple[int, int], ...]
"""What changed in the vector time of a sender since the message before: ranks in the view, and numbers."""

Certificate = Place | Vector
Certified = tuple[int, Certificate | None]
"""So many messages in a row, and the certificate of the first; None where there is none.

The others follow: in the same packet, or with the same vector time.
"""


class Certificates:
    """What a stack notes and a recorder takes, once, in the order of delivery or of sending."""

    def __init__(self) -> None:
        self._sent: deque[tuple[int, int, Certificate]] = deque()
        self._delivered: dict[MemberId, deque[tuple[int, int, Certificate]]] = {}

    def renew(self) -> None:
        """Another incarnation goes on, whose numbers begin anew."""
        self._sent.clear()
        self._delivered.clear()

    def note_sent(self, first: int, last: int, certificate: Certificate) -> None:
        """Messages of this member leave."""
        self._sent.append((first, last, certificate))

    def note(self, sender: MemberId, first: int, last: int, certificate: Certificate) -> None:
        """Messages are about to be delivered here."""
        noted = self._delivered.get(sender)
        if noted is None:
            noted = self._delivered[sender] = deque()
        noted.append((first, last, certificate))

    def sent(self, first: int, last: int) -> list[Certified]:
        """The certificates of messages that left."""
        return _taken(self._sent, first, last)

    def delivered(self, sender: MemberId, first: int, last: int) -> list[Certified]:
        """The certificates of messages that are delivered."""
        return _taken(self._delivered.get(sender, deque()), first, last)


def cut(batch: Batch, certified: Sequence[Certified]) -> Iterator[tuple[Batch, Certificate | None]]:
    """A batch in parts, each with the certificate of its first message."""
    if len(certified) < 2:
        yield batch, certified[0][1] if certified else None
        return
    first = batch.first
    for count, certificate in certified:
        yield batch.cut(first, first + count - 1), certificate
        first += count


def later(certificate: Certificate | None, count: int) -> Certificate | None:
    """What the certificate of a message says of one so many later in the same part."""
    if isinstance(certificate, Place):
        return certificate.after(count)
    return certificate if not count or certificate is None else ()


def _taken(noted: deque[tuple[int, int, Certificate]], first: int, last: int) -> list[Certified]:
    """What was noted of these messages, cut as it was; what was noted of earlier ones goes.

    >>> noted = deque([(1, 2, Place(1, None, 7, 0)), (3, 9, Place(1, None, 8, 0))])
    >>> [(count, place.packet, place.index) for count, place in _taken(noted, 2, 4)]
    [(1, 7, 1), (2, 8, 0)]
    """
    found: list[Certified] = []
    while first <= last:
        while noted and noted[0][1] < first:
            noted.popleft()
        if not noted or noted[0][0] > last:
            found.append((last - first + 1, None))
            break
        begin, end, certificate = noted[0]
        if begin > first:
            found.append((begin - first, None))
            first = begin
        stop = min(end, last)
        own = certificate.after(first - begin) if isinstance(certificate, Place) else certificate
        found.append((stop - first + 1, own if first == begin or isinstance(own, Place) else ()))
        first = stop + 1
    return found
