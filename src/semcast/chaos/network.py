"""Hosts in network namespaces, joined by a bridge that can be cut, lossy or slow; or plain loopback.

The bridge is in a namespace of its own, with one port for each host: what is done to the network is done
there, and nothing of it touches the machine. Neighbours are permanent, since loss would hit their discovery
as well; segmentation offload is off, since a lost batch is not what is meant by a lost datagram.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from secrets import token_hex
from types import TracebackType

_TOOLS = ("ip", "nft", "tc")
_REFUSALS = ("not permitted", "not supported", "Permission denied", "Unknown device type")


class NoNamespacesError(Exception):
    """There are none to be had here; says why."""


class Loopback:
    """All members on one host: nothing can be done to what is between them."""

    cuts = False
    """Whether it can be cut."""

    def __enter__(self) -> "Loopback":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def at(self, name: str) -> Sequence[str]:  # noqa: ARG002
        """What runs a command on the host of a member."""
        return ()

    def cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Cannot be."""
        raise AssertionError(f"loopback is never cut: {list(pairs)}")

    def disturb(self, *, loss: int = 0) -> None:
        """Cannot be."""
        raise AssertionError(f"nothing is lost on loopback: {loss}")

    def heal(self) -> None:
        """Nothing is broken."""


class Lan:
    """Hosts by name, each with an address on one network. Raises `NoNamespacesError` where that cannot be.

    Args:
        names: of the hosts, at most 200.
    """

    cuts = True

    def __init__(self, names: Iterable[str]) -> None:
        missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
        if missing:
            raise NoNamespacesError(f"no {', '.join(missing)} here (iproute2, nftables)")
        if os.geteuid() != 0:
            raise NoNamespacesError("network namespaces need root here")
        token = token_hex(3)
        self._switch = f"sc{token}-switch"
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._hosts = {name: f"sc{token}-{number}" for name, number in self._numbers.items()}
        self._cuts: list[tuple[str, str]] = []
        self._loss = 0
        self._duplicates = 0

    def __enter__(self) -> "Lan":
        try:
            self._build()
        except subprocess.CalledProcessError as error:
            self._remove()
            if not any(reason in error.stderr for reason in _REFUSALS):
                raise
            raise NoNamespacesError(f"namespaces are not permitted here: {error.stderr.strip()}") from error
        except BaseException:  # interrupted, perhaps: nothing is left behind
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _build(self) -> None:
        switch = self._switch
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge", "mcast_snooping", "0", "stp_state", "0")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for name, host in self._hosts.items():
            _ip("netns", "add", host)
            peer = ("peer", "name", "net", "netns", host, "address", self._mac(name))
            _ip("-n", switch, "link", "add", self._port(name), "type", "veth", *peer)
            _ip("-n", switch, "link", "set", self._port(name), "master", "bridge", "up")
            _ip("-n", host, "link", "set", "lo", "up")
            _ip("-n", host, "link", "set", "net", "gso_max_segs", "1")
            self.plug(name)
        self._apply()

    def _remove(self) -> None:
        for namespace in (*self._hosts.values(), self._switch):
            with suppress(subprocess.CalledProcessError):  # it was never made
                _ip("netns", "del", namespace)

    def _mac(self, name: str) -> str:
        return f"02:00:00:00:00:{self._numbers[name]:02x}"

    def _port(self, name: str) -> str:
        return f"port-{self._numbers[name]}"

    def address(self, name: str) -> str:
        """Of a host."""
        return f"10.77.0.{self._numbers[name]}"

    def address6(self, name: str) -> str:
        """Of a host, for IPv6."""
        return f"fd77::{self._numbers[name]:x}"

    def at(self, name: str) -> Sequence[str]:
        """What runs a command on that host."""
        return ("ip", "netns", "exec", self._hosts[name])

    # Links of hosts

    def plug(self, name: str) -> None:
        """Give a host its link, its address and its neighbours."""
        host = self._hosts[name]
        _ip("-n", host, "link", "set", "net", "up")
        _ip("-n", host, "address", "replace", f"{self.address(name)}/24", "dev", "net")
        _ip("-n", host, "address", "replace", f"{self.address6(name)}/64", "dev", "net", "nodad")
        _ip("-n", host, "route", "replace", "default", "dev", "net")
        for other in self._hosts:
            if other != name:
                for address in (self.address(other), self.address6(other)):
                    where = (address, "lladdr", self._mac(other))
                    _ip("-n", host, "neigh", "replace", *where, "dev", "net", "nud", "permanent")

    def unplug(self, name: str) -> None:
        """Take a host's link down: what it sends fails at once."""
        _ip("-n", self._hosts[name], "link", "set", "net", "down")

    def take_address(self, name: str) -> None:
        """The host loses its address, and with it every way to send."""
        _ip("-n", self._hosts[name], "address", "flush", "dev", "net")

    def slow_down(self, name: str, rate: str) -> None:
        """What goes to a host goes at that rate, and waits in a short queue."""
        limit = ("rate", rate, "burst", "16kb", "latency", "100ms")
        where = ("qdisc", "add", "dev", self._port(name), "root", "tbf")
        _run("ip", "netns", "exec", self._switch, "tc", *where, *limit)

    # The bridge

    def narrow(self, mtu: int) -> None:
        """The bridge carries no more than that, and tells nobody."""
        for name in self._hosts:
            _ip("-n", self._switch, "link", "set", self._port(name), "mtu", str(mtu))

    def partition(self, *sides: Iterable[str]) -> None:
        """Only who is on the same side hears each other."""
        self.cut(between(sides))

    def cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """The second of each pair does not hear the first. Replaces earlier cuts."""
        self._cuts = list(pairs)
        self._apply()

    def heal(self) -> None:
        """No cuts, no loss."""
        self._cuts, self._loss, self._duplicates = [], 0, 0
        self._apply()

    def disturb(self, *, loss: int = 0, duplicates: int = 0) -> None:
        """Percentages of frames that are lost, and that come twice."""
        self._loss, self._duplicates = loss, duplicates
        self._apply()

    def _apply(self) -> None:
        ports = [(self._port(one), self._port(two)) for one, two in self._cuts]
        rules = [f'iifname "{one}" oifname "{two}" drop' for one, two in ports]
        if self._loss:
            rules.append(f"numgen random mod 100 < {self._loss} drop")
        chain = "type filter hook forward priority 0; policy accept;"
        script = ["flush ruleset", "table bridge lab {", "chain forward {", chain, *rules, "}", "}"]
        if self._duplicates:
            for name, number in self._numbers.items():
                others = [other for other in self._hosts if other != name]
                copies = [
                    f"ether daddr {self._mac(other)} numgen random mod 100 < {self._duplicates}"
                    f' dup to "{self._port(other)}"'
                    for other in others
                ]
                hook = f'type filter hook ingress device "{self._port(name)}" priority 0;'
                script += [f"table netdev lab-{number} {{", "chain ingress {", hook, *copies, "}", "}"]
        _run("ip", "netns", "exec", self._switch, "nft", "-f", "-", text="\n".join([*script, ""]))


def between(sides: Iterable[Iterable[str]]) -> list[tuple[str, str]]:
    """What has to be cut, both ways, so that only who is on the same side hears each other.

    >>> between(["ab", "c"])
    [('a', 'c'), ('b', 'c'), ('c', 'a'), ('c', 'b')]
    """
    side = {name: number for number, names in enumerate(sides) for name in names}
    return [(one, two) for one in side for two in side if side[one] != side[two]]


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str, text: str = "") -> None:
    subprocess.run(command, input=text, capture_output=True, check=True, text=True)  # noqa: S603
