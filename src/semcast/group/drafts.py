"""What a program wants to be sent: checked, numbered, and handed over."""

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Literal

from semcast.core.annotations import Annotation, Enumeration, Item
from semcast.core.handover import Handover
from semcast.core.ids import MemberId, MessageId
from semcast.core.outgoing import Outgoing
from semcast.group.errors import ConfigurationError
from semcast.group.registry import Family
from semcast.group.stacks import Parts
from semcast.obsolescence import ItemsTracker
from semcast.patterns.calls import MARK
from semcast.wire.limits import MAX_PAYLOAD, check_message

Order = Literal["agreed", "safe"]
Ticket = tuple[int, bool]
"""Of somebody who waits to know what becomes of a message, and whether all must have it."""

_SOUND = 1024
"""Items of which it is remembered that they can be sent."""


class Drafts:
    """Messages of one member. Programs without asyncio send from threads of their own.

    What a stack would refuse is refused here, where somebody can do something about it, and before it has
    a number: it must not count as an update.

    Args:
        parts: what the member is made of.
        hand_over: gives messages to the member.
        hand_over_plain: the same for one that says nothing about others.
        hand_over_update: the same for one that updates an item.
    """

    def __init__(
        self,
        parts: Parts,
        hand_over: Callable[[Outgoing], None],
        hand_over_plain: Callable[[bytes], None],
        hand_over_update: Callable[[bytes, Item], None],
    ) -> None:
        self.member = parts.member
        self._family: Family = parts.family
        self._site, self._largest = parts.site, parts.largest
        self._hand_over = hand_over
        self._hand_over_plain = hand_over_plain
        self._hand_over_update = hand_over_update
        self._numbering = threading.Lock()
        self._next_seq = 1
        self._items = ItemsTracker(parts.member)
        self._sound: set[str] = set()  # items that were checked

    def come_back(self, member: MemberId, handover: Handover) -> None:
        """As another incarnation: what was handed over and has not left is numbered anew."""
        with self._numbering:
            self.member = member
            self._next_seq = handover.unsent + 1
            self._items = ItemsTracker(member)

    # Handing over

    def one(
        self,
        payload: bytes,
        item: str | None,
        items: Sequence[str] | None,
        obsoletes: Sequence[MessageId] | None,
        order: Order,
        ticket: Ticket | None = None,
    ) -> MessageId:
        """One message, with what it says about others. What leaves together does so after waiting, too."""
        if items is None and obsoletes is None and order == "agreed" and ticket is None:
            return self.plain(payload) if item is None else self.update(payload, item)
        if (item is not None) + (items is not None) + (obsoletes is not None) > 1:
            raise ValueError("pass only one of item=, items=, obsoletes=")
        note = None if obsoletes is None else Enumeration(_ids(obsoletes))
        self.check([payload], note, order)
        if item is not None:
            items = (item,)
        for each in items or ():
            self._check_item(each)
        with self._numbering:
            update = note if items is None else self._items.update(self._next_seq, items)
            if items is not None:
                self.check([payload], update, order)
            outgoing = Outgoing([payload], update, order == "safe", None, ticket, len(payload))
            return self._number(outgoing)

    def plain(self, payload: bytes) -> MessageId:
        """One message in agreed order that says nothing about others: what programs send most."""
        if type(payload) is not bytes or len(payload) > self._largest:
            self.check([payload], None, "agreed")
        with self._numbering:
            self._hand_over_plain(payload)
            number = self._next_seq
            self._next_seq = number + 1
            return MessageId(self.member, number)

    def update(self, payload: bytes, item: str) -> MessageId:
        """One update of an item in agreed order: what they send most besides."""
        if type(payload) is not bytes or len(payload) > self._largest:
            self.check([payload], None, "agreed")
        self._check_item(item)
        with self._numbering:
            number = self._next_seq
            note = self._items.tag(number, item)
            if type(note) is Item and self._family.takes_updates:
                self._hand_over_update(payload, note)
                self._next_seq = number + 1
                return MessageId(self.member, number)
            self.check([payload], note, "agreed")
            return self._number(Outgoing([payload], note, False, None, None, len(payload)))

    def many(
        self, payloads: Sequence[bytes], order: Order, size: int, ticket: Ticket | None = None
    ) -> MessageId:
        """Several with so many bytes that say nothing about others, and were checked; gives the last id."""
        with self._numbering:
            return self._number(Outgoing(payloads, None, order == "safe", None, ticket, size))

    def marked(self, payloads: Sequence[bytes]) -> MessageId:
        """Some that belong to calls; gives the last id."""
        note, notes = (MARK, None) if len(payloads) == 1 else (None, [MARK] * len(payloads))
        with self._numbering:
            return self._number(Outgoing(payloads, note, False, notes, None, sum(map(len, payloads))))

    def updates(self, updates: Sequence[tuple[str, bytes]], order: Order, size: int) -> MessageId:
        """Several that were checked, each of an item; together, for stacks that take them so."""
        if not self._family.takes_updates:
            return [self.one(payload, item, None, None, order) for item, payload in updates][-1]
        items, payloads = zip(*updates, strict=True)
        with self._numbering:
            notes = self._items.tags(self._next_seq, items)
            return self._number(Outgoing(payloads, None, order == "safe", notes, None, size))

    def _number(self, outgoing: Outgoing) -> MessageId:
        self._hand_over(outgoing)
        self._next_seq += len(outgoing.payloads)
        return MessageId(self.member, self._next_seq - 1)

    # Refusing

    def check(self, payloads: Sequence[bytes], annotation: Annotation | None, order: Order) -> int:
        """Raise for what cannot be sent; returns how many bytes it has."""
        if not payloads:
            raise ValueError("there is nothing to send")
        if order not in ("agreed", "safe"):
            raise ConfigurationError(f"order {order!r}: choose agreed or safe")
        if {*map(type, payloads)} != {bytes}:
            strange = next(type(each).__name__ for each in payloads if type(each) is not bytes)
            raise TypeError(f"payload of type {strange}: must be bytes, so encode text and copy buffers")
        family = self._family
        size = sum(map(len, payloads))
        if size > self._largest < (longest := max(map(len, payloads))):
            raise ValueError(f"payload of {longest} bytes: at most {self._largest} are allowed")
        if order == "safe" and not family.safe:
            raise ValueError(f"there is no safe order in {family.name}{family.instead_of_safe}")
        if annotation is not None:
            check_message(payloads[0][: MAX_PAYLOAD // 2] if family.splits else payloads[0], annotation)
        return size

    def check_updates(self, updates: Sequence[tuple[str, bytes]], order: Order) -> int:
        """The same for updates of items."""
        size = self.check([payload for _, payload in updates], None, order)
        for item in {item for item, _ in updates} - self._sound:
            self._check_item(item)
        return size

    def _check_item(self, item: str) -> None:
        if not isinstance(item, str):
            raise TypeError(f"item {item!r}: must be a string")
        if item in self._sound:
            return
        if not item:
            raise ValueError("item '': must not be empty")
        check_message(b"", Item(item))
        room = self._family.note_room
        if room is not None and (size := len(item.encode())) > (most := room(self._site.packet)):
            raise ValueError(f"item of {size} bytes: at most {most} fit beside a message")
        if len(self._sound) >= _SOUND:
            self._sound.clear()
        self._sound.add(item)


def portions(
    sizes: Iterable[int], count: int, size: int, messages: int, most: int
) -> list[tuple[int, int, int]]:
    """Where to cut `count` messages with `size` bytes, and the bytes of each part.

    At most `messages` are together, and `most` bytes but for the last. Where all are no more than that,
    nobody looks at them: each part has its share.

    >>> portions([9, 9, 9, 1, 1], 5, 29, 2, 10)
    [(0, 2, 18), (2, 4, 10), (4, 5, 1)]
    >>> portions([9, 9, 9, 1, 1], 5, 29, 3, 100)
    [(0, 3, 17), (3, 5, 12)]
    """
    if size <= most:
        cuts = [*range(0, count, messages), count]
        return [(start, stop, size * stop // count - size * start // count) for start, stop in pairwise(cuts)]
    found: list[tuple[int, int, int]] = []
    start = held = 0
    for stop, each in enumerate(sizes, 1):
        held += each
        if stop - start == messages or held >= most or stop == count:
            found.append((start, stop, held))
            start, held = stop, 0
    return found


def _ids(obsoletes: Sequence[MessageId]) -> tuple[MessageId, ...]:
    for each in obsoletes:
        if not isinstance(each, MessageId):
            raise TypeError(f"obsoletes names {each!r}: ids are what `send` returns, or `Message.id`")
    return tuple(obsoletes)
