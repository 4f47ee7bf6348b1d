"""Random small histories of causal domains, of protocols that take more or less care."""

from random import Random

import msgspec
from tests.specs.domain_scripts import domain

from semcast.history import History

PEOPLE = "pqrs"


class Wandering:
    """A few processes in a few groups: what each does next is drawn."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.care = rng.choice((0.0, 0.6, 0.9, 1.0))
        self.groups = {group: rng.sample(PEOPLE, rng.randint(2, 4)) for group in "abc"[: rng.randint(1, 3)]}
        self.lines: dict[str, list[str]] = {who: [] for who in PEOPLE}
        self.views = {group: [sorted(members)] for group, members in self.groups.items()}
        self.at: dict[tuple[str, str], int] = {}
        self.seqs: dict[tuple[str, str, bool], int] = {}
        self.line: dict[str, list[tuple[str, str, int, bool, frozenset[str]]]] = {who: [] for who in PEOPLE}
        self.past: dict[str, set[str]] = {who: set() for who in PEOPLE}
        self.flushes: dict[str, list[int]] = {who: [] for who in PEOPLE}
        self.ended: set[str] = set()
        self.now = 0
        if rng.random() < 0.2:
            self.write("p", f"full{rng.randint(0, 1)}")
        for group in self.groups:
            for who in self.views[group][0]:
                self.install(who, group)

    def write(self, who: str, step: str) -> None:
        self.now += self.rng.randint(0, 2)
        self.lines[who] += [f"t{self.now}", step]

    def install(self, who: str, group: str) -> None:
        number = self.at.get((who, group), 0) + 1
        if number > len(self.views[group]):
            before = self.views[group][-1]
            stay = [each for each in before if self.rng.random() < 0.8] or before
            self.views[group].append(stay)
        members = self.views[group][number - 1]
        if who in members:
            self.at[who, group] = number
            self.write(who, f"V{group}{number}={''.join(members)}")
        else:
            self.at.pop((who, group), None)
            self.write(who, f"-{group}")

    def run(self, steps: int) -> History:
        for _ in range(steps):
            who = self.rng.choice(PEOPLE)
            if who not in self.ended:
                self.step(who)
        if self.rng.random() < 0.7:
            for who in PEOPLE:
                while who not in self.ended and self.take(who):
                    pass
        script = "\n".join(f"{who}: {' '.join(steps)}" for who, steps in self.lines.items())
        return domain(script, quiesced=self.rng.random() < 0.8)

    def step(self, who: str) -> None:
        mine = [group for name, group in self.at if name == who]
        draw = self.rng.random()
        if draw < 0.4 and mine:
            self.send(who, self.rng.choice(mine))
        elif draw < 0.85:
            self.take(who)
        elif draw < 0.9 and mine:
            self.install(who, self.rng.choice(mine))
        elif draw < 0.97:
            if self.flushes[who] and self.rng.random() < 0.6:
                self.write(who, f"F{self.flushes[who].pop()}.")
            else:
                number = self.seqs[who, "flush", False] = self.seqs.get((who, "flush", False), 0) + 1
                self.flushes[who].append(number)
                self.write(who, f"F{number}?")
        elif draw < 0.98:
            self.write(who, "crash")
            self.ended.add(who)

    def send(self, who: str, group: str) -> None:
        rng, view = self.rng, self.at[who, group]
        members = self.views[group][view - 1]
        direct = rng.random() < 0.15 and len(members) > 1
        first = self.seqs.get((who, group, direct), 0) + 1
        count = 1 if direct else rng.choice((1, 1, 1, 2, 3))
        note = ""
        if count == 1 and not direct:
            draw = rng.random()
            if draw < 0.4:
                note = f":{rng.choice('xy')}"
            elif draw < 0.5 and first > 1:
                note = f":{{{who}{rng.randint(1, first - 1)}}}"
        self.seqs[who, group, direct] = first + count - 1
        to = rng.choice([each for each in members if each != who]) if direct else None
        self.write(
            who,
            f"{group}>{first}"
            + (f"-{first + count - 1}" if count > 1 else "")
            + (f"@{to}" if to else "")
            + note,
        )
        past = frozenset(self.past[who])
        names: set[str] = set()
        for seq in range(first, first + count):
            for other in [to] if to else members:
                self.line[other].append((group, who, seq, direct, past | frozenset(names)))
            names.add(f"{group}{who}{seq}{direct}")
        self.past[who] |= names

    def take(self, who: str) -> bool:
        line = self.line[who]
        if not line:
            return False
        place = self.rng.randrange(len(line))
        if self.rng.random() < self.care:
            names = {f"{group}{sender}{seq}{direct}" for group, sender, seq, direct, _ in line}
            good = [n for n, message in enumerate(line) if not names & message[4]]
            place = self.rng.choice(good) if good else place
        group, sender, seq, direct, past = line.pop(place)
        self.past[who] |= past | {f"{group}{sender}{seq}{direct}"}
        if self.rng.random() < (0.97 if self.care < 1 else 1.0):
            total = "^" if self.rng.random() < 0.7 and not direct else ""
            self.write(who, f"{group}<{sender}{seq}{total}{'@' if direct else ''}")
        return True


def wander(seed: int) -> History:
    rng = Random(seed)
    return Wandering(rng).run(rng.randint(5, 45))


def shuffled(history: History, rng: Random) -> History:
    """Two neighbouring rows of a process change places, a row is lost, or comes twice."""
    rows = {process: list(history.of(process)) for process in history.processes}
    for _ in range(rng.randint(1, 3)):
        mine = rows[rng.choice(history.processes)]
        if len(mine) > 1:
            place = rng.randrange(len(mine) - 1)
            match rng.randrange(4):
                case 0 | 1:
                    mine[place], mine[place + 1] = mine[place + 1], mine[place]
                case 2:
                    del mine[place]
                case 3:
                    mine.insert(place, mine[place])
    events = [
        msgspec.structs.replace(event, index=index)
        for mine in rows.values()
        for index, event in enumerate(mine)
    ]
    return History(history.info, events)
