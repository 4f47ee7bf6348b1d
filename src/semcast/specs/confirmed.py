"""What a stack confirmed of its own messages is what happened (`Stack.confirm`).

Only rows of kind "confirmed" are looked at: a stack need not confirm anything, and nothing is owed where it
did not. It is no promise of a family to be asked for by name: only simulated runs have such rows, and every
one of those is judged by them.
"""

from collections.abc import Sequence

import msgspec

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import SAFE, Kind
from semcast.specs.runs import Runs
from semcast.specs.verdict import Findings, Verdict, unknown

_NAME = "confirmed"
_View = tuple[int | None, tuple[MemberId, ...] | None]


class _Where(msgspec.Struct):
    """Where a process was when it delivered something."""

    view: _View
    together: tuple[MemberId, ...] | None
    """In a transitional view, who was in that."""


class _Account(msgspec.Struct):
    """What one process did."""

    views: list[_View]
    own: dict[int, _Where]
    """Its own messages that were asked about, and where it delivered them."""
    had: dict[MemberId, Runs]
    """By sender, what it delivered or gave up for something that replaces it."""


def confirmed(history: History) -> Verdict:
    """A confirmed message is delivered in its view here, and if it is safe, by all members of the view.

    Or else a replacement is. Where only those who come along deliver it after a view, all members of the view
    came along but for those who are gone. Who crashed or left owes nothing.
    """
    if not history.info.quiesced:
        return unknown(_NAME, "the run was not over")
    claims = [event for event in history.events if event.kind is Kind.CONFIRMED]
    asked = {(event.process, event.seq) for event in claims}
    accounts = {process: _account(process, history.of(process), asked) for process in history.processes}
    noted = {
        (event.process, event.seq)
        for event in history.events
        if event.kind is Kind.MULTICAST and event.annotation is not None
    }
    findings = Findings(_NAME)
    excused = {*history.gone, *history.info.cut_off}
    for claim in claims:
        problem = _misplaced(claim, accounts[claim.process], excused)
        if problem is None and claim.level == SAFE:
            problem = _lacking(claim, accounts, excused, replaced=(claim.process, claim.seq) in noted)
        if problem is not None:
            findings.count(1)
            findings.example(problem, claim)
    return findings.verdict()


def _account(process: MemberId, events: Sequence[Event], asked: set[tuple[MemberId, int]]) -> _Account:
    account, where = _Account([], {}, {}), _Where((None, None), None)
    for event in events:
        if event.kind is Kind.VIEW:
            where = _Where((event.view, event.members), None)
            account.views.append(where.view)
        elif event.kind is Kind.TRANSITIONAL:
            where = _Where(where.view, event.members)
        elif event.kind in (Kind.DELIVER, Kind.PURGE):
            assert event.sender is not None
            account.had.setdefault(event.sender, Runs()).add(event.seq, event.last)
            if event.sender == process and event.kind is Kind.DELIVER:
                numbers = range(event.seq, event.last + 1)
                account.own |= {number: where for number in numbers if (process, number) in asked}
    return account


def _misplaced(claim: Event, account: _Account, excused: set[MemberId]) -> str | None:
    """What is wrong with where a message was delivered at its sender."""
    view: _View = claim.view, claim.members
    message = f"({claim.sender},{claim.seq})"
    found = account.own.get(claim.seq)
    if found is None:
        if claim.seq in account.had.get(claim.process, Runs()):
            return None  # it was replaced
        went_on = view in account.views and account.views[-1] != view
        if went_on or claim.process not in excused:
            return f"{claim.process} never delivered {message}, which it confirmed in view {claim.view}"
        return None
    if found.view != view:
        return f"{message} was confirmed in view {claim.view} and delivered in view {found.view[0]}"
    if found.together is not None and not {*(claim.members or ())} <= {*found.together, *excused}:
        return f"{message} was confirmed in view {claim.view} and delivered after it, by some of its members"
    return None


def _lacking(
    claim: Event, accounts: dict[MemberId, _Account], excused: set[MemberId], *, replaced: bool
) -> str | None:
    """Who of the view does not have a message that everybody has."""
    sender = claim.process
    for member in claim.members or ():
        if member in excused:
            continue
        account = accounts.get(member)
        had = Runs() if account is None else account.had.get(sender, Runs())
        if claim.seq not in had and not (replaced and had.highest() > claim.seq):
            return f"{member} never got ({sender},{claim.seq}), which {sender} confirmed as safe"
    return None
