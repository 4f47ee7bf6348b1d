"""Cuts three servers into two sides, `a, b` and `c`, and makes them whole again.

In network namespaces the network itself is cut. Where there are none, the processes of the other side are
stopped while one side works: a server that is silent and one that cannot be reached look the same.
"""

import signal
from collections.abc import Iterable, Sequence
from typing import Protocol

from semcast.demo.servers import NAMES, Servers

MAJORITY = ("a", "b")
MINORITY = ("c",)


class NetworkCut(Protocol):
    """A way to cut."""

    how: str
    """In words."""

    def prefix(self, name: str) -> Sequence[str]:
        """The command that runs a program where a server is."""

    def options(self, name: str) -> Sequence[str]:
        """Words of the command line of a server."""

    def side(self, servers: Servers, names: Sequence[str]) -> None:
        """From now on these work, and are alone."""

    def heal(self, servers: Servers) -> None:
        """All reach each other again."""


class Network(Protocol):
    """Hosts by name, on a network that can be cut (`semcast.chaos.network.Lan`)."""

    def at(self, name: str) -> Sequence[str]:
        """What runs a command on that host."""

    def address(self, name: str) -> str:
        """Of a host."""

    def partition(self, *sides: Iterable[str]) -> None:
        """Only who is on the same side hears each other."""

    def heal(self) -> None:
        """No cuts."""


class CutNetwork:
    """Each server in a namespace of its own."""

    how = "the network between them is cut (network namespaces)"

    def __init__(self, lan: Network) -> None:
        self._lan = lan

    def prefix(self, name: str) -> Sequence[str]:
        """Its namespace."""
        return self._lan.at(name)

    def options(self, name: str) -> Sequence[str]:
        """Servers know each other's addresses; clients are in the same namespace."""
        others = [word for other in NAMES for word in ("--peer", f"{self._lan.address(other)}:7000")]
        return (
            "--bind",
            f"{self._lan.address(name)}:7000",
            *others,
            "--insecure",
            "--listen",
            "127.0.0.1:7420",
        )

    def side(self, servers: Servers, names: Sequence[str]) -> None:  # noqa: ARG002
        """Both sides work at once."""
        self._lan.partition(MAJORITY, MINORITY)

    def heal(self, servers: Servers) -> None:  # noqa: ARG002
        """No cuts."""
        self._lan.heal()


class StoppedProcesses:
    """All on loopback."""

    how = "the processes of the other side are stopped (no namespaces here: {why})"

    def __init__(self, why: str) -> None:
        self.how = self.how.format(why=why)

    def prefix(self, name: str) -> Sequence[str]:  # noqa: ARG002
        """Here."""
        return ()

    def options(self, name: str) -> Sequence[str]:  # noqa: ARG002
        """Any port."""
        return ("--listen", "127.0.0.1:0")

    def side(self, servers: Servers, names: Sequence[str]) -> None:
        """Only these run."""
        for name in NAMES:
            servers.signal(name, signal.SIGCONT if name in names else signal.SIGSTOP)

    def heal(self, servers: Servers) -> None:
        """All run."""
        self.side(servers, NAMES)
