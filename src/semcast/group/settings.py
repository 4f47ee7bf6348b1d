"""How a group is configured: arguments, then `SEMCAST_*`, then `semcast.toml`, then defaults."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_origin

import msgspec
from msgspec.structs import FieldInfo, fields

from semcast.core.ids import MAX_NAME, MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.core.registry import UnknownNameError
from semcast.extensions import load_families
from semcast.group.errors import ConfigurationError
from semcast.group.machine import MACHINE
from semcast.group.registry import FAMILIES
from semcast.net.addresses import AddressError, split_address

_UNITS: dict[str, Nanos] = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": 60 * SECOND}
_PREFIX = "SEMCAST_"
_TYPO = 0.8
"""How alike the names of a setting and of an unknown variable are if the setting was meant."""
FILE = "semcast.toml"
DEFAULT_STACK = "ring"
LEAST_TOKEN_LOSS = 10 * MILLISECOND
"""A member that is alive may not get the processor for so long."""
MAX_GROUP = 256
"""Bytes of a group's name."""


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of every live group. A stack may have a type of its own, with more settings."""

    name: str = ""
    """Name of this member, at most 64 bytes; generated if empty. A restarted program may keep its name."""
    stack: str = DEFAULT_STACK
    """Protocol stack: `ring` (total order, both sides of a partition go on), `vsync` (agreed views, only the
    majority goes on), `s-rm` (fixed membership), `gossip` (publish/subscribe with loggers), `replication`
    (servers of a replicated service)."""
    rejoin: bool = True
    """vsync: rejoin automatically after the group has expelled this member."""
    members: tuple[str, ...] = ()
    """s-rm: all members, each as `name=address:port`. The same list at every member."""
    bind: str = ""
    """Address and port to listen on. Default: loopback; with a key, this host's network address."""
    peers: tuple[str, ...] = ()
    """Addresses of other members to contact, in addition to multicast discovery."""
    multicast: bool = True
    """Discover other members by IP multicast, at an address derived from the group's name."""
    fanout: str = "unicast"
    """How a frame is sent to all members: `unicast` (one datagram for each) or `multicast` (one for all, as
    long as all members hear each other by IP multicast)."""
    key_file: str = ""
    """Keyring file made by `semcast keygen`. All datagrams are encrypted and authenticated with it."""
    insecure: bool = False
    """Allow listening beyond loopback without a key."""
    data: str = ""
    """vsync, replication: folder for records that must survive a crash. Needs `name`. Members of one host may
    share the folder."""
    record: str = ""
    """Folder for a recording of this member's events, for `semcast check`."""
    record_run: str = ""
    """Name of the recorded run, the same at all members. Default: the name of the group."""
    policy: str = "purge"
    """What to do when the program reads too slowly: `purge` (skip obsolete messages, then slow the group
    down), `leave` (skip, then leave the group) or `block` (slow the group down and skip nothing)."""
    queue_messages: int = 1024
    """Receive queue: messages that may wait for the program."""
    queue_bytes: str = "64MiB"
    """Receive queue in bytes. The last message may exceed it, so that a message of any size is received."""
    send_messages: int = 4096
    """Send queue: messages that may wait to be sent before `send` blocks."""
    send_bytes: str = "64MiB"
    """Send queue in bytes. The last message may exceed it."""
    reserve: str = "64MiB"
    """Extra receive buffer, used while the program waits in `send`. Each message counts 64 bytes more than
    its payload."""
    receive: bool = True
    """Deliver messages to this program. Set it to false for a program that only publishes."""
    window: int = 0
    """ring: flow control window in packets. 0: as many as a receiver's socket buffer holds."""
    datagram: int = 0
    """Largest datagram in bytes. 0: 60,000 on loopback, 1400 elsewhere."""
    token_loss: str = "500ms"  # noqa: S105
    """Failure timeout: a member that is silent for this long is expelled from the view. At least 10 ms."""
    metrics: str = ""
    """Address and port at which to serve metrics for Prometheus."""

    def __post_init__(self) -> None:
        if self.fanout not in ("unicast", "multicast"):
            raise ConfigurationError(f"fanout {self.fanout!r}: choose unicast or multicast")
        if self.fanout == "multicast" and not self.multicast:
            raise ConfigurationError("fanout = multicast needs multicast = true")
        if self.policy not in ("block", "purge", "leave"):
            raise ConfigurationError(f"policy {self.policy!r}: choose block, purge or leave")
        for name in ("queue_messages", "send_messages"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.window and not 4 <= self.window <= 4096:
            raise ConfigurationError(f"window of {self.window} packets: must be 0, or from 4 to 4096")
        if self.datagram and not 500 <= self.datagram <= 65_000:
            raise ConfigurationError(f"datagram of {self.datagram} bytes: must be 0, or from 500 to 65000")
        if self.data and not self.name:
            raise ConfigurationError(
                "data needs a name: a member finds its records by its name after a restart"
            )
        parse_size(self.reserve)
        for name in ("queue_bytes", "send_bytes"):
            if parse_size(getattr(self, name)) < 1:
                raise ConfigurationError(f"{name} must be at least 1, not {getattr(self, name)}")
        if parse_duration(self.token_loss, "token_loss") < LEAST_TOKEN_LOSS:
            least = LEAST_TOKEN_LOSS // MILLISECOND
            raise ConfigurationError(f"token_loss {self.token_loss!r}: must be at least {least}ms")
        check_name(self.name)
        for name in ("bind", "metrics"):
            if text := getattr(self, name):
                _check_address(name, text, any_port=True)
        for text in self.peers:
            _check_address("peers", text)


def check_group(name: str) -> None:
    """Raise unless a group can have this name."""
    if not isinstance(name, str):
        raise ConfigurationError(f"the name of a group must be a string, not {type(name).__name__}")
    if not name:
        raise ConfigurationError("a group needs a name")
    if (size := _size(name, "the name of a group")) > MAX_GROUP:
        raise ConfigurationError(f"the name of a group has {size} bytes; at most {MAX_GROUP} are allowed")


def check_name(name: str) -> None:
    """Raise unless a member can have this name, or none."""
    if (size := _size(name, "name")) > MAX_NAME:
        raise ConfigurationError(f"name of {size} bytes: at most {MAX_NAME} are allowed")


def _size(text: str, what: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"{what} {text!r} is not text: {error.reason}") from error


def resolve(given: Mapping[str, Any], folder: Path | None = None) -> GroupSettings:
    """The settings in force: what the program says, else the environment, else the file, else defaults.

    They are of the type that belongs to the stack.
    """
    load_families()
    known = {field.name: field for family in FAMILIES for field in fields(family.settings)}
    _refuse_unknown("no such setting: ", given, known)
    machine = MACHINE.get()
    file = machine.file(folder, FILE)
    found: dict[str, Any] = {} if file is None else _from_file(file, known)
    found |= _from_environment(machine.environment, known)
    found.update({name: value for name, value in given.items() if value is not None})
    try:
        family = FAMILIES.of(str(found.get("stack", DEFAULT_STACK)))
    except UnknownNameError as error:
        raise ConfigurationError(str(error)) from error
    own = {field.name: field for field in fields(family.settings)}
    for name, value in list(found.items()):
        found[name] = _converted(own.get(name, known[name]), value)
        if name not in own:
            _refuse_strange(known[name], found.pop(name), family.name)
    return family.settings(**found)


def _converted(field: FieldInfo, value: Any) -> Any:
    """Of the type that the setting has."""
    try:
        return msgspec.convert(value, field.type, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"{field.name} = {value!r}: {str(error)[0].lower()}{str(error)[1:]}"
        ) from None


def _refuse_unknown(prefix: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Name the first that does not exist, and what may have been meant."""
    for name in sorted(set(names) - set(known)):
        close = get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}"
        raise ConfigurationError(f"{prefix}{name}; {hint}")


def _refuse_strange(field: FieldInfo, value: Any, stack: str) -> None:
    """A setting of another stack says nothing here, unless it says what it says anyway."""
    if value != field.default:
        owners = [each.name for each in FAMILIES if field.name in each.settings.__struct_fields__]
        raise ConfigurationError(f"{field.name} is for stack {' or '.join(owners)}; this is {stack}")


def _from_file(path: Path, known: Mapping[str, FieldInfo]) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigurationError(f"{path.name}: {error}") from error
    section = document.pop("group", None)
    if document:
        what = f"{path.name}: {', '.join(document)}"
        raise ConfigurationError(f"{what}: settings belong into the table [group]; nothing else is allowed")
    if section is not None and not isinstance(section, dict):
        raise ConfigurationError(f"{path.name}: [group] is not a table")
    _refuse_unknown(f"{path.name}: no such setting: ", section or {}, known)
    return section or {}


def _from_environment(environment: Mapping[str, str], known: Mapping[str, FieldInfo]) -> dict[str, Any]:
    variables = {_PREFIX + name.upper(): name for name in known}
    set_here = [name for name in environment if name.startswith(_PREFIX)]
    for name in sorted(set(set_here) - set(variables)):
        _refuse_misspelt(name, known)
    found = {variables[name]: environment[name] for name in set_here if name in variables}
    return {name: _from_text(name, known[name].type, text) for name, text in found.items()}


def _refuse_misspelt(variable: str, known: Iterable[str]) -> None:
    """Others belong to others: Kubernetes sets SEMCAST_SERVICE_HOST beside a service of that name."""
    close = get_close_matches(variable.removeprefix(_PREFIX).lower(), known, 1, cutoff=_TYPO)
    if close:
        raise ConfigurationError(f"no such variable: {variable}; did you mean {_PREFIX}{close[0].upper()}?")


def _from_text(name: str, kind: Any, text: str) -> Any:
    """What an environment variable says, which has no lists and no truth."""
    if get_origin(kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind is bool:
        if text.lower() not in ("0", "1", "true", "false", "yes", "no"):
            raise ConfigurationError(f"{_PREFIX}{name.upper()}={text!r}: write true or false")
        return text.lower() in ("1", "true", "yes")
    return text


def parse_duration(text: str, name: str = "") -> Nanos:
    """A time such as 30s or 20ms; `name` is the setting's, for errors.

    >>> parse_duration("1.5ms")
    1500000
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m)", text.strip())
    if match is None:
        what = f"{name} = {text!r}" if name else repr(text)
        raise ConfigurationError(f"{what} is not a duration: write 20ms, 1.5s or 2m")
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


def _check_address(name: str, text: str, *, any_port: bool = False) -> None:
    try:
        split_address(text, any_port=any_port)
    except AddressError as error:
        raise ConfigurationError(f"{name}: {error}") from error
