"""Replication servers that rely on what is not on a disk."""

from collections.abc import Callable

from semcast.replication.actions import Run
from semcast.replication.books import Books
from semcast.replication.exchanging import Exchanging
from semcast.replication.journal import Mark
from semcast.replication.machine import Machine
from semcast.replication.marking import Marking
from semcast.replication.primaries import Primaries
from semcast.replication.records import Boot


class _CpcAtOnce(Primaries):
    def withhold_cpc(self, tell: Callable[[], None]) -> None:
        self._standing.journal.sync()
        tell()


class CpcBeforeSync(Machine):
    """A server agrees to an attempt that a crash may make it forget."""

    primaries_kind = _CpcAtOnce


class _StateAtOnce(Exchanging):
    def withhold_state(self, tell: Callable[[], None]) -> None:
        self._standing.journal.sync()
        tell()


class StateBeforeSync(Machine):
    """A server tells what a crash may make it forget."""

    exchanging_kind = _StateAtOnce


class _AnswersAtOnce(Marking):
    def green(self, run: Run) -> None:
        super().green(run)
        self._answer()


class AnsweredBeforeDurable(Machine):
    """Clients are answered as soon as an action is green."""

    marking_kind = _AnswersAtOnce

    @property
    def limit(self) -> int:
        return self.books.colours.line


class WhiteFromVolatileLine(Machine):
    """A server tells how far it is, not how far its disk is."""

    @property
    def told_line(self) -> int:
        return self.books.colours.line


class _BooksWithoutEpochs(Books):
    def _boot(self, record: Boot) -> None:
        index = self.index
        super()._boot(record)
        self.index = index


class IndexReusedAfterCrash(Machine):
    """Actions are numbered on from what the disk has: what was sent and not written shares a name."""

    books_kind = _BooksWithoutEpochs

    def _epoch(self, least: int) -> int:
        return self.books.epoch or least


class PullVolatile(Machine):
    """A server outside is given what is green in memory only."""

    def image(self) -> Mark:
        return self.journal.mark()
