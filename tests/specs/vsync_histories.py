"""Random small histories of a group with primary views, for the checkers of virtual synchrony.

The group works, more or less: some go on from view to view, some crash, some join. Then a few rows are
lost, doubled, exchanged or changed.
"""

from collections.abc import Sequence
from random import Random

import msgspec

from semcast.core import Annotation, Enumeration, Item, KEnumeration, MemberId, Message, MessageId
from semcast.history import Event, History, Kind, RunInfo
from semcast.obsolescence import obsoletes

NAMES = "abcd"


class Group:
    """Views one after the other, and what is said in them."""

    def __init__(self, random: Random, *, sound: bool = False) -> None:
        self.random = random
        self.sound = sound
        self.now = 0
        self.rows: dict[MemberId, list[Event]] = {}
        self.members: tuple[MemberId, ...] = ()
        self.incarnations = dict.fromkeys(NAMES, -1)
        self.sent: dict[MemberId, int] = {}
        self.number = random.randint(0, 2)
        self.position = 0
        self.positions = random.random() < 0.5
        self.rest: dict[MemberId, list[Message]] = {}

    def run(self) -> list[Event]:
        self.install(tuple(self.fresh(name) for name in NAMES if self.chance(0.8)) or (self.fresh("a"),))
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 2, 3])):
            self.change()
        if self.sound or self.chance(0.7):
            self.finish(self.members)
        return [event for member in sorted(self.rows) for event in self.rows[member]]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def fault(self, share: float) -> bool:
        return not self.sound and self.chance(share)

    def fresh(self, name: str) -> MemberId:
        self.incarnations[name] += 1
        return MemberId(name, self.incarnations[name])

    def add(self, member: MemberId, kind: Kind, **fields: object) -> None:
        rows = self.rows.setdefault(member, [])
        self.now += 1
        rows.append(msgspec.structs.replace(Event(member, len(rows), self.now, kind, "g"), **fields))

    def change(self) -> None:
        """Some go on, the others are gone, or do something else; some come anew."""
        going_on = tuple(m for m in self.members if self.chance(0.8))
        others = tuple(m for m in self.members if m not in going_on)
        present = {member.name for member in going_on}
        joining = tuple(self.fresh(name) for name in NAMES if name not in present and self.chance(0.4))
        self.finish(going_on)
        for member in others:
            if not self.fault(0.2):
                self.leave(member)
            elif self.chance(0.5):
                self.finish((member,))
                self.install((member,))
        if going_on or self.fault(0.3):
            self.install(going_on + joining)
        else:
            self.members = ()

    def leave(self, member: MemberId) -> None:
        rest = self.rest.pop(member, [])
        self.deliver(member, rest[: self.random.randint(0, len(rest))])
        self.add(member, Kind.CRASH)

    def install(self, members: tuple[MemberId, ...]) -> None:
        self.number += self.random.choice([0, 2]) if self.fault(0.25) else 1
        digest = str(self.random.randint(1, 9)) if self.chance(0.6) else None
        for member in members:
            self.add(member, Kind.VIEW, view=self.number, members=members, level="primary")
            if digest is not None and self.chance(0.9):
                for name in "ab":
                    if not self.fault(0.03):
                        self.state(member, MemberId(name), digest)
        self.members = members
        self.talk(members)

    def state(self, member: MemberId, sender: MemberId, digest: str) -> None:
        digest = "odd" if self.fault(0.03) else digest
        self.add(member, Kind.APPLY, sender=sender, digest=digest, view=self.number)

    def talk(self, members: tuple[MemberId, ...]) -> None:
        order: list[Message] = []
        delivered = dict.fromkeys(members, 0)
        for _ in range(self.random.randint(0, 5) if members else 0):
            sender = self.random.choice(members)
            upto = self.random.randint(delivered[sender], len(order))
            if self.chance(0.5):
                self.deliver(sender, order[delivered[sender] : upto])
                delivered[sender] = upto
            self.sent[sender] = self.sent.get(sender, 0) + self.random.choice([1, 1, 1, 2])
            self.position += 1
            name = MessageId(sender, self.sent[sender])
            message = Message(name, b"", self.annotation(order), self.position if self.positions else None)
            order.append(message)
            self.about(sender, Kind.MULTICAST, message, annotation=message.annotation, view=self.number)
            self.rows[sender][-1] = msgspec.structs.replace(self.rows[sender][-1], order=None)
        for member in members:
            self.rest[member] = order[delivered[member] :]

    def annotation(self, order: list[Message]) -> Annotation | None:
        match self.random.randrange(7):
            case 0 | 1 | 2:
                return Item(self.random.choice("xy"))
            case 3 if order:
                return Enumeration((self.random.choice(order).id,))
            case 4 if not self.sound:
                return Enumeration(
                    (MessageId(MemberId(self.random.choice(NAMES)), self.random.randint(1, 3)),)
                )
            case 5 if self.positions:
                return KEnumeration(self.position, self.random.randrange(16), total=True)
            case 5 if not self.sound:
                return KEnumeration(self.random.randint(1, 4), self.random.randrange(8))
        return None

    def finish(self, members: Sequence[MemberId]) -> None:
        for member in members:
            self.deliver(member, self.rest.pop(member, []))

    def deliver(self, member: MemberId, messages: Sequence[Message]) -> None:
        order = list(messages)
        if self.fault(0.05):
            self.random.shuffle(order)
        for place, message in enumerate(order):
            later = [new for new in order[place + 1 :] if obsoletes(new, message)]
            if later and self.chance(0.6):
                self.about(member, Kind.PURGE, message, by=later[0].id)
            else:
                self.about(member, Kind.DELIVER, message)

    def about(self, member: MemberId, kind: Kind, message: Message, **fields: object) -> None:
        sender, seq = message.id.sender, message.id.seq
        self.add(member, kind, sender=sender, seq=seq, count=1, order=message.order, **fields)


