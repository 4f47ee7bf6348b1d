"""Total order by the positions that deliveries are recorded with: they grow, and each has one message.

Who delivers in another order than others either has a position below the one before, or another message at
some position. In a group whose order is not uniform, a process that crashes may have been ahead of the
order that the others took: there a difference is *suspected* until both have gone on to another view.
"""

from bisect import bisect_right, insort
from collections.abc import Collection, Iterator
from typing import NamedTuple

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event
from semcast.history.schema import GONE, Kind
from semcast.specs.prefix.alarm import Alarm

_MOST = 1 << 14
"""Rows of one order that are remembered; what is delivered so late is not compared."""
_SPACES = 64
"""Orders at a time: configurations of a ring."""
_PACKET = 1 << 24
"""More messages than any packet has."""

_Space = tuple[int, MemberId | None] | None


class _Claim(NamedTuple):
    """A row says that messages in a row are at positions, from one on."""

    at: int
    size: int
    seq: int
    event: Event
    stay: int
    """Which of its views the process was in."""

    @property
    def end(self) -> int:
        return self.at + self.size

    def part(self, begin: int, end: int) -> "_Claim":
        """What it says of some of these positions."""
        return self._replace(at=begin, size=end - begin, seq=self.seq + begin - self.at)

    def message(self, at: int) -> MessageId:
        """What is at a position."""
        assert self.event.sender is not None
        return MessageId(self.event.sender, self.seq + at - self.at)


class _Suspicion(NamedTuple):
    alarm: Alarm
    claims: tuple[_Claim, _Claim]


class Orders:
    """Positions of messages, by configuration where each has an order of its own.

    Args:
        promised: the properties of the group.
    """

    def __init__(self, promised: Collection[str]) -> None:
        self._ring = "ring_certificate" in promised
        self._uniform = "uniform_total_order" in promised
        self._numbered = self._uniform or "total_order" in promised
        self._growing = "ring_certificate" if self._ring else "total_order"
        self._same = "evs_6_3_agreed" if self._ring else "total_order"
        self._claims: dict[_Space, list[_Claim]] = {}
        self._before: dict[tuple[MemberId, _Space], _Claim] = {}
        self._stays: dict[MemberId, int] = {}
        self._gone: set[MemberId] = set()
        self._suspected: list[_Suspicion] = []

    @property
    def suspected(self) -> int:
        """How many differences may turn out to be none."""
        return len(self._suspected)

    def feed(self, event: Event) -> Iterator[Alarm]:
        """One more event of a process."""
        if event.kind is Kind.VIEW:
            self._stays[event.process] = self._stays.get(event.process, 0) + 1
        elif event.kind in GONE:
            self._gone.add(event.process)
        elif event.kind is Kind.DELIVER:
            stay = self._stays.get(event.process, 0)
            if self._ring and event.ring is not None:
                place = event.ring
                space = place.configuration, place.representative
                yield from self._take(space, _claim(place.packet * _PACKET + place.index, event, stay))
            elif self._numbered and event.order is not None and stay:
                yield from self._take(None, _claim(event.order, event, stay))

    def _take(self, space: _Space, claim: _Claim) -> Iterator[Alarm]:
        who = claim.event.process, space
        before = self._before.get(who)
        if before is not None and claim.at < before.end:
            said = f"{claim.event.process} delivered position {claim.at} after {before.end - 1}"
            yield from self._found(Alarm(self._growing, said, (before.event, claim.event)), before, claim)
        self._before[who] = claim
        claims = self._claims.setdefault(space, [])
        if len(self._claims) > _SPACES:
            del self._claims[next(iter(self._claims))]
        yield from self._compare(claims, claim)

    def _compare(self, claims: list[_Claim], claim: _Claim) -> Iterator[Alarm]:
        """With what others say of the same positions; what nobody has said yet is remembered."""
        place = max(0, bisect_right(claims, claim.at, key=_at) - 1)
        free, new = claim.at, []
        while place < len(claims) and claims[place].at < claim.end:
            other = claims[place]
            if other.end > claim.at:
                yield from self._differ(other, claim)
                if other.at > free:
                    new.append(claim.part(free, other.at))
                free = max(free, other.end)
            place += 1
        if free < claim.end:
            new.append(claim.part(free, claim.end))
        for each in new:
            insort(claims, each, key=_at)
        if len(claims) > _MOST:
            del claims[: _MOST // 2]

    def _differ(self, one: _Claim, other: _Claim) -> Iterator[Alarm]:
        at = max(one.at, other.at)
        first, second = one.message(at), other.message(at)
        if first == second:
            return
        said = f"{one.event.process} has {first} and {other.event.process} has {second} at position {at}"
        alarm = Alarm(self._same, said, (one.event.only(first.seq), other.event.only(second.seq)))
        yield from self._found(alarm, one, other)

    def _found(self, alarm: Alarm, one: _Claim, other: _Claim) -> Iterator[Alarm]:
        if self._ring or self._uniform:
            yield alarm
        else:
            self._suspected.append(_Suspicion(alarm, (one, other)))

    def settle(self) -> Iterator[Alarm]:
        """Suspicions that are certain by now, or were wrong."""
        waiting = []
        for each in self._suspected:
            gone_on = [self._stays.get(claim.event.process, 0) > claim.stay for claim in each.claims]
            out = [claim.event.process in self._gone for claim in each.claims]
            if all(gone_on):
                yield each.alarm
            elif not any(left and not on for left, on in zip(out, gone_on, strict=True)):
                waiting.append(each)
        self._suspected = waiting[-_MOST:]

    def size(self) -> int:
        """How many rows are remembered."""
        return sum(map(len, self._claims.values())) + len(self._before) + len(self._suspected)


def _claim(at: int, event: Event, stay: int) -> _Claim:
    return _Claim(at, event.count, event.seq, event, stay)


def _at(claim: _Claim) -> int:
    return claim.at
