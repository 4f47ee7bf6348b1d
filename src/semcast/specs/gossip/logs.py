"""What loggers keep, and for how long: Sun 2000, 5.2, and what senders may forget."""

from collections import Counter
from collections.abc import Iterator

from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.gossip.kinds import (
    ADMIT,
    BLOCKED,
    CLOSED,
    COLLECT,
    COMPACTED,
    EXPIRED,
    FORGOT,
    JOINED,
    KEPT,
    LETGO,
    LIMITS,
    LOG,
    LOGGER,
    OPENED,
    STABLE,
    START,
)
from semcast.specs.gossip.ledger import Ledger, Log, Session, ledger_of
from semcast.specs.runs import Runs, union
from semcast.specs.verdict import Findings, Verdict, unknown

_NOTHING = Runs()


def gossip_logged(history: History) -> Verdict:
    """What a sender that is there at the end multicast was logged, by so many loggers as were asked for.

    As with `gossip_durable`, by one of them where messages expire: the others are told that it has.
    """
    ledger = ledger_of(history)
    if not history.info.quiesced:
        return unknown("gossip_logged", "the run was not over")
    if not ledger.running or ledger.disk_lost:
        return unknown("gossip_logged", "no logger is there, or a disk was lost")
    findings = Findings("gossip_logged")
    enough = 1 if any(LIMITS in log.retention for log in ledger.logs) else ledger.log_acks
    for process in history.processes:
        if any(row.kind in GONE for row in history.of(process)):
            continue
        logged = _by_enough([log.logged.get(process, _NOTHING) for log in ledger.logs], enough)
        _count(findings, process, ledger.multicast(process).minus(logged), "is in too few logs")
    return findings.verdict()


def gossip_durable(history: History) -> Verdict:
    """A sender forgets only what is on enough disks; who starts again has all that was on its own.

    A program that is told that its batch is logged forgets it, too.

    A logger that was told by another why it will never have a message has it on disk in that sense: so only
    what no logger had counts, where a disk was lost or messages expire.
    """
    ledger = ledger_of(history)
    findings = Findings("gossip_durable")
    excused = ledger.disk_lost or any(LIMITS in log.retention for log in ledger.logs)
    enough = 1 if excused else ledger.log_acks
    for stream, rows in _let_go(history).items():
        disks: dict[str, Runs] = {}
        for row in rows:
            if row.kind is LETGO:
                early = _on_too_few(row, disks, enough)
                _count(findings, stream, early, "was forgotten by its sender before it was logged")
            else:
                disk = row.process.name if enough > 1 else ""
                disks.setdefault(disk, Runs()).add(row.seq, row.last)
    for opened, log, owed in ledger.recovered:
        kept: dict[MemberId, Runs] = {}
        for row in history.of(opened.process):
            if row.kind is KEPT and row.sender is not None:
                kept.setdefault(row.sender, Runs()).add(row.seq, row.last)
        for stream, runs in owed.items():
            _count(
                findings, stream, runs.minus(kept.get(stream, _NOTHING)), f"is not on {log.logger} any more"
            )
    return findings.verdict()


def gossip_closed(history: History) -> Verdict:
    """All loggers agree on where a stream ended, for ever. What a disk knew that was lost does not count."""
    findings = Findings("gossip_closed")
    of_lost = _of_logs(history, {log for log in ledger_of(history).logs if log.gone})
    ends: dict[MemberId, Event] = {}
    for row in history.events:
        if row.kind is CLOSED and row.sender is not None and row.process not in of_lost:
            first = ends.setdefault(row.sender, row)
            if first.seq != row.seq:
                findings.count(1)
                findings.example(
                    f"{row.sender} ended with {first.seq} at {first.process}, and with {row.seq} here", row
                )
    return findings.verdict()


def gossip_forgotten(history: History) -> Verdict:
    """Where the run is over: all loggers agree whom they go on without, and none of these is there.

    What was on lost disks alone nobody knows any more, but members that were told: they remind a new log.
    """
    ledger = ledger_of(history)
    if not history.info.quiesced:
        return unknown("gossip_forgotten", "the run was not over")
    findings = Findings("gossip_forgotten")
    known: dict[str, set[str]] = {}
    of_lost = _of_logs(history, {log for log in ledger.logs if log.lost})
    for row in history.events:
        if row.kind is FORGOT and row.process not in of_lost:
            known.setdefault(row.process.name, set()).update(each.name for each in row.members or ())
    forgotten = set().union(*known.values())
    for name in ledger.running:
        for lacking in sorted(forgotten - known.get(name, set())):
            findings.count(1)
            findings.example(f"{name} still waits for {lacking}, which others have forgotten")
    for process in history.processes:
        over = any(row.kind in GONE for row in history.of(process))
        if process.name in forgotten and ledger.running and not over:
            findings.count(1)
            findings.example(f"{process} is there, though the other loggers have forgotten it")
    return findings.verdict()


