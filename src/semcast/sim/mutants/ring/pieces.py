"""Large messages and frames, broken: what travels in parts arrives whole, or not at all."""

from semcast.protocols.pieces import Piece
from semcast.protocols.ring import Ring
from semcast.protocols.ring.delivery import Change
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.outlet import Outlet
from semcast.protocols.ring.pieces import Puzzles
from semcast.protocols.ring.sending import Sending
from semcast.sim.mutants.mutant import Mutant


class _GoesOn(Sending):
    def begin(self) -> None:
        self.last_sent = self.last_safe = 0


class _HalfSentGoesOn(Operation):
    sending_kind = _GoesOn


class HalfSentGoesOn(Ring):
    """Sends only the rest of a message that was cut off by a change of configuration."""

    operation_kind = _HalfSentGoesOn


class _Hoarding(Outlet):
    def begin(self, change: Change) -> None:
        kept = self._assembly
        super().begin(change)
        self._assembly = kept


class _FragmentsKept(Operation):
    outlet_kind = _Hoarding


class FragmentsKept(Ring):
    """Keeps fragments across a change of configuration: the message that begins again loses its head."""

    operation_kind = _FragmentsKept


class _PieceForWhole(Puzzles):
    def _complete(self, piece: Piece, pieces: dict[int, bytes]) -> bool:  # noqa: ARG002
        return True


class PieceTakenForTheWhole(Ring):
    """Does not wait for the other pieces of a frame."""

    puzzles_kind = _PieceForWhole


class _Mixed(Puzzles):
    def _belongs(self, piece: Piece, digest: bytes, count: int) -> bool:  # noqa: ARG002
        return piece.count == count

    def _genuine(self, data: bytes, digest: bytes) -> bool:  # noqa: ARG002
        return True


class PiecesMixed(Ring):
    """Puts pieces of two attempts together."""

    puzzles_kind = _Mixed


MUTANTS = {
    "half-sent-goes-on": Mutant(HalfSentGoesOn, by_chance=False),
    "fragments-kept": Mutant(FragmentsKept, by_chance=False),
    "piece-taken-for-the-whole": Mutant(PieceTakenForTheWhole, by_chance=False),
    "pieces-mixed": Mutant(PiecesMixed, by_chance=False),
}
