"""Views as everybody agrees on them (Pereira 2002, 2.2.2)."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from semcast.core.ids import MemberId, Nanos
from semcast.core.quorum import is_quorum
from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.evs.configurations import Stay
from semcast.specs.verdict import Findings, Verdict
from semcast.specs.vsync.views import Views, judge, number_of


def vs_view_agreement(history: History) -> Verdict:
    """P, 2.2.2: one number, one list of members, everywhere; and a process is in the views it installs.

    Counts installations of a view with other members than at the first process that has it, of a view that
    the process is no member of, with a number that does not grow, and after a crash.
    """
    return judge("vs_view_agreement", history, _find_disagreement)


def vs_primary_partition(history: History) -> Verdict:
    """P, 2.2.2: views are in one line, each preceded and succeeded by a single other one.

    Counts numbers that two views have; processes that go from one view to another and pass over one that
    somebody installed between them; and views whose predecessor, the one before it by number that somebody
    installed, did not agree to it. Agreed have those of its members who are in the next view, and those who
    crashed may have, for so they are recorded who left or were excluded: together a majority, and unless
    all crashed, one at least who goes on. Who agrees says what it has, and gets no more: so who sent or
    delivered in the predecessor what those who go on did without, and was still at it when the next view was
    there, did not agree. Who is still in the predecessor when the recording ends may be leaving, unless the
    run came to rest; and where a number is missing between two views, then so may be a view of which the
    recording was cut off. A re-formed view needs no majority: it may follow a view, and pass over others, if
    nobody lives of the one it follows who is not in it.
    """
    return judge("vs_primary_partition", history, _find_second_primary)


def _find_disagreement(views: Views, findings: Findings) -> None:
    for number, stays in views.of.items():
        for stay in stays:
            if stay.event.members != stays[0].event.members:
                findings.count(1)
                what = f"{stay.process} and {stays[0].process} differ in the members of view {number}"
                findings.example(what, stays[0].event, stay.event)
    for life in views.known.lives.values():
        for stay in life.stays:
            if stay.process not in stay.members:
                _report(findings, stay, "is not a member of it")
        for before, stay in pairwise(life.stays):
            if number_of(stay) <= number_of(before):
                _report(findings, stay, f"was in view {number_of(before)}", before.event)
        _find_after_crash(views.known.rows[life.process], findings)


def _report(findings: Findings, stay: Stay, problem: str, *events: Event) -> None:
    findings.count(1)
    findings.example(f"{stay.process} installed view {number_of(stay)} and {problem}", *events, stay.event)


def _find_after_crash(rows: Sequence[Event], findings: Findings) -> None:
    crash: Event | None = None
    for event in rows:
        if event.kind in GONE:
            crash = crash or event
        elif event.kind is Kind.VIEW and crash is not None:
            findings.count(1)
            findings.example(f"{event.process} installed view {event.view} after its crash", crash, event)


Ignored = Callable[[int, int], set[MemberId]]
"""Those of a view who did not agree to the next one, though they may have crashed since."""


def _find_second_primary(views: Views, findings: Findings) -> None:
    find_second_primary(views, findings, lambda number, following: _ignored(views, number, following))


def find_second_primary(views: Views, findings: Findings, ignored: Ignored) -> None:
    """Look for views beside the one line, given what only messages tell."""
    for number, stays in views.of.items():
        other = next((stay for stay in stays if stay.members != stays[0].members), None)
        if other is not None:
            findings.count(1)
            findings.example(f"there are two views {number}", stays[0].event, other.event)
    for before in views.known.stays:
        if before.after is not None:
            _find_passed_over(views, before, before.after, findings)
    for number, following in pairwise(views.of):
        _find_usurped(views, number, following, findings, ignored)


def _find_passed_over(views: Views, before: Stay, after: Stay, findings: Findings) -> None:
    between = views.numbers_between(number_of(before), number_of(after))
    if between and views.reformed(number_of(after)) is None:
        findings.count(1)
        findings.example(
            f"{before.process} passed over view {between[0]}",
            before.event,
            views.of[between[0]][0].event,
            after.event,
        )


def _find_usurped(views: Views, number: int, following: int, findings: Findings, ignored: Ignored) -> None:
    """Whether a view came about without those of the view before."""
    known = views.known
    if views.reformed(following) is not None:
        _find_forgotten(views, following, findings)
        return
    if following > number + 1 and (known.evidence.cut_off or not known.quiesced):
        return
    members, successors = set(views.members(number)), set(views.members(following))
    staying = {member for member in members if not known.life(member).crashed}
    refused = (staying | ignored(number, following)) - successors
    ranks = [rank for rank, member in enumerate(views.members(number)) if member not in refused]
    nobody = bool(staying) and members.isdisjoint(successors)
    if nobody or (known.quiesced and not is_quorum(len(members), ranks)):
        findings.count(1)
        findings.example(
            f"view {following} has no quorum of view {number}",
            views.of[number][0].event,
            views.of[following][0].event,
        )


def _find_forgotten(views: Views, number: int, findings: Findings) -> None:
    """Whether a view was re-formed though somebody lived of the view that it follows, and is not in it."""
    after = views.reformed(number)
    first = min(views.of[number], key=lambda stay: stay.event.at)
    for stay in views.of.get(after or 0, ()):
        end = next((row for row in views.known.rows[stay.process] if row.kind in GONE), None)
        if stay.process not in views.members(number) and (end is None or end.at > first.event.at):
            findings.count(1)
            findings.example(
                f"view {number} was re-formed though {stay.process} was alive", stay.event, first.event
            )


def _ignored(views: Views, number: int, following: int) -> set[MemberId]:
    """Those of a view who went on with it while others had the next, with messages that are lost on these."""
    evidence = views.known.evidence
    goes_on = going_on(views, number, following)
    if goes_on is None or evidence.relation.endless or evidence.untold is not None:
        return set()
    installed = min(stay.event.at for stay in views.of[following])
    return {
        stay.process
        for stay in views.of[number]
        if _last_step(views, stay) > installed and views.lacking(goes_on, {*stay.sent, *stay.delivered})
    }


def going_on(views: Views, number: int, following: int) -> Stay | None:
    """The first who goes from one view to the other, if there is one."""
    return next(
        (stay for stay in views.of[number] if stay.after is not None and number_of(stay.after) == following),
        None,
    )


def _last_step(views: Views, stay: Stay) -> Nanos:
    """When a process sent or delivered something in a view for the last time."""
    end = stay.after.event.index if stay.after is not None else None
    return max(
        (
            row.at
            for row in views.known.rows[stay.process]
            if row.kind in (Kind.MULTICAST, Kind.DELIVER)
            and stay.event.index < row.index
            and (end is None or row.index < end)
        ),
        default=-1,
    )
