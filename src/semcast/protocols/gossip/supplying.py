"""What a member gives to loggers that ask it: its own messages (3.2), and what it holds of others'.

A logger may lack something because it was not there, or because its disk was lost. Of a stream that is over
it asks everybody what they hold: then that stream is taken from logs only.
"""

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.data import data_of
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.frames import Holding, Inquire, LetGo, Want, some_spans
from semcast.protocols.gossip.sender import Sender
from semcast.protocols.gossip.session import Session
from semcast.protocols.gossip.spans import Span, Spans, first_of, within
from semcast.protocols.gossip.streams import WANTED
from semcast.wire.limits import MAX_SEQ


class Supplying:
    """Of one member.

    Args:
        desk: what the parts of the member share.
        sender: its stream.
        session: remembers which streams are being closed.
    """

    def __init__(self, desk: Desk, sender: Sender, session: Session) -> None:
        self._desk = desk
        self._sender = sender
        self._session = session

    def on_want(self, now: Nanos, source: MemberId, frame: Want) -> None:
        """The logger lacks something: of the own stream what is not logged, of others what is kept."""
        me = self._sender.me
        own = Spans(span for sender, spans in frame.wanted if sender == me for span in spans)
        self._give_own(source, first_of(own, WANTED))
        self._desk.serve(now, source, [each for each in frame.wanted if each[0] != me], 0)

    def _give_own(self, source: MemberId, asked: list[Span]) -> None:
        """What was logged and is forgotten, the logger must have from others."""
        logged, kept, had = self._sender.logged, self._desk.buffer.get(self._sender.me), Spans()
        for first, last in asked:
            there = [] if kept is None else kept.messages.between(first, min(last, logged))
            for batch in there + self._sender.unlogged(first, last):
                had.add(batch.first, batch.last)
                self._desk.out.send(source, data_of(batch))
        gone = [part for span in within(asked, 1, logged) for part in had.gaps(*span)]
        for some in some_spans(gone):
            if some:
                self._desk.out.send(source, LetGo(some))

    def on_inquire(self, source: MemberId, frame: Inquire) -> None:
        """What is held here of a stream, and the highest number heard of."""
        if not self._session.admitted:
            return
        stream, kept = self._desk.receiver.streams.get(frame.sender), self._desk.buffer.get(frame.sender)
        if stream is not None and frame.freeze and frame.sender != self._sender.me:
            stream.frozen = True
        if stream is None and frame.freeze:
            self._session.freeze(frame.sender)
        known = 0 if stream is None else stream.known
        held = [] if kept is None else within(kept.messages.spans(), frame.after + 1, MAX_SEQ)
        some = next(some_spans(held))
        self._desk.out.send(source, Holding(frame.sender, frame.after, known, some, len(some) < len(held)))
