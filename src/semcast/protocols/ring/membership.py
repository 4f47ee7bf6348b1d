"""The membership state machine (Amir 1995, section 5.2.2): from several rings to one.

One handler for each of the five events. Deviations: proposals are repeated while a member waits, since
the network loses them; a member of the own ring that proposes alone, or that is in a later configuration,
has given the ring up, which is learned at once instead of by a timeout; a representative to whom nobody
comes goes back to its ring; somebody who counts this member as failed is counted as failed in turn; a
Form token must have a higher number than any the member has followed, so that no two members go through
two attempts in different orders; a member whose application has yet to take what the last change of
configuration left it does not take part in the next.
"""

from collections.abc import Iterable
from random import Random

from semcast.core.events import TransitionalView, ViewChange
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.views import View
from semcast.protocols.ring import recovery
from semcast.protocols.ring.flow import Flow
from semcast.protocols.ring.frames import (
    AttemptJoin,
    ConfId,
    ConfRecord,
    FormToken,
    Join,
    Leave,
    Packet,
    Presence,
    RecoveryToken,
    Token,
)
from semcast.protocols.ring.operational import OperationalRing
from semcast.protocols.ring.ordering import RingOrder, Span, spans
from semcast.protocols.ring.packing import Assembly
from semcast.protocols.ring.passing import RingTimer
from semcast.protocols.ring.recovery import Recovery, record_of
from semcast.protocols.ring.settings import RingSettings
from semcast.protocols.ring.states import Cause, State
from semcast.wire.limits import MAX_MEMBERS

Sets = tuple[frozenset[MemberId], frozenset[MemberId]]
"""Representatives, and those of them that failed."""


PATIENCE = 10
"""Timeouts' worth of time that an agreement or a recovery may take before it is given up."""

FAR = 1 << 32
"""No member is so many configurations ahead of another."""


