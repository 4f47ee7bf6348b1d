"""Failure detection by heartbeats and timeouts that grow with mistakes (Chandra and Toueg 1996, section 9.1).

Per peer, the timeout follows the arrivals of its heartbeats as Jacobson's follows round trips: smoothed
mean, four deviations and a margin. Who turns out to be suspected wrongly has its margin doubled.

Deviations: timeouts are bounded and what a mistake added fades, so a peer that pauses now and then is
suspected seldom, not never, and one that pauses for longer than the bound is suspected every time. A member
that was asleep itself, and therefore looks later than it meant to, accuses nobody at once; what the others
sent meanwhile may still wait to be read.
"""

from collections.abc import Iterable

import msgspec

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos

_FADE = 8
"""A margin loses one part in 2^8 of its excess with each heartbeat: half of it in nine seconds or so."""


class DetectorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The period must be the same at all members; the rest is each one's own."""

    heartbeat: Nanos = 50 * MILLISECOND
    """How often a member sends a heartbeat."""
    timeout_initial: Nanos = 500 * MILLISECOND
    """For a peer of whom there is no estimate yet."""
    timeout_min: Nanos = 150 * MILLISECOND
    timeout_max: Nanos = 5 * SECOND
    margin: Nanos = 100 * MILLISECOND
    """Beyond mean and deviations; doubled after a wrong suspicion, `timeout_max` at most."""

    def check(self) -> None:
        """Raise ValueError for what cannot work."""
        if self.heartbeat < 1:
            raise ValueError(f"heartbeat {self.heartbeat}: must be at least 1 ns")
        if not self.heartbeat < self.timeout_min <= self.timeout_max:
            raise ValueError(
                f"heartbeat ({self.heartbeat}) < timeout_min ({self.timeout_min})"
                f" <= timeout_max ({self.timeout_max}) is needed"
            )
        if not self.timeout_min <= self.timeout_initial <= self.timeout_max:
            raise ValueError(
                f"timeout_initial {self.timeout_initial}: between timeout_min ({self.timeout_min})"
                f" and timeout_max ({self.timeout_max})"
            )
        if not 1 <= self.margin <= self.timeout_max:
            raise ValueError(f"margin {self.margin}: between 1 ns and timeout_max ({self.timeout_max})")


class _Peer:
    """What is known of one peer."""

    __slots__ = ("beat", "deviation", "last", "margin", "mean", "sign", "suspected", "timeout")

    def __init__(self, now: Nanos, settings: DetectorSettings) -> None:
        self.last = now  # its last life sign, or when it began to be watched
        self.sign: Nanos = 0  # its last life sign, if there was one
        self.beat: Nanos | None = None  # the last heartbeat, if the time to the next is to be sampled
        self.mean = 0
        self.deviation = 0
        self.margin = settings.margin
        self.timeout = settings.timeout_initial
        self.suspected = False


