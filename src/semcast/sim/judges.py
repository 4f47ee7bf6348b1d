"""What a run must have come to besides the properties of its history: somebody moves, and all meet again.

Histories say what happened. These judge what did not: members that stand still, that do not find each other
again once the network is whole, that take too long for it, or that change views without a reason.
"""

from collections.abc import Collection

from semcast.core.ids import SECOND, MemberId
from semcast.history import Kind
from semcast.sim.cluster import member_names
from semcast.sim.families import FAMILIES
from semcast.sim.scenario import Scenario
from semcast.sim.simulate import RunOutcome

VIEWS_A_FAULT = 6
"""Views that one fault may cause: it comes and goes, and members may hear of both one after the other."""


def judge(scenario: Scenario, outcome: RunOutcome) -> list[str]:
    """What is wrong with a run, in words; nothing where all is well."""
    family = FAMILIES.of(scenario.stack)
    found = [] if outcome.settled else ["liveness: the healed group did not come to rest"]
    if family.excused(outcome.history):
        return found
    found += _oversized(scenario, outcome)
    found += _stuck(outcome, family.outsiders(outcome.history))
    found += _unanswered(outcome)
    found += _crowded(scenario, outcome)
    found += _heavy(scenario, outcome)
    found += _refused(scenario, outcome)
    found += _let_in(scenario, outcome)
    if family.finds_members:
        found += _apart(scenario, outcome)
        found += _late(scenario, outcome)
        found += _restless(scenario, outcome)
    return found


def _oversized(scenario: Scenario, outcome: RunOutcome) -> list[str]:
    """Frames fit in what any network carries."""
    if not outcome.oversized:
        return []
    return [f"size: {outcome.oversized} datagrams were too large for an MTU of {scenario.mtu}"]


def _stuck(outcome: RunOutcome, outsiders: Collection[MemberId]) -> list[str]:
    stuck = [member for member in outcome.stuck if member not in outsiders]
    return [f"liveness: {_names(stuck)} cannot send for ever"] if stuck else []


def _unanswered(outcome: RunOutcome) -> list[str]:
    if not outcome.unanswered:
        return []
    return [f"liveness: {_names(outcome.unanswered)} never said what became of a message"]


def _crowded(scenario: Scenario, outcome: RunOutcome) -> list[str]:
    """No more waits for a program than queue and reserve hold, and what a change of view adds."""
    bound = FAMILIES.of(scenario.stack).backlog(scenario)
    most = max(host.queued for host in outcome.hosts)
    if bound is None or most <= bound:
        return []
    return [f"memory: {most} messages waited for a program, {bound} at most are promised"]


def _heavy(scenario: Scenario, outcome: RunOutcome) -> list[str]:
    """The same in bytes."""
    bound = FAMILIES.of(scenario.stack).backlog_bytes(scenario)
    most = max(host.queued_bytes for host in outcome.hosts)
    if bound is None or most <= bound:
        return []
    return [f"memory: {most} bytes waited for a program, {bound} at most are promised"]


def _refused(scenario: Scenario, outcome: RunOutcome) -> list[str]:
    """Where the reserve is large enough for all answers nobody is told to read first."""
    if not scenario.ample or not outcome.raised:
        return []
    return [f"needless: {outcome.raised} sends failed though the reserve is large enough"]


def _let_in(scenario: Scenario, outcome: RunOutcome) -> list[str]:
    """Who has set something otherwise is in no view with others, and leaves if several others are in one."""
    names = member_names(scenario.size, scenario.name_bytes)
    misfits = {names[number].name for number in scenario.misfits}
    if not misfits:
        return []
    views = [event.members or () for event in outcome.history.events if event.kind is Kind.VIEW]
    mixed = [view for view in views if len(view) > 1 and any(member.name in misfits for member in view)]
    stands = any(len(view.members) > 1 for view in outcome.views.values() if view is not None)
    judged = stands and FAMILIES.of(scenario.stack).expels_misfits
    there = {who.name for who in outcome.views if judged}
    found = [f"terms: {_names(list(mixed[0]))} are in one view though settings differ"] if mixed else []
    return found + [f"terms: {name} never heard that its settings differ" for name in sorted(misfits & there)]


def _apart(scenario: Scenario, outcome: RunOutcome) -> list[str]:
    """A healed group that finds itself ends in one view of all who are there and have set the same."""
    names = member_names(scenario.size, scenario.name_bytes)
    misfits = {names[number].name for number in scenario.misfits}
    found = {who: view for who, view in outcome.views.items() if who.name not in misfits}
    odd = [who for who, view in found.items() if view is None or set(view.members) != set(found)]
    return [f"liveness: {_names(odd)} did not find all others again"] if odd else []


def _late(scenario: Scenario, outcome: RunOutcome) -> list[str]:
    """They meet within the time that their family promises."""
    bound, took = FAMILIES.of(scenario.stack).heals_within(scenario), outcome.united_after
    if bound is None or took is None or took <= bound:
        return []
    return [f"healing: one view after {took / SECOND:.2f} s, {bound / SECOND:.2f} s are promised"]


def _restless(scenario: Scenario, outcome: RunOutcome) -> list[str]:
    """Views change because something happened: everybody starts once, and there are faults."""
    views = {(event.view, event.members) for event in outcome.history.events if event.kind is Kind.VIEW}
    bound = scenario.size + VIEWS_A_FAULT * (1 + len(scenario.faults) + len(scenario.late))
    if len(views) <= bound:
        return []
    return [f"calm: {len(views)} views for {len(scenario.faults)} faults, {bound} are plenty"]


def _names(members: list[MemberId]) -> str:
    return ", ".join(map(str, members))
