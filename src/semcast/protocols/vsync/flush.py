"""The end of a view: figure 4.4, with the messages fetched instead of sent along.

PRED says what a member accepted, as prefixes; whoever lacks something fetches it from those who have it. A
value of consensus (`Change`) names the next view and the prefixes that belong to this one, and it counts
only where these messages are (see `consensus.py`): so a majority has what is decided, as if the messages had
been in it. Messages that were fetched are laid aside until it is decided that they belong to the view.

*Re-forming*, beyond the paper: where no quorum is left, all who live may end the view, once everybody else
is known to be dead. Everybody who lives says so first (`gone`), and from then on ignores what the dead have
sent: else a decision of theirs, still under way, might contradict what the living decide.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import ClassVar

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.core.quorum import fewest, is_quorum
from semcast.protocols.pieces import Courier
from semcast.protocols.vsync import changes
from semcast.protocols.vsync.changes import Change
from semcast.protocols.vsync.consensus import PATIENCE, Consensus, FailStopConsensus
from semcast.protocols.vsync.consensus_frames import ConsensusFrame, Decision, Instance
from semcast.protocols.vsync.founding import FAR
from semcast.protocols.vsync.frames import Init, Known, Pred
from semcast.protocols.vsync.hopeless import FAILURES
from semcast.protocols.vsync.ledger import Adopted, Ledger
from semcast.protocols.vsync.readership import UNREAD
from semcast.protocols.vsync.settings import Agreement, Flush
from semcast.protocols.vsync.stream import ViewStream
from semcast.wire.limits import MAX_NAME

_REFORMED = 1_000_000
"""Re-formed views have multiples of it as numbers: no view that the dead may have agreed on has the same."""


def next_reformed(after: int) -> int:
    """The number of the view that is re-formed after one.

    >>> next_reformed(7), next_reformed(1_000_000), next_reformed(1_000_003)
    (1000000, 2000000, 2000000)
    """
    return (after // _REFORMED + 1) * _REFORMED


def first_position(view: int) -> int:
    """How many positions of the total order count as taken, at least, when a view begins.

    Each re-formation has 2**32 of its own: the dead may have had messages at any before.

    >>> first_position(1), first_position(2_000_000) == 2 << 32
    (0, True)
    """
    return view // _REFORMED << 32


class Program(msgspec.Struct, frozen=True):
    """What a member says of its program when a view ends; as in `Pred`."""

    stateful: bool
    reads: bool
    stopped: bool = False
    overfull: bool = False
    avoid: MemberId | None = None


class ViewChange:
    """One member's part in changing one view. After every call look at `change`."""

    consensus: ClassVar[type[Consensus]] = Consensus

    def __init__(
        self,
        stream: ViewStream,
        courier: Courier,
        suspects: Callable[[MemberId], bool],
        ledger: Ledger,
        program: Program,
    ) -> None:
        self._stream = stream
        self._view = stream.view()
        self._members = stream.members
        self._courier = courier
        self._suspects = suspects
        self._all = stream.vsync.flush is Flush.ALL
        self._needs_state = stream.vsync.state
        self._program = program
        self._ledger = ledger
        self._adopted = 0  # the round in which the value was adopted that is written down
        self._withheld = 0  # records that what is said here waits for
        self._latest = self._view.id  # the highest number of a view that anybody spoke of
        self._gone: set[MemberId] = set()
        self._leave: dict[MemberId, str] = {}
        self._join: dict[MemberId, None] = {}
        self._preds: dict[int, Pred] = {}
        self._told = -1  # rank of the coordinator that was told
        self._proposed = False
        self.malformed = 0
        """Frames dropped because no correct member sends them."""
        self.frames = 0
        """Sent to change this view, by this member; a multicast counts once for each destination."""
        self.change: Change | None = None
        """What was decided, once everything it names is here."""
        self._decided: Change | None = None
        size = len(self._members)
        instance = Instance(self._view.id, 0)
        self._calls = 0
        self._fail_stop = stream.vsync.agreement is Agreement.ORACLE
        consensus = FailStopConsensus if self._fail_stop else self.consensus
        self._consensus = consensus(
            instance,
            stream.rank,
            size,
            self._holds,
            lambda rank: suspects(self._members[rank]),
            None if self._fail_stop else self._mark,
        )

    # Inputs

    def begin(self, now: Nanos, leave: dict[MemberId, str], join: Iterable[MemberId]) -> None:
        """Block, and tell the others (t4, t5)."""
        self._merge(leave.items(), join)
        self._stream.freeze()
        self._pred = self._preds[self._stream.rank] = self.pred()
        self._consensus.join(now)
        self._step(now)

    def pred(self) -> Pred:
        """What this member accepted in this view."""
        return Pred(
            self._view.id,
            list(self._stream.queued),
            list(self._leave.items()),
            list(self._join),
            self._program.stateful,
            self._stream.order.report(),
            self._program.reads,
            sorted(self._gone),
            self._program.stopped,
            self._program.overfull,
            self._program.avoid,
        )

    @property
    def coordinates(self) -> bool:
        """Whether this member calls the others: where everybody tells everybody, PRED does."""
        return not self._all and self._consensus.coordinator == self._stream.rank

    def announce(self) -> None:
        """INIT, to everybody."""
        self._multicast(Init(self._view.id, list(self._leave.items()), list(self._join), sorted(self._gone)))

    def add(self, leave: Iterable[tuple[MemberId, str]], join: Iterable[MemberId]) -> None:
        """There are further reasons to change the view."""
        self._merge(leave, join)

    def bury(self, now: Nanos, members: Iterable[MemberId], latest: int = 0) -> None:
        """These are dead for certain; nobody lives who was in a view with a number above `latest`."""
        me = self._members[self._stream.rank]
        found = {member for member in members if member in self._members and member != me}
        self._latest = max(self._latest, latest)
        if found <= self._gone or self._fail_stop:
            return
        self._gone |= found
        gone = sorted(self._gone)
        self._pred = msgspec.structs.replace(self._pred, gone=gone)
        mine = self._preds[self._stream.rank]
        self._preds[self._stream.rank] = msgspec.structs.replace(mine, gone=gone)
        if self._consensus.coordinator == self._stream.rank:
            self.announce()
        self._tell(again=True)
        self._step(now)

    def on_pred(self, now: Nanos, rank: int, frame: Pred) -> None:
        """What a member accepted (t6).

        Said again, it may have the state by now, or know of more who are dead; nothing else is new.
        """
        if self._members[rank] in self._gone:
            return
        if not self._stream.credible(frame.upto) or self._stream.order.merge([frame.report]) is None:
            self.malformed += 1
            return
        known = self._preds.get(rank)
        if known is not None:
            stateful = known.stateful or frame.stateful
            if stateful != known.stateful or frame.gone != known.gone:
                self._preds[rank] = msgspec.structs.replace(known, stateful=stateful, gone=frame.gone)
                self._step(now)
            self.bury(now, frame.gone)
            return
        self._merge(frame.leave, frame.join)
        self._preds[rank] = frame
        self._stream.want(now, frame.upto, rank)
        self._step(now)
        self.bury(now, frame.gone)

    def on_consensus(self, now: Nanos, rank: int, frame: ConsensusFrame) -> None:
        """Consensus goes on. The dead have no part in it."""
        if self._members[rank] in self._gone:
            return
        value = getattr(frame, "value", None)
        if value is not None and self._decode(value) is None:
            self.malformed += 1
            return
        self._consensus.on_frame(now, rank, frame)
        self._step(now)

    def on_newcomer(self, now: Nanos, source: MemberId, frame: Decision) -> bool:
        """How the view ended, from somebody who is let into the next; False if that is not said there.

        Who decided it may have crashed before others heard it. It must not have been buried, though: the
        living may have agreed on something else.
        """
        change = self._decode(frame.value)
        if change is None or source not in change.joined:
            return False
        if not self._gone:
            self._consensus.learn(frame.value)
            self._step(now)
        return True

    def has_state(self, now: Nanos) -> None:
        """The state of the application has arrived here."""
        self._program = msgspec.structs.replace(self._program, stateful=True)
        self._pred = msgspec.structs.replace(self._pred, stateful=True)
        self._preds[self._stream.rank] = msgspec.structs.replace(
            self._preds[self._stream.rank], stateful=True
        )
        self._tell(again=True)
        self._step(now)

    def on_progress(self, now: Nanos) -> None:
        """Messages arrived, or somebody is suspected, or not any more."""
        self._consensus.recheck(now)
        self._step(now)

    def on_timer(self, now: Nanos) -> None:
        """Repeat what may have been lost."""
        self._calls += 1
        self.announce()
        self._tell(again=True)
        self._consensus.resend(now)
        self._stream.order.resend(now)
        self._step(now)

    def reachable(self) -> list[int]:
        """Ranks of the members that are not suspected, this one included."""
        me = self._stream.rank
        return [rank for rank, each in enumerate(self._members) if rank == me or not self._suspects(each)]

    @property
    def cut_off(self) -> bool:
        """Whether too few are within reach to agree on anything."""
        return not self._consensus.enough(self.reachable())

    @property
    def needed(self) -> int:
        """How many are always enough."""
        return fewest(len(self._members))

    # The course of a change

    def _merge(self, leave: Iterable[tuple[MemberId, str]], join: Iterable[MemberId]) -> None:
        members = set(self._members)
        self._leave.update((member, cause) for member, cause in leave if member in members)
        for member in join:
            fits = len(member.name) <= MAX_NAME and len(self._join) < self._stream.vsync.most_members()
            if member not in members and fits:
                self._join[member] = None

    def _step(self, now: Nanos) -> None:
        if self.change is not None:
            return
        self._tell()
        self._reform(now)
        self._propose(now)
        self._write_down(now)
        if not self._withheld:
            self._say()
            self._follow(now)

    def _say(self) -> None:
        sends, self._consensus.out = self._consensus.out, []
        for rank, frame in sends:
            if rank is None:
                self._multicast(frame)
            else:
                self.frames += 1
                self._courier.send(self._members[rank], frame)

    def _write_down(self, now: Nanos) -> None:
        """What this member agrees to it must know of after a crash, before anybody relies on it."""
        ts, value = self._consensus.adopted
        change = None if value is None or ts <= self._adopted else self._decode(value)
        if change is None or not self._ledger.kept:
            return
        self._adopted = ts
        self._withheld += 1
        record = Adopted(Known(change.view, [*change.members] or list(self._members)))
        self._ledger.write(now, record, self._written)

    def _written(self, now: Nanos) -> None:
        self._withheld -= 1
        self._step(now)

    def _alive(self) -> frozenset[int]:
        """Ranks of those who are not known to be dead."""
        return frozenset(rank for rank, each in enumerate(self._members) if each not in self._gone)

    def _reform(self, now: Nanos) -> None:
        """Let all who live suffice, once each of them says that the others are dead."""
        alive = self._alive()
        if not self._gone or is_quorum(len(self._members), alive):
            return
        if self._consensus.coordinator == self._stream.rank and self.agreed_on_dead(alive):
            self._consensus.reform(now, alive)

    def agreed_on_dead(self, alive: Iterable[int]) -> bool:
        """Whether each of these ignores the others."""
        return all(rank in self._preds and self._gone.issubset(self._preds[rank].gone) for rank in alive)

    def _tell(self, *, again: bool = False) -> None:
        """PRED, to all or to the coordinator of the round."""
        coordinator = self._consensus.coordinator
        if self._all:
            if self._told < 0 or again:
                self._told = coordinator
                self._multicast(self._pred)
        elif coordinator != self._stream.rank and (again or coordinator != self._told):
            self._told = coordinator
            self.frames += 1
            self._courier.send(self._members[coordinator], self._pred)

    def _propose(self, now: Nanos) -> None:
        """t7: a majority said what it accepted, and so did everybody who is not suspected."""
        if self._proposed or self._consensus.decided is not None:
            return
        if not self._all and self._consensus.coordinator != self._stream.rank:
            return
        used = {rank: pred for rank, pred in self._preds.items() if self._stream.has(pred.upto)}
        missing = [
            member
            for rank, member in enumerate(self._members)
            if rank not in used and not self._suspects(member) and not self._given_up(rank)
        ]
        if missing or not self._consensus.enough(used):
            return
        change = self._change(used)
        if change is None or not self.has(change) or (not change.members and self._awaits_heir(used)):
            return
        self._proposed = True
        self._consensus.propose(now, changes.encode(change, self._members))

    def _awaits_heir(self, used: Collection[int]) -> bool:
        """Whether somebody may yet be heard who would go on: else nobody would, as all who are here leave."""
        silent = [self._members[rank] for rank in self._others(used)]
        lives = any(member not in self._leave and member not in self._gone for member in silent)
        return lives and self._calls <= PATIENCE and not self._fail_stop

    def _given_up(self, rank: int) -> bool:
        """Whether a member was called so often in vain that it cannot hear, though it is heard."""
        return self._calls > PATIENCE and rank not in self._preds and not self._fail_stop

    def _change(self, used: dict[int, Pred]) -> Change | None:
        """The proposal: those who said what they accepted go on, but for those who leave."""
        report = self._stream.order.merge([pred.report for pred in used.values()])
        if report is None:
            return None
        quorum = self._fail_stop or is_quorum(len(self._members), used)
        # All who live go on from a view that is re-formed.
        leave = {**self._put_out(used), **self._overfull(used)} if quorum else {}
        going_on = [self._members[rank] for rank in sorted(used) if self._members[rank] not in leave]
        gone = {member: "failed" for member in self._members if member not in going_on}
        left = {member: leave.get(member, cause) for member, cause in gone.items()}
        ranks = self._stream.buffers.ranks
        holders = self._holders(going_on, used)
        joined = self._joining(going_on)
        needy = any(used[ranks[member]].reads for member in going_on) or (self._needs_state and bool(joined))
        lost = bool(going_on) and needy and not holders
        staying = [rank for rank in used if self._members[rank] in going_on]
        if lost and any(self._may_have_state(rank, used) for rank in self._others(staying)):
            return None
        change = Change(
            members=[*going_on, *joined],
            joined=joined,
            left=list(left.items()),
            cut=self.cut_of(used),
            providers=holders,
            report=report,
            view=self._view.id + 1,
            lost=lost,
            unread=bool(holders) and used[ranks[holders[0]]].stopped,
        )
        return change if quorum else self._reformed(change)

    def _put_out(self, used: dict[int, Pred]) -> dict[MemberId, str]:
        """Who leaves. Those who would rather stay do, if too few would be left: they are the group."""
        rest = [rank for rank in used if self._members[rank] not in self._leave]
        if is_quorum(len(self._members), rest):
            return self._leave
        return {member: cause for member, cause in self._leave.items() if cause not in FAILURES}

    def _overfull(self, used: dict[int, Pred]) -> dict[MemberId, str]:
        """Who cannot go on because of its program, as long as enough others do."""
        found = [rank for rank, pred in used.items() if pred.overfull]
        rest = [rank for rank in used if rank not in found and self._members[rank] not in self._leave]
        enough = is_quorum(len(self._members), rest)
        return {self._members[rank]: UNREAD for rank in found} if enough else {}

    def _holders(self, going_on: Iterable[MemberId], used: dict[int, Pred]) -> list[MemberId]:
        """Who can hand over the state; last those who are least likely to do it soon."""
        ranks, avoided = self._stream.buffers.ranks, {pred.avoid for pred in used.values()}
        holders = [member for member in going_on if used[ranks[member]].stateful]
        return sorted(holders, key=lambda member: (used[ranks[member]].stopped, member in avoided))

    def _others(self, ranks: Collection[int]) -> list[int]:
        return [rank for rank in range(len(self._members)) if rank not in ranks]

    def _may_have_state(self, rank: int, used: dict[int, Pred]) -> bool:
        """Whether a member may live that has the state and would hand it over."""
        if rank in used:
            return used[rank].stateful
        return self._members[rank] not in self._gone

    def _reformed(self, change: Change) -> Change:
        return msgspec.structs.replace(change, view=next_reformed(self._latest), reformed=True)

    def _mark(self, value: bytes) -> bytes:
        """The same change, as fewer than a quorum agree to it."""
        change = self._decode(value)
        assert change is not None, "nothing else is adopted"
        return value if change.reformed else changes.encode(self._reformed(change), self._members)

    def cut_of(self, used: dict[int, Pred]) -> list[int]:
        """Everything that anybody of these accepted belongs to the view, also what only a leaver has."""
        return [max(column) for column in zip(*(pred.upto for pred in used.values()), strict=True)]

    def _joining(self, going_on: Sequence[MemberId]) -> list[MemberId]:
        """Who is let in: each name once, and no more than go on, so that these are a quorum without them."""
        latest = {member.name: member for member in sorted(self._join)}
        for member in going_on:
            latest.pop(member.name, None)
        room = self._stream.vsync.most_members() - len(going_on)
        return sorted(latest.values())[: max(min(len(going_on), room), 0)]

    def _holds(self, value: bytes) -> bool:
        change = self._decode(value)
        return change is not None and self.has(change)

    def has(self, change: Change) -> bool:
        """Whether everything that the value names is here."""
        return self._stream.has(change.cut) and self._stream.order.has(change.report)

    def _decode(self, value: bytes) -> Change | None:
        change = changes.decode(value, self._members)
        return change if change is not None and self._possible(change) else None

    def _possible(self, change: Change) -> bool:
        """Whether a correct member can have proposed this."""
        members = set(change.members)
        return (
            self._stream.credible(change.cut)
            and len(members) == len(change.members) <= self._stream.vsync.most_members()
            and members.issuperset(change.providers)
            and not set(self._members).intersection(change.joined)
            and self._stream.order.merge([change.report]) is not None
            and self._view.id < change.view < FAR
            and change.view == (next_reformed(change.view - 1) if change.reformed else self._view.id + 1)
        )

    def _follow(self, now: Nanos) -> None:
        """Fetch what values under discussion name, and what is decided."""
        for rank, value in self._consensus.wanted():
            change = self._decode(value)
            if change is not None:
                self._stream.want(now, change.cut, rank)
        if self._consensus.decided is None:
            return
        if self._decided is None:
            self._decided = self._decode(self._consensus.decided)
            assert self._decided is not None, "a majority understood what it decided"
            for rank in range(len(self._members)):
                self._stream.want(now, self._decided.cut, rank)  # most of them have it
        goes_on = self._members[self._stream.rank] in self._decided.members
        if not goes_on or self.has(self._decided):  # who does not go on delivers nothing more
            self.change = self._decided

    @property
    def decision(self) -> bytes | None:
        """For those who have not heard of it."""
        return self._consensus.decided

    def _multicast(self, frame: Frame) -> None:
        self.frames += len(self._members) - 1
        self._courier.multicast(frame)
