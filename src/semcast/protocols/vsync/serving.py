"""The end of a member that is not in the next view: it serves those who are until that view stands.

It may be the only one that knows what was decided, or has a message that belongs to the old view. So it
answers with both, and repeats the decision, until everybody who goes on was heard in the next view and
everybody else has said farewell, or is silent.
"""

from collections.abc import Callable, Collection

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.pieces import Courier
from semcast.protocols.semantic.frames import Request
from semcast.protocols.vsync.consensus_frames import ConsensusFrame, Decision
from semcast.protocols.vsync.frames import Farewell, Init, InView, Pred
from semcast.protocols.vsync.stream import ViewStream


class Serving:
    """One member's last duty.

    Args:
        stream: of the view that is over.
        decision: how it ended.
        cause: why this member is out.
        suspects: whether a member is silent.
        courier: sends frames.
        until: when it ends, whoever is still waited for.
    """

    def __init__(
        self,
        stream: ViewStream,
        decision: Decision,
        cause: str,
        suspects: Callable[[MemberId], bool],
        courier: Courier,
        until: Nanos,
    ) -> None:
        self.cause = cause
        self._stream = stream
        self._view = stream.view().id
        self._decision = decision
        self._suspects = suspects
        self._courier = courier
        self._until = until
        self._awaited = dict.fromkeys(
            member for member in stream.members if member != stream.members[stream.rank]
        )
        self._courier.multicast(Farewell(self._view))

    def is_over(self, now: Nanos) -> bool:
        """Whether nobody needs this member any more."""
        return now >= self._until or all(map(self._suspects, self._awaited))

    def heard(self, source: MemberId, view: int) -> None:
        """A member spoke of a view: who is in a later one lacks nothing of this."""
        if view > self._view:
            self._awaited.pop(source, None)

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """Somebody may lack something."""
        if source not in self._stream.members:
            return
        if isinstance(frame, Farewell):
            if frame.view >= self._view:
                self._awaited.pop(source, None)
        elif isinstance(frame, InView):
            if frame.view == self._view and isinstance(frame.frame, Request):
                self._stream.on_frames(now, source, (frame.frame,))
        elif isinstance(frame, ConsensusFrame) and frame.instance.view == self._view:
            if frame.instance.number:
                self._stream.order.on_frame(now, self._stream.members.index(source), frame)
            elif isinstance(frame, Decision):
                self._courier.send(source, Farewell(self._view))
            else:
                self._courier.send(source, self._decision)
        elif isinstance(frame, Init | Pred) and frame.view == self._view:
            self._courier.send(source, self._decision)

    def resend(self) -> None:
        """Tell those again who may not have heard how the view ended."""
        for member in self._awaited:
            if not self._suspects(member):
                self._courier.send(member, self._decision)

    @property
    def awaited(self) -> Collection[MemberId]:
        """Who is not known to need nothing more."""
        return self._awaited.keys()
