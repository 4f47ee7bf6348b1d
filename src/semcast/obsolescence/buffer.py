"""The one queue of every family: FIFO, bounded, and able to drop what became obsolete.

Adding costs O(messages made obsolete), whatever the buffer holds: `SenderIndex` leads straight to the
victims. Batches without annotation are one entry and never touch the index.

The entries are in a plain dict, which keeps the order in which they came. Taking the oldest out of a
dict walks over the gaps of those that left before, so the order is copied into a queue of keys whenever
that queue runs out; each key is copied once.

Lazy purging is lazy about the index, too: what comes waits outside it until somebody wants to purge. Where
nothing is ever purged, because it is taken in time, adding and taking cost next to nothing.
"""

import enum
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.events import Purged, Thinned
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Batch
from semcast.obsolescence.index import SenderIndex
from semcast.obsolescence.thinning import single, thinned


class Purging(enum.Enum):
    """When the victims of a new message leave."""

    EAGER = "eager"
    LAZY = "lazy"
    """Only when room is needed."""
    HELD = "held"
    """Only when `release` says that the replacing message may be relied on."""
    OFF = "off"
    """Never: annotations are ignored."""


# Enum members looked up once: the hot path compares with them.
EAGER, LAZY, HELD, OFF = Purging.EAGER, Purging.LAZY, Purging.HELD, Purging.OFF

Receipt = tuple[Batch, Batch]
"""(victim, by): the first was purged because of the second."""


