"""What a program that says itself what it is through with is given by its next incarnation (R-9)."""

from collections.abc import Iterator, Sequence

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import History
from semcast.specs.gossip.kinds import EXPIRED, LIMITS, UNWANTED
from semcast.specs.gossip.ledger import Incarnation, Ledger, Session, ledger_of
from semcast.specs.runs import Runs, union
from semcast.specs.verdict import Findings, Verdict, unknown

_NOTHING = Runs()


def gossip_again(history: History) -> Verdict:
    """What a program was given, and did not say that it is through with, its next incarnation is given again.

    Or something that replaces it. And what it was told to be acknowledged is not given again. Where programs
    say themselves what they are through with; and only of what is on a disk: the rest nobody may have. Nor of
    what it sent before a logger knew of its session: no log keeps that for it.
    """
    ledger = ledger_of(history)
    if not history.info.quiesced:
        return unknown("gossip_again", "the run was not over")
    if ledger.relation.endless:
        return unknown("gossip_again", "the obsolescence relation is not an order")
    if ledger.disk_lost:
        return unknown("gossip_again", "what was acknowledged was lost with a disk")
    findings = Findings("gossip_again")
    for session in ledger.sessions:
        for former, later in _restarts(session):
            _given_again(findings, former, later)
            if session.there:
                _left_out(findings, ledger, session, former, later)
    return findings.verdict()


def _restarts(session: Session) -> Iterator[tuple[Sequence[Incarnation], Sequence[Incarnation]]]:
    """The incarnations before each restart of a session that goes on, and those after it.

    Not where a logger ended it, nor where all crashed that had taken it in while no logger was there.
    """
    found = session.incarnations
    if session.orphaned or session.dismissed:
        return
    for place in range(1, len(found)):
        if found[place - 1].explicit and not found[place].at_most_once:
            yield found[:place], found[place:]


def _given_again(findings: Findings, former: Sequence[Incarnation], later: Sequence[Incarnation]) -> None:
    told = former[-1].assured
    for stream, seq in told.items():
        again = later[0].delivered.get(stream, _NOTHING).upto(seq)
        if again.total():
            findings.count(again.total())
            message = MessageId(stream, next(again.numbers()))
            process = later[0].process
            findings.example(f"{process} was given {message} again, which it was told is acknowledged")


def _left_out(
    findings: Findings,
    ledger: Ledger,
    session: Session,
    former: Sequence[Incarnation],
    later: Sequence[Incarnation],
) -> None:
    has = ledger.covered(_together(later, ledger))
    limited = any(LIMITS in log.retention for log in ledger.logs)
    levels = [UNWANTED, EXPIRED] if limited else [UNWANTED]
    excused = ledger.covered(
        {
            stream: union(each.lost.get((stream, level), _NOTHING) for each in later for level in levels)
            for stream in ledger.streams
        }
    )
    for stream, given in former[-1].delivered.items():
        through = max(each.through.get(stream, 0) for each in former)
        if stream == former[-1].process:
            through = max(through, ledger.sent_before_admission(session, stream))
        unlogged = given.minus(ledger.kept.get(stream, _NOTHING))
        owed = given.minus(Runs([(1, through)]) if through else _NOTHING).minus(unlogged)
        lacking = owed.minus(has.get(stream, _NOTHING)).minus(excused.get(stream, _NOTHING))
        findings.count(lacking.total())
        for seq in lacking.numbers():
            if findings.full:
                break
            process = former[-1].process
            findings.example(
                f"{process} was not through with {MessageId(stream, seq)}, which does not come again"
            )


def _together(some: Sequence[Incarnation], ledger: Ledger) -> dict[MemberId, Runs]:
    """What any of them delivered."""
    return {stream: union(each.delivered.get(stream, _NOTHING) for each in some) for stream in ledger.streams}
