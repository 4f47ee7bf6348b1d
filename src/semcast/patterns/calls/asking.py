"""The caller's side: calls that wait for answers.

Who has to answer is settled when the caller's own request is delivered: the members of that view. Replies may
come before that, and are kept. Who is not in the next view is departed; what it says later does not count.
"""

import heapq
from collections.abc import Collection, Iterator
from typing import ClassVar

from semcast.core.ids import MemberId, Nanos
from semcast.core.views import View
from semcast.patterns.calls.envelope import ABSTAINS, ALL, ERROR, ONE, Say
from semcast.patterns.calls.notes import Notes
from semcast.patterns.calls.values import CallAnswer, CallCounts, Done, Wanted, needed

Whom = int | MemberId


class Call:
    """One that waits."""

    __slots__ = (
        "abstained",
        "answered",
        "deadline",
        "departed",
        "early",
        "errors",
        "expected",
        "number",
        "replies",
        "to",
        "view",
        "wanted",
    )

    def __init__(self, number: int, wanted: Wanted, to: Whom, deadline: Nanos | None) -> None:
        self.number = number
        self.wanted = wanted
        self.to = to
        self.deadline = deadline
        self.view: View | None = None
        self.expected: dict[MemberId, None] = {}
        """Who has to answer, once the request is delivered; of a request for one, all that had it so far."""
        self.replies: dict[MemberId, bytes] = {}
        self.errors: dict[MemberId, str] = {}
        self.departed: dict[MemberId, None] = {}
        self.abstained: dict[MemberId, None] = {}
        self.answered: set[MemberId] = set()
        """Who gave a result, or an error."""
        self.early: dict[MemberId, Say] = {}
        """What came before it was known who has to answer."""

    def open(self) -> Iterator[MemberId]:
        """Who may still answer."""
        done = self.answered
        return (
            member
            for member in self.expected
            if member not in done and member not in self.departed and member not in self.abstained
        )

    def waiting_for(self) -> int:
        """How many these are."""
        return len(self.expected) - len(self.answered) - len(self.departed) - len(self.abstained)


