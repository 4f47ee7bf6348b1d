"""Histories of causal domains written by hand.

A history is a line per process; groups and members have names of one letter. `Va3=pqr` installs view 3 of
group a, `Va3=pqr/diffusion3` with a style and how many are servers; `Ca3=pqr/diffusion3` tells a client of
it. `a>1` sends message 1 in a, `a>1-3` a run, `a>1:x` an update of item x, `a>1:{q2,p1}` one that replaces
these two, `a>1@q` a direct message to q, `a>1~` one of a client, `a>1%q` one to the servers and the client q,
`a>1#2b3` one with 2 fields of a and 3 of b. `a<q1` is given the first message of q in a, `a<q1-3` a run,
`a<q1^` in total order, `a<q1@` a direct message. `-a` leaves a, `!a` learns that it is put out of a, `F1?`
asks for a flush, `F1.` has it; `full` names the policy, `full1` one that survives one failure; `t9` sets the
clock, which goes on by one with each row; `crash` and `left` are the end.
"""

import re

import msgspec

from semcast.core import Item, MemberId
from semcast.history import Event, History, RunInfo
from semcast.history.schema import kind_named
from semcast.history.wellformed import problem
from semcast.specs import DOMAINS, Status, Verdict, check

STEP = re.compile(
    r"(?P<end>crash|left)|(?P<policy>full|blocks|epochs|conservative)(?P<survive>\d)?|t(?P<clock>\d+)"
    r"|(?P<what>[VC])(?P<group>[a-z])(?P<view>\d+)=(?P<members>[a-z]+)(/(?P<style>[a-z-]+)(?P<servers>\d+))?"
    r"|-(?P<leaves>[a-z])|!(?P<out>[a-z])|F(?P<flush>\d+)(?P<how>[?.])"
    r"|(?P<at>[a-z])>(?P<first>\d+)(-(?P<last>\d+))?(@(?P<to>[a-z]))?(?P<client>~)?(%(?P<one>[a-z]))?(#(?P<own>\d+)(?P<others>([a-z]\d+)*))?"
    r"(:(?P<note>.+))?"
    r"|(?P<of>[a-z])<(?P<who>[a-z])(?P<begin>\d+)(-(?P<upto>\d+))?(?P<total>\^)?(?P<direct>@)?"
)


def domain(
    script: str, *, quiesced: bool = True, cut_off: str = "", seed: int | None = 1, strict: bool = True
) -> History:
    lines = [line.split(":", 1) for line in script.strip().splitlines()]
    events = [
        event
        for name, steps in lines
        for event in Scribe(MemberId(name.strip()), strict=strict).write(steps.split())
    ]
    info = RunInfo.one("run", "floor", "isis", seed, (), None, uniform=False, quiesced=quiesced)
    return History(msgspec.structs.replace(info, cut_off=tuple(map(MemberId, cut_off))), events)


def violated(history: History) -> dict[str, Verdict]:
    """All that is broken."""
    found = check(history, list(DOMAINS))
    return {verdict.property: verdict for verdict in found if verdict.status is Status.VIOLATED}


def statuses(history: History) -> dict[str, Status]:
    return {verdict.property: verdict.status for verdict in check(history, list(DOMAINS))}


class Scribe:
    """Writes down what one process does."""

    def __init__(self, process: MemberId, *, strict: bool) -> None:
        self.process = process
        self.strict = strict
        self.views: dict[str, int] = {}
        self.clock = 0
        self.rows: list[Event] = []

    def write(self, steps: list[str]) -> list[Event]:
        for step in steps:
            match = STEP.fullmatch(step)
            assert match is not None, step
            self.step({name: found for name, found in match.groupdict().items() if found is not None})
        return self.rows

    def add(self, kind: str, text: object = None, **fields: object) -> None:
        event = Event(self.process, len(self.rows), self.clock, kind_named(kind), "floor")
        note = None if text is None else Item(msgspec.json.encode(text).decode())
        event = msgspec.structs.replace(event, annotation=note, **fields)
        assert not self.strict or problem(event) is None, problem(event)
        self.rows.append(event)
        self.clock += 1

    def step(self, found: dict[str, str]) -> None:
        match found:
            case {"end": kind}:
                self.add(kind)
            case {"policy": policy}:
                survive = {"resilience": int(found["survive"])} if "survive" in found else None
                self.add("dom-began", survive, level=policy)
            case {"clock": clock}:
                self.clock = int(clock)
            case {"group": group, "view": view, "members": members}:
                self.views[group] = int(view)
                text = {
                    "group": group,
                    "style": found.get("style", ""),
                    "servers": int(found.get("servers", 0)),
                }
                kind = "dom-view" if found["what"] == "V" else "dom-client"
                self.add(kind, text, view=int(view), members=tuple(map(MemberId, members)))
            case {"leaves": group}:
                self.add("dom-left", {"group": group})
            case {"out": group}:
                self.add("dom-out", {"group": group})
            case {"flush": number, "how": how}:
                self.add("dom-flush", seq=int(number), level="asked" if how == "?" else "returned")
            case {"at": group, "first": first}:
                self.send(group, int(first), found)
            case {"of": group, "who": who, "begin": first}:
                count = int(found.get("upto", first)) - int(first) + 1
                level = "total" if "total" in found else None
                text = {"group": group, "direct": True} if "direct" in found else {"group": group}
                self.add("dom-given", text, sender=MemberId(who), seq=int(first), count=count, level=level)

    def send(self, group: str, first: int, found: dict[str, str]) -> None:
        text: dict[str, object] = {"group": group, "own": int(found.get("own", 0))}
        text["others"] = {
            name: int(size) for name, size in re.findall(r"([a-z])(\d+)", found.get("others", ""))
        }
        if "client" in found:
            text["role"] = "client"
        if "one" in found:
            text["to"] = found["one"], 0
        note = found.get("note", "")
        if note.startswith("{"):
            text["replaces"] = [(name[0], 0, int(name[1:])) for name in note.strip("{}").split(",")]
        elif note:
            text["item"] = note
        members = None
        if "to" in found:
            text["direct"], members = True, (MemberId(found["to"]),)
        count = int(found.get("last", first)) - first + 1
        view = self.views.get(group, 0)
        self.add("dom-sent", text, sender=self.process, seq=first, count=count, view=view, members=members)
