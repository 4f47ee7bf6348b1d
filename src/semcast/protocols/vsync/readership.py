"""How a member's program reads, and what follows from that for the views: rule 9 of `docs/flow-control.md`.

A change of view never waits for a program. But each one may add to what waits for it, so who has more than
queue and reserve hold, and whose program has stopped, does not go on into the next view. It comes back when
its program reads. Who waits for the state of the group asks somebody else for it where nothing moves.
"""

from semcast.core.ids import SECOND, Nanos
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.vsync.settings import VsyncSettings
from semcast.protocols.vsync.transfer import StateTransfer

UNREAD = "its program does not read"
"""Why a member is put out whose program has stopped."""
_LONG: Nanos = SECOND
"""Who has stopped for so long has not merely a slow handler; and a state is waited for so long in vain."""


class Readership:
    """Of one member.

    Args:
        backlog: what waits for the program.
        transfer: of the state that it may wait for.
        settings: of the group.
    """

    def __init__(self, backlog: Backlog, transfer: StateTransfer, settings: VsyncSettings) -> None:
        self._backlog = backlog
        self._transfer = transfer
        self._leave_after = settings.leave_after
        self._began_at: Nanos | None = None
        self._read_at: Nanos = 0  # when the program was last seen not to have stopped
        self._kept_up_at: Nanos = 0  # when it was last seen to follow
        self._moved_at: Nanos = 0  # when the state that is waited for was last seen to come, or to have time
        self._here = 0  # chunks of it that had come by then

    def look(self, now: Nanos) -> None:
        """Time passes."""
        backlog, here = self._backlog, self._transfer.here
        if self._began_at is None:
            self._began_at = now
        if not backlog.reader.stopped:
            self._read_at = now
        if not (backlog.reader.stopped and backlog.full()):
            self._kept_up_at = now
        if not (backlog.lacks_state and backlog.overflowing()) or here != self._here:
            self._moved_at = now
        self._here = here

    def stopped(self, now: Nanos) -> bool:
        """Whether the program has not read for long, and does not wait to send."""
        return self._backlog.reader.stopped and now - self._read_at >= _LONG

    def reads_again(self, now: Nanos) -> bool:
        """Whether the program takes what there is for it, if anything: it was put out, and is told so."""
        return self._began_at is not None and now - self._began_at >= _LONG and self._read_at == now

    def overfull(self, now: Nanos) -> bool:
        """Whether it cannot be in another view: more waits for a program that has stopped than may."""
        return self._backlog.beyond() and self.stopped(now)

    def too_slow(self, now: Nanos) -> bool:
        """Whether it leaves, by its policy."""
        return bool(self._leave_after) and now - self._kept_up_at >= self._leave_after

    def starves(self, now: Nanos) -> bool:
        """Whether it waits for a state that does not come, with queue and reserve full.

        The program that is to hand the state over may wait in `send` for room, which there is none here.
        """
        return now - self._moved_at >= _LONG
