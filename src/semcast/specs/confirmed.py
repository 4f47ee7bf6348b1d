"""What a stack confirmed of its own messages is what happened (`Stack.confirm`).

Only rows of kind "confirmed" are looked at: a stack need not confirm anything, and nothing is owed where it
did not. So every run that has such rows is judged by them, whatever its family promises.
"""

from collections.abc import Sequence

import msgspec

from semcast.core.ids import MemberId
from semcast.core.quorum import is_quorum
from semcast.history.events import Event, GroupInfo, History
from semcast.history.schema import SAFE, Kind
from semcast.specs.families import FAMILIES
from semcast.specs.runs import Runs
from semcast.specs.verdict import Findings, Status, Verdict, unknown

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
    reformed: list[tuple[int, int]]
    """Its re-formed views: the number of the view that each follows, and its own."""
    stated: int | None = None
    """The number of its first view, if it was given a state there."""

    def went_on(self, view: _View) -> bool:
        """Whether it came to another view after this one: all that it had to do there is done."""
        return view in self.views and self.views[-1] != view

    def was_told(self, view: _View) -> bool:
        """Whether it has what was delivered in this view from a state of a later one, which came first."""
        return self.stated is not None and view[0] is not None and self.stated > view[0]

    def began_after(self, view: _View) -> tuple[MemberId, ...]:
        """With whom its program began, if that was in a later view; nobody if it was not."""
        number, members = self.views[0] if self.views else (None, None)
        later = number is not None and view[0] is not None and number > view[0]
        return (members or ()) if later else ()

    def was_bereft(self, view: _View) -> bool:
        """Whether it never came to this view: its group was re-formed without anybody who knew of it."""
        number = view[0]
        if number is None or view in self.views:
            return False
        return any(after < number < following for after, following in self.reformed)


_NOBODY = _Account([], {}, {}, [])


class _Evidence(msgspec.Struct):
    """What everybody did, and who can say no more of what it owes."""

    accounts: dict[MemberId, _Account]
    gone: set[MemberId]
    """Who crashed or left, or whose recording is cut off."""
    quiesced: bool
    agreed: bool
    """Whether it takes a quorum of a view to go on from it."""
    bound: bool
    """Whether messages belong to views: where views are each member's own, they do not."""
    doubtful: bool = False
    """Whether something was missing that may have come after the end of the recording."""

    def of(self, process: MemberId) -> _Account:
        return self.accounts.get(process, _NOBODY)

    def excuses(self, process: MemberId, view: _View) -> bool:
        """Whether a process of a view owes nothing any more. Who went on from the view had to have it all."""
        return process in self.gone and not self.of(process).went_on(view)

    def lacks(self, process: MemberId, view: _View) -> bool:
        """Something of this view is missing: whether the process should have had it by now."""
        account = self.of(process)
        if self.excuses(process, view) or account.was_bereft(view):
            return False
        if account.went_on(view):
            return True
        if self.agreed and account.views[-1:] == [view] and self._stands_still(view):
            return False
        if self.quiesced:
            return True
        self.doubtful = True
        return False

    def _stands_still(self, view: _View) -> bool:
        """Whether so many of a view are gone that it cannot end: a program may wait in it for ever."""
        members = view[1] or ()
        here = [rank for rank, member in enumerate(members) if member not in self.gone]
        return not is_quorum(len(members), here)


