"""How a logger comes by what only sessions have: of a sender that is gone, or after a disk was lost (R-10).

The paper leaves the gaps of a sender that crashed for good. Here the logger asks every connected session what
it holds beyond the log, and the highest number it has heard of; gathers that; and then says what nobody has,
so that receivers can go on. Nobody who was asked takes that stream from anywhere but the log afterwards: else
something could turn up at one of them after all have given it up.

Who has said that it holds something is asked again as long as the log lacks that: it lets go of what another
logger has on disk, and that logger may be forgotten, or lose its disk, before the message is here. Its last
whole answer counts.
"""

from collections.abc import Iterable, Iterator

from semcast.core.ids import MemberId
from semcast.protocols.gossip.frames import Holding, Inquire
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.spans import Span, gaps


class Answers:
    """What one session has said."""

    def __init__(self) -> None:
        self.after = 0
        """Up to where the answer that it is giving has come."""
        self.done = False
        """Whether it has given a whole one."""
        self.held: list[Span] = []
        """What it holds, by the last whole answer; of the first one, what has come of it."""
        self._parts: list[Span] = []

    def take(self, held: list[Span], *, more: bool) -> None:
        """The next part of an answer."""
        self._parts = [*self._parts, *held] if self.after else list(held)
        if more and held:
            self.after = max(self.after, held[-1][1])
        if not more:
            self.after, self.done = 0, True
        if not more or not self.done:
            self.held = self._parts


class Inquiry:
    """About one stream.

    Args:
        stream: in the log.
        closing: whether it ends; else it is about `spans` alone, which its sender has let go.
        spans: what the sender has let go.
    """

    def __init__(self, stream: LogStream, *, closing: bool, spans: Iterable[Span] = ()) -> None:
        self.stream = stream
        self.closing = closing
        self.concluded = False
        self._spans = list(spans)
        self._known = 0
        self._answers: dict[MemberId, Answers] = {}

    def questions(self, sessions: Iterable[MemberId]) -> Iterator[tuple[MemberId, Inquire]]:
        """Whom to ask, and what: who has not said all yet, or said that it holds what is not here."""
        for member in sessions:
            answers = self._answers.setdefault(member, Answers())
            if not answers.done or self.lacking(member):
                yield member, Inquire(self.stream.sender, answers.after, self.closing)

    def on_holding(self, source: MemberId, frame: Holding) -> None:
        """A session says what it has."""
        answers = self._answers.get(source)
        if answers is None or frame.after != answers.after:
            return
        self._known = max(self._known, frame.known, *(last for _, last in frame.held), 0)
        answers.take(frame.held, more=frame.more)

    def lacking(self, source: MemberId) -> list[Span]:
        """What a session has and the log does not."""
        answers = self._answers.get(source)
        if answers is None:
            return []
        stream = self.stream
        there = stream.beyond()
        return [
            part
            for first, last in answers.held
            for part in gaps(max(first, stream.contiguous + 1), last, there, stream.holes)
        ]

    def complete(self, sessions: Iterable[MemberId]) -> bool:
        """Whether all of these have said all they have, and the log has it."""
        return all(
            member in self._answers and self._answers[member].done and not self.lacking(member)
            for member in sessions
        )

    @property
    def last(self) -> int:
        """The highest number that anybody heard of."""
        return max(self._known, self.stream.known)

    def holes(self) -> list[Span]:
        """What nobody has."""
        if self.closing:
            return list(self.stream.missing(self.last))
        missing = list(self.stream.missing())
        return [
            (max(first, begin), min(last, end))
            for first, last in self._spans
            for begin, end in missing
            if max(first, begin) <= min(last, end)
        ]
