"""The view before the current one: who lacks its end is told, and who is not in the next hears why."""

from collections.abc import Sequence

from semcast.core.ids import MemberId, Nanos
from semcast.core.views import View
from semcast.protocols.pieces import Courier
from semcast.protocols.vsync.consensus_frames import Decision
from semcast.protocols.vsync.frames import Superseded
from semcast.protocols.vsync.stream import ViewStream

_ANSWERED = 128
"""Processes of which it is remembered when they were answered."""


class Past:
    """What one member keeps of it.

    Args:
        pause: nobody is answered more often than twice in that time.
        courier: sends frames.
    """

    def __init__(self, pause: Nanos, courier: Courier) -> None:
        self.stream: ViewStream | None = None
        """Others may still need messages of it."""
        self.decision: Decision | None = None
        """How it ended."""
        self.causes: dict[MemberId, str] = {}
        """Why those left who were in it and did not fail."""
        self._pause = pause
        self._courier = courier
        self._answered: dict[MemberId, Nanos] = {}

    def end(
        self, stream: ViewStream, decision: Decision, left: Sequence[tuple[MemberId, str]]
    ) -> dict[MemberId, str]:
        """The current view is over; returns why those left it who did not fail."""
        self.stream, self.decision = stream, decision
        self.causes = {member: cause for member, cause in left if cause != "failed"}
        return self.causes

    def answer(
        self, now: Nanos, source: MemberId, view: int, current: View, *, knows: bool, primary: bool
    ) -> None:
        """A frame of a view that is over: its sender lacks the decision, or is not among us.

        Who says what was decided `knows` it: to answer a decision with a decision would never end. Only who
        is in a `primary` view may say that another one is not.
        """
        if now - self._answered.get(source, -self._pause) < self._pause // 2:
            return
        if len(self._answered) > _ANSWERED + len(current.members):
            self._answered.clear()
        self._answered[source] = now
        if self.decision is not None and self.decision.instance.view == view and not knows:
            self._courier.send(source, self.decision)
        if source not in current.members and primary:
            self._courier.send(source, Superseded(current.id, source, self.causes.get(source, "")))
