"""How the stack of each simulated member is made, from the settings of all."""

from collections.abc import Callable, Collection, Sequence
from random import Random

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.obsolescence import Purging
from semcast.protocols.ring import Ring, RingSettings
from semcast.protocols.semantic import ChannelSettings, SemanticMulticast, SenderMulticast, Settings
from semcast.protocols.vsync import VirtualSynchrony, VsyncSettings

StackFactory = Callable[[MemberId, Sequence[MemberId], Random, Outbox], Stack]


def s_rm(settings: Settings, kind: type[SemanticMulticast] = SemanticMulticast) -> StackFactory:
    """S-RM, or a mutant of it."""

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        return kind(me, members, settings, rng, out)

    return build


def s_srm(settings: ChannelSettings, kind: type[SenderMulticast] = SenderMulticast) -> StackFactory:
    """S-SRM, or a mutant of it."""

    def build(me: MemberId, members: Sequence[MemberId], _rng: Random, out: Outbox) -> Stack:
        return kind(me, members, settings, out)

    return build


def reliable(settings: Settings) -> StackFactory:
    """Plain FIFO reliable multicast: S-RM that knows of no obsolescence. The baseline."""
    return s_rm(msgspec.structs.replace(settings, purging=Purging.OFF))


def ring(settings: RingSettings, kind: type[Ring] = Ring, misfits: Collection[int] = ()) -> StackFactory:
    """The ring, or a mutant of it. It finds the other members by itself; misfits have half the window."""
    half = settings.window // 2
    visit, least = min(settings.visit, half), min(settings.visit_least, half)
    odd = msgspec.structs.replace(settings, window=half, visit=visit, visit_least=least)

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        differs = any(members[number].name == me.name for number in misfits)
        return kind(me, odd if differs else settings, rng, out)

    return build


def vsync(
    settings: VsyncSettings,
    kind: type[VirtualSynchrony] = VirtualSynchrony,
    misfits: Collection[int] = (),
    odd: VsyncSettings | None = None,
) -> StackFactory:
    """Virtual synchrony, or a mutant of it; misfits have `odd` settings.

    A process that starts again has the same configuration.
    """

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        differs = odd is not None and any(members[number].name == me.name for number in misfits)
        return kind(me, odd if differs and odd is not None else settings, rng, out)

    return build
