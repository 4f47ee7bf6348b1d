"""The state of chaos programs: what every sender said last about each item, and all it said about none.

Messages about nothing are never obsolete, so every replica has all of them; of the others the latest.
"""

import hashlib
import json
from zlib import crc32

import semcast


def letter(kind: bytes, item: str, rest: bytes) -> bytes:
    """A message that says itself what it is about."""
    return kind + item.encode() + b"|" + rest


def item_of(payload: bytes) -> str:
    """What a message is about; nothing for one that is never obsolete.

    >>> item_of(letter(b"?", "price", b"1.5"))
    'price'
    """
    return payload[1:].partition(b"|")[0].decode()


class SharedLedger:
    """A state that can be handed over, and compared."""

    def __init__(self) -> None:
        self._plain: dict[str, tuple[int, int]] = {}
        self._items: dict[str, int] = {}
        self.restored = 0
        """How often it was given the state of others."""

    def apply(self, message: semcast.Message) -> None:
        """The next message."""
        sender, item = str(message.sender), item_of(message.payload)
        if item:
            self._items[f"{sender} {item}"] = crc32(message.payload)
        else:
            count, checksum = self._plain.get(sender, (0, 0))
            self._plain[sender] = count + 1, crc32(message.payload, checksum)

    def export(self) -> bytes:
        """For who joins."""
        return json.dumps([self._plain, self._items], sort_keys=True).encode()

    def restore(self, state: bytes) -> None:
        """Go on from the state of others."""
        plain, self._items = json.loads(state)
        self._plain = {sender: (count, checksum) for sender, (count, checksum) in plain.items()}
        self.restored += 1

    def summary(self) -> str:
        """The same wherever the state is."""
        senders, messages = len(self._plain), sum(count for count, _ in self._plain.values())
        digest = hashlib.blake2b(self.export(), digest_size=6).hexdigest()
        return f"{messages} messages of {senders} senders, {len(self._items)} items, {digest}"
