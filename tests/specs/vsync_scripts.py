"""Histories of virtual synchrony written by hand.

A history is a line per process, `p'` is p restarted. `V3=pq'r` installs view 3 with those members. `m3`
multicasts message 3, `m3-5` a run, `m3@9` in view 9, `m3:x` an update of item x, `m3:{q1,p2}` a message that
replaces those two, `m3:^5` one that replaces what is at position 5 of the total order; `q4` delivers the
fourth of q, `q4-6` a run, `q4^7` at position 7; `-q4<q5` is a receipt for q4 purged by q5, `-q4^7<q5` for
position 7; `q=one` says that the state of q at the beginning of the view is "one", and `crash` is the end.
"""

import re

import msgspec

from semcast.core import Annotation, Enumeration, Item, KEnumeration, MemberId, MessageId
from semcast.history import Event, History, Kind, RunInfo
from semcast.specs import VSYNC, Status, Verdict, check

STEP = re.compile(
    r"(?P<crash>crash)|(?P<recover>recover)|V(?P<view>\d+)=(?P<members>[a-z']+)"
    r"|(?P<owner>[a-z]'?)=(?P<state>\w+)"
    r"|-(?P<old>[a-z]'?\d+)(\^(?P<purged>\d+))?<(?P<new>[a-z]'?\d+)?"
    r"|(?P<who>[a-z]'?)(?P<first>\d+)(-(?P<last>\d+))?(@(?P<number>\d+))?(\^(?P<order>\d+))?(:(?P<note>.+))?"
)


def group(script: str, *, quiesced: bool = True, order: str = "fifo", uniform: bool = False) -> History:
    lines = [line.split(":", 1) for line in script.strip().splitlines()]
    events = [event for name, steps in lines for event in Scribe(member(name.strip())).write(steps.split())]
    info = RunInfo.one("run", "g", "vsync", None, (), None, uniform=uniform, quiesced=quiesced, order=order)
    return History(info, events)


def violated(history: History) -> dict[str, Verdict]:
    """All that is broken, promised or not."""
    found = check(history, ["relation_is_order", "integrity", "fifo_delivery", *VSYNC])
    return {verdict.property: verdict for verdict in found if verdict.status is Status.VIOLATED}


def member(name: str) -> MemberId:
    return MemberId(name[0], len(name) - 1)


def message(text: str) -> MessageId:
    name = text.rstrip("0123456789")
    return MessageId(member(name), int(text[len(name) :]))


def annotation(note: str | None) -> Annotation | None:
    if note is None:
        return None
    if note.startswith("^"):
        return KEnumeration(int(note[1:]) + 1, 1, total=True)
    if note.startswith("{"):
        return Enumeration(tuple(map(message, note.strip("{}").split(","))))
    return Item(note)


class Scribe:
    """Writes down what one process does."""

    def __init__(self, process: MemberId) -> None:
        self.process = process
        self.view: int | None = None
        self.rows: list[Event] = []

    def write(self, steps: list[str]) -> list[Event]:
        for step in steps:
            match = STEP.fullmatch(step)
            assert match is not None, step
            self.step(match)
        return self.rows

    def add(self, kind: Kind, **fields: object) -> None:
        event = Event(self.process, len(self.rows), len(self.rows), kind, "g")
        self.rows.append(msgspec.structs.replace(event, **fields))

    def step(self, match: re.Match[str]) -> None:
        if match["crash"]:
            self.add(Kind.CRASH)
        elif match["recover"]:
            self.add(Kind.RECOVER)
        elif match["view"]:
            self.view = int(match["view"])
            members = tuple(map(member, re.findall("[a-z]'?", match["members"])))
            self.add(Kind.VIEW, view=self.view, members=members, level="primary")
        elif match["owner"]:
            self.add(Kind.APPLY, sender=member(match["owner"]), digest=match["state"], view=self.view)
        elif match["old"]:
            old = message(match["old"])
            by = message(match["new"]) if match["new"] else None
            self.add(
                Kind.PURGE, sender=old.sender, seq=old.seq, count=1, by=by, order=number(match["purged"])
            )
        else:
            self.messages(match)

    def messages(self, match: re.Match[str]) -> None:
        first, last = int(match["first"]), int(match["last"] or match["first"])
        run = {"seq": first, "count": last - first + 1}
        if match["who"] != "m":
            self.add(Kind.DELIVER, sender=member(match["who"]), order=number(match["order"]), **run)
            return
        view = number(match["number"]) or self.view
        self.add(Kind.MULTICAST, sender=self.process, view=view, annotation=annotation(match["note"]), **run)


def number(text: str | None) -> int | None:
    return int(text) if text else None
