"""Receiver-initiated repair (Pereira 2002, 5.2.1): what was asked for, of whom, and when to ask again."""

from random import Random

import msgspec

from semcast.core.ids import Nanos
from semcast.protocols.semantic.congestion import CongestionWindow, RoundTrip
from semcast.protocols.semantic.settings import Settings
from semcast.wire.limits import MAX_SPANS
from semcast.wire.semantic import Request


class Asked(msgspec.Struct, gc=False):
    """A request under way."""

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
        self._window = CongestionWindow()
        self._round_trip = RoundTrip(settings.rto_initial, settings.rto_min, settings.rto_max)
        self._asked: list[dict[int, Asked]] = [{} for _ in range(size)]
        self._failed = [False] * size
        self.received = [[0] * size for _ in range(size)]
        self.timeouts = 0

    def forget(self, now: Nanos, rank: int) -> None:
        """A member crashed: it answers no more, so whatever it was asked for may be asked of others."""
        self._failed[rank] = True
        for by_seq in self._asked:
            for asked in by_seq.values():
                if asked.whom == rank:
                    asked.deadline = now

    def is_failed(self, rank: int) -> bool:
        """Whether a member is not asked any more."""
        return self._failed[rank]

    def recall(self, rank: int) -> None:
        """A member that seemed to have crashed is there."""
        self._failed[rank] = False

    def arrived(self, now: Nanos, rank: int, seq: int) -> None:
        """The message arrived, or was found to be purged."""
        asked = self._asked[rank].pop(seq, None)
        if asked is not None:
            self._window.on_answer()
            if asked.tries == 1:
                self._round_trip.sample(now - asked.at)

    def passed(self, rank: int, queued: int) -> None:
        """Everything up to `queued` is there."""
        asked = self._asked[rank]
        if asked:
            for seq in [seq for seq in asked if seq <= queued]:
                del asked[seq]

    def expire(self, now: Nanos) -> None:
        """Notice which requests got no answer in time: they no longer count as under way."""
        expired = [a for by_seq in self._asked for a in by_seq.values() if 0 < a.deadline <= now]
        for asked in expired:
            asked.deadline = 0
        if expired:
            self.timeouts += len(expired)
            self._window.on_timeout()

    def due(self) -> Nanos | None:
        """When the first request under way expires."""
        return min(
            (a.deadline for by_seq in self._asked for a in by_seq.values() if a.deadline), default=None
        )

    def ask(self, now: Nanos, rank: int, missing: list[int]) -> list[tuple[int, Request]]:
        """Requests for the missing messages of `rank`, as (whom, frame), as many as the window allows."""
        asked = self._asked[rank]
        chosen: dict[int, list[int]] = {}
        budget = self._window.size - self._under_way(now)
        for seq in missing:
            if budget <= 0:
                break
            earlier = asked.get(seq)
            if earlier is not None and earlier.deadline > now:
                continue
            tries = 1 if earlier is None else earlier.tries + 1
            whom = self._holder(rank, seq, tries)
            if whom is None:
                continue
            asked[seq] = Asked(whom, now, now + self._round_trip.after(tries), tries)
            chosen.setdefault(whom, []).append(seq)
            budget -= 1
        return [(whom, Request(rank, _spans(seqs))) for whom, seqs in chosen.items()]

    def _under_way(self, now: Nanos) -> int:
        return sum(asked.deadline > now for by_seq in self._asked for asked in by_seq.values())

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


def _spans(seqs: list[int]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for seq in seqs:
        if spans and spans[-1][1] == seq - 1:
            spans[-1] = (spans[-1][0], seq)
        elif len(spans) < MAX_SPANS:
            spans.append((seq, seq))
    return spans
