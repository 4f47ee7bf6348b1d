"""Keys of a group: one to seal with, all of them to open with."""

import base64
import binascii
import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

SECRET_BYTES = 32
MAX_KEYS = 64
_ID = re.compile(r"[0-9a-f]{8}")

Aead = AESGCM | ChaCha20Poly1305


class KeyringError(ValueError):
    """A keyring that cannot be used; says what is wrong with it, never what is in it."""


class Cipher(enum.Enum):
    """How a key seals. Every member understands both."""

    AES_256_GCM = "aes-256-gcm"
    CHACHA20_POLY1305 = "chacha20-poly1305"

    def made_of(self, secret: bytes) -> Aead:
        """The cipher with a secret in it."""
        return AESGCM(secret) if self is Cipher.AES_256_GCM else ChaCha20Poly1305(secret)


@dataclass(frozen=True, slots=True)
class Key:
    """A secret that the members of a group share.

    >>> Key("0badcafe", Cipher.AES_256_GCM, bytes(32))
    Key(id='0badcafe', cipher=<Cipher.AES_256_GCM: 'aes-256-gcm'>)
    """

    id: str
    """Eight hexadecimal digits: public, it travels with every datagram."""
    cipher: Cipher
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if _ID.fullmatch(self.id) is None:
            raise KeyringError("the id of a key is eight hexadecimal digits")
        if len(self.secret) != SECRET_BYTES:
            raise KeyringError(f"key {self.id}: the secret has {len(self.secret)} bytes, not {SECRET_BYTES}")

    @property
    def wire_id(self) -> bytes:
        """The id as it travels."""
        return bytes.fromhex(self.id)


class Keyring:
    """Several keys, one of which is in use.

    Args:
        keys: all that open.
        use: the id of the one that seals.
    """

    def __init__(self, keys: Sequence[Key], use: str) -> None:
        if not 0 < len(keys) <= MAX_KEYS:
            raise KeyringError(f"there are {len(keys)} keys: between 1 and {MAX_KEYS} are allowed")
        self.keys = tuple(keys)
        self._by_wire_id = {key.wire_id: key for key in keys}
        if len(self._by_wire_id) < len(keys):
            raise KeyringError("two keys have the same id")
        found = [key for key in keys if key.id == use]
        if not found:
            raise KeyringError(f"`use` names none of the keys: {', '.join(key.id for key in keys)}")
        self.sealing = found[0]
        """The key that seals."""

    def __repr__(self) -> str:
        return f"Keyring({[key.id for key in self.keys]}, use={self.sealing.id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keyring) and self.keys == other.keys and self.sealing == other.sealing

    def __hash__(self) -> int:
        return hash((self.keys, self.sealing.id))

    def find(self, wire_id: bytes) -> Key | None:
        """The key that a datagram names."""
        return self._by_wire_id.get(wire_id)

    def adding(self, key: Key) -> "Keyring":
        """With one key more, which is not in use yet."""
        return Keyring((*self.keys, key), self.sealing.id)

    def using(self, key_id: str) -> "Keyring":
        """With another key in use."""
        return Keyring(self.keys, key_id)

    def removing(self, key_id: str) -> "Keyring":
        """Without a key, which must not be in use."""
        if key_id == self.sealing.id:
            raise KeyringError(f"key {key_id} is in use: use another first")
        if key_id not in {key.id for key in self.keys}:
            raise KeyringError(f"there is no such key; there are {', '.join(key.id for key in self.keys)}")
        return Keyring([key for key in self.keys if key.id != key_id], self.sealing.id)


def keyring_from(document: Mapping[str, object]) -> Keyring:
    """A keyring out of what a file says: `use`, and `keys` with `id`, `cipher` and `secret` each.

    What is in the document never appears in an error: any of it might be a secret in the wrong place.
    """
    entries = document.get("keys")
    if not isinstance(entries, list):
        raise KeyringError("there are no [[keys]]")
    use = document.get("use")
    if not isinstance(use, str):
        raise KeyringError("`use` does not say which key seals")
    return Keyring([_key(at, entry) for at, entry in enumerate(entries, 1)], use)


def _key(at: int, entry: object) -> Key:
    if not isinstance(entry, dict):
        raise KeyringError(f"key {at} is not a table")
    texts: list[str] = []
    for name in ("id", "cipher", "secret"):
        text = entry.get(name)
        if not isinstance(text, str):
            raise KeyringError(f"key {at} has no {name}")
        texts.append(text)
    named, cipher, encoded = texts
    if _ID.fullmatch(named) is None:
        raise KeyringError(f"key {at}: the id is not eight hexadecimal digits")
    if cipher not in {each.value for each in Cipher}:
        raise KeyringError(f"key {named}: the cipher is none of {', '.join(each.value for each in Cipher)}")
    try:
        secret = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise KeyringError(f"key {named}: the secret is not base64") from None
    return Key(named, Cipher(cipher), secret)


def keyring_text(keyring: Keyring) -> str:
    """The file of a keyring (TOML). Holds the secrets."""
    lines = [
        "# A keyring of semcast. Whoever can read it can read the groups that use it, and speak in them.",
        "# `semcast keygen` adds keys to it and says which one seals.",
        f'use = "{keyring.sealing.id}"',
    ]
    for key in keyring.keys:
        secret = base64.b64encode(key.secret).decode("ascii")
        lines += [
            "",
            "[[keys]]",
            f'id = "{key.id}"',
            f'cipher = "{key.cipher.value}"',
            f'secret = "{secret}"',
        ]
    return "\n".join(lines) + "\n"
