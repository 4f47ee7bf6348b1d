"""The global order: one action at a position, each once, those of a creator in its order (Amir 1995, 6.3)."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.specs.replication.kinds import DONE
from semcast.specs.replication.ledger import Action, GreenPlace, Ledger, Life, installed, ledger_of
from semcast.specs.verdict import Findings, Verdict


def repl_total_order(history: History) -> Verdict:
    """All greens at a position name one action.

    One that does not count is excused only if everybody of its primary crashed before it was on a disk.
    """
    ledger = ledger_of(history)
    findings = Findings("repl_total_order")
    for life in ledger.lives:
        upto = life.counts_upto
        for position, place in life.places():
            other = ledger.order.get(position)
            if other is None or other.action == place.action or position > life.given_up:
                continue
            if position <= upto or not _lost_by_all(ledger, life, position, place):
                findings.count(1)
                reason = f"position {position} is {_name(place.action)} at {life.process}"
                findings.example(f"{reason} and {_name(other.action)}", place.event, other.event)
    return findings.verdict()


def _lost_by_all(ledger: Ledger, life: Life, position: int, place: GreenPlace) -> bool:
    """Whether all of the primary in which it was green crashed before anybody had it on its disk."""
    at = place.event
    before = [install for install in life.installs if install.index < at.index] or life.installs[:1]
    if not before:
        return False
    for server in installed(before[-1]):
        other = ledger.life_at(server, at.at)
        if other is not None and (not other.crashed or other.durable >= position):
            return False
    return True


class OrderFault(NamedTuple):
    """A row that breaks the order, and how."""

    kind: str
    reason: str
    event: Event


GAP, TWICE, UNASKED, DONE_TWICE, UNORDERED = "gap", "twice", "unasked", "done twice", "unordered"


def repl_fifo(history: History) -> Verdict:
    """At each server an action is green only after those that its creator made before."""
    return order_verdict("repl_fifo", FAULTS["repl_fifo"](ledger_of(history)))


def repl_integrity(history: History) -> Verdict:
    """An action is green once, and was requested; positions have no gaps; a client's request is done once."""
    return order_verdict("repl_integrity", FAULTS["repl_integrity"](ledger_of(history)))


def order_verdict(name: str, faults: Iterable[OrderFault]) -> Verdict:
    """What these faults mean for a property."""
    findings = Findings(name)
    for fault in faults:
        findings.count(1)
        findings.example(fault.reason, fault.event)
    return findings.verdict()


def _fifo_faults(ledger: Ledger) -> Iterator[OrderFault]:
    for life, line, place, last in _walk(ledger):
        if place.action[1] != last + 1:
            reason = f"{_name(place.action)} is green at {life.process} at {line} after {last}"
            yield OrderFault(UNORDERED, reason, place.event)


def _walk(ledger: Ledger) -> Iterator[tuple[Life, int, GreenPlace, int]]:
    """Every green of every life, with the last index of its creator before it."""
    for lives in ledger.by_server.values():
        had: dict[int, Action] = {}
        for life in lives:
            had = {position: action for position, action in had.items() if position <= life.recovered}
            last = {had[position][0]: had[position][1] for position in sorted(had)}
            for position, place in life.steps():
                if place is None:
                    had |= {each: ledger.order[each].action for each in ledger.order if each <= position}
                    last = {had[each][0]: had[each][1] for each in sorted(had)}
                    continue
                creator, index = place.action
                yield life, position, place, last.get(creator, 0)
                last[creator] = index
                had[position] = place.action


def _integrity_faults(ledger: Ledger) -> Iterator[OrderFault]:
    for lives in ledger.by_server.values():
        for life in lives:
            yield from _faults_of(ledger, life)
    done: dict[MemberId, int] = {}
    for life in ledger.lives:
        upto = life.counts_upto
        for event in life.events:
            if event.kind is DONE and event.members and (event.order or 0) <= upto:
                before = done.setdefault(event.members[0], event.order or 0)
                if before != event.order:
                    request = event.members[0]
                    reason = f"request {request.incarnation} of {request.name} is done at {before}"
                    yield OrderFault(DONE_TWICE, f"{reason} and {event.order}", event)


def _faults_of(ledger: Ledger, life: Life) -> Iterator[OrderFault]:
    line, seen = life.recovered, set[Action]()
    for position, place in life.steps():
        if place is None:
            line = max(line, position)
            continue
        if position != line + 1:
            yield OrderFault(GAP, f"position {position} after {line} at {life.process}", place.event)
        if place.action in seen:
            yield OrderFault(TWICE, f"{_name(place.action)} is green twice at {life.process}", place.event)
        if place.action not in ledger.requests and place.action[0] not in ledger.cut_off:
            yield OrderFault(UNASKED, f"{_name(place.action)} was never requested", place.event)
        seen.add(place.action)
        line = position


FAULTS: dict[str, Callable[[Ledger], Iterator[OrderFault]]] = {
    "repl_fifo": _fifo_faults,
    "repl_integrity": _integrity_faults,
}
"""What breaks them, one by one. Each kind of fault can be told of a row from few others."""


def _name(action: Action) -> str:
    return f"({action[0]},{action[1]})"
