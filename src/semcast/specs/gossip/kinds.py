"""The rows that members and loggers of the gossip family write besides those of every stack.

A *stream* is what one incarnation of a sender multicasts; rows name it in `sender`. A *session* is a name:
its incarnations belong together.

- start: what a session is owed of a stream comes after `seq`; `level` says how it counts after a crash:
  "at-least-once" or "at-most-once";
- begin: it asks for a session: if it is not known, to begin in this way (`level`, as `starting.py` of the
  protocol says), with the position or time in `order`; `annotation` is what the items it wants begin with;
- vouched: a sponsor takes in the member in `members`, as of its attempt `order`, and says that it has heard
  of a stream up to `seq`; one row for each stream, in each answer;
- joined: sponsors, those in `members`, have taken it in, as of its attempt `order`; `level` says whether
  these were as many as are set, `seq` ("sponsors"), all that the group had or that answered ("few"), or
  nobody ("alone");
- explicit: its program says itself what it is through with;
- through: its program says that it is through with a stream up to `seq`;
- assured: it was told that a logger has that on disk;
- lost: it gave up messages: `level` says why: "expired" (too old to be had), "abandoned" (nobody has them),
  "unwanted" (its program has no use for them);
- fenced: a logger closed the stream of this sender, which is there; it comes back as another incarnation, and
  its session goes on;
- detached: it stops, and its session goes on with the next of its name;
- leave: it wants to leave: nothing is owed to it any more;
- disconnect, reconnect: it noticed that no logger hears it, nor has for `order` nanoseconds, and that one
  does again;
- letgo: a sender forgets these own messages, because they are logged; or a logger tells a program so, which
  gave it these as a batch;
- blocked: a sender refuses messages; `level` says for whom it waits: "logger", or its own "program"; or that
  it is not known yet whether there is a logger: "search";
- opened: a logger starts, with the log of this identity (`order`), and this retention (`level`); so many
  loggers (`count`) must have a message; "inactive" in `level` says that it ends sessions that are silent for
  some time, which every run that is over has waited for;
- admit: it has on disk that the member in `members` has a session, as of its attempt `order`;
- dismissed: it has on disk that the session of the member in `members` is over;
- closed: it knows that a stream is over, with `seq` as its last number;
- forgot: it has on disk that the logger in `members` never comes back;
- kept: the log that it found has these messages;
- log: it has these messages on disk from now on;
- placed: these messages have positions in its log in a row, from `order` on, on disk;
- collect: it drops them; `level` says why: "stable", "expired", "obsolete";
- acknowledge: it has on disk that the session in `members` is through with the stream up to `seq`.

Programs that are no members, and give a logger batches; `annotation` (kind "item") is the key of the batch:

- publisher: it starts, and goes on with its batch number `order`;
- offered: it begins with a batch of `count` messages, whose payloads one behind the other have the CRC-32
  `order`; a batch that is done again is offered again, with the same messages;
- asked: it asks the logger to publish the batch, from stages of which it was told that all is on disk;
- taken: the logger `sender` has said that the batch is in its log `order`, from position `seq` on;
  `level` says whether that was so before: "logged" or "known";
- refused: the logger has said no; `level` says why.

Programs that are no members, and read a log by position, batch by batch; `annotation` (kind "item") is the
number of the batch:

- reader: it starts; of messages about items it wants those whose item begins with `annotation`;
- given: what a batch has: a message, its position in `order`, and in `annotation` the CRC-32 of its payload;
- skipped: it was told that of `count` positions from `seq` on, `order` were trimmed;
- counted: the batch is with whoever it is for, whole: the rows before it, since the last such row. It is of
  the log `order` of the logger `sender`, and has `count` positions from `seq` on;
- stopped: it reads no more; `level` says why: "log" (that is another one), "trimmed".
"""

from semcast.core.annotations import Item
from semcast.history.events import Event
from semcast.history.schema import add_kind

_MESSAGES = ("sender", "seq", "count")
AT_LEAST_ONCE, AT_MOST_ONCE = DELIVERIES = ("at-least-once", "at-most-once")
EXPIRED, ABANDONED, STABLE, OBSOLETE = "expired", "abandoned", "stable", "obsolete"
LIMITS = "limits"
INACTIVE = "inactive"
UNWANTED = "unwanted"
NEW, ALL, COMPACTED, KNOWN, POSITION, TIME = STARTS = (
    "new",
    "all",
    "compacted",
    "acknowledged",
    "position",
    "time",
)
LOGGER, PROGRAM = "logger", "program"
SPONSORS, FEW, ALONE = "sponsors", "few", "alone"


