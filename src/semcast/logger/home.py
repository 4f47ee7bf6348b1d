"""The folder of a logger: one process uses it at a time, and the logger has one name, whatever its groups."""

import fcntl
import os
import socket
from pathlib import Path
from secrets import token_hex
from typing import IO

import msgspec

from semcast.group.errors import ConfigurationError
from semcast.storage.folder import sync_folder
from semcast.storage.looking import members_in

_FILE = "logger.json"
_LOCK = "logger.lock"


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose folder it is."""

    logger: str


class Home:
    """Made by `open_home`; held until `close`."""

    def __init__(self, path: Path, name: str, lock: IO[str]) -> None:
        self.path = path
        self.name = name
        """Of the logger, in all its groups."""
        self._lock = lock

    def groups(self) -> list[str]:
        """Those that have a log here."""
        return sorted({owner.group for _, owner in members_in(self.path) if owner.name == self.name})

    def close(self) -> None:
        """Another process may use it."""
        self._lock.close()


def open_home(path: Path, name: str = "") -> Home:
    """The folder of a logger, made where there is none.

    Args:
        path: of the folder.
        name: of the logger; empty for the one that the folder knows, or a new one.

    Raises:
        ConfigurationError: another process uses it, or it belongs to another logger.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / _LOCK).open("a+", encoding="ascii")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    try:
        _hold(path, lock)
        return Home(path, _name(path, name), lock)
    except BaseException:
        lock.close()
        raise


def _hold(path: Path, lock: IO[str]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        pid = lock.read().strip() or "?"
        raise ConfigurationError(
            f"{path} is in use by the logger with process id {pid}: each logger needs a folder of its own"
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()


def _name(path: Path, name: str) -> str:
    file = path / _FILE
    try:
        known = msgspec.json.decode(file.read_bytes(), type=Owner).logger
    except FileNotFoundError:
        known = ""
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"{file}: {error}") from error
    if known and name and name != known:
        raise ConfigurationError(f"{path} belongs to the logger {known!r}, not to {name!r}")
    chosen = known or name or f"log-{socket.gethostname()[:24]}-{token_hex(2)}"
    if not known:
        _keep(path, file, Owner(chosen))
    return chosen


def _keep(path: Path, file: Path, owner: Owner) -> None:
    part = file.with_suffix(".part")
    try:
        with part.open("wb") as written:
            written.write(msgspec.json.encode(owner))
            written.flush()
            os.fsync(written.fileno())
        part.rename(file)
        sync_folder(path)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
