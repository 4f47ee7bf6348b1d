"""Simulated programs that say themselves what they are through with, as `subscribe(..., ack="explicit")`.

A program deals with what it was given, and then acknowledges all of it up to somewhere; some acknowledge
nothing for long. Who crashes, or stops, has not said so of the rest.
"""

from collections.abc import Sequence
from random import Random

from semcast.core.events import Delivery
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.protocols.gossip import GossipSettings, Member
from semcast.sim.gossip_scenario import Strangers


class Dealing(Strangers, frozen=True, kw_only=True):
    """Settings of a group whose programs deal with what they are given."""

    diligence: float = 0.5
    """How often, of its rounds, a program acknowledges something."""
    lazy: float = 0.0
    """How many programs, of all, acknowledge nothing before a moment."""
    lazy_until: Nanos = 0


class DealingMember(Member):
    """One member, with what its program acknowledges."""

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: GossipSettings, rng: Random, out: Outbox
    ) -> None:
        super().__init__(me, members, settings, rng, out)
        assert isinstance(settings, Dealing)
        self._chance = Random(rng.getrandbits(64))
        self._diligence = settings.diligence
        self._begins = settings.lazy_until if self._chance.random() < settings.lazy else 0
        self._given: list[tuple[MemberId, int]] = []  # the last of each run that is not acknowledged
        self._tickets = 0

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        """Remember what is handed over."""
        found = super().deliver(now, most)
        self._given += [(each.sender, each.last) for each in found if isinstance(each, Batch)]
        return found

    def _round(self, now: Nanos) -> None:
        super()._round(now)
        if not self.settings.explicit or not self._given or now < self._begins:
            return
        if self._chance.random() < self._diligence:
            count = self._chance.randint(1, len(self._given))
            done, self._given = self._given[:count], self._given[count:]
            streams = self.receiver.streams
            upto = {stream: seq for stream, seq in done if stream in streams}  # the last word on each counts
            self._tickets += 1
            if upto:
                self.acknowledge(now, upto, self._tickets)
