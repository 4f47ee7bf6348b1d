"""What sessions get: Sun 2000, 1.4 and chapter 6, with a declared relation of obsolescence.

*Has m*: delivered m, or something that replaces it.
"""

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.gossip.kinds import ABANDONED, ACKNOWLEDGE, EXPIRED, LIMITS, START, UNWANTED
from semcast.specs.gossip.ledger import Incarnation, Ledger, Session, ledger_of
from semcast.specs.runs import Runs, union
from semcast.specs.verdict import Findings, Verdict, unknown

_NOTHING = Runs()


def gossip_start(history: History) -> Verdict:
    """A session delivers nothing of a stream at or before its start, and nothing without one."""
    findings = Findings("gossip_start")
    for process in history.processes:
        starts: dict[MemberId, Event] = {}
        for row in history.of(process):
            if row.sender is None:
                continue
            if row.kind is START:
                starts.setdefault(row.sender, row)
            elif row.kind is Kind.DELIVER:
                start = starts.get(row.sender)
                if start is None or row.seq <= start.seq:
                    findings.count(1)
                    message = MessageId(row.sender, row.seq)
                    after = "without a start" if start is None else f"though it starts after {start.seq}"
                    findings.example(f"{process} delivered {message} {after}", row.only(row.seq))
    return findings.verdict()


def gossip_delivery(history: History) -> Verdict:
    """What is on the disk of a logger, every session that is there has, from its start on.

    Excused is what it gave up because the log had dropped it as expired, or a replacement of it; and, where a
    disk was lost, what nobody had any more.
    """
    ledger = ledger_of(history)
    problem = _unjudged(history, ledger)
    if problem is not None:
        return unknown("gossip_delivery", problem)
    findings = Findings("gossip_delivery")
    for session in ledger.sessions:
        if session.there:
            excused = _excused(ledger, session, abandoned=ledger.disk_lost)
            _lacks(findings, ledger, session, ledger.kept, excused)
    return findings.verdict()


def gossip_agreement(history: History) -> Verdict:
    """What a session that is there delivered while a logger heard it, all others that are there have.

    But for what a logger had published itself, if its disk was lost; and for streams of which nobody knew any
    more with whom a session began after that.
    """
    ledger = ledger_of(history)
    problem = _unjudged(history, ledger)
    if problem is not None:
        return unknown("gossip_agreement", problem)
    findings = Findings("gossip_agreement")
    there = [session for session in ledger.sessions if session.there]
    agreed = {
        stream: union(session.last.connected.get(stream, _NOTHING) for session in there)
        for stream in ledger.streams
        if stream not in ledger.lost_streams
    }
    for session in there:
        excused = _excused(ledger, session, abandoned=ledger.disk_lost)
        known = {stream: runs for stream, runs in agreed.items() if not ledger.unaware(session, stream)}
        _lacks(findings, ledger, session, known, excused)
    return findings.verdict()


def gossip_receipts(history: History) -> Verdict:
    """No silent hole: what a process skipped before something it delivered has a receipt, purge or lost.

    And where the run is over, what was purged was replaced by something that the process has, or gave up.
    """
    ledger = ledger_of(history)
    findings = Findings("gossip_receipts")
    for session in ledger.sessions:
        for each in session.incarnations:
            for stream in ledger.streams:
                _silent(findings, ledger, each, stream)
        if history.info.quiesced and session.there and not ledger.relation.endless:
            _unreplaced(findings, ledger, session)
    return findings.verdict()


def at_most_once(history: History) -> Verdict:
    """Where that was asked for, no two incarnations of a session deliver the same message."""
    findings = Findings("at_most_once")
    for session in ledger_of(history).sessions:
        seen: dict[MemberId, Runs] = {}
        for each in session.incarnations:
            for stream, runs in each.delivered.items():
                before = seen.setdefault(stream, Runs())
                for first, last in list(runs):
                    again = before.add(first, last)
                    if again and each.at_most_once:
                        findings.count(sum(end - begin + 1 for begin, end in again))
                        message = MessageId(stream, again[0][0])
                        findings.example(f"{each.process} delivered {message}, and a former incarnation, too")
    return findings.verdict()


