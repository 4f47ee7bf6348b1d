"""A server in a thread, as clients see it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.server.standin import StandIn

from semcast.server.application import application
from semcast.server.limits import Limits
from semcast.server.serving import HttpServer, ServerAddress
from semcast.server.tokens import Tokens


class Running:
    """A stand-in that is served."""

    def __init__(
        self, path: Path, place: ServerAddress, tokens: Path | None = None, limits: Limits | None = None
    ) -> None:
        self._settings = path, place, tokens, limits
        self.address = ""
        self._clients: list[httpx.Client] = []
        self.database: StandIn
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._ready.wait(10)

    async def _run(self) -> None:
        path, place, tokens, limits = self._settings
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.database = StandIn(path)
        served = application(self.database, Tokens(tokens), limits)
        try:
            async with HttpServer(served, place, limits) as server:
                self.address = server.address
                self._ready.set()
                await self._stop.wait()
        finally:
            self.database.store.close()

    def call(self, what: Callable[[], object]) -> None:
        """In the thread of the server."""
        self._loop.call_soon_threadsafe(what)

    def stop(self) -> None:
        for each in self._clients:
            each.close()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def client(self, headers: dict[str, str] | None = None) -> httpx.Client:
        made = httpx.Client(base_url=f"http://{self.address}", trust_env=False, timeout=20, headers=headers)
        self._clients.append(made)
        return made


Serve = Callable[..., Running]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started: list[Running] = []

    def start(**options: object) -> Running:
        place = options.pop("place", None) or ServerAddress("127.0.0.1:0")
        path = tmp_path / f"{len(started)}.sqlite"
        started.append(Running(path, place, **options))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for each in started:
        each.stop()
