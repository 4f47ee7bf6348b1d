"""What a call asks for, what comes of it, and the bounds on both."""

from typing import Literal

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.views import View

Wanted = Literal["first", "majority", "all"] | int
"""How many replies end a call."""

Key = tuple[MemberId, int]
"""A request: who asked, and its number there."""


class CallLimits(msgspec.Struct, frozen=True):
    """How much of everything a member keeps. Each holds for one member alone: others may have set another."""

    body: int = 1 << 20
    """Bytes of a request, or of a reply."""
    calls: int = 1 << 14
    """Calls of this member that wait for answers."""
    requests: int = 1 << 14
    """Requests of one caller that wait for this member's answer; further ones are answered with an error."""
    request_bytes: int = 64 << 20
    """Bytes of all requests that this member keeps."""
    unsent: int = 1 << 16
    """Answers that wait to be sent; further ones are dropped, and callers run into their time-out."""
    early: int = 1 << 12
    """Answers that are remembered where the request has not come yet."""


class CallCounts(msgspec.Struct):
    """What happened, and what was dropped."""

    called: int = 0
    complete: int = 0
    too_few: int = 0
    timed_out: int = 0
    abandoned: int = 0
    """The program gave up waiting."""
    asked: int = 0
    """Requests that were for this member."""
    answered: int = 0
    failed: int = 0
    """Answered with an error."""
    abstained: int = 0
    refused: int = 0
    """Answered with an error, because too much waits here."""
    expired: int = 0
    """The caller waits no more, and this member had not answered."""
    orphaned: int = 0
    """Answers to a caller that is gone, or to a request that is over."""
    taken_over: int = 0
    """Requests for one member that were another's first."""
    late: int = 0
    """Replies to calls that had returned."""
    duplicates: int = 0
    strangers: int = 0
    """Replies of members that were not asked, or had departed."""
    malformed: int = 0
    dropped: int = 0
    """Answers that there was no room for."""


class CallRequest(msgspec.Struct, frozen=True):
    """A request, as passed to a handler of `on_call`."""

    caller: MemberId
    number: int
    payload: bytes
    view: View
    """The view in which it was delivered."""
    one: bool = False
    """Whether it is for one member, and that is this one."""
    former: tuple[MemberId, ...] = ()
    """Of a request for one: who had it before and is gone. It may have been done in part or altogether."""
    deadline: Nanos | None = None
    """When the caller stops waiting, by the clock of this member; None for never."""

    @property
    def key(self) -> Key:
        """What names it."""
        return self.caller, self.number


class CallAnswer(msgspec.Struct, frozen=True):
    """The replies to a call."""

    outcome: Literal["complete", "too few", "timeout"]
    """`complete`: as many answered as were asked for, or, for all, everybody who is still there. `too few`:
    so many cannot answer any more. `timeout`: nobody knows yet."""
    replies: dict[MemberId, bytes]
    """Who answered, and what, in the order in which that came."""
    errors: dict[MemberId, str]
    """Who answered that it failed, and why. That counts as an answer."""
    departed: tuple[MemberId, ...]
    """Who was gone from the view before it answered: it may have done what was asked, or not."""
    missing: tuple[MemberId, ...]
    """Who is still there, and had not answered when the call returned."""
    abstained: tuple[MemberId, ...]
    """Who answers no calls."""
    view: View | None
    """The view in which the request was delivered; None if that had not happened yet: it still may."""

    @property
    def result(self) -> bytes:
        """The first reply. LookupError if there is none; its text says what happened instead."""
        for reply in self.replies.values():
            return reply
        failed = "; ".join(f"{member}: {error}" for member, error in self.errors.items())
        gone, missing = ", ".join(map(str, self.departed)), ", ".join(map(str, self.missing))
        raise LookupError(
            f"no reply ({self.outcome}): failed [{failed}], departed [{gone}], missing [{missing}]"
        )

    @property
    def complete(self) -> bool:
        """Whether as many members replied as the call asked for."""
        return self.outcome == "complete"


class Run(msgspec.Struct, frozen=True):
    """The program is to answer this."""

    request: CallRequest


class Forget(msgspec.Struct, frozen=True):
    """Nobody waits for the answer to this any more."""

    key: Key


class Done(msgspec.Struct, frozen=True):
    """A call returns; without an answer it ended because of `cause`, and nobody knows what came of it."""

    number: int
    answer: CallAnswer | None
    cause: str = ""


Effect = Run | Forget | Done


def check_wanted(wanted: object) -> None:
    """Raise for a number of replies that makes no sense."""
    if wanted in ("first", "majority", "all"):
        return
    if isinstance(wanted, bool) or not isinstance(wanted, int):
        raise ValueError(f"replies={wanted!r}: choose first, majority, all, or a number")
    if wanted < 1:
        raise ValueError(f"replies={wanted}: a call waits for one reply at least; to wait for none, send")


def needed(wanted: Wanted, members: int) -> int:
    """How many replies that is, of so many members.

    >>> [needed(wanted, 4) for wanted in ("first", "majority", "all", 2)]
    [1, 3, 4, 2]
    """
    if wanted == "first":
        return 1
    if wanted == "majority":
        return members // 2 + 1
    return members if wanted == "all" else int(wanted)
