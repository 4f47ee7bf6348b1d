"""How far programs have taken what came in a group: the credit of its senders, and what a flush waits for."""

from collections.abc import Mapping, Sequence, Set

from semcast.core.ids import MemberId
from semcast.protocols.isis.frames import Taken
from semcast.protocols.isis.replaced import Replaced


class Taking:
    """As one process knows it.

    What was purged counts as taken with what comes behind it, so that its sender has credit again. A flush
    waits for the replacement, too: `certain`.

    Args:
        me: who this is.
    """

    def __init__(self, me: MemberId) -> None:
        self.me = me
        self.others: tuple[MemberId, ...] = ()
        """Who else is in the current view."""
        self.here: dict[MemberId, int] = {}
        """How far the program here has taken the messages of each member."""
        self.told_of: dict[MemberId, int] = {}
        """The latest view that the program of each member has taken word of, this one's included."""
        self._taken: dict[MemberId, dict[MemberId, int]] = {}  # by member, what `here` is of this one
        self._by_others: int | None = None  # own messages up to here; None if that is to be found out
        self._replaced: dict[MemberId, Replaced] = {}  # by sender, what was purged here
        self._short: dict[MemberId, dict[MemberId, int]] = {}  # by member, where less is certain than taken

    def begins(
        self, members: Sequence[MemberId], joined: Set[MemberId], base: Mapping[MemberId, int], *, first: bool
    ) -> None:
        """A view begins, the first one of this process or a later one."""
        self._taken = {
            member: dict(base) if member in joined or member not in self._taken else self._taken[member]
            for member in members
        }
        self._by_others = None
        self.here = {
            member: base[member] if first or member in joined else self.here.get(member, 0)
            for member in members
        }
        self.others = tuple(member for member in members if member != self.me)
        stay = [member for member in members if member not in joined]
        self.told_of = {member: self.told_of.get(member, 0) for member in stay}
        self._replaced = {member: self._replaced[member] for member in stay if member in self._replaced}
        self._short = {
            member: {sender: count for sender, count in self._short[member].items() if sender in stay}
            for member in stay
            if member in self._short
        }

    # Here

    def took(self, sender: MemberId, last: int) -> None:
        """The program took messages."""
        if last > self.here.get(sender, 0):
            self.here[sender] = last

    def took_view(self, view: int) -> None:
        """The program took word of a view."""
        self.told_of[self.me] = view

    def purged(self, sender: MemberId, seq: int, by: int) -> None:
        """A message is not given to the program here: a later one is."""
        self._replaced.setdefault(sender, Replaced()).purged(seq, by)

    def skipped(self, sender: MemberId, seq: int, upto: int) -> None:
        """The same of one that did not come; the later one is among those up to there."""
        self._replaced.setdefault(sender, Replaced()).skipped(seq, upto)

    def uncertain(self, members: Sequence[MemberId]) -> list[tuple[int, int]]:
        """Of whose messages the program here has less than it took, by rank, and how much."""
        if not any(self._replaced.values()):
            return []
        counts = ((rank, member, self.certain(self.me, member)) for rank, member in enumerate(members))
        return [(rank, count) for rank, member, count in counts if count < self.here[member]]

    # Elsewhere

    def hears(self, member: MemberId, frame: Taken, members: Sequence[MemberId], most: Sequence[int]) -> None:
        """What the program of a member took in the current view; at most there is so much to be taken."""
        self.told_of[member] = max(frame.told, self.told_of.get(member, 0))
        known = self._taken.get(member)
        if known is None or len(frame.upto) != len(members):
            return
        for sender, count, there in zip(members, frame.upto, most, strict=True):
            if known.get(sender, 0) < count <= there:
                known[sender] = count
        self._by_others = None
        if frame.certain or self._short.get(member):
            self._hears_of_short(member, frame, members)

    def _hears_of_short(self, member: MemberId, frame: Taken, members: Sequence[MemberId]) -> None:
        """What is said with the latest count holds: frames may overtake each other."""
        known, short, less = self._taken[member], self._short.setdefault(member, {}), dict(frame.certain)
        for rank, (sender, count) in enumerate(zip(members, frame.upto, strict=True)):
            if count == known.get(sender, 0):
                short.pop(sender, None)
                if less.get(rank, count) < count:
                    short[sender] = less[rank]

    def by(self, member: MemberId) -> int:
        """Own messages up to here were taken by the program of another member."""
        return self._taken[member].get(self.me, 0)

    def by_others(self) -> int:
        """The same of all others, if there are any."""
        if self._by_others is None:
            self._by_others = min(map(self.by, self.others))
        return self._by_others

    # All of them

    def certain(self, member: MemberId, sender: MemberId) -> int:
        """Up to where the program of a member has each message of a sender, or what replaces it."""
        if member == self.me:
            here, replaced = self.here.get(sender, 0), self._replaced.get(sender)
            return replaced.certain(here) if replaced else here
        known = self._taken[member].get(sender, 0)
        short = self._short.get(member)
        return short.get(sender, known) if short else known

    def by_all(self, seq: int) -> bool:
        """Whether all programs have an own message, or what replaces it."""
        me = self.me
        if self.certain(me, me) < seq or (self.others and self.by_others() < seq):
            return False
        return all(self.certain(member, me) >= seq for member in self._short)
