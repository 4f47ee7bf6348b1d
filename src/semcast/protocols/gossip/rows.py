"""The sessions a logger knows: one row each, with what the session is through with (5.2, J_i and S_GC).

A row ends by a synced mark alone: leave, or `inactive`. A newer incarnation of the same name takes it over;
what an older one still reports does not count (R-14).
"""

from collections.abc import Iterable, Mapping

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.frames import Entry


class Row:
    """One session."""

    def __init__(
        self, member: MemberId, through: Mapping[MemberId, int], heard_at: Nanos, *, again: bool
    ) -> None:
        self.member = member
        self.filter = ""
        """What the items of messages that it wants begin with."""
        self.compacted = False
        """Whether it wants only what nothing in the log replaces."""
        self.again = again
        """Whether a former incarnation had it."""
        self.through = dict(through)
        """On disk: what it is through with."""
        self.heard_at = heard_at


class Rows:
    """All sessions, by name."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._dismissed: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, member: MemberId) -> Row | None:
        """The row of this incarnation, if it is the one that has it."""
        row = self._rows.get(member.name)
        return row if row is not None and row.member == member else None

    def known(self, name: str) -> Row | None:
        """The row of a name."""
        return self._rows.get(name)

    def is_over(self, member: MemberId) -> bool:
        """Whether this incarnation has no session any more, and never will."""
        row = self._rows.get(member.name)
        newer = row is not None and row.member.incarnation > member.incarnation
        return newer or member.incarnation <= self._dismissed.get(member.name, -1)

    def admit(
        self, now: Nanos, member: MemberId, through: Mapping[MemberId, int], *, again: bool = False
    ) -> Row:
        """A session begins, or goes on as another incarnation."""
        row = self._rows[member.name] = Row(member, through, now, again=again)
        return row

    def acknowledge(self, member: MemberId, through: Iterable[Entry]) -> None:
        """What is on disk of what a session is through with."""
        row = self.of(member)
        if row is not None:
            for stream, seq in through:
                if seq > row.through.get(stream, 0):
                    row.through[stream] = seq

    def dismiss(self, member: MemberId) -> None:
        """A session is over."""
        row = self._rows.get(member.name)
        if row is not None and row.member.incarnation <= member.incarnation:
            del self._rows[member.name]
        before = self._dismissed.get(member.name, -1)
        self._dismissed[member.name] = max(before, member.incarnation)

    def forget(self, stream: MemberId) -> None:
        """A stream is not in the log any more."""
        for row in self._rows.values():
            row.through.pop(stream, None)

    def minimum(self, stream: MemberId) -> int | None:
        """What all sessions are through with; None if there are none."""
        return min((row.through.get(stream, 0) for row in self._rows.values()), default=None)

    def connected(self, since: Nanos) -> list[Row]:
        """Those that were heard of since a moment."""
        return [row for _, row in sorted(self._rows.items()) if row.heard_at >= since]

    def all(self) -> list[Row]:
        """All of them."""
        return [row for _, row in sorted(self._rows.items())]

    def dismissed(self) -> list[MemberId]:
        """The last incarnation of each name whose session is over."""
        return [MemberId(name, incarnation) for name, incarnation in sorted(self._dismissed.items())]
