"""The analytical model (Pereira 2002, sections 5.1.1 and 5.4.3; Pereira 2000, sections 4.2 and 4.5).

One sender at `ts` messages a second at most, a fast receiver, and a slow one that consumes `tr` a second
from a buffer of N. Under congestion the buffer is taken to hold the last N messages, so that a share
R_N, the purge ratio, never has to be consumed.
"""

from dataclasses import dataclass
from math import inf

from semcast.models.distance import Distance


@dataclass(frozen=True, slots=True)
class Throughput:
    """Messages a second: `sent` is T, at the sender and the fast receiver; `consumed` is T'."""

    sent: float
    consumed: float


def throughput(ts: float, tr: float, purge_ratio: float) -> Throughput:
    """T = min(Ts, Tr / (1 - R_N)) and T' = min(T, Tr).

    >>> throughput(ts=100, tr=50, purge_ratio=0.25)
    Throughput(sent=66.66666666666667, consumed=50)
    """
    sent = min(ts, _divided(tr, 1 - purge_ratio))
    return Throughput(sent, min(sent, tr))


def tolerated_rate(ts: float, purge_ratio: float, impact: float = 0.0) -> float:
    """The lowest receiver rate at which the sender loses no more than the share `impact` of `ts`."""
    return ts * (1 - impact) * (1 - purge_ratio)


def tolerated_delay(ts: float, purge_ratio: float) -> float:
    """The longest mean time, in seconds, that a receiver may spend on a message with T still Ts."""
    return _divided(1, tolerated_rate(ts, purge_ratio))


def tolerated_stop(ts: float, purge_ratio: float, n: int, impact: float = 0.05) -> float:
    """How long, in seconds, a receiver may stop altogether (5.4.3).

    The estimate of the paper: a buffer of `n` fills at the rate of messages that are not purged, which
    it reads off the lowest rate tolerated with less than 5 % of impact.
    """
    return _divided(n, tolerated_rate(ts, purge_ratio, impact))


def smallest_buffer(distance: Distance, purge_ratio: float, most: int = 1 << 20) -> int | None:
    """The smallest N with R_N of at least `purge_ratio`; None if `most` is not enough."""
    if distance.purge_ratio(most) < purge_ratio:
        return None
    low, high = 0, 1
    while distance.purge_ratio(high) < purge_ratio:
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if distance.purge_ratio(middle) < purge_ratio:
            low = middle
        else:
            high = middle
    return high


def _divided(value: float, by: float) -> float:
    return value / by if by > 0 else inf
