"""What is found out about the text of a statement, once: programs say the same few again and again."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")
_SHORT = 4096
"""Longer ones are looked at each time, so that little memory is needed."""
_STATEMENTS = 1024


def remembered(find: Callable[[str], T]) -> Callable[[str], T]:
    """The same function, which keeps what it found of short texts. What raises is not kept."""
    kept = lru_cache(maxsize=_STATEMENTS)(find)

    def look(text: str) -> T:
        return kept(text) if len(text) <= _SHORT else find(text)

    return look
