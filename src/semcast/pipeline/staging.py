"""A folder for files that are needed meanwhile, and that is gone afterwards: also if this process is killed.

A shell of its own waits for the end of a pipe that this process holds. However the process ends, the pipe
ends with it, and the shell removes the folder.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_GUARD = 'read -r _; rm -rf -- "$1"'


@contextmanager
def staged(parent: str | Path | None = None) -> Iterator[Path]:
    """A new folder in `parent`, or in the temporary folder."""
    with tempfile.TemporaryDirectory(prefix="semcast-", dir=parent, ignore_cleanup_errors=True) as name:
        guard = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", _GUARD, "sh", str(Path(name).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # it outlives signals to our group
        )
        try:
            yield Path(name)
        finally:
            guard.communicate()
