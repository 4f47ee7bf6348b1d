"""W3, W4: what clients cost, by the style of their group (Birman et al. 1991, table I, 7.1 and 7.4).

A few servers and many others in one group, of whom some are active. As peers all are members; in the other
styles the others are clients. Fields are counted in what is multicast in the group, which is where the paper
counts them, and in what a contact passes on to a client.
"""

from collections.abc import Sequence
from random import Random
from statistics import median
from typing import Literal

import msgspec

from semcast.core.events import Sent
from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox, Timer
from semcast.core.stack import Stack
from semcast.protocols.isis import Isis, IsisSettings
from semcast.protocols.isis.client_frames import Item
from semcast.protocols.isis.clientele import Clientele
from semcast.protocols.isis.contact import Contact
from semcast.protocols.isis.log import Entry
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.sending import Sending
from semcast.protocols.isis.serving import Serving
from semcast.protocols.lightweight.events import Delivered
from semcast.protocols.vsync import VsyncSettings
from semcast.sim.cluster import Cluster
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler

_GROUP = "g"
_FOUNDED: Nanos = 3 * SECOND
_WARM: Nanos = SECOND // 5
_PAYLOAD = bytes(56)


class StyleCell(Parameters, frozen=True):
    """One group, with servers and others."""

    style: Literal["peer", "client-server", "diffusion"] = "peer"
    servers: int = 3
    clients: int = 8
    active: int = 1
    """Clients that send, where they may; servers all do."""
    rate: float = 20.0
    """Messages a second of each that sends."""
    latency_ms: float = 1.0
    measured_s: float = 0.5


class Counts:
    """What is measured."""

    def __init__(self) -> None:
        self.fields: list[int] = []
        """Of messages, as they are multicast."""
        self.passed: list[int] = []
        """Of what contacts pass on."""
        self.delays: list[Nanos] = []

    def begin(self) -> None:
        """From now on."""
        self.fields, self.passed, self.delays = [], [], []


class _CountingSending(Sending):
    def _note(self, seat: Seat, event: Sent) -> None:
        counts = self._domain.counts  # type: ignore[attr-defined]
        counts.fields += [len(head.changed) + 1 for head in seat.spoken]
        super()._note(seat, event)


class _CountingContact(Contact):
    counts: Counts

    def _item(self, entry: Entry) -> Item:
        item = super()._item(entry)
        self.counts.passed.append(len(item.counts))
        return item


class _CountingServing(Serving):
    def _make(self, client: MemberId, session: int) -> Contact:
        contact = super()._make(client, session)
        assert isinstance(contact, _CountingContact)
        contact.counts = self._domain.counts  # type: ignore[attr-defined]
        return contact

    contact_kind = _CountingContact


class _CountingClientele(Clientele):
    serving_kind = _CountingServing


class SpeakTimer(Timer):
    """When a program has something to say, or comes."""

    SPEAK = "speak"
    COME = "come"


