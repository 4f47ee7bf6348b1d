"""Whom a logger asks for what the sender does not give: sessions that have heard of more than is logged.

Deviation: the paper's logger has everything from the senders (3.2). One that is killed has often sent its
last messages to members only. They keep what is not logged; without this the log would have it when the
stream is closed, days later, and an acknowledgement of it would wait for as long.

Senders are asked first. A member is asked only for a stream that has not moved for some rounds, one each
round: what is merely on its way would come twice.
"""

from collections.abc import Collection

from semcast.core.ids import MemberId
from semcast.protocols.gossip.log import LogStream


class Witnesses:
    """Of one logger.

    Args:
        patience: rounds in which a stream must not move before members are asked for it.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._witnesses: dict[MemberId, MemberId] = {}  # who said last that it has heard of more of a stream
        self._still: dict[MemberId, tuple[int, int]] = {}  # where each is that lacks something, since when

    def said(self, stream: LogStream, seq: int, witness: MemberId) -> None:
        """A session has heard of a number."""
        if seq > stream.contiguous:
            self._witnesses[stream.sender] = witness

    def of(self, stream: LogStream, number: int) -> MemberId | None:
        """Whom to ask in this round for what a stream lacks."""
        at, since = self._still.get(stream.sender, (-1, 0))
        if at != stream.contiguous:
            self._still[stream.sender] = stream.contiguous, number
            return None
        return self._witnesses.pop(stream.sender, None) if number - since >= self._patience else None

    def forget(self, sender: MemberId) -> None:
        """Its stream lacks nothing, or is being closed."""
        self._still.pop(sender, None)
        self._witnesses.pop(sender, None)

    def tidy(self, streams: Collection[MemberId]) -> None:
        """Forget streams that are no more."""
        for known in (self._still, self._witnesses):
            if len(known) > len(streams):
                for sender in [each for each in known if each not in streams]:
                    del known[sender]
