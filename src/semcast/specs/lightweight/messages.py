"""Messages of lightweight groups: their order, who gets them, and what their senders are told."""

from collections.abc import Iterator
from itertools import pairwise

from semcast.core.ids import MemberId
from semcast.history.events import History
from semcast.specs.lightweight.kinds import ASK, DELIVER, ORDERED, PRIVATE, SESSION
from semcast.specs.lightweight.story import ClientsStanding, LightStory, Message, Place, Row, ViewId, story_of
from semcast.specs.verdict import Findings, Verdict

Step = tuple[MemberId, int | str]
"""What a daemon did: a request, or that a client came or is gone."""


def lw_order(history: History) -> Verdict:
    """Positions: one message each, the same everywhere; they grow at each client, over all groups.

    Each client has the messages of another in the order in which they were sent, each once, and there is one
    order of everything that agrees with that of every daemon.
    """
    findings = Findings("lw_order")
    story = story_of(history)
    one_place_each(story, findings)
    for client, rows in story.heard.items():
        last: Row | None = None
        of_sender: dict[MemberId, Row] = {}
        for row in rows:
            if row.kind not in (DELIVER, PRIVATE):
                continue
            if last is not None and last.place >= row.place:
                _found(findings, f"positions do not grow at {client}", last, row)
            last = row
            sender, seq = row.message
            before = of_sender.get(sender)
            if before is not None and before.event.last >= seq:
                _found(findings, f"{client} has ({sender},{seq}) after a later one, or twice", before, row)
            of_sender[sender] = row
    one_order(story, findings)
    return findings.verdict()


def one_place_each(story: LightStory, findings: Findings) -> None:
    """Two steps at one position, and steps at two: each row is compared with the first about the same."""
    at: dict[Place, Row] = {}
    of: dict[tuple[Step, int], Row] = {}
    configuration: dict[Step, Row] = {}
    for row in story.rows(ORDERED, DELIVER, PRIVATE):
        step = _step(row)
        other = at.setdefault(row.place, row)
        if _step(other) != step:
            _found(findings, f"two messages at position {row.place}", other, row)
        # Two parts of a configuration may have one message at different places of their rests.
        first = configuration.setdefault(step, row)
        other = of.setdefault((step, row.text.epoch[1]), row)
        moved = other.place != row.place and (not row.text.epoch[1] or other.text.epoch == row.text.epoch)
        if moved or first.text.epoch[0] != row.text.epoch[0]:
            _found(findings, f"request {step[1]} of {step[0]} is at two positions", first, other, row)


def _step(row: Row) -> Step:
    sender, seq = row.message
    return sender, seq or row.event.level or ""


def one_order(story: LightStory, findings: Findings) -> None:
    """Whether an order agrees with all daemons.

    Take away what nothing comes before, again and again: nothing is left over.
    """
    after: dict[Step, set[Step]] = {}
    awaited: dict[Step, int] = {}
    for rows in story.daemons.values():
        steps = [_step(row) for row in rows if row.kind is ORDERED]
        for step in steps:
            after.setdefault(step, set())
            awaited.setdefault(step, 0)
        for step, following in pairwise(steps):
            if following not in after[step]:
                after[step].add(following)
                awaited[following] += 1
    free = [step for step, count in awaited.items() if not count]
    while free:
        for following in after.pop(free.pop()):
            awaited[following] -= 1
            if not awaited[following]:
                free.append(following)
    if after:
        findings.count(1)
        client, what = min(after, key=str)
        findings.example(f"no order agrees with all daemons, about request {what} of {client}")


def lw_open(history: History) -> Verdict:
    """A message is delivered once by every member of the views at its position, and by nobody else.

    Whether its sender is a member or not. Messages of members of `vs` groups are for those in their view.
    """
    findings = Findings("lw_open")
    story = story_of(history)
    in_view = {row.message for row in story.rows(ASK) if row.text.view is not None}
    for rows in story.daemons.values():
        for ordered, wanted, given in _deliveries(rows):
            if ordered.message in in_view:
                continue
            there = [row.client for row in given]
            for client, groups in wanted.items():
                if client not in there:
                    _found(findings, f"{client} is in {', '.join(groups)}, and is not given it", ordered)
            for row in given:
                if there.count(row.client) > 1 or set(wanted.get(row.client, ())) != set(row.text.views):
                    _found(findings, f"{row.client} is given it as one of other groups", ordered, row)
    return findings.verdict()


def _deliveries(rows: list[Row]) -> Iterator[tuple[Row, dict[MemberId, list[str]], list[Row]]]:
    """Each cast of a daemon, which local clients are in which of its groups, and who is given it."""
    standing = ClientsStanding()
    ordered: Row | None = None
    wanted: dict[MemberId, list[str]] = {}
    given: list[Row] = []
    for row in rows:
        if row.kind is DELIVER and ordered is not None and row.message == ordered.message:
            given.append(row)
            continue
        if row.kind is ORDERED:
            if ordered is not None:
                yield ordered, wanted, given
            ordered, given = (row, []) if row.event.level == "cast" else (None, [])
            if ordered is not None:
                wanted = _wanted(standing, row)
        standing.take(row)
    if ordered is not None:
        yield ordered, wanted, given


