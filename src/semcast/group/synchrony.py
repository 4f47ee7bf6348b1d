"""Virtual synchrony for programs: from their settings to those of the stack."""

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.group.settings import GroupSettings, parse_duration
from semcast.obsolescence import Purging
from semcast.protocols.vsync import DetectorSettings, Engine, Flush, Order, VsyncSettings
from semcast.wire.limits import MAX_MESSAGE

BUFFER_MESSAGES = 1 << 16
BUFFER_BYTES = 16 << 20
WINDOW_BYTES = 2 << 20
"""Bytes under way of all members together, about: half of what a receiver's socket holds."""
REPAIR_BYTES = WINDOW_BYTES // 2
_RTO_MIN = 20 * MILLISECOND
"""A busy machine takes its time to answer."""
_PATIENCE = SECOND
"""How long one member waits for the others, at most."""


def vsync_settings(settings: GroupSettings, packet: int, *, state: bool) -> VsyncSettings:
    """The stack for packets of a size."""
    silence = parse_duration(settings.token_loss)
    return VsyncSettings(
        order=Order(settings.order or Order.FIFO),
        engine=Engine(settings.engine or Engine.TOKEN),
        flush=Flush(settings.flush or Flush.COORDINATOR),
        uniform=settings.uniform,
        minimum=1 if settings.bootstrap else settings.minimum,
        state=state,
        purging=Purging.OFF if settings.policy == "block" else Purging.LAZY,
        buffer_messages=settings.buffer_messages or BUFFER_MESSAGES,
        buffer_bytes=BUFFER_BYTES,
        fair=True,
        window_bytes=WINDOW_BYTES,
        repair_bytes=REPAIR_BYTES,
        rto_min=_RTO_MIN,
        frame_bytes=packet,
        greeting=_PATIENCE,
        linger=_PATIENCE,
        expel_after=parse_duration(settings.expel_after) if settings.expel_after else 0,
        expel_when_full=settings.expel_when_full,
        leave_after=_PATIENCE if settings.policy == "leave" else 0,
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


def largest_message(settings: GroupSettings, packet: int) -> int:
    """Bytes: its pieces must find room together."""
    return min(MAX_MESSAGE, packet * ((settings.buffer_messages or BUFFER_MESSAGES) // 4))
