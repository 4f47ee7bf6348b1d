"""Ring ordering (Amir 1995, section 5.2.1): who has which packet of one configuration.

Deviations: whoever lowered `aru` is named on the token, as in Totem, instead of recognising the value when
it comes back; whoever has the token answers every request it can, without drawing lots; with
acceleration a packet is asked for only if it was numbered before the previous visit, for younger ones
may still be under way.
"""

from collections.abc import Iterable, Iterator, Sequence

from semcast.core.ids import MemberId
from semcast.protocols.ring.frames import RTR_SPANS, ConfId, Packet, Part, Token
from semcast.protocols.ring.settings import REACH

Span = tuple[int, int]


class RingOrder:
    """The packets of one configuration at one member, in the paper's terms."""

    def __init__(self, conf: ConfId, members: tuple[MemberId, ...], me: MemberId, window: int) -> None:
        self.conf = conf
        self.members = members
        self.rank = members.index(me)
        self.predecessor = members[self.rank - 1]
        self.successor = members[(self.rank + 1) % len(members)]
        self.my_aru = 0
        self.highest_seq = 0
        """The highest number known to have been given out."""
        self.delivered = 0
        """Every packet up to here was handed to the delivery queue."""
        self.confirmed_aru = 0
        """`aru` confirmed by two releases of the token: everybody has the packets up to here."""
        self.store: dict[int, Packet] = {}
        self._released_aru = 0
        self._answered: set[int] = set()  # at the last visit
        self._token_seq = 0  # the highest number a token has shown
        self._asked_upto = 0  # the token's seq at the previous visit
        self._reach = REACH * window
        self._trimmed = 0

    # Packets

    def plausible(self, packets: Sequence[Packet]) -> list[Packet]:
        """Those that a correct member can have sent; what this one sent it knows already."""
        count, rank, aru, store = len(self.members), self.rank, self.my_aru, self.store
        most = min(aru + self._reach, self.confirmed_aru + 2 * self._reach)
        return [
            packet
            for packet in packets
            if packet.sender < count
            and packet.seq <= most
            and (packet.sender != rank or packet.seq <= aru or packet.seq in store)
        ]

    def plausible_record(self, aru: int, highest_seq: int) -> bool:
        """Whether a correct member can know this of the configuration: what all have is here, too."""
        return aru <= self.my_aru and highest_seq <= self.my_aru + 2 * self._reach

    def receive(self, packet: Packet) -> bool:
        """Keep a packet; False if it was here before."""
        return self.receive_all((packet,)) > 0

    def receive_all(self, packets: Sequence[Packet]) -> int:
        """Keep packets; returns how many were not here before."""
        store, aru, highest = self.store, self.my_aru, self.highest_seq
        before = len(store)
        for packet in packets:
            seq = packet.seq
            if seq > aru:
                store.setdefault(seq, packet)
                highest = max(highest, seq)
        self.highest_seq = highest
        aru += 1
        while aru in store:
            aru += 1
        self.my_aru = aru - 1
        return len(store) - before

    def ripe(self, most: int) -> tuple[int, list[Part]]:
        """What is next in order, and safe where that was asked for: a sender, and what it sent in a row.

        Counts as delivered. Ends after the packet that has the message number `most`.
        """
        store, seq, upto, safe_upto = self.store, self.delivered, self.my_aru, self.confirmed_aru
        sender = -1
        parts: list[Part] = []
        while seq < upto:
            packet = store[seq + 1]
            if packet.sender != sender:
                if parts:
                    break
                sender = packet.sender
            if packet.safe and seq >= safe_upto:
                break
            seq += 1
            parts += packet.parts
            for part in packet.parts:
                most -= len(part.payloads)
            if most <= 0:
                break
        self.delivered = seq
        return sender, parts

    def in_order(self, most: int) -> int:
        """Up to where, but not beyond `most`, packets are delivered in this configuration come what may."""
        seq, store, upto = self.delivered, self.store, min(self.my_aru, most)
        while seq < upto and (seq < self.confirmed_aru or not store[seq + 1].safe):
            seq += 1
        return seq

    def trim(self) -> None:
        """Forget what everybody has and the application here, too."""
        upto = min(self.confirmed_aru, self.delivered)
        for seq in range(self._trimmed + 1, upto + 1):
            self.store.pop(seq, None)
        self._trimmed = max(self._trimmed, upto)

    def missing(self, upto: int) -> list[int]:
        """The numbers up to `upto` whose packets are not here."""
        store = self.store
        return [seq for seq in range(self.my_aru + 1, min(upto, self.highest_seq) + 1) if seq not in store]

    # The token

    def credible(self, token: Token) -> bool:
        """Whether a correct member can have passed this on."""
        return (
            token.aru <= token.seq <= self.my_aru + self._reach
            and max(token.lowered_by, token.pressing, token.stop) < len(self.members)
            and token.seq >= self._token_seq
            and all(1 <= first <= last <= token.seq for first, last in token.rtr)
            and sum([last - first + 1 for first, last in token.rtr]) <= 2 * self._reach
        )

    def forget_above(self, seq: int) -> int:
        """Drop packets with numbers that nobody has given out yet; returns how many there were."""
        false = [number for number in self.store if number > seq]
        for number in false:
            del self.store[number]
        self.highest_seq = seq
        self.my_aru = min(self.my_aru, seq)
        return len(false)

    def answers(self, rtr: Iterable[Span], most: int) -> list[Packet]:
        """The packets asked for that are here, but for those sent at the last visit: let others try, too.

        The link from this member to who asks may be dead in this direction.
        """
        found: list[Packet] = []
        for seq in numbers(rtr):
            if len(found) == most:
                break
            packet = self.store.get(seq) if seq > self.confirmed_aru and seq not in self._answered else None
            if packet is not None:
                found.append(packet)
        self._answered = {packet.seq for packet in found}
        return found

    def requests(self, rtr: Iterable[Span], answered: set[int], seq: int, *, accelerated: bool) -> list[Span]:
        """The list to put on the token: what others still lack, and what is missing here."""
        upto = self._asked_upto if accelerated else seq
        self._asked_upto = self._token_seq = seq
        self.highest_seq = max(self.highest_seq, seq)
        missing = self.missing(upto) if upto > self.my_aru else []
        # What everybody has may be forgotten everywhere: nobody could answer.
        done = self.confirmed_aru
        open_ = [each for each in numbers(rtr) if each > done and each not in answered] if rtr else []
        if not missing and not open_:
            return []
        return spans(sorted({*open_, *missing}))[:RTR_SPANS]

    def lower_aru(self, token: Token, seq: int, held_at: int) -> tuple[int, int]:
        """The `aru` to release the token with, and who lowered it (the rule of 5.2.1)."""
        mine = min(self.my_aru, held_at, seq)
        if mine < token.aru or token.lowered_by in (self.rank, -1):
            return mine, -1 if mine == seq else self.rank
        return token.aru, token.lowered_by

    def release(self, aru: int) -> None:
        """The token leaves with this `aru`: after two releases it is confirmed."""
        self.confirmed_aru = max(self.confirmed_aru, min(self._released_aru, aru))
        self._released_aru = aru


def numbers(of: Iterable[Span]) -> Iterator[int]:
    """The numbers in spans, one by one."""
    for first, last in of:
        yield from range(first, last + 1)


def spans(of: Iterable[int]) -> list[Span]:
    """Growing numbers as spans.

    >>> spans([1, 2, 3, 7])
    [(1, 3), (7, 7)]
    """
    found: list[Span] = []
    first = last = None
    for number in of:
        if first is None or last is None or number != last + 1:
            if first is not None and last is not None:
                found.append((first, last))
            first = number
        last = number
    if first is not None and last is not None:
        found.append((first, last))
    return found
