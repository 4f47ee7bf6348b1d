"""Replication servers that break the order of actions."""

from collections.abc import Sequence

from semcast.replication.actions import Run, RunId
from semcast.replication.books import Books
from semcast.replication.colours import Colours
from semcast.replication.exchange import Exchange
from semcast.replication.exchanging import Exchanging
from semcast.replication.knowledge import (
    Prim,
)
from semcast.replication.machine import Machine
from semcast.replication.making import Making
from semcast.replication.marking import Marking
from semcast.replication.messages import Actions, Again, Said, decode
from semcast.replication.plan import Share
from semcast.replication.primaries import Primaries
from semcast.replication.records import Install, KnownGreen
from semcast.replication.states import State as Where


class _GreenForYellow(Marking):
    def yellow(self, run: Run) -> None:
        self.green(run)


class GreenInTransitional(Machine):
    """What comes after a primary is over is ordered at once."""

    marking_kind = _GreenForYellow


class _NeverSafe(Making):
    def sends_safe(self) -> bool:
        return False


class AgreedInsteadOfSafe(Machine):
    """Actions are delivered in a primary before everybody has them."""

    making_kind = _NeverSafe


class _ByArrival(Colours):
    def in_red_order(self) -> list[Run]:
        return list(self.reds.values())


class _BooksByArrival(Books):
    colours_kind = _ByArrival


class RedsInArrivalOrder(Machine):
    """Each server orders reds as they came to it."""

    books_kind = _BooksByArrival


class _ById(Colours):
    def in_red_order(self) -> list[Run]:
        return sorted(self.reds.values(), key=lambda run: (run.creator, run.first))


class _BooksById(Books):
    colours_kind = _ById


class RedsById(Machine):
    """Reds are ordered by who made them, as printed: an answer may come before its question."""

    books_kind = _BooksById


class _OwnNotRed(Exchanging):
    def begin(self, exchange: Exchange) -> None:
        own, self._books.ongoing = self._books.ongoing, {}
        super().begin(exchange)
        self._books.ongoing = own


class QueuedActionCounted(Machine):
    """Slip 3: what was sent in a later configuration than it was made for is marked red where it arrives."""

    exchanging_kind = _OwnNotRed

    def _on_stale(self, message: Said) -> None:
        waits = (Where.EXCHANGE_STATES, Where.NON_PRIM)
        if isinstance(message, Actions) and self.state in waits:
            run = message.run
            if run.first == self.books.colours.cut.get(run.creator, 0) + 1:
                self.marking.red(run)


class _ManyRecords(Primaries):
    def write_install(self, prim: Prim, turning: tuple[RunId, ...]) -> None:
        self._standing.write(Install(prim, ()))
        for run in turning:
            self._standing.write(KnownGreen(run))


class InstallNotAtomic(Machine):
    """A crash may leave a primary with a part of what turned green with it."""

    primaries_kind = _ManyRecords


class _RedsAtOnce(Exchanging):
    def stage(self, runs: Sequence[Run]) -> None:
        for run in runs:
            self._marking.red(run)


class ExchangeRedsAtOnce(Machine):
    """Reds of an exchange count as they come, also if it breaks off."""

    exchanging_kind = _RedsAtOnce


class _RedsFirst(_RedsAtOnce):
    def send_share(self, exchange: Exchange, share: Share) -> None:
        super().send_share(exchange, share)
        sends = self._standing.sends
        done = sends.pop()
        sends.sort(key=lambda sent: isinstance(again := decode(sent[0]), Again) and again.position > 0)
        sends.append(done)


class RedBeforeGreenInExchange(Machine):
    """Reds of an exchange come before the greens that they follow."""

    exchanging_kind = _RedsFirst
