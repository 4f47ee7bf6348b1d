"""The EVS checkers against the sentences of Amir 1995, 4.1, read literally over small histories.

Every event is one event of one message, "precedes" is Warshall's closure, and each property is its
sentence with all quantifiers spelled out. Histories are those of a small ring that partitions and merges,
with a few rows lost, doubled, exchanged or changed.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import combinations, pairwise, product
from random import Random
from typing import NamedTuple, TypeVar

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import Annotation, Enumeration, Item, MemberId, Message, MessageId
from semcast.history import Event, History, Kind, RunInfo
from semcast.obsolescence import obsoletes
from semcast.specs import EVS, Status, Verdict, check

MEMBERS = (MemberId("a"), MemberId("b"), MemberId("c", 1), MemberId("d"))


# --- histories ------------------------------------------------------------------------------------


class Sending(NamedTuple):
    message: MessageId
    safe: bool
    annotation: Annotation | None


class Group:
    """A ring that works, more or less: some faults of its own make the rest worth checking."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.rows: dict[MemberId, list[Event]] = {member: [] for member in MEMBERS}
        self.now: dict[MemberId, tuple[int, MemberId]] = {}
        self.sent = dict.fromkeys(MEMBERS, 0)
        self.number = 0
        self.rest: dict[MemberId, list[Sending]] = {}

    def run(self) -> list[Event]:
        for _ in range(self.random.randint(1, 3)):
            sides = self.random.choice([1, 1, 2, 3])
            where = {member: self.random.randrange(sides) for member in MEMBERS}
            for side in range(sides):
                self.install(tuple(m for m in MEMBERS if where[m] == side))
        if self.random.random() < 0.7:
            for member in MEMBERS:
                self.finish(member, (member,))
        for member in MEMBERS:
            if self.random.random() < 0.15:
                rows = self.rows[member]
                del rows[self.random.randint(1, len(rows)) :]
                self.add(member, Kind.CRASH)
        return [event for member in MEMBERS for event in self.rows[member]]

    def add(self, member: MemberId, kind: Kind, **fields: object) -> None:
        rows = self.rows[member]
        event = Event(member, len(rows), 0, kind, "g")
        rows.append(msgspec.structs.replace(event, **fields))

    def install(self, members: tuple[MemberId, ...]) -> None:
        if not members:
            return
        self.number += self.random.random() < 0.9
        together: dict[object, list[MemberId]] = {}
        for member in members:
            together.setdefault(self.now.get(member), []).append(member)
        cuts = {old: self.random.random() for old in together}
        for old, leaving in together.items():
            for member in leaving:
                if old is not None and self.random.random() < 0.95:
                    self.leave(member, tuple(leaving), cuts[old])
                self.add(member, Kind.VIEW, sender=members[0], view=self.number, members=members)
                self.now[member] = self.number, members[0]
        self.talk(members)

    def leave(self, member: MemberId, leaving: tuple[MemberId, ...], cut: float) -> None:
        rest = self.rest.pop(member, [])
        split = int(cut * (len(rest) + 1))
        self.deliver(member, rest[:split])
        number, formed_by = self.now[member]
        self.add(member, Kind.TRANSITIONAL, sender=formed_by, view=number, members=leaving)
        hole = int(cut * 7)
        self.deliver(
            member, [s for i, s in enumerate(rest[split:]) if i < hole or s.message.sender in leaving]
        )

    def finish(self, member: MemberId, leaving: tuple[MemberId, ...]) -> None:
        self.deliver(member, self.rest.pop(member, []))

    def talk(self, members: tuple[MemberId, ...]) -> None:
        order: list[Sending] = []
        delivered = dict.fromkeys(members, 0)
        for _ in range(self.random.randint(0, 5)):
            sender = self.random.choice(members)
            upto = self.random.randint(delivered[sender], len(order))
            if self.random.random() < 0.5:
                self.deliver(sender, order[delivered[sender] : upto])
                delivered[sender] = upto
            self.sent[sender] += 1
            sending = Sending(
                MessageId(sender, self.sent[sender]), self.random.random() < 0.5, self.annotation(order)
            )
            order.append(sending)
            self.add(
                sender,
                Kind.MULTICAST,
                sender=sender,
                seq=sending.message.seq,
                count=1,
                view=self.number,
                level="safe" if sending.safe else None,
                annotation=sending.annotation,
            )
        for member in members:
            self.rest[member] = order[delivered[member] :]

    def annotation(self, order: list[Sending]) -> Annotation | None:
        match self.random.randrange(6):
            case 0 | 1 | 2:
                return Item(self.random.choice("xy"))
            case 3 if order:
                return Enumeration((self.random.choice(order).message,))
            case 4:
                return Enumeration((MessageId(self.random.choice(MEMBERS), self.random.randint(1, 3)),))
        return None

    def deliver(self, member: MemberId, order: Sequence[Sending]) -> None:
        for place, sending in enumerate(order):
            later = [new for new in order[place + 1 :] if _replaces(new, sending)]
            if later and self.random.random() < 0.6:
                by = None if self.random.random() < 0.05 else later[0].message
                self.about(member, Kind.PURGE, sending.message, by=by)
            else:
                self.about(member, Kind.DELIVER, sending.message)

    def about(self, member: MemberId, kind: Kind, message: MessageId, by: MessageId | None = None) -> None:
        self.add(member, kind, sender=message.sender, seq=message.seq, count=1, by=by)


