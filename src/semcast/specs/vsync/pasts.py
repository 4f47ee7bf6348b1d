"""What causally precedes what in a view, as numbers of messages of each sender.

What a process delivers again, and what was not multicast in the view, does not count.
"""

from weakref import WeakKeyDictionary

from semcast.core.ids import MemberId
from semcast.history.schema import Kind
from semcast.specs.evs.walks import Walk
from semcast.specs.vsync.views import Step, Views, number_of

Vector = tuple[int, ...]
"""For each sender how many of its messages precede something: the first so many."""


class Past:
    """One view."""

    def __init__(self, views: Views, number: int) -> None:
        self.stays = views.of[number]
        self.steps = {stay.slot: _inside(views, number, views.steps[stay.slot]) for stay in self.stays}
        """What happened in each stay, by slot."""

        self.paths: dict[MemberId, list[Step]] = {}
        """And at each process."""

        self.sends: list[list[int]] = []
        """By sender, the parts it multicast, in order."""

        self.place: dict[int, tuple[int, int]] = {}
        """Of each of them, the number of its sender, and which of its sends it is, from 1."""

        self.before: dict[int, Vector] = {}
        """And what precedes it, but for its sender's own; the same object if it had heard of nothing new."""

        self.stuck: list[tuple[MemberId, int]] = []
        """The deliveries that are in a circle or behind one."""

        for stay in self.stays:
            self.paths.setdefault(stay.process, []).extend(self.steps[stay.slot])
        for steps in self.paths.values():
            self._number([part for kind, part in steps if kind is Kind.MULTICAST])
        self._walk()

    def precedes(self, old: int, new: int) -> bool:
        """Whether a part causally precedes another; not if nothing is known of the other for circles."""
        sender, number = self.place[old]
        other, later = self.place[new]
        if sender == other:
            return number < later
        return new in self.before and number <= self.before[new][sender]

    def _number(self, sent: list[int]) -> None:
        if sent:
            self.place.update((part, (len(self.sends), place)) for place, part in enumerate(sent, 1))
            self.sends.append(sent)

    def _walk(self) -> None:
        steps = [(process, step) for process, path in self.paths.items() for step in path]
        sent = {part: moment for moment, (_, (kind, part)) in enumerate(steps) if kind is Kind.MULTICAST}
        after = {moment: sent[part] for moment, (_, (kind, part)) in enumerate(steps) if kind is Kind.DELIVER}
        begin, paths = 0, []
        for path in self.paths.values():
            paths.append(range(begin, begin + len(path)))
            begin += len(path)
        walk = Walk(paths, after)
        watches = {process: _Watch(self) for process in self.paths}
        for moment, _ in walk.taken:
            process, (kind, part) = steps[moment]
            if kind is Kind.MULTICAST:
                watches[process].send(part)
            else:
                watches[process].deliver(part)
        stuck = (steps[moment] for moment in sorted(walk.stuck))
        self.stuck = [(process, part) for process, (kind, part) in stuck if kind is Kind.DELIVER]


class _Watch:
    """What one process has heard of."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._heard = [0] * len(past.sends)
        self._now: Vector | None = None
        self._last: list[Vector | None] = [None] * len(past.sends)

    def send(self, part: int) -> None:
        if self._now is None:
            self._now = tuple(self._heard)
        self._past.before[part] = self._now

    def deliver(self, part: int) -> None:
        sender, number = self._past.place[part]
        before = self._past.before[part]
        if self._last[sender] is not before:
            self._last[sender] = before
            self._heard = list(map(max, self._heard, before))
            self._now = None
        if number > self._heard[sender]:
            self._heard[sender] = number
            self._now = None


def _inside(views: Views, number: int, steps: list[Step]) -> list[Step]:
    sent = views.known.sent

    def here(part: int) -> bool:
        stay = sent.get(part)
        return stay is not None and number_of(stay) == number

    return [step for step in steps if step[0] is Kind.MULTICAST or here(step[1])]


_kept: WeakKeyDictionary[Views, list[Past]] = WeakKeyDictionary()


def pasts_of(views: Views) -> list[Past]:
    """Of all views, put together at the first call."""
    found = _kept.get(views)
    if found is None:
        found = _kept[views] = [Past(views, number) for number in views.of]
    return found
