"""Members of the gossip family, broken on purpose: what the paper prints, and what it leaves out."""

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from semcast.core.events import Delivery
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Timer
from semcast.protocols.gossip import Member, Protocol
from semcast.protocols.gossip.buffer import GossipBuffer
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.frames import Closed, Confirm, Entry, Gossip, Inquire, Known, Reported
from semcast.protocols.gossip.from_logger import FromLogger
from semcast.protocols.gossip.idle import IdleMarks
from semcast.protocols.gossip.logged import LoggedNumbers
from semcast.protocols.gossip.member import REPAIRS
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.rate import Rate
from semcast.protocols.gossip.receiver import Receiver
from semcast.protocols.gossip.repair import Repair
from semcast.protocols.gossip.rpbcast import Rpbcast
from semcast.protocols.gossip.sender import Sender
from semcast.protocols.gossip.session import Session
from semcast.protocols.gossip.spans import Span, Spans
from semcast.protocols.gossip.streams import Stream
from semcast.protocols.gossip.timers import GossipTimer

EIGHT_BITS = 1
"""Bytes of a hash that collides soon."""


class _PrintedStream(Stream):
    def __init__(self, sender: MemberId, start: int) -> None:
        super().__init__(sender, start)
        self.again = Spans()

    def note(self, spans: Iterable[Span]) -> bool:
        known = [(first, min(last, self.known)) for first, last in spans]
        for first, last in known:
            self.again.add(max(first, self.start + 1), last)
        return super().note(known) or bool(len(self.again))

    def missing(self, *, peers: bool, most: int) -> list[Span]:
        return super().missing(peers=peers, most=most) + ([] if peers else list(self.again))


class _PrintedReceiver(Receiver):
    stream_kind = _PrintedStream

    def take(self, stream: Stream, batch: Batch, number: int) -> list[Batch]:
        assert isinstance(stream, _PrintedStream)
        if batch.first in stream.again and batch.first <= stream.next:
            stream.again = Spans()
            self._enqueue(stream, batch)
            return [batch]
        return super().take(stream, batch, number)


class GcNoteAsPrinted(Member):
    """R-1: a note moves whatever it names to `missing`, delivered or not."""

    receiver_kind = _PrintedReceiver


class _NotesOnly(Rpbcast):
    def _age(self) -> None:
        pass

    def _gossip(
        self,
        now: Nanos,
        target: MemberId,
        lacking: list[tuple[MemberId, list[Span]]],
        *,
        gap: bool = False,
    ) -> None:
        if target.name not in self.desk.settings.loggers:
            super()._gossip(now, target, lacking, gap=gap)


class NotesOnly(Member):
    """R-2: only a note makes a member ask the logger, and who has only heard of a message sends none."""

    repairs: Mapping[Protocol, type[Repair]] = {**REPAIRS, Protocol.RPBCAST: _NotesOnly}


class _GossipPhaseReceiver(Receiver):
    def through(self, sender: MemberId) -> int:
        stream = self.streams[sender]
        found = super().through(sender)
        return stream.known if not stream.missing(peers=True, most=1 << 20) else found


class AckFromGossipPhase(Member):
    """R-3: acknowledges the complement of what it asks peers for."""

    receiver_kind = _GossipPhaseReceiver


class _FromZeroReceiver(Receiver):
    def open(self, sender: MemberId, start: int, level: str) -> Stream | None:
        stream = super().open(sender, start, level)
        if stream is not None:
            stream.start = stream.next = 0
        return stream


class JoinerFromZero(Member):
    """R-6: who joins asks for all history."""

    receiver_kind = _FromZeroReceiver


class _ShortBuffer(GossipBuffer):
    def __init__(
        self,
        rounds: int,
        most: int,
        logged: Mapping[MemberId, int] | None,  # noqa: ARG002
        over: Container[MemberId] = (),
    ) -> None:
        super().__init__(rounds, most, None, over)


class _ShortDesk(Desk):
    buffer_kind = _ShortBuffer


class _ForgetfulSender(Sender):
    def sent(self, now: Nanos, batch: Batch) -> None:
        super().sent(now, batch)
        self.acknowledged(batch.last)


class SenderForgetsEarly(Member):
    """Drops a message when it is multicast, or when it is old, and not when it is logged."""

    sender_kind = _ForgetfulSender
    desk_kind = _ShortDesk


class _SilentReceiver(Receiver):
    def lose(self, stream: Stream, spans: list[Span], why: str) -> None:  # noqa: ARG002
        for first, last in spans:
            stream.skip(first, last)
        self.advance(stream)


class SilentExpiry(Member):
    """Gives up messages without a receipt."""

    receiver_kind = _SilentReceiver


class _HastyReceiver(Receiver):
    def through(self, sender: MemberId) -> int:
        return self.streams[sender].next


class AcknowledgeOnReceipt(Member):
    """R-9: acknowledges what the program has not taken."""

    receiver_kind = _HastyReceiver


class _NarrowReceiver(Receiver):
    def _is_unwanted(self, stream: Stream, batch: Batch) -> bool:
        return super()._is_unwanted(stream, batch) or (bool(self._settings.filter) and batch.first % 5 == 0)


class FilterTooNarrow(Member):
    """Passes over what its program wants."""

    receiver_kind = _NarrowReceiver


class _AnybodysRate(Rate):
    def _too_fast(self, others: int) -> bool:  # noqa: ARG002
        return any(cannot for _, cannot in self._opinions.values())


