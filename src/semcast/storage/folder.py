"""The folder of one member: who may use it now, and which incarnations it has seen."""

import fcntl
import os
from pathlib import Path
from urllib.parse import quote

import msgspec

from semcast.storage.errors import StorageError, failed

_LOCK = "lock"
OWNER = "member.json"
_BESIDE = ".logs"
RESERVED = 1000
"""Incarnations that are set aside at a time, so that a member may come back without waiting for its disk."""


class Owner(msgspec.Struct, frozen=True):
    """Whose records these are."""

    group: str
    name: str
    incarnation: int
    """None above it was ever used."""


class MemberFolder:
    """Held by one process at a time, from here to `close`.

    Args:
        data: folder of all members of this host.
        group: the name of the group.
        name: the member's.
    """

    def __init__(self, data: Path, group: str, name: str) -> None:
        self.path = data / _quoted(group) / _quoted(name)
        self._group, self._name = group, name
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / _LOCK).open("a+", encoding="ascii")
        except OSError as error:
            raise failed(self.path, error) from error
        try:
            self._hold()
            self._known = self._read()
        except OSError as error:
            self._lock.close()
            raise failed(self.path / _LOCK, error) from error
        except BaseException:
            self._lock.close()
            raise

    def _hold(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.seek(0)
            pid = self._lock.read().strip() or "?"
            raise StorageError(
                f"{self.path} is in use by process {pid}: two members cannot share a folder"
            ) from None
        self._lock.truncate(0)
        self._lock.write(f"{os.getpid()}\n")
        self._lock.flush()

    def _read(self) -> Owner | None:
        path = self.path / OWNER
        if not path.exists():
            return None
        owner = owner_of(path)
        if (owner.group, owner.name) != (self._group, self._name):
            raise StorageError(f"{path}: these are the records of {owner.name} in {owner.group}")
        return owner

    def incarnation(self, now: int) -> int:
        """A new one, at least `now` and greater than any that was used here. It is on the disk already."""
        chosen = now if self._known is None else max(now, self._known.incarnation + 1)
        self.reserve(chosen + RESERVED)
        return chosen

    def reserve(self, upto: int) -> None:
        """Incarnations up to this one may be used from now on, and never again after a restart."""
        owner = Owner(self._group, self._name, upto)
        path = self.path / OWNER
        fresh = path.with_suffix(".new")
        try:
            with fresh.open("wb") as file:
                file.write(msgspec.json.encode(owner))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
            sync_folder(self.path)
        except OSError as error:
            raise failed(path, error) from error
        self._known = owner

    def beside(self, name: str) -> Path:
        """A folder for another log in it."""
        path = self.path / f"{_quoted(name)}{_BESIDE}"
        try:
            path.mkdir(exist_ok=True)
            sync_folder(self.path)
        except OSError as error:
            raise failed(path, error) from error
        return path

    def close(self) -> None:
        """Another process may use it."""
        self._lock.close()


def owner_of(path: Path) -> Owner:
    """Whose records are beside this file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Owner)
    except (OSError, msgspec.MsgspecError) as error:
        raise StorageError(f"{path}: {error}") from error


def sync_folder(path: Path) -> None:
    """Make sure that files that were made, renamed or deleted there stay so."""
    fileno = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fileno)
    finally:
        os.close(fileno)


def _quoted(name: str) -> str:
    """A name that is one folder on any file system, whatever is in it.

    >>> _quoted("a/b"), _quoted("..")
    ('a%2Fb', '%2E%2E')
    """
    return quote(name, safe="").replace(".", "%2E")
