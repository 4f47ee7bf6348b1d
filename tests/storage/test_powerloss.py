"""Live logs lose nothing that was acknowledged, whenever the power fails; each broken one is caught."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from tests.storage.powerloss import Machine, torment

from semcast.core.outbox import Anew, Sync, Trim, Write
from semcast.storage import LiveLog, SegmentLog, StorageError, segments
from semcast.storage.livelog import Errand
from semcast.storage.segments import Segment
from semcast.wire import records


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_left_has_all_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    torment(folder, seed)


class AcknowledgedBeforeSync(SegmentLog):
    """Says that records are synced when the kernel has them."""

    def sync(self) -> None:
        self.synced = self.next


class NextSegmentBeforeSync(SegmentLog):
    """Begins a segment while the end of the one before may be lost."""

    def begin_segment(self) -> None:
        self.close()
        self._file = self._begin_segment(self._segments[-1].number + 1)


class FolderNotSynced(SegmentLog):
    """Writes to a new file whose name may be lost."""

    def _begin_segment(self, number: int) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(segments, "sync_folder", lambda _path: None)
            return super()._begin_segment(number)


class DroppedAtOnce(SegmentLog):
    """Deletes what is replaced before what replaces it is there."""

    def begin_segment(self) -> None:
        super().begin_segment()
        self.drop(self.next)


class EndNotCut(SegmentLog):
    """Appends behind the torn end that a crash left."""

    def _cut(self, segment: Segment, size: int, *, last: bool) -> None:
        segment.size = size


class TrimmedWithoutSync(LiveLog):
    """Gives up records as soon as any sync is done, though nobody asked for one after that."""

    def _commit(self, work: list[tuple[int, Sequence[Write] | Errand]]) -> None:
        syncs = [
            write for _, writes in work if not callable(writes) for write in writes if type(write) is Sync
        ]
        orders = [
            (0, [write for write in writes if isinstance(write, Anew | Trim)])
            for _, writes in work
            if not callable(writes)
        ]
        rest = [
            (0, [write for write in writes if not isinstance(write, Anew | Trim | Sync)])
            for _, writes in work
            if not callable(writes)
        ]
        super()._commit([*orders, *rest, (0, syncs)])


LOGS = (AcknowledgedBeforeSync, NextSegmentBeforeSync, FolderNotSynced, DroppedAtOnce, EndNotCut)


@pytest.mark.parametrize("mutant", LOGS)
def test_a_broken_log_is_caught(tmp_path: Path, mutant: type[SegmentLog]) -> None:
    assert _caught(tmp_path, mutant, LiveLog), f"{mutant.__name__} was not caught"


def test_a_log_that_trims_too_early_is_caught(tmp_path: Path) -> None:
    assert _caught(tmp_path, SegmentLog, TrimmedWithoutSync)


def test_a_log_without_checksums_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "block_at", _trusting)
    assert _caught(tmp_path, SegmentLog, LiveLog)


def _trusting(data: bytes, offset: int, salt: int) -> records.Block | None:
    block = records.head_at(data, offset, salt)
    return None if block is None or block.end > len(data) else block


def _caught(tmp_path: Path, log: type[SegmentLog], live: type[LiveLog]) -> bool:
    for seed in range(60):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            torment(folder, seed, log, live)
        except (AssertionError, StorageError):
            return True
    return False


def test_the_machine_forgets_what_was_not_synced(tmp_path: Path) -> None:
    """Else nothing above would prove anything."""
    kept = set()
    for seed in range(40):
        folder = tmp_path / str(seed)
        folder.mkdir()
        machine = Machine(folder, Random(seed))
        with pytest.MonkeyPatch.context() as patch:
            machine.install(patch)
            log = SegmentLog(folder)
            log.append([b"synced"])
            log.sync()
            for _ in range(3):
                log.append([b"not synced"])
            log.close()
        machine.reboot()
        again = SegmentLog(folder)
        kept.add(len(again.records))
        again.close()
    assert kept == {1, 2, 3, 4}
