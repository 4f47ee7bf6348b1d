"""How a member joins and leaves by sponsors (Sun 2000, 5.3).

Without a logger, or where none is within reach, members take each other in. Who wants to join multicasts
`Apply` each round until `sponsors` different members have answered with what they have heard of each stream
(TS_i). The maximum of their last words is t_join: what comes after it is owed (property 5.2). A leave is said
and answered in the same way. `fresh` tells the answers to this attempt from those to former ones; it is the
session's number of attempts, so that of two rows at a logger the newer wins, whoever asked for it.

Deviations. A sponsor answers by unicast and at once, since who leaves is no target of gossip any more (R-5).
The receiver begins at t_join (R-6). Without loggers nobody could bootstrap a group: there, who knows from its
sponsors that there are fewer makes do with these, and after `join_rounds` rounds with as many as have
answered, also with none; a leave ends by then, too. Where there are loggers, fewer never do.
"""

import enum
from collections.abc import Callable

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.session import Session
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.sponsor_frames import Apply, Vouch

_MOST = 64
"""Sponsors that are listened to at a time."""


class Wish(enum.Enum):
    """What sponsors are asked for: the states `pending_join` and `pending_leave` of the paper."""

    NOTHING = "nothing"
    JOIN = "join"
    LEAVE = "leave"


class Sponsor:
    """What one sponsor says: the last of its words that is complete counts."""

    def __init__(self) -> None:
        self.known: dict[MemberId, int] | None = None
        self.word = 0
        self._parts: dict[int, Vouch] = {}

    def take(self, frame: Vouch) -> None:
        """A part of a word; those of former words are dropped."""
        if frame.word < self.word or frame.part >= frame.parts:
            return
        if frame.word > self.word:
            self.word = frame.word
            self._parts.clear()
        self._parts[frame.part] = frame
        if len(self._parts) == frame.parts:
            self.known = {stream: seq for part in self._parts.values() for stream, seq in part.known}


class Applying:
    """Of one member.

    Args:
        me: this member.
        settings: of the group.
        session: told where streams begin.
        roster: who is known to be there.
        stats: counts what is sent.
        out: where frames go.
    """

    def __init__(
        self,
        me: MemberId,
        settings: GossipSettings,
        session: Session,
        roster: Roster,
        stats: Statistics,
        out: Outbox,
    ) -> None:
        self._me = me
        self._settings = settings
        self._session = session
        self._roster = roster
        self._stats = stats
        self._out = out
        self.joined: Callable[[Nanos], None] = _nothing
        """To be told that this one is a member now."""
        self.wish = Wish.NOTHING
        self._fresh = 0
        self._rounds = 0
        self._members = 0  # how many could be sponsors, as those say that are
        self._sponsors: dict[MemberId, Sponsor] = {}

    def start(self, now: Nanos, *, asked: bool = False) -> None:
        """Without loggers, ask at once; with some, when none is there.

        Who has `asked` who is there for a while, and knows nobody, is the first.
        """
        if self._settings.logs or self._session.admitted:
            return
        if asked and self._roster.alone:
            self._begin(now, {})
        else:
            self._ask(Wish.JOIN)

    def leave(self) -> bool:
        """Say so to others; returns whether there is anybody to hear it."""
        usual = self._settings.sponsored and not self._settings.logs and self._session.admitted
        if not usual or not self._others():
            return False
        self._ask(Wish.LEAVE)
        return True

    def again(self) -> None:
        """It was away: what sponsors said before is old."""
        if self.wish is Wish.JOIN:
            self._ask(Wish.JOIN)

    def on_round(self, now: Nanos) -> None:
        """Tick: ask again, or make do with what there is."""
        if self.wish is Wish.NOTHING:
            if self._session.needs_sponsors(now):
                self._ask(Wish.JOIN)
            return
        self._rounds += 1
        if self._fresh != self._session.attempt:
            self.wish = Wish.NOTHING  # a logger was found
        elif not self._look(now):
            self._go_on(now)

    def _go_on(self, now: Nanos) -> None:
        """Ask again; now and then the loggers, where there are some."""
        if self._settings.logs and self._rounds >= 2 * self._settings.join_rounds:
            self.wish = Wish.NOTHING
            self._session.leave_sponsors(now)
        else:
            self._say()

    def on_vouch(self, now: Nanos, source: MemberId, frame: Vouch) -> None:
        """Somebody has taken this member in, or out."""
        meant = (
            frame.fresh == self._fresh == self._session.attempt and frame.incarnation == self._me.incarnation
        )
        if not meant or frame.leaves is not (self.wish is Wish.LEAVE) or self.wish is Wish.NOTHING:
            return
        if len(self._sponsors) < _MOST or source in self._sponsors:
            self._sponsors.setdefault(source, Sponsor()).take(frame)
            self._members = max(self._members, frame.members)
            self._look(now)

    def _ask(self, wish: Wish) -> None:
        self.wish = wish
        self._fresh = self._session.another_attempt()
        self._rounds = self._members = 0
        self._sponsors.clear()
        self._say()

    def _say(self) -> None:
        self._stats.control_frames += 1
        self._out.announce(Apply(self._fresh, self.wish is Wish.LEAVE, self._settings.filter))

    def _others(self) -> int:
        return len(self._roster.view().members) - 1

    def _look(self, now: Nanos) -> bool:
        """Whether enough have answered; if so, that is that."""
        found = {source: each.known for source, each in self._sponsors.items() if each.known is not None}
        if not self._enough(len(found)):
            return False
        wish, self.wish = self.wish, Wish.NOTHING
        if wish is Wish.LEAVE:
            self._session.over = True
        else:
            self._begin(now, found)
        return True

    def _enough(self, found: int) -> bool:
        """As many as are set; in small groups without a logger, all there are, or all that answer in time."""
        if found >= self._settings.sponsors:
            return True
        if self._settings.logs:
            return False
        late = self._rounds >= self._settings.join_rounds
        if self.wish is Wish.LEAVE:
            return late or found >= self._others()
        return late or 0 < self._members <= found

    def _begin(self, now: Nanos, found: dict[MemberId, dict[MemberId, int]]) -> None:
        """t_join is after TS_i of every sponsor, and after no more."""
        t_join: dict[MemberId, int] = {}
        for known in found.values():
            for stream, seq in known.items():
                t_join[stream] = max(seq, t_join.get(stream, 0))
        wanted, who = self._settings.sponsors, tuple(sorted(found))
        level = "sponsors" if len(who) >= wanted else "few" if who else "alone"
        self._out.deliver(Note("joined", level=level, members=who, order=self._fresh, seq=wanted))
        self._session.begin_after(t_join)
        self.joined(now)


def _nothing(_now: Nanos) -> None:
    """Nobody wants to know."""
