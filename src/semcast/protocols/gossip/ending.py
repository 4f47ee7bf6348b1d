"""How a logger ends streams, and gives up what is lost (R-10): freeze, ask, gather, write down, say so.

Each step is on disk before the next. A logger that crashes in between goes on with the question.

Where there are several loggers, one decides: the first of all that are set, whether it is there or not; while
it is not, streams wait. It asks the others as it asks sessions. Another logger that is asked freezes the
stream, asks its own sessions, gathers what they have, and answers when that is synced: with all that its log
has settled, and the highest number that anybody heard of. After that it takes the stream from loggers only. A
`Closed` that any logger knows is final: who is asked about such a stream answers with it.
"""

from collections.abc import Callable

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.admission import closed
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.closing import Inquiry
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.frames import Closed, Holding, Inquire, LetGo, Want, some_spans, wanted
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.records import Frozen, Holes, Over
from semcast.protocols.gossip.spans import Span, spans_of, within

Settled = Callable[[Nanos, LogStream], None]


class Ending:
    """All inquiries of a logger.

    Args:
        books: what is in the log.
        journal: to write to, and to wait for.
        kind: of inquiries.
        colleagues: the other loggers.
        settled: called when more of a stream is settled, on disk.
        out: where questions go.
    """

    def __init__(
        self,
        books: Books,
        journal: Journal,
        kind: type[Inquiry],
        colleagues: Colleagues,
        settled: Settled,
        out: Outbox,
    ) -> None:
        self._books = books
        self._journal = journal
        self._kind = kind
        self._colleagues = colleagues
        self._settled = settled
        self._out = out
        self._inquiries: dict[MemberId, Inquiry] = {}
        self._errands: dict[MemberId, Inquiry] = {}  # for the logger that decides
        self._begins: Nanos = 0

    @property
    def decides(self) -> bool:
        """Whether this logger closes streams."""
        return self._colleagues.decides

    @property
    def shared(self) -> bool:
        """Whether there are other loggers, whose streams are logged here, too."""
        return bool(self._colleagues)

    def wait_for_sessions(self, until: Nanos) -> None:
        """A logger is forgotten: its sessions come to others, and are asked there before anything ends."""
        self._begins = until
        self._errands.clear()

    def wait(self, until: Nanos) -> None:
        """Conclude nothing before: this logger is cut off, and who comes back is to be asked first."""
        self._begins = max(self._begins, until)

    def refuses(self, stream: LogStream, source: MemberId, seq: int) -> bool:
        """Whether the log takes nothing more of a stream; from other loggers it takes all that they have."""
        if source in self._colleagues:
            return stream.last is not None and seq > stream.last
        inquiry, errand = self._inquiries.get(stream.sender), self._errands.get(stream.sender)
        if stream.last is not None:
            asks = any(each is not None and not each.concluded for each in (inquiry, errand))
            return seq > stream.last or not asks
        if inquiry is not None and inquiry.closing and inquiry.concluded:
            return True
        return stream.frozen and not self.decides and (errand is None or errand.concluded)

    def end(self, stream: LogStream) -> None:
        """Its sender is gone: sessions are asked once it is on disk that they must not take more of it."""
        if self.decides:
            stream.frozen = True
            self._journal.write(Frozen(stream.sender))
            self._journal.then(lambda _now: self.resume(stream))

    def resume(self, stream: LogStream) -> None:
        """Ask, of a stream that is frozen."""
        asked = self._inquiries.get(stream.sender)
        if self.decides and stream.last is None and (asked is None or not asked.closing):
            self._inquiries[stream.sender] = self._kind(stream, closing=True)

    def on_let_go(self, _now: Nanos, source: MemberId, frame: LetGo) -> None:
        """What a sender has forgotten, because a log had it that is lost: perhaps a session has it."""
        stream = self._books.streams.get(source)
        if self.decides and stream is not None and not stream.frozen and source not in self._inquiries:
            self._inquiries[source] = self._kind(stream, closing=False, spans=frame.spans)

    def on_holding(self, _now: Nanos, source: MemberId, frame: Holding) -> None:
        """A session says what it has, or another logger."""
        for inquiry in (self._inquiries.get(frame.sender), self._errands.get(frame.sender)):
            if inquiry is not None:
                inquiry.on_holding(source, frame)
                self._gather(inquiry, source)

    def ask(self, now: Nanos, connected: list[MemberId]) -> None:
        """Go on with every inquiry; conclude those that everybody has answered whom they concern."""
        others, all_there = self._others()
        waits = now < self._begins
        if self.decides and self.shared:
            self._look_for_the_rest()
        for inquiry in list(self._inquiries.values()):
            answered = not inquiry.concluded and self._ask(inquiry, [*connected, *others])
            if answered and all_there and not waits:
                self._conclude(inquiry)
        for inquiry in self._errands.values():
            if not inquiry.concluded:
                inquiry.concluded = self._ask(inquiry, connected) and not waits
        if not self.decides:
            self._ask_for_ends()

    def _look_for_the_rest(self) -> None:
        """What ended is whole where it was decided, but for a lost disk: others may not have copied all yet.

        Nobody else would ask the sessions for that, or give it up.
        """
        for sender, stream in self._books.streams.items():
            if stream.last is not None and stream.contiguous < stream.last and sender not in self._inquiries:
                rest = [(stream.contiguous + 1, stream.last)]
                self._inquiries[sender] = self._kind(stream, closing=False, spans=rest)

    def _others(self) -> tuple[list[MemberId], bool]:
        """The loggers to ask, and whether these are all."""
        there = self._colleagues.there()
        return there, len(there) == len(self._colleagues.names)

    def _ask(self, inquiry: Inquiry, asked: list[MemberId]) -> bool:
        """Ask some; returns whether all have said all, and it is here."""
        if inquiry.complete(asked):
            return True
        for member, question in inquiry.questions(asked):
            self._out.send(member, question)
        for member in asked:
            self._gather(inquiry, member)
        return False

    def _ask_for_ends(self) -> None:
        """How streams ended that are frozen: what was said may have been lost."""
        for stream in self._books.streams.values():
            if stream.frozen and stream.last is None:
                for colleague in self._colleagues.there():
                    self._out.send(colleague, Inquire(stream.sender, 0, freeze=False))

    def _gather(self, inquiry: Inquiry, source: MemberId) -> None:
        asked = wanted([(inquiry.stream.sender, inquiry.lacking(source))])
        if asked:
            self._out.send(source, Want(0, asked))

    # For the logger that decides

    def on_inquire(self, source: MemberId, frame: Inquire) -> None:
        """Another logger asks what there is of a stream: first find out."""
        over = self._end_of(frame.sender)
        decider = self._colleagues.is_decider(source)
        if over is not None:
            self._journal.then(lambda _now: self._out.send(source, over))
            if frame.freeze or not decider:
                return
        elif not decider:
            self._take_over(frame)
            return
        if frame.sender in self._books.ended:  # nobody needs it any more
            self._out.send(source, Holding(frame.sender, frame.after, 0, [], more=False))
            return
        stream = self._books.open(frame.sender)
        if stream is None:
            return
        if frame.freeze and not stream.frozen:
            stream.frozen = True
            self._journal.write(Frozen(stream.sender))
        errand = self._errands.get(frame.sender)
        if errand is None or (frame.freeze and not errand.closing):
            self._errands[frame.sender] = self._kind(stream, closing=frame.freeze)
        elif errand.concluded:
            self._journal.then(lambda _now: self._hold(source, frame, stream))

    def _take_over(self, frame: Inquire) -> None:
        """Another logger has frozen a stream for a decider that is forgotten: this one ends it."""
        stream = self._books.open(frame.sender) if self.decides else None
        if stream is not None and not stream.frozen:
            self.end(stream)

    def _end_of(self, sender: MemberId) -> Closed | None:
        if sender in self._books.ended:
            return Closed(sender, self._books.ended.last(sender), [])
        stream = self._books.streams.get(sender)
        return None if stream is None or stream.last is None else closed(stream)

    def _hold(self, target: MemberId, frame: Inquire, stream: LogStream) -> None:
        """What is settled here, and on disk."""
        spans = [(1, stream.contiguous), *spans_of(stream.beyond()), *stream.holes]
        held = sorted(within(spans, frame.after + 1, max(stream.known, frame.after)))
        some = next(some_spans(held))
        more = len(some) < len(held)
        self._out.send(target, Holding(stream.sender, frame.after, stream.known, some, more))
        if not more and not frame.freeze:
            self._errands.pop(stream.sender, None)  # what comes later is another question

    # The end

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
            self._close(stream, last)
        self._settled(now, stream)
        if inquiry.closing:
            self._out.multicast(closed(stream))

    def on_closed(self, _now: Nanos, source: MemberId, frame: Closed) -> None:
        """Another logger knows how a stream ended: so it did."""
        if source not in self._colleagues or frame.sender in self._books.ended:
            return
        stream = self._books.open(frame.sender)
        if stream is None or stream.last is not None:
            return
        self._inquiries.pop(frame.sender, None)
        self._errands.pop(frame.sender, None)
        holes = [span for span in frame.holes if span[1] <= frame.last]
        if holes:
            self._journal.write(Holes(stream.sender, holes))
        self._journal.write(Over(stream.sender, frame.last))
        stream.tear(holes)
        self._close(stream, frame.last)
        self._journal.then(lambda now: self._settled(now, stream))

    def _close(self, stream: LogStream, last: int) -> None:
        stream.close(last)
        stream.advance()
        self._out.deliver(Note("closed", sender=stream.sender, seq=last))
