"""Where a session begins that its logger does not know, as a number of each stream (1.8: t_join).

`new`: with what comes. `all`: with the oldest that is there. `compacted`: the same, but of what is there only
what nothing in the log replaces, with receipts for the rest. `position` and `time`: with what has that
position, or came at that time of day, or after it. `acknowledged`: where it was: the session must be known.

Who asks for a time is given what is still there of it: nothing is owed that was collected before.

A session that is known goes on where it was, whatever it asks for.
"""

from semcast.core.ids import MemberId
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.frames import Join
from semcast.protocols.gossip.reading import Reading


class RefusedError(Exception):
    """A session cannot begin as it wants to, and why."""


def beginning(books: Books, reading: Reading, join: Join, name: str) -> dict[MemberId, int]:
    """What is owed to a session comes after these numbers. Raises RefusedError, or OffsetError."""
    streams = books.streams.values()
    if join.start == "acknowledged":
        raise RefusedError(f"session {name!r} is not known here: there is nothing that it acknowledged")
    if join.start == "position":
        return reading.vector(join.at, join.log)
    if join.start == "time":
        found = reading.vector(max(reading.at_time(join.at), reading.ends().first), join.log)
        return {stream.sender: max(found[stream.sender], stream.floor) for stream in streams}
    return {stream.sender: stream.logged if join.start == "new" else stream.floor for stream in streams}