def _replaces(new: Sending, old: Sending) -> bool:
    return obsoletes(Message(new.message, b"", new.annotation), Message(old.message, b"", old.annotation))


def damaged(events: list[Event], random: Random) -> list[Event]:
    """One thing is wrong that was right, or the other way round."""
    rows = list(events)
    at = random.randrange(len(rows))
    event = rows[at]
    match random.randrange(7):
        case 0:
            del rows[at]
        case 1:
            rows.insert(at, event)
        case 2 if at + 1 < len(rows) and rows[at + 1].process == event.process:
            rows[at : at + 2] = rows[at + 1], event
        case 3 if event.members is not None:
            members = tuple(m for m in event.members if random.random() < 0.7) or (random.choice(MEMBERS),)
            rows[at] = msgspec.structs.replace(event, members=members)
        case 4 if event.view is not None:
            rows[at] = msgspec.structs.replace(event, view=random.randint(1, 3))
        case 5 if event.kind is Kind.DELIVER:
            rows[at] = msgspec.structs.replace(event, seq=random.randint(1, 4), sender=random.choice(MEMBERS))
        case 6:
            local = [place for place, other in enumerate(rows) if other.process == event.process]
            rows.insert(random.choice(local), rows.pop(at))
    return rows


def numbered(events: Sequence[Event]) -> list[Event]:
    found: dict[MemberId, list[Event]] = {}
    for event in events:
        rows = found.setdefault(event.process, [])
        rows.append(msgspec.structs.replace(event, index=len(rows)))
    return [event for rows in found.values() for event in rows]


def history(seed: int) -> History:
    random = Random(seed)
    events = Group(random).run()
    for _ in range(random.choice([0, 0, 1, 1, 2, 3, 5])):
        if events:
            events = damaged(events, random)
    info = RunInfo.one("run", "g", "ring", seed, MEMBERS, None, uniform=False, quiesced=random.random() < 0.6)
    return History(info, numbered(events))


# --- the sentences --------------------------------------------------------------------------------

Conf = tuple[int | None, MemberId | None, tuple[MemberId, ...] | None]


class Did(NamedTuple):
    """One event; `stay` is which of the configurations of its process it is in, -1 for none."""

    process: MemberId
    place: int
    kind: Kind
    message: MessageId | None
    stay: int


class Was(NamedTuple):
    """A configuration at a process."""

    conf: Conf
    members: tuple[MemberId, ...]


