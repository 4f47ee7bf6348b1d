"""What each group of a domain promises by itself, judged of its part of the rows.

The rows about one group become a history of virtual synchrony. A process that left a group and joined again
is another one there, as elsewhere in virtual synchrony a member that comes back is.
"""

from collections.abc import Iterator

import msgspec

from semcast.core.ids import MemberId
from semcast.history.events import Event, History, RunInfo
from semcast.history.schema import CAUSAL, GONE, PRIMARY, Kind
from semcast.specs.domains.kinds import CLIENT, GIVEN, LEFT, OUT, SENT, VIEW
from semcast.specs.domains.story import NOTHING_RECORDED, Row, Story, story_of
from semcast.specs.fifo import fifo_delivery
from semcast.specs.integrity import integrity
from semcast.specs.verdict import MAX_OFFENDING, Status, Verdict, unknown
from semcast.specs.vsync import VSYNC

_NAMES = (
    "vs_view_agreement",
    "vs_primary_partition",
    "vs_sending_view_delivery",
    "vs_semantic_validity",
    "vs_semantic_view_synchrony",
    "vs_semantic_fifo_view_completeness",
)
_CHECKERS = {
    "integrity": integrity,
    "fifo_delivery": fifo_delivery,
    **{name: VSYNC[name] for name in _NAMES},
}


def domain_groups(history: History) -> Verdict:
    """Each group by itself keeps the promises of virtual synchrony.

    Those of `integrity`, `fifo_delivery`, and of the views of `vsync` (see `guarantees.md`). Direct messages
    are not looked at, nor what clients send (`client_agreement`) and are given. Counts what these count.
    """
    name = "domain_groups"
    story = story_of(history)
    broken: list[tuple[str, Verdict]] = []
    doubts: list[str] = []
    for group in sorted({group for group, _ in story.stays}):
        alone = only(history, group)
        for checker in _CHECKERS.values():
            verdict = checker(alone)
            if verdict.status is Status.VIOLATED:
                broken.append((group, verdict))
            elif verdict.status is Status.UNKNOWN:
                doubts.append(f"{group}: {verdict.property}: {verdict.detail}")
    if broken:
        offending = [event for _, verdict in broken for event in verdict.offending]
        detail = "; ".join(f"{group}: {verdict.property}: {verdict.detail}" for group, verdict in broken[:3])
        count = sum(verdict.count for _, verdict in broken)
        return Verdict(name, Status.VIOLATED, tuple(offending[:MAX_OFFENDING]), count, detail)
    if not story.stays:
        return unknown(name, NOTHING_RECORDED)
    return unknown(name, doubts[0]) if doubts else Verdict(name, Status.HOLDS)


def only(history: History, group: str) -> History:
    """The part of a domain's history that is about one group, as a history of virtual synchrony."""
    story = story_of(history)
    lives = _Lives(story, group)
    events: list[Event] = []
    for process in history.processes:
        events += _events(history, story, process, group, lives)
    info = history.info
    alone = RunInfo.one(
        info.run, group, "vsync", info.seed, (), None, uniform=False, quiesced=info.quiesced, order=CAUSAL
    )
    cut_off = tuple(lives.last(process) for process in info.cut_off if lives.has(process))
    return History(msgspec.structs.replace(alone, cut_off=cut_off), events)


class _Lives:
    """The members of a group, each time that they are in it as somebody else."""

    def __init__(self, story: Story, group: str) -> None:
        views = sorted(number for name, number in story.stays if name == group)
        self._at: dict[tuple[MemberId, int], MemberId] = {}
        self._last: dict[MemberId, int] = {}
        before: set[MemberId] = set()
        again = set(_joined_again(story, group))
        for number in views:
            members = story.stays[group, number][0].event.members or ()
            for member in members:
                if member not in before or (member, number) in again:
                    self._last[member] = self._last.get(member, -1) + 1
                self._at[member, number] = self._named(member, self._last[member])
            before = set(members)
        self._clients = {
            row.event.process
            for rows in story.rows.values()
            for row in rows
            if row.kind is CLIENT and row.text.group == group
        }
        self._streams = {
            (sending.event.process, seq): self.at(sending.event.process, sending.place[1])
            for part, sending in story.sent.items()
            if sending.place[0] == group and not sending.row.text.direct and not sending.row.text.client
            for seq in story.parts.numbers(part)
        }

    def has(self, member: MemberId) -> bool:
        return member in self._last

    def is_client(self, process: MemberId) -> bool:
        """Whether it was ever a client of the group: what such send and are given is judged elsewhere."""
        return process in self._clients

    def last(self, member: MemberId) -> MemberId:
        return self._named(member, self._last.get(member, 0))

    def at(self, member: MemberId, view: int) -> MemberId:
        return self._at.get((member, view)) or self.last(member)

    def sender(self, member: MemberId, seq: int) -> MemberId:
        return self._streams.get((member, seq)) or self.last(member)

    @staticmethod
    def _named(member: MemberId, life: int) -> MemberId:
        return member if not life else MemberId(f"{member.name} ({life + 1})", member.incarnation)


def _joined_again(story: Story, group: str) -> Iterator[tuple[MemberId, int]]:
    """Members, and views that were their first after they had left: also where nobody was there meanwhile."""
    for process, rows in story.rows.items():
        left = False
        for row in rows:
            if row.text.group == group and row.kind is LEFT:
                left = True
            elif row.text.group == group and row.kind is VIEW and row.event.view is not None:
                if left:
                    yield process, row.event.view
                left = False


def _events(history: History, story: Story, process: MemberId, group: str, lives: _Lives) -> Iterator[Event]:
    if lives.is_client(process):
        return
    rows = {row.event.index: row for row in story.rows[process]}
    me = lives.last(process) if not lives.has(process) else None
    for event in history.of(process):
        row = rows.get(event.index)
        if row is None:
            if event.kind in GONE and me is not None and lives.has(process):
                yield msgspec.structs.replace(event, process=me, group=group)
            continue
        if row.text.group != group or row.text.direct or lives.is_client(event.sender or process):
            continue
        if row.kind is VIEW and event.view is not None:
            me = lives.at(process, event.view)
        if me is not None:
            yield from _translated(row, me, group, lives)
        if row.kind is LEFT:
            me = None


def _translated(row: Row, me: MemberId, group: str, lives: _Lives) -> Iterator[Event]:
    event = row.event
    base = Event(me, event.index, event.at, Kind.VIEW, group)
    if row.kind is VIEW:
        assert event.view is not None
        members = tuple(lives.at(member, event.view) for member in event.members or ())
        yield msgspec.structs.replace(base, view=event.view, level=PRIMARY, members=members)
    elif row.kind in (LEFT, OUT):
        yield msgspec.structs.replace(base, kind=Kind.LEFT)
    elif row.kind in (SENT, GIVEN):
        assert event.sender is not None
        kind = Kind.MULTICAST if row.kind is SENT else Kind.DELIVER
        sender = me if row.kind is SENT else lives.sender(event.sender, event.seq)
        yield msgspec.structs.replace(
            base,
            kind=kind,
            sender=sender,
            seq=event.seq,
            count=event.count,
            view=event.view,
            annotation=row.text.annotation if row.kind is SENT else None,
        )