def at_least_once(history: History) -> Verdict:
    """Where that was asked for, only what was not acknowledged before a crash is delivered again.

    That nothing is missing is `gossip_delivery`, to which the incarnations of a session count together.
    """
    ledger = ledger_of(history)
    if ledger.disk_lost:
        return unknown("at_least_once", "what was acknowledged was lost with a disk")
    findings = Findings("at_least_once")
    acknowledged: dict[tuple[MemberId, MemberId], list[Event]] = {}
    for row in history.events:
        if row.kind is ACKNOWLEDGE and row.members and row.sender is not None:
            acknowledged.setdefault((row.members[0], row.sender), []).append(row)
    for session in ledger.sessions:
        for former, later in zip(session.incarnations, session.incarnations[1:], strict=False):
            if former.end is None or later.at_most_once:
                continue
            for stream, runs in later.delivered.items():
                rows = acknowledged.get((former.process, stream), [])
                settled = max((row.seq for row in rows if row.at <= former.end.at), default=0)
                again = runs.upto(settled)
                findings.count(again.total())
                for seq in again.numbers():
                    if findings.full:
                        break
                    message = MessageId(stream, seq)
                    findings.example(
                        f"{later.process} delivered {message}, which was acknowledged", former.end
                    )
    return findings.verdict()


def _unjudged(history: History, ledger: Ledger) -> str | None:
    if not history.info.quiesced:
        return "the run was not over"
    if ledger.relation.endless:
        return "the obsolescence relation is not an order"
    if not ledger.logs:
        return "there is no logger: nothing is promised but receipts"
    if not ledger.running:
        return "no logger is there at the end"
    return None


def _lacks(
    findings: Findings,
    ledger: Ledger,
    session: Session,
    owed: dict[MemberId, Runs],
    excused: dict[MemberId, Runs],
) -> None:
    has = ledger.has(session)
    for stream, runs in owed.items():
        begin = session.begin(stream)
        if begin is None:
            if session.last.at_most_once:
                continue  # it waits for a word of the sender, and is owed nothing before
            begin = 0
        if ledger.disk_lost and stream in session.last.starts:  # where it was may be lost with the disk
            begin = max(begin, session.last.starts[stream].seq)
        after = runs.minus(Runs([(1, begin)]) if begin else _NOTHING)
        lacking = after.minus(has.get(stream, _NOTHING)).minus(excused.get(stream, _NOTHING))
        findings.count(lacking.total())
        for seq in lacking.numbers():
            if findings.full:
                break
            reason = f"{session.last.process} has neither {MessageId(stream, seq)} nor a replacement"
            findings.example(reason)


def _excused(ledger: Ledger, session: Session, *, abandoned: bool) -> dict[MemberId, Runs]:
    """What a session may lack: what it gave up for a reason, and what that replaced."""
    limited = ledger.disk_lost or any(LIMITS in log.retention for log in ledger.logs) or session.orphaned
    levels = [UNWANTED, *(level for level, may in ((EXPIRED, limited), (ABANDONED, abandoned)) if may)]
    given_up = {stream: union(session.lost(stream, level) for level in levels) for stream in ledger.streams}
    return ledger.covered(given_up)


def _silent(findings: Findings, ledger: Ledger, each: Incarnation, stream: MemberId) -> None:
    delivered = each.delivered.get(stream)
    if delivered is None or stream not in each.starts:
        return
    told = union(
        [
            delivered,
            each.purged.get(stream, _NOTHING),
            each.lost.get((stream, EXPIRED), _NOTHING),
            each.lost.get((stream, ABANDONED), _NOTHING),
            each.lost.get((stream, UNWANTED), _NOTHING),
            Runs([(1, each.starts[stream].seq)]) if each.starts[stream].seq else _NOTHING,
        ]
    )
    silent = ledger.multicast(stream).upto(delivered.highest()).minus(told)
    findings.count(silent.total())
    for seq in silent.numbers():
        if findings.full:
            break
        findings.example(f"{each.process} skipped {MessageId(stream, seq)} without a receipt")


def _unreplaced(findings: Findings, ledger: Ledger, session: Session) -> None:
    last = session.last
    has = ledger.has(session)
    given_up = {
        stream: union(session.lost(stream, level) for level in (EXPIRED, ABANDONED, UNWANTED))
        for stream in ledger.streams
    }
    excused = ledger.covered(given_up)
    for stream, runs in last.purged.items():
        left = runs.minus(has.get(stream, _NOTHING)).minus(excused.get(stream, _NOTHING))
        findings.count(left.total())
        for seq in left.numbers():
            if findings.full:
                break
            message = MessageId(stream, seq)
            findings.example(f"{last.process} purged {message}, and has nothing that replaces it")
