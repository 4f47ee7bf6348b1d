"""What the parts of one member have in common."""

from random import Random

from semcast.core.certificates import Certificates, Place
from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.reader import Reader
from semcast.core.statistics import Statistics
from semcast.protocols.ring.frames import NAME_BYTES, Packet
from semcast.protocols.ring.settings import RingSettings
from semcast.protocols.ring.states import Standing


class Member:
    """Who it is, what was set, where it stands, and where its outputs go."""

    def __init__(self, me: MemberId, settings: RingSettings, rng: Random, out: Outbox) -> None:
        if len(me.name.encode()) > NAME_BYTES:
            raise ValueError(f"the name {me.name!r} has more than {NAME_BYTES} bytes")
        self.me = me
        self.settings = settings
        self.rng = rng
        self.out = out
        self.reader = Reader()
        """The program. Whoever drives the stack puts its own here (`Ring.reader`), so no part keeps it."""
        self.certificates: Certificates | None = None
        """Where to note the places of messages, if somebody records (`Ring.certificates`)."""
        self.stats = Statistics()
        self.standing = Standing()
        self.enough = settings.minimum <= 1
        """There has been a configuration of as many members as were asked for."""


def note_places(certificates: Certificates, sender: MemberId | None, packet: Packet) -> None:
    """Note where the messages are that end in a packet; those of nobody are about to be sent."""
    conf, index = packet.conf, 0
    for part in packet.parts:
        if part.left:
            continue
        place = Place(conf.number, conf.representative, packet.seq, index)
        last = part.first + len(part.payloads) - 1
        if sender is None:
            certificates.note_sent(part.first, last, place)
        else:
            certificates.note(sender, part.first, last, place)
        index += len(part.payloads)
