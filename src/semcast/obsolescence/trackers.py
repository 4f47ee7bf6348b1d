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
    """The positions made obsolete within reach. They are counted back from `seq`, the last one used."""

    __slots__ = ("_k", "_mask", "bits", "seq")

    def __init__(self, k: int) -> None:
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        self._k = k
        self._mask = (1 << k) - 1
        self.bits = 0
        self.seq = 0

    def advance(self, to: int | None = None) -> int:
        """Move on to the next position, or `to` a later one; what was marked stays marked, further away."""
        step = 1 if to is None else to - self.seq
        assert step > 0, f"position {to} comes after {self.seq}"
        self.seq += step
        self.bits = (self.bits << min(step, self._k)) & self._mask
        return self.seq

    def bit(self, position: int) -> int:
        """An earlier position as it stands in the map."""
        assert position < self.seq
        distance = self.seq - position
        return 1 << (distance - 1) if distance <= self._k else 0

    def mark(self, position: int) -> None:
        """Mark an earlier position as obsolete."""
        self.bits |= self.bit(position)


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

    An operation on one item may also be one message, which is its own commit. Those who send messages one by
    one ask for the tag of the next, and say when it left, and under which number if that is not the next:

    >>> tracker.update_tag("a").positions()
    [5, 3, 2, 1]
    >>> tracker.updated("a", seq=9)         # it was large, and its pieces took 6 to 9
    """

    def __init__(self, k: int) -> None:
        self._map = _Bitmap(k)
        self._map.advance()  # the map is always that of the next message
        self._k = k
        self.iseq: dict[str, int] = {}

    def operation(self, items: Iterable[str]) -> tuple[list[KEnumeration], KEnumeration]:
        """The annotations of one operation: an update for each item, then the commit."""
        updates = []
        for item in items:
            updates.append(self.part_tag())
            self.updated(item)
        tag = self.commit_tag()
        self.committed()
        return updates, tag

    # What the next message would be tagged with

    def part_tag(self) -> KEnumeration:
        """One of the updates of an operation."""
        return KEnumeration(self._map.seq, 0)

    def commit_tag(self) -> KEnumeration:
        """The commit of an operation."""
        return KEnumeration(self._map.seq, self._map.bits)

    def update_tag(self, item: str) -> KEnumeration:
        """An operation on one item: its update and its commit in one."""
        earlier = self.iseq.get(item)
        own = 0 if earlier is None else self._map.bit(earlier)
        return KEnumeration(self._map.seq, self._map.bits | own)

    # What the last message was

    def updated(self, item: str, seq: int | None = None) -> None:
        """An update of `item` left."""
        seq = self._left(seq)
        earlier = self.iseq.get(item)
        if earlier is not None:
            self._map.mark(earlier)
        self.iseq[item] = seq
        if len(self.iseq) > 2 * self._k:
            self.iseq = {item: at for item, at in self.iseq.items() if seq - at < self._k}

    def committed(self, seq: int | None = None) -> None:
        """A commit left: the next one replaces it."""
        self._map.mark(self._left(seq))

    def reliable(self, seq: int | None = None) -> None:
        """A message left that never becomes obsolete (figure 6.1): it only takes a position."""
        self._left(seq)

    def _left(self, seq: int | None) -> int:
        seq = self._map.seq if seq is None else seq
        self._map.advance(seq + 1)
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

    def tag(self, seq: int, item: str) -> Item | Enumeration:
        """The annotation of message `seq`, which updates this item alone: as `update` has it, but faster."""
        earlier = self._latest.get(item)
        if earlier is not None:
            if earlier not in self._tagged:
                return self.update(seq, (item,))
            self._tagged.discard(earlier)
            del self._left[earlier]
        self._latest[item] = seq
        self._left[seq] = 1
        self._tagged.add(seq)
        return Item(item)

    def tags(self, first: int, items: Sequence[str]) -> list[Item | Enumeration]:
        """`tag` for the messages from `first` on, one item each: what is overwritten at once is not noted."""
        last = dict(zip(items, range(first, first + len(items)), strict=True))
        earlier = [self._latest[item] for item in last if item in self._latest]
        if not self._tagged.issuperset(earlier):
            return [self.tag(seq, item) for seq, item in enumerate(items, first)]
        for seq in earlier:
            del self._left[seq]
        self._tagged.difference_update(earlier)
        self._tagged.update(last.values())
        self._latest.update(last)
        self._left.update(dict.fromkeys(last.values(), 1))
        notes = {item: Item(item) for item in last}
        return list(map(notes.__getitem__, items))

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

    Every server runs one and feeds it what it delivers, in order, and at which position of the total order;
    without a position, the next one. Positions have gaps: purged messages and the protocol's own take some.
    An update that was read before it was overwritten is never marked: somebody saw its effect.

    >>> tracker = ReadWriteTracker(k=8)
    >>> tracker.on_update("x"); tracker.on_update("x")
    >>> tracker.on_get("x").positions()     # the first update; the second was just read
    [1]
    >>> tracker.on_update("x", at=7); tracker.on_update("x", at=9)
    >>> tracker.tag().positions()           # 2 was read, and 9 was not overwritten
    [7, 1]
    """

    def __init__(self, k: int) -> None:
        self._map = _Bitmap(k)
        self._k = k
        self.info: dict[str, int] = {}
        self._replied: int | None = None

    def on_update(self, item: str, at: int | None = None) -> None:
        """An update of `item` was delivered."""
        seq = self._map.advance(at)
        unread = self.info.get(item)
        if unread is not None:
            self._map.mark(unread)
        self.info[item] = seq
        if len(self.info) > 2 * self._k:
            self.info = {name: at for name, at in self.info.items() if seq - at < self._k}

    def on_get(self, item: str, at: int | None = None) -> KEnumeration:
        """A read of `item` was delivered; returns the annotation of the reply."""
        self._map.advance(at)
        self.read(item)
        return self.tag()

    def read(self, item: str) -> None:
        """The value of `item` had an effect that somebody saw: what wrote it stays."""
        self.info.pop(item, None)

    def on_reply(self, at: int | None = None) -> None:
        """A reply was delivered that nobody waits for but the protocol: the next one replaces it."""
        seq = self._map.advance(at)
        if self._replied is not None:
            self._map.mark(self._replied)
        self._replied = seq

    def on_other(self, at: int | None = None) -> None:
        """Any other message was delivered."""
        self._map.advance(at)

    def tag(self) -> KEnumeration:
        """The annotation of a message that is multicast now."""
        return KEnumeration(self._map.seq, self._map.bits, total=True)
