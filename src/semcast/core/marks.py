"""Marks of messages, where others have an annotation: that they belong to calls, or to the order of a domain.

They are k-enumerations that replace nothing, with a base that no position ever has. So nothing becomes
obsolete because of such a message, and it never becomes obsolete.
"""

from semcast.core.annotations import Annotation, KEnumeration
from semcast.core.ids import MAX_NUMBER

MARK = KEnumeration(MAX_NUMBER, 0, total=True)
"""The annotation of whatever calls send."""
ORDERED = KEnumeration(MAX_NUMBER - 1, 0, total=True)
"""That of messages that have a place in the one order of a causal domain."""


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