def damaged(events: list[Event], random: Random) -> list[Event]:
    """One thing is wrong that was right, or the other way round."""
    rows = list(events)
    at = random.randrange(len(rows))
    event = rows[at]
    processes = sorted({row.process for row in rows})
    match random.randrange(9):
        case 0:
            del rows[at]
        case 1:
            rows.insert(at, event)
        case 2 if at + 1 < len(rows) and rows[at + 1].process == event.process:
            rows[at : at + 2] = rows[at + 1], event
        case 3 if event.members is not None:
            members = tuple(m for m in event.members if random.random() < 0.7) or (random.choice(processes),)
            rows[at] = msgspec.structs.replace(event, members=members)
        case 4 if event.view is not None:
            rows[at] = msgspec.structs.replace(event, view=random.randint(1, 5))
        case 5 if event.kind is Kind.DELIVER:
            rows[at] = msgspec.structs.replace(
                event, seq=random.randint(1, 4), sender=random.choice(processes)
            )
        case 6:
            local = [place for place, other in enumerate(rows) if other.process == event.process]
            rows.insert(random.choice(local), rows.pop(at))
        case 7 if event.order is not None:
            rows[at] = msgspec.structs.replace(event, order=random.randint(1, 6))
        case 8:
            rows[at] = msgspec.structs.replace(Event(event.process, 0, 0, Kind.CRASH, "g"))
    return rows


def numbered(events: Sequence[Event]) -> list[Event]:
    found: dict[MemberId, list[Event]] = {}
    for event in events:
        rows = found.setdefault(event.process, [])
        rows.append(msgspec.structs.replace(event, index=len(rows)))
    return [event for rows in found.values() for event in rows]


def random_history(seed: int) -> History:
    random = Random(seed)
    events = Group(random).run()
    for _ in range(random.choice([0, 0, 1, 1, 2, 3, 5])):
        if events:
            events = damaged(events, random)
    cut_off: tuple[MemberId, ...] = ()
    if events and random.random() < 0.15:
        lost = random.choice(events).process
        theirs = [event for event in events if event.process == lost]
        kept = random.randint(0, len(theirs))
        events = [event for event in events if event.process != lost] + theirs[:kept]
        cut_off = (lost,)
    quiesced = random.random() < 0.6
    info = RunInfo.one(
        "run", "g", "vsync", seed, (), None, uniform=False, quiesced=quiesced, cut_off=cut_off, order="total"
    )
    return History(info, numbered(sorted(events, key=lambda event: event.process)))


def sound_history(seed: int) -> History:
    """Nothing is wrong with it, and nothing is missing."""
    random = Random(seed)
    events = Group(random, sound=True).run()
    info = RunInfo.one("run", "g", "vsync", seed, (), None, uniform=True, quiesced=True, order="total")
    return History(info, events)


def stopped(history: History, at: int) -> History:
    """As far as it was at some moment."""
    info = msgspec.structs.replace(history.info, quiesced=False)
    return History(info, [event for event in history.events if event.at <= at])


def torn(history: History, random: Random) -> History:
    """Of some it is not known what they did in the end."""
    lost = random.sample(history.processes, random.randint(1, len(history.processes)))
    keep = {process: random.randint(0, len(history.of(process))) for process in lost}
    events = [event for event in history.events if event.index < keep.get(event.process, event.index + 1)]
    return History(msgspec.structs.replace(history.info, cut_off=tuple(sorted(lost))), events)
