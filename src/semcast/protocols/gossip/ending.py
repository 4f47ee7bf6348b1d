"""How a logger ends streams, and gives up what is lost (R-10): freeze, ask, gather, write down, say so.

Each step is on disk before the next. A logger that crashes in between goes on with the question.
"""

from collections.abc import Callable

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.admission import closed
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.closing import Inquiry
from semcast.protocols.gossip.frames import Holding, LetGo, Want, wanted
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.records import Frozen, Holes, Over
from semcast.protocols.gossip.spans import Span

Settled = Callable[[Nanos, LogStream], None]


class Ending:
    """All inquiries of a logger.

    Args:
        books: what is in the log.
        journal: to write to, and to wait for.
        kind: of inquiries.
        settled: called when more of a stream is settled, on disk.
        out: where questions go.
    """

    def __init__(
        self, books: Books, journal: Journal, kind: type[Inquiry], settled: Settled, out: Outbox
    ) -> None:
        self._books = books
        self._journal = journal
        self._kind = kind
        self._settled = settled
        self._out = out
        self._inquiries: dict[MemberId, Inquiry] = {}

    def refuses(self, stream: LogStream) -> bool:
        """Whether the log takes nothing more of a stream."""
        inquiry = self._inquiries.get(stream.sender)
        return stream.last is not None or (inquiry is not None and inquiry.closing and inquiry.concluded)

    def end(self, stream: LogStream) -> None:
        """Its sender is gone: sessions are asked once it is on disk that they must not take more of it."""
        stream.frozen = True
        self._journal.write(Frozen(stream.sender))
        self._journal.then(lambda _now: self.resume(stream))

    def resume(self, stream: LogStream) -> None:
        """Ask, of a stream that is frozen."""
        self._inquiries[stream.sender] = self._kind(stream, closing=True)

    def on_let_go(self, _now: Nanos, source: MemberId, frame: LetGo) -> None:
        """What a sender has forgotten, because a log had it that is lost: perhaps a session has it."""
        stream = self._books.streams.get(source)
        if stream is not None and not stream.frozen and source not in self._inquiries:
            self._inquiries[source] = self._kind(stream, closing=False, spans=frame.spans)

    def on_holding(self, _now: Nanos, source: MemberId, frame: Holding) -> None:
        """A session says what it has."""
        inquiry = self._inquiries.get(frame.sender)
        if inquiry is not None:
            inquiry.on_holding(source, frame)
            self._gather(inquiry, source)

    def ask(self, connected: list[MemberId]) -> None:
        """Go on with every inquiry; conclude those that everybody connected has answered."""
        for inquiry in list(self._inquiries.values()):
            if inquiry.concluded:
                continue
            if inquiry.complete(connected):
                self._conclude(inquiry)
                continue
            for member, question in inquiry.questions(connected):
                self._out.send(member, question)
            for member in connected:
                self._gather(inquiry, member)

    def _gather(self, inquiry: Inquiry, source: MemberId) -> None:
        asked = wanted([(inquiry.stream.sender, inquiry.lacking(source))])
        if asked:
            self._out.send(source, Want(0, asked))

    def _conclude(self, inquiry: Inquiry) -> None:
        """Write down what nobody has; when that is synced, say so."""
        inquiry.concluded = True
        stream, last, holes = inquiry.stream, inquiry.last, inquiry.holes()
        if holes:
            self._journal.write(Holes(stream.sender, holes))
        if inquiry.closing:
            self._journal.write(Over(stream.sender, last))
        self._journal.then(lambda now: self._concluded(now, inquiry, last, holes))

    def _concluded(self, now: Nanos, inquiry: Inquiry, last: int, holes: list[Span]) -> None:
        stream = inquiry.stream
        if self._inquiries.get(stream.sender) is inquiry:
            del self._inquiries[stream.sender]
        stream.tear(holes)
        if inquiry.closing:
            stream.close(last)
            stream.advance()
        self._settled(now, stream)
        if inquiry.closing:
            self._out.multicast(closed(stream))