class Literal:
    """A history as the paper sees it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.quiesced = history.info.quiesced
        self.was: dict[MemberId, list[Was]] = {p: [] for p in MEMBERS}
        self.did: list[Did] = []
        self.row: dict[Did, Event] = {}
        self.messages: dict[MessageId, Message] = {}
        self.safe: set[MessageId] = set()
        for event in history.events:
            self._read(event)
        self.sends = self._first(Kind.MULTICAST)
        self.send = {d.message: d for d in self.sends if d.message is not None}
        self.replaced_by = self._replaced_by()

    def _read(self, event: Event) -> None:
        was = self.was[event.process]
        if event.members is not None:
            last = tuple(sorted(event.members)) if event.kind is Kind.TRANSITIONAL else None
            was.append(Was((event.view, event.sender, last), event.members))
        for seq in range(event.seq, event.seq + max(1, event.count)):
            message = MessageId(event.sender, seq) if event.count and event.sender else None
            did = Did(event.process, len(self.did), event.kind, message, len(was) - 1)
            self.did.append(did)
            self.row[did] = event
            if event.kind is Kind.MULTICAST and message is not None and message not in self.messages:
                self.messages[message] = Message(message, b"", event.annotation)
                if event.level == "safe":
                    self.safe.add(message)

    def _first(self, kind: Kind) -> list[Did]:
        """The first events of a kind, by process and message."""
        found: dict[tuple[MemberId, MessageId | None], Did] = {}
        for did in self.did:
            if did.kind is kind:
                found.setdefault((did.process, did.message), did)
        return list(found.values())

    def _replaced_by(self) -> set[tuple[MessageId, MessageId]]:
        all_of_them = self.messages.values()
        pairs = {(old.id, new.id) for old, new in product(all_of_them, all_of_them) if obsoletes(new, old)}
        return closure(pairs)

    # words

    def conf(self, did: Did) -> Conf | None:
        return self.was[did.process][did.stay].conf if did.stay >= 0 else None

    def stays(self) -> Iterator[tuple[MemberId, int, Was]]:
        for process in MEMBERS:
            for number, was in enumerate(self.was[process]):
                yield process, number, was

    def com(self, process: MemberId, reg: Conf) -> set[int]:
        return {n for n, was in enumerate(self.was[process]) if regular(was.conf) == reg}

    def delivered(self, process: MemberId, stays: set[int]) -> dict[MessageId, int]:
        found: dict[MessageId, int] = {}
        for did in self.did:
            if did.kind is Kind.DELIVER and did.process == process and did.stay in stays and did.message:
                found.setdefault(did.message, did.place)
        return found

    def has(self, process: MemberId, stays: set[int], message: MessageId) -> bool:
        return any(
            new == message or (message, new) in self.replaced_by for new in self.delivered(process, stays)
        )

    def crashed(self, process: MemberId) -> bool:
        return any(did.kind is Kind.CRASH and did.process == process for did in self.did)

    def owes(self, process: MemberId, reg: Conf) -> bool:
        was, com = self.was[process], self.com(process, reg)
        if com and any(n > max(com) for n in range(len(was))):
            return True
        if not com and was and (was[-1].conf[0] or 0) >= (reg[0] or 0):
            return True
        return self.quiesced and not self.crashed(process)

    def regs(self) -> set[Conf]:
        return {regular(was.conf) for _, _, was in self.stays()}

    def sent_in(self, message: MessageId, reg: Conf) -> bool:
        return message in self.send and self.conf(self.send[message]) == reg

    def excused(self, process: MemberId, reg: Conf, message: MessageId) -> bool:
        if self.has(process, self.com(process, reg), message):
            return True
        coming = any((message, new) in self.replaced_by and self.sent_in(new, reg) for new in self.messages)
        return coming and not self.owes(process, reg)

    # 1.1, 2.3, 2.4, 6.1, 6.2

    def precedes(self, name: Callable[[Did], Hashable], kinds: set[Kind]) -> set[tuple[Hashable, Hashable]]:
        """The closure of local order and sending before delivery, where equal names are one event."""
        firsts = {d for kind in (Kind.MULTICAST, Kind.DELIVER) for d in self._first(kind)}
        firsts |= {d for d in self.did if d.kind in (Kind.VIEW, Kind.TRANSITIONAL)}
        events = sorted((d for d in firsts if d.kind in kinds), key=lambda d: d.place)
        pairs = {
            (name(d), name(e))
            for d, e in product(events, events)
            if d.process == e.process and d.place < e.place
        }
        for did in events:
            if did.kind is Kind.DELIVER and did.message in self.send and Kind.MULTICAST in kinds:
                pairs.add((name(self.send[did.message]), name(did)))
        return closure(pairs)

    def stuck(self, name: Callable[[Did], Hashable], kinds: set[Kind]) -> set[Hashable]:
        order = self.precedes(name, kinds)
        circular = {x for x, y in order if x == y}
        return circular | {y for x, y in order if x in circular}

    def moment(self, did: Did) -> Hashable:
        if did.kind is Kind.DELIVER:
            return did.message
        return self.conf(did) if did.kind in CHANGES else did

    def cut(self, did: Did) -> Hashable:
        return self.conf(did) if did.kind in CHANGES else did

    def evs_1_1_precedence(self) -> int:
        stuck = self.stuck(lambda did: did, EVENTS)
        return sum(isinstance(did, Did) and did.kind is Kind.DELIVER for did in stuck)

    def evs_1_2_local_order(self) -> int:
        return 0

    def evs_2_3_cut_after(self) -> int:
        order = self.precedes(lambda did: did, EVENTS)
        confs = [did for did in self.did if did.kind in CHANGES]
        return len(
            {
                late
                for early, late in product(confs, confs)
                if early.process != late.process and self.conf(early) == self.conf(late)
                for between in self.did
                if (early, between) in order and (between, late) in order
            }
        )

    def evs_2_4_cut_before(self) -> int:
        return sum(not isinstance(x, Did) for x in self.stuck(self.cut, EVENTS))

    def evs_6_1_order_respects_precedence(self) -> int:
        return sum(not isinstance(x, Did) for x in self.stuck(self.moment, EVENTS))

    def evs_6_2_same_moment(self) -> int:
        return len(self.stuck(self.moment, EVENTS - {Kind.MULTICAST}))

    # 1.3 to 2.2

    def evs_1_3_sent_before_in_same_configuration(self) -> int:
        wrong = set()
        for process, number, was in self.stays():
            own = [w for w in self.was[process] if w.conf == regular(was.conf)] or [was]
            for message in self.delivered(process, {number}):
                right = self.sent_in(message, regular(was.conf)) and message.sender in own[0].members
                wrong |= set() if right else {(process, number, message)}
        return len(wrong)

    def evs_1_4_once(self) -> int:
        sends = [did for did in self.did if did.kind is Kind.MULTICAST]
        transitional = [d for d in self.sends if d.stay >= 0 and self.conf(d) != regular(self.conf(d))]
        twice = {
            (did.process, did.message, self.conf(did))
            for did in self.did
            if did.kind is Kind.DELIVER and did.stay >= 0
        }
        once = {(process, message) for process, message, _ in twice}
        return len(sends) - len(self.sends) + len(transitional) + len(twice) - len(once)

    def evs_2_1_installed_by_all(self) -> int:
        def ends_in(process: MemberId, conf: Conf) -> bool:
            was = self.was.get(process)
            return bool(was) and not self.crashed(process) and was[-1].conf == conf  # type: ignore[index]

        return sum(
            not ends_in(q, self.was[p][-1].conf)
            for p in MEMBERS
            if self.was[p] and not self.crashed(p)
            for q in set(self.was[p][-1].members)
        )

    def evs_2_2_inside_configuration(self) -> int:
        return sum(not self.inside(did) for did in self.did if did.kind in EVENTS | {Kind.CRASH})

    def inside(self, did: Did) -> bool:
        row, was = self.row[did], self.was[did.process]
        earlier = [d for d in self.did if d.process == did.process and d.place < did.place]
        if any(d.kind is Kind.CRASH for d in earlier):
            return False
        if did.kind is Kind.CRASH:
            return did.stay >= 0 or not any(d.kind in EVENTS for d in earlier)
        if did.kind is Kind.DELIVER:
            return did.stay >= 0
        if did.kind is Kind.MULTICAST:
            return did.stay >= 0 and was[did.stay].conf[0] == row.view
        if did.process not in was[did.stay].members:
            return False
        if did.kind is Kind.VIEW:
            return True
        return (
            did.stay > 0
            and was[did.stay - 1].conf == regular(was[did.stay].conf)
            and set(was[did.stay].members) <= set(was[did.stay - 1].members)
        )

    # 3 and 4

    def evs_3_self_delivery(self) -> int:
        return sum(
            not self.has(did.process, self.com(did.process, reg), did.message)
            for did in self.sends
            if did.stay >= 0 and did.message is not None
            for reg in [regular(self.conf(did))]
            if self.owes(did.process, reg)
        )

    def after(self, process: MemberId, number: int) -> Conf | None:
        was = self.was[process]
        return was[number + 1].conf if number + 1 < len(was) else None

    def differing(self, wanted: Callable[[Conf, Conf], bool]) -> set[tuple[MemberId, int, MessageId]]:
        """What q lacks of what p delivered in the same configuration, before the same next one."""
        wrong = set()
        for (p, n, here), (q, k, there) in product(self.stays(), self.stays()):
            after = self.after(p, n)
            if here.conf != there.conf or after is None or after != self.after(q, k):
                continue
            if wanted(here.conf, after):
                wrong |= {(q, k, m) for m in self.delivered(p, {n}) if not self.has(q, {k}, m)}
        return wrong

    def evs_4_failure_atomicity(self) -> int:
        return len(self.differing(lambda here, after: True))

    # 5 and 6.3

    def fails(self, r: MemberId, reg: Conf, old: MessageId, when: int) -> bool:
        """Not: r delivers `old` in com(reg) before place `when`, or has it without having delivered it."""
        first = self.delivered(r, self.com(r, reg)).get(old)
        return not self.excused(r, reg, old) if first is None else first > when

    def evs_5_causal(self) -> int:
        order = self.precedes(lambda did: did, EVENTS)
        wrong = set()
        for r, reg in product(MEMBERS, self.regs()):
            for new, when in self.delivered(r, self.com(r, reg)).items():
                if not self.sent_in(new, reg):
                    continue
                before = {old for old in self.messages if (self.send[old], self.send[new]) in order}
                wrong |= {
                    (r, old) for old in before if self.sent_in(old, reg) and self.fails(r, reg, old, when)
                }
        return len(wrong)

    def evs_6_3_agreed(self) -> int:
        wrong = set()
        for p, q, reg in product(MEMBERS, MEMBERS, self.regs()):
            order = self.delivered(p, self.com(p, reg))
            for number in self.com(q, reg):
                there = self.delivered(q, {number})
                members = self.was[q][number].members
                wrong |= {
                    (q, reg, old)
                    for old, new in product(order, there)
                    if new in order and order[old] < order[new]
                    if self.sent_in(old, reg) and old.sender in members
                    if self.fails(q, reg, old, there[new])
                }
        return len(wrong)

    # 7

    def promised(self, number_of: Callable[[Was], bool]) -> set[tuple[MemberId, Conf, MessageId]]:
        return {
            (q, regular(was.conf), message)
            for p, number, was in self.stays()
            if number_of(was)
            for message in self.delivered(p, {number})
            if message in self.safe
            for q in was.members
        }

    def evs_7_1_safe(self) -> int:
        return sum(
            self.owes(q, reg) and not self.has(q, self.com(q, reg), message)
            for q, reg, message in self.promised(lambda was: True)
        )

    def evs_7_2_safe_configuration_installed(self) -> int:
        return sum(
            self.owes(q, reg) and not any(was.conf == reg for was in self.was[q])
            for q, reg, _ in self.promised(lambda was: was.conf == regular(was.conf))
        )

    # pairs and receipts

    def pair_same_members(self) -> int:
        first: dict[Conf, tuple[MemberId, ...]] = {}
        return sum(
            first.setdefault(was.conf, was.members) != was.members
            for _, _, was in self.stays()
            if was.conf == regular(was.conf)
        )

    def onward(self, process: MemberId, number: int) -> tuple[Conf | None, Conf | None]:
        """After a regular configuration: the transitional one and the next regular one, if there are."""
        after = self.after(process, number)
        if after is None:
            return None, None
        if regular(after) == after:
            return None, after
        if regular(after) != self.was[process][number].conf:
            return None, None
        then = self.after(process, number + 1)
        return after, then if then is not None and regular(then) == then else None

    def shared(self) -> Iterator[tuple[MemberId, int, MemberId, int]]:
        """Every two stays in one regular configuration."""
        for (p, n, here), (q, k, there) in combinations(self.stays(), 2):
            if here.conf == there.conf == regular(here.conf):
                yield p, n, q, k

    def pair_transitional(self) -> int:
        lacking = self.differing(lambda here, after: here == regular(here) == regular(after) != after)
        torn = 0
        for p, n, q, k in self.shared():
            (one, _), (other, _) = self.onward(p, n), self.onward(q, k)
            if one is not None and other is not None and one != other:
                torn += q in (one[2] or ()) and p in (other[2] or ())
        return len(lacking) + torn

    def pair_transitional_then_regular(self) -> int:
        lacking = self.differing(lambda here, after: here != regular(here) and after == regular(after))
        smaller = apart = 0
        for process in MEMBERS:
            for was, now in pairwise(self.was[process]):
                if was.conf != regular(was.conf) and now.conf == regular(now.conf):
                    smaller += not set(was.members) <= set(now.members)
        for p, n, q, k in self.shared():
            (one, then), (other, there) = self.onward(p, n), self.onward(q, k)
            apart += then is not None and then == there and one != other
        return len(lacking) + smaller + apart

    def evs_purge_within_configuration(self) -> int:
        return sum(not self.founded(did) for did in self.did if did.kind is Kind.PURGE)

    def founded(self, did: Did) -> bool:
        by = self.row[did].by
        if by is None or did.message not in self.send or by not in self.send:
            return False
        reg = self.conf(self.send[did.message])
        if reg is None or reg != regular(reg) or self.conf(self.send[by]) != reg:
            return False
        got = any(
            d.kind in (Kind.DELIVER, Kind.PURGE) and d.process == did.process and d.message == by
            for d in self.did
        )
        return got or not self.owes(did.process, reg)

    def tells_nothing(self, name: str) -> bool:
        if not any(self.was.values()):
            return True
        if name == "evs_2_1_installed_by_all" and not self.quiesced:
            return True
        if name in SEMANTIC and any((m, m) in self.replaced_by for m in self.messages):
            return True
        return name in NEEDS_ORDER and self.evs_1_1_precedence() > 0

    def expected(self, name: str) -> tuple[Status, int]:
        if self.tells_nothing(name):
            return Status.UNKNOWN, 0
        count = getattr(self, name)()
        return (Status.VIOLATED if count else Status.HOLDS), count


CHANGES = {Kind.VIEW, Kind.TRANSITIONAL}
EVENTS = CHANGES | {Kind.MULTICAST, Kind.DELIVER}
NEEDS_ORDER = {"evs_2_3_cut_after", "evs_2_4_cut_before", "evs_5_causal"}
SEMANTIC = {
    "evs_3_self_delivery",
    "evs_4_failure_atomicity",
    "evs_5_causal",
    "evs_6_3_agreed",
    "evs_7_1_safe",
    "pair_transitional",
    "pair_transitional_then_regular",
}


def regular(conf: Conf | None) -> Conf:
    assert conf is not None
    return conf[0], conf[1], None


T = TypeVar("T", bound=Hashable)


def closure(pairs: set[tuple[T, T]]) -> set[tuple[T, T]]:
    after: dict[T, set[T]] = {}
    for x, y in pairs:
        after.setdefault(x, set()).add(y)
    for middle in list(after):
        for reached in after.values():
            if middle in reached:
                reached.update(after[middle])
    return {(x, y) for x, reached in after.items() for y in reached}


# --- the comparison -------------------------------------------------------------------------------

seeds = st.integers(0, 2**32)


@settings(deadline=None, max_examples=150)
@given(seeds)
def test_the_checkers_say_what_the_sentences_say(seed: int) -> None:
    found = history(seed)
    literal = Literal(found)
    for name, verdict in zip(EVS, check(found, EVS), strict=True):
        assert (name, verdict.status, verdict.count) == (name, *literal.expected(name))
        assert bool(verdict.offending) == (verdict.status is Status.VIOLATED)


def test_the_histories_are_worth_comparing() -> None:
    """Each verdict comes up for each property, and often enough nothing is wrong at all."""
    seen: set[tuple[str, Status]] = set()
    sound = 0
    for seed in range(250):
        verdicts = check(history(seed), EVS)
        seen |= {(verdict.property, verdict.status) for verdict in verdicts}
        sound += not any(verdict.status is Status.VIOLATED for verdict in verdicts)
    wanted = set(product(EVS, (Status.HOLDS, Status.VIOLATED)))
    assert wanted - seen == {("evs_1_2_local_order", Status.VIOLATED)}
    assert sound >= 25


def recut(history: History, random: Random) -> History:
    """The same history with its runs joined at random."""
    joined: list[Event] = []
    for event in history.events:
        before = joined[-1] if joined else None
        if before is not None and _joins(before, event) and random.random() < 0.7:
            joined[-1] = msgspec.structs.replace(before, count=before.count + 1)
        else:
            joined.append(event)
    return History(history.info, numbered(joined))


def _joins(before: Event, event: Event) -> bool:
    said = (event.process, event.kind, event.sender, event.view, event.level, event.by)
    plain = event.annotation is None and before.annotation is None and event.by is None
    same = said == (before.process, before.kind, before.sender, before.view, before.level, before.by)
    return plain and same and event.count == 1 and event.seq == before.last + 1


def meaning(verdict: Verdict) -> Verdict:
    """A verdict without what must differ: which rows the events were found in."""
    events = tuple(msgspec.structs.replace(event, index=0, size=0) for event in verdict.offending)
    return msgspec.structs.replace(verdict, offending=events)


@settings(deadline=None, max_examples=100)
@given(seeds, seeds)
def test_no_verdict_depends_on_how_runs_were_cut(seed: int, cuts: int) -> None:
    singles = history(seed)
    runs = recut(singles, Random(cuts))
    assert [meaning(v) for v in check(runs, EVS)] == [meaning(v) for v in check(singles, EVS)]
