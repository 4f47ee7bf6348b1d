"""How much of vector times messages carry in a domain: a count, without a protocol (Birman et al. 1991, 6.3).

Processes send one after the other, and everybody has a message before the next one is sent: so knowledge
spreads as fast as it can, and stamps are as large as they get. A message says of another group the fields
that changed, by anything but messages of its own group, since its sender last said them there. That is 6.3's
first rule with its slip mended: the text asks only for what was learned from processes outside of the group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from semcast.models.structures import Policy, distances, spoken_of


@dataclass(frozen=True, slots=True)
class FlurryTraffic:
    """What processes send: flurries in one group, by any of its members, then in another (6.3).

    With `locality` the next message is in the same group, so a flurry has 1 / (1 - locality) on average.
    """

    members: Mapping[int, tuple[int, ...]]
    messages: int = 4000
    locality: float = 0.0
    seed: int = 1
    settled: int = 0
    """So many messages of the domain later it is known that all of a group have one, and who is not in the
    group does not pass it on any more (6.4); 0 for never."""


@dataclass(slots=True)
class Stamps:
    """What messages carried."""

    messages: int = 0
    own: int = 0
    """Fields of the vector times of their groups, all together."""

    others: int = 0
    """Fields of other groups."""

    groups: int = 0
    """Other groups that they spoke of."""

    most: int = 0
    """Fields of the message that carried most."""

    bare: int = 0
    """Messages without a word of other groups."""

    changes: int = 0
    """Messages in another group than the last one of the same process: where the conservative rule waits."""

    by_distance: dict[int, int] = field(default_factory=dict)
    """How often they spoke of a group so many steps away."""

    pairs: dict[int, int] = field(default_factory=dict)
    """How many pairs of groups are so far from each other, either way round."""

    def rate(self, distance: int) -> float:
        """How often a group is spoken of in another so far away, for each message of it."""
        pairs = self.pairs.get(distance, 0)
        each = self.messages / max(self.pairs.get(0, 1), 1)
        return self.by_distance.get(distance, 0) / pairs / each if pairs else 0.0


def count_stamps(traffic: FlurryTraffic, policy: Policy) -> Stamps:
    """Stamps under a policy, behind a first fifth of the messages that is not counted."""
    return _Domain(traffic, policy).run()


class _Domain:
    def __init__(self, traffic: FlurryTraffic, policy: Policy) -> None:
        self._traffic = traffic
        self._members = traffic.members
        self._may = spoken_of(traffic.members, policy)
        self._rng = Random(traffic.seed)
        self._own: dict[int, list[int]] = {}
        for group, some in traffic.members.items():
            for process in some:
                self._own.setdefault(process, []).append(group)
        self._sent: dict[tuple[int, int], int] = {}
        self._known: dict[int, dict[tuple[int, int], int]] = {process: {} for process in self._own}
        # By process and group: the fields (group, sender) that are owed there.
        self._owed: dict[tuple[int, int], set[tuple[int, int]]] = {
            (process, group): set() for process, groups in self._own.items() for group in groups
        }
        self._last: dict[int, int] = {}
        self._now = self._clock = 0
        self._sent_at: dict[tuple[int, int, int], int] = {}
        self._away = {group: distances(traffic.members, group) for group in traffic.members}

    def run(self) -> Stamps:
        counted, groups = Stamps(), sorted(self._members)
        warm = self._traffic.messages // 5
        for number in range(self._traffic.messages + warm):
            if self._rng.random() >= self._traffic.locality:
                self._now = self._rng.choice(groups)
            process = self._rng.choice(self._members[self._now])
            self._send(process, self._now, counted if number >= warm else Stamps())
        for away in self._away.values():
            for distance in away.values():
                counted.pairs[distance] = counted.pairs.get(distance, 0) + 1
        return counted

    def _send(self, process: int, group: int, counted: Stamps) -> None:
        self._clock += 1
        said = {each for each in self._owed[process, group] if not self._is_settled(process, each)}
        fields = {each: self._known[process][each] for each in said}
        own = sum(of == group for of, _ in said)
        others = {of for of, _ in said if of != group}
        self._owed[process, group] = set()
        self._count(counted, process, group, own, len(said) - own, others)
        self._last[process] = group
        number = self._sent[group, process] = self._sent.get((group, process), 0) + 1
        self._sent_at[group, process, number] = self._clock
        fields[group, process] = number
        for member in self._members[group]:
            self._hear(member, group, fields, new=(group, process))

    def _is_settled(self, process: int, each: tuple[int, int]) -> bool:
        """Whether it need not be passed on; what a process says of its own groups it says at once."""
        after, number = self._traffic.settled, self._known[process][each]
        if not after or each[0] in self._own[process]:
            return False
        return self._clock - self._sent_at[*each, number] > after

    def _count(
        self, counted: Stamps, process: int, group: int, own: int, fields: int, others: set[int]
    ) -> None:
        counted.messages += 1
        counted.own += own
        counted.others += fields
        counted.groups += len(others)
        counted.most = max(counted.most, own + fields)
        counted.bare += not others
        counted.changes += self._last.get(process, group) != group
        for other in others:
            away = self._away[group][other]
            counted.by_distance[away] = counted.by_distance.get(away, 0) + 1

    def _hear(
        self, member: int, group: int, fields: Mapping[tuple[int, int], int], new: tuple[int, int]
    ) -> None:
        known, may = self._known[member], self._may[member]
        for each, count in fields.items():
            of, sender = each
            if count <= known.get(each, 0) or (of not in may and of not in self._own[member]):
                continue
            known[each] = count
            for mine in self._own[member]:
                # In its own group a message changes the vector time, unless it is one's own.
                owed = of in may if mine != of else sender != member
                if owed and (mine != group or each == new):
                    self._owed[member, mine].add(each)
