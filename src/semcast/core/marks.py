"""Marks of messages, where others have an annotation: of calls, of the order of a domain, of clients.

They are k-enumerations that replace nothing, with a base that no position ever has. So nothing becomes
obsolete because of such a message, and it never becomes obsolete.
"""

from semcast.core.annotations import Annotation, KEnumeration
from semcast.core.ids import MAX_NUMBER

MARK = KEnumeration(MAX_NUMBER, 0, total=True)
"""The annotation of whatever calls send."""
ORDERED = KEnumeration(MAX_NUMBER - 1, 0, total=True)
"""That of messages that have a place in the one order of a causal domain."""


RELAYED = KEnumeration(MAX_NUMBER - 2, 0, total=True)
"""That of what clients of a group send and are sent, and of what servers say to each other about them."""


def is_mark(note: Annotation | None) -> bool:
    """Whether an annotation says that a message belongs to calls.

    >>> is_mark(MARK), is_mark(None)
    (True, False)
    """
    return type(note) is KEnumeration and note.base == MAX_NUMBER and not note.bitmap


def is_ordered(note: Annotation | None) -> bool:
    """Whether an annotation says that a message has a place in the one order of a causal domain.

    >>> is_ordered(ORDERED), is_ordered(MARK)
    (True, False)
    """
    return type(note) is KEnumeration and note.base == MAX_NUMBER - 1 and not note.bitmap


def is_relayed(note: Annotation | None) -> bool:
    """Whether an annotation says that a message is of clients, for one, or about them.

    >>> is_relayed(RELAYED), is_relayed(MARK)
    (True, False)
    """
    return type(note) is KEnumeration and note.base == MAX_NUMBER - 2 and not note.bitmap
