"""What a logger writes: one record for each thing that must outlive a crash."""

from collections.abc import Iterator, Sequence

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.frames import Entry
from semcast.protocols.gossip.spans import Span
from semcast.wire.annotations import WireAnnotation

RECEIPTS = 1024
"""In one record, at most."""


class Opened(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The identity of the log: the incarnation of the logger that began it."""

    log: int


class Stored(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A message."""

    sender: MemberId
    seq: int
    payload: bytes
    annotation: WireAnnotation | None = None


class StoredRun(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """Consecutive messages without annotations, or updates of items."""

    sender: MemberId
    first: int
    payloads: list[bytes]
    items: list[str] | None = None
    """The item of each update."""


class Replaced(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A receipt: a message left the log because of a later one that is in it."""

    sender: MemberId
    seq: int
    by: int


class ReplacedAll(msgspec.Struct, frozen=True, array_like=True, tag=23):
    """Receipts: messages, and what they left for."""

    sender: MemberId
    pairs: list[tuple[int, int]]


class Collected(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """All sessions have everything of a stream up to a number."""

    sender: MemberId
    upto: int


class Expired(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """These left because there were too many."""

    sender: MemberId
    spans: list[Span]


class Holes(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Nobody has these."""

    sender: MemberId
    spans: list[Span]


class Frozen(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A stream is being closed."""

    sender: MemberId


class Over(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """A stream is over, with this last number."""

    sender: MemberId
    last: int


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """A stream that is over is not in the log any more."""

    sender: MemberId
    last: int


class Admitted(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """A session, and what it is through with."""

    member: MemberId
    through: list[Entry]
    again: bool = False
    """Whether a former incarnation had it."""
    compacted: bool = False
    """Whether it wants only what nothing in the log replaces."""
    filter: str = ""
    """What the items of messages that it wants begin with."""
    attempt: int = 1
    """Which logger it asked, of all that it ever did."""
    here: bool = True
    """Whether that was this one."""


class Acknowledged(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """What a session is through with, of some streams."""

    member: MemberId
    through: list[Entry]


class Dismissed(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """A session is over."""

    member: MemberId


class Merged(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """What is below a number of a stream, and not here, was replaced: single receipts are forgotten."""

    sender: MemberId
    below: int


class Placed(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """Messages of a stream have positions in a row, since a moment."""

    position: int
    sender: MemberId
    first: int
    count: int
    at: Nanos


class Counted(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """Positions before this one were given, and of these some trimmed, though nothing replaced them."""

    next: int
    trimmed: list[Span]


class Published(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """A batch of the logger's own, with its key."""

    key: bytes
    sender: MemberId
    first: int
    messages: list[tuple[bytes, WireAnnotation | None]]


class Keyed(msgspec.Struct, frozen=True, array_like=True, tag=17):
    """The key of a batch whose messages are in records of their own, or not in the log any more."""

    key: bytes
    sender: MemberId
    first: int
    position: int | None = None
    """Of the first message."""
    count: int = 1


class Staged(msgspec.Struct, frozen=True, array_like=True, tag=24):
    """A piece of a batch that may be published later: no messages of the log yet."""

    stage: str
    number: int
    payloads: list[bytes]
    items: list[str | None] | None = None


class Released(msgspec.Struct, frozen=True, array_like=True, tag=25):
    """A batch of the logger's own, with its key: its messages are in the pieces of these stages, in order."""

    key: bytes
    sender: MemberId
    first: int
    stages: list[tuple[str, int]]
    """Each with how many pieces it has."""


class Abandoned(msgspec.Struct, frozen=True, array_like=True, tag=26):
    """Pieces that will not be published."""

    stages: list[str]


class Forgot(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """Another logger never comes back."""

    name: str


class Begun(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """All other loggers have said what is past: the log is in use."""


Record = (
    Opened
    | Stored
    | StoredRun
    | Replaced
    | ReplacedAll
    | Collected
    | Expired
    | Holes
    | Frozen
    | Over
    | Dropped
    | Admitted
    | Acknowledged
    | Dismissed
    | Merged
    | Placed
    | Counted
    | Published
    | Keyed
    | Staged
    | Released
    | Abandoned
    | Begun
    | Forgot
)

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    """As it is on disk."""
    return _ENCODER.encode(record)


def decode(data: bytes) -> Record:
    """What is on disk, as it was written: disks vouch for that."""
    return _DECODER.decode(data)


def receipts_of(sender: MemberId, pairs: Sequence[tuple[int, int]]) -> Iterator[Replaced | ReplacedAll]:
    """The records of receipts of one stream, many to a record."""
    for start in range(0, len(pairs), RECEIPTS):
        some = pairs[start : start + RECEIPTS]
        yield Replaced(sender, *some[0]) if len(some) == 1 else ReplacedAll(sender, list(some))
