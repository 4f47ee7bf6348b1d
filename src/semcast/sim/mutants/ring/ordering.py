"""Order and safety, broken: everybody delivers the same in the same order, and safe is what all have."""

from collections.abc import Sequence

import msgspec

from semcast.core.events import Delivery
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.protocols.ring import Ring
from semcast.protocols.ring.frames import Packet, Token
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.ring.outlet import Outlet
from semcast.protocols.ring.rotation import Rotation
from semcast.sim.mutants.contents import changed
from semcast.sim.mutants.mutant import Mutant


class _HastyOrder(RingOrder):
    def release(self, aru: int) -> None:
        self._released_aru = aru
        super().release(aru)


class _SafeAfterOneRotation(Operation):
    order_kind = _HastyOrder


class SafeAfterOneRotation(Ring):
    """Takes the first `aru` it releases for confirmed."""

    operation_kind = _SafeAfterOneRotation


class _Boastful(RingOrder):
    def lower_aru(self, token: Token, seq: int, held_at: int) -> tuple[int, int]:
        aru, lowered_by = super().lower_aru(token, seq, held_at)
        return max(aru, min(self.my_aru, held_at)), lowered_by


class _AruRaisedTooEarly(Operation):
    order_kind = _Boastful


class AruRaisedTooEarly(Ring):
    """Raises `aru` to what it has itself, though it was somebody else who lowered it."""

    operation_kind = _AruRaisedTooEarly


class _Gullible(Rotation):
    def on_token(self, now: Nanos, source: MemberId, token: Token) -> None:
        self._passing.number = 0
        super().on_token(now, source, token)


class _OldTokenAccepted(Operation):
    rotation_kind = _Gullible


class OldTokenAccepted(Ring):
    """Does not look at the number of a token."""

    operation_kind = _OldTokenAccepted


class ChangedPayload(Ring):
    """Delivers some messages with a bit changed."""

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        taken = super().deliver(now, most)
        return [changed(each) if isinstance(each, Batch) else each for each in taken]


class _ShiftedOutlet(Outlet):
    def _note_places(self, members: tuple[MemberId, ...], packets: Sequence[Packet]) -> None:
        shifted = [msgspec.structs.replace(packet, seq=packet.seq + packet.seq % 2) for packet in packets]
        super()._note_places(members, shifted)


class _ShiftedOperation(Operation):
    outlet_kind = _ShiftedOutlet


class PositionRecordedWrong(Ring):
    """Deliveries are recorded at the packet after theirs, every other time."""

    operation_kind = _ShiftedOperation


MUTANTS = {
    "safe-after-one-rotation": Mutant(SafeAfterOneRotation),
    "aru-raised-too-early": Mutant(AruRaisedTooEarly),
    "old-token-accepted": Mutant(OldTokenAccepted),
    "changed-payload": Mutant(ChangedPayload),
    "position-recorded-wrong": Mutant(PositionRecordedWrong),
}
