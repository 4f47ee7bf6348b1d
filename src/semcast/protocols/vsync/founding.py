"""The first view: agreed on by `minimum` members, before there is any membership to agree in.

Single-decree Paxos: whoever founds asks for promises, learns what was accepted before, and has the first view
accepted. Any two sets of `minimum` founders have a member in common if that is more than half of all who may
found the group, so there is one first view, however many try at once and whoever of them crashes.
"""

from random import Random

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.vsync.frames import Accept, Accepted, Ballot, Prepare, Promise
from semcast.wire.limits import MAX_MEMBERS

_FAR = 1 << 20
"""No attempt has so much higher a number than those known; who says so lies."""


class Founding:
    """One member's part in founding the group."""

    def __init__(self, me: MemberId, minimum: int, period: Nanos, rng: Random, out: Outbox) -> None:
        self._me = me
        self._minimum = minimum
        self._period = period
        self._rng = rng
        self._out = out
        self._seen: dict[MemberId, Nanos] = {}
        self._promised: Ballot | None = None
        self._accepted: Ballot | None = None
        self._accepted_members: tuple[MemberId, ...] = ()
        self._mine: Ballot | None = None
        self._promises: dict[MemberId, Promise] = {}
        self._proposal: tuple[MemberId, ...] = ()
        self._acceptances: set[MemberId] = set()
        self._next_try: Nanos = 0
        self.founded: tuple[MemberId, ...] | None = None
        """The first view, once this member has had it accepted."""

    @property
    def alone(self) -> bool:
        """Whether nobody else is needed."""
        return self._minimum == 1

    def saw(self, now: Nanos, member: MemberId) -> None:
        """Another one looks for the group and may found it."""
        if member in self._seen or len(self._seen) < MAX_MEMBERS - 1:
            self._seen[member] = now

    def tick(self, now: Nanos) -> None:
        """Try, if it is this member's turn."""
        if self.alone:
            self.founded = (self._me,)
            return
        around = self._around(now)
        if len(around) < self._minimum or now < self._next_try:
            return
        if min(around) != self._me and self._next_try == 0:
            # Let the first of them try first.
            self._next_try = now + 3 * self._period + self._rng.randrange(self._period)
            return
        if self._next_try == 0:
            self._next_try = now + self._period  # somebody may be about to start, too
            return
        self._next_try = now + 2 * self._period + self._rng.randrange(3 * self._period)
        self._prepare()

    def on_prepare(self, source: MemberId, frame: Prepare) -> None:
        """Promise, unless a higher ballot was promised."""
        if not self._plausible(frame.ballot, source) or not self._promise(frame.ballot):
            return
        self._out.send(source, Promise(frame.ballot, self._accepted, list(self._accepted_members)))

    def on_promise(self, now: Nanos, source: MemberId, frame: Promise) -> None:
        """With enough promises, propose what was accepted last, or those who are here."""
        if frame.ballot != self._mine or self._proposal:
            return
        self._promises[source] = frame
        if len(self._promises) < self._minimum:
            return
        accepted = [promise for promise in self._promises.values() if promise.accepted is not None]
        if accepted:
            last = max(accepted, key=lambda promise: promise.accepted or frame.ballot)
            self._proposal = tuple(last.members)
        else:
            self._proposal = tuple(sorted({*self._promises, *self._around(now)}))
        self._acceptances.clear()
        accept = Accept(frame.ballot, list(self._proposal))
        self._out.multicast(accept)
        self.on_accept(self._me, accept)

    def on_accept(self, source: MemberId, frame: Accept) -> None:
        """Accept, unless a higher ballot was promised."""
        distinct = len(set(frame.members)) == len(frame.members) > 0
        if not distinct or not self._plausible(frame.ballot, source) or not self._promise(frame.ballot):
            return
        self._accepted, self._accepted_members = frame.ballot, tuple(frame.members)
        if source == self._me:
            self.on_accepted(self._me, Accepted(frame.ballot))
        else:
            self._out.send(source, Accepted(frame.ballot))

    def on_accepted(self, source: MemberId, frame: Accepted) -> None:
        """With enough of them, the group is founded."""
        if frame.ballot == self._mine and self._proposal:
            self._acceptances.add(source)
            if len(self._acceptances) >= self._minimum:
                self.founded = self._proposal

    def _prepare(self) -> None:
        highest = max((0, *(ballot.number for ballot in (self._promised, self._mine) if ballot is not None)))
        ballot = Ballot(highest + 1, self._me)
        self._mine, self._proposal = ballot, ()
        self._promises.clear()
        self._out.multicast(Prepare(ballot))
        if self._promise(ballot):
            self._promises[self._me] = Promise(ballot, self._accepted, list(self._accepted_members))

    def _promise(self, ballot: Ballot) -> bool:
        if self._promised is not None and ballot < self._promised:
            return False
        self._promised = ballot
        return True

    def _plausible(self, ballot: Ballot, source: MemberId) -> bool:
        known = 0 if self._promised is None else self._promised.number
        return ballot.founder == source and ballot.number <= known + _FAR

    def _around(self, now: Nanos) -> set[MemberId]:
        """Those who looked for the group lately."""
        recently = now - 5 * self._period
        return {self._me, *(member for member, at in self._seen.items() if at >= recently)}