class Speaker(Isis):
    """A process in one group, as a server, a client, or one of its peers.

    Args:
        me: who this is.
        cell: of the experiment.
        number: of the process; the first are servers.
        rng: chance.
        out: for everything that it wants.
        counts: of all of them.
        late: when it joins, if later than the others.
    """

    sending_kind = _CountingSending
    clientele_kind = _CountingClientele

    def __init__(
        self,
        me: MemberId,
        cell: StyleCell,
        number: int,
        rng: Random,
        out: Outbox,
        counts: Counts,
        late: Nanos = 0,
    ) -> None:
        settings = IsisSettings(notes=True, vsync=VsyncSettings(ack_delay=MILLISECOND))
        super().__init__(me, settings, rng, out)
        self.counts = counts
        self._cell = cell
        self._serves = number < cell.servers
        speaks = cell.style != "diffusion" and number < cell.servers + cell.active
        self._speaks = (self._serves or speaks) and not late
        self._late = late
        self._chance = Random(rng.getrandbits(64))
        self._busy = False

    def start(self, now: Nanos) -> None:
        """Be in the group."""
        super().start(now)
        if self._late:
            self.out.set_timer(SpeakTimer.COME, self._late)
            self.settle(now)
            return
        self._come(now)
        self.out.set_timer(SpeakTimer.SPEAK, _FOUNDED + self._chance.randrange(50 * MILLISECOND))

    def _come(self, now: Nanos) -> None:
        cell = self._cell
        if cell.style == "peer":
            self.join(now, _GROUP, 0 if self._late else cell.servers + cell.clients)
        else:
            role = "server" if self._serves else "client"
            self.join(now, _GROUP, cell.servers if self._serves else 0, cell.style, role)
        self.settle(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Its own, or one of the domain."""
        if timer is SpeakTimer.COME:
            self._come(now)
        elif timer is SpeakTimer.SPEAK:
            if self._speaks and self._cell.rate:
                self._speak(now)
                self.out.set_timer(SpeakTimer.SPEAK, now + round(SECOND / self._cell.rate))
            self.settle(now)
        else:
            super().on_timer(now, timer)

    def _speak(self, now: Nanos) -> None:
        payload = now.to_bytes(8, "big") + _PAYLOAD
        seat = self.seats.get(_GROUP)
        serving = None if seat is None else seat.serving
        clients = sorted(serving.roster.listed) if serving is not None else []
        to = self._chance.choice(clients) if clients and self._cell.style == "client-server" else None
        self.cast(_GROUP, [payload], to=to)

    def settle(self, now: Nanos) -> None:
        """The program reads everything."""
        if self._busy:
            return
        self._busy = True
        super().settle(now)
        while events := self.program.take():
            for event in events:
                if isinstance(event, Delivered) and event.sender != self.me:
                    self.counts.delays += [now - int.from_bytes(each[:8], "big") for each in event.payloads]
            super().settle(now)
        self._busy = False


def w3(cell: StyleCell) -> Result:
    """Fields of a message (table I), datagrams a message, and the time to other programs."""
    counts = Counts()
    cluster = _cluster(cell, counts)
    cluster.run(_FOUNDED + _WARM)
    counts.begin()
    datagrams = _datagrams(cluster)
    cluster.run(_FOUNDED + _WARM + round(cell.measured_s * SECOND))
    datagrams = _datagrams(cluster) - datagrams
    if not counts.fields or not counts.delays:
        raise CellError("rate: nothing was sent while it was measured")
    bound = cell.servers if cell.style == "diffusion" else cell.servers + cell.clients
    return {
        "fields": sum(counts.fields) / len(counts.fields),
        "most": max(counts.fields),
        "passed": max(counts.passed, default=0),
        "bound": bound,
        "datagrams": datagrams / len(counts.fields),
        "delay_ms": median(counts.delays) / MILLISECOND,
        "messages": len(counts.fields),
    }


def w4(cell: StyleCell) -> Result:
    """Datagrams that one more process costs, as a client or as a peer, and the views that it changes."""
    counts, quiet = Counts(), msgspec.structs.replace(cell, rate=0.0)
    joined = _FOUNDED + SECOND
    cluster = _cluster(quiet, counts, late=joined)
    cluster.run(joined - SECOND // 2)
    before, views = _datagrams(cluster), _views(cluster)
    cluster.run(joined)
    idle, start = _datagrams(cluster) - before, _datagrams(cluster)
    cluster.run(joined + SECOND // 2)
    cost = _datagrams(cluster) - start - idle
    return {"datagrams": cost, "views": _views(cluster) - views, "idle": idle}


def _datagrams(cluster: Cluster) -> int:
    return sum(host.stats.datagrams_out for host in cluster.hosts)


def _views(cluster: Cluster) -> int:
    """The number of the latest view of the group, at the first server."""
    process = cluster.hosts[0].stack
    assert isinstance(process, Isis)
    stream = process.seats[_GROUP].member.stream
    return 0 if stream is None else stream.view().id


def _cluster(cell: StyleCell, counts: Counts, late: Nanos = 0) -> Cluster:
    if cell.servers < 1 or cell.clients < 1 or not 0 <= cell.active <= cell.clients:
        raise CellError("servers and clients: at least 1; active: 0 to all clients")
    scheduler, seeds = Scheduler(), Random(cell.seed)
    size = cell.servers + cell.clients + bool(late)
    network = SwitchedNetwork(
        scheduler,
        Random(seeds.getrandbits(64)),
        size,
        Conditions(),
        bandwidth=1_000_000_000,
        latency=round(cell.latency_ms * MILLISECOND),
    )

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        number = members.index(me)
        comes = late if number == cell.servers + cell.clients else 0
        return Speaker(me, cell, number, rng, out, counts, comes)

    cluster = Cluster(
        scheduler,
        network,
        build,
        size=size,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(observe=False),
        announces=True,
    )
    cluster.start()
    return cluster
