"""pbcast (Sun 2000, 1.3 and 7.4): digests are pushed, peers repair, what they have forgotten is lost.

The paper says no more; ours (R-24): a digest has what came in the last `gc_rounds`, its target asks once for
each, and what is missing after `gossip_rounds` is given up, with a receipt.
"""

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.gossip.frames import Digest, Want, wanted
from semcast.protocols.gossip.repair import Repair
from semcast.protocols.gossip.spans import within


class Pbcast(Repair):
    """Push a digest; ask whoever pushed one."""

    def on_round(self, now: Nanos) -> None:
        """Tell one member what can be had here."""
        desk = self.desk
        desk.give_up_overdue()
        target = desk.peers.choose()
        if target is None:
            return
        intervals = desk.buffer.intervals()
        turn = desk.round % len(intervals) if intervals else 0
        desk.peers.asked(desk.round, target, now)
        desk.stats.control_frames += 1
        some = wanted(intervals[turn:] + intervals[:turn])
        desk.out.send(target, Digest(desk.round, some, desk.members(desk.me, desk.round)))

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> bool:
        """A digest, or what somebody asks for because of one."""
        if isinstance(frame, Digest):
            self._on_digest(now, source, frame)
        elif isinstance(frame, Want):
            self.desk.peers.answered(frame.round, source, now)
            self.desk.serve(now, source, frame.wanted, 0)
        else:
            return False
        return True

    def _on_digest(self, now: Nanos, source: MemberId, frame: Digest) -> None:
        desk = self.desk
        lacking = []
        for sender, held in frame.held:
            if held:
                desk.hear_of(now, sender, held[-1][1])
            stream = desk.receiver.streams.get(sender)
            if stream is not None:
                missing = stream.missing(peers=True, most=desk.settings.hold)
                lacking.append((sender, [part for span in held for part in within(missing, *span)]))
        asked = wanted(lacking)
        if asked and desk.receiver.credit():
            desk.stats.requested += 1
            desk.stats.control_frames += 1
            desk.out.send(source, Want(frame.round, asked))
