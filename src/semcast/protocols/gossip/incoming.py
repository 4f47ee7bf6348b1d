"""How the streams of others come in: which are followed, and from where; what comes, and what never will.

A stream is opened when it is first heard of, where its session says that it begins. What is missing is asked
for at once (4.1), unless there is no room for it, or it is fetched in windows (`fetching.py`).
"""

from collections.abc import Iterable

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.fetching import Fetching
from semcast.protocols.gossip.frames import Closed, Entry, Gone, Notice, Said
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.repair import Repair
from semcast.protocols.gossip.session import Session
from semcast.protocols.gossip.streams import WANTED, Stream


class Incoming:
    """Of one member.

    Args:
        desk: what the parts of the member share.
        session: knows where streams begin.
        roster: who is there.
        repair: asks for what is missing.
        fetching: asks for what is old.
    """

    __slots__ = (
        "_begins_anywhere",
        "_desk",
        "_fetching",
        "_me",
        "_receiver",
        "_repair",
        "_roster",
        "_session",
        "_settings",
        "_stats",
    )

    def __init__(
        self, desk: Desk, session: Session, roster: Roster, repair: Repair, fetching: Fetching
    ) -> None:
        self._me = desk.me
        self._settings = desk.settings
        self._desk = desk
        self._receiver = desk.receiver
        self._stats = desk.stats
        self._session = session
        self._roster = roster
        self._repair = repair
        self._fetching = fetching
        self._begins_anywhere = not desk.settings.logs and not desk.settings.sponsored

    def on_data(self, now: Nanos, source: MemberId, frame: Data) -> None:
        """Messages, from their sender, a peer or a log."""
        desk = self._desk
        if frame.answers:
            desk.peers.answered(frame.answers, source, now)
        batch, sender, first = frame.batch, frame.sender, frame.first
        if batch is None:
            self._stats.malformed += 1
            return
        stream = self._receiver.streams.get(sender)
        if stream is None:
            stream = self._stream(sender, first - 1)
        if stream is None or sender == self._me:
            return
        if stream.frozen and not self._roster.is_logger(source):
            return
        if self._fetching.behind:
            self._fetching.came(batch)
        desk.idle.data(sender, first + len(batch.payloads) - 1)
        before, number = stream.known, desk.round
        for part in self._receiver.take(stream, batch, number):
            desk.buffer.add(part, number)
        if before + 1 < first and self._settings.eager:
            self._ask_at_once(now, stream, before + 1, first - 1)

    def hear_of(self, now: Nanos, sender: MemberId, seq: int) -> None:
        """Its sender gave this number: what is below may be missing."""
        stream = self._stream(sender, seq)
        if stream is None or sender == self._me or stream.frozen:
            return
        before = stream.known
        if stream.hear_of(seq, self._desk.round) and self._settings.eager:
            self._ask_at_once(now, stream, before + 1, seq)

    def _ask_at_once(self, now: Nanos, stream: Stream, first: int, last: int) -> None:
        last = min(last, stream.next + min(WANTED, self._settings.hold))
        gaps = stream.gaps(first, last)
        if gaps and stream.sender not in self._fetching.behind and self._receiver.credit():
            self._repair.on_gaps(now, stream, gaps)

    def _stream(self, sender: MemberId, heard: int) -> Stream | None:
        """A stream, opened where it is new and its start is known; None if it is over, or not begun."""
        stream = self._receiver.streams.get(sender)
        if stream is not None or sender in self._receiver.ended or self._roster.is_foreign(sender):
            return stream
        if sender.name == self._me.name and sender > self._me:
            return None  # nobody comes after this one
        start = self._session.start_of(sender)
        if self._begins_anywhere and (start is None or not self._roster.knew(sender)):
            start = heard
        if start is None:
            return None
        stream = self._receiver.open(sender, start, self._session.level)
        if stream is not None:
            stream.frozen = self._session.is_frozen(sender)
        return stream

    def on_said(self, source: MemberId, frame: Said) -> None:
        """A sender says which number it gave last, and there its stream begins."""
        seq = self._session.on_said(source, frame)
        if seq is not None and source not in self._receiver.streams and source not in self._receiver.ended:
            self._receiver.open(source, seq, self._session.level)

    # What never comes

    def on_notice(self, source: MemberId, frame: Notice) -> None:
        """Messages that others replaced."""
        stream = self._receiver.streams.get(frame.sender)
        if stream is None or frame.sender == self._me:
            return
        for first, last, by in frame.purged:
            if by <= last and (by or not self._roster.is_logger(source)):
                self._stats.malformed += 1
                continue
            stream.hear_of(by, self._desk.round)
            self._receiver.purge(stream, first, min(last, stream.known), by)

    def on_gone(self, frame: Gone) -> None:
        """Messages that nobody will ever be given."""
        stream = self._receiver.streams.get(frame.sender)
        if stream is not None and frame.sender != self._me:
            stream.hear_of(max((last for _, last in frame.spans), default=0), self._desk.round)
            self._receiver.lose(stream, frame.spans, frame.why)

    # What a logger says of streams

    def on_logged(self, logged: Iterable[Entry]) -> None:
        """So much of each stream is in the log: what is missing of it can be had there."""
        streams = self._receiver.streams
        for sender, seq in logged:
            known = streams.get(sender)
            if known is not None and seq <= known.known:
                continue  # as of most streams, most of the time
            stream = self._stream(sender, seq)
            if stream is not None and sender != self._me:
                self._fetching.learn(stream, seq)
                stream.hear_of(seq, self._desk.round)

    def freeze(self, senders: Iterable[MemberId]) -> None:
        """These streams are being closed: only logs are believed about them."""
        for sender in senders:
            stream = self._receiver.streams.get(sender)
            if stream is not None and sender != self._me:
                stream.frozen = True

    def on_closed(self, now: Nanos, frame: Closed) -> None:
        """A stream of somebody else is over."""
        session, receiver, sender, last = self._session, self._receiver, frame.sender, frame.last
        session.settled(sender)
        self._desk.idle.forget(sender)
        if not session.admitted:
            return
        if sender in receiver.ended:
            session.remind(sender, last)
            return
        stream = self._stream(sender, last)
        if stream is None:  # at most once, and its sender will never say where to begin
            session.settled(sender)
            receiver.end(sender, last)
            session.remind(sender, last)
            return
        stream.close(last)
        stream.hear_of(last, self._desk.round)
        receiver.lose(stream, [span for span in frame.holes if span[1] <= last], "abandoned")
        receiver.advance(stream)
        if self._settings.eager:
            self._ask_at_once(now, stream, stream.next + 1, last)
