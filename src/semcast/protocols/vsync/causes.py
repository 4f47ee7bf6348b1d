"""What comes before each message of a view, kept where somebody records a causal group.

Heads say what the sender of a message had delivered (`CausalOrder`). All that precedes a message is that,
what precedes each of those, and what precedes the sender's message before: it is worked out when the message
is queued, for then all that it comes after is queued or known to be purged.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from semcast.core.certificates import Certificates
from semcast.core.ids import MemberId
from semcast.core.messages import Batch

_MOST = 1 << 14
"""Changes of the vector time that are remembered of each member."""

Times = tuple[int, ...]
"""By rank, the last message that comes before; that of the sender itself is not counted."""


class Causes:
    """Of one view, at one member.

    Args:
        members: by rank.
        base: up to where messages belong to the past.
        me: rank of this member.
        certificates: where to note vectors.
    """

    def __init__(
        self, members: Sequence[MemberId], base: Sequence[int], me: int, certificates: Certificates
    ) -> None:
        self._members = members
        self._ranks = {member: rank for rank, member in enumerate(members)}
        self._me = me
        self._certificates = certificates
        begin: Times = tuple(base)
        self._numbers = [[0] for _ in members]
        self._times: list[list[Times | None]] = [[begin] for _ in members]
        self._told: list[Times | None] = [begin for _ in members]
        self._told_sent: Times | None = begin

    def note(self, rank: int, seq: int, stamp: Iterable[tuple[int, int]]) -> None:
        """A message was queued, or found purged, that comes after these (rank, number)."""
        times = self._times[rank][-1]
        for cause, number in stamp:
            known = self._at(cause, number)
            if times is None or known is None:
                times = None
                break
            latest = list(map(max, times, known))
            latest[cause] = max(times[cause], number)
            latest[rank] = times[rank]
            times = tuple(latest)
        self._numbers[rank].append(seq)
        self._times[rank].append(times)
        if len(self._numbers[rank]) > 2 * _MOST:
            del self._numbers[rank][:_MOST], self._times[rank][:_MOST]

    def sent(self, first: int, last: int) -> None:
        """Messages of this member leave."""
        for begin, end, times in self._steps(self._me, first, last):
            if times is not None and self._told_sent is not None:
                self._certificates.note_sent(begin, end, _changes(self._told_sent, times))
            self._told_sent = times

    def delivered(self, batches: Iterable[Batch]) -> None:
        """Messages are about to be given to the application."""
        for batch in batches:
            rank = self._ranks[batch.sender]
            for begin, end, times in self._steps(rank, batch.first, batch.last):
                told = self._told[rank]
                if times is not None and told is not None:
                    self._certificates.note(batch.sender, begin, end, _changes(told, times))
                self._told[rank] = times

    def _at(self, rank: int, seq: int) -> Times | None:
        """What comes before a message; None if that is forgotten."""
        place = bisect_right(self._numbers[rank], seq) - 1
        return self._times[rank][place] if place >= 0 else None

    def _steps(self, rank: int, first: int, last: int) -> list[tuple[int, int, Times | None]]:
        """Messages in runs that have the same before them."""
        numbers = self._numbers[rank]
        low, high = bisect_right(numbers, first), bisect_right(numbers, last)
        begins = [first, *numbers[low:high]]
        ends = [*(number - 1 for number in begins[1:]), last]
        return [(begin, end, self._at(rank, begin)) for begin, end in zip(begins, ends, strict=True)]


def _changes(before: Times, times: Times) -> tuple[tuple[int, int], ...]:
    if before == times:
        return ()
    return tuple((rank, now) for rank, (old, now) in enumerate(zip(before, times, strict=True)) if now > old)
