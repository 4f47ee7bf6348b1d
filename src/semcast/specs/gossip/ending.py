"""Sessions of programs that never come back end, whoever was their logger; those of others do not."""

from semcast.core.ids import MemberId
from semcast.history.events import History
from semcast.specs.gossip.kinds import ADMIT, DISMISSED
from semcast.specs.gossip.ledger import ledger_of
from semcast.specs.verdict import Findings, Verdict, unknown


def gossip_ended(history: History) -> Verdict:
    """Where the run is over, no logger has a session whose program is gone for longer than `inactive`.

    Also if the logger that it reported to was forgotten. And who is there has a session: one that a logger
    ended is told so, and goes on as another incarnation. Runs that are over have waited for `inactive`, where
    that is short; of others nothing is said. Nor is anything of runs in which a disk was lost.
    """
    ledger = ledger_of(history)
    if not history.info.quiesced or history.info.seed is None or not ledger.running:
        return unknown("gossip_ended", "the run was not over, or no logger is there")
    if not ledger.dismisses or ledger.disk_missed:
        return unknown("gossip_ended", "sessions are kept for longer than the run, or a disk was lost")
    if not any(session.there for session in ledger.sessions):
        return unknown("gossip_ended", "no member is there, so that loggers may be cut off for all they know")
    findings = Findings("gossip_ended")
    rows = {name: _rows_of(history, name) for name in ledger.running}
    for session in ledger.sessions:
        for name, (admitted, ended) in rows.items():
            has, over = admitted.get(session.name), ended.get(session.name, -1)
            own = has is not None and any(each.process == has for each in session.incarnations)
            if not session.there and own and has is not None and over < has.incarnation:
                findings.count(1)
                findings.example(f"{name} still has the session of {has}, which never comes back")
            if session.there and over >= session.last.process.incarnation:
                findings.count(1)
                findings.example(f"{name} has ended the session of {session.last.process}, which is there")
    return findings.verdict()


def _rows_of(history: History, logger: str) -> tuple[dict[str, MemberId], dict[str, int]]:
    """By name, the newest incarnation that a logger has admitted, and the newest whose session it ended."""
    admitted: dict[str, MemberId] = {}
    ended: dict[str, int] = {}
    for row in history.events:
        if row.process.name != logger:
            continue
        for member in row.members or () if row.kind is ADMIT else ():
            admitted[member.name] = max(member, admitted.get(member.name, member))
        for member in row.members or () if row.kind is DISMISSED else ():
            ended[member.name] = max(member.incarnation, ended.get(member.name, -1))
    return admitted, ended
