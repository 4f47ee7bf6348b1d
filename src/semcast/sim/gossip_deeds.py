"""What operators do to simulated loggers."""

from collections.abc import Sequence
from contextlib import suppress

from semcast.core.ids import Nanos
from semcast.core.stack import Stack
from semcast.protocols.gossip import Logger
from semcast.sim.cluster import member_names
from semcast.sim.faults import Deed


class ForgetLogger(Deed, frozen=True, tag="forget-logger"):
    """An operator tells a logger to go on without another one (`semcast log forget`)."""

    logger: int

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """Nothing where it is refused: because the other one is heard, say."""
        stack = stacks[self.member]
        assert isinstance(stack, Logger)
        with suppress(ValueError):
            stack.forget(now, member_names(len(stacks))[self.logger].name)
