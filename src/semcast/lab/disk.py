"""A disk in memory: it outlives the process that writes to it, and loses what was not synced.

The lab lets tests say when a sync is done and what a crash leaves; the simulator draws both.
"""

from collections import deque
from collections.abc import Sequence

from semcast.core.outbox import Anew, Run, Sync, Trim, Write
from semcast.wire.records import DamagedError, packed, records_of, whole_blocks

_SALT = 1


class Disk:
    """One file of records, of which a crash leaves any prefix that has all that was synced.

    Each record is a block of its own, so that a crash may leave any number of them: what a live log writes
    together may be lost in part, too. Offsets count bytes from the very first record on, positions records.

    Args:
        trims_by: how many records are trimmed at a time: live, those of a file.
    """

    def __init__(self, trims_by: int = 1) -> None:
        self.first = 0
        """The position of the first record that is there."""
        self._trims_by = trims_by
        self._data = bytearray()
        self._start = 0  # offset of the first byte of `_data`
        self._offsets: deque[int] = deque()  # of each record that is there
        self._synced = 0  # offset up to which everything outlives a crash
        self._vouched = 0  # position up to which that is known
        self._floor = 0  # records before this position are of no use
        self._asked: deque[tuple[int, int]] = (
            deque()
        )  # tickets of syncs, and the floor when they were asked for
        self._under_way: tuple[int, int, int, list[int]] | None = None  # offset, position, floor, tickets

    # For a process

    @property
    def next(self) -> int:
        """The position of the next record."""
        return self.first + len(self._offsets)

    def write(self, writes: Sequence[Write]) -> None:
        """Take what a stack wants to be written; nothing is synced yet."""
        for each in writes:
            if isinstance(each, Sync):
                self._asked.append((each.ticket, self._floor))
            elif isinstance(each, Anew):
                self._floor = self.next
            elif isinstance(each, Trim):
                whole = min(each.before, self.next) // self._trims_by * self._trims_by
                self._floor = max(self._floor, whole)
            else:
                for record in each.records if isinstance(each, Run) else (each,):
                    self._append(record)

    def _append(self, record: bytes) -> None:
        block = packed((record,), self.next, self._vouched, _SALT)
        self._offsets.append(self._end)
        self._data += block

    def begin(self) -> bool:
        """Begin to sync all that was written, if that was asked for and no sync is under way."""
        if self._under_way is not None or not self._asked:
            return False
        tickets = [ticket for ticket, _ in self._asked]
        self._under_way = self._end, self.next, self._asked[-1][1], tickets
        self._asked.clear()
        return True

    def finish(self) -> list[int]:
        """The sync that is under way is done; returns the tickets that waited for it."""
        assert self._under_way is not None, "a sync has to begin first"
        self._synced, self._vouched, floor, tickets = self._under_way
        self._under_way = None
        self._give_up(floor)
        return tickets

    def _give_up(self, floor: int) -> None:
        """Records that replace others may be incomplete until somebody asked for a sync after them."""
        count = floor - self.first
        if count <= 0:
            return
        start = self._offsets[count] if count < len(self._offsets) else self._end
        for _ in range(count):
            self._offsets.popleft()
        self.first += count
        del self._data[: start - self._start]
        self._start = start

    def abandon(self) -> None:
        """Another process, or incarnation, goes on: nobody waits for the tickets any more."""
        if self._under_way is not None:
            self._under_way = (*self._under_way[:3], [])
        self._asked.clear()

    def reopen(self) -> None:
        """Another process starts. It syncs what is there before it relies on it."""
        self._asked.clear()
        self._under_way = None
        self._cut()

    def records(self) -> list[bytes]:
        """What can be read. Raises DamagedError if records are missing that were synced."""
        blocks = whole_blocks(self._data, self.first, _SALT)
        return [record for block in blocks for record in records_of(self._data, block)]

    def read(self, first: int, most: int) -> list[bytes]:
        """Synced records from a position on: at least one, and then as many as fit into so many bytes."""
        assert first >= self.first, f"records before {self.first} are gone, and {first} was asked for"
        found: list[bytes] = []
        size = 0
        if first >= self._vouched:
            return found
        for block in whole_blocks(self._data, first, _SALT, self._offsets[first - self.first] - self._start):
            [record] = records_of(self._data, block)
            size += len(record)
            if block.first >= self._vouched or (found and size > most):
                break
            found.append(record)
        return found

    def read_back(self, first: int, most: int) -> list[bytes]:
        """The same for a stack; nothing if the first was given up."""
        return self.read(first, most) if first >= self.first else []

    # For whoever breaks it

    @property
    def syncing(self) -> bool:
        """Whether a sync is under way."""
        return self._under_way is not None

    @property
    def unsynced(self) -> int:
        """Bytes that may be lost."""
        return self._end - self._synced

    def crash(self, survives: int = 0, holes: Sequence[tuple[int, int]] = ()) -> None:
        """Lose what was not synced but for its first so many bytes, and of these, what lies in `holes`.

        Args:
            survives: how many bytes, from the first that was not synced.
            holes: begin and end of bytes among these that were not written, though later ones were.
        """
        assert 0 <= survives <= self.unsynced, f"{survives} of {self.unsynced} bytes"
        synced = self._synced - self._start
        del self._data[synced + survives :]
        for begin, end in holes:
            assert 0 <= begin <= end <= survives
            self._data[synced + begin : synced + end] = bytes(end - begin)
        self.reopen()

    def _cut(self) -> None:
        """Nothing that is damaged is cut off if it was synced."""
        try:
            blocks = list(whole_blocks(self._data, self.first, _SALT))
        except DamagedError:
            return
        del self._data[blocks[-1].end if blocks else 0 :]
        self._offsets = deque(self._start + block.offset for block in blocks)
        self._floor = self.first
        self._synced, self._vouched = self._end, self.next

    def rot(self, byte: int) -> None:
        """Change one of the bytes whose damage is noticed."""
        assert 0 <= byte < self.vouched, f"byte {byte} of {self.vouched}"
        self._data[byte] ^= 0x40

    @property
    def vouched(self) -> int:
        """How many bytes are vouched for by a later block that is synced itself.

        Of those behind them nobody can say, after a crash, whether they were ever written.
        """
        synced = self._data[: self._synced - self._start]
        try:
            claims = [block.synced for block in whole_blocks(synced, self.first, _SALT)]
        except DamagedError:
            return 0
        count = max(claims, default=0) - self.first
        return self._offsets[count] - self._start if count > 0 else 0

    @property
    def _end(self) -> int:
        return self._start + len(self._data)
