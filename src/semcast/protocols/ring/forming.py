"""A ring in the making: the states Form and EVS (Amir 1995, sections 5.2.2 and 5.2.3).

Deviations: a Form token reaches members in any state before Form; it must have a higher number than any the
member has followed, so that no two members go through two attempts in different orders; a member whose
application has yet to take what the last change of configuration left it does not take part in the next;
a member that does not take the Form token on its first rotation is left out instead of ending the attempt,
and one that cannot pass it on to anybody gives it back (`FormRefused`); if an attempt with newcomers fails,
one of them is left out, and not a member of a ring that worked.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.backoff import Backoff
from semcast.protocols.ring import recovery
from semcast.protocols.ring.frames import (
    NAME_BYTES,
    ConfId,
    ConfRecord,
    FormRefused,
    FormToken,
    Packet,
    RecoveryToken,
    Token,
)
from semcast.protocols.ring.member import Member
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.ordering import RingOrder, Span
from semcast.protocols.ring.passing import TokenPassing, stretched
from semcast.protocols.ring.pieces import multicast
from semcast.protocols.ring.recovery import Recovery, record_of
from semcast.protocols.ring.states import Cause, State
from semcast.wire.limits import MAX_SEQ

PATIENCE = 10
"""Timeouts' worth of time that an agreement or a recovery may take before it is given up."""

FAR = 1 << 32
"""No member is so many configurations ahead of another, where numbers are large already."""


