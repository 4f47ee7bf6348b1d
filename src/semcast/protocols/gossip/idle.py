"""Heartbeats of idle senders, by hash (5.1).

A sender that goes idle says so once, by multicast; afterwards members compare hashes of all they know. A
receiver cannot know that a sender is idle before it said so, hence a mark for each that did, which later data
clears. Senders of which nothing is known count as idle with 0: they are not in the hash at all.

Deviation: the hash is salted with the gossiper and its round. The paper's "collision-free" hash could hide
a difference for as long as both are idle; here a collision lasts one round.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from semcast.core.ids import MemberId
from semcast.protocols.gossip.frames import Entry


class IdleMarks:
    """What idle senders said last."""

    def __init__(self) -> None:
        self._marks: dict[MemberId, int] = {}

    def mark(self, stream: MemberId, seq: int) -> None:
        """Its sender is idle with this number."""
        if seq > self._marks.get(stream, 0):
            self._marks[stream] = seq

    def data(self, stream: MemberId, seq: int) -> None:
        """Its sender sent this: if that is news, it is not idle."""
        if seq > self._marks.get(stream, seq):
            del self._marks[stream]

    def forget(self, stream: MemberId) -> None:
        """The stream is over: everybody hears that from a logger."""
        self._marks.pop(stream, None)

    def hash(self, gossiper: MemberId, number: int) -> bytes | None:
        """Of all marks, as the gossiper of a round would have it; None without any."""
        return salted(self._marks, gossiper, number) if self._marks else None

    def entries(self) -> Iterable[Entry]:
        """All marks."""
        return sorted(self._marks.items())


def salted(marks: Mapping[MemberId, int], gossiper: MemberId, number: int) -> bytes:
    """64 bits of a hash of marks, different for every gossiper and round."""
    digest = blake2b(digest_size=8, salt=salt_of(gossiper, number))
    for stream, seq in sorted(marks.items()):
        digest.update(f"{stream.name}\0{stream.incarnation}\0{seq}\n".encode())
    return digest.digest()


def salt_of(gossiper: MemberId, number: int) -> bytes:
    """What makes a hash of a gossiper and a round differ from all others."""
    return blake2b(f"{gossiper}/{number}".encode(), digest_size=16).digest()
