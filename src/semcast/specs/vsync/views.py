"""Who was in which view, and what was sent and delivered there: the evidence for virtual synchrony.

A `Stay` is what one process does from one view to the next, and a view is known by its number. A process
that leaves or is excluded has crashed, and comes back as another one. Two things are read into the papers:

- Nothing is purged across a view change, so m' replaces m in a view only if both were multicast there, and
  so was everything in between.
- The paper promises something to those who install the next view. The end of a run that came to rest
  counts as one, if all members of the latest view are in it then.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from weakref import WeakKeyDictionary

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.evs.configurations import Configurations, Life, Stay, configurations_of
from semcast.specs.verdict import Findings, Verdict, unknown, untold

Step = tuple[Kind, int]
"""Something sent or delivered for the first time: a part."""


class Views:
    """A history by views, in the order of their numbers."""

    def __init__(self, history: History) -> None:
        self.known = configurations_of(history)
        self.of: dict[int, list[Stay]] = {}
        stays = self.known.stays
        for number in sorted({number_of(stay) for stay in stays}):
            self.of[number] = []
        for stay in stays:
            self.of[number_of(stay)].append(stay)
        self.settled = self._settled()
        """The view that all its members are in when the run is over, if there is one."""

        self._replacements: dict[int, _Replacements] = {}

    def members(self, number: int) -> tuple[MemberId, ...]:
        """The members of a view as the first process has them."""
        return self.of[number][0].event.members or ()

    def reformed(self, number: int) -> int | None:
        """The view that a re-formed one follows; None of any other."""
        return self.of[number][0].event.order

    def bereft(self, stay: Stay) -> bool:
        """Whether a process ended in a view that was re-formed, or beside it: what it did may be lost.

        It may have gone on to a view that nobody else came to know.
        """
        last = stay
        while last.after is not None:
            last = last.after
        first, end = number_of(stay), number_of(last)
        return any(after <= first and end < number for number, after in self._reformed)

    def life(self, stay: Stay) -> Life:
        """Of the process whose stay it is."""
        return self.known.lives[stay.process]

    def closed(self, stay: Stay) -> bool:
        """Whether what the process has not done in the view by now it has failed to do."""
        if stay.after is not None:
            return True
        return number_of(stay) == self.settled and not self.life(stay).crashed

    def sends(self, number: int) -> dict[MemberId, list[int]]:
        """The parts that were multicast in a view, by sender and in order."""
        found: dict[MemberId, list[int]] = {}
        for stay in self.of[number]:
            if stay.sent:
                found.setdefault(stay.process, []).extend(stay.sent)
        return {sender: sorted(parts) for sender, parts in sorted(found.items())}

    def lacking(self, stay: Stay, owed: Iterable[int]) -> list[int]:
        """What of `owed` was not delivered in a stay, and no replacement either."""
        missing = sorted(part for part in owed if part not in stay.delivered)
        if not missing:
            return missing
        number = number_of(stay)
        if number not in self._replacements:
            self._replacements[number] = _Replacements(self, number)
        replaced = self._replacements[number]
        return [part for part in missing if not replaced.delivered_in(stay, part)]

    def numbers_between(self, low: int, high: int) -> list[int]:
        """The views that somebody installed, with numbers between these two."""
        begin = bisect_left(self._numbers, low + 1)
        return self._numbers[begin : bisect_left(self._numbers, high)]

    @cached_property
    def _reformed(self) -> list[tuple[int, int]]:
        numbers = [(number, self.reformed(number)) for number in self.of]
        return [(number, after) for number, after in numbers if after is not None]

    @cached_property
    def steps(self) -> dict[int, list[Step]]:
        """What was sent and delivered in each stay, by its slot, in local order."""
        found: dict[int, list[Step]] = {}
        for life in self.known.lives.values():
            here: list[Step] = []
            for kind, what in life.steps:
                if kind is Kind.VIEW:
                    here = found[what] = []
                else:
                    here.append((kind, what))
        return found

    @cached_property
    def annotated(self) -> dict[int, list[int]]:
        """By view, the messages of the relation that were multicast in it, as places."""
        known, found = self.known, dict[int, list[int]]()
        for place, message in enumerate(known.evidence.relation.messages):
            stay = known.sent[known.parts.holding(MessageId(message.process, message.seq))]
            if stay is not None:
                found.setdefault(number_of(stay), []).append(place)
        return found

    @cached_property
    def _numbers(self) -> list[int]:
        return list(self.of)

    def _settled(self) -> int | None:
        if not self.known.quiesced or not self.of:
            return None
        latest = next(reversed(self.of))
        lives = [self.known.life(member) for member in self.members(latest)]
        there = [life.stays and number_of(life.stays[-1]) == latest and not life.crashed for life in lives]
        return latest if all(there) else None


class _Replacements:
    """In which stays in a view messages were replaced, directly or through others."""

    def __init__(self, views: Views, number: int) -> None:
        known = views.known
        relation = known.evidence.relation.within(views.annotated.get(number, ()))
        parts = [known.parts.holding(MessageId(event.process, event.seq)) for event in relation.messages]
        place_of = {part: place for place, part in enumerate(parts)}
        self._bits = {stay.slot: 1 << bit for bit, stay in enumerate(views.of[number])}
        masks = [0] * len(parts)
        if parts:
            for stay in views.of[number]:
                for part in stay.delivered:
                    place = place_of.get(part)
                    if place is not None:
                        masks[place] |= self._bits[stay.slot]
            relation.cover(masks)
        self._masks = dict(zip(parts, masks, strict=True))

    def delivered_in(self, stay: Stay, part: int) -> bool:
        return bool(self._masks.get(part, 0) & self._bits[stay.slot])


def number_of(stay: Stay) -> int:
    """The number of the view that a process is in."""
    return stay.configuration.number


def going_on_together(views: Views) -> Iterator[list[Stay]]:
    """The stays in one view of those who installed the same view next, the end of the run included."""
    for stays in views.of.values():
        groups: dict[int | None, list[Stay]] = {}
        for stay in stays:
            if views.closed(stay):
                groups.setdefault(None if stay.after is None else number_of(stay.after), []).append(stay)
        yield from groups.values()


Proof = Callable[[MessageId], list[Event]]
"""Shows for a message why somebody should have it."""


def find_lacking(views: Views, findings: Findings, stay: Stay, owed: Iterable[int], proof: Proof) -> None:
    """Count what a process lacks in a view of what it owes there."""
    views.known.report(
        findings,
        views.lacking(stay, owed),
        lambda message: (
            f"{stay.process} has neither {message} nor a replacement in view {number_of(stay)}",
            proof(message),
        ),
    )


_kept: WeakKeyDictionary[Configurations, Views] = WeakKeyDictionary()


def views_of(history: History) -> Views:
    """The evidence of a history, gathered at the first call and kept while the history lives."""
    known = configurations_of(history)
    found = _kept.get(known)
    if found is None:
        found = _kept[known] = Views(history)
    return found


def judge(
    name: str,
    history: History,
    find: Callable[[Views, Findings], None],
    *,
    semantic: bool = False,
    told: bool = False,
) -> Verdict:
    """The verdict on a property; `find` looks for what breaks it.

    Args:
        name: of the property.
        history: to be judged.
        find: looks for what breaks the property.
        semantic: it rests on what replaces what.
        told: it rests on the sending of every message, and `find` passes over those not recorded.
    """
    views = views_of(history)
    if not views.of:
        return unknown(name, "no view was recorded")
    evidence = views.known.evidence
    if semantic and evidence.relation.endless:
        return unknown(name, "the obsolescence relation is not an order")
    if semantic and evidence.untold is not None:
        return untold(name, evidence.untold)
    findings = Findings(name)
    find(views, findings)
    return findings.verdict(evidence.untold if told else None)