class Asking:
    """All calls of one member.

    Args:
        counts: what happened.
        notes: for the history.
        numbers: those of its calls, growing.
    """

    call_kind: ClassVar[type[Call]] = Call

    def __init__(self, counts: CallCounts, notes: Notes, numbers: Iterator[int]) -> None:
        self.done: list[Done] = []
        """Calls that returned since somebody looked."""
        self._counts = counts
        self._notes = notes
        self._calls: dict[int, Call] = {}
        self._deadlines: list[tuple[Nanos, int]] = []
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._calls)

    def begin(self, wanted: Wanted, to: Whom, deadline: Nanos | None) -> int:
        """Another call; returns its number."""
        number = next(self._numbers)
        self._calls[number] = self.call_kind(number, wanted, to, deadline)
        if deadline is not None:
            heapq.heappush(self._deadlines, (deadline, number))
        self._counts.called += 1
        self._notes.made(number, wanted, to)
        return number

    def abandon(self, number: int) -> None:
        """Nobody waits for it any more."""
        if self._calls.pop(number, None) is not None:
            self._counts.abandoned += 1
            self._notes.ended(number, "abandoned")

    def end(self, cause: str) -> None:
        """This member is out of its group: nobody will know what comes of its calls."""
        for number in list(self._calls):
            del self._calls[number]
            self._notes.ended(number, "left")
            self.done.append(Done(number, None, cause))
        self._deadlines.clear()

    # What is delivered

    def on_request(self, number: int, view: View) -> None:
        """The request of a call is delivered here, in this view. Who has it is told to one of its own."""
        call = self._calls.get(number)
        if call is None or call.view is not None:
            return
        call.view = view
        self._notes.delivered(number, view)
        if call.to == ONE:
            return  # `on_chosen` follows
        if call.to == ALL:
            self._expect(call, view.members)
        elif call.to in view.members:
            assert isinstance(call.to, MemberId)
            self._expect(call, (call.to,))
        else:
            assert isinstance(call.to, MemberId)
            call.expected[call.to] = None
            self._depart(call, call.to)
        self._judge(call)

    def _expect(self, call: Call, members: Collection[MemberId]) -> None:
        for member in members:
            call.expected[member] = None
            early = call.early.pop(member, None)
            if early is not None:
                self._take(call, member, early)

    def on_chosen(self, number: int, member: MemberId | None) -> None:
        """A request for one is this member's now; None if nobody is left who could have it."""
        call = self._calls.get(number)
        if call is None:
            return
        if member is not None:
            self._expect(call, (member,))
        self._judge(call, hopeless=member is None)

    def on_say(self, member: MemberId, say: Say) -> None:
        """Somebody answers, or says that it never does."""
        call = self._calls.get(say.number)
        if call is None:
            self._counts.late += 1
        elif member not in call.expected and (call.view is None or call.to == ONE):
            self._keep_early(call, member, say)
        elif member not in call.expected or member in call.departed:
            self._counts.strangers += 1
        elif member in call.answered or member in call.abstained:
            self._counts.duplicates += 1
        else:
            self._take(call, member, say)
            self._judge(call)

    def _keep_early(self, call: Call, member: MemberId, say: Say) -> None:
        """It comes before the request, or before who had it was known to be gone. One for each member."""
        call.early.setdefault(member, say)

    def _take(self, call: Call, member: MemberId, say: Say) -> None:
        if say.what == ABSTAINS:
            call.abstained[member] = None
            self._notes.heard(say.number, member, "abstains")
            return
        call.answered.add(member)
        if say.what == ERROR:
            call.errors[member] = say.body.decode(errors="replace")
        else:
            call.replies[member] = say.body
        self._notes.heard(say.number, member, "error" if say.what == ERROR else "reply")

    def on_view(self, together: Collection[MemberId]) -> None:
        """Another view: of those who were asked before, these came along."""
        for call in list(self._calls.values()):
            gone = [member for member in call.open() if member not in together]
            for member in gone:
                self._depart(call, member)
            for member in [member for member in call.early if member not in together]:
                del call.early[member]
            if gone and call.to != ONE:  # of one for one it is told who has it now
                self._judge(call)

    def _depart(self, call: Call, member: MemberId) -> None:
        call.departed[member] = None
        self._notes.departed(call.number, member)

    # The end of a call

    def _judge(self, call: Call, *, hopeless: bool = False) -> None:
        """Whether a call returns: with what it asked for, or because that cannot come any more."""
        if call.view is None:
            return
        got, waiting = len(call.answered), call.waiting_for()
        if call.to == ONE and not hopeless and not got:
            return  # the next one has it, or nobody: that is told
        need = needed(call.wanted, self._electorate(call)) if call.to == ALL else 1
        if call.wanted == "all" and call.to == ALL:
            if not waiting:
                self._return(call, "complete" if got else "too few")
        elif got >= need:
            self._return(call, "complete")
        elif got + waiting < need:
            self._return(call, "too few")

    def _electorate(self, call: Call) -> int:
        """Of how many members a majority is: those who answer calls, also if they departed."""
        return len(call.expected) - len(call.abstained)

    def _return(self, call: Call, outcome: str) -> None:
        del self._calls[call.number]
        counts = self._counts
        if outcome == "complete":
            counts.complete += 1
        elif outcome == "too few":
            counts.too_few += 1
        else:
            counts.timed_out += 1
        answer = CallAnswer(
            outcome=outcome,  # type: ignore[arg-type]
            replies=call.replies,
            errors=call.errors,
            departed=tuple(call.departed),
            missing=tuple(call.open()),
            abstained=tuple(call.abstained),
            view=call.view,
        )
        self._notes.returned(call.number, answer)
        self.done.append(Done(call.number, answer))

    # Time

    def next_at(self) -> Nanos | None:
        """When somebody has waited long enough."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._calls:
            heapq.heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def expire(self, now: Nanos) -> None:
        """Calls that have waited long enough return with what there is."""
        while (at := self.next_at()) is not None and at <= now:
            self._return(self._calls[heapq.heappop(self._deadlines)[1]], "timeout")
