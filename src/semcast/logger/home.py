"""The folder of a logger: one process uses it at a time, and the logger has one name, whatever its groups."""

import fcntl
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import IO

import msgspec

from semcast.group.errors import ConfigurationError
from semcast.logger.spare import keep_spare
from semcast.storage.errors import FullError, failed
from semcast.storage.folder import sync_folder
from semcast.storage.looking import members_in

_FILE = "logger.json"
_LOCK = "logger.lock"


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose folder it is, and with which others it logs."""

    logger: str
    loggers: tuple[str, ...] = ()
    """All loggers of its groups, itself among them, where it is not the only one."""
    log_acks: int | None = None
    """How many of them must have a message, where that was said."""


class Home:
    """Made by `open_home`; held until `close`."""

    def __init__(self, path: Path, former: Owner, owner: Owner, lock: IO[str]) -> None:
        self.path = path
        self._former = former
        self._owner = owner
        self.name = owner.logger
        """Of the logger, in all its groups."""
        self.loggers = owner.loggers
        self.log_acks = owner.log_acks
        self._lock = lock

    def groups(self) -> list[str]:
        """Those that have a log here."""
        return sorted({owner.group for _, owner in members_in(self.path) if owner.name == self.name})

    def keep(self) -> None:
        """Later starts find the names and `log_acks` here.

        Only what makes sense is kept: else one mistake in a command would refuse every later one.
        Raises ConfigurationError or FullError where it cannot be written.
        """
        if self._owner != self._former:
            _keep(self.path, self.path / _FILE, self._owner)
            self._former = self._owner

    def close(self) -> None:
        """Another process may use it."""
        self._lock.close()


def open_home(path: Path, name: str = "", loggers: Sequence[str] = (), log_acks: int | None = None) -> Home:
    """The folder of a logger, made where there is none. `Home.keep` writes down what was given.

    Args:
        path: of the folder.
        name: of the logger; empty for the one that the folder knows, or a new one.
        loggers: all that log the same groups; empty for those that the folder knows. One that is started
            again without this would take itself for the only one, and collect what others need.
        log_acks: how many of them must have a message; None for what the folder knows.

    Raises:
        ConfigurationError: another process uses it, or it belongs to another logger.
        FullError: there is no room on its disk.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / _LOCK).open("a+", encoding="ascii")
    except OSError as error:
        raise _failed(path, error) from error
    try:
        _hold(path, lock)
        former = _former(path, name)
        keep_spare(path)
        owner = Owner(
            former.logger or name or f"log-{socket.gethostname()[:24]}-{token_hex(2)}",
            tuple(loggers) or former.loggers,
            former.log_acks if log_acks is None else log_acks,
        )
        return Home(path, former, owner, lock)
    except OSError as error:
        lock.close()
        raise _failed(path / _LOCK, error) from error
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


def _former(path: Path, name: str) -> Owner:
    """What earlier starts have kept."""
    file = path / _FILE
    try:
        former = msgspec.json.decode(file.read_bytes(), type=Owner)
    except FileNotFoundError:
        return Owner("")
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"{file}: {error}") from error
    if name and former.logger and name != former.logger:
        raise ConfigurationError(f"{path} belongs to the logger {former.logger!r}, not to {name!r}")
    return former


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
        raise _failed(file, error) from error


def _failed(path: Path, error: OSError) -> Exception:
    """The folder cannot be used as it is; or not now, because the disk is full."""
    found = failed(path, error)
    return found if isinstance(found, FullError) else ConfigurationError(str(found))