def _of_logs(history: History, logs: set[Log]) -> set[MemberId]:
    """The processes that had one of these logs."""
    named = {(log.logger, log.identity) for log in logs}
    opened = [row for row in history.events if row.kind is OPENED]
    return {row.process for row in opened if (row.process.name, row.order) in named}


def gossip_admitted(history: History) -> Verdict:
    """A session that loggers admit receives nothing before as many as were asked for have it on disk.

    Compares moments of several processes, so only simulated runs are judged.
    """
    ledger = ledger_of(history)
    if history.info.seed is None or not any(row.kind is ADMIT for row in history.events):
        return unknown("gossip_admitted", "clocks cannot be compared, or no logger says whom it admitted")
    findings = Findings("gossip_admitted")
    sponsored = {row.process for row in history.events if row.kind is JOINED}  # see gossip_sponsored
    admitted: dict[MemberId, dict[str, Nanos]] = {}
    for row in history.events:
        if row.kind is ADMIT and row.members:
            admitted.setdefault(row.members[0], {}).setdefault(row.process.name, row.at)
    for row in history.events:
        other = row.sender != row.process and row.process not in sponsored
        if row.kind is START and other and row.level is not None:
            at = admitted.get(row.process, {}).values()
            if sum(1 for each in at if each <= row.at) < ledger.log_acks:
                findings.count(1)
                findings.example(f"{row.process} began before enough loggers knew of it", row)
    return findings.verdict()


def gossip_collection(history: History) -> Verdict:
    """S_GC: nothing is collected as stable before every session that started before it has it.

    Who was refused has no session, though it began with its own messages; nor has who is not admitted yet.

    Compares moments of several processes, so only simulated runs, which have one clock, are judged.
    """
    if history.info.seed is None:
        return unknown("gossip_collection", "the clocks of processes cannot be compared")
    ledger = ledger_of(history)
    if ledger.disk_lost:
        return unknown("gossip_collection", "who was owed something was lost with a disk")
    if ledger.relation.endless:
        return unknown("gossip_collection", "the obsolescence relation is not an order")
    findings = Findings("gossip_collection")
    collected = [row for row in history.events if row.kind is COLLECT and row.level == STABLE]
    for session in ledger.sessions if collected else ():
        had = ledger.had_at(session)
        for row in collected:
            _collected_early(findings, had, session, row)
    return findings.verdict()


def gossip_collected(history: History) -> Verdict:
    """Where everybody is there and the run is over, nothing that is stable is left in a log.

    And what was collected never comes back.
    """
    ledger = ledger_of(history)
    if not history.info.quiesced or not ledger.running:
        return unknown("gossip_collected", "the run was not over, or no logger is there")
    if ledger.disk_missed or ledger.leave_missed or ledger.somebody_away:
        return unknown("gossip_collected", "a disk was lost, or a session that is owed something is away")
    findings = Findings("gossip_collected")
    for log, row in ledger.readded:
        findings.count(1)
        findings.example(f"{log.logger} took in again what it had collected", row)
    for log in ledger.logs:
        if STABLE in log.retention and log.logger in ledger.running:
            for stream, runs in log.logged.items():
                left = runs.minus(log.collected.get(stream, _NOTHING))
                _count(findings, stream, left, f"is still on {log.logger}")
    return findings.verdict()


def gossip_compacted(history: History) -> Verdict:
    """Where the run is over, a log that is compacted has nothing that something in it replaces."""
    ledger = ledger_of(history)
    if not history.info.quiesced or not ledger.running or ledger.relation.endless:
        return unknown("gossip_compacted", "the run was not over, or no logger is there")
    findings = Findings("gossip_compacted")
    for log in ledger.logs:
        if COMPACTED in log.retention and log.logger in ledger.running and not log.lost:
            _still_there(findings, ledger, log)
    return findings.verdict()


def _still_there(findings: Findings, ledger: Ledger, log: Log) -> None:
    """What is replaced by something that is in the log takes room for nothing."""
    messages = ledger.relation.messages
    left = {stream: runs.minus(log.collected.get(stream, _NOTHING)) for stream, runs in log.logged.items()}
    for new in ledger.relation.sequence:
        by = messages[new]
        if by.seq in left.get(by.process, _NOTHING):
            for old in ledger.relation.replaced[new]:
                message = messages[old]
                if message.process == by.process and message.seq in left[by.process]:
                    findings.count(1)
                    findings.example(f"({message.process},{message.seq}) is still on {log.logger}")


