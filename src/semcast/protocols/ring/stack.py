"""The ring as a stack: every input goes to the part that handles its event."""

from collections.abc import Sequence
from random import Random
from typing import ClassVar

from semcast.core.annotations import Annotation
from semcast.core.certificates import Certificates
from semcast.core.events import Delivery
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.reader import Reader
from semcast.core.stack import Stack
from semcast.core.views import View
from semcast.protocols.pieces import Piece
from semcast.protocols.ring.formation import Formation
from semcast.protocols.ring.frames import (
    AttemptJoin,
    FormRefused,
    FormToken,
    Join,
    Leave,
    NameTaken,
    Packet,
    Presence,
    RecoveryToken,
    Token,
    TokenAck,
    TokenWanted,
)
from semcast.protocols.ring.member import Member
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.ring.passing import RingTimer, TokenPassing
from semcast.protocols.ring.pieces import Puzzles
from semcast.protocols.ring.settings import RingSettings
from semcast.protocols.ring.states import State


class Ring(Stack):
    """One member of a group with dynamic membership: agreed and safe order, through partitions and merges.

    It starts alone in a configuration of its own and looks for others. Two parts do the work: the *operation*
    of a ring that works, and the *formation* of a new one, which uses the first. Both hand tokens to
    *passing*, and both look at where the member stands. What arrives is told apart here.
    """

    operation_kind: ClassVar[type[Operation]] = Operation
    formation_kind: ClassVar[type[Formation]] = Formation
    puzzles_kind: ClassVar[type[Puzzles]] = Puzzles

    def __init__(self, me: MemberId, settings: RingSettings, rng: Random, out: Outbox) -> None:
        self._member = member = Member(me, settings, rng, out)
        self.me = me
        self.settings = settings
        self.out = out
        self.stats = member.stats
        self.standing = member.standing
        self.passing = TokenPassing(member)
        self.operation = self.operation_kind(member, self.passing)
        self.formation = self.formation_kind(member, self.passing, self.operation)
        self._member = member
        self._puzzles = self.puzzles_kind()

    @property
    def state(self) -> State:
        """Where it stands in the membership algorithm."""
        return self.standing.state

    @property
    def order(self) -> RingOrder:
        """The current configuration: its members, and who has which packet."""
        return self.operation.order

    @property
    def reader(self) -> Reader:
        """The program that this stack delivers to."""
        return self._member.reader

    @reader.setter
    def reader(self, reader: Reader) -> None:
        self._member.reader = reader

    @property
    def certificates(self) -> Certificates | None:
        """Where the places of messages are noted."""
        return self._member.certificates

    @certificates.setter
    def certificates(self, certificates: Certificates | None) -> None:
        self._member.certificates = certificates

    # Life

    def start(self, now: Nanos) -> None:
        """Deliver the configuration of one, and shift to Gather."""
        self.operation.start()
        self.passing.heard_at = now
        self._plan_token_loss(now)
        self.formation.start(now)

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        """Leave once everybody has what was sent here, or soon after."""
        self.operation.leave(now, cause)

    def phase(self) -> str:
        """The state of the membership algorithm; until enough members were together once, it gathers."""
        state = self.standing.state
        if state is State.OPERATIONAL and not self._member.enough:
            return State.GATHER.value
        return state.value

    def view(self) -> View:
        """The current configuration. The application may not have taken all that comes before it."""
        return self.operation.view()

    # The application

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Queue for the next visit of the token what there is room for."""
        if annotation is not None and len(payloads) != 1:
            raise ValueError("an annotation speaks for exactly one payload")
        annotations = None if annotation is None else [annotation]
        return self.operation.multicast(now, payloads, annotations, safe=safe)

    def multicast_each(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation],
        *,
        safe: bool = False,
    ) -> int:
        """The same for messages of which each has an annotation."""
        return self.operation.multicast(now, payloads, annotations, safe=safe)

    def confirm(self, now: Nanos, ticket: int, *, safe: bool) -> None:
        """About the message queued last; positions are numbers of packets."""
        sending = self.operation.sending
        due = sending.answers.ask(ticket, sending.queue.last, safe=safe)
        sending.last_safe = max(sending.last_safe, due)
        self.operation.rotation.hurry(now)

    def settle_confirmations(self) -> None:
        """Look how far the current configuration has come."""
        self.operation.sending.answers.settle(self.order, self.view())

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        """Hand over messages and configuration changes, in order."""
        return self.operation.deliver(now, most)

    def deliverable(self) -> bool:
        """Whether `deliver` would hand over anything."""
        return self.operation.outlet.deliverable()

    def behind(self) -> bool:
        """Whether nothing can be sent before the application was given the current configuration."""
        return self.operation.behind()

    def on_reader(self, now: Nanos) -> None:
        """The program waits in `send` or waits no more, receives nothing, stops reading, or closes."""
        self.operation.on_reader(now)

    def pending(self) -> int:
        """Messages that wait for the token."""
        return self.operation.sending.queue.messages

    def queued(self) -> int:
        """Messages that wait for the program."""
        return len(self.operation.outlet.backlog)

    def queued_bytes(self) -> int:
        """Bytes of these."""
        return self.operation.outlet.backlog.bytes

    def overflowing(self) -> bool:
        """Whether queue and reserve are full."""
        return self.operation.outlet.backlog.overflowing

    def held_back(self) -> HeldBack | None:
        """Who or what keeps this member from sending what it has."""
        return self.operation.held_back()

    def reclaim(self) -> None:
        """Purge what is obsolete of what waits for the application."""
        self.operation.outlet.reclaim()

    def buffered(self) -> int:
        """Messages in the queues, and packets kept for others, also for a ring that is being formed."""
        ring = self.formation.forming.ring
        return self.operation.buffered() + (0 if ring is None else len(ring.store))

    # Frames

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """Dispatch; what no correct member sends is dropped and counted."""
        formation = self.formation
        if source == self.me or self.standing.state is State.LEFT:
            self.stats.stale += 1
        elif isinstance(frame, Packet):
            self._on_packet(now, source, frame)
        elif isinstance(frame, Token):
            self._on_token(now, source, frame)
        elif isinstance(frame, TokenAck):
            self.passing.on_ack(frame)
        elif isinstance(frame, TokenWanted):
            self._on_token_wanted(now, source, frame)
        elif isinstance(frame, RecoveryToken):
            formation.on_recovery_token(now, source, frame)
        elif isinstance(frame, FormToken):
            formation.on_form_token(now, source, frame)
        elif isinstance(frame, FormRefused):
            formation.on_form_refused(now, source, frame)
        elif isinstance(frame, NameTaken):
            formation.on_name_taken(now, source, frame)
        elif isinstance(frame, Piece):
            self._on_piece(now, source, frame)
        elif not formation.sensible(source, frame):
            self.stats.malformed += 1
        elif isinstance(frame, Leave):
            formation.on_leave(now, source, frame)
        elif isinstance(frame, Join | AttemptJoin | Presence):
            self._on_membership(now, source, frame)

    def _on_membership(self, now: Nanos, source: MemberId, frame: Join | AttemptJoin | Presence) -> None:
        formation = self.formation
        if not formation.agrees(source, frame) or not formation.admits(now, source, frame):
            return
        if isinstance(frame, Join):
            formation.on_join(now, source, frame)
        elif isinstance(frame, AttemptJoin):
            formation.on_attempt_join(now, source, frame)
        else:
            formation.on_presence(now, source, frame)

    def _on_piece(self, now: Nanos, source: MemberId, piece: Piece) -> None:
        """A part of a frame that is too large for a datagram."""
        data = self._puzzles.add(source, piece)
        if data is None:
            return
        frame = self._puzzles.whole(data, piece.digest)
        if frame is None:
            self.stats.malformed += 1
        else:
            self.on_frame(now, source, frame)

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """Several in a row from one member: packets among them are handled together."""
        rotation, packets = self.operation.rotation, []
        conf, known = rotation.order.conf, self._knows(source)
        for frame in frames:
            if known and type(frame) is Packet and frame.conf == conf:
                packets.append(frame)
                continue
            if packets:
                rotation.on_packets(now, packets)
                packets = []
            self.on_frame(now, source, frame)
            rotation = self.operation.rotation
            conf, known = rotation.order.conf, self._knows(source)
        if packets:
            rotation.on_packets(now, packets)

    def _knows(self, source: MemberId) -> bool:
        """Whether packets of the current configuration can come from there."""
        return (
            source in self.operation.order.members
            and source != self.me
            and self.standing.state is not State.LEFT
        )

    def _on_packet(self, now: Nanos, source: MemberId, packet: Packet) -> None:
        rotation, forming = self.operation.rotation, self.formation.forming
        members = rotation.order.members
        if packet.conf == rotation.order.conf:
            if source in members:
                rotation.on_packets(now, (packet,))
            else:
                self.stats.malformed += 1
        elif forming.ring is not None and packet.conf == forming.ring.conf:
            forming.on_early_packet(source, packet)
        elif forming.believable(packet.conf.number) and source not in members:
            self.formation.notice(now, source, packet.conf)
        else:
            self.stats.stale += 1

    def _on_token(self, now: Nanos, source: MemberId, token: Token) -> None:
        rotation, forming = self.operation.rotation, self.formation.forming
        order = rotation.order
        if token.conf == order.conf and rotation.works():
            if token.seq < order.delivered and rotation.fresh(source, token):
                # Somebody passed off a packet under a number that no token gave out: begin anew.
                self.stats.malformed += 1
                self.formation.on_token_loss(now)
            else:
                rotation.on_token(now, source, token)
        elif forming.awaits(token):
            forming.on_first_token(now, source, token)
        else:
            self.stats.stale += 1

    def _on_token_wanted(self, now: Nanos, source: MemberId, frame: TokenWanted) -> None:
        rotation = self.operation.rotation
        if frame.conf == rotation.order.conf and source in rotation.order.members:
            rotation.on_token_wanted(now)
        else:
            self.stats.stale += 1

    # Timers

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Dispatch."""
        if self.standing.state is State.LEFT:
            return
        if timer is RingTimer.RETRANSMIT:
            self.formation.on_retransmit_timer(now)
        elif timer is RingTimer.HOLD:
            self.operation.rotation.on_hold_timer(now)
        elif timer is RingTimer.ACK:
            self.passing.on_ack_timer(now)
        elif timer is RingTimer.TOKEN_LOSS:
            self._on_token_loss_timer(now)
        elif timer is RingTimer.PRESENCE:
            self.formation.on_presence_timer(now)
        elif timer is RingTimer.GATHER:
            self.formation.on_gather_timer(now)
        elif timer is RingTimer.JOIN:
            self.formation.on_join_timer(now)
        elif timer is RingTimer.COMMIT:
            self.formation.on_commit_timer(now)
        else:
            assert timer is RingTimer.LEAVE
            self.operation.leaving.on_timer(now, self.operation.order)

    def _plan_token_loss(self, at: Nanos) -> None:
        self.out.set_timer(RingTimer.TOKEN_LOSS, at + self._patience())

    def _patience(self) -> Nanos:
        """How long to wait for a sign of life."""
        if self.standing.frozen:
            return self.formation.forming.patience()
        return self.passing.patience(len(self.operation.order.members))

    def _on_token_loss_timer(self, now: Nanos) -> None:
        """Looked at once per timeout, so that nothing has to be set anew for each packet."""
        passing = self.passing
        alone = len(self.operation.order.members) == 1 and not self.standing.frozen
        if alone:
            passing.heard_at = now
        if now - passing.heard_at >= self._patience():
            passing.heard_at = now
            self.formation.on_token_loss(now)
        self._plan_token_loss(passing.heard_at)
