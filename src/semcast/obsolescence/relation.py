"""The obsolescence relation as represented (Pereira 2002, section 3.3).

`obsoletes(new, old)` is the paper's "old is obsolete because of new". It is a strict partial order
inside causality for annotations that honest trackers make; it is decided from the two messages alone,
so that a middle message that was purged is not missed.
"""

from semcast.core.annotations import Enumeration, Item, KEnumeration
from semcast.core.messages import Message


def obsoletes(new: Message, old: Message) -> bool:
    """Whether `new` makes `old` obsolete.

    >>> from semcast.core import Item, MemberId, Message, MessageId
    >>> p = MemberId("p")
    >>> old = Message(MessageId(p, 1), b"100", Item("IBM"))
    >>> new = Message(MessageId(p, 2), b"101", Item("IBM"))
    >>> obsoletes(new, old), obsoletes(old, new)
    (True, False)
    """
    if old.annotation is None or new.annotation is None:
        return False
    annotation = new.annotation
    if isinstance(annotation, Enumeration):
        return old.id in annotation.ids and old.id != new.id
    if isinstance(annotation, KEnumeration) and annotation.total:
        return old.order is not None and _bit(annotation, old.order)
    if new.sender != old.sender or old.id.seq >= new.id.seq:
        return False
    if isinstance(annotation, Item):
        return isinstance(old.annotation, Item) and old.annotation.item == annotation.item
    return _bit(annotation, old.id.seq)


def _bit(annotation: KEnumeration, position: int) -> bool:
    distance = annotation.base - position
    return distance >= 1 and bool(annotation.bitmap >> (distance - 1) & 1)