def confirmed(history: History) -> Verdict:
    """A confirmed message is delivered in its view here, and if it is safe, by all members of the view.

    Or else a replacement is. Where only those who come along deliver it after a view, all members of the view
    came along but for those who are gone. Who crashed or left in that view owes nothing. Whose program began
    with a state of a later view has what came before from that (`vs_state_transfer` judges it). Who began
    there with nobody who has it waited for a state that is lost.

    Two things are excused where views are agreed on, as the checkers of views do. Whose group was re-formed
    without anybody who knew of the view cannot have what was delivered there. And a view without a quorum of
    living members does not end: a program that waits there for an answer reads nothing more.
    """
    claims = [event for event in history.events if event.kind is Kind.CONFIRMED]
    asked = {(event.process, event.seq) for event in claims}
    evidence = _Evidence(
        {process: _account(process, history.of(process), asked) for process in history.processes},
        {*history.gone, *history.info.cut_off},
        history.info.quiesced,
        _agreed(history.info.only),
        not _approximate(history.info.only),
    )
    noted = {
        (event.process, event.seq)
        for event in history.events
        if event.kind is Kind.MULTICAST and event.annotation is not None
    }
    findings = Findings(_NAME)
    for claim in claims:
        problem = _misplaced(claim, evidence)
        if problem is None and claim.level == SAFE:
            problem = _lacking(claim, evidence, replaced=(claim.process, claim.seq) in noted)
        if problem is not None:
            findings.count(1)
            findings.example(problem, claim)
    verdict = findings.verdict()
    if evidence.doubtful and verdict.status is Status.HOLDS:
        return unknown(_NAME, "the run was not over")
    return verdict


def _agreed(info: GroupInfo) -> bool:
    return info.stack in FAMILIES and "vs_primary_partition" in FAMILIES.of(info.stack).promises(info)


def _approximate(info: GroupInfo) -> bool:
    return info.stack in FAMILIES and "gossip_start" in FAMILIES.of(info.stack).promises(info)


def _account(process: MemberId, events: Sequence[Event], asked: set[tuple[MemberId, int]]) -> _Account:
    account, where = _Account([], {}, {}, []), _Where((None, None), None)
    for event in events:
        if event.kind is Kind.VIEW:
            where = _Where((event.view, event.members), None)
            account.views.append(where.view)
            if event.order is not None and event.view is not None:
                account.reformed.append((event.order, event.view))
        elif event.kind is Kind.APPLY and event.view is not None and len(account.views) == 1:
            account.stated = event.view
        elif event.kind is Kind.TRANSITIONAL:
            where = _Where(where.view, event.members)
        elif event.kind in (Kind.DELIVER, Kind.PURGE):
            assert event.sender is not None
            account.had.setdefault(event.sender, Runs()).add(event.seq, event.last)
            if event.sender == process and event.kind is Kind.DELIVER:
                numbers = range(event.seq, event.last + 1)
                account.own |= {number: where for number in numbers if (process, number) in asked}
    return account


def _misplaced(claim: Event, evidence: _Evidence) -> str | None:
    """What is wrong with where a message was delivered at its sender."""
    view: _View = claim.view, claim.members
    message, account = f"({claim.sender},{claim.seq})", evidence.of(claim.process)
    found = account.own.get(claim.seq)
    if found is None:
        replaced = claim.seq in account.had.get(claim.process, Runs())
        if not replaced and evidence.lacks(claim.process, view):
            return f"{claim.process} never delivered {message}, which it confirmed in view {claim.view}"
        return None
    if found.view != view and evidence.bound:
        return f"{message} was confirmed in view {claim.view} and delivered in view {found.view[0]}"
    if found.together is not None:
        others = [member for member in claim.members or () if member not in found.together]
        if not all(evidence.excuses(member, view) for member in others):
            return (
                f"{message} was confirmed in view {claim.view} and delivered after it, by some of its members"
            )
    return None


def _lacking(claim: Event, evidence: _Evidence, *, replaced: bool) -> str | None:
    """Who of the view does not have a message that everybody has."""
    sender, view = claim.process, (claim.view, claim.members)

    def has(member: MemberId) -> bool:
        account = evidence.of(member)
        had = account.had.get(sender, Runs())
        return claim.seq in had or (replaced and had.highest() > claim.seq) or account.was_told(view)

    for member in claim.members or ():
        if not has(member) and evidence.lacks(member, view):
            company = evidence.of(member).began_after(view)
            if company and not any(map(has, company)):
                continue  # the state that its program waited for is lost with everybody who had it
            return f"{member} never got ({sender},{claim.seq}), which {sender} confirmed as safe"
    return None
