"""The file of a keyring: read with care, written whole, and watched while a group runs."""

import os
import re
import stat
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes, token_hex

import msgspec

from semcast.wire.keyring import SECRET_BYTES, Cipher, Key, Keyring, KeyringError, keyring_from, keyring_text
from semcast.wire.sealing import Sealer

_LARGEST = 1 << 16
_PLACE = re.compile(r"line \d+")


class KeyFileError(Exception):
    """A file that is no keyring, or that others can read; says what to do, never what is in it."""


class SealingStatistics(msgspec.Struct):
    """What a member knows of its keys."""

    key: str
    """The id of the key that seals."""
    cipher: str
    keys: int
    """How many open."""
    sessions: int = 0
    """Of all members that were heard, its own among them."""
    reloads: int = 0
    problem: str = ""
    """Why the file as it is now is not used; the keys from before stay in force."""


class KeyFile:
    """Keeps a sealer's keys as the file says, while its group runs.

    Args:
        path: the file.
        sealer: made of what `load_keyring` found there.
        clock: wall-clock time in nanoseconds.
    """

    def __init__(self, path: Path, sealer: Sealer, clock: Callable[[], int] = time.time_ns) -> None:
        self._path = path
        self._sealer = sealer
        self._clock = clock
        self._seen: tuple[int, ...] | None = ()  # unlike any: the file may have changed since it was loaded
        self._reloads = 0
        self._problem = ""

    def tend(self) -> None:
        """Once a second: what time is it, and did the file change?"""
        self._sealer.tend(self._clock() // 1_000_000)
        signature = _signature(self._path)
        if signature == self._seen:
            return
        self._seen = signature
        try:
            keyring = load_keyring(self._path)
        except KeyFileError as error:
            self._problem = str(error)
            return
        self._problem = ""
        if keyring != self._sealer.keyring:
            self._sealer.rotate(keyring)
            self._reloads += 1

    def stats(self) -> SealingStatistics:
        """A snapshot. May be called from another thread."""
        sealing = self._sealer.keyring.sealing
        return SealingStatistics(
            key=sealing.id,
            cipher=sealing.cipher.value,
            keys=len(self._sealer.keyring.keys),
            sessions=len(self._sealer.sessions),
            reloads=self._reloads,
            problem=self._problem,
        )


def _signature(path: Path) -> tuple[int, ...] | None:
    """Differs when the file does. The time of change is among it: `chmod` mends a file, too."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def load_keyring(path: Path) -> Keyring:
    """Read a keyring that nobody else can read."""
    try:
        # A pipe in its place must not make us wait.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}; `semcast keygen {path}` makes a keyring") from error
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise KeyFileError(f"{path}: not a file")
        mode = stat.S_IMODE(found.st_mode)
        if mode & 0o077:
            raise KeyFileError(f"{path}: others may use it (mode {mode:04o}); run: chmod 600 {path}")
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise KeyFileError(f"{path}: larger than any keyring")
    return _parse(path, content)


def _parse(path: Path, content: bytes) -> Keyring:
    try:
        document = tomllib.loads(content.decode("utf8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        place = _PLACE.search(str(error))  # and no more of it: the message may quote the file
        raise KeyFileError(f"{path}: not a keyring{', ' + place[0] if place else ''}") from None
    try:
        return keyring_from(document)
    except KeyringError as error:
        raise KeyFileError(f"{path}: {error}") from None


def save_keyring(path: Path, keyring: Keyring, *, replace: bool) -> None:
    """Write a keyring so that nobody else can read it, and nobody ever sees half of it."""
    target = path.resolve()  # where a link leads
    draft = target.with_name(f".{target.name}.{token_hex(4)}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf8") as file:
                file.write(keyring_text(keyring))
                file.flush()
                os.fsync(file.fileno())
            if replace:
                os.replace(draft, target)
            else:
                os.link(draft, target)  # unlike a rename, fails if there is one already
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
    except FileExistsError:
        raise KeyFileError(f"{path}: exists already") from None
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}") from error


def new_key(cipher: Cipher | None = None) -> Key:
    """A key that nobody has seen, of the cipher that is faster here unless one is named."""
    return Key(token_hex(4), cipher or faster_cipher(), token_bytes(SECRET_BYTES))


def faster_cipher() -> Cipher:
    """Seal some large and small datagrams with each and see."""

    def cost(cipher: Cipher) -> int:
        aead, nonce = cipher.made_of(bytes(SECRET_BYTES)), bytes(12)
        taken: list[int] = []
        for _ in range(20):  # the best of them: others use this machine, too
            start = time.perf_counter_ns()
            for size in (1400, 1400, 1400, 16_000):
                aead.encrypt(nonce, bytes(size), None)
            taken.append(time.perf_counter_ns() - start)
        return min(taken)

    return min(Cipher, key=cost)
