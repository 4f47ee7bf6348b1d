"""Members and several loggers in the lab."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from semcast.core import Batch, Frame, MemberId, Outbox
from semcast.core.events import Note
from semcast.core.ids import MICROSECOND, MILLISECOND, Nanos
from semcast.lab import Keeper, Lab
from semcast.lab.disk import Disk
from semcast.lab.seat import Seat
from semcast.protocols.gossip import GossipSettings, Logger, Member

LOGGERS = ("k", "l")
SHORT = 300 * MILLISECOND


class Several(Lab):
    """p, q and r, with the loggers k and l; k decides. p is at home at k, q and r at l, unless said."""

    def __init__(
        self,
        kind: type[Member] = Member,
        logger: type[Logger] = Logger,
        homes: Mapping[str, str] | None = None,
        latency: Nanos = 100 * MICROSECOND,
        **given: Any,
    ) -> None:
        super().__init__(latency=latency)
        chosen: dict[str, Any] = {
            "loggers": LOGGERS,
            "gossip_period": 10 * MILLISECOND,
            "gossip_rounds": 5,
            "gc_rounds": 5,
            "resend": 20 * MILLISECOND,
            "report": 50 * MILLISECOND,
            "heartbeat_least": 20 * MILLISECOND,
        }
        self.given = {**chosen, **given}
        self.kind, self.logger = kind, logger
        self.homes = {"p": "k", **(homes or {})}
        self.loggers: tuple[str, ...] = self.given["loggers"]
        self.members = tuple(MemberId(name) for name in ("p", "q", "r", *self.loggers))
        self.disks = {name: Disk() for name in self.loggers}
        for member in self.members:
            self.place(member)
        self.start()

    def place(self, member: MemberId) -> Seat:
        rng, out = Random(f"{member}"), Outbox()
        settings = GossipSettings(**self.given, home=self.homes.get(member.name, "l"))
        if member.name in self.loggers:
            stack = self.logger(member, self.members, settings, rng, out)
            return self.add(member, stack, disk=self.disks[member.name])
        return self.add(member, self.kind(member, self.members, settings, rng, out))

    def restart(self, name: str) -> None:
        former = self.seats[name].member
        if self.seats[name].alive:
            self.seats[name].crash()
        self.place(MemberId(name, former.incarnation + 1)).start()

    def lose_disk(self, name: str) -> None:
        """It crashes, and its disk is gone."""
        self.seats[name].crash()
        self.disks[name] = Disk()

    def fail(self, name: str) -> None:
        """It crashes, and everybody is told."""
        gone = self.seats[name].member
        self.seats[name].crash()
        for seat in self.seats.values():
            if seat.alive:
                seat.call(lambda stack, now: stack.member_failed(now, gone))

    def got(self, name: str) -> list[bytes]:
        application = self.seats[name].application
        assert isinstance(application, Keeper)
        return [payload for each in application.taken if isinstance(each, Batch) for payload in each.payloads]

    def notes(self, name: str, kind: str) -> list[Note]:
        return [each for each in self.seats[name].events if isinstance(each, Note) and each.kind == kind]

    def home(self, name: str) -> str:
        stack = self.seats[name].stack
        assert isinstance(stack, Member)
        assert stack.session.logger is not None
        return stack.session.logger.name

    def stop(self, *frames: type[Frame], source: str = "", dest: str = "") -> Callable[[], None]:
        def carries(from_: str, to: str, frame: Frame) -> bool:
            concerned = (not source or from_ == source) and (not dest or to == dest)
            return not (concerned and (not frames or isinstance(frame, frames)))

        self.carries = carries
        return lambda: setattr(self, "carries", lambda *_: True)
