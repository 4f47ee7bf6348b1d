"""What causally precedes what in a domain, as numbers of sends of each process over all its groups.

All that a process sends is in one local order, so what precedes something is, of each process, the first so
many of its sends: a vector with a field for each process, however many groups there are.
"""

from weakref import WeakKeyDictionary

from semcast.core.ids import MemberId
from semcast.specs.domains.kinds import SENT
from semcast.specs.domains.story import Story
from semcast.specs.evs.walks import Walk

Vector = tuple[int, ...]
"""For each process how many of its sends precede something: the first so many."""


class Pasts:
    """Of everything that was sent in a domain."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.number = {process: number for number, process in enumerate(story.steps)}
        """The fields of vectors."""

        self.before: dict[int, Vector] = {}
        """What precedes a part; the same object if its sender had heard of nothing new."""

        self.stuck: set[tuple[MemberId, int]] = set()
        """The deliveries that are in a circle or behind one."""

        self._walk()

    def place(self, part: int) -> tuple[int, int]:
        """The number of its sender, and which of its sends it is."""
        sending = self._story.sent[part]
        return self.number[sending.event.process], sending.number

    def precedes(self, old: int, new: int) -> bool:
        """Whether a part causally precedes another; not if nothing is known of the other for circles."""
        sender, number = self.place(old)
        other, later = self.place(new)
        if sender == other:
            return number < later
        return new in self.before and number <= self.before[new][sender]

    def _walk(self) -> None:
        story = self._story
        steps = [(process, step) for process, path in story.steps.items() for step in path]
        sent = {part: moment for moment, (_, (kind, part)) in enumerate(steps) if kind is SENT}
        after = {
            moment: sent[part]
            for moment, (_, (kind, part)) in enumerate(steps)
            if kind is not SENT and part in sent
        }
        begin, paths = 0, []
        for path in story.steps.values():
            paths.append(range(begin, begin + len(path)))
            begin += len(path)
        walk = Walk(paths, after)
        heard = {process: Heard(self) for process in story.steps}
        for moment, _ in walk.taken:
            process, (kind, part) = steps[moment]
            if kind is SENT:
                self.before[part] = heard[process].vector
                heard[process].take(*self.place(part))
            else:
                heard[process].given(part)
        for moment in walk.stuck:
            process, (kind, part) = steps[moment]
            if kind is not SENT:
                self.stuck.add((process, part))


class Heard:
    """What one process has heard of."""

    def __init__(self, pasts: Pasts) -> None:
        self._pasts = pasts
        self.counts = [0] * len(pasts.number)
        self._vector: Vector | None = None
        self._last: list[Vector | None] = [None] * len(pasts.number)

    @property
    def vector(self) -> Vector:
        """What it has heard of, the same object as long as that is the same."""
        if self._vector is None:
            self._vector = tuple(self.counts)
        return self._vector

    def take(self, sender: int, number: int) -> None:
        """So many sends of a process."""
        if number > self.counts[sender]:
            self.counts[sender] = number
            self._vector = None

    def preceding(self, part: int) -> None:
        """What precedes a part, but not the part."""
        sender, number = self._pasts.place(part)
        before = self._pasts.before[part]
        if self._last[sender] is not before:
            self._last[sender] = before
            self.counts = list(map(max, self.counts, before))
            self._vector = None
        self.take(sender, number - 1)

    def given(self, part: int) -> None:
        """A part, and what precedes it."""
        self.preceding(part)
        self.take(*self._pasts.place(part))


_kept: WeakKeyDictionary[Story, Pasts] = WeakKeyDictionary()


def pasts_of(story: Story) -> Pasts:
    """Put together at the first call."""
    found = _kept.get(story)
    if found is None:
        found = _kept[story] = Pasts(story)
    return found
