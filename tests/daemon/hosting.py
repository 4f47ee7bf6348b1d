"""A daemon without sockets: a host over a machine that is alone, and connections to it as lists of frames."""

from itertools import count
from typing import Any, TypeVar

from semcast.core import MemberId
from semcast.core.outbox import Outbox
from semcast.protocols.clients.codec import decode_reply, encode
from semcast.protocols.clients.frames import VERSION, Hello, Reply, Request, Taken, Welcome
from semcast.protocols.clients.guests import Link
from semcast.protocols.clients.host import Host, HostSettings
from semcast.protocols.clients.permissions import EVERYTHING, Identity, Permissions, Rule
from semcast.protocols.lightweight import LightweightSettings, Machine

D = MemberId("d", 7)
LOCAL = Identity(("local",), admin=True)
WEB = Identity(("token:web",), resumes=True)
WEB_TOKEN, OTHER_TOKEN = "web", "other"
T = TypeVar("T")


class Hosted:
    """One daemon, alone on its ring."""

    def __init__(
        self,
        *,
        rules: tuple[Rule, ...] = EVERYTHING,
        settings: HostSettings | None = None,
        **light: Any,
    ) -> None:
        self.now = 0
        self.machine = Machine(D, LightweightSettings(**light), Outbox())
        self.machine.on_configuration(3, D, [D])
        numbers = count(1000)
        secrets = count(1)
        self.host = Host(
            self.machine,
            settings or HostSettings(domain="test"),
            permissions=Permissions(rules),
            authenticate={WEB_TOKEN: WEB, OTHER_TOKEN: Identity(("token:other",), resumes=True)}.get,
            secret=lambda: f"secret-{next(secrets)}",
            wall=lambda: next(numbers),
            about=lambda what, about: f'"{what} {about}"',
        )

    def run(self) -> None:
        """Everything that was asked for gets its place, and everybody is told."""
        machine = self.machine
        machine.now = self.now
        machine.tend()
        while True:
            machine.requests.fill(1000)
            if not machine.requests.sends:
                break
            machine.on_message(D, machine.tag + machine.requests.sends.popleft()[0])
        machine.on_safe(machine.placing.own)
        machine.tend()
        self.host.tend(self.now)
        self.host.flush()

    def connect(self, name: str = "", identity: Identity | None = LOCAL, **hello: Any) -> "Wire":
        """A client that has said hello."""
        wire = Wire(self, Link(self.now, identity=identity))
        wire.say(Hello(VERSION, name, **hello))
        return wire


class Wire:
    """The other end of a connection."""

    def __init__(self, hosted: Hosted, link: Link) -> None:
        self.hosted = hosted
        self.link = link
        self.seq = 0
        hosted.host.opened(link)

    def say(self, *requests: Request) -> None:
        """Frames of the client."""
        for request in requests:
            self.hosted.host.heard(self.link, encode(request))

    def hear(self) -> list[Reply]:
        """What it is told."""
        self.hosted.run()
        found, self.link.out = self.link.out, []
        return [decode_reply(body) for body in found]

    def take(self, told: int) -> list[Reply]:
        """It has dealt with so much; returns what comes then."""
        self.say(Taken(told))
        return self.hear()

    def hear_of(self, kind: type[T]) -> list[T]:
        """What it is told of one kind."""
        return [each for each in self.hear() if isinstance(each, kind)]

    def welcome(self) -> Welcome:
        """What it is told first."""
        [found] = self.hear_of(Welcome)
        return found

    def break_(self) -> None:
        """The connection is no more."""
        self.hosted.host.broken(self.hosted.now, self.link, "it broke")
