"""Sums of what is recorded: they are of what was delivered, whatever was sent."""

from pathlib import Path
from zlib import crc32

from semcast.core import MemberId, Sent
from semcast.core.messages import batch_of
from semcast.group.recording import Recording
from semcast.group.sums import OwnSums
from semcast.history import Event, Kind, RunInfo, read_history
from semcast.history.journal import JournalWriter

A = MemberId("a", 1)


def recorded(folder: Path, sent: list[bytes], delivered: list[bytes]) -> list[Event]:
    info = RunInfo.one("run", "g", "ring", None, (), None, uniform=False, quiesced=False)
    recording = Recording(A, lambda member: JournalWriter(folder, member, info), announced=True)
    recording.on_events(0, [Sent(batch_of(A, 1, sent), 1)])
    recording.on_deliveries(0, [batch_of(A, 1, delivered)])
    recording.close()
    return [event for event in read_history(folder).events if event.kind in (Kind.MULTICAST, Kind.DELIVER)]


def test_own_messages_have_the_same_sums_sent_and_delivered(tmp_path: Path) -> None:
    payloads = [b"one", b"three"]
    assert [(event.size, event.crc) for event in recorded(tmp_path, payloads, payloads)] == [
        (8, crc32(b"onethree"))
    ] * 2


def test_a_stack_that_delivers_its_own_messages_changed_is_recorded_as_it_is(tmp_path: Path) -> None:
    assert [event.crc for event in recorded(tmp_path, [b"one", b"three"], [b"one", b"THREE"])] == [
        crc32(b"onethree"),
        crc32(b"oneTHREE"),
    ]


def test_a_list_that_was_changed_after_it_left_has_other_sums() -> None:
    own, payloads = OwnSums(), [b"one", b"three"]
    own.sent(1, payloads)
    payloads[1] = b"THREE"
    assert own.delivered(1, payloads) == (8, crc32(b"oneTHREE"))


def test_parts_of_a_run_are_summed_by_themselves() -> None:
    own = OwnSums()
    own.sent(1, [b"one", b"three"])
    assert own.delivered(1, [b"one"]) == (3, crc32(b"one"))
    assert own.delivered(2, [b"three"]) == (5, crc32(b"three"))


def test_runs_that_were_purged_do_not_stay() -> None:
    own = OwnSums()
    for seq in range(1, 1001):
        own.sent(seq, [b"%d" % seq])
    assert 0 < len(own) <= 128
    assert own.delivered(1000, [b"1000"]) == (4, crc32(b"1000"))
    assert not len(own)
