"""Scenarios: everything one simulated run is made of, as data, printable. Families draw them from seeds."""

from random import Random
from typing import Literal

import msgspec

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.obsolescence import Purging
from semcast.protocols.ring import RingSettings
from semcast.protocols.vsync import VsyncSettings
from semcast.sim.bursts import Bursts
from semcast.sim.faults import AnyFault
from semcast.sim.habits import Habit

NetworkKind = Literal["switched", "shared", "routed"]
ContentKind = Literal["items", "bitmaps", "enumerated", "operations", "stocks", "plain", "shared"]
ArrivalKind = Literal["constant", "poisson", "bursts"]

BANDWIDTH = 100_000_000


class Traffic(msgspec.Struct, frozen=True):
    """What one member sends."""

    sender: int
    content: ContentKind
    arrivals: ArrivalKind
    rate: float
    count: int
    r: float = 0.5
    d: int = 1
    k: int = 32
    size: int = 0
    safe_every: int = 0
    """Each so many messages one asks for safe delivery; 0 for none."""
    trace: str | None = None
    """A recording to replay instead, with its own intervals and sizes."""


class Scenario(msgspec.Struct, frozen=True):
    """One run."""

    seed: int
    stack: str
    size: int
    network: NetworkKind = "switched"
    latency: Nanos = 20 * MICROSECOND
    loss: float = 0.0
    link_loss: float = 0.0
    """On each link: lost for everybody behind it."""
    queue_packets: int | None = None
    """How many packets may wait for a link of a routed network; None for as many as fit."""
    duplication: float = 0.0
    jitter: Nanos = 0
    mtu: int | None = None
    """What the network carries; None for anything."""
    name_bytes: int = 0
    """How long the names of members are, at least."""
    buffer: int = 40
    queue: int = 0
    """Messages that wait for a program; 0 for as many as a buffer has."""
    queue_bytes: int = 0
    """Bytes of these; 0 for as many as a buffer has."""
    reserve: int | None = None
    """Bytes of the reserve; None for as many messages as a buffer has."""
    spare_bytes: int | None = None
    """Bytes a buffer has beyond one largest message for each sender; None for plenty."""
    purging: Purging = Purging.EAGER
    uniform: bool = False
    gossip_period: Nanos = 30 * MILLISECOND
    gossip_fanout: int = 3
    gossip_busy: Nanos = 0
    hopeful: bool = False
    window: int = 4096
    ring: RingSettings = RingSettings()
    """What the ring is set to, where it is the stack."""
    vsync: VsyncSettings = VsyncSettings()
    """The same for virtual synchrony."""
    settings: msgspec.Struct | None = None
    """The same for a stack that has no field of its own here."""
    cpu: Nanos = 10 * MICROSECOND
    bursts: Bursts | None = None
    """How inputs and messages are grouped; one at a time without."""
    traffic: tuple[Traffic, ...] = ()
    app_delays: dict[int, Nanos] = {}
    habits: dict[int, Habit] = {}
    """What programs do that do not just read."""
    ample: bool = False
    """Whether no program has so much to answer that its reserve could fill."""
    misfits: tuple[int, ...] = ()
    """Members with other settings than the others where all must have the same."""
    late: dict[int, Nanos] = {}
    """When those start who do not start at once."""
    disks: bool = False
    """Whether hosts have a disk, where the stack keeps records."""
    faults: tuple[AnyFault, ...] = ()
    duration: Nanos = 2 * SECOND
    """Faults happen before; then everything heals and what is owed must arrive."""


class Fixed(msgspec.Struct, frozen=True):
    """What a swarm may fix of what is drawn; a family that offers that has a type of its own."""


def slow_applications(rng: Random, size: int) -> dict[int, Nanos]:
    """Half of the time some members take their time for each message."""
    if rng.random() < 0.5:
        return {}
    slow = rng.sample(range(size), rng.randint(1, max(1, size // 2)))
    return {member: rng.choice((1, 5, 20)) * MILLISECOND for member in sorted(slow)}
