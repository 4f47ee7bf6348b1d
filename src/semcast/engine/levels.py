"""The levels at which a client is answered (Amir 1995, chapter 7), and what is said of others."""

from typing import Literal

from semcast.engine.errors import RequestError

UpdateLevel = Literal["strict", "queued", "timestamped", "commutative"]
EarlyLevel = Literal["queued", "timestamped", "commutative"]
ReadLevel = Literal["linear", "session", "weak", "dirty"]

STRICT, QUEUED, TIMESTAMPED, COMMUTATIVE = "strict", "queued", "timestamped", "commutative"
LINEAR, SESSION, WEAK, DIRTY = "linear", "session", "weak", "dirty"

UPDATES = (STRICT, QUEUED, TIMESTAMPED, COMMUTATIVE)
READS = (LINEAR, SESSION, WEAK, DIRTY)


def check_update(level: str) -> None:
    """Raise unless updates have this level."""
    if level not in UPDATES:
        raise RequestError(f"level {level!r}: updates are {', '.join(UPDATES)}")


def check_read(level: str) -> None:
    """Raise unless reads have this level."""
    if level not in READS:
        raise RequestError(f"level {level!r}: reads are {', '.join(READS)}")
