"""The buffer simulation against a slow one that looks at every pair of messages at every instant."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core.ids import SECOND
from semcast.models import Key, Scenario
from semcast.models.buffers import SingleBuffer
from semcast.models.scenario import Tally
from semcast.models.sections import Sections
from semcast.obsolescence import Purging


@dataclass(eq=False)
class Sent:
    seq: int
    key: Key
    sent: int
    entered: int = -1
    left: int = -1
    replaced_by: "Sent | None" = None
    consumed: bool = False


@dataclass
class Reference:
    """Section 5.1.2 word by word; `log` keeps what happened, in order."""

    scenario: Scenario
    sections: list[list[Sent]] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    log: list[Sent] = field(default_factory=list)
    now: int = 0
    free_at: int = 0
    peak: int = 0
    blocked: int = 0

    def __post_init__(self) -> None:
        self.capacity = [size for size in (self.scenario.sender_n, self.scenario.n) if size]
        self.sections = [[] for _ in self.capacity]
        self.delay = round(self.scenario.safety_delay * SECOND)
        self.lazy = self.scenario.purging is Purging.LAZY

    def usable(self, message: Sent) -> bool:
        if message.entered < 0:
            return self.delay == 0
        return message.entered + self.delay <= self.now

    def obsolete(self, section: list[Sent], arriving: Sent | None = None) -> tuple[Sent, Sent] | None:
        """The oldest message of a section that another one there, or about to be, may purge."""
        others = section if arriving is None else [*section, arriving]
        for old in section:
            for new in others:
                if (
                    new.key is not None
                    and new.key == old.key
                    and 0 < new.seq - old.seq <= self.scenario.reach
                    and self.usable(new)
                ):
                    return old, new
        return None

    def purge(self, section: list[Sent], pair: tuple[Sent, Sent]) -> None:
        old, new = pair
        section.remove(old)
        old.left, old.replaced_by = self.now, new
        self.log.append(old)

    def admits(self, which: int, message: Sent) -> bool:
        section = self.sections[which]
        while (pair := self.obsolete(section, message)) is not None:
            if self.lazy and len(section) < self.capacity[which]:
                break
            self.purge(section, pair)
        return len(section) < self.capacity[which]

    def settle(self) -> None:
        while True:
            if self.sections[-1] and self.free_at <= self.now:
                taken = self.sections[-1].pop(0)
                taken.left, taken.consumed = self.now, True
                self.free_at = self.now + self.scenario.service
                self.log.append(taken)
            elif len(self.sections) == 2 and self.sections[0] and self.admits(1, self.sections[0][0]):
                self.sections[1].append(self.sections[0].pop(0))
            else:
                return

    def instant(self) -> None:
        self.settle()
        for section in self.sections:
            while not self.lazy and (pair := self.obsolete(section)) is not None:
                self.purge(section, pair)
        self.settle()

    def pass_time(self, until: int) -> None:
        """Every instant at which something may happen, none skipped."""
        moments = {self.free_at, until, *(m.entered + self.delay for m in self.sent)}
        while True:
            due = [at for at in moments | {self.free_at} if self.now < at <= until]
            if not due:
                return
            self.now = min(due)
            self.instant()

    def send(self, gap: int, key: Key) -> None:
        last_sent = self.sent[-1].sent if self.sent else 0
        message = Sent(len(self.sent) + 1, key, (last_sent if self.scenario.backlog else self.now) + gap)
        self.pass_time(message.sent)
        offered = self.now
        while not self.admits(0, message):
            later = [self.free_at, *(m.entered + self.delay for m in self.sent)]
            self.pass_time(min(at for at in later if at > self.now))
        self.blocked += self.now - offered
        message.entered = self.now
        self.sections[0].append(message)
        self.sent.append(message)
        self.settle()
        self.peak = max(self.peak, self.held())

    def held(self) -> int:
        return sum(map(len, self.sections))

    def run(self, stream: list[tuple[int, Key]]) -> Tally:
        began, first, before, self.peak, self.blocked = self.now, len(self.log), self.sent[:], self.held(), 0
        for gap, key in stream:
            self.send(gap, key)
        tally = Tally(began, self.now, produced=len(stream), peak=self.peak, blocked=self.blocked)
        for message in self.sent:
            left = self.now if message.left < 0 else message.left
            tally.stay += max(0, left - max(began, message.entered))
        self._events(tally, self.log[first:])
        self._conveyed(tally, self.log[:first], before)
        return tally

    @staticmethod
    def _events(tally: Tally, events: list[Sent]) -> None:
        for message in events:
            if message.consumed:
                tally.consumed += 1
                tally.delay += message.left - message.entered
                tally.delay_max = max(tally.delay_max, message.left - message.entered)
            else:
                tally.purged += 1

    def _conveyed(self, tally: Tally, past: list[Sent], before: list[Sent]) -> None:
        """Follow each message to the one that stands for it in the end."""
        for message in self.sent:
            last = message
            while last.replaced_by is not None:
                last = last.replaced_by
            if not last.consumed:
                tally.waiting += 1
            elif not any(last is one for one in past):
                tally.conveyed += 1
                tally.latency += last.left - message.sent
                tally.latency_max = max(tally.latency_max, last.left - message.sent)


GAPS = st.integers(0, 12)
KEYS = st.sampled_from([None, "a", "b", "c"])
STREAM = st.lists(st.tuples(GAPS, KEYS), min_size=1, max_size=40)
NANO = 1 / SECOND


@st.composite
def scenarios(draw: st.DrawFn, ordinary: bool) -> Scenario:
    modes = [Purging.EAGER, Purging.OFF] if ordinary else [Purging.EAGER, Purging.LAZY, Purging.OFF]
    return Scenario(
        ts=1,
        tr=SECOND / draw(st.integers(1, 30)),
        n=draw(st.integers(1, 5)),
        k=draw(st.none() | st.integers(0, 6)),
        purging=draw(st.sampled_from(modes)),
        backlog=draw(st.booleans()),
        sender_n=0 if ordinary else draw(st.integers(0, 4)),
        safety_delay=0 if ordinary else draw(st.sampled_from([0, 0, 1, 5, 20, 60])) * NANO,
    )


def sources(stream: list[tuple[int, Key]]) -> tuple[list[int], list[Key]]:
    return [gap for gap, _ in stream], [key for _, key in stream]


@given(scenario=scenarios(ordinary=True), stream=STREAM, share=st.floats(0, 1))
@settings(deadline=None, max_examples=300)
def test_single_buffer(scenario: Scenario, stream: list[tuple[int, Key]], share: float) -> None:
    gaps, keys = sources(stream)
    warmup = int(share * len(stream))
    reference = Reference(scenario)
    reference.run(stream[:warmup])
    expected = reference.run(stream[warmup:])
    for model in (SingleBuffer, Sections):
        buffer = model(scenario, iter(gaps), iter(keys))
        buffer.run(warmup)
        assert buffer.run(len(stream)) == expected


@given(scenario=scenarios(ordinary=False), stream=STREAM, share=st.floats(0, 1))
@settings(deadline=None, max_examples=600)
def test_variations(scenario: Scenario, stream: list[tuple[int, Key]], share: float) -> None:
    gaps, keys = sources(stream)
    warmup = int(share * len(stream))
    reference = Reference(scenario)
    reference.run(stream[:warmup])
    expected = reference.run(stream[warmup:])
    buffer = Sections(scenario, iter(gaps), iter(keys))
    buffer.run(warmup)
    assert buffer.run(len(stream)) == expected
