"""Who answers whom, and when that counts."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import CAUSAL, TOTAL
from semcast.specs.calls.kinds import CAME, SAID, SENT, TOLD, VIEW
from semcast.specs.calls.story import Call, Member, Story, story_of, text_of, whom
from semcast.specs.verdict import Findings, Status, Verdict

Named = tuple[MemberId, int]
NO_CAUSAL_ORDER = "no causal order was asked for"


def call_replies(history: History) -> Verdict:
    """A reply answers a call that its sender delivered; one a member and call; it counts at the caller only.

    It counts if its sender was asked, had not departed, and did say it.
    """
    findings = Findings("call_replies")
    story = story_of(history)
    for process, member in story.members.items():
        for key, said in member.said.items():
            asked = member.asked.get(key)
            if asked is None or asked.index > said[0].index:
                _found(findings, f"{process} answers what it was never asked", said[0])
            if len(said) > 1:
                _found(findings, f"{process} answers twice", *said[:2])
        for call in member.calls.values():
            _judge_heard(story, call, findings)
    return findings.verdict()


def _judge_heard(story: Story, call: Call, findings: Findings) -> None:
    heard: dict[MemberId, Event] = {}
    departed = {whom(row): row for row in call.departed}
    for row in call.heard:
        member = whom(row)
        if member in heard:
            _found(findings, f"{member} counts twice", heard[member], row)
        heard[member] = row
        teller = story.members.get(member)
        if teller is None or call.key not in teller.said:
            _found(findings, f"{member} said nothing to this call, and it counts", row)
        if call.asked is not None and member not in call.expected:
            _found(findings, f"{member} was not asked, and its reply counts", row)
        if member in departed and departed[member].index < row.index:
            _found(findings, f"{member} had departed, and its reply counts", departed[member], row)


def call_one(history: History) -> Verdict:
    """A request for one is one member's: another has it only once it knows that it is apart from that one.

    Who says that it answers no calls counts as apart.
    """
    findings = Findings("call_one")
    story = story_of(history)
    runs: dict[Named, list[Event]] = {}
    for member in story.members.values():
        for key, rows in member.runs.items():
            asked = member.asked.get(key)
            if asked is not None and text_of(asked) == "one":
                if len(rows) > 1:
                    _found(findings, "a program is given a request twice", *rows[:2])
                runs.setdefault(key, []).append(rows[0])
    for key, rows in runs.items():
        for place, row in enumerate(rows):
            for other in rows[:place]:
                if not (_apart(story, key, row, other) or _apart(story, key, other, row)):
                    _found(findings, f"{row.process} and {other.process} both have it", other, row)
    return findings.verdict()


def _apart(story: Story, key: Named, row: Event, other: Event) -> bool:
    """Whether who was given a request knew then that it was apart from another who had it."""
    member = story.members[row.process]
    return str(other.process) in member.parted(member.asked[key], row)


def causal_reply(history: History) -> Verdict:
    """What a member had sent or been given before it answered, the caller is given before the reply.

    As far as the caller was in the view in which the member had that; where the group has causal order.
    """
    order = history.info.only.order
    if order not in (CAUSAL, TOTAL):
        return Verdict("causal_reply", Status.HOLDS, note=NO_CAUSAL_ORDER)
    findings = Findings("causal_reply")
    story = story_of(history)
    before = {process: _before_said(member) for process, member in story.members.items()}
    for process, member in story.members.items():
        told: set[Named] = set()
        view: tuple[object, ...] | None = None
        for row in member.rows:
            if row.kind is VIEW and row.level == "view":
                view = row.view, row.sender
            elif row.kind in (TOLD, SENT) and row.sender is not None:
                told.add((row.sender, row.seq))
            elif row.kind is CAME:
                causes, said_in = before.get(whom(row), {}).get((process, row.seq), ([], None))
                if said_in != view:
                    continue
                for name, had_in, cause in causes:
                    if had_in == view and name not in told:
                        _found(findings, f"a reply of {whom(row)} comes before its cause", cause, row)
    return findings.verdict()


_Had = list[tuple[Named, object, Event]]


def _before_said(member: Member) -> dict[Named, tuple[_Had, object]]:
    """For each request that a member answered: what it had been given by then, and in which views."""
    had: _Had = []
    found: dict[Named, tuple[_Had, object]] = {}
    view: object = None
    for row in member.rows:
        if row.kind is VIEW and row.level == "view":
            view = row.view, row.sender
        elif row.kind in (TOLD, SENT) and row.sender is not None:
            had.append(((row.sender, row.seq), view, row))
        elif row.kind is SAID and row.sender is not None:
            found[row.sender, row.seq] = ([each for each in had if each[1] == view], view)
    return found


def _found(findings: Findings, reason: str, *rows: Event) -> None:
    findings.count(1)
    findings.example(reason, *rows)
