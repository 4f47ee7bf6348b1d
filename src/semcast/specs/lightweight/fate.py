"""One fate (Birman et al. 1991, 4.1): who is out of one group of a domain is out of all, as that member."""

from semcast.core.ids import MemberId
from semcast.history.events import History
from semcast.history.schema import Kind
from semcast.specs.lightweight.kinds import (
    ASK,
    DELIVER,
    HEARD,
    LEFT,
    PLACED,
    PRIVATE,
    SESSION,
    TRANSITIONAL,
    VIEW,
)
from semcast.specs.lightweight.story import Row, story_of
from semcast.specs.verdict import Findings, Verdict

_DEEDS: dict[Kind, str] = {
    ASK: "asks for something",
    DELIVER: "is given a message",
    PRIVATE: "is given a message",
    VIEW: "is told of a view",
    TRANSITIONAL: "is told of a view",
    LEFT: "is told that it left a group",
    PLACED: "is told of a place",
}


def one_fate(history: History) -> Verdict:
    """Who is put out of a domain, or gone, neither sends, is given anything, nor is in a view of any group.

    As the same session, and from when that is known: to its daemon when it ends the session, to the program
    when it hears so. It comes back as another one.
    """
    findings = Findings("one_fate")
    story = story_of(history)
    for rows in story.daemons.values():
        ended: dict[MemberId, Row] = {}
        for row in rows:
            if row.kind is SESSION:
                if row.client in ended:
                    _found(findings, f"{row.client} was out, and is there again", ended[row.client], row)
                elif row.event.level != "came":
                    ended[row.client] = row
            elif row.kind in _DEEDS and row.client in ended:
                _found(findings, f"{row.client} is out, and {_DEEDS[row.kind]}", ended[row.client], row)
    heard: dict[MemberId, Row] = {}
    for row in story.rows(HEARD):
        if row.client in heard:
            _found(findings, f"{row.client} has heard that it is out, and hears more", heard[row.client], row)
        elif row.event.level == "out":
            heard[row.client] = row
    return findings.verdict()


def _found(findings: Findings, reason: str, *rows: Row) -> None:
    findings.count(1)
    findings.example(reason, *(row.event for row in rows))
