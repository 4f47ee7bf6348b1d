"""Statements that are refused before they are sent: those whose result could differ between servers.

SQLite itself refuses most of it by the authorizer (`guard.py`) when a statement is prepared. What the
authorizer is not told stands here, and is found in the words of the statement: rows that `LIMIT` picks
without `ORDER BY`, because which rows come first depends on the plan.
"""

import re
from collections.abc import Iterator

from semcast.sql.errors import StatementError
from semcast.sql.remembered import remembered

OURS = "/*semcast*/"
"""Begins every statement of our own. A client's must not: prepared statements are cached by their text."""

MAX_SQL = 1 << 20

_WORD = re.compile(
    r"""
      --[^\n]* | /\*.*?(?:\*/|\Z)                              # comments
    # Strings and quoted names. One that does not end goes to the end: else each quote is looked behind.
    | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | `(?:[^`]|``)*(?:`|\Z) | \[[^\]]*(?:\]|\Z)
    | (?P<word>[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*)
    | (?P<mark>[();])
    """,
    re.VERBOSE | re.DOTALL,
)
_WRITES = frozenset(
    ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER", "REINDEX", "ANALYZE", "PRAGMA")
)


def words(sql: str) -> Iterator[str]:
    """The words, parentheses and semicolons of a statement, outside of strings and comments."""
    for match in _WORD.finditer(sql):
        if match["word"] is not None:
            yield match["word"].upper()
        elif match["mark"] is not None:
            yield match["mark"]


def writes(sql: str) -> bool:
    """Whether a statement may change the database: anything but a plain query."""
    for word in words(sql):
        if word in _WRITES:
            return True
        if word in ("SELECT", "VALUES", "EXPLAIN"):
            return False
        if word == "WITH":
            return any(each in ("INSERT", "UPDATE", "DELETE", "REPLACE") for each in words(sql))
    return True


@remembered
def check(sql: str) -> None:
    """Check a statement that is to be ordered.

    Raises:
        StatementError: it is too long, it is ours, or it picks rows in no defined order.
    """
    if len(sql) > MAX_SQL:
        raise StatementError(f"a statement of {len(sql)} characters: at most {MAX_SQL} are allowed")
    if "\0" in sql:
        raise StatementError("a statement must not contain a zero character")
    if OURS in sql:
        raise StatementError(f"a statement must not contain {OURS}")
    if writes(sql):
        _check_limits(sql)


def _check_limits(sql: str) -> None:
    ordered = [False]
    for word in words(sql):
        if word == "(":
            ordered.append(False)
        elif word == ")":
            if len(ordered) > 1:
                ordered.pop()
        elif word == ";":
            ordered = [False]
        elif word == "ORDER":
            ordered[-1] = True
        elif word == "LIMIT" and not ordered[-1]:
            raise StatementError(
                "LIMIT without ORDER BY in a statement that writes: which rows it takes is not defined and "
                "could differ between servers. Add ORDER BY with a unique key"
            )
