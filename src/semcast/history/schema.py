"""The schema of recorded histories: one for simulated and live runs, one row per event.

Rows about messages (multicast, deliver, purge) may stand for a run of `count` consecutive messages of
one sender; `order` is then the position of the first and the others follow. Of multicast and deliver rows,
`bytes` is the size of all payloads together and `crc` the CRC-32 of the payloads one behind the other, null
where it was not recorded. Rows about anything else have `seq` 0 and, but for buffer and merged rows, `count`
0. `index` counts from 0 for each process in each group, and a restart under the same name is another process.
What a kind puts into shared columns:

- view: `view` and `members`, in `level` whether it is "primary" or "non-primary", and in `sender` who
  formed it, where views of several sides of a partition may have the same number; of a re-formed view, in
  `order`, the number of the view that it follows without a quorum of it;
- transitional: `view` and `sender` of the view before it, and the `members` who leave that one together;
- multicast: where messages wait for their turn, the row stands where they leave, with the `view` they leave
  in, and "safe" in `level` if they are to be delivered only once everybody has them;
- purge: the replacement in `annotation` (kind "by", one id), none where it was not said;
- buffer: the occupancy in `count`, each row a new high-water mark of its process;
- crash: the process stopped for good; left: it left the group for good, of its own will or not;
- apply: a digest of the state that `sender` owns, in `annotation` (kind "item"); with a `view`, of the
  state at the beginning of that view, before anything is delivered in it, and without at the end of the run.
- merged: the number of views in `count` that came and went since the row before, which the program was not
  told of; it sent nothing there and had nothing to deliver. What comes next does not follow what came before;
- confirmed: the stack said that a message of this process is delivered in `view`, which has these `members`,
  and with "safe" in `level` that all of them have it; only where its program asked (`send(..., confirm=)`).

A family may add kinds of its own (`add_kind`).

Two columns are for certificates, by which a checker of large runs need not search (`core.certificates`). Of
multicast and deliver rows they are about the first message; what follows in the row follows from it:

- ring: where the message was in the order of the ring: the number of its `configuration` and who formed that
  (`representative`, `incarnation`), the `packet` and the `index` of the message in the packet. All messages
  of a row are in one packet, one behind the other;
- vector: what changed in the vector time of the sender since the row before about messages of it, of this
  process in this view, as pairs of the `rank` of a member of the view and the last `seq` of it that comes
  before, directly or through others. All messages of a row have the same vector time.

Version 1 has neither of them, nor `crc`, nor left rows, and one group for each run.
"""

import enum
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from semcast.history.events import Event

SCHEMA_VERSION = 2
VERSION_KEY = b"semcast.schema"
RUN_KEY = b"semcast.run"

CRC_MASK = (1 << 32) - 1
PRIMARY, NON_PRIMARY = "primary", "non-primary"
SAFE = "safe"
FIFO, CAUSAL, TOTAL = "fifo", "causal", "total"


class Kind:
    """What happened. There is one object for each kind: the attributes here, and what families add.

    Args:
        value: the name in files.
        columns: of an added kind, the columns that it uses beside those that say who, when and where.
        problem: of an added kind, says what is wrong with an event, if anything is.
    """

    __slots__ = ("columns", "problem", "value")

    VIEW: ClassVar["Kind"]
    TRANSITIONAL: ClassVar["Kind"]
    MULTICAST: ClassVar["Kind"]
    DELIVER: ClassVar["Kind"]
    PURGE: ClassVar["Kind"]
    BUFFER: ClassVar["Kind"]
    CRASH: ClassVar["Kind"]
    LEFT: ClassVar["Kind"]
    RECOVER: ClassVar["Kind"]
    APPLY: ClassVar["Kind"]
    CONFIRMED: ClassVar["Kind"]
    MERGED: ClassVar["Kind"]

    def __init__(
        self,
        value: str,
        columns: Iterable[str] | None = None,
        problem: "Callable[[Event], str | None] | None" = None,
    ) -> None:
        self.value = value
        self.columns = None if columns is None else frozenset(columns)
        self.problem = problem

    def __repr__(self) -> str:
        return f"<Kind {self.value}>"

    def __reduce__(self) -> tuple[Callable[[str], "Kind"], tuple[str]]:
        return kind_named, (self.value,)


KINDS: dict[str, Kind] = {}
"""All kinds by their names in files."""


def _basic(value: str) -> Kind:
    KINDS[value] = Kind(value)
    return KINDS[value]


Kind.VIEW = _basic("view")
Kind.TRANSITIONAL = _basic("transitional")
Kind.MULTICAST = _basic("multicast")
Kind.DELIVER = _basic("deliver")
Kind.PURGE = _basic("purge")
Kind.BUFFER = _basic("buffer")
Kind.CRASH = _basic("crash")
Kind.LEFT = _basic("left")
Kind.RECOVER = _basic("recover")
Kind.APPLY = _basic("apply")

GONE = (Kind.CRASH, Kind.LEFT)
"""After one of these a process does nothing any more. To the checkers they are the same."""


def add_kind(
    value: str, columns: Iterable[str], problem: "Callable[[Event], str | None] | None" = None
) -> Kind:
    """A kind of rows that a family adds, once, when its module is imported."""
    if value in KINDS:
        raise ValueError(f"there is already a kind {value!r}")
    unknown = set(columns) - SHARED
    if unknown:
        raise ValueError(f"kind {value!r}: no such shared column: {', '.join(sorted(unknown))}")
    KINDS[value] = Kind(value, columns, problem)
    return KINDS[value]


def kind_named(value: str) -> Kind:
    """The kind of this name; raises ValueError if there is none."""
    kind = KINDS.get(value)
    if kind is None:
        raise ValueError(f"unknown kind {value!r}")
    return kind


class AnnotationKind(enum.Enum):
    """How the annotation column is to be read."""

    ITEM = "item"
    ENUMERATION = "enumeration"
    K_ENUMERATION = "k-enumeration"
    BY = "by"


SHARED = frozenset(
    ("sender", "seq", "count", "view", "level", "order", "annotation", "members", "bytes", "crc")
)
"""The columns that kinds put to their own use."""


Kind.MERGED = add_kind("merged", ("count",))
Kind.CONFIRMED = add_kind("confirmed", ("sender", "seq", "count", "view", "level", "members"))
