"""How a group is configured: arguments, then `SEMCAST_*`, then `semcast.toml`, then defaults."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.group.errors import ConfigurationError
from semcast.net.addresses import AddressError, parse_address

_UNITS: dict[str, Nanos] = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": 60 * SECOND}
_PREFIX = "SEMCAST_"
FILE = "semcast.toml"
_CHOICES = {
    "order": ("fifo", "causal", "total"),
    "engine": ("token", "consensus"),
    "flush": ("coordinator", "all"),
}
_VIEWS = (
    "order",
    "engine",
    "uniform",
    "flush",
    "minimum",
    "bootstrap",
    "buffer_messages",
    "expel_after",
    "expel_when_full",
)
"""What only a stack with agreed views has."""
_FEWEST = 64


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set about a live group."""

    name: str = ""
    """Of this member; made up where it is empty. A program that restarts may keep its name."""
    stack: str = "ring"
    """`ring` (members come and go), `vsync` (agreed views, one primary) or `s-rm` (a fixed list)."""
    order: str = ""
    """vsync: `fifo` (the default), `causal` or `total`, the same at all members."""
    engine: str = ""
    """vsync, total: `token` (the default) or `consensus`, the same at all members."""
    uniform: bool = False
    """vsync: deliver only what survives whichever minority crashes; the same at all members."""
    flush: str = ""
    """vsync: who tells whom when the view changes, `coordinator` (the default) or `all`; the same at all."""
    minimum: int = 0
    """vsync: so many found the group together, more than half of all who may; 0 for one that only joins."""
    bootstrap: bool = False
    """vsync: found the group alone. At one member only, and only once."""
    rejoin: bool = True
    """vsync: come back by itself when the group went on without this member."""
    expel_after: str = ""
    """vsync: the others go on without a member that lacks for so long what they have; never by default."""
    expel_when_full: bool = False
    """vsync: and as soon as their buffers are full of what it lacks."""
    members: tuple[str, ...] = ()
    """s-rm: every member as `name=address:port`, the same list everywhere."""
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
    record: str = ""
    """Folder for a recording of what happens here."""
    record_run: str = ""
    """Name of the recorded run, the same at all members; the group's by default."""
    policy: str = "purge"
    """What to do when the application is too slow: block, purge, leave."""
    queue_messages: int = 1024
    """Messages that wait for the application."""
    buffer_messages: int = 0
    """vsync: messages in all buffers of this member; 0 for 65536."""
    send_messages: int = 4096
    """Messages that wait to be sent."""
    window: int = 0
    """ring: packets under way, at most; 0 for what a receiver's socket holds."""
    datagram: int = 0
    """Bytes of a datagram; 0 for what the network carries whole."""
    token_loss: str = "500ms"  # noqa: S105
    """How long a member may be silent before the others go on without it."""
    metrics: str = ""
    """Address and port of an endpoint for Prometheus."""

    def __post_init__(self) -> None:
        if self.stack not in ("ring", "vsync", "s-rm"):
            raise ConfigurationError(f"stack {self.stack!r}: there are ring, vsync and s-rm")
        self._check_views()
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
        parse_duration(self.token_loss)
        for text in (self.bind, self.metrics, *self.peers):
            if text and not text.endswith(":0"):
                _check_address(text)

    def _check_views(self) -> None:
        """What is about agreed views."""
        if self.stack != "vsync":
            for name in _VIEWS:
                if getattr(self, name):
                    raise ConfigurationError(f"{name} is for stack vsync, and this is {self.stack}")
            return
        for name, known in _CHOICES.items():
            if getattr(self, name) not in ("", *known):
                raise ConfigurationError(f"{name} {getattr(self, name)!r}: there are {', '.join(known)}")
        if self.engine and self.order != "total":
            raise ConfigurationError(f"engine {self.engine!r} decides on a total order: set order = total")
        if self.minimum < 0 or (self.bootstrap and self.minimum > 1):
            raise ConfigurationError(f"minimum {self.minimum}: at least 1 where there is no bootstrap, or 0")
        if self.expel_after:
            parse_duration(self.expel_after)
        if self.buffer_messages and self.buffer_messages < _FEWEST:
            raise ConfigurationError(
                f"buffer_messages must be at least {_FEWEST}, not {self.buffer_messages}"
            )


def resolve(given: Mapping[str, Any], folder: Path | None = None) -> GroupSettings:
    """The settings in force: what the program says, else the environment, else the file, else defaults."""
    known = {field.name: field for field in msgspec.structs.fields(GroupSettings)}
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise ConfigurationError(f"no such setting: {', '.join(unknown)}; there are {', '.join(known)}")
    found: dict[str, Any] = _from_file((folder or Path.cwd()) / FILE)
    for name in known:
        text = os.environ.get(_PREFIX + name.upper())
        if text is not None:
            found[name] = _from_text(name, text)
    found.update({name: value for name, value in given.items() if value is not None})
    try:
        return msgspec.convert(found, GroupSettings, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(str(error)) from error


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


def _from_text(name: str, text: str) -> Any:
    if name in ("members", "peers"):
        return [part.strip() for part in text.split(",") if part.strip()]
    if name in ("multicast", "insecure", "uniform", "bootstrap", "rejoin", "expel_when_full"):
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


def _check_address(text: str) -> None:
    try:
        parse_address(text)
    except AddressError as error:
        raise ConfigurationError(str(error)) from error
