"""Recovery of an old configuration on the new ring (Amir 1995, section 5.2.3).

Deviations, each a gap of the text that had to be closed:

- The barrier is not a number that `aru` creeps up to, but a set on the recovery token: whoever lacks
  nothing adds itself, and when the set is full everybody installs.
- A message of somebody outside the obligation set is discarded only after the first hole.
- `original_aru` is the `aru` confirmed by two releases.
- Holes are what was agreed on the Form token. A packet that turns up later stays a hole.
- Packets of the new configuration that come early are kept by the ordering of the new ring, which
  counts from 0 and exists since the Form token came for the second time.
"""

from collections.abc import Iterable

from semcast.core.ids import MemberId
from semcast.protocols.ring.frames import RTR_SPANS, ConfRecord, Packet
from semcast.protocols.ring.ordering import RingOrder, Span, numbers, spans
from semcast.wire.limits import MAX_HOLES


def record_of(order: RingOrder, obligation_set: Iterable[MemberId]) -> ConfRecord:
    """What one member alone knows of its old configuration."""
    aru = order.confirmed_aru
    highest = max(order.highest_seq, aru)
    holes = sum(1 << (seq - aru - 1) for seq in order.missing(highest) if seq > aru)
    return ConfRecord(order.conf, sorted(obligation_set), highest, aru, _bytes(holes))


def merge(record: ConfRecord, mine: ConfRecord) -> ConfRecord:
    """What both know: a hole is what neither has."""
    highest, aru = max(record.highest_seq, mine.highest_seq), max(record.aru, mine.aru)
    return ConfRecord(
        record.conf,
        sorted({*record.obligation_set, *mine.obligation_set}),
        highest,
        aru,
        _bytes(_lacking(record, highest, aru) & _lacking(mine, highest, aru)),
    )


def _lacking(record: ConfRecord, highest: int, aru: int) -> int:
    """The holes of a record, and all beyond what it knows of, as bits from `aru` + 1 to `highest`."""
    bits = int.from_bytes(record.holes, "little")
    known = record.highest_seq - record.aru
    bits |= ((1 << (highest - record.aru)) - 1) >> known << known
    return bits >> (aru - record.aru)


def credible(record: ConfRecord) -> bool:
    """Whether the numbers fit together."""
    reach = record.highest_seq - record.aru
    bits = int.from_bytes(record.holes, "little")
    return 0 <= reach <= MAX_HOLES and bits.bit_length() <= reach


class Recovery:
    """One member on its way from its old configuration to a new ring."""

    def __init__(self, order: RingOrder, record: ConfRecord) -> None:
        self.order = order
        self.record = record
        bits = int.from_bytes(record.holes, "little")
        self.holes = {record.aru + 1 + bit for bit in range(bits.bit_length()) if bits >> bit & 1}

    def missing(self) -> list[int]:
        """What others have and this member still lacks."""
        order = self.order
        first = order.my_aru + 1
        wanted = range(first, self.record.highest_seq + 1)
        return [seq for seq in wanted if seq not in order.store and seq not in self.holes]

    def requests(self, rtr: Iterable[Span], answered: set[int]) -> list[Span]:
        """The list of this configuration to put on the recovery token."""
        still = {seq for seq in numbers(rtr) if seq not in answered}
        return spans(sorted({*still, *self.missing()}))[:RTR_SPANS]

    def plausible(self, wanted: Iterable[Span]) -> list[Span]:
        """Requests for numbers that exist and that not everybody has, each once."""
        lowest, highest = self.record.aru + 1, self.record.highest_seq
        asked = {seq for first, last in wanted for seq in range(max(first, lowest), min(last, highest) + 1)}
        return spans(sorted(asked))

    def split(self) -> tuple[list[Packet], list[Packet]]:
        """Steps 1, 3 and 4: the packets to deliver before and in the transitional configuration."""
        return split(self.order, self.record, self.holes)


def split(order: RingOrder, record: ConfRecord, holes: set[int]) -> tuple[list[Packet], list[Packet]]:
    """Packets for the regular configuration, and those of the rest that may follow after it."""
    regular: list[Packet] = []
    seq = order.delivered + 1
    while seq <= record.highest_seq and seq not in holes:
        packet = order.store[seq]
        if packet.safe and seq > record.aru:
            break
        regular.append(packet)
        seq += 1
    obliged = {order.members.index(member) for member in record.obligation_set if member in order.members}
    transitional: list[Packet] = []
    after_hole = False
    for number in range(seq, record.highest_seq + 1):
        if number in holes:
            after_hole = True
        elif not after_hole or order.store[number].sender in obliged:
            transitional.append(order.store[number])
    return regular, transitional


def keep_promises(order: RingOrder, record: ConfRecord) -> None:
    """Failure in the EVS state: what was learned of `aru` stays true."""
    order.confirmed_aru = max(order.confirmed_aru, record.aru)


def replace(records: list[ConfRecord], mine: ConfRecord) -> list[ConfRecord]:
    """The list with this member's knowledge in it."""
    found = False
    merged = []
    for record in records:
        if record.conf == mine.conf:
            record, found = merge(record, mine), True  # noqa: PLW2901
        merged.append(record)
    return merged if found else [*merged, mine]


def _bytes(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")
