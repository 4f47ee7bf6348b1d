"""Whether members that sponsors took in began where they had to (Sun 2000, 5.3, property 5.2)."""

from semcast.core.ids import MemberId, Nanos
from semcast.history.events import Event, History
from semcast.specs.gossip.kinds import ADMIT, AT_MOST_ONCE, JOINED, SPONSORS, START, VOUCHED
from semcast.specs.verdict import Findings, Verdict

_Words = dict[MemberId, dict[MemberId, list[int]]]
"""What each sponsor said of each stream."""


def gossip_sponsored(history: History) -> Verdict:
    """Who sponsors took in has as many as are set, each of them a member itself, and starts at t_join.

    That is after what each of its sponsors had heard of when it was first asked, and not after anything that
    none of them had heard of: so nothing that comes after it is skipped. What answered another attempt, or
    another incarnation, does not count. Live, sponsors that were not recorded are not judged.
    """
    findings = Findings("gossip_sponsored")
    words = _words(history)
    for process in history.processes:
        joined = [row for row in history.of(process) if row.kind is JOINED]
        for row in joined:
            _judge(findings, history, row, words.get((process, row.order or 0), {}))
    admitted = {member for row in history.events if row.kind is ADMIT for member in row.members or ()}
    for process in history.processes:
        _was_member(findings, history, process, admitted)
    return findings.verdict()


def _words(history: History) -> dict[tuple[MemberId, int], _Words]:
    """By newcomer and attempt."""
    found: dict[tuple[MemberId, int], _Words] = {}
    began: dict[tuple[MemberId, int, MemberId], Nanos] = {}
    for row in history.events:
        if row.kind is VOUCHED and row.members and row.sender is not None:
            attempt = row.members[0], row.order or 0
            words = found.setdefault(attempt, {}).setdefault(row.process, {})
            first = began.setdefault((*attempt, row.process), row.at)
            # Of a stream that its first answer does not name, a sponsor had heard nothing then.
            words.setdefault(row.sender, [] if row.at == first else [0]).append(row.seq)
    return found


def _judge(findings: Findings, history: History, joined: Event, words: _Words) -> None:
    sponsors = joined.members or ()
    if joined.level == SPONSORS and len(set(sponsors)) < joined.seq:
        findings.count(1)
        findings.example(f"{joined.process} joined with {len(sponsors)} of {joined.seq} sponsors", joined)
    for sponsor in sponsors:
        recorded = history.info.seed is not None or sponsor in history.processes
        if recorded and sponsor not in words:
            findings.count(1)
            findings.example(f"{sponsor} has not taken in {joined.process} as of that attempt", joined)
    if any(sponsor not in words for sponsor in sponsors):
        return
    said = [words[sponsor] for sponsor in sponsors]
    for start in history.of(joined.process):
        if start.kind is START and start.sender != joined.process and start.at >= joined.at:
            _judge_start(findings, start, said)


def _judge_start(findings: Findings, start: Event, said: list[dict[MemberId, list[int]]]) -> None:
    assert start.sender is not None
    words = [each[start.sender] for each in said if start.sender in each]
    least = max((min(each) for each in words), default=0)
    most = max((max(each) for each in words), default=0)
    if start.level == AT_MOST_ONCE and start.process.incarnation:
        most = max(most, start.seq)  # the sender itself said so, later
    if not least <= start.seq <= most:
        findings.count(1)
        wrong = "earlier" if start.seq < least else "later"
        findings.example(f"{start.process} starts {wrong} with {start.sender} than its sponsors said", start)


def _was_member(findings: Findings, history: History, process: MemberId, admitted: set[MemberId]) -> None:
    """Pending members never sponsor."""
    for row in history.of(process):
        if row.kind is JOINED:
            return
        if row.kind is VOUCHED and process not in admitted:
            findings.count(1)
            findings.example(f"{process} took in {row.members}, and was no member itself", row)
            return
