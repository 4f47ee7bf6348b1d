"""A small stack that keeps what it is told: what it acknowledged must be there after every crash.

Each message is appended, and delivered once it is synced. Each tenth time all are written anew as one record.
"""

import json
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from semcast.core import Annotation, Batch, Frame, MemberId, Nanos, Outbox, Stack, Statistics, Timer, View
from semcast.core.events import ViewChange
from semcast.core.messages import batch_of

if TYPE_CHECKING:
    from random import Random

ANEW = 10


class Keeping(Stack):
    """One member, alone."""

    def __init__(self, me: MemberId, out: Outbox) -> None:
        self.out = out
        self.stats = Statistics()
        self.recovered: list[str] | None = None
        """What earlier incarnations kept; None where there is no disk."""
        self.kept: list[str] = []
        self.acknowledged = 0
        """How many of those are synced."""
        self.tickets: list[int] = []
        self._me = me
        self._asked: deque[tuple[int, int]] = deque()
        self._ready: deque[Batch] = deque()
        self._seq = 0

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:
        self.recovered = []
        for record in records:
            kind, *values = json.loads(record)
            self.recovered = values if kind == "all" else [*self.recovered, *values]
        self.kept = list(self.recovered)
        self.acknowledged = len(self.kept)

    def start(self, now: Nanos) -> None:
        self.out.deliver(ViewChange(self.view(), joined=(self._me,)))

    def phase(self) -> str:
        return "operational"

    def view(self) -> View:
        return View(1, (self._me,))

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        assert self.recovered is not None, "nobody said that there is a disk"
        for payload in payloads:
            self._seq += 1
            self.stats.sent += 1
            self.kept.append(payload.decode("latin1"))
            if self._seq % ANEW == 0:
                self.out.begin_anew()
                self.out.append(json.dumps(["all", *self.kept]).encode())
            else:
                self.out.append(json.dumps(["one", payload.decode("latin1")]).encode())
            self._ready.append(batch_of(self._me, self._seq, [payload]))
        self.out.sync(self._seq)
        self._asked.append((self._seq, len(self.kept)))
        return len(payloads)

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        raise AssertionError("it is alone")

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        raise AssertionError("it sets none")

    def on_synced(self, now: Nanos, ticket: int) -> None:
        self.tickets.append(ticket)
        assert self._asked[0][0] == ticket, "syncs are done in order"
        _, self.acknowledged = self._asked.popleft()

    def successor(self, member: MemberId, rng: "Random", out: Outbox) -> "Keeping":
        again = Keeping(member, out)
        again.recovered, again.kept = self.recovered, list(self.kept)
        return again

    def deliver(self, now: Nanos, most: int) -> Sequence[Batch]:
        done = self._done()
        taken: list[Batch] = []
        while self._ready and self._ready[0].first <= done and len(taken) < most:
            taken.append(self._ready.popleft())
        self.stats.delivered += len(taken)
        return taken

    def deliverable(self) -> bool:
        return bool(self._ready) and self._ready[0].first <= self._done()

    def _done(self) -> int:
        return self.tickets[-1] if self.tickets else 0

    def buffered(self) -> int:
        return len(self._ready)
