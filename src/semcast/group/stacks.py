"""From settings to a stack, its codec and its sockets."""

import socket
from collections.abc import Iterable
from pathlib import Path

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError, GroupError
from semcast.group.families import FAMILIES, Family, Site
from semcast.group.machine import MACHINE, Machine
from semcast.group.registry import PACKET_OVERHEAD
from semcast.group.sealing import check_exposure, codec_of, keyring_of, room_in
from semcast.group.settings import GroupSettings, check_name
from semcast.net.addresses import Address, AddressError, family_of, meeting_point_of, written
from semcast.net.exchange import Sockets
from semcast.net.keyfile import KeyFile
from semcast.net.sharing import Lease
from semcast.storage import FullError, LiveDisk, StorageError
from semcast.wire import DatagramCodec


class Parts(msgspec.Struct, frozen=True):
    """What a driver is made of."""

    machine: Machine
    """What it runs on."""
    family: Family
    site: Site
    stack: Stack
    lease: Lease
    """Its sockets, which other groups of this process may use, too."""
    codec: DatagramCodec
    peers: tuple[Address, ...]
    largest: int
    """Bytes of a message, at most."""
    keys: KeyFile | None = None
    """Where datagrams are sealed."""
    disk: LiveDisk | None = None
    """Where records are kept."""

    @property
    def member(self) -> MemberId:
        """Who this is."""
        return self.site.member

    def close(self) -> None:
        """Close the sockets and let go of the disk, where there will be no driver."""
        self.lease.release()
        if self.disk is not None:
            self.disk.close()


def build(group: str, settings: GroupSettings, *, state: bool = False) -> Parts:
    """Open the sockets and put the stack together. With `state` members hand it over to who joins."""
    family = FAMILIES.of(settings.stack)
    if not isinstance(settings, family.settings):
        raise ConfigurationError(
            f"settings of {family.name} are {family.settings.__name__}; `join` makes them"
        )
    machine = MACHINE.get()
    if not settings.data:
        return _build(machine, group, settings, family, _member(machine, settings), None, state=state)
    if not family.keeps:
        able = " or ".join(each.name for each in FAMILIES if each.keeps)
        raise ConfigurationError(f"data is for stack {able}: {family.name} keeps nothing on disk")
    disk = _open_disk(machine, group, settings)
    try:
        member = MemberId(settings.name, disk.incarnation)
        return _build(machine, group, settings, family, member, disk, state=state)
    except BaseException:
        disk.close()
        raise


def build_of(group: str, settings: GroupSettings, family: Family) -> Parts:
    """The same for a family that programs cannot choose, without a disk, and with sockets of its own."""
    machine = MACHINE.get()
    member = _member(machine, settings)
    return _build(machine, group, settings, family, member, None, state=False, alone=True)


def _build(
    machine: Machine,
    group: str,
    settings: GroupSettings,
    family: Family,
    member: MemberId,
    disk: LiveDisk | None,
    *,
    state: bool,
    alone: bool = False,
) -> Parts:
    keyring = keyring_of(settings)
    if family.fixed:
        where = _fixed(machine, settings)
        member = _known(settings.name, where)
        bind = where.pop(member)
        peers = tuple(where.values())
    else:
        bind = bind_address(settings)
        peers = tuple(_find(machine, "peers", text, family_of(bind[0])) for text in settings.peers)
    check_exposure(bind, settings, machine)
    # What is kept on disk is read in the first turn, which takes its time: that needs a thread of its own.
    rented = _rent(machine, group, settings, bind, alone=alone or disk is not None)
    datagram = room_in(settings.datagram or rented.exchange.endpoint.datagram_bytes, keyring)
    site = Site(
        member=member,
        members=fixed_members(settings),
        settings=settings,
        datagram=datagram,
        packet=(datagram - PACKET_OVERHEAD) * 4 // 5,  # a message also says what it replaces
        state=state,
        epoch=machine.wall() - machine.clock(),
    )
    stack = family.build(site, machine.chance(), Outbox())
    alike = site.members or family.alike(settings)
    frames = family.protocol.frames
    codec, keys = codec_of(machine, group, alike, datagram, member.name, keyring, settings, frames)
    return Parts(machine, family, site, stack, rented, codec, peers, family.largest(site), keys, disk)


