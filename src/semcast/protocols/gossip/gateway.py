"""What a logger does for programs that are no members and give it batches, at once or in pieces."""

from collections.abc import Sequence

from semcast.core.annotations import Annotation
from semcast.core.ids import Nanos
from semcast.protocols.gossip.intake import Intake
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.publishing import Answer, Publishing
from semcast.protocols.gossip.staging import Staging


class Gateway:
    """Of one logger: whatever is written is synced, and what came into the log is given positions."""

    def __init__(self, publishing: Publishing, staging: Staging, intake: Intake) -> None:
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
        """As `Publishing.publish`."""
        stream = self._publishing.publish(key, payloads, annotations, answer)
        self._grown(now, None if stream is None else (stream, len(payloads)))

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
        """As `Staging.release`; without a key these stages are given up."""
        if key:
            self._grown(now, self._staging.release(key, stages, answer))
        else:
            self._staging.abandon([stage for stage, _ in stages])
            answer("abandoned", 0)
            self._intake.flush(now)

    def _grown(self, now: Nanos, stream: tuple[LogStream, int] | None) -> None:
        if stream is not None:
            self._intake.published(*stream)
        self._intake.flush(now)
