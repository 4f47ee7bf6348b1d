"""Mistakes in the life of a group: founding, joining, state, disks, those who keep failing."""

from collections.abc import Sequence

import msgspec

from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.backoff import FIRST, Backoff
from semcast.protocols.pieces import Courier
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.candidates import Candidates, Suspects
from semcast.protocols.vsync.founding import Founding
from semcast.protocols.vsync.frames import Hello, Known, StateChunk, Welcome
from semcast.protocols.vsync.ledger import Agreed, Ledger, Record, Then
from semcast.protocols.vsync.ledger import Installed as Entered
from semcast.protocols.vsync.transfer import StateTransfer


class JoinerWithoutState(VirtualSynchrony):
    """Who joins delivers messages before its state is there."""

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        super()._begin(now, welcome, event)
        for epoch in self._epochs:
            epoch.awaits = False


class _TimelessTransfer(StateTransfer):
    def on_chunk(self, source: MemberId, frame: StateChunk) -> bytes | None:
        if self._wanted is not None:
            frame = msgspec.structs.replace(frame, view=self._wanted[0])
        return super().on_chunk(source, frame)


class OldChunkAccepted(VirtualSynchrony):
    """A part of the state at the beginning of an earlier view is taken for one of the state wanted now."""

    transfer_kind = _TimelessTransfer


class _StaleTransfer(StateTransfer):
    def offer(self, view: int, state: bytes) -> None:
        if self._chunks:
            self._view = view
        else:
            super().offer(view, state)


class OldStateHandedOver(VirtualSynchrony):
    """Whoever joins is given the state that was handed over first."""

    transfer_kind = _StaleTransfer


class _HastyLedger(Ledger):
    def write(self, now: Nanos, record: Record, then: Then, *, anew: bool = False) -> None:
        super().write(now, record, lambda _: None, anew=anew)
        then(now)


class PromiseNotSynced(VirtualSynchrony):
    """Says what it promised or accepted before that is on its disk."""

    ledger_kind = _HastyLedger


class _HastyAcceptance(Ledger):
    def write(self, now: Nanos, record: Record, then: Then, *, anew: bool = False) -> None:
        if isinstance(record, Agreed):
            super().write(now, record, lambda _: None, anew=anew)
            then(now)
        else:
            super().write(now, record, then, anew=anew)


class AcceptanceNotSynced(VirtualSynchrony):
    """Says what it accepted before that is on its disk; promises wait."""

    ledger_kind = _HastyAcceptance


class _TaillessLedger(Ledger):
    def recover(self, records: Sequence[bytes]) -> list[Record]:
        return super().recover(records[:-1])


class TailIgnored(VirtualSynchrony):
    """Reads all that its disk kept but for the last record."""

    ledger_kind = _TaillessLedger


class _ViewlessLedger(Ledger):
    def write(self, now: Nanos, record: Record, then: Then, *, anew: bool = False) -> None:
        if isinstance(record, Entered):
            then(now)
        else:
            super().write(now, record, then, anew=anew)


class LastViewNotWritten(VirtualSynchrony):
    """Enters a view without writing that down."""

    ledger_kind = _ViewlessLedger


class _DeafFounding(Founding):
    def learn(self, known: Known) -> None:
        """Whatever others say."""

    def saw_view(self, now: Nanos) -> None:
        """Whoever is there."""


class FoundedBesideAView(VirtualSynchrony):
    """Founds the group though it has heard of a view."""

    founding_kind = _DeafFounding


class _HopelessCandidates(Candidates):
    def back(self, members: Sequence[MemberId], suspects: Suspects) -> list[MemberId]:
        return [member for member in members if suspects(member)]


class ReformedWithoutAccounting(VirtualSynchrony):
    """Takes the silent for dead, and goes on without them."""

    candidates_kind = _HopelessCandidates


class _Careless(Backoff):
    def holds(self, now: Nanos, member: MemberId) -> bool:  # noqa: ARG002
        return False

    def suspects(self, member: MemberId) -> bool:  # noqa: ARG002
        return False


class _CarelessCandidates(Candidates):
    backoff_kind = _Careless


class FlappingLetIn(VirtualSynchrony):
    """Lets in at once whoever comes back, however often it was put out."""

    candidates_kind = _CarelessCandidates


class _Unforgiving(Backoff):
    def _wait(self, count: int) -> Nanos:
        return FIRST << count


class _UnforgivingCandidates(Candidates):
    backoff_kind = _Unforgiving


class HeldOffForEver(VirtualSynchrony):
    """Holds off who keeps failing for longer and longer."""

    candidates_kind = _UnforgivingCandidates


class _WholeCourier(Courier):
    def send(self, dest: MemberId, frame: Frame) -> None:
        self._out.send(dest, frame)

    def multicast(self, frame: Frame) -> None:
        self._out.multicast(frame)

    def announce(self, frame: Frame) -> None:
        self._out.announce(frame)


class NeverInPieces(VirtualSynchrony):
    """Sends control frames as they are, however large."""

    courier_kind = _WholeCourier


class TermsIgnored(VirtualSynchrony):
    """Lets in whoever has set otherwise what must be alike."""

    def _on_hello(self, now: Nanos, source: MemberId, frame: Hello) -> None:
        super()._on_hello(now, source, msgspec.structs.replace(frame, terms=self._terms))
