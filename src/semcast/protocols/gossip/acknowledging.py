"""What a program is through with: what it took (`auto`), or what it says (`explicit`, R-9).

An acknowledgement is cumulative for each stream. It is done once a logger has it on disk: only then will
another incarnation not be given the messages again. Until it is answered, it is sent again each round.
"""

from collections.abc import Mapping

from semcast.core.events import Answered, Note
from semcast.core.ids import MemberId, MessageId
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.frames import Acknowledge, Acknowledged, entries
from semcast.protocols.gossip.receiver import Receiver


class Acknowledging:
    """Acknowledgements of a program that are under way."""

    def __init__(self, receiver: Receiver, out: Outbox) -> None:
        self._receiver = receiver
        self._out = out
        self.said = 0
        """How many there were."""
        self._waiting: dict[int, tuple[int, dict[int, Acknowledge]]] = {}  # by serial: ticket, and its parts

    def acknowledge(self, upto: Mapping[MemberId, int], ticket: int, logger: MemberId | None) -> None:
        """The program is through with these streams up to these numbers; `Answered` says when that counts."""
        for stream, seq in upto.items():
            if not self._receiver.was_taken(stream, seq):
                raise ValueError(f"{MessageId(stream, seq)} was not delivered here, so it is not done with")
        for stream, seq in sorted(upto.items()):
            self._receiver.acknowledge(stream, seq)
            self._out.deliver(Note("through", sender=stream, seq=seq))
        self.said += 1
        parts = entries(sorted(upto.items()))
        frames = {part: Acknowledge(self.said, part, some) for part, some in enumerate(parts)}
        self._waiting[self.said] = ticket, frames
        self.on_round(logger)

    def on_round(self, logger: MemberId | None) -> None:
        """Say again what was not answered."""
        if logger is not None:
            for _, frames in self._waiting.values():
                for frame in frames.values():
                    self._out.send(logger, frame)

    def on_acknowledged(self, frame: Acknowledged) -> None:
        """A logger has it on disk."""
        ticket, frames = self._waiting.get(frame.serial, (0, {}))
        part = frames.pop(frame.part, None)
        if part is None:
            return
        for stream, seq in part.upto:
            self._out.deliver(Note("assured", sender=stream, seq=seq))
        if not frames:
            del self._waiting[frame.serial]
            self._out.deliver(Answered(ticket, "acknowledged"))
