"""What a program runs on: clocks, chance, sockets, the thread that drives stacks, and disks.

`join` takes it from the context that it is called in. That is this machine, or a process on a host of a
simulated world (`semcast.testing`), where the same group runs in virtual time.
"""

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from random import Random
from secrets import randbits
from typing import TYPE_CHECKING, Protocol

from semcast.core.certificates import Certificates
from semcast.core.ids import Nanos
from semcast.core.watchers import Watcher
from semcast.group.errors import GroupError
from semcast.net.addresses import LOOPBACK, Address, find_address, is_loopback, local_address
from semcast.net.loop import DRIVERS, Drivers
from semcast.net.sharing import EXCHANGES, Exchanges
from semcast.storage import LiveDisk, open_disk

if TYPE_CHECKING:
    from semcast.core.events import Delivery
    from semcast.group.settings import GroupSettings
    from semcast.group.stacks import Parts


class Witness(Watcher, Protocol):
    """Records what a member does."""

    certificates: Certificates
    """Where its stack notes them."""

    def close(self) -> None:
        """The member has ended."""


Pace = Callable[[Sequence["Delivery"]], float]
"""How many seconds a program takes, besides its own, for what it is given."""


class Machine(Protocol):
    """What a program runs on."""

    simulated: bool
    """Whether it is no real one: there are no threads, then."""
    random_bytes: Callable[[int], bytes]
    """That nobody can guess."""
    exchanges: Exchanges
    """Its sockets."""
    drivers: Drivers
    """What lets stacks take their turns."""
    environment: Mapping[str, str]
    """Its variables."""
    pace: Pace | None
    """Where programs are slower than they are."""

    @property
    def name(self) -> str:
        """Of the host."""

    def clock(self) -> Nanos:
        """Time that only goes forward, since some moment."""

    def wall(self) -> Nanos:
        """The time of day, since 1970."""

    def chance(self) -> Random:
        """For a stack."""

    def home(self, *, sealed: bool) -> str:
        """The address to listen on where none is given."""

    def exposed(self, address: Address) -> bool:
        """Whether strangers may speak to this address."""

    def find(self, text: str, family: socket.AddressFamily | None, *, any_port: bool) -> Address:
        """The address that a text names."""

    def open_disk(self, data: Path, group: str, name: str) -> LiveDisk:
        """For the records of a member."""

    def file(self, folder: Path | None, name: str) -> Path | None:
        """The file of settings in a folder, or in that of the program; None where none is read."""

    def witness(self, group: str, settings: "GroupSettings", parts: "Parts") -> Witness | None:
        """Who records a member, whatever its settings say; None where that is for these to say."""


class ThisMachine:
    """The one that this process runs on."""

    def __init__(self) -> None:
        self.simulated = False
        self.clock: Callable[[], Nanos] = time.monotonic_ns
        self.wall: Callable[[], Nanos] = time.time_ns
        self.random_bytes: Callable[[int], bytes] = os.urandom
        self.exchanges = EXCHANGES
        self.drivers = DRIVERS
        self.environment: Mapping[str, str] = os.environ
        self.pace: Pace | None = None

    @property
    def name(self) -> str:
        """Of this host."""
        return socket.gethostname()

    def chance(self) -> Random:
        """Of the system's."""
        return Random(randbits(64))

    def home(self, *, sealed: bool) -> str:
        """Without a key nobody listens beyond this host."""
        return local_address() if sealed else LOOPBACK

    def exposed(self, address: Address) -> bool:
        """Others than this host may speak to it."""
        return not is_loopback(address)

    def find(self, text: str, family: socket.AddressFamily | None, *, any_port: bool) -> Address:
        """Looked up now."""
        return find_address(text, family, any_port=any_port)

    def open_disk(self, data: Path, group: str, name: str) -> LiveDisk:
        """A folder that no other process may use."""
        return open_disk(data, group, name, self.wall() // 1_000_000)

    def file(self, folder: Path | None, name: str) -> Path | None:
        """In the working folder, where none is given."""
        return (folder or Path.cwd()) / name

    def witness(self, group: str, settings: "GroupSettings", parts: "Parts") -> Witness | None:  # noqa: ARG002
        """Nobody."""
        return None


MACHINE: ContextVar[Machine] = ContextVar("semcast machine", default=ThisMachine())  # noqa: B039
"""What the program runs on that is running."""


def check_threads() -> None:
    """Raise GroupError where there are no threads: what blocks would stop a whole simulated world."""
    if MACHINE.get().simulated:
        raise GroupError(
            "semcast.blocking needs threads, and a simulated world has none: use the asyncio call instead"
        )
