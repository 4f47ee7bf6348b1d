"""What a member tells the history about calls, if anybody wants it: rows of kinds of their own.

They are described in `specs/calls/kinds.py`. Nothing here is read by the protocol.
"""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from semcast.core.events import Note
from semcast.core.ids import MemberId
from semcast.core.views import View
from semcast.patterns.calls.envelope import ALL, ONE
from semcast.patterns.calls.values import CallAnswer, Key, Wanted


class Rows(Protocol):
    """Takes rows: an `Outbox`, or a journal."""

    def deliver(self, note: Note, /) -> None:
        """The next one."""


class Notes:
    """Where a member writes down what it does.

    Args:
        out: takes the rows; None where nobody wants them.
    """

    def __init__(self, out: Rows | None = None) -> None:
        self._out = out

    # Of the caller

    def made(self, number: int, wanted: Wanted, to: int | MemberId) -> None:
        """The program calls."""
        if self._out is not None:
            self._out.deliver(Note("call-made", seq=number, count=1, level=str(wanted), digest=_whom(to)))

    def delivered(self, number: int, view: View) -> None:
        """The caller delivers its own request."""
        if self._out is not None:
            self._out.deliver(
                Note("call-delivered", view.representative, number, 1, view=view.id, members=view.members)
            )

    def came(self, number: int, member: MemberId) -> None:
        """The caller delivers what a member says; it may count or not."""
        if self._out is not None:
            self._out.deliver(Note("call-came", seq=number, count=1, members=(member,)))

    def heard(self, number: int, member: MemberId, what: str) -> None:
        """What a member says counts."""
        if self._out is not None:
            self._out.deliver(Note("call-heard", seq=number, count=1, level=what, members=(member,)))

    def departed(self, number: int, member: MemberId) -> None:
        """A member that was asked is gone."""
        if self._out is not None:
            self._out.deliver(Note("call-departed", seq=number, count=1, members=(member,)))

    def returned(self, number: int, answer: CallAnswer) -> None:
        """The call returns."""
        if self._out is not None:
            text = {
                "replies": _names(answer.replies),
                "errors": _names(answer.errors),
                "departed": _names(answer.departed),
                "missing": _names(answer.missing),
                "abstained": _names(answer.abstained),
            }
            digest = msgspec.json.encode(text).decode()
            self._out.deliver(Note("call-returned", seq=number, count=1, level=answer.outcome, digest=digest))

    def ended(self, number: int, why: str) -> None:
        """The call ends without an answer."""
        if self._out is not None:
            self._out.deliver(Note("call-returned", seq=number, count=1, level=why))

    # Of who is asked

    def asked(self, key: Key, view: View, to: int | MemberId) -> None:
        """A request is delivered."""
        if self._out is not None:
            self._out.deliver(Note("call-asked", *key, count=1, view=view.id, digest=_whom(to)))

    def chosen(self, key: Key, member: MemberId) -> None:
        """By the rule, a request for one is this member's."""
        if self._out is not None:
            self._out.deliver(Note("call-chosen", *key, count=1, members=(member,)))

    def run(self, key: Key) -> None:
        """The program is given a request."""
        if self._out is not None:
            self._out.deliver(Note("call-run", *key, count=1))

    def said(self, key: Key, what: str) -> None:
        """It answers."""
        if self._out is not None:
            self._out.deliver(Note("call-said", *key, count=1, level=what))

    # What else is delivered

    def view(self, level: str, view: View, together: Iterable[MemberId]) -> None:
        """The member is told of a view, or that it ends; these are together since the one before."""
        if self._out is not None:
            text = msgspec.json.encode({"together": _names(together)}).decode()
            self._out.deliver(
                Note(
                    "call-view",
                    view.representative,
                    view=view.id,
                    level=level,
                    members=view.members,
                    digest=text,
                )
            )


def _whom(to: int | MemberId) -> str:
    return {ALL: "all", ONE: "one"}.get(to, "") if isinstance(to, int) else str(to)


def _names(members: Iterable[MemberId]) -> list[str]:
    return [str(member) for member in members]
