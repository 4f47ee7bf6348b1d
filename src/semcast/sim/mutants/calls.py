"""Broken calls: one rule each, and the property that must catch it."""

from collections.abc import Collection
from typing import ClassVar

from semcast.core.ids import MemberId, Nanos
from semcast.core.views import View
from semcast.patterns.calls import MARK, CallRequest, Calls, Key, Say, Wanted, read
from semcast.patterns.calls.asking import Asking, Call, Whom
from semcast.patterns.calls.duties import Duties, Duty
from semcast.patterns.calls.values import needed
from semcast.sim.calling import Calling
from semcast.sim.mutants.mutant import Mutant


class _WhenMade(Asking):
    view_now: View | None = None

    def begin(self, wanted: Wanted, to: Whom, deadline: Nanos | None) -> int:
        number = super().begin(wanted, to, deadline)
        if self.view_now is not None:
            super().on_request(number, self.view_now)
        return number


class ExpectedWhenMade(Calls):
    """Those have to answer who were there when the program called."""

    asking_kind: ClassVar[type[Asking]] = _WhenMade

    def on_view(self, now: Nanos, view: View) -> None:
        super().on_view(now, view)
        assert isinstance(self._asking, _WhenMade)
        self._asking.view_now = view


class _DropsEarly(Asking):
    def _keep_early(self, call: Call, member: MemberId, say: Say) -> None:  # noqa: ARG002
        self._counts.strangers += 1


class EarlyRepliesDropped(Calls):
    """What comes before the caller's own request is thrown away."""

    asking_kind: ClassVar[type[Asking]] = _DropsEarly


class AnswersOnlyInItsView(Calls):
    """Who is asked in one view does not answer in the next."""

    def on_view(self, now: Nanos, view: View) -> None:
        super().on_view(now, view)
        self._answering.clear()


class _OfThoseLeft(Asking):
    def _electorate(self, call: Call) -> int:
        return super()._electorate(call) - len(call.departed)


class MajorityOfThoseLeft(Calls):
    """A majority is one of the members that have not departed."""

    asking_kind: ClassVar[type[Asking]] = _OfThoseLeft


class _Hopes(Asking):
    def _judge(self, call: Call, *, hopeless: bool = False) -> None:
        possible = len(call.answered) + call.waiting_for()
        needs = needed(call.wanted, len(call.expected))
        if call.view is not None and call.wanted != "all" and possible < needs:
            return
        super()._judge(call, hopeless=hopeless)


class WaitsForTheImpossible(Calls):
    """A call goes on waiting though too few are left who could answer."""

    asking_kind: ClassVar[type[Asking]] = _Hopes


class _Forgives(Asking):
    def on_say(self, member: MemberId, say: Say) -> None:
        call = self._calls.get(say.number)
        if call is not None and member in call.departed and member not in call.answered:
            self._take(call, member, say)
            self._judge(call)
            return
        super().on_say(member, say)


class RepliesOfDepartedCounted(Calls):
    """What somebody says after it has departed counts."""

    asking_kind: ClassVar[type[Asking]] = _Forgives


class RepliesToOthersCounted(Calls):
    """A reply counts whoever it is for: numbers are the same at all callers."""

    def _on_say(self, now: Nanos, sender: MemberId, say: Say) -> None:
        super()._on_say(now, sender, say)
        if say.caller != self.me:
            self._asking.on_say(sender, say)


class AnswersTwice(Calls):
    """Who is asked answers again when the view changes, to be sure."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self._answers: dict[Key, tuple[CallRequest, bytes]] = {}

    def answer(self, key: Key, body: bytes, *, error: bool = False) -> None:
        request = self._answering.get(key)
        if request is not None:
            self._answers[key] = request, body
        super().answer(key, body, error=error)

    def on_view(self, now: Nanos, view: View) -> None:
        super().on_view(now, view)
        for request, body in self._answers.values():
            self._say(request, 0, body)
        self._answers.clear()


class TransitionalIgnored(Calls):
    """Who is in the next view came along, whatever happened to it in between."""

    def on_transitional(self, members: Collection[MemberId]) -> None:
        """Nothing."""


class _NobodyElse(Duty):
    def choose(self, present: Collection[MemberId]) -> None:
        if self.chosen is None or self.chosen in self.abstained:
            super().choose(present)


class _NoSuccessors(Duties):
    duty_kind: ClassVar[type[Duty]] = _NobodyElse


class NobodyTakesOver(Calls):
    """A request for one stays with the one who had it first, and waits for it."""

    duties_kind: ClassVar[type[Duties]] = _NoSuccessors


class _Everybody(Duties):
    me: MemberId | None = None

    def add(self, key: Key, *args: object) -> Duty:
        duty = super().add(key, *args)  # type: ignore[arg-type]
        if self.me in duty.candidates and key[1] % 2:
            duty.chosen = self.me
        return duty


class ChosenByEach(Calls):
    """Each member works out for itself who has a request for one, and thinks of itself first."""

    duties_kind: ClassVar[type[Duties]] = _Everybody

    def on_view(self, now: Nanos, view: View) -> None:
        assert isinstance(self._duties, _Everybody)
        self._duties.me = self.me
        super().on_view(now, view)


class RepliesOvertake(Calling):
    """Answers are sent before what the program had sent earlier."""

    def _collect(self) -> None:
        while self.machine.outgoing:
            payload = self.machine.outgoing.popleft()
            if isinstance(read(payload), Say):
                self.queue.appendleft((payload, MARK))
            else:
                self.queue.append((payload, MARK))


MUTANTS: dict[str, Mutant] = {
    "expected-when-made": Mutant(calls=ExpectedWhenMade),
    "early-replies-dropped": Mutant(calls=EarlyRepliesDropped, by_chance=False),
    "answers-only-in-its-view": Mutant(calls=AnswersOnlyInItsView),
    "majority-of-those-left": Mutant(calls=MajorityOfThoseLeft),
    "waits-for-the-impossible": Mutant(calls=WaitsForTheImpossible),
    "replies-of-departed-counted": Mutant(calls=RepliesOfDepartedCounted, by_chance=False),
    "replies-to-others-counted": Mutant(calls=RepliesToOthersCounted),
    "answers-twice": Mutant(calls=AnswersTwice),
    "transitional-ignored": Mutant(calls=TransitionalIgnored),
    "nobody-takes-over": Mutant(calls=NobodyTakesOver),
    "chosen-by-each": Mutant(calls=ChosenByEach),
    "replies-overtake": Mutant(RepliesOvertake),
}
