"""The log of a logger, cut or changed at every kind of place: nothing that was acknowledged vanishes unseen.

What is acknowledged is synced. A crash leaves all of that, and perhaps a torn end behind it. Anything else
that is wrong with a log is damage: its logger does not start, and a look at the folder tells where it is.
"""

import re
import shutil
from pathlib import Path

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core.ids import MILLISECOND, MemberId
from semcast.logger import log_folders, open_home
from semcast.protocols.gossip import Logger, Retention
from semcast.protocols.gossip.records import Stored, encode
from semcast.storage import SegmentLog, StorageError
from semcast.storage.folder import MemberFolder

GROUP = "prices"
SHORT = 60 * MILLISECOND


def records() -> list[bytes]:
    """Of a logger that admitted, stored, compacted, published, closed a stream and ended a session."""
    lab = GossipLab(retention=Retention.LIVE)
    lab.run(SHORT)
    lab.updates("p", ("x", b"1"), ("y", b"2"), ("x", b"3"))
    lab.seats["q"].multicast(b"4", b"5")
    lab.run(SHORT)
    log = lab.seats["log"].stack
    assert isinstance(log, Logger)
    log.publish(lab.now, b"key", [b"6", b"7"], [None, None])
    lab.run(SHORT)
    lab.seats["r"].call(lambda stack, now: stack.leave(now))
    lab.restart("q")
    lab.run(10 * SHORT)
    return list(lab.disk.records())


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a logger that does not run; three blocks, each of which was synced."""
    path = tmp_path_factory.mktemp("log")
    open_home(path, "log").close()
    held = MemberFolder(path, GROUP, "log")
    held.incarnation(5)
    log, written = SegmentLog(held.path), records()
    for part in (written[:4], written[4:-4], written[-4:]):
        log.append(part)
        log.sync()
    log.close()
    held.close()
    return path


def messages(path: Path) -> list[bytes]:
    """What is in the log; raises StorageError where it is damaged."""
    [folder] = log_folders(path)
    return sorted(message.payload for message in folder.messages())


def segment(path: Path) -> Path:
    [found] = path.glob("*/*/*.log")
    return found


def changed(sound: Path, where: Path, data: bytes) -> Path:
    shutil.rmtree(where, ignore_errors=True)
    shutil.copytree(sound, where)
    segment(where).write_bytes(data)
    return where


def test_it_is_sound_to_begin_with(sound: Path) -> None:
    assert messages(sound) == [b"2", b"3", b"4", b"5", b"6", b"7"]


def test_a_cut_anywhere_leaves_what_was_logged_first(sound: Path, tmp_path: Path) -> None:
    """Whoever looks sees as much as a logger that starts; that cuts the torn end off, and goes on there."""
    data = segment(sound).read_bytes()
    for size in range(0, len(data), 11):
        path = changed(sound, tmp_path / "cut", data[:size])
        seen = messages(path)
        log = SegmentLog(segment(path).parent)
        log.append([encode(Stored(MemberId("z"), 1, b"new"))])
        log.sync()
        log.close()
        assert messages(path) == sorted([*seen, b"new"]), f"cut at byte {size}"


def test_a_bit_that_changed_anywhere_is_told(sound: Path, tmp_path: Path) -> None:
    """In the header, in heads of blocks, in records: whoever opens the log is told, or it is all there."""
    data, all_there = segment(sound).read_bytes(), messages(sound)
    told = 0
    for place in range(0, len(data), 7):
        bad = bytearray(data)
        bad[place] ^= 1 << place % 8
        path = changed(sound, tmp_path / "bad", bytes(bad))
        try:
            found = messages(path)
        except StorageError:
            told += 1
            with pytest.raises(StorageError, match=re.escape(str(segment(path)))):
                SegmentLog(segment(path).parent)
        else:
            assert set(found) <= set(all_there)
            assert found == all_there or _torn(path), f"byte {place}"
    assert told > len(data) // 7 // 2


def _torn(path: Path) -> int:
    [folder] = log_folders(path)
    folder.books()
    return folder.torn
