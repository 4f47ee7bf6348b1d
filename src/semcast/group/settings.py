"""How a group is configured: arguments, then `SEMCAST_*`, then `semcast.toml`, then defaults."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin

import msgspec
from msgspec.structs import FieldInfo, fields

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.core.registry import UnknownNameError
from semcast.extensions import load_families
from semcast.group.errors import ConfigurationError
from semcast.group.registry import FAMILIES
from semcast.net.addresses import Address, AddressError, parse_address

_UNITS: dict[str, Nanos] = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": 60 * SECOND}
_PREFIX = "SEMCAST_"
FILE = "semcast.toml"
DEFAULT_STACK = "ring"


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set about any live group. A stack may have a type of its own, with more."""

    name: str = ""
    """Of this member; made up where it is empty. A program that restarts may keep its name."""
    stack: str = DEFAULT_STACK
    """`ring` (members come and go), `vsync` (agreed views, one primary), `s-rm` (a fixed list)."""
    rejoin: bool = True
    """Where that can be (vsync): come back by itself when the group went on without this member."""
    members: tuple[str, ...] = ()
    """Where these are fixed (s-rm): every member as `name=address:port`, the same list everywhere."""
    bind: str = ""
    """Address and port to listen on. By default loopback, with a key this host's address on its network."""
    peers: tuple[str, ...] = ()
    """Addresses to look for others at, besides the meeting point."""
    multicast: bool = True
    """Whether to look for others at the group's meeting point."""
    fanout: str = "unicast"
    """What is for everybody: `unicast`, a datagram for each; `multicast`, one, where all are heard there."""
    key_file: str = ""
    """A keyring made by `semcast keygen`."""
    insecure: bool = False
    """Listen beyond loopback without a key."""
    data: str = ""
    """Where that can be (vsync): folder for what must outlive a crash. Needs a name; members may share it."""
    record: str = ""
    """Folder for a recording of what happens here."""
    record_run: str = ""
    """Name of the recorded run, the same at all members; the group's by default."""
    policy: str = "purge"
    """What to do when the application is too slow: block, purge, leave."""
    queue_messages: int = 1024
    """Messages that wait for the application."""
    send_messages: int = 4096
    """Messages that wait to be sent."""
    reserve: str = "64MiB"
    """What is received beyond `queue_messages` while the program waits in `send`, each message with 64 bytes
    more than it has."""
    receive: bool = True
    """Whether this program is given anything. One that only publishes need not be."""
    window: int = 0
    """ring: packets under way, at most; 0 for what a receiver's socket holds."""
    datagram: int = 0
    """Bytes of a datagram; 0 for what the network carries whole."""
    token_loss: str = "500ms"  # noqa: S105
    """How long a member may be silent before the others go on without it."""
    metrics: str = ""
    """Address and port of an endpoint for Prometheus."""

    def __post_init__(self) -> None:
        if self.fanout not in ("unicast", "multicast"):
            raise ConfigurationError(f"fanout {self.fanout!r}: there are unicast and multicast")
        if self.fanout == "multicast" and not self.multicast:
            raise ConfigurationError("fanout 'multicast' needs the meeting point, and multicast is off")
        if self.policy not in ("block", "purge", "leave"):
            raise ConfigurationError(f"policy {self.policy!r}: there are block, purge and leave")
        for name in ("queue_messages", "send_messages"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.window and not 4 <= self.window <= 4096:
            raise ConfigurationError(f"window of {self.window} packets: between 4 and 4096, or 0")
        if self.datagram and not 500 <= self.datagram <= 65_000:
            raise ConfigurationError(f"datagram of {self.datagram} bytes: between 500 and 65000, or 0")
        if self.data and not self.name:
            raise ConfigurationError("data needs a name: by it a member that restarts finds its records")
        parse_duration(self.token_loss)
        parse_size(self.reserve)
        for text in (self.bind, self.metrics, *self.peers):
            if text and not text.endswith(":0"):
                address_of(text)


def resolve(given: Mapping[str, Any], folder: Path | None = None) -> GroupSettings:
    """The settings in force: what the program says, else the environment, else the file, else defaults.

    They are of the type that belongs to the stack.
    """
    load_families()
    known = {field.name: field for family in FAMILIES for field in fields(family.settings)}
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise ConfigurationError(f"no such setting: {', '.join(unknown)}; there are {', '.join(known)}")
    found: dict[str, Any] = _from_file((folder or Path.cwd()) / FILE)
    for name, field in known.items():
        text = os.environ.get(_PREFIX + name.upper())
        if text is not None:
            found[name] = _from_text(name, field.type, text)
    found.update({name: value for name, value in given.items() if value is not None})
    try:
        family = FAMILIES.of(str(found.get("stack", DEFAULT_STACK)))
        own = {field.name for field in fields(family.settings)}
        for name in [name for name in found if name in known and name not in own]:
            _refuse_strange(known[name], found.pop(name), family.name)
        return msgspec.convert(found, family.settings, strict=False)
    except (msgspec.ValidationError, UnknownNameError) as error:
        raise ConfigurationError(str(error)) from error


def _refuse_strange(field: FieldInfo, value: Any, stack: str) -> None:
    """A setting of another stack says nothing here, unless it says what it says anyway."""
    if msgspec.convert(value, field.type, strict=False) != field.default:
        owners = [each.name for each in FAMILIES if field.name in each.settings.__struct_fields__]
        raise ConfigurationError(f"{field.name} is for stack {' or '.join(owners)}, and this is {stack}")


def _from_file(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigurationError(f"{path.name}: {error}") from error
    section = document.get("group", {})
    if not isinstance(section, dict):
        raise ConfigurationError(f"{path.name}: [group] is not a table")
    return section


def _from_text(name: str, kind: Any, text: str) -> Any:
    """What an environment variable says, which has no lists and no truth."""
    if get_origin(kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind is bool:
        if text.lower() not in ("0", "1", "true", "false", "yes", "no"):
            raise ConfigurationError(f"{_PREFIX}{name.upper()}={text!r}: write true or false")
        return text.lower() in ("1", "true", "yes")
    return text


def parse_duration(text: str) -> Nanos:
    """A time such as 30s or 20ms.

    >>> parse_duration("1.5ms")
    1500000
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m)", text.strip())
    if match is None:
        raise ConfigurationError(f"{text!r} is not a duration: write 20ms, 1.5s or 2m")
    return round(float(match[1]) * _UNITS[match[2]])


def parse_size(text: str) -> int:
    """Bytes, such as 64MiB, 4kB or 512.

    >>> parse_size("1.5KiB"), parse_size("0")
    (1536, 0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMG]?)(i?)(B?)", text.strip())
    if match is None or (match[3] and not match[2]):
        raise ConfigurationError(f"{text!r} is not a size: write 64MiB, 4kB or 512")
    unit: int = (1024 if match[3] else 1000) ** "_KMG".index(match[2].upper() or "_")
    return round(float(match[1]) * unit)


def address_of(text: str) -> Address:
    """An address and a port, as settings give them."""
    try:
        return parse_address(text)
    except AddressError as error:
        raise ConfigurationError(str(error)) from error
