"""From settings to a stack, its codec and its sockets."""

import socket
import time
from random import Random
from secrets import token_hex

import msgspec

from semcast.core.ids import MILLISECOND, MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.sealing import check_exposure, codec_of, keyring_of, room_in
from semcast.group.settings import GroupSettings, parse_duration
from semcast.group.synchrony import kind_of, largest_message, vsync_settings
from semcast.net.addresses import LOOPBACK, Address, local_address, meeting_point, parse_address
from semcast.net.keyfile import KeyFile
from semcast.net.sockets import Endpoint
from semcast.protocols.ring import Ring, RingSettings, SlowPolicy
from semcast.protocols.ring.frames import FRAMES as RING_FRAMES
from semcast.protocols.semantic import SemanticMulticast, Settings
from semcast.protocols.semantic.frames import FRAMES as SEMANTIC_FRAMES
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.frames import FRAMES as VSYNC_FRAMES
from semcast.wire import DatagramCodec
from semcast.wire.keyring import Keyring
from semcast.wire.limits import MAX_MESSAGE

PACKET_OVERHEAD = 200
"""Bytes of a datagram that a packet of the ring needs besides its messages, at most."""
SEARCH = 300 * MILLISECOND
"""How long a member that starts looks for others before it works alone."""
STATIC_BYTES = 1 << 20
"""What a member of a fixed list keeps for others, at least: no more is under way than sockets hold."""
STATIC_MESSAGE = 1 << 15
"""Bytes of its messages, at most."""
IDLE = 400 * MILLISECOND
"""How seldom an idle ring may move, and look for others: every word wakes everybody."""
LINGER = 3 * MILLISECOND
"""How long a member that sends little keeps the token, where nobody else wants it."""
WINDOW_BYTES = 2 << 20
"""Bytes of packets under way, at most: half of what a receiver's socket holds."""


class Parts(msgspec.Struct, frozen=True):
    """What a driver is made of."""

    member: MemberId
    stack: Stack
    endpoint: Endpoint
    codec: DatagramCodec
    peers: tuple[Address, ...]
    keys: KeyFile | None = None
    """Where datagrams are sealed."""
    largest: int = 1 << 24
    """Bytes of a message, at most."""
    packet: int = 0
    """Bytes of messages in a datagram."""


def build(group: str, settings: GroupSettings, *, state: bool = False) -> Parts:
    """Open the sockets and put the stack together. With `state` members hand it over to who joins."""
    bind = bind_address(settings)
    check_exposure(bind, settings)
    keyring = keyring_of(settings)
    member = _member(settings)
    if settings.stack == "s-rm":
        return _static(group, settings, keyring)
    meeting = meeting_point(group) if settings.multicast else None
    try:
        endpoint = Endpoint(bind, meeting)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {bind[0]}:{bind[1]}: {error.strerror}") from error
    datagram = room_in(settings.datagram or endpoint.datagram_bytes, keyring)
    packet = (datagram - PACKET_OVERHEAD) * 4 // 5  # a message also says what it replaces
    stack: Stack
    if settings.stack == "vsync":
        alike: tuple[MemberId, ...] = (kind_of(settings),)
        stack, largest = synchrony(member, settings, packet, state=state), largest_message(settings, packet)
        frames = VSYNC_FRAMES
    else:
        stack = Ring(member, ring_settings(settings, datagram), Random(token_hex(8)), Outbox())
        alike, largest, frames = (), MAX_MESSAGE, RING_FRAMES
    peers = tuple(parse_address(peer) for peer in settings.peers)
    codec, keys = codec_of(group, alike, datagram, member.name, keyring, settings, frames)
    return Parts(member, stack, endpoint, codec, peers, keys, largest, packet)


def synchrony(member: MemberId, settings: GroupSettings, packet: int, *, state: bool) -> VirtualSynchrony:
    """Virtual synchrony."""
    chosen = vsync_settings(settings, packet, state=state)
    return VirtualSynchrony(member, chosen, Random(token_hex(8)), Outbox())


def next_incarnation(member: MemberId) -> MemberId:
    """Who comes back in the place of a member."""
    return MemberId(member.name, max(member.incarnation + 1, time.time_ns() // 1_000_000))


def ring_settings(settings: GroupSettings, datagram: int) -> RingSettings:
    """The ring for datagrams of a size: its window fits in a receiver's socket."""
    packet = datagram - PACKET_OVERHEAD
    window = settings.window or max(16, min(2048, WINDOW_BYTES // datagram))
    loss = parse_duration(settings.token_loss)
    return RingSettings(
        packet_bytes=packet,
        window=window,
        visit=max(min(64, window), window // 3),
        accelerated=max(16, window // 8),
        queue_messages=settings.queue_messages,
        send_messages=settings.send_messages,
        policy=SlowPolicy(settings.policy),
        token_loss=loss,
        retransmit=min(20_000_000, loss // 4),
        hold=min(IDLE, loss // 3),
        presence=IDLE,
        linger=min(LINGER, loss // 4),
        search=SEARCH,
    )


def _static(group: str, settings: GroupSettings, keyring: Keyring | None) -> Parts:
    """S-RM: the members and their addresses are known to all."""
    where: dict[MemberId, Address] = {}
    for text in settings.members:
        name, equals, address = text.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"member {text!r}: write name=127.0.0.1:5000")
        where[MemberId(name)] = parse_address(address)
    me = MemberId(settings.name)
    if me not in where:
        known = ", ".join(member.name for member in where)
        raise ConfigurationError(
            f"name {settings.name!r} is not among the members: {known or 'none are given'}"
        )
    check_exposure(where[me], settings)
    endpoint = Endpoint(where[me], meeting_point(group) if settings.multicast else None)  # for observers
    members = sorted(where)
    datagram = room_in(settings.datagram or endpoint.datagram_bytes, keyring)
    stack_settings = Settings(
        buffer_messages=max(settings.queue_messages, len(members)),
        buffer_bytes=max(STATIC_BYTES, 2 * len(members) * STATIC_MESSAGE),
        max_message=STATIC_MESSAGE,
        window=max(4096, 2 * settings.queue_messages),
        gossip_busy=2 * MILLISECOND,
        rto_min=20 * MILLISECOND,
        repair_bytes=STATIC_BYTES,
        hopeful=True,
        frame_bytes=datagram - PACKET_OVERHEAD,
    )
    stack = SemanticMulticast(me, members, stack_settings, Random(token_hex(8)), Outbox())
    peers = tuple(address for member, address in where.items() if member != me)
    codec, keys = codec_of(group, members, datagram, me.name, keyring, settings, SEMANTIC_FRAMES)
    return Parts(me, stack, endpoint, codec, peers, keys, STATIC_MESSAGE)


def bind_address(settings: GroupSettings) -> Address:
    """Where to listen; port 0 for any."""
    if not settings.bind:
        return (local_address() if settings.key_file else LOOPBACK), 0
    host, _, port = settings.bind.rpartition(":")
    return (host, 0) if port == "0" else parse_address(settings.bind)


def _member(settings: GroupSettings) -> MemberId:
    """A name that is given may come back after a restart: then the time tells the incarnations apart."""
    if settings.name:
        return MemberId(settings.name, time.time_ns() // 1_000_000)
    return MemberId(f"{socket.gethostname()[:24]}-{token_hex(3)}")
