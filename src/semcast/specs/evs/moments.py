"""What precedes what, and what happens at the same moment.

"Precedes" is what 1.1 to 1.3 make it: the local order of each process, and every send before the
deliveries of its message. The specifications differ in which events they take for one moment: none, all
deliveries of one configuration, or those of one message as well.
"""

from collections.abc import Callable
from itertools import chain, count
from typing import NamedTuple
from weakref import WeakKeyDictionary

from semcast.core.ids import MemberId
from semcast.history.events import Event
from semcast.history.schema import Kind
from semcast.specs.evs.configurations import Configurations, Life
from semcast.specs.evs.walks import Walk
from semcast.specs.verdict import Findings


class Step(NamedTuple):
    """One of the first events of its kind at a process: of a view (the slot) or of a part."""

    life: int
    kind: Kind
    what: int


class Moments:
    """The walk of all processes through their events; events with the same name are one moment."""

    def __init__(self, known: Configurations, name: Callable[[Step], object], *, sends: bool = True) -> None:
        numbers: dict[object, int] = {}
        fresh = count()
        self.steps: dict[int, Step] = {}
        """By moment, one of its steps."""

        paths: list[list[int]] = []
        after: dict[int, int] = {}
        sent: dict[int, int] = {}
        for life, lived in enumerate(known.lives.values()):
            path: list[int] = []
            for kind, what in lived.steps:
                if kind is Kind.MULTICAST and not sends:
                    continue
                step = Step(life, kind, what)
                alias = name(step)
                moment = next(fresh) if alias is None else numbers.get(alias)
                if moment is None:
                    moment = numbers[alias] = next(fresh)
                self.steps[moment] = step
                path.append(moment)
                if kind is Kind.MULTICAST:
                    sent[what] = moment
            paths.append(path)
        for moment, step in self.steps.items():
            if step.kind is Kind.DELIVER and step.what in sent:
                after[moment] = sent[step.what]
        self.walk = Walk(paths, after)

    def stuck(self, kind: Kind) -> list[int]:
        """What no order has, of one kind: each is in a circle or behind one."""
        steps = (self.steps[moment] for moment in self.walk.stuck)
        return sorted(step.what for step in steps if step.kind is kind)

    def report(self, known: Configurations, findings: Findings, times: int, what: str) -> None:
        """Count `times`, and show one circle."""
        if times:
            findings.count(times)
            processes = list(known.lives)
            circle = [
                _event(known, processes[life], self.steps[moment]) for life, moment in self.walk.circle()
            ]
            findings.example(what, *chain.from_iterable(circle))


def _event(known: Configurations, process: MemberId, step: Step) -> list[Event]:
    if step.kind is not Kind.VIEW:
        return known.find(step.kind, process, known.parts.first(step.what))
    stays = known.of[known.stays[step.what].configuration]
    return [stay.event for stay in stays if stay.process == process][:1]


def each_alone(known: Configurations) -> Moments:
    """Every event is a moment of its own: what precedes what."""
    return Moments(known, lambda _: None)


def configurations_together(known: Configurations) -> Moments:
    """All deliveries of a configuration are one moment."""
    return Moments(known, lambda step: _configuration(known, step) if step.kind is Kind.VIEW else None)


def deliveries_together(known: Configurations, *, sends: bool) -> Moments:
    """All deliveries of a configuration are one moment, and all deliveries of a message."""

    def name(step: Step) -> object:
        if step.kind is Kind.VIEW:
            return _configuration(known, step)
        return step.what if step.kind is Kind.DELIVER else None

    return Moments(known, name, sends=sends)


def _configuration(known: Configurations, step: Step) -> object:
    return known.stays[step.what].configuration


Vector = tuple[int, ...]
"""For each process how many of its sends precede an event elsewhere: the first so many."""


class Precedence:
    """What precedes sends and views. Where there are circles, nothing can be said."""

    def __init__(self, known: Configurations) -> None:
        self.together = deliveries_together(known, sends=True)
        """The most that is asked for. Where it has an order, so has everything else."""

        self.moments = each_alone(known) if self.together.walk.stuck else self.together
        self.circular = bool(self.moments.walk.stuck)
        self.place: dict[int, tuple[int, int]] = {}
        """Of a part that was sent: the number of its sender, and which of its sends it is, from 1."""

        self.before_send: dict[int, Vector] = {}
        """The same object where nothing new was heard since the last send."""

        self.before_view: dict[int, Vector] = {}
        self.sends_before_view: dict[int, int] = {}
        if not self.circular:
            self._follow(list(known.lives.values()))

    def _follow(self, lives: list[Life]) -> None:
        watches = [_Watch(self, number, life, len(lives)) for number, life in enumerate(lives)]
        for moment, numbers in self.moments.walk.taken:
            _, kind, what = self.moments.steps[moment]
            for number in numbers:
                match kind:
                    case Kind.DELIVER:
                        watches[number].deliver(what)
                    case Kind.MULTICAST:
                        watches[number].send(what)
                    case _:
                        watches[number].enter()


class _Watch:
    """One process, and what it has heard of others."""

    def __init__(self, whole: Precedence, number: int, life: Life, lives: int) -> None:
        self._whole = whole
        self._number = number
        self._stays = iter(life.stays)
        self._known = [0] * lives
        self._vector: Vector | None = None
        self._last: list[Vector | None] = [None] * lives
        self._sends = 0

    def deliver(self, part: int) -> None:
        sender, number = self._whole.place.get(part, (0, 0))
        if self._known[sender] >= number:
            return  # and then all that precedes it is known as well
        past = self._whole.before_send[part]
        if self._last[sender] is not past:
            self._last[sender] = past
            self._known = list(map(max, self._known, past))
        self._known[sender] = number
        self._vector = None

    def send(self, part: int) -> None:
        self._sends += 1
        self._whole.place[part] = self._number, self._sends
        self._whole.before_send[part] = self._now()

    def enter(self) -> None:
        slot = next(self._stays).slot
        self._whole.before_view[slot] = self._now()
        self._whole.sends_before_view[slot] = self._sends

    def _now(self) -> Vector:
        if self._vector is None:
            self._vector = tuple(self._known)
        return self._vector


_kept: WeakKeyDictionary[Configurations, Precedence] = WeakKeyDictionary()


def precedence_of(known: Configurations) -> Precedence:
    """Put together at the first call."""
    found = _kept.get(known)
    if found is None:
        found = _kept[known] = Precedence(known)
    return found
