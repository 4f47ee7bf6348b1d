"""LBRM, simplified (Sun 2000, chapter 3): the logger makes all repairs.

With the variable heartbeat of the evaluation (1.3, 5.1). Left out, as in the paper: statistical
acknowledgements and multicast repairs.
"""

from semcast.core.ids import Nanos
from semcast.protocols.gossip.repair import Repair
from semcast.protocols.gossip.spans import Span
from semcast.protocols.gossip.streams import Stream


class Lbrm(Repair):
    """Ask the logger, at once and then each round."""

    repeats_heartbeat = True

    def on_gaps(self, now: Nanos, stream: Stream, gaps: list[Span]) -> None:  # noqa: ARG002
        """3.3, but at once (eager)."""
        self.desk.ask_logger([(stream.sender, gaps)])

    def on_round(self, now: Nanos) -> None:  # noqa: ARG002
        """tick: RTX for each of `missing`."""
        self.desk.ask_logger(self.desk.lacking(peers=True) + self.desk.lacking(peers=False))
