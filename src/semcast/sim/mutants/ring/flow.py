"""Flow control, broken: memory is bounded, something always moves, and everybody gets a turn."""

from collections.abc import Sequence
from random import Random

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.protocols.ring import Ring, RingSettings
from semcast.protocols.ring.backlog import Backlog
from semcast.protocols.ring.flow import Flow
from semcast.protocols.ring.formation import Formation
from semcast.protocols.ring.forming import Forming
from semcast.protocols.ring.frames import FormToken
from semcast.protocols.ring.leaving import Leaving
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.outlet import Outlet
from semcast.protocols.ring.rotation import Rotation
from semcast.sim.mutants.mutant import Mutant


class _QueueOnly(Outlet):
    def _take(self, now: Nanos, batch: Batch) -> int:
        return self.queue.add(batch, behind=self._hurried(now))


class _NoReserve(Operation):
    outlet_kind = _QueueOnly


class NoReserve(Ring):
    """Takes nothing beyond its queue, though its program waits in `send`."""

    operation_kind = _NoReserve


class _Equal(Rotation):
    def _comes_first(self) -> bool:
        return False


class _NobodyExempt(Operation):
    rotation_kind = _Equal


class NobodyExempt(Ring):
    """Sends nothing during a stop, though its own program waits in `send`."""

    operation_kind = _NobodyExempt


class _Boundless(Backlog):
    @property
    def stops(self) -> bool:
        return False


class _NeverFull(Outlet):
    backlog_kind = _Boundless


class _NobodySaysStop(Operation):
    outlet_kind = _NeverFull


class NobodySaysStop(Ring):
    """Lets the others send new messages, though it already receives into its reserve."""

    operation_kind = _NobodySaysStop


class _Cautious(Backlog):
    @property
    def stops(self) -> bool:
        return self.full


class _FullAtOnce(Outlet):
    backlog_kind = _Cautious


class _StopAtFullQueue(Operation):
    outlet_kind = _FullAtOnce


class StopAtFullQueue(Ring):
    """Says stop when its queue is full: then nothing comes that replaces what is obsolete."""

    operation_kind = _StopAtFullQueue


class _StopForgetful(Forming):
    def _stop_on(self, now: Nanos, token: FormToken, members: Sequence[MemberId]) -> int:  # noqa: ARG002
        return -1


class _StopForgotten(Formation):
    forming_kind = _StopForgetful


class StopForgotten(Ring):
    """A stop ends with the configuration in which it was said."""

    formation_kind = _StopForgotten


class _Silent(Operation):
    def behind(self) -> bool:
        return False


class ViewSeenByReaderOnly(Ring):
    """Waits until its program reads on before it sends in a new configuration."""

    operation_kind = _Silent


class _Small(Backlog):
    @property
    def overfull(self) -> bool:
        return self.stops


class _QueueIsAll(Outlet):
    backlog_kind = _Small


class _ChangeOnlyBelowQueue(Operation):
    outlet_kind = _QueueIsAll


class ChangeOnlyBelowQueue(Ring):
    """Takes no part in a change of configuration while it uses its reserve."""

    operation_kind = _ChangeOnlyBelowQueue


class _Strict(Leaving):
    def _stopped(self) -> bool:
        return True


class _LeaveClockRunsInSend(Operation):
    leaving_kind = _Strict


class LeaveClockRunsInSend(Ring):
    """Leaves because of a full queue, though its program waits in `send`."""

    operation_kind = _LeaveClockRunsInSend


class _Weightless(Backlog):
    @property
    def limit_bytes(self) -> int:
        return 1 << 40


class _Countless(Outlet):
    backlog_kind = _Weightless


class _BytesUncounted(Operation):
    outlet_kind = _Countless


class BytesUncounted(Ring):
    """Takes messages of any size until there are too many of them."""

    operation_kind = _BytesUncounted


class _Narrow(RingSettings, frozen=True, kw_only=True):
    def window_of(self, size: int) -> int:  # noqa: ARG002
        return self.window


class WindowBelowMembers(Ring):
    """Takes the window as it was set, however many members share it."""

    def __init__(self, me: MemberId, settings: RingSettings, rng: Random, out: Outbox) -> None:
        super().__init__(me, _Narrow(**msgspec.structs.asdict(settings)), rng, out)


class _Greedy(Flow):
    def _reserve(self, seq: int, *, shared: bool) -> int:  # noqa: ARG002
        return 0


class _AllForOneself(Rotation):
    flow_kind = _Greedy


class _WindowForOneself(Operation):
    rotation_kind = _AllForOneself


class WindowForOneself(Ring):
    """Leaves nothing of the window to others, whoever wants to send."""

    operation_kind = _WindowForOneself


MUTANTS = {
    "no-reserve": Mutant(NoReserve, by_chance=False),
    "nobody-exempt": Mutant(NobodyExempt, by_chance=False),
    "nobody-says-stop": Mutant(NobodySaysStop, by_chance=False),
    "stop-at-full-queue": Mutant(StopAtFullQueue, by_chance=False),
    "stop-forgotten": Mutant(StopForgotten, by_chance=False),
    "view-seen-by-reader-only": Mutant(ViewSeenByReaderOnly, by_chance=False),
    "change-only-below-queue": Mutant(ChangeOnlyBelowQueue, by_chance=False),
    "bytes-uncounted": Mutant(BytesUncounted, by_chance=False),
    "leave-clock-runs-in-send": Mutant(LeaveClockRunsInSend, by_chance=False),
    "window-below-members": Mutant(WindowBelowMembers, by_chance=False),
    "window-for-oneself": Mutant(WindowForOneself, by_chance=False),
}
