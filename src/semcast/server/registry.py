"""Which servers run on this host: each leaves a note, so that commands find them without being told.

The notes are in a folder that only this user can write. A note of a server that was killed stays until the
next look; who follows it finds nobody there, and takes the next.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from semcast.group.errors import ConfigurationError


class Note(msgspec.Struct, frozen=True):
    """A server that runs here."""

    database: str
    server: str
    address: str
    tls: bool
    process: int


def _folder() -> Path:
    place = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    folder = place / f"semcast-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigurationError(f"{folder}: not a folder of this user alone")
    return folder


def _file(database: str, server: str) -> str:
    """Names may be anything: they are hashed."""
    return hashlib.blake2b(f"{len(database)} {database} {server}".encode(), digest_size=12).hexdigest()


@contextmanager
def noted(note: Note) -> Iterator[None]:
    """While this lasts, others on this host know of the server. A host without such a folder does without."""
    try:
        path = _folder() / _file(note.database, note.server)
        part = path.with_suffix(f".{note.process}")
        part.write_bytes(msgspec.json.encode(note))
        part.rename(path)
    except (OSError, ConfigurationError):
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            if _read(path) == note:  # another process may serve in our place by now
                path.unlink()


def found(database: str) -> list[Note]:
    """The servers of a database that run on this host, by name."""
    try:
        notes = [_read(path) for path in _folder().iterdir() if not path.suffix]
    except (OSError, ConfigurationError):
        return []
    ours = [note for note in notes if note is not None and note.database == database and _alive(note.process)]
    return sorted(ours, key=lambda note: note.server)


def _read(path: Path) -> Note | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except (OSError, msgspec.MsgspecError):
        return None


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
