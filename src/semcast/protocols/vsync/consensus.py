"""Consensus with a rotating coordinator (Chandra and Toueg 1996, section 6.2), over datagrams.

Rounds are counted from 1; rank (round - 1) mod size coordinates. In each round the coordinator gathers
estimates, proposes the one adopted last, and decides when a majority adopts its proposal.

Deviations. *Holds*: values name contents that travel on their own, and a value counts only where its
contents are. A participant adopts and acks a proposal only when it holds it; a coordinator counts an
estimate only when it holds its value. So a decided value is held by a majority. *Fast path*: the
coordinator of round 1 proposes without asking, for nothing can have been decided before. *Calm rounds*:
who acked stays in the round until it suspects the coordinator; a coordinator summons the others to its
round, since nobody comes by itself. *Loss*: `resend` repeats what a phase waits for; whoever decided
answers with the decision. *Late values*: a member may join without a value. *Quorums* are those of
`core/quorum.py`: majorities, and halves with the first member. *Reforming*: where the others are known to be
dead, all who live suffice (`reform`); what they decide says so, and is another value.

Safe, whatever `suspects` says: let r be the first round in which a majority adopts its proposal v. The
majority that the coordinator of a later round counts has a member in common with them, which adopted
before it came to that round (rounds only grow, and nothing is adopted in a round left behind). So its
estimate has a ts of at least r, and by induction all estimates that do have the value v: v is proposed
again. An estimate that is not counted for want of its contents takes nothing from that. Live, if a
majority is correct, connected, and in the end not suspected, and if who is correct comes to hold what
another correct member holds: see `docs/protocols/consensus.md`.
"""

import enum
from collections.abc import Callable, Collection, Iterable

from semcast.core.ids import Nanos
from semcast.core.outbox import Frame
from semcast.core.quorum import is_quorum
from semcast.protocols.vsync.consensus_frames import Ack, Decision, Estimate, Instance, Proposal, Summons
from semcast.wire.limits import MAX_MEMBERS, MAX_VALUE

PATIENCE = 8
"""How often something is sent again before it is given up: who is heard may be deaf."""
FAR = 1 << 20
"""No member is so many rounds ahead of another; who says so lies."""


class Phase(enum.StrEnum):
    """What a member waits for."""

    IDLE = "idle"
    """To be told to take part."""
    GATHERING = "gathering"
    """Coordinator: estimates, or any value at all."""
    PROPOSED = "proposed"
    """Coordinator: acks."""
    AWAITING = "awaiting"
    """Participant: the proposal."""
    FETCHING = "fetching"
    """Participant: the contents of the proposal."""
    ACKED = "acked"
    """Participant: the decision."""
    DECIDED = "decided"


_ENTERED = (Phase.GATHERING, Phase.AWAITING, Phase.DECIDED)

MOVES: dict[Phase, tuple[Phase, ...]] = {
    Phase.IDLE: _ENTERED,
    Phase.GATHERING: (Phase.PROPOSED, *_ENTERED),
    Phase.PROPOSED: _ENTERED,
    Phase.AWAITING: (Phase.FETCHING, Phase.ACKED, *_ENTERED),
    Phase.FETCHING: (Phase.ACKED, *_ENTERED),
    Phase.ACKED: _ENTERED,
    Phase.DECIDED: (),
}
"""Every legal move; to gather or to await is to enter a round."""


