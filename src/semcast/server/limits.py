"""How much a client may ask for: everything that it controls has a bound."""

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Of one server."""

    body: int = 4 << 20
    """Bytes of a request."""
    rows: int = 10_000
    """Of an answer."""
    answer: int = 16 << 20
    """Bytes of an answer, but of a backup."""
    statements: int = 1000
    """Of a transaction, each with what it expects."""
    requests: int = 1024
    """That may be under way; half of them may wait for a primary, so that what needs none finds room."""
    connections: int = 1000
    patience: float = 30.0
    """Seconds that a client may take to send a request, and to take each part of the answer."""
    timeout: float = 300.0
    """Seconds that a request may ask to wait."""
    backups: int = 2
    """At a time."""
    restores: int = 8 << 30
    """Bytes of a file that is to be restored; one at a time."""


MAX_PARAMETERS = 32_766
"""What SQLite takes with one statement."""
MAX_SQL = 1 << 20
MAX_CLIENT = 64
MAX_NUMBER = (1 << 62) - 1
MAX_SEEN = 1 << 16
SQLITE = "application/vnd.sqlite3"
"""What a file of a database is called."""
