"""The end of a view: figure 4.4, with the messages fetched instead of sent along.

PRED says what a member accepted, as prefixes; whoever lacks something fetches it from those who have it. A
value of consensus (`Change`) names the next view and the prefixes that belong to this one, and it counts
only where these messages are (see `consensus.py`): so a majority has what is decided, as if the messages had
been in it. Messages that were fetched are laid aside until it is decided that they belong to the view.
"""

from collections.abc import Callable, Iterable

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox
from semcast.protocols.vsync.consensus import PATIENCE, Consensus, FailStopConsensus
from semcast.protocols.vsync.consensus_frames import ConsensusFrame, Instance
from semcast.protocols.vsync.frames import Change, Init, Pred
from semcast.protocols.vsync.settings import Agreement, Flush
from semcast.protocols.vsync.stream import ViewStream
from semcast.wire.limits import MAX_NAME

_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(Change).decode


class ViewChange:
    """One member's part in changing one view. After every call look at `change`."""

    consensus: type[Consensus] = Consensus

    def __init__(
        self,
        stream: ViewStream,
        out: Outbox,
        suspects: Callable[[MemberId], bool],
        *,
        stateful: bool,
    ) -> None:
        self._stream = stream
        self._view = stream.view()
        self._members = stream.members
        self._out = out
        self._suspects = suspects
        self._all = stream.vsync.flush is Flush.ALL
        self._needs_state = stream.vsync.state
        self._stateful = stateful
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
            instance, stream.rank, size, self._holds, lambda rank: suspects(self._members[rank])
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
            self._stateful,
            self._stream.order.report(),
        )

    @property
    def coordinates(self) -> bool:
        """Whether this member calls the others: where everybody tells everybody, PRED does."""
        return not self._all and self._consensus.coordinator == self._stream.rank

    def announce(self) -> None:
        """INIT, to everybody."""
        self._multicast(Init(self._view.id, list(self._leave.items()), list(self._join)))

    def add(self, leave: Iterable[tuple[MemberId, str]], join: Iterable[MemberId]) -> None:
        """There are further reasons to change the view."""
        self._merge(leave, join)

    def on_pred(self, now: Nanos, rank: int, frame: Pred) -> None:
        """What a member accepted (t6). Said again, it may have the state by now, and nothing else is new."""
        if not self._stream.credible(frame.upto) or self._stream.order.merge([frame.report]) is None:
            self.malformed += 1
            return
        known = self._preds.get(rank)
        if known is not None:
            if frame.stateful and not known.stateful:
                self._preds[rank] = msgspec.structs.replace(known, stateful=True)
                self._step(now)
            return
        self._merge(frame.leave, frame.join)
        self._preds[rank] = frame
        self._stream.want(now, frame.upto, rank)
        self._step(now)

    def on_consensus(self, now: Nanos, rank: int, frame: ConsensusFrame) -> None:
        """Consensus goes on."""
        value = getattr(frame, "value", None)
        if value is not None and self._decode(value) is None:
            self.malformed += 1
            return
        self._consensus.on_frame(now, rank, frame)
        self._step(now)

    def has_state(self, now: Nanos) -> None:
        """The state of the application has arrived here."""
        self._stateful = True
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

    def reachable(self) -> int:
        """How many members are not suspected, this one included."""
        me = self._members[self._stream.rank]
        return sum(member == me or not self._suspects(member) for member in self._members)

    @property
    def majority(self) -> int:
        """How many have to agree."""
        return self._consensus.majority

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
        self._propose(now)
        sends, self._consensus.out = self._consensus.out, []
        for rank, frame in sends:
            if rank is None:
                self._multicast(frame)
            else:
                self.frames += 1
                self._out.send(self._members[rank], frame)
        self._follow(now)

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
            self._out.send(self._members[coordinator], self._pred)

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
        if missing or len(used) < self.majority:
            return
        change = self._change(used)
        if change is None or not self.has(change):
            return
        self._proposed = True
        self._consensus.propose(now, _encode(change))

    def _given_up(self, rank: int) -> bool:
        """Whether a member was called so often in vain that it cannot hear, though it is heard."""
        return self._calls > PATIENCE and rank not in self._preds and not self._fail_stop

    def _change(self, used: dict[int, Pred]) -> Change | None:
        """The proposal: those who said what they accepted go on, but for those who leave."""
        report = self._stream.order.merge([pred.report for pred in used.values()])
        if report is None:
            return None
        going_on = [self._members[rank] for rank in sorted(used) if self._members[rank] not in self._leave]
        gone = {member: "failed" for member in self._members if member not in going_on}
        left = {member: self._leave.get(member, cause) for member, cause in gone.items()}
        providers = [member for member in going_on if used[self._members.index(member)].stateful]
        if self._needs_state and going_on and not providers:
            return None
        joined = self._joining(len(going_on))
        return Change(
            members=[*going_on, *joined],
            joined=joined,
            left=list(left.items()),
            cut=self.cut_of(used),
            providers=providers,
            report=report,
        )

    def cut_of(self, used: dict[int, Pred]) -> list[int]:
        """Everything that anybody of these accepted belongs to the view, also what only a leaver has."""
        return [max(column) for column in zip(*(pred.upto for pred in used.values()), strict=True)]

    def _joining(self, going_on: int) -> list[MemberId]:
        """Who is let in: each name once, and fewer than go on, so that these are a majority without them."""
        latest: dict[str, MemberId] = {}
        for member in sorted(self._join):
            latest[member.name] = member
        room = self._stream.vsync.most_members() - going_on
        most = 0 if going_on == 0 else max(min(going_on - 1, room), 1 if going_on == 1 and room > 0 else 0)
        return sorted(latest.values())[:most]

    def _holds(self, value: bytes) -> bool:
        change = self._decode(value)
        return change is not None and self.has(change)

    def has(self, change: Change) -> bool:
        """Whether everything that the value names is here."""
        return self._stream.has(change.cut) and self._stream.order.has(change.report)

    def _decode(self, value: bytes) -> Change | None:
        try:
            change = _read(value)
        except msgspec.MsgspecError:
            return None
        return change if self._possible(change) else None

    def _possible(self, change: Change) -> bool:
        """Whether a correct member can have proposed this."""
        members = set(change.members)
        return (
            self._stream.credible(change.cut)
            and len(members) == len(change.members) <= self._stream.vsync.most_members()
            and members.issuperset(change.providers)
            and members.issuperset(change.joined)
            and members <= {*self._members, *change.joined}
            and self._stream.order.merge([change.report]) is not None
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
        if self.has(self._decided):
            self.change = self._decided

    @property
    def decision(self) -> bytes | None:
        """For those who have not heard of it."""
        return self._consensus.decided

    def _multicast(self, frame: Frame) -> None:
        self.frames += len(self._members) - 1
        self._out.multicast(frame)