class Consensus:
    """One instance at one member. After every call, send what is in `out` and look at `decided`.

    `holds` must stay true of a value once it is; it is not asked about a member's own value. A decision
    may arrive before its contents: then a majority has them.

    Args:
        instance: which one.
        me: rank of this member.
        size: how many members there are, all of the view, whether they take part or not.
        holds: whether the contents of a value are here.
        suspects: whether the member of a rank is suspected at present; not asked about this one.
        mark: makes of a value the same one, agreed to by fewer than a quorum; None where that cannot be.
    """

    def __init__(
        self,
        instance: Instance,
        me: int,
        size: int,
        holds: Callable[[bytes], bool],
        suspects: Callable[[int], bool],
        mark: Callable[[bytes], bytes] | None = None,
    ) -> None:
        if not 0 <= me < size <= MAX_MEMBERS:
            raise ValueError(f"rank {me} among {size} members, {MAX_MEMBERS} at most")
        self.instance = instance
        self.me = me
        self.size = size
        self.out: list[tuple[int | None, Frame]] = []
        """Frames to send: the rank they go to, None for everybody else."""
        self.decided: bytes | None = None
        self.phase = Phase.IDLE
        self.spoke = False
        """Whether this member has proposed a value."""
        self.round = 1
        self.since: Nanos = 0
        """When this member came to the round."""
        self.malformed = 0
        """Frames dropped because no correct member sends them."""
        self._holds = holds
        self._suspects = suspects
        self._mark = mark
        self._sufficient: frozenset[int] | None = None  # who lives, if that is enough
        self._reformed_at = 0  # the first round in which it is
        self._estimate: bytes | None = None
        self._ts = 0  # the round in which the estimate was adopted; 0 for this member's own value
        self._repeated = 0  # how often something was sent again in this round
        self._pending: bytes | None = None  # a proposal that is not held yet
        self._counted: dict[int, Estimate] = {}
        self._uncounted: dict[int, Estimate] = {}
        self._acks: set[int] = set()
        self._nacks: set[int] = set()

    @property
    def coordinator(self) -> int:
        """Rank of the coordinator of the current round."""
        return self._coordinator_of(self.round)

    @property
    def adopted(self) -> tuple[int, bytes | None]:
        """The round in which the estimate was adopted, 0 if it never was, and the estimate."""
        return self._ts, self._estimate

    def enough(self, ranks: Collection[int]) -> bool:
        """Whether these decide: they have a member in common with all others that do, or they alone live."""
        if is_quorum(self.size, ranks):
            return True
        alive = self._sufficient if self.round >= self._reformed_at else None
        return alive is not None and alive.issubset(ranks)

    def wanted(self) -> list[tuple[int, bytes]]:
        """Values whose contents are lacking here, each with the rank of a member that had them."""
        if self._pending is not None:
            return [(self.coordinator, self._pending)]
        return [(rank, e.value) for rank, e in self._uncounted.items() if e.value is not None]

    # Inputs

    def join(self, now: Nanos) -> None:
        """Take part, for the time being without a value. Before, all frames but decisions are dropped."""
        if self.phase is Phase.IDLE:
            self._enter(now, 1)

    def propose(self, now: Nanos, value: bytes) -> None:
        """Take part with a value, whose contents are here. At most once; of no effect if it is too late."""
        if len(value) > MAX_VALUE:
            raise ValueError(f"value of {len(value)} bytes: at most {MAX_VALUE} fit in a frame")
        assert not self.spoke, f"{self.instance}: proposed twice"
        self.spoke = True
        if self._estimate is None:
            self._estimate = value
        if self.phase is Phase.IDLE:
            self._enter(now, 1)
        elif self.phase is Phase.GATHERING:
            self._counted[self.me] = self._my_estimate()
            self._try_to_propose()
        elif self.phase is Phase.AWAITING and self.round > 1:
            self._send_estimate()

    def on_frame(self, now: Nanos, rank: int, frame: Frame) -> None:
        """A frame of this instance from the member of that rank."""
        if not self._credible(rank, frame):
            self.malformed += 1
        elif isinstance(frame, Decision):
            if self.decided is None:
                self._decide(frame.value)
        elif self.decided is not None:
            self._tell(rank, frame, self.decided)
        elif self.phase is not Phase.IDLE:
            if isinstance(frame, Estimate):
                self._on_estimate(now, rank, frame)
            elif isinstance(frame, Proposal):
                self._on_proposal(now, frame)
            elif isinstance(frame, Ack):
                self._on_ack(now, rank, frame)
            elif isinstance(frame, Summons):
                self._on_summons(now, frame)

    def recheck(self, now: Nanos) -> None:
        """What `holds` or `suspects` says may have changed."""
        if self.phase is Phase.GATHERING:
            self._count(list(self._uncounted))
            self._try_to_propose()
        elif self._pending is not None:
            self._adopt_if_held(self._pending)
        self._leave_if_suspected(now)

    def reform(self, now: Nanos, alive: frozenset[int]) -> None:
        """Let these suffice, though they are no quorum: no other is alive.

        Each of them must ignore by now whatever the dead have sent. What they said before that counts for
        nothing: so this begins a round of its own, in which all of them are asked.
        """
        if self.decided is not None or self._sufficient == alive:
            return
        self._sufficient = alive
        self._reformed_at = self.round + 1
        while self._coordinator_of(self._reformed_at) != self.me:
            self._reformed_at += 1
        self._enter(now, self._reformed_at)

    def resend(self, now: Nanos) -> None:
        """Repeat what has to arrive for this phase to end: datagrams are lost."""
        self._repeated += 1
        if self._repeated > PATIENCE * self._lap and self.phase in (Phase.AWAITING, Phase.ACKED):
            self._leave(now)
        elif self.phase is Phase.GATHERING:
            self.out.append((None, Summons(self.instance, self.round)))
        elif self.phase is Phase.PROPOSED:
            self._send_proposal([rank for rank in range(self.size) if rank not in self._acks])
        elif self.phase is Phase.ACKED:
            self._send_ack(self.round, ok=True)
        elif self.phase in (Phase.AWAITING, Phase.FETCHING):
            # Also in round 1, whose coordinator may have no value, and also when the proposal is here: a
            # coordinator that has decided is silent until it is asked.
            self._send_estimate()

    # Phase 1: estimates go to the coordinator

    def _enter(self, now: Nanos, round_: int) -> None:
        """Go to a round, or to the next one whose coordinator is not suspected."""
        coordinator = self._coordinator_of(round_)
        while coordinator != self.me and self._suspects(coordinator):
            self.out.append((coordinator, Ack(self.instance, round_, ok=False)))
            round_ += 1
            coordinator = self._coordinator_of(round_)
        self._begin(now, round_)
        if coordinator != self.me:
            if round_ > 1:
                self._send_estimate()
            return
        self._counted[self.me] = self._my_estimate()
        self._try_to_propose()
        if self.phase is Phase.GATHERING and round_ > 1:
            self.out.append((None, Summons(self.instance, round_)))

    def _begin(self, now: Nanos, round_: int) -> None:
        """Forget the last round."""
        assert round_ > self.round or self.phase is Phase.IDLE
        self.round, self.since = round_, now
        self._repeated = 0
        self._forget()
        self._shift_to(Phase.GATHERING if self.coordinator == self.me else Phase.AWAITING)

    def _on_summons(self, now: Nanos, frame: Summons) -> None:
        if frame.round > self.round:
            self._enter(now, frame.round)
        elif frame.round < self.round:
            self._send_ack(frame.round, ok=self._ts == frame.round)
        elif self.phase is Phase.AWAITING and frame.round == 1:
            self._send_estimate()  # in later rounds it went out on entering

    def _my_estimate(self) -> Estimate:
        return Estimate(self.instance, self.round, self._ts, self._estimate)

    def _send_estimate(self) -> None:
        self.out.append((self.coordinator, self._my_estimate()))

    # Phase 2: the coordinator proposes

    def _on_estimate(self, now: Nanos, rank: int, frame: Estimate) -> None:
        if frame.round > self.round:
            self._enter(now, frame.round)
        if frame.round != self.round or self.phase is not Phase.GATHERING:
            return
        known = self._uncounted.get(rank) or self._counted.get(rank)
        # In one round an estimate changes only by a value that comes late.
        if known is None or (known.value is None and frame.value is not None):
            self._uncounted[rank] = frame
            self._count([rank])
            self._try_to_propose()

    def _count(self, ranks: Iterable[int]) -> None:
        """Count the estimates whose contents are here by now."""
        for rank in ranks:
            estimate = self._uncounted[rank]
            if estimate.value is None or self._holds(estimate.value):
                self._counted[rank] = self._uncounted.pop(rank)

    def _try_to_propose(self) -> None:
        """Propose, if enough is known: nothing was decided before round 1, later ones need a majority."""
        value = self._pick(self._counted.values())
        if value is None or (self.round > 1 and not self.enough(self._counted)):
            return
        if self.round > 1 and self._mark is not None and not is_quorum(self.size, self._counted):
            value = self._mark(value)
        self._adopt(value)
        self._shift_to(Phase.PROPOSED)
        self._counted.clear()
        self._uncounted.clear()
        self._acks.add(self.me)
        if not self._decide_if_acked():
            self._send_proposal(None)

    def _pick(self, estimates: Iterable[Estimate]) -> bytes | None:
        """The value adopted last; if none was ever, this member's own, or else the first that came."""
        best: Estimate | None = None
        for estimate in estimates:
            if estimate.value is not None and (best is None or estimate.ts > best.ts):
                best = estimate
        if best is None:
            return None
        return self._estimate if best.ts == 0 and self._estimate is not None else best.value

    def _send_proposal(self, ranks: Iterable[int] | None) -> None:
        assert self._estimate is not None
        frame = Proposal(self.instance, self.round, self._estimate)
        self.out += [(None, frame)] if ranks is None else [(rank, frame) for rank in ranks]

    # Phase 3: participants adopt and ack, or suspect

    def _on_proposal(self, now: Nanos, frame: Proposal) -> None:
        if frame.round < self.round:
            self._send_ack(frame.round, ok=self._ts == frame.round)
            return
        if frame.round > self.round:
            self._begin(now, frame.round)
        if self.phase is Phase.ACKED:
            self._send_ack(frame.round, ok=True)
            return
        self._adopt_if_held(frame.value)
        self._leave_if_suspected(now)

    def _adopt_if_held(self, value: bytes) -> None:
        if self._holds(value):
            self._pending = None
            self._adopt(value)
            self._shift_to(Phase.ACKED)
            self._send_ack(self.round, ok=True)
        elif self.phase is Phase.AWAITING:
            self._pending = value
            self._shift_to(Phase.FETCHING)

    def _adopt(self, value: bytes) -> None:
        self._estimate, self._ts = value, self.round

    def _leave_if_suspected(self, now: Nanos) -> None:
        """Nothing is to be had from a coordinator that is suspected."""
        if self.phase in (Phase.AWAITING, Phase.FETCHING, Phase.ACKED) and self._suspects(self.coordinator):
            self._leave(now)

    def _leave(self, now: Nanos) -> None:
        """Go on without the coordinator. Who acked does not take it back."""
        if self.phase is not Phase.ACKED:
            self._send_ack(self.round, ok=False)
        self._enter(now, self.round + 1)

    @property
    def _lap(self) -> int:
        """How often everybody had its turn: patience grows, so that it is enough for one in the end."""
        return 1 + (self.round - 1) // self.size

    def _send_ack(self, round_: int, *, ok: bool) -> None:
        self.out.append((self._coordinator_of(round_), Ack(self.instance, round_, ok)))

    # Phase 4: the coordinator decides

    def _on_ack(self, now: Nanos, rank: int, frame: Ack) -> None:
        if frame.round != self.round:
            return
        if frame.ok:
            if self.phase is Phase.PROPOSED:
                self._acks.add(rank)
                self._nacks.discard(rank)
                self._decide_if_acked()
        elif rank not in self._acks:
            self._nacks.add(rank)
            if not self.enough([other for other in range(self.size) if other not in self._nacks]):
                self._enter(now, self.round + 1)

    def _decide_if_acked(self) -> bool:
        if not self.enough(self._acks):
            return False
        assert self._estimate is not None
        value, acks = self._estimate, self._acks
        self._decide(value)
        self._acks = acks
        if self.size > 1:
            self.out.append((None, Decision(self.instance, value)))
        return True

    def _decide(self, value: bytes) -> None:
        self._shift_to(Phase.DECIDED)
        self._forget()
        self._estimate = self.decided = value

    def _tell(self, rank: int, frame: Frame, value: bytes) -> None:
        """Answer with the decision, unless it went out while the ack for it was under way."""
        if isinstance(frame, Ack) and frame.ok and self._acks and rank not in self._acks:
            self._acks.add(rank)
        else:
            self.out.append((rank, Decision(self.instance, value)))

    def learn(self, value: bytes) -> None:
        """What was decided, from somebody who has no part in it."""
        if self.decided is None:
            self._decide(value)

    # Common

    def _credible(self, rank: int, frame: Frame) -> bool:
        """Whether a correct member can have sent this."""
        if not 0 <= rank < self.size or rank == self.me:
            return False
        if isinstance(frame, Decision):
            return frame.instance == self.instance
        if not isinstance(frame, Estimate | Proposal | Ack | Summons) or frame.instance != self.instance:
            return False
        if not 1 <= frame.round <= self.round + FAR:
            return False
        coordinator = self._coordinator_of(frame.round)
        if isinstance(frame, Proposal | Summons):
            return coordinator == rank
        if isinstance(frame, Estimate):
            sound = frame.ts == 0 or (frame.ts < frame.round and frame.value is not None)
        else:
            sound = not frame.ok or self._has_proposed_in(frame.round)
        return sound and coordinator == self.me

    def _has_proposed_in(self, round_: int) -> bool:
        """Whether it can have; no more than the current round is remembered."""
        return round_ < self.round or (round_ == self.round and self.phase in (Phase.PROPOSED, Phase.DECIDED))

    def _coordinator_of(self, round_: int) -> int:
        return (round_ - 1) % self.size

    def _forget(self) -> None:
        self._pending = None
        self._counted, self._uncounted = {}, {}
        self._acks, self._nacks = set(), set()

    def _shift_to(self, phase: Phase) -> None:
        assert phase in MOVES[self.phase], f"{self.instance}: {self.phase} to {phase}"
        self.phase = phase


class FailStopConsensus(Consensus):
    """Where `suspects` never errs, everybody who is alive decides: then all but one may crash.

    Whoever is alive later was alive then, and has adopted what was decided.
    """

    def enough(self, ranks: Collection[int]) -> bool:
        """Whether all who are alive are among them."""
        return all(rank in ranks or self._suspects(rank) for rank in range(self.size) if rank != self.me)
