"""What operators do to simulated loggers."""

from collections.abc import Sequence
from contextlib import suppress

from semcast.core.annotations import Item
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
        names = member_names(len(stacks), len(stack.settings.loggers[0]))
        with suppress(ValueError):
            stack.forget(now, names[self.logger].name)


class PublishBatch(Deed, frozen=True, tag="publish-batch"):
    """A program that is no member has a logger log a batch (`semcast.log(...).publish`)."""

    key: int
    count: int

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """Nothing while the logger is not in use: the program would ask again."""
        stack = stacks[self.member]
        assert isinstance(stack, Logger)
        if stack.phase() == "operational":
            payloads = [b"%d/%d" % (self.key, number) for number in range(self.count)]
            items = [Item(f"i{number % 3}") for number in range(self.count)]
            stack.publish(now, b"%d" % self.key, payloads, items)
