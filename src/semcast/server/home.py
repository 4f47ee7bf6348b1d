"""What a server remembers in its folder of how it was started: the next start needs nothing else."""

import os
from pathlib import Path

import msgspec

from semcast.group.errors import ConfigurationError

_FILE = "server.json"
_LARGEST = 1 << 16


class Home(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server's place among the others."""

    database: str
    server: str
    founders: tuple[str, ...] = ()
    """All that founded the database; none for one that was let in later."""


def settled(folder: Path, database: str, server: str, founders: tuple[str, ...], *, joins: bool) -> Home:
    """What a folder says, or what the command says where the folder is new.

    Args:
        folder: of the server.
        database: its name.
        server: as the command says; empty for what the folder says.
        founders: the same.
        joins: whether the server is to be let in by others.

    Raises:
        ConfigurationError: both say something, and not the same; or neither does.
    """
    kept = _read(folder / _FILE)
    if kept is None:
        if not founders and not joins:
            raise ConfigurationError(
                f"{folder} is new: name all servers that found the database (--with a,b,c), or one to join"
            )
        return Home(database, server, founders)
    for what, said, known in (
        ("database", database, kept.database),
        ("server", server or kept.server, kept.server),
    ):
        if said != known:
            raise ConfigurationError(f"{folder} belongs to the {what} {known!r}, not to {said!r}")
    if founders and founders != kept.founders:
        raise ConfigurationError(
            f"{folder} was founded with {', '.join(kept.founders) or 'nobody'}, "
            f"not with {', '.join(founders)}"
        )
    return kept


def known(folder: Path) -> Home:
    """What a folder says.

    Raises:
        ConfigurationError: it is not the folder of a server.
    """
    kept = _read(folder / _FILE)
    if kept is None:
        raise ConfigurationError(f"{folder}: this is not the folder of a server (there is no {_FILE})")
    return kept


def keep(folder: Path, home: Home) -> None:
    """Write it down, for the next start."""
    part = folder / f"{_FILE}.part"
    with part.open("wb") as file:
        file.write(msgspec.json.encode(home))
        file.flush()
        os.fsync(file.fileno())
    part.rename(folder / _FILE)


def _read(path: Path) -> Home | None:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_LARGEST), type=Home)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"{path}: not written by this program: {error}") from error