class PurgingBuffer:
    """A FIFO queue of batches, bounded in messages and bytes.

    Sequence numbers of a sender enter in growing order.

    >>> from semcast.core import Item, MemberId
    >>> from semcast.core.messages import batch_of
    >>> p = MemberId("p")
    >>> buffer = PurgingBuffer(limit_messages=2)
    >>> [buffer.add(batch_of(p, seq, [b"."], Item(x))) for seq, x in ((1, "a"), (2, "b"), (3, "a"))]
    [True, True, True]
    >>> [(victim.first, by.first) for victim, by in buffer.take_receipts()]
    [(1, 3)]
    >>> buffer.add(batch_of(p, 4, [b"."], Item("c")))       # full, and c replaces nothing
    False
    >>> [batch.first for batch in buffer.pop(10)]
    [2, 3]
    """

    __slots__ = (
        "_bounded",
        "_bytes",
        "_condemned",
        "_entries",
        "_fresh",
        "_index",
        "_indexes",
        "_limit_bytes",
        "_limit_messages",
        "_order",
        "_plain",
        "_purging",
        "_receipts",
        "_sender",
        "_thinned",
        "messages",
    )

    def __init__(
        self,
        purging: Purging = Purging.EAGER,
        limit_messages: int | None = None,
        limit_bytes: int | None = None,
    ) -> None:
        self._purging = purging
        self._limit_messages = limit_messages
        self._limit_bytes = limit_bytes
        self._bounded = limit_messages is not None or limit_bytes is not None
        self._entries: dict[int, Batch] = {}
        self._fresh: deque[Batch] = deque()  # lazy: came after all entries, and is not in the index yet
        self._order: deque[int] = deque()  # keys of the oldest entries, and of some that left
        self._plain = 0  # the last key given to a batch without annotation: they count down
        self.messages = 0
        """Messages held, also `len`; only the buffer writes it."""
        self._bytes = 0
        self._indexes: dict[MemberId, SenderIndex] = {}
        self._sender: MemberId | None = None  # the sender looked up last, and its index
        self._index = SenderIndex(0)
        self._condemned: dict[int, Batch] = {}  # lazy, held: key of a victim -> because of whom
        self._receipts: list[Receipt] = []
        self._thinned: list[Thinned] = []  # the receipts of runs

    def __len__(self) -> int:
        return self.messages

    @property
    def bytes(self) -> int:
        """Payload bytes held."""
        return self._bytes

    @property
    def newest(self) -> int:
        """Bytes of what came last."""
        last = self._fresh[-1] if self._fresh else next(reversed(self._entries.values()), None)
        return 0 if last is None else last.size

    def limit(self, messages: int) -> None:
        """Hold so many messages from now on; what is above that already stays until it is taken."""
        self._limit_messages, self._bounded = messages, True

    def held(self) -> tuple[int, int]:
        """Messages, and their payload bytes."""
        return self.messages, self._bytes

    def __iter__(self) -> Iterator[Batch]:
        """The entries, oldest first."""
        return chain(self._entries.values(), self._fresh)

    def add(self, batch: Batch) -> bool:
        """Append; False, and `batch` stays out, if it does not fit even after purging."""
        if self._purging is LAZY:
            if not self._bounded or self._fits(batch):
                self._fresh.append(batch)
                self.messages += len(batch.payloads)
                self._bytes += batch.size
                return True
            self._settle()
        annotation = batch.annotation
        if annotation is None:
            return self._add_plain(batch)
        sender = batch.sender
        index = self._index if sender is self._sender else self._index_of(sender)
        if type(annotation) is Item and self._purging is EAGER:
            item, items = annotation.item, index.items
            old = items.get(item)
            if old is not None:
                # One leaves, one comes: only bytes can lack.
                entries = self._entries
                victim = entries[old]
                if batch.size != victim.size and not self._grow(batch.size - victim.size):
                    return False
                del entries[old]
                base = index.base  # 0 for the first sender, often the only one
                items[item] = key = base + batch.first if base else batch.first
                entries[key] = batch
                if index.reach:
                    index.unmark(victim.first)
                    index.mark(batch.first)
                self._receipts.append((victim, batch))
                return True
        return self._add_annotated(batch, index, annotation)

    def extend(self, batches: Sequence[Batch]) -> None:
        """Append to a buffer without bounds."""
        assert not self._bounded
        if self._purging is not LAZY:
            for batch in batches:
                self.add(batch)
            return
        self._fresh.extend(batches)
        self.messages += sum([len(batch.payloads) for batch in batches])
        self._bytes += sum([batch.size for batch in batches])

    def victims(self, batch: Batch) -> list[Batch]:
        """The entries that adding `batch` would make obsolete, and that no earlier one has yet."""
        self._settle()
        return [self._entries[key] for key in self._obsoleted(batch)]

    def pop(self, most: int, horizon: Mapping[MemberId, int] | None = None) -> list[Batch]:
        """Remove and return the oldest entries, `most` messages at most.

        With a `horizon`, messages of a sender beyond its number stay, and others pass them.
        """
        if horizon is not None:
            self._settle()
            return self._pop_within(most, horizon)
        taken: list[Batch] = []
        entries, order = self._entries, self._order
        while most > 0 and entries:
            if not order:
                order.extend(entries)
            batch = entries.get(order[0])
            if batch is not None and len(batch.payloads) > most:
                taken.append(self._cut(order[0], batch, batch.first + most - 1))
                break
            key = order.popleft()
            if batch is not None:
                taken.append(self._remove(key))
                most -= len(batch.payloads)
        if self._fresh and not entries:
            self._pop_fresh(most, taken)
        return taken

    def pop_run(self, sender: MemberId, last: int) -> list[Batch]:
        """Remove and return what is held of one sender up to `last`; cheap where that is oldest.

        >>> from semcast.core.messages import batch_of
        >>> p, q = MemberId("p"), MemberId("q")
        >>> buffer = PurgingBuffer()
        >>> [buffer.add(batch_of(who, 1, [b".", b"."])) for who in (p, q)]
        [True, True]
        >>> [(batch.sender.name, batch.last) for batch in buffer.pop_run(q, 1)], len(buffer)
        ([('q', 1)], 3)
        """
        taken = self._pop_oldest(sender, last)
        fresh = self._fresh
        while fresh and not self._entries and fresh[0].sender == sender and fresh[0].first <= last:
            self._pop_fresh(min(fresh[0].last, last) - fresh[0].first + 1, taken)
        if taken and taken[-1].last == last:
            return taken
        self._settle()
        found = [
            (key, batch, min(batch.last, last))
            for key, batch in self._entries.items()
            if batch.sender == sender and batch.first <= last
        ]
        return taken + [
            self._remove(key) if upto == batch.last else self._cut(key, batch, upto)
            for key, batch, upto in found
        ]

    def _pop_oldest(self, sender: MemberId, last: int) -> list[Batch]:
        """The same of what is oldest among the entries."""
        taken: list[Batch] = []
        entries, order = self._entries, self._order
        while entries:
            if not order:
                order.extend(entries)
            key = order[0]
            batch = entries.get(key)
            if batch is None:
                order.popleft()
            elif batch.first > last or batch.sender != sender:
                break
            elif batch.last > last:
                taken.append(self._cut(key, batch, last))
                break
            else:
                order.popleft()
                taken.append(self._remove(key))
        return taken

    def trim(self, upto: int) -> list[Batch]:
        """Remove and return the messages up to `upto` (of a buffer for one sender)."""
        self._settle()
        taken: list[Batch] = []
        entries, order = self._entries, self._order
        while entries:
            if not order:
                order.extend(entries)
            batch = entries.get(order[0])
            if batch is not None and batch.last > upto:
                if batch.first <= upto:
                    taken.append(self._cut(order[0], batch, upto))
                break
            key = order.popleft()
            if batch is not None:
                taken.append(self._remove(key))
        return taken

    def fits(self, batch: Batch) -> bool:
        """Whether `add` would take it."""
        if self._fits(batch):
            return True
        if self._purging is HELD:
            return False
        self._settle()
        return self._fits(batch, list(dict.fromkeys((*self._obsoleted(batch), *self._condemned))))

    def reclaim(self, most: int = 1) -> int:
        """Lazy purging: purge messages known to be obsolete, oldest first; returns how many there were."""
        if self._purging is not LAZY:
            return 0
        thinned = self._thin() if most >= self.messages else 0
        self._settle()
        condemned, entries, indexes = self._condemned, self._entries, self._indexes
        found = list(islice(condemned.items(), most))
        size = 0
        for key, by in found:
            del condemned[key]
            victim = entries.pop(key)
            size += victim.size
            indexes[victim.sender].remove(key, victim)
            self._receipts.append((victim, by))
        self.messages -= len(found)
        self._bytes -= size
        return thinned + len(found)

    def release(self, sender: MemberId, upto: int) -> None:
        """Held purging: messages of `sender` up to `upto` may be relied on; their victims go."""
        index = self._indexes.get(sender)
        if index is None:
            return
        condemned = index.condemned
        while condemned and condemned[0][0].first <= upto:
            by, victims = condemned.popleft()
            for key in victims:
                if key in self._entries:
                    self._purge(key, by)

    def discard(self, sender: MemberId, seq: int) -> Batch | None:
        """Remove one annotated message on somebody else's word; None if it is not here."""
        self._settle()
        key = self._find(sender, seq)
        return None if key is None else self._remove(key)

    def holds(self, sender: MemberId, seq: int) -> bool:
        """Whether the annotated message is here."""
        self._settle()
        return self._find(sender, seq) is not None

    def take_receipts(self) -> list[Receipt]:
        """What was purged since the last call, in order."""
        receipts, self._receipts = self._receipts, []
        return receipts

    def take_thinned(self) -> list[Thinned]:
        """What was purged from runs since the last call."""
        if not self._thinned:
            return []
        thinned, self._thinned = self._thinned, []
        return thinned

    def take_purged(self) -> list[Purged | Thinned]:
        """Both, for who wants events."""
        found: list[Purged | Thinned] = [*self.take_thinned()]
        for victim, by in self.take_receipts():
            found.append(Purged(MessageId(victim.sender, victim.first), MessageId(by.sender, by.first)))
        return found

    def _index_of(self, sender: MemberId) -> SenderIndex:
        index = self._indexes.get(sender)
        if index is None:
            index = self._indexes[sender] = SenderIndex(len(self._indexes))
        self._sender, self._index = sender, index
        return index

    def _find(self, sender: MemberId, seq: int) -> int | None:
        """The key of an annotated message, if it is here; a peer may name any number."""
        index = self._indexes.get(sender)
        if index is None:
            return None
        batch = self._entries.get(index.base + seq)
        return None if batch is None or batch.first != seq else index.base + seq

    def _obsoleted(self, batch: Batch) -> list[int]:
        if batch.annotation is None:
            return []
        return self._victims(self._index_of(batch.sender), batch.annotation)

    # In

    def _settle(self) -> None:
        """Put what is fresh where it can be found, and note what it makes obsolete."""
        if not self._fresh:
            return
        entries, condemned = self._entries, self._condemned
        for batch in chain.from_iterable(map(single, self._fresh)):
            annotation = batch.annotation
            if annotation is None:
                self._plain = key = self._plain - 1
                entries[key] = batch
                continue
            sender = batch.sender
            index = self._index if sender is self._sender else self._index_of(sender)
            key = index.base + batch.first
            if type(annotation) is Item and not index.reach:
                old = index.items.get(annotation.item)
                if old is not None and old not in condemned:
                    condemned[old] = batch
                index.items[annotation.item] = key
            else:
                victims = self._victims(index, annotation)
                if victims:
                    self._condemn(victims, batch, index)
                index.insert(key, batch)
            entries[key] = batch
        self._fresh.clear()

    def _thin(self) -> int:
        """Purge what fresh runs of updates make obsolete among themselves; returns how many there were."""
        if not any(batch.items is not None for batch in self._fresh):
            return 0
        before = sum([batch.size for batch in self._fresh])
        kept, receipts = thinned(self._fresh)
        self._fresh = deque(kept)
        self._bytes -= before - sum([batch.size for batch in kept])
        self._thinned += receipts
        count = sum([receipt.count for receipt in receipts])
        self.messages -= count
        return count

    def _grow(self, grown: int) -> bool:
        size = self._bytes + grown
        if self._limit_bytes is not None and size > self._limit_bytes:
            return False
        self._bytes = size
        return True

    def _add_plain(self, batch: Batch) -> bool:
        assert batch.items is None or self._purging is OFF, "runs of updates only where purging is lazy"
        if self._bounded and not self._make_room(batch, []):
            return False
        self._plain = key = self._plain - 1
        self._entries[key] = batch
        self.messages += len(batch.payloads)
        self._bytes += batch.size
        return True

    def _add_annotated(self, batch: Batch, index: SenderIndex, annotation: Annotation) -> bool:
        victims = self._victims(index, annotation)
        if not self._make_room(batch, victims):
            return False
        if victims:
            self._condemn(victims, batch, index)
        key = index.base + batch.first
        self._entries[key] = batch
        self.messages += 1
        self._bytes += batch.size
        index.insert(key, batch)
        return True

    def _victims(self, index: SenderIndex, annotation: Annotation) -> list[int]:
        if self._purging is OFF:
            return []
        if type(annotation) is Item:
            old = index.items.get(annotation.item)
            return [] if old is None else [old]
        if type(annotation) is Enumeration:
            found = [self._find(named.sender, named.seq) for named in dict.fromkeys(annotation.ids)]
            return [key for key in found if key is not None]
        assert type(annotation) is KEnumeration
        return index.at_positions(annotation, self._entries)

    def _condemn(self, victims: list[int], by: Batch, index: SenderIndex) -> None:
        if self._purging is EAGER:
            for key in victims:
                self._purge(key, by)
            return
        # Once is enough: whoever comes later is needed later; of the same sender, it may be relied on later.
        condemned = self._condemned
        new = [key for key in victims if key not in condemned]
        if self._purging is HELD:
            early = [key for key in victims if key not in condemned or condemned[key].sender != by.sender]
            if early:
                index.condemned.append((by, early))
        for key in new:
            condemned[key] = by
            victim = self._entries[key]
            self._indexes[victim.sender].unmark(victim.first)

    def _make_room(self, batch: Batch, victims: list[int]) -> bool:
        """Whether `batch` fits, its victims gone if they may go; lazily purges what that takes."""
        if self._purging is EAGER:
            return self._fits(batch, victims)
        if self._fits(batch):
            return True
        return self._purging is LAZY and self._purge_waiting(batch, victims)

    def _fits(self, batch: Batch, without: Sequence[int] = ()) -> bool:
        limit = self._limit_messages
        if limit is not None and self.messages + len(batch.payloads) - len(without) > limit:
            return False
        limit = self._limit_bytes
        if limit is None:
            return True
        freed = sum([self._entries[key].size for key in without])
        return self._bytes + batch.size - freed <= limit

    def _purge_waiting(self, batch: Batch, victims: list[int]) -> bool:
        condemned = self._condemned
        while condemned and not self._fits(batch):
            key = next(iter(condemned))
            self._purge(key, condemned[key])
        victims[:] = [key for key in victims if key in self._entries]
        if not self._fits(batch, victims):
            return False
        while not self._fits(batch):
            self._purge(victims.pop(0), batch)
        return True

    # Out

    def _purge(self, key: int, by: Batch) -> None:
        self._receipts.append((self._remove(key), by))

    def _remove(self, key: int) -> Batch:
        batch = self._entries.pop(key)
        if batch.annotation is not None:
            index = self._index if batch.sender is self._sender else self._index_of(batch.sender)
            index.remove(key, batch)
            if self._condemned:
                self._condemned.pop(key, None)
        self.messages -= len(batch.payloads)
        self._bytes -= batch.size
        return batch

    def _pop_fresh(self, most: int, taken: list[Batch]) -> None:
        fresh = self._fresh
        if self.messages <= most:
            taken.extend(fresh)
            fresh.clear()
            self.messages = self._bytes = 0
            return
        while most > 0:
            batch = fresh.popleft()
            count = len(batch.payloads)
            if count > most:
                fresh.appendleft(batch.cut(batch.first + most, batch.last))
                batch = batch.cut(batch.first, batch.first + most - 1)
                count = most
            taken.append(batch)
            most -= count
            self.messages -= count
            self._bytes -= batch.size

    def _cut(self, key: int, batch: Batch, last: int) -> Batch:
        """Take the messages up to `last` and leave the others in place."""
        part = batch.cut(batch.first, last)
        self._entries[key] = batch.cut(last + 1, batch.last)
        self.messages -= len(part.payloads)
        self._bytes -= part.size
        return part

    def _pop_within(self, most: int, horizon: Mapping[MemberId, int]) -> list[Batch]:
        ripe = []
        for key, batch in self._entries.items():
            last = min(batch.last, horizon[batch.sender], batch.first + most - 1)
            if last >= batch.first:
                ripe.append((key, batch, last))
                most -= last - batch.first + 1
                if most == 0:
                    break
        return [
            self._remove(key) if last == batch.last else self._cut(key, batch, last)
            for key, batch, last in ripe
        ]
