"""Brings frames to members and takes them in: who is where, who hears of whom, what is in a datagram."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Dest, Frame, Reach
from semcast.net.addresses import Address, AddressBook, valid_host
from semcast.net.sockets import Endpoint
from semcast.protocols.vsync.frames import Hello
from semcast.wire import DatagramCodec, Malformed
from semcast.wire.limits import MAX_CONTACTS
from semcast.wire.status import Contacts, Status

_SPECIAL = frozenset({Contacts, Status, Hello})
"""Frames that are looked at here; the first is not for stacks, and the second not for members at all."""


class PostStatistics(msgspec.Struct):
    """Datagrams that were not for us, and frames nobody could be found for."""

    malformed: dict[Malformed, int] = msgspec.field(default_factory=dict)
    unknown_destination: int = 0


class Post:
    """Between a stack, which knows members, and sockets, which know addresses.

    Args:
        member: who this is.
        endpoint: its sockets.
        codec: of its group.
        peers: where to look for others besides the meeting point.
        multicast: whether what is for everybody is sent once, where all are heard at the meeting point.
    """

    def __init__(
        self,
        member: MemberId,
        endpoint: Endpoint,
        codec: DatagramCodec,
        peers: Sequence[Address],
        *,
        multicast: bool = False,
    ) -> None:
        self.stats = PostStatistics()
        self._member = member
        self._incarnations = {member}
        self._endpoint = endpoint
        self._codec = codec
        self._peers = [peer for peer in peers if peer != endpoint.address]
        self._book = AddressBook()
        self._introducing = False
        self._multicast = multicast
        self.deaf = True
        """Whether somebody who is known was not heard at the meeting point lately."""
        self._deaf: set[MemberId] = set()  # others who say so of themselves
        self._together = False  # all who are known can be reached at the meeting point

    def renew(self, member: MemberId) -> None:
        """Go on as another incarnation."""
        self._member = member
        self._incarnations.add(member)

    # In

    def receive(self, now: Nanos, ready: Sequence[int]) -> Iterator[tuple[MemberId, list[Frame]]]:
        """What has arrived at the sockets that are ready: frames of one member in a row, and again."""
        decode = self._codec.decode
        frames: list[Frame] = []
        sender: MemberId | None = None
        place: tuple[Address, bool] | None = None
        for data, address, met in self._endpoint.receive(ready):
            datagram = decode(data)
            if isinstance(datagram, Malformed):
                self.stats.malformed[datagram] = self.stats.malformed.get(datagram, 0) + 1
                continue
            source = datagram.source
            if source in self._incarnations:
                continue  # our own, from the meeting point
            if source != sender or (address, met) != place:
                if sender is not None:
                    yield sender, self._look_at(now, sender, frames)
                sender, place, frames = source, (address, met), []
                if self._book.find(source) != address:
                    self._together = False
                self._book.heard(now, source, address, met=met)
            frames += datagram.frames
        if sender is not None:
            yield sender, self._look_at(now, sender, frames)

    def _look_at(self, now: Nanos, sender: MemberId, frames: list[Frame]) -> list[Frame]:
        """Take out what is not for a stack."""
        if _SPECIAL.isdisjoint(map(type, frames)):
            return frames
        for frame in frames:
            if type(frame) is Contacts:
                self._meet(now, frame)
            elif type(frame) is Status:
                self._note_deaf(sender, frame)
            elif type(frame) is Hello:
                self._introducing = not self._endpoint.meets
        return [frame for frame in frames if type(frame) not in (Contacts, Status)]

    def _note_deaf(self, member: MemberId, frame: Status) -> None:
        if frame.deaf and self._book.find(member) is not None:
            self._deaf.add(member)
            self._together = False
        else:
            self._deaf.discard(member)

    def _meet(self, now: Nanos, frame: Contacts) -> None:
        for member, host, port in frame.known:
            if member not in self._incarnations and valid_host(host):
                self._book.introduced(now, member, (host, port))

    # Out

    def send(self, sends: Sequence[tuple[Dest, Frame]]) -> None:
        """To one member each, or to everybody. What cannot be brought is lost, as on any network."""
        encode, endpoint = self._codec.encode, self._endpoint
        for dest, run in groupby(sends, key=itemgetter(0)):
            frames = [frame for _, frame in run]
            if isinstance(dest, MemberId):
                address = self._book.find(dest)
                if address is None:
                    self.stats.unknown_destination += 1
                    continue
                endpoint.send(encode(self._member, frames), (address,))
                continue
            if self._together:
                endpoint.announce(encode(self._member, frames))
            else:
                endpoint.send(encode(self._member, frames), self._book.targets())
            if dest is Reach.ANYBODY:
                self.announce(frames)
                self._introducing = self._introducing or not endpoint.meets

    def announce(self, frames: Sequence[Frame]) -> None:
        """Tell those who are not known yet: at the meeting point, and where others may be."""
        known = self._book.targets()
        self._endpoint.announce(self._codec.encode(self._member, frames))
        strangers = [peer for peer in self._peers if peer not in known]
        if strangers:  # may be at the meeting point, too: the same sealed datagram twice would be a replay
            self._endpoint.send(self._codec.encode(self._member, frames), strangers)

    def introduce(self) -> None:
        """Where strangers do not meet, tell those who are known of each other, if somebody is new."""
        if not self._introducing:
            return
        self._introducing = False
        targets = self._book.targets()
        if targets:
            known = [(member, *address) for member, address in self._book.contacts(MAX_CONTACTS)]
            self._endpoint.send(self._codec.encode(self._member, [Contacts(known)]), targets)

    def tend(self, now: Nanos) -> None:
        """Once a second: drop those that have been silent for too long, see where the others are heard."""
        self._book.forget(now)
        self._deaf = {member for member in self._deaf if self._book.find(member) is not None}
        self.deaf = not (self._endpoint.meets and self._book.all_meet(now))
        self._together = self._multicast and not self.deaf and not self._deaf
