"""Real folders of a world, for programs that need files, such as those of SQLite. They go with the world."""

import os
import shutil
import tempfile
from itertools import count
from pathlib import Path

_TOP = Path(tempfile.gettempdir())  # asked for once, before any world runs: asking draws random names
_WORLDS = count()


class Scratch:
    """Of one world."""

    def __init__(self) -> None:
        self._top: Path | None = None
        self._made = 0

    def folder(self) -> Path:
        """A new, empty one. Names say nothing that differs from run to run but the process and its worlds."""
        while self._top is None:
            top = _TOP / f"semcast-world-{os.getpid()}-{next(_WORLDS)}"
            try:
                top.mkdir(mode=0o700)
            except FileExistsError:  # left by a process that was killed
                continue
            self._top = top
        self._made += 1
        made = self._top / str(self._made)
        made.mkdir()
        return made

    def remove(self) -> None:
        """With all that is in it."""
        if self._top is not None:
            shutil.rmtree(self._top, ignore_errors=True)
            self._top = None
