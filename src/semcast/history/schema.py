"""The schema of recorded histories: one for simulated and live runs, one row per event.

Rows about messages (multicast, deliver, purge) may stand for a run of `count` consecutive messages of
one sender; `order` is then the position of the first and the others follow. Rows about anything else
have `seq` 0 and, but for buffer rows, `count` 0. `index` counts from 0 at each process, and a restart
under the same name is another process. What a kind puts into shared columns:

- view: `view` and `members`, in `level` whether it is "primary" or "non-primary", and in `sender` who
  formed it, where views of several sides of a partition may have the same number;
- transitional: `view` and `sender` of the view before it, and the `members` who leave that one together;
- multicast: where messages wait for their turn, the row stands where they leave, with the `view` they leave
  in, and "safe" in `level` if they are to be delivered only once everybody has them;
- purge: the replacement in `annotation` (kind "by", one id), none where it was not said;
- buffer: the occupancy in `count`, each row a new high-water mark of its process;
- apply: a digest of the state that `sender` owns, in `annotation` (kind "item"); with a `view`, of the
  state at the beginning of that view, before anything is delivered in it, and without at the end of the run.
"""

import enum

import pyarrow as pa

SCHEMA_VERSION = 1
VERSION_KEY = b"semcast.schema"
RUN_KEY = b"semcast.run"

PRIMARY, NON_PRIMARY = "primary", "non-primary"
SAFE = "safe"
FIFO, CAUSAL, TOTAL = "fifo", "causal", "total"


class Kind(enum.Enum):
    """What happened."""

    VIEW = "view"
    TRANSITIONAL = "transitional"
    MULTICAST = "multicast"
    DELIVER = "deliver"
    PURGE = "purge"
    BUFFER = "buffer"
    CRASH = "crash"
    RECOVER = "recover"
    APPLY = "apply"


class AnnotationKind(enum.Enum):
    """How the annotation column is to be read."""

    ITEM = "item"
    ENUMERATION = "enumeration"
    K_ENUMERATION = "k-enumeration"
    BY = "by"


_MESSAGE_ID = pa.struct([("sender", pa.string()), ("incarnation", pa.int64()), ("seq", pa.int64())])
_MEMBER = pa.struct([("name", pa.string()), ("incarnation", pa.int64())])
_ANNOTATION = pa.struct(
    [
        ("kind", pa.string()),
        ("item", pa.string()),
        ("base", pa.int64()),
        ("bitmap", pa.binary()),  # little-endian
        ("total", pa.bool_()),
        ("ids", pa.list_(_MESSAGE_ID)),
    ]
)

SCHEMA = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("process", pa.string(), nullable=False),
        pa.field("incarnation", pa.int64(), nullable=False),
        pa.field("index", pa.int64(), nullable=False),
        pa.field("at_ns", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("sender", pa.string()),
        pa.field("sender_incarnation", pa.int64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("view", pa.int64()),
        pa.field("level", pa.string()),
        pa.field("order", pa.int64()),
        pa.field("annotation", _ANNOTATION),
        pa.field("members", pa.list_(_MEMBER)),
        pa.field("bytes", pa.int64(), nullable=False),
    ]
)
