"""Programs at the other end of a connection: what they hear is what their daemon told them.

A connection may break and be taken up again, and a slow program misses messages that are obsolete.
"""

from collections.abc import Iterator

from semcast.core.ids import MemberId
from semcast.history.events import History
from semcast.specs.lightweight.kinds import ASK, DELIVER, HEARD, LEFT, PRIVATE, TRANSITIONAL, VIEW
from semcast.specs.lightweight.story import LightStory, Row, story_of
from semcast.specs.verdict import Findings, Status, Verdict, unknown

Thing = tuple[str, str, object]
"""What a program is told: a kind, a sender or a group, and a number or a view."""


def lw_heard(history: History) -> Verdict:
    """A program hears what its daemon told it: in that order, each thing once, and all but messages.

    What it has not heard at the end may be on its way, or its session was over.
    """
    findings = Findings("lw_heard")
    story = story_of(history)
    doubts = _doubts(history, story)
    for client, heard in _programs(story).items():
        if client in doubts:
            continue
        told = list(_told(story, client))
        place = 0
        for thing, row in _heard(heard):
            start = place
            while place < len(told) and told[place][0] != thing:
                place += 1
            if place == len(told):
                _found(findings, f"{client} heard {thing} twice, out of order, or out of nothing", row)
                break
            for missed, before in told[start:place]:
                if missed[0] != "deliver":
                    _found(findings, f"{client} never heard {missed}", before, row)
            place += 1
    return _judged(findings, doubts)


def lw_purged(history: History) -> Verdict:
    """A message that a program did not hear was obsolete, and the program was told that it misses some.

    That is: a later message of the same sender, to the same groups, about the same item was told to the
    program before the next view of any of these groups.
    """
    findings = Findings("lw_purged")
    story = story_of(history)
    about = _abouts(story)
    doubts = _doubts(history, story)
    for client, heard in _programs(story).items():
        if client in doubts:
            continue
        told = list(_told(story, client))
        things = dict(_heard(heard))
        receipts = [row for row in heard if row.event.level == "purged"]
        known = [place for place, (thing, _) in enumerate(told) if thing in things and thing[0] != "left"]
        last = max(known, default=-1)  # one may leave a group twice, all else has a name of its own
        for place in range(last):
            (kind, sender, seq), row = told[place]
            if kind != "deliver" or (kind, sender, seq) in things:
                continue
            if (sender, seq) not in about:
                doubts.append(client)  # the daemon of its sender recorded nothing
            elif not _replaced(told, place, about):
                _found(findings, f"{client} did not hear ({sender},{seq}), which nothing replaced", row)
            elif not any(_covers(receipt, sender, seq) for receipt in receipts):
                _found(findings, f"{client} was not told that it missed ({sender},{seq})", row)
    return _judged(findings, doubts)


def _doubts(history: History, story: LightStory) -> list[MemberId]:
    """Programs whose daemon did not record what it told them, or not all of it."""
    recorded = story.daemons.keys() - set(history.info.cut_off)
    return [client for client in _programs(story) if story.home.get(client) not in recorded]


def _judged(findings: Findings, doubts: list[MemberId]) -> Verdict:
    verdict = findings.verdict()
    if doubts and verdict.status is Status.HOLDS:
        return unknown(findings.name, f"not all daemons recorded what {doubts[0]} was told")
    return verdict


def _programs(story: LightStory) -> dict[MemberId, list[Row]]:
    """What each program heard."""
    found: dict[MemberId, list[Row]] = {}
    for row in story.rows(HEARD):
        found.setdefault(row.client, []).append(row)
    return found


def _told(story: LightStory, client: MemberId) -> Iterator[tuple[Thing, Row]]:
    for row in story.heard.get(client, ()):
        if row.kind is DELIVER:
            sender, first = row.message
            for seq in range(first, first + row.event.count):
                yield ("deliver", str(sender), seq), row
        elif row.kind is PRIVATE and row.event.level == "delivered":
            yield ("private", str(row.message[0]), row.event.seq), row
        elif row.kind is VIEW:
            yield ("view", row.text.group, row.text.id), row
        elif row.kind is TRANSITIONAL:
            yield ("transitional", row.text.group, row.text.id), row
        elif row.kind is LEFT:
            yield ("left", row.text.group, 0), row


def _heard(rows: list[Row]) -> Iterator[tuple[Thing, Row]]:
    for row in rows:
        level = row.event.level or ""
        if level in ("deliver", "private"):
            for seq in range(row.event.seq, row.event.seq + row.event.count):
                yield (level, row.text.by, seq), row
        elif level in ("view", "transitional"):
            yield (level, row.text.group, row.text.id), row
        elif level == "left":
            yield (level, row.text.group, 0), row


def _abouts(story: LightStory) -> dict[tuple[str, object], tuple[tuple[str, ...], str]]:
    """The groups and the item of each message."""
    found: dict[tuple[str, object], tuple[tuple[str, ...], str]] = {}
    for row in story.rows(ASK):
        if row.event.level == "cast":
            sender, first = row.message
            for place in range(row.event.count):
                item = row.text.items[place] if row.text.items else ""
                found[str(sender), first + place] = row.text.groups, item
    return found


def _replaced(
    told: list[tuple[Thing, Row]],
    place: int,
    about: dict[tuple[str, object], tuple[tuple[str, ...], str]],
) -> bool:
    _, sender, seq = told[place][0]
    groups, item = about.get((sender, seq), ((), ""))
    for later in range(place + 1, len(told)):
        kind, name, what = told[later][0]
        if kind in ("view", "left") and name in groups:
            return False
        if item and kind == "deliver" and name == sender and about.get((name, what)) == (groups, item):
            return True
    return False


def _covers(receipt: Row, sender: str, seq: object) -> bool:
    event = receipt.event
    return receipt.text.by == sender and isinstance(seq, int) and event.seq <= seq < event.seq + event.count


def _found(findings: Findings, reason: str, *rows: Row) -> None:
    findings.count(1)
    findings.example(reason, *(row.event for row in rows))
