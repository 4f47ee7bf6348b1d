"""How messages come into the log of a stream: what is new of a run is one record, and one step in memory."""

from semcast.core.messages import Batch
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.records import Stored, StoredRun
from semcast.wire.annotations import to_wire


def store(stream: LogStream, batch: Batch, journal: Journal) -> list[Batch]:
    """Store the messages that are neither here nor were; returns them."""
    fresh = [batch.cut(*span) for span in stream.unsettled(batch.first, batch.last)]
    for part in fresh:
        stream.store(part)
        if len(part.payloads) == 1 and part.items is None:
            record = Stored(part.sender, part.first, part.payloads[0], to_wire(part.annotation))
            position = journal.write(record)
        else:
            position = journal.write(StoredRun(part.sender, part.first, part.payloads, part.items))
        stream.messages.place(part.first, part.last, position)
    return fresh
