"""A view that does not follow from one that its members are in: the first, or one after the last was lost.

The *first* is agreed on by `minimum` founders. One *after* view v, of which everybody here has heard, is
agreed on when nobody is left in v: every name of v is here again, in no view. Both by single-decree Paxos:
whoever founds asks for promises, learns what was accepted before, and has the view accepted. Acceptors are
names: who comes back stands for who went.

Any two sets of `minimum` founders have a member in common if that is more than half of all who may found the
group, so there is one first view, however many try at once and whoever of them crashes: if they remember what
they promised, that is, with a disk, or as long as a majority of them never forgets at once. After a view all
its names must agree, so any one that remembers is enough. Who has heard of a view never founds the first.
Who is a member of the last view, as this very incarnation, has no say in what comes after it: it was let in
and may yet enter, when a welcome comes late or its disk is done.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from random import Random

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.pieces import Courier
from semcast.protocols.vsync.frames import Accept, Accepted, Ballot, Hello, Known, Prepare, Promise
from semcast.protocols.vsync.ledger import Adopted, Agreed, Installed, Ledger, Promised, Record
from semcast.protocols.vsync.settings import Reform, VsyncSettings
from semcast.wire.limits import MAX_MEMBERS, MAX_NAME

FAR = 1 << 48
"""No view has so high a number."""
_FAR = 1 << 20
"""No attempt has so much higher a number than those known; who says so lies."""
_LATELY = 5
"""Periods for which somebody counts as being here after it was heard."""
_CROWD = 8
"""Attempts after which all of them take more time."""
_MOST_PATIENT = 16
_PAUSE = 2
"""Periods in which whoever knows of a view may say so, before anything is founded."""


class Founding:
    """One member's part.

    Args:
        me: who this is.
        settings: of the group.
        rng: where chance comes from.
        courier: sends frames.
        ledger: where promises are written down.
    """

    def __init__(
        self, me: MemberId, settings: VsyncSettings, rng: Random, courier: Courier, ledger: Ledger
    ) -> None:
        self.last: Known | None = None
        """The latest view that this member has heard of."""
        self.founded: tuple[MemberId, ...] | None = None
        """The view, once this member has had it accepted."""
        self.first: Callable[[Nanos], int] = _always_one
        """The number of a first view that this member proposes."""
        self._over = 0  # nobody is in a view of this number or a lower one
        self._me = me
        self._minimum = settings.minimum
        self._terms = settings.terms()
        self._most = settings.most_members()
        self._automatic = settings.reform is Reform.AUTOMATIC
        self._commanded = False
        self._period = settings.hello
        self._rng = rng
        self._courier = courier
        self._ledger = ledger
        self._seen: dict[MemberId, tuple[Nanos, bool]] = {}  # when, and whether it may found the group
        self._in_view_at: Nanos | None = None  # when somebody was heard who is in a view
        self._promised: Ballot | None = None
        self._accepted: Ballot | None = None
        self._accepted_members: tuple[MemberId, ...] = ()
        self._accepted_first = self._proposed_first = 1
        self._mine: Ballot | None = None
        self._promises: dict[str, Promise] = {}
        self._promisers: set[MemberId] = set()  # who made them
        self._proposal: tuple[MemberId, ...] = ()
        self._acceptances: set[str] = set()
        self._next_try: Nanos = 0
        self._records: dict[int, list[Promised | Agreed]] = {}  # of former incarnations, by what comes before

    @property
    def founds(self) -> bool:
        """Whether this member may found the group."""
        return self._minimum > 0 and self.last is None

    @property
    def named(self) -> bool:
        """Whether this very incarnation is in the last view, as others see it."""
        return self.last is not None and self._me in self.last.members

    @property
    def after(self) -> int:
        """The number of the view that is the last one; 0 if there is none yet."""
        return 0 if self.last is None else self.last.view

    @property
    def first_agreed(self) -> int:
        """The number of the first view, once that was agreed on."""
        return self._proposed_first

    # What is known

    def recover(self, records: Iterable[Record]) -> None:
        """What this member's former incarnations wrote down."""
        for record in records:
            if isinstance(record, Installed | Adopted):
                self.learn(record.known)
            else:
                self._records.setdefault(record.after, []).append(record)
        self._remember()

    def _remember(self) -> None:
        """What was promised about the view that comes next, before a crash."""
        for record in self._records.get(self.after, ()):
            self._promised = record.ballot
            if isinstance(record, Agreed):
                self._accepted, self._accepted_members = record.ballot, tuple(record.members)
                self._accepted_first = record.first

    def learn(self, known: Known) -> None:
        """There is or was such a view: what was promised before it is of no use."""
        least = max(self.after, self._over)
        if not least < known.view < FAR or not sound_members(known.members, self._most):
            return
        self.last = known
        self._forget()
        self._remember()

    def close(self, view: int, source: MemberId) -> None:
        """Its last member has left a view in agreement with the others: the group is to be founded anew."""
        last = self.last
        if (
            last is None
            or view < last.view
            or (view == last.view and last.members != [source])
            or view >= FAR
        ):
            return
        self._over = view
        self.last = self._in_view_at = None
        self._forget()

    def was_left(self, view: int) -> None:
        """This member was the last one of it."""
        self._over = max(self._over, view)

    def _forget(self) -> None:
        """What was promised about another view."""
        self._promised = self._accepted = self._mine = None
        self._accepted_members = self._proposal = ()
        self._promises.clear()
        self._promisers.clear()
        self._acceptances.clear()
        self._next_try = 0
        self.founded = None

    def reform(self) -> None:
        """Go on with whoever is here: somebody vouches that the others are gone."""
        self._commanded = True

    def saw(self, now: Nanos, member: MemberId, hello: Hello) -> None:
        """Another one looks for the group."""
        if hello.last is not None:
            self.learn(hello.last)
        if member in self._seen or len(self._seen) < MAX_MEMBERS - 1:
            self._seen[member] = now, hello.founding

    def forget(self, member: MemberId) -> None:
        """It looks for the group no more."""
        self._seen.pop(member, None)

    def saw_view(self, now: Nanos) -> None:
        """Somebody is in a view: it may have what nobody here has."""
        self._in_view_at = now

    def missing(self, now: Nanos) -> list[MemberId]:
        """Who of the last view is not accounted for."""
        names = {member.name for member in self._around(now)}
        return [] if self.last is None else [each for each in self.last.members if each.name not in names]

    def abandoned(self, now: Nanos) -> bool:
        """Whether nobody is here who is in the view that was agreed on."""
        return self.founded is not None and self._around(now).isdisjoint(self.founded)

    # Paxos

    def tick(self, now: Nanos) -> None:
        """Try, if it is this member's turn."""
        around = self._around(now)
        if not self._may_try(now) or not self._enough({each.name for each in around}, around):
            return
        if now < self._next_try:
            return
        if self._next_try == 0:  # somebody may be about to start, or about to say that there is a view
            first = min(around) == self._me
            later = 0 if first else 2 * self._period + self._rng.randrange(self._period)
            self._next_try = now + _PAUSE * self._period + later
            return
        pause = 2 * self._period + self._rng.randrange(3 * self._period)
        self._next_try = now + self._patience() * pause
        self._prepare(now)

    def on_prepare(self, now: Nanos, source: MemberId, frame: Prepare) -> None:
        """Promise, unless a higher ballot was promised."""
        if not self._concerns(source, frame) or not self._promise(frame.ballot):
            return
        if self._patience() > 1:
            self._next_try = max(self._next_try, now + self._patience() * 2 * self._period)
        promise = self._promise_of(frame.ballot)
        self._ledger.write(
            now, Promised(frame.after, frame.ballot), lambda _: self._courier.send(source, promise)
        )

    def on_promise(self, now: Nanos, source: MemberId, frame: Promise) -> None:
        """With enough promises, propose what was accepted last, or those who are here."""
        if frame.ballot != self._mine or frame.after != self.after or self._proposal:
            return
        if frame.accepted is not None and not sound_members(frame.members, self._most):
            return
        self._promises[source.name] = frame
        self._promisers.add(source)
        around = self._around(now)
        if not self._enough(self._promises, around):
            return
        accepted = [promise for promise in self._promises.values() if promise.accepted is not None]
        if accepted:
            last = max(accepted, key=lambda promise: promise.accepted or frame.ballot)
            self._proposal, self._proposed_first = tuple(last.members), last.first
        else:
            # Who promised is here, however long ago it said hello; of each name the latest.
            latest = {each.name: each for each in sorted(around | self._promisers)}
            self._proposal = tuple(latest.values())[: self._most]
            self._proposed_first = min(max(self.first(now), self._over + 1), FAR - 1)
        self._acceptances.clear()
        accept = Accept(frame.ballot, list(self._proposal), frame.after, self._terms, self._proposed_first)
        self._courier.multicast(accept)
        self.on_accept(now, self._me, accept)

    def on_accept(self, now: Nanos, source: MemberId, frame: Accept) -> None:
        """Accept, unless a higher ballot was promised."""
        if not sound_members(frame.members, self._most) or not self._concerns(source, frame):
            return
        if not 1 <= frame.first < FAR:
            return
        if not self._promise(frame.ballot):
            return
        self._accepted, self._accepted_members = frame.ballot, tuple(frame.members)
        self._accepted_first = frame.first
        accepted = Accepted(frame.ballot, frame.after)

        def tell(now: Nanos) -> None:
            if source == self._me:
                self.on_accepted(now, self._me, accepted)
            else:
                self._courier.send(source, accepted)

        self._ledger.write(now, Agreed(frame.after, frame.ballot, list(frame.members), frame.first), tell)

    def on_accepted(self, now: Nanos, source: MemberId, frame: Accepted) -> None:
        """With enough of them, the view is agreed on."""
        if frame.ballot == self._mine and frame.after == self.after and self._proposal:
            self._acceptances.add(source.name)
            if self._enough(self._acceptances, self._around(now)):
                self.founded = self._proposal

    def _prepare(self, now: Nanos) -> None:
        highest = max((0, *(ballot.number for ballot in (self._promised, self._mine) if ballot is not None)))
        ballot, after = Ballot(highest + 1, self._me), self.after
        self._mine, self._proposal = ballot, ()
        self._promises.clear()
        self._promisers.clear()
        self._promise(ballot)
        promise = self._promise_of(ballot)
        self._courier.multicast(Prepare(ballot, after, self._terms))
        self._ledger.write(now, Promised(after, ballot), lambda now: self.on_promise(now, self._me, promise))

    def _promise_of(self, ballot: Ballot) -> Promise:
        return Promise(ballot, self._accepted, list(self._accepted_members), self.after, self._accepted_first)

    def _patience(self) -> int:
        """How much longer to wait between attempts: on slow disks they get into each other's way."""
        attempts = 0 if self._promised is None else self._promised.number
        return min(1 + attempts // _CROWD, _MOST_PATIENT)

    def _promise(self, ballot: Ballot) -> bool:
        if self._promised is not None and ballot < self._promised:
            return False
        self._promised = ballot
        return True

    # Who takes part

    def _may_try(self, now: Nanos) -> bool:
        if self.last is None:
            return self.founds and self._in_view_at is None
        if self.named:
            return False
        if self._in_view_at is not None and now - self._in_view_at < _LATELY * self._period:
            return False
        return self._automatic or self._commanded

    def _enough(self, names: Collection[str], around: Collection[MemberId]) -> bool:
        """Whether these agree on a view, given who is here."""
        if self.last is None:
            return len(names) >= self._minimum
        here = {each.name for each in around}
        return all(
            each.name in names or (self._commanded and each.name not in here) for each in self.last.members
        )

    def _concerns(self, source: MemberId, frame: Prepare | Accept) -> bool:
        """Whether this member has a say in it: it has set the same, and knows of no later view."""
        if frame.terms != self._terms:
            return False
        known = 0 if self._promised is None else self._promised.number
        plausible = frame.ballot.founder == source and frame.ballot.number <= known + _FAR
        has_say = self.founds if self.last is None else not self.named
        return plausible and frame.after == self.after and has_say

    def _around(self, now: Nanos) -> set[MemberId]:
        """Those who looked for the group lately, the latest of each name; for the first view, founders."""
        recently = now - _LATELY * self._period
        latest = {self._me.name: self._me}
        for member, (at, founds) in sorted(self._seen.items()):
            if at >= recently and (founds or self.last is not None) and member.name != self._me.name:
                latest[member.name] = member
        formers = {} if self.last is None else {each.name: each.incarnation for each in self.last.members}
        return {each for each in latest.values() if each.incarnation >= formers.get(each.name, 0)}


def _always_one(_now: Nanos) -> int:
    return 1


def sound_members(members: Sequence[MemberId], most: int) -> bool:
    """Whether these can be the members of a view: distinct names, neither too many nor too long."""
    names = {member.name for member in members}
    return 0 < len(names) == len(members) <= most and all(0 < len(name) <= MAX_NAME for name in names)
