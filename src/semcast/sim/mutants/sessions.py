"""Durable sessions whose programs say what they are through with, broken on purpose."""

from collections.abc import Mapping

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip import GossipSettings, Logger
from semcast.protocols.gossip.acknowledging import Acknowledging
from semcast.protocols.gossip.admission import Admission
from semcast.protocols.gossip.departing import Departing
from semcast.protocols.gossip.frames import Acknowledge, Acknowledged, Join
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.session import Session
from semcast.sim.dealing import DealingMember
from semcast.sim.mutants import gossip
from semcast.sim.mutants.mutant import Mutant


class ExplicitIgnored(gossip.ExplicitIgnored, DealingMember):
    """The same of programs that acknowledge what they dealt with."""


class _HastyAdmission(Admission):
    def on_acknowledge(self, now: Nanos, source: MemberId, frame: Acknowledge) -> None:
        super().on_acknowledge(now, source, frame)
        self._out.send(source, Acknowledged(frame.serial, frame.part, source.incarnation))


class AcknowledgedBeforeSynced(Logger):
    """Answers a program before it has on disk what that is through with."""

    admission_kind = _HastyAdmission


class _Final(Session):
    def leave(self, now: Nanos) -> None:
        self._settings = msgspec.structs.replace(self._settings, stays=False)
        super().leave(now)


class EndsWithItsProgram(DealingMember):
    """Ends its session when its program stops, though that should go on."""

    session_kind = _Final


class _Forward(Admission):
    def _admit(self, now: Nanos, source: MemberId, frame: Join) -> None:
        known = self._books.rows.known(source.name)
        if known is not None and known.member != source:
            known.through = {stream: log.logged for stream, log in self._books.streams.items()}
        super()._admit(now, source, frame)


class ComesBackAtTheEnd(Logger):
    """Has a session that comes back begin with what is sent from then on."""

    admission_kind = _Forward


class _Generous(Acknowledging):
    def acknowledge(self, upto: Mapping[MemberId, int], ticket: int, logger: MemberId | None) -> None:
        """And all other streams, as far as they came."""
        for stream in self._receiver.streams.values():
            self._receiver.acknowledge(stream.sender, stream.next)
        super().acknowledge(upto, ticket, logger)


class OneBatchSpeaksForAll(DealingMember):
    """Takes a word about one stream for one about all."""

    def _assemble(self, settings: GossipSettings) -> None:
        super()._assemble(settings)
        self.acknowledging = _Generous(self.receiver, self.out)


class _Hopeful(Departing):
    def is_deaf(self, now: Nanos) -> bool:
        for row in self._books.rows.all():
            row.spoke_at = now
        return super().is_deaf(now)


class ExpectsTheDead(Logger):
    """Takes itself for cut off in every pause, since a session that is dead does not report."""

    departing_kind = _Hopeful


class _Forgetful(LogStream):
    def _update(self, seq: int, item: str) -> None:
        super()._update(seq, item)
        if self.messages.size_of(seq) and seq <= self.contiguous:
            self._victims.setdefault(seq, []).append(seq)


class ReplacedByItself(Logger):
    """Takes a message that it reads twice, as a rewriting that was cut off leaves it, for its replacement."""

    log_stream_kind = _Forgetful


MUTANTS = {
    "explicit-ignored": Mutant(ExplicitIgnored),
    "acknowledged-before-synced": Mutant(logger=AcknowledgedBeforeSynced),
    "ends-with-its-program": Mutant(EndsWithItsProgram),
    "comes-back-at-the-end": Mutant(logger=ComesBackAtTheEnd),
    "one-batch-speaks-for-all": Mutant(OneBatchSpeaksForAll),
    "replaced-by-itself": Mutant(logger=ReplacedByItself, by_chance=False),
    "expects-the-dead": Mutant(logger=ExpectsTheDead, by_chance=False),
}
