"""What can go wrong with a database: a statement is refused, or the file cannot be used."""


class StatementError(ValueError):
    """The statement is refused before it is sent: it is wrong, or would differ between servers."""


class DatabaseError(Exception):
    """The database file cannot be read or written; says which and why. The server that uses it stops."""


class SlowActionsError(Exception):
    """Actions take longer than they may in this thread. All of them are undone: do them in another."""
