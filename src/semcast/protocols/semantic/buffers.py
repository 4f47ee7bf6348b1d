"""The buffers of one member: I, O and Q of appendix A, and the accounting of flow control.

A message is *queued* once it is in `retained` (O) and its order has it, which puts it into `to_deliver` (Q)
at once or when its turn comes. `pending` (I) holds what still lacks a predecessor, and `door` what is next
but finds no room in the backlog; both are a cache. What is queued, not stable and not retained was purged:
the difference is the purge knowledge of appendix A.2, and takes no memory.

There are two accounts: `occupancy` is what is retained and cached, `backlog` what waits for the program.
Nobody else changes `occupancy`: at any time it is what is found in the buffers.
"""

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from semcast.core.events import Purged
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.obsolescence import Purging, PurgingBuffer
from semcast.protocols.semantic.answers import follows, joined
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.semantic.occupancy import Occupancy
from semcast.protocols.semantic.retention import Retention
from semcast.protocols.semantic.sequence import InSequence
from semcast.protocols.semantic.settings import Settings

_TOGETHER = 256
"""Messages that wait at the door and are let in as one: one by one would take long where very many wait."""


class Buffers:
    """State and transitions that involve no other member. Vectors are indexed by rank.

    Args:
        members: by rank.
        settings: what fits, and what is purged.
        stats: where to count.
        out: where to say what was purged.
        base: up to where each member's messages belong to the past; nowhere, by default.
        backlog: of the program; by default one for these messages alone.
    """

    retention: ClassVar[type[Retention]] = Retention

    def __init__(
        self,
        members: Sequence[MemberId],
        settings: Settings,
        stats: Statistics,
        out: Outbox,
        base: Sequence[int] | None = None,
        backlog: Backlog | None = None,
    ) -> None:
        settings.check(len(members))
        self.members = tuple(members)
        self.settings = settings
        self._uniform = settings.uniform
        self.order: InSequence = InSequence(self.append)
        """When messages that are queued go where the application takes them."""
        self.ranks = {member: rank for rank, member in enumerate(self.members)}
        self.frozen = False
        """Whether nothing more is queued but what `complete` names."""
        self.accepted = 0
        """Messages queued so far, those that were skipped not counted."""
        self.accepted_bytes = 0
        self._stats = stats
        self._out = out
        size = len(self.members)

        start = [0] * size if base is None else list(base)
        self.queued = list(start)
        self.high = list(start)
        """The highest message known to exist."""
        self.delivered = list(start)
        self.stable = list(start)
        self.safe = list(start)
        self._wanted = list(start)  # at the end of a view, up to where messages are laid aside
        self.pending: list[dict[int, Batch]] = [{} for _ in range(size)]
        self.skips: list[set[int]] = [set() for _ in range(size)]
        """Messages not queued yet that were purged elsewhere, behind a safe one."""
        self.replaced_upto = [0] * size
        """What replaces those that were is among the messages up to here."""
        self.heads: list[dict[int, bytes]] = [{} for _ in range(size)]
        """What purged messages that are not stable had as a head."""
        held = Purging.OFF if settings.purging is Purging.OFF else Purging.HELD
        self.retained = [self.retention(held) for _ in range(size)]
        self.to_deliver = PurgingBuffer(settings.purging)
        self.door: list[deque[Batch]] = [deque() for _ in range(size)]
        """What is next in sequence, and waits for room in the backlog."""
        if backlog is None:
            backlog = Backlog(settings.queue(), settings.queue_size(), settings.reserve_bytes)
            backlog.queues = (self,)
        self.backlog = backlog

        senders = tuple(range(size)) if settings.senders is None else settings.senders
        self.senders = frozenset(senders)
        self.occupancy = Occupancy(
            size, senders, settings.buffer_messages, settings.buffer_bytes, settings.max_message
        )

    def deliverable(self) -> bool:
        """Whether a message waits for the application and may be handed over."""
        if not self._uniform:
            return self.to_deliver.messages > 0
        return any(batch.first <= self.certain_upto(self.ranks[batch.sender]) for batch in self.to_deliver)

    def waiting(self) -> tuple[int, int]:
        """Messages that the program may take, and their bytes, without looking at each.

        What must be safe first is kept for others anyway.
        """
        queue = self.to_deliver
        if not self._uniform or not queue.messages:
            return queue.held()
        unsafe = sum(max(queued - self.certain_upto(rank), 0) for rank, queued in enumerate(self.queued))
        ripe = max(len(queue) - unsafe, 0)
        return ripe, ripe * queue.bytes // max(len(queue), 1)

    def newest(self) -> int:
        """Bytes of what was lined up last."""
        return self.to_deliver.newest

    def buffered(self) -> int:
        """Distinct messages in all buffers, counted anew in the buffers themselves."""
        found = sum(map(len, self.retained)) + sum(map(len, self.pending))
        found += sum(len(batch.payloads) for door in self.door for batch in door)
        for batch in self.to_deliver:  # what is not stable is retained, too, unless it was purged
            stable = min(batch.last, self.stable[self.ranks[batch.sender]])
            found += max(stable - batch.first + 1, 0)
        return found

    # What the guarantees rest on, by name; `semcast.sim.mutants` breaks them one at a time.

    def certain_upto(self, rank: int) -> int:
        """Messages of `rank` up to here are safe. What is stable is, too: everybody alive has it."""
        return max(self.safe[rank], self.stable[rank])

    def reliable_upto(self, rank: int) -> int:
        """Messages of `rank` up to here may replace others in retransmission buffers (TP5)."""
        return self.certain_upto(rank)

    def known_purged(self, rank: int, seq: int) -> bool:
        """Whether a message not queued yet was purged behind a safe one, so that it can be skipped."""
        return seq in self.skips[rank]

    def may_skip(self, rank: int, seq: int) -> bool:
        """Whether a message is known to be purged, and all that it had to come after is queued."""
        return self.known_purged(rank, seq) and self.order.ready(rank, self.heads[rank].get(seq, b""))

    def is_new(self, rank: int, seq: int) -> bool:
        """Whether a message was neither queued nor found purged (new(m) of figure 4.2)."""
        return seq > self.here_upto(rank)

    def here_upto(self, rank: int) -> int:
        """Up to where messages of `rank` are queued, or wait at the door."""
        door = self.door[rank]
        return door[-1].last if door else self.queued[rank]

    def room(self, rank: int) -> int:
        """How many more messages of `rank` may be kept for others."""
        return self.occupancy.room(rank)

    def purged_between(self, rank: int, first: int, last: int) -> list[int]:
        """Which messages were purged, as far as we may say so."""
        purged = self._purged_here(rank, first, last)
        if self.frozen:  # not what was known to be purged, and came all the same before the view ended
            after = max(first, self.queued[rank] + 1)
            purged += [seq for seq in sorted(self.skips[rank]) if after <= seq <= last]
        return purged

    def _purged_here(self, rank: int, first: int, last: int) -> list[int]:
        """Of what we queued: what is neither stable nor retained."""
        if len(self.retained[rank]) == self.queued[rank] - self.stable[rank]:
            return []
        first = max(first, self.stable[rank] + 1)
        last = min(last, self.queued[rank])
        retained: set[int] = set()
        for batch in self.retained[rank]:
            if batch.first > last:
                break
            retained.update(range(max(batch.first, first), min(batch.last, last) + 1))
        return [seq for seq in range(first, last + 1) if seq not in retained]

    def held_between(self, rank: int, first: int, last: int) -> list[Batch]:
        """What we can send again; at the end of a view, also what was laid aside."""
        parts: list[Batch] = []
        if first > last:
            return parts
        for batch in self.retained[rank]:
            if batch.first > last:
                break
            if batch.last >= first:
                parts.append(batch.cut(max(batch.first, first), min(batch.last, last)))
        if self.frozen:
            aside = self.pending[rank]
            parts += [aside[seq] for seq in sorted(aside) if first <= seq <= last]
        return parts

    # Messages in

    def enqueue(self, rank: int, batch: Batch) -> int:
        """Queue the next messages of a sender for delivery and retransmission; returns how many fit."""
        wanted, taken = len(batch.payloads), 0
        while count := self._fitting(rank, batch):
            taken += count
            if taken == wanted:
                self.admit(rank, batch)
                break
            self.admit(rank, batch.cut(batch.first, batch.first + count - 1))
            batch = batch.cut(batch.first + count, batch.last)
        return taken

    def fits(self, rank: int, batch: Batch) -> bool:
        """Whether the first of these messages could be queued now."""
        return self._fitting(rank, batch) > 0

    def _fitting(self, rank: int, batch: Batch) -> int:
        """How many of these messages both accounts have room for."""
        wanted = len(batch.payloads)
        kept = wanted if self._keeps(rank, batch) else self.room(rank)
        return min(kept, self._admitted(batch)) if kept else 0

    def _keeps(self, rank: int, batch: Batch) -> bool:
        """Whether there is room to keep all of it for others."""
        wanted = len(batch.payloads)
        if self.room(rank) >= wanted:
            return True
        smaller = wanted * self.settings.max_message - batch.size  # than so many of the largest
        return self.occupancy.room(rank, smaller) >= wanted

    def _admitted(self, batch: Batch) -> int:
        """How many of these messages the backlog takes: what is obsolete goes before the reserve is touched.

        But not at the expense of a program that keeps up.

        Commands are not for the program, and pieces wait for the last of their message.
        """
        wanted, backlog = len(batch.payloads), self.backlog
        if backlog.fits(wanted, batch.size):
            return wanted
        free = 1 if batch.left > 1 or self.order.is_command(batch) else 0
        if free == wanted:
            return wanted
        if not backlog.hurried():
            return free + backlog.room(wanted - free, batch.size)
        self.purge_late()
        return max(free + backlog.room(wanted - free, batch.size), self._replaces(batch))

    def _replaces(self, batch: Batch) -> bool:
        """Whether the first of these messages takes the place of one that waits for the program.

        Of one as large, if bytes are what lacks.
        """
        if self.settings.purging is Purging.OFF:
            return False
        first = batch if batch.items is None else batch.cut(batch.first, batch.first).singles()[0]
        victims = self.to_deliver.victims(first)
        if not victims or not self.backlog.is_full_of_bytes():
            return bool(victims) or self.order.replaces(first)
        return first.size <= min([victim.size for victim in victims])

    def admit(self, rank: int, part: Batch) -> None:
        """Queue the next messages of a sender, whether there is room or not."""
        count = len(part.payloads)
        self.accepted += count
        self.accepted_bytes += part.size
        self.order.accept(rank, part)
        self.retained[rank].add(part)
        self._evict(count, part.size)
        self.occupancy.add(rank, count, part.size)
        self.queued[rank] += count

    def append(self, batch: Batch) -> None:
        """Line up for the application. A run of updates stays whole where purging is not eager."""
        if batch.items is not None and self.settings.purging is Purging.EAGER:
            self.to_deliver.extend(batch.singles())
        else:
            self.to_deliver.add(batch)
        self._account_purged_from_delivery()

    def replace(self, rank: int, seq: int, by: Batch) -> None:
        """Purge a message that is lined up because of one of another sender."""
        if self.settings.purging is Purging.OFF:
            return
        victim = self.to_deliver.discard(self.members[rank], seq)
        if victim is not None:
            self.purged_from_delivery(victim, by)

    def keep_at_door(self, rank: int, batch: Batch) -> None:
        """Keep what is next in sequence and finds no room yet, if there is room for that."""
        if self.occupancy.cache_room(len(batch.payloads), batch.size):
            self.door[rank].append(batch)
            self.occupancy.cache(len(batch.payloads), batch.size)
        else:
            self._stats.refused += len(batch.payloads)

    def _open_door(self, rank: int) -> None:
        """Queue what waits at the door, as far as there is room by now."""
        door = self.door[rank]
        while door and self.order.ready(rank, door[0].head) and self.fits(rank, door[0]):
            run = [door.popleft()]
            count = len(run[0].payloads)
            while door and count < _TOGETHER and follows(run[-1], door[0]):
                run.append(door.popleft())
                count += len(run[-1].payloads)
            batch = joined(run)
            self.occupancy.cache(-len(batch.payloads), -batch.size)
            taken = self.enqueue(rank, batch)
            if taken < len(batch.payloads):
                rest = batch.cut(batch.first + taken, batch.last)
                door.appendleft(rest)
                self.occupancy.cache(len(rest.payloads), rest.size)
                break

    def cache(self, rank: int, batch: Batch) -> list[int]:
        """Keep what arrived out of order, one by one, while there is room; returns what is new."""
        new = []
        for seq in range(batch.first, batch.last + 1):
            if not self.is_new(rank, seq) or seq in self.pending[rank]:
                self._stats.duplicates += 1
            elif self.occupancy.cache_room(1, len(batch.payloads[seq - batch.first])):
                one = self.pending[rank][seq] = batch.cut(seq, seq)
                self.occupancy.cache(1, one.size)
                new.append(seq)
            else:
                self._stats.refused += 1
        return new

    def _evict(self, count: int, size: int) -> None:
        """Drop cached messages, those furthest from their turn first: they can be asked for again.

        What was laid aside for the end of a view is no mere cache.
        """
        while not self.frozen and self.occupancy.cached and self.occupancy.crowded(count, size):
            rank = max(range(len(self.pending)), key=lambda r: len(self.pending[r]))
            if self.pending[rank]:
                gone = self.pending[rank].pop(max(self.pending[rank]))
            else:
                gone = max(self.door, key=len).pop()
            self.occupancy.cache(-len(gone.payloads), -gone.size)
            self._stats.refused += len(gone.payloads)

    def advance(self, rank: int) -> None:
        """Queue what has become next in sequence (enqueue, TP2)."""
        if self.frozen:
            return
        self._open_door(rank)
        if self.door[rank]:
            return
        pending = self.pending[rank]
        while pending or self.skips[rank]:
            seq = self.queued[rank] + 1
            if seq in pending:
                if not (self.order.ready(rank, pending[seq].head) and self._enqueue_pending(rank, seq)):
                    break
            elif self.may_skip(rank, seq):
                self._skip(rank, seq)
            else:
                break
        if pending or self.skips[rank]:
            self._drop_overtaken(rank)

    def advance_all(self) -> None:
        """One message, or the room that another left, may be what several others wait for."""
        before = None
        while not self.frozen and before != self.queued and (self.occupancy.cached or any(self.skips)):
            before = list(self.queued)
            for rank, waiting in enumerate(self.pending):
                if waiting or self.skips[rank] or self.door[rank]:
                    self.advance(rank)

    def lacks(self, rank: int) -> bool:
        """Whether something is missing that exists; at the end of a view, anything that is wanted."""
        if self.frozen:
            return any(map(int.__gt__, self._wanted, self.queued))
        return self.high[rank] > self.queued[rank]

    def _enqueue_pending(self, rank: int, first: int) -> int:
        """Queue what waited, from `first` on, and what goes on from there with it; returns how many fit."""
        pending = self.pending[rank]
        run = [pending.pop(first)]
        while first + len(run) in pending and follows(run[-1], pending[first + len(run)]):
            run.append(pending.pop(first + len(run)))
        batch = joined(run)
        self.occupancy.cache(-len(run), -batch.size)
        taken = self.enqueue(rank, batch)
        for one in run[taken:]:
            pending[one.first] = one
            self.occupancy.cache(1, one.size)
        return taken

    def _skip(self, rank: int, seq: int) -> None:
        self.skips[rank].discard(seq)
        self.order.skipped(rank, seq, self.heads[rank].get(seq, b""))
        self.queued[rank] = seq
        self.high[rank] = max(self.high[rank], seq)
        self._stats.skipped += 1
        self._out.deliver(Purged(MessageId(self.members[rank], seq)))

    def _drop_overtaken(self, rank: int) -> None:
        """Forget what waited, or was known to be purged, and came by another way."""
        queued = self.queued[rank]
        for seq in [seq for seq in self.pending[rank] if seq <= queued]:
            self.occupancy.cache(-1, -self.pending[rank].pop(seq).size)
        for seq in [seq for seq in self.skips[rank] if seq <= queued]:
            self.skips[rank].discard(seq)

    # Messages out

    def take(self, most: int) -> list[Batch]:
        """Remove up to `most` messages from the delivery queue, in uniform mode only safe ones."""
        horizon = None
        if self.settings.uniform:
            horizon = {member: self.certain_upto(rank) for member, rank in self.ranks.items()}
        batches = self.to_deliver.pop(most, horizon)
        for batch in batches:
            rank = self.ranks[batch.sender]
            self.delivered[rank] = batch.last
            self._stats.delivered += len(batch.payloads)
        return batches

    def take_run(self, rank: int, last: int) -> list[Batch]:
        """Remove messages of one sender up to `last` from the delivery queue: others may be before them."""
        batches = self.to_deliver.pop_run(self.members[rank], last)
        if batches:
            self.delivered[rank] = batches[-1].last
            self._stats.delivered += sum([len(batch.payloads) for batch in batches])
        return batches

    def purge_retained(self) -> None:
        """Purge behind what may be relied on (purge_r, TP5)."""
        for rank, retained in enumerate(self.retained):
            retained.release(self.members[rank], self.reliable_upto(rank))
            for victim, by in retained.take_receipts():
                self._stats.purged_retransmission += 1
                self.occupancy.remove(rank, 1, victim.size)
                if victim.head:
                    self.heads[rank][victim.first] = victim.head
                if self._withdraw(rank, victim):  # also before its turn has come
                    self._stats.purged_delivery += 1
                    replacement = MessageId(by.sender, by.first)
                    self._out.deliver(Purged(MessageId(victim.sender, victim.first), replacement))

    def purge_late(self) -> None:
        """Lazy purging: the application is behind, so let all go that is known to be obsolete."""
        self.to_deliver.reclaim(max(len(self.to_deliver), 1))
        self._account_purged_from_delivery()

    def trim(self, rank: int, stable: int) -> None:
        """Forget what everybody has queued; it may still wait for the program."""
        for batch in self.retained[rank].trim(stable):
            self.occupancy.remove(rank, len(batch.payloads), batch.size)
        self.stable[rank] = stable
        heads = self.heads[rank]
        if heads:
            self.heads[rank] = {seq: head for seq, head in heads.items() if seq > stable}

    def _withdraw(self, rank: int, victim: Batch) -> bool:
        """Do not deliver an annotated message; False if that is done, or it was not to be delivered."""
        if self.order.withdraw(rank, victim):
            return True
        return self.to_deliver.discard(victim.sender, victim.first) is not None

    def _account_purged_from_delivery(self) -> None:
        for victim, by in self.to_deliver.take_receipts():
            self.purged_from_delivery(victim, by)
        for thinned in self.to_deliver.take_thinned():
            self._stats.purged_delivery += thinned.count
            self._out.deliver(thinned)

    def purged_from_delivery(self, victim: Batch, by: Batch) -> None:
        """Account for a message that another replaced before it was delivered."""
        self._stats.purged_delivery += 1
        replacement = MessageId(by.sender, by.first)
        self._out.deliver(Purged(MessageId(victim.sender, victim.first), replacement))

    # The end of a view

    def freeze(self) -> None:
        """Accept nothing more (t5): what arrives and is wanted is laid aside, with what is at the door."""
        self.frozen = True
        for pending, door in zip(self.pending, self.door, strict=True):
            for batch in door:
                for seq in range(batch.first, batch.last + 1):
                    if seq in pending:  # it came alone before, and must not count twice
                        self.occupancy.cache(-1, -pending[seq].size)
                    pending[seq] = batch.cut(seq, seq)
            door.clear()

    def want(self, upto: Sequence[int]) -> bool:
        """Lay aside what comes up to there; False if that was wanted before."""
        if not any(map(int.__lt__, self._wanted, upto)):
            return False
        self._wanted = list(map(max, self._wanted, upto))
        self.high = list(map(max, self.high, upto))
        return True

    def lacking(self, rank: int) -> list[int]:
        """What is wanted of a member's messages, and not here."""
        pending, span = self.pending[rank], range(self.queued[rank] + 1, self._wanted[rank] + 1)
        return [seq for seq in span if seq not in pending and not self.known_purged(rank, seq)]

    def lacks_anything(self) -> bool:
        """Whether anything is wanted that is not here."""
        return any(map(self.lacking, range(len(self.members))))

    def lay_aside(self, rank: int, batch: Batch) -> None:
        """Keep what may turn out to belong to the view, one by one, whether there is room or not."""
        pending, upto = self.pending[rank], self._wanted[rank]
        for seq in range(max(batch.first, self.queued[rank] + 1), min(batch.last, upto) + 1):
            if seq not in pending:
                one = pending[seq] = batch.cut(seq, seq)
                self.occupancy.cache(1, one.size)

    def has(self, upto: Sequence[int]) -> bool:
        """Whether everything up to there is queued, laid aside, or known to be purged."""
        return not any(
            seq not in self.pending[rank] and not self.known_purged(rank, seq)
            for rank, last in enumerate(upto)
            for seq in range(self.queued[rank] + 1, last + 1)
        )

    def complete(self, cut: Sequence[int]) -> None:
        """This, and nothing else, belongs to the view: queue what was laid aside (t7)."""
        assert self.frozen
        assert self.has(cut)
        before = None
        while before != self.queued:
            before = list(self.queued)
            for rank, last in enumerate(cut):
                self._complete(rank, last)
        assert all(map(int.__ge__, self.queued, cut)), (
            "what a message must come after belongs to the view, too"
        )
        self.safe = list(map(max, self.safe, cut))

    def _complete(self, rank: int, last: int) -> None:
        while self.queued[rank] < last:
            seq = self.queued[rank] + 1
            batch = self.pending[rank].get(seq)
            if batch is None:
                assert self.known_purged(rank, seq)
                if not self.may_skip(rank, seq):
                    break
                self._skip(rank, seq)
            elif not self.order.ready(rank, batch.head):
                break
            else:
                del self.pending[rank][seq]
                self.occupancy.cache(-1, -batch.size)
                self.admit(rank, batch)
