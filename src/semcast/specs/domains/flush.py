"""What a flush that has returned promises (seed I, 7.3)."""

from collections.abc import Callable

from semcast.core.ids import MemberId, Nanos
from semcast.history.events import Event, History
from semcast.specs.domains.causal import addressee
from semcast.specs.domains.kinds import ASKED, FLUSH, GIVEN, RETURNED, SENT
from semcast.specs.domains.story import Row, Stay, Story, judge
from semcast.specs.verdict import Findings, Verdict, unknown

_NO_CLOCK = "there were flushes, and the clocks of several programs cannot be compared"


def domain_flush(history: History) -> Verdict:
    """I, 7.3: what p sent or was given before a flush is given, when that returns, to all members who go on.

    Of a direct message: to its addressee, if that is there when the run is over. So whatever p does then, in
    this domain or another, nobody of them can be told of the effect before the cause. Replacements count. It
    is judged by the one clock of a simulated run. Counts pairs of a process and a message.
    """
    name = "domain_flush"
    if history.info.seed is None and any(event.kind is FLUSH for event in history.events):
        return unknown(name, _NO_CLOCK)
    return judge(name, history, _find, semantic=True, spoken=lambda event: event.kind is FLUSH)


def _find(story: Story, findings: Findings) -> None:
    deadlines: dict[int, Row] = {}
    for rows in story.rows.values():
        for part, row in _flushed(story, rows).items():
            known = deadlines.setdefault(part, row)
            if row.event.at < known.event.at:
                deadlines[part] = row
    if not deadlines:
        return
    for place, stays in story.stays.items():
        owed = [
            part for sends in story.sends.get(place, {}).values() for part in sends.parts if part in deadlines
        ]
        for stay in filter(story.closed, stays):
            late = [part for part in owed if _after(stay.given.get(part), deadlines[part])]
            if late:
                replaced = _replaced(story, stay)
                late = [part for part in late if _after(replaced.get(part), deadlines[part])]
            story.report(findings, late, _case(story, stay.process, deadlines))
    for part in story.direct:
        to = addressee(story, part) if part in deadlines else None
        if to is not None:
            shown = story.shown.get((to, part))
            if _after(None if shown is None else shown.at, deadlines[part]):
                story.report(findings, [part], _case(story, to, deadlines))


def _flushed(story: Story, rows: list[Row]) -> dict[int, Row]:
    """What a process sent or was given before some flush that returned, and the row of the first such."""
    returned = {row.event.seq: row for row in rows if row.kind is FLUSH and row.event.level == RETURNED}
    found: dict[int, Row] = {}
    first: Row | None = None
    for row in reversed(rows):
        if row.kind in (SENT, GIVEN):
            if first is not None:
                found.update(dict.fromkeys(story.parts.of(row), first))
        elif row.kind is FLUSH and row.event.level == ASKED:
            end = returned.get(row.event.seq)
            if end is not None and (first is None or end.event.at < first.event.at):
                first = end
    return found


def _after(time: Nanos | None, deadline: Row) -> bool:
    return time is None or time > deadline.event.at


def _replaced(story: Story, stay: Stay) -> dict[int, Nanos]:
    replacing = story.replacing(stay.place)
    return {} if replacing is None else replacing.earliest(stay)


def _case(
    story: Story, process: MemberId, deadlines: dict[int, Row]
) -> Callable[[int, int], tuple[str, list[Event]]]:
    def case(part: int, seq: int) -> tuple[str, list[Event]]:
        flush = deadlines[part].event
        name = story.name(part, seq)
        reason = f"{process} did not have {name} when flush {flush.seq} of {flush.process} returned"
        return reason, [*story.shown_at(process, part, seq), flush]

    return case
