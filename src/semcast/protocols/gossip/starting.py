"""Where a session begins that its logger does not know, as a number of each stream (1.8: t_join).

`new`: with what comes. `all`: with the oldest that is there. `compacted`: the same, but of what is there only
what nothing in the log replaces, with receipts for the rest. `position` and `time`: with what has that
position, or came at that time of day, or after it. `acknowledged`: where it was: the session must be known.

Nothing is owed that was collected before, or that loggers have agreed to collect (`floors`). Who asks for a
time is given what is still there of it. Who asks for a position knows what it wants: where something from
there on was trimmed, it is refused, and told from where on the log is whole. What was replaced is not
missed: its replacement has a later position.

A session that is known goes on where it was, whatever it asks for.
"""

from collections.abc import Mapping

from semcast.core.ids import MemberId
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.frames import Join
from semcast.protocols.gossip.reading import Reading


class RefusedError(Exception):
    """A session cannot begin as it wants to, and why."""


def beginning(
    books: Books, reading: Reading, join: Join, name: str, floors: Mapping[MemberId, int]
) -> dict[MemberId, int]:
    """What is owed to a session comes after these numbers. Raises RefusedError, or OffsetError."""
    found: Mapping[MemberId, int]
    if join.start == "acknowledged":
        raise RefusedError(f"session {name!r} is not known here: there is nothing that it acknowledged")
    if join.start == "position":
        found = reading.vector(join.at, join.log)
        reading.check_whole(join.at, found, floors)
    elif join.start == "time":
        found = reading.vector(max(reading.at_time(join.at), reading.ends().first), join.log)
    elif join.start == "new":
        found = {stream.sender: stream.logged for stream in books.streams.values()}
    else:
        found = floors
    return {sender: max(found[sender], floor) for sender, floor in floors.items()}
