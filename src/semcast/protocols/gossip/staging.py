"""Batches that are larger than a question may be: pieces first, then one word that publishes them all.

Whoever has a batch logged gives its pieces to *stages*, from several processes if need be, and then releases
the stages with a key. One record has the key and names the stages, whose pieces are on disk before it; so a
batch is in the log whole or not at all, and once for its key, whoever crashes when.

What was staged and never released is given up after a while. Stages may have an owner, `owner/name`: when
some of an owner are released, its others are given up, for they are what tasks left that failed.
"""

from collections.abc import Sequence

from semcast.core.annotations import Annotation, Item
from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.keys import Batched
from semcast.protocols.gossip.publishing import Answer, Publishing, check_messages
from semcast.protocols.gossip.records import Abandoned, Released, Staged
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.stages import size_of

_STAGES = 1024
"""That may be there at a time."""


class StageError(ValueError):
    """Pieces of a batch are not there: it has to be given again."""


class NoRoomError(ValueError):
    """More is staged than a logger takes."""


class Staging:
    """Of one logger."""

    def __init__(
        self,
        me: MemberId,
        settings: GossipSettings,
        books: Books,
        journal: Journal,
        publishing: Publishing,
    ) -> None:
        self._me = me
        self._settings = settings
        self._books = books
        self._journal = journal
        self._publishing = publishing

    def stage(
        self,
        now: Nanos,
        stage: str,
        number: int,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation | None],
        answer: Answer,
    ) -> None:
        """Keep a piece of a batch; `answer` is called when it is on disk. A piece that is there is kept."""
        check_messages(payloads, annotations)
        stages = self._books.stages
        if not stages.has(stage, number):
            items = [note.item if isinstance(note, Item) else None for note in annotations]
            named = items if any(item is not None for item in items) else None
            room = self._settings.stage_bytes - stages.size
            if size_of(payloads, named) > room or len(stages) >= _STAGES:
                raise NoRoomError(
                    f"{stages.size} bytes in {len(stages)} stages wait to be published, and this logger takes"
                    f" {self._settings.stage_bytes}: publish smaller batches"
                )
            record = Staged(stage, number, list(payloads), named)
            stages.add(now, record, self._journal.write(record))
        stages.touch(now, stage)
        self._journal.then(lambda _now: answer("staged", 0))

    def release(self, key: bytes, stages: Sequence[tuple[str, int]]) -> Batched:
        """Log the pieces of stages as one batch; returns where it is.

        Raises StageError unless all pieces are there: half a batch is never published.
        """
        self._check(stages)
        stream = self._publishing.stream()
        first = stream.contiguous + 1
        self._journal.write(Released(key, self._me, first, list(stages)))
        runs = self._books.release(stream, key, first, stages)
        self.abandon(self._books.stages.beside([stage for stage, _ in stages]))
        self._publishing.send(runs)
        return Batched(self._me, first, stream.contiguous)

    def _check(self, stages: Sequence[tuple[str, int]]) -> None:
        if not sum(pieces for _, pieces in stages):
            raise ValueError("a batch of no pieces")
        if len({stage for stage, _ in stages}) < len(stages):
            raise ValueError("a stage is named twice")
        for stage, pieces in stages:
            lacking = self._books.stages.lacking(stage, pieces)
            if lacking:
                raise StageError(f"{lacking} of {pieces} pieces of stage {stage} are not there")

    def abandon(self, stages: Sequence[str]) -> None:
        """These will not be published."""
        there = self._books.stages.drop(stages)
        if there:
            self._journal.write(Abandoned(there))

    def collect(self, now: Nanos) -> None:
        """Give up stages of which nothing was heard for long: their tasks have failed."""
        self.abandon(self._books.stages.untouched(now - self._settings.stage_age))
