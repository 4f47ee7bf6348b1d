"""Replication servers that break what clients are promised."""

from semcast.replication.actions import Asked, Run
from semcast.replication.books import Books
from semcast.replication.creation import Cut, Wish
from semcast.replication.dedupe import Answered, Requests
from semcast.replication.journal import Journal
from semcast.replication.machine import Machine
from semcast.replication.making import Making
from semcast.replication.reads import ReadQueue
from semcast.replication.records import encode
from semcast.replication.snapshots import KeptState
from semcast.replication.tables import Tables


class _AllIsSeen(Making):
    def refuse_unseen(self, wish: Wish) -> bool:  # noqa: ARG002
        return False


class RoamByClock(Machine):
    """A clock as high counts as having seen the same."""

    making_kind = _AllIsSeen


class _KnownIsSeen(Making):
    def refuse_unseen(self, wish: Wish) -> bool:
        knows = self._books.colours.knows
        return not all(knows(creator, index) for creator, index in wish.seen)


class RoamRedInPrimary(Machine):
    """In a primary, what is known without a place counts as seen."""

    making_kind = _KnownIsSeen


class _LastNumberOnly(Requests):
    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, int] = {}

    def apply(self, request: Asked, position: int) -> bool:
        if request.number <= self._last.get(request.client, 0):
            return False
        self._last[request.client] = request.number
        return super().apply(request, position)


class _BooksWithLastNumbers(Books):
    requests_kind = _LastNumberOnly


class _BooksWithoutRequests(Books):
    def _restore_requests(self, tables: Tables, requests: Answered) -> None:
        pass


class DedupeNotInSnapshot(Machine):
    """What was done for which client is not written down with the rest."""

    books_kind = _BooksWithoutRequests


class SnapshotNamesTooHigh(Machine):
    """The state of the service is said to have one action more than it has."""

    def keep(self, state: KeptState) -> None:
        super().keep(KeptState(min(state.position + 1, self.books.colours.line), state.state))


class _TrimsFirst(Journal):
    def begin_anew(self) -> None:
        self.out.begin_anew()
        self.sync()
        for record in self.books.condensed():
            self.out.append(encode(record))
        self.sync()


class TrimmedBeforeSynced(Machine):
    """The old log goes before what replaces it is on the disk."""

    journal_kind = _TrimsFirst


class LateQueuedDropped(Machine):
    """A request with a lower number than the client's last is dropped."""

    books_kind = _BooksWithLastNumbers


class StreamByCreator(Machine):
    """Reds of one who is ahead are handed in creator by creator."""

    def lacking(self, cut: Cut) -> list[Run]:
        return sorted(super().lacking(cut), key=lambda run: (run.creator, run.first))


class WeakSeesRed(ReadQueue):
    """A weak read shows what has no place."""

    def read(self, level: str, client: str = "", position: int = 0) -> "object":  # type: ignore[override]
        machine = self._machine
        if level == "weak":
            machine.notes.read(level, client, machine.limit, self.reds())
            return None
        return super().read(level, client, position)


class DeltaDeletedAtAnyGreen(ReadQueue):
    """A dirty read forgets the reds as soon as anything is green (figure 7.3 as printed)."""

    def reds(self) -> list[Run]:
        return [] if self._machine.books.colours.line else super().reds()


class SessionIgnoresOwn(ReadQueue):
    """A session is shown any green line."""

    def may_answer(self, position: int) -> bool:  # noqa: ARG002
        return True
