"""Calls over the deliveries of a group with agreed views (Birman et al. 1991, 7.2; `docs/calls.md`).

A request is a message to the group, and so is every answer: they have their place among all other messages.
The machine is told what is delivered, in order; it says what to send and what the program has to do.

The rules, each of which a mutant breaks: who has to answer are the members of the view in which the caller
delivers its own request, not of the one in which it called; replies that come before that count; members
answer requests of earlier views, too; a majority is one of all who were asked, also of those who departed;
where too few are left the call returns at once; what somebody says after it has departed does not count.

Deviation: the paper sends replies point to point. In a causal domain that is so, too (`direct`), but for
requests for one member: everybody has to know which of them are done. In other groups replies are multicast:
they arrive in causal or total order where the group has it, and a reply and a departure cannot cross.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from typing import ClassVar

from semcast.core.events import Delivery, Merged, Rejoining, Skipped, TransitionalView, ViewChange
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.views import View
from semcast.patterns.calls.answering import Answering
from semcast.patterns.calls.asking import Asking, Whom
from semcast.patterns.calls.duties import Duties, Duty
from semcast.patterns.calls.envelope import ABSTAINS, ERROR, ONE, REPLY, Ask, Envelope, Say, encode, read
from semcast.patterns.calls.notes import Notes
from semcast.patterns.calls.values import (
    CallCounts,
    CallLimits,
    CallRequest,
    Effect,
    Forget,
    Key,
    Run,
    Wanted,
    check_wanted,
)

_SAID = {REPLY: "reply", ERROR: "error", ABSTAINS: "abstains"}
_OUTSIDERS = 4096
"""So many callers that are in no view are remembered beyond the next one: the last who called."""
_NOBODY: frozenset[MemberId] = frozenset()


class CallsFullError(Exception):
    """Too many calls of this member wait for answers."""


class Calls:
    """One member's calls, and its answers to those of others.

    Args:
        me: who this is.
        limits: how much is kept.
        notes: for the history.
        numbers: of its calls, growing; a member that leaves the group and comes back goes on with them.

    >>> from semcast.core.messages import batch_of
    >>> from semcast.core.marks import MARK
    >>> p, q = MemberId("p"), MemberId("q")
    >>> at_p, at_q = Calls(p), Calls(q)
    >>> at_q.serves = True
    >>> for each in (at_p, at_q):
    ...     each.on_delivery(0, ViewChange(View(1, (p, q))))
    >>> number = at_p.call(0, b"price?", "first")
    >>> def multicast(sender, seq):                     # what a group does
    ...     batch = batch_of(sender.me, seq, [sender.outgoing.popleft()], MARK)
    ...     for each in (at_p, at_q):
    ...         each.on_delivery(0, batch)
    >>> multicast(at_p, 1)
    >>> request = at_q.take_effects()[0].request
    >>> at_q.answer(request.key, b"99")
    >>> multicast(at_p, 2)                              # p itself answers no calls
    >>> multicast(at_q, 1)
    >>> at_p.take_effects()[0].answer.replies
    {MemberId(name='q', incarnation=0): b'99'}
    """

    asking_kind: ClassVar[type[Asking]] = Asking
    duties_kind: ClassVar[type[Duties]] = Duties

    def __init__(
        self,
        me: MemberId,
        limits: CallLimits | None = None,
        notes: Notes | None = None,
        numbers: Iterator[int] | None = None,
    ) -> None:
        limits = limits or CallLimits()
        self.me = me
        self.serves = False
        """Whether the program answers calls. Where it does not, the member says so to who asks."""
        self.counts = CallCounts()
        self.outgoing: deque[bytes] = deque()
        """What has to be multicast, each as one message with the mark, in this order."""
        self.direct = False
        """Whether answers go to the caller alone, where nobody else has to know of them."""
        self.outsiders = False
        """Whether who is in no view may call: clients of the group."""
        self.letters: deque[tuple[MemberId, bytes]] = deque()
        """What has to be sent to one member alone."""
        self.view: View | None = None
        """The view that what is delivered now belongs to."""
        self.notes = notes or Notes()
        self._limits = limits
        self._asking = self.asking_kind(self.counts, self.notes, numbers or count(1))
        self._answering = Answering(limits)
        self._duties = self.duties_kind(limits.early)
        self._present: frozenset[MemberId] = _NOBODY  # those of the view who are still together
        self._last: dict[MemberId, int] = {}  # the number of each caller's last request
        self._effects: list[Effect] = []

    # For the program

    def call(
        self, now: Nanos, body: bytes, replies: Wanted = "all", to: Whom = 0, timeout: Nanos | None = None
    ) -> int:
        """Ask the group; returns the number by which `Done` tells what came of it.

        `to` is `ALL`, `ONE`, or a member. Raises CallsFullError where too many wait already, and ValueError
        for what cannot be sent.
        """
        check_wanted(replies)
        if len(body) > self._limits.body:
            raise ValueError(f"request of {len(body)} bytes: at most {self._limits.body} are allowed")
        if len(self._asking) >= self._limits.calls:
            raise CallsFullError(f"{len(self._asking)} calls wait for answers: there is room for no more")
        number = self._asking.begin(replies, to, None if timeout is None else now + timeout)
        self.outgoing.append(encode(Ask(number, to, timeout or 0, body)))
        return number

    def abandon(self, number: int) -> None:
        """The program does not wait for this call any more."""
        self._asking.abandon(number)

    def answer(self, key: Key, body: bytes, *, error: bool = False) -> None:
        """The program answers a request that it was given."""
        request = self._answering.pop(key)
        if request is None:
            self.counts.orphaned += 1
            return
        if len(body) > self._limits.body:
            body, error = f"a reply of {len(body)} bytes: {self._limits.body} are allowed".encode(), True
        if error:
            self.counts.failed += 1
        else:
            self.counts.answered += 1
        self._say(request, ERROR if error else REPLY, body)

    def take_effects(self) -> Sequence[Effect]:
        """What the program has to know or do, since the last time."""
        found: list[Effect] = [*self._effects, *self._asking.done]
        self._effects.clear()
        self._asking.done.clear()
        return found

    def under_way(self) -> tuple[int, int]:
        """Calls that wait for answers, and requests that wait for this program's."""
        return len(self._asking), len(self._answering)

    # Time

    def next_at(self) -> Nanos | None:
        """When `expire` has something to do."""
        moments = [at for at in (self._asking.next_at(), self._answering.next_at()) if at is not None]
        return min(moments, default=None)

    def expire(self, now: Nanos) -> None:
        """Time has passed."""
        self._asking.expire(now)
        for key in self._answering.expire(now):
            self.counts.expired += 1
            self._effects.append(Forget(key))
        if len(self._duties):
            self._duties.expire(now)

    # From the group

    def on_delivery(self, now: Nanos, each: Delivery) -> None:
        """The group delivered this: what bears the mark, or anything that is no message."""
        if isinstance(each, Batch):
            for place, payload in enumerate(each.payloads):
                position = None if each.order is None else each.order + place
                self.on_envelope(now, each.sender, read(payload), position)
        elif isinstance(each, ViewChange):
            self.on_view(now, each.view)
        elif isinstance(each, TransitionalView):
            self.on_transitional(each.view.members)
        elif isinstance(each, Merged | Skipped):
            self.on_transitional((self.me,))  # others may have been elsewhere meanwhile
        elif isinstance(each, Rejoining):
            self.restart(each.member, each.cause)

    def on_envelope(
        self, now: Nanos, sender: MemberId, envelope: Envelope | None, position: int | None = None
    ) -> None:
        """A message with the mark; `position` is its place in the total order, where there is one."""
        if isinstance(envelope, Ask):
            self._on_ask(now, sender, envelope, position)
        elif isinstance(envelope, Say):
            self._on_say(now, sender, envelope)
        elif envelope is None:
            self.counts.malformed += 1

    def _on_ask(self, now: Nanos, caller: MemberId, ask: Ask, position: int | None) -> None:
        view = self.view
        if view is None:
            return  # it was sent before this member began to listen
        if ask.number <= self._last.get(caller, 0):
            self.counts.duplicates += 1
            return
        self._last[caller] = ask.number
        key = caller, ask.number
        self.notes.asked(key, view, ask.to)
        deadline = now + ask.patience if ask.patience else None
        if caller == self.me:
            self._asking.on_request(ask.number, view)
        if ask.to == ONE:
            self._on_duty(self._duties.add(key, ask, view, position, deadline, self._present), now)
        elif isinstance(ask.to, int) or ask.to == self.me:
            self._give(CallRequest(caller, ask.number, ask.body, view, deadline=deadline))

    def _on_say(self, now: Nanos, sender: MemberId, say: Say) -> None:
        key = say.caller, say.number
        if say.caller == self.me:
            self.notes.came(say.number, sender)
            self._asking.on_say(sender, say)
        duty = self._duties.on_say(key, sender, say.what, self._present)
        if duty is not None:
            self._on_duty(duty, now)

    def _on_duty(self, duty: Duty, now: Nanos) -> None:
        """A request for one is another's than before."""
        key, chosen = duty.key, duty.chosen
        if chosen is None:
            self._duties.drop(key)
        else:
            self.notes.chosen(key, chosen)
        if key[0] == self.me:
            self._asking.on_chosen(key[1], chosen)
        if chosen == self.me and (duty.deadline is None or now < duty.deadline):
            former = tuple(duty.former)
            self.counts.taken_over += bool(former)
            ask = duty.ask
            self._give(CallRequest(key[0], key[1], ask.body, duty.view, True, former, duty.deadline))
        if self._duties.size > self._limits.request_bytes:
            self._duties.drop(key)  # nobody takes it over from here

    def _give(self, request: CallRequest) -> None:
        """It is this member's to answer."""
        key = request.key
        self.counts.asked += 1
        if not self.serves:
            self.counts.abstained += 1
            self._say(request, ABSTAINS, b"")
        elif key in self._answering:
            self.counts.duplicates += 1
        elif not self._answering.room_for(request.caller, len(request.payload)):
            self.counts.refused += 1
            self._say(request, ERROR, b"too many requests wait here")
        else:
            self._answering.add(request)
            self.notes.run(key)
            self._effects.append(Run(request))

    def _say(self, request: CallRequest, what: int, body: bytes) -> None:
        """CallAnswer, unless the caller is gone or too much waits to be sent."""
        key = request.key
        if key[0] not in self._present and not self.outsiders:
            self.counts.orphaned += 1
        elif len(self.outgoing) + len(self.letters) >= self._limits.unsent:
            self.counts.dropped += 1
        else:
            self.notes.said(key, _SAID[what])
            said = encode(Say(*key, what, body))
            if self.direct and not request.one:
                self.letters.append((key[0], said))
            else:
                self.outgoing.append(said)

    # Views

    def on_transitional(self, members: Collection[MemberId]) -> None:
        """What still comes is of the view so far, and only these go on together."""
        self._present &= frozenset(members)
        if self.view is not None:
            self.notes.view("transitional", self.view, sorted(self._present))

    def on_view(self, now: Nanos, view: View) -> None:
        """Another view. Who was asked before and did not come along is departed."""
        members = frozenset(view.members)
        together = self._present & members if self.view is not None else _NOBODY
        there = together
        if self.outsiders and self.view is not None:
            outside = [caller for caller in self._last if caller not in self.view.members]
            there = together.union(outside[-_OUTSIDERS:])
        self.view, self._present = view, members
        self.notes.view("view", view, sorted(together))
        self._last = {caller: last for caller, last in self._last.items() if caller in there}
        self._asking.on_view(together)
        for key in self._answering.of_others(there):
            self._drop_request(key)
        for duty in self._duties.on_view(together):
            self._on_duty(duty, now)

    def _drop_request(self, key: Key) -> None:
        """Its caller is gone. What the program does meanwhile is for nobody."""
        self._answering.pop(key)
        self._effects.append(Forget(key))

    # The end

    def restart(self, member: MemberId, cause: str) -> None:
        """The group went on without this member, which comes back as another: nothing is known any more."""
        self.end(f"{self.me} was put out of the group before it was answered: {cause}")
        self.me = member
        self.view, self._present = None, _NOBODY
        self._last.clear()

    def end(self, cause: str) -> None:
        """This member is out of the group: its calls end, and it answers no others."""
        self._asking.end(cause)
        self._duties.clear()
        self._effects += [Forget(key) for key in self._answering.clear()]
        self.outgoing.clear()
        self.letters.clear()
