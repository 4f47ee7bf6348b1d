"""A group of members and a logger in the lab."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from semcast.core import Batch, Frame, Item, MemberId, Outbox
from semcast.core.events import Lost, Note, Purged, Thinned
from semcast.core.ids import MICROSECOND, MILLISECOND
from semcast.core.outgoing import Outgoing
from semcast.lab import Keeper, Lab
from semcast.lab.disk import Disk
from semcast.lab.seat import Seat
from semcast.protocols.gossip import GossipSettings, Logger, Member, Retention

NAMES = ("p", "q", "r", "log")


class GossipLab(Lab):
    """p, q, r and log, on one wire; with `known`, they know these to begin with, and nobody else."""

    def __init__(
        self,
        kind: type[Member] = Member,
        logger: type[Logger] = Logger,
        names: Sequence[str] = (),
        known: Sequence[MemberId] | None = None,
        **given: Any,
    ) -> None:
        super().__init__(latency=100 * MICROSECOND)
        chosen: dict[str, Any] = {
            "loggers": ("log",),
            "gossip_period": 10 * MILLISECOND,
            "gossip_rounds": 5,
            "gc_rounds": 5,
            "resend": 20 * MILLISECOND,
            "report": 50 * MILLISECOND,
            "heartbeat_least": 20 * MILLISECOND,
            "retention": Retention.LIVE,
        }
        self.settings = GossipSettings(**{**chosen, **given})
        self.kind, self.logger = kind, logger
        names = names or (NAMES if self.settings.loggers else NAMES[:-1])
        self.members = tuple(MemberId(name) for name in names)
        self.known = self.members if known is None else known
        self.disk = Disk()
        for member in self.members:
            self.place(member)
        self.start()

    def place(self, member: MemberId) -> Seat:
        """A member, in the place of who had its name."""
        rng, out = Random(f"{member}"), Outbox()
        if member.name == "log":
            stack = self.logger(member, self.known, self.settings, rng, out)
            return self.add(member, stack, disk=self.disk)
        return self.add(member, self.kind(member, self.known, self.settings, rng, out))

    def restart(self, name: str) -> Seat:
        """Another incarnation."""
        former = self.seats[name].member
        if self.seats[name].alive:
            self.seats[name].crash()
        seat = self.place(MemberId(name, former.incarnation + 1))
        seat.start()
        return seat

    def crash(self, name: str, *, told: bool = True) -> None:
        """It is gone, and the others hear of it."""
        gone = self.seats[name].member
        self.seats[name].crash()
        for seat in self.seats.values():
            if told and seat.alive:
                seat.call(lambda stack, now: stack.member_failed(now, gone))

    def got(self, name: str) -> list[bytes]:
        """What the program of a member was given."""
        application = self.seats[name].application
        assert isinstance(application, Keeper)
        return [payload for each in application.taken if isinstance(each, Batch) for payload in each.payloads]

    def lost(self, name: str) -> list[Lost]:
        """What the program of a member was told that it will not be given."""
        application = self.seats[name].application
        assert isinstance(application, Keeper)
        return [each for each in application.taken if isinstance(each, Lost)]

    def notes(self, name: str, kind: str) -> list[Note]:
        """Rows for the history."""
        return [each for each in self.seats[name].events if isinstance(each, Note) and each.kind == kind]

    def purged(self, name: str) -> list[int]:
        """Numbers that a member has a receipt for."""
        told = [each for each in self.seats[name].events if isinstance(each, Purged | Thinned)]
        receipts = [receipt for each in told for receipt in each.receipts()]
        return [seq for each in receipts for seq in range(each.id.seq, each.id.seq + each.count)]

    def stop(self, *frames: type[Frame], source: str = "", dest: str = "") -> Callable[[], None]:
        """Lose these frames, from one member or to one, until the returned function is called."""

        def carries(from_: str, to: str, frame: Frame) -> bool:
            concerned = (not source or from_ == source) and (not dest or to == dest)
            return not (concerned and (not frames or isinstance(frame, frames)))

        self.carries = carries
        return lambda: setattr(self, "carries", lambda *_: True)

    def update(self, name: str, payload: bytes, item: str = "x") -> int:
        """Send an update of an item."""
        return self.seats[name].multicast(payload, annotation=Item(item))

    def updates(self, name: str, *updates: tuple[str, bytes]) -> int:
        """Send several, handed over together."""
        payloads, items = [payload for _, payload in updates], [Item(item) for item, _ in updates]
        return self.seats[name].offer(Outgoing(payloads, annotations=items))
