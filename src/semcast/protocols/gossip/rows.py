"""The sessions a logger knows: one row each, with what the session is through with (5.2, J_i and S_GC).

A row ends by a synced mark alone: leave, or `inactive`; until that is synced, what it is owed stays. A newer
incarnation of the same name takes it over;
what an older one still reports does not count (R-14).

Where there are several loggers, the rows are one map that all of them have. The newer row of a name wins:
a newer incarnation, or of the same one a newer attempt, since a session asks one logger after the other until
one confirms it, and another later if that is gone. Of the same attempt the maximum counts.

Of sessions that are over the last ones are remembered. One that was silent for so long that it is forgotten,
and reports again, is taken in with its own position, as one whose row was lost with a disk.
"""

from collections.abc import Iterable, Mapping

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.frames import Entry

_OVER = 65536
"""Names whose sessions are over that are remembered: most subscribers without a name never come back."""


class Row:
    """One session."""

    def __init__(
        self,
        member: MemberId,
        through: Mapping[MemberId, int],
        heard_at: Nanos,
        *,
        again: bool,
        attempt: int = 1,
    ) -> None:
        self.member = member
        self.attempt = attempt
        self.here = True
        """Whether the session reports to this logger."""
        self.filter = ""
        """What the items of messages that it wants begin with."""
        self.compacted = False
        """Whether it wants only what nothing in the log replaces."""
        self.again = again
        """Whether a former incarnation had it."""
        self.through = dict(through)
        """On disk: what it is through with."""
        self.heard_at = heard_at
        """Since when it has not reported; later than its last report, if it was excused."""
        self.spoke_at = heard_at
        """When this logger had the last frame of it, of any kind; nobody is excused of that."""
        self.away = False
        """Whether it said that it goes away, and nothing since."""

    @property
    def age(self) -> tuple[int, int]:
        """Which of two rows of a name is newer."""
        return self.member.incarnation, self.attempt


class Rows:
    """All sessions, by name; and so many of those that are over.

    >>> rows = Rows(most=2)
    >>> [rows.dismiss(MemberId(name)) for name in ("a", "b", "a", "c")]
    [None, None, None, 'b']
    """

    def __init__(self, most: int = _OVER) -> None:
        self.most = most
        self._rows: dict[str, Row] = {}
        self._dismissed: dict[str, int] = {}  # who was dismissed first comes first
        self._ending: dict[MemberId, Row] = {}  # of those that are dismissed, and that is not synced

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, member: MemberId) -> Row | None:
        """The row of this incarnation, if it is the one that has it."""
        row = self._rows.get(member.name)
        return row if row is not None and row.member == member else None

    def known(self, name: str) -> Row | None:
        """The row of a name."""
        return self._rows.get(name)

    def remembers(self, name: str) -> bool:
        """Whether it has a session, or had one that is not forgotten."""
        return name in self._rows or name in self._dismissed

    def is_over(self, member: MemberId) -> bool:
        """Whether this incarnation has no session any more, and never will."""
        row = self._rows.get(member.name)
        newer = row is not None and row.member.incarnation > member.incarnation
        return newer or member.incarnation <= self._dismissed.get(member.name, -1)

    def has(self, row: Row) -> bool:
        """Whether this is the row of its name, as old as it is."""
        known = self.of(row.member)
        return known is not None and known.age == row.age

    def admit(
        self,
        now: Nanos,
        member: MemberId,
        through: Mapping[MemberId, int],
        *,
        again: bool = False,
        attempt: int = 1,
    ) -> Row:
        """A session begins, goes on as another incarnation, or moves here."""
        row = self._rows[member.name] = Row(member, through, now, again=again, attempt=attempt)
        return row

    def knows(self, row: Row) -> bool:
        """Whether merging a row would change nothing."""
        known = self._rows.get(row.member.name)
        if self.is_over(row.member):
            return True
        if known is None or known.age < row.age:
            return False
        higher = (seq > known.through.get(stream, 0) for stream, seq in row.through.items())
        return known.age > row.age or not any(higher)

    def merge(self, row: Row) -> bool:
        """What another logger, or a record, says of a session; returns whether that is news."""
        known = self._rows.get(row.member.name)
        if self.is_over(row.member):
            return False
        if known is None or known.age < row.age:
            self._rows[row.member.name] = row
            return True
        if known.age == row.age:
            known.here = known.here or row.here
            news = not self.knows(row)
            for stream, seq in row.through.items():
                known.through[stream] = max(seq, known.through.get(stream, 0))
            return news
        return False

    def acknowledge(self, member: MemberId, through: Iterable[Entry]) -> None:
        """What is on disk of what a session is through with."""
        row = self.of(member)
        if row is not None:
            for stream, seq in through:
                if seq > row.through.get(stream, 0):
                    row.through[stream] = seq

    def dismiss(self, member: MemberId) -> str | None:
        """A session is over, which counts for what it is owed once that is synced (`settle`).

        Returns the name that is forgotten for it, if any, and has no session.
        """
        row = self._rows.get(member.name)
        if row is not None and row.member.incarnation <= member.incarnation:
            self._ending[member] = self._rows.pop(member.name)
        before = self._dismissed.pop(member.name, -1)
        self._dismissed[member.name] = max(before, member.incarnation)
        if len(self._dismissed) <= self.most:
            return None
        first = next(iter(self._dismissed))
        del self._dismissed[first]
        return None if first in self._rows else first

    def settle(self, member: MemberId) -> None:
        """It is synced that a session is over."""
        self._ending.pop(member, None)

    def forget(self, stream: MemberId) -> None:
        """A stream is not in the log any more."""
        for row in (*self._rows.values(), *self._ending.values()):
            row.through.pop(stream, None)

    def minimum(self, stream: MemberId) -> int | None:
        """What all sessions are through with; None if there are none."""
        rows = (*self._rows.values(), *self._ending.values()) if self._ending else self._rows.values()
        return min((row.through.get(stream, 0) for row in rows), default=None)

    def connected(self, since: Nanos) -> list[Row]:
        """Those that report here, and did so since a moment."""
        there = [row for _, row in sorted(self._rows.items()) if row.here and not row.away]
        return [row for row in there if row.heard_at >= since]

    def all(self) -> list[Row]:
        """All of them."""
        return [row for _, row in sorted(self._rows.items())]

    def dismissed_of(self, name: str) -> MemberId | None:
        """The last incarnation of a name whose session is over."""
        found = self._dismissed.get(name)
        return None if found is None else MemberId(name, found)

    def dismissed(self) -> list[MemberId]:
        """The last incarnation of each name whose session is over, in the order in which they ended."""
        return [MemberId(name, incarnation) for name, incarnation in self._dismissed.items()]

    def records(self) -> int:
        """How many records all this takes."""
        return len(self._rows) + len(self._dismissed)
