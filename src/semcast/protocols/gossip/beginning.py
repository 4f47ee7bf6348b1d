"""How a log begins where there are other loggers: after all of them have said what is past.

Else a logger whose disk was lost could admit a session to what was collected, or close a stream for the
second time, and otherwise. A logger that is itself new answers, too: two of them must not wait for each
other.
"""

from collections.abc import Callable

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.frames import Begin, Past, Through, reports
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.records import Begun, Collected, Dropped, Over

Ready = Callable[[Nanos], None]


class Beginning:
    """Of one log.

    Args:
        books: of this logger.
        journal: to write to, and to wait for.
        colleagues: the other loggers.
        ready: called when the log may be used.
        forgetful: told who lost its disk, and all that it knew.
        out: where frames go.
    """

    def __init__(
        self,
        books: Books,
        journal: Journal,
        colleagues: Colleagues,
        ready: Ready,
        forgetful: Callable[[str], None],
        out: Outbox,
    ) -> None:
        self._books = books
        self._journal = journal
        self._colleagues = colleagues
        self._ready = ready
        self._forgetful = forgetful
        self._out = out
        self._told: dict[str, dict[int, Past]] = {}
        self._done: set[str] = set()

    @property
    def over(self) -> bool:
        """Whether the log may be used."""
        return self._books.begun or not self._colleagues

    def ask(self) -> None:
        """Those that have not answered."""
        if not self.over:
            for colleague in self._colleagues.there():
                if colleague.name not in self._done:
                    self._out.send(colleague, Begin(self._books.log))

    def on_begin(self, source: MemberId, frame: Begin) -> None:
        """Another logger has a new log: say what is past, as it is on disk."""
        self._colleagues.on_begin(source, frame.log)
        self._forgetful(source.name)
        self._journal.then(lambda _now: self._tell(source, frame.log))

    def _tell(self, target: MemberId, log: int) -> None:
        books = self._books
        vector: list[Through] = [
            (sender, stream.floor, 0 if stream.last is None else stream.last + 1)
            for sender, stream in sorted(books.streams.items())
            if stream.floor or stream.last is not None
        ]
        vector += [(sender, last, last + 1) for sender, last in books.ended.entries()]
        parts = reports(vector)
        for number, part in enumerate(parts):
            self._out.send(target, Past(log, number, len(parts), part))

    def on_past(self, now: Nanos, source: MemberId, frame: Past) -> None:
        """One of them answers; when all have, the log begins."""
        if self.over or frame.log != self._books.log or source.name in self._done:
            return
        parts = self._told.setdefault(source.name, {})
        if any(part.parts != frame.parts for part in parts.values()):
            parts.clear()
        parts[frame.part] = frame
        if len(parts) == frame.parts:
            self._done.add(source.name)
        self.look(now)

    def look(self, now: Nanos) -> None:
        """Whether all have answered that are waited for."""
        if not self._books.begun and self._done.issuperset(self._colleagues.names):
            for told in self._told.values():
                for part in told.values():
                    self._take(part)
            self._books.begun = True
            self._journal.write(Begun())
            self._ready(now)

    def _take(self, past: Past) -> None:
        books = self._books
        for sender, floor, end in past.streams:
            stream = books.open(sender)
            if stream is None:
                continue
            if end and floor >= end - 1:
                self._journal.write(Dropped(sender, end - 1))
                books.forget(sender, end - 1)
                continue
            if floor > stream.floor:
                self._journal.write(Collected(sender, floor))
                books.collect(stream, floor)
            if end and stream.last is None:
                self._journal.write(Over(sender, end - 1))
                stream.close(end - 1)
            stream.advance()
            stream.logged = stream.contiguous
