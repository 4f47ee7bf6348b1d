"""From several rings to one: the five events of the membership algorithm (Amir 1995, section 5.2.2).

Deviations: proposals are repeated while a member waits, since the network loses them; a member of the own
ring that proposes alone, or that is in a later configuration, has given the ring up, which is learned at
once instead of by a timeout; a representative to whom nobody comes goes back to its ring; somebody who
counts this member as failed is counted as failed in turn; a member whose application has yet to take what
the last change of configuration left it, beyond queue and reserve, neither asks for another nor takes part in
one, and where it would have to form it for others, and its program has stopped, it leaves its ring to them;
who keeps failing is held off for a while (`Backoff`); a newcomer that hears of a working ring waits to be
invited, and such a ring waits a little for further newcomers; who has set something else that must be alike
is refused; so is a newcomer with the name of a member that lives (`Namesakes`); the more representatives, the
more time they have.
"""

from collections.abc import Iterable
from typing import ClassVar

from semcast.core.events import NotAdmitted
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.ring.agreement import Agreement, Sets
from semcast.protocols.ring.forming import PATIENCE, Forming, short
from semcast.protocols.ring.frames import (
    AttemptJoin,
    ConfId,
    FormRefused,
    FormToken,
    Join,
    Leave,
    NameTaken,
    Presence,
    RecoveryToken,
)
from semcast.protocols.ring.member import Member
from semcast.protocols.ring.namesakes import Namesakes
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.passing import RingTimer, TokenPassing, stretched
from semcast.protocols.ring.pieces import in_pieces
from semcast.protocols.ring.settings import CALM_MOST
from semcast.protocols.ring.states import Cause, State

SELDOM = 4
"""How often the pause between two copies of a proposal is doubled."""
OUTLIVED = 3
"""Times `token_loss` after which a ring that still works has all its members."""
AGAIN = 3
"""Times `calm` that a ring waits after each newcomer if others came a short while ago."""


