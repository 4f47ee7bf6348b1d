"""A bench for consensus: drawn schedules in which everything goes wrong that may, then nothing any more."""

from random import Random

from semcast.core import Frame
from semcast.core.quorum import is_quorum
from semcast.protocols.vsync.consensus import Consensus, Phase
from semcast.protocols.vsync.consensus_frames import Decision, Estimate, Instance

INSTANCE = Instance(7, 0)
HEALED_ROUNDS = 40
"""Times that everything under way arrives and everybody resends, after which all must have decided."""


class BrokenError(AssertionError):
    """A property of consensus does not hold."""


class Lab:
    """Members by rank; frames wait in `wire`. Contents of values are at members, and move on their own."""

    def __init__(self, size: int, kind: type[Consensus] = Consensus) -> None:
        self.size = size
        self.now = 0
        self.held: list[set[bytes]] = [set() for _ in range(size)]
        self.suspected: list[set[int]] = [set() for _ in range(size)]
        self.crashed: set[int] = set()
        self.proposed: dict[int, bytes] = {}
        self.decisions: dict[int, bytes] = {}
        self.wire: list[tuple[int, int, Frame]] = []
        self.sent = 0
        self.members = [self._member(kind, rank) for rank in range(size)]

    def _member(self, kind: type[Consensus], me: int) -> Consensus:
        held, suspected = self.held[me], self.suspected[me]
        return kind(INSTANCE, me, self.size, held.__contains__, suspected.__contains__)

    @property
    def alive(self) -> list[int]:
        return [rank for rank in range(self.size) if rank not in self.crashed]

    # Inputs to one member, each followed by what a caller does

    def join(self, rank: int) -> None:
        self.members[rank].join(self.now)
        self.drain(rank)

    def propose(self, rank: int, value: bytes) -> None:
        self.proposed[rank] = value
        self.held[rank].add(value)
        self.members[rank].propose(self.now, value)
        self.drain(rank)

    def recheck(self, rank: int) -> None:
        self.members[rank].recheck(self.now)
        self.drain(rank)

    def resend(self, rank: int) -> None:
        self.members[rank].resend(self.now)
        self.drain(rank)

    def hand_over(self, source: int, dest: int, frame: Frame) -> None:
        if dest not in self.crashed:
            self.members[dest].on_frame(self.now, source, frame)
            self.drain(dest)

    def suspect(self, rank: int, *others: int) -> None:
        """From now on exactly these are suspected by this member."""
        self.suspected[rank].clear()
        self.suspected[rank].update(others)
        self.recheck(rank)

    def fetch(self, rank: int) -> None:
        """Contents come from those who have them and live; where they are missed is not told yet."""
        for _, value in self.members[rank].wanted():
            if any(value in self.held[other] for other in self.alive):
                self.held[rank].add(value)

    def crash(self, rank: int) -> None:
        self.crashed.add(rank)

    def drain(self, rank: int) -> None:
        member = self.members[rank]
        for dest, frame in member.out:
            dests = [other for other in range(self.size) if other != rank] if dest is None else [dest]
            assert rank not in dests, "nobody writes to itself"
            self.wire += [(rank, other, frame) for other in dests]
            self.sent += len(dests)
        member.out.clear()
        self._check(rank, member)

    def carry(self) -> None:
        """Everything under way arrives; answers wait for the next time."""
        frames, self.wire = self.wire, []
        self.now += 1
        for source, dest, frame in frames:
            self.hand_over(source, dest, frame)

    # Properties

    def _check(self, rank: int, member: Consensus) -> None:
        decided = member.decided
        if decided is None:
            return
        if self.decisions.setdefault(rank, decided) != decided:
            raise BrokenError(f"integrity: {rank} decided twice")
        if decided not in self.proposed.values():
            raise BrokenError(f"validity: nobody proposed {decided!r}")
        if len(set(self.decisions.values())) > 1:
            raise BrokenError(f"uniform agreement: {self.decisions}")
        if not is_quorum(self.size, [rank for rank, held in enumerate(self.held) if decided in held]):
            raise BrokenError(f"holding: {decided!r} is decided, and a majority lacks its contents")

    # A drawn schedule

    def heal(self) -> None:
        """Everybody learns the truth about crashes, and nothing is lost: all must decide."""
        for rank in self.alive:
            self.join(rank)
        if not any(rank in self.proposed for rank in self.alive):
            self.propose(self.alive[-1], b"last")
        for rank in self.alive:
            self.suspect(rank, *self.crashed)
        for _ in range(HEALED_ROUNDS):
            self.carry()
            for rank in self.alive:
                self.fetch(rank)
                self.recheck(rank)
            if all(rank in self.decisions for rank in self.alive) and not self.wire:
                return
            for rank in self.alive:
                self.resend(rank)
        phases = {rank: (self.members[rank].round, str(self.members[rank].phase)) for rank in self.alive}
        raise BrokenError(f"termination: {phases}")


