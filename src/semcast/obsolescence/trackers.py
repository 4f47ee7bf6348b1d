"""Trackers: they build k-enumerations for applications (Pereira 2002, section 3.4 and figure 6.1).

The paper writes bitmaps left to right and shifts right; here bit n-1 of an int stands for the n-th
preceding message, so its SHIFT(map, n) is `map << n`, cut to k bits. Names are the paper's.

Deviations: figure 3.8 is followed where its text (3.4.3) and its code agree only; the commit is tagged
before the map moves on, and observers apply an operation at a commit and nowhere else. A message that
never becomes obsolete moves the map on, too, which figure 6.1 forgets. The printed versions are mutants
in the tests, which catch them.
"""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from semcast.core.annotations import Enumeration, Item, KEnumeration
from semcast.core.ids import MemberId, MessageId

V = TypeVar("V")


class _Bitmap:
    """The positions made obsolete within reach, relative to the message at `seq`."""

    __slots__ = ("_mask", "bits", "seq")

    def __init__(self, k: int) -> None:
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        self._mask = (1 << k) - 1
        self.bits = 0
        self.seq = 0

    def advance(self) -> int:
        """Move on to the next message; what was marked stays marked, one further away."""
        self.seq += 1
        self.bits = (self.bits << 1) & self._mask
        return self.seq

    def mark(self, position: int) -> None:
        """Mark an earlier position as obsolete."""
        assert position < self.seq
        self.bits |= (1 << (self.seq - position - 1)) & self._mask

    def tag(self) -> KEnumeration:
        return KEnumeration(self.seq, self.bits)


class SingleItemTracker:
    """Figure 3.6: each message updates one item and replaces the earlier updates of that item.

    >>> tracker = SingleItemTracker(k=4)
    >>> [bin(tracker.update(item).bitmap) for item in "abaab"]
    ['0b0', '0b0', '0b10', '0b101', '0b100']
    """

    def __init__(self, k: int) -> None:
        self._k = k
        self._mask = _Bitmap(k)._mask
        self.seq = 0
        self.info: dict[str, tuple[int, int]] = {}

    def update(self, item: str) -> KEnumeration:
        """The annotation of the next message, an update of `item`."""
        self.seq += 1
        last, bits = self.info.get(item, (0, 0))
        if last:
            # Relative to `last`, shifted to be relative to `seq`, and `last` itself.
            distance = self.seq - last
            bits = ((bits << distance) | (1 << (distance - 1))) & self._mask
        self.info[item] = (self.seq, bits)
        if len(self.info) > 2 * self._k:
            self._forget_out_of_reach()
        return KEnumeration(self.seq, bits)

    def reliable(self) -> None:
        """The next message never becomes obsolete (figure 6.1): it only takes a position."""
        self.seq += 1

    def _forget_out_of_reach(self) -> None:
        self.info = {item: entry for item, entry in self.info.items() if self.seq - entry[0] < self._k}


class OperationTracker:
    """Figure 3.8: atomic operations over several items, closed by a commit.

    A commit replaces every earlier commit, and every update of an item that a later operation, up to
    this commit's own, updated again. Updates themselves replace nothing: until its commit is there, an
    operation may not make anything disappear.

    >>> tracker = OperationTracker(k=8)
    >>> updates, commit = tracker.operation(["a", "b"])
    >>> updates, commit = tracker.operation(["b"])
    >>> commit.positions()                  # message 3 (the first commit) and 2 (the first b)
    [3, 2]
    """

    def __init__(self, k: int) -> None:
        self._map = _Bitmap(k)
        self._k = k
        self.iseq: dict[str, int] = {}
        self._committed = 0

    def operation(self, items: Iterable[str]) -> tuple[list[KEnumeration], KEnumeration]:
        """The annotations of one operation: an update for each item, then the commit."""
        updates = []
        for item in items:
            seq = self._advance()
            earlier = self.iseq.get(item)
            if earlier is not None:
                self._map.mark(earlier)
            self.iseq[item] = seq
            updates.append(KEnumeration(seq, 0))
        seq = self._advance()
        tag = self._map.tag()
        self._committed = seq
        if len(self.iseq) > 2 * self._k:
            self.iseq = {item: at for item, at in self.iseq.items() if seq - at < self._k}
        return updates, tag

    def reliable(self) -> None:
        """The next message never becomes obsolete (figure 6.1): it only takes a position."""
        self._advance()

    def _advance(self) -> int:
        seq = self._map.advance()
        if self._committed:
            self._map.mark(self._committed)
            self._committed = 0
        return seq


