"""Groups with clients (seed I, 2, 7.1 and 7.4): what servers and clients are given, and what clients cost."""

from collections.abc import Callable, Iterable, Iterator

from semcast.core.annotations import Item
from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.specs.domains.kinds import CLIENT, GIVEN, LEFT, OUT, VIEW
from semcast.specs.domains.pasts import Heard, pasts_of
from semcast.specs.domains.story import Row, Stay, Story, judge, story_of
from semcast.specs.verdict import Findings, Verdict, unknown


def client_views(history: History) -> Verdict:
    """I, 7.4: that a client comes or goes changes no view of the servers.

    Views of a group with clients have servers in them and nobody else, and clients are told of those same
    views, with growing numbers. A view may have the members of the one before: a server was suspected, and
    was heard again before the change that this began was over. Counts rows.
    """
    return judge("client_views", history, _find_views, spoken=_is_client)


def client_agreement(history: History) -> Verdict:
    """I, 7.1: servers are given what clients send, in the order of sending, once, and in agreement.

    Servers that go from one view to the same next one were given the same of it there. When the run is over,
    servers that were there all the time have everything that a client sent who is still there. Counts pairs
    of a server and a message.
    """
    return judge("client_agreement", history, _find_disagreement, spoken=_is_client)


def client_completeness(history: History) -> Verdict:
    """I, 7.1: what a client is given has no gap.

    From the first message of a group on that it is given it has all for it that come after that one and
    precede anything that it is given, in whatever group, or replacements. When the run is over it has all
    that come after that one and that servers who go on were given. Who crashed or was put out is not judged:
    servers may have given it up before it knew. Counts pairs of a client and a message.
    """
    name = "client_completeness"
    if any(map(_is_client, history.events)) and pasts_of(story_of(history)).stuck:
        return unknown(name, "precedence runs in a circle")
    return judge(name, history, _find_incomplete, spoken=_is_client)


def _is_client(event: Event) -> bool:
    return event.kind is CLIENT


# Views


def _find_views(story: Story, findings: Findings) -> None:
    clients = {
        (row.text.group, process)
        for process, rows in story.rows.items()
        for row in rows
        if row.kind is CLIENT
    }
    styled = {group for group, _ in clients}
    for process, rows in story.rows.items():
        last: dict[str, Row] = {}
        for row in rows:
            group = row.text.group
            if group in styled and row.kind in (VIEW, CLIENT):
                problem = _problem(story, row, last.get(group), clients)
                if problem:
                    findings.count(1)
                    findings.example(f"{process}: {problem}", row.event)
                last[group] = row
            elif row.kind in (LEFT, OUT):
                last.pop(group, None)


def _problem(story: Story, row: Row, before: Row | None, clients: set[tuple[str, MemberId]]) -> str:
    group, members = row.text.group, row.event.members or ()
    name = f"view {row.event.view} of {group}"
    inside = [member for member in members if (group, member) in clients]
    if inside:
        return f"{name} has the client {inside[0]} in it"
    if before is not None and (row.event.view or 0) <= (before.event.view or 0):
        return f"{name} comes after view {before.event.view}"
    known = story.stays.get((group, row.event.view or 0))
    if known and set(known[0].event.members or ()) != set(members):
        return f"{name} has other members than {known[0].process} says"
    return ""


# What clients send


def _find_disagreement(story: Story, findings: Findings) -> None:
    _find_again(story, findings)
    for stays in story.stays.values():
        going = [stay for stay in stays if stay.after is not None]
        for stay in going:
            assert stay.after is not None
            for other in going:
                assert other.after is not None
                if other.after.place == stay.after.place:
                    lacking = [part for part in _of_clients(story, other) if part not in stay.given]
                    story.report(findings, lacking, _unlike(story, stay, other))
    if story.info.quiesced:
        _find_lost(story, findings)


def _find_again(story: Story, findings: Findings) -> None:
    """What is given twice, or out of order."""
    for process, rows in story.rows.items():
        last: dict[tuple[str, MemberId], int] = {}
        for row in rows:
            event, sender = row.event, row.event.sender
            if row.kind is not GIVEN or sender is None or sender == process or row.text.direct:
                continue
            part = story.parts.of(row)[0]
            if part not in story.sent or not story.sent[part].row.text.client:
                continue
            key = row.text.group, sender
            if event.seq <= last.get(key, 0):
                findings.count(1)
                findings.example(f"{process} is given {event.seq} of {sender} after {last[key]}", event)
            last[key] = max(last.get(key, 0), event.last)


def _of_clients(story: Story, stay: Stay) -> Iterator[int]:
    return (part for part in stay.given if story.sent[part].row.text.client)


def _unlike(story: Story, stay: Stay, other: Stay) -> Callable[[int, int], tuple[str, list[Event]]]:
    def case(part: int, seq: int) -> tuple[str, list[Event]]:
        where = f"view {stay.place[1]} of {stay.place[0]}"
        reason = (
            f"{stay.process} went on from {where} without {story.name(part, seq)}, unlike {other.process}"
        )
        return reason, [*story.shown_at(other.process, part, seq), stay.event]

    return case


