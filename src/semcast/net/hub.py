"""One group on the network: who is where, who hears of whom, what is in a datagram, and whose turn it is.

A hub brings the frames of its seat to members, and takes theirs in. The sockets are those of its exchange,
where other groups of the process may be, too.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count, groupby
from operator import itemgetter
from secrets import randbits

import msgspec

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Dest, Frame, Reach
from semcast.net.addresses import Address, family_of, is_loopback, valid_host
from semcast.net.book import AddressBook
from semcast.net.exchange import Exchange
from semcast.net.inbox import Inbox
from semcast.net.paths import Paths
from semcast.net.paths import Probe as Asked
from semcast.net.pieces import PIECE_VERSION, Assembly, cut
from semcast.net.seat import Seat
from semcast.net.sockets import Account, Arrival, SocketStatistics
from semcast.wire import DatagramCodec, Malformed
from semcast.wire.limits import MAX_CONTACTS, MAX_MEMBERS
from semcast.wire.status import Contacts, GoOn, Probe, Probed, Status

_OURS = frozenset({Contacts, Status, Probe, Probed, GoOn})
"""Frames that are looked at here, and are not for stacks."""
_HOUSEKEEPING: Nanos = SECOND
_INTRODUCTIONS: Nanos = 100 * MILLISECOND
"""How often members are told of each other because a stranger was heard, at most."""
_FIRST_PROBES = 32
"""In a second: who makes up addresses must not make us send large datagrams to all of them."""
_SOURCES_OF_PIECES = 64
_BUSY = 1 << 16
"""Bytes in a turn that takes so long that sockets may fill meanwhile."""
_PIECE = bytes([PIECE_VERSION])


Arrivals = Iterable[tuple[MemberId, Sequence[Frame]]]


def _draw() -> int:
    return randbits(61)


class HubStatistics(msgspec.Struct):
    """Datagrams that were of no use to this group, and frames nobody could be found for."""

    malformed: dict[Malformed, int] = msgspec.field(default_factory=dict)
    unknown_destination: int = 0


class Hub:
    """Between a seat, whose stack knows members, and sockets, which know addresses.

    Args:
        member: who this is.
        exchange: where its datagrams come and go.
        codec: of its group.
        peers: where to look for others besides the meeting point.
        meeting: the meeting point, if there is one.
        datagram: bytes of the largest; 0 for what the endpoint takes for granted.
        multicast: whether what is for everybody is sent once, where all are heard at the meeting point.
        tend: called once a second, in the thread of the loop.
        draw: gives numbers that nobody can guess, with room to count on.
    """

    def __init__(
        self,
        member: MemberId,
        exchange: Exchange,
        codec: DatagramCodec,
        peers: Sequence[Address],
        *,
        meeting: Address | None = None,
        datagram: int = 0,
        multicast: bool = False,
        tend: Callable[[], None] | None = None,
        draw: Callable[[], int] = _draw,
    ) -> None:
        self.stats = HubStatistics()
        self.wake: Callable[[], None] = _nobody
        """Set by whoever runs the loop: called, in its thread, when something came."""
        self._exchange = exchange
        self._meeting: list[Address] = [] if meeting is None else [meeting]
        self._inbox = Inbox()
        self._account = Account()
        self._member = member
        self._incarnations = {member}
        self._codec = codec
        endpoint = self.endpoint = exchange.endpoint
        exchange.expect(codec.group)
        self._peers = [peer for peer in peers if peer != endpoint.address]
        self._book = AddressBook()
        # On one host everybody speaks from one address: whoever claims to be a member from elsewhere lies.
        self._strict = is_loopback(endpoint.address) and not codec.authentic
        self._paths: Paths | None = None  # on one host nothing is too large for the way
        if not is_loopback(endpoint.address):
            self._paths = Paths(datagram or endpoint.datagram_bytes, draw)
        self._first_probes = _FIRST_PROBES
        self._numbers = count(draw())
        self._pieces, self._strange_pieces = Assembly(MAX_MEMBERS), Assembly(_SOURCES_OF_PIECES)
        self._introducing = False
        self._introduced_at: Nanos = 0
        self._multicast = multicast
        self._tend = tend
        self._housekeeping_at: Nanos = 0
        self._seat: Seat | None = None
        self.deaf = True
        """Whether somebody who is known was not heard at the meeting point lately."""
        self._deaf: set[MemberId] = set()  # others who say so of themselves
        self._together = False  # all who are known can be reached at the meeting point

    def seat(self, seat: Seat) -> None:
        """Let a stack take part. Before the loop starts."""
        assert self._seat is None, "one group to a hub"
        self._seat = seat
        seat.attach(self)

    def _members(self) -> Sequence[MemberId]:
        return () if self._seat is None else self._seat.members()

    def traffic(self) -> SocketStatistics:
        """What went over the wire for this group; what the kernel dropped is counted for all groups there."""
        lost, own = self.endpoint.stats, self._account.stats
        return msgspec.structs.replace(
            own, kernel_drops=own.kernel_drops + lost.kernel_drops, kept_out=lost.kept_out
        )

    def malformed(self) -> dict[Malformed, int]:
        """Datagrams that were of no use, and why: also those at its sockets that name no group here."""
        found = self.stats.malformed.copy()
        for why, more in self._exchange.malformed.copy().items():
            found[why] = found.get(why, 0) + more
        return found

    @property
    def speaks_first(self) -> bool:
        """Whether this is the group that tells what concerns all groups of its endpoint."""
        return self._exchange.speaks_first(self)

    def whereabouts(self) -> list[tuple[MemberId, Address | None]]:
        """The members of the view, and where they are, as far as is known."""
        here = self._incarnations
        return [
            (member, self.endpoint.address if member in here else self._book.find(member))
            for member in self._members()
        ]

    def renew(self, member: MemberId) -> None:
        """Go on as another incarnation."""
        self._member = member
        self._incarnations.add(member)

    # Turns: what a loop asks for

    def filenos(self) -> Collection[int]:
        """The exchange waits for the sockets."""
        return ()

    def start(self, now: Nanos) -> None:
        """Let the seat begin."""
        self._exchange.connect(self._codec.group, self)
        if self._seat is not None:
            self._guarded(now, self._seat.start, ())
        self._after(now)

    def put(self, arrivals: Sequence[Arrival]) -> None:
        """These came: look at them in the next turn. What there is no room for is lost."""
        self._account.stats.kernel_drops += self._inbox.put(arrivals)
        self.wake()

    def run(self, now: Nanos, _ready: Collection[int]) -> None:
        """Take in what arrived, and give the seat its turn."""
        if self._seat is not None:
            stats = self._account.stats
            before = stats.bytes_in + stats.bytes_out
            self._guarded(now, self._seat.run, self.receive(now) if self._inbox else ())
            if stats.bytes_in + stats.bytes_out - before > _BUSY:
                self._exchange.relieve(now)
        self._after(now)

    def next_at(self) -> Nanos:
        """When there is something to do again; 0 for at once."""
        if self._inbox:
            return 0
        at = None if self._seat is None else self._seat.next_at()
        return self._housekeeping_at if at is None else min(at, self._housekeeping_at)

    def failed(self, error: BaseException) -> None:
        """The seat ends with an error, and nothing comes for it any more."""
        seat, self._seat = self._seat, None
        self.close()
        if seat is not None:
            seat.fail(error)

    def close(self) -> None:
        """Nobody is in the group any more. After the loop has ended, or in its thread."""
        self._exchange.disconnect(self._codec.group)
        self._inbox.clear()

    def _guarded(self, now: Nanos, call: Callable[[Nanos, Arrivals], None], arrivals: Arrivals) -> None:
        """An exception ends the seat, and is told to its application; the hub goes on."""
        try:
            call(now, arrivals)
        except Exception as error:
            self.failed(error)

    def _after(self, now: Nanos) -> None:
        self.introduce()
        if now >= self._housekeeping_at:
            self._housekeeping_at = now + _HOUSEKEEPING
            self.tend(now)
            if self._tend is not None:
                self._tend()
            if self._seat is not None and self._seat.left is None:
                self.announce([self._seat.status(now, deaf=self.deaf)])

    # In

    def receive(self, now: Nanos) -> Iterator[tuple[MemberId, list[Frame]]]:
        """What has arrived, as much as a turn has room for: frames of one member in a row, and again."""
        decode = self._codec.decode
        frames: list[Frame] = []
        sender: MemberId | None = None
        place: tuple[Address, bool] | None = None
        arrivals, size = self._inbox.take(self._exchange.budget)
        self._account.stats.datagrams_in += len(arrivals)
        self._account.stats.bytes_in += size
        for data, address, met in arrivals:
            if data[:1] == _PIECE:
                whole = self._put_together(now, address, data)
                if whole is None:
                    continue
                data = whole  # noqa: PLW2901
            datagram = decode(data)
            if isinstance(datagram, Malformed):
                self._refuse(now, address, datagram)
                continue
            source = datagram.source
            if source in self._incarnations:
                continue  # our own, from the meeting point
            if source != sender or (address, met) != place:
                if not self._hear(now, source, address, met=met):
                    self._refuse(now, address, Malformed.ELSEWHERE)
                    continue
                if sender is not None and place is not None:
                    yield sender, self._look_at(now, sender, place[0], frames)
                sender, place, frames = source, (address, met), []
            frames += datagram.frames
        if sender is not None and place is not None:
            yield sender, self._look_at(now, sender, place[0], frames)

    def _put_together(self, now: Nanos, address: Address, piece: bytes) -> bytes | None:
        """The datagram that is complete with this piece. Those of strangers push out no others."""
        if self._book.is_kin_at(address):
            return self._pieces.add(address, piece)
        self._exchange.note(now, address)
        return self._strange_pieces.add(address, piece)

    def _refuse(self, now: Nanos, address: Address, why: Malformed) -> None:
        self.stats.malformed[why] = self.stats.malformed.get(why, 0) + 1
        self._exchange.note(now, address)

    def _hear(self, now: Nanos, source: MemberId, address: Address, *, met: bool) -> bool:
        """Note who speaks, and from where; returns whether it may."""
        book = self._book
        if not met and book.heard_again(now, source, address):
            if not self._meeting:
                self._notice(now, source)
            return True
        known = book.find(source)
        if known != address:
            book.settle(self._members())
            self._together = False
        if not self._meeting:
            self._notice(now, source)
        if book.is_stranger(source) and (self._exchange.overrun or book.crowded(address)):
            self._exchange.note(now, address)
        there = book.heard(now, source, address, met=met)
        if known is None and self._paths is not None and self._first_probes:
            self._first_probes -= 1
            self._probe(self._paths.probes(now, (address,)))
        return there or not self._strict

    def _look_at(self, now: Nanos, sender: MemberId, address: Address, frames: list[Frame]) -> list[Frame]:
        """Take out what is not for a stack."""
        if _OURS.isdisjoint(map(type, frames)):
            return frames
        for frame in frames:
            if type(frame) is Contacts:
                self._meet(now, frame)
            elif type(frame) is Status:
                self._note_deaf(sender, frame)
            elif type(frame) is Probe:
                self._send([Probed(frame.number)], (address,))
            elif type(frame) is Probed and self._paths is not None:
                self._probe(self._paths.answered(now, address, frame.number))
            elif type(frame) is GoOn and self._trusts(address):
                self._reform(frame.view)
        return [frame for frame in frames if type(frame) not in _OURS]

    def _trusts(self, address: Address) -> bool:
        """Whether who speaks from there may decide for this member: it has the key, or runs on this host."""
        return self._codec.authentic or is_loopback(address)

    def _reform(self, view: int) -> None:
        if self._seat is not None:
            self._seat.reform(view)

    def _notice(self, now: Nanos, source: MemberId) -> None:
        """Where nobody meets, a stranger does not know those who are known here, nor they the stranger."""
        due = now - self._introduced_at >= _INTRODUCTIONS
        if due and self._seat is not None and source not in self._members():
            self._introduced_at = now
            self._introducing = True

    def _note_deaf(self, member: MemberId, frame: Status) -> None:
        if frame.deaf and self._book.find(member) is not None:
            self._deaf.add(member)
            self._together = False
        else:
            self._deaf.discard(member)

    def _meet(self, now: Nanos, frame: Contacts) -> None:
        for member, host, port in frame.known:
            reachable = valid_host(host) and family_of(host) == self.endpoint.family
            if reachable and member not in self._incarnations:
                self._book.introduced(now, member, (host, port))

    # Out

    def send(self, sends: Sequence[tuple[Dest, Frame]]) -> None:
        """To some members, or to everybody. What cannot be brought is lost, as on any network."""
        for dest, run in groupby(sends, key=itemgetter(0)):
            frames = [frame for _, frame in run]
            if isinstance(dest, MemberId | tuple):
                self._send(frames, self._addresses((dest,) if isinstance(dest, MemberId) else dest))
                continue
            self._send(frames, self._meeting if self._together else self._book.targets())
            if dest is Reach.ANYBODY:
                self.announce(frames)
                self._introducing = self._introducing or not self._meeting

    def _addresses(self, members: tuple[MemberId, ...]) -> list[Address]:
        """Where these are, as far as is known."""
        found = [address for address in map(self._book.find, members) if address is not None]
        self.stats.unknown_destination += len(members) - len(found)
        return found

    def announce(self, frames: Sequence[Frame]) -> None:
        """Tell those who are not known yet: at the meeting point, and where others may be."""
        known = self._book.targets()
        self._send(frames, self._meeting)
        strangers = [peer for peer in self._peers if peer not in known]
        if strangers:  # may be at the meeting point, too: the same sealed datagram twice would be a replay
            self._send(frames, strangers)

    def _send(self, frames: Sequence[Frame], dests: Sequence[Address]) -> None:
        if not dests:
            return
        datagrams = self._codec.encode(self._member, frames)
        paths = self._paths
        if paths is None:
            self.endpoint.send(datagrams, dests, self._account)
            return
        if dests is self._meeting:
            size = paths.least(self._book.targets())
            self.endpoint.send(self._cut(datagrams, size), dests, self._account)
            return
        for size, run in groupby(dests, key=paths.size):
            self.endpoint.send(self._cut(datagrams, size), tuple(run), self._account)

    def _cut(self, datagrams: list[bytes], size: int) -> list[bytes]:
        """Those that are too large, in pieces."""
        if max(map(len, datagrams)) <= size:
            return datagrams
        group, numbers = self._codec.group, self._numbers
        cuts = (cut(each, size, group, next(numbers)) if len(each) > size else [each] for each in datagrams)
        return [piece for pieces in cuts for piece in pieces]

    def _probe(self, probes: Sequence[Asked]) -> None:
        """Send each as it is, however large: whether it arrives is the question."""
        for address, number, size in probes:
            [bare] = self._codec.encode(self._member, [Probe(number, b"")])
            padding = bytes(size - len(bare) - 1)  # the length of more than 255 bytes takes one byte more
            probe = self._codec.encode(self._member, [Probe(number, padding)])
            self.endpoint.send(probe, (address,), self._account, probing=True)

    def introduce(self) -> None:
        """Where strangers do not meet, tell those who are known of each other, if somebody is new."""
        if not self._introducing:
            return
        self._introducing = False
        targets = self._book.targets()
        if targets:
            known = [(member, *address) for member, address in self._book.contacts(MAX_CONTACTS)]
            self._send([Contacts(known)], targets)

    def tend(self, now: Nanos) -> None:
        """Once a second: drop those that have been silent for too long, see where the others are heard."""
        self._book.settle(self._members())
        self._book.forget(now)
        self._look_after_paths(now)
        self._deaf = {member for member in self._deaf if self._book.find(member) is not None}
        self.deaf = not (self._meeting and self._book.all_meet(now))
        self._together = self._multicast and not self.deaf and not self._deaf

    def places(self) -> Sequence[Address]:
        """Where the members of the view are, as far as is known."""
        return self._book.places(self._members())

    def _look_after_paths(self, now: Nanos) -> None:
        if self._paths is None:
            return
        for address in self._account.refused:
            self._paths.refused(address)
        self._account.refused.clear()
        targets = self._book.targets()
        self._paths.keep(targets)
        self._first_probes = _FIRST_PROBES
        self._probe(self._paths.probes(now, targets))


def _nobody() -> None:
    """There is no loop yet."""
