"""Causal order between groups (seed I, 4.2, 6.1 and 6.5).

m causally precedes m' if a process sends m, or is given it, before it sends m', or through others so. It does
not matter which groups they are sent in.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.specs.domains.kinds import GIVEN
from semcast.specs.domains.pasts import Heard, Pasts, pasts_of
from semcast.specs.domains.story import Stay, Story, judge, story_of
from semcast.specs.verdict import Findings, Status, Verdict, unknown


def domain_causal_delivery(history: History) -> Verdict:
    """I, 6.1: if m causally precedes m', nobody is given m after m', whatever their groups.

    Counts messages m at each process, and those whose delivery is in a circle, or behind one, of
    deliveries that precede the sending.
    """
    return judge("domain_causal_delivery", history, _find_overtaken)


def domain_causal_completeness(history: History) -> Verdict:
    """I, 6.1: who is given m' has all that precedes it of its own groups, or replacements.

    That is what was sent in a view that it was in and went on from, and it has it there. A direct message is
    owed where its sender went on from the view it left in, and its addressee is there when the run is over.
    Counts pairs of a process and a message.
    """
    return _judge_gaps("domain_causal_completeness", history, _find_incomplete)


def no_causal_gap(history: History) -> Verdict:
    """I, 4.2 and 6.5: what precedes anything that somebody was given who goes on, is not lost.

    All members of the view in which it was sent who go on from there have it, or a replacement, also where
    nobody is a destination of both. With a resilience f that is promised while at most f processes fail.
    Counts pairs of a process and a message.
    """
    name, story = "no_causal_gap", story_of(history)
    beyond = story.failures.beyond()
    if beyond and story.stays:
        return Verdict(name, Status.HOLDS, note=beyond)
    return _judge_gaps(name, history, _find_gaps)


def _judge_gaps(name: str, history: History, find: Callable[[Story, Findings], None]) -> Verdict:
    if pasts_of(story_of(history)).stuck:
        return unknown(name, "precedence runs in a circle")
    return judge(name, history, find, semantic=True)


def _find_overtaken(story: Story, findings: Findings) -> None:
    pasts = pasts_of(story)
    for process, steps in story.steps.items():
        asked, late = Heard(pasts), []
        for kind, part in steps:
            if kind is GIVEN and (process, part) not in pasts.stuck:
                sender, number = pasts.place(part)
                if number <= asked.counts[sender]:
                    late.append(part)
                asked.preceding(part)
        story.report(findings, sorted(late), _overtaken(story, pasts, process))
    for process, part in sorted(pasts.stuck):
        story.report(findings, [part], _circular(story, process))


def _overtaken(
    story: Story, pasts: Pasts, process: MemberId
) -> Callable[[int, int], tuple[str, list[Event]]]:
    def case(part: int, seq: int) -> tuple[str, list[Event]]:
        earlier = _witness(pasts, part, _given(story, process))
        events = [*story.shown_at(process, earlier), *story.shown_at(process, part, seq)]
        name, other = story.name(part, seq), story.first(earlier)
        return f"{process} delivered {name} after {other}, which it precedes", events

    return case


def _circular(story: Story, process: MemberId) -> Callable[[int, int], tuple[str, list[Event]]]:
    def case(part: int, seq: int) -> tuple[str, list[Event]]:
        events = [*story.shown_at(process, part, seq), story.sent[part].event.only(seq)]
        name = story.name(part, seq)
        return (
            f"{process} delivered {name} in, or behind, a circle: deliveries that precede the sending",
            events,
        )

    return case


def _witness(pasts: Pasts, old: int, parts: Iterable[int]) -> int:
    return next(part for part in parts if pasts.precedes(old, part))


def _given(story: Story, process: MemberId) -> Iterator[int]:
    return (part for kind, part in story.steps[process] if kind is GIVEN)


def _find_incomplete(story: Story, findings: Findings) -> None:
    pasts = pasts_of(story)
    asked: dict[MemberId, Sequence[int]] = {}
    for process in story.steps:
        heard = Heard(pasts)
        for part in _given(story, process):
            heard.preceding(part)
        asked[process] = heard.counts

    def because(process: MemberId) -> Iterable[tuple[MemberId, int]]:
        return ((process, part) for part in _given(story, process))

    for stay in _closed(story):
        _find_lacking(story, stay, asked[stay.process], findings, because)
    for part in story.direct:
        to = addressee(story, part)
        if to is not None and (to, part) not in story.shown:
            sender, number = pasts.place(part)
            if number <= asked[to][sender]:
                story.report(findings, [part], _lacks(story, to, because))


def _find_gaps(story: Story, findings: Findings) -> None:
    pasts, heard = pasts_of(story), Heard(pasts_of(story))
    for stay in _closed(story):
        for part in stay.given:
            heard.preceding(part)

    def because(_: MemberId) -> Iterable[tuple[MemberId, int]]:
        return ((stay.process, part) for stay in _closed(story) for part in stay.given)

    for stay in _closed(story):
        _find_lacking(story, stay, heard.counts, findings, because)
    for part in story.direct:
        to = addressee(story, part)
        if to is not None and (to, part) not in story.shown:
            sender, number = pasts.place(part)
            if number <= heard.counts[sender]:
                story.report(findings, [part], _lacks(story, to, because))


_Because = Callable[[MemberId], Iterable[tuple[MemberId, int]]]
"""For a process, the deliveries that may be why something is owed to it."""


def _closed(story: Story) -> Iterator[Stay]:
    return (stay for stays in story.stays.values() for stay in stays if story.closed(stay))


def _find_lacking(
    story: Story, stay: Stay, upto: Sequence[int], findings: Findings, because: _Because
) -> None:
    pasts = pasts_of(story)
    owed = [
        part
        for sender, sends in story.sends.get(stay.place, {}).items()
        for part in sends.upto(upto[pasts.number[sender]])
    ]
    lacking = story.lacking(stay, owed)
    if lacking:
        story.report(findings, lacking, _lacks(story, stay.process, because))


def _lacks(
    story: Story, process: MemberId, because: _Because
) -> Callable[[int, int], tuple[str, list[Event]]]:
    pasts = pasts_of(story)

    def case(part: int, seq: int) -> tuple[str, list[Event]]:
        who, effect = next(item for item in because(process) if pasts.precedes(part, item[1]))
        sending = story.sent[part]
        where = f"view {sending.place[1]} of {sending.place[0]}"
        reason = (
            f"{process} has neither {story.name(part, seq)} nor a replacement in {where}, "
            f"and {who} was given {story.first(effect)}, which it precedes"
        )
        return reason, [sending.event.only(seq), *story.shown_at(who, effect)]

    return case


def addressee(story: Story, part: int) -> MemberId | None:
    """Who must have a direct message when the run is over; None if nobody must."""
    sending = story.sent[part]
    stays = {stay.process: stay for stay in story.stays.get(sending.place, ())}
    sender, to = stays.get(sending.event.process), (sending.event.members or (None,))[0]
    if to is None or sender is None or not story.closed(sender) or not story.info.quiesced:
        return None
    return (
        to if any(stay.open and stay.process == to for stay in _of_group(story, sending.place[0])) else None
    )


def _of_group(story: Story, group: str) -> Iterator[Stay]:
    return (stay for (name, _), stays in story.stays.items() if name == group for stay in stays)