class MembershipRing(OperationalRing):
    """A member that finds others and agrees with them on a ring."""

    def __init__(self, me: MemberId, settings: RingSettings, rng: Random, out: Outbox) -> None:
        super().__init__(me, settings, rng, out)
        self._reps: set[MemberId] = set()
        self._failed: set[MemberId] = set()
        self._proposals: dict[MemberId, Sets] = {}
        self._searching = False  # just started, and nobody was heard of yet
        self._awaits_form = False
        self._commit_until: Nanos = 0
        self.form_id: ConfId | None = None
        self._candidates: tuple[MemberId, ...] = ()
        self.my_obligation_set: set[MemberId] = {me}
        self._recovery: Recovery | None = None
        self._ring: RingOrder | None = None  # the new one, while this member is in the EVS state
        self._evs_until: Nanos = 0
        self._together: set[MemberId] = set()
        self._promised = False

    @property
    def representative(self) -> MemberId:
        """Who speaks for the ring of this member."""
        return self.order.members[0] if self.alive else self.me

    def buffered(self) -> int:
        """Messages in the queues, and packets kept for others, also for a ring that is being formed."""
        return super().buffered() + (0 if self._ring is None else len(self._ring.store))

    # Foreign messages

    def _notice(self, now: Nanos, source: MemberId, conf: ConfId, *, alone: bool = False) -> bool:
        """Look at where somebody stands; False if that is an old story."""
        ours = self.order.conf
        if source in self.order.members and conf != ours and conf.number < ours.number:
            self.stats.stale += 1
            return False
        gone = source in self.order.members and (alone or conf != ours)
        if gone and self._ring_works() and source != self.me:
            self.alive = False
            if self.state is State.OPERATIONAL:
                self._gather(now, Cause.MEMBER_WENT)
        elif conf != ours and self._may_merge():
            self._gather(now, Cause.FOREIGN_MESSAGE)
        return True

    def _may_merge(self) -> bool:
        """Whether it is up to this member to form a larger ring.

        Each new configuration adds to what waits for the application: one that is behind first has to catch
        up, and who would not follow a Form token must not ask for one.
        """
        works = self.state is State.OPERATIONAL and self.representative == self.me
        return works and not self._queue.overfull

    def _on_presence(self, now: Nanos, source: MemberId, frame: Presence) -> None:
        self._notice(now, source, frame.conf)

    def _on_attempt_join(self, now: Nanos, source: MemberId, frame: AttemptJoin) -> None:
        if self._notice(now, source, frame.conf, alone=frame.alone):
            self.highest = max(self.highest, frame.highest)
            self._collect(now, source)

    def _collect(self, now: Nanos, source: MemberId) -> None:
        if self.state is State.GATHER and source not in self._failed and len(self._reps) < MAX_MEMBERS:
            self._reps.add(source)
            if self._searching:
                self._searching = False
                self._plan_gather(now)

    def _on_leave(self, now: Nanos, source: MemberId, frame: Leave) -> None:
        if frame.conf != self.order.conf or source not in self.order.members:
            self.stats.stale += 1
            return
        self._left.add(source)
        self.alive = False
        if self.state is State.OPERATIONAL:
            self._gather(now, Cause.MEMBER_WENT, [source])
        elif self.state in (State.GATHER, State.COMMIT):
            self._reps.add(source)
            self._failed.add(source)
            if self.state is State.COMMIT:
                self._propose(now)

    # Gather

    def _gather(self, now: Nanos, cause: Cause, failed: Iterable[MemberId] = ()) -> None:
        """Begin to collect representatives."""
        self._shift_to(State.GATHER, cause)
        self._failed = {*failed} - {self.me}
        self._reps = {self.me, *self._failed}
        self._proposals.clear()
        self._awaits_form = False
        self.out.announce(AttemptJoin(self.order.conf, self.highest, not self.alive))
        self._plan_gather(now)

    def _plan_gather(self, now: Nanos) -> None:
        wait = self.settings.gather
        self.out.set_timer(RingTimer.GATHER, now + wait + self._rng.randrange(wait // 4 + 1))

    def _on_gather_timer(self, now: Nanos) -> None:
        if self.state is not State.GATHER:
            return
        if self._nobody_came() or (self._queue.overfull and self.alive):
            self._go_back(now)
            return
        if self._queue.overfull:
            self._plan_gather(now)
            return
        self._shift_to(State.COMMIT, Cause.GATHER_TIMEOUT)
        self._commit_until = now + PATIENCE * self.settings.commit
        self._propose(now)

    def _nobody_came(self) -> bool:
        return self.alive and self._reps - self._failed == {self.me}

    def _go_back(self, now: Nanos) -> None:
        self._shift_to(State.OPERATIONAL, Cause.NOBODY_CAME)
        self._want_token(now)

    # Commit

    def _propose(self, now: Nanos) -> None:
        """Multicast the two sets, and give everybody time to agree with them."""
        self._awaits_form = False
        self._say_join()
        self.out.set_timer(RingTimer.JOIN, now + self.settings.join)
        self.out.set_timer(RingTimer.COMMIT, now + self.settings.commit)
        self._agree(now)

    def _say_join(self) -> None:
        reps, failed = sorted(self._reps), sorted(self._failed)
        self.out.announce(Join(self.order.conf, self.highest, not self.alive, reps, failed))

    def _on_join_timer(self, now: Nanos) -> None:
        if self.state is State.COMMIT:
            self._say_join()
            self.out.set_timer(RingTimer.JOIN, now + self.settings.join)

    def _on_join(self, now: Nanos, source: MemberId, frame: Join) -> None:
        if not {*frame.failed} < {*frame.reps} or source not in frame.reps or source in frame.failed:
            self.stats.malformed += 1
            return
        if not self._notice(now, source, frame.conf, alone=frame.alone):
            return
        self.highest = max(self.highest, frame.highest)
        if self.state is State.GATHER:
            self._collect(now, source)
        elif self.state is State.COMMIT and source not in self._failed:
            self._on_proposal(now, source, (frozenset(frame.reps), frozenset(frame.failed)))

    def _on_proposal(self, now: Nanos, source: MemberId, proposal: Sets) -> None:
        if source in self._proposals or len(self._proposals) < MAX_MEMBERS:
            self._proposals[source] = proposal
        reps, failed = proposal
        if self.me in failed:
            self._reps.add(source)
            self._failed.add(source)
            self._propose(now)
        elif source not in self._reps or not reps <= self._reps or not failed <= self._failed:
            if now > self._commit_until or len(self._reps | reps) > MAX_MEMBERS:
                self.stats.malformed += 1  # sets that never stop growing
                return
            self._reps |= {source, *reps}
            self._failed |= failed
            self._propose(now)
        else:
            self._agree(now)

    def _agree(self, now: Nanos) -> None:
        """See whether everybody who is needed has proposed the same."""
        ours = (frozenset(self._reps), frozenset(self._failed))
        needed = self._reps - self._failed - {self.me}
        if self._awaits_form or any(self._proposals.get(rep) != ours for rep in needed):
            return
        if self._nobody_came():
            self._go_back(now)
        elif min(needed, default=self.me) > self.me or not needed:
            self._start_form(now)
        else:
            self._awaits_form = True
            self.out.set_timer(RingTimer.COMMIT, now + self.settings.commit)

    def _on_commit_timer(self, now: Nanos) -> None:
        """Go on without those who did not agree, or who agreed and then did not send the Form token."""
        if self.state is not State.COMMIT:
            return
        needed = self._reps - self._failed - {self.me}
        if self._awaits_form and needed:
            self._failed.add(min(needed))
        else:
            ours = (frozenset(self._reps), frozenset(self._failed))
            self._failed |= {rep for rep in needed if self._proposals.get(rep) != ours}
        self._propose(now)

    # Form

    def _start_form(self, now: Nanos) -> None:
        self.highest += 1
        form_id = self._conf_id(self.highest)
        join_list = sorted(self._reps - self._failed)
        token = FormToken(form_id, 1, 1, join_list, [], [])
        self._enter_form(now, token, Cause.AGREED)

    def _on_form_token(self, now: Nanos, source: MemberId, token: FormToken) -> None:
        if token.form_id == self.form_id:
            if token.number <= self._token_number:
                self.stats.stale += 1
                self._acknowledge(source, token)
            elif not token.memb_list or self._predecessor(token) != source:
                self.stats.malformed += 1
            elif self.state is State.FORM:
                self._acknowledge(source, token)
                self._on_form_again(now, token)
            elif self.state is State.EVS and token.rotation == 2 and self._leads(token):
                self._acknowledge(source, token)
                self._start_recovery(now, token)
        elif not self._welcome(source, token):
            self.stats.stale += 1
        else:
            self._acknowledge(source, token)
            self._enter_form(now, token, Cause.FORM_TOKEN)

    def _predecessor(self, token: FormToken) -> MemberId | None:
        """Who passes this member a Form token that it knows already."""
        members = [member for member, _ in token.memb_list]
        return members[members.index(self.me) - 1] if self.me in members else None

    def _welcome(self, source: MemberId, token: FormToken) -> bool:
        """Whether this member goes along with a Form token it has not seen, from whom it should come."""
        members = [member for member, _ in token.memb_list]
        if self.me in members:
            place = members.index(self.me)
            # Whoever listed this member must have known where it is: it may have moved on since.
            known = token.memb_list[place][1] == self.order.conf
            invited = known and place > 0 and members[place - 1] == source
        else:
            invited = self.me in token.join_list and members[-1:] == [source]
        return (
            token.rotation == 1
            and invited
            and not self._queue.overfull
            and token.form_id.number > self._least_number()
            and self._believable(token.form_id)
            and self.state in (State.OPERATIONAL, State.GATHER, State.COMMIT)
            and all(map(self._credible, token.confs_list))
        )

    def _credible(self, record: ConfRecord) -> bool:
        if not recovery.credible(record):
            return False
        ours = record.conf == self.order.conf
        return not ours or self.order.plausible_record(record.aru, record.highest_seq)

    def _believable(self, conf: ConfId) -> bool:
        return conf.number <= self.highest + FAR

    def _least_number(self) -> int:
        """Form tokens must be above: nobody takes part in two attempts in different orders."""
        return max(self.order.conf.number, self.form_id.number if self.form_id is not None else 0)

    def _enter_form(self, now: Nanos, token: FormToken, cause: Cause) -> None:
        """First receipt: put in what this member knows."""
        memb_list = list(token.memb_list)
        listed = {member for member, _ in memb_list}
        if self.me not in listed:
            others = self.order.members if self.alive else ()
            known = listed | {*token.join_list}
            memb_list.append((self.me, self.order.conf))
            memb_list += [(member, self.order.conf) for member in others if member not in known]
        self._shift_to(State.FORM, cause)
        self.alive = False
        self._held = None
        self.form_id = token.form_id
        self.highest = max(self.highest, token.form_id.number)
        self._token_number = token.number
        self._heard_at = now
        mine = record_of(self.order, self.my_obligation_set)
        confs_list = recovery.replace(token.confs_list, mine)
        self._candidates = tuple(dict.fromkeys((*(m for m, _ in memb_list), *token.join_list)))
        self._forward(
            now,
            FormToken(token.form_id, token.number + 1, 1, token.join_list, memb_list, confs_list),
        )

    def _forward(self, now: Nanos, token: FormToken) -> None:
        members = [member for member, _ in token.memb_list]
        place = members.index(self.me) + 1
        if place < len(members):
            dest = members[place]
        else:
            unseen = [rep for rep in token.join_list if rep not in members] if token.rotation == 1 else []
            dest = unseen[0] if unseen else members[0]
        if dest == self.me:
            self._on_form_token(now, self.me, token)
        else:
            self._pass(now, dest, token)

    def _on_form_again(self, now: Nanos, token: FormToken) -> None:
        """Second receipt: everybody's knowledge is in it."""
        members = tuple(member for member, _ in token.memb_list)
        if self._leads(token) is not (token.rotation == 1) or self.me not in members:
            self.stats.malformed += 1
            return
        records = [record for record in token.confs_list if record.conf == self.order.conf]
        if len(records) != 1 or len(set(members)) != len(members) or not self._credible(records[0]):
            self.stats.malformed += 1
            return
        self._accept(now, token)
        self._shift_to(State.EVS, Cause.FORM_AGAIN)
        self._evs_until = now + PATIENCE * self.settings.token_loss
        self._candidates = members
        self._together = {member for member, conf in token.memb_list if conf == self.order.conf}
        self._recovery = self._recovery_of(records[0])
        self._promised = False
        self._ring = self._order(token.form_id, members)
        onward = FormToken(
            token.form_id, token.number + 1, 2, token.join_list, token.memb_list, token.confs_list
        )
        self._forward(now, onward)

    def _leads(self, token: FormToken) -> bool:
        """Whether this member made the token."""
        return token.memb_list[0][0] == self.me

    def _recovery_of(self, record: ConfRecord) -> Recovery:
        return Recovery(self.order, record)

    def _start_recovery(self, now: Nanos, token: FormToken) -> None:
        """The Form token is back for the second time: the new ring is formed, and begins to recover."""
        self._accept(now, token)
        assert self._ring is not None
        first = RecoveryToken(token.form_id, token.number + 1, b"", [])
        self._on_recovery_token(now, self._ring.predecessor, first)

    # The EVS state

    def _on_recovery_token(self, now: Nanos, source: MemberId, token: RecoveryToken) -> None:
        """Ask for what is missing, answer what others miss, and install when nobody misses anything."""
        ring, recovering = self._ring, self._recovery
        if ring is None or recovering is None or token.conf != ring.conf or source != ring.predecessor:
            self.stats.stale += 1
            return
        if token.number <= self._token_number:
            self.stats.stale += 1
            self._acknowledge(source, token)
            return
        claimed = int.from_bytes(token.finished, "little")
        if claimed >> len(ring.members) or (claimed >> ring.rank & 1 and not self._promised):
            self.stats.malformed += 1
            return
        self._accept(now, token)
        self._acknowledge(source, token)
        if now > self._evs_until:
            self._on_token_loss(now)  # it goes round, but to no end
            return
        finished, rtr = self._recover(recovering, token, 1 << ring.rank)
        if finished == (1 << len(ring.members)) - 1:
            self._install(now)
            if len(ring.members) > 1:
                self._visit(now, Token(ring.conf, token.number, 0, 0, -1, [], 0))
            return
        bits = finished.to_bytes((finished.bit_length() + 7) // 8, "little")
        onward = RecoveryToken(ring.conf, token.number + 1, bits, rtr)
        assert ring.successor != self.me, "alone, nothing can be missing"
        self._pass(now, ring.successor, onward)

    def _recover(
        self, recovering: Recovery, token: RecoveryToken, my_bit: int
    ) -> tuple[int, list[tuple[ConfId, list[Span]]]]:
        """Who has finished by now, and what is still to be sent again."""
        conf = recovering.order.conf
        others = [(old, wanted) for old, wanted in token.rtr if old != conf]
        wanted = [span for old, asked in token.rtr if old == conf for span in asked]
        answers = recovering.order.answers(self._plausible(recovering, wanted), self.settings.visit)
        for packet in answers:
            self.stats.retransmitted += 1
            self.out.multicast(packet)
        rest = recovering.requests(self._plausible(recovering, wanted), {packet.seq for packet in answers})
        finished = int.from_bytes(token.finished, "little")
        if not recovering.missing():
            # From here on others may install: what is promised now holds even if this ring breaks.
            self._promised = True
            finished |= my_bit
        return finished, [*others, (conf, rest)] if rest else others

    def _plausible(self, recovering: Recovery, wanted: list[Span]) -> list[Span]:
        """Requests for numbers that exist and that not everybody has, each once."""
        lowest, highest = recovering.record.aru + 1, recovering.record.highest_seq
        asked = {seq for first, last in wanted for seq in range(max(first, lowest), min(last, highest) + 1)}
        return spans(sorted(asked))

    def _install(self, now: Nanos) -> None:
        """The five steps of 5.2.3, as one atomic action."""
        assert self._ring is not None
        assert self._recovery is not None
        old, queue = self.order, self._queue
        regular, transitional = self._recovery.split()
        for batch in self._rest:
            queue.force(batch)
        self._rest.clear()
        self._hand_over(regular)
        queue.change(TransitionalView(self._transitional_view()))
        self._hand_over(transitional)
        self._shift_to(State.OPERATIONAL, Cause.RECOVERED)
        self.order, self._ring, self._recovery = self._ring, None, None
        queue.change(self._view_change(old.members))
        self._give_receipts()
        self._begin(now)

    def _hand_over(self, packets: list[Packet]) -> None:
        members = self.order.members
        for packet in packets:
            for batch in self._assembly.batches(members[packet.sender], packet.parts):
                self._queue.force(batch)

    def _transitional_view(self) -> View:
        conf = self.order.conf
        members = tuple(member for member in self.order.members if member in self._together)
        return View(conf.number, members, representative=conf.representative)

    def _view_change(self, before: tuple[MemberId, ...]) -> ViewChange:
        members = self.order.members
        gone = [member for member in before if member not in members]
        return ViewChange(
            self.view(),
            joined=tuple(member for member in members if member not in before),
            left=tuple(member for member in gone if member in self._left),
            failed=tuple(member for member in gone if member not in self._left),
        )

    def _begin(self, now: Nanos) -> None:
        """A new configuration begins with everything at zero."""
        self.alive = True
        self.my_obligation_set = {self.me}
        self._assembly = Assembly(self.settings.max_message)
        self._flow = Flow(self.settings, len(self.order.members))
        self._last_seen = None
        self._sends.restart()
        self._seen = False
        self._full_since = None
        self._left.clear()
        self._last_sent = self._last_safe = 0
        self._idle = False
        self._wanted = self._asked = False
        self._pump(now)

    # Token loss

    def _on_token_loss(self, now: Nanos) -> None:
        """Nothing was heard of the ring for too long."""
        self._outgoing = self._held = None
        if self.state is State.OPERATIONAL:
            self.alive = False
            self._gather(now, Cause.TOKEN_LOST)
        elif self.state in (State.GATHER, State.COMMIT):
            self.alive = False
        elif self.state is State.FORM:
            self._gather(now, Cause.TOKEN_LOST, self._highest_other())
        elif self.state is State.EVS:
            self._give_up_recovery()
            self._gather(now, Cause.TOKEN_LOST, self._highest_other())

    def _give_up_recovery(self) -> None:
        """Failure in the EVS state: what was promised stays promised."""
        assert self._recovery is not None
        record = self._recovery.record
        recovery.keep_promises(self.order, record)
        if self._promised:
            self.my_obligation_set = set(record.obligation_set)
        self._recovery = self._ring = None

    def _highest_other(self) -> list[MemberId]:
        """Termination: each attempt that fails goes on without the highest identifier but one's own."""
        others = [member for member in self._candidates if member != self.me]
        return [max(others)] if others else []
