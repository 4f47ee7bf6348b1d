"""Causal and agreed delivery (Amir 1995, specifications 5 and 6).

"Delivers m before m'" is read as: has m, delivered or replaced in the same com(c), and if it delivered m
itself, then before m'.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from math import inf

from semcast.core.ids import MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.evs.configurations import (
    Configuration,
    Configurations,
    Life,
    Stay,
    configurations_of,
    judge,
    positions,
)
from semcast.specs.evs.moments import Moments, deliveries_together, precedence_of
from semcast.specs.evs.precedence import CIRCULAR
from semcast.specs.verdict import Findings, Verdict, unknown


def evs_5_causal(history: History) -> Verdict:
    """5: who delivers m' of c has delivered before it what was sent in c before m' was.

    Counts pairs of a process and a message m that it lacks, or delivers too late, in com(c).
    """
    name = "evs_5_causal"
    if precedence_of(configurations_of(history)).circular:
        return unknown(name, CIRCULAR)
    return judge(name, history, _find_uncaused, semantic=True)


def evs_6_1_order_respects_precedence(history: History) -> Verdict:
    """6.1: there is an order of all events, with the moments of 6.2, that respects "precedes".

    Counts the messages and configurations whose deliveries no such order has.
    """
    return judge("evs_6_1_order_respects_precedence", history, _find_without_order)


def evs_6_2_same_moment(history: History) -> Verdict:
    """6.2: all deliveries of a configuration are one moment, all deliveries of a message are one moment.

    Counts the messages and configurations for which the local orders of deliveries, without regard to
    sends, leave no such moment.
    """
    return judge("evs_6_2_same_moment", history, _find_without_moment)


def evs_6_3_agreed(history: History) -> Verdict:
    """6.3: if p delivers m before m', then who delivers m' in c' has m before it, if m's sender is in c'.

    Counts pairs of a process and a message m that it lacks, or delivers too late, in com(c').
    """
    return judge("evs_6_3_agreed", history, _find_disagreed, semantic=True)


def _find_without_order(known: Configurations, findings: Findings) -> None:
    _find_stuck(known, precedence_of(known).together, findings)


def _find_without_moment(known: Configurations, findings: Findings) -> None:
    together = precedence_of(known).together
    if together.walk.stuck:
        _find_stuck(known, deliveries_together(known, sends=False), findings)


def _find_stuck(known: Configurations, moments: Moments, findings: Findings) -> None:
    times = len(moments.stuck(Kind.VIEW)) + known.parts.weigh(moments.stuck(Kind.DELIVER))
    moments.report(known, findings, times, "deliveries in different orders")


def _find_uncaused(known: Configurations, findings: Findings) -> None:
    for reg in known.regs:
        sends = _Sends(known, reg)
        for life in known.living_in(reg):
            _report(known, life, _Causes(known, reg, sends, life).lacking(), findings)


class _Sends:
    """What was sent in one regular configuration, by sender."""

    def __init__(self, known: Configurations, reg: Configuration) -> None:
        place = precedence_of(known).place
        self.parts: list[list[int]] = [[] for _ in known.lives]
        self.numbers: list[list[int]] = [[] for _ in known.lives]
        self.index: dict[int, int] = {}
        for stay in known.of.get(reg, ()):
            for part in stay.sent:
                sender, number = place[part]
                self.index[part] = len(self.parts[sender])
                self.parts[sender].append(part)
                self.numbers[sender].append(number)
        self.senders = [sender for sender, parts in enumerate(self.parts) if parts]


class _Causes:
    """Goes through what one process delivers in com(c), and through what was sent before each of it."""

    def __init__(self, known: Configurations, reg: Configuration, sends: _Sends, life: Life) -> None:
        self._known = known
        self._reg = reg
        self._sends = sends
        self._life = life
        self._first = positions(life.com[reg])
        self._gone_through = [0] * len(known.lives)

    def lacking(self) -> dict[int, int]:
        """What is missing, and what it is missing behind."""
        precedence = precedence_of(self._known)
        last: dict[int, object] = {}
        found: dict[int, int] = {}
        for part, position in self._first.items():
            if part not in self._sends.index:
                continue
            sender, _ = precedence.place[part]
            self._go(sender, self._sends.index[part], part, position, found)
            past = precedence.before_send[part]
            if last.get(sender) is not past:
                last[sender] = past
                for other in self._sends.senders:
                    sent = bisect_right(self._sends.numbers[other], past[other])
                    self._go(other, sent, part, position, found)
        return found

    def _go(self, sender: int, sent: int, part: int, position: int, found: dict[int, int]) -> None:
        """The first `sent` messages of a sender are asked for; the earliest to ask is the strictest."""
        begin = self._gone_through[sender]
        if sent <= begin:
            return
        self._gone_through[sender] = sent
        for old in self._sends.parts[sender][begin:sent]:
            when = self._first.get(old)
            if when is None:
                if not self._known.excused(self._life, self._reg, old):
                    found[old] = part
            elif when > position:
                found[old] = part


def _find_disagreed(known: Configurations, findings: Findings) -> None:
    for reg in known.regs:
        lives = known.living_in(reg)
        orders = sorted({tuple(positions(life.com[reg])) for life in lives})
        everything = set().union(*orders)
        for life in lives:
            agreement = _Agreement(known, reg, life, everything)
            found: dict[int, int] = {}
            for order in orders:
                for old, new in agreement.overtaken(order):
                    found.setdefault(old, new)
            _report(known, life, found, findings)


class _Agreement:
    """What one process delivers in com(c), against the orders of others."""

    def __init__(self, known: Configurations, reg: Configuration, life: Life, everything: set[int]) -> None:
        self._known = known
        self._reg = reg
        self._stays = life.com[reg]
        self._first = positions(self._stays)
        missing = everything.difference(self._first)
        self._lacking = {part for part in missing if not known.excused(life, reg, part)}

    def overtaken(self, order: Sequence[int]) -> Iterator[tuple[int, int]]:
        """What comes earlier in `order` than here, or is lacking here, and something it comes before."""
        here = [self._first[part] for part in order if part in self._first]
        if here == sorted(here) and self._lacking.isdisjoint(order):
            return
        # For each stay here the earliest delivery in it of what comes later in `order`.
        earliest: list[tuple[Stay, float, int]] = [(stay, inf, 0) for stay in self._stays]
        for part in reversed(order):
            when = inf if part in self._lacking else self._first.get(part, 0)
            if self._known.sent_in(part, self._reg):
                sender = self._known.parts.sender(part)
                ahead = [new for stay, at, new in earliest if at < when and sender in stay.members]
                if ahead:
                    yield part, ahead[0]
            earliest = [
                (stay, stay.delivered[part], part) if stay.delivered.get(part, inf) < at else (stay, at, new)
                for stay, at, new in earliest
            ]


def _report(known: Configurations, life: Life, found: dict[int, int], findings: Findings) -> None:
    def case(message: MessageId) -> tuple[str, list[Event]]:
        later = known.parts.first(found[known.parts.around(message)])
        events = [*known.send_of(message), *known.find(Kind.DELIVER, life.process, later)]
        return f"{life.process} delivered {later} without {message} before it", events

    known.report(findings, sorted(found), case)
