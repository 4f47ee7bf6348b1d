"""Names of tables and columns inside of statements that we make."""

from semcast.sql.errors import StatementError


def quoted(name: str) -> str:
    """A name as it stands in a statement, whatever characters it has.

    Raises:
        StatementError: it is empty, or has a character that no name can have.

    >>> quoted("order")
    '"order"'
    """
    if not name or "\0" in name:
        raise StatementError(f"{name!r} is no name of a table or column")
    return '"' + name.replace('"', '""') + '"'
