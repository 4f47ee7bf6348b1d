"""Virtual synchrony for programs: settings, and a stack that knows messages by the ids that `send` returned.

Those count what a program hands over. In the stack the pieces of large messages and the word of a token
holder have numbers, too; and what was handed over to one incarnation may be sent by the next. So ids of one's
own messages in an enumeration are translated when the message that carries them is taken.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from random import Random
from typing import NamedTuple

import msgspec

from semcast.core.annotations import Annotation, Enumeration
from semcast.core.events import Blocked, Sent
from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MILLISECOND, SECOND, MemberId, MessageId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.views import View
from semcast.group.settings import GroupSettings, parse_duration
from semcast.obsolescence import Purging
from semcast.protocols.vsync import DetectorSettings, Engine, Flush, Order, VirtualSynchrony, VsyncSettings
from semcast.protocols.vsync.ending import ViewStream
from semcast.protocols.vsync.flush import ViewChange
from semcast.protocols.vsync.stream import OrderFactory
from semcast.wire.limits import MAX_MESSAGE
from semcast.wire.vsync import Welcome

BUFFER_MESSAGES = 1 << 16
BUFFER_BYTES = 16 << 20
WINDOW_BYTES = 2 << 20
"""Bytes under way of all members together, about: half of what a receiver's socket holds."""
_ID_BYTES = 20
_LINGER = SECOND
"""How long one member waits for the others, at most."""
_LIVES = 8
_RUNS = 1 << 14
"""Runs of consecutive numbers that are remembered."""


def vsync_settings(settings: GroupSettings, packet: int, *, state: bool, founds: bool) -> VsyncSettings:
    """The stack for packets of a size."""
    silence = parse_duration(settings.token_loss)
    return VsyncSettings(
        order=Order(settings.order or Order.FIFO),
        engine=Engine(settings.engine or Engine.TOKEN),
        flush=Flush(settings.flush or Flush.COORDINATOR),
        uniform=settings.uniform,
        minimum=(1 if settings.bootstrap else settings.minimum) if founds else 0,
        state=state,
        purging=Purging.OFF if settings.policy == "block" else Purging.EAGER,
        buffer_messages=settings.buffer_messages or BUFFER_MESSAGES,
        buffer_bytes=BUFFER_BYTES,
        frame_bytes=packet,
        detector=detector_settings(silence),
    )


