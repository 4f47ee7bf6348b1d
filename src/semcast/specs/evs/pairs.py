"""What holds between every two processes that shared a configuration (SCENARIOS, "EVS").

Their fourth rule, that a message comes from a member of its configuration, is part of 1.3.
"""

from itertools import combinations

from semcast.history.events import History
from semcast.specs.evs.configurations import Configuration, Configurations, Stay, groups, judge
from semcast.specs.evs.delivery import find_differences
from semcast.specs.verdict import Findings, Verdict


def pair_same_members(history: History) -> Verdict:
    """The same regular configuration, the same list of members.

    Counts the deliveries of a configuration whose list is not that of the first process that has it.
    """
    return judge("pair_same_members", history, _find_other_members)


def pair_transitional(history: History) -> Verdict:
    """From c to the same transitional configuration: the same messages in c; else, not both count on it.

    Counts pairs of a process and a message that it lacks in c, and pairs of processes that
    are in each other's transitional configuration, which are not the same. That these are disjoint would
    be too much: p may go on with q while the last token to q is lost, and q goes on alone.
    """
    return judge("pair_transitional", history, _find_torn, semantic=True)


def pair_transitional_then_regular(history: History) -> Verdict:
    """From c through T to the same regular configuration: the same T, and the same messages in T.

    T is those members of the next configuration who come directly from c. Counts pairs of a process and
    a message that it lacks in T, pairs of processes that go from c to the same configuration, but not
    through the same T, and transitional configurations with members who are not in the next.
    """
    return judge("pair_transitional_then_regular", history, _find_astray, semantic=True)


def _find_other_members(known: Configurations, findings: Findings) -> None:
    for configuration, stays in known.of.items():
        if configuration.regular:
            for stay in stays:
                if stay.event.members != stays[0].event.members:
                    findings.count(1)
                    what = f"{stay.process} and {stays[0].process} differ in the members of {configuration}"
                    findings.example(what, stays[0].event, stay.event)


def _find_torn(known: Configurations, findings: Findings) -> None:
    find_differences(known, groups(known.stays, _into_transitional), findings)
    for configuration, stays in known.of.items():
        if configuration.regular:
            into = [stay.after for stay in stays if stay.after is not None and _into_transitional(stay)]
            for one, other in combinations(into, 2):
                _compare(one, other, findings)


def _compare(one: Stay, other: Stay, findings: Findings) -> None:
    same = one.configuration == other.configuration
    if not same and other.process in one.members and one.process in other.members:
        findings.count(1)
        what = (
            f"{one.process} and {other.process} count on each other in different transitional configurations"
        )
        findings.example(what, one.event, other.event)


def _into_transitional(stay: Stay) -> tuple[Configuration, Configuration] | None:
    """The regular configuration of a stay and the transitional one right after it."""
    after = stay.after
    if after is None or after.configuration.regular or after.configuration.reg != stay.configuration:
        return None
    return stay.configuration, after.configuration


def _into_regular(stay: Stay) -> tuple[Configuration, Configuration] | None:
    """The transitional configuration of a stay and the regular one right after it."""
    if stay.configuration.regular or stay.after is None or not stay.after.configuration.regular:
        return None
    return stay.configuration, stay.after.configuration


def _find_astray(known: Configurations, findings: Findings) -> None:
    find_differences(known, groups(known.stays, _into_regular), findings)
    for stay in known.stays:
        if _into_regular(stay) and stay.after is not None and not stay.members <= stay.after.members:
            findings.count(1)
            what = f"{stay.process} came to {stay.after.configuration} without all of {stay.configuration}"
            findings.example(what, stay.event, stay.after.event)
    for stays in groups(known.stays, _from_and_to):
        for one, other in combinations(stays, 2):
            if _through(one) != _through(other):
                findings.count(1)
                what = (
                    f"{one.process} and {other.process} left {one.configuration} for the same next one apart"
                )
                findings.example(what, one.event, other.event)


def _through(stay: Stay) -> Configuration | None:
    """The transitional configuration after a regular one, if there is one."""
    into = _into_transitional(stay)
    return None if into is None else into[1]


def _from_and_to(stay: Stay) -> tuple[Configuration, Configuration] | None:
    """A regular configuration and the next regular one."""
    if not stay.configuration.regular:
        return None
    after = stay.after.after if stay.after is not None and _through(stay) is not None else stay.after
    if after is None or not after.configuration.regular:
        return None
    return stay.configuration, after.configuration
