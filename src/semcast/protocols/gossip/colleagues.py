"""What loggers of a group do together: they share sessions, and promise each other what they will not need.

A *promise* of a logger says, of each stream, below which number it will admit no new session, and how far its
log goes without a gap. It never exceeds what any session is through with that the logger knows of, nor its
own log. What is stable is below every promise: so nothing is collected that a session of any logger needs,
nor anything that a log has not got yet. A logger that is silent holds that back, and nothing else.

Sessions are one map (`rows.py`). Each row is shared as soon as it is synced, and again until that is
acknowledged.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.frames import Promise, Share, Through, entries, reports
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.rows import Row
from semcast.protocols.gossip.settings import GossipSettings

_ROWS = 32
"""Rows that are shared with a colleague in a round."""
_UNANSWERED = 1024
"""Frames of rows that may be on their way."""
_TIMES = 128
"""How often a row may have been said, and not answered yet."""
_SPARE = 1024
"""Streams that are not in the log, of which promises are remembered for a while."""


class Colleague:
    """Another logger."""

    def __init__(self) -> None:
        self.log = 0
        self.promises: dict[MemberId, tuple[int, int]] = {}
        """By stream: below which number it admits nobody, and what it has on disk without a gap."""
        self.serial = 0
        self.unshared: dict[str, list[set[int]]] = {}
        """Names of sessions of which it may not know all, and the frames on their way that say it: each time
        it was said since it changed. The answer may take longer than a round."""
        self.has: dict[str, tuple[int, int]] = {}
        """How new the rows are that it has on disk."""

    def begin(self, log: int) -> None:
        """What was on its disk before is lost."""
        self.log, self.serial = log, 0
        self.promises.clear()
        self.has.clear()


class Colleagues:
    """All other loggers; who they are is set, so that nobody is forgotten.

    Args:
        me: this logger.
        settings: of the group.
        roster: who is there.
        books: what this logger has.
        out: where frames go.
    """

    def __init__(
        self, me: MemberId, settings: GossipSettings, roster: Roster, books: Books, out: Outbox
    ) -> None:
        self.names = tuple(sorted(name for name in settings.loggers if name != me.name))
        self._me = me
        self._settings = settings
        self._roster = roster
        self._books = books
        self._out = out
        self._others = {name: Colleague() for name in self.names}
        self._promised: dict[MemberId, int] = {}
        self._serial = 0
        self._sent: dict[int, tuple[str, str, tuple[int, int]]] = {}  # rows on their way: to whom, of whom

    def __bool__(self) -> bool:
        return bool(self.names)

    def __contains__(self, member: MemberId) -> bool:
        return member.name in self._others

    @property
    def decides(self) -> bool:
        """Whether this logger is the one that closes streams: the first of all, whoever is there."""
        return not self.names or self._me.name < self.names[0]

    def is_decider(self, colleague: MemberId) -> bool:
        """Whether that is this one."""
        return not self.decides and colleague.name == self.names[0]

    def decider(self) -> MemberId | None:
        """The one that closes streams, where that is another one within reach."""
        return None if self.decides else self._roster.loggers().get(self.names[0])

    def there(self) -> list[MemberId]:
        """Those that are within reach."""
        loggers = self._roster.loggers()
        return [loggers[name] for name in self.names if name in loggers]

    def hears(self, name: str) -> bool:
        """Whether another logger was heard lately; where membership is fixed nobody can tell."""
        return bool(self._settings.presence) and name in self._roster.loggers()

    def forget(self, name: str) -> None:
        """One of them never comes back: nobody waits for it."""
        self.names = tuple(other for other in self.names if other != name)
        self._others.pop(name, None)

    # Promises

    def promise(self, number: int, floors: Iterable[tuple[MemberId, int]]) -> None:
        """A round: say what this log has, and what nobody will need of it."""
        books = self._books
        self._tidy(self._promised)
        for colleague in self._others.values():
            self._tidy(colleague.promises)
        lowest = dict(floors)
        vector: list[Through] = []
        for sender, stream in sorted(books.streams.items()):
            minimum = books.rows.minimum(sender)
            found = stream.logged if minimum is None else min(minimum, stream.logged)
            self._promised[sender] = promised = max(min(found, lowest.get(sender, found)), stream.floor)
            vector.append((sender, promised, stream.logged))
        parts = reports(vector)
        for logger in self.there():
            self._out.send(logger, Promise(books.log, number, parts[number % len(parts)]))

    def _tidy(self, known: dict[MemberId, Any]) -> None:
        """Forget what was promised of streams that are over. Of a new one it is said again in each round."""
        streams = self._books.streams
        if len(known) > len(streams) + _SPARE:
            for stream in [stream for stream in known if stream not in streams]:
                del known[stream]

    def promised(self, stream: MemberId) -> int | None:
        """What was promised of a stream, in this life."""
        return self._promised.get(stream)

    def on_promise(self, source: MemberId, frame: Promise) -> None:
        """A colleague says how far it is."""
        colleague = self._others[source.name]
        if frame.log < colleague.log:
            return
        if frame.log > colleague.log:
            self._renew(source.name, frame.log)
        told = []
        for stream, minimum, logged in frame.promised:
            colleague.promises[stream] = minimum, logged
            if stream in self._books.ended:
                last = self._books.ended.last(stream)
                told.append((stream, last, last))
        if told and frame.serial:  # streams that are over are listed by nobody
            self._out.send(source, Promise(self._books.log, 0, told))

    def _renew(self, name: str, log: int) -> None:
        colleague = self._others[name]
        if log > colleague.log:
            colleague.begin(log)
            for row in self._books.rows.all():
                colleague.unshared[row.member.name] = []
            for member in self._books.rows.dismissed():
                colleague.unshared[member.name] = []

    def on_begin(self, source: MemberId, log: int) -> None:
        """A colleague has a new log."""
        self._renew(source.name, log)

    def stable(self, stream: MemberId) -> int:
        """Below this, no colleague has a session that needs anything."""
        return min((each.promises.get(stream, (0, 0))[0] for each in self._others.values()), default=1 << 62)

    def logged(self, stream: MemberId) -> int:
        """What all colleagues have on disk without a gap."""
        return min((each.promises.get(stream, (0, 0))[1] for each in self._others.values()), default=1 << 62)

    def on_logged(self, source: MemberId, log: int, stream: MemberId, upto: int) -> None:
        """A colleague says between its promises that it has more of a stream on disk."""
        colleague = self._others[source.name]
        if log == colleague.log:
            minimum, logged = colleague.promises.get(stream, (0, 0))
            colleague.promises[stream] = minimum, max(logged, upto)

    def holders(self, stream: MemberId, seq: int) -> int:
        """How many colleagues have a message on disk, and all before it."""
        return sum(1 for each in self._others.values() if each.promises.get(stream, (0, 0))[1] >= seq)

    # Sessions

    def changed(self, name: str, source: MemberId | None = None) -> None:
        """The row of a session is on disk: all know it soon, but for who said so."""
        if not self._books.rows.remembers(name):
            return
        for other, colleague in self._others.items():
            if source is None or other != source.name:
                colleague.unshared[name] = []

    def spread(self, row: Row) -> None:
        """Make sure of those that are not known to have a row: also who told this one of it."""
        name = row.member.name
        for colleague in self._others.values():
            if colleague.has.get(name, (-1, 0)) < row.age:
                colleague.unshared.setdefault(name, [])

    def forget_session(self, name: str) -> None:
        """A session has been over for long: nothing is said of it any more."""
        for colleague in self._others.values():
            colleague.unshared.pop(name, None)
            colleague.has.pop(name, None)

    def share(self) -> None:
        """Send what colleagues may not know, some of it in each round."""
        for colleague in self.there():
            known = self._others[colleague.name]
            some = [name for name, _ in zip(known.unshared, range(_ROWS), strict=False)]
            for name in some:
                said = known.unshared.pop(name)  # others come first, next time
                frames = list(self._shares(name, colleague.name))
                known.unshared[name] = [*said[-_TIMES:], {frame.serial for frame in frames}]
                for frame in frames:
                    self._out.send(colleague, frame)

    def _shares(self, name: str, to: str) -> Iterator[Share]:
        rows = self._books.rows
        row = rows.known(name)
        if row is None:
            over = rows.dismissed_of(name)
            if over is not None:
                yield Share(self._number(to, over, (over.incarnation, 1 << 62)), over, 0, False, True, [])
            return
        for part in entries(sorted(row.through.items())):
            serial = self._number(to, row.member, row.age)
            kind = row.compacted, row.filter
            yield Share(serial, row.member, row.attempt, row.again, False, part, *kind)

    def _number(self, to: str, member: MemberId, age: tuple[int, int]) -> int:
        self._serial += 1
        self._sent[self._serial] = to, member.name, age
        self._sent.pop(self._serial - _UNANSWERED, None)
        return self._serial

    def on_shared(self, source: MemberId, serial: int) -> str | None:
        """A colleague has a row on disk; returns whose."""
        to, name, age = self._sent.pop(serial, ("", "", (0, 0)))
        if to != source.name:
            return None
        colleague = self._others[to]
        colleague.has[name] = max(age, colleague.has.get(name, (0, 0)))
        for awaited in colleague.unshared.get(name, []):
            if serial in awaited:
                awaited.discard(serial)
                if not awaited:
                    del colleague.unshared[name]
                break
        return name

    def copies(self, row: Row) -> int:
        """How many colleagues have a row on disk."""
        name = row.member.name
        return sum(1 for each in self._others.values() if each.has.get(name, (-1, 0)) >= row.age)
