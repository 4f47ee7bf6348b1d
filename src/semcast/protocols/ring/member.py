"""What the parts of one member have in common."""

from random import Random

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.ring.settings import RingSettings
from semcast.protocols.ring.states import Standing


class Member:
    """Who it is, what was set, where it stands, and where its outputs go."""

    def __init__(self, me: MemberId, settings: RingSettings, rng: Random, out: Outbox) -> None:
        self.me = me
        self.settings = settings
        self.rng = rng
        self.out = out
        self.stats = Statistics()
        self.standing = Standing()
