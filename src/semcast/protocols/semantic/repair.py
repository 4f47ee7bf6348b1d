"""Receiver-initiated repair (Pereira 2002, 5.2.1): what was asked for, of whom, and when to ask again.

Messages are asked for in handfuls, each about as much as one frame carries, and the window counts these: what
is lost is rarely one message, and an answer is a frame whatever is in it.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from random import Random

import msgspec

from semcast.core.ids import Nanos
from semcast.protocols.semantic.congestion import CongestionWindow, RoundTrip
from semcast.protocols.semantic.frames import Request
from semcast.protocols.semantic.settings import Settings

_SPANS = 48
"""Runs of messages that one request names: whatever their numbers, it fits in a datagram of any network."""


class Asked(msgspec.Struct):
    """A handful of messages that was asked for."""

    seqs: set[int]
    """Those that have not come."""
    whom: int
    at: Nanos
    deadline: Nanos  # 0 once it passed
    tries: int


class Repairs:
    """The queue of messages discovered to be missing, bounded by what may be under way.

    `received[q]` is what member q said it has queued: those it can send again. The sender is asked first;
    from the second try on any holder may be, so that a dead or unreachable sender delays nobody.
    """

    def __init__(self, me: int, size: int, settings: Settings, rng: Random) -> None:
        self._me = me
        self._rng = rng
        self._window = CongestionWindow(most=settings.repair_frames())
        self._round_trip = RoundTrip(settings.rto_initial, settings.rto_min, settings.rto_max)
        self._asked: list[list[Asked]] = [[] for _ in range(size)]
        self._failed = [False] * size
        self.received = [[0] * size for _ in range(size)]
        self.timeouts = 0

    def forget(self, now: Nanos, rank: int) -> None:
        """A member crashed: it answers no more, so whatever it was asked for may be asked of others."""
        self._failed[rank] = True
        for handfuls in self._asked:
            for asked in handfuls:
                if asked.whom == rank:
                    asked.deadline = now

    def is_failed(self, rank: int) -> bool:
        """Whether a member is not asked any more."""
        return self._failed[rank]

    def recall(self, rank: int) -> None:
        """A member that seemed to have crashed is there."""
        self._failed[rank] = False

    def busy(self, rank: int) -> bool:
        """Whether messages of `rank` were asked for that have not come."""
        return bool(self._asked[rank])

    def arrived(self, now: Nanos, rank: int, seqs: Iterable[int]) -> None:
        """Messages arrived, or were found to be purged."""
        if not self._asked[rank]:
            return
        found = set(seqs)
        for asked in self._asked[rank]:
            before = len(asked.seqs)
            asked.seqs -= found
            if before and not asked.seqs:
                self._window.on_answer()
                if asked.tries == 1:
                    self._round_trip.sample(now - asked.at)
        self._drop_answered(rank)

    def expire(self, now: Nanos) -> None:
        """Notice which requests got no answer in time: they no longer count as under way."""
        expired = [asked for handfuls in self._asked for asked in handfuls if 0 < asked.deadline <= now]
        for asked in expired:
            asked.deadline = 0
        if expired:
            self.timeouts += len(expired)
            self._window.on_timeout()

    def due(self) -> Nanos | None:
        """When the first request under way expires."""
        return min(
            (asked.deadline for handfuls in self._asked for asked in handfuls if asked.deadline), default=None
        )

    def ask(self, now: Nanos, rank: int, missing: list[int], handful: int = 1) -> list[tuple[int, Request]]:
        """Requests for the missing messages of `rank`, as (whom, frame), as many as the window allows.

        An answer is expected to carry a `handful` of them.
        """
        chosen: dict[int, list[int]] = {}
        budget = self._window.size - self._under_way(now)
        again, rest = self._due_again(rank, missing), self._never_asked(rank, missing)
        for asked in chain(again, _handfuls(rest, handful)):
            if budget <= 0:
                break
            whom = self._holder(rank, min(asked.seqs), asked.tries + 1)
            if whom is None:
                continue
            if not asked.tries:
                self._asked[rank].append(asked)
            asked.tries += 1
            asked.whom, asked.at = whom, now
            asked.deadline = now + self._round_trip.after(asked.tries)
            chosen.setdefault(whom, []).extend(asked.seqs)
            budget -= 1
        return [
            (whom, Request(rank, spans)) for whom, seqs in chosen.items() for spans in _spans(sorted(seqs))
        ]

    def _due_again(self, rank: int, missing: list[int]) -> list[Asked]:
        """What was asked for in vain, as far as it is still missing."""
        again = [asked for asked in self._asked[rank] if not asked.deadline]
        if again:
            wanted = set(missing)
            for asked in again:
                asked.seqs &= wanted
            self._drop_answered(rank)
        return [asked for asked in again if asked.seqs]

    def _never_asked(self, rank: int, missing: list[int]) -> list[int]:
        known: set[int] = set().union(*(asked.seqs for asked in self._asked[rank]))
        return [seq for seq in missing if seq not in known] if known else missing

    def _under_way(self, now: Nanos) -> int:
        return sum(asked.deadline > now for handfuls in self._asked for asked in handfuls)

    def _drop_answered(self, rank: int) -> None:
        self._asked[rank] = [asked for asked in self._asked[rank] if asked.seqs]

    def _holder(self, rank: int, seq: int, tries: int) -> int | None:
        alive = not self._failed[rank] and rank != self._me
        if alive and tries == 1:
            return rank
        holders = [
            q
            for q, received in enumerate(self.received)
            if q not in (self._me, rank) and not self._failed[q] and received[rank] >= seq
        ]
        if alive:
            holders.append(rank)
        return self._rng.choice(holders) if holders else None


def _handfuls(seqs: list[int], size: int) -> Iterator[Asked]:
    for at in range(0, len(seqs), size):
        yield Asked(set(seqs[at : at + size]), -1, 0, 0, 0)


def _spans(seqs: list[int]) -> list[list[tuple[int, int]]]:
    """As runs (first, last), no more in each list than a datagram carries."""
    spans: list[tuple[int, int]] = []
    for seq in seqs:
        if spans and spans[-1][1] == seq - 1:
            spans[-1] = (spans[-1][0], seq)
        else:
            spans.append((seq, seq))
    return [spans[at : at + _SPANS] for at in range(0, len(spans), _SPANS)]
