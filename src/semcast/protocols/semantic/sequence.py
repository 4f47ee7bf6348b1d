"""Orders: when messages that are queued go where the application takes them."""

from collections.abc import Callable

from semcast.core.messages import Batch


class InSequence:
    """The order of S-RM: each sender's messages as they are queued. The base of all other orders."""

    def __init__(self, line_up: Callable[[Batch], None]) -> None:
        self._hand_on = line_up

    def head(self) -> bytes:
        """For the next messages of this member."""
        return b""

    def sent(self) -> None:
        """Messages with that head left."""

    def sound(self, head: bytes) -> bool:
        """Whether a correct member can have written this head."""
        return not head

    def ready(self, rank: int, head: bytes) -> bool:  # noqa: ARG002
        """Whether everything that must come before a message with this head is queued."""
        return True

    def accept(self, rank: int, part: Batch) -> None:  # noqa: ARG002
        """Messages were queued."""
        self._hand_on(part)

    def skipped(self, rank: int, seq: int, head: bytes) -> None:
        """A message that is known to be purged, and had this head, will not be queued."""

    def is_command(self, batch: Batch) -> bool:  # noqa: ARG002
        """Whether the first message of a batch is for the order alone."""
        return False

    def replaces(self, batch: Batch) -> bool:  # noqa: ARG002
        """Whether a message replaces one that is lined up, as only the order can tell."""
        return False

    def unplaced(self, rank: int, upto: int) -> int:  # noqa: ARG002
        """How many messages of a member up to there have no place in the order yet."""
        return 0

    def withdraw(self, rank: int, victim: Batch) -> bool:  # noqa: ARG002
        """Drop such a message."""
        return False
