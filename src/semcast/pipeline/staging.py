"""A folder for files that are needed meanwhile, and that is gone afterwards: also if this process is killed.

A shell of its own waits for the end of a pipe that this process holds. However the process ends, the pipe
ends with it, and the shell removes the folder.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_GUARD = 'read -r _; n=0; while [ -e "$1" ] && [ $n -lt 30 ]; do rm -rf -- "$1"; n=$((n + 1)); sleep 1; done'
"""A Java that goes on for a moment may write there again."""


@contextmanager
def staged(parent: str | Path | None = None) -> Iterator[Path]:
    """A new folder in `parent`, or in the temporary folder."""
    with tempfile.TemporaryDirectory(prefix="semcast-", dir=parent, ignore_cleanup_errors=True) as name:
        guard = guarded(Path(name))
        try:
            yield Path(name)
        finally:
            shutil.rmtree(name, ignore_errors=True)
            guard.communicate()


def guarded(folder: Path) -> "subprocess.Popen[bytes]":
    """Start the shell that removes a folder when this process ends."""
    return subprocess.Popen(  # noqa: S603
        ["/bin/sh", "-c", _GUARD, "sh", str(folder.resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it outlives signals to our group
    )