def _open_disk(machine: Machine, group: str, settings: GroupSettings) -> LiveDisk:
    try:
        return machine.open_disk(Path(settings.data), group, settings.name)
    except FullError as error:
        raise GroupError(f"data: {error}") from error
    except StorageError as error:
        raise ConfigurationError(f"data: {error}") from error


def _rent(machine: Machine, group: str, settings: GroupSettings, bind: Address, *, alone: bool) -> Lease:
    """The sockets of a member: those of other groups of this process, where they would be alike."""
    alike = settings.datagram, settings.fanout, settings.multicast
    try:
        return machine.exchanges.lease(group, bind, _meeting(group, settings, bind), alike, alone=alone)
    except OSError as error:
        raise _no_socket(bind, error) from error


def open_endpoint(group: str, settings: GroupSettings, bind: Address) -> Sockets:
    """The sockets of somebody who watches."""
    try:
        return MACHINE.get().exchanges.open_sockets(bind, _meeting(group, settings, bind))
    except OSError as error:
        raise _no_socket(bind, error) from error


def _meeting(group: str, settings: GroupSettings, bind: Address) -> Address | None:
    return meeting_point_of(group, bind[0]) if settings.multicast else None


def _no_socket(bind: Address, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"bind: cannot listen on {written(bind)}: {error.strerror}")


def fixed_members(settings: GroupSettings) -> tuple[MemberId, ...]:
    """Who is always in the group; nobody where members come and go."""
    return tuple(sorted(_listed(settings))) if FAMILIES.of(settings.stack).fixed else ()


def _listed(settings: GroupSettings) -> dict[MemberId, str]:
    """Members and where they are, as all have them in their settings."""
    listed: dict[MemberId, str] = {}
    for text in settings.members:
        name, equals, address = text.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"member {text!r}: write name=127.0.0.1:5000")
        check_name(name)
        listed[MemberId(name)] = address
    return listed


def _fixed(machine: Machine, settings: GroupSettings) -> dict[MemberId, Address]:
    """Members and where they are: all with addresses of the family that this one has."""
    listed = _listed(settings)
    mine = _find(machine, "members", listed[_known(settings.name, listed)])
    family = family_of(mine[0])
    return {
        member: mine if member.name == settings.name else _find(machine, "members", text, family)
        for member, text in listed.items()
    }


def _find(
    machine: Machine,
    name: str,
    text: str,
    family: socket.AddressFamily | None = None,
    *,
    own: bool = False,
) -> Address:
    """The address that a setting names."""
    try:
        return machine.find(text, family, any_port=own)
    except AddressError as error:
        raise ConfigurationError(f"{name}: {error}") from error


def _known(name: str, where: Iterable[MemberId]) -> MemberId:
    me = MemberId(name)
    if me not in where:
        known = ", ".join(member.name for member in where)
        raise ConfigurationError(f"name {name!r} is not among the members: {known or 'none are given'}")
    return me


def next_incarnation(machine: Machine, member: MemberId) -> MemberId:
    """Who comes back in the place of a member that its group went on without."""
    return MemberId(member.name, max(member.incarnation + 1, _milliseconds(machine)))


def _milliseconds(machine: Machine) -> int:
    return machine.wall() // 1_000_000


def bind_address(settings: GroupSettings) -> Address:
    """Where to listen; port 0 for any."""
    machine = MACHINE.get()
    if not settings.bind:
        return machine.home(sealed=bool(settings.key_file)), 0
    return _find(machine, "bind", settings.bind, own=True)


def _member(machine: Machine, settings: GroupSettings) -> MemberId:
    """A name that is given may come back after a restart: then the time tells the incarnations apart."""
    if settings.name:
        return MemberId(settings.name, _milliseconds(machine))
    return MemberId(f"{machine.name[:24]}-{machine.random_bytes(3).hex()}")
