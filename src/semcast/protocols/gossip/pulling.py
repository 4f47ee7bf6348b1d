"""How loggers come by what others have: they ask each other, and believe what is said of what is gone."""

from collections.abc import Callable, Iterable

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.frames import Gone, Notice, Want, wanted
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.records import Expired, Holes, Merged, Replaced
from semcast.protocols.gossip.spans import Span, numbers_of
from semcast.protocols.gossip.streams import WANTED

Settles = Callable[[LogStream], None]


class Pulling:
    """Of one logger.

    Args:
        books: what it has.
        journal: to write to.
        colleagues: the other loggers.
        settles: called when more of a stream is settled.
        out: where questions go.
    """

    def __init__(
        self, books: Books, journal: Journal, colleagues: Colleagues, settles: Settles, out: Outbox
    ) -> None:
        self._books = books
        self._journal = journal
        self._colleagues = colleagues
        self._settles = settles
        self._out = out
        self._asked: dict[str, MemberId] = {}  # the last stream there was room for, where that was not all

    def ask(self, number: int) -> None:
        """One of them, another one each round, for what is missing.

        Of hundreds of streams a frame has room for some: each logger is asked for the others in its next
        rounds. What it does not have holds up nothing that it has.
        """
        there = self._colleagues.there()
        if not there:
            return
        logger = there[number % len(there)]
        lacking = self._lacking(self._asked.pop(logger.name, None))
        asked = wanted((stream.sender, stream.missing()) for stream in lacking)
        if len(asked) < len(lacking):
            self._asked[logger.name] = asked[-1][0]
        if asked:
            self._out.send(logger, Want(number, asked))

    def _lacking(self, last: MemberId | None) -> list[LogStream]:
        """Streams of which something is missing; those first that follow the last one there was room for."""
        lacking = [stream for stream in self._books.streams.values() if stream.contiguous < stream.known]
        if last is None:
            return lacking
        lacking.sort(key=lambda stream: stream.sender)
        return sorted(lacking, key=lambda stream: stream.sender <= last)

    def on_notice(self, _now: Nanos, source: MemberId, frame: Notice) -> None:
        """Something was replaced: that counts if what replaced it is here, or was, or nobody knows it."""
        stream = self._books.streams.get(frame.sender)
        if stream is None or source not in self._colleagues:
            return
        for first, last, by in frame.purged:
            here = by in stream.messages or by in stream.receipts
            if by and not (here or by in stream.expired or by <= stream.floor):
                continue
            if not by and first <= stream.contiguous + 1:
                self._skip(stream, min(last, stream.known))
                continue
            for seq in numbers_of([(first, last)], WANTED):
                if not stream.settled(seq) and seq <= stream.known:
                    self._journal.write(Replaced(stream.sender, seq, by))
                    stream.replace(seq, by)
        self._settle(stream)

    def _skip(self, stream: LogStream, upto: int) -> None:
        """What is not here up to there was replaced, by something that nobody remembers."""
        if upto > stream.contiguous:
            self._journal.write(Merged(stream.sender, upto))
            stream.merge(upto)

    def on_gone(self, _now: Nanos, source: MemberId, frame: Gone) -> None:
        """Nobody will ever be given these, by any logger."""
        stream = self._books.streams.get(frame.sender)
        if stream is None or source not in self._colleagues:
            return
        gone = list(_unsettled(stream, frame.spans))
        if not gone:
            return
        if frame.why == "expired":
            self._journal.write(Expired(stream.sender, gone))
            self._books.expire(stream, gone)
        else:
            self._journal.write(Holes(stream.sender, gone))
            stream.tear(gone)
        self._settle(stream)

    def _settle(self, stream: LogStream) -> None:
        stream.advance()
        self._settles(stream)


def _unsettled(stream: LogStream, spans: Iterable[Span]) -> Iterable[Span]:
    for missing in list(stream.missing()):
        for first, last in spans:
            begin, end = max(first, missing[0]), min(last, missing[1])
            if begin <= end:
                yield begin, end
