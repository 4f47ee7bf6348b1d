"""What has come of it when all is at rest, and what servers may forget."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.replication.kinds import AGAIN, ALARM, DURABLE, GROUP, PHASE, SNAPSHOT, WHITE
from semcast.specs.replication.ledger import Ledger, Life, installed, ledger_of, text_of
from semcast.specs.verdict import Findings, Verdict, unknown


def _last_install(ledger: Ledger) -> Event | None:
    found = [install for life in ledger.lives for install in life.installs if life.stands(install)]
    return max(found, key=lambda install: install.view or 0, default=None)


def group_of(ledger: Ledger) -> set[MemberId]:
    """The servers of the group at the end."""
    rows = [
        event
        for life in ledger.lives
        for event in life.events
        if event.kind is GROUP and (event.order or 0) <= life.counts_upto
    ]
    last = max(rows, key=lambda event: event.order or 0, default=None)
    return set() if last is None else set(last.members or ())


def blocked(history: History) -> str:
    """Why nothing is owed at the end; empty if it is."""
    ledger = ledger_of(history)
    if not history.info.quiesced:
        return "the run was not over"
    if ledger.cut_off:
        return "recordings are cut off"
    last = _last_install(ledger)
    if last is None:
        return "no primary was ever installed"
    needed = {*installed(last), *group_of(ledger)}
    dead = [server for server in ledger.dead() if server in needed or server in _ever(ledger)]
    return f"{dead[0]} is gone" if dead else ""


def _ever(ledger: Ledger) -> set[MemberId]:
    return {server for life in ledger.lives for install in life.installs for server in installed(install)}


def repl_liveness(history: History) -> Verdict:
    """At rest all servers of the group are in one primary, with equal lines, and nothing without a place."""
    name = "repl_liveness"
    why = blocked(history)
    if why:
        return unknown(name, why)
    ledger = ledger_of(history)
    findings = Findings(name)
    group = group_of(ledger)
    alive = [life for life in ledger.alive() if life.server in group]
    lines = {life.process: _line(life) for life in alive}
    top = max(lines.values(), default=0)
    for life in alive:
        phases = [event for event in life.events if event.kind is PHASE]
        if not phases or phases[-1].level != "reg-prim":
            findings.count(1)
            where = phases[-1].level if phases else "nowhere"
            findings.example(f"{life.process} ends in {where}", *phases[-1:])
        elif lines[life.process] != top:
            findings.count(1)
            findings.example(f"{life.process} ends at {lines[life.process]}, others at {top}", *phases[-1:])
    owed = [
        action for action in ledger.requests if action not in ledger.positions and _owed(ledger, action[0])
    ]
    for action in owed:
        findings.count(1)
        findings.example(f"({action[0]},{action[1]}) never got a place", ledger.requests[action])
    return findings.verdict()


def _owed(ledger: Ledger, creator: MemberId) -> bool:
    """Whether all that a creator requested must get a place: it did not crash."""
    return any(life.creator == creator and not life.crashed and not life.left for life in ledger.lives)


def _line(life: Life) -> int:
    return max((position for position, _ in life.steps()), default=life.recovered)


def repl_knowledge(history: History) -> Verdict:
    """At equal positions servers have equal chain hashes, and nobody raises an alarm.

    What an operator gave up is another order.
    """
    ledger = ledger_of(history)
    findings = Findings("repl_knowledge")
    known: dict[int, Event] = {}
    for life in ledger.lives:
        for event in life.events:
            if event.kind is ALARM:
                findings.count(1)
                findings.example(f"{life.process}: {text_of(event)}", event)
            elif (event.order or 0) > life.given_up:
                continue
            elif event.kind in (DURABLE, SNAPSHOT) and text_of(event):
                other = known.setdefault(event.order or 0, event)
                if text_of(other) != text_of(event):
                    findings.count(1)
                    findings.example(f"two hashes at position {event.order}", other, event)
    return findings.verdict()


def repl_state(history: History) -> Verdict:
    """At rest servers with equal lines have services in equal states, snapshots or not."""
    name = "repl_state"
    why = blocked(history)
    if why:
        return unknown(name, why)
    ledger = ledger_of(history)
    findings = Findings(name)
    known: dict[int, tuple[Life, dict[MemberId | None, str]]] = {}
    for life in ledger.alive():
        rows = [event for event in life.events if event.kind is Kind.APPLY]
        if not rows or life.server not in group_of(ledger):
            continue
        states = {event.sender: event.digest or "" for event in rows}
        other, wanted = known.setdefault(_line(life), (life, states))
        if states != wanted:
            findings.count(1)
            what = sorted(
                str(each) for each in states.keys() | wanted if states.get(each) != wanted.get(each)
            )
            told = f"the services of {life.process} and {other.process} differ in {', '.join(what)}"
            findings.example(told, rows[-1])
    return findings.verdict()


def repl_white(history: History) -> Verdict:
    """What is white at one server is green on the disks of all."""
    ledger = ledger_of(history)
    findings = Findings("repl_white")
    for life in ledger.lives:
        for event in life.events:
            if event.kind is not WHITE:
                continue
            for server in event.members or ():
                if not _has_on_disk(ledger, server, event):
                    findings.count(1)
                    findings.example(f"{event.order} is white at {life.process}, not on {server}", event)
    return findings.verdict()


def _has_on_disk(ledger: Ledger, server: MemberId, white: Event) -> bool:
    """Whether a server had the actions on its disk by then, and has when it starts again."""
    line = white.order or 0
    lives = ledger.by_server.get(server, [])
    if any(life.began > white.at and life.recovered < line and not life.rolled_back for life in lives):
        return False
    return any(
        (life.recovered >= line and life.began <= white.at) or life.on_disk(white.at) >= line
        for life in lives
    )


def repl_exchange_once(history: History) -> Verdict:
    """In one configuration no action is sent again twice."""
    findings = Findings("repl_exchange_once")
    sent: dict[object, Event] = {}
    for event in history.events:
        if event.kind is AGAIN:
            for index in range(event.seq, event.seq + event.count):
                key = text_of(event), event.sender, index
                other = sent.setdefault(key, event)
                if other is not event:
                    findings.count(1)
                    findings.example(f"({event.sender},{index}) is sent twice", other, event)
    return findings.verdict()
