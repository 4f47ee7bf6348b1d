"""One order over all groups of a domain (seed I, 6.2)."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import TOTAL
from semcast.specs.domains.kinds import GIVEN
from semcast.specs.domains.story import Story, judge
from semcast.specs.evs.walks import Walk
from semcast.specs.verdict import Findings, Verdict


def domain_total_order(history: History) -> Verdict:
    """I, 6.2: the orders in which processes are given ordered messages, of all groups, agree with one order.

    So it is if all these orders taken together have no circle. Who crashes, leaves or is put out may have
    been ahead of the order that the others took: what it was given in a view that it does not go on from
    does not count. Counts messages in a circle, or behind one.
    """
    return judge("domain_total_order", history, _find, spoken=lambda event: event.level == TOTAL)


def _find(story: Story, findings: Findings) -> None:
    paths = _ordered(story)
    who = list(paths)
    walk = Walk(list(paths.values()), {})
    if not walk.stuck:
        return
    circle = walk.circle()
    ahead = dict(zip([step for _, step in circle], [*circle[1:], circle[0]], strict=True))

    def case(part: int, seq: int) -> tuple[str, list[Event]]:
        at = part if part in ahead else circle[0][1]
        number = next(number for number, step in circle if step == at)
        process, other = who[number], ahead[at][1]
        events = [*story.shown_at(process, at), *story.shown_at(who[ahead[at][0]], other)]
        names = " before ".join(story.first(step) for _, step in circle)
        about = "" if part in ahead else f"{story.name(part, seq)} comes behind a circle: "
        return f"{about}{names} before {story.first(circle[0][1])}", events

    story.report(findings, sorted(walk.stuck), case)


def _ordered(story: Story) -> dict[MemberId, list[int]]:
    """By process the ordered messages that it was given where it goes on."""
    good: dict[MemberId, set[int]] = {}
    for stays in story.stays.values():
        for stay in stays:
            if story.closed(stay):
                good.setdefault(stay.process, set()).update(stay.given)
    return {
        process: [
            part
            for kind, part in story.steps[process]
            if kind is GIVEN and part in parts and story.shown[process, part].level == TOTAL
        ]
        for process, parts in good.items()
    }
