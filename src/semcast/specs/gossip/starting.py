"""Whether sessions that were new began where they asked to.

Compares moments of several processes, so only simulated runs, which have one clock, are judged; and only
those with one log that was never lost: else nobody can say what a session could have been given.
"""

from collections.abc import Iterator

from semcast.core.ids import MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.gossip.kinds import ALL, BEGIN, COLLECT, COMPACTED, LOG, NEW, PLACED, POSITION, TIME
from semcast.specs.gossip.ledger import Incarnation, ledger_of
from semcast.specs.runs import Runs
from semcast.specs.verdict import Findings, Verdict, unknown

_NOTHING = Runs()


def gossip_beginning(history: History) -> Verdict:
    """A session that is new starts where it asked to, with the streams that its logger knew."""
    ledger = ledger_of(history)
    if history.info.seed is None or len(ledger.logs) != 1:
        return unknown("gossip_beginning", "clocks cannot be compared, or there is not one log")
    findings = Findings("gossip_beginning")
    for session in ledger.sessions:
        first = session.incarnations[0]
        asked = next((row for row in history.of(first.process) if row.kind is BEGIN), None)
        if asked is None or first.at_most_once or first.sponsors:
            continue
        admitted = _admitted(first, asked)
        for stream, start in first.starts.items():
            if start.at == admitted and stream != first.process:
                _judge(findings, history, asked, start)
    return findings.verdict()


def _admitted(first: Incarnation, asked: Event) -> int | None:
    """When it was told where streams start, if it was."""
    times = [start.at for stream, start in first.starts.items() if stream != first.process]
    return min((at for at in times if at > asked.at), default=None)


def _judge(findings: Findings, history: History, asked: Event, start: Event) -> None:
    assert start.sender is not None
    for seq, owed in _bounds(history, asked, start):
        if owed is not (seq > start.seq):
            findings.count(1)
            message = MessageId(start.sender, seq)
            wrong = "is not owed" if owed else "is owed"
            asks = f"{start.process} asked to start with {asked.level} {asked.order}"
            findings.example(f"{asks}, and {message} {wrong}", start)


def _bounds(history: History, asked: Event, start: Event) -> Iterator[tuple[int, bool]]:
    """Messages of a stream of which it is certain whether they are owed.

    Of what was collected nothing is certain: it may have left before the session was admitted.
    """
    assert start.sender is not None
    stream = start.sender
    rows = [row for row in history.events if row.sender == stream]
    gone = Runs((row.seq, row.last) for row in rows if row.kind is COLLECT and row.at <= start.at)
    before = [row for row in rows if row.kind in (LOG, PLACED) and row.at <= start.at]
    logged = Runs((row.seq, row.last) for row in before if row.kind is LOG).minus(gone)
    if asked.level in (ALL, COMPACTED):
        yield from ((seq, True) for seq in logged.numbers())
    elif asked.level == NEW:
        placed = [row for row in before if row.kind is PLACED and row.at < asked.at]
        yield from ((seq, False) for row in placed for seq in range(row.seq, row.last + 1))
        yield from ((seq, True) for seq in _multicast_after(rows, start))
    elif asked.level in (POSITION, TIME):
        yield from _after(rows, before, logged, asked)


def _after(rows: list[Event], before: list[Event], logged: Runs, asked: Event) -> Iterator[tuple[int, bool]]:
    assert asked.order is not None
    there = set(logged.numbers())
    sent = {row.seq: row.at for row in rows if row.kind is Kind.MULTICAST}
    for row in before:
        if row.kind is not PLACED or row.order is None:
            continue
        for place in range(row.count):
            seq = row.seq + place
            if asked.level == POSITION:
                earlier, later = row.order + place < asked.order, row.order + place >= asked.order
            else:
                earlier, later = row.at < asked.order, sent.get(seq, -1) >= asked.order
            if earlier and row.at < asked.at:
                yield seq, False
            elif later and seq in there:
                yield seq, True


def _multicast_after(rows: list[Event], start: Event) -> Iterator[int]:
    for row in rows:
        if row.kind is Kind.MULTICAST and row.at > start.at:
            yield from range(row.seq, row.last + 1)
