"""What a logger does for programs that are no members and give it batches, at once or in pieces."""

from collections.abc import Sequence

from semcast.core.annotations import Annotation
from semcast.core.ids import Nanos
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.intake import Intake
from semcast.protocols.gossip.keys import Batched
from semcast.protocols.gossip.publishing import Answer, Publishing, check_batch, check_key
from semcast.protocols.gossip.staging import Staging


class Gateway:
    """Of one logger: whatever is written is synced, and what came into the log is given positions."""

    def __init__(self, books: Books, publishing: Publishing, staging: Staging, intake: Intake) -> None:
        self._books = books
        self._publishing = publishing
        self._staging = staging
        self._intake = intake

    def publish(
        self,
        now: Nanos,
        key: bytes,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation | None],
        answer: Answer,
    ) -> None:
        """Log a batch, once for its key. Raises ValueError if it cannot be logged."""
        check_batch(key, payloads, annotations)
        known = self._books.keys.get(key)
        if known is not None:
            self._answer(now, key, known, "known", answer)
        else:
            place = self._publishing.publish(key, payloads, annotations)
            self._logged(now, key, place, answer)

    def stage(
        self,
        now: Nanos,
        stage: str,
        number: int,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation | None],
        answer: Answer,
    ) -> None:
        """As `Staging.stage`."""
        self._staging.stage(now, stage, number, payloads, annotations, answer)
        self._intake.flush(now)

    def release(self, now: Nanos, key: bytes, stages: Sequence[tuple[str, int]], answer: Answer) -> None:
        """The same with pieces that were staged before; without a key these stages are given up.

        Raises StageError unless all pieces are there.
        """
        known = self._books.keys.get(key)
        if key:
            check_key(key)
        if known is None and key:
            self._logged(now, key, self._staging.release(key, stages), answer)
            return
        self._staging.abandon([stage for stage, _ in stages])
        if known is not None:
            self._answer(now, key, known, "known", answer)
        else:
            answer("abandoned", 0)
            self._intake.flush(now)

    def _logged(self, now: Nanos, key: bytes, place: Batched, answer: Answer) -> None:
        self._intake.published(self._publishing.stream(), place.last - place.first + 1)
        self._intake.flush(now)  # it is logged before anybody is told so
        self._answer(now, key, place, "logged", answer)

    def _answer(self, now: Nanos, key: bytes, place: Batched, level: str, answer: Answer) -> None:
        self._publishing.answer(key, place, level, answer)
        self._intake.flush(now)
