"""Who may still speak: the sessions of the other members, and which of their datagrams came before.

A session is what one member seals between two renewals (see `sealing.py`). Within a session a sliding window
refuses what came before. Between sessions the time at which they began does: of each name only a session
newer than all that were known is let in, and none that began a day ago or more.
"""

from semcast.wire.keyring import Aead, Key, Keyring

Millis = int
"""Wall-clock time in integer milliseconds since 1970."""

TOLERANCE: Millis = 24 * 3_600_000
"""How far the clocks of two members may be apart."""
GRACE: Millis = 10_000
"""How long datagrams of a session may still arrive after the first of the next."""
MAX_NAMES = 4096
WINDOW = 4096
"""Datagrams of a session that may overtake each other."""
_BLOCK = 64
_BLOCKS = WINDOW // _BLOCK + 1


class Window:
    """Which of the latest counters were seen (RFC 6479: a ring of blocks, so that nothing is shifted).

    >>> window = Window()
    >>> window.mark(5), window.fresh(5), window.fresh(4)
    (None, False, True)
    """

    __slots__ = ("_blocks", "highest")

    def __init__(self) -> None:
        self.highest = -1
        self._blocks = [0] * _BLOCKS

    def fresh(self, counter: int) -> bool:
        """Whether this was not seen before, and is not so old that nobody knows."""
        if counter > self.highest:
            return True
        if counter <= self.highest - WINDOW:
            return False
        return not self._blocks[counter // _BLOCK % _BLOCKS] >> counter % _BLOCK & 1

    def mark(self, counter: int) -> None:
        """It is seen now."""
        block = counter // _BLOCK
        if counter > self.highest:
            newest = self.highest // _BLOCK
            for passed in range(max(newest + 1, block - _BLOCKS + 1), block + 1):
                self._blocks[passed % _BLOCKS] = 0
            self.highest = counter
        self._blocks[block % _BLOCKS] |= 1 << counter % _BLOCK


class Session:
    """A session that was, or may be, let in.

    Args:
        label: what its datagrams begin with.
        started: when it began, by the clock of its member.
        key: what it was made of.
        aead: opens its datagrams.
    """

    __slots__ = ("aead", "barred", "key", "label", "started", "window")

    def __init__(self, label: bytes, started: Millis, key: Key, aead: Aead) -> None:
        self.label = label
        self.started = started
        self.key = key
        self.aead = aead
        self.window = Window()
        self.barred = False
        """Whether its key is gone."""


class _Speaker:
    """What is known of a name."""

    __slots__ = ("current", "previous", "since")

    def __init__(self, current: Session) -> None:
        self.current = current
        self.previous: Session | None = None
        self.since: Millis = 0


class Sessions:
    """All sessions that may speak. Bounded; only authentic datagrams ever change it.

    Args:
        now: the wall clock.
    """

    def __init__(self, now: Millis) -> None:
        self.now = now
        self._known: dict[bytes, Session] = {}
        self._speakers: dict[str, _Speaker] = {}  # by the latest renewal, the oldest first
        self._floor: Millis = -1

    def __len__(self) -> int:
        return len(self._known)

    def find(self, label: bytes) -> Session | None:
        """A session that was let in."""
        return self._known.get(label)

    def plausible(self, started: Millis) -> bool:
        """Whether a session that began then may still be alive: living members renew theirs."""
        return abs(self.now - started) <= TOLERANCE

    def admit(self, name: str, session: Session) -> bool:
        """Let a new session in, if it is newer than all of this name. Its datagram must be authentic."""
        speaker = self._speakers.pop(name, None)
        if speaker is None:
            if session.started <= self._floor:
                return False
            speaker = _Speaker(session)
            while len(self._speakers) >= MAX_NAMES:
                self._forget(next(iter(self._speakers)))
        elif session.started <= speaker.current.started:
            self._speakers[name] = speaker
            return False
        else:
            self._drop(speaker.previous)
            speaker.previous, speaker.current, speaker.since = speaker.current, session, self.now
        self._speakers[name] = speaker
        self._known[session.label] = session
        return True

    def tend(self, now: Millis) -> None:
        """Once in a while: drop the sessions that others have replaced."""
        self.now = now
        for name, speaker in list(self._speakers.items()):
            if speaker.previous is not None and not 0 <= now - speaker.since < GRACE:
                self._drop(speaker.previous)
                speaker.previous = None
            if speaker.current.started > now + TOLERANCE:
                # The clock went back: this one came from a future that is refused now, and must not
                # keep out those of the present.
                del self._speakers[name]
                self._drop(speaker.current)
                self._drop(speaker.previous)

    def obey(self, keyring: Keyring) -> None:
        """Nobody speaks any more with a key that is gone; who did may again, once it is back."""
        for session in self._known.values():
            session.barred = keyring.find(session.key.wire_id) != session.key

    def _forget(self, name: str) -> None:
        """Too many names: what began before the forgotten one may be a replay, from now on."""
        speaker = self._speakers.pop(name)
        self._floor = max(self._floor, speaker.current.started)
        self._drop(speaker.current)
        self._drop(speaker.previous)

    def _drop(self, session: Session | None) -> None:
        if session is not None:
            self._known.pop(session.label, None)
