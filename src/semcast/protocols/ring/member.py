"""What the parts of one member have in common."""

from random import Random

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.reader import Reader
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
        self.reader = Reader()
        """The program. Whoever drives the stack puts its own here (`Ring.reader`), so no part keeps it."""
        self.stats = Statistics()
        self.standing = Standing()
