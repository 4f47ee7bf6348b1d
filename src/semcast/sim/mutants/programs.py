"""Broken hand-overs: each lacks one rule of flow control that lives between a program and its stack."""

from semcast.core.handover import Handover
from semcast.core.ids import Nanos
from semcast.core.reading import Reading
from semcast.core.stack import Stack


class UnseenViews(Handover):
    """A view waits in the stack until the program has taken what lies before it (rule 8)."""

    def has_room(self, stack: Stack) -> bool:  # noqa: ARG002
        return self.unread or self.mailbox.has_room()


class NeverRaises(Handover):
    """A program that waits while queue and reserve are full waits for ever (rule 4)."""

    def overflow(self, stack: Stack) -> None:
        pass


class _Patient(Reading):
    def fills(self, now: Nanos, stack: Stack) -> bool:  # noqa: ARG002
        return False


class NonReadersAwaited(Handover):
    """Everybody waits for a program that never iterates (rule 7)."""

    reading_kind = _Patient


class _Careless(Reading):
    def excess(self) -> tuple[int, int]:
        return 0, 0


class ExcessUncounted(Handover):
    """What lies in the mailbox beyond its bound counts for nothing (rule 8)."""

    reading_kind = _Careless


class _Secret(Reading):
    def wait(self, *, reading: bool) -> None:  # noqa: ARG002
        super().wait(reading=False)

    def waited(self, *, reading: bool) -> None:  # noqa: ARG002
        super().waited(reading=False)

    def _idle(self, now: Nanos, stack: Stack) -> Nanos:  # noqa: ARG002
        return 0


class WaitingUntold(Handover):
    """The stack does not know that its program waits, and so never uses its reserve (rule 3)."""

    reading_kind = _Secret


class _OnlyMessages(Reading):
    def excess(self) -> tuple[int, int]:
        lists = list(self._mailbox.lists)[max(1, self._mailbox._most_lists) :]
        return sum(count for _, count, _, _ in lists), sum(size for _, _, _, size in lists)


class ViewsUncounted(Handover):
    """Views that lie in the mailbox beyond its bound count for nothing (rule 8)."""

    reading_kind = _OnlyMessages
