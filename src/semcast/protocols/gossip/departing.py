"""Whose streams are over, and who has been silent for too long: a logger's view of who is gone for good.

A stream is over when a newer incarnation of its sender was heard, when its sender left or failed, or when no
logger heard anything of it for `silence`. A session that does not report for `inactive` is over, too: its
home logger ends it, or the one that decides, where no logger hears it: its home may have been forgotten.

A logger that hears nobody is cut off itself: then nobody counts as silent, and no stream is closed. That is
judged by the sessions that were heard to the last, since one that was silent before says nothing about it.
"""

from collections.abc import Callable, Iterable

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.ending import Ending
from semcast.protocols.gossip.frames import Heard
from semcast.protocols.gossip.idle import IdleMarks
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.rows import Row
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.vouching import Vouching

_DEAF = 2
"""Reports of its sessions that a logger must miss, with everything else, before it takes itself for cut off:
fewer than those after which a single session counts as away."""

LEASE = 4
"""Periods after which a session that does not report counts as away; it thinks so itself after three."""

_STRANGERS = 8192
"""Names without a stream and a session of which a logger remembers the newest incarnation."""


class Departing:
    """Of one logger.

    Args:
        me: this logger.
        settings: of the group.
        books: what it has.
        ending: ends streams.
        idle: what idle senders said last.
        colleagues: the other loggers.
        out: where frames go.
    """

    def __init__(
        self,
        me: MemberId,
        settings: GossipSettings,
        books: Books,
        ending: Ending,
        idle: IdleMarks,
        colleagues: Colleagues,
        out: Outbox,
    ) -> None:
        self._me = me
        self._settings = settings
        self._books = books
        self._ending = ending
        self._idle = idle
        least = min(settings.silence, settings.inactive)
        self._vouching = Vouching(least, colleagues, self._heard_since, out)
        self._newest: dict[str, int] = {}  # the newest incarnation of each name
        self._ended_before: dict[str, int] = {}  # the one whose former streams were ended
        self._heard_at: dict[str, Nanos] = {}
        self._colleagues = colleagues
        self._hears_at: Nanos = 0  # when any member that is no logger was heard last, by this logger
        self._deaf = False
        self._looked_at: Nanos = 0

    def start(self, now: Nanos, members: Iterable[MemberId]) -> None:
        """Of a log that was read: go on with what was being closed; nobody was silent before this."""
        for stream in self._books.streams.values():
            self._see(stream.sender.name, stream.sender.incarnation)
            if stream.frozen and stream.last is None:
                self._ending.resume(stream)
        self._newest[self._me.name] = self._me.incarnation
        self._end_former(self._me.name)
        for member in (*members, *self._books.streams):
            self._heard_at[member.name] = now
        self._looked_at = self._hears_at = now

    def heard(self, now: Nanos, source: MemberId) -> None:
        """A frame came."""
        if source not in self._colleagues:
            self._hears_at = now
            row = self._books.rows.of(source)
            if row is not None:
                row.spoke_at = now
        self._note(now, source)

    def _note(self, now: Nanos, source: MemberId) -> None:
        """It is there: of a newer incarnation, the former ones are over."""
        if source.incarnation >= self._newest.get(source.name, 0):
            self._newest[source.name] = source.incarnation
            self._heard_at[source.name] = now
            self._end_former(source.name)

    def on_heard(self, now: Nanos, source: MemberId, frame: Heard) -> None:
        """Another logger heard these."""
        if self._vouching.vouched(now, source):
            self.excuse(now)
        for member in frame.members:
            self._note(now, member)

    def excuse(self, now: Nanos) -> None:
        """Nobody was silent before this: who talks to a logger that was not heard itself could not be."""
        self._heard_at = dict.fromkeys(self._heard_at, now)
        for row in self._books.rows.all():
            row.heard_at = now

    def _heard_since(self, moment: Nanos) -> list[MemberId]:
        """Of those that have a stream, or a session."""
        names = {stream.name for stream in self._books.streams}
        names.update(row.member.name for row in self._books.rows.all())
        heard = [name for name in sorted(names) if self._heard_at.get(name, -1) >= moment]
        return [MemberId(name, self._newest.get(name, 0)) for name in heard]

    def is_former(self, sender: MemberId) -> bool:
        """Whether a newer incarnation is known, or this one is gone."""
        return sender.incarnation < self._newest.get(sender.name, 0)

    def opened(self, stream: LogStream) -> None:
        """A stream is in use: perhaps it is over already."""
        if self.is_former(stream.sender):
            self._end(stream)

    def gone(self, member: MemberId) -> None:
        """It is gone for good, and with it its stream."""
        self._see(member.name, member.incarnation + 1)
        self._end_former(member.name)

    def is_deaf(self, now: Nanos) -> bool:
        """Whether this logger hears nobody, though somebody should report here: it is cut off itself.

        Who was silent for `LEASE` while others were heard is not expected to report: a dead session would
        make a logger deaf in every pause of the others, and be excused after each of them, for ever.
        """
        if now - self._hears_at <= _DEAF * self._settings.report:
            return False
        since = self._hears_at - LEASE * self._settings.report
        rows = [row for row in self._books.rows.all() if row.here and not row.away]
        return any(row.spoke_at >= since and not self.is_former(row.member) for row in rows)

    def look(self, now: Nanos, dismiss: Callable[[MemberId], None]) -> None:
        """Who has been silent for too long; nobody, if it was the logger that slept, or was cut off."""
        was_deaf, self._deaf = self._deaf, self.is_deaf(now)
        slept = now - self._looked_at > 2 * self._settings.gossip_period or (was_deaf and not self._deaf)
        self._looked_at = now
        for stream in self._books.streams:
            self._heard_at.setdefault(stream.name, now)
        self._heard_at[self._me.name] = now
        self._tidy()
        self._vouching.tell(now)
        if slept:
            self.excuse(now)
        if self._deaf:
            return
        decides = self._ending.decides and self._vouching.complete(now)
        if decides:
            self._end_silent(now)
        for row in self._books.rows.all():
            if (row.here or decides) and self._is_inactive(now, row):
                dismiss(row.member)

    def _tidy(self) -> None:
        """Of names that have neither a stream nor a session, remember only those that were heard last."""
        streams, rows = self._books.streams, self._books.rows
        if len(self._newest) <= len(streams) + len(rows) + 2 * _STRANGERS:
            return
        needed = {
            self._me.name,
            *(stream.name for stream in streams),
            *(row.member.name for row in rows.all()),
        }
        others = [name for name in self._newest if name not in needed]
        others.sort(key=lambda name: self._heard_at.get(name, 0))
        for name in others[:-_STRANGERS]:
            for known in (self._newest, self._ended_before, self._heard_at):
                known.pop(name, None)

    def _is_inactive(self, now: Nanos, row: Row) -> bool:
        elsewhere = 0 if row.here else self._heard_at.get(row.member.name, 0)
        return now - max(row.heard_at, elsewhere) > self._settings.inactive

    def _end_silent(self, now: Nanos) -> None:
        for name, at in self._heard_at.items():
            if now - at > self._settings.silence:
                for stream in self._books.streams:
                    if stream.name == name:
                        self._see(name, stream.incarnation + 1)
                self._end_former(name)

    def end_all(self) -> None:
        """It may be this logger now that closes streams: also those of senders that went before."""
        for stream in list(self._books.streams.values()):
            if stream.frozen and stream.last is None:
                self._ending.resume(stream)
            elif self.is_former(stream.sender):
                self._end(stream)

    def _see(self, name: str, incarnation: int) -> None:
        self._newest[name] = max(self._newest.get(name, 0), incarnation)

    def _end_former(self, name: str) -> None:
        """Streams of former incarnations are over."""
        newest = self._newest.get(name, 0)
        if self._ended_before.get(name) == newest:
            return  # those that are opened since are ended at once
        self._ended_before[name] = newest
        for stream in self._books.streams.values():
            if stream.sender.name == name and stream.sender.incarnation < newest:
                self._end(stream)

    def _end(self, stream: LogStream) -> None:
        if not stream.frozen and self._ending.decides:
            self._idle.forget(stream.sender)
            self._ending.end(stream)
