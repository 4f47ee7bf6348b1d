"""Primary components: one at a time, each with a quorum of the one before (Amir 1995, 6.1.2 and Claim 4)."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.specs.replication.kinds import COLOUR, GREEN, GROUP, INSTALL, PHASE, WHOLE
from semcast.specs.replication.ledger import installed, ledger_of, taking_part, text_of
from semcast.specs.verdict import Findings, Verdict

ORDERS = frozenset({"reg-prim", "exchange-actions", "out"})
"""States in which actions turn green as they come: in a primary, in an exchange, by a pull."""
_INSTALLS = frozenset({"construct", "un"})
"""States in which they do only because a primary is installed."""


def repl_one_primary(history: History) -> Verdict:
    """A number names one primary, which has a quorum of the one before; at a server the numbers grow."""
    ledger = ledger_of(history)
    findings = Findings("repl_one_primary")
    known: dict[int, Event] = {}
    for life in ledger.lives:
        last = life.recovered_primary
        for install in life.installs:
            number = install.view or 0
            if number <= last:
                findings.count(1)
                findings.example(f"{life.process} installs primary {number} after {last}", install)
            last = number
            if not life.stands(install):
                continue
            other = known.setdefault(number, install)
            if _same(other) != _same(install):
                findings.count(1)
                findings.example(f"there are two primaries {number}", other, install)
    for number, install in known.items():
        before = known.get(number - 1)
        if before is not None and text_of(install) != WHOLE:
            _follow(before, install, findings)
    return findings.verdict()


def _same(install: Event) -> object:
    return install.seq, install.sender, tuple(sorted(installed(install).items()))


def _follow(before: Event, install: Event, findings: Findings) -> None:
    name = f"{before.seq}@{before.sender}"
    if text_of(install) != name:
        findings.count(1)
        findings.example(
            f"primary {install.view} follows {text_of(install)}, and not {name}", before, install
        )
    weights = installed(before)
    here = sum(weights.get(server, 0) for server, _ in taking_part(install))
    total = sum(weights.values())
    first = min(weights) in {server for server, _ in taking_part(install)}
    if 2 * here < total or (2 * here == total and not first):
        findings.count(1)
        findings.example(f"primary {install.view} has no quorum of the one before", before, install)


def repl_green_in_primary(history: History) -> Verdict:
    """Actions turn green in a primary, in an exchange, by a pull, or as one is installed; never otherwise."""
    findings = Findings("repl_green_in_primary")
    for life in ledger_of(history).lives:
        phase = ""
        owed: list[Event] = []  # greens that an installation has to explain
        for event in life.events:
            if event.kind is PHASE:
                _blame(owed, findings)
                phase, owed = event.level or "", []
            elif event.kind is INSTALL:
                owed = []
            elif event.kind is COLOUR and event.level == GREEN and phase not in ORDERS:
                if phase in _INSTALLS:
                    owed.append(event)
                else:
                    _blame([event], findings)
        _blame(owed, findings)
    return findings.verdict()


def _blame(events: list[Event], findings: Findings) -> None:
    for event in events:
        findings.count(1)
        findings.example(f"green at {event.process} outside of a primary", event)


def _groups(history: History) -> dict[tuple[int, int], set[MemberId]]:
    """The servers of the group, as far as that counts: from a position on, and from a primary on.

    An operator may give up servers where nothing was ordered since others were in a primary with them.
    """
    found: dict[tuple[int, int], set[MemberId]] = {}
    for life in ledger_of(history).lives:
        number = life.recovered_primary
        for event in life.events:
            if event.kind is INSTALL:
                number = event.view or 0
            elif event.kind is GROUP and (event.order or 0) <= life.counts_upto:
                found.setdefault((event.order or 0, number), set(event.members or ()))
    return found


def repl_join(history: History) -> Verdict:
    """A primary has servers of the group only, as of the position at which it is installed."""
    return _membership(history, "repl_join", removed=False)


def repl_leave(history: History) -> Verdict:
    """A server that was removed is in no primary that is installed after that."""
    return _membership(history, "repl_leave", removed=True)


def _membership(history: History, name: str, *, removed: bool) -> Verdict:
    findings = Findings(name)
    groups = _groups(history)
    for life in ledger_of(history).lives:
        for install in life.installs:
            if not life.stands(install):
                continue
            position, number = install.order or 0, install.view or 0
            line = max((at for at in groups if at[0] <= position and at[1] <= number), default=None)
            if line is None:
                continue
            strangers = [server for server in installed(install) if server not in groups[line]]
            for server in strangers:
                was = any(server in group for at, group in groups.items() if at < line)
                if was == removed:
                    findings.count(1)
                    word = "was removed" if removed else "never joined"
                    findings.example(f"primary {install.view} has {server}, who {word}", install)
    return findings.verdict()
