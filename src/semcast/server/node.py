"""One server of a database: the database in this process, and HTTP around it."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import msgspec

from semcast.group.errors import GroupError
from semcast.server.application import application
from semcast.server.interface import Database
from semcast.server.limits import Limits
from semcast.server.metrics import Counts
from semcast.server.registry import Note, noted
from semcast.server.serving import HttpServer, ServerAddress, reserve
from semcast.server.tokens import Tokens

_QUIET = 2.0
"""Seconds for what is under way when the server is told to stop; then those who wait are told so."""
_LOOK = 0.2
"""Seconds between looks at the state."""

Say = Callable[[Mapping[str, Any]], None]


class Opened(Database, Protocol):
    """A database that runs in this process until it is closed."""

    @property
    def over(self) -> str:
        """Why it has ended by itself, if it has."""

    async def close(self) -> None:
        """Stop."""


class Wanted(msgspec.Struct, frozen=True):
    """How a server is to be reached."""

    database: str
    server: str
    place: ServerAddress
    tokens: Path | None = None


async def serve(
    wanted: Wanted,
    opening: Callable[[], Awaitable[Opened]],
    stopped: asyncio.Event,
    say: Say,
    limits: Limits | None = None,
) -> None:
    """Serve until told to stop, or until the database cannot go on.

    Args:
        wanted: where, and for whom.
        opening: starts the database.
        stopped: set when the server is to end.
        say: told what happens.
        limits: of what clients may ask for.
    """
    wanted.place.check(tokens=wanted.tokens is not None)
    tokens = Tokens(wanted.tokens)
    counts = Counts()
    with closing(reserve(wanted.place.listen)) as reserved:  # before others are told that it is there
        say({"event": "starting", "server": wanted.server})
        database = await _opened(opening, stopped)
        if database is None:
            return
        await _serve(wanted, database, reserved, tokens, counts, stopped, say, limits)


async def _serve(
    wanted: Wanted,
    database: Opened,
    reserved: socket.socket,
    tokens: Tokens,
    counts: Counts,
    stopped: asyncio.Event,
    say: Say,
    limits: Limits | None,
) -> None:
    try:
        served = application(database, tokens, limits, counts=counts, anybody=wanted.place.insecure)
        http = HttpServer(served, wanted.place, limits, reserved)
        async with http:
            note = Note(
                wanted.database, wanted.server, http.address, bool(wanted.place.certificate), os.getpid()
            )
            with noted(note):
                say({"event": "serving", "server": wanted.server, "address": http.address})
                ended = await _watch(wanted.server, database, stopped, say)
            say({"event": "stopping", "server": wanted.server})
            stopping = asyncio.create_task(http.stop())
            await _quiet(counts)
            await database.close()
            await stopping
        if ended:
            raise GroupError(f"{wanted.server} cannot go on: {ended}")
    finally:
        await database.close()


async def _opened(opening: Callable[[], Awaitable[Opened]], stopped: asyncio.Event) -> Opened | None:
    """The database; None if the server is stopped while it still waits for those it founds it with."""
    work, stop = asyncio.ensure_future(opening()), asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.cancel()
        if not work.done():
            work.cancel()
        await asyncio.gather(work, stop, return_exceptions=True)
    return None if work.cancelled() else work.result()


async def _watch(server: str, database: Opened, stopped: asyncio.Event, say: Say) -> str:
    """Say when there is a primary, and when there is none any more; returns why the database ended, if so."""
    last: object = None
    while not stopped.is_set():
        if database.over:
            return database.over
        status = database.status()
        now = {"server": server} | {key: status[key] for key in ("primary", "state", "view")}
        shown = now["primary"], now["view"]
        if shown != last and (now["primary"] or last is None or status["state"] == "non-prim"):
            last = shown
            say({"event": "state", **now})
        try:
            async with asyncio.timeout(_LOOK):
                await stopped.wait()
        except TimeoutError:
            continue
    return ""


async def _quiet(counts: Counts) -> None:
    deadline = asyncio.get_running_loop().time() + _QUIET
    while counts.under_way and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.02)
