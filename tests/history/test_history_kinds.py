"""A family adds kinds of rows of its own."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from semcast.core import MemberId
from semcast.history import (
    KINDS,
    Event,
    History,
    HistoryError,
    Kind,
    RunInfo,
    add_kind,
    read_history,
    write_history,
)
from semcast.specs import check

A = MemberId("a")
RUN = RunInfo.one("run", "g", "s-rm", None, (A,), None, uniform=False, quiesced=True)


def _problem(event: Event) -> str | None:
    return None if event.seq > 0 else "a lease of no messages"


@pytest.fixture
def lease() -> Iterator[Kind]:
    """A kind with a sender and a number."""
    yield add_kind("lease", ("sender", "seq"), _problem)
    del KINDS["lease"]


def written(path: Path, *events: Event) -> Path:
    write_history(History(RUN, events), path)
    return path


def test_rows_of_an_added_kind_are_read_and_do_not_disturb(lease: Kind, tmp_path: Path) -> None:
    event = Event(A, 0, 0, lease, "g", A, 3)
    history = read_history(written(tmp_path / "run.parquet", event))
    assert history.events == (event,)
    assert history.events[0].kind is lease
    assert pickle.loads(pickle.dumps(lease)) is lease  # noqa: S301
    assert str(event) == "a[0] at 0 ns: lease (a,3..2)"
    assert not any(verdict.count for verdict in check(history))


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        (Event(A, 0, 0, Kind.RECOVER, "g", A, 0), "row 0: a lease of no messages"),
        (Event(A, 0, 0, Kind.RECOVER, "g", A, 1, 2), "row 0: lease with a count, which it does not use"),
        (Event(A, 0, 0, Kind.RECOVER, "g", A, 1, size=2), "row 0: lease with a bytes, which it does not use"),
        (Event(A, 0, 0, Kind.RECOVER, "g", A, 1, view=2), "row 0: lease with a view, which it does not use"),
    ],
)
def test_the_family_says_what_is_well_formed(lease: Kind, tmp_path: Path, event: Event, fault: str) -> None:
    path = written(tmp_path / "run.parquet", _as(event, lease))
    with pytest.raises(HistoryError, match=fault):
        read_history(path)


def _as(event: Event, kind: Kind) -> Event:
    return msgspec.structs.replace(event, kind=kind)


def test_a_kind_that_nobody_added_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "run.parquet", Event(A, 0, 0, Kind("lease"), "g"))
    with pytest.raises(HistoryError, match="row 0: unknown kind 'lease'"):
        read_history(path)


def test_a_kind_is_added_once_and_with_columns_that_there_are(lease: Kind) -> None:
    with pytest.raises(ValueError, match="there is already a kind 'lease'"):
        add_kind(lease.value, ())
    with pytest.raises(ValueError, match="kind 'loan': no such shared column: colour, run"):
        add_kind("loan", ("sender", "run", "colour"))
