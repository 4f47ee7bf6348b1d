"""Connections to loggers, kept for as long as a Python process of Spark lives: to make one takes a while."""

import os
import threading
from pathlib import Path
from typing import Any

import msgspec

from semcast import blocking
from semcast.blocking_log import BlockingLog
from semcast.group.logclient import OtherLogError
from semcast.pipeline.stream.options import Where

_OPEN: dict[tuple[int, Where], BlockingLog] = {}
"""By process: a forked one has no thread of its parent's."""
_OPENING = threading.Lock()
_LISTS = ("peers",)
_MARK = "#"


def connection(where: Where) -> BlockingLog:
    """A connection, opened if there is none. Raises LogAwayError if no logger answers."""
    key = os.getpid(), where
    with _OPENING:
        log = _OPEN.get(key)
        if log is not None and not _is_current(log):
            _OPEN.pop(key).close()
            log = None
        if log is None:
            log = _OPEN[key] = _opened(where)
        return log


def _is_current(log: BlockingLog) -> bool:
    """Whether the log is still the one that was found: a process may live longer than a disk."""
    try:
        log.ends()
    except OtherLogError:
        return False
    return True


def _opened(where: Where) -> BlockingLog:
    settings: dict[str, Any] = dict(where.settings)
    for name in _LISTS:
        if name in settings:
            settings[name] = [each.strip() for each in settings[name].split(",")]
    config = settings.pop("config", None)
    log = blocking.log(
        where.group,
        logger=where.logger,
        timeout=where.timeout,
        config=None if config is None else Path(config),
        **settings,
    )
    return log.__enter__()


def disconnect(where: Where) -> None:
    """Close a connection: the log is another one now, or nobody wants it any more."""
    with _OPENING:
        log = _OPEN.pop((os.getpid(), where), None)
    if log is not None:
        log.close()


def identity(log: BlockingLog) -> str:
    """Which log this is, as offsets have it: its logger, and a number that no other log of it has.

    The logger's name comes first, so that a query goes on with the logger whose positions it has.
    """
    return f"{log.identity.logger}{_MARK}{log.identity.log}"


def connection_to(where: Where, log: str) -> BlockingLog:
    """A connection to one log. Raises OtherLogError if its logger has another one by now."""
    name = log.rpartition(_MARK)[0]
    found = msgspec.structs.replace(where, logger=name)
    opened = connection(found)
    if identity(opened) != log:
        now = identity(opened)
        raise OtherLogError(
            f"the positions of this query are of log {log}, and {where.group} has {now}: a position means"
            " nothing in another log. Begin again with a new checkpoint, or put the old log back"
        )
    return opened