def _wanted(standing: ClientsStanding, ordered: Row) -> dict[MemberId, list[str]]:
    found = {
        client: [group for group in ordered.text.groups if group in views]
        for client, views in standing.views.items()
    }
    return {client: groups for client, groups in found.items() if groups}


def lw_sending_view(history: History) -> Verdict:
    """Messages of members of `vs` groups are delivered in the view of their sender, to it as well.

    Who is given some that a member sent in a view is given the first ones, without a gap.
    """
    findings = Findings("lw_sending_view")
    story = story_of(history)
    asked = sending_views(story)
    look_at_names(story, findings)
    look_for_own(story, asked, findings)
    for row in story.rows(DELIVER):
        sent = asked.get(row.message)
        if sent is not None and any(view != sent for view in row.text.views.values()):
            _found(findings, f"{row.client} is given it in another view than it was sent in", row)
    _look_for_gaps(story, asked, findings)
    return findings.verdict()


def sending_views(story: LightStory) -> dict[Message, ViewId]:
    """The views in which messages were sent, where that matters."""
    return {row.message: row.text.view for row in story.rows(ASK) if row.text.view is not None}


def look_at_names(story: LightStory, findings: Findings) -> None:
    """A sender names the view that it is in."""
    for rows in story.daemons.values():
        standing = ClientsStanding()
        for row in rows:
            view = row.text.view
            if row.kind is ASK and view is not None:
                here = standing.views.get(row.client, {}).get(row.text.groups[0])
                if here != view:
                    _found(findings, f"{row.client} names a view that it is not in", row)
            standing.take(row)


def look_for_own(story: LightStory, asked: dict[Message, ViewId], findings: Findings) -> None:
    """A sender that is still a member is given its own messages."""
    for process, rows in story.daemons.items():
        for ordered, wanted, given in _deliveries(rows):
            sender = ordered.message[0]
            lost = sender in wanted and sender not in [row.client for row in given]
            if ordered.message in asked and lost and story.home.get(sender) == process:
                _found(findings, f"{sender} is not given its own message: its view is over", ordered)


def _look_for_gaps(story: LightStory, asked: dict[Message, ViewId], findings: Findings) -> None:
    ordered = {row.message for row in story.rows(ORDERED)}
    sent: dict[tuple[MemberId, ViewId], list[Message]] = {}
    for message in sorted(ordered & asked.keys()):
        sent.setdefault((message[0], asked[message]), []).append(message)
    for client, rows in story.heard.items():
        given: dict[tuple[MemberId, ViewId], int] = {}
        for row in rows:
            view = asked.get(row.message) if row.kind is DELIVER else None
            if view is None:
                continue
            key = row.message[0], view
            number = given.get(key, 0)
            given[key] = number + 1
            if sent[key][number : number + 1] != [row.message]:
                _found(findings, f"{client} is given it without an earlier one of the same view", row)


def lw_private(history: History) -> Verdict:
    """A private message is delivered once at most, to the session it is for, or else is undeliverable.

    One of both, if the daemons of sender and addressee both have it and both clients are there.
    """
    findings = Findings("lw_private")
    story = story_of(history)
    meant = {row.message: row for row in story.rows(ASK) if row.event.level == "private"}
    outcome: dict[Message, Row] = {}
    for row in story.rows(PRIVATE):
        other = outcome.setdefault(row.message, row)
        if other is not row:
            _found(findings, "a private message has two outcomes", other, row)
        ask = meant.get(row.message)
        to = row.message[0] if row.event.level == "undeliverable" else ask and ask.members[0]
        if to != row.client:
            _found(findings, f"a private message for {to} is given to {row.client}", row)
    _all_private(story, meant, outcome, findings)
    return findings.verdict()


def _all_private(
    story: LightStory, meant: dict[Message, Row], outcome: dict[Message, Row], findings: Findings
) -> None:
    done: dict[Message, set[MemberId]] = {}
    for process, rows in story.daemons.items():
        for row in rows:
            if row.kind is ORDERED and row.event.level == "private":
                done.setdefault(row.message, set()).add(process)
    ended = {row.client for row in story.rows(SESSION) if row.event.level != "came"}
    for message, ask in meant.items():
        sender, to = message[0], ask.members[0]
        both = {story.home[sender], story.home.get(to, story.home[sender])}
        if message not in outcome and both <= done.get(message, set()) and not {sender, to} & ended:
            _found(findings, f"({sender},{message[1]}) has no outcome", ask)


def _found(findings: Findings, reason: str, *rows: Row) -> None:
    findings.count(1)
    findings.example(reason, *(row.event for row in rows))
