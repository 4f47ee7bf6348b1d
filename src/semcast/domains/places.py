"""Where the daemon of a host is found."""

import os
import tempfile
from pathlib import Path

from semcast.group.errors import GroupError

VARIABLE = "SEMCAST_DAEMON"
"""Names the socket, or `tcp://HOST:PORT`, where it is not the usual one."""
_FILE = "semcast.sock"
_SYSTEM = Path("/run/semcast")


def default_socket() -> Path:
    """Where a daemon that this user starts listens: `/run/semcast` for the system's."""
    if os.getuid() == 0:
        return _SYSTEM / _FILE
    if folder := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(folder) / "semcast" / _FILE
    return Path(tempfile.gettempdir()) / f"semcast-{os.getuid()}" / _FILE


def find_daemon() -> str:
    """Where a program looks for a daemon: the variable, its user's own, the system's."""
    if named := os.environ.get(VARIABLE):
        return named
    own = default_socket()
    system = _SYSTEM / _FILE
    return str(own if own.exists() or not system.exists() else system)


def no_daemon(where: str, error: OSError) -> GroupError:
    """Nobody answers there: why, and what to do where nobody listens at all.

    >>> print(no_daemon("/a.sock", FileNotFoundError(2, "No such file or directory")))
    no daemon answers at /a.sock: No such file or directory: start one (semcast daemon), or name its socket
    >>> print(no_daemon("/run/a.sock", ConnectionError("the daemon did not answer in time")))
    no daemon answers at /run/a.sock: the daemon did not answer in time
    """
    absent = isinstance(error, FileNotFoundError | ConnectionRefusedError)
    advice = ": start one (semcast daemon), or name its socket" if absent else ""
    return GroupError(f"no daemon answers at {where}: {error.strerror or error}{advice}")
