"""Who may do what: bearer tokens, each with a role.

The file has a line for each token, `ROLE TOKEN`; what follows `#` is a comment. It is read again when it
changes, so tokens come and go without a restart.
"""

import enum
import hashlib
import hmac
import stat
from pathlib import Path

_LARGEST = 1 << 16
_SHORTEST = 16
_LONGEST = 256


class TokenFileError(Exception):
    """A file that has no tokens, or that others can read; says what to do, never what is in it."""


class Role(enum.IntEnum):
    """What a token allows; each role may do all that the ones before it may."""

    READ = 1
    WRITE = 2
    ADMIN = 3


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class Tokens:
    """The tokens of a server.

    Args:
        path: the file; None for a server that everybody may use.

    Raises:
        TokenFileError: the file cannot be used.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._roles: dict[bytes, Role] = {}
        self._seen: tuple[int, ...] = ()
        self.problem = ""
        """Why the file as it is now is not used; the tokens from before stay in force."""
        if path is not None:
            self._roles = _read(path)
            self._seen = _signature(path)

    @property
    def wanted(self) -> bool:
        """Whether a token is needed."""
        return self._path is not None

    def role(self, token: str | None) -> Role | None:
        """What this token allows; None where it is nobody's."""
        if self._path is None:
            return Role.ADMIN
        if token is None:
            return None
        asked, found = _digest(token), None
        for known, role in self._roles.items():  # all of them: time tells nothing
            if hmac.compare_digest(known, asked):
                found = role
        return found

    def refresh(self) -> None:
        """Look whether the file has changed."""
        if self._path is None:
            return
        signature = _signature(self._path)
        if signature == self._seen:
            return
        self._seen = signature
        try:
            self._roles = _read(self._path)
        except TokenFileError as error:
            self.problem = str(error)
        else:
            self.problem = ""


def _signature(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode


def _read(path: Path) -> dict[bytes, Role]:
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise TokenFileError(f"{path}: others can read it; chmod 600")
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise TokenFileError(f"{path}: more than {_LARGEST} bytes")
        text = data.decode()
    except OSError as error:
        raise TokenFileError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TokenFileError(f"{path}: is not text") from error
    roles: dict[bytes, Role] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            token, role = _entry(f"{path}: line {number}", words)
            roles[_digest(token)] = role
    if not roles:
        raise TokenFileError(f"{path}: has no token; write a line such as: read TOKEN")
    return roles


def _entry(where: str, words: list[str]) -> tuple[str, Role]:
    if len(words) != 2:
        raise TokenFileError(f"{where}: a line is a role and a token")
    if words[0].upper() not in Role.__members__:
        raise TokenFileError(f"{where}: the role is none of read, write, admin")
    if not _SHORTEST <= len(words[1]) <= _LONGEST or not words[1].isascii():
        raise TokenFileError(f"{where}: a token has {_SHORTEST} to {_LONGEST} ASCII characters")
    return words[1], Role[words[0].upper()]