def _messages(event: Event) -> str | None:
    if event.sender is None or event.seq < 1 or event.count < 1:
        return f"{event.kind.value} of no messages"
    return None


def _start(event: Event) -> str | None:
    if event.sender is None or event.level not in DELIVERIES:
        return "a start without a stream, or without saying how it counts after a crash"
    return None


def _begin(event: Event) -> str | None:
    return None if event.level in STARTS else f"a session that begins with {event.level}"


def _lost(event: Event) -> str | None:
    known = event.level in (EXPIRED, ABANDONED, UNWANTED)
    return _messages(event) if known else f"lost because of {event.level}"


def _collect(event: Event) -> str | None:
    return _messages(event) if event.level in (STABLE, EXPIRED, OBSOLETE) else f"collected as {event.level}"


def _opened(event: Event) -> str | None:
    return None if event.order is not None else "a log without an identity"


def _acknowledge(event: Event) -> str | None:
    if event.sender is None or event.members is None or len(event.members) != 1:
        return "an acknowledgement of no session, or of no stream"
    return None


def _joined(event: Event) -> str | None:
    if event.level not in (SPONSORS, FEW, ALONE) or bool(event.members) is (event.level == ALONE):
        return f"joined by {event.level}, with {len(event.members or ())} sponsors"
    return None


def _vouched(event: Event) -> str | None:
    if event.sender is None or event.members is None or len(event.members) != 1:
        return "a sponsor of nobody, or without a stream"
    return None


def _at_position(event: Event) -> str | None:
    return _messages(event) if event.order is not None else "a message without a position"


def _keyed(event: Event) -> str | None:
    return None if isinstance(event.annotation, Item) else f"{event.kind.value} without a key"


START = add_kind("start", ("sender", "seq", "level"), _start)
BEGIN = add_kind("begin", ("level", "order", "annotation"), _begin)
VOUCHED = add_kind("vouched", ("sender", "seq", "members", "order"), _vouched)
JOINED = add_kind("joined", ("level", "members", "order", "seq"), _joined)
EXPLICIT = add_kind("explicit", ())
THROUGH = add_kind("through", ("sender", "seq"))
ASSURED = add_kind("assured", ("sender", "seq"))
LOST = add_kind("lost", (*_MESSAGES, "level"), _lost)
DISCONNECT = add_kind("disconnect", ("order",))
RECONNECT = add_kind("reconnect", ())
LEAVE = add_kind("leave", ())
FENCED = add_kind("fenced", ())
DETACHED = add_kind("detached", ())
LETGO = add_kind("letgo", _MESSAGES, _messages)
BLOCKED = add_kind("blocked", ("level",))
OPENED = add_kind("opened", ("order", "level", "count"), _opened)
ADMIT = add_kind("admit", ("members", "order"))
DISMISSED = add_kind("dismissed", ("members",))
CLOSED = add_kind("closed", ("sender", "seq"))
FORGOT = add_kind("forgot", ("members",))
KEPT = add_kind("kept", _MESSAGES, _messages)
LOG = add_kind("log", _MESSAGES, _messages)
PLACED = add_kind("placed", (*_MESSAGES, "order"), _messages)
COLLECT = add_kind("collect", (*_MESSAGES, "level"), _collect)
ACKNOWLEDGE = add_kind("acknowledge", ("sender", "seq", "members"), _acknowledge)
PUBLISHER = add_kind("publisher", ("order",))
OFFERED = add_kind("offered", ("count", "order", "annotation"), _keyed)
ASKED = add_kind("asked", ("annotation",), _keyed)
TAKEN = add_kind("taken", ("sender", "seq", "level", "order", "annotation"), _keyed)
REFUSED = add_kind("refused", ("level", "annotation"), _keyed)
READER = add_kind("reader", ("annotation",))
GIVEN = add_kind("given", (*_MESSAGES, "order", "annotation"), _at_position)
SKIPPED = add_kind("skipped", ("seq", "count", "order"))
COUNTED = add_kind("counted", (*_MESSAGES, "order", "annotation"), _keyed)
STOPPED = add_kind("stopped", ("level",))
