"""The frames of the gossip family. Streams are named by the member that sends them.

Vectors are over senders, never over members, and come in parts where they do not fit: `entries` and `wanted`
fill a control frame up to `CONTROL` bytes, so that every one fits into 1280 with its datagram's head.

What a logger answers to a session names the `incarnation` that it is meant for: that may have started again
since, and counts its attempts and serials from the beginning.
"""

import enum
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, TypeVar, get_args

import msgspec

from semcast.core.ids import MAX_NAME, MemberId
from semcast.core.outbox import Frame
from semcast.protocols.gossip.data import Data, Number, Seq
from semcast.protocols.gossip.queries import QUERIES
from semcast.protocols.gossip.settings import MAX_FILTER, MAX_REGION, StartMode
from semcast.protocols.gossip.spans import Span

CONTROL = 1000
"""Bytes that the list of a control frame takes at most; names and numbers around it take the rest."""
_MOST_ENTRIES = 128
_MOST_SPANS = 48
_SPAN_BYTES = 19
_ENTRY_BYTES = 24
_THROUGH_BYTES = 33
_KNOWN_BYTES = 27


class Standing(enum.IntEnum):
    """What a member is."""

    MEMBER = 0
    LOGGER = 1
    GONE = 2
    AWAY = 3
    """For a while: nobody need ask it anything."""
    LOOKING = 4
    """No member yet: it looks for a logger. Who hears it tells it who is there."""


WireSpans = Annotated[list[tuple[Seq, Seq]], msgspec.Meta(max_length=_MOST_SPANS)]
Entry = tuple[MemberId, Number]
"""A stream, and a number of it."""
Through = tuple[MemberId, Number, Number]
"""A stream, what a session is through with, and the highest number that it has heard of."""
Known = tuple[MemberId, Standing, Number]
"""A member, its standing, and how many milliseconds ago it was heard."""
T = TypeVar("T", Entry, Through, Known)
Entries = Annotated[list[Entry], msgspec.Meta(max_length=_MOST_ENTRIES)]
Wanted = Annotated[list[tuple[MemberId, WireSpans]], msgspec.Meta(max_length=_MOST_ENTRIES)]
Hash = Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]
Part = Annotated[int, msgspec.Meta(ge=0, lt=1024)]
Parts = Annotated[int, msgspec.Meta(ge=1, le=1024)]


class Idle(Frame, frozen=True, array_like=True, tag=71, gc=False):
    """HEARTBEAT: the last number that its sender gave."""

    seq: Number


class Gossip(Frame, frozen=True, array_like=True, tag=72, gc=False):
    """Negative gossip: what the gossiper wants of whom it chose. Also when it wants nothing."""

    round: Number
    wanted: Wanted
    idle: Hash | None = None
    """The hash of what idle senders said last, salted with the gossiper and the round."""
    logged: Entries = msgspec.field(default_factory=list)
    """Some of what is on disk, so that everybody comes to know it."""
    log: MemberId | None = None
    """The identity of that log: its logger, and the incarnation that began it."""
    members: Hash | None = None
    """The hash of who is known to be there, salted in the same way."""
    gap: bool = False
    """Whether it asks for a gap at once, and not for all that is missing at the end of a round."""
    lacks: Number = 0
    """How many messages of the target it lacks, of those that it would ask members for if it had room."""


class Heartbeats(Frame, frozen=True, array_like=True, tag=73, gc=False):
    """The answer to another hash: what idle senders said last, as far as the target knows."""

    round: Number
    marks: Entries


class Digest(Frame, frozen=True, array_like=True, tag=74, gc=False):
    """pbcast: what the gossiper can repair, as intervals."""

    round: Number
    held: Wanted
    members: Hash | None = None
    """The hash of who is known to be there, as in gossip."""


class Want(Frame, frozen=True, array_like=True, tag=75, gc=False):
    """RTX: please send these again. To a logger, to the sender of a digest, or of a logger to a sender."""

    round: Number
    wanted: Wanted


class Forgotten(Frame, frozen=True, array_like=True, tag=76, gc=False):
    """GcNOTE: the target had these, and has forgotten them."""

    round: Number
    spans: Wanted


class Notice(Frame, frozen=True, array_like=True, tag=77, gc=False):
    """These were purged, because of a later one of the same stream; 0 where it is not known any more."""

    sender: MemberId
    purged: Annotated[list[tuple[Seq, Seq, Number]], msgspec.Meta(max_length=_MOST_SPANS)]


class Gone(Frame, frozen=True, array_like=True, tag=78, gc=False):
    """Of a logger: nobody will ever be given these, or who asks does not want them."""

    sender: MemberId
    spans: WireSpans
    why: Literal["expired", "abandoned", "unwanted"]


class LetGo(Frame, frozen=True, array_like=True, tag=79, gc=False):
    """Of a sender to a logger that asks for them: they were logged, and are forgotten."""

    spans: WireSpans


class Logged(Frame, frozen=True, array_like=True, tag=80, gc=False):
    """ACK: a log has everything of these streams up to a number on disk."""

    log: Number
    upto: Entries