class OperationObserver(Generic[V]):
    """The observer of figure 3.8: updates wait for a commit, then apply together.

    >>> observer = OperationObserver()
    >>> observer.update("a", 1); observer.state
    {}
    >>> observer.commit(); observer.state
    {'a': 1}
    """

    def __init__(self) -> None:
        self.state: dict[str, V] = {}
        self.queue: list[tuple[str, V]] = []
        """Updates of operations that are not complete yet."""

    def update(self, item: str, value: V) -> None:
        """An update was delivered."""
        self.queue.append((item, value))

    def commit(self) -> None:
        """A commit was delivered: everything before it belongs to complete operations."""
        self.state.update(self.queue)
        self.queue.clear()


class ItemsTracker:
    """Messages that update one item or several: one is obsolete when all its items were updated again.

    The last of those later updates names it; by then a member has, or has replacements of, the others, for
    they came before. Messages of one item that replace only such use the item's tag, which is shorter.

    >>> tracker = ItemsTracker(MemberId("p"))
    >>> tracker.update(1, ["a", "b"])
    Enumeration(ids=())
    >>> tracker.update(2, ["a"])
    Item(item='a')
    >>> tracker.update(3, ["b"]).ids        # now nothing of message 1 is left
    (MessageId(sender=MemberId(name='p', incarnation=0), seq=1),)
    """

    def __init__(self, me: MemberId) -> None:
        self._me = me
        self._latest: dict[str, int] = {}  # item -> the last message that updated it
        self._left: dict[int, int] = {}  # message -> how many of its items it is the last update of
        self._tagged: set[int] = set()

    def update(self, seq: int, items: Sequence[str]) -> Item | Enumeration:
        """The annotation of message `seq`, which updates these items."""
        chosen = dict.fromkeys(items)
        if not chosen:
            raise ValueError("an update is of at least one item")
        victims = [earlier for earlier in map(self._overwrite, chosen) if earlier is not None]
        for item in chosen:
            self._latest[item] = seq
        self._left[seq] = len(chosen)
        tagged = self._tagged.issuperset(victims)
        self._tagged.difference_update(victims)
        if len(chosen) == 1 and tagged:
            self._tagged.add(seq)
            return Item(next(iter(chosen)))
        return Enumeration(tuple(MessageId(self._me, victim) for victim in sorted(victims)))

    def _overwrite(self, item: str) -> int | None:
        """One update less is the last of its item; returns the message if nothing is left of it."""
        earlier = self._latest.get(item)
        if earlier is None:
            return None
        self._left[earlier] -= 1
        if self._left[earlier]:
            return None
        del self._left[earlier]
        return earlier


class ReadWriteTracker:
    """Figure 3.10: a replicated state machine under total order, whose replies carry the annotations.

    Every server runs one and feeds it what it delivers, in order. An update that was read before it
    was overwritten is never marked: somebody saw its effect.

    >>> tracker = ReadWriteTracker(k=8)
    >>> tracker.on_update("x"); tracker.on_update("x")
    >>> tracker.on_get("x").positions()     # the first update; the second was just read
    [1]
    """

    def __init__(self, k: int) -> None:
        self._map = _Bitmap(k)
        self._k = k
        self.info: dict[str, int] = {}

    def on_update(self, item: str) -> None:
        """An update of `item` was delivered."""
        seq = self._map.advance()
        unread = self.info.get(item)
        if unread is not None:
            self._map.mark(unread)
        self.info[item] = seq
        if len(self.info) > 2 * self._k:
            self.info = {name: at for name, at in self.info.items() if seq - at < self._k}

    def on_get(self, item: str) -> KEnumeration:
        """A read of `item` was delivered; returns the annotation of the reply."""
        self.info.pop(item, None)
        self._map.advance()
        return KEnumeration(self._map.seq, self._map.bits, total=True)

    def on_other(self) -> None:
        """Any other message was delivered."""
        self._map.advance()
