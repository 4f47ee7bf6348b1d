"""Who must not take part any more: servers that were given up, and those that have forgotten things."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.specs.replication.kinds import WHOLE
from semcast.specs.replication.ledger import Ledger, Life, installed, ledger_of, taking_part, text_of
from semcast.specs.verdict import Findings, Verdict


def repl_lineage(history: History) -> Verdict:
    """Once an operator gave up servers, these and the others have nothing to do with each other any more.

    No primary that follows has one of them taking part, and none of them has an action that was asked for
    there since.
    """
    ledger = ledger_of(history)
    findings = Findings("repl_lineage")
    installs = {_name(install): install for life in ledger.lives for install in life.installs}
    begun = {
        name: min(each.at for each in _all(ledger, name))
        for name, install in installs.items()
        if text_of(install) == WHOLE
    }
    for name, install in installs.items():
        if _descends(install, installs, begun):
            for server in [each for each, _ in taking_part(install) if each in ledger.forgotten]:
                findings.count(1)
                findings.example(f"{server} was given up, and takes part in primary {install.view}", install)
        if name in begun:
            _check_given_up(ledger, begun[name], findings)
    return findings.verdict()


def _name(install: Event) -> str:
    return f"{install.seq}@{install.sender}"


def _all(ledger: Ledger, name: str) -> list[Event]:
    return [install for life in ledger.lives for install in life.installs if _name(install) == name]


def _descends(install: Event, installs: dict[str, Event], begun: dict[str, int]) -> bool:
    """Whether a primary is one of those that an operator made possible."""
    seen: set[str] = set()
    at: Event | None = install
    while at is not None and _name(at) not in seen:
        if _name(at) in begun:
            return True
        seen.add(_name(at))
        at = installs.get(text_of(at))
    return False


def _check_given_up(ledger: Ledger, since: int, findings: Findings) -> None:
    """Of those that were given up: what is green there that the others were asked for."""
    rest = {life.creator for life in ledger.lives if life.server not in ledger.forgotten}
    for life in ledger.lives:
        if life.server not in ledger.forgotten or life.began < since:
            continue
        for position, place in life.places():
            request = ledger.requests.get(place.action)
            if place.action[0] in rest and request is not None and request.at > since:
                findings.count(1)
                what = f"({place.action[0]},{place.action[1]}) is green at {position}"
                findings.example(f"{what} at {life.process}, which was given up before", place.event)


def repl_memory(history: History) -> Verdict:
    """A server whose disk is an old copy takes part in no primary with anybody who knows that it is one."""
    ledger = ledger_of(history)
    findings = Findings("repl_memory")
    for life in ledger.lives:
        if not life.rolled_back:
            continue
        for install in _taken_part_in(ledger, life):
            knows = [each for each, _ in taking_part(install) if _knows_better(ledger, each, life, install)]
            if knows:
                findings.count(1)
                reason = f"{life.process} has forgotten what it did, as {knows[0]} knows"
                findings.example(f"{reason}, and takes part in primary {install.view}", install)
    return findings.verdict()


def _taken_part_in(ledger: Ledger, life: Life) -> list[Event]:
    """Installations, by anybody, in which a server took part in one of its lives."""
    ends = None if life.following is None else life.following.began
    return [
        install
        for other in ledger.lives
        for install in other.installs
        if install.at >= life.began
        and (ends is None or install.at < ends)
        and life.server in {each for each, _ in taking_part(install)}
    ]


def _knows_better(ledger: Ledger, server: MemberId, life: Life, install: Event) -> bool:
    """Whether a server was in a primary of which the other has nothing on its disk any more."""
    for witness in ledger.by_server.get(server, ()) if server != life.server else ():
        for before in witness.installs:
            if before.at >= life.began or life.server not in installed(before):
                continue
            still = witness.began <= install.at and (
                witness.following is None or install.at < witness.following.began
            )
            kept = (before.view or 0) <= witness.installs_upto
            if (still and (before.order or 0) > life.recovered) or (
                kept and (before.view or 0) > life.recovered_primary + 1
            ):
                return True
    return False
