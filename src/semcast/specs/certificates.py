"""Certificates against the rows of the process that recorded them, and against each other.

They are not believed: whoever judges by them asks here first. A certificate that fits all rows proves what it
is for; of one that does not fit, nothing follows but that somebody recorded it wrongly.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from semcast.core.certificates import Place
from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.verdict import Findings, Status, Verdict, unknown

_CHANGES = (Kind.VIEW, Kind.TRANSITIONAL)
_ABOUT_MESSAGES = (Kind.MULTICAST, Kind.DELIVER)
_Spot = tuple[int, int]
"""Packet and index."""


def ring_certificate(history: History) -> Verdict:
    """Positions of messages fit: those of a process grow, and a message has the same at everybody.

    Counts messages with a position in another configuration than their process is in, not above that of the
    delivery before, sent at a position not above that of a delivery before, or with another position than
    elsewhere.
    """
    findings = Findings("ring_certificate")
    places = _Places(findings)
    without = None
    for process in history.processes:
        for event in _with_configurations(history.of(process), places):
            if event.ring is None:
                without = without or event
            else:
                places.take(event, event.ring)
    return _verdict(findings, without, recorded=places.any, what="position")


def vector_certificate(history: History) -> Verdict:
    """Vector times fit: that of a message says all that its sender had heard of, and is the same everywhere.

    Counts messages that were sent with another vector time than the rows of their sender come to, and
    messages that were delivered with another one than they were sent with.
    """
    findings = Findings("vector_certificate")
    sent = {process: _Clock(history.of(process), findings) for process in history.processes}
    without = None
    for process in history.processes:
        clock = sent[process]
        without = without or clock.without
        for event, times in clock.delivered:
            assert event.sender is not None
            _compare(event, times, sent.get(event.sender), findings)
    recorded = any(clock.any for clock in sent.values())
    return _verdict(findings, without, recorded=recorded, what="vector time")


def _verdict(findings: Findings, without: Event | None, *, recorded: bool, what: str) -> Verdict:
    if not recorded:
        return unknown(findings.name, f"no {what} was recorded")
    verdict = findings.verdict()
    if verdict.status is Status.HOLDS and without is not None:
        return unknown(findings.name, f"{without.process} recorded messages without a {what}")
    return verdict


def _with_configurations(events: Sequence[Event], places: "_Places") -> Iterator[Event]:
    """The rows about messages; the places are told of the others."""
    places.begin()
    for event in events:
        if event.kind in _CHANGES:
            places.enter(event)
        elif event.kind in _ABOUT_MESSAGES:
            yield event


class _Places:
    """Where messages are, by all rows so far."""

    def __init__(self, findings: Findings) -> None:
        self.any = False
        self._findings = findings
        self._of: dict[MessageId, tuple[Place, Event]] = {}
        self.begin()

    def begin(self) -> None:
        """Another process."""
        self._inside: tuple[int | None, MemberId | None] | None = None
        self._delivered: _Spot = (0, 0)
        self._sent: _Spot = (0, 0)

    def enter(self, change: Event) -> None:
        """The process comes to a configuration; a transitional one goes on with the positions."""
        here = change.view, change.sender
        if here != self._inside:
            self._inside = here
            self._delivered = self._sent = (0, 0)

    def take(self, event: Event, place: Place) -> None:
        """Compare a row with what is known."""
        self.any = True
        if (place.configuration, place.representative) != self._inside:
            self._blame(event, event.count, f"is at a position of configuration {place.configuration}")
            return
        first, last = (place.packet, place.index), (place.packet, place.index + event.count - 1)
        if event.kind is Kind.DELIVER:
            if first <= self._delivered:
                self._blame(event, event.count, f"is delivered at {first} after {self._delivered}")
            self._delivered = max(last, self._delivered)
        else:
            if first <= max(self._delivered, self._sent):
                self._blame(event, event.count, f"is sent at {first} after {self._delivered}")
            self._sent = max(last, self._sent)
        self._compare(event, place)

    def _compare(self, event: Event, place: Place) -> None:
        assert event.sender is not None
        for seq in range(event.seq, event.last + 1):
            here = place.after(seq - event.seq)
            there, other = self._of.setdefault(MessageId(event.sender, seq), (here, event))
            if there != here:
                self._findings.count(1)
                if not self._findings.full:
                    reason = f"({event.sender},{seq}) has several positions"
                    self._findings.example(reason, other.only(seq), event.only(seq))

    def _blame(self, event: Event, times: int, what: str) -> None:
        self._findings.count(times)
        if not self._findings.full:
            reason = f"{event.process}: ({event.sender},{event.seq}) {what}"
            self._findings.example(reason, event.only(event.seq))


class _Clock:
    """The vector times of one process, view by view: what it says, and what its rows come to.

    Times are by member, for views rank their members differently.
    """

    def __init__(self, events: Sequence[Event], findings: Findings) -> None:
        self.any = False
        self.without: Event | None = None
        """A row without a vector time, if there is one."""
        self.delivered: list[tuple[Event, dict[MemberId, int]]] = []
        self._numbers: list[int] = []
        self._times: list[dict[MemberId, int]] = []
        self._findings = findings
        self._members: Sequence[MemberId] = ()
        self._enter(None)
        for event in events:
            if event.kind is Kind.VIEW:
                self._enter(event)
            elif event.kind in _ABOUT_MESSAGES:
                self._take(event)

    def at(self, seq: int) -> dict[MemberId, int] | None:
        """What the process said of a message of its own, None if it sent none before it."""
        place = bisect_right(self._numbers, seq) - 1
        return None if place < 0 else self._times[place]

    def changes_within(self, first: int, last: int) -> bool:
        """Whether it said something new between two messages of its own."""
        return bisect_right(self._numbers, first) != bisect_right(self._numbers, last)

    def _enter(self, view: Event | None) -> None:
        self._members = () if view is None or view.members is None else view.members
        self._heard: dict[MemberId, int] = {}
        self._said: dict[MemberId | None, dict[MemberId, int]] = {}  # of messages sent here under None

    def _take(self, event: Event) -> None:
        assert event.sender is not None
        if event.vector is None:
            self.without = self.without or event
            return
        self.any = True
        whose = None if event.kind is Kind.MULTICAST else event.sender
        times = dict(self._said.get(whose, {}))
        for rank, seq in event.vector:
            if rank >= len(self._members):
                self._blame(event, f"has a vector time with rank {rank} of {len(self._members)} members")
                return
            times[self._members[rank]] = max(seq, times.get(self._members[rank], 0))
        self._said[whose] = times
        if event.kind is Kind.MULTICAST:
            self._send(event, times)
        else:
            self._hear(times | {event.sender: event.last})
            self.delivered.append((event, times))

    def _send(self, event: Event, times: dict[MemberId, int]) -> None:
        expected = {member: seq for member, seq in self._heard.items() if member != event.process}
        if times != expected:
            member = next(m for m in sorted({*times, *expected}) if times.get(m) != expected.get(m))
            had, says = expected.get(member, 0), times.get(member, 0)
            self._blame(event, f"is said to come after {member} {says}, and its sender had come to {had}")
        if not self._times or self._times[-1] != times:
            self._numbers.append(event.seq)
            self._times.append(times)

    def _hear(self, times: dict[MemberId, int]) -> None:
        for member, seq in times.items():
            if seq > self._heard.get(member, 0):
                self._heard[member] = seq

    def _blame(self, event: Event, what: str) -> None:
        self._findings.count(event.count)
        if not self._findings.full:
            self._findings.example(f"({event.sender},{event.seq}) {what}", event.only(event.seq))


def _compare(event: Event, times: dict[MemberId, int], sender: _Clock | None, findings: Findings) -> None:
    """Whether a message is delivered with the vector time that it was sent with; else integrity judges."""
    said = None if sender is None else sender.at(event.seq)
    if said is None or sender is None:
        return
    if said != times or sender.changes_within(event.seq, event.last):
        findings.count(event.count)
        if not findings.full:
            reason = (
                f"{event.process} has another vector time of ({event.sender},{event.seq}) than its sender"
            )
            findings.example(reason, event.only(event.seq))


CERTIFICATES: dict[str, Callable[[History], Verdict]] = {
    checker.__name__: checker for checker in (ring_certificate, vector_certificate)
}
