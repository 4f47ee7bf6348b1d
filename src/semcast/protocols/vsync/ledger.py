"""What a member writes down before others may rely on it, and what waits until that is on the disk.

A member that crashes comes back as another incarnation, which knows of the views before it what its disk
tells: what it promised and accepted when the group was founded, the last view it was in, and the views that
it agreed to. Without a disk nothing is written, and nothing waits.
"""

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from semcast.core.ids import Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.semantic.frames import Seq
from semcast.protocols.vsync.frames import Ballot, Known, Members

Then = Callable[[Nanos], None]
"""What is done as soon as a record is on the disk."""


class Promised(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """In founding what comes after a view, 0 for none, this ballot was promised."""

    after: Seq
    ballot: Ballot


class Agreed(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """And with this one these members were accepted."""

    after: Seq
    ballot: Ballot
    members: Members
    first: Seq = 1


class Installed(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """This member is in that view."""

    known: Known


class Adopted(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """This member agreed to that view, which may have begun without its knowledge."""

    known: Known


Record = Promised | Agreed | Installed | Adopted
_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(Record).decode


class Ledger:
    """Of one member. Records replace each other view by view: the disk never holds much.

    Args:
        out: where writes go.
    """

    def __init__(self, out: Outbox) -> None:
        self.kept = False
        """Whether there is a disk."""
        self._out = out
        self._ticket = 0
        self._waiting: deque[tuple[int, Then]] = deque()

    @property
    def waits(self) -> bool:
        """Whether something waits for the disk."""
        return bool(self._waiting)

    def recover(self, records: Sequence[bytes]) -> list[Record]:
        """There is a disk; what it kept. A record that cannot be read says that the file is not ours."""
        self.kept = True
        return [_read(record) for record in records]

    def write(self, now: Nanos, record: Record, then: Then, *, anew: bool = False) -> None:
        """Do `then` once the record outlives a crash; with `anew`, the records before it are not needed."""
        if not self.kept:
            then(now)
            return
        if anew:
            self._out.begin_anew()
        self._out.append(_encode(record))
        self._ticket += 1
        self._out.sync(self._ticket)
        self._waiting.append((self._ticket, then))

    def on_synced(self, now: Nanos, ticket: int) -> None:
        """Everything up to there is on the disk."""
        while self._waiting and self._waiting[0][0] <= ticket:
            self._waiting.popleft()[1](now)

    def go_on_from(self, former: "Ledger") -> None:
        """Write where another incarnation wrote, with tickets of one's own."""
        self.kept, self._ticket = former.kept, former._ticket
