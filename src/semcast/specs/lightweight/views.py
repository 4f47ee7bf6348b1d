"""Views of lightweight groups: who is in one, what is delivered in one, how they follow each other."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.specs.lightweight.kinds import CONF, DELIVER, LEFT, ORDERED, TRANSITIONAL, VIEW
from semcast.specs.lightweight.story import Message, Row, ViewId, story_of
from semcast.specs.verdict import Findings, Verdict


def lw_view_agreement(history: History) -> Verdict:
    """A view is one list at all who are told of it, themselves in it; a client's views of a group grow."""
    findings = Findings("lw_view_agreement")
    lists: dict[tuple[str, ViewId], Row] = {}
    for client, rows in story_of(history).heard.items():
        last: dict[str, Row] = {}
        inside: set[str] = set()
        for row in rows:
            text = row.text
            if row.kind is VIEW:
                inside.add(text.group)
                other = lists.setdefault((text.group, text.id), row)
                if other.members != row.members:
                    _found(findings, f"two lists for one view of {text.group}", other, row)
                if client not in row.members:
                    _found(findings, f"{client} is told of a view without itself", row)
                if text.group in last and last[text.group].text.id >= text.id:
                    _found(findings, f"views of {text.group} do not grow at {client}", last[text.group], row)
                last[text.group] = row
            elif row.kind is LEFT:
                inside.discard(text.group)
            elif any(group not in inside for group in _groups_of(row)):
                _found(findings, f"{client} is told something of a group before its first view there", row)
    return findings.verdict()


def _groups_of(row: Row) -> list[str]:
    if row.kind is TRANSITIONAL:
        return [row.text.group]
    return list(row.text.views) if row.kind is DELIVER else []


def lw_same_view(history: History) -> Verdict:
    """All who deliver a message in a group do so in one view; in a rest, all of that part.

    But for messages to a `vs` group from outside, or to several groups: after a merge, each side has its own.
    """
    findings = Findings("lw_same_view")
    story = story_of(history)
    where: dict[tuple[Message, str, object], Row] = {}
    for row in story.rows(DELIVER):
        for group, view in row.text.views.items():
            if group in story.vs and row.text.sent is None:
                continue
            other = where.setdefault((row.message, group, row.text.epoch), row)
            if other.text.views[group] != view:
                _found(findings, f"({row.message[0]},{row.message[1]}) in two views of {group}", other, row)
    return findings.verdict()


def lw_atomicity(history: History) -> Verdict:
    """Who goes from one view to the same next one, together, delivered the same there.

    In a `vs` group the view says who came along. In others who is together was told of the same transitional
    views: daemons that parted may meet again before the one side had agreed on another view.
    """
    findings = Findings("lw_atomicity")
    stays: dict[tuple[object, ...], tuple[list[Message], Row]] = {}
    for client, rows in story_of(history).heard.items():
        there: dict[str, tuple[ViewId, list[Message]]] = {}
        together: dict[str, frozenset[MemberId]] = {}  # of a view, those in all transitional ones since
        for row in rows:
            text = row.text
            if row.kind is DELIVER:
                for group in text.views:
                    if group in there:
                        there[group][1].append(row.message)
            elif row.kind is LEFT:
                there.pop(text.group, None)
            elif row.kind is TRANSITIONAL and text.group in together:
                together[text.group] &= frozenset(row.members)
            elif row.kind is VIEW:
                before, here = there.get(text.group), together.get(text.group)
                there[text.group], together[text.group] = (text.id, []), frozenset(row.members)
                if before is None or (text.vs and str(client) not in text.along):
                    continue
                along = text.along if text.vs else here
                given, other = stays.setdefault((text.group, before[0], text.id, along), (before[1], row))
                if given != before[1]:
                    _found(findings, f"different messages in a view of {text.group}", other, row)
    return findings.verdict()


def lw_one_event(history: History) -> Verdict:
    """A change of configuration is one transitional event and one view at most, for a group and a client.

    Who is lost without having left or gone was announced by a transitional event.
    """
    findings = Findings("lw_one_event")
    for rows in story_of(history).daemons.values():
        told: dict[tuple[MemberId, str, str], Event] = {}
        groups: dict[tuple[MemberId, str], _Followed] = {}
        rest = False
        for row in rows:
            if row.kind is CONF:
                told.clear()
                rest = row.event.level == "rest"
            elif row.kind is ORDERED:
                _note_departure(row, groups)
            elif row.kind is LEFT:
                groups.pop((row.client, row.text.group), None)
                for what in ("transitional", "view"):  # who comes back is told anew
                    told.pop((row.client, row.text.group, what), None)
            elif row.kind in (VIEW, TRANSITIONAL):
                _look_at_change(row, told, groups, findings, rest=rest)
    return findings.verdict()


class _Followed:
    """A group as a client follows it."""

    def __init__(self, members: tuple[MemberId, ...]) -> None:
        self.members = members
        self.warned = False
        self.departed: set[MemberId] = set()


def _note_departure(row: Row, groups: dict[tuple[MemberId, str], _Followed]) -> None:
    level, who = row.event.level, row.client
    for (_, group), followed in groups.items():
        if level == "gone" or (level == "leave" and group in row.text.groups):
            followed.departed.add(who)


def _look_at_change(
    row: Row,
    told: dict[tuple[MemberId, str, str], Event],
    groups: dict[tuple[MemberId, str], _Followed],
    findings: Findings,
    *,
    rest: bool,
) -> None:
    client, group = row.client, row.text.group
    what = "transitional" if row.kind is TRANSITIONAL else "view"
    if row.kind is TRANSITIONAL or row.event.level == "configuration":
        other = told.setdefault((client, group, what), row.event)
        if other is not row.event:
            findings.count(1)
            findings.example(f"{client} is told twice of one change of {group}", other, row.event)
    followed = groups.get((client, group))
    if row.kind is TRANSITIONAL:
        if followed is not None:
            followed.warned = True
        return
    if followed is not None and not followed.warned:
        lost = [
            each for each in followed.members if each not in row.members and each not in followed.departed
        ]
        if lost:
            _found(findings, f"{lost[0]} is lost from {group}, and {client} was not warned", row)
    warned = rest and followed is not None and followed.warned  # of this change, whatever view it is in
    groups[client, group] = _Followed(row.members)
    groups[client, group].warned = warned


def _found(findings: Findings, reason: str, *rows: Row) -> None:
    findings.count(1)
    findings.example(reason, *(row.event for row in rows))
