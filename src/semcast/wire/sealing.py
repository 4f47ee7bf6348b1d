"""Sealed datagrams: authenticated encryption of everything that a member sends.

Layout: a label, the same for all datagrams of a session (version, group, key id, 8 random bytes, start of the
session in milliseconds of the sender's wall clock), a counter, then ciphertext and tag. Label and counter are
readable, and authenticated.

Nonces never repeat: each session seals with a secret of its own, derived from the key and the label, and
counts from 0. A session begins with the process, and again with every change of key and every few minutes.
What that protects, and what it does not, is in `docs/security.md`.
"""

import hashlib
import struct
from collections.abc import Callable, Sequence

from cryptography.exceptions import InvalidTag

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.wire.datagrams import SEALED_VERSION, VERSION, Codec, Malformed
from semcast.wire.decoded import Datagram
from semcast.wire.keyring import Aead, Key, Keyring
from semcast.wire.sessions import TOLERANCE, Millis, Session, Sessions

_LABEL = struct.Struct(">B8s4s8sQ")
_COUNTER = struct.Struct(">Q")
_HEADER_BYTES = _LABEL.size + _COUNTER.size
_TAG_BYTES = 16
OVERHEAD = _HEADER_BYTES + _TAG_BYTES
"""Bytes that sealing adds to a datagram."""
_NONCE_PAD = bytes(4)
_PURPOSE = b"semcast seal 1"

RENEWAL: Millis = 10 * 60_000
"""How long a session lasts: after that, members that were never met before can tell that it is alive."""

Entropy = Callable[[int], bytes]
"""Gives so many bytes that nobody can guess: `os.urandom`."""


class Sealer:
    """Seals what one member of a group sends, and opens what the others sealed.

    Args:
        keyring: its keys.
        group: fingerprint of the group.
        name: of this member.
        entropy: for the names of sessions.
        now: the wall clock.
    """

    def __init__(self, keyring: Keyring, group: bytes, name: str, entropy: Entropy, now: Millis) -> None:
        self.keyring = keyring
        self.sessions = Sessions(now)
        self._group = group
        self._name = name
        self._entropy = entropy
        self._started: Millis = -1
        self._begin(now)

    def __repr__(self) -> str:
        return f"Sealer({self._name!r}, {self.keyring!r})"

    def _begin(self, now: Millis) -> None:
        """A session of our own, later than all before it even if the clock went back."""
        if self._started - now > TOLERANCE:
            self._started = now  # began in a future that nobody believes in
        else:
            self._started = max(now, self._started + 1)
        self._began = now
        key = self.keyring.sealing
        self._label = _LABEL.pack(SEALED_VERSION, self._group, key.wire_id, self._entropy(8), self._started)
        self._aead = derive(key, self._label)
        self._counter = 0
        # We hear ourselves at the meeting point; and nobody shall replay to us what we said in a former life.
        self.sessions.admit(self._name, Session(self._label, self._started, key, self._aead))

    def tend(self, now: Millis) -> None:
        """Once in a while: tell the time, and begin a new session when it is due."""
        self.sessions.tend(now)
        if not 0 <= now - self._began < RENEWAL:
            self._begin(now)

    def rotate(self, keyring: Keyring) -> None:
        """Go on with other keys: seal with the one in use, refuse those that are gone."""
        self.sessions.obey(keyring)
        new_key = keyring.sealing != self.keyring.sealing
        self.keyring = keyring
        if new_key:
            self._begin(self.sessions.now)

    def seal(self, data: bytes) -> bytes:
        """A datagram, sealed."""
        count = _COUNTER.pack(self._counter)
        self._counter += 1
        header = self._label + count
        return header + self._aead.encrypt(_NONCE_PAD + count, data, header)

    def session_of(self, data: bytes) -> Session | Malformed:
        """The session that a datagram claims to be of, or why there can be none. Changes nothing."""
        session = self.sessions.find(data[: _LABEL.size])
        if session is not None:
            return Malformed.KEY if session.barred else session
        if len(data) < OVERHEAD:
            return Malformed.TRUNCATED
        if data[0] != SEALED_VERSION:
            return Malformed.UNSEALED if data[0] == VERSION else Malformed.VERSION
        _, group, wire_id, _, started = _LABEL.unpack_from(data)
        if group != self._group:
            return Malformed.GROUP
        key = self.keyring.find(wire_id)
        if key is None:
            return Malformed.KEY
        if not self.sessions.plausible(started):
            return Malformed.STALE
        label = data[: _LABEL.size]
        return Session(label, started, key, derive(key, label))


class SealedCodec:
    """A codec whose datagrams are sealed. Never raises on what it is given.

    Args:
        codec: of the group; its limit leaves room for `OVERHEAD` more bytes.
        sealer: of the member.
    """

    def __init__(self, codec: Codec, sealer: Sealer) -> None:
        self.sealer = sealer
        self._codec = codec

    @property
    def group(self) -> bytes:
        """The eight bytes that name the group in its datagrams."""
        return self._codec.group

    @property
    def authentic(self) -> bool:
        """Only holders of the key can."""
        return True

    def encode(self, source: MemberId, frames: Sequence[Frame]) -> list[bytes]:
        """Pack frames, in order, into as few sealed datagrams as the limit allows."""
        seal, datagrams = self.sealer.seal, self._codec.encode(source, frames)
        for at, data in enumerate(datagrams):
            datagrams[at] = seal(data)  # in place: the memory of each serves the next
        return datagrams

    def decode(self, data: bytes) -> Datagram | Malformed:
        """An authentic datagram that never came before, or why it is none."""
        session = self.sealer.session_of(data)
        if isinstance(session, Malformed):
            return session
        if len(data) < OVERHEAD:
            return Malformed.TRUNCATED
        header = data[:_HEADER_BYTES]
        count = header[_LABEL.size :]
        counter = int.from_bytes(count, "big")
        if not session.window.fresh(counter):
            return Malformed.REPLAYED
        try:
            opened = session.aead.decrypt(_NONCE_PAD + count, memoryview(data)[_HEADER_BYTES:], header)
        except InvalidTag:
            return Malformed.FORGED
        sessions = self.sealer.sessions
        datagram = self._codec.decode(opened)
        if sessions.find(session.label) is not session:
            if isinstance(datagram, Malformed):
                return datagram
            if not sessions.admit(datagram.source.name, session):
                return Malformed.STALE
        session.window.mark(counter)
        return datagram


def derive(key: Key, label: bytes) -> Aead:
    """What seals one session: nobody else's, and never again."""
    digest = hashlib.blake2b(
        label + key.cipher.value.encode(), key=key.secret, person=_PURPOSE, digest_size=32
    ).digest()
    return key.cipher.made_of(digest)
