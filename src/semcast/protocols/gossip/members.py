"""Who is there, as far as is known here (5.3 without sponsors): approximate, and each member's own.

It is needed to choose targets, and to tell the program; nothing that is owed to anybody depends on it. A
member says now and then that it is there, to anybody, and at once when it starts; who knows nobody is told by
some that hear it. Gossip carries a hash of all that are known: who has another one answers with its list. An
entry says how long ago its member was heard, so that nobody is kept alive by hearsay: who was silent for too
long is forgotten everywhere at about the same time. Who says goodbye is remembered as gone for as long.

Without a `presence` period membership is fixed: the list that members begin with, and nobody else.
"""

from collections.abc import Container, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from semcast.core.events import ViewChange
from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.views import View
from semcast.protocols.gossip.frames import Known, Members, Standing, knowns
from semcast.protocols.gossip.idle import salt_of
from semcast.protocols.gossip.peers import Peers
from semcast.protocols.gossip.regions import Regions
from semcast.protocols.gossip.settings import GossipSettings

_MOST = 8192
"""Members that are known at a time: nobody can make us hold more."""
_SILENT = 4
"""Periods after which a member that says nothing is forgotten."""
_ALOUD = 20
"""In larger groups members speak up less often, so that there are never more voices in a period."""
_TOLD = 4
"""Frames of a list in answer to one hash: those that were heard of last come first."""
_MODULUS = 1 << 128


class Entry:
    """Somebody."""

    __slots__ = ("heard_at", "member", "standing")

    def __init__(self, member: MemberId, standing: Standing, heard_at: Nanos) -> None:
        self.member = member
        self.standing = standing
        self.heard_at = heard_at
        """When it said something last, as far as anybody knows who said so here."""

    def digest(self) -> int:
        """A number that stands for it, whenever it was heard."""
        data = f"{self.member.name}\0{self.member.incarnation}\0{self.standing:d}"
        return int.from_bytes(blake2b(data.encode(), digest_size=16).digest())


class _Listed(NamedTuple):
    """A list of members, as all that begin with it know them. Who learns of a change makes a copy first."""

    entries: dict[str, Entry]
    members: tuple[MemberId, ...]
    """Sorted."""


@lru_cache(maxsize=4)
def _listed(members: tuple[MemberId, ...], loggers: frozenset[str]) -> _Listed:
    """In a simulation a thousand members begin with the same thousand: they share one list.

    Whoever is given a frame looks there first; so it is at hand, and not a thousand lists in turn.
    """
    first = {member.name: member for member in members}
    entries = {name: _first_entry(member, loggers) for name, member in first.items()}
    return _Listed(entries, tuple(sorted(first.values())))


def _first_entry(member: MemberId, loggers: frozenset[str]) -> Entry:
    return Entry(member, Standing.LOGGER if member.name in loggers else Standing.MEMBER, 0)


def _is_same(former: Entry | None, entry: Entry) -> bool:
    """Whether nothing has changed but when it was heard."""
    return former is not None and former.member == entry.member and former.standing is entry.standing