def gossip_chains(history: History) -> Verdict:
    """What expires leaves a log after all that it replaced: nobody is given the old for the new."""
    ledger = ledger_of(history)
    if ledger.relation.endless:
        return unknown("gossip_chains", "the obsolescence relation is not an order")
    findings = Findings("gossip_chains")
    messages, replaced = ledger.relation.messages, ledger.relation.replaced
    places = {(each.process, each.seq): place for place, each in enumerate(messages)}
    for row, there in _expiring(history):
        assert row.sender is not None
        for seq in range(row.seq, row.last + 1):
            place = places.get((row.sender, seq))
            for old in () if place is None else replaced[place]:
                message = messages[old]
                if message.process == row.sender and message.seq in there:
                    findings.count(1)
                    what = f"({message.process},{message.seq}) is in the log of {row.process}"
                    findings.example(f"{what}, and what replaces it expired", row)
    return findings.verdict()


def _expiring(history: History) -> Iterator[tuple[Event, Runs]]:
    """Where messages expired, and what was left of their stream then."""
    for process in history.processes:
        there: dict[MemberId, Runs] = {}
        for row in history.of(process):
            if row.sender is not None and row.kind in (LOG, KEPT):
                there.setdefault(row.sender, Runs()).add(row.seq, row.last)
            elif row.sender is not None and row.kind is COLLECT:
                left = there.get(row.sender, _NOTHING).minus(Runs([(row.seq, row.last)]))
                there[row.sender] = left
                if row.level == EXPIRED:
                    yield row, left


def gossip_progress(history: History) -> Verdict:
    """A sender waits for loggers alone: only while it has multicast something that it has not let go."""
    findings = Findings("gossip_progress")
    for process in history.processes:
        sent = gone = 0
        for row in history.of(process):
            if row.kind is Kind.MULTICAST:
                sent = max(sent, row.last)
            elif row.kind is LETGO:
                gone = max(gone, row.last)
            elif row.kind is BLOCKED and row.level == LOGGER and sent <= gone:
                findings.count(1)
                findings.example(f"{process} waits though all it sent is logged", row)
    return findings.verdict()


def _collected_early(
    findings: Findings, had: dict[MemberId, dict[int, Nanos]], session: Session, row: Event
) -> None:
    assert row.sender is not None
    if session.over_at <= row.at:
        return
    counted = session.incarnations
    if any(each.at_most_once for each in counted):
        counted = [each for each in counted if each.end is None or each.end.at > row.at][-1:]
    owing = [each for each in counted if row.sender in each.starts]
    begun = [each.starts[row.sender].seq for each in owing if session.owed_since(each, row.sender) <= row.at]
    if not begun:
        return
    times = had.get(row.sender, {})
    owed = range(max(row.seq, min(begun) + 1), row.last + 1)
    early = Runs((seq, seq) for seq in owed if times.get(seq, row.at + 1) > row.at)
    _count(findings, row.sender, early, f"was collected before {session.name} had it")


def _by_enough(disks: list[Runs], enough: int) -> Runs:
    """What so many of several disks have."""
    if enough == 1:
        return union(disks)
    numbers = Counter(seq for runs in disks for seq in runs.numbers())
    return Runs((seq, seq) for seq in sorted(numbers) if numbers[seq] >= enough)


def _on_too_few(row: Event, disks: dict[str, Runs], enough: int) -> Runs:
    """What of these messages fewer disks had than must."""
    owed = Runs([(row.seq, row.last)])
    if enough == 1:
        return owed.minus(disks.get("", Runs()))
    held = Counter(seq for disk in disks.values() for seq in owed.numbers() if seq in disk)
    return Runs((seq, seq) for seq in owed.numbers() if held[seq] < enough)


def _let_go(history: History) -> dict[MemberId, list[Event]]:
    """Of each stream, what was written and what was let go, in the order of time; at one moment in this."""
    found: dict[MemberId, list[Event]] = {}
    for row in history.events:
        if row.kind in (LOG, KEPT, LETGO) and row.sender is not None:
            found.setdefault(row.sender, []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (row.at, row.kind is LETGO))
    return found


def _count(findings: Findings, stream: MemberId, broken: Runs, what: str) -> None:
    findings.count(broken.total())
    for seq in broken.numbers():
        if findings.full:
            break
        findings.example(f"{MessageId(stream, seq)} {what}")
        break
