"""Who asks the others to send nothing new, and whom that binds: rules 5 and 6 of `docs/flow-control.md`."""

from collections.abc import Callable, Sequence

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.semantic.backlog import Backlog


class Stops:
    """What members said about it, whatever view they said it in.

    Args:
        me: this member.
        backlog: of this member.
        void: whether what a member said does not count any more.
    """

    def __init__(self, me: MemberId, backlog: Backlog, void: Callable[[MemberId], bool]) -> None:
        self._me = me
        self._backlog = backlog
        self._void = void
        self._said: dict[MemberId, Nanos] = {}  # who says stop, and when it was heard last

    def heard(self, now: Nanos, member: MemberId, *, stop: bool) -> None:
        """A member says stop, or does not any more."""
        if stop:
            self._said[member] = now
        else:
            self._said.pop(member, None)

    def keep(self, members: Sequence[MemberId]) -> None:
        """Forget those who are not among these any more."""
        self._said = {member: at for member, at in self._said.items() if member in members}

    def expire(self, before: Nanos) -> None:
        """Forget what was not repeated since."""
        self._said = {member: at for member, at in self._said.items() if at >= before}

    def by(self) -> MemberId | None:
        """Who says stop, if anybody does whose word counts."""
        if self._backlog.over():
            return self._me
        return next((member for member in self._said if not self._void(member)), None)

    def exempt(self) -> bool:
        """Whether this member goes on all the same: its program waits for just that, or it closes."""
        return self._backlog.reader.waits or self._backlog.reader.closing

    def binding(self) -> MemberId | None:
        """Who keeps this member from sending, if anybody does."""
        by = self.by()
        return None if by is None or self.exempt() else by