class Exploration:
    """One seed draws the group, how bad things are, and every step."""

    def __init__(self, seed: int, kind: type[Consensus] = Consensus) -> None:
        self.rng = rng = Random(seed)
        self.lab = Lab(rng.choice([1, 2, 3, 3, 3, 3, 4, 5, 5, 7]), kind)
        self.steps = rng.randint(10, 80 * self.lab.size)
        self.loss = rng.choice([0.0, 0.1, 0.3])
        self.copies = rng.choice([0.0, 0.2])
        self.in_order = rng.random() < 0.3
        self.lies = rng.choice([0, 0, 1, 5])
        self.crashes = rng.randint(0, (self.lab.size - 1) // 2)
        self.secrecy = rng.choice([0.0, 1.0, 1.0])  # how many decisions are lost, until all is well
        self.values = rng.choice([1, 2, self.lab.size, self.lab.size])
        if rng.random() < 0.5:
            for held in self.lab.held:
                held.update(b"v%d" % value for value in range(self.values))
        self.deeds = {
            "carry": 60,
            "propose": rng.choice([1, 10]),
            "join": rng.choice([1, 10]),
            "fetch": rng.choice([0, 3, 15]),
            "recheck": 5,
            "resend": rng.choice([1, 8]),
            "suspect": self.lies,
            "doubt": rng.choice([0, 1, 3]),
            "crash": 1,
        }

    def run(self) -> Lab:
        deeds = self.rng.choices(list(self.deeds), list(self.deeds.values()), k=self.steps)
        for deed in deeds:
            rank = self.rng.choice(self.lab.alive)
            getattr(self, f"_{deed}")(rank)
        self.lab.heal()
        return self.lab

    def _carry(self, rank: int) -> None:
        wire, rng = self.lab.wire, self.rng
        if not wire:
            self.lab.resend(rank)
            return
        at = 0 if self.in_order else rng.randrange(len(wire))
        frame = wire[at] if rng.random() < self.copies else wire.pop(at)
        lost = self.secrecy if isinstance(frame[2], Decision) else self.loss
        if rng.random() >= lost:
            self.lab.hand_over(*frame)

    def _propose(self, rank: int) -> None:
        if rank not in self.lab.proposed:
            self.lab.propose(rank, b"v%d" % (rank % self.values))

    def _join(self, rank: int) -> None:
        self.lab.join(rank)

    def _fetch(self, rank: int) -> None:
        self.lab.fetch(rank)
        if self.rng.random() < 0.7:
            self.lab.recheck(rank)

    def _recheck(self, rank: int) -> None:
        self.lab.recheck(rank)

    def _resend(self, rank: int) -> None:
        self.lab.resend(rank)

    def _suspect(self, rank: int) -> None:
        others = [other for other in range(self.lab.size) if other != rank]
        self.lab.suspect(rank, *self.rng.sample(others, self.rng.randint(0, len(others))))

    def _doubt(self, rank: int) -> None:
        """The coordinator of the latest round is slow; most notice."""
        slow = max(self.lab.members, key=lambda member: member.round).coordinator
        for other in self.lab.alive:
            if other != slow and self.rng.random() < 0.8:
                self.lab.suspect(other, slow)

    def _crash(self, rank: int) -> None:
        if len(self.lab.crashed) < self.crashes:
            self.lab.crash(rank)
            # The rest of what it was about to send when it crashed is never sent.
            survive = self.rng.random()
            self.lab.wire = [
                frame for frame in self.lab.wire if frame[0] != rank or self.rng.random() < survive
            ]


# Deliberately broken members


class DecidesEarly(Consensus):
    """One ack less than a majority will do."""

    def _decide_if_acked(self) -> bool:
        if self.phase is Phase.PROPOSED and len(self._acks) == self.size // 2:
            self._acks.add(-1)
        return super()._decide_if_acked()


class IgnoresTs(Consensus):
    """Takes any value there is, not the one adopted last."""

    def _pick(self, estimates: object) -> bytes | None:
        values = [each.value for each in self._counted.values() if each.value is not None]
        return max(values, default=None)


class AcksUnheld(Consensus):
    """Adopts and acks what it does not hold."""

    def _adopt_if_held(self, value: bytes) -> None:
        holds, self._holds = self._holds, lambda _: True
        super()._adopt_if_held(value)
        self._holds = holds


class CountsUnheld(Consensus):
    """Coordinates with values that it does not hold."""

    def _count(self, ranks: object) -> None:
        holds, self._holds = self._holds, lambda _: True
        super()._count(list(self._uncounted))
        self._holds = holds


class AsksFew(Consensus):
    """Proposes in any round without a majority of estimates, as if it were the first."""

    def _on_estimate(self, now: int, rank: int, frame: Estimate) -> None:
        super()._on_estimate(now, rank, frame)
        if self.phase is Phase.GATHERING:
            for other in range(-self.size, 0):
                self._counted[other] = Estimate(INSTANCE, self.round, 0, None)
            self._try_to_propose()


class GoesBack(Consensus):
    """Acks proposals of rounds that it has left, without taking them over."""

    def _send_ack(self, round_: int, *, ok: bool) -> None:
        super()._send_ack(round_, ok=ok or round_ < self.round)


class KeepsDecisions(Consensus):
    """Once decided, answers nobody."""

    def _tell(self, rank: int, frame: Frame, value: bytes) -> None:
        pass


class NeverSummons(Consensus):
    """Waits for the others to come to its round by themselves."""

    def _enter(self, now: int, round_: int) -> None:
        super()._enter(now, round_)
        self.out = [sent for sent in self.out if type(sent[1]).__name__ != "Summons"]

    def resend(self, now: int) -> None:
        super().resend(now)
        self.out = [sent for sent in self.out if type(sent[1]).__name__ != "Summons"]


MUTANTS: list[tuple[type[Consensus], str]] = [
    (DecidesEarly, "uniform agreement"),
    (IgnoresTs, "uniform agreement"),
    (AsksFew, "uniform agreement"),
    (GoesBack, "uniform agreement"),
    (AcksUnheld, "holding"),
    (CountsUnheld, "holding"),
    (KeepsDecisions, "termination"),
    (NeverSummons, "termination"),
]
