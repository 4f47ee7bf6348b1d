"""rpbcast (Sun 2000, 4.3): negative gossip among peers, then the logger.

Both of the paper's ways from `gmissing` to `missing`: garbage-collected notes, and a limit of rounds. Notes
alone do not do (R-2): nobody sends one for what nobody had. Heartbeats of idle senders travel by hash (5.1).

Without a logger the promise is pbcast's: what peers do not give in time is lost.
"""

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.gossip.frames import Forgotten, Gossip, Heartbeats, entries, wanted
from semcast.protocols.gossip.repair import Repair
from semcast.protocols.gossip.spans import Span
from semcast.protocols.gossip.streams import Stream


class Rpbcast(Repair):
    """Ask a random peer, another one each round; then the logger."""

    def on_gaps(self, now: Nanos, stream: Stream, gaps: list[Span]) -> None:
        """4.1: at once, and not only at the next round."""
        target = self.desk.peers.choose()
        if target is not None:
            self._gossip(now, target, [(stream.sender, gaps)], gap=True)

    def on_round(self, now: Nanos) -> None:
        """tick: RTX for `missing` to the logger, GOSSIP(gmissing) to one member, also if it is empty."""
        desk = self.desk
        if desk.settings.logs:
            self._age()
            desk.ask_logger(desk.lacking(peers=False))
        else:
            desk.give_up_overdue()
        target = desk.peers.choose()
        if target is not None:
            self._gossip(now, target, desk.lacking(peers=True))

    def _age(self) -> None:
        for stream in self.desk.receiver.lagging():
            stream.age(self.desk.round - self.desk.settings.gossip_rounds)

    def _gossip(
        self,
        now: Nanos,
        target: MemberId,
        lacking: list[tuple[MemberId, list[Span]]],
        *,
        gap: bool = False,
    ) -> None:
        desk = self.desk
        asked = wanted(lacking)
        desk.stats.requested += bool(asked)
        desk.stats.control_frames += 1
        desk.peers.asked(desk.round, target, now)
        room = not asked
        log, logged = desk.logged.some(desk.round) if room else (None, [])
        if gap:  # asks for that alone: the rounds compare what is known
            desk.out.send(target, Gossip(desk.round, asked, None, logged, log, gap=True))
            return
        idle = desk.idle.hash(desk.me, desk.round)
        members = desk.members(desk.me, desk.round)
        lacks = desk.lacks_of(target)
        desk.out.send(target, Gossip(desk.round, asked, idle, logged, log, members, lacks=lacks))

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> bool:
        """Gossip, and what answers it."""
        if isinstance(frame, Gossip):
            self._on_gossip(now, source, frame)
        elif isinstance(frame, Heartbeats):
            self.desk.peers.answered(frame.round, source, now)
            for stream, seq in self.desk.idle.news(frame.marks):
                self.desk.mark_idle(now, stream, seq)
        elif isinstance(frame, Forgotten):
            self.desk.peers.answered(frame.round, source, now)
            self._on_forgotten(frame)
        else:
            return False
        return True

    def _on_gossip(self, now: Nanos, source: MemberId, frame: Gossip) -> None:
        """Repair, say what was forgotten, and what idle senders said if the gossiper may not know it."""
        desk = self.desk
        if frame.log is not None:
            others = [entry for entry in frame.logged if entry[0] != desk.me]
            desk.learn(frame.log, others)  # of its own stream it believes loggers
        forgotten = desk.serve(now, source, frame.wanted, frame.round)
        if desk.settings.logs:
            desk.note_forgotten(source, forgotten, frame.round)
        if not frame.gap and frame.idle != desk.idle.hash(source, frame.round):
            for part in entries(desk.idle.some(frame.round)):
                if part:
                    desk.stats.control_frames += 1
                    desk.out.send(source, Heartbeats(frame.round, part))

    def _on_forgotten(self, frame: Forgotten) -> None:
        """GcNOTE: from `gmissing` to `missing`."""
        moved = []
        for sender, spans in frame.spans:
            stream = self.desk.receiver.streams.get(sender)
            if stream is not None and stream.note(spans):
                moved.append((sender, stream.missing(peers=False, most=self.desk.settings.hold)))
        if self.desk.settings.eager:
            self.desk.ask_logger(moved)
