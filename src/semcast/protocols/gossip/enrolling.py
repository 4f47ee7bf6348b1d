"""A logger learns of members that sponsors took in while no logger was there (Sun 2000, 5.3; R-4).

The row is on disk, here and at as many loggers as must have it, before the sponsor is answered: until then
the sponsor's own row holds back what the newcomer is owed. The newcomer reports itself when it finds a
logger.
"""

from collections.abc import Callable

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books, admitted
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.rows import Row
from semcast.protocols.gossip.sponsor_frames import Enroll, Enrolled

_MOST = 16384
"""Sessions at a time, as in `admission.py`."""


class Enrolling:
    """Of one logger.

    Args:
        books: with the rows of sessions.
        journal: to write to, and to wait for.
        colleagues: the other loggers.
        enough: whether so many loggers have a row on disk as must.
        out: where answers go.
    """

    def __init__(
        self,
        books: Books,
        journal: Journal,
        colleagues: Colleagues,
        enough: Callable[[Row], bool],
        out: Outbox,
    ) -> None:
        self._books = books
        self._journal = journal
        self._colleagues = colleagues
        self._enough = enough
        self._out = out

    def on_enroll(self, now: Nanos, source: MemberId, frame: Enroll) -> None:
        """A sponsor answers for somebody. What it does not name is owed from the beginning.

        The newcomer may report to another logger, and is not ended here because it is silent.
        """
        rows = self._books.rows
        row = Row(frame.member, dict(frame.after), now, again=False, attempt=frame.attempt)
        row.filter, row.away, row.here = frame.filter, True, False
        if not rows.knows(row):
            if rows.known(frame.member.name) is None and len(rows) >= _MOST:
                return
            rows.merge(row)
            self._journal.write(admitted(row))
            self._journal.then(lambda _now: self._enrolled(frame.member, frame.attempt))
        self._journal.then(lambda _now: self._answer(source, frame))

    def _enrolled(self, member: MemberId, attempt: int) -> None:
        self._out.deliver(Note("admit", members=(member,), order=attempt))
        self._colleagues.changed(member.name)

    def _answer(self, source: MemberId, frame: Enroll) -> None:
        """Where other loggers have yet to have it, the sponsor asks again."""
        row = self._books.rows.known(frame.member.name)
        if self._books.rows.is_over(frame.member) or row is None or self._enough(row):
            self._out.send(source, Enrolled(frame.member, frame.attempt, frame.part, source.incarnation))
        else:
            self._colleagues.spread(row)
