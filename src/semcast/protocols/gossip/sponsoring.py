"""What a sponsor does (Sun 2000, 5.3): it takes others in, and answers for them to the loggers.

Only members are sponsors, never who still waits to be one itself. What a sponsor has heard of when it is
first asked is where the newcomer's row begins at the loggers; what it has heard of when it is asked again,
and answers again, may be more: there the newcomer starts, if that is the last word that reaches it.

Where there are loggers, something is stable once every session that they know of has acknowledged it. So a
sponsor acknowledges nothing beyond what it had heard of when it was asked, and does not leave, before its
logger has the newcomer's row on disk (`Enrolled`): the loggers learn of it before they could collect anything
that it is owed (5.2, case 2; R-4). Deviation: the paper has the list of members in every gossip; here it goes
to loggers alone, apart from reports, and holds these back.

Of n members that hear a newcomer about 2k answer (R-5).
"""

from random import Random

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.gossip.frames import Entry, Standing, entries
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.receiver import Receiver
from semcast.protocols.gossip.session import Session
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.sponsor_frames import Apply, Enroll, Enrolled, Vouch

_MOST = 256
"""Newcomers at a time."""


class Newcomer:
    """Somebody whom this member sponsors."""

    def __init__(self, fresh: int, filter_: str, after: dict[MemberId, int]) -> None:
        self.fresh = fresh
        self.filter = filter_
        self.after = after
        """What had been heard of when it first asked."""
        self.words = 0
        self.unconfirmed = dict(enumerate(entries(sorted(after.items()))))
        """What the loggers do not have on disk yet, in parts."""


class Sponsoring:
    """Of one member.

    Args:
        me: this member.
        settings: of the group.
        session: says whether this one is a member itself.
        receiver: knows what was heard of.
        roster: who is there.
        stats: counts what is sent.
        rng: where chance comes from.
        out: where frames go.
    """

    def __init__(
        self,
        me: MemberId,
        settings: GossipSettings,
        session: Session,
        receiver: Receiver,
        roster: Roster,
        stats: Statistics,
        rng: Random,
        out: Outbox,
    ) -> None:
        self._me = me
        self._settings = settings
        self._session = session
        self._receiver = receiver
        self._roster = roster
        self._stats = stats
        self._rng = rng
        self._out = out
        self._newcomers: dict[MemberId, Newcomer] = {}

    # Who asks

    def on_apply(self, now: Nanos, source: MemberId, frame: Apply) -> None:
        """JOIN, LEAVE: take it in or out, and say so; the larger freshness wins."""
        if frame.leaves:
            self._on_leave(now, source, frame)
        elif self._may_sponsor():
            self._on_join(source, frame)

    def _may_sponsor(self) -> bool:
        return self._session.admitted and not self._session.leaving and self._settings.sponsored

    def _on_join(self, source: MemberId, frame: Apply) -> None:
        newcomer = self._newcomers.get(source)
        if newcomer is None or newcomer.fresh < frame.fresh:
            if not self._is_chosen():
                return
            if len(self._newcomers) >= _MOST and not self._make_room():
                return
            newcomer = Newcomer(frame.fresh, frame.filter, self._heard_of())
            self._newcomers[source] = newcomer
        elif newcomer.fresh > frame.fresh:
            return
        self._vouch(source, newcomer)

    def _is_chosen(self) -> bool:
        """About 2k of n: k of them are enough, and who hears too few asks again."""
        others = len(self._roster.view().members)
        return self._rng.random() * others < 2 * self._settings.sponsors

    def _make_room(self) -> bool:
        """Somebody whom the loggers know, or need not know, is forgotten."""
        done = [each for each, found in self._newcomers.items() if not self._owes(found)]
        for member in done[:1]:
            del self._newcomers[member]
        return bool(done)

    def _vouch(self, source: MemberId, newcomer: Newcomer) -> None:
        newcomer.words += 1
        known = self._heard_of()
        for stream, seq in known.items():
            self._out.deliver(
                Note("vouched", sender=stream, seq=seq, members=(source,), order=newcomer.fresh)
            )
        self._answer(source, newcomer.fresh, newcomer.words, sorted(known.items()), leaves=False)

    def _answer(self, source: MemberId, fresh: int, word: int, known: list[Entry], *, leaves: bool) -> None:
        sponsors = [each for each in self._roster.view().members if each.name != source.name]
        count = sum(1 for each in sponsors if not self._roster.is_logger(each))
        parts = entries(known)
        for number, part in enumerate(parts):
            self._stats.control_frames += 1
            answer = Vouch(fresh, source.incarnation, leaves, count, word, number, len(parts), part)
            self._out.send(source, answer)

    def _heard_of(self) -> dict[MemberId, int]:
        """TS: of all streams, those that are over among them."""
        heard = dict(self._receiver.ended.newest())
        heard.update((stream, found.known) for stream, found in self._receiver.streams.items())
        return heard

    def _on_leave(self, now: Nanos, source: MemberId, frame: Apply) -> None:
        """Who leaves as well may answer: nothing is owed to who goes."""
        chosen = self._is_chosen()
        self._roster.present(now, source, Standing.GONE)
        self._newcomers.pop(source, None)
        if self._session.admitted and chosen:
            self._answer(source, frame.fresh, frame.fresh, [], leaves=True)

    # What is owed to loggers

    def _owes(self, newcomer: Newcomer) -> bool:
        return self._settings.logs and bool(newcomer.unconfirmed)

    @property
    def owes(self) -> bool:
        """Whether loggers must learn of somebody first."""
        return any(map(self._owes, self._newcomers.values()))

    def bound(self, stream: MemberId, through: int) -> int:
        """As much of what the program is through with as may be acknowledged."""
        if not self._newcomers:
            return through
        bounds = [each.after.get(stream, 0) for each in self._newcomers.values() if self._owes(each)]
        return min([through, *bounds])

    def on_round(self, logger: MemberId | None) -> None:
        """Tell the logger whom it may not know."""
        if logger is None or not self._settings.logs:
            return
        for member, newcomer in self._newcomers.items():
            for part, after in newcomer.unconfirmed.items():
                self._stats.control_frames += 1
                self._out.send(logger, Enroll(member, newcomer.fresh, part, after, newcomer.filter))

    def on_enrolled(self, frame: Enrolled) -> None:
        """It is on disk."""
        newcomer = self._newcomers.get(frame.member)
        mine = newcomer is not None and newcomer.fresh == frame.attempt
        if newcomer is not None and mine and frame.incarnation == self._me.incarnation:
            newcomer.unconfirmed.pop(frame.part, None)

    def inherit(self, former: "Sponsoring") -> None:
        """Go on as another incarnation: what the former one answers for, this one does."""
        self._newcomers.update(former._newcomers)
