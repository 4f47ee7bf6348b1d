"""The sentences about causal domains read literally over small histories.

Every event is one event of one message, precedence is the closure of a graph, and each property is its
sentence with all quantifiers spelled out. How often it is broken is counted as the checkers say.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import pairwise, product
from typing import NamedTuple, TypeVar

from semcast.core import MemberId
from semcast.history import Event, History
from semcast.specs import Status
from semcast.specs.domains.kinds import ASKED, BEGAN, FLUSH, GIVEN, LEFT, RETURNED, SENT, VIEW, Text, text_of


class Name(NamedTuple):
    group: str
    sender: MemberId
    seq: int
    direct: bool


class Stay(NamedTuple):
    process: MemberId
    group: str
    number: int
    nth: int
    members: tuple[MemberId, ...]


class Did(NamedTuple):
    process: MemberId
    sends: bool
    name: Name
    stay: Stay | None
    event: Event


Node = tuple[MemberId, int]
T = TypeVar("T", bound=Hashable)


class Literal:
    """A domain as the paper sees it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.quiesced = history.info.quiesced
        self.gone = {*history.gone, *history.info.cut_off}
        self.stays: list[Stay] = []
        self.follows: set[Stay] = set()
        self.there: dict[tuple[MemberId, str], Stay] = {}
        self.did: dict[MemberId, list[Did]] = {}
        self.sent: dict[Name, tuple[Did, Text]] = {}
        for process in history.processes:
            self._read(process)
        for process, deeds in self.did.items():
            self.did[process] = self._first_times(deeds)
        nodes = [(process, place) for process, deeds in self.did.items() for place in range(len(deeds))]
        self.reached = self._closure(nodes)
        circles = {node for node in nodes if node in self.reached[node]}
        self.stuck = {node for node in nodes if any(node in self.reached[each] for each in circles)}
        self.node_of = {self.at(node).name: node for node in nodes if self.at(node).sends}

    def at(self, node: Node) -> Did:
        return self.did[node[0]][node[1]]

    def _read(self, process: MemberId) -> None:
        here: dict[str, Stay] = {}
        deeds = self.did.setdefault(process, [])
        for event in self.history.of(process):
            text = text_of(event) if event.annotation is not None else Text()
            if event.kind is VIEW:
                if text.group in here:
                    self.follows.add(here[text.group])
                assert event.view is not None
                stay = Stay(process, text.group, event.view, len(self.stays), event.members or ())
                self.stays.append(stay)
                here[text.group] = stay
            elif event.kind is LEFT:
                here.pop(text.group, None)
            elif event.kind in (SENT, GIVEN):
                for seq in range(event.seq, event.last + 1):
                    assert event.sender is not None
                    name = Name(text.group, event.sender, seq, text.direct)
                    did = Did(process, event.kind is SENT, name, here.get(text.group), event)
                    deeds.append(did)
                    if did.sends:
                        self.sent.setdefault(name, (did, text))
        if process not in self.gone:
            self.there.update(((process, group), stay) for group, stay in here.items())

    def _first_times(self, deeds: list[Did]) -> list[Did]:
        """Of what is sent or given again, and what was never sent, nothing counts."""
        seen: set[tuple[bool, Name]] = set()
        found = []
        for did in deeds:
            if did.name in self.sent and (did.sends, did.name) not in seen:
                seen.add((did.sends, did.name))
                found.append(did)
        return found

    def _closure(self, nodes: list[Node]) -> dict[Node, set[Node]]:
        sends = {self.at(node).name: node for node in nodes if self.at(node).sends}
        after: dict[Node, set[Node]] = {node: set() for node in nodes}
        for process, place in nodes:
            if place + 1 < len(self.did[process]):
                after[process, place].add((process, place + 1))
            did = self.at((process, place))
            if not did.sends:
                after[sends[did.name]].add((process, place))
        return {node: _reach(node, after) for node in nodes}

    def precedes(self, old: Name, new: Name) -> bool:
        return self.node_of[new] in self.reached[self.node_of[old]]

    def view(self, name: Name) -> tuple[str, int]:
        did, _ = self.sent[name]
        assert did.event.view is not None
        return name.group, did.event.view

    def closed(self, stay: Stay) -> bool:
        if stay in self.follows:
            return True
        latest = max(each.number for each in self.stays if each.group == stay.group)
        first = next(each for each in self.stays if each.group == stay.group and each.number == latest)
        settled = all(
            (there := self.there.get((member, stay.group))) is not None and there.number == latest
            for member in first.members
        )
        return self.quiesced and stay.number == latest and settled and stay in self.there.values()

    def given(self, process: MemberId) -> list[tuple[int, Did]]:
        return [(place, did) for place, did in enumerate(self.did[process]) if not did.sends]

    def had(self, stay: Stay) -> dict[Name, int]:
        """What was given in a stay, and when."""
        return {did.name: did.event.at for _, did in self.given(stay.process) if did.stay == stay}

    def has(self, stay: Stay, name: Name, deadline: int | None = None) -> bool:
        """Whether it was given in a stay, or what replaces it, by a certain time."""
        return any(
            (deadline is None or at <= deadline) and (each == name or self.replaces(each, name))
            for each, at in self.had(stay).items()
        )

    def replaces(self, new: Name, old: Name) -> bool:
        names = [each for each in self.sent if not each.direct and self.view(each) == self.view(old)]
        if new not in names or old not in names:
            return False
        reach, todo = set[Name](), [new]
        while todo:
            one = todo.pop()
            for each in names:
                if each not in reach and self._direct(one, each):
                    reach.add(each)
                    todo.append(each)
        return old in reach

    def _direct(self, new: Name, old: Name) -> bool:
        (_, said), (_, other) = self.sent[new], self.sent[old]
        if said.item is not None:
            return old.sender == new.sender and other.item == said.item and old.seq < new.seq
        noted = other.item is not None or bool(other.replaces)
        return noted and old != new and (old.sender.name, old.sender.incarnation, old.seq) in said.replaces

    # The properties

    def domain_causal_delivery(self) -> int:
        count = len([node for node in self.stuck if not self.at(node).sends])
        for process in self.did:
            good = [(place, did) for place, did in self.given(process) if (process, place) not in self.stuck]
            count += sum(
                any(early < late and self.precedes(did.name, other.name) for early, other in good)
                for late, did in good
            )
        return count

    def domain_causal_completeness(self) -> int:
        return self._lacking(lambda stay: [did.name for _, did in self.given(stay.process)])

    def no_causal_gap(self) -> int:
        effects = [name for stay in self.stays if self.closed(stay) for name in self.had(stay)]
        return self._lacking(lambda _: effects)

    def _lacking(self, effects: Callable[[Stay], list[Name]]) -> int:
        count = 0
        for stay in filter(self.closed, self.stays):
            for name in self.sent:
                if not name.direct and self.view(name) == (stay.group, stay.number):
                    owed = any(self.precedes(name, effect) for effect in effects(stay))
                    count += owed and not self.has(stay, name)
        for name in self.sent:
            to = self._addressee(name)
            if to is not None and all(did.name != name for _, did in self.given(to.process)):
                count += any(self.precedes(name, effect) for effect in effects(to))
        return count

    def _addressee(self, name: Name) -> Stay | None:
        did, _ = self.sent[name]
        if not name.direct or not self.quiesced:
            return None
        sender = [
            s for s in self.stays if s.process == did.process and (s.group, s.number) == self.view(name)
        ]
        if not sender or not self.closed(sender[-1]):
            return None
        [to] = did.event.members or ()
        return self.there.get((to, name.group))

    def domain_total_order(self) -> int:
        after: dict[Name, set[Name]] = {}
        for process in self.did:
            names = [
                did.name
                for _, did in self.given(process)
                if did.event.level == "total" and did.stay is not None and self.closed(did.stay)
            ]
            for name in names:
                after.setdefault(name, set())
            for one, other in pairwise(names):
                after[one].add(other)
        reached = {name: _reach(name, after) for name in after}
        circles = {name for name in after if name in reached[name]}
        return sum(any(name in reached[each] for each in circles) for name in after)

    def domain_flush(self) -> int:
        broken = set()
        for process in self.history.processes:
            rows = self.history.of(process)
            flushes = [row for row in rows if row.kind is FLUSH]
            for asked, returned in product(flushes, flushes):
                if (asked.level, returned.level) == (ASKED, RETURNED) and asked.seq == returned.seq:
                    broken |= set(self._late(process, asked, returned))
        return len(broken)

    def _late(self, process: MemberId, asked: Event, returned: Event) -> Iterator[tuple[Stay, Name]]:
        before = {did.name for did in self.did[process] if did.event.index < asked.index}
        for stay, name in product(filter(self.closed, self.stays), before):
            here = not name.direct and self.view(name) == (stay.group, stay.number)
            if here and not self.has(stay, name, returned.at):
                yield stay, name
        for name in before:
            to = self._addressee(name)
            if to is not None:
                given = [did.event.at for _, did in self.given(to.process) if did.name == name]
                if not given or given[0] > returned.at:
                    yield to, name

    def _beyond(self) -> bool:
        survived = [text_of(event).resilience for event in self.history.events if event.kind is BEGAN]
        return any(number is not None and len(self.gone) > number for number in survived)

    def judge(self, name: str) -> tuple[Status, int]:
        if not self.stays:
            return Status.UNKNOWN, 0
        if name == "no_causal_gap" and self._beyond():
            return Status.HOLDS, 0
        if self.stuck and name in ("domain_causal_completeness", "no_causal_gap"):
            return Status.UNKNOWN, 0
        count: int = getattr(self, name)()
        return (Status.VIOLATED if count else Status.HOLDS), count


def _reach(node: T, after: Mapping[T, set[T]]) -> set[T]:
    found, todo = set[T](), [node]
    while todo:
        for each in after[todo.pop()]:
            if each not in found:
                found.add(each)
                todo.append(each)
    return found


JUDGED = (
    "domain_causal_delivery",
    "domain_causal_completeness",
    "no_causal_gap",
    "domain_total_order",
    "domain_flush",
)
