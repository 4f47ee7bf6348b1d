"""What a call has come to when it returns, and that it does."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.specs.calls.story import Call, CallMember, story_of, whom
from semcast.specs.verdict import Findings, Verdict


def call_complete(history: History) -> Verdict:
    """A call returns with as many answers as were asked for, or says rightly that so many cannot come.

    Those who have to answer are the members of the view in which the caller delivers its request. Of all,
    each has answered or departed. Who departed was gone from a view. A call that waits until its time is over
    was right to wait, and what had come by then counts. At rest every call has returned.
    """
    findings = Findings("call_complete")
    story = story_of(history)
    for process, member in story.members.items():
        for call in member.calls.values():
            if call.returned is not None:
                _judge(member, call, call.returned, findings)
            elif history.info.quiesced and process in story.alive:
                _found(findings, f"call {call.made.seq} of {process} never returns", call.made)
    return findings.verdict()


def _judge(member: CallMember, call: Call, returned: Event, findings: Findings) -> None:
    if call.delivered is not None and call.delivered.members != call.expected:
        _found(findings, "others are expected to answer than were asked", call.delivered, returned)
    for row in call.departed:
        gone = whom(row) not in call.expected
        if not gone and call.asked is not None:
            gone = str(whom(row)) in member.parted(call.asked, row)
        if not gone:
            _found(findings, f"{whom(row)} is called departed, and is there", row, returned)
    if returned.level in ("left", "abandoned"):
        return
    if returned.level == "timeout" and call.asked is None:
        return
    apart = member.parted(call.asked, returned) if call.whom == "one" and call.asked is not None else set()
    _judge_count(call, returned, apart, findings)


def _judge_count(call: Call, returned: Event, apart: set[str], findings: Findings) -> None:
    heard = {whom(row): row for row in call.heard if row.index < returned.index}
    abstained = {who for who, row in heard.items() if row.level == "abstains"}
    got = len(heard) - len(abstained)
    departed = {whom(row) for row in call.departed if row.index < returned.index}
    possible = _asked(call)
    waiting = [who for who in possible if who not in heard and who not in departed and str(who) not in apart]
    need = _need(call, len(possible) - len(abstained))
    everybody = call.wanted == "all" and call.whom == "all"
    ended = not waiting if everybody else got >= need or got + len(waiting) < need
    good = got > 0 and ended if everybody else got >= need
    if returned.level == "complete" and not good:
        lacks = f"{got} of {need} answers"
        _found(findings, f"a call is called complete with {lacks}", *call.heard[:3], returned)
    elif returned.level == "too few" and (good or not ended):
        _found(findings, "a call is given up though enough can answer", returned)
    elif returned.level == "timeout":
        if ended:
            _found(findings, "a call waits for what cannot come, or has come", returned)
        _judge_missing(call, returned, set(heard), findings)


def _judge_missing(call: Call, returned: Event, heard: set[MemberId], findings: Findings) -> None:
    """What came before the time was over counts, unless its sender had departed."""
    departed = {whom(row): row.index for row in call.departed}
    for row in call.came:
        who = whom(row)
        late = row.index > returned.index or departed.get(who, row.index) < row.index
        if not late and who in _asked(call) and who not in heard and call.whom != "one":
            _found(findings, f"a reply of {who} came, and does not count", row, returned)


def _asked(call: Call) -> tuple[MemberId, ...]:
    """Who could answer: of a request for one, anybody."""
    if call.whom in ("all", "one"):
        return call.expected
    return tuple(member for member in call.expected if str(member) == call.whom)


def _need(call: Call, members: int) -> int:
    if call.whom != "all" or call.wanted == "first":
        return 1
    if call.wanted == "majority":
        return members // 2 + 1
    return members if call.wanted == "all" else int(call.wanted)


def _found(findings: Findings, reason: str, *rows: Event) -> None:
    findings.count(1)
    findings.example(reason, *rows)