class Forming:
    """Follows the Form token twice round, recovers what is missing, and installs the new configuration.

    Its handlers of tokens say False when recovery goes on and on to no end: then the token counts as lost.
    """

    recovery_kind: ClassVar[type[Recovery]] = Recovery
    backoff_kind: ClassVar[type[Backoff]] = Backoff

    def __init__(self, member: Member, passing: TokenPassing, operation: Operation) -> None:
        self.me = member.me
        self.highest = 1
        """The highest number of any attempt this member has followed."""
        self.backoff = self.backoff_kind(member.rng)
        self.form_id: ConfId | None = None
        """Of the last attempt that this member followed."""
        self.my_obligation_set: set[MemberId] = {member.me}
        self.candidates: tuple[MemberId, ...] = ()
        self._asked: tuple[MemberId, ...] = ()  # those who were to be in it
        self._newcomers: frozenset[MemberId] = frozenset()  # of them, those who come from no ring
        self._given: FormToken | None = None  # on its first rotation, as this member passed it on
        self._giver: MemberId | None = None
        self.recovery: Recovery | None = None
        self.ring: RingOrder | None = None
        """The new one, while this member is in the EVS state."""
        self._settings = member.settings
        self._standing = member.standing
        self._out = member.out
        self._stats = member.stats
        self._passing = passing
        self._operation = operation
        self._evs_until: Nanos = 0
        self._together: set[MemberId] = set()
        self._stop = -1  # the rank in the new ring of who says stop
        self._promised = False

    # Numbers of configurations

    def believable(self, number: int) -> bool:
        """Whether there can be a configuration of this number.

        Nothing is learned from what somebody merely claims: a number counts when a Form token has it. Large
        ones must be near to those that are known, so that false ones cannot use up all there are; who has
        followed no attempt yet knows of none.
        """
        if self.form_id is None:
            return number <= MAX_SEQ - FAR
        return number <= max(MAX_SEQ // 2, self.highest + FAR)

    def _least_number(self) -> int:
        """Form tokens must be above: nobody takes part in two attempts in different orders."""
        return max(self._operation.order.conf.number, self.form_id.number if self.form_id is not None else 0)

    # Form

    def start(self, now: Nanos, reps: Iterable[MemberId], highest: int) -> None:
        """The representatives agreed, and it is up to this member to make the Form token.

        None of them has followed an attempt with a number above `highest`.
        """
        self._giver = None
        form_id = self._operation.conf_id(max(self.highest, highest) + 1)
        self._enter(now, FormToken(form_id, 1, 1, sorted(reps), [], []), Cause.AGREED)

    def on_form_token(self, now: Nanos, source: MemberId, token: FormToken) -> bool:
        """A Form token came: for the first time, for the second, or to be put aside."""
        passing, stats, state = self._passing, self._stats, self._standing.state
        if token.form_id == self.form_id:
            if token.number <= passing.number:
                stats.stale += 1
                passing.acknowledge(source, token)
            elif not token.memb_list or self._predecessor(token) != source:
                stats.malformed += 1
            elif state is State.FORM:
                passing.acknowledge(source, token)
                return self._on_second_receipt(now, token)
            elif state is State.EVS and token.rotation == 2 and self._leads(token):
                passing.acknowledge(source, token)
                return self._start_recovery(now, token)
        elif not self._welcome(source, token):
            stats.stale += 1
        else:
            passing.acknowledge(source, token)
            self._giver = source
            return self._enter(now, token, Cause.FORM_TOKEN)
        return True

    # Who does not take the token

    def on_retransmit_timer(self, now: Nanos) -> bool:
        """Send the token again, or go on without who does not take it."""
        self._passing.on_retransmit_timer()
        under_way = self._passing.unanswered(now)
        if under_way is not None and self._standing.state is State.FORM:
            waited, dest, token = under_way
            if isinstance(token, FormToken) and token.rotation == 1 and waited >= self._hop_patience(dest):
                return self._go_on_without(now, dest, token)
        self._passing.send_again(now)
        return True

    def _hop_patience(self, dest: MemberId) -> Nanos:
        settings = self._settings
        if self.backoff.suspects(dest):
            return max(4 * settings.retransmit, settings.token_loss // 8)
        return settings.token_loss // 2

    def on_form_refused(self, now: Nanos, source: MemberId, frame: FormRefused) -> bool:
        """The next one could not pass the token on."""
        token = self._given
        if token is None or token.form_id != frame.form_id or frame.form_id != self.form_id:
            self._stats.stale += 1
            return True
        if self._standing.state is not State.FORM or self._next(token) != source:
            self._stats.stale += 1
            return True
        return self._go_on_without(now, source, token)

    def _go_on_without(self, now: Nanos, dest: MemberId, token: FormToken) -> bool:
        """Only on the first rotation: nobody has installed anything, and one member alone ends it."""
        if dest == token.memb_list[0][0]:
            if self._giver is not None:
                self._out.send(self._giver, FormRefused(token.form_id, token.number))
            return False
        visited = [member for member, _ in token.memb_list].index(self.me)
        rest = msgspec.structs.replace(
            token,
            join_list=[member for member in token.join_list if member != dest],
            memb_list=[(member, conf) for member, conf in token.memb_list if member != dest],
            stop=token.stop if token.stop <= visited else -1,  # places after this one may change
        )
        self.candidates = tuple(member for member in self.candidates if member != dest)
        return self._forward(now, rest)

    # Whether to follow it

    def _predecessor(self, token: FormToken) -> MemberId | None:
        """Who passes this member a Form token that it knows already."""
        members = [member for member, _ in token.memb_list]
        return members[members.index(self.me) - 1] if self.me in members else None

    def _welcome(self, source: MemberId, token: FormToken) -> bool:
        """Whether this member goes along with a Form token it has not seen, from whom it should come."""
        members = [member for member, _ in token.memb_list]
        if self.me in members:
            place = members.index(self.me)
            here = self._still_in(token.memb_list[place][1])
            invited = here and place > 0 and members[place - 1] == source
        else:
            invited = self.me in token.join_list and members[-1:] == [source]
        return (
            token.rotation == 1
            and invited
            and not self._operation.overfull
            and token.stop < len(members)
            and token.form_id.number > self._least_number()
            and self.believable(token.form_id.number)
            and self._standing.obeys
            and all(short(member) for member, _ in token.memb_list)
            and all(map(self._credible, token.confs_list))
        )

    def _still_in(self, conf: ConfId) -> bool:
        """Whoever listed this member must have known where it is: it may have moved on since."""
        return conf == self._operation.order.conf

    def _credible(self, record: ConfRecord) -> bool:
        if not recovery.credible(record):
            return False
        order = self._operation.order
        return record.conf != order.conf or order.plausible_record(record.aru, record.highest_seq)

    def _enter(self, now: Nanos, token: FormToken, cause: Cause) -> bool:
        """First receipt: put in what this member knows."""
        operation = self._operation
        order = operation.order
        memb_list = list(token.memb_list)
        listed = {member for member, _ in memb_list}
        if self.me not in listed:
            others = order.members if operation.alive else ()
            known = listed | {*token.join_list}
            memb_list.append((self.me, order.conf))
            memb_list += [(member, order.conf) for member in others if member not in known]
        self._standing.shift_to(State.FORM, cause)
        operation.freeze()
        self.form_id = token.form_id
        self.highest = max(self.highest, token.form_id.number)
        self._passing.follow(now, token)
        confs_list = recovery.replace(token.confs_list, record_of(order, self.my_obligation_set))
        self.candidates = tuple(dict.fromkeys((*(m for m, _ in memb_list), *token.join_list)))
        stop = self._stop_on(now, token, [member for member, _ in memb_list])
        self._asked = self.candidates
        self._newcomers = _newcomers(memb_list)
        return self._forward(
            now,
            FormToken(token.form_id, token.number + 1, 1, token.join_list, memb_list, confs_list, stop),
        )

    def _stop_on(self, now: Nanos, token: FormToken, members: Sequence[MemberId]) -> int:
        """Who says stop, as on the regular token: by its place, which is its rank in the new ring."""
        place = members.index(self.me)
        if self._operation.stops(now):
            return place
        return -1 if token.stop == place else token.stop

    def _next(self, token: FormToken) -> MemberId:
        """Who gets a Form token from this member."""
        members = [member for member, _ in token.memb_list]
        place = members.index(self.me) + 1
        if place < len(members):
            return members[place]
        unseen = [rep for rep in token.join_list if rep not in members] if token.rotation == 1 else []
        return unseen[0] if unseen else members[0]

    def _forward(self, now: Nanos, token: FormToken) -> bool:
        self._given = token if token.rotation == 1 else None
        dest = self._next(token)
        if dest == self.me:
            return self.on_form_token(now, self.me, token)
        self._passing.pass_on(now, dest, token)
        return True

    def _on_second_receipt(self, now: Nanos, token: FormToken) -> bool:
        """Everybody's knowledge is in it."""
        operation, order = self._operation, self._operation.order
        members = tuple(member for member, _ in token.memb_list)
        records = [record for record in token.confs_list if record.conf == order.conf]
        if (
            self._leads(token) is not (token.rotation == 1)
            or self.me not in members
            or len(records) != 1
            or len(set(members)) != len(members)
            or token.stop >= len(members)
            or not self._credible(records[0])
        ):
            self._stats.malformed += 1
            return True
        self._passing.accept(now, token)
        self._standing.shift_to(State.EVS, Cause.FORM_AGAIN)
        self._evs_until = now + PATIENCE * self.patience()
        self.candidates = members
        self._newcomers = _newcomers(token.memb_list)
        self._together = {member for member, conf in token.memb_list if conf == order.conf}
        self.recovery = self.recovery_kind(order, records[0])
        self._promised = False
        self.ring = operation.order_of(token.form_id, members)
        self._stop = self._stop_on(now, token, members)
        onward = FormToken(
            token.form_id, token.number + 1, 2, token.join_list, token.memb_list, token.confs_list, self._stop
        )
        return self._forward(now, onward)

    def _leads(self, token: FormToken) -> bool:
        """Whether this member made the token."""
        return token.memb_list[0][0] == self.me

    def _start_recovery(self, now: Nanos, token: FormToken) -> bool:
        """The Form token is back for the second time: the new ring is formed, and begins to recover."""
        self._passing.accept(now, token)
        assert self.ring is not None
        first = RecoveryToken(token.form_id, token.number + 1, b"", [])
        return self.on_recovery_token(now, self.ring.predecessor, first)

    # The EVS state

    def on_recovery_token(self, now: Nanos, source: MemberId, token: RecoveryToken) -> bool:
        """Ask for what is missing, answer what others miss, and install when nobody misses anything."""
        ring, recovering, passing = self.ring, self.recovery, self._passing
        if ring is None or recovering is None or token.conf != ring.conf or source != ring.predecessor:
            self._stats.stale += 1
            return True
        if token.number <= passing.number:
            self._stats.stale += 1
            passing.acknowledge(source, token)
            return True
        claimed = int.from_bytes(token.finished, "little")
        if claimed >> len(ring.members) or (claimed >> ring.rank & 1 and not self._promised):
            self._stats.malformed += 1
            return True
        passing.accept(now, token)
        passing.acknowledge(source, token)
        if now > self._evs_until:
            return False
        finished, rtr = self._recover(recovering, token, 1 << ring.rank)
        if finished == (1 << len(ring.members)) - 1:
            self._install(now)
            if len(ring.members) > 1:
                first = Token(ring.conf, token.number, 0, 0, -1, [], 0, stop=self._stop)
                self._operation.rotation.visit(now, first)
            return True
        bits = finished.to_bytes((finished.bit_length() + 7) // 8, "little")
        onward = RecoveryToken(ring.conf, token.number + 1, bits, rtr)
        assert ring.successor != self.me, "alone, nothing can be missing"
        passing.pass_on(now, ring.successor, onward)
        return True

    def _recover(
        self, recovering: Recovery, token: RecoveryToken, my_bit: int
    ) -> tuple[int, list[tuple[ConfId, list[Span]]]]:
        """Who has finished by now, and what is still to be sent again."""
        conf = recovering.order.conf
        others = [(old, wanted) for old, wanted in token.rtr if old != conf]
        wanted = recovering.plausible([span for old, asked in token.rtr if old == conf for span in asked])
        answers = recovering.order.answers(wanted, self._settings.visit)
        for packet in answers:
            self._stats.retransmitted += 1
            multicast(self._out, packet, self._settings.packet_bytes)
        rest = recovering.requests(wanted, {packet.seq for packet in answers})
        finished = int.from_bytes(token.finished, "little")
        if not recovering.missing():
            # From here on others may install: what is promised now holds even if this ring breaks.
            self._promised = True
            finished |= my_bit
        return finished, [*others, (conf, rest)] if rest else others

    def on_early_packet(self, source: MemberId, packet: Packet) -> None:
        """Somebody has installed already; so will this member."""
        assert self.ring is not None
        if source in self.ring.members and self.ring.plausible((packet,)):
            self.ring.receive(packet)
        else:
            self._stats.malformed += 1

    def awaits(self, token: Token) -> bool:
        """Whether this may be the first token of the new ring. Only who found everybody finished sends it."""
        return self.ring is not None and token.conf == self.ring.conf and self._promised

    def on_first_token(self, now: Nanos, source: MemberId, token: Token) -> None:
        """Everybody has finished: install, and go on with the token."""
        assert self.ring is not None
        if token.number > self._passing.number and source == self.ring.predecessor:
            self._install(now)
            self._operation.rotation.on_token(now, source, token)
        else:
            self._passing.acknowledge(source, token)

    def _install(self, now: Nanos) -> None:
        assert self.ring is not None
        assert self.recovery is not None
        ring, (regular, transitional) = self.ring, self.recovery.split()
        self._take_stock(now, self._operation.order.members, ring.members)
        self.ring = self.recovery = None
        self.my_obligation_set = {self.me}
        self._standing.shift_to(State.OPERATIONAL, Cause.RECOVERED)
        self._operation.install(now, ring, self._together, regular, transitional)

    def _take_stock(self, now: Nanos, old: tuple[MemberId, ...], new: tuple[MemberId, ...]) -> None:
        """Who failed to come along, and who came."""
        backoff = self.backoff
        for member in sorted({*old, *self._asked} - {*new} - self._operation.left):
            backoff.failed(now, member)
        for member in new:
            backoff.joined(now, member)

    # Failure

    def patience(self) -> Nanos:
        """How long a ring in the making may give no sign of life: the more members, the longer."""
        loss = self._settings.token_loss
        if self._standing.state is State.FORM:
            loss = loss * 3 // 2  # so that two who do not take the token can be left out
        size = len(self.candidates)
        return max(self._passing.patience(size), stretched(loss, size))

    def fail(self, now: Nanos) -> list[MemberId]:
        """The token was lost on its way: what was promised stays promised.

        Termination: each attempt that fails goes on without somebody, who is returned: who did not take the
        token from this member, or the highest identifier but one's own, of the newcomers if there are
        newcomers. Those leave it to the others.
        """
        if self.recovery is not None:
            self._give_up_recovery(self.recovery.record)
        failed = self._to_blame(now)
        for member in failed:
            self.backoff.failed(now, member)
        return failed

    def _to_blame(self, now: Nanos) -> list[MemberId]:
        under_way = self._passing.unanswered(now)
        if under_way is not None and under_way[0] >= 4 * self._settings.retransmit:
            return [under_way[1]]
        others = [member for member in self.candidates if member != self.me]
        if 0 < len(self._newcomers) < len(self.candidates):
            others = [] if self.me in self._newcomers else sorted(self._newcomers)
        return [max(others)] if others else []

    def _give_up_recovery(self, record: ConfRecord) -> None:
        """Failure in the EVS state."""
        recovery.keep_promises(self._operation.order, record)
        if self._promised:
            self.my_obligation_set = set(record.obligation_set)
        self.recovery = self.ring = None


def short(member: MemberId) -> bool:
    """Whether its name is no longer than names may be."""
    return len(member.name) <= NAME_BYTES and len(member.name.encode()) <= NAME_BYTES


def _newcomers(memb_list: Iterable[tuple[MemberId, ConfId]]) -> frozenset[MemberId]:
    """Those who come from no ring: nobody has formed the configuration they start in."""
    return frozenset(member for member, conf in memb_list if conf == ConfId(1, member))