class Formation:
    """Finds others, agrees with their representatives on a ring (Gather, Commit), and forms it (`Forming`).

    It moves `Standing`, and uses the ring that works through what `Operation` offers.
    """

    forming_kind: ClassVar[type[Forming]] = Forming

    def __init__(self, member: Member, passing: TokenPassing, operation: Operation) -> None:
        self.me = member.me
        self.agreement = Agreement(member.me)
        self.forming = self.forming_kind(member, passing, operation)
        self._settings = member.settings
        self._standing = member.standing
        self._rng = member.rng
        self._out = member.out
        self._stats = member.stats
        self._operation = operation
        self._terms = member.settings.terms()
        self._namesakes = Namesakes(OUTLIVED * member.settings.token_loss)
        self._searching = False  # just started, and nobody was heard of yet
        self._waits_until: Nanos | None = None  # a newcomer has heard of a working ring, which may invite it
        self._invited = False  # and it did
        self._calm_until: Nanos | None = None  # newcomers are on their way to this ring
        self._calmed_at: Nanos | None = None  # when that was so last, or will be no longer
        self._again = False  # it was so a short while ago
        self._commit_until: Nanos = 0
        self._said = 0  # how often a proposal was repeated

    def start(self, now: Nanos) -> None:
        """Begin to look for others; for longer than usual, where that was set."""
        self._out.set_timer(RingTimer.PRESENCE, now + self._rng.randrange(self._settings.presence))
        self._gather(now, Cause.STARTED)
        if self._settings.search > self._settings.gather:
            self._searching = True
            self._out.set_timer(RingTimer.GATHER, now + self._settings.search)

    def sensible(self, source: MemberId, frame: Frame) -> bool:
        """Whether the numbers and names of a membership frame can be true."""
        believable = self.forming.believable
        if not isinstance(frame, Join | AttemptJoin | Presence | Leave):
            return False
        if isinstance(frame, Join | AttemptJoin) and not believable(frame.highest):
            return False
        named = (*frame.reps, *frame.failed) if isinstance(frame, Join) else ()
        return believable(frame.conf.number) and all(map(short, (source, frame.conf.representative, *named)))

    # Newcomers

    @property
    def _newcomer(self) -> bool:
        """Whether this member has just started and was in no ring yet, nor works alone."""
        return self._operation.order.conf.number == 1 and self._standing.state in (
            State.GATHER,
            State.COMMIT,
        )

    def _hear_of_ring(self, now: Nanos, source: MemberId, conf: ConfId) -> None:
        """A newcomer that hears of a working ring waits for its invitation, but not for ever."""
        newcomer = self._newcomer and self._standing.state is State.GATHER
        if newcomer and conf.number > 1 and source != self.me and self._waits_until is None:
            settings = self._settings
            self._searching = False
            self._waits_until = now + 2 * CALM_MOST * settings.calm + 4 * settings.commit
            self._out.set_timer(RingTimer.GATHER, self._waits_until)

    def agrees(self, source: MemberId, frame: Join | AttemptJoin | Presence) -> bool:
        """Whether somebody has set alike what must be alike.

        A newcomer that hears from a ring that works and has not leaves again, and says why. Who works tells
        newcomers so.
        """
        difference = self._terms.differs(frame.terms)
        if difference is None:
            return True
        self._stats.refused_members += 1
        self._out.deliver(NotAdmitted(source, f"its settings differ: {difference}"))
        if self._newcomer and (frame.conf.number > 1 or isinstance(frame, Presence)):
            cause = f"the settings are not those of {source}: {difference}"
            self._operation.leaving.refuse(cause, self._operation.order)
        elif isinstance(frame, AttemptJoin) and self._may_merge():
            self._say_presence()
        return False

    def admits(self, now: Nanos, source: MemberId, frame: Join | AttemptJoin | Presence) -> bool:
        """Whether somebody may come: not a newcomer with the name of a member, as long as the ring works."""
        operation = self._operation
        order = operation.order
        if frame.conf.number > 1 or order.conf.number == 1 or not operation.alive:
            return True
        taken = [member for member in order.members if member.name == source.name and member != source]
        if not taken:
            return True
        if order.members[0] == self.me:
            lives = self._namesakes.outlived(now, source)
            self._out.send(source, NameTaken(taken[0], lives))
            if lives:
                self._stats.refused_members += 1
                self._out.deliver(NotAdmitted(source, f"{taken[0]} has its name, and lives"))
        return False

    def on_name_taken(self, now: Nanos, source: MemberId, frame: NameTaken) -> None:
        """Somebody in the ring has the name of this newcomer. Who works already stays."""
        ours = frame.member.name == self.me.name and frame.member != self.me
        if not ours or not self._newcomer or self._standing.state is not State.GATHER:
            self._stats.stale += 1
        elif frame.lives:
            cause = f"refused by {source}: a living member is called {self.me.name}"
            self._operation.leaving.refuse(cause, self._operation.order)
        else:
            self._searching = False
            self._waits_until = now + self._namesakes.patience
            self._out.set_timer(RingTimer.GATHER, self._waits_until)

    # Foreign messages

    def notice(self, now: Nanos, source: MemberId, conf: ConfId, *, alone: bool = False) -> bool:
        """Look at where somebody stands; False if that is an old story."""
        operation, order = self._operation, self._operation.order
        ours = order.conf
        if source in order.members and conf != ours and conf.number < ours.number:
            self._stats.stale += 1
            return False
        gone = source in order.members and (alone or conf != ours)
        if gone and operation.rotation.works() and source != self.me:
            operation.give_up()
            if self._standing.state is State.OPERATIONAL:
                self._gather(now, Cause.MEMBER_WENT)
        elif conf != ours and self._may_merge() and not self.forming.backoff.holds(now, source):
            self._gather(now, Cause.FOREIGN_MESSAGE)
        elif conf != ours and self._stands_in_the_way():
            operation.give_up()
            self._gather(now, Cause.FOREIGN_MESSAGE)
        return True

    def _may_merge(self) -> bool:
        """Whether it is up to this member to form a larger ring.

        Each new configuration adds to what waits for the application: one that is behind first has to catch
        up, and who would not follow a Form token must not ask for one.
        """
        operation = self._operation
        speaks = not operation.alive or operation.order.members[0] == self.me
        return self._standing.state is State.OPERATIONAL and speaks and not operation.overfull

    def _stands_in_the_way(self) -> bool:
        """Whether others wait for this member to form a larger ring, and it waits for a program that stopped.

        Then it leaves its ring to them. It comes back once its program has taken something.
        """
        operation = self._operation
        speaks = operation.alive and operation.order.members[0] == self.me
        return self._standing.state is State.OPERATIONAL and speaks and operation.overfull_for_long

    def on_presence_timer(self, now: Nanos) -> None:
        """Let other rings know of this one."""
        if self._may_merge():
            self._say_presence()
        spread = self._settings.presence // 4 + 1
        self._out.set_timer(RingTimer.PRESENCE, now + self._settings.presence + self._rng.randrange(spread))

    def _say_presence(self) -> None:
        self._stats.control_frames += 1
        self._out.announce(Presence(self._operation.order.conf, self._terms))

    def on_presence(self, now: Nanos, source: MemberId, frame: Presence) -> None:
        """Another ring is here, or this one still is."""
        self._hear_of_ring(now, source, frame.conf)
        self.notice(now, source, frame.conf)

    def on_attempt_join(self, now: Nanos, source: MemberId, frame: AttemptJoin) -> None:
        """A representative wants to form a larger ring."""
        self._hear_of_ring(now, source, frame.conf)
        if self.notice(now, source, frame.conf, alone=frame.alone) and self._standing.state is State.GATHER:
            self._collect(now, source, frame.conf)

    def _collect(self, now: Nanos, source: MemberId, conf: ConfId) -> None:
        agreement = self.agreement
        if self.forming.backoff.holds(now, source):
            return
        known = source in agreement.reps
        if not agreement.collect(source):
            return
        if self._searching:
            self._searching = False
            self._plan_gather(now)
        elif not known and conf.number == 1:
            self._keep_calm(now)

    def _keep_calm(self, now: Nanos) -> None:
        """A newcomer is on its way to a ring that works: who knows who else is."""
        operation, calm = self._operation, self._settings.calm
        if operation.order.conf.number == 1 or not operation.alive:
            return
        if self._calm_until is None:
            self._again = self._calmed_at is not None and now - self._calmed_at < 2 * CALM_MOST * calm
            self._calm_until = self._calmed_at = now + CALM_MOST * calm
        self._say_attempt()  # so that it waits to be invited
        wait = AGAIN * calm if self._again else calm
        self._out.set_timer(RingTimer.GATHER, min(now + wait, self._calm_until))

    def on_leave(self, now: Nanos, source: MemberId, frame: Leave) -> None:
        """A member leaves: form a ring without it."""
        if frame.conf != self._operation.order.conf or source not in self._operation.order.members:
            self._stats.stale += 1
            return
        self._operation.took_leave(source)
        state = self._standing.state
        if state is State.OPERATIONAL:
            self._gather(now, Cause.MEMBER_WENT, [source])
        elif state in (State.GATHER, State.COMMIT):
            self.agreement.exclude(source)
            if state is State.COMMIT:
                self._propose(now)

    # Gather

    def _gather(self, now: Nanos, cause: Cause, failed: Iterable[MemberId] = ()) -> None:
        """Begin to collect representatives."""
        self._standing.shift_to(State.GATHER, cause)
        self.agreement.begin(failed)
        if not self._operation.alive:
            self._namesakes.clear()
        self._calm_until = self._waits_until = None
        self._invited = False
        self._said = 0
        self._say_attempt()
        self._plan_gather(now)
        if self._newcomer:
            self._plan_join(now)

    def _say_attempt(self) -> None:
        operation = self._operation
        conf, highest = operation.order.conf, self.forming.highest
        self._out.announce(AttemptJoin(conf, highest, not operation.alive, self._terms))

    def _plan_gather(self, now: Nanos) -> None:
        wait = self._settings.gather
        self._out.set_timer(RingTimer.GATHER, now + wait + self._rng.randrange(wait // 4 + 1))

    def on_gather_timer(self, now: Nanos) -> None:
        """Time to propose those who were heard of."""
        if self._standing.state is not State.GATHER:
            return
        overfull = self._operation.overfull
        if self._nobody_came() or (overfull and self._operation.alive):
            self._go_back(now)
        elif overfull:
            self._plan_gather(now)
        else:
            self._commit(now, Cause.GATHER_TIMEOUT)

    def _nobody_came(self) -> bool:
        return self._operation.alive and self.agreement.alone

    def _go_back(self, now: Nanos) -> None:
        self._standing.shift_to(State.OPERATIONAL, Cause.NOBODY_CAME)
        self._operation.resume(now)

    # Commit

    def _commit(self, now: Nanos, cause: Cause) -> None:
        self._standing.shift_to(State.COMMIT, cause)
        self._commit_until = now + PATIENCE * self._stretched(self._settings.commit)
        self._propose(now)

    def _stretched(self, time: Nanos) -> Nanos:
        return stretched(time, len(self.agreement.reps))

    def _propose(self, now: Nanos) -> None:
        """Multicast the two sets, and give everybody time to agree with them."""
        self.agreement.awaits_form = False
        self._said = 0
        self._say_join(now)
        self._plan_commit(now)
        self._agree(now)

    def _plan_commit(self, now: Nanos) -> None:
        self._out.set_timer(RingTimer.COMMIT, now + self._stretched(self._settings.commit))

    def _say_join(self, now: Nanos) -> None:
        operation, highest = self._operation, self.forming.highest
        reps, failed = sorted(self.agreement.reps), sorted(self.agreement.failed)
        join = Join(operation.order.conf, highest, not operation.alive, reps, failed, self._terms)
        for frame in in_pieces(join):
            self._out.announce(frame)
        self._plan_join(now)

    def on_join_timer(self, now: Nanos) -> None:
        """Repeat the proposal; a newcomer, that it is here."""
        if self._standing.state is State.COMMIT:
            self._say_join(now)
        elif self._newcomer:
            self._say_attempt()
            self._plan_join(now)

    def _plan_join(self, now: Nanos) -> None:
        """The same again, but less and less often: where many speak, nobody gets to hear."""
        pause = self._stretched(self._settings.join) << min(self._said, SELDOM)
        self._said += 1
        self._out.set_timer(RingTimer.JOIN, now + pause)

    def on_join(self, now: Nanos, source: MemberId, frame: Join) -> None:
        """A representative proposes its sets."""
        if not {*frame.failed} < {*frame.reps} or source not in frame.reps or source in frame.failed:
            self._stats.malformed += 1
            return
        self._hear_of_ring(now, source, frame.conf)
        if not self.notice(now, source, frame.conf, alone=frame.alone):
            return
        proposal = frozenset(frame.reps), frozenset(frame.failed)
        if self._standing.state is State.GATHER:
            self._collect(now, source, frame.conf)
            if source in self.agreement.reps:
                self.agreement.note(source, proposal, frame.highest)  # who has agreed may not say it again
            if self._waits_until is not None and frame.conf.number > 1 and self.me in frame.reps:
                self._accept_invitation(now, source, proposal, frame.highest)
        elif self._standing.state is State.COMMIT and source not in self.agreement.failed:
            self._on_proposal(now, source, proposal, frame.highest)

    def _accept_invitation(self, now: Nanos, source: MemberId, proposal: Sets, highest: int) -> None:
        """A working ring proposes a larger one with this newcomer in it."""
        if self.me in proposal[1] or self.forming.backoff.holds(now, source) or self._operation.overfull:
            return
        self.agreement.adopt(proposal)
        self.agreement.note(source, proposal, highest)
        self._invited = True
        self._commit(now, Cause.INVITED)

    def _on_proposal(self, now: Nanos, source: MemberId, proposal: Sets, highest: int) -> None:
        agreement = self.agreement
        agreement.note(source, proposal, highest)
        if self.me in proposal[1]:
            if self._invited:
                self._gather(now, Cause.LEFT_OUT)
                return
            agreement.exclude(source)
            self._propose(now)
        elif agreement.covers(source, proposal):
            self._agree(now)
        elif now > self._commit_until or not agreement.merge(source, proposal):
            self._stats.malformed += 1  # sets that never stop growing
        else:
            self._propose(now)

    def _agree(self, now: Nanos) -> None:
        """See whether everybody who is needed has proposed the same."""
        agreement = self.agreement
        if agreement.awaits_form or agreement.disagreeing():
            return
        needed = agreement.needed()
        if self._nobody_came():
            self._go_back(now)
        elif min(needed, default=self.me) > self.me or not needed:
            self.forming.start(now, agreement.reps - agreement.failed, agreement.highest())
        else:
            agreement.awaits_form = True  # which may have to go round somebody who does not take it
            self._out.set_timer(RingTimer.COMMIT, now + self._stretched(self._settings.token_loss))

    def on_commit_timer(self, now: Nanos) -> None:
        """Go on without those who did not agree, or who agreed and then did not send the Form token."""
        if self._standing.state is not State.COMMIT:
            return
        agreement = self.agreement
        needed = agreement.needed()
        if self._invited and now < self._commit_until:
            self._plan_commit(now)  # it is for the ring to say who does not come along
            return
        if agreement.awaits_form and needed:
            agreement.failed.add(min(needed))
        else:
            agreement.failed |= agreement.disagreeing()
        self._propose(now)

    # Form and EVS

    def on_form_token(self, now: Nanos, source: MemberId, token: FormToken) -> None:
        """A ring is being formed."""
        if not self.forming.on_form_token(now, source, token):
            self.on_token_loss(now)

    def on_form_refused(self, now: Nanos, source: MemberId, frame: FormRefused) -> None:
        """Somebody cannot be in that ring."""
        if not self.forming.on_form_refused(now, source, frame):
            self.on_token_loss(now)

    def on_retransmit_timer(self, now: Nanos) -> None:
        """A token has not been answered."""
        if not self.forming.on_retransmit_timer(now):
            self.on_token_loss(now)

    def on_recovery_token(self, now: Nanos, source: MemberId, token: RecoveryToken) -> None:
        """It was formed, and recovers what its members lack."""
        if not self.forming.on_recovery_token(now, source, token):
            self.on_token_loss(now)

    # Token loss

    def on_token_loss(self, now: Nanos) -> None:
        """Nothing was heard of the ring for too long."""
        state = self._standing.state
        failed = self.forming.fail(now) if self._standing.frozen else []
        self._operation.drop_token()
        if state in (State.FORM, State.EVS):
            self._gather(now, Cause.TOKEN_LOST, failed)
        else:
            self._operation.give_up()
            if state is State.OPERATIONAL:
                self._gather(now, Cause.TOKEN_LOST)
