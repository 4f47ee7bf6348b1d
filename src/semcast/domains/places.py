"""Where the daemon of a host is found."""

import os
import tempfile
from pathlib import Path

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
