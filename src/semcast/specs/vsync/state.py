"""State at the beginning of views, where joiners get it from the others (DESIGN, "Live groups")."""

from collections.abc import Iterator, Sequence

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.verdict import Findings, Verdict, unknown
from semcast.specs.vsync.views import Views, judge, views_of


def vs_state_transfer(history: History) -> Verdict:
    """P, 2.3.2: when a view begins, all members that have a state have the same, also those who join.

    Counts for each view the senders of whom some members have different states, where to have none of a
    sender that others have one of is different as well; and states recorded at another time than in the
    view before anything is delivered there.
    """
    name = "vs_state_transfer"
    if views_of(history).of and not any(map(_at_a_view, history.events)):
        return unknown(name, "no state was recorded at the beginning of a view")
    return judge(name, history, _find_differing)


def _at_a_view(event: Event) -> bool:
    return event.kind is Kind.APPLY and event.view is not None


_States = dict[MemberId, Event]
"""By sender, the last row about its state."""


def _find_differing(views: Views, findings: Findings) -> None:
    states: dict[int, dict[MemberId, _States]] = {}
    for process, rows in views.known.rows.items():
        for event in _misplaced(rows):
            findings.count(1)
            findings.example(
                f"{process} has a state that is not from the beginning of view {event.view}", event
            )
        for event in filter(_at_a_view, rows):
            assert event.view is not None
            assert event.sender is not None
            states.setdefault(event.view, {}).setdefault(process, {})[event.sender] = event
    for number in sorted(states):
        _compare(views, number, states[number], findings)


def _misplaced(rows: Sequence[Event]) -> Iterator[Event]:
    fresh: int | None = None
    for event in rows:
        if event.kind is Kind.VIEW:
            fresh = event.view
        elif event.kind in (Kind.DELIVER, *GONE):
            fresh = None
        elif _at_a_view(event) and event.view != fresh:
            yield event


def _compare(views: Views, number: int, states: dict[MemberId, _States], findings: Findings) -> None:
    for sender in sorted({sender for theirs in states.values() for sender in theirs}):
        found: dict[str | None, tuple[MemberId, Event]] = {}
        for process, theirs in states.items():
            if sender in theirs:
                found.setdefault(theirs[sender].digest, (process, theirs[sender]))
            elif _complete(views, process, number):
                found.setdefault(None, (process, next(iter(theirs.values()))))
        if len(found) > 1:
            findings.count(1)
            holders = " and ".join(str(process) for process, _ in found.values())
            events = [event for _, event in found.values()]
            findings.example(f"{holders} differ in the state of {sender} at view {number}", *events)


def _complete(views: Views, process: MemberId, number: int) -> bool:
    """Whether all states were recorded: something else followed, or nothing can be missing at the end."""
    rows = views.known.rows[process]
    last = next(event for event in reversed(rows) if event.kind not in GONE)
    if not (_at_a_view(last) and last.view == number):
        return True
    return views.known.quiesced and not views.known.lives[process].crashed
