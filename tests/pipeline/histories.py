"""Histories of reliable multicast, sound and broken, that the tests of `verify` share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import msgspec
import pyarrow.parquet as pq

from semcast.core import Annotation, Enumeration, Item, KEnumeration, MemberId, MessageId
from semcast.history import Event, History, Kind, RunInfo, write_history
from semcast.sim.mutants import MUTANTS
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of

A, B, C = MEMBERS = MemberId("a"), MemberId("b"), MemberId("c", 1)
MOST = 5

SOUND = {
    "s-rm": (3, 9, 1, 13, 32, 0, 24, 6),
    "s-srm": (22, 30, 12, 5, 15, 20, 28, 7),
    "reliable": (14, 39, 12, 16, 8, 38, 7, 3),
}
"""Seeds of short runs: rows cost more here than runs."""

BRIEF = (3, 0)
"""Seeds of S-RM that are quick to simulate."""


def plain() -> list[History]:
    """All kinds: of every stack, with something planted, and drawn."""
    real = list(simulated())
    return [*real, *planted(real), *(small(seed) for seed in range(120))]


def simulated(most: int = 8, brief: tuple[int, ...] = BRIEF) -> Iterator[History]:
    """Every stack, and every mutant, for a few seeds."""
    for seeds in list(zip(*SOUND.values(), strict=True))[:most]:
        for stack, seed in zip(SOUND, seeds, strict=True):
            yield named(simulate(scenario_of(stack, seed)).history, f"{stack}-{seed}")
    for name, mutant in MUTANTS["s-rm"].items():
        for seed in brief:
            yield named(simulate(scenario_of("s-rm", seed), mutant).history, f"{name}-{seed}")


def named(history: History, run: str, **info: object) -> History:
    return History(msgspec.structs.replace(history.info, run=run, **info), history.events)


def renumbered(info: RunInfo, events: list[Event]) -> History:
    """The events, in the given order at each process."""
    places: dict[MemberId, int] = {}
    numbered = []
    for event in events:
        place = places.get(event.process, 0)
        places[event.process] = place + 1
        numbered.append(msgspec.structs.replace(event, index=place))
    return History(info, numbered)


def places(events: list[Event], kind: Kind) -> list[int]:
    return [place for place, event in enumerate(events) if event.kind is kind]


def drop_delivery(events: list[Event], random: Random) -> None:
    del events[random.choice(places(events, Kind.DELIVER))]


def repeat_delivery(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, Kind.DELIVER))
    events.insert(place + random.randint(1, 3), events[place])


def swap_deliveries(events: list[Event], random: Random) -> None:
    one = random.choice(places(events, Kind.DELIVER)[:-1])
    same = [n for n in places(events, Kind.DELIVER) if events[n].process == events[one].process and n > one]
    if same:
        events[one], events[same[0]] = events[same[0]], events[one]


def invent_delivery(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, Kind.DELIVER))
    events.insert(place + 1, msgspec.structs.replace(events[place], seq=random.choice((700, 900)), count=3))


def overfill(events: list[Event], random: Random) -> None:
    place = random.choice(places(events, Kind.BUFFER))
    events[place] = msgspec.structs.replace(events[place], count=10_000)


def change_digest(events: list[Event], random: Random) -> None:
    found = places(events, Kind.APPLY)
    if found:
        events[found[-1]] = msgspec.structs.replace(events[found[-1]], digest="another")


def forget_crash(events: list[Event], random: Random) -> None:
    for place in reversed(places(events, Kind.CRASH)):
        del events[place]


def crash(events: list[Event], random: Random) -> None:
    process = events[-1].process
    events.append(Event(process, 0, events[-1].at, Kind.CRASH, events[-1].group))


def act_after_crash(events: list[Event], random: Random) -> None:
    """A crash in the middle of what a process does."""
    place = random.choice(places(events, Kind.DELIVER))
    events.insert(place, Event(events[place].process, 0, events[place].at, Kind.CRASH, events[place].group))


def run_in_circles(events: list[Event], random: Random) -> None:
    """Two messages that replace each other."""
    single = [n for n in places(events, Kind.MULTICAST) if events[n].count == 1]
    if len(single) < 2:
        return
    one, other = random.sample(single, 2)
    for place, named in ((one, other), (other, one)):
        of = events[named]
        note = Enumeration((MessageId(of.process, of.seq),))
        events[place] = msgspec.structs.replace(events[place], annotation=note)


def lose_half(events: list[Event], random: Random) -> None:
    for place in reversed(places(events, Kind.DELIVER)):
        if random.random() < 0.5:
            del events[place]


EDITS: list[Callable[[list[Event], Random], None]] = [
    drop_delivery,
    repeat_delivery,
    swap_deliveries,
    invent_delivery,
    overfill,
    change_digest,
    forget_crash,
    crash,
    run_in_circles,
    lose_half,
    act_after_crash,
]


def planted(histories: list[History]) -> Iterator[History]:
    for number, history in enumerate(histories):
        for turn in range(2):
            edit = EDITS[(number + 5 * turn) % len(EDITS)]
            random = Random(f"{number}/{turn}")
            events = list(history.events)
            if not places(events, Kind.DELIVER) or not places(events, Kind.BUFFER):
                continue
            edit(events, random)
            run = f"{history.info.run}-{edit.__name__}"
            info = msgspec.structs.replace(history.info, run=run, quiesced=random.random() < 0.95)
            yield renumbered(info, events)


def small(seed: int) -> History:
    """Three processes that do almost what a protocol would do, with every representation."""
    random = Random(seed)
    sent = {member: random.randint(0, MOST) for member in MEMBERS}
    events: list[Event] = []
    for member in MEMBERS:
        for seq in range(1, sent[member] + 1):
            note, order = annotation(random, member), random.choice((None, None, random.randint(1, 12)))
            events.append(
                Event(member, 0, 0, Kind.MULTICAST, "g", member, seq, 1, annotation=note, order=order)
            )
        events += deliveries(random, member, sent)
        if random.random() < 0.25:
            events.append(Event(member, 0, 0, Kind.CRASH, "g"))
    info = RunInfo.one(
        f"small-{seed}", "g", "s-rm", None, MEMBERS, 3, uniform=True, quiesced=random.random() < 0.9
    )
    return renumbered(info, events)


def annotation(random: Random, member: MemberId) -> Annotation | None:
    kind = random.choice(("none", "item", "item", "ids", "own", "bitmap", "bitmap", "total"))
    if kind == "item":
        return Item(random.choice("xy"))
    if kind == "ids":
        return Enumeration((MessageId(random.choice(MEMBERS), random.randint(1, MOST)),))
    if kind == "own":
        return Enumeration(tuple(MessageId(member, random.randint(1, MOST)) for _ in range(2)))
    if kind == "bitmap":
        return KEnumeration(random.randint(1, MOST + 1), random.choice((0, 1, 2, 5, 0x301)))
    return KEnumeration(random.randint(1, 12), random.randint(0, 7), total=True) if kind == "total" else None


def deliveries(random: Random, member: MemberId, sent: dict[MemberId, int]) -> list[Event]:
    events = []
    for sender in MEMBERS:
        seqs = [seq for seq in range(1, sent[sender] + 1) if random.randint(0, 3)]
        if random.random() < 0.15:
            seqs.append(random.randint(1, MOST + 2))
        if random.random() < 0.15:
            random.shuffle(seqs)
        if random.random() < 0.15:
            seqs += seqs[-random.randint(1, 4) :]
        events += [Event(member, 0, 0, Kind.DELIVER, "g", sender, seq, 1) for seq in seqs]
        if random.random() < 0.5:
            events.append(Event(member, 0, 0, Kind.APPLY, "g", sender, digest=random.choice("ppppq")))
    if random.random() < 0.5:
        events.append(Event(member, 0, 0, Kind.BUFFER, "g", count=random.randint(0, 6)))
    return events


def recut(history: History, random: Random) -> History:
    """The same history with its runs cut at random; what the pieces contain is not known."""
    events: list[Event] = []
    for event in history.events:
        if event.sender is None or event.count < 2:
            events.append(event)
            continue
        cuts = sorted(random.sample(range(event.seq + 1, event.last + 1), random.randint(1, event.count - 1)))
        for first, after in zip([event.seq, *cuts], [*cuts, event.last + 1], strict=True):
            part = event.only(first)
            events.append(msgspec.structs.replace(part, count=after - first, size=event.size))
    return renumbered(history.info, events)


def deep_chain() -> History:
    """Each of 300 messages names the one before; b delivers only the last, c all but the last."""
    members = (A, B, MemberId("c"))
    ids = [MessageId(A, seq) for seq in range(1, 301)]
    notes = [Enumeration(tuple(ids[seq - 2 : seq - 1])) for seq in range(1, 301)]
    sent = [
        Event(A, 0, 0, Kind.MULTICAST, "g", A, seq, 1, annotation=notes[seq - 1]) for seq in range(1, 301)
    ]
    events = [
        *sent,
        Event(A, 0, 0, Kind.DELIVER, "g", A, 1, 300),
        Event(B, 0, 0, Kind.DELIVER, "g", A, 300, 1),
        Event(members[2], 0, 0, Kind.DELIVER, "g", A, 1, 299),
    ]
    info = RunInfo.one("deep", "g", "s-rm", None, members, None, uniform=False, quiesced=True)
    return renumbered(info, events)


def without_b() -> History:
    """Nothing was recorded of b."""
    history = named(small(5), "without-b")
    return History(history.info, [event for event in history.events if event.process != B])


def two_groups() -> History:
    """A run with two groups, of one of which nothing was recorded."""
    history = named(small(5), "two-groups")
    group = history.info.groups[0]
    groups = (group, msgspec.structs.replace(group, name="silent"))
    return History(msgspec.structs.replace(history.info, groups=groups), history.events)


def cut_short(history: History, seed: int) -> History:
    """One or two processes lose what comes after a random row."""
    random = Random(seed)
    lost = random.sample(history.processes, random.randint(1, 2))
    events = [
        event
        for process in history.processes
        for event in history.of(process)[
            : random.randint(0, len(history.of(process))) if process in lost else None
        ]
    ]
    name = f"{history.info.run}-cut"
    return renumbered(msgspec.structs.replace(history.info, run=name, cut_off=tuple(lost)), events)


def purged_for_what_is_lost() -> History:
    """A receipt names a message that its sender sent after its recording was cut off."""
    info = RunInfo.one("purge", "g", "s-rm", None, (A, B), None, uniform=False, quiesced=True, cut_off=(A,))
    events = [
        Event(A, 0, 0, Kind.MULTICAST, "g", A, 1, 1),
        Event(B, 0, 0, Kind.PURGE, "g", A, 1, 1, by=MessageId(A, 2)),
    ]
    return History(info, events)


def all_cut_off() -> list[History]:
    """Of two stacks, and drawn."""
    sound = [simulate(scenario_of(stack, seed)).history for seed in range(2) for stack in ("s-rm", "s-srm")]
    histories = [cut_short(history, number) for number, history in enumerate(sound)]
    histories += [cut_short(small(seed), seed) for seed in range(24)]
    return [*histories, purged_for_what_is_lost()]


def write(histories: list[History], folder: Path) -> Path:
    """A file for each."""
    for history in histories:
        write_history(history, folder / f"{history.info.run}.parquet")
    return folder


def scatter(history: History, folder: Path, random: Random) -> None:
    """One run in three files, its rows in any order."""
    whole = folder.parent / "whole.parquet"
    write_history(history, whole)
    table = pq.read_table(whole)
    table = table.take(random.sample(range(len(table)), len(table)))
    folder.mkdir(exist_ok=True)
    for part in range(3):
        rows = table.take(list(range(part, len(table), 3)))
        pq.write_table(rows, folder / f"{history.info.run}-{part}.parquet")
