"""Sizes and checksums of payloads, for who records them.

At 1 KiB they are most of what a recording costs, so that they are worked out once where they can be.
"""

from collections import deque
from collections.abc import Sequence

from semcast.history.crc import crc32

_KEPT = 128
"""Runs of own messages whose sums are kept until they are delivered, at most."""


def summed(payloads: Sequence[bytes], crc: int = 0) -> tuple[int, int]:
    """The size of payloads, and the CRC of what came before and of them, one behind the other.

    >>> summed([b"semantic ", b"multicast"]) == (18, crc32(b"semantic multicast"))
    True
    """
    data = b"".join(payloads)  # a call of crc32 for each of 1 KiB takes half as much again
    return len(data), crc32(data, crc)


class OwnSums:
    """The sums of what a member sent, until it is delivered to itself: the same objects come back then.

    >>> sums = OwnSums()
    >>> sums.sent(7, [b"semantic ", b"multicast"])[0]
    18
    >>> sums.delivered(7, [b"semantic ", b"multicast"]) == summed([b"semantic ", b"multicast"])
    True
    """

    def __init__(self) -> None:
        self._runs: deque[tuple[int, list[bytes], tuple[int, int]]] = deque(maxlen=_KEPT)

    def __len__(self) -> int:
        return len(self._runs)

    def sent(self, first: int, payloads: list[bytes]) -> tuple[int, int]:
        """The sums of a run that leaves."""
        sums = summed(payloads)
        self._runs.append((first, payloads[:], sums))
        return sums

    def delivered(self, first: int, payloads: list[bytes]) -> tuple[int, int]:
        """The sums of a run that is delivered; runs before it are forgotten."""
        runs = self._runs
        while runs and runs[0][0] < first:
            runs.popleft()
        if runs and runs[0][0] == first and runs[0][1] == payloads:  # compares objects before their bytes
            return runs.popleft()[2]
        return summed(payloads)
