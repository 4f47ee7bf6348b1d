"""Requests for one member: whose each is, the same at all members, with no message about it.

A request has a position: its place in the total order where there is one, else its number at the caller,
shifted by the caller's name. The members of the view in which it is delivered, from that position on, may
have it one after the other: the first has it, and the next follows when that one is gone from the view or
says that it answers no calls. Members that go on together have delivered the same requests and answers before
the next view, so they agree.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator
from typing import ClassVar
from zlib import crc32

from semcast.core.ids import MemberId, Nanos
from semcast.core.views import View
from semcast.patterns.calls.envelope import ABSTAINS, Ask
from semcast.patterns.calls.values import Key


class Duty:
    """One request, from its delivery to its answer."""

    __slots__ = ("abstained", "ask", "candidates", "chosen", "deadline", "former", "key", "view")

    def __init__(
        self, key: Key, ask: Ask, view: View, deadline: Nanos | None, candidates: tuple[MemberId, ...]
    ) -> None:
        self.key = key
        self.ask = ask
        self.view = view
        self.deadline = deadline
        self.candidates = candidates
        """Who may still have it, in this order."""
        self.chosen: MemberId | None = None
        self.former: list[MemberId] = []
        """Who had it and is gone."""
        self.abstained: set[MemberId] = set()

    def choose(self, present: Collection[MemberId]) -> None:
        """The first of those who are here and answer calls."""
        left = tuple(
            member for member in self.candidates if member in present and member not in self.abstained
        )
        self.candidates = left
        if self.chosen in left:
            return
        if self.chosen is not None and self.chosen not in self.abstained:
            self.former.append(self.chosen)
        self.chosen = left[0] if left else None


class Duties:
    """All requests for one that are not answered yet.

    Args:
        early: answers that are remembered at most where the request has not come yet.
    """

    duty_kind: ClassVar[type[Duty]] = Duty

    def __init__(self, early: int) -> None:
        self._most_early = early
        self._open: dict[Key, Duty] = {}
        self._early: OrderedDict[tuple[Key, MemberId], bool] = OrderedDict()
        self.size = 0
        """Bytes of the requests."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Duty]:
        return iter(list(self._open.values()))

    def add(
        self,
        key: Key,
        ask: Ask,
        view: View,
        position: int | None,
        deadline: Nanos | None,
        present: Collection[MemberId],
    ) -> Duty:
        """A request is delivered in a view of which these are still together."""
        members = view.members
        first = self.place(key, position) % len(members)
        duty = self.duty_kind(key, ask, view, deadline, members[first:] + members[:first])
        duty.abstained.update(member for member in members if self._early.pop((key, member), None))
        duty.choose(present)
        self._open[key] = duty
        self.size += len(ask.body)
        return duty

    @staticmethod
    def place(key: Key, position: int | None) -> int:
        """The position of a request."""
        return crc32(key[0].name.encode()) + key[1] if position is None else position

    def on_say(self, key: Key, member: MemberId, what: int, present: Collection[MemberId]) -> Duty | None:
        """A member answers, or says that it never does; returns the request if it is another's now."""
        duty = self._open.get(key)
        if duty is None:
            if what == ABSTAINS:
                self._early[key, member] = True
                if len(self._early) > self._most_early:
                    self._early.popitem(last=False)
            return None
        if what == ABSTAINS:
            duty.abstained.add(member)
            if member != duty.chosen:
                return None
            duty.choose(present)
            return duty
        if member == duty.chosen:
            self.drop(key)
        return None

    def on_view(self, together: Collection[MemberId]) -> Iterator[Duty]:
        """Another view, in which these came along: requests that are another's now, or nobody's."""
        for duty in self:
            if duty.key[0] not in together:
                self.drop(duty.key)
                continue
            before = duty.chosen
            duty.choose(together)
            if duty.chosen != before:
                yield duty

    def expire(self, now: Nanos) -> None:
        """Nobody waits for these any more."""
        for duty in self:
            if duty.deadline is not None and duty.deadline <= now:
                self.drop(duty.key)

    def drop(self, key: Key) -> None:
        """It is answered, or nobody is left who could."""
        duty = self._open.pop(key, None)
        if duty is not None:
            self.size -= len(duty.ask.body)

    def clear(self) -> None:
        """This member is another one now, and has nothing to do with them."""
        self._open.clear()
        self._early.clear()
        self.size = 0
