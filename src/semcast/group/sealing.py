"""From a key file to a codec; and the rule that without a key nobody listens beyond this host."""

from collections.abc import Sequence
from pathlib import Path

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.group.errors import ConfigurationError
from semcast.group.machine import Machine
from semcast.group.settings import GroupSettings
from semcast.net.addresses import Address, written
from semcast.net.keyfile import KeyFile, KeyFileError, load_keyring
from semcast.wire import Codec, DatagramCodec
from semcast.wire.datagrams import fingerprint
from semcast.wire.keyring import Keyring
from semcast.wire.sealing import OVERHEAD, SealedCodec, Sealer


def check_exposure(bind: Address, settings: GroupSettings, machine: Machine) -> None:
    """Raise unless this address is safe to listen on."""
    if machine.exposed(bind) and not settings.key_file and not settings.insecure:
        raise ConfigurationError(
            f"bind {written(bind)}: beyond loopback a group needs a key (key_file, see `semcast keygen`),"
            " or insecure = true"
        )


def keyring_of(settings: GroupSettings) -> Keyring | None:
    """The keys that the settings name."""
    if not settings.key_file:
        return None
    try:
        return load_keyring(_path(settings))
    except KeyFileError as error:
        raise ConfigurationError(f"key_file: {error}") from error


def room_in(datagram: int, keyring: Keyring | None) -> int:
    """What is left of a datagram's bytes when it is sealed."""
    return datagram if keyring is None else datagram - OVERHEAD


def codec_of(
    machine: Machine,
    group: str,
    members: Sequence[MemberId],
    room: int,
    name: str,
    keyring: Keyring | None,
    settings: GroupSettings,
    frames: Sequence[type[Frame]],
) -> tuple[DatagramCodec, KeyFile | None]:
    """The codec of a group, sealed where there are keys, and what keeps the keys up to date.

    Args:
        machine: that it runs on.
        group: its name.
        members: those who are always in it, where that is fixed.
        room: bytes of a datagram before it is sealed.
        name: of this member.
        keyring: of `keyring_of`.
        settings: which file it came from.
        frames: what the stack sends.
    """
    codec = Codec(group, members, room, frames)
    if keyring is None:
        return codec, None
    now = machine.wall() // 1_000_000
    sealer = Sealer(keyring, fingerprint(group, members), name, machine.random_bytes, now)
    return SealedCodec(codec, sealer), KeyFile(_path(settings), sealer, machine.wall)


def _path(settings: GroupSettings) -> Path:
    """The file, wherever the program goes: it is read again later."""
    return Path(settings.key_file).expanduser().absolute()
