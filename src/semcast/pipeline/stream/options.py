"""What a program says with `.option(name, value)`, checked before anything runs.

Spark gives names without regard to case; those that are not about the stream are settings of the group, as
`join` and `semcast.log` take them: `peers`, `keyFile` (or `key_file`), ...
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Literal, TypeVar
from uuid import UUID

import msgspec

from semcast.core.ids import SECOND, Nanos
from semcast.group.errors import ConfigurationError
from semcast.group.settings import parse_duration
from semcast.patterns.repeats import MAX_ROW
from semcast.protocols.gossip.settings import MAX_FILTER

_SETTINGS = ("bind", "peers", "key_file", "insecure", "config")
"""Where the group is."""
_SPARKS = frozenset({"path", "checkpointlocation", "queryname", "outputmode", "truncate"})
"""What Spark adds by itself."""

Use = Literal["source", "stream", "table"]
"""Who has the options: `read` and `readStream`; `writeStream`; `write`."""
Start = int | datetime | Literal["all", "new"]
T = TypeVar("T")


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is read."""

    start: Start = "all"
    """Where a query without a checkpoint begins: with what is in the log, with what comes, at a position, or
    at a time."""
    end: int | datetime | None = None
    """Where a batch ends; at the end of the log, without."""
    mode: Literal["log", "latest"] = "log"
    """`latest`: rows that a later one of the same batch replaces may be left out."""
    filter: str = ""
    """Of messages about an item, only those whose item begins so."""
    max_rows: int = 0
    """Positions of one batch, at most; 0 for no bound."""
    partitions: int = 0
    """Tasks of a batch, at most; 0: one a core of the driver's machine."""
    heartbeat: Nanos = 0
    """So long nothing may be logged until a row without a message tells the time; 0: never."""
    fail_on_data_loss: bool = True
    keys: bool = False
    """Columns say which row of which query a message is, as the sink wrote it in front of the payload."""


class SinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How rows become messages."""

    keys: bool = False
    """Payloads begin with a key: query, batch and row."""
    query: UUID | None = None
    """Of `df.write`, whose batches are numbered by the program; Spark numbers those of streams."""
    batch: int = 0


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Which log, and how it is reached."""

    group: str
    logger: str = ""
    """Its name; any, where it is empty."""
    timeout: float = 60.0
    """Seconds to wait for a logger that starts again."""
    settings: tuple[tuple[str, str], ...] = ()


_WHERE = ("group", "logger", "timeout")
_SOURCE = (
    "start",
    "end",
    "mode",
    "filter",
    "maxRowsPerTrigger",
    "partitions",
    "heartbeat",
    "failOnDataLoss",
    "keys",
)
_SINK = ("keys",)
_TABLE = (*_SINK, "query", "batch")
_OWN = {"source": _SOURCE, "stream": _SINK, "table": _TABLE}


def where(options: Mapping[str, str], use: Use) -> Where:
    """Which log. Raises ConfigurationError for a name that means nothing to who reads or writes there."""
    given = {name.lower(): value for name, value in options.items()}
    settings = {name.replace("_", ""): name for name in _SETTINGS}
    own = (*_WHERE, *_OWN[use])
    known = {name.lower(): name for name in own} | settings
    for name in sorted(given):
        if name not in _SPARKS and name.replace("_", "") not in known:
            close = get_close_matches(name, known, 1)
            hint = f"did you mean {known[close[0]]}?" if close else f"there are {', '.join(known.values())}"
            raise ConfigurationError(f"no such option: {name}; {hint}")
    group = given.get("group") or given.get("path")
    if not group:
        raise ConfigurationError('which group? .option("group", "prices"), or .load("prices")')
    return Where(
        group=group,
        logger=given.get("logger", ""),
        timeout=parse_duration(given.get("timeout", "60s"), "timeout") / SECOND,
        settings=tuple(
            (settings[name.replace("_", "")], value)
            for name, value in sorted(given.items())
            if name.replace("_", "") in settings
        ),
    )


def source_options(options: Mapping[str, str]) -> SourceOptions:
    """How to read. Raises ConfigurationError for a value that cannot be."""
    given = {name.lower(): value for name, value in options.items()}
    chosen: dict[str, Any] = {
        "start": _start(given.get("start", "all")),
        "end": _place(given["end"], "end") if "end" in given else None,
        "mode": _one_of(given, "mode", ("log", "latest"), "log"),
        "filter": given.get("filter", ""),
        "max_rows": _count(given, "maxRowsPerTrigger"),
        "partitions": _count(given, "partitions"),
        "heartbeat": parse_duration(given["heartbeat"], "heartbeat") if "heartbeat" in given else 0,
        "fail_on_data_loss": _yes(given, "failondataloss", "true"),
        "keys": _yes(given, "keys"),
    }
    if len(chosen["filter"]) > MAX_FILTER:
        raise ConfigurationError(f"filter: {MAX_FILTER} characters at most")
    return SourceOptions(**chosen)


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """How to write. Raises ConfigurationError for a value that cannot be."""
    given = {name.lower(): value for name, value in options.items()}
    query = given.get("query")
    if (query is None) != ("batch" not in given):
        raise ConfigurationError(
            "query and batch belong together: the UUID of what the program does, and a number that grows"
        )
    if query is None:
        return SinkOptions(keys=_yes(given, "keys"))
    try:
        which = UUID(query)
    except ValueError:
        raise ConfigurationError(
            f"query = {query!r}: a UUID is wanted, such as 1f0b1c8e-6d3f-4f0e-9c57-0c0f6e1f2a33; make one"
            " for the program with uuid.uuid4(), and keep it"
        ) from None
    text = given["batch"]
    if not text.isdecimal() or int(text) > MAX_ROW:
        raise ConfigurationError(f"batch = {text!r}: a number of 0 or more is wanted")
    return SinkOptions(keys=_yes(given, "keys"), query=which, batch=int(text))


def _yes(given: Mapping[str, str], name: str, default: str = "false") -> bool:
    return _one_of(given, name, ("true", "false"), default) == "true"


def _start(text: str) -> Start:
    if text == "all":
        return "all"
    return "new" if text == "new" else _place(text, "start")


def _place(text: str, name: str) -> int | datetime:
    """A position, or a time of day: without a zone it is UTC."""
    if text.isdecimal():
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        wanted = "all, new, a position" if name == "start" else "a position"
        raise ConfigurationError(
            f"{name} = {text!r}: {wanted} or a time such as 2026-11-18T08:00:00Z is wanted"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _one_of(given: Mapping[str, str], name: str, known: tuple[str, ...], default: str) -> str:
    text = given.get(name, default).lower()
    if text not in known:
        raise ConfigurationError(f"{name} = {text!r}: there are {', '.join(known)}")
    return text


def _count(given: Mapping[str, str], name: str) -> int:
    text = given.get(name.lower(), "")
    if not text:
        return 0
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(f"{name} = {text!r}: a number of 1 or more is wanted")
    return int(text)
