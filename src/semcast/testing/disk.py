"""A disk in memory: it outlives the process that writes to it, and loses what was not synced.

The lab lets tests say when a sync is done and what a crash leaves; the simulator draws both.
"""

from collections import deque
from collections.abc import Sequence

from semcast.core.outbox import Anew, Sync, Write
from semcast.wire.records import framed, read_records


class Disk:
    """One file of records, of which a crash leaves any prefix that has all that was synced.

    Positions count bytes from the very first record on, also of those that were deleted since.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._start = 0  # position of the first byte of `_data`
        self._synced = 0  # position up to which everything outlives a crash
        self._begins: list[int] = []  # where records begin that replace all before them
        self._asked: deque[tuple[int, int]] = deque()  # tickets of syncs, and where they were asked for
        self._under_way: tuple[int, int, list[int]] | None = None  # upto where, the last asked for, tickets

    # For a process

    def write(self, writes: Sequence[Write]) -> None:
        """Take what a stack wants to be written; nothing is synced yet."""
        for each in writes:
            if isinstance(each, Sync):
                self._asked.append((each.ticket, self._end))
            elif isinstance(each, Anew):
                self._begins.append(self._end)
            else:
                self._data += framed(each)

    def begin(self) -> bool:
        """Begin to sync all that was written, if that was asked for and no sync is under way."""
        if self._under_way is not None or not self._asked:
            return False
        tickets = [ticket for ticket, _ in self._asked]
        self._under_way = self._end, self._asked[-1][1], tickets
        self._asked.clear()
        return True

    def finish(self) -> list[int]:
        """The sync that is under way is done; returns the tickets that waited for it."""
        assert self._under_way is not None, "a sync has to begin first"
        upto, asked, tickets = self._under_way
        self._under_way = None
        self._synced = upto
        # Records that replace others may be incomplete until somebody asked for a sync after them.
        replaced = [begin for begin in self._begins if begin <= asked]
        if replaced:
            del self._data[: replaced[-1] - self._start]
            self._start = replaced[-1]
            self._begins = self._begins[len(replaced) :]
        return tickets

    def abandon(self) -> None:
        """Another process, or incarnation, goes on: nobody waits for the tickets any more."""
        if self._under_way is not None:
            upto, asked, _ = self._under_way
            self._under_way = upto, asked, []
        self._asked.clear()

    def records(self) -> list[bytes]:
        """What can be read."""
        return read_records(self._data)[0]

    # For whoever crashes it

    @property
    def syncing(self) -> bool:
        """Whether a sync is under way."""
        return self._under_way is not None

    @property
    def unsynced(self) -> int:
        """Bytes that may be lost."""
        return self._end - self._synced

    def crash(self, survives: int = 0) -> None:
        """Lose what was not synced but for its first so many bytes. A record that is torn then is dropped."""
        assert 0 <= survives <= self.unsynced, f"{survives} of {self.unsynced} bytes"
        del self._data[self._synced + survives - self._start :]
        del self._data[read_records(self._data)[1] :]
        self._synced = self._end
        self._begins = [begin for begin in self._begins if begin <= self._end]
        self._asked.clear()
        self._under_way = None

    @property
    def _end(self) -> int:
        return self._start + len(self._data)