class Join(Frame, frozen=True, array_like=True, tag=81, gc=False):
    """A member wants a session. The attempt tells its answer from those to former ones."""

    attempt: Number
    start: StartMode
    at_most_once: bool
    at: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)] = 0
    """The position, or the time, to start with."""
    log: Number = 0
    """The log that the position is of."""
    filter: Annotated[str, msgspec.Meta(max_length=MAX_FILTER)] = ""
    """What the items of messages that it wants begin with."""
    again: bool = False
    """Whether a former incarnation may have had a session: then all loggers are asked for it."""


class Confirm(Frame, frozen=True, array_like=True, tag=82, gc=False):
    """The session is on disk; what it is owed comes after these numbers. Streams that are over are named."""

    attempt: Number
    part: Part
    parts: Parts
    after: Entries
    ended: Entries
    """Streams that nothing is owed of any more, and their last numbers."""
    again: bool
    """Whether it had a session before."""
    incarnation: Number = 0
    """Of whom it is meant for."""


class Report(Frame, frozen=True, array_like=True, tag=83, gc=False):
    """What a session is through with, in parts."""

    serial: Number
    attempt: Number
    through: Annotated[list[Through], msgspec.Meta(max_length=_MOST_ENTRIES)]
    part: Part
    parts: Parts


class Reported(Frame, frozen=True, array_like=True, tag=84, gc=False):
    """The answer to a part of a report: what is on disk of more than those streams, and which are over."""

    serial: Number
    part: Part
    incarnation: Number
    log: Number
    logged: Entries
    frozen: Annotated[list[MemberId], msgspec.Meta(max_length=_MOST_ENTRIES)] = msgspec.field(
        default_factory=list
    )
    """Streams of that part that are being closed."""


class Closed(Frame, frozen=True, array_like=True, tag=85, gc=False):
    """A stream is over: its last number, and what nobody has of it."""

    sender: MemberId
    last: Number
    holes: WireSpans


class Inquire(Frame, frozen=True, array_like=True, tag=86, gc=False):
    """A logger asks what a session holds of a stream after a number.

    With `freeze`, the session takes that stream from logs only, afterwards.
    """

    sender: MemberId
    after: Number
    freeze: bool


class Holding(Frame, frozen=True, array_like=True, tag=87, gc=False):
    """The answer: what it can give, and the highest number that it has heard of."""

    sender: MemberId
    after: Number
    known: Number
    held: WireSpans
    more: bool
    """Whether that is not all."""


class Say(Frame, frozen=True, array_like=True, tag=88, gc=False):
    """Of a session that delivers at most once: which number did you give last?"""

    fresh: Number


class Said(Frame, frozen=True, array_like=True, tag=89, gc=False):
    """The answer of the sender."""

    fresh: Number
    seq: Number


class Leave(Frame, frozen=True, array_like=True, tag=90, gc=False):
    """A session ends, and with it what is owed to it; its own stream ends at `last`."""

    last: Number


class Farewell(Frame, frozen=True, array_like=True, tag=91, gc=False):
    """The end of the session is on disk."""

    incarnation: Number


class Presence(Frame, frozen=True, array_like=True, tag=110, gc=False):
    """To anybody: this member is there, or goes."""

    standing: Standing
    asks: bool = False
    """Whether it knows nobody, and wants to be told."""
    region: Annotated[str, msgspec.Meta(max_length=MAX_REGION)] = ""
    """Where it is."""


class Members(Frame, frozen=True, array_like=True, tag=111, gc=False):
    """Some of those that are known to be there."""

    known: Annotated[list[Known], msgspec.Meta(max_length=_MOST_ENTRIES)]


# Among loggers


class Promise(Frame, frozen=True, array_like=True, tag=112, gc=False):
    """Of some streams: below which number no session will be admitted, and what is on disk without a gap."""

    log: Number
    serial: Number
    promised: Annotated[list[Through], msgspec.Meta(max_length=_MOST_ENTRIES)]


class Share(Frame, frozen=True, array_like=True, tag=113, gc=False):
    """A session as it is on disk, or some of it; or that it is over."""

    serial: Number
    member: MemberId
    attempt: Number
    again: bool
    over: bool
    through: Entries
    compacted: bool = False
    filter: Annotated[str, msgspec.Meta(max_length=MAX_FILTER)] = ""


class Shared(Frame, frozen=True, array_like=True, tag=114, gc=False):
    """What was shared is on disk here, too."""

    serial: Number


class Seek(Frame, frozen=True, array_like=True, tag=115, gc=False):
    """What is known of the session of this name?"""

    member: MemberId


class Sought(Frame, frozen=True, array_like=True, tag=116, gc=False):
    """The answer: the incarnation that had it last, if any, and what that was through with."""

    member: MemberId
    had: MemberId | None
    attempt: Number
    part: Part
    parts: Parts
    through: Entries
    compacted: bool = False
    filter: Annotated[str, msgspec.Meta(max_length=MAX_FILTER)] = ""