class OneSlowsAll(Member):
    """Slows down for any receiver that cannot follow."""

    rate_kind = _AnybodysRate


class ExplicitIgnored(Member):
    """Acknowledges what its program took, though that says itself what it is through with."""

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        found = super().deliver(now, most)
        for each in found:
            if isinstance(each, Batch):
                self.receiver.acknowledge(each.sender, each.last)
        return found


class _SpillingStream(Stream):
    def take(self, batch: Batch, upto: int, most: int) -> list[Batch]:
        taken = super().take(batch, upto, most)
        if not taken and batch.first > upto:
            self.skip(self.next + 1, batch.first)
        return taken


class _SpillingReceiver(Receiver):
    stream_kind = _SpillingStream


class SpillForgets(Member):
    """Forgets what it has no room for, and does not fetch it later."""

    receiver_kind = _SpillingReceiver


class SlowMemberBlocks(Member):
    """Sends nothing while somebody lacks what it sent."""

    _wanted_at: Nanos = -1
    _now: Nanos = 0

    def _on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        self._now = now
        if isinstance(frame, Gossip) and any(sender == self._me for sender, _ in frame.wanted):
            self._wanted_at = now
        super()._on_frame(now, source, frame)
        self.sending.unblock()

    def _hindrance(self) -> str | None:
        asked = self._wanted_at >= 0 and self._now - self._wanted_at < 2 * self.settings.gossip_period
        return "logger" if asked else None


class ForgetsUnlogged(Member):
    """Drops a delivered message that no logger has, when it is old."""

    desk_kind = _ShortDesk


class _TrustingSession(Session):
    def _must_ask(self, confirmed: Confirm) -> bool:  # noqa: ARG002
        return False


class AtMostOnceFromLogger(Member):
    """Begins where the logger's numbers end, though the incarnation before had delivered more."""

    session_kind = _TrustingSession


class _Careless(Session):
    def give_up(self, now: Nanos, why: str) -> bool:  # noqa: ARG002
        return False


class LeavesItsSessionBehind(Member):
    """Leaves as soon as one logger refuses it, though another one may have admitted it."""

    session_kind = _Careless


class _AnybodysAnswers(Session):
    def is_meant(self, incarnation: int) -> bool:  # noqa: ARG002
        return True


class AnswersToTheFormer(Member):
    """Takes what a logger answered to the incarnation before for an answer to its own question."""

    session_kind = _AnybodysAnswers


class _Unfrozen(FromLogger):
    def _on_inquire(self, now: Nanos, source: MemberId, frame: Inquire) -> None:
        super()._on_inquire(now, source, Inquire(frame.sender, frame.after, freeze=False))

    def _on_reported(self, now: Nanos, source: MemberId, frame: Reported) -> None:
        super()._on_reported(now, source, msgspec.structs.replace(frame, frozen=[]))


class NoFreeze(Member):
    """Goes on taking a stream from anybody after it has answered what it holds of it."""

    from_logger_kind = _Unfrozen


class _Unfenced(FromLogger):
    def _fence(self) -> None:
        pass


class ClosedSenderGoesOn(Member):
    """Sends for ever what will never be logged."""

    from_logger_kind = _Unfenced


class _FencesAll(FromLogger):
    def _on_closed(self, now: Nanos, source: MemberId, frame: Closed) -> None:
        if frame.sender == self._desk.me:
            self._fence()
        else:
            super()._on_closed(now, source, frame)


class FencesWhoLeaves(Member):
    """Takes itself for put out if the end of its stream comes before the farewell that it asked for."""

    from_logger_kind = _FencesAll


class NoIdleHeartbeat(Member):
    """3.1, 5.1: never says which number it gave last: nobody misses a last message that was lost."""

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        if timer is not GossipTimer.HEARTBEAT:
            super().on_timer(now, timer)


class _Unsalted(IdleMarks):
    def hash(self, gossiper: MemberId, number: int) -> bytes | None:  # noqa: ARG002
        found = super().hash(MemberId("anybody"), 0)
        return None if found is None else found[:EIGHT_BITS]


class _UnsaltedDesk(Desk):
    idle_kind = _Unsalted


class HashWithoutSalt(Member):
    """R-18: hashes of what idle senders said, here of 8 bits, collide for ever if they do once."""

    desk_kind = _UnsaltedDesk


class _CredulousRoster(Roster):
    def learn(self, now: Nanos, known: Iterable[Known]) -> None:
        super().learn(now, [(member, standing, 0) for member, standing, _ in known])


class HearsayKeepsAlive(Member):
    """Takes whoever others know for one that was heard just now."""

    roster_kind = _CredulousRoster


class _CountedTwice(LoggedNumbers):
    def learn(self, log: MemberId, upto: Iterable[Entry]) -> bool:
        given = list(upto)
        again = MemberId(f"{log.name} again", log.incarnation)
        return super().learn(log, given) and super().learn(again, given)


class _LostCount(LoggedNumbers):
    def learn(self, log: MemberId, upto: Iterable[Entry]) -> bool:
        return super().learn(MemberId(log.name), upto)


class _FaithfulDesk(Desk):
    logged_kind = _LostCount


class CountsLostDisks(Member):
    """Takes what was on the disk of a logger for logged after that disk was lost."""

    desk_kind = _FaithfulDesk


class _CountingDesk(Desk):
    logged_kind = _CountedTwice


class CountsOneLoggerTwice(Member):
    """Takes two words of one logger for those of two."""

    desk_kind = _CountingDesk
