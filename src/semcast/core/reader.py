"""What a stack has to know of the program that it delivers to."""

from collections.abc import Callable


class Reader:
    """Kept by the hand-over, read by the stack: who waits is given more, who never reads is given nothing.

    A program *waits* if whoever reads there waits for room to send, or for a confirmation, so that nothing is
    taken before it has that. A stack then receives into its reserve, and sends what it has pending before new
    messages of others (`docs/flow-control.md`). What the fields say comes about in `core/reading.py`.
    """

    __slots__ = (
        "began",
        "closing",
        "excess",
        "excess_bytes",
        "held",
        "misses",
        "receives",
        "stopped",
        "waits",
    )

    def __init__(self) -> None:
        self.waits = False
        """Whether nothing is taken until something was sent."""
        self.began = False
        """Whether it ever asked for what is delivered. Alone of these it is written by the program itself."""
        self.receives = True
        """Whether it wants to be given anything. If not, what is delivered counts as taken at once."""
        self.misses = False
        """Whether messages are taken for it that it never sees: it only answers calls. So it has no state."""
        self.closing = False
        """Whether the program leaves: what it handed over still goes out, what is delivered is dropped."""
        self.stopped = False
        """Whether it has something to take, and neither takes it nor waits. Then the policy applies."""
        self.excess = 0
        """Messages, and changes of view, in the mailbox beyond its bound. A stack counts them as waiting for
        the program."""
        self.excess_bytes = 0
        """Bytes of these messages."""
        self.held: Callable[[], int] | None = None
        """How many messages lie in the mailbox, or are being dealt with; None where there is none."""

    @property
    def follows(self) -> bool:
        """Whether it is given every message: only then it has the state of the group, or needs it."""
        return self.receives and not self.misses

    @property
    def unread(self) -> int:
        """Messages that were delivered, and that the program has not dealt with."""
        return 0 if self.held is None else self.held()
