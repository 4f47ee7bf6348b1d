"""Loggers, broken on purpose."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame
from semcast.protocols.gossip import Logger
from semcast.protocols.gossip.admission import Admission
from semcast.protocols.gossip.arriving import Arriving
from semcast.protocols.gossip.closing import Inquiry
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.copying import Copying
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.departing import Departing
from semcast.protocols.gossip.ending import Ending
from semcast.protocols.gossip.forgetting import Forgetting
from semcast.protocols.gossip.frames import CONTROL, Closed, Entry, Inquire, Join, Report
from semcast.protocols.gossip.intake import Intake
from semcast.protocols.gossip.journal import Journal, Then
from semcast.protocols.gossip.keys import Batched, Keys
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.placing import Placing
from semcast.protocols.gossip.positions import Positions
from semcast.protocols.gossip.publishing import Answer
from semcast.protocols.gossip.pulling import Pulling
from semcast.protocols.gossip.reading import Reading
from semcast.protocols.gossip.records import Counted, Keyed, Record, Released, Replaced
from semcast.protocols.gossip.retention import Retaining
from semcast.protocols.gossip.rows import Row, Rows
from semcast.protocols.gossip.spans import Span, spans_of
from semcast.protocols.gossip.stages import Stages
from semcast.protocols.gossip.staging import Staging
from semcast.protocols.gossip.witnesses import Witnesses


class _HastyIntake(Intake):
    def flush(self, now: Nanos) -> None:
        fresh, self._fresh = self._fresh, type(self._fresh)()
        self._on_log(fresh)
        super().flush(now)


class LoggedBeforeSynced(Logger):
    """R-11: acknowledges what a crash may take."""

    intake_kind = _HastyIntake


class _HastyJournal(Journal):
    def then(self, what: Then) -> None:
        what(0)


class ConfirmBeforeSynced(Logger):
    """Admits a session that a crash makes it forget; and acknowledges, counts and closes as early."""

    journal_kind = _HastyJournal


class _OfThoseConnected(Retaining):
    def minimum(self, now: Nanos, stream: MemberId) -> int | None:
        there = self._books.rows.connected(now - 2 * self._settings.report)
        return min((row.through.get(stream, 0) for row in there), default=None)


class DisconnectedForgotten(Logger):
    """Collects what a session that is away has not acknowledged."""

    retaining_kind = _OfThoseConnected


class _CompactingIntake(Intake):
    def on_data(self, now: Nanos, source: MemberId, frame: Data) -> None:
        stream, batch = self.stream(frame.sender), frame.batch
        fresh = stream is not None and not stream.settled(frame.first)
        if stream is not None and batch is not None and fresh and self._retaining.compacts:
            probe = type(stream)(frame.sender)
            for each in stream.messages.values():
                probe.store(each)
            probe.store(batch)
            for seq, by in probe.obsolete(batch.first, batch.last):
                stream.replace(seq, by)
                self._journal.write(Replaced(frame.sender, seq, by))
        super().on_data(now, source, frame)


class CompactBeforeLogged(Logger):
    """Drops a message for one that is not on disk yet."""

    intake_kind = _CompactingIntake


class _AcrossStream(LogStream):
    def _see_what_it_replaces(self, batch: Batch) -> None:
        super()._see_what_it_replaces(batch)
        if batch.first - 1 in self.messages and batch.annotation is not None:
            self._victims.setdefault(batch.first, []).append(batch.first - 1)


class CompactAcrossOperation(Logger):
    """Drops a part of an operation for the next one."""

    log_stream_kind = _AcrossStream


class _ReceiptlessStream(LogStream):
    def replace(self, seq: int, by: int) -> None:  # noqa: ARG002
        self.messages.pop(seq)


class ReceiptLostWithSegment(Logger):
    """Has neither a message nor a receipt for it."""

    log_stream_kind = _ReceiptlessStream


class _RememberingNothing(LogStream):
    def unsettled(self, first: int, last: int) -> list[Span]:
        return spans_of(seq for seq in range(first, last + 1) if seq not in self.messages)


class RecollectedMessageReadded(Logger):
    """R-7: a duplicate brings back what was collected."""

    log_stream_kind = _RememberingNothing


class _NoWitnesses(Witnesses):
    def of(self, stream: LogStream, number: int) -> MemberId | None:  # noqa: ARG002
        return None


class AsksSendersOnly(Logger):
    """3.2: what a dead sender gave to members only is not logged before its stream is closed."""

    witnesses_kind = _NoWitnesses


class _AsksNobody(Inquiry):
    def complete(self, sessions: Iterable[MemberId]) -> bool:  # noqa: ARG002
        return True


class AsksNobody(Logger):
    """Closes a stream with what is in the log."""

    inquiry_kind = _AsksNobody


class _FirstAnswerStands(Inquiry):
    def questions(self, sessions: Iterable[MemberId]) -> Iterator[tuple[MemberId, Inquire]]:
        for member, question in super().questions(sessions):
            if not self._answers[member].done:
                yield member, question


class FirstAnswerStands(Logger):
    """Waits for what a session once said that it holds, though it has let go of that: for ever."""

    inquiry_kind = _FirstAnswerStands


class _NoHoles(Inquiry):
    def holes(self) -> list[Span]:
        return []


class NoHoles(Logger):
    """Closes a stream, and does not say what nobody has of it."""

    inquiry_kind = _NoHoles


class _ForgetfulRows(Rows):
    def acknowledge(self, member: MemberId, through: Iterable[Entry]) -> None:
        """As if every session were through with all that one is."""
        given = list(through)
        for row in self.all():
            super().acknowledge(row.member, given)
        super().acknowledge(member, given)


class OneSpeaksForAll(Logger):
    """Takes what one session is through with for all of them."""

    rows_kind = _ForgetfulRows


class _FromTheBeginning(Admission):
    def _beginning(self, join: Join, source: MemberId) -> dict[MemberId, int]:
        return super()._beginning(msgspec.structs.replace(join, start="all"), source)


class StartIgnored(Logger):
    """Gives every session that is new all that there is."""

    admission_kind = _FromTheBeginning


class _PastItsOwn(Admission):
    def _beginning(self, join: Join, source: MemberId) -> dict[MemberId, int]:
        own = self._books.streams.get(source)
        found = super()._beginning(join, source)
        return found if own is None else found | {source: own.logged}


class OwnMessagesPassedOver(Logger):
    """Begins a session after what its program had sent before, though it may not have read that."""

    admission_kind = _PastItsOwn


class _WithWhatWasCollected(Admission):
    def _beginning(self, join: Join, source: MemberId) -> dict[MemberId, int]:
        reading = Reading(self._books)
        if join.start == "position":
            return reading.vector(join.at, join.log)
        if join.start != "time":
            return super()._beginning(join, source)
        return reading.vector(max(reading.at_time(join.at), reading.ends().first), join.log)


class BeginsWithWhatWasCollected(Logger):
    """Owes a session that begins at a time or a position also what nobody needed any more, and is gone."""

    admission_kind = _WithWhatWasCollected


class _Hoard(LogStream):
    def _name(self, by: int, olds: list[int]) -> None:
        """Only of what is there already."""
        super()._name(by, [old for old in olds if old in self.messages and old % 2])


class CompactsInPart(Logger):
    """Keeps what was replaced, now and then: the log grows beyond what is live."""

    log_stream_kind = _Hoard


class _NewestFirst(Retaining):
    def _expire(self, stream: LogStream) -> None:
        excess = len(stream.messages) - self._settings.log_messages
        logged = sorted(seq for seq in stream.messages if seq <= stream.logged)
        self._expire_all(stream, spans_of(logged[-excess:] if excess > 0 else []))


class ExpiresNewestFirst(Logger):
    """Keeps the old for the new, where there are too many."""

    retaining_kind = _NewestFirst


class _EmptyIsOver(Retaining):
    def minimum(self, now: Nanos, stream: MemberId) -> int | None:
        there = self._books.streams[stream]
        return super().minimum(now, stream) if there.last is None or there.messages else None


class EmptyStreamsForgotten(Logger):
    """Forgets a stream of which everything expired, though a session has not been told of that."""

    retaining_kind = _EmptyIsOver


class KeysForgotten(Logger):
    """Knows no key of a batch that was published before it crashed."""

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:
        super().recover(now, records, first)
        self.books.keys = Keys(self.settings.publish_keys)


class _Incomplete(Staging):
    def _check(self, stages: Sequence[tuple[str, int]]) -> None:
        """Makes do with the pieces that are there."""

    def release(self, key: bytes, stages: Sequence[tuple[str, int]]) -> Batched:
        there = self._books.stages
        found = [(stage, pieces - there.lacking(stage, pieces)) for stage, pieces in stages]
        return super().release(key, [each for each in found if each[1]])


class HalfABatch(Logger):
    """Publishes the pieces of a batch that are there, and counts the others as gone."""

    staging_kind = _Incomplete


class _Unaware(Keys):
    def get(self, key: bytes) -> Batched | None:  # noqa: ARG002
        return None


class PublishedTwice(Logger):
    """Publishes a batch, whether or not it knows the key."""

    keys_kind = _Unaware


class _ByAge(Keys):
    def _rank(self, key: bytes) -> None:
        self._others[key] = None


class LastKeysForgotten(Logger):
    """Forgets the last batch of a program over the batches of others."""

    keys_kind = _ByAge


class _Alone(Copying):
    def _is_enough(self, sender: MemberId, last: int) -> bool:  # noqa: ARG002
        return True


class PublishedOnOneDisk(Logger):
    """Says that a batch is logged when it is on the own disk, however many loggers must have it."""

    copying_kind = _Alone


class _Keyless(Journal):
    def write(self, record: Record) -> int:
        return super().write(
            msgspec.structs.replace(record, key=b"?") if isinstance(record, Released) else record
        )


class KeyBesideTheBatch(Logger):
    """Has the key of what was staged in memory alone."""

    journal_kind = _Keyless


class StagesForgotten(Logger):
    """Has nothing any more, after a crash, of what was staged."""

    def recover(self, now: Nanos, records: Sequence[bytes], first: int = 0) -> None:
        super().recover(now, records, first)
        self.books.stages = Stages()


class _WithoutKeys(Journal):
    def rewrite(self, records: Iterable[Record]) -> None:
        super().rewrite(record for record in records if not isinstance(record, Keyed))


class KeysTrimmed(Logger):
    """Writes a log anew without the keys of what was published."""

    journal_kind = _WithoutKeys


class _Hurried(Staging):
    def stage(
        self,
        now: Nanos,
        stage: str,
        number: int,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation | None],
        answer: Answer,
    ) -> None:
        super().stage(now, stage, number, payloads, annotations, lambda _level, _position: None)
        answer("staged", 0)


class StagedBeforeSynced(Logger):
    """Says that a piece of a batch is there before it is on disk."""

    staging_kind = _Hurried


class _Hoarding(LogStream):
    def crowded(self, most: int) -> int:  # noqa: ARG002
        return 0


class ReceiptsKeptForEver(Logger):
    """Remembers what replaced each message until every session is past it, also one that never comes back."""

    log_stream_kind = _Hoarding


class _Levelling(LogStream):
    def merge(self, below: int) -> None:
        super().merge(below)
        self.expired.drop(below)


class ExpiredCountsAsReplaced(Logger):
    """Forgets why messages left: says that something replaced what had expired."""

    log_stream_kind = _Levelling


class _NumberedAnew(Placing):
    def start(self, now: Nanos) -> None:
        books = self._books
        books.positions = Positions()
        for stream in books.streams.values():
            stream.placed = 0
        super().start(now)


class PositionsGivenAnew(Logger):
    """Counts what is left of a log when it starts again."""

    placing_kind = _NumberedAnew


class _Uncounted(Journal):
    def rewrite(self, records: Iterable[Record]) -> None:
        super().rewrite(record for record in records if not isinstance(record, Counted))


class PositionsReused(Logger):
    """Writes a log anew without the positions that are empty: the last are given again after a restart."""

    journal_kind = _Uncounted


class _Hasty(Admission):
    def enough(self, row: Row) -> bool:  # noqa: ARG002
        return True


class ConfirmBeforeReplicated(Logger):
    """Confirms a session that no other logger has."""

    admission_kind = _Hasty


class _Selfish(Retaining):
    def minimum(self, now: Nanos, stream: MemberId) -> int | None:  # noqa: ARG002
        here = [row for row in self._books.rows.all() if row.here]
        return min((row.through.get(stream, 0) for row in here), default=None)

    def _elsewhere(self, stream: MemberId) -> int:  # noqa: ARG002
        return 1 << 62


class CollectsOwnSessionsOnly(Logger):
    """Collects what the sessions of other loggers need."""

    retaining_kind = _Selfish


class _Secretive(Forgetting):
    def share(self) -> None:
        pass

    def announce(self, names: list[str]) -> None:
        pass

    def tell(self, member: MemberId) -> None:
        pass


class ForgetsAlone(Logger):
    """Goes on without another logger, and tells nobody."""

    forgetting_kind = _Secretive


class _Welcoming(Forgetting):
    def refuse(self, _now: Nanos, source: MemberId, frame: Frame) -> None:
        pass

    def tell(self, member: MemberId) -> None:
        pass


class ForgottenComesBack(Logger):
    """Does not tell a forgotten logger that it is."""

    forgetting_kind = _Welcoming


class _Faithful(Colleagues):
    def forget(self, name: str) -> None:
        pass


class ForgottenAwaited(Logger):
    """Waits for ever for a logger that is forgotten."""

    colleagues_kind = _Faithful


class _OfOthers(Departing):
    def _is_inactive(self, now: Nanos, row: Row) -> bool:
        return row.here and super()._is_inactive(now, row)


class DeadSessionsOfOthers(Logger):
    """Leaves it to the logger of a session to end it, also to one that is forgotten."""

    departing_kind = _OfOthers


class _Presumptuous(Ending):
    @property
    def decides(self) -> bool:
        return True

    def _others(self) -> tuple[list[MemberId], bool]:
        return [], True


class ClosesTwiceDifferently(Logger):
    """Every logger closes streams, with what its own sessions have."""

    ending_kind = _Presumptuous


class _HastyEnding(Ending):
    def _conclude(self, inquiry: Inquiry) -> None:
        super()._conclude(inquiry)
        if inquiry.closing:
            self._out.multicast(Closed(inquiry.stream.sender, inquiry.last, []))


class ClosedBeforeSynced(Logger):
    """Says how a stream ended before it has that on disk: after a crash it may end otherwise."""

    ending_kind = _HastyEnding


class _Deaf(Departing):
    def is_deaf(self, now: Nanos) -> bool:  # noqa: ARG002
        return False


class ClosesWhileCutOff(Logger):
    """Hears nobody, takes everybody for silent, and closes streams without those whom it cannot ask."""

    departing_kind = _Deaf


class _Content(Ending):
    def _look_for_the_rest(self) -> None:
        """Others have it, or they have not."""


class LeavesEndsInPart(Logger):
    """Takes a stream that ended for whole, though the disk is lost that had what others had not copied."""

    ending_kind = _Content


_BESIDE = 24 + 19
"""Bytes that a stream takes in a frame besides its name, and a gap."""


class _Narrow(Pulling):
    def _lacking(self, last: MemberId | None) -> list[LogStream]:  # noqa: ARG002
        sizes = accumulate(len(sender.name) + _BESIDE for sender in self._books.streams)
        first = sum(1 for size in sizes if size <= CONTROL)
        lacking = [stream.contiguous < stream.known and stream for stream in self._books.streams.values()]
        return [stream for stream in lacking[:first] if stream]


class PullsTheFirstAlone(Logger):
    """Asks other loggers for what its first streams lack, as long as a log has more than fit into a frame."""

    pulling_kind = _Narrow


class _InParts(Arriving):
    def take(self, source: MemberId, frame: Report) -> list[Report]:  # noqa: ARG002
        return [frame]


class _HalfAdmission(Admission):
    arriving_kind = _InParts


class MovesInParts(Logger):
    """Takes a session in with the first part of its position; of the rest, what it has itself."""

    admission_kind = _HalfAdmission


class _Narrator(Admission):
    def _owed(self, row: Row) -> list[Entry]:
        return [entry for entry in super()._owed(row) if entry[0] in self._books.streams]


class ConfirmsWhatItHasHeardOf(Logger):
    """Does not tell a session where it goes on in streams of which another logger alone has heard."""

    admission_kind = _Narrator


class NewLogAsksNobody(Logger):
    """Says at once what there is of a stream, though nobody knows yet whose sessions its lost disk had."""

    def _wait_for_reports(self, now: Nanos) -> None:
        self.retaining.wait_for_reports(now)
