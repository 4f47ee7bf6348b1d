"""Who answers whom, and when that counts."""

from collections.abc import Iterator

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import CAUSAL, TOTAL, Kind
from semcast.specs.calls.kinds import CAME, MISSED, SAID, SENT, TOLD, VIEW
from semcast.specs.calls.story import Call, CallMember, CallStory, story_of, text_of, whom
from semcast.specs.runs import Runs
from semcast.specs.verdict import Findings, Status, Verdict, unknown

Named = tuple[MemberId, int]
NO_CAUSAL_ORDER = "no causal order was asked for"


def call_replies(history: History) -> Verdict:
    """A reply answers a call that its sender delivered; one a member and call; it counts at the caller only.

    It counts if its sender was asked, had not departed, and did say it.
    """
    findings = Findings("call_replies")
    doubts: list[MemberId] = []
    story = story_of(history)
    for process, member in story.members.items():
        for key, said in member.said.items():
            asked = member.asked.get(key)
            if asked is None or asked.index > said[0].index:
                _found(findings, f"{process} answers what it was never asked", said[0])
            if len(said) > 1:
                _found(findings, f"{process} answers twice", *said[:2])
        for call in member.calls.values():
            _judge_heard(story, call, findings, doubts)
    verdict = findings.verdict()
    if doubts and verdict.status is Status.HOLDS:
        return unknown("call_replies", f"it is not known whether {doubts[0]} said what counts: not recorded")
    return verdict


def _judge_heard(story: CallStory, call: Call, findings: Findings, doubts: list[MemberId]) -> None:
    heard: dict[MemberId, Event] = {}
    departed = {whom(row): row for row in call.departed}
    for row in call.heard:
        member = whom(row)
        if member in heard:
            _found(findings, f"{member} counts twice", heard[member], row)
        heard[member] = row
        teller = story.members.get(member)
        if teller is None or call.key not in teller.said:
            if member in story.unknown:
                doubts.append(member)
            else:
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


def _apart(story: CallStory, key: Named, row: Event, other: Event) -> bool:
    """Whether who was given a request knew then that it was apart from another who had it."""
    member = story.members[row.process]
    return str(other.process) in member.parted(member.asked[key], row)


def causal_reply(history: History) -> Verdict:
    """What a member had sent or been given before it answered, the caller is given before the reply.

    As far as the caller was in the view in which the member had that; where the group has causal order. Who
    leaves in that view is not owed what it is never given, as the others go on without it.
    """
    order = history.info.only.order
    if order not in (CAUSAL, TOTAL):
        return Verdict("causal_reply", Status.HOLDS, note=NO_CAUSAL_ORDER)
    findings = Findings("causal_reply")
    story = story_of(history)
    before = {process: _before_said(member) for process, member in story.members.items()}
    for process, member in story.members.items():
        parting = _Parting(member, leaves=order == CAUSAL)
        _judge_causes(process, member, before, parting, findings)
    return findings.verdict()


class _Causes:
    """What a member had been given in one view, in this order; the same list for all that it said there."""

    def __init__(self, view: object) -> None:
        self.view = view
        self.rows: list[Event] = []


_Said = dict[Named, tuple[_Causes, int]]
"""For each request that a member answered: what it had been given in that view, and how many rows by then."""


def _before_said(member: CallMember) -> _Said:
    found: _Said = {}
    had = _Causes(None)
    for row in member.rows:
        if row.kind is VIEW and row.level == "view":
            had = _Causes((row.view, row.sender)) if had.view != (row.view, row.sender) else had
        elif row.kind in (TOLD, SENT) and row.sender is not None:
            had.rows.append(row)
        elif row.kind is SAID and row.sender is not None:
            found[row.sender, row.seq] = had, len(had.rows)
    return found


class _Lacking:
    """Of one such list: how much of it the caller was told."""

    def __init__(self) -> None:
        self.seen = 0  # so many rows were looked at
        self.rows: list[tuple[int, Event]] = []  # of these, what it was not told all of, with their places

    def upto(self, causes: _Causes, upto: int, told: dict[MemberId, Runs]) -> list[Event]:
        """What the caller has still not been told, message by message."""
        self.rows += enumerate(causes.rows[self.seen : upto], self.seen)
        self.seen = max(self.seen, upto)
        self.rows = [(place, row) for place, row in self.rows if any(_untold(row, told))]
        return [row.only(seq) for place, row in self.rows if place < upto for seq in _untold(row, told)]


class _Parting:
    """The views in which a member left, and all that it was ever told.

    Args:
        member: whose rows to read.
        leaves: whether who leaves is given only a part of its last view.
    """

    def __init__(self, member: CallMember, *, leaves: bool) -> None:
        self._left: set[object] = set()
        self._told: dict[MemberId, Runs] = {}
        view: object = None
        for row in member.rows:
            if row.kind is VIEW and row.level == "view":
                view = row.view, row.sender
            elif row.kind is Kind.LEFT and leaves:
                self._left.add(view)
        if self._left:
            for row in member.rows:
                if row.kind in (TOLD, SENT) and row.sender is not None:
                    self._told.setdefault(row.sender, Runs()).add(row.seq, row.last)

    def excuses(self, view: object, cause: Event) -> bool:
        """Whether it was never told that, and left in this view."""
        return view in self._left and any(_untold(cause, self._told))


def _untold(row: Event, told: dict[MemberId, Runs]) -> Iterator[int]:
    known = told.get(row.sender) if row.sender is not None else None
    return (seq for seq in range(row.seq, row.last + 1) if known is None or seq not in known)


def _judge_causes(
    process: MemberId,
    member: CallMember,
    before: dict[MemberId, _Said],
    parting: _Parting,
    findings: Findings,
) -> None:
    told: dict[MemberId, Runs] = {}
    lacking: dict[_Causes, _Lacking] = {}
    missed: set[object] = set()  # views of which it is not known what the caller was told
    view: object = None
    for row in member.rows:
        if row.kind is VIEW and row.level == "view":
            view = row.view, row.sender
        elif row.kind is MISSED:
            missed.add(view)
        elif row.kind in (TOLD, SENT) and row.sender is not None:
            told.setdefault(row.sender, Runs()).add(row.seq, row.last)
        elif row.kind is CAME and view not in missed:
            causes, upto = before.get(whom(row), {}).get((process, row.seq), (None, 0))
            if causes is None or causes.view != view:
                continue
            for cause in lacking.setdefault(causes, _Lacking()).upto(causes, upto, told):
                if parting.excuses(view, cause):
                    continue
                _found(findings, f"a reply of {whom(row)} comes before its cause", cause, row)


def _found(findings: Findings, reason: str, *rows: Event) -> None:
    findings.count(1)
    findings.example(reason, *rows)