class Roster:
    """The members that this one knows of, itself among them.

    Args:
        me: this member.
        members: those it begins with; all there will be, where membership is fixed.
        settings: of the group.
        peers: told whom there is to choose from.
        logger: whether this one is a logger.
    """

    __slots__ = (
        "_digest",
        "_disowned",
        "_entries",
        "_failed",
        "_fixed",
        "_initial",
        "_listed",
        "_loggers",
        "_look_at",
        "_me",
        "_peers",
        "_settings",
        "_told",
        "changed",
        "regions",
    )

    def __init__(
        self,
        me: MemberId,
        members: Iterable[MemberId],
        settings: GossipSettings,
        peers: Peers,
        *,
        logger: bool = False,
    ) -> None:
        self._me = me
        self._settings = settings
        self._peers = peers
        self.regions = Regions(settings.region, peers)
        self._fixed = not settings.presence
        self._digest = 0
        self._look_at: Nanos = 0
        self._failed: set[MemberId] = set()
        self._disowned: set[str] = set()  # loggers that are forgotten
        self._loggers: dict[str, MemberId] | None = None
        loggers = frozenset(settings.loggers if settings.logs else ())
        mine = Entry(me, Standing.LOGGER if logger else Standing.MEMBER, 0)
        self._listed = (
            _listed(tuple(members), loggers) if self._fixed else None
        )  # as long as it is all there is
        if self._listed is not None and _is_same(self._listed.entries.get(me.name), mine):
            self._entries = self._listed.entries
        else:
            self._listed = None
            first = {member.name: member for member in members if member.name != me.name}
            self._entries = {me.name: mine}
            self._entries |= {name: _first_entry(member, loggers) for name, member in first.items()}
        for entry in () if self._fixed else self._entries.values():
            self._count(entry, 1)
        peers.begin([each.member for name, each in self._entries.items() if name != me.name])
        self._initial: Container[str] = self._entries if self._fixed else frozenset(self._entries)
        self._told = View(0, ())
        self.changed = True
        """Whether the program does not know the latest view."""

    def start(self, now: Nanos) -> None:
        """Nobody was silent before this."""
        self._look_at = now + self._settings.presence
        self._spare(now)

    # Who is there

    def view(self) -> View:
        """Everybody that is known to be there. Other members may have another view with the same number."""
        if not self.changed:
            return self._told
        return View(self._told.id + 1, self._there(), representative=None if self._fixed else self._me)

    def _there(self) -> tuple[MemberId, ...]:
        if self._listed is not None:
            return self._listed.members
        entries = self._entries.values()
        return tuple(sorted(each.member for each in entries if each.standing is not Standing.GONE))

    @property
    def told(self) -> View:
        """The view that the program knows."""
        return self._told

    def change(self) -> ViewChange:
        """What is to be told to the program."""
        before, view = set(self._told.members), self.view()
        now = set(view.members)
        failed = (before - now) & self._failed
        self._told, self.changed = view, False
        self._failed.clear()
        return ViewChange(
            view,
            joined=tuple(member for member in view.members if member not in before)
            if before
            else view.members,
            left=tuple(sorted(before - now - failed)),
            failed=tuple(sorted(failed)),
        )

    @property
    def alone(self) -> bool:
        """Whether nobody else is known."""
        return len(self._entries) == 1

    def knew(self, member: MemberId) -> bool:
        """Whether its name was known from the beginning."""
        return member.name in self._initial

    def is_foreign(self, member: MemberId) -> bool:
        """Whether it will never be a member: membership is fixed, and it is none."""
        return self._fixed and member.name not in self._initial

    def loggers(self) -> dict[str, MemberId]:
        """Those that are there, by name."""
        if self._loggers is None:
            there = [each for each in self._entries.values() if each.standing is Standing.LOGGER]
            self._loggers = {each.member.name: each.member for each in there if each.member != self._me}
        return self._loggers

    def is_logger(self, member: MemberId) -> bool:
        """Whether it said so, or has the name of one."""
        if member.name in self._disowned:
            return False
        return member.name in self._settings.loggers or member.name in self.loggers()

    @property
    def disowned(self) -> list[str]:
        """Loggers that are forgotten."""
        return sorted(self._disowned)

    def disown(self, name: str) -> None:
        """A logger is forgotten: it is none any more, whatever it says."""
        if name not in self._disowned:
            self._disowned.add(name)
            known = self._entries.get(name)
            if known is not None and known.standing is Standing.LOGGER and name != self._me.name:
                self._put(Entry(known.member, Standing.MEMBER, known.heard_at))

    # What is heard

    def heard(self, now: Nanos, member: MemberId) -> bool:
        """A frame came from a member; returns whether it may be one, and there is room for it."""
        entry = self._entries.get(member.name)
        if entry is not None and entry.member == member:
            if not self._fixed and entry.standing is not Standing.GONE:
                entry.heard_at = now  # where nobody is ever forgotten, nobody asks
            return True
        if member.name == self._me.name:
            return True
        return self._meet(Entry(member, Standing.MEMBER, now))

    def present(self, now: Nanos, member: MemberId, standing: Standing) -> None:
        """It says itself what it is."""
        if standing is Standing.AWAY:
            self._part(now, member)
        elif member.name != self._me.name:
            self._meet(Entry(member, standing, now))

    def _part(self, now: Nanos, member: MemberId) -> None:
        """It goes away, and may come back as it is."""
        known = self._entries.get(member.name)
        if known is not None and known.member == member and member != self._me and not self._fixed:
            del self._entries[member.name]
            self._digest -= known.digest()
            self._see_change(Entry(member, Standing.GONE, now))

    def learn(self, now: Nanos, known: Iterable[Known]) -> None:
        """Somebody says who is there."""
        for member, standing, age in known:
            heard_at = now - age * MILLISECOND
            foreign = member.name == self._me.name or standing in (Standing.AWAY, Standing.LOOKING)
            if not foreign and now - heard_at < self._limit():
                self._meet(Entry(member, standing, heard_at))

    def failed(self, now: Nanos, member: MemberId) -> None:
        """Somebody who does not err says that it crashed."""
        if not self._fixed:
            self._failed.add(member)
            self._meet(Entry(member, Standing.GONE, now))

    def _meet(self, news: Entry) -> bool:
        """Take in what is newer than what is known; False for who has no place here."""
        name = news.member.name
        known = self._entries.get(name)
        if known is None:
            if self._fixed or len(self._entries) >= _MOST:
                return False
        elif news.member.incarnation < known.member.incarnation:
            return True
        elif news.member == known.member:
            if known.standing is Standing.GONE:
                return True
            standing = max(known.standing, self._standing(news.member, news.standing))
            news = Entry(news.member, standing, max(known.heard_at, news.heard_at))
        if self._fixed and news.standing is Standing.GONE:
            return True
        self._put(Entry(news.member, self._standing(news.member, news.standing), news.heard_at))
        return True

    def _standing(self, member: MemberId, said: Standing) -> Standing:
        """A name that is set decides who is a logger; without any, whoever says so."""
        if said is Standing.GONE or not self._settings.logs:
            return said if said is Standing.GONE else Standing.MEMBER
        if member.name in self._disowned:
            return Standing.MEMBER
        if self._settings.loggers:
            return Standing.LOGGER if member.name in self._settings.loggers else Standing.MEMBER
        return said

    def _put(self, entry: Entry) -> None:
        former = self._entries.get(entry.member.name)
        if self._fixed and _is_same(former, entry):
            return  # nobody asks when it was heard
        if self._listed is not None:
            self._entries, self._listed = dict(self._entries), None
        self._entries[entry.member.name] = entry
        if former is not None:
            if _is_same(former, entry):
                return
            self._count(former, -1)
        self._count(entry, 1)
        self._see_change(entry)

    def _count(self, entry: Entry, times: int) -> None:
        if not self._fixed:  # nobody compares lists that do not change
            self._digest += times * entry.digest()

    def _see_change(self, entry: Entry) -> None:
        self.changed = True
        self._loggers = None
        if entry.standing is Standing.GONE:
            self._peers.forget(entry.member.name)
            self.regions.forget(entry.member.name)
        elif entry.member.name != self._me.name:
            self._peers.meet(entry.member)

    # What is told

    @property
    def standing(self) -> Standing:
        """What this member says of itself."""
        return self._entries[self._me.name].standing

    def period(self) -> Nanos:
        """How often this member says that it is there; 0 for never."""
        return self._settings.presence * max(1, len(self._entries) // _ALOUD)

    def hash(self, gossiper: MemberId, number: int) -> bytes | None:
        """Of all that is known, as the gossiper of a round would have it; None where membership is fixed."""
        if self._fixed:
            return None
        data = (self._digest % _MODULUS).to_bytes(16)
        return blake2b(data, digest_size=8, salt=salt_of(gossiper, number)).digest()

    def lists(self, now: Nanos) -> list[Members]:
        """Who is known, those first that were heard of last; as much as one answer has."""
        latest = sorted(self._entries.values(), key=lambda each: (-each.heard_at, each.member))
        ages = [(each, 0 if each.member == self._me else now - each.heard_at) for each in latest]
        known = [(each.member, each.standing, max(0, age) // MILLISECOND) for each, age in ages]
        return [Members(part) for part in knowns(known)[:_TOLD]]

    # Time

    def _limit(self) -> Nanos:
        return _SILENT * self.period()

    def look(self, now: Nanos) -> None:
        """Forget who has been silent for too long; nobody, if it was this member that slept."""
        if self._fixed or now < self._look_at:
            return
        if now > self._look_at + self.period():
            self._spare(now)
        self._look_at = now + self._settings.presence
        limit = self._limit()
        for each in list(self._entries.values()):
            if now - each.heard_at >= limit and each.member.name != self._me.name:
                del self._entries[each.member.name]
                self._count(each, -1)
                self._see_change(Entry(each.member, Standing.GONE, now))
                if each.standing is not Standing.GONE:
                    self._failed.add(each.member)

    def _spare(self, now: Nanos) -> None:
        for each in () if self._fixed else self._entries.values():
            each.heard_at = now