def _find_lost(story: Story, findings: Findings) -> None:
    since: dict[tuple[str, MemberId], int] = {}
    for group, view in sorted(story.stays):
        for stay in story.stays[group, view]:
            if stay.after is None and not stay.open:
                since.pop((group, stay.process), None)  # it was out meanwhile
            else:
                since.setdefault((group, stay.process), view)
    there = {(group, process) for group, process in _open_clients(story)}
    servers = [stay for stays in story.stays.values() for stay in stays if stay.open and story.closed(stay)]
    for part, sending in story.sent.items():
        group, view = sending.place
        if not sending.row.text.client or (group, sending.event.process) not in there:
            continue
        for stay in servers:
            lasting = since.get((group, stay.process), view + 1) <= view
            if stay.place[0] == group and lasting and (stay.process, part) not in story.shown:
                story.report(findings, [part], _lost(story, stay))


def _lost(story: Story, stay: Stay) -> Callable[[int, int], tuple[str, list[Event]]]:
    def case(part: int, seq: int) -> tuple[str, list[Event]]:
        event = story.sent[part].event.only(seq)
        return f"{stay.process} never had {story.name(part, seq)}, whose sender is there", [event]

    return case


def _open_clients(story: Story) -> Iterator[tuple[str, MemberId]]:
    """Groups, and who is a client there when the run is over."""
    for process, rows in story.rows.items():
        if process in story.gone:
            continue
        groups: set[str] = set()
        for row in rows:
            if row.kind is CLIENT:
                groups.add(row.text.group)
            elif row.kind is LEFT:
                groups.discard(row.text.group)
            elif row.kind is OUT:
                groups.clear()
        yield from ((group, process) for group in sorted(groups))


# What clients are given


class _Visit:
    """One time that a process is a client of a group."""

    def __init__(self, process: MemberId, group: str, style: str) -> None:
        self.process = process
        self.group = group
        self.style = style
        self.given: dict[int, None] = {}
        self.first: int | None = None
        self.open = False
        """Whether it is a client when the run is over."""
        self.upto: list[int] = []
        """Of each process, how much precedes what was given by the end, in all groups."""

    def is_for(self, row: Row) -> bool:
        """Whether what a server sent is for this client."""
        to, text = row.text.to, row.text
        if text.group != self.group or text.client or text.direct:
            return False
        if to is not None:
            return MemberId(*to) == self.process
        return self.style == "diffusion"


def _find_incomplete(story: Story, findings: Findings) -> None:
    everywhere = {
        part for stays in story.stays.values() for stay in stays if story.closed(stay) for part in stay.given
    }
    for process, rows in story.rows.items():
        for visit in _visits(story, process, rows):
            rest = visit.open and story.info.quiesced
            lacking = _lacking(story, visit, everywhere if rest else ())
            story.report(findings, lacking, _gap(story, visit))


def _visits(story: Story, process: MemberId, rows: list[Row]) -> Iterator[_Visit]:
    heard, here = Heard(pasts_of(story)), dict[str, _Visit]()
    for row in rows:
        group = row.text.group
        if row.kind is CLIENT:
            here.setdefault(group, _Visit(process, group, row.text.style))
        elif row.kind is GIVEN:
            for part in story.parts.of(row):
                if part in story.sent:
                    heard.preceding(part)
                    if group in here:
                        _give(story, here[group], part)
        elif row.kind is LEFT and group in here:
            visit = here.pop(group)
            visit.upto = list(heard.counts)
            yield visit
        elif row.kind is OUT:
            return
    if process not in story.gone:
        for visit in here.values():
            visit.open = True
            visit.upto = list(heard.counts)
            yield visit


def _give(story: Story, visit: _Visit, part: int) -> None:
    visit.given[part] = None
    if visit.first is None and story.sent[part].event.process != visit.process:
        visit.first = part


def _lacking(story: Story, visit: _Visit, everywhere: Iterable[int]) -> list[int]:
    pasts, found = pasts_of(story), []
    if visit.first is None:
        return []
    final = set(everywhere)
    for part, sending in story.sent.items():
        if part in visit.given or not visit.is_for(sending.row) or sending.event.process == visit.process:
            continue
        sender, number = pasts.place(part)
        owed = number <= visit.upto[sender] or part in final
        if owed and pasts.precedes(visit.first, part) and not _replaced(story, visit, part):
            found.append(part)
    return found


def _replaced(story: Story, visit: _Visit, part: int) -> bool:
    """Whether something of the same sender that replaces it was given. What names others is not judged."""
    note, sending = story.sent[part].row.text.annotation, story.sent[part]
    if not isinstance(note, Item):
        return note is not None
    return any(
        story.sent[other].row.text.annotation == note
        and story.sent[other].event.process == sending.event.process
        and story.sent[other].number > sending.number
        for other in visit.given
    )


def _gap(story: Story, visit: _Visit) -> Callable[[int, int], tuple[str, list[Event]]]:
    def case(part: int, seq: int) -> tuple[str, list[Event]]:
        assert visit.first is not None
        reason = (
            f"{visit.process} has no {story.name(part, seq)}, "
            f"and was given {story.first(visit.first)} before it and more after it"
        )
        return reason, [story.sent[part].event.only(seq)]

    return case
