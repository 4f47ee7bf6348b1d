"""Room on the disk of a logger that is kept for when there is none left.

A log on a full disk can only be made smaller by writing what stays, which needs room. `semcast log trim`
takes it from here.
"""

import os
from contextlib import suppress
from pathlib import Path

SPARE_BYTES = 1 << 20
_FILE = "spare"


def keep_spare(data: Path) -> None:
    """Set room aside, where there is some and none was. Without it everything works but what needs it."""
    try:
        file = os.open(data / _FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.posix_fallocate(file, 0, SPARE_BYTES)
    except OSError:
        give_up_spare(data)
    finally:
        os.close(file)


def give_up_spare(data: Path) -> None:
    """Use that room now."""
    with suppress(OSError):
        (data / _FILE).unlink()
