"""What must hold of publish/subscribe by gossip and loggers (Sun 2000)."""

from collections.abc import Callable

from semcast.history.events import History
from semcast.specs.gossip.again import gossip_again
from semcast.specs.gossip.delivery import (
    at_least_once,
    at_most_once,
    gossip_agreement,
    gossip_delivery,
    gossip_receipts,
    gossip_start,
)
from semcast.specs.gossip.ending import gossip_ended
from semcast.specs.gossip.filtering import gossip_filter
from semcast.specs.gossip.logs import (
    gossip_admitted,
    gossip_chains,
    gossip_closed,
    gossip_collected,
    gossip_collection,
    gossip_compacted,
    gossip_durable,
    gossip_forgotten,
    gossip_logged,
    gossip_progress,
)
from semcast.specs.gossip.members import gossip_members
from semcast.specs.gossip.positions import gossip_positions
from semcast.specs.gossip.publishing import published_all, published_once, published_taken
from semcast.specs.gossip.reading import read_all, read_kept, read_once, read_true
from semcast.specs.gossip.sponsors import gossip_sponsored
from semcast.specs.gossip.starting import gossip_beginning
from semcast.specs.verdict import Verdict

GOSSIP: dict[str, Callable[[History], Verdict]] = {
    "gossip_start": gossip_start,
    "gossip_logged": gossip_logged,
    "gossip_delivery": gossip_delivery,
    "gossip_agreement": gossip_agreement,
    "gossip_receipts": gossip_receipts,
    "gossip_collection": gossip_collection,
    "gossip_collected": gossip_collected,
    "gossip_durable": gossip_durable,
    "at_most_once": at_most_once,
    "at_least_once": at_least_once,
    "gossip_progress": gossip_progress,
    "gossip_closed": gossip_closed,
    "gossip_admitted": gossip_admitted,
    "gossip_members": gossip_members,
    "gossip_sponsored": gossip_sponsored,
}

GOSSIP_LOGS: dict[str, Callable[[History], Verdict]] = {
    "gossip_beginning": gossip_beginning,
    "gossip_positions": gossip_positions,
    "gossip_filter": gossip_filter,
    "gossip_chains": gossip_chains,
    "gossip_compacted": gossip_compacted,
    "gossip_forgotten": gossip_forgotten,
    "gossip_ended": gossip_ended,
    "gossip_again": gossip_again,
}
"""What must hold of a log beyond that."""

GOSSIP_BATCHES: dict[str, Callable[[History], Verdict]] = {
    "published_once": published_once,
    "published_taken": published_taken,
    "published_all": published_all,
}
"""What must hold of batches that programs give a logger, where these record what they do."""

GOSSIP_READERS: dict[str, Callable[[History], Verdict]] = {
    "read_true": read_true,
    "read_once": read_once,
    "read_all": read_all,
    "read_kept": read_kept,
}
"""What must hold of programs that read a log by position, where these record what they are given: judged in
memory only."""
