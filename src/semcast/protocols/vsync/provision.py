"""The state of the application as the views see it: who has it, who is asked for it, and when another is.

`StateTransfer` brings it from one to the other; which one that is, each change of view decides.
"""

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.vsync.changes import Change
from semcast.protocols.vsync.flush import Program
from semcast.protocols.vsync.frames import Welcome
from semcast.protocols.vsync.readership import Readership
from semcast.protocols.vsync.settings import VsyncSettings
from semcast.protocols.vsync.transfer import StateTransfer


class Provision:
    """One member's part.

    Args:
        me: this member.
        settings: whether there is a state at all.
        backlog: of its program.
        transfer: brings the state.
        readership: how its program reads.
    """

    def __init__(
        self,
        me: MemberId,
        settings: VsyncSettings,
        backlog: Backlog,
        transfer: StateTransfer,
        readership: Readership,
    ) -> None:
        self.stateful = False
        """Whether the program has the state of the group."""
        self._me = me
        self._exists = settings.state
        self._backlog = backlog
        self._transfer = transfer
        self._readership = readership
        self._view = 0
        self._providers: list[MemberId] = []  # of this view, in the order in which they are asked
        self._said_stopped = False  # when the last view ended
        self._unread = False  # so did everybody who has the state, and somebody waits for that

    def reads(self) -> bool:
        """Whether the program takes what is delivered: only then it has a state, or needs one."""
        return self._backlog.reader.follows and not self._backlog.reader.closing

    def gives(self) -> bool:
        """Whether the program would hand over its state, or has done so."""
        return self.reads() or self._transfer.offers(self._view)

    @property
    def provider(self) -> MemberId | None:
        """Who is asked for the state in this view."""
        return self._providers[0] if self._providers else None

    # Views

    def enter(self, welcome: Welcome) -> None:
        """The first view of this member. Where nobody has a state, its own is as good as any."""
        has = welcome.lost or self._me in (welcome.holders() or [self._me])
        self.stateful = not self._exists or (self._backlog.reader.follows and has)

    def install(self, change: Change) -> None:
        """The next view."""
        self.stateful = self.stateful or (change.lost and self._backlog.reader.follows)
        self._unread = change.unread and len(change.providers) < len(change.members)

    def begin(self, welcome: Welcome) -> tuple[bool, bool]:
        """A view begins; returns whether this member waits for the state there, and whether it is asked."""
        self._view, self._providers = welcome.view, welcome.holders()
        needy = self._exists and not welcome.lost and len(welcome.providers) < len(welcome.members)
        provider = self.provider
        awaits = not self.stateful and self.reads()
        if awaits and provider is not None and provider != self._me:
            self._transfer.want(welcome.view, provider)
        return awaits, needy and provider == self._me

    def end(self, now: Nanos) -> Program:
        """A view is about to end: what the others have to know of the program."""
        readership = self._readership
        starves = self._backlog.lacks_state and readership.starves(now)
        self._said_stopped = readership.stopped(now)
        return Program(
            stateful=self.stateful and self._exists and self.gives(),
            reads=self._exists and self.reads(),
            stopped=self._said_stopped,
            overfull=readership.overfull(now),
            avoid=self.provider if starves else None,
        )

    def needs_change(self, now: Nanos, *, asked: bool) -> bool:
        """Whether a state is waited for that nobody will hand over in this view, or not soon.

        `asked` if this member was asked for it.
        """
        if asked and (not self.gives() or self.gives_late(now)):
            return True
        if self._unread and self.stateful and self.provider != self._me and self.reads():
            return not self._readership.stopped(now)
        if not self.reads() or self.stateful:
            return False
        return not self._transfer.waits or self._readership.starves(now)

    def gives_late(self, now: Nanos) -> bool:
        """Whether the program that was asked for its state has stopped, and another one may not have."""
        if self._said_stopped or self._transfer.offers(self._view):
            return False
        return len(self._providers) > 1 and self._readership.stopped(now)
