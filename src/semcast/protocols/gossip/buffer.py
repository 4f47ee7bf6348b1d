"""gossipbuf: what a member can repair (4.1), by age; and until it is logged, where there is a logger.

Holding until it is logged is ours: the paper forgets by age alone, so that what a crashed sender had not
got to its logger is gone while members still have it.

Semantic repair: whoever asks for a message that a later one replaces is told so, and asks for that one if it
lacks it. Only a replacement that is logged will do, where there is a logger: one that is lost with its sender
would leave the asker with neither.
"""

from collections import deque
from collections.abc import Container, Iterable, Mapping
from typing import Any

from semcast.core.annotations import Enumeration, Item, KEnumeration
from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.protocols.gossip.spans import Span
from semcast.protocols.gossip.streamruns import StreamRuns

_NOTHING: dict[Any, int] = {}
"""Of streams without annotations, which are most at any time; nothing is ever added to it."""


class Kept:
    """What is kept of one stream."""

    __slots__ = ("_latest", "_replaced", "messages")

    def __init__(self) -> None:
        self.messages = StreamRuns()
        self._latest: dict[str, int] = _NOTHING
        self._replaced: dict[int, int] = _NOTHING

    def add(self, batch: Batch) -> bool:
        """Keep messages that are not here, and see what they replace; returns whether they were not."""
        if not self.messages.add(batch):
            return False
        if batch.annotation is not None or batch.items is not None:
            self._see_what_is_replaced(batch)
        return True

    def _see_what_is_replaced(self, batch: Batch) -> None:
        seq, annotation = batch.first, batch.annotation
        if self._latest is _NOTHING:
            self._latest, self._replaced = {}, {}
        if batch.items is not None:
            for each, item in enumerate(batch.items, seq):
                self._update(each, item)
        elif isinstance(annotation, Item):
            self._update(seq, annotation.item)
        elif isinstance(annotation, Enumeration):
            self._replace(seq, (named.seq for named in annotation.ids if named.sender == batch.sender))
        elif isinstance(annotation, KEnumeration) and not annotation.total:
            self._replace(seq, annotation.positions())

    def _update(self, seq: int, item: str) -> None:
        latest = self._latest.get(item, 0)
        if seq > latest:
            self._latest[item] = seq
        if latest:
            self._replaced[min(seq, latest)] = max(seq, latest)

    def _replace(self, by: int, olds: Iterable[int]) -> None:
        for old in olds:
            known = self.messages.find(old)
            if old < by and known is not None and (known.annotation is not None or known.items is not None):
                self._replaced[old] = by

    def replacement(self, seq: int, upto: int) -> int | None:
        """The latest that replaces it, is here and is not above `upto`; None if there is none."""
        found = None
        by = self._replaced.get(seq)
        while by is not None and by <= upto:
            if self.messages.find(by) is not None:
                found = by
            by = self._replaced.get(by)
        return found

    def drop(self, batch: Batch) -> None:
        """These are not kept any more."""
        self.messages.remove(batch.first)
        if batch.annotation is None and batch.items is None:
            return
        if batch.items is not None:
            for seq, item in enumerate(batch.items, batch.first):
                self._forget_update(seq, item)
        elif isinstance(batch.annotation, Item):
            self._forget_update(batch.first, batch.annotation.item)
        elif batch.annotation is not None:
            self._replaced.pop(batch.first, None)

    def _forget_update(self, seq: int, item: str) -> None:
        self._replaced.pop(seq, None)
        if self._latest.get(item) == seq:
            del self._latest[item]


class GossipBuffer:
    """Everything that is kept for others.

    Args:
        rounds: GCLIMIT.
        most: messages, beyond which the oldest leave.
        logged: what is on a logger's disk: what is not stays. None where there is no logger.
        over: streams that are: what anybody has of them is on a logger's disk.
    """

    __slots__ = (
        "_ages",
        "_count",
        "_kept",
        "_logged",
        "_most",
        "_old",
        "_over",
        "_rounds",
    )

    def __init__(
        self,
        rounds: int,
        most: int,
        logged: Mapping[MemberId, int] | None,
        over: Container[MemberId] = (),
    ) -> None:
        self._rounds = rounds
        self._most = most
        self._logged = logged
        self._over = over
        self._kept: dict[MemberId, Kept] = {}
        self._ages: deque[tuple[int, deque[Batch]]] = deque()  # by round
        self._old: dict[MemberId, list[Batch]] = {}  # old enough, and not logged
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, batch: Batch, number: int) -> None:
        """Keep messages that came in this round."""
        sender = batch.sender
        kept = self._kept.get(sender)
        if kept is None:
            kept = self._kept[sender] = Kept()
        if kept.add(batch):
            self._count += len(batch.payloads)
            if not self._ages or self._ages[-1][0] != number:
                self._ages.append((number, deque()))
            self._ages[-1][1].append(batch)
            if self._count > self._most:
                self._forget(number)

    def get(self, stream: MemberId) -> Kept | None:
        """What is kept of a stream."""
        return self._kept.get(stream)

    def age(self, number: int) -> None:
        """Another round: forget what is old, and what was, if it is logged by now."""
        self._forget(number)
        for stream, batches in list(self._old.items()):
            self._old[stream] = []
            for batch in batches:
                self._let_go(batch)
            if not self._old[stream]:
                del self._old[stream]

    def _forget(self, number: int) -> None:
        """The oldest leave: because of their age, or because there are too many."""
        ages = self._ages
        while ages and (ages[0][0] + self._rounds <= number or self._count > self._most):
            batches = ages[0][1]
            self._let_go(batches.popleft())
            if not batches:
                ages.popleft()

    def _let_go(self, batch: Batch) -> None:
        """Messages that are old enough leave, as far as they are logged."""
        sender, count, logged = batch.sender, len(batch.payloads), self._logged
        kept = self._kept.get(sender)
        if kept is None or kept.messages.at(batch.first) is not batch:
            return
        last = batch.first + count - 1
        if logged is not None and logged.get(sender, 0) < last and sender not in self._over:
            self._old.setdefault(sender, []).append(batch)
            return
        kept.drop(batch)
        self._count -= count
        if not len(kept.messages):
            del self._kept[sender]

    def intervals(self) -> list[tuple[MemberId, list[Span]]]:
        """What is kept, as a digest has it."""
        return [(stream, kept.messages.spans()) for stream, kept in sorted(self._kept.items())]
