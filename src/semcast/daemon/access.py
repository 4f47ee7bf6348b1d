"""Who may connect to a daemon, and do what: a file of tokens and rules, read again on SIGHUP.

[tokens]
web = "at least sixteen characters"
anonymous = ""

[[allow]]
who = "token:web"
groups = ["chat.*"]
may = ["join", "send"]
"""

import grp
import hmac
import os
import pwd
import socket
import stat
import struct
import tomllib
from contextlib import suppress
from pathlib import Path

import msgspec

from semcast.group.errors import ConfigurationError
from semcast.protocols.clients.permissions import EVERYTHING, Identity, Permissions, Rule

_SHORTEST = 16


class AccessFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says."""

    tokens: dict[str, str] = {}
    """By name; an empty one is for whoever brings none, on this host only."""
    allow: tuple[Rule, ...] = ()


class Access:
    """The rules in force.

    Args:
        path: the file; None for a daemon that only local users reach, who may do everything.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.file = AccessFile()
        self.permissions = Permissions(EVERYTHING)
        self.problem = ""
        """Why the file as it is now is not used; what it said before stays in force."""
        if path is not None:
            self._use(_read(path))

    def _use(self, file: AccessFile) -> None:
        self.file = file
        self.permissions = Permissions(file.allow or EVERYTHING)

    def reload(self) -> None:
        """Read the file again."""
        if self._path is None:
            return
        try:
            self._use(_read(self._path))
            self.problem = ""
        except ConfigurationError as error:
            self.problem = str(error)

    @property
    def has_tokens(self) -> bool:
        """Whether anybody can come over TCP."""
        return bool(self.file.tokens)

    @property
    def anonymous(self) -> bool:
        """Whether somebody without a token can."""
        return "" in self.file.tokens.values()

    def of_token(self, token: str) -> Identity | None:
        """Who has this token."""
        found = None
        for name, known in self.file.tokens.items():  # all of them: time tells nothing
            if hmac.compare_digest(known.encode(), token.encode()):
                found = name
        return None if found is None else Identity((f"token:{found}",), resumes=True)


def of_peer(sock: socket.socket) -> Identity:
    """Who is at the other end of a Unix socket."""
    size = struct.calcsize("3i")
    _, uid, gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    names = [f"uid:{uid}", f"gid:{gid}", "local"]
    with suppress(KeyError):
        names.insert(0, f"user:{pwd.getpwuid(uid).pw_name}")
    with suppress(KeyError):
        names.append(f"group:{grp.getgrgid(gid).gr_name}")
    return Identity(tuple(names), admin=uid in (0, os.getuid()))


def _read(path: Path) -> AccessFile:
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigurationError(f"{path}: others can read the tokens in it: chmod 600 {path}")
        file = msgspec.convert(tomllib.loads(path.read_text(encoding="utf8")), AccessFile)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    for name, token in file.tokens.items():
        if token and len(token) < _SHORTEST:
            raise ConfigurationError(f"{path}: token {name!r}: at least {_SHORTEST} characters")
    return file
