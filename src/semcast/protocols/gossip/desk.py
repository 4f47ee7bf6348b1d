"""What the parts of a member have in common: who it is, what it knows, and what leaves it."""

from collections.abc import Callable, Container, Iterable
from typing import ClassVar

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.gossip.buffer import GossipBuffer, Kept
from semcast.protocols.gossip.data import data_of
from semcast.protocols.gossip.frames import Entry, Forgotten, Notice, Want, wanted
from semcast.protocols.gossip.idle import IdleMarks
from semcast.protocols.gossip.logged import LoggedNumbers
from semcast.protocols.gossip.peers import Peers
from semcast.protocols.gossip.receiver import Receiver
from semcast.protocols.gossip.service import ServiceLimit
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.spans import Span, Spans, first_of, spans_of, within
from semcast.protocols.gossip.streams import WANTED

_EVERYTHING = 1 << 62
NOTICES = 32
"""Receipts in one frame."""

HearOf = Callable[[Nanos, MemberId, int], None]
Hashes = Callable[[MemberId, int], bytes | None]
Asked = Iterable[tuple[MemberId, Iterable[Span]]]


def _not_replaced(kept: Kept, batch: Batch, upto: int, purged: list[tuple[int, int, int]]) -> list[Batch]:
    """Those of messages in a row that nothing replaced; the others are added to what was purged."""
    if batch.annotation is None and batch.items is None:
        return [batch]
    stand: list[int] = []
    for seq in range(batch.first, batch.last + 1):
        by = kept.replacement(seq, upto)
        if by is None:
            stand.append(seq)
        else:
            purged.append((seq, seq, by))
    return [batch.cut(*span) for span in spans_of(stand)]


def _nobody(_gossiper: MemberId, _number: int) -> None:
    """Membership is fixed."""