class Begin(Frame, frozen=True, array_like=True, tag=117, gc=False):
    """A log is new, or was lost: what is past?"""

    log: Number


class Past(Frame, frozen=True, array_like=True, tag=118, gc=False):
    """The answer: of each stream what was collected, and 1 + the last number of those that are over."""

    log: Number
    part: Part
    parts: Parts
    streams: Annotated[list[Through], msgspec.Meta(max_length=_MOST_ENTRIES)]


class Heard(Frame, frozen=True, array_like=True, tag=129, gc=False):
    """Of a logger to the one that closes streams: it has heard these lately."""

    members: Annotated[list[MemberId], msgspec.Meta(max_length=_MOST_ENTRIES)]


class Refused(Frame, frozen=True, array_like=True, tag=130, gc=False):
    """The session cannot begin as the member wants."""

    attempt: Number
    incarnation: Number
    why: Annotated[str, msgspec.Meta(max_length=256)]


class Full(Frame, frozen=True, array_like=True, tag=146, gc=False):
    """Of a logger to a sender: its log has no room for another stream, and nothing of this one is logged."""

    incarnation: Number
    why: Annotated[str, msgspec.Meta(max_length=256)]


class Acknowledge(Frame, frozen=True, array_like=True, tag=131, gc=False):
    """A program is through with these streams up to these numbers, and says so."""

    serial: Number
    part: Part
    upto: Entries


class Acknowledged(Frame, frozen=True, array_like=True, tag=132, gc=False):
    """That is on disk."""

    serial: Number
    part: Part
    incarnation: Number


class Disown(Frame, frozen=True, array_like=True, tag=133, gc=False):
    """Of a logger: these never come back, and nothing of what they say counts; to one of them: go.

    Of a member to its logger: that it was told so.
    """

    names: Annotated[list[Annotated[str, msgspec.Meta(max_length=MAX_NAME)]], msgspec.Meta(max_length=64)]


class Disowned(Frame, frozen=True, array_like=True, tag=134, gc=False):
    """Of a logger to another: it has on disk that these never come back."""

    names: Annotated[list[Annotated[str, msgspec.Meta(max_length=MAX_NAME)]], msgspec.Meta(max_length=64)]


GossipFrame = (
    Data
    | Idle
    | Gossip
    | Heartbeats
    | Digest
    | Want
    | Forgotten
    | Notice
    | Gone
    | LetGo
    | Logged
    | Join
    | Confirm
    | Report
    | Reported
    | Closed
    | Inquire
    | Holding
    | Say
    | Said
    | Leave
    | Farewell
    | Presence
    | Members
    | Promise
    | Share
    | Shared
    | Seek
    | Sought
    | Begin
    | Past
    | Heard
    | Refused
    | Full
    | Acknowledge
    | Acknowledged
    | Disown
    | Disowned
)

FRAMES: tuple[type[Frame], ...] = (*get_args(GossipFrame), *QUERIES)
"""What the codec of a group of this family reads and writes."""


def entries(vector: Iterable[Entry]) -> list[list[Entry]]:
    """A vector in parts that fit into a control frame; one empty part if there is nothing."""
    return _parts(vector, _ENTRY_BYTES)


def reports(vector: Iterable[Through]) -> list[list[Through]]:
    """The same for reports."""
    return _parts(vector, _THROUGH_BYTES)


def knowns(members: Iterable[Known]) -> list[list[Known]]:
    """The same for lists of members."""
    return _parts(members, _KNOWN_BYTES)


def _parts(vector: Iterable[T], besides: int) -> list[list[T]]:
    """Parts of what has a member first, and takes so many bytes besides its name."""
    part: list[T] = []
    parts, room = [part], CONTROL
    for entry in vector:
        name = entry[0].name
        size = besides + (len(name) if name.isascii() else len(name.encode()))
        if part and (size > room or len(part) == _MOST_ENTRIES):
            part, room = [], CONTROL
            parts.append(part)
        part.append(entry)
        room -= size
    return parts


def wanted(streams: Iterable[tuple[MemberId, Iterable[Span]]]) -> list[tuple[MemberId, list[Span]]]:
    """As much of what is wanted as fits into a control frame; what is left out is for the next one.

    Streams of which nothing is wanted take no room.
    """
    found: list[tuple[MemberId, list[Span]]] = []
    room = CONTROL
    for stream, spans in streams:
        left = room - _ENTRY_BYTES - len(stream.name.encode())
        fits = min(left // _SPAN_BYTES, _MOST_SPANS)
        some = [span for span, _ in zip(spans, range(max(1, fits)), strict=False)]
        if not some:
            continue
        if fits < 1 or len(found) == _MOST_ENTRIES:
            break
        room = left - _SPAN_BYTES * len(some)
        found.append((stream, some))
    return found


def some_spans(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """Spans in parts that fit into a control frame; one empty part if there are none."""
    part: list[Span] = []
    for span in spans:
        if len(part) == _MOST_SPANS:
            yield part
            part = []
        part.append(span)
    yield part
