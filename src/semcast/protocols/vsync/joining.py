"""A member in no view: it looks for the group, founds it with others, or waits to be let in."""

from collections.abc import Callable
from random import Random

from semcast.core.events import NotAdmitted
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.pieces import Courier
from semcast.protocols.vsync.flush import first_position, next_reformed
from semcast.protocols.vsync.founding import FAR, Founding, sound_members
from semcast.protocols.vsync.frames import Hello, Known, Refused, Standing, Welcome
from semcast.protocols.vsync.readership import UNREAD, Readership
from semcast.protocols.vsync.settings import VsyncSettings

_UNWELCOME = 5
"""Periods in which a member of a view answers who is let into it, unless all of them are gone."""

Enter = Callable[[Nanos, Welcome], None]


class Joining:
    """What one member does until it is in a view.

    Args:
        me: this member.
        settings: of the group.
        founding: its part in a view that follows from none.
        readership: how its program reads.
        rng: where chance comes from.
        courier: sends frames.
        out: where events go.
        enter: called with the view that it is in.
    """

    def __init__(
        self,
        me: MemberId,
        settings: VsyncSettings,
        founding: Founding,
        readership: Readership,
        rng: Random,
        courier: Courier,
        out: Outbox,
        enter: Enter,
    ) -> None:
        self.entering = False
        """Whether a view that it is in is being written down."""
        self.reads_first = False
        """Whether it was put out because its program had stopped: nothing is joined before that reads."""
        self._me = me
        self._settings = settings
        self._terms = settings.terms()
        self._founding = founding
        self._readership = readership
        self._rng = rng
        self._courier = courier
        self._out = out
        self._enter = enter
        self._looked_at: Nanos = 0
        self._named_at: Nanos | None = None  # since when it knows that it is let into a view
        self._waits_for = ""  # why it is not let in yet

    def look(self, now: Nanos) -> Nanos:
        """Look for the group, or found it; returns when to do so again."""
        self._looked_at = now
        if not self._awaits_reader(now) and not self.entering:
            self._courier.announce(Hello(self._founding.founds, self._founding.last, self._terms))
            self._founding.tick(now)
            self.found(now)
        return now + self._settings.hello + self._rng.randrange(self._settings.hello // 4 + 1)

    def unwelcome(self, now: Nanos) -> bool:
        """Whether it was let into a view, and nobody who is in it says so.

        Then all of them may be gone. It cannot vouch that it never enters the view; its successor can.
        """
        if not self._founding.named or self.entering:
            self._named_at = None
        elif self._named_at is None:
            self._named_at = now
        return self._named_at is not None and now - self._named_at >= _UNWELCOME * self._settings.hello

    def _awaits_reader(self, now: Nanos) -> bool:
        """Whether its program has to read first, and does not yet."""
        self._readership.look(now)
        self.reads_first = self.reads_first and not self._readership.reads_again(now)
        return self.reads_first

    def found(self, now: Nanos) -> None:
        """Begin the view that is agreed on where nobody is in one, and let the others in."""
        founding = self._founding
        if founding.founded is None or self.entering:
            return
        everybody = list(founding.founded)
        lost = founding.last is not None
        view = next_reformed(founding.after) if lost else founding.first_agreed
        if self._me not in everybody:
            if founding.abandoned(now):  # agreed on before all of them crashed: there may be one after it
                founding.learn(Known(view, everybody))
            return
        welcome = Welcome(
            view,
            everybody,
            [0] * len(everybody),
            list(range(len(everybody))),
            list(range(len(everybody))),
            position=first_position(view),
            reformed=founding.after if lost else None,
            lost=lost,
        )
        self._enter(now, welcome)

    def on_standing(self, now: Nanos, frame: Standing) -> None:
        """There is a view: never found another group, and let its members let this one in."""
        self._founding.learn(frame.last)
        self._founding.saw_view(now)

    def on_refused(self, frame: Refused) -> str | None:
        """It cannot join: why it never can, or None if that is worth waiting for."""
        if self.entering:
            return None
        if not frame.ever:
            return frame.cause
        self._out.deliver(NotAdmitted(self._me, frame.cause))
        self._waits_for = frame.cause
        return None

    def on_welcome(self, now: Nanos, source: MemberId, frame: Welcome) -> bool:
        """It is in a view; False if that cannot be."""
        members = set(frame.members)
        sound = (
            {self._me, source} <= members
            and max((0, *frame.providers, *frame.joined)) < len(frame.members)
            and len(frame.members) == len(frame.base)
            and sound_members(frame.members, self._settings.most_members())
            and max(1, self._founding.after) <= frame.view < FAR
            and max(frame.position, *frame.base) < FAR
        )
        if sound and not self.entering:
            self._enter(now, frame)
            return True
        return False

    def held_back(self) -> HeldBack:
        """Why it is in no view."""
        if self.reads_first:
            return HeldBack(self._me, UNREAD)
        if self._waits_for:
            return HeldBack(None, self._waits_for)
        missing = self._founding.missing(self._looked_at)
        why = "its last view waits for it" if missing else "it is in no view"
        return HeldBack(missing[0] if missing else None, why)
