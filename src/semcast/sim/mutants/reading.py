"""Programs that read a log by position, and loggers that let them, broken on purpose."""

from collections.abc import Sequence

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.gossip import Logger
from semcast.protocols.gossip.client import Result
from semcast.protocols.gossip.queries import Denied, Read, Told
from semcast.protocols.gossip.reading import Ends, Page, Reading
from semcast.protocols.gossip.retention import Retaining
from semcast.protocols.gossip.spans import spans_of
from semcast.sim.mutants.mutant import Mutant
from semcast.sim.readers import Extent, Reader, ReadTask


class _Trimming(Retaining):
    def trim(self, position: int) -> None:
        """Drop what is before a position, as if it were too old."""
        found: dict[MemberId, list[int]] = {}
        for run in self._books.positions.runs():
            upto = min(run.last, run.first + position - run.position - 1)
            found.setdefault(run.sender, []).extend(range(run.first, upto + 1))
        for sender, seqs in found.items():
            stream = self._books.streams.get(sender)
            if stream is not None:
                self._expire_all(stream, spans_of(sorted(seq for seq in seqs if seq in stream.messages)))


class TrimsWhatWasRead(Logger):
    """Takes it that who reads from a position on needs nothing before it, nor anybody else."""

    retaining_kind = _Trimming

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        super().on_frames(now, source, frames)
        assert isinstance(self.retaining, _Trimming)
        for frame in frames:
            if isinstance(frame, Read) and self.phase() == "operational":
                self.retaining.trim(frame.lo)


class _Discreet(Reading):
    def read(
        self, lo: int, hi: int, *, most: int = 1024, size: int = 1 << 20, log: int = 0, prefix: str = ""
    ) -> Page:
        page = super().read(lo, hi, most=most, size=size, log=log, prefix=prefix)
        return msgspec.structs.replace(page, trimmed=0)


class TrimmedUntold(Logger):
    """Gives what is there, and does not say that there was more."""

    reading_kind = _Discreet


class _Hasty(Reading):
    def ends(self) -> Ends:
        positions = self._books.positions
        positions.synced = positions.next
        return super().ends()


class ReadBeforeSynced(Logger):
    """Shows positions that a crash may give to other messages."""

    reading_kind = _Hasty


class ReplansWhatIsRepeated(Reader):
    """A batch that is done again has not the positions that it had, but those that there are now."""

    def _begin(self, now: Nanos) -> None:
        last = self._last
        if last is not None and not last.done:
            self._last = msgspec.structs.replace(last, number=last.number - 1, hi=last.lo, done=True)
        super()._begin(now)


class DoneBeforeHandedOn(Reader):
    """Has on disk that a batch is done before it is."""

    def _note_down(self, extent: Extent) -> None:
        self.out.append(msgspec.msgpack.encode(msgspec.structs.replace(extent, done=True)))
        self._last = extent
        self._synced += 1
        self.out.sync(self._synced)


class TrimmedPassedOver(Reader):
    """Goes on with what is there, and does not say that there was more."""

    def lost(self, task: ReadTask, lo: int, hi: int, trimmed: int) -> bool:  # noqa: ARG002
        return True


class OtherLogRead(Reader):
    """Goes on at its position, whichever the log is."""

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:
        super().recover(now, records, first)
        self.log = 0

    def _plan(self, ends: Result) -> None:
        if isinstance(ends, Denied):
            self.log = 0
        super()._plan(Told(0) if isinstance(ends, Denied) else ends)

    def _read(self, extent: Extent) -> None:
        super()._read(msgspec.structs.replace(extent, log=self.log))


class TasksOverlap(Reader):
    """Takes the end of the positions of a task for one of them."""

    def cut(self, extent: Extent) -> list[ReadTask]:
        tasks = super().cut(extent)
        return [ReadTask(task.lo, min(task.hi + 1, extent.hi)) for task in tasks]


class FailedTaskCounted(Reader):
    """Keeps what a task had read before it failed."""

    def fail(self, task: ReadTask) -> None:
        self._page(task, task.lo)


MUTANTS: dict[str, Mutant] = {
    "trims-what-was-read": Mutant(logger=TrimsWhatWasRead),
    "trimmed-untold": Mutant(logger=TrimmedUntold),
    "read-before-synced": Mutant(logger=ReadBeforeSynced),
    "replans-what-is-repeated": Mutant(ReplansWhatIsRepeated),
    "done-before-handed-on": Mutant(DoneBeforeHandedOn),
    "trimmed-passed-over": Mutant(TrimmedPassedOver),
    "other-log-read": Mutant(OtherLogRead),
    "tasks-overlap": Mutant(TasksOverlap),
    "failed-task-counted": Mutant(FailedTaskCounted),
}
