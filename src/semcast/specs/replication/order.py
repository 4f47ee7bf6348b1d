"""The global order: one action at a position, each once, those of a creator in its order (Amir 1995, 6.3)."""

from semcast.history.events import History
from semcast.specs.replication.kinds import DONE
from semcast.specs.replication.ledger import Action, Ledger, Life, Place, installed, ledger_of
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


def _lost_by_all(ledger: Ledger, life: Life, position: int, place: Place) -> bool:
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


def repl_fifo(history: History) -> Verdict:
    """At each server an action is green only after those that its creator made before."""
    findings = Findings("repl_fifo")
    for life, line, place, last in _walk(ledger_of(history)):
        creator, index = place.action
        if index != last.get(creator, 0) + 1:
            findings.count(1)
            reason = f"{_name(place.action)} is green at {life.process} at {line} after"
            findings.example(f"{reason} {last.get(creator, 0)}", place.event)
    return findings.verdict()


def _walk(ledger: Ledger) -> list[tuple[Life, int, Place, dict[object, int]]]:
    """Every green of every life, with the last index of each creator before it."""
    found: list[tuple[Life, int, Place, dict[object, int]]] = []
    for lives in ledger.by_server.values():
        had: dict[int, Action] = {}
        for life in lives:
            had = {position: action for position, action in had.items() if position <= life.recovered}
            last: dict[object, int] = {}
            for position in sorted(had):
                last[had[position][0]] = had[position][1]
            for position, place in life.steps():
                if place is None:
                    had |= {each: ledger.order[each].action for each in ledger.order if each <= position}
                    last = {had[each][0]: had[each][1] for each in sorted(had)}
                    continue
                found.append((life, position, place, dict(last)))
                last[place.action[0]] = place.action[1]
                had[position] = place.action
    return found


def repl_integrity(history: History) -> Verdict:
    """An action is green once, and was requested; positions have no gaps; a client's request is done once."""
    ledger = ledger_of(history)
    findings = Findings("repl_integrity")
    for lives in ledger.by_server.values():
        _check_lives(ledger, lives, findings)
    done: dict[object, int] = {}
    for life in ledger.lives:
        upto = life.counts_upto
        for event in life.events:
            if event.kind is DONE and event.members and (event.order or 0) <= upto:
                before = done.setdefault(event.members[0], event.order or 0)
                if before != event.order:
                    findings.count(1)
                    request = event.members[0]
                    reason = f"request {request.incarnation} of {request.name} is done at {before}"
                    findings.example(f"{reason} and {event.order}", event)
    return findings.verdict()


def _check_lives(ledger: Ledger, lives: list[Life], findings: Findings) -> None:
    for life in lives:
        line, seen = life.recovered, dict[Action, int]()
        for position, place in life.steps():
            if place is None:
                line = max(line, position)
                continue
            creator = place.action[0]
            if position != line + 1:
                findings.count(1)
                findings.example(f"position {position} after {line} at {life.process}", place.event)
            if place.action in seen:
                findings.count(1)
                findings.example(f"{_name(place.action)} is green twice at {life.process}", place.event)
            if place.action not in ledger.requests and creator not in ledger.cut_off:
                findings.count(1)
                findings.example(f"{_name(place.action)} was never requested", place.event)
            seen[place.action] = position
            line = position


def _name(action: Action) -> str:
    return f"({action[0]},{action[1]})"
