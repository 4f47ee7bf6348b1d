"""Histories in memory: the events of one run, in the local order of each process."""

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.history.schema import FIFO, Kind


class HistoryError(Exception):
    """A recorded history that cannot be read; says which file, which row and why."""


class RunInfo(msgspec.Struct, frozen=True):
    """What is known about a run besides its events."""

    run: str
    group: str
    stack: str
    seed: int | None
    members: tuple[MemberId, ...]
    """Who the group promises something to; empty where that is not known: then to all who appear."""
    buffer_limit: int | None
    uniform: bool
    quiesced: bool
    """Whether the run went on until nothing that was owed could still arrive."""
    note: str = ""
    cut_off: tuple[MemberId, ...] = ()
    """Of whom it is not known what they did after their last event."""
    order: str = FIFO
    """The order that was asked of the stack, where it offers several: "fifo", "causal" or "total"."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One row of a history. `semcast.history.schema` says which fields a kind uses."""

    process: MemberId
    index: int
    at: Nanos
    kind: Kind
    group: str
    sender: MemberId | None = None
    seq: int = 0
    count: int = 0
    size: int = 0
    annotation: Annotation | None = None
    by: MessageId | None = None
    digest: str | None = None
    view: int | None = None
    level: str | None = None
    order: int | None = None
    members: tuple[MemberId, ...] | None = None

    @property
    def last(self) -> int:
        """Sequence number of the last message of the run."""
        return self.seq + self.count - 1

    def only(self, seq: int) -> "Event":
        """The event as it would be for one message of the run alone."""
        assert self.seq <= seq <= self.last
        if self.count == 1:
            return self
        order = None if self.order is None else self.order + seq - self.seq
        return msgspec.structs.replace(self, seq=seq, count=1, size=0, order=order)

    def __str__(self) -> str:
        return f"{self.process}[{self.index}] at {self.at} ns: {self.kind.value}{self._object()}"

    def _object(self) -> str:
        match self.kind:
            case Kind.VIEW | Kind.TRANSITIONAL:
                return f" {self.view} of {', '.join(map(str, self.members or ()))}"
            case Kind.BUFFER:
                return f" of {self.count} messages"
            case Kind.APPLY:
                where = "" if self.view is None else f" at view {self.view}"
                return f" to the state of {self.sender}{where}: {self.digest}"
            case Kind.CRASH | Kind.RECOVER:
                return ""
        numbers = str(self.seq) if self.count == 1 else f"{self.seq}..{self.last}"
        because = f" by {self.by}" if self.by is not None else ""
        return f" ({self.sender},{numbers}){because}"


class History:
    """The events of one run, by process and in the local order there.

    Events of one process are given in that order. A member is correct if it has no crash event, even
    if it recorded nothing, unless its recording is cut off. A later incarnation that is not named as a member
    is a process of the run, but nothing is owed to it.
    """

    def __init__(self, info: RunInfo, events: Iterable[Event]) -> None:
        self.info = info
        self._of: dict[MemberId, list[Event]] = {}
        for event in events:
            self._of.setdefault(event.process, []).append(event)
        self.processes: tuple[MemberId, ...] = tuple(sorted({*info.members, *self._of, *info.cut_off}))
        self.events: tuple[Event, ...] = tuple(chain.from_iterable(map(self.of, self.processes)))
        self.crashed: tuple[MemberId, ...] = tuple(filter(self._crashes, self.processes))
        members = sorted(info.members or self.processes)
        failed = {*self.crashed, *info.cut_off}
        self.correct: tuple[MemberId, ...] = tuple(p for p in members if p not in failed)

    def of(self, process: MemberId) -> Sequence[Event]:
        """The events of one process, in local order."""
        return self._of.get(process, ())

    def _crashes(self, process: MemberId) -> bool:
        return any(event.kind is Kind.CRASH for event in self.of(process))
