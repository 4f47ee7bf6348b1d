"""The application of a simulated host: what it sends, and what becomes of what it takes.

It uses the same hand-over as a live program: `send` where there is room, and `take`.
"""

from collections.abc import Sequence
from itertools import groupby
from random import Random

from semcast.core.events import Delivery, Rejoining, ViewChange
from semcast.core.handover import Handover, Outgoing
from semcast.core.ids import Nanos
from semcast.core.messages import Batch
from semcast.core.views import View
from semcast.sim.bursts import Bursts
from semcast.sim.replica import Replicas
from semcast.sim.workloads import Source


class Reader:
    """Applies what is delivered, and knows which view it has come to.

    Args:
        handover: where it takes from.
        observe: whether it builds up state from what it takes.
        transfers: whether its state is handed over to who joins.
    """

    def __init__(self, handover: Handover, *, observe: bool, transfers: bool) -> None:
        self.view: View | None = None
        self.replicas = Replicas() if observe else None
        self._handover = handover
        self._handover.hooks = self if transfers else None

    def read(self, now: Nanos) -> int:
        """Take a list; returns how many messages there were."""
        taken = 0
        for each in self._handover.take(now):
            if isinstance(each, Batch):
                taken += len(each.payloads)
                if self.replicas is not None:
                    self.replicas.apply(each)
            else:
                self._hear(each)
        return taken

    def _hear(self, each: Delivery) -> None:
        if isinstance(each, ViewChange):
            self.view = each.view
        elif isinstance(each, Rejoining):
            self.view = None
            self.replicas = None if self.replicas is None else Replicas()

    def export(self) -> bytes:
        """The state, for who joins."""
        assert self.replicas is not None
        return self.replicas.export()

    def restore(self, state: bytes) -> None:
        """Go on from the state of another."""
        assert self.replicas is not None
        self.replicas.restore(state)


class Writer:
    """Hands over what a source makes, in runs.

    Args:
        handover: where it hands over.
        source: what it sends.
        bursts: how many messages it hands over at once, at most, and whether it is also who reads.
        rng: draws how many.
    """

    def __init__(self, handover: Handover, source: Source | None, bursts: Bursts, rng: Random | None) -> None:
        self._handover = handover
        self._source = source
        self._run = bursts.run
        self._single = bursts.single
        self._rng = rng
        self._waits = False  # in `send`
        self._wanted = self._draw()
        self._made: list[Outgoing] = []  # messages that are to leave together
        self._waiting: list[Outgoing] = []  # runs for which there was no room

    def blocked(self) -> bool:
        """Whether there was no room for what it wants to hand over."""
        return bool(self._waiting)

    @property
    def waiting(self) -> bool:
        """Whether something that was made has not been taken by the stack yet."""
        return bool(self._made) or bool(self._waiting) or bool(self._handover.unsent)

    def next_gap(self) -> Nanos | None:
        """Time until the next message; None if there is none."""
        return None if self._source is None else self._source.next_gap()

    def produce(self) -> bool:
        """Make the next message; returns whether what was made is to be handed over."""
        message = None if self._source is None else self._source.next_message()
        if message is not None:
            self._made.append(message)
        return bool(self._made) and (message is None or len(self._made) >= self._wanted)

    def stop(self) -> None:
        """Make no more."""
        self._source = None
        self._made.clear()
        self._waiting.clear()
        self._wait(False)

    def retry(self) -> bool:
        """There may be room; returns whether something was handed over."""
        handed = False
        while self._waiting and self._handover.room_for(len(self._waiting[0].payloads)):
            self._handover.send(self._waiting.pop(0))
            handed = True
        self._wait(bool(self._waiting))
        return handed

    def _wait(self, waits: bool) -> None:
        if waits and not self._waits:
            self._handover.wait(reading=self._single)
        elif self._waits and not waits:
            self._handover.waited(reading=self._single)
        self._waits = waits

    def flush(self) -> bool:
        """Hand over what was made; returns whether there was anything, and room for it."""
        self._waiting += runs(self._made)
        self._made = []
        self._wanted = self._draw()
        return self.retry()

    def _draw(self) -> int:
        return 1 if self._rng is None else self._rng.randint(1, self._run)


def runs(messages: Sequence[Outgoing]) -> list[Outgoing]:
    """Single messages as the fewest calls a program could send them with, in order.

    >>> from semcast.core import Item
    >>> made = [Outgoing([b"1"]), Outgoing([b"2"]), Outgoing([b"3"], Item("a")), Outgoing([b"4"], Item("b"))]
    >>> [each.payloads for each in runs(made)]
    [[b'1', b'2'], [b'3', b'4']]
    """
    found = []
    for (safe, plain), group in groupby(messages, key=_kind):
        together = list(group)
        if len(together) == 1:
            found += together
            continue
        payloads = [payload for each in together for payload in each.payloads]
        notes = [each.annotation for each in together if each.annotation is not None]
        found.append(Outgoing(payloads, None, safe, None if plain else notes))
    return found


def _kind(message: Outgoing) -> tuple[bool, bool]:
    return message.safe, message.annotation is None
