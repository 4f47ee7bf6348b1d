"""A network in user space: members on one host that reach each other through it, late and in any order.

Each member has a face here. Whoever sends to a face reaches the member behind it, and the datagram comes from
the sender's own face, so that answers take the same way. `tc netem` does the same where there is one.
"""

import asyncio
import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

Address = tuple[str, int]

_HOST = "127.0.0.1"
_BUFFER = 4 << 20
_BURST = 64


@dataclass
class Weather:
    """What happens to a datagram on its way; may be changed at any time."""

    delay: tuple[float, float] = (0.0, 0.0)
    """Seconds, between these two: what leaves later may arrive earlier."""
    loss: float = 0.0
    duplication: float = 0.0
    slow_to: str = ""
    """On the way to this member everything takes `detour` longer, but not on the way back."""
    detour: float = 0.0


class Relay:
    """Use as a context manager, inside a running loop.

    Args:
        names: of the members.
        weather: on all ways.
        seed: of the weather.
    """

    def __init__(self, names: Sequence[str], weather: Weather, seed: int = 0) -> None:
        self.weather = weather
        self.carried = 0
        self.overtaken = 0
        """Datagrams that arrived after one that had left later, on the same way."""
        self._rng = random.Random(seed)
        self._faces = {name: _udp() for name in names}
        self._homes = {name: (_HOST, _free_port()) for name in names}
        self._at_home = {address: name for name, address in self._homes.items()}
        self._left: dict[tuple[str, str], int] = {}
        self._arrived: dict[tuple[str, str], int] = {}
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> "Relay":
        for name, face in self._faces.items():
            self._loop.add_reader(face, self._on_readable, name, face)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for face in self._faces.values():
            self._loop.remove_reader(face)
            face.close()

    def settings(self, name: str) -> dict[str, Any]:
        """How a member gets here, and only here."""
        host, port = self._homes[name]
        peers = [f"{host}:{face.getsockname()[1]}" for other, face in self._faces.items() if other != name]
        return {"bind": f"{host}:{port}", "peers": peers, "multicast": False}

    def _on_readable(self, dest: str, face: socket.socket) -> None:
        for _ in range(_BURST):
            try:
                data, address = face.recvfrom(1 << 16)
            except BlockingIOError:
                return
            source = self._at_home.get(address)
            if source is not None:
                self._carry(source, dest, data)

    def _carry(self, source: str, dest: str, data: bytes) -> None:
        weather, rng = self.weather, self._rng
        if rng.random() < weather.loss:
            return
        number = self._left[source, dest] = self._left.get((source, dest), 0) + 1
        for _ in range(2 if rng.random() < weather.duplication else 1):
            delay = rng.uniform(*weather.delay) + (weather.detour if dest == weather.slow_to else 0.0)
            self._loop.call_later(delay, self._arrive, source, dest, data, number)

    def _arrive(self, source: str, dest: str, data: bytes, number: int) -> None:
        face = self._faces[source]
        if face.fileno() < 0:
            return  # the test is over
        way = source, dest
        self.carried += 1
        self.overtaken += number < self._arrived.get(way, 0)
        self._arrived[way] = max(number, self._arrived.get(way, 0))
        try:
            face.sendto(data, self._homes[dest])
        except OSError:
            return  # nobody is there, or not now


def _udp() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    made.bind((_HOST, 0))
    return made


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
