"""Total order inside a view, and the recorded positions of deliveries (Pereira 2002, 2.2.4 and 4.6)."""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.evs.configurations import Stay
from semcast.specs.evs.walks import Walk
from semcast.specs.runs import Runs
from semcast.specs.verdict import Findings, Verdict
from semcast.specs.vsync.views import Views, judge, number_of


def total_order(history: History) -> Verdict:
    """I, 4.2 and 5.2: no two processes that go on from a view deliver two messages in different orders.

    Who crashes, leaves or is excluded may have been ahead of the order that the others took (P, 2.2.4: weak
    total order). Counts messages at each process that it delivers after one that another process delivers
    later; and where positions were recorded, messages with another position than at the first process that
    has one, with a position not above that of the delivery before, and beyond the first at one position.
    """
    return judge("total_order", history, lambda views, findings: _find(views, findings, views.closed))


def uniform_total_order(history: History) -> Verdict:
    """P, 2.2.4: the same for all processes, also those that crash later, but in a view that was re-formed."""
    return judge("uniform_total_order", history, _find_everywhere)


def _find_everywhere(views: Views, findings: Findings) -> None:
    _find(views, findings, lambda stay: not views.bereft(stay))


def _find(views: Views, findings: Findings, judged: Callable[[Stay], bool]) -> None:
    for stays in views.of.values():
        _find_inverted(views, list(filter(judged, stays)), findings)
    positions = _Positions(views, findings)
    for process in views.known.lives:
        positions.follow(process, judged)
    positions.find_shared()


def _find_inverted(views: Views, stays: list[Stay], findings: Findings) -> None:
    if not Walk([list(stay.delivered) for stay in stays], {}).stuck:
        return
    orders = sorted({tuple(stay.delivered) for stay in stays})
    for stay in stays:
        found: dict[int, int] = {}
        for order in orders:
            for late, early in _inverted(stay, order):
                found.setdefault(late, early)
        _report(views, stay, found, findings)


def _inverted(stay: Stay, order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """What comes earlier in `order` than in the stay, and something it comes before there."""
    common = [part for part in order if part in stay.delivered]
    earliest: float = inf
    first = 0
    for part in reversed(common):
        position = stay.delivered[part]
        if position > earliest:
            yield part, first
        else:
            earliest, first = position, part


def _report(views: Views, stay: Stay, found: dict[int, int], findings: Findings) -> None:
    known = views.known

    def case(message: MessageId) -> tuple[str, list[Event]]:
        early = known.parts.first(found[known.parts.around(message)])
        events = [
            *known.find(Kind.DELIVER, stay.process, early),
            *known.find(Kind.DELIVER, stay.process, message),
        ]
        reason = f"{stay.process} delivered {message} after {early} in view {number_of(stay)}, others did not"
        return reason, events

    known.report(findings, sorted(found), case)


class _Position(NamedTuple):
    at: int
    event: Event
    """A row that says so."""


class _Positions:
    """The positions that rows give to messages; `order` is that of the first of a run."""

    def __init__(self, views: Views, findings: Findings) -> None:
        self._views = views
        self._findings = findings
        self._of: dict[int, _Position] = {}

    def follow(self, process: MemberId, judged: Callable[[Stay], bool]) -> None:
        """Go through the deliveries of a process."""
        known = self._views.known
        stays = iter(known.lives[process].stays)
        stay: Stay | None = None
        seen: set[int] = set()
        before: _Position | None = None
        for event in known.rows[process]:
            if event.kind in (Kind.VIEW, Kind.TRANSITIONAL):
                stay, seen = next(stays), set()
            elif event.kind is Kind.DELIVER and event.order is not None and stay is not None and judged(stay):
                for part in known.parts.of(event):
                    if part not in seen:
                        seen.add(part)
                        before = self._take(part, event, before)

    def _take(self, part: int, event: Event, before: _Position | None) -> _Position:
        assert event.order is not None
        parts = self._views.known.parts
        here = _Position(event.order + parts.first(part).seq - event.seq, event)
        there = self._of.setdefault(part, here)
        if there.at != here.at:
            self._views.known.report(
                self._findings,
                [part],
                lambda message: (
                    f"{message} has several positions",
                    [there.event.only(message.seq), event.only(message.seq)],
                ),
            )
        if before is not None and here.at <= before.at:
            first = parts.first(part)
            self._findings.count(1)
            self._findings.example(
                f"{event.process} delivered position {here.at} after {before.at}",
                before.event.only(before.event.seq + before.at - (before.event.order or 0)),
                event.only(first.seq),
            )
        return _Position(here.at + parts.weigh([part]) - 1, event)

    def find_shared(self) -> None:
        """Count what is at the position of something else."""
        parts, taken = self._views.known.parts, Runs()
        for part, position in sorted(self._of.items(), key=lambda item: (item[1].at, item[0])):
            known = taken.add(position.at, position.at + parts.weigh([part]) - 1)
            self._findings.count(sum(last - first + 1 for first, last in known))
            for at in (at for first, last in known for at in range(first, last + 1)):
                if self._findings.full:
                    break
                seq = parts.first(part).seq + at - position.at
                self._findings.example(f"position {at} belongs to several messages", position.event.only(seq))
