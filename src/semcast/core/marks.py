"""The mark of messages that belong to calls, where others have an annotation.

It is a k-enumeration that replaces nothing, with a base that no position ever has. So nothing becomes
obsolete because of a call, and a call never becomes obsolete.
"""

from semcast.core.annotations import Annotation, KEnumeration
from semcast.core.ids import MAX_NUMBER

MARK = KEnumeration(MAX_NUMBER, 0, total=True)
"""The annotation of whatever calls send."""


def is_mark(note: Annotation | None) -> bool:
    """Whether an annotation says that a message belongs to calls.

    >>> is_mark(MARK), is_mark(None)
    (True, False)
    """
    return type(note) is KEnumeration and note.base == MAX_NUMBER and not note.bitmap
