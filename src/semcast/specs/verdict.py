"""What a checker says about one property of one history."""

import enum

import msgspec

from semcast.core.ids import MessageId
from semcast.history.events import Event

MAX_OFFENDING = 10
_MAX_REASONS = 3


class Status(enum.Enum):
    """Whether a property holds."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    """The history cannot tell: the run was not over, or something was not recorded."""


class Verdict(msgspec.Struct, frozen=True):
    """The judgement on one property.

    `count` is how often it is broken, counted in single messages whatever runs they were recorded in;
    `offending` names the first events at fault, each for one message.
    """

    property: str
    status: Status
    offending: tuple[Event, ...] = ()
    count: int = 0
    detail: str = ""
    group: str = ""
    """Which group it is about, where the run has several."""
    note: str = ""
    """What was not looked at, and why."""

    def about(self, group: str) -> "Verdict":
        """The same, said of a group."""
        return msgspec.structs.replace(self, group=group)

    def __str__(self) -> str:
        group = f"group {self.group}: " if self.group else ""
        note = f" ({self.note})" if self.note else ""
        times = f", {self.count} cases" if self.count > 1 else ""
        detail = f": {self.detail}" if self.detail else ""
        events = "".join(f"\n    {event}" for event in self.offending)
        return f"{group}{self.property}: {self.status.value}{times}{detail}{note}{events}"


def unknown(name: str, detail: str) -> Verdict:
    """The history cannot tell, and why."""
    return Verdict(name, Status.UNKNOWN, detail=detail)


def untold(name: str, message: MessageId) -> Verdict:
    """Too much is missing where a recording is cut off."""
    return unknown(name, f"the recording of {message.sender} is cut off before it sent {message.seq}")


class Findings:
    """Gathers what breaks a property: counts everything, remembers the first few."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._count = 0
        self._events: list[Event] = []
        self._reasons: list[str] = []

    @property
    def full(self) -> bool:
        """Whether no further example is wanted."""
        return len(self._events) >= MAX_OFFENDING

    def count(self, times: int) -> None:
        """The property is broken `times` more often."""
        self._count += times

    def example(self, reason: str, *events: Event) -> None:
        """One of the counted cases: why it is one, and the events at fault."""
        if len(self._reasons) < _MAX_REASONS:
            self._reasons.append(reason)
        self._events.extend(event for event in events if event not in self._events)

    def verdict(self, doubt: MessageId | None = None) -> Verdict:
        """Holds if nothing was found, or is unknown if there is a message that nobody can judge."""
        if not self._count:
            return Verdict(self.name, Status.HOLDS) if doubt is None else untold(self.name, doubt)
        rest = self._count - len(self._reasons)
        reasons = "; ".join(self._reasons) + (f"; and {rest} more" if rest else "")
        offending = tuple(self._events[:MAX_OFFENDING])
        return Verdict(self.name, Status.VIOLATED, offending, self._count, reasons)
