"""The application of a simulated member: it builds up state from what is delivered.

At quiescence the states of all correct members must be the same; that is checked from the digests in
the history. Messages that never become obsolete are part of the state by a running hash, so that a lost,
repeated or reordered one shows.
"""

import enum
import hashlib
import zlib

import msgspec

from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.obsolescence import OperationObserver


class RecordKind(enum.IntEnum):
    """What a payload is."""

    PLAIN = 0
    UPDATE = 1
    PART = 2
    COMMIT = 3
    NOTE = 4
    """Of no state: anybody's later one may replace it."""


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A payload of the simulated workloads."""

    kind: RecordKind
    item: str
    value: int
    padding: bytes = b""


class Replica:
    """The state one sender's messages built up at one member."""

    def __init__(self) -> None:
        self._observer: OperationObserver[int] = OperationObserver()
        self._plain = b""

    def apply(self, record: Record) -> None:
        """Apply one delivered message."""
        if record.kind is RecordKind.PLAIN:
            self._plain = hashlib.blake2b(
                self._plain + record.value.to_bytes(8, "little"), digest_size=8
            ).digest()
        elif record.kind is RecordKind.COMMIT:
            self._observer.commit()
        else:
            self._observer.update(record.item, record.value)
            if record.kind is RecordKind.UPDATE:
                self._observer.commit()

    def export(self) -> tuple[bytes, dict[str, int], list[tuple[str, int]]]:
        """Everything there is to know about the state."""
        return self._plain, dict(self._observer.state), list(self._observer.queue)

    @classmethod
    def restored(cls, plain: bytes, state: dict[str, int], pending: list[tuple[str, int]]) -> "Replica":
        """The replica that exported this."""
        replica = cls()
        replica._plain = plain
        replica._observer.state.update(state)
        replica._observer.queue.extend(pending)
        return replica

    def digest(self) -> str:
        """A short hash of the whole state."""
        state = repr(sorted(self._observer.state.items())).encode()
        return hashlib.blake2b(self._plain + state, digest_size=8).hexdigest()


class Replicas:
    """The states at one member, by sender."""

    def __init__(self) -> None:
        self._by_sender: dict[MemberId, Replica] = {}
        self._decode = msgspec.msgpack.Decoder(Record).decode

    def apply(self, batch: Batch) -> None:
        """Apply what was delivered."""
        for payload in batch.payloads:
            try:
                record = self._decode(payload)
            except msgspec.DecodeError:
                record = Record(
                    RecordKind.PLAIN, "", zlib.crc32(payload)
                )  # a broken protocol shows in the state
            if record.kind is not RecordKind.NOTE:  # somebody else may never get one
                self._by_sender.setdefault(batch.sender, Replica()).apply(record)

    def export(self) -> bytes:
        """The whole state, to be handed over."""
        return msgspec.msgpack.encode(
            [(sender, self._by_sender[sender].export()) for sender in sorted(self._by_sender)]
        )

    def restore(self, state: bytes) -> None:
        """Take over a state."""
        exported = msgspec.msgpack.decode(
            state, type=list[tuple[MemberId, tuple[bytes, dict[str, int], list[tuple[str, int]]]]]
        )
        self._by_sender = {sender: Replica.restored(*parts) for sender, parts in exported}

    def digests(self) -> list[tuple[MemberId, str]]:
        """Sender and digest, in order of senders."""
        return [(sender, self._by_sender[sender].digest()) for sender in sorted(self._by_sender)]
