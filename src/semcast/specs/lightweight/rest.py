"""What has come of clients when all is at rest, and what they may rely on."""

from semcast.core.ids import MemberId
from semcast.history.events import History
from semcast.specs.lightweight.kinds import ASK, CONF, DELIVER, LEFT, ORDERED, PLACED, SESSION, VIEW
from semcast.specs.lightweight.story import LightStory, Message, Row, story_of
from semcast.specs.verdict import Findings, Verdict


def lw_gone(history: History) -> Verdict:
    """After a client is gone nothing of it is delivered, and no view has it; at rest there are no ghosts.

    At rest the last view of every client that is there has the clients that are there and have joined.
    """
    findings = Findings("lw_gone")
    story = story_of(history)
    for rows in story.daemons.values():
        gone: dict[MemberId, Row] = {}
        for row in rows:
            for client in _seen(row):
                if client in gone:
                    _found(findings, f"{client} is gone, and still there", gone[client], row)
            if row.kind is ORDERED and row.event.level == "gone":
                gone[row.client] = row
    if history.info.quiesced and _united(story):
        _look_for_ghosts(story, findings)
    return findings.verdict()


def _seen(row: Row) -> tuple[MemberId, ...]:
    if row.kind is VIEW:
        return row.members
    return (row.message[0],) if row.kind in (DELIVER, ORDERED) else ()


def _united(story: LightStory) -> bool:
    """Whether all daemons that are there ended in one configuration."""
    last: list[tuple[object, ...] | None] = []
    for process in story.alive:
        rows = [row for row in story.daemons[process] if row.kind is CONF]
        last += [(rows[-1].event.view, rows[-1].event.sender, rows[-1].members)] if rows else [None]
    return all(each is not None and each == last[0] and each[2] == tuple(story.alive) for each in last)


def _look_for_ghosts(story: LightStory, findings: Findings) -> None:
    joined: dict[str, set[MemberId]] = {}
    for process in story.alive:
        for client, groups in _clients(story.daemons[process]).items():
            for group in groups:
                joined.setdefault(group, set()).add(client)
    for process in story.alive:
        told = _told(story.daemons[process])
        for client, groups in _clients(story.daemons[process]).items():
            for group in sorted(groups | set(told.get(client, {}))):
                row = told.get(client, {}).get(group)
                if row is None:
                    findings.count(1)
                    findings.example(f"{client} joined {group} and was never told")
                elif set(row.members) != joined.get(group, set()) or group not in groups:
                    names = ", ".join(map(str, sorted(joined.get(group, set()))))
                    _found(findings, f"at rest {client} has another {group} than {names}", row)


def _clients(rows: list[Row]) -> dict[MemberId, set[str]]:
    """Who is connected at the end, and the groups that each wants to be in."""
    found: dict[MemberId, set[str]] = {}
    for row in rows:
        if row.kind is SESSION:
            if row.event.level == "came":
                found[row.client] = set()
            else:
                found.pop(row.client, None)
        elif row.kind is ASK and row.client in found:  # else `one_fate` is broken
            if row.event.level == "join":
                found[row.client].update(row.text.groups)
            elif row.event.level == "leave":
                found[row.client].difference_update(row.text.groups)
    return found


def _told(rows: list[Row]) -> dict[MemberId, dict[str, Row]]:
    """The last view of each client in each group that it is in."""
    found: dict[MemberId, dict[str, Row]] = {}
    for row in rows:
        if row.kind is VIEW:
            found.setdefault(row.client, {})[row.text.group] = row
        elif row.kind is LEFT:
            found.get(row.client, {}).pop(row.text.group, None)
    return found


def lw_settled(history: History) -> Verdict:
    """A request that was placed had its place then, and keeps it as long as one of those lives who have it.

    Each daemon does a request once at most; at rest a daemon that lives has done all that it took.
    """
    findings = Findings("lw_settled")
    story = story_of(history)
    done: dict[Message, set[MemberId]] = {}
    placed: list[tuple[Row, list[Row]]] = []
    for process, rows in story.daemons.items():
        asked: dict[MemberId, list[Row]] = {}
        here: dict[Message, Row] = {}
        told: dict[MemberId, int] = {}
        for row in rows:
            if row.kind is ASK:
                asked.setdefault(row.client, []).append(row)
            elif row.kind is ORDERED and row.event.seq:
                other = here.setdefault(row.message, row)
                done.setdefault(row.message, set()).add(process)
                if other is not row:
                    _found(findings, "a daemon does a request twice", other, row)
            elif row.kind is PLACED:
                before = told.get(row.client, 0)
                told[row.client] = row.event.seq
                covered = [
                    each for each in asked.get(row.client, ()) if before < each.event.last <= row.event.seq
                ]
                placed.append((row, covered))
                for ask in covered:
                    if ask.message not in here:
                        _found(findings, f"{row.client} is told of a place that is not there", ask, row)
        if history.info.quiesced and process in story.alive:
            for ask in (each for rows_ in asked.values() for each in rows_):
                if ask.message not in here:
                    _found(findings, f"{ask.client} asked, and nothing came of it", ask)
    if history.info.quiesced:
        _look_for_lost(story, placed, done, findings)
    return findings.verdict()


def _look_for_lost(
    story: LightStory,
    placed: list[tuple[Row, list[Row]]],
    done: dict[Message, set[MemberId]],
    findings: Findings,
) -> None:
    alive = set(story.alive)
    lost: set[Message] = set()
    for row, covered in placed:
        for ask in covered:
            gone = not alive & done.get(ask.message, set())
            if gone and alive & set(row.members) and ask.message not in lost:
                lost.add(ask.message)
                _found(findings, f"({ask.client},{ask.event.seq}) was placed and is lost", ask, row)


def _found(findings: Findings, reason: str, *rows: Row) -> None:
    findings.count(1)
    findings.example(reason, *(row.event for row in rows))