class Desk:
    """Serves peers, and asks the logger. What asks peers is in `lbrm.py`, `pbcast.py` and `rpbcast.py`."""

    __slots__ = (
        "_limit",
        "buffer",
        "fetched",
        "hear_of",
        "idle",
        "logged",
        "logger",
        "me",
        "members",
        "out",
        "peers",
        "receiver",
        "round",
        "settings",
        "stats",
    )

    buffer_kind: ClassVar[type[GossipBuffer]] = GossipBuffer
    logged_kind: ClassVar[type[LoggedNumbers]] = LoggedNumbers
    idle_kind: ClassVar[type[IdleMarks]] = IdleMarks

    def __init__(
        self,
        me: MemberId,
        settings: GossipSettings,
        receiver: Receiver,
        peers: Peers,
        stats: Statistics,
        out: Outbox,
        hear_of: HearOf,
    ) -> None:
        self.me = me
        self.settings = settings
        self.receiver = receiver
        self.peers = peers
        self.stats = stats
        self.out = out
        self.round = 1
        self.hear_of = hear_of
        """To be told that a sender gave a number."""
        self.idle = self.idle_kind()
        self.logged = self.logged_kind(settings.log_acks)
        self.logger: MemberId | None = None
        """Whom to ask; None where there is no logger, or none was found yet."""
        self.members: Hashes = _nobody
        """The hash of who is known to be there, for a gossiper and a round."""
        logged = self.logged.numbers if settings.logs else None
        self.buffer = self.buffer_kind(settings.gc_rounds, settings.gossip_messages, logged, receiver.ended)
        receiver.is_over = self.logged.forget
        self._limit = ServiceLimit(settings.repairs_per_second)
        self.fetched: Container[MemberId] = ()
        """Streams that are asked for in another way (`fetching.py`)."""

    def serve(self, now: Nanos, target: MemberId, asked: Asked, number: int) -> Asked:
        """Repair what is kept here; returns what was here once and is forgotten.

        Of what was replaced only that is said: who asks has the replacement, or asks for it as well, or hears
        of it by the notice.
        """
        forgotten: list[tuple[MemberId, list[Span]]] = []
        for sender, spans in asked:
            some = first_of(Spans(spans), WANTED)
            had = self._serve(now, target, sender, some, number)
            stream = self.receiver.streams.get(sender)
            if stream is not None:
                lacking = [gap for span in some for gap in had.gaps(*span)]
                gone = within(lacking, stream.start + 1, stream.next)
                if gone:
                    forgotten.append((sender, gone))
        return forgotten

    def _serve(self, now: Nanos, target: MemberId, sender: MemberId, spans: list[Span], number: int) -> Spans:
        """What is kept of a stream; returns what that is."""
        had = Spans()
        kept = self.buffer.get(sender)
        if kept is None:
            return had
        purged: list[tuple[int, int, int]] = []
        upto = self.logged.upto(sender) if self.settings.logs else _EVERYTHING
        for batch in [each for span in spans for each in kept.messages.between(*span)]:
            had.add(batch.first, batch.last)
            for part in _not_replaced(kept, batch, upto, purged):
                self._repair(now, target, part, number)
        for start in range(0, len(purged), NOTICES):
            self.out.send(target, Notice(sender, purged[start : start + NOTICES]))
        return had

    def _repair(self, now: Nanos, target: MemberId, batch: Batch, number: int) -> None:
        count = self._limit.some(now, len(batch.payloads))
        if count:
            self.stats.retransmitted += count
            self.out.send(target, data_of(batch.cut(batch.first, batch.first + count - 1), number))

    def mark_idle(self, now: Nanos, sender: MemberId, seq: int) -> None:
        """What an idle sender said last, unless its stream is over, or it was heard of since."""
        stream = self.receiver.streams.get(sender)
        if stream is not None and stream.known > seq:
            return
        if stream is None or stream.known < seq:
            self.hear_of(now, sender, seq)
            stream = self.receiver.streams.get(sender)
        if stream is not None and not stream.frozen:
            self.idle.mark(sender, seq)

    def learn(self, log: MemberId, upto: Iterable[Entry]) -> bool:
        """A log has everything up to these numbers; False if it does not count. What is over is forgotten."""
        over = self.receiver.ended
        return self.logged.learn(log, [entry for entry in upto if entry[0] not in over] if over else upto)

    def note_forgotten(self, target: MemberId, forgotten: Asked, number: int) -> None:
        """GcNOTE."""
        spans = wanted(forgotten)
        if spans:
            self.stats.control_frames += 1
            self.out.send(target, Forgotten(number, spans))

    def ask_logger(self, asked: Asked) -> list[tuple[MemberId, list[Span]]]:
        """RTX; returns what there was room for in a frame."""
        spans = wanted(asked)
        if not spans or self.logger is None:
            return []
        self.stats.requested += 1
        self.stats.control_frames += 1
        self.out.send(self.logger, Want(self.round, spans))
        return spans

    def give_up_overdue(self) -> None:
        """Without a logger: what peers did not give in time is lost."""
        for stream in self.receiver.lagging():
            overdue = stream.age(self.round - self.settings.gossip_rounds)
            if overdue > stream.next:
                self.receiver.lose(stream, [(stream.next + 1, overdue)], "expired")

    def lacks_of(self, sender: MemberId) -> int:
        """How many messages of one sender are missing, and are not left to the logger."""
        stream = self.receiver.streams.get(sender)
        if stream is None or stream.frozen:
            return 0
        spans = stream.missing(peers=True, most=WANTED + self.settings.hold)
        return sum([last - first + 1 for first, last in spans])

    def lacking(self, *, peers: bool) -> list[tuple[MemberId, list[Span]]]:
        """What to ask for now, of every stream, in turn with the rounds; not more than there is room for."""
        most, credit = min(WANTED, self.settings.hold), self.receiver.credit()
        found: list[tuple[MemberId, list[Span]]] = []
        for stream in self.receiver.lagging_from(self.round):
            if credit < 1:
                break
            if stream.sender in self.fetched or (peers and stream.frozen):
                continue
            spans = first_of(stream.missing(peers=peers, most=most), credit)
            if spans:
                found.append((stream.sender, spans))
                credit -= sum([last - first + 1 for first, last in spans])
        return found