def detector_settings(silence: Nanos) -> DetectorSettings:
    """Nobody is suspected before it was silent for so long; who pauses often may be for longer."""
    heartbeat = max(min(silence // 10, 50 * MILLISECOND), 1)
    return DetectorSettings(
        heartbeat=heartbeat,
        timeout_initial=silence,
        timeout_min=silence,
        timeout_max=max(10 * silence, 5 * SECOND),
        margin=max(silence // 5, 1),
    )


def kind_of(settings: GroupSettings) -> MemberId:
    """What all members must have set alike, as a name that tells their datagrams from those of others."""
    order = settings.order or "fifo"
    engine = settings.engine or "token" if order == "total" else ""
    return _kind(order, engine, settings.flush or "coordinator", uniform=settings.uniform)


def all_kinds() -> list[MemberId]:
    """Of every group there can be."""
    orders = [("fifo", ""), ("causal", ""), ("total", "token"), ("total", "consensus")]
    return [
        _kind(order, engine, flush, uniform=uniform)
        for order, engine in orders
        for flush in ("coordinator", "all")
        for uniform in (False, True)
    ]


def _kind(order: str, engine: str, flush: str, *, uniform: bool) -> MemberId:
    return MemberId(f"vsync {order} {engine} {flush} {uniform}")


def note_room(packet: int) -> int:
    """Bytes of a datagram that are left for what a message says about others."""
    return packet // 4


def share_of(settings: VsyncSettings, members: int) -> int:
    """Messages that one member may have under way, so that everybody has room for those of all."""
    return max(1, settings.buffer_messages // (members + 1))


def largest_message(settings: GroupSettings, packet: int) -> int:
    """Bytes: its pieces must find room together."""
    return min(MAX_MESSAGE, packet * ((settings.buffer_messages or BUFFER_MESSAGES) // 4))


class Departure(NamedTuple):
    """Of a member that wants to leave."""

    at: Nanos
    """When it goes, whatever is missing."""
    stream: ViewStream
    owed: list[int]
    """By rank, what it had when it was told to."""
    cause: str


class LiveStream(ViewStream):
    """The messages of a view: others hear what has come also when it was few large ones."""

    def __init__(
        self,
        me: MemberId,
        view: View,
        base: Sequence[int],
        settings: VsyncSettings,
        rng: Random,
        order: OrderFactory,
        suspects: Callable[[MemberId], bool],
        position: int = 0,
    ) -> None:
        super().__init__(me, view, base, settings, rng, order, suspects, position)
        size = len(view.members)
        self._tell_every = max(1, share_of(settings, size) // 4)
        self._tell_bytes = WINDOW_BYTES // size // 4
        self._weight = 0

    def _accept(self, rank: int, part: Batch) -> None:
        self._weight += part.size
        super()._accept(rank, part)

    def _plan_to_tell(self, now: Nanos) -> None:
        if self._weight >= self._tell_bytes:
            self._tell()
        else:
            super()._plan_to_tell(now)

    def _tell(self) -> None:
        self._weight = 0
        super()._tell()


class WitnessChange(ViewChange):
    """The part of a member in a change of view that has no state to give away."""

    def __init__(
        self,
        stream: ViewStream,
        out: Outbox,
        suspects: Callable[[MemberId], bool],
        *,
        stateful: bool,  # noqa: ARG002 (it has what it needs, and nobody else can use that)
    ) -> None:
        super().__init__(stream, out, suspects, stateful=False)


class LiveSynchrony(VirtualSynchrony):
    """The stack of a program.

    Args:
        me: who this is.
        settings: as the others have them.
        rng: where chance comes from.
        out: what the stack wants from the world.
        formers: whose messages this one goes on with, if it comes back: those after the first so many.
    """

    view_stream = LiveStream

    def __init__(
        self,
        me: MemberId,
        settings: VsyncSettings,
        rng: Random,
        out: Outbox,
        formers: Mapping[MemberId, int] | None = None,
    ) -> None:
        super().__init__(me, settings, rng, out)
        self.accepted = 0
        """Messages that were taken from the program."""
        self._formers = dict(formers or {})
        self._runs: list[tuple[int, int]] = []  # from this message on, its number is so much higher
        self._departure: Departure | None = None
        self._newcomers: set[int] = set()  # ranks of who joined with this view, and was not heard in it yet
        self._newcomers_until: Nanos = 0
        self._under_way: deque[tuple[int, int]] = deque()  # numbers and bytes of what may not be everywhere
        self._under_way_bytes = 0
        if not settings.state:
            self.view_change = WitnessChange

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Multicast, and keep account of the numbers."""
        allowed = self._allowed(now, payloads)
        if not allowed:
            self._refuse()
            return 0
        if isinstance(annotation, Enumeration):
            annotation = self._translated(annotation)
        before = len(self.out.events)
        taken = super().multicast(now, payloads[:allowed], annotation, safe=safe)
        if taken:
            for event in self.out.events[before:]:
                if type(event) is Sent:
                    self._count(event.batch)
        return taken

    def _allowed(self, now: Nanos, payloads: Sequence[bytes]) -> int:
        """How many of these leave the others room for theirs, and find room in their sockets."""
        stream = self.stream
        if stream is None or stream.frozen:
            return len(payloads)  # it is for others to refuse
        if self._newcomers:
            self._newcomers -= stream.heard
            if self._newcomers and now < self._newcomers_until:
                return 0
        stable, under_way = stream.stable[stream.rank], self._under_way
        while under_way and under_way[0][0] <= stable:
            self._under_way_bytes -= under_way.popleft()[1]
        size = len(stream.members)
        count = share_of(self.settings, size) - (stream.queued[stream.rank] - stable)
        room = WINDOW_BYTES // size - self._under_way_bytes
        if count <= 0 or room <= 0:
            return 0
        if sum(map(len, payloads)) > room:
            count = min(count, max(1, room // max(map(len, payloads))))
        return min(count, len(payloads))

    def _refuse(self) -> None:
        if not self._blocked:
            self._blocked = True
            self.stats.blocked += 1
            self.out.deliver(Blocked())

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        """Who joins may hear of its view a little later: what was sent before that would be lost on it."""
        self._newcomers = {
            rank
            for rank, member in enumerate(welcome.members)
            if member in welcome.joined and member != self.me
        }
        self._newcomers_until = now + _LINGER
        self._under_way.clear()
        self._under_way_bytes = 0
        super()._begin(now, welcome, event)

    def deliverable(self) -> bool:
        """Who is out may have messages that the others agreed to do without."""
        return not self.left and super().deliverable()

    def behind(self) -> bool:
        """Whether nothing can be sent before the application was given what waits for it."""
        return not self._up_to_date()

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        """Leave, but not before the others have what this member has, if that takes but a while.

        Who goes may be the only one whom they could ask for it.
        """
        stream = self.stream
        if self._departure is None and stream is not None and not stream.frozen:
            self._departure = Departure(now + _LINGER, stream, list(stream.queued), cause)
        if not self._is_owed(now):
            super().leave(now, cause)

    def _is_owed(self, now: Nanos) -> bool:
        """Whether the others still lack something that this member wants them to have before it goes."""
        going = self._departure
        if going is None or going.at <= now or going.stream is not self.stream:
            return False
        return any(map(int.__lt__, going.stream.stable, going.owed))

    def _check(self, now: Nanos) -> None:
        super()._check(now)
        if self._departure is not None and not self._is_owed(now):
            super().leave(now, self._departure.cause)

    def unsettled(self) -> tuple[MessageId, ...]:
        """Messages that were taken, and may not survive this member's end."""
        if self.stream is None:
            return ()
        safe = self.stream.safe[self.stream.rank]
        last = self.accepted
        while last and self._number(last) > safe:
            last -= 1
        return tuple(MessageId(self.me, count) for count in range(last + 1, self.accepted + 1))

    def successors(self) -> dict[MemberId, int]:
        """For who comes back: how many messages of whom are not its business."""
        known = list(self._formers.items())[-_LIVES:]
        return {**{who: count + self.accepted for who, count in known}, self.me: self.accepted}

    def _enter(self, now: Nanos, welcome: Welcome) -> None:
        """Where nobody is left who has the state, it begins with who joins."""
        if self.settings.state and not welcome.providers:
            welcome = msgspec.structs.replace(welcome, providers=[self.me])
        super()._enter(now, welcome)

    # Numbers

    def _count(self, batch: Batch) -> None:
        offset = batch.first - self.accepted - 1
        if not self._runs or self._runs[-1][1] != offset:
            self._runs.append((self.accepted + 1, offset))
            if len(self._runs) > 2 * _RUNS:
                del self._runs[:_RUNS]
        self.accepted += len(batch.payloads)
        self._under_way.append((batch.last, batch.size))
        self._under_way_bytes += batch.size

    def _number(self, count: int) -> int:
        """The number of a message that was taken; 0 if that is forgotten."""
        at = bisect_right(self._runs, count, key=itemgetter(0)) - 1
        return count + self._runs[at][1] if at >= 0 else 0

    def _translated(self, annotation: Enumeration) -> Enumeration:
        """Own messages by their numbers; those of a former life cannot be replaced any more."""
        ids = []
        for named in annotation.ids:
            sender = named.sender
            if sender != self.me and sender not in self._formers:
                ids.append(named)
                continue
            count = named.seq - self._formers.get(sender, 0)
            if 0 < count <= self.accepted and (number := self._number(count)):
                ids.append(MessageId(self.me, number))
        room = note_room(self.settings.frame_bytes)
        while ids and sum(len(named.sender.name.encode()) + _ID_BYTES for named in ids) > room:
            del ids[: len(ids) // 2 + 1]  # what is not named is not replaced, which does no harm
        return Enumeration(tuple(ids))
