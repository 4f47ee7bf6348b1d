"""Histories in memory: the events of one run, in the local order of each process."""

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.certificates import Certificate, Place, Vector
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.history.schema import FIFO, GONE, Kind


class HistoryError(Exception):
    """A recorded history that cannot be read; says which file, which row and why."""


class GroupInfo(msgspec.Struct, frozen=True):
    """What is known about one group of a run."""

    name: str
    stack: str
    members: tuple[MemberId, ...] = ()
    """Who the group promises something to; empty where that is not known: then to all who appear."""
    buffer_limit: int | None = None
    uniform: bool = False
    order: str = FIFO
    """The order that was asked of the stack, where it offers several: "fifo", "causal" or "total"."""


class RunInfo(msgspec.Struct, frozen=True):
    """What is known about a run besides its events."""

    run: str
    groups: tuple[GroupInfo, ...]
    seed: int | None = None
    quiesced: bool = False
    """Whether the run went on until nothing that was owed could still arrive."""
    note: str = ""
    cut_off: tuple[MemberId, ...] = ()
    """Of whom it is not known what they did after their last event."""

    @classmethod
    def one(
        cls,
        run: str,
        group: str,
        stack: str,
        seed: int | None,
        members: tuple[MemberId, ...],
        buffer_limit: int | None,
        *,
        uniform: bool,
        quiesced: bool,
        note: str = "",
        cut_off: tuple[MemberId, ...] = (),
        order: str = FIFO,
    ) -> "RunInfo":
        """A run of one group."""
        only = GroupInfo(group, stack, members, buffer_limit, uniform, order)
        return cls(run, (only,), seed, quiesced, note, cut_off)

    @property
    def only(self) -> GroupInfo:
        """The group of a run that has one. What checkers see has one."""
        if len(self.groups) != 1:
            raise ValueError(f"run {self.run} has {len(self.groups)} groups where one was expected")
        return self.groups[0]

    def group(self, name: str) -> GroupInfo | None:
        """The group of this name, if there is one."""
        return next((group for group in self.groups if group.name == name), None)

    def alone(self, group: GroupInfo) -> "RunInfo":
        """The run as if this were its only group."""
        return self if self.groups == (group,) else msgspec.structs.replace(self, groups=(group,))

    def apart(self) -> "dict[str, RunInfo]":
        """Its groups, each as a run of its own, by the name that verdicts call it.

        That is the name of the run where it has one group, and names both where it has several.
        """
        if len(self.groups) == 1:
            return {self.run: self}
        return {f"{self.run}[{group.name}]": self.alone(group) for group in self.groups}

    def united(self, other: "RunInfo") -> "RunInfo | None":
        """The run with the groups of both descriptions; None if they contradict each other."""
        if msgspec.structs.replace(other, groups=self.groups) != self:
            return None
        known = {group.name: group for group in self.groups}
        if any(known.setdefault(group.name, group) != group for group in other.groups):
            return None
        return msgspec.structs.replace(self, groups=tuple(known[name] for name in sorted(known)))


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
    crc: int | None = None
    """The CRC-32 of the payloads of the run, one behind the other; None where it is not known."""
    ring: Place | None = None
    """Where the first message was in the order of the ring; the others follow in the same packet."""
    vector: Vector | None = None
    """What changed in the vector time of the sender since the row before about messages of it."""

    @property
    def last(self) -> int:
        """Sequence number of the last message of the run."""
        return self.seq + self.count - 1

    def only(self, seq: int) -> "Event":
        """The event as it would be for one message of the run alone."""
        assert self.seq <= seq <= self.last
        if self.count == 1:
            return self
        offset = seq - self.seq
        order = None if self.order is None else self.order + offset
        ring = None if self.ring is None else self.ring.after(offset)
        vector = self.vector if not offset or self.vector is None else ()
        return msgspec.structs.replace(
            self, seq=seq, count=1, size=0, crc=None, order=order, ring=ring, vector=vector
        )

    def certified(self, certificate: Certificate | None) -> "Event":
        """The event with a certificate."""
        if certificate is None:
            return self
        if isinstance(certificate, Place):
            return msgspec.structs.replace(self, ring=certificate)
        return msgspec.structs.replace(self, vector=certificate)

    def __str__(self) -> str:
        return f"{self.process}[{self.index}] at {self.at} ns: {self.kind.value}{self._object()}"

    def _object(self) -> str:
        match self.kind:
            case Kind.VIEW | Kind.TRANSITIONAL:
                after = "" if self.order is None else f", re-formed after {self.order}"
                return f" {self.view} of {', '.join(map(str, self.members or ()))}{after}"
            case Kind.BUFFER:
                return f" of {self.count} messages"
            case Kind.APPLY:
                where = "" if self.view is None else f" at view {self.view}"
                return f" to the state of {self.sender}{where}: {self.digest}"
            case _ if self.sender is None:
                return ""
        numbers = str(self.seq) if self.count == 1 else f"{self.seq}..{self.last}"
        because = f" by {self.by}" if self.by is not None else ""
        return f" ({self.sender},{numbers}){because}"


class History:
    """The events of one run, by process and in the local order there.

    Events of one process in one group are given in that order. A member is correct if it has neither crashed
    nor left, even if it recorded nothing, unless its recording is cut off. A later incarnation that is not
    named as a member is a process of the run, but nothing is owed to it. Where there are several groups, who
    is correct is a question to each of them (`by_group`).
    """

    def __init__(self, info: RunInfo, events: Iterable[Event]) -> None:
        self.info = info
        self._of: dict[MemberId, list[Event]] = {}
        for event in events:
            self._of.setdefault(event.process, []).append(event)
        listed = {member for group in info.groups for member in group.members}
        self.processes: tuple[MemberId, ...] = tuple(sorted({*listed, *self._of, *info.cut_off}))
        self.events: tuple[Event, ...] = tuple(chain.from_iterable(map(self.of, self.processes)))
        self.gone: tuple[MemberId, ...] = tuple(filter(self._goes, self.processes))
        """Who crashed or left."""
        failed = {*self.gone, *info.cut_off}
        self.correct: tuple[MemberId, ...] = tuple(
            process for process in sorted(listed or self.processes) if process not in failed
        )

    def of(self, process: MemberId) -> Sequence[Event]:
        """The events of one process, in local order."""
        return self._of.get(process, ())

    def by_group(self) -> "list[History]":
        """The histories of its groups: what checkers see."""
        if len(self.info.groups) == 1:
            return [self]
        events: dict[str, list[Event]] = {}
        for event in self.events:
            events.setdefault(event.group, []).append(event)
        return [History(self.info.alone(group), events.get(group.name, ())) for group in self.info.groups]

    def _goes(self, process: MemberId) -> bool:
        return any(event.kind in GONE for event in self.of(process))
