"""Who was in which configuration, and what was sent and delivered there: the evidence for EVS.

The words are those of Amir 1995, chapter 4. A `Stay` is what one process does from one deliver_conf to
the next. `reg` of a configuration is the regular one that it is or that its row names, and com_p(c) is
all stays of p with the same `reg`. Where a message is sent, or delivered at a process, more than once, what
counts here is the first time, in a stay or in the run; integrity and 1.4 judge the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import GONE, SAFE, Kind
from semcast.specs.evidence import evidence_of
from semcast.specs.evs.parts import Parts
from semcast.specs.verdict import Findings, Verdict, unknown, untold


class Configuration(NamedTuple):
    """What a configuration is known by: two regular ones are the same if number and author are."""

    number: int
    formed_by: MemberId | None
    members: tuple[MemberId, ...] | None = None
    """Of a transitional configuration, sorted; None for a regular one."""

    @property
    def regular(self) -> bool:
        """Whether messages may be sent in it."""
        return self.members is None

    @property
    def reg(self) -> "Configuration":
        """The regular configuration that it is, or that it follows."""
        return Configuration(self.number, self.formed_by)

    def __str__(self) -> str:
        name = str(self.number) if self.formed_by is None else f"{self.number} of {self.formed_by}"
        if self.members is None:
            return f"configuration {name}"
        return f"transitional configuration {{{', '.join(map(str, self.members))}}} after {name}"


@dataclass(slots=True, eq=False)
class Stay:
    """The time that one process spends in one configuration."""

    slot: int
    process: MemberId
    event: Event
    configuration: Configuration
    members: frozenset[MemberId]
    after: "Stay | None" = None
    """The next, if it is known to follow: between two there may be some that were merged."""
    sent: list[int] = field(default_factory=list)
    """Parts in the order of sending."""

    delivered: dict[int, int] = field(default_factory=dict)
    """Parts in the order of delivery, each with its position in the life of the process, from 1."""


class Life:
    """What one process does, from its first row to its last."""

    def __init__(self, process: MemberId) -> None:
        self.process = process
        self.crashed = False
        """Or left, or cut off: it may have crashed right after its last row."""

        self.stays: list[Stay] = []
        self.com: dict[Configuration, list[Stay]] = {}
        """The stays by `reg`."""

        self.steps: list[tuple[Kind, int]] = []
        """Views (either kind, with their slot), and what is sent or delivered (parts) for the first time."""

        self.receipts: set[int] = set()
        """What was purged, however long before the application came to where it would have been."""

    def left(self, reg: Configuration) -> bool:
        """Whether it delivers nothing any more in com(reg); the numbers of configurations only grow."""
        if reg in self.com:
            return self.com[reg][-1] is not self.stays[-1]
        return bool(self.stays) and self.stays[-1].configuration.number >= reg.number


class Configurations:
    """A history by processes, configurations and parts."""

    def __init__(self, history: History) -> None:
        self.quiesced = history.info.quiesced
        self.evidence = evidence_of(history)
        self.rows = {process: history.of(process) for process in history.processes}
        self.parts = Parts(history)
        self.lives = {process: Life(process) for process in history.processes}
        self.stays: list[Stay] = []
        self.sent: dict[int, Stay | None] = {}
        """Where a part was sent first; None for outside every configuration."""

        self.safe: set[int] = set()
        self.resent: list[tuple[Event, int]] = []
        """Parts that were sent before."""

        for process in history.info.cut_off:
            self.lives[process].crashed = True
        for life in self.lives.values():
            _Reading(self, life).read(self.rows[life.process])
        self.of: dict[Configuration, list[Stay]] = {}
        for stay in self.stays:
            self.of.setdefault(stay.configuration, []).append(stay)
        self.regs = list(dict.fromkeys(stay.configuration.reg for stay in self.stays))

    def life(self, process: MemberId) -> Life:
        """The life of a process, also of one that did nothing and is only said to be a member."""
        return self.lives.get(process) or Life(process)

    def living_in(self, reg: Configuration) -> list[Life]:
        """The processes that spent any time in com(reg)."""
        return [life for life in self.lives.values() if reg in life.com]

    def owes(self, process: MemberId, reg: Configuration) -> bool:
        """Whether what `process` has not done in com(reg) by now it has failed to do.

        So it is if it moved on from there. One that crashed before it could is excused, also if its
        application had not come to that configuration yet; any other has until the end of the run.
        """
        life = self.life(process)
        return life.left(reg) or (self.quiesced and not life.crashed)

    def sent_in(self, part: int, reg: Configuration) -> bool:
        """Whether a part was sent in this regular configuration."""
        stay = self.sent.get(part)
        return stay is not None and stay.configuration == reg

    def lacking(self, stays: Sequence[Stay], owed: Iterable[int]) -> list[int]:
        """What of `owed` a process neither delivered in these stays of it nor a replacement of."""
        missing = set(owed).difference(*(stay.delivered for stay in stays))
        return sorted(part for part in missing if not self.replaced(stays, part))

    def replaced(self, stays: Sequence[Stay], part: int) -> bool:
        """Whether a replacement of a part that was not delivered in these stays was delivered there."""
        mask = self._replacements.get(part, 0)
        return any(mask >> stay.slot & 1 for stay in stays)

    def excused(self, life: Life, reg: Configuration, part: int) -> bool:
        """Whether `life` may do without a part that it did not deliver in com(reg).

        It has a replacement, or it may still come to one that was sent in the same configuration.
        """
        if self.replaced(life.com[reg], part):
            return True
        return not self.owes(life.process, reg) and reg in self._replaceable.get(part, ())

    @cached_property
    def _annotated(self) -> list[int]:
        """The parts that are the messages of the relation, each of one message, by place."""
        messages = self.evidence.relation.messages
        return [self.parts.holding(MessageId(message.process, message.seq)) for message in messages]

    @cached_property
    def _replacements(self) -> dict[int, int]:
        """For each annotated message the stays in which it or a replacement was delivered, as bits."""
        place_of = {part: place for place, part in enumerate(self._annotated)}
        masks = [0] * len(place_of)
        if place_of:
            for stay in self.stays:
                for part in stay.delivered:
                    if part in place_of:
                        masks[place_of[part]] |= 1 << stay.slot
            self.evidence.relation.cover(masks)
        return dict(zip(self._annotated, masks, strict=True))

    @cached_property
    def _replaceable(self) -> dict[int, set[Configuration]]:
        """For each annotated message the regular configurations in which a replacement was sent."""
        relation = self.evidence.relation
        found: list[set[Configuration]] = [set() for _ in self._annotated]
        for new in relation.sequence:
            stay = self.sent[self._annotated[new]]
            here = found[new] if stay is None else found[new] | {stay.configuration}
            for old in relation.replaced[new]:
                found[old] |= here
        return dict(zip(self._annotated, found, strict=True))

    def find(self, kind: Kind, process: MemberId, message: MessageId) -> list[Event]:
        """The first event of that kind about that message, narrowed to it; none or one."""
        return self.evidence.find(kind, process, message.sender, message.seq)

    def send_of(self, message: MessageId) -> list[Event]:
        """The event of sending it."""
        return self.find(Kind.MULTICAST, message.sender, message)

    def report(
        self,
        findings: Findings,
        parts: Sequence[int],
        case: Callable[[MessageId], tuple[str, Sequence[Event]]],
    ) -> None:
        """The messages of these parts break the property; `case` says for one of them why, and shows it."""
        findings.count(self.parts.weigh(parts))
        for message in self.parts.messages(parts):
            if findings.full:
                break
            reason, events = case(message)
            findings.example(reason, *events)


class _Reading:
    """The rows of one process become its life."""

    def __init__(self, whole: Configurations, life: Life) -> None:
        self._whole = whole
        self._life = life
        self._stay: Stay | None = None
        self._gap = False
        self._position = 0
        self._seen: set[int] = set()

    def read(self, events: Iterable[Event]) -> None:
        for event in events:
            match event.kind:
                case Kind.VIEW | Kind.TRANSITIONAL:
                    self._enter(event)
                case Kind.MERGED:
                    self._gap = True
                case Kind.MULTICAST:
                    for part in self._whole.parts.of(event):
                        self._send(event, part)
                case Kind.DELIVER:
                    for part in self._whole.parts.of(event):
                        self._deliver(part)
                case Kind.PURGE:
                    self._life.receipts.update(self._whole.parts.of(event))
                case kind if kind in GONE:
                    self._life.crashed = True

    def _enter(self, event: Event) -> None:
        assert event.view is not None
        assert event.members is not None
        transitional = tuple(sorted(event.members)) if event.kind is Kind.TRANSITIONAL else None
        configuration = Configuration(event.view, event.sender, transitional)
        slot = len(self._whole.stays)
        stay = Stay(slot, event.process, event, configuration, frozenset(event.members))
        if self._stay is not None and not self._gap:
            self._stay.after = stay
        self._stay, self._gap = stay, False
        self._whole.stays.append(stay)
        self._life.stays.append(stay)
        self._life.com.setdefault(configuration.reg, []).append(stay)
        self._life.steps.append((Kind.VIEW, slot))

    def _send(self, event: Event, part: int) -> None:
        if part in self._whole.sent:
            self._whole.resent.append((event, part))
            return
        self._whole.sent[part] = self._stay
        if event.level == SAFE:
            self._whole.safe.add(part)
        if self._stay is not None:
            self._stay.sent.append(part)
        self._life.steps.append((Kind.MULTICAST, part))

    def _deliver(self, part: int) -> None:
        self._position += 1
        if self._stay is not None:
            self._stay.delivered.setdefault(part, self._position)
        if part not in self._seen:
            self._seen.add(part)
            self._life.steps.append((Kind.DELIVER, part))


def positions(stays: Iterable[Stay]) -> dict[int, int]:
    """The parts that were delivered in any of these stays of one process, with their first position."""
    found: dict[int, int] = {}
    for stay in stays:
        for part, position in stay.delivered.items():
            found.setdefault(part, position)
    return found


def groups(stays: Iterable[Stay], key: Callable[[Stay], object]) -> Iterator[list[Stay]]:
    """The stays that have a key in common; None is no key."""
    found: dict[object, list[Stay]] = {}
    for stay in stays:
        name = key(stay)
        if name is not None:
            found.setdefault(name, []).append(stay)
    yield from found.values()


_kept: WeakKeyDictionary[History, Configurations] = WeakKeyDictionary()


def configurations_of(history: History) -> Configurations:
    """The evidence of a history, gathered at the first call and kept while the history lives."""
    found = _kept.get(history)
    if found is None:
        found = _kept[history] = Configurations(history)
    return found


def judge(
    name: str,
    history: History,
    find: Callable[[Configurations, Findings], None],
    *,
    semantic: bool = False,
    told: bool = False,
    at_the_end: bool = False,
) -> Verdict:
    """The verdict on a property; `find` looks for what breaks it.

    Args:
        name: of the property.
        history: to be judged.
        find: looks for what breaks the property.
        semantic: it rests on what replaces what.
        told: it rests on the sending of every message, and `find` passes over those not recorded.
        at_the_end: nothing can be said before the run is over.
    """
    if at_the_end and not history.info.quiesced:
        return unknown(name, "the run was not over")
    known = configurations_of(history)
    if not known.stays:
        return unknown(name, "no configuration was recorded")
    if semantic and known.evidence.relation.endless:
        return unknown(name, "the obsolescence relation is not an order")
    if semantic and known.evidence.untold is not None:
        return untold(name, known.evidence.untold)
    findings = Findings(name)
    find(known, findings)
    return findings.verdict(known.evidence.untold if told else None)