class FailureDetector:
    """Suspects the silent. Times are the caller's, and never go back.

    >>> p = MemberId("p")
    >>> detector = FailureDetector(DetectorSettings())
    >>> detector.watch(0, [p])
    >>> detector.check(499 * MILLISECOND), detector.check(500 * MILLISECOND)
    ([], [MemberId(name='p', incarnation=0)])
    >>> detector.heard(501 * MILLISECOND, p), detector.suspects(p), detector.wrong_suspicions
    (True, False, 1)
    """

    def __init__(self, settings: DetectorSettings) -> None:
        settings.check()
        self.settings = settings
        self.wrong_suspicions = 0
        self._peers: dict[MemberId, _Peer] = {}
        self._restored: dict[MemberId, None] = {}
        self._due: Nanos | None = None  # when this member meant to look
        self._excused = False  # the last look came too late, and accused nobody

    def watch(self, now: Nanos, members: Iterable[MemberId]) -> None:
        """Watch these, and no others; a member does not watch itself.

        New ones get the initial timeout, the others keep their estimate.
        """
        before = self._peers
        self._peers = {
            member: before[member] if member in before else _Peer(now, self.settings) for member in members
        }
        self._restored = {member: None for member in self._restored if member in self._peers}

    def heard(self, now: Nanos, member: MemberId, *, beat: bool = False) -> bool:
        """A life sign, `beat` if it is a regular heartbeat. True if the member was suspected until now."""
        peer = self._peers.get(member)
        if peer is None:
            return False
        peer.last = peer.sign = now
        if peer.suspected:
            self._restore(member, peer)
            peer.beat = now if beat else None
            return True
        if beat:
            if peer.beat is not None:
                self._sample(peer, now - peer.beat)
            peer.beat = now
        return False

    def check(self, now: Nanos) -> list[MemberId]:
        """Those who are suspected from now on, and were not before."""
        if self._overslept(now):
            return []
        silent = []
        for member, peer in self._peers.items():
            if not peer.suspected and now - peer.last >= peer.timeout:
                peer.suspected = True
                silent.append(member)
        return silent

    def suspects(self, member: MemberId) -> bool:
        """Whether a member is suspected; who is not watched never is."""
        peer = self._peers.get(member)
        return peer is not None and peer.suspected

    def last_heard(self, member: MemberId) -> Nanos:
        """When it gave its last life sign; 0 of who has not given any, or is not watched."""
        peer = self._peers.get(member)
        return 0 if peer is None else peer.sign

    def restored(self) -> list[MemberId]:
        """Those who were heard while suspected since the last call, each a wrong suspicion."""
        restored = list(self._restored)
        self._restored.clear()
        return restored

    def next_check(self, now: Nanos) -> Nanos:
        """When to look again: when the next one falls silent for too long, if nothing is heard of it."""
        deadlines = [peer.last + peer.timeout for peer in self._peers.values() if not peer.suspected]
        self._due = max(now, min(deadlines, default=now + self.settings.timeout_max))
        return self._due

    def timeout(self, member: MemberId) -> Nanos:
        """How long a member may be silent at present."""
        peer = self._peers.get(member)
        return self.settings.timeout_initial if peer is None else peer.timeout

    def _overslept(self, now: Nanos) -> bool:
        """Whether this look came too late to accuse anybody; never twice in a row."""
        late = self._due is not None and now - self._due > self.settings.heartbeat
        self._due = None
        self._excused = late and not self._excused
        if self._excused:
            for peer in self._peers.values():
                peer.last = max(peer.last, now - peer.timeout + 2 * self.settings.heartbeat)
                peer.beat = None
        return self._excused

    def _sample(self, peer: _Peer, interval: Nanos) -> None:
        """Learn from the time between two heartbeats."""
        interval = min(interval, self.settings.timeout_max)
        if peer.mean:
            error = interval - peer.mean
            peer.mean += error >> 3
            peer.deviation += (abs(error) - peer.deviation) >> 2
        else:
            peer.mean, peer.deviation = max(interval, 1), interval >> 1
        peer.margin -= (peer.margin - self.settings.margin) >> _FADE
        self._set_timeout(peer)

    def _restore(self, member: MemberId, peer: _Peer) -> None:
        """The suspicion was wrong."""
        peer.suspected = False
        peer.margin = min(2 * peer.margin, self.settings.timeout_max)
        self.wrong_suspicions += 1
        self._restored[member] = None
        self._set_timeout(peer)

    def _set_timeout(self, peer: _Peer) -> None:
        settings = self.settings
        # Without a sample, the initial timeout stands for mean and deviation.
        spread = peer.mean + 4 * peer.deviation if peer.mean else settings.timeout_initial
        peer.timeout = min(max(spread + peer.margin, settings.timeout_min), settings.timeout_max)


class Oracle:
    """Somebody who knows who failed, and never errs (the fail-stop model of Birman et al. 1991, 4.1)."""

    def __init__(self, settings: DetectorSettings) -> None:
        settings.check()
        self.settings = settings
        self._failed: set[MemberId] = set()

    def failed(self, member: MemberId) -> None:
        """The oracle speaks."""
        self._failed.add(member)

    def watch(self, now: Nanos, members: Iterable[MemberId]) -> None:  # noqa: ARG002
        """Forget those who are not in the group any more."""
        self._failed.intersection_update(members)

    def heard(self, now: Nanos, member: MemberId, *, beat: bool = False) -> bool:  # noqa: ARG002
        """Of no consequence."""
        return False

    def check(self, now: Nanos) -> list[MemberId]:  # noqa: ARG002
        """Silence means nothing."""
        return []

    def suspects(self, member: MemberId) -> bool:
        """Whether a member failed."""
        return member in self._failed

    def last_heard(self, member: MemberId) -> Nanos:  # noqa: ARG002
        """Nobody listens."""
        return 0

    def next_check(self, now: Nanos) -> Nanos:
        """There is nothing to look for, but others may ask to join."""
        return now + self.settings.timeout_max
